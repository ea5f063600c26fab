#include "conformance/judge/elementwise_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/judge/element_rule.h"
#include "core/reference/kinds.h"
#include "core/support/float_bits.h"

namespace candela::conformance::judge {
namespace {

using program::Buffer, program::Instr, program::Program, program::Role, program::View;
using reference::Scalar;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Where the elements of a view lie, loops around it counted as its outermost dims.
std::vector<int64_t> stridesOf(const Program& program, const Instr& instr, const View& view) {
  std::vector<int64_t> strides;
  for (uint32_t l = instr.loop; l != program::kNone; l = program.loops[l].parent)
    strides.push_back(0);
  for (size_t d = 0; d < strides.size(); ++d) strides[d] = view.ivStrides[d];
  strides.insert(strides.end(), view.strides.begin(), view.strides.end());
  return strides;
}

Shape dimsOf(const Program& program, const Instr& instr) {
  Shape dims;
  for (uint32_t l = instr.loop; l != program::kNone; l = program.loops[l].parent)
    dims.insert(dims.begin(), static_cast<int64_t>(program.loops[l].trip));
  const Shape& own = instr.outputs[0].dims;
  dims.insert(dims.end(), own.begin(), own.end());
  return dims;
}

/// What an element of the result may be.
struct Range {
  double value = 0;      ///< of floats: the oracle's, before rounding
  double lo = 0, hi = 0; ///< both NaN: NaN
  reference::Whole whole = 0;
  bool isWild = false;
};

class Elementwise {
public:
  Elementwise(const Instr& instr, uint32_t deviceFlags)
      : kind_(instr.kind), fn_(instr.fn), to_(instr.outputs[0].elem),
        from_(instr.inputs.empty() ? to_ : instr.inputs.back().elem),
        function_{kind_, fn_, from_, to_, instr.intAttr(CDL_ATTR_SATURATE, 0) != 0},
        rule_(elementRule(kind_, fn_, to_)), flushesIn_(flushes(from_, deviceFlags)),
        flushesOut_(flushes(to_, deviceFlags)) {}

  bool moves() const {
    return kind_ == CDL_KIND_COPY || kind_ == CDL_KIND_FILL || kind_ == CDL_KIND_SELECT;
  }
  /// Whether one bit pattern is right, and no other.
  bool isBits() const { return moves() || (!isFloat(to_) && !flushesIn_); }

  /// Of what isBits().
  uint64_t bits(const uint64_t* in, const Scalar* operands, uint64_t filled) const {
    if (kind_ == CDL_KIND_FILL) return filled;
    if (kind_ == CDL_KIND_COPY) return in[0];
    if (kind_ == CDL_KIND_SELECT) return in[0] ? in[1] : in[2];
    return reference::encode(to_, reference::apply(function_, operands));
  }

  /// Whether the sign of this result counts, a zero: where it was rounded. Of two zeros min and max
  /// give either.
  bool isSigned(const Range& range) const {
    const bool isEither =
        kind_ == CDL_KIND_BINARY && (fn_ == CDL_BINARY_MIN || fn_ == CDL_BINARY_MAX);
    return rule_.kind == ElementRule::Kind::rounded && range.lo == 0 && range.hi == 0 &&
           !isEither && !flushesIn_ && !flushesOut_;
  }

  /// Of the others. Where a device may flush operands, of each of them with zeros in their place
  /// too.
  Range range(const Scalar* operands, size_t count) const {
    Range all = of(operands);
    if (!flushesIn_) return all;
    Scalar flushed[3];
    for (unsigned which = 1; which < 1u << count; ++which) {
      bool changed = false;
      for (size_t i = 0; i < count; ++i) {
        flushed[i] = operands[i];
        if (!(which >> i & 1) || !isDenormal(from_, operands[i].real)) continue;
        flushed[i].real = std::copysign(0.0, operands[i].real);
        changed = true;
      }
      if (changed) include(all, of(flushed));
    }
    return all;
  }

private:
  static bool flushes(Elem elem, uint32_t flags) {
    return (elem == Elem::f32_ && (flags & CDL_DEVICE_FTZ_F32)) ||
           (elem == Elem::f16_ && (flags & CDL_DEVICE_FTZ_F16));
  }
  static bool isDenormal(Elem elem, double value) {
    return value != 0 && std::abs(value) < leastNormalOf(elem);
  }

