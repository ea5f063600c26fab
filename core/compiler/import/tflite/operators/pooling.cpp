// Pools: channels come first inside, and last again behind.
#include "core/compiler/import/tflite/step.h"
#include "core/compiler/import/tflite/window.h"

namespace candela::import::tflite {
namespace {

Attributes poolAttributes(Step& step) {
  const auto& options = step.options<schema::Pool2DOptions>();
  needRank(step, 0, 4);
  return {{"kernel_shape", extents("filter", {options.filter_height(), options.filter_width()})},
          {"strides", extents("stride", {options.stride_h(), options.stride_w()})},
          {"auto_pad", padText(options.padding())}};
}

void finishPool(Step& step, const Name& y) {
  const auto activation = step.options<schema::Pool2DOptions>().fused_activation_function();
  step.set(0, step.activate(y, activation));
}

void writeAveragePool(Step& step) {
  Attributes attributes = poolAttributes(step);
  attributes["count_include_pad"] = int64_t(0);
  const Name x = channelsFirst(step, step.real(0), 4);
  finishPool(step, channelsLast(step, step.add("AveragePool", {x}, std::move(attributes)), 4));
}

/// The largest stored number is that of the largest real one.
void writeMaxPool(Step& step) {
  const auto activation = step.options<schema::Pool2DOptions>().fused_activation_function();
  const bool isStored = step.isAlike(0, 0) && activation == schema::ActivationFunctionType_NONE;
  const Name x = channelsFirst(step, isStored ? step.stored(0) : step.real(0), 4);
  const Name y = channelsLast(step, step.add("MaxPool", {x}, poolAttributes(step)), 4);
  if (isStored) return step.setStored(0, y);
  finishPool(step, y);
}

/// The root of the mean of squares.
void writeL2Pool(Step& step) {
  Attributes attributes = poolAttributes(step);
  attributes["count_include_pad"] = int64_t(0);
  const Name x = channelsFirst(step, step.real(0), 4);
  const Name mean = step.add("AveragePool", {step.add("Mul", {x, x})}, std::move(attributes));
  finishPool(step, channelsLast(step, step.add("Sqrt", {mean}), 4));
}

constexpr Operator kPooling[] = {
    {schema::BuiltinOperator_AVERAGE_POOL_2D, 1, 1, 1, writeAveragePool},
    {schema::BuiltinOperator_L2_POOL_2D, 1, 1, 1, writeL2Pool},
    {schema::BuiltinOperator_MAX_POOL_2D, 1, 1, 1, writeMaxPool},
};

} // namespace

std::span<const Operator> poolingOperators() { return kPooling; }

} // namespace candela::import::tflite
