// Constants in the net itself, and those whose shape is an operand's.
#include "core/compiler/import/caffe2/step.h"
#include "core/support/elem.h"

namespace candela::import::caffe2 {
namespace {

void writeGiven(Step& step) {
  if (step.outputCount() != 1) reject("has {} outputs, expected 1", step.outputCount());
  step.setFilled();
}

void writeConstantFill(Step& step) {
  if (!step.has(0)) return writeGiven(step);
  if (step.arguments.has("extra_shape")) refuse("extra_shape");
  const Name x = step.in(0);
  const bool isShape = step.arguments.flag("input_as_shape", false);
  const Elem elem = elemOf(step.arguments.integer("dtype", kFloatType));
  if (elem == Elem::none) refuse("dtype {}", step.arguments.integer("dtype", kFloatType));
  const int64_t to = elemToOnnx(elem);
  const Name shape = isShape ? step.add("Cast", {x}, {{"to", int64_t(elemToOnnx(Elem::i64_))}})
                             : step.add("Shape", {x});
  const Name value =
      step.add("Cast", {step.number(step.arguments.number("value", 0))}, {{"to", to}});
  step.set(0, step.add("Expand", {value, shape}));
}

constexpr Operator kFill[] = {
    {"ConstantFill", 0, 1, writeConstantFill, "no extra_shape"},
    {"GivenTensorBoolFill", 0, 0, writeGiven},
    {"GivenTensorFill", 0, 0, writeGiven},
    {"GivenTensorInt64Fill", 0, 0, writeGiven},
    {"GivenTensorIntFill", 0, 0, writeGiven},
    {"Int8GivenIntTensorFill", 0, 0, writeGiven},
    {"Int8GivenTensorFill", 0, 0, writeGiven},
};

} // namespace

std::span<const Operator> fillOperators() { return kFill; }

} // namespace candela::import::caffe2
