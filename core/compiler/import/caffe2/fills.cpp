// The operators of init nets. Those that draw numbers begin a training, and are refused.
#include <net.pb.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/compiler/import/caffe2/arguments.h"
#include "core/compiler/import/caffe2/nets.h"

namespace candela::import::caffe2 {
namespace {

/// Elements of a fill of one number, which a few bytes of a file ask for.
constexpr int64_t kMostFilled = int64_t(1) << 26;

/// The shape that `values` fill. Throws where they do not.
Shape shapeOf(const Arguments& arguments, size_t values) {
  Shape dims = arguments.ints("shape");
  if (!arguments.has("shape")) dims = {static_cast<int64_t>(values)};
  const std::optional<int64_t> count = elementCount(dims);
  if (!count || *count != static_cast<int64_t>(values))
    reject("{} values for the shape {}", values, shapeText(dims));
  return dims;
}

/// Integers as elements of a type. Throws where one is none of it.
Tensor integers(Elem elem, Shape dims, const Ints& values) {
  Result<Tensor> made = Tensor::zeros(elem, std::move(dims));
  if (!made) throw Refusal{made.status()};
  const IntegerRange range =
      elem == Elem::bool_ ? IntegerRange{.lowest = 0, .highest = 1} : integerRange(elem);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < range.lowest || values[i] > range.highest)
      reject("value {} is no {}", values[i], elemName(elem));
    storeElement(elem, made->bytes.mutableData(), static_cast<int64_t>(i),
                 static_cast<uint64_t>(values[i]) & elemMask(elem));
  }
  return *std::move(made);
}

Constant givenFloats(const Arguments& arguments) {
  const std::vector<float> values = arguments.floats("values");
  return {Tensor::of<float>(Elem::f32_, shapeOf(arguments, values.size()), values), {}};
}

Constant givenIntegers(const Arguments& arguments, Elem elem) {
  const Ints values = arguments.ints("values");
  return {integers(elem, shapeOf(arguments, values.size()), values), {}};
}

/// Bytes as one text.
Constant givenBytes(const Arguments& arguments) {
  const std::string values = arguments.text("values", "");
  const Shape dims = shapeOf(arguments, values.size());
  const Quantization quantization = quantizationOf(arguments);
  needByte(quantization);
  return {{Elem::u8_, dims, Bytes::copyOf(values.data(), values.size())}, quantization};
}

/// Sums of products of quantized numbers begin with these.
Constant givenBias(const Arguments& arguments) {
  Constant bias = givenIntegers(arguments, Elem::i32_);
  bias.quantization = quantizationOf(arguments);
  return bias;
}

/// The element of a ConstantFill, by its bits. Throws for a type that it cannot be of.
uint64_t elementOf(const Arguments& arguments, Elem elem) {
  if (elem == Elem::f32_) return std::bit_cast<uint32_t>(arguments.number("value", 0));
  if (!isInteger(elem) && elem != Elem::bool_) refuse("dtype {}", arguments.integer("dtype", 0));
  const Tensor one = integers(elem, {}, {arguments.integer("value", 0)});
  return loadElement(elem, one.bytes.data(), 0);
}

Constant filled(const Arguments& arguments) {
  if (arguments.flag("input_as_shape", false) || arguments.has("extra_shape"))
    refuse("a shape that is computed");
  const Shape dims = arguments.has("shape") ? arguments.ints("shape") : Shape{1};
  const std::optional<int64_t> count = elementCount(dims);
  if (!count || *count > kMostFilled) reject("the shape {} is too large", shapeText(dims));
  const Elem elem = elemOf(arguments.integer("dtype", kFloatType));
  const uint64_t element = elementOf(arguments, elem);
  Result<Tensor> made = Tensor::zeros(elem, dims);
  if (!made) throw Refusal{made.status()};
  for (int64_t i = 0; element != 0 && i < *count; ++i)
    storeElement(elem, made->bytes.mutableData(), i, element);
  return {*std::move(made), {}};
}

struct Fill {
  std::string_view type;
  Constant (*make)(const Arguments& arguments);
};
constexpr Fill kFills[] = {
    {"ConstantFill", filled},
    {"GivenTensorBoolFill", [](const Arguments& a) { return givenIntegers(a, Elem::bool_); }},
    {"GivenTensorFill", givenFloats},
    {"GivenTensorInt64Fill", [](const Arguments& a) { return givenIntegers(a, Elem::i64_); }},
    {"GivenTensorIntFill", [](const Arguments& a) { return givenIntegers(a, Elem::i32_); }},
    {"Int8GivenIntTensorFill", givenBias},
    {"Int8GivenTensorFill", givenBytes},
};

} // namespace

Quantization quantizationOf(const Arguments& arguments) {
  const int64_t zero = arguments.integer("Y_zero_point", 0);
  if (zero < INT32_MIN || zero > INT32_MAX) reject("Y_zero_point is {}", zero);
  const Quantization q{arguments.number("Y_scale", 0), static_cast<int32_t>(zero)};
  if (!std::isfinite(q.scale) || q.scale <= 0) reject("Y_scale is {}", q.scale);
  return q;
}

void needByte(const Quantization& quantization) {
  if (quantization.zero < 0 || quantization.zero > 255)
    reject("Y_zero_point {} is no u8", quantization.zero);
}

bool isFill(const proto::OperatorDef& op) {
  return op.input_size() == 0 && std::ranges::count(kFills, op.type(), &Fill::type) > 0;
}

Result<Constant> fill(const proto::OperatorDef& op) {
  const auto found = std::ranges::find(kFills, op.type(), &Fill::type);
  if (found == std::end(kFills)) return failure(Code::unsupported, "it is no fill of constants");
  if (op.output_size() != 1) return badModel("has {} outputs, expected 1", op.output_size());
  try {
    return found->make(Arguments(op));
  } catch (const Refusal& refusal) {
    return refusal.status;
  }
}

} // namespace candela::import::caffe2
