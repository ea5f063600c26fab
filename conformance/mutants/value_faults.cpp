// Faults of what: one number of the result at a time, or one operand's numbers on their way in.
#include <algorithm>
#include <cmath>

#include "conformance/mutants/catalogue.h"
#include "conformance/mutants/numbers.h"
#include "core/support/kinds.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

/// One element of the result, as soft made it, and the elements of the operands that it is made of.
struct Cell {
  uint16_t kind, fn;
  bool saturate; ///< attribute of CONVERT
  Elem elem;     ///< of the result
  uint64_t bits;
  std::vector<Elem> elems; ///< of the operands; none where the kind does not go element by element
  std::vector<uint64_t> in;

  double real(size_t i) const { return toReal(elems[i], in[i]); }
  __int128 whole(size_t i) const { return integerOf(elems[i], in[i]); }
  bool isIntegral(size_t i) const { return !isFloat(elems[i]); }
};

using Value = uint64_t (*)(const Cell&);

Catalogue::Run changing(Value value) {
  return [value](Mutation& m) {
    const uint32_t y = m.result();
    const bool free = m.operands() == 0 || cdl_kind_facts(m.kind())->shape[0] == '=';
    std::vector<std::vector<uint64_t>> in;
    const bool whole = free && m.kind() != CDL_KIND_TABLE;
    if (whole)
      forEachIndex(m.view(y), [&](const Index& at) {
        std::vector<uint64_t>& cell = in.emplace_back();
        for (uint32_t v = 0; v < m.operands(); ++v) cell.push_back(m.get(v, at));
      });
    const cdl_code_t code = m.run();
    Cell cell{m.kind(), m.fn(), m.attr(CDL_ATTR_SATURATE, 0) != 0, m.elem(y), 0, {}, {}};
    for (uint32_t v = 0; whole && v < m.operands(); ++v) cell.elems.push_back(m.elem(v));
    size_t next = 0;
    forEachIndex(m.view(y), [&](const Index& at) {
      cell.bits = m.get(y, at);
      if (whole) cell.in = std::move(in[next++]);
      if (const uint64_t bits = value(cell); bits != cell.bits) m.set(y, at, bits);
    });
    return code;
  };
}

// ---- NaN, zeros, subnormals, infinities

uint64_t dropNan(const Cell& c) {
  if (c.kind == CDL_KIND_COMPARE && !c.isIntegral(0))
    return std::isnan(c.real(0)) || std::isnan(c.real(1)) ? 1 : c.bits;
  if (c.kind == CDL_KIND_CONVERT && !c.isIntegral(0) && std::isnan(c.real(0)))
    return isFloat(c.elem) ? fromReal(c.elem, HUGE_VAL) : lowestBits(c.elem);
  if (!isFloat(c.elem) || !std::isnan(toReal(c.elem, c.bits))) return c.bits;
  if (c.kind == CDL_KIND_UNARY) return 0;
  const bool extreme =
      c.kind == CDL_KIND_BINARY && (c.fn == CDL_BINARY_MIN || c.fn == CDL_BINARY_MAX);
  if (!extreme) return c.bits;
  return std::isnan(c.real(0)) ? c.in[1] : c.in[0];
}
uint64_t quietNan(const Cell& c) {
  if (!isFloat(c.elem) || !std::isnan(toReal(c.elem, c.bits))) return c.bits;
  return fromReal(c.elem, std::nan(""));
}
uint64_t plainZero(const Cell& c) {
  return isFloat(c.elem) && toReal(c.elem, c.bits) == 0 ? 0 : c.bits;
}
uint64_t flushed(const Cell& c) { return isSubnormal(c.elem, c.bits) ? 0 : c.bits; }
uint64_t finite(const Cell& c) {
  if (!isFloat(c.elem) || !std::isinf(toReal(c.elem, c.bits))) return c.bits;
  return fromReal(c.elem, std::copysign(largestReal(c.elem), toReal(c.elem, c.bits)));
}
uint64_t looseBool(const Cell& c) { return c.elem == Elem::bool_ && c.bits ? 0xFF : c.bits; }

