#include "core/compiler/graph/loop.h"

#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

namespace {

bool sameType(const TensorType& a, const TensorType& b) {
  return a.elem == b.elem && a.dims == b.dims;
}

/// The type of one slice along dim 0.
TensorType sliceOf(const TensorType& type) {
  return oneResult(type.elem, {type.dims.begin() + 1, type.dims.end()})[0];
}

} // namespace

Result<Types> inferLoop(const Node& node) {
  if (!node.body) return badModel("{} '{}': it has no body", opName(node.kind), node.userName());
  const LoopForm form = loopForm(node);
  const auto& operands = node.operands();
  const auto& inputs = node.body->inputs();
  const auto& outputs = node.body->outputs();
  if (form.carried > operands.size() || form.scanned > operands.size() - form.carried)
    return node.fail("loop_c1", form.carried, form.scanned, operands.size());
  if (inputs.size() != operands.size()) return node.fail("loop_c3", inputs.size(), operands.size());
  const size_t fewest = std::max<size_t>(form.carried, 1);
  if (outputs.size() < fewest) return node.fail("loop_c4", outputs.size(), fewest);
  const size_t flags = form.scanned + outputs.size() - form.carried;
  if (!form.backward.empty() && form.backward.size() != flags)
    return node.fail("loop_c2", form.backward.size(), flags);
  if (const int depth = nestingDepth(node); depth > kMaxNesting)
    return node.fail("loop_c8", depth, kMaxNesting);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i])
      return badModel("{} '{}': operand {} is missing", opName(node.kind), node.userName(), i);
    const TensorType& type = operands[i]->type;
    const bool isScanned = i >= form.carried && i - form.carried < form.scanned;
    if (isScanned && (type.rank() == 0 || type.dim(0) != form.trips))
      return node.fail("loop_c5", i, type.text(), form.trips);
    const TensorType expected = isScanned ? sliceOf(type) : likeOperand(node, i);
    if (!sameType(inputs[i]->type, expected))
      return node.fail("loop_c6", i, inputs[i]->type.text(), expected.text());
  }
  Types types;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = outputs[i]->type;
    if (i < form.carried) {
      types.push_back(likeOperand(node, i));
      if (!sameType(type, types[i])) return node.fail("loop_c7", i, type.text(), types[i].text());
      continue;
    }
    if (!node.info().results[0].accepts(type.elem))
      return node.fail("loop_c7", i, type.text(), "a type that can be moved");
    Shape dims = type.dims;
    dims.insert(dims.begin(), form.trips);
    types.push_back(oneResult(type.elem, std::move(dims))[0]);
  }
  return types;
}

} // namespace candela::graph
