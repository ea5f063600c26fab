// Convolutions and matrix products.
#include "core/compiler/import/caffe2/operators/product.h"

#include "core/compiler/import/caffe2/window.h"

namespace candela::import::caffe2 {

Name convolved(Step& step, const Name& x) {
  Images images(step);
  Attributes attributes = windowOf(step);
  if (attributes.count("ceil_mode")) reject("legacy_pad of pools");
  attributes["group"] = step.arguments.integer("group", 1);
  std::vector<Name> operands{images.first(x), images.weights(1)};
  if (step.has(2)) operands.push_back(step.real(2));
  return images.back(step.add("Conv", std::move(operands), std::move(attributes)));
}

Name connected(Step& step, const Name& x, bool isTransposed) {
  const int64_t axis = step.arguments.integer("axis", 1);
  if (axis < 0 || axis > 7) refuse("axis {}", axis);
  if (const int64_t own = step.arguments.integer("axis_w", 1); own != 1) refuse("axis_w {}", own);
  Ints dims(static_cast<size_t>(axis), 0);
  dims.push_back(-1);
  const Name rows = step.reshape(x, dims);
  const std::optional<Tensor>& constant = step.blob(1).constant;
  const bool isMatrix = constant && constant->dims.size() == 2;
  const Name weights = isMatrix ? step.real(1) : step.reshape(step.real(1), {0, -1});
  const Name bias = step.real(2);
  if (axis == 1)
    return step.add("Gemm", {rows, weights, bias}, {{"transB", int64_t(isTransposed ? 0 : 1)}});
  const Name right = isTransposed ? weights : step.transpose(weights, {1, 0});
  return step.add("Add", {step.add("MatMul", {rows, right}), bias});
}

namespace {

void writeConv(Step& step) { step.set(0, convolved(step, step.in(0))); }
void writeConvRelu(Step& step) { step.set(0, step.add("Relu", {convolved(step, step.in(0))})); }

void writeConvTranspose(Step& step) {
  Images images(step);
  Attributes attributes = windowOf(step);
  if (attributes.count("ceil_mode") || attributes.count("auto_pad")) refuse("legacy_pad");
  if (step.arguments.has("adj") || step.arguments.has("adjs") || step.arguments.has("adj_h")) {
    Ints adjust = step.arguments.ints("adjs");
    const int64_t all = step.arguments.integer("adj", 0);
    if (adjust.empty())
      adjust = {step.arguments.integer("adj_h", all), step.arguments.integer("adj_w", all)};
    attributes["output_padding"] = adjust;
  }
  attributes["group"] = step.arguments.integer("group", 1);
  std::vector<Name> operands{images.first(step.in(0)), images.weights(1)};
  if (step.has(2)) operands.push_back(step.in(2));
  step.set(0, images.back(step.add("ConvTranspose", std::move(operands), std::move(attributes))));
}

void writeConnected(Step& step) { step.set(0, connected(step, step.in(0), false)); }
void writeConnectedTransposed(Step& step) { step.set(0, connected(step, step.in(0), true)); }

void writeMatMul(Step& step) {
  for (const char* axis : {"axis_a", "axis_b"})
    if (const int64_t own = step.arguments.integer(axis, 1); own != 1) refuse("{} {}", axis, own);
  const Name a = step.reshape(step.in(0), {0, -1});
  const Name b = step.reshape(step.in(1), {0, -1});
  step.set(0, step.add("Gemm", {a, b},
                       {{"transA", int64_t(step.arguments.flag("trans_a", false))},
                        {"transB", int64_t(step.arguments.flag("trans_b", false))}}));
}

void writeBatchMatMul(Step& step) {
  const Attributes turned{{"transA", int64_t(step.arguments.flag("trans_a", false))},
                          {"transB", int64_t(step.arguments.flag("trans_b", false))}};
  step.set(0, step.addAll("FusedMatMul", step.inputs(), 1, turned, "com.microsoft")[0]);
}

/// The sum of products of each row.
void writeDotProduct(Step& step) {
  const Name rows = step.reshape(step.add("Mul", step.inputs()), {0, -1});
  step.set(0, step.add("ReduceSum", {rows, step.constant(Ints{1})}, {{"keepdims", int64_t(0)}}));
}

constexpr std::string_view kAxes = "axis_w is 1";

constexpr Operator kProduct[] = {
    {"BatchMatMul", 2, 2, writeBatchMatMul},
    {"Conv", 2, 3, writeConv},
    {"ConvRelu", 2, 3, writeConvRelu},
    {"ConvTranspose", 2, 3, writeConvTranspose, "no legacy_pad"},
    {"DotProduct", 2, 2, writeDotProduct},
    {"FC", 3, 3, writeConnected, kAxes},
    {"FCTransposed", 3, 3, writeConnectedTransposed, kAxes},
    {"MatMul", 2, 2, writeMatMul, "axis_a and axis_b are 1"},
};

} // namespace

std::span<const Operator> productOperators() { return kProduct; }

} // namespace candela::import::caffe2
