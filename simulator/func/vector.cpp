#include <algorithm>

#include "simulator/func/execution.h"

namespace candela::npu {
namespace {

/// One operand of a walk over runs.
struct Operand {
  std::string_view name;
  int64_t at, stride1, stride2;
  Type type;
  int64_t elements; ///< of a run

  int64_t runBytes() const { return elements * bytesOf(type); }
  int64_t of(int64_t j, int64_t i) const { return at + j * stride2 + i * stride1; }
  Interval box(const Lanes& l) const { return {at, (l.len2 - 1) * stride2 + (l.len1 - 1) * stride1 + runBytes()}; }
  bool walksLike(const Operand& other) const {
    return at == other.at && stride1 == other.stride1 && stride2 == other.stride2 && runBytes() == other.runBytes();
  }
};

void needAligned(const Operand& o) { needAligned(o.name, o.type, o.at, o.stride1, o.stride2); }

void needInput(Execution& e, const Lanes& l, const Operand& in, const Operand& out) {
  needAligned(in);
  const Interval box = in.box(l);
  e.memory.range(in.name, box.from, box.bytes);
  if (!in.walksLike(out) && box.touches(out.box(l)))
    raise(FaultKind::kInstruction, "{} {:#x} and dst {:#x} overlap without being the same", in.name, in.at, out.at);
}

void needOutput(Execution& e, const Lanes& l, const Operand& out) {
  needAligned(out);
  const Interval box = out.box(l);
  e.memory.range("dst", box.from, box.bytes);
  needDisjoint("dst", out.runBytes(), {{l.len1, out.stride1}, {l.len2, out.stride2}});
}

/// run(j, i) for each run.
template <typename Run> void eachRun(const Lanes& l, Run run) {
  for (int64_t j = 0; j < l.len2; ++j)
    for (int64_t i = 0; i < l.len1; ++i) run(j, i);
}

int32_t plainBinary(BinaryFn fn, int32_t a, int32_t b) {
  switch (fn) {
  case BinaryFn::kAdd: return cdl_add_i32(a, b);
  case BinaryFn::kSub: return cdl_sub_i32(a, b);
  case BinaryFn::kMul: return cdl_mul_i32(a, b);
  case BinaryFn::kMin: return cdl_min_i32(a, b);
  case BinaryFn::kMax: return cdl_max_i32(a, b);
  case BinaryFn::kEqual: return a == b;
  case BinaryFn::kLess: return a < b;
  default: return a <= b;
  }
}

void binary(Execution& e, const Lanes& l) {
  namespace f = field::vbinary;
  const auto fn = static_cast<BinaryFn>(e[f::kFn]);
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, l.run};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  const Operand b{"b", e[f::kB], l.b1, l.b2, l.bType, l.bScalar ? 1 : l.run};
  needOutput(e, l, out);
  needInput(e, l, a, out);
  needInput(e, l, b, out);
  const bool isScaled = fn == BinaryFn::kScaledAdd || fn == BinaryFn::kScaledMul;
  Rescale r{};
  Bounds bounds{};
  if (isScaled) {
    r = rescaleOf(e.second, e.configuration);
    bounds = boundsOf(r, l.outType);
    needShift("a_shift", r.aShift, l.aType);
    needShift("b_shift", r.bShift, l.bType);
    needZero("a_zp", r.aZero, l.aType);
    needZero("b_zp", r.bZero, l.bType);
    if (fn == BinaryFn::kScaledMul && (l.aType == Type::kI32 || l.bType == Type::kI32))
      raise(FaultKind::kInstruction, "scaled_mul takes no i32");
    if (fn == BinaryFn::kScaledMul && (l.aType == Type::kI16 || l.bType == Type::kI16) && r.aShift > 6)
      raise(FaultKind::kInstruction, "a_shift is {}, of a product with i16 up to 6", r.aShift);
  }
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int aBytes = bytesOf(l.aType), bBytes = l.bScalar ? 0 : bytesOf(l.bType), outBytes = bytesOf(l.outType);
  eachRun(l, [&](int64_t j, int64_t i) {
    const int64_t from = a.of(j, i), other = b.of(j, i), to = out.of(j, i);
    e.memory.reads(from, a.runBytes(), e.accessor);
    e.memory.reads(other, b.runBytes(), e.accessor);
    e.memory.writes(to, out.runBytes(), e.accessor);
    for (int64_t c = 0; c < l.run; ++c) {
      const int32_t x = elementAt(s + from + c * aBytes, l.aType), y = elementAt(s + other + c * bBytes, l.bType);
      int64_t value;
      if (!isScaled)
        value = plainBinary(fn, x, y);
      else if (fn == BinaryFn::kScaledAdd)
        value = cdl_rescale2(int64_t{x} - r.aZero, int64_t{y} - r.bZero, r.aMult, r.bMult, r.aShift, r.bShift, r.shift,
                             bounds.zero, bounds.low, bounds.high);
      else
        value = cdl_rescale1((int64_t{x} - r.aZero) * (y - r.bZero), r.aMult, r.aShift, r.shift, bounds.zero,
                             bounds.low, bounds.high);
      storeElement(s + to + c * outBytes, l.outType, static_cast<int32_t>(value));
    }
  });
}

void unary(Execution& e, const Lanes& l) {
  namespace f = field::vunary;
  const auto fn = static_cast<UnaryFn>(e[f::kFn]);
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, l.run};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  needOutput(e, l, out);
  needInput(e, l, a, out);
  Rescale r{};
  Bounds bounds{};
  if (fn == UnaryFn::kRescale) {
    r = rescaleOf(e.second, e.configuration);
    bounds = boundsOf(r, l.outType);
    needShift("a_shift", r.aShift, l.aType);
    needZero("a_zp", r.aZero, l.aType);
  }
  const int64_t table = e[f::kB];
  if (fn == UnaryFn::kTable) {
    if (l.aType == Type::kI32 || l.outType == Type::kI32 || (l.aType == Type::kI16) != (l.outType == Type::kI16))
      raise(FaultKind::kInstruction, "a table maps bytes to bytes, or i16 to i16");
    const int64_t bytes = tableBytes(l.aType);
    needAligned("b", l.aType, table, 0, 0);
    e.memory.range("b", table, bytes);
    if (Interval{table, bytes}.touches(out.box(l)))
      raise(FaultKind::kInstruction, "the table {:#x} and dst {:#x} overlap", table, out.at);
    e.memory.reads(table, bytes, e.accessor);
  }
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int aBytes = bytesOf(l.aType), outBytes = bytesOf(l.outType);
  eachRun(l, [&](int64_t j, int64_t i) {
    const int64_t from = a.of(j, i), to = out.of(j, i);
    e.memory.reads(from, a.runBytes(), e.accessor);
    e.memory.writes(to, out.runBytes(), e.accessor);
    for (int64_t c = 0; c < l.run; ++c) {
      const int32_t x = elementAt(s + from + c * aBytes, l.aType);
      int32_t value = x;
      switch (fn) {
      case UnaryFn::kCopy: break;
      case UnaryFn::kNeg: value = cdl_neg_i32(x); break;
      case UnaryFn::kAbs: value = cdl_abs_i32(x); break;
      case UnaryFn::kTable: value = tableAt(s + table, l.aType, x); break;
      case UnaryFn::kRescale:
        value = static_cast<int32_t>(
            cdl_rescale1(int64_t{x} - r.aZero, r.aMult, r.aShift, r.shift, bounds.zero, bounds.low, bounds.high));
        break;
      }
      storeElement(s + to + c * outBytes, l.outType, value);
    }
  });
}

