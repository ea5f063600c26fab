#include <algorithm>

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {
namespace {

struct Reduction {
  std::string_view type;
  const char* onnx;
};
constexpr Reduction kReductions[] = {
    {"ReduceBackMax", "ReduceMax"},    {"ReduceBackMean", "ReduceMean"},
    {"ReduceBackSum", "ReduceSum"},    {"ReduceFrontMax", "ReduceMax"},
    {"ReduceFrontMean", "ReduceMean"}, {"ReduceFrontSum", "ReduceSum"},
    {"ReduceL1", "ReduceL1"},          {"ReduceL2", "ReduceL2"},
    {"ReduceMax", "ReduceMax"},        {"ReduceMean", "ReduceMean"},
    {"ReduceMin", "ReduceMin"},        {"ReduceSum", "ReduceSum"},
};

const char* reductionOf(const Step& step) {
  return std::ranges::find(kReductions, step.type(), &Reduction::type)->onnx;
}

void writeReduce(Step& step) {
  std::vector<Name> operands{step.in(0)};
  if (step.arguments.has("axes")) operands.push_back(step.constant(step.arguments.ints("axes")));
  step.set(0, step.add(reductionOf(step), std::move(operands),
                       {{"keepdims", int64_t(step.arguments.flag("keepdims", true))}}));
}

/// num_reduce_dim dims from the first on, or as many up to the last.
void reduceSome(Step& step, bool isFront) {
  const int64_t count = step.arguments.integer("num_reduce_dim", 1);
  if (step.arguments.has("num_reduce_dims")) refuse("num_reduce_dims");
  if (count < 1 || count > 8) reject("num_reduce_dim is {}", count);
  Ints axes;
  for (int64_t i = 0; i < count; ++i) axes.push_back(isFront ? i : -1 - i);
  step.set(0, step.add(reductionOf(step), {step.in(0), step.constant(axes)},
                       {{"keepdims", int64_t(0)}}));
}
void writeReduceBack(Step& step) { reduceSome(step, false); }
void writeReduceFront(Step& step) { reduceSome(step, true); }

void writeAverage(Step& step) {
  step.set(0, step.add("ReduceMean", {step.in(0)}, {{"keepdims", int64_t(0)}}));
}
void writeSumElements(Step& step) {
  const bool isAverage = step.arguments.flag("average", false);
  step.set(0, step.add(isAverage ? "ReduceMean" : "ReduceSum", {step.in(0)},
                       {{"keepdims", int64_t(0)}}));
}

void selectBest(Step& step, const char* op) {
  step.set(0, step.add(op, {step.in(0)},
                       {{"axis", step.arguments.integer("axis", -1)},
                        {"keepdims", int64_t(step.arguments.flag("keepdims", true))}}));
}
void writeArgMax(Step& step) { selectBest(step, "ArgMax"); }
void writeArgMin(Step& step) { selectBest(step, "ArgMin"); }

void writeTopK(Step& step) {
  step.needUnread(2, "indices into all elements");
  if (step.has(1)) refuse("a number k that is computed");
  const std::vector<Name> best =
      step.addAll("TopK", {step.in(0), step.constant(Ints{step.arguments.integer("k", 1)})}, 2,
                  {{"axis", step.arguments.integer("axis", -1)}});
  step.set(0, best[0]);
  step.set(1, best[1]);
}

constexpr Operator kReduction[] = {
    {"ArgMax", 1, 1, writeArgMax},
    {"ArgMin", 1, 1, writeArgMin},
    {"AveragedLoss", 1, 1, writeAverage},
    {"ReduceBackMax", 1, 1, writeReduceBack, "no lengths"},
    {"ReduceBackMean", 1, 1, writeReduceBack, "no lengths"},
    {"ReduceBackSum", 1, 1, writeReduceBack, "no lengths"},
    {"ReduceFrontMax", 1, 1, writeReduceFront, "no lengths"},
    {"ReduceFrontMean", 1, 1, writeReduceFront, "no lengths"},
    {"ReduceFrontSum", 1, 1, writeReduceFront, "no lengths"},
    {"ReduceL1", 1, 1, writeReduce},
    {"ReduceL2", 1, 1, writeReduce},
    {"ReduceMax", 1, 1, writeReduce},
    {"ReduceMean", 1, 1, writeReduce},
    {"ReduceMin", 1, 1, writeReduce},
    {"ReduceSum", 1, 1, writeReduce},
    {"SumElements", 1, 1, writeSumElements},
    {"TopK", 1, 2, writeTopK, "k is an argument; flat indices are not read"},
};

} // namespace

std::span<const Operator> reductionOperators() { return kReduction; }

} // namespace candela::import::caffe2
