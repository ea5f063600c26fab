// Rows by their numbers, and sums of rows by the lengths of segments.
#include "core/compiler/import/caffe2/operators/elementwise.h"
#include "core/support/elem.h"

namespace candela::import::caffe2 {
namespace {

Name longs(Step& step, const Name& x) {
  return step.add("Cast", {x}, {{"to", static_cast<int64_t>(elemToOnnx(Elem::i64_))}});
}
Name number(Step& step, int64_t value) { return step.constant(Tensor::scalarI64(value)); }

void writeGather(Step& step) {
  step.set(0, step.add("Gather", {step.in(0), step.in(1)},
                       {{"axis", step.arguments.integer("axis", 0)}}));
}
void writeBatchGather(Step& step) {
  step.set(0, step.add("Gather", {step.in(0), step.in(1)}, {{"axis", int64_t(1)}}));
}

void writeShape(Step& step) {
  const Name shape = step.add("Shape", {step.in(0)});
  if (!step.arguments.has("axes")) return step.set(0, shape);
  step.set(0, step.add("Gather", {shape, step.constant(step.arguments.ints("axes"))}));
}
void writeSize(Step& step) { step.set(0, step.add("Size", {step.in(0)})); }

/// Of rows behind one another, the segment that each belongs to: as many ends of segments lie
/// before it as its number says.
Name segmentOf(Step& step, const Name& lengths, const Name& rows) {
  const Name ends = step.add("CumSum", {lengths, number(step, 0)});
  const Name places = step.add("Range", {number(step, 0), rows, number(step, 1)});
  const Name isBehind =
      step.add("LessOrEqual", {ends, step.add("Unsqueeze", {places, step.constant(Ints{1})})});
  return step.add("ReduceSum", {longs(step, isBehind), step.constant(Ints{1})},
                  {{"keepdims", int64_t(0)}});
}

/// The sum of rows[R, ...] in each segment.
Name sumSegments(Step& step, const Name& rows, const Name& lengths) {
  const Name count = step.add("Squeeze", {step.dims(rows, 0, 1), step.constant(Ints{0})});
  const Name segment = segmentOf(step, lengths, count);
  const Name shape =
      step.join({step.add("Shape", {lengths}), step.add("Shape", {rows}, {{"start", int64_t(1)}})});
  const Name none = step.add("CastLike", {step.add("Expand", {step.number(0), shape}), rows});
  const Name places = step.add("Unsqueeze", {segment, step.constant(Ints{-1})});
  return step.add("ScatterND", {none, places, rows}, {{"reduction", std::string("add")}});
}

/// x / lengths by segment; of an empty one it is 0.
Name meanOf(Step& step, const Name& sums, const Name& lengths) {
  const Name least = step.add("Max", {lengths, number(step, 1)});
  const Name divisor = step.add("CastLike", {least, sums});
  return step.add("Div", {sums, alignedAt(step, 0, sums, divisor)});
}

Name gathered(Step& step, size_t indices) {
  return step.add("Gather", {step.in(0), step.in(indices)}, {{"axis", int64_t(0)}});
}

void writeLengthsSum(Step& step) {
  step.set(0, sumSegments(step, step.in(0), longs(step, step.in(1))));
}
void writeLengthsMean(Step& step) {
  const Name lengths = longs(step, step.in(1));
  step.set(0, meanOf(step, sumSegments(step, step.in(0), lengths), lengths));
}
void writeSparseLengthsSum(Step& step) {
  step.set(0, sumSegments(step, gathered(step, 1), longs(step, step.in(2))));
}
void writeSparseLengthsMean(Step& step) {
  const Name lengths = longs(step, step.in(2));
  step.set(0, meanOf(step, sumSegments(step, gathered(step, 1), lengths), lengths));
}

/// Each row times its weight, which lies beside dim 0.
void writeSparseLengthsWeightedSum(Step& step) {
  const Name rows = gathered(step, 2);
  const Name weighted = step.add("Mul", {rows, alignedAt(step, 0, rows, step.in(1))});
  step.set(0, sumSegments(step, weighted, longs(step, step.in(3))));
}

/// The place of each row in its segment. As many as only a run knows.
void writeLengthsRangeFill(Step& step) {
  const Name lengths = longs(step, step.in(0));
  const Name rows = step.add("ReduceSum", {lengths}, {{"keepdims", int64_t(0)}});
  const Name starts = step.add("CumSum", {lengths, number(step, 0)}, {{"exclusive", int64_t(1)}});
  const Name start = step.add("Gather", {starts, segmentOf(step, lengths, rows)});
  const Name places = step.add("Range", {number(step, 0), rows, number(step, 1)});
  step.set(0, step.add("Cast", {step.add("Sub", {places, start})},
                       {{"to", static_cast<int64_t>(elemToOnnx(Elem::i32_))}}));
}

/// Rows added up at their places; the third operand says how many there are.
void writeSparseToDense(Step& step) {
  if (!step.has(2)) refuse("how many rows there are hangs on the indices: it has no third input");
  const Name values = step.in(1);
  const Name shape = step.join(
      {step.dims(step.in(2), 0, 1), step.add("Shape", {values}, {{"start", int64_t(1)}})});
  const Name none = step.add("CastLike", {step.add("Expand", {step.number(0), shape}), values});
  const Name places = step.add("Unsqueeze", {longs(step, step.in(0)), step.constant(Ints{-1})});
  step.set(0, step.add("ScatterND", {none, places, values}, {{"reduction", std::string("add")}}));
}

/// data[N, D], lengths[D], values: for each of the values of a column whether the row has it there.
void writeBatchOneHot(Step& step) {
  const std::optional<Tensor> lengths = step.blob(1).constant;
  if (!lengths) refuse("lengths that are no constant");
  Ints columns;
  int64_t column = 0;
  for (const int64_t length : lengths->toInts()) {
    if (length < 0 || length > (1 << 20)) reject("a length of {}", length);
    columns.insert(columns.end(), static_cast<size_t>(length), column++);
  }
  const Name data = step.in(0);
  const Name repeated = step.add("Gather", {data, step.constant(columns)}, {{"axis", int64_t(1)}});
  step.set(0, step.add("CastLike", {step.add("Equal", {repeated, step.in(2)}), data}));
}

constexpr Operator kIndexing[] = {
    {"BatchGather", 2, 2, writeBatchGather},
    {"BatchOneHot", 3, 3, writeBatchOneHot, "lengths are constants"},
    {"Gather", 2, 2, writeGather},
    {"LengthsMean", 2, 2, writeLengthsMean},
    {"LengthsRangeFill", 1, 1, writeLengthsRangeFill},
    {"LengthsSum", 2, 2, writeLengthsSum},
    {"Shape", 1, 1, writeShape},
    {"Size", 1, 1, writeSize},
    {"SparseLengthsMean", 3, 3, writeSparseLengthsMean},
    {"SparseLengthsSum", 3, 3, writeSparseLengthsSum},
    {"SparseLengthsWeightedSum", 4, 4, writeSparseLengthsWeightedSum},
    {"SparseToDense", 3, 3, writeSparseToDense},
};

} // namespace

std::span<const Operator> indexingOperators() { return kIndexing; }

} // namespace candela::import::caffe2
