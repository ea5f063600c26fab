#pragma once

#include "core/compiler/graph/graph.h"

namespace candela::graph {

using Types = std::vector<TensorType>;

/// The type of operand i, which is there.
inline const TensorType& typeOf(const Node& node, size_t i) { return node.operand(i)->type; }

/// What an op with one result gives, without a layout.
inline Types oneResult(Elem elem, Shape dims) { return {TensorType(elem, std::move(dims))}; }

/// The element type and dims of operand i, without its layout.
inline TensorType likeOperand(const Node& node, size_t i) {
  return {typeOf(node, i).elem, typeOf(node, i).dims};
}

/// What the operands broadcast to together; nullopt when they do not.
std::optional<Shape> broadcastShapes(const Node& node);

/// Of all operands, for messages.
inline std::vector<std::string> operandShapes(const Node& node) {
  std::vector<std::string> shapes;
  for (const Value* operand : node.operands()) shapes.push_back(shapeText(operand->type.shape()));
  return shapes;
}

/// The type of this shape, after checking that it is one.
inline Result<Types> resultOf(const Node& node, Elem elem, const Shape& shape) {
  if (!elementCount(shape))
    return badModel("{} '{}': impossible shape {}", opName(node.kind), node.userName(),
                    shapeText(shape));
  return Types{TensorType(elem, shape)};
}

/// "[0,1,2]", for attribute lists in messages.
inline std::string listText(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

} // namespace candela::graph