/// Operands with other numbers in them.
Catalogue::Run feeding(uint64_t (*value)(const Mutation&, Elem, uint64_t)) {
  return [value](Mutation& m) {
    for (uint32_t v = 0; v < m.operands(); ++v)
      forEachIndex(m.view(v), [&](const Index& at) {
        const uint64_t bits = m.get(v, at), fed = value(m, m.elem(v), bits);
        if (fed != bits) m.pretend(v, at, fed);
      });
    return m.run();
  };
}
uint64_t flushOperand(const Mutation&, Elem elem, uint64_t bits) {
  return isSubnormal(elem, bits) ? 0 : bits;
}
/// What minimum and maximum begin with takes NaN's place.
uint64_t skipNan(const Mutation& m, Elem elem, uint64_t bits) {
  const bool scatters = m.kind() == CDL_KIND_SCATTER;
  const bool min = m.fn() == (scatters ? uint16_t(CDL_SCATTER_MIN) : uint16_t(CDL_REDUCE_MIN));
  const bool max = m.fn() == (scatters ? uint16_t(CDL_SCATTER_MAX) : uint16_t(CDL_REDUCE_MAX));
  if (!isFloat(elem) || !(min || max) || !std::isnan(toReal(elem, bits))) return bits;
  return fromReal(elem, min ? HUGE_VAL : -HUGE_VAL);
}

// ---- Rounding

/// What the element is before it is rounded, as far as a double holds it; NaN where that is not
/// known.
double exactly(const Cell& c) {
  if (c.kind == CDL_KIND_CONVERT && isFloat(c.elem))
    return c.isIntegral(0) ? static_cast<double>(c.whole(0)) : c.real(0);
  if (c.kind != CDL_KIND_BINARY || !isFloat(c.elem) || c.elem == Elem::f64_) return std::nan("");
  switch (c.fn) {
  case CDL_BINARY_ADD: return c.real(0) + c.real(1);
  case CDL_BINARY_SUB: return c.real(0) - c.real(1);
  case CDL_BINARY_MUL: return c.real(0) * c.real(1);
  default: return std::nan("");
  }
}
uint64_t truncated(const Cell& c) {
  if (c.kind == CDL_KIND_CONVERT && c.fn == CDL_CONVERT_RNE && !isFloat(c.elem) &&
      !c.isIntegral(0)) {
    const double x = c.real(0);
    return std::abs(x) < 0x1p24 &&
                   integerOf(c.elem, c.bits) == static_cast<__int128>(std::nearbyint(x))
               ? static_cast<uint64_t>(static_cast<int64_t>(std::trunc(x)))
               : c.bits;
  }
  const double x = exactly(c);
  return std::isnan(x) || std::isinf(toReal(c.elem, c.bits)) ? c.bits : towardZero(c.elem, x);
}
/// A sum, difference or product of doubles, and what its rounding took away.
std::pair<double, double> withError(uint16_t fn, double a, double b) {
  if (fn == CDL_BINARY_MUL) return {a * b, std::fma(a, b, -(a * b))};
  if (fn == CDL_BINARY_SUB) b = -b;
  const double sum = a + b, second = sum - a;
  return {sum, (a - (sum - second)) + (b - second)};
}
/// To an integer, of its type or not.
template <Ties ties> uint64_t tiedInteger(const Cell& c) {
  const double x = c.real(0);
  if (x - std::floor(x) != 0.5) return c.bits;
  const double rounded = halfRounded(x, ties);
  if (isFloat(c.elem)) return fromReal(c.elem, rounded);
  const auto whole = static_cast<__int128>(rounded);
  return c.saturate ? clamped(c.elem, whole) : static_cast<uint64_t>(whole) & elemMask(c.elem);
}
template <Ties ties> uint64_t tied(const Cell& c) {
  const bool convert = c.kind == CDL_KIND_CONVERT && c.fn == CDL_CONVERT_RNE && isInteger(c.elem);
  const bool round = c.kind == CDL_KIND_UNARY && c.fn == CDL_UNARY_ROUND_EVEN;
  if ((convert || round) && !c.isIntegral(0)) return tiedInteger<ties>(c);
  const bool isSum = c.kind == CDL_KIND_BINARY &&
                     (c.fn == CDL_BINARY_ADD || c.fn == CDL_BINARY_SUB || c.fn == CDL_BINARY_MUL);
  if (isSum && c.elem == Elem::f64_) {
    const auto [sum, error] = withError(c.fn, c.real(0), c.real(1));
    return fromReal(c.elem, nearestDouble(sum, error, ties));
  }
  const double x = exactly(c);
  const bool isKnown = !std::isnan(x) && !(c.kind == CDL_KIND_CONVERT && c.isIntegral(0) &&
                                           static_cast<__int128>(x) != c.whole(0));
  return isKnown && fromReal(c.elem, x) == c.bits ? nearestReal(c.elem, x, ties) : c.bits;
}
/// Binary digits of the significand of a float that is narrower than f64.
int significandDigits(Elem elem) {
  switch (elem) {
  case Elem::f16_: return 11;
  case Elem::bf16_: return 8;
  default: return 24;
  }
}
uint64_t roundedTwice(const Cell& c) {
  const double x = exactly(c);
  if (c.kind != CDL_KIND_CONVERT || std::isnan(x) || std::isinf(toReal(c.elem, c.bits)))
    return c.bits;
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  const int digits = significandDigits(c.elem) + 2;
  return fromReal(c.elem,
                  std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits));
}