void reduce(Execution& e, const Lanes& l) {
  namespace f = field::vreduce;
  const auto fn = static_cast<ReduceFn>(e[f::kFn]);
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, 1};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  needOutput(e, l, out);
  needInput(e, l, a, out);
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int aBytes = bytesOf(l.aType);
  eachRun(l, [&](int64_t j, int64_t i) {
    const int64_t from = a.of(j, i), to = out.of(j, i);
    e.memory.reads(from, a.runBytes(), e.accessor);
    e.memory.writes(to, out.runBytes(), e.accessor);
    int32_t value = elementAt(s + from, l.aType);
    for (int64_t c = 1; c < l.run; ++c) {
      const int32_t x = elementAt(s + from + c * aBytes, l.aType);
      value = fn == ReduceFn::kSum   ? cdl_add_i32(value, x)
              : fn == ReduceFn::kMin ? cdl_min_i32(value, x)
                                     : cdl_max_i32(value, x);
    }
    storeElement(s + to, l.outType, value);
  });
}

void select(Execution& e, const Lanes& l) {
  namespace f = field::vselect;
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, l.run};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  const Operand b{"b", e[f::kB], l.b1, l.b2, l.bType, l.bScalar ? 1 : l.run};
  if (l.aType != Type::kU8 || l.bType != l.outType)
    raise(FaultKind::kInstruction, "the condition is u8, and b has the type of dst");
  needOutput(e, l, out);
  needInput(e, l, a, out);
  needInput(e, l, b, out);
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int bytes = bytesOf(l.outType);
  eachRun(l, [&](int64_t j, int64_t i) {
    const int64_t from = a.of(j, i), other = b.of(j, i), to = out.of(j, i);
    e.memory.reads(from, a.runBytes(), e.accessor);
    e.memory.reads(other, b.runBytes(), e.accessor);
    e.memory.reads(to, out.runBytes(), e.accessor);
    e.memory.writes(to, out.runBytes(), e.accessor);
    for (int64_t c = 0; c < l.run; ++c)
      if (s[from + c])
        std::memmove(s + to + c * bytes, s + other + (l.bScalar ? 0 : c * bytes), static_cast<size_t>(bytes));
  });
}

