#include "core/graph/ops/common.h"

namespace candela::graph {

std::optional<std::vector<Dim>> broadcastDims(const Node& node, size_t first, size_t last) {
  std::vector<Dim> out;
  for (size_t i = first; i <= last; ++i) {
    const std::vector<Dim>& dims = typeOf(node, i).dims;
    if (dims.size() > out.size()) out.insert(out.begin(), dims.size() - out.size(), Dim(1));
    const size_t lead = out.size() - dims.size();
    for (size_t d = 0; d < dims.size(); ++d) {
      Dim& dim = out[lead + d];
      if (dim.bound == dims[d].bound) {
        dim.exact = dim.exact && dims[d].exact;
      } else if (dim.bound == 1) {
        dim = dims[d];
      } else if (dims[d].bound != 1) {
        return std::nullopt;
      }
    }
  }
  return out;
}

namespace {

Result<Types> like(const Node& node) { return Types{likeOperand(node, 0)}; }

Result<Types> binary(const Node& node, std::string_view constraint, Elem elem = Elem::none) {
  const auto dims = broadcastDims(node, 0, 1);
  if (!dims) return node.fail(constraint, shapeText(typeOf(node, 0).shape()), shapeText(typeOf(node, 1).shape()));
  TensorType type;
  type.elem = elem == Elem::none ? typeOf(node, 0).elem : elem;
  type.dims = *dims;
  return Types{type};
}

} // namespace

Result<Types> inferAdd(const Node& node) { return binary(node, "add_c1"); }
Result<Types> inferSub(const Node& node) { return binary(node, "sub_c1"); }
Result<Types> inferMul(const Node& node) { return binary(node, "mul_c1"); }
Result<Types> inferDiv(const Node& node) { return binary(node, "div_c1"); }
Result<Types> inferMin(const Node& node) { return binary(node, "min_c1"); }
Result<Types> inferMax(const Node& node) { return binary(node, "max_c1"); }
Result<Types> inferEqual(const Node& node) { return binary(node, "equal_c1", Elem::bool_); }
Result<Types> inferLess(const Node& node) { return binary(node, "less_c1", Elem::bool_); }

Result<Types> inferSelect(const Node& node) {
  const auto dims = broadcastDims(node, 0, 2);
  if (!dims)
    return node.fail("select_c1", shapeText(typeOf(node, 0).shape()), shapeText(typeOf(node, 1).shape()),
                     shapeText(typeOf(node, 2).shape()));
  TensorType type;
  type.elem = typeOf(node, 1).elem;
  type.dims = *dims;
  return Types{type};
}

Result<Types> inferNeg(const Node& node) { return like(node); }
Result<Types> inferAbs(const Node& node) { return like(node); }
Result<Types> inferFloor(const Node& node) { return like(node); }
Result<Types> inferCeil(const Node& node) { return like(node); }
Result<Types> inferSqrt(const Node& node) { return like(node); }
Result<Types> inferReciprocal(const Node& node) { return like(node); }
Result<Types> inferExp(const Node& node) { return like(node); }
Result<Types> inferLog(const Node& node) { return like(node); }
Result<Types> inferTanh(const Node& node) { return like(node); }
Result<Types> inferSigmoid(const Node& node) { return like(node); }
Result<Types> inferErf(const Node& node) { return like(node); }
Result<Types> inferRelu(const Node& node) { return like(node); }

Result<Types> inferClip(const Node& node) {
  for (const size_t i : {1, 2})
    if (node.operand(i) && typeOf(node, i).rank() != 0)
      return node.fail("clip_c1", node.info().operands[i].name, shapeText(typeOf(node, i).shape()));
  return like(node);
}

Result<Types> inferCast(const Node& node) {
  TensorType type = likeOperand(node, 0);
  type.elem = node.elemAttr("to");
  return Types{type};
}

} // namespace candela::graph
