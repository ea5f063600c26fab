#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/import/term.h"
#include "core/reference/reference.h"

namespace candela::import {
namespace {

template <typename T> Tensor line(Elem elem, const std::vector<T>& values) {
  return Tensor::of<T>(elem, {static_cast<int64_t>(values.size())}, values);
}

Status importShape(Step& step) {
  need(needExact(step));
  const Term x = termOf(step, 0);
  const Shape shape = x.shape();
  const auto bound = [&](const char* name, int64_t fallback) {
    const int64_t given = step.opset < 15 ? fallback : attrOf<int64_t>(step, name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + x.rank() : given, 0, x.rank());
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", x.rank()));
  return step.set(step.build.constant(line<int64_t>(Elem::i64_, {shape.begin() + start, shape.begin() + end})));
}

Status importSize(Step& step) {
  CDL_TRY(needExact(step));
  return step.set(step.build.constant(Tensor::scalarI64(step.input(0)->type.count())));
}

Status importConstant(Step& step) {
  std::vector<Tensor> values;
  const auto add = [&](const auto& given, auto toTensor) {
    if (given) values.push_back(toTensor(*given));
  };
  add(need(step.maybe<Tensor>("value")), [](const Tensor& x) { return x; });
  add(need(step.maybe<float>("value_float")), [](float x) { return Tensor::of<float>(Elem::f32_, {}, {x}); });
  add(need(step.maybe<int64_t>("value_int")), Tensor::scalarI64);
  add(need(step.maybe<std::vector<float>>("value_floats")), [](const auto& x) { return line(Elem::f32_, x); });
  add(need(step.maybe<std::vector<int64_t>>("value_ints")), [](const auto& x) { return line(Elem::i64_, x); });
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
    CDL_TRY(step.needConstant(i, names[i]));
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
    const Term first = termOf(step, 0).reshape({}).cast(wide), each = termOf(step, 2).reshape({}).cast(wide);
    return step.set((iota(step.build, size).cast(wide) * each + first).cast(elem));
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
