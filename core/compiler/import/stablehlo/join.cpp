#include "core/compiler/import/stablehlo/join.h"

#include "core/compiler/import/stablehlo/broadcast.h"
#include "core/support/float_bits.h"

namespace candela::import::stablehlo {
namespace {

struct JoinOperator {
  Join join;
  std::string_view name;
  const char* op;      ///< of ONNX, of numbers; null: none
  const char* logical; ///< of bools
};
constexpr JoinOperator kOperators[] = {
    {Join::add, "add", "Add", "Or"},          {Join::multiply, "multiply", "Mul", "And"},
    {Join::maximum, "maximum", "Max", "Or"},  {Join::minimum, "minimum", "Min", "And"},
    {Join::and_, "and", "BitwiseAnd", "And"}, {Join::or_, "or", "BitwiseOr", "Or"},
    {Join::xor_, "xor", "BitwiseXor", "Xor"}, {Join::second, "the second one", nullptr, nullptr},
};

const JoinOperator& operatorOf(Join join) {
  for (const JoinOperator& one : kOperators)
    if (one.join == join) return one;
  reject("a join that is none");
}

uint64_t identityBits(Join join, Elem elem) {
  const bool isReal = isFloat(elem);
  switch (join) {
  case Join::multiply: return isReal ? fromReal(elem, 1) : 1;
  case Join::maximum: return lowestBits(elem);
  case Join::minimum: {
    if (isReal) return fromReal(elem, std::numeric_limits<double>::infinity());
    return static_cast<uint64_t>(integerRange(elem).highest) & elemMask(elem);
  }
  case Join::and_: return elem == Elem::bool_ ? 1 : elemMask(elem);
  default: return 0;
  }
}

} // namespace

std::string_view joinName(Join join) { return operatorOf(join).name; }

Join joinApplied(Step& step, size_t index) {
  std::optional<Join> join;
  if (const Attribute* applies = step.find("applies")) {
    join = joinNamed(applies->text);
    if (!join) refuse("{} is applied, which is not supported", applies->text);
  } else if (!step.op().regions.empty()) {
    join = joinOf(step.op().regions[0], index);
  }
  if (!join)
    refuse("its region of {} operations is none of add, multiply, maximum, minimum, and, or, xor",
           step.op().regions.empty() ? 0 : step.op().regions[0].operations.size());
  return *join;
}

Name joined(Step& step, Join join, Elem elem, const Name& a, const Name& b) {
  const JoinOperator& how = operatorOf(join);
  const char* op = elem == Elem::bool_ ? how.logical : how.op;
  const bool isBits = join == Join::and_ || join == Join::or_ || join == Join::xor_;
  if (!op || (isBits && isFloat(elem))) refuse("{} of {}", how.name, elemName(elem));
  return step.add(op, {a, b});
}

bool isIdentity(const Value& value, Join join) {
  if (!value.isSplat()) return false;
  const Elem elem = value.type.elem;
  const uint64_t bits = loadElement(elem, value.constant->bytes.data(), 0);
  const bool isNegativeZero = join == Join::add && isFloat(elem) && toReal(elem, bits) == 0;
  return bits == identityBits(join, elem) || isNegativeZero;
}

Name identityOf(Step& step, Join join, Elem elem) {
  return bitsConstant(step, identityBits(join, elem), elem);
}

/// From windows of 1, 2, 4, ... elements, those that the bits of `taps` name one behind the other.
Part joinWindows(Step& step, Join join, Elem elem, const Part& x, size_t axis, int64_t taps,
                 int64_t dilation) {
  const int64_t length = x.dims[axis] - (taps - 1) * dilation;
  const auto cut = [&](const Part& of, int64_t begin, int64_t end) {
    Ints begins(of.dims.size(), 0), ends = of.dims;
    begins[axis] = begin;
    ends[axis] = end;
    return step.slice(of, begins, ends, Ints(of.dims.size(), 1));
  };
  Part power = x;
  Part all;
  int64_t done = 0;
  for (int64_t width = 1; width <= taps; width *= 2) {
    if ((taps & width) != 0) {
      const Part piece = cut(power, done * dilation, done * dilation + length);
      const bool isFirst = all.name.empty();
      all.name = isFirst ? piece.name : joined(step, join, elem, all.name, piece.name);
      all.dims = piece.dims;
      done += width;
    }
    if (2 * width > taps) break;
    const int64_t apart = width * dilation;
    const int64_t left = power.dims[axis] - apart;
    const Part front = cut(power, 0, left), behind = cut(power, apart, apart + left);
    power = {joined(step, join, elem, front.name, behind.name), front.dims};
  }
  return all;
}

} // namespace candela::import::stablehlo
