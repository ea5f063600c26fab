// Reductions, and the places of extremes.
#include <algorithm>

#include "core/compiler/import/stablehlo/join.h"

namespace candela::import::stablehlo {
namespace {

const char* reductionOf(Join join) {
  switch (join) {
  case Join::add: return "ReduceSum";
  case Join::multiply: return "ReduceProd";
  case Join::maximum:
  case Join::or_: return "ReduceMax";
  case Join::minimum:
  case Join::and_: return "ReduceMin";
  default: return nullptr;
  }
}

Shape withoutAxes(const Shape& dims, const Ints& axes) {
  Shape rest;
  for (size_t i = 0; i < dims.size(); ++i)
    if (std::ranges::count(axes, static_cast<int64_t>(i)) == 0) rest.push_back(dims[i]);
  return rest;
}

/// With its dims as 1 first: what divides by a sum, or subtracts a mean, wants them so, and the
/// reshapes between cancel.
Name keptReduction(Step& step, const char* op, const Part& x, const Ints& axes) {
  Shape dims = x.dims;
  for (const int64_t axis : axes) dims[static_cast<size_t>(axis)] = 1;
  const Name y = step.add(op, {x.name, step.constant(axes)}, {{"keepdims", int64_t(1)}});
  return step.reshape({y, dims}, withoutAxes(x.dims, axes)).name;
}

/// Bools by those of integers, where the largest one is any of them.
Name reduceBools(Step& step, Join join, const Name& x, const Ints& axes) {
  const bool isAny = join == Join::or_ || join == Join::maximum || join == Join::add;
  const Name numbers = step.cast(x, Elem::i32_);
  const Name axesName = step.constant(axes);
  const bool isXor = join == Join::xor_;
  const char* extreme = isAny ? "ReduceMax" : "ReduceMin";
  const char* op = isXor ? "ReduceSum" : extreme;
  Name y = step.add(op, {numbers, axesName}, {{"keepdims", int64_t(0)}});
  if (isXor) y = step.add("Mod", {y, step.number(2, Elem::i32_)});
  return step.cast(y, Elem::bool_);
}

/// Bits have no reduction of ONNX: one dim after the other is a window over all of it.
Name reduceBits(Step& step, Join join, Elem elem, Part x, const Ints& axes) {
  const Shape dims = withoutAxes(x.dims, axes);
  for (const int64_t axis : axes) {
    const auto i = static_cast<size_t>(axis);
    if (x.dims[i] < 1) refuse("{} of no elements", joinName(join));
    x = joinWindows(step, join, elem, x, i, x.dims[i], 1);
  }
  return step.reshape(x, dims).name;
}

Name reduced(Step& step, Join join, size_t index, const Ints& axes) {
  const Part x = step.part(index);
  const Elem elem = step.type(index).elem;
  if (axes.empty()) return x.name;
  if (elem == Elem::bool_) return reduceBools(step, join, x.name, axes);
  const bool isBits = join == Join::and_ || join == Join::or_ || join == Join::xor_;
  if (isBits) return reduceBits(step, join, elem, x, axes);
  const char* op = reductionOf(join);
  if (!op) refuse("{} along dims", joinName(join));
  return keptReduction(step, op, x, axes);
}

/// The pair of values and indices that argmax is printed as.
void writeExtreme(Step& step, Join join, const Ints& axes) {
  const Shape& dims = step.type(0).dims;
  if (axes.size() != 1 || step.input(1).counted != axes[0])
    refuse("the index of the {} is none that counts along dim {}", joinName(join),
           axes.empty() ? -1 : axes[0]);
  if (dims[static_cast<size_t>(axes[0])] < 1) refuse("the index of one of no elements");
  const Name x = step.whole(0);
  const bool isMaximum = join == Join::maximum;
  if (step.outputCount() > 0)
    step.setPart({step.add(reductionOf(join), {x, step.constant(axes)}, {{"keepdims", int64_t(0)}}),
                  withoutAxes(dims, axes)});
  const Name place =
      step.add(isMaximum ? "ArgMax" : "ArgMin", {x}, {{"axis", axes[0]}, {"keepdims", int64_t(0)}});
  step.setPart({step.cast(place, step.output(1).elem), withoutAxes(dims, axes)}, 1);
}

void writeReduce(Step& step) {
  const Ints axes = step.ints("dimensions");
  const size_t inputs = step.inputCount() / 2;
  if (step.inputCount() != 2 * inputs || inputs == 0)
    reject("has {} operands, expected pairs", step.inputCount());
  step.checkAxes(axes, step.type(0).rank(), "dim");
  for (size_t i = 0; i < inputs; ++i) {
    if (step.type(i).dims != step.type(0).dims)
      reject("operands are {} and {}", step.type(0).text(), step.type(i).text());
    if (step.type(inputs + i).rank() != 0 || step.type(inputs + i).elem != step.type(i).elem)
      reject("{} begins with {}", step.type(i).text(), step.type(inputs + i).text());
    step.expectElem(step.type(i).elem, i);
  }
  if (inputs == 2 && step.op().regions.size() == 1)
    if (const auto extreme = extremeOf(step.op().regions[0]))
      return writeExtreme(step, *extreme, axes);
  for (size_t i = 0; i < inputs; ++i) {
    const Join join = joinApplied(step, i);
    const Elem elem = step.type(i).elem;
    Name y = reduced(step, join, i, axes);
    if (!isIdentity(step.input(inputs + i), join))
      y = joined(step, join, elem, y, step.whole(inputs + i));
    step.setPart({y, withoutAxes(step.type(i).dims, axes)}, i);
  }
}

constexpr Operator kReduction[] = {
    {"stablehlo.reduce", 2, -1, -1, writeReduce,
     "by add, multiply, maximum, minimum, and, or, xor; by the pair that argmax and argmin are"},
};

} // namespace

std::span<const Operator> reductionOperators() { return kReduction; }

} // namespace candela::import::stablehlo
