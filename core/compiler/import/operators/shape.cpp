#include <algorithm>
#include <cstring>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

template <typename T> Tensor line(Elem elem, const std::vector<T>& values) {
  return Tensor::of<T>(elem, {static_cast<int64_t>(values.size())}, values);
}

Status importShape(NodeContext& context) {
  const Term x = termOf(context, 0);
  const Shape shape = x.shape();
  const auto bound = [&](const char* name, int64_t fallback) {
    const int64_t given = context.opset < 15 ? fallback : attrOf<int64_t>(context, name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + x.rank() : given, 0, x.rank());
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", x.rank()));
  return context.set(context.build.constant(
      line<int64_t>(Elem::i64_, {shape.begin() + start, shape.begin() + end})));
}

Status importSize(NodeContext& context) {
  return context.set(context.build.constant(Tensor::scalarI64(context.input(0)->type.count())));
}

Status importConstant(NodeContext& context) {
  std::vector<Tensor> values;
  const auto add = [&](const auto& given, auto toTensor) {
    if (given) values.push_back(toTensor(*given));
  };
  add(need(context.maybe<Tensor>("value")), [](const Tensor& x) { return x; });
  add(need(context.maybe<float>("value_float")),
      [](float x) { return Tensor::of<float>(Elem::f32_, {}, {x}); });
  add(need(context.maybe<int64_t>("value_int")), Tensor::scalarI64);
  add(need(context.maybe<std::vector<float>>("value_floats")),
      [](const auto& x) { return line(Elem::f32_, x); });
  add(need(context.maybe<std::vector<int64_t>>("value_ints")),
      [](const auto& x) { return line(Elem::i64_, x); });
  for (const char* name : {"value_string", "value_strings", "sparse_value"})
    if (context.has(name))
      return failure(Code::unsupported, "attribute '{}' gives no tensor of numbers", name);
  if (values.size() != 1) return badModel("has {} values, expected 1", values.size());
  return context.set(context.build.constant(std::move(values.front())));
}

Status importConstantOfShape(NodeContext& context) {
  CDL_ASSIGN(const Shape shape, context.neededInts("shape", 0, 9));
  CDL_ASSIGN(const auto value, context.maybe<Tensor>("value"));
  const auto count = elementCount(shape);
  if (!count) return badModel("impossible shape [{}]", fmt::join(shape, ","));
  Elem elem = Elem::f32_;
  uint64_t bits = 0;
  if (value) {
    if (value->count() != 1)
      return badModel("attribute 'value' has {} elements, expected 1", value->count());
    elem = value->elem;
    std::memcpy(&bits, value->bytes.data(), value->sizeBytes());
  }
  return context.set(context.build.constant(Payload::splat(elem, *count, bits), shape));
}

constexpr Operator kShapeOperators[] = {
    {"Constant", 0, 0, 1, importConstant},
    {"ConstantOfShape", 1, 1, 1, importConstantOfShape},
    {"Shape", 1, 1, 1, importShape},
    {"Size", 1, 1, 1, importSize},
};

} // namespace

std::span<const Operator> shapeOperators() { return kShapeOperators; }

} // namespace candela::import
