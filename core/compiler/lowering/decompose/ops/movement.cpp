#include <algorithm>
#include <limits>

#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

Result<Values> lowerTranspose(Lowering& l, const Node& node) {
  return Values{l.transpose(node.operand(0), node.intsAttr("perm"))};
}

Result<Values> lowerExpand(Lowering& l, const Node& node) {
  return Values{l.broadcast(node.operand(0), node.result()->type.shape())};
}

Result<Values> lowerSlice(Lowering& l, const Node& node) {
  const std::vector<int64_t> starts = node.intsAttr("starts"), steps = node.intsAttr("steps");
  std::vector<int64_t> strides = denseStrides(node.operand(0)->type.shape());
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += starts[d] * strides[d];
    strides[d] *= steps[d];
  }
  return Values{l.affine(node.operand(0), offset, node.result()->type.shape(), strides)};
}

// Dims of their own, so that blocks of a layout stay in one piece; where ranks leave no room for
// blocks, one dim before the axis and one after it.
Result<Values> lowerConcat(Lowering& l, const Node& node) {
  const Shape dims = node.result()->type.shape();
  const int axis = graph::wrapAxis(node.intAttr("axis"), node.result()->type.rank());
  Shape form = dims.size() < CDL_MAX_RANK ? dims : capabilities::aroundAxis(dims, axis);
  const size_t along = form.size() == dims.size() ? static_cast<size_t>(axis) : 1;
  std::vector<Value> pieces;
  std::vector<int64_t> offsets, at(form.size());
  for (Value operand : node.operands()) {
    form[along] = operand->type.dim(axis);
    if (form[along] == 0) continue;
    pieces.push_back(l.reshape(operand, form));
    offsets.insert(offsets.end(), at.begin(), at.end());
    at[along] += form[along];
  }
  if (pieces.size() == 1) return Values{l.reshape(pieces[0], dims)};
  form[along] = at[along];
  return Values{l.reshape(l.place(pieces, form, offsets, {}, 0, false), dims)};
}

namespace {

// x without what negative widths cut off; the widths become >= 0.
Value crop(Lowering& l, Value x, std::vector<int64_t>& lo, std::vector<int64_t>& hi) {
  Shape dims = x->type.shape();
  const std::vector<int64_t> strides = denseStrides(dims);
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    // What is cut beyond the element itself comes out of the other border.
    const int64_t cutLo = std::clamp<int64_t>(-lo[d], 0, dims[d]),
                  cutHi = std::clamp<int64_t>(-hi[d], 0, dims[d] - cutLo);
    offset += cutLo * strides[d];
    dims[d] -= cutLo + cutHi;
    lo[d] += cutLo;
    hi[d] += cutHi;
    if (lo[d] < 0) hi[d] += std::exchange(lo[d], 0);
    if (hi[d] < 0) lo[d] += std::exchange(hi[d], 0);
  }
  return l.affine(x, *elementCount(dims) == 0 ? 0 : offset, dims, strides);
}

// Which element of 0..extent-1 stands at position i of a padded dim, i counted from the first
// element of x.
int64_t mirrored(const std::string& mode, int64_t i, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, extent - 1);
  const int64_t period = mode == "wrap" ? extent : std::max<int64_t>(1, 2 * (extent - 1));
  const int64_t at = ((i % period) + period) % period;
  return at < extent ? at : period - at;
}

Value padByIndex(Lowering& l, Value x, const std::vector<int64_t>& lo,
                 const std::vector<int64_t>& hi, const std::string& mode) {
  for (size_t axis = 0; axis < lo.size(); ++axis) {
    if (lo[axis] == 0 && hi[axis] == 0) continue;
    Shape dims = x->type.shape();
    if (const int64_t wanted = lo[axis] + dims[axis] + hi[axis]; wanted > kMostTabled)
      throw Lowering::Failure{failure(Code::unsupported,
                                      "mode {} of dim {} becomes {} elements, at most {}", mode,
                                      axis, wanted, kMostTabled)};
    std::vector<int32_t> index;
    for (int64_t i = -lo[axis]; i < dims[axis] + hi[axis]; ++i)
      index.push_back(static_cast<int32_t>(mirrored(mode, i, dims[axis])));
    const int64_t count = static_cast<int64_t>(index.size());
    Value taken = l.take(l.reshape(x, capabilities::aroundAxis(dims, axis)),
                         indexConstant(l, index, {count}));
    dims[axis] = count;
    x = l.reshape(taken, dims);
  }
  return x;
}

} // namespace

Result<Values> lowerPad(Lowering& l, const Node& node) {
  const std::string mode = node.stringAttr("mode");
  std::vector<int64_t> lo = node.intsAttr("lo"), hi = node.intsAttr("hi");
  Value value = node.operand(1);
  if (mode != "constant") return Values{padByIndex(l, node.operand(0), lo, hi, mode)};
  Value x = crop(l, node.operand(0), lo, hi);
  if (!value) return Values{l.pad(x, lo, hi, 0)};
  if (value->isConstant()) {
    CDL_ASSIGN(const Tensor tensor, value->tensor());
    return Values{l.pad(x, lo, hi, loadElement(tensor.elem, tensor.bytes.data(), 0))};
  }
  // A border that is known at run time only: a mask says where x stands.
  Value mask = l.pad(l.splat(Elem::bool_, x->type.shape(), 1), lo, hi, 0);
  return Values{l.select(mask, l.pad(x, lo, hi, 0), value)};
}

namespace {

// Where an index points to: negative ones count from the end, those still outside are clamped.
int32_t placeOf(int64_t index, int64_t extent) {
  if (index < 0) index = index < -extent ? 0 : index + extent;
  return static_cast<int32_t>(std::min(index, std::max<int64_t>(extent - 1, 0)));
}

} // namespace

Result<Values> lowerGather(Lowering& l, const Node& node) {
  Value x = node.operand(0), index = node.operand(1);
  const Shape dims = x->type.shape();
  const int axis = graph::wrapAxis(node.intAttr("axis"), x->type.rank());
  const int64_t extent = dims[axis], count = index->type.count();
  if (extent > std::numeric_limits<int32_t>::max())
    return failure(Code::unsupported, "gather '{}': dim of {} does not fit an i32 index",
                   node.userName(), extent);
  if (index->isConstant()) {
    CDL_ASSIGN(const Tensor tensor, index->tensor());
    std::vector<int32_t> known;
    for (int64_t i : tensor.toInts()) known.push_back(placeOf(i, extent));
    index = indexConstant(l, known, {count});
  } else {
    // What i32 does not hold is outside, and becomes the end that is nearest.
    if (index->type.elem != Elem::i32_)
      index = l.node(OpKind::Cast, {index}, {{"to", Elem::i32_}, {"saturate", int64_t(1)}});
    index = l.reshape(index, {count});
    Value fromEnd = l.add(index, l.scalar(Elem::i32_, static_cast<double>(extent)));
    index = l.select(l.less(index, l.scalar(Elem::i32_, 0)), fromEnd, index);
  }
  return Values{l.reshape(l.take(l.reshape(x, capabilities::aroundAxis(dims, axis)), index),
                          node.result()->type.shape())};
}

} // namespace candela::lowering::decompose
