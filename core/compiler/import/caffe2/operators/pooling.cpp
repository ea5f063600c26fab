#include "core/compiler/import/caffe2/operators/pooling.h"

#include "core/compiler/import/caffe2/window.h"

namespace candela::import::caffe2 {

Name pooled(Step& step, const Name& x, bool isMaximum) {
  Images images(step);
  const Name first = images.first(x);
  if (step.arguments.flag("global_pooling", false))
    return images.back(step.add(isMaximum ? "GlobalMaxPool" : "GlobalAveragePool", {first}));
  Attributes attributes = windowOf(step);
  if (!isMaximum && step.arguments.flag("count_include_pad", false))
    attributes["count_include_pad"] = int64_t(1);
  return images.back(
      step.add(isMaximum ? "MaxPool" : "AveragePool", {first}, std::move(attributes)));
}

namespace {

void writeMaxPool(Step& step) { step.set(0, pooled(step, step.in(0), true)); }
void writeAveragePool(Step& step) { step.set(0, pooled(step, step.in(0), false)); }

/// Each element of a row of the nearest column: floor(i / scale).
void writeResizeNearest(Step& step) {
  if (step.has(1)) refuse("scales that are computed");
  Images images(step);
  const std::vector<float> scales{1, 1, step.arguments.number("height_scale", 1),
                                  step.arguments.number("width_scale", 1)};
  const Name factors = step.constant(Tensor::of<float>(Elem::f32_, {4}, scales));
  step.set(0, images.back(step.add("Resize", {images.first(step.in(0)), "", factors},
                                   {{"mode", std::string("nearest")},
                                    {"coordinate_transformation_mode", std::string("asymmetric")},
                                    {"nearest_mode", std::string("floor")}})));
}

constexpr Operator kPooling[] = {
    {"AveragePool", 1, 1, writeAveragePool},
    {"AveragePool2D", 1, 1, writeAveragePool},
    {"MaxPool", 1, 1, writeMaxPool},
    {"MaxPool2D", 1, 1, writeMaxPool},
    {"ResizeNearest", 1, 2, writeResizeNearest, "scales are arguments"},
};

} // namespace

std::span<const Operator> poolingOperators() { return kPooling; }

} // namespace candela::import::caffe2
