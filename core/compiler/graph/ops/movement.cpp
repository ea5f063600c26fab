#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferReshape(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Shape shape = node.intsAttr("shape");
  CDL_ASSIGN(Types types, resultOf(node, x.elem, shape));
  if (types[0].count() != x.count())
    return node.fail("reshape_c1", shapeText(x.shape()), x.count(), shapeText(shape),
                     types[0].count());
  return types;
}

Result<Types> inferTranspose(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const std::vector<int64_t> perm = node.intsAttr("perm");
  std::vector<bool> seen(x.dims.size(), false);
  Shape dims;
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= x.rank() || seen[axis]) break;
    seen[axis] = true;
    dims.push_back(x.dims[axis]);
  }
  if (dims.size() != x.dims.size() || perm.size() != dims.size())
    return node.fail("transpose_c1", listText(perm), x.rank());
  return oneResult(x.elem, dims);
}

Result<Types> inferExpand(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Shape shape = node.intsAttr("shape");
  const auto expanded = broadcastShapes(x.shape(), shape);
  if (!expanded) return node.fail("expand_c1", shapeText(x.shape()), shapeText(shape));
  return resultOf(node, x.elem, *expanded);
}

Result<Types> inferConcat(const Node& node) {
  TensorType type = likeOperand(node, 0);
  const int axis = wrapAxis(node.intAttr("axis"), type.rank());
  const Shape first = type.shape();
  for (size_t i = 1; i < node.operands().size(); ++i) {
    const TensorType& x = typeOf(node, i);
    if (x.elem != type.elem)
      return node.fail("concat_c3", i, elemName(x.elem), elemName(type.elem));
    bool fits = x.rank() == type.rank();
    for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || x.dim(d) == type.dim(d);
    if (!fits) return node.fail("concat_c2", i, shapeText(x.shape()), shapeText(first), axis);
    int64_t& sum = type.dims[axis];
    // refused as an impossible shape
    if (__builtin_add_overflow(sum, x.dim(axis), &sum)) sum = INT64_MAX;
  }
  return Types{type};
}

Result<Types> inferSlice(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  for (const std::string_view name : {"starts", "counts", "steps"})
    if (node.intsAttr(name).size() != x.dims.size())
      return node.fail("slice_c1", name, node.intsAttr(name).size(), x.rank());
  const std::vector<int64_t> starts = node.intsAttr("starts"), counts = node.intsAttr("counts"),
                             steps = node.intsAttr("steps");
  for (int d = 0; d < x.rank(); ++d) {
    if (counts[d] == 0) continue;
    int64_t last = 0;
    const bool overflow = __builtin_mul_overflow(counts[d] - 1, steps[d], &last) ||
                          __builtin_add_overflow(last, starts[d], &last);
    const bool inside = starts[d] >= 0 && starts[d] < x.dim(d) && last >= 0 && last < x.dim(d);
    if (overflow || !inside)
      return node.fail("slice_c2", starts[d], overflow ? "beyond" : std::to_string(last), d,
                       x.dim(d));
  }
  return resultOf(node, x.elem, counts);
}

/// The widest border that the mode can fill from a dim itself.
static int64_t widestBorder(std::string_view mode, int64_t extent) {
  if (mode == "reflect") return extent - 1;
  if (mode == "wrap") return extent;
  return int64_t(1) << 48;
}

Result<Types> inferPad(const Node& node) {
  TensorType type = likeOperand(node, 0);
  for (const std::string_view name : {"lo", "hi"})
    if (node.intsAttr(name).size() != type.dims.size())
      return node.fail("pad_c1", name, node.intsAttr(name).size(), type.rank());
  const std::string mode = node.stringAttr("mode");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return node.fail("pad_c2", mode);
  if (node.operand(1) && typeOf(node, 1).rank() != 0)
    return node.fail("pad_c4", shapeText(typeOf(node, 1).shape()));
  const std::vector<int64_t> lo = node.intsAttr("lo"), hi = node.intsAttr("hi");
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t extent = type.dim(d);
    const int64_t most = widestBorder(mode, extent);
    const bool source = mode == "constant" || extent > 0 || (lo[d] <= 0 && hi[d] <= 0);
    int64_t sum = 0;
    const bool overflow =
        __builtin_add_overflow(extent, lo[d], &sum) || __builtin_add_overflow(sum, hi[d], &sum);
    if (overflow || sum < 0 || !source || std::max(lo[d], hi[d]) > std::max<int64_t>(most, 0))
      return node.fail("pad_c3", d, extent, lo[d], hi[d], mode);
    type.dims[d] = sum;
  }
  return Types{type};
}

Result<Types> inferGather(const Node& node) {
  const TensorType &x = typeOf(node, 0), &index = typeOf(node, 1);
  const int axis = wrapAxis(node.intAttr("axis"), x.rank());
  if (index.count() > 0 && x.dim(axis) == 0) return node.fail("gather_c2", axis, index.count());
  Shape dims = x.dims;
  const auto place = dims.erase(dims.begin() + axis);
  dims.insert(place, index.dims.begin(), index.dims.end());
  return oneResult(x.elem, dims);
}

} // namespace candela::graph
