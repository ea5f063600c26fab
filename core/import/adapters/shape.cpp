#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/import/step.h"
#include "core/reference/reference.h"

namespace candela::import {
namespace {

Value* intsConstant(Step& step, const std::vector<int64_t>& values) {
  return step.build.constant(Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(values.size())}, values));
}

Status importShape(Step& step) {
  CDL_TRY(needExact(step));
  const Shape shape = step.input(0)->type.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t bounds[2] = {0, rank};
  const char* const names[2] = {"start", "end"};
  for (int i = 0; i < 2 && step.opset >= 15; ++i) {
    CDL_ASSIGN(int64_t bound, step.attr<int64_t>(names[i], bounds[i]));
    if (bound < 0) bound += rank;
    bounds[i] = std::clamp<int64_t>(bound, 0, rank);
  }
  const int64_t end = std::max(bounds[0], bounds[1]);
  return step.set(intsConstant(step, {shape.begin() + bounds[0], shape.begin() + end}));
}

Status importSize(Step& step) {
  CDL_TRY(needExact(step));
  return step.set(step.build.constant(Tensor::scalarI64(step.input(0)->type.count())));
}

Status importConstant(Step& step) {
  std::vector<Tensor> values;
  CDL_ASSIGN(const auto tensor, step.maybe<Tensor>("value"));
  if (tensor) values.push_back(*tensor);
  CDL_ASSIGN(const auto real, step.maybe<float>("value_float"));
  if (real) values.push_back(Tensor::of<float>(Elem::f32_, {}, {static_cast<float>(*real)}));
  CDL_ASSIGN(const auto whole, step.maybe<int64_t>("value_int"));
  if (whole) values.push_back(Tensor::scalarI64(*whole));
  CDL_ASSIGN(const auto reals, step.maybe<std::vector<float>>("value_floats"));
  if (reals) values.push_back(Tensor::of<float>(Elem::f32_, {static_cast<int64_t>(reals->size())}, *reals));
  CDL_ASSIGN(const auto wholes, step.maybe<std::vector<int64_t>>("value_ints"));
  if (wholes) values.push_back(Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(wholes->size())}, *wholes));
  for (const char* name : {"value_string", "value_strings", "sparse_value"})
    if (step.has(name)) return failure(Code::unsupported, "attribute '{}' gives no tensor of numbers", name);
  if (values.size() != 1) return badModel("has {} values, expected 1", values.size());
  return step.set(step.build.constant(std::move(values.front())));
}

Status importConstantOfShape(Step& step) {
  CDL_ASSIGN(const Shape shape, step.neededInts("shape", 0, 9));
  CDL_ASSIGN(const auto value, step.maybe<Tensor>("value"));
  const auto count = elementCount(shape);
  if (!count) return badModel("impossible shape [{}]", fmt::join(shape, ","));
  Elem elem = Elem::f32_;
  uint64_t bits = 0;
  if (value) {
    if (value->count() != 1) return badModel("attribute 'value' has {} elements, expected 1", value->count());
    elem = value->elem;
    std::memcpy(&bits, value->bytes.data(), value->sizeBytes());
  }
  return step.set(step.build.constant(Payload::splat(elem, *count, bits), shape));
}

/// start + i * delta; the number of elements must be known at import, as every shape. Halves are computed in what
/// stash_type names.
Status importRange(Step& step) {
  const char* const names[3] = {"start", "limit", "delta"};
  const Elem elem = step.input(0)->type.elem;
  reference::Scalar given[3];
  for (int i = 0; i < 3; ++i) {
    const Value* value = step.input(i);
    if (value->type.elem != elem || value->type.count() != 1)
      return badModel("{} is {}, expected a scalar of {}", names[i], value->type.text(), elemName(elem));
    if (!value->isConstant())
      return failure(Code::unsupported, "{} ('{}') is not known when the model is imported", names[i],
                     step.node.inputs[i]);
    CDL_ASSIGN(const Tensor tensor, value->tensor());
    CDL_ASSIGN(const reference::Array array, reference::fromTensor(tensor));
    given[i] = array.at(0);
  }
  const auto& [start, limit, delta] = given;
  CDL_ASSIGN(const int64_t stash, step.opset < 27 ? Result<int64_t>(1) : step.attr<int64_t>("stash_type", 1));
  if (stash != 1 && stash != 11) return badModel("stash_type is {}, expected 1 or 11", stash);
  const bool isHalf = elem == Elem::f16_ || elem == Elem::bf16_;
  const Elem wide = !isHalf ? elem : stash == 1 ? Elem::f32_ : Elem::f64_;
  constexpr int64_t kMost = int64_t(1) << 40;
  if (isFloat(elem)) {
    const double count = std::ceil((limit.real - start.real) / delta.real);
    if (!(count <= static_cast<double>(kMost))) // not a number included
      return badModel("a range from {} to {} by {} has no end", start.real, limit.real, delta.real);
    const auto size = static_cast<int64_t>(std::max(count, 0.0));
    Value* index = step.build.constant(Payload::iota(Elem::i64_, size, 0, 1), {size});
    Value* ends[2] = {step.input(0), step.input(2)};
    for (Value*& end : ends) {
      CDL_ASSIGN(end, step.build.cast(end, wide));
      CDL_ASSIGN(end, step.build.reshape(end, {}));
    }
    const auto scaled = step.build.add(OpKind::Mul, {step.build.cast(index, wide), ends[1]});
    CDL_ASSIGN(Value * sum, step.build.add(OpKind::Add, {scaled, ends[0]}));
    return step.set(step.build.cast(sum, elem));
  }
  if (delta.whole == 0) return badModel("a range with delta 0 has no end");
  const __int128 span = (limit.whole - start.whole) * (delta.whole < 0 ? -1 : 1);
  const __int128 stride = delta.whole < 0 ? -delta.whole : delta.whole;
  const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > kMost) return badModel("a range of more than {} elements", kMost);
  const auto size = static_cast<int64_t>(count), first = static_cast<int64_t>(start.whole);
  return step.set(step.build.constant(Payload::iota(elem, size, first, static_cast<int64_t>(delta.whole)), {size}));
}

constexpr Operator kOperators[] = {
    {"Constant", 0, 0, 1, importConstant}, {"ConstantOfShape", 1, 1, 1, importConstantOfShape},
    {"Range", 3, 3, 1, importRange},       {"Shape", 1, 1, 1, importShape},
    {"Size", 1, 1, 1, importSize},
};

} // namespace

std::span<const Operator> shapeOperators() { return kOperators; }

} // namespace candela::import
