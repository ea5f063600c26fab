#include "core/import/functions.h"

#include <algorithm>

namespace candela::import {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxNodes = 1000000;

std::string functionName(const onnx_io::Function& function) {
  return fmt::format("{}{}{}{}{}", function.domain, function.domain.empty() ? "" : ".", function.name,
                     function.overload.empty() ? "" : ":", function.overload);
}

} // namespace

Functions::Functions(const onnx_io::Model& model, Complaints& complaints) {
  for (const onnx_io::Function& function : model.functions)
    if (!byKey_.emplace(Key(function.domain, function.name, function.overload), &function).second)
      complaints.add(badModel("function '{}' is defined twice", functionName(function)));
  std::vector<const onnx_io::Function*> stack;
  Size size;
  complaints.add(measure(model.graph.nodes, stack, size));
}

const onnx_io::Function* Functions::find(const onnx_io::Node& node) const {
  const auto found = byKey_.find(Key(node.domain, node.opType, node.overload));
  return found == byKey_.end() ? nullptr : found->second;
}

Status Functions::measure(const std::vector<onnx_io::Node>& nodes, std::vector<const onnx_io::Function*>& stack,
                          Size& size) {
  for (const onnx_io::Node& node : nodes) {
    const onnx_io::Function* function = byKey_.empty() ? nullptr : find(node);
    Size inner;
    if (function) {
      if (const auto repeat = std::find(stack.begin(), stack.end(), function); repeat != stack.end()) {
        std::string chain;
        for (auto it = repeat; it != stack.end(); ++it) chain += functionName(**it) + " -> ";
        return badModel("function '{0}' calls itself: {1}{0}", functionName(*function), chain);
      }
      if (static_cast<int>(stack.size()) >= kMaxDepth)
        return badModel("function '{}' is nested deeper than {}", functionName(*function), kMaxDepth);
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
        return badModel("function '{}' is nested deeper than {}", functionName(*function), kMaxDepth);
    }
    size.nodes += 1 + inner.nodes;
    size.depth = std::max(size.depth, inner.depth);
    if (size.nodes > kMaxNodes && !byKey_.empty())
      return badModel("the functions inline to more than {} nodes", kMaxNodes);
  }
  return Status::ok();
}

onnx_io::Node bindAttributes(const onnx_io::Node& node, const onnx_io::Function& function, const onnx_io::Node& call) {
  onnx_io::Node bound = node;
  bound.attributeRefs.clear();
  for (const auto& [name, reference] : node.attributeRefs) {
    const auto given = call.attributes.find(reference);
    const auto fallback = function.attributeDefaults.find(reference);
    if (given != call.attributes.end())
      bound.attributes.emplace(name, given->second);
    else if (fallback != function.attributeDefaults.end())
      bound.attributes.emplace(name, fallback->second);
  }
  return bound;
}

} // namespace candela::import