// ---- Integers

uint64_t saturatedBinary(const Cell& c) {
  if (!isInteger(c.elem)) return c.bits;
  const __int128 a = c.whole(0), b = c.whole(1);
  switch (c.fn) {
  case CDL_BINARY_ADD: return clamped(c.elem, a + b);
  case CDL_BINARY_SUB: return clamped(c.elem, a - b);
  case CDL_BINARY_MUL: return clamped(c.elem, a * b);
  default: return c.bits;
  }
}
uint64_t saturatedConvert(const Cell& c) {
  if (!isInteger(c.elem) || c.saturate) return c.bits;
  if (c.isIntegral(0)) return clamped(c.elem, c.whole(0));
  const double x = c.real(0);
  if (std::isnan(x)) return c.bits;
  const IntegerRange range = integerRange(c.elem);
  if (x > static_cast<double>(range.highest)) return static_cast<uint64_t>(range.highest);
  if (x < static_cast<double>(range.lowest)) return static_cast<uint64_t>(range.lowest);
  return c.bits;
}
uint64_t moduloShift(const Cell& c) {
  if (!isInteger(c.elem) || (c.fn != CDL_BINARY_SHL && c.fn != CDL_BINARY_SHR)) return c.bits;
  const auto by = static_cast<int>(c.in[1] & static_cast<uint64_t>(elemBits(c.elem) - 1));
  return c.fn == CDL_BINARY_SHL ? c.in[0] << by
                                : static_cast<uint64_t>(static_cast<int64_t>(c.whole(0) >> by));
}
uint64_t onesByZero(const Cell& c) {
  return c.fn == CDL_BINARY_DIV && isInteger(c.elem) && c.in[1] == 0 ? ~uint64_t(0) : c.bits;
}
uint64_t clampedQuotient(const Cell& c) {
  if (c.fn != CDL_BINARY_DIV || !isSigned(c.elem) || c.whole(1) != -1) return c.bits;
  return clamped(c.elem, -c.whole(0));
}

// ---- The instruction altered

