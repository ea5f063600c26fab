// Reductions, sums along an axis, places of extremes.
#include <algorithm>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

struct Axes {
  Ints all; ///< each once, in 0..rank-1
  bool keeps;
};

Axes axesOf(Step& step) {
  const int64_t rank = step.input(0).rank();
  Axes axes{{}, step.options<schema::ReducerOptions>().keep_dims()};
  for (const int64_t axis : step.ints(1, "axes")) axes.all.push_back(step.axis(axis, rank));
  std::ranges::sort(axes.all);
  axes.all.erase(std::ranges::unique(axes.all).begin(), axes.all.end());
  return axes;
}

/// The dims stay, as movement sinks below reductions that keep them, and go behind.
Name reduced(Step& step, const char* op, const Name& x, const Axes& axes) {
  if (axes.all.empty()) return x;
  const Name y = step.add(op, {x, step.constant(axes.all)}, {{"keepdims", int64_t(1)}});
  return axes.keeps ? y : step.squeeze(y, axes.all);
}

void writeReduction(Step& step, const char* op) {
  step.set(0, reduced(step, op, step.real(0), axesOf(step)));
}
void writeSum(Step& step) { writeReduction(step, "ReduceSum"); }
void writeProduct(Step& step) { writeReduction(step, "ReduceProd"); }

/// The largest stored number is that of the largest real one.
void writeExtreme(Step& step, const char* op) {
  step.finishMoved(0, 0, reduced(step, op, step.moved(0), axesOf(step)));
}
void writeMaximum(Step& step) { writeExtreme(step, "ReduceMax"); }
void writeMinimum(Step& step) { writeExtreme(step, "ReduceMin"); }

/// Of integers the sum, divided.
void writeMean(Step& step) {
  const Axes axes = axesOf(step);
  const TensorInfo& x = step.input(0);
  if (isFloat(x.elem) || x.isQuantized())
    return step.set(0, reduced(step, "ReduceMean", step.real(0), axes));
  int64_t count = 1;
  for (const int64_t axis : axes.all)
    if (__builtin_mul_overflow(count, step.dim(0, axis), &count))
      reject("a mean of more elements than 64 bits count");
  const Name sum = reduced(step, "ReduceSum", step.cast(step.stored(0), Elem::i64_), axes);
  const Name mean = step.add("Div", {sum, step.number(static_cast<double>(count), Elem::i64_)});
  step.set(0, step.cast(mean, x.elem));
}

void writeBools(Step& step, const char* op) {
  const Name x = step.cast(step.stored(0), Elem::i32_);
  step.set(0, step.cast(reduced(step, op, x, axesOf(step)), Elem::bool_));
}
void writeAny(Step& step) { writeBools(step, "ReduceMax"); }
void writeAll(Step& step) { writeBools(step, "ReduceMin"); }

void writeCumsum(Step& step) {
  const auto& options = step.options<schema::CumsumOptions>();
  const Name axis = step.longs(1);
  step.set(0, step.add("CumSum", {step.real(0), axis},
                       {{"exclusive", int64_t(options.exclusive())},
                        {"reverse", int64_t(options.reverse())}}));
}

void writePlace(Step& step, const char* op) {
  const int64_t axis = step.axis(step.integer(1, "the axis"), step.input(0).rank());
  const Name place = step.add(op, {step.stored(0)}, {{"axis", axis}, {"keepdims", int64_t(0)}});
  step.set(0, step.cast(place, step.output(0).elem));
}
void writeArgMax(Step& step) { writePlace(step, "ArgMax"); }
void writeArgMin(Step& step) { writePlace(step, "ArgMin"); }

void writeTopK(Step& step) {
  const bool isStored = step.isAlike(0, 0);
  const Name x = isStored ? step.stored(0) : step.real(0);
  const Name count = step.reshape(step.longs(1), {1});
  const std::vector<Name> found = step.addAll("TopK", {x, count}, 2, {{"axis", int64_t(-1)}});
  step.finishMoved(0, 0, found[0]);
  if (step.wants(1)) step.set(1, step.cast(found[1], step.output(1).elem));
}

constexpr std::string_view kAxesLimits = "the axes have to be constants";

constexpr Operator kReduction[] = {
    {schema::BuiltinOperator_ARG_MAX, 2, 2, 1, writeArgMax, "the axis has to be a constant"},
    {schema::BuiltinOperator_ARG_MIN, 2, 2, 1, writeArgMin, "the axis has to be a constant"},
    {schema::BuiltinOperator_CUMSUM, 2, 2, 1, writeCumsum},
    {schema::BuiltinOperator_MEAN, 2, 2, 1, writeMean, kAxesLimits},
    {schema::BuiltinOperator_REDUCE_ALL, 2, 2, 1, writeAll, kAxesLimits},
    {schema::BuiltinOperator_REDUCE_ANY, 2, 2, 1, writeAny, kAxesLimits},
    {schema::BuiltinOperator_REDUCE_MAX, 2, 2, 1, writeMaximum, kAxesLimits},
    {schema::BuiltinOperator_REDUCE_MIN, 2, 2, 1, writeMinimum, kAxesLimits},
    {schema::BuiltinOperator_REDUCE_PROD, 2, 2, 1, writeProduct, kAxesLimits},
    {schema::BuiltinOperator_SUM, 2, 2, 1, writeSum, kAxesLimits},
    {schema::BuiltinOperator_TOPK_V2, 2, 2, 2, writeTopK},
};

} // namespace

std::span<const Operator> reductionOperators() { return kReduction; }

} // namespace candela::import::tflite