  void include(Range& all, const Range& one) const {
    if (isFloat(to_)) {
      all.isWild |= std::isnan(all.lo) != std::isnan(one.lo);
      all.lo = std::min(all.lo, one.lo);
      all.hi = std::max(all.hi, one.hi);
    } else {
      all.isWild |= all.whole != one.whole;
    }
  }

  static bool isSignaling(double value) {
    return std::isnan(value) && !(std::bit_cast<uint64_t>(value) >> 51 & 1);
  }

  Range of(const Scalar* operands) const {
    const Scalar value = reference::apply(function_, operands);
    Range range;
    range.isWild = isBeyondDomain(operands);
    if (!isFloat(to_)) {
      range.whole = reference::wrap(to_, value.whole);
      return range;
    }
    range.value = range.lo = range.hi = value.real;
    if (!std::isnan(value.real)) allow(range);
    if (flushesOut_ && (isDenormal(to_, range.lo) || isDenormal(to_, range.hi))) {
      range.lo = std::min(range.lo, 0.0);
      range.hi = std::max(range.hi, 0.0);
    }
    return range;
  }

  /// Around the exact number what the rule allows. A result beyond the largest number is infinite,
  /// and one whose tolerance ends there may be.
  void allow(Range& range) const {
    const double y = range.lo;
    const double rounded = reference::roundReal(to_, y);
    range.lo = range.hi = rounded;
    if (rule_.kind == ElementRule::Kind::rounded || std::isinf(y)) return;
    const double step =
        ulpAt(to_, std::isinf(rounded) ? y : std::max(std::abs(y), std::abs(rounded)));
    double slack = rule_.kind == ElementRule::Kind::ulp
                       ? rule_.ulp * step
                       : functionUnits(kind_, fn_, to_, std::abs(y)) * unitOf(to_) * std::abs(y) +
                             leastOf(to_);
    if (to_ == Elem::f64_) slack += step; // the oracle's own
    // A correct rounding is always right.
    range.lo = std::min(rounded, inward(y - slack));
    range.hi = std::max(rounded, inward(y + slack));
  }
  /// The end of an interval; infinite where that is what it rounds to.
  double inward(double end) const {
    const double rounded = reference::roundReal(to_, end);
    return std::isinf(rounded) ? rounded : end;
  }

  /// Where a period is shorter than what the last digit of x tells; and the power of a signaling
  /// NaN, which is 1 where it has become a quiet one before.
  bool isBeyondDomain(const Scalar* operands) const {
    if (kind_ == CDL_KIND_BINARY && fn_ == CDL_BINARY_POW)
      return isFloat(to_) && (isSignaling(operands[0].real) || isSignaling(operands[1].real));
    if (kind_ != CDL_KIND_UNARY) return false;
    if (fn_ != CDL_UNARY_SIN && fn_ != CDL_UNARY_COS && fn_ != CDL_UNARY_TAN) return false;
    return std::abs(operands[0].real) >= (to_ == Elem::f64_ ? 0x1p49 : 0x1p20);
  }

  uint16_t kind_, fn_;
  Elem to_, from_;
  reference::Function function_;
  ElementRule rule_;
  bool flushesIn_, flushesOut_;
};

/// What the buffers hold before the run.
struct Contents {
  std::vector<Bytes> before; ///< by buffer
  /// Of the results; each begins as a copy of `before`, so that what lies in place of an operand is
  /// read first.
  Expectation expected;
  size_t written = 0; ///< which of the results the instruction writes
};

Result<Contents> contentsOf(const Program& program, std::span<const Tensor> inputs, bool isBits) {
  Contents contents;
  const size_t target = program.instrs[0].outputs[0].buffer;
  size_t next = 0;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Bytes& before = contents.before.emplace_back();
    if (buffer.role == Role::constant) {
      const Payload& payload = program.constants[buffer.constant].payload;
      CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
      before = tensor.bytes;
    } else if (buffer.role == Role::output) {
      CDL_ASSIGN(before, Bytes::allocate(buffer.bytes));
    } else {
      if (next == inputs.size())
        return badArgument("{} inputs given, none for '{}'", next, buffer.name);
      before = inputs[next++].bytes;
    }
    if (before.size() < buffer.bytes) return badArgument("too few bytes for '{}'", buffer.name);
    if (buffer.role == Role::input || buffer.role == Role::constant) continue;
    Expectation& expected = contents.expected;
    if (b == target) contents.written = expected.outputs.size();
    auto [elem, dims] = program.contentType(b);
    expected.outputs.push_back({elem, std::move(dims), Bytes::copyOf(before.data(), buffer.bytes)});
    expected.bits.push_back(b != target || isBits);
    expected.intervals.emplace_back();
    expected.exact.emplace_back();
  }
  return contents;
}

/// Calls `visit(place of the result, bits of the operands)` for each element of the result.
template <typename Visit>
void forEachElement(const Program& program, const std::vector<Bytes>& before, Visit visit) {
  const Instr& instr = program.instrs[0];
  std::vector<int64_t> starts{instr.outputs[0].offset};
  std::vector<reference::Strides> strides{stridesOf(program, instr, instr.outputs[0])};
  for (const View& x : instr.inputs) {
    starts.push_back(x.offset);
    strides.push_back(stridesOf(program, instr, x));
  }
  uint64_t in[3] = {};
  reference::forEach(dimsOf(program, instr), strides, [&](const int64_t* at) {
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      const View& x = instr.inputs[i];
      in[i] = loadElement(x.elem, before[x.buffer].data(), starts[i + 1] + at[i + 1]);
    }
    visit(starts[0] + at[0], in);
  });
}