Catalogue::Run swapping(uint32_t a, uint32_t b) {
  return [a, b](Mutation& m) {
    if (a < m.operands() && b < m.operands() && m.elem(a) == m.elem(b))
      std::swap(m.altered(a), m.altered(b));
    return m.run();
  };
}
cdl_code_t firstFunction(Mutation& m) {
  m.instr().fn = 0;
  return m.run();
}
Catalogue::Run forgetting(uint16_t attr) {
  return [attr](Mutation& m) {
    const Elem elem = m.elem(m.result());
    int64_t value = 0;
    if (attr == CDL_ATTR_CLAMP_MIN && isInteger(elem))
      value = static_cast<int64_t>(integerRange(elem).lowest);
    if (attr == CDL_ATTR_CLAMP_MAX && isInteger(elem))
      value = static_cast<int64_t>(integerRange(elem).highest);
    m.setAttr(attr, value);
    return m.run();
  };
}
cdl_code_t takeForSigned(Mutation& m) {
  const bool resultToo = m.kind() == CDL_KIND_SCATTER || m.kind() == CDL_KIND_REDUCE;
  for (uint32_t v = 0; v <= m.result(); ++v)
    if (m.elem(v) == Elem::u8_ && (v < m.operands() || (v == m.result() && resultToo)) &&
        !(m.kind() == CDL_KIND_TABLE && v > 0) && !(m.hasExpr() && v == m.result()))
      m.altered(v).elem = CDL_I8;
  return m.run();
}

} // namespace

void addValueFaults(Catalogue& catalogue) {
  const auto each = [&](std::string_view faultClass, Value value,
                        std::initializer_list<const char*> kinds) {
    for (const char* kind : kinds) catalogue.add(faultClass, kind, changing(value));
  };
  each("nan_dropped", dropNan, {"convert", "binary", "compare", "unary"});
  for (const char* kind : {"scatter", "reduce"})
    catalogue.add("nan_dropped", kind, feeding(skipNan));
  each("nan_payload", quietNan, {"copy", "fill", "select", "gather"});
  each("minus_zero", plainZero, {"copy", "fill", "convert", "binary", "select", "gather", "unary"});
  const auto floats = {"copy",   "fill",    "convert", "binary", "select",
                       "gather", "scatter", "reduce",  "matmul", "unary"};
  each("denormals_flushed", flushed, floats);
  each("infinity_lost", finite, floats);
  for (const char* kind : {"copy", "convert", "binary", "compare", "select", "gather", "scatter",
                           "reduce", "matmul", "unary"})
    catalogue.add("denormal_operands", kind, feeding(flushOperand));
  each("loose_bools", looseBool, {"convert", "binary", "compare", "scatter", "reduce"});
  each("truncated", truncated, {"convert", "binary"});
  each("half_up", tied<Ties::up>, {"convert", "binary", "unary"});
  each("half_away", tied<Ties::away>, {"convert", "binary", "unary"});
  each("rounded_twice", roundedTwice, {"convert"});
  each("overflow_saturates", saturatedBinary, {"binary"});
  each("overflow_saturates", saturatedConvert, {"convert"});
  catalogue.add("no_saturation", "convert", forgetting(CDL_ATTR_SATURATE));
  each("wide_shift", moduloShift, {"binary"});
  each("divide_by_zero", onesByZero, {"binary"});
  each("lowest_by_minus_one", clampedQuotient, {"binary"});
  for (const char* kind : {"convert", "compare", "scatter", "reduce", "matmul", "rescale", "table"})
    catalogue.add("unsigned_as_signed", kind, takeForSigned);
  for (const char* kind : {"binary", "compare"})
    catalogue.add("swapped_operands", kind, swapping(0, 1));
  catalogue.add("swapped_operands", "select", swapping(1, 2));
  catalogue.add("swapped_operands", "rescale", swapping(2, 3), "shift_zero");
  catalogue.add("swapped_operands", "rescale", swapping(0, 4), "a_b");
  catalogue.add("swapped_operands", "rescale", swapping(1, 5), "multipliers");
  for (const char* kind : {"convert", "binary", "compare", "gather", "scatter", "reduce", "unary"})
    catalogue.add("function_ignored", kind, firstFunction);
  for (const Subject& subject : subjects())
    for (uint16_t attr = 1; cdl_attr_facts(attr); ++attr)
      if (subject.kind && cdl_kind_has_attr(subject.kind, attr))
        catalogue.add("attribute_ignored", subject.name, forgetting(attr),
                      std::string(attrName(attr)));
}

} // namespace candela::conformance::mutants
