#include "core/compiler/differentiate/term.h"

#include <algorithm>
#include <numeric>

#include "core/support/float_bits.h"

namespace candela::differentiate {

std::vector<Term> makeAll(OpKind kind, const std::vector<Term>& operands, Attrs attrs, int count) {
  Writer& writer = operands.front().writer();
  std::vector<Value*> values;
  values.reserve(operands.size());
  for (const Term& operand : operands) values.push_back(operand.value());
  const Node* node = need(writer.graph.addNode(kind, std::move(values), std::move(attrs),
                                               writer.provenance, nullptr, count));
  std::vector<Term> results;
  for (Value* result : node->results()) results.emplace_back(writer, result);
  return results;
}

Term make(OpKind kind, const std::vector<Term>& operands, Attrs attrs) {
  return makeAll(kind, operands, std::move(attrs), 1).front();
}

Term Term::cast(Elem to) const {
  return elem() == to ? *this : make(OpKind::Cast, {*this}, {{"to", to}});
}

Term Term::reshape(const Shape& shape) const {
  return this->shape() == shape ? *this : make(OpKind::Reshape, {*this}, {{"shape", shape}});
}

Term Term::expand(const Shape& shape) const {
  return this->shape() == shape ? *this : make(OpKind::Expand, {*this}, {{"shape", shape}});
}

Term Term::transpose(const std::vector<int64_t>& perm) const {
  if (std::ranges::is_sorted(perm)) return *this;
  return make(OpKind::Transpose, {*this}, {{"perm", perm}});
}

Term Term::transposed() const {
  std::vector<int64_t> perm = range(0, rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(perm);
}

Term Term::slice(int64_t axis, int64_t first, int64_t count, int64_t step) const {
  if (axis < 0) axis += rank();
  if (first == 0 && count == dim(axis) && step == 1) return *this;
  std::vector<int64_t> starts(shape().size(), 0), counts = shape(), steps(shape().size(), 1);
  starts[axis] = first;
  counts[axis] = count;
  steps[axis] = step;
  return make(OpKind::Slice, {*this}, {{"starts", starts}, {"counts", counts}, {"steps", steps}});
}

Term Term::pad(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi) const {
  const auto isZero = [](int64_t width) { return width == 0; };
  if (std::ranges::all_of(lo, isZero) && std::ranges::all_of(hi, isZero)) return *this;
  return make(OpKind::Pad, {*this, number(0)},
              {{"lo", lo}, {"hi", hi}, {"mode", std::string("constant")}});
}

Term Term::sumTo(const Shape& shape) const {
  const Shape from = this->shape();
  if (from == shape) return *this;
  const size_t added = from.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t d = 0; d < from.size(); ++d)
    if (d < added || (shape[d - added] == 1 && from[d] != 1))
      axes.push_back(static_cast<int64_t>(d));
  return (axes.empty() ? *this : sum(*this, axes)).reshape(shape);
}

Term Term::number(double value) const { return full(*writer_, value, {}, elem()); }

Term indicator(const Term& condition, Elem elem) {
  Writer& writer = condition.writer();
  return select(condition, full(writer, 1, {}, elem), full(writer, 0, {}, elem));
}

Term reduce(OpKind kind, const Term& x, const std::vector<int64_t>& axes, bool keep) {
  return make(kind, {x}, {{"axes", axes}, {"keepdims", int64_t(keep)}});
}

Term sumOfAll(const Term& x) { return sum(x.reshape({x.count()}), {0}, false); }

Term putAdd(const Term& x, const Term& index, const Term& updates) {
  return make(OpKind::Put, {x, index, updates}, {{"fn", std::string("add")}});
}

Term takeFlat(const Term& x, const Term& index) {
  return make(OpKind::Take, {x.reshape({1, x.count(), 1}), index.reshape({index.count()})},
              {{"mode", std::string("clamp")}})
      .reshape(index.shape());
}

Term zerosLike(const Term& x) { return full(x.writer(), 0, x.shape(), x.elem()); }

Term full(Writer& writer, double value, const Shape& shape, Elem elem) {
  const uint64_t bits = isFloat(elem)
                            ? fromReal(elem, value)
                            : static_cast<uint64_t>(static_cast<int64_t>(value)) & elemMask(elem);
  const int64_t count = elementCount(shape).value_or(0);
  return {writer, writer.graph.addConstant(Payload::splat(elem, count, bits),
                                           graph::TensorType(elem, shape), writer.provenance)};
}

Term constant(Writer& writer, const std::vector<int64_t>& values, const Shape& shape, Elem elem) {
  Tensor tensor = need(Tensor::zeros(elem, shape));
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(elem, tensor.bytes.mutableData(), static_cast<int64_t>(i),
                 static_cast<uint64_t>(values[i]) & elemMask(elem));
  return {writer, writer.graph.addConstant(std::move(tensor), writer.provenance)};
}

Term constant(Writer& writer, const std::vector<double>& values, const Shape& shape, Elem elem) {
  Tensor tensor = need(Tensor::zeros(elem, shape));
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(elem, tensor.bytes.mutableData(), static_cast<int64_t>(i),
                 fromReal(elem, values[i]));
  return {writer, writer.graph.addConstant(std::move(tensor), writer.provenance)};
}

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> values(static_cast<size_t>(std::max<int64_t>(0, last - first)));
  std::iota(values.begin(), values.end(), first);
  return values;
}

} // namespace candela::differentiate
