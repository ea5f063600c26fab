#include <algorithm>
#include <cmath>
#include <optional>

#include "core/reference/interp/machine.h"

namespace candela::interp {

using program::View;

namespace {

Scalar add(Elem elem, const Scalar& a, const Scalar& b) { return binary(CDL_BINARY_ADD, elem, a, b); }
Scalar multiply(Elem elem, const Scalar& a, const Scalar& b) { return binary(CDL_BINARY_MUL, elem, a, b); }

/// The function on every element of operands that are all alike.
template <typename Function> void mapElements(Call& call, const Function& function) {
  std::vector<Values> in;
  for (size_t i = 0; i < call.instr.inputs.size(); ++i) in.push_back(call.input(i));
  Values y(call.instr.outputs[0].elem, call.instr.outputs[0].dims);
  for (size_t i = 0; i < y.items.size() && !call.failed(); ++i)
    y.items[i] = function([&](size_t operand) -> const Scalar& { return in[operand].items[i]; });
  call.write(y);
}

void copy(Call& call) {
  mapElements(call, [](const auto& in) { return in(0); });
}

void fillWith(Call& call) {
  const Elem elem = call.instr.outputs[0].elem;
  const auto bits = static_cast<uint64_t>(call.instr.attr(CDL_ATTR_VALUE)->values[0]);
  mapElements(call, [&](const auto&) { return decode(elem, bits); });
}

void convertAll(Call& call) {
  const Elem from = call.instr.inputs[0].elem, to = call.instr.outputs[0].elem;
  const bool saturate = call.instr.intAttr(CDL_ATTR_SATURATE, 0) != 0;
  mapElements(call, [&](const auto& in) { return interp::convert(call.instr.fn, saturate, from, in(0), to); });
}

void gather(Call& call) {
  const View &x = call.instr.inputs[0], &y = call.instr.outputs[0];
  const Values index = call.input(1);
  Values result(y.elem, y.dims);
  for (int64_t o = 0; o < y.dims[0]; ++o)
    for (int64_t k = 0; k < y.dims[1]; ++k)
      for (int64_t i = 0; i < y.dims[2] && !call.failed(); ++i) {
        const __int128 wanted = index.at(k).whole, last = x.dims[1] - 1;
        const bool outside = wanted < 0 || wanted > last;
        if (outside && call.instr.fn == CDL_GATHER_ZERO) continue;
        const auto n = static_cast<int64_t>(std::clamp<__int128>(wanted, 0, last));
        result.at(o, k, i) = call.readAt(x, {o, n, i});
      }
  call.write(result);
}

uint16_t scatterFn(uint16_t fn) {
  switch (fn) {
  case CDL_SCATTER_ADD: return CDL_BINARY_ADD;
  case CDL_SCATTER_MIN: return CDL_BINARY_MIN;
  case CDL_SCATTER_MAX: return CDL_BINARY_MAX;
  default: return CDL_BINARY_MUL;
  }
}

/// y is touched only where an index points; what is not set is read.
void scatter(Call& call) {
  const View& y = call.instr.outputs[0];
  const Values index = call.input(0), updates = call.input(1);
  for (int64_t o = 0; o < updates.dim(0); ++o)
    for (int64_t k = 0; k < updates.dim(1); ++k)
      for (int64_t i = 0; i < updates.dim(2) && !call.failed(); ++i) {
        const __int128 wanted = index.at(k).whole;
        if (wanted < 0 || wanted >= y.dims[1]) continue;
        const auto n = static_cast<int64_t>(wanted);
        Scalar value = updates.at(o, k, i);
        if (call.instr.fn != CDL_SCATTER_SET)
          value = binary(scatterFn(call.instr.fn), y.elem, call.readAt(y, {o, n, i}), value);
        call.writeAt(y, {o, n, i}, encode(y.elem, value));
      }
}

Scalar identity(uint16_t fn, Elem elem) {
  switch (fn) {
  case CDL_REDUCE_SUM: return {0, 0};
  case CDL_REDUCE_PROD: return {1, 1};
  case CDL_REDUCE_MAX: return lowest(elem);
  default: return highest(elem);
  }
}

void reduce(Call& call) {
  static constexpr uint16_t kFns[] = {CDL_BINARY_ADD, CDL_BINARY_MAX, CDL_BINARY_MIN, CDL_BINARY_MUL};
  const Values x = call.input(0);
  const bool boolean = x.elem == Elem::bool_;
  const Elem own = call.instr.expr.empty() || boolean ? x.elem : accumulatorElem(call.instr, x.elem);
  Values y(own, {x.dim(0), x.dim(2)});
  for (int64_t o = 0; o < x.dim(0); ++o)
    for (int64_t i = 0; i < x.dim(2); ++i) {
      Scalar acc = identity(call.instr.fn, x.elem);
      for (int64_t r = 0; r < x.dim(1); ++r) {
        acc = binary(kFns[call.instr.fn], x.elem, acc, x.at(o, r, i));
        if (!isFloat(x.elem)) acc = rounded(x.elem, acc); // wraps; bool: whatever is not 0
      }
      y.at(o, i) = acc;
    }
  call.finish(y);
}

void matmul(Call& call) {
  const Values a = call.logicalInput(0), b = call.logicalInput(1);
  const size_t operands = call.instr.operandCount();
  const Values aZero = operands > 2 ? call.input(2) : Values(a.elem, {1});
  const Values bZero = operands > 3 ? call.input(3) : Values(b.elem, {1});
  const View& y = call.instr.outputs[0];
  const Elem own = call.instr.expr.empty() ? y.elem : accumulatorElem(call.instr, y.elem);
  Values result = unblocked(call.instr.inout ? call.read(y) : Values(own, y.dims), y);
  // What a block has over is nobody's.
  const int64_t batch = std::min({result.dim(0), a.dim(0), b.dim(0)}), rows = std::min(result.dim(1), a.dim(1));
  for (int64_t n = 0; n < batch && !call.failed(); ++n)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < std::min(result.dim(2), b.dim(2)); ++j) {
        Scalar sum;
        for (int64_t k = 0; k < std::min(a.dim(2), b.dim(1)); ++k) {
          Scalar left = a.at(n, i, k), right = b.at(n, k, j);
          left.whole -= aZero.at(0).whole;
          right.whole -= bZero.at(bZero.items.size() > 1 ? j : 0).whole;
          sum = add(own, sum, multiply(own, left, right));
          if (!isFloat(own)) sum = rounded(own, sum);
        }
        result.at(n, i, j) = add(own, result.at(n, i, j), sum);
      }
  call.finish(result);
}

void rescale(Call& call) {
  const program::Instr& instr = call.instr;
  const Elem elem = instr.outputs[0].elem;
  const IntegerRange range = integerRange(elem);
  const int64_t ka = instr.intAttr(CDL_ATTR_A_LEFT_SHIFT, 0), kb = instr.intAttr(CDL_ATTR_B_LEFT_SHIFT, 0);
  const __int128 low = instr.attr(CDL_ATTR_CLAMP_MIN) ? instr.intAttr(CDL_ATTR_CLAMP_MIN, 0) : range.lowest;
  const __int128 high = instr.attr(CDL_ATTR_CLAMP_MAX) ? instr.intAttr(CDL_ATTR_CLAMP_MAX, 0) : range.highest;
  const bool two = instr.inputs.size() == 6;
  const auto product = [](const Scalar& value, const Scalar& multiplier, int64_t shift) {
    return value.whole * multiplier.whole * (static_cast<__int128>(1) << shift);
  };
  mapElements(call, [&](const auto& in) -> Scalar {
    const __int128 shift = in(2).whole;
    if (shift < 0) {
      call.fail(badModel("shift {} is negative", static_cast<int64_t>(shift)));
      return {};
    }
    __int128 sum = product(in(0), in(1), ka);
    if (two) sum += product(in(4), in(5), kb);
    const __int128 value = reference::shiftRightEven(sum, static_cast<int64_t>(shift)) + in(3).whole;
    return {0, std::clamp(value, low, high)};
  });
}

void table(Call& call) {
  const Values entries = call.input(1), x = call.input(0);
  Values y(call.instr.outputs[0].elem, x.dims);
  for (size_t i = 0; i < y.items.size() && !call.failed(); ++i) {
    const auto position = static_cast<int64_t>(x.items[i].whole - integerRange(x.elem).lowest);
    if (x.elem != Elem::i16_) {
      y.items[i] = entries.at(position);
      continue;
    }
    const __int128 base = entries.at(position >> 7).whole, next = entries.at((position >> 7) + 1).whole;
    y.items[i].whole = base + (((next - base) * (position & 127) + 64) >> 7);
  }
  call.write(y);
}

} // namespace

