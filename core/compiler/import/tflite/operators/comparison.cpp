// Comparisons, logic and what they choose.
#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// Quantized alike, stored numbers compare as real ones do.
std::vector<Name> compared(Step& step) {
  const TensorInfo &a = step.input(0), &b = step.input(1);
  const bool isAlike = a.elem == b.elem && a.quantization == b.quantization;
  if (isAlike) return {step.stored(0), step.stored(1)};
  return {step.real(0), step.real(1)};
}

void writeEqual(Step& step) { step.set(0, step.add("Equal", compared(step))); }
void writeNotEqual(Step& step) {
  step.set(0, step.add("Not", {step.add("Equal", compared(step))}));
}
void writeLess(Step& step) { step.set(0, step.add("Less", compared(step))); }
void writeLessEqual(Step& step) { step.set(0, step.add("LessOrEqual", compared(step))); }
void writeGreater(Step& step) { step.set(0, step.add("Greater", compared(step))); }
void writeGreaterEqual(Step& step) { step.set(0, step.add("GreaterOrEqual", compared(step))); }

void writeAnd(Step& step) { step.set(0, step.add("And", {step.stored(0), step.stored(1)})); }
void writeOr(Step& step) { step.set(0, step.add("Or", {step.stored(0), step.stored(1)})); }
void writeNot(Step& step) { step.set(0, step.add("Not", {step.stored(0)})); }

void writeChoice(Step& step, const Name& condition) {
  if (step.isAlike(1, 0) && step.isAlike(2, 0))
    return step.setStored(0, step.add("Where", {condition, step.stored(1), step.stored(2)}));
  step.set(0, step.add("Where", {condition, step.real(1), step.real(2)}));
}

/// A condition of one dim chooses rows.
void writeSelect(Step& step) {
  Name condition = step.stored(0);
  const int64_t rank = step.input(1).rank();
  if (step.input(0).rank() == 1 && rank > 1) {
    Ints dims(static_cast<size_t>(rank), 1);
    dims[0] = -1;
    condition = step.reshape(condition, dims);
  }
  writeChoice(step, condition);
}
void writeSelectV2(Step& step) { writeChoice(step, step.stored(0)); }

constexpr Operator kComparison[] = {
    {schema::BuiltinOperator_EQUAL, 2, 2, 1, writeEqual},
    {schema::BuiltinOperator_GREATER, 2, 2, 1, writeGreater},
    {schema::BuiltinOperator_GREATER_EQUAL, 2, 2, 1, writeGreaterEqual},
    {schema::BuiltinOperator_LESS, 2, 2, 1, writeLess},
    {schema::BuiltinOperator_LESS_EQUAL, 2, 2, 1, writeLessEqual},
    {schema::BuiltinOperator_LOGICAL_AND, 2, 2, 1, writeAnd},
    {schema::BuiltinOperator_LOGICAL_NOT, 1, 1, 1, writeNot},
    {schema::BuiltinOperator_LOGICAL_OR, 2, 2, 1, writeOr},
    {schema::BuiltinOperator_NOT_EQUAL, 2, 2, 1, writeNotEqual},
    {schema::BuiltinOperator_SELECT, 3, 3, 1, writeSelect},
    {schema::BuiltinOperator_SELECT_V2, 3, 3, 1, writeSelectV2},
};

} // namespace

std::span<const Operator> comparisonOperators() { return kComparison; }

} // namespace candela::import::tflite
