#include "core/compiler/import/caffe2/operators/elementwise.h"

#include <algorithm>

namespace candela::import::caffe2 {
namespace {

struct Comparison {
  std::string_view type;
  const char* onnx;
};
constexpr Comparison kComparisons[] = {
    {"And", "And"},    {"EQ", "Equal"},       {"GE", "GreaterOrEqual"},
    {"GT", "Greater"}, {"LE", "LessOrEqual"}, {"LT", "Less"},
    {"Or", "Or"},      {"Xor", "Xor"},
};

Name compared(Step& step, const char* onnx) {
  const Name a = step.in(0);
  return step.add(onnx, {a, besideOf(step, a, step.in(1))});
}

void writeComparison(Step& step) {
  step.set(0,
           compared(step, std::ranges::find(kComparisons, step.type(), &Comparison::type)->onnx));
}
void writeUnequal(Step& step) { step.set(0, step.add("Not", {compared(step, "Equal")})); }
void writeNot(Step& step) { step.set(0, step.add("Not", {step.in(0)})); }

void writeWhere(Step& step) {
  const Name condition = step.in(0);
  const Name x = step.in(1);
  const bool isOfRows = step.arguments.flag("broadcast_on_rows", false);
  const Name which = isOfRows ? alignedAt(step, 0, x, condition) : condition;
  step.set(0, step.add("Where", {which, x, step.in(2)}));
}

constexpr Operator kComparison[] = {
    {"And", 2, 2, writeComparison, kBroadcastLimits},
    {"EQ", 2, 2, writeComparison, kBroadcastLimits},
    {"GE", 2, 2, writeComparison, kBroadcastLimits},
    {"GT", 2, 2, writeComparison, kBroadcastLimits},
    {"LE", 2, 2, writeComparison, kBroadcastLimits},
    {"LT", 2, 2, writeComparison, kBroadcastLimits},
    {"NE", 2, 2, writeUnequal, kBroadcastLimits},
    {"Not", 1, 1, writeNot},
    {"Or", 2, 2, writeComparison, kBroadcastLimits},
    {"Where", 3, 3, writeWhere},
    {"Xor", 2, 2, writeComparison, kBroadcastLimits},
};

} // namespace

std::span<const Operator> comparisonOperators() { return kComparison; }

} // namespace candela::import::caffe2