Elem accumulatorElem(const program::Instr& instr, Elem otherwise) {
  for (const program::Step& step : instr.expr)
    for (const program::Operand& operand : step.in)
      if (operand.source == program::Operand::Source::acc) return operand.elem;
  return otherwise;
}

void runPrimitive(Call& call) {
  const program::Instr& instr = call.instr;
  const Elem elem = instr.inputs.empty() ? Elem::none : instr.inputs[0].elem;
  switch (instr.kind) {
  case CDL_KIND_COPY: return copy(call);
  case CDL_KIND_FILL: return fillWith(call);
  case CDL_KIND_CONVERT: return convertAll(call);
  case CDL_KIND_BINARY: return mapElements(call, [&](const auto& in) { return binary(instr.fn, elem, in(0), in(1)); });
  case CDL_KIND_COMPARE:
    return mapElements(call, [&](const auto& in) { return Scalar{0, compare(instr.fn, elem, in(0), in(1))}; });
  case CDL_KIND_SELECT: return mapElements(call, [](const auto& in) { return in(0).whole ? in(1) : in(2); });
  case CDL_KIND_GATHER: return gather(call);
  case CDL_KIND_SCATTER: return scatter(call);
  case CDL_KIND_REDUCE: return reduce(call);
  case CDL_KIND_MATMUL: return matmul(call);
  case CDL_KIND_UNARY: return mapElements(call, [&](const auto& in) { return unary(instr.fn, elem, in(0)); });
  case CDL_KIND_RESCALE: return rescale(call);
  default: return table(call);
  }
}

} // namespace candela::interp