void expectBits(const Program& program, const Elementwise& semantics, Contents& contents) {
  const Instr& instr = program.instrs[0];
  const program::Attr* value = instr.attr(CDL_ATTR_VALUE);
  const uint64_t filled = value ? static_cast<uint64_t>(value->values[0]) : 0;
  const bool decodes = !semantics.moves();
  Tensor& y = contents.expected.outputs[contents.written];
  std::byte* out = y.bytes.mutableData();
  Scalar operands[3];
  forEachElement(program, contents.before, [&](int64_t element, const uint64_t* in) {
    for (size_t i = 0; decodes && i < instr.inputs.size(); ++i)
      operands[i] = reference::decode(instr.inputs[i].elem, in[i]);
    storeElement(y.elem, out, element, semantics.bits(in, operands, filled));
  });
}

Status expectRanges(const Program& program, const Elementwise& semantics, Contents& contents) {
  const Instr& instr = program.instrs[0];
  Tensor& y = contents.expected.outputs[contents.written];
  Interval& interval = contents.expected.intervals[contents.written];
  std::vector<bool>& exact = contents.expected.exact[contents.written];
  CDL_ASSIGN(interval, Interval::of(y));
  exact.assign(static_cast<size_t>(y.count()), isFloat(y.elem)); // what the view leaves alone
  std::byte* out = y.bytes.mutableData();
  Scalar operands[3];
  forEachElement(program, contents.before, [&](int64_t element, const uint64_t* in) {
    for (size_t i = 0; i < instr.inputs.size(); ++i)
      operands[i] = reference::decode(instr.inputs[i].elem, in[i]);
    const Range range = semantics.range(operands, instr.inputs.size());
    storeElement(y.elem, out, element, reference::encode(y.elem, {range.value, range.whole}));
    if (isFloat(y.elem)) {
      interval.lo.real[element] = range.lo;
      interval.hi.real[element] = range.hi;
    } else {
      interval.lo.whole[element] = interval.hi.whole[element] = range.whole;
    }
    exact[static_cast<size_t>(element)] =
        isFloat(y.elem) && semantics.isSigned(range) && !range.isWild;
    if (range.isWild) interval.makeWild(element);
  });
  return Status::ok();
}

} // namespace

bool isElementwiseKind(uint16_t kind) {
  return kind == CDL_KIND_COPY || kind == CDL_KIND_FILL || kind == CDL_KIND_CONVERT ||
         kind == CDL_KIND_UNARY || kind == CDL_KIND_BINARY || kind == CDL_KIND_COMPARE ||
         kind == CDL_KIND_SELECT;
}

Result<Expectation> elementwiseBounds(const Program& program, std::span<const Tensor> inputs,
                                      uint32_t deviceFlags) {
  if (program.instrs.size() != 1 || !isElementwiseKind(program.instrs[0].kind))
    return failure(Code::unsupported, "element-wise bounds of another program");
  const Elementwise semantics(program.instrs[0], deviceFlags);
  CDL_ASSIGN(Contents contents, contentsOf(program, inputs, semantics.isBits()));
  if (semantics.isBits())
    expectBits(program, semantics, contents);
  else
    CDL_TRY(expectRanges(program, semantics, contents));
  return std::move(contents.expected);
}

} // namespace candela::conformance::judge
