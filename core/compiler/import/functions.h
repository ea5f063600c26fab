#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "core/compiler/import/import_diagnostics.h"
#include "core/compiler/import/node_context.h"
#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

inline constexpr int kMaxDepth = 64;
inline constexpr int64_t kMaxNodes = 1000000;

inline std::string functionName(const onnx_io::Function& function) {
  return fmt::format("{}{}{}", qualified(function.domain, function.name),
                     function.overload.empty() ? "" : ":", function.overload);
}

/// The model's own functions, by (domain, name, overload).
class Functions {
public:
  /// Reports functions that are defined twice, call themselves, nest deeper than 64 or
  /// would inline to more than a million nodes. After such a report nothing must be inlined.
  Functions(const onnx_io::Model& model, ImportDiagnostics& diagnostics) {
    for (const onnx_io::Function& function : model.functions)
      if (!byKey_.emplace(Key(function.domain, function.name, function.overload), &function).second)
        diagnostics.add(badModel("function '{}' is defined twice", functionName(function)));
    std::vector<const onnx_io::Function*> stack;
    Size size;
    if (!byKey_.empty()) diagnostics.add(measure(model.graph.nodes, stack, size));
  }

  const onnx_io::Function* find(const onnx_io::Node& node) const {
    const auto found = byKey_.find(Key(node.domain, node.opType, node.overload));
    return found == byKey_.end() ? nullptr : found->second;
  }

private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Size {
    int64_t nodes = 0;
    int depth = 0;
  };
  /// Of the nodes with everything that they call; saturates. Failures name the chain of calls.
  Status measure(const std::vector<onnx_io::Node>& nodes,
                 std::vector<const onnx_io::Function*>& stack, Size& size) {
    for (const onnx_io::Node& node : nodes) {
      Size inner;
      for (const auto& [name, attribute] : node.attributes)
        if (const auto* graph = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute);
            graph && *graph)
          CDL_TRY(measure((*graph)->nodes, stack, size));
      if (const onnx_io::Function* function = find(node)) {
        if (const auto repeat = std::find(stack.begin(), stack.end(), function);
            repeat != stack.end()) {
          std::string chain;
          for (auto it = repeat; it != stack.end(); ++it) chain += functionName(**it) + " -> ";
          return badModel("function '{0}' calls itself: {1}{0}", functionName(*function), chain);
        }
        if (static_cast<int>(stack.size()) >= kMaxDepth)
          return badModel("function '{}' is nested deeper than {}", functionName(*function),
                          kMaxDepth);
        if (const auto known = sizes_.find(function); known != sizes_.end()) {
          inner = known->second;
        } else {
          stack.push_back(function);
          CDL_TRY(measure(function->nodes, stack, inner));
          stack.pop_back();
          sizes_[function] = inner;
        }
        ++inner.depth;
        if (static_cast<int>(stack.size()) + inner.depth > kMaxDepth)
          return badModel("function '{}' is nested deeper than {}", functionName(*function),
                          kMaxDepth);
      }
      size.nodes += 1 + inner.nodes;
      size.depth = std::max(size.depth, inner.depth);
      if (size.nodes > kMaxNodes)
        return badModel("the functions inline to more than {} nodes", kMaxNodes);
    }
    return Status::ok();
  }

  std::map<Key, const onnx_io::Function*> byKey_;
  std::map<const onnx_io::Function*, Size> sizes_;
};

} // namespace candela::import
