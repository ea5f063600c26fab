// Rows that are gathered into one for each segment.
#include <algorithm>
#include <limits>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// Rows of negative segments go into one more, which is left out.
void writeSegments(Step& step, int64_t segments, const char* reduction, const Name& nothing) {
  if (segments < 0 || segments > int64_t(1) << 30) reject("{} segments", segments);
  const int64_t grouped = step.input(1).rank();
  const int64_t rank = step.input(0).rank();
  if (grouped > rank) reject("segments of rank {} of data of rank {}", grouped, rank);
  Ints dims = {segments + 1};
  for (int64_t i = grouped; i < rank; ++i) dims.push_back(step.dim(0, i));
  const Name index = step.longs(1);
  const Name isNone = step.add("Less", {index, step.number(0, Elem::i64_)});
  const Name last = step.constant(Tensor::scalarI64(segments));
  const Name place = step.unsqueeze(step.add("Where", {isNone, last, index}), {-1});
  const Name base = step.add("Expand", {nothing, step.constant(dims)});
  const Name all =
      step.add("ScatterND", {base, place, step.stored(0)}, {{"reduction", std::string(reduction)}});
  step.setStored(0, step.add("Slice", {all, step.constant(Ints{0}), step.constant(Ints{segments}),
                                       step.constant(Ints{0})}));
}

Elem dataElem(Step& step) {
  const TensorInfo& data = step.input(0);
  if (data.isQuantized()) refuse("quantized data is not supported");
  return data.elem;
}

/// The lowest or the highest number of a type.
Name limit(Step& step, Elem elem, bool isLowest) {
  if (isFloat(elem)) {
    const double most = std::numeric_limits<float>::max();
    return step.number(isLowest ? -most : most, elem);
  }
  const IntegerRange range = integerRange(elem);
  const auto value = static_cast<int64_t>(isLowest ? range.lowest : range.highest);
  return step.cast(step.constant(Tensor::scalarI64(value)), elem);
}

void writeSegmentSum(Step& step) {
  const Ints segments = step.ints(1, "segments");
  const int64_t count = segments.empty() ? 0 : *std::ranges::max_element(segments) + 1;
  writeSegments(step, count, "add", step.number(0, dataElem(step)));
}

int64_t segmentCount(Step& step) { return step.integer(2, "the number of segments"); }
void writeUnsortedSum(Step& step) {
  writeSegments(step, segmentCount(step), "add", step.number(0, dataElem(step)));
}
void writeUnsortedProduct(Step& step) {
  writeSegments(step, segmentCount(step), "mul", step.number(1, dataElem(step)));
}
void writeUnsortedMaximum(Step& step) {
  writeSegments(step, segmentCount(step), "max", limit(step, dataElem(step), true));
}
void writeUnsortedMinimum(Step& step) {
  writeSegments(step, segmentCount(step), "min", limit(step, dataElem(step), false));
}

constexpr std::string_view kSegmentLimits =
    "the number of segments has to be a constant; no quantized data";

constexpr Operator kSegment[] = {
    {schema::BuiltinOperator_SEGMENT_SUM, 2, 2, 1, writeSegmentSum,
     "segments have to be constants; no quantized data"},
    {schema::BuiltinOperator_UNSORTED_SEGMENT_MAX, 3, 3, 1, writeUnsortedMaximum, kSegmentLimits},
    {schema::BuiltinOperator_UNSORTED_SEGMENT_MIN, 3, 3, 1, writeUnsortedMinimum, kSegmentLimits},
    {schema::BuiltinOperator_UNSORTED_SEGMENT_PROD, 3, 3, 1, writeUnsortedProduct, kSegmentLimits},
    {schema::BuiltinOperator_UNSORTED_SEGMENT_SUM, 3, 3, 1, writeUnsortedSum, kSegmentLimits},
};

} // namespace

std::span<const Operator> segmentOperators() { return kSegment; }

} // namespace candela::import::tflite
