#pragma once

#include <functional>

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

/// A node that import does not know, on its way to whoever may claim it.
struct CustomNode {
  const onnx_io::Node& node;
  const std::string& name;                 ///< the user's
  int64_t version;                         ///< of the domain
  std::vector<const graph::Value*> inputs; ///< null: left out
};

/// What the one who claims it makes of it: the op `custom` over the inputs that are there, then the
/// tensors among the attributes, by name.
struct CustomOp {
  graph::Attrs attrs;
  std::vector<graph::TensorType> results; ///< one per output of the node
  std::shared_ptr<graph::Graph> body;     ///< null: it has no other form
};

/// Failure: unsupported where nobody claims it, with what each one said; what else is wrong with
/// it.
using ClaimOp = std::function<Result<CustomOp>(const CustomNode&)>;

} // namespace candela::import
