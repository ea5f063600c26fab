#pragma once

#include "core/graph/graph.h"

namespace candela::graph {

using Types = std::vector<TensorType>;

/// The type of operand i, which is there.
inline const TensorType& typeOf(const Node& node, size_t i) { return node.operand(i)->type; }

/// What an op with one result gives: neither quantized nor laid out.
inline Types oneResult(Elem elem, std::vector<Dim> dims) {
  TensorType type;
  type.elem = elem;
  type.dims = std::move(dims);
  return {std::move(type)};
}

/// The element type and dims of operand i, without its quantization and layout.
inline TensorType likeOperand(const Node& node, size_t i) {
  return oneResult(typeOf(node, i).elem, typeOf(node, i).dims).front();
}

/// The operands broadcast together; nullopt when they do not. A dim is exact when all that decide it are.
std::optional<std::vector<Dim>> broadcastDims(const Node& node);

/// Of all operands, for messages.
inline std::vector<std::string> operandShapes(const Node& node) {
  std::vector<std::string> shapes;
  for (const Value* operand : node.operands()) shapes.push_back(shapeText(operand->type.shape()));
  return shapes;
}

/// The type of this shape, after checking that it is one.
inline Result<Types> resultOf(const Node& node, Elem elem, const Shape& shape) {
  if (!elementCount(shape))
    return badModel("{} '{}': impossible shape {}", opName(node.kind), node.userName(), shapeText(shape));
  return Types{TensorType(elem, shape)};
}

/// "[0,1,2]", for attribute lists in messages.
inline std::string listText(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

} // namespace candela::graph