void pool(Execution& e, const Pooling& p) {
  namespace f = field::vpool;
  const auto fn = static_cast<PoolFn>(e[f::kFn]);
  const int64_t inBytes = bytesOf(p.aType), outBytes = bytesOf(p.outType), at = e[f::kA], dst = e[f::kDst];
  const Lanes in{p.channels, p.inW, p.inH, p.inPixel, p.inRow, 0, 0, 0, 0, p.aType, p.aType, p.aType, false};
  const Lanes to{p.channels, p.outW, p.outH, 0, 0, 0, 0, p.outPixel, p.outRow, p.aType, p.aType, p.outType, false};
  const Operand a{"a", at, p.inPixel, p.inRow, p.aType, p.channels},
      out{"dst", dst, p.outPixel, p.outRow, p.outType, p.channels};
  needAligned(a);
  needOutput(e, to, out);
  e.memory.range("a", a.box(in).from, a.box(in).bytes);
  if (a.box(in).touches(out.box(to))) raise(FaultKind::kInstruction, "a {:#x} and dst {:#x} overlap", at, dst);
  Rescale r{};
  Bounds bounds{};
  if (fn == PoolFn::kSum) {
    r = rescaleOf(e.second, e.configuration);
    bounds = boundsOf(r, p.outType);
    needShift("a_shift", r.aShift, Type::kI32);
    needZero("a_zp", r.aZero, p.aType);
  } else if (p.aType != p.outType) {
    raise(FaultKind::kInstruction, "a maximum has the type of its operand");
  }
  e.spend(p.outH * p.outW * p.channels * p.kernelH * p.kernelW);
  uint8_t* const s = e.memory.scratchpad();
  std::vector<bool> seen(static_cast<size_t>(p.inH * p.inW));
  std::vector<int32_t> values(static_cast<size_t>(p.channels));
  for (int64_t oy = 0; oy < p.outH; ++oy)
    for (int64_t ox = 0; ox < p.outW; ++ox) {
      std::fill(values.begin(), values.end(), fn == PoolFn::kMax ? INT32_MIN : 0);
      for (int64_t y = std::max<int64_t>(oy * p.strideH - p.padTop, 0);
           y < std::min(oy * p.strideH - p.padTop + p.kernelH, p.inH); ++y)
        for (int64_t x = std::max<int64_t>(ox * p.strideW - p.padLeft, 0);
             x < std::min(ox * p.strideW - p.padLeft + p.kernelW, p.inW); ++x) {
          const int64_t from = a.of(y, x);
          if (!seen[static_cast<size_t>(y * p.inW + x)]) {
            e.memory.reads(from, a.runBytes(), e.accessor);
            seen[static_cast<size_t>(y * p.inW + x)] = true;
          }
          for (int64_t c = 0; c < p.channels; ++c) {
            const int32_t value = elementAt(s + from + c * inBytes, p.aType);
            int32_t& sum = values[static_cast<size_t>(c)];
            sum = fn == PoolFn::kMax ? std::max(sum, value) : cdl_add_i32(sum, cdl_sub_i32(value, r.aZero));
          }
        }
      const int64_t place = out.of(oy, ox);
      e.memory.writes(place, out.runBytes(), e.accessor);
      for (int64_t c = 0; c < p.channels; ++c) {
        int64_t value = values[static_cast<size_t>(c)];
        if (fn == PoolFn::kSum)
          value = cdl_rescale1(value, r.aMult, r.aShift, r.shift, bounds.zero, bounds.low, bounds.high);
        storeElement(s + place + c * outBytes, p.outType, static_cast<int32_t>(value));
      }
    }
  e.count(Counter::kVectorValues, static_cast<uint64_t>(p.outH * p.outW * p.channels));
}

} // namespace

void runVector(Execution& e) {
  if (e.insn.op == Op::kVpool) return pool(e, poolingOf(e.d, e.configuration));
  const Lanes l = lanesOf(e.d, e.configuration);
  switch (e.insn.op) {
  case Op::kVbinary: binary(e, l); break;
  case Op::kVunary: unary(e, l); break;
  case Op::kVselect: select(e, l); break;
  default: reduce(e, l); break;
  }
  e.count(Counter::kVectorValues, static_cast<uint64_t>(l.len1 * l.len2 * (e.insn.op == Op::kVreduce ? 1 : l.run)));
}

} // namespace candela::npu
