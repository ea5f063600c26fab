#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/import/complaints.h"
#include "core/import/onnx_io/model.h"

namespace candela::import {

/// The model's own functions, by (domain, name, overload).
class Functions {
public:
  /// Complains about functions that are defined twice, call themselves, nest deeper than 64 or
  /// would inline to more than a million nodes. After a complaint nothing must be inlined.
  Functions(const onnx_io::Model& model, Complaints& complaints);

  const onnx_io::Function* find(const onnx_io::Node& node) const;

private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Size {
    int64_t nodes = 0;
    int depth = 0;
  };
  /// Of the nodes with everything that they call; saturates. Failures name the chain of calls.
  Status measure(const std::vector<onnx_io::Node>& nodes, std::vector<const onnx_io::Function*>& stack, Size& size);

  std::map<Key, const onnx_io::Function*> byKey_;
  std::map<const onnx_io::Function*, Size> sizes_;
};

/// The function's node as the call makes it: attribute references replaced by the call's attributes
/// or the function's defaults; a reference to neither leaves the attribute out.
onnx_io::Node bindAttributes(const onnx_io::Node& node, const onnx_io::Function& function, const onnx_io::Node& call);

} // namespace candela::import
