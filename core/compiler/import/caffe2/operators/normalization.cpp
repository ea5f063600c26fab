#include "core/compiler/import/caffe2/window.h"

namespace candela::import::caffe2 {
namespace {

void writeSpatialBN(Step& step) {
  if (!step.arguments.flag("is_test", false)) refuse("is_test is 0: it is of a training");
  for (size_t i = 1; i < step.outputCount(); ++i) step.needUnread(i, "a statistic");
  Images images(step);
  const Name y =
      step.add("BatchNormalization",
               {images.first(step.in(0)), step.in(1), step.in(2), step.in(3), step.in(4)},
               {{"epsilon", step.arguments.number("epsilon", 1e-5f)}});
  step.set(0, images.back(y));
}

void writeLRN(Step& step) {
  step.needUnread(1, "the scale");
  Images images(step);
  step.set(0, images.back(step.add("LRN", {images.first(step.in(0))},
                                   {{"size", step.arguments.integer("size", 0)},
                                    {"alpha", step.arguments.number("alpha", 0)},
                                    {"beta", step.arguments.number("beta", 0)},
                                    {"bias", step.arguments.number("bias", 1)}})));
}

/// Of all dims from the argument `axis` on as one.
Name softmax(Step& step, const char* op) {
  const int64_t axis = step.arguments.integer("axis", 1);
  const Name x = step.in(0);
  const Name rows = step.add("Flatten", {x}, {{"axis", axis}});
  const Name y = step.add(op, {rows}, {{"axis", int64_t(1)}});
  return step.add("Reshape", {y, step.add("Shape", {x})}, {{"allowzero", int64_t(1)}});
}
void writeSoftmax(Step& step) { step.set(0, softmax(step, "Softmax")); }
void writeLogSoftmax(Step& step) { step.set(0, softmax(step, "LogSoftmax")); }

void writeLayerNorm(Step& step) {
  step.needUnread(1, "the mean");
  step.needUnread(2, "the deviation");
  const int64_t axis = step.arguments.integer("axis", 1);
  const Name x = step.in(0);
  // Of all dims from `axis` on as one, so that scales of any rank lie beside them.
  const Name rows = step.add("Flatten", {x}, {{"axis", axis}});
  const Name means = step.constant(Ints{1});
  const Name mean = step.add("ReduceMean", {rows, means});
  const Name centered = step.add("Sub", {rows, mean});
  const Name squares = step.add("Mul", {centered, centered});
  const Name variance = step.add("ReduceMean", {squares, means});
  const Name epsilon = step.number(step.arguments.number("epsilon", 1e-5f));
  const Name deviation = step.add("Sqrt", {step.add("Add", {variance, epsilon})});
  Name y = step.add("Div", {centered, deviation});
  if (step.arguments.flag("elementwise_affine", false)) {
    const Name scale = step.reshape(step.in(1), {-1});
    y = step.add("Add", {step.add("Mul", {y, scale}), step.reshape(step.in(2), {-1})});
  }
  step.set(0, step.add("Reshape", {y, step.add("Shape", {x})}, {{"allowzero", int64_t(1)}}));
}

void writeInstanceNorm(Step& step) {
  for (size_t i = 1; i < step.outputCount(); ++i) step.needUnread(i, "a statistic");
  Images images(step);
  const Name y =
      step.add("InstanceNormalization", {images.first(step.in(0)), step.in(1), step.in(2)},
               {{"epsilon", step.arguments.number("epsilon", 1e-5f)}});
  step.set(0, images.back(y));
}

void writeGroupNorm(Step& step) {
  for (size_t i = 1; i < step.outputCount(); ++i) step.needUnread(i, "a statistic");
  Images images(step);
  const Name y = step.add("GroupNormalization", {images.first(step.in(0)), step.in(1), step.in(2)},
                          {{"epsilon", step.arguments.number("epsilon", 1e-5f)},
                           {"num_groups", step.arguments.integer("group", 32)}});
  step.set(0, images.back(y));
}

/// By the Euclidean length along one dim, which is at least 1e-12.
void writeNormalize(Step& step) {
  step.needUnread(1, "the length");
  const Name x = step.in(0);
  const Name axis = step.constant(Ints{step.arguments.integer("axis", -1)});
  const Name length = step.add("ReduceL2", {x, axis});
  step.set(0, step.add("Div", {x, step.add("Max", {length, step.number(1e-12f)})}));
}

constexpr std::string_view kStatistics = "statistics are not read";

constexpr Operator kNormalization[] = {
    {"GroupNorm", 3, 3, writeGroupNorm, kStatistics},
    {"InstanceNorm", 3, 3, writeInstanceNorm, kStatistics},
    {"LRN", 1, 1, writeLRN, "the scale is not read"},
    {"LayerNorm", 1, 3, writeLayerNorm, kStatistics},
    {"LogSoftmax", 1, 1, writeLogSoftmax},
    {"Normalize", 1, 1, writeNormalize, "the length is not read"},
    {"Softmax", 1, 1, writeSoftmax},
    {"SpatialBN", 5, 5, writeSpatialBN, "is_test is 1"},
};

} // namespace

std::span<const Operator> normalizationOperators() { return kNormalization; }

} // namespace candela::import::caffe2
