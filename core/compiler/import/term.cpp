#include "core/compiler/import/term.h"

#include <algorithm>

namespace candela::import {

Term make(OpKind kind, const std::vector<Term>& operands, Attrs attrs) {
  Builder& build = operands.front().build();
  return {build, build.add(kind, {operands.begin(), operands.end()}, std::move(attrs))};
}

Term Term::transpose(const std::vector<int64_t>& perm) const {
  if (std::is_sorted(perm.begin(), perm.end())) return *this;
  return make(OpKind::Transpose, {*this}, {{"perm", perm}});
}

Term Term::slice(int64_t axis, int64_t first, int64_t count, int64_t step) const {
  axis = need(resolveAxis(axis, rank()));
  if (first == 0 && count == dim(axis) && step == 1) return *this;
  std::vector<int64_t> starts(shape().size(), 0), counts = shape(), steps(shape().size(), 1);
  starts[axis] = first;
  counts[axis] = count;
  steps[axis] = step;
  return make(OpKind::Slice, {*this}, {{"starts", starts}, {"counts", counts}, {"steps", steps}});
}

Term Term::squeeze(int64_t axis) const {
  Shape to = shape();
  to.erase(to.begin() + need(resolveAxis(axis, rank())));
  return reshape(to);
}

Term Term::unsqueeze(int64_t axis) const {
  Shape to = shape();
  to.insert(to.begin() + need(resolveAxis(axis, rank() + 1)), 1);
  return reshape(to);
}

Term Term::pad(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi, double value) const {
  const auto isZero = [](int64_t width) { return width == 0; };
  if (std::all_of(lo.begin(), lo.end(), isZero) && std::all_of(hi.begin(), hi.end(), isZero))
    return *this;
  return make(OpKind::Pad, {*this, number(value)},
              {{"lo", lo}, {"hi", hi}, {"mode", std::string("constant")}});
}

Term reduce(OpKind kind, const Term& x, const std::vector<int64_t>& axes, bool keep) {
  return make(kind, {x}, {{"axes", axes}, {"keepdims", int64_t(keep)}});
}

/// x - max - log(sum(exp(x - max))): the logarithm of a softmax would lose small probabilities.
Term logSoftmax(const Term& x, int64_t axis) {
  const Term wide = widened(x), shifted = wide - reduce(OpKind::ReduceMax, wide, {axis});
  return (shifted - log(reduce(OpKind::ReduceSum, exp(shifted), {axis}))).cast(x.elem());
}

Term takeFlat(const Term& x, const Term& index) {
  const Term line = x.reshape({1, x.count(), 1});
  return make(OpKind::Take, {line, index.reshape({index.count()})},
              {{"mode", std::string("clamp")}})
      .reshape(index.shape());
}

Term constant(Builder& build, const std::vector<int64_t>& values, const Shape& shape, Elem elem) {
  return Term(build, build.constant(Tensor::of<int64_t>(Elem::i64_, shape, values))).cast(elem);
}

Term constant(Builder& build, const std::vector<double>& values, const Shape& shape, Elem elem) {
  if (elem == Elem::f32_) // whatever its size: rounded here, not at run time
    return {build, build.constant(Tensor::of<float>(elem, shape, {values.begin(), values.end()}))};
  return Term(build, build.constant(Tensor::of<double>(Elem::f64_, shape, values))).cast(elem);
}

Term full(Builder& build, double value, const Shape& shape, Elem elem) {
  return Term(build, build.scalar(value, elem)).expand(shape);
}

Term iota(Builder& build, int64_t count, Elem elem) {
  return Term(build, build.constant(Payload::iota(elem, count, 0, 1), {count}));
}

std::vector<int64_t> perDim(NodeContext& context, const char* name, size_t count, int64_t fallback,
                            int64_t least) {
  const auto values = attrOf(context, name, std::vector<int64_t>(count, fallback));
  if (values.size() != count)
    need(badModel("attribute '{}' has {} values, expected {}", name, values.size(), count));
  constexpr int64_t kMostInt32 = (int64_t(1) << 31) - 1;
  for (int64_t value : values)
    if (value < least || value > kMostInt32)
      need(badModel("attribute '{}' has value {}, expected {} to {}", name, value, least,
                    kMostInt32));
  return values;
}

} // namespace candela::import
