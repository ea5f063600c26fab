#include <algorithm>
#include <cmath>
#include <limits>

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
  Interval box(const Lanes& l) const {
    return {at, (l.len2 - 1) * stride2 + (l.len1 - 1) * stride1 + runBytes()};
  }
  /// Tells the memory of all its bytes.
  void announce(Execution& e, const Lanes& l, bool isWrite = false) const {
    eachStretch(at, runBytes(), {{{l.len1, stride1}, {l.len2, stride2}, {1, 0}}},
                [&](int64_t from, int64_t bytes) {
                  if (isWrite)
                    e.memory.writes(from, bytes, e.accessor);
                  else
                    e.memory.reads(from, bytes, e.accessor);
                });
  }
  bool walksLike(const Operand& other) const {
    return at == other.at && stride1 == other.stride1 && stride2 == other.stride2 &&
           runBytes() == other.runBytes();
  }
};

void needAligned(const Operand& o) { needAligned(o.name, o.type, o.at, o.stride1, o.stride2); }

void needInput(Execution& e, const Lanes& l, const Operand& in, const Operand& out) {
  needAligned(in);
  const Interval box = in.box(l);
  e.memory.range(in.name, box.from, box.bytes);
  if (!in.walksLike(out) && box.touches(out.box(l)))
    raise(FaultKind::kInstruction, "{} {:#x} and dst {:#x} overlap without being the same", in.name,
          in.at, out.at);
}

void needOutput(Execution& e, const Lanes& l, const Operand& out) {
  needAligned(out);
  const Interval box = out.box(l);
  e.memory.range("dst", box.from, box.bytes);
  needDisjoint("dst", out.runBytes(), {{l.len1, out.stride1}, {l.len2, out.stride2}});
}

/// Elements that are worked on at a time.
constexpr int64_t kChunk = 256;

/// visit(j, i, first, n) for each part of a run of at most kChunk elements.
template <typename Visit> void eachPart(const Lanes& l, Visit visit) {
  for (int64_t j = 0; j < l.len2; ++j)
    for (int64_t i = 0; i < l.len1; ++i)
      for (int64_t first = 0; first < l.run; first += kChunk)
        visit(j, i, first, std::min(kChunk, l.run - first));
}

/// The end of a RESCALE of up to kChunk values.
struct Scaler {
  Scaler(const Kernels& kernels, const Rescale& rescale, const Bounds& bounds)
      : kernels(kernels), bounds(bounds) {
    std::fill_n(shifts, kChunk, rescale.shift);
  }
  void finish(int64_t n, int32_t* to) const {
    kernels.scale(sums, shifts, n, bounds.zero, bounds.low, bounds.high, to);
  }
  const Kernels& kernels;
  Bounds bounds;
  int32_t shifts[kChunk];
  int64_t sums[kChunk];
};

template <typename Value>
void mapped(const int32_t* x, const int32_t* y, int64_t n, int32_t* to, Value value) {
  for (int64_t c = 0; c < n; ++c) to[c] = value(x[c], y[c]);
}
void plainBinary(BinaryFn fn, const int32_t* x, const int32_t* y, int64_t n, int32_t* to) {
  using I = int32_t;
  switch (fn) {
  case BinaryFn::kAdd: return mapped(x, y, n, to, [](I a, I b) { return cdl_add_i32(a, b); });
  case BinaryFn::kSub: return mapped(x, y, n, to, [](I a, I b) { return cdl_sub_i32(a, b); });
  case BinaryFn::kMul: return mapped(x, y, n, to, [](I a, I b) { return cdl_mul_i32(a, b); });
  case BinaryFn::kMin: return mapped(x, y, n, to, [](I a, I b) { return cdl_min_i32(a, b); });
  case BinaryFn::kMax: return mapped(x, y, n, to, [](I a, I b) { return cdl_max_i32(a, b); });
  case BinaryFn::kEqual: return mapped(x, y, n, to, [](I a, I b) { return I{a == b}; });
  case BinaryFn::kLess: return mapped(x, y, n, to, [](I a, I b) { return I{a < b}; });
  default: return mapped(x, y, n, to, [](I a, I b) { return I{a <= b}; });
  }
}

/// Refuses operands of which one is a float and another one is not.
void needFloats(std::initializer_list<Type> types) {
  for (const Type type : types)
    if (!isFloat(type))
      raise(FaultKind::kInstruction, "floats go with floats alone, one type is an integer");
}
[[noreturn]] void refuseFloats(std::string_view fn) {
  raise(FaultKind::kInstruction, "{} takes no floats", fn);
}

void loadFloats(const uint8_t* from, Type type, int64_t n, float* to) {
  for (int64_t c = 0; c < n; ++c) to[c] = floatAt(from + c * bytesOf(type), type);
}
void storeFloats(const float* from, Type type, int64_t n, uint8_t* to) {
  for (int64_t c = 0; c < n; ++c) storeFloat(to + c * bytesOf(type), type, from[c]);
}

bool compares(BinaryFn fn) {
  return fn == BinaryFn::kEqual || fn == BinaryFn::kLess || fn == BinaryFn::kLessEqual;
}
int32_t compared(BinaryFn fn, float a, float b) {
  switch (fn) {
  case BinaryFn::kEqual: return a == b;
  case BinaryFn::kLess: return a < b;
  default: return a <= b;
  }
}
float combined(BinaryFn fn, float a, float b) {
  switch (fn) {
  case BinaryFn::kAdd: return a + b;
  case BinaryFn::kSub: return a - b;
  case BinaryFn::kMul: return a * b;
  case BinaryFn::kDiv: return a / b;
  case BinaryFn::kMin: return cdl_min_f32(a, b);
  default: return cdl_max_f32(a, b);
  }
}

/// Two operands of floats, ranges checked.
void binaryFloats(Execution& e, const Lanes& l, const Operand& a, const Operand& b,
                  const Operand& out) {
  const auto fn = static_cast<BinaryFn>(e[field::vbinary::kFn]);
  if (fn == BinaryFn::kScaledAdd || fn == BinaryFn::kScaledMul) refuseFloats("a scaled function");
  needFloats({a.type, b.type});
  if (isFloat(out.type) == compares(fn))
    raise(FaultKind::kInstruction, "of floats comparisons are integers, and nothing else is");
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  a.announce(e, l);
  b.announce(e, l);
  out.announce(e, l, true);
  float x[kChunk], y[kChunk], result[kChunk];
  int32_t truths[kChunk];
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    loadFloats(s + a.of(j, i) + first * bytesOf(a.type), a.type, n, x);
    if (!l.bScalar)
      loadFloats(s + b.of(j, i) + first * bytesOf(b.type), b.type, n, y);
    else if (first == 0)
      std::fill_n(y, std::min(kChunk, l.run), floatAt(s + b.of(j, i), b.type));
    uint8_t* const to = s + out.of(j, i) + first * bytesOf(out.type);
    if (compares(fn)) {
      for (int64_t c = 0; c < n; ++c) truths[c] = compared(fn, x[c], y[c]);
      e.kernels.store(truths, out.type, n, to);
      return;
    }
    for (int64_t c = 0; c < n; ++c) result[c] = combined(fn, x[c], y[c]);
    storeFloats(result, out.type, n, to);
  });
}

/// One operand of floats, ranges checked.
void unaryFloats(Execution& e, const Lanes& l, const Operand& a, const Operand& out) {
  const auto fn = static_cast<UnaryFn>(e[field::vunary::kFn]);
  if (fn == UnaryFn::kRescale || fn == UnaryFn::kTable) refuseFloats("rescale, or table,");
  needFloats({a.type, out.type});
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  a.announce(e, l);
  out.announce(e, l, true);
  float x[kChunk];
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    loadFloats(s + a.of(j, i) + first * bytesOf(a.type), a.type, n, x);
    if (fn == UnaryFn::kNeg)
      for (int64_t c = 0; c < n; ++c) x[c] = -x[c];
    if (fn == UnaryFn::kAbs)
      for (int64_t c = 0; c < n; ++c) x[c] = std::fabs(x[c]);
    storeFloats(x, out.type, n, s + out.of(j, i) + first * bytesOf(out.type));
  });
}

/// Runs of floats, each to one element; ranges checked.
void reduceFloats(Execution& e, const Lanes& l, const Operand& a, const Operand& out) {
  const auto fn = static_cast<ReduceFn>(e[field::vreduce::kFn]);
  needFloats({a.type, out.type});
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  a.announce(e, l);
  out.announce(e, l, true);
  float x[kChunk], value = 0;
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    loadFloats(s + a.of(j, i) + first * bytesOf(a.type), a.type, n, x);
    if (first == 0) value = fn == ReduceFn::kSum ? 0 : x[0];
    for (int64_t c = 0; c < n; ++c) {
      if (fn == ReduceFn::kSum)
        value += x[c];
      else
        value = fn == ReduceFn::kMin ? cdl_min_f32(value, x[c]) : cdl_max_f32(value, x[c]);
    }
    if (first + n == l.run) storeFloat(s + out.of(j, i), out.type, value);
  });
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
  if (isFloat(l.aType) || isFloat(l.bType) || isFloat(l.outType))
    return binaryFloats(e, l, a, b, out);
  if (fn == BinaryFn::kDiv) raise(FaultKind::kInstruction, "div takes floats alone");
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
    if (fn == BinaryFn::kScaledMul && (l.aType == Type::kI16 || l.bType == Type::kI16) &&
        r.aShift > 6)
      raise(FaultKind::kInstruction, "a_shift is {}, of a product with i16 up to 6", r.aShift);
  }
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int aBytes = bytesOf(l.aType), bBytes = bytesOf(l.bType), outBytes = bytesOf(l.outType);
  a.announce(e, l);
  b.announce(e, l);
  out.announce(e, l, true);
  Scaler scaler(e.kernels, r, bounds);
  int32_t x[kChunk], y[kChunk], result[kChunk];
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    e.kernels.load(s + a.of(j, i) + first * aBytes, l.aType, n, x);
    if (!l.bScalar)
      e.kernels.load(s + b.of(j, i) + first * bBytes, l.bType, n, y);
    else if (first == 0)
      std::fill_n(y, std::min(kChunk, l.run), elementAt(s + b.of(j, i), l.bType));
    if (!isScaled) {
      plainBinary(fn, x, y, n, result);
    } else {
      for (int64_t c = 0; c < n; ++c) {
        const int64_t left = int64_t{x[c]} - r.aZero, right = int64_t{y[c]} - r.bZero;
        scaler.sums[c] =
            fn == BinaryFn::kScaledAdd ? scaledSum(left, right, r) : scaledSum(left * right, 0, r);
      }
      scaler.finish(n, result);
    }
    e.kernels.store(result, l.outType, n, s + out.of(j, i) + first * outBytes);
  });
}

void unary(Execution& e, const Lanes& l) {
  namespace f = field::vunary;
  const auto fn = static_cast<UnaryFn>(e[f::kFn]);
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, l.run};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  needOutput(e, l, out);
  needInput(e, l, a, out);
  if (isFloat(l.aType) || isFloat(l.outType)) return unaryFloats(e, l, a, out);
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
    if (l.aType == Type::kI32 || l.outType == Type::kI32 ||
        (l.aType == Type::kI16) != (l.outType == Type::kI16))
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
  a.announce(e, l);
  out.announce(e, l, true);
  Scaler scaler(e.kernels, r, bounds);
  int32_t x[kChunk], result[kChunk];
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    e.kernels.load(s + a.of(j, i) + first * aBytes, l.aType, n, x);
    switch (fn) {
    case UnaryFn::kCopy: std::copy_n(x, n, result); break;
    case UnaryFn::kNeg:
      mapped(x, x, n, result, [](int32_t v, int32_t) { return cdl_neg_i32(v); });
      break;
    case UnaryFn::kAbs:
      mapped(x, x, n, result, [](int32_t v, int32_t) { return cdl_abs_i32(v); });
      break;
    case UnaryFn::kTable:
      mapped(x, x, n, result, [&](int32_t v, int32_t) { return tableAt(s + table, l.aType, v); });
      break;
    case UnaryFn::kRescale:
      for (int64_t c = 0; c < n; ++c) scaler.sums[c] = scaledSum(int64_t{x[c]} - r.aZero, 0, r);
      scaler.finish(n, result);
      break;
    }
    e.kernels.store(result, l.outType, n, s + out.of(j, i) + first * outBytes);
  });
}

void reduce(Execution& e, const Lanes& l) {
  namespace f = field::vreduce;
  const auto fn = static_cast<ReduceFn>(e[f::kFn]);
  const Operand out{"dst", e[f::kDst], l.out1, l.out2, l.outType, 1};
  const Operand a{"a", e[f::kA], l.a1, l.a2, l.aType, l.run};
  needOutput(e, l, out);
  needInput(e, l, a, out);
  if (isFloat(l.aType) || isFloat(l.outType)) return reduceFloats(e, l, a, out);
  e.spend(l.run * l.len1 * l.len2);
  uint8_t* const s = e.memory.scratchpad();
  const int aBytes = bytesOf(l.aType);
  a.announce(e, l);
  out.announce(e, l, true);
  int32_t x[kChunk], value = 0;
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    e.kernels.load(s + a.of(j, i) + first * aBytes, l.aType, n, x);
    if (first == 0) value = fn == ReduceFn::kSum ? 0 : x[0];
    for (int64_t c = 0; c < n; ++c) {
      if (fn == ReduceFn::kSum)
        value = cdl_add_i32(value, x[c]);
      else
        value = fn == ReduceFn::kMin ? cdl_min_i32(value, x[c]) : cdl_max_i32(value, x[c]);
    }
    if (first + n == l.run) storeElement(s + out.of(j, i), l.outType, value);
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
  a.announce(e, l);
  b.announce(e, l);
  out.announce(e, l);
  out.announce(e, l, true);
  eachPart(l, [&](int64_t j, int64_t i, int64_t first, int64_t n) {
    for (int64_t c = first; c < first + n; ++c)
      if (s[a.of(j, i) + c])
        std::memmove(s + out.of(j, i) + c * bytes, s + b.of(j, i) + (l.bScalar ? 0 : c * bytes),
                     static_cast<size_t>(bytes));
  });
}

/// The windows of a tile of floats, ranges checked.
void poolFloats(Execution& e, const Pooling& p, const Operand& a, const Operand& out) {
  const bool isSum = static_cast<PoolFn>(e[field::vpool::kFn]) == PoolFn::kSum;
  needFloats({a.type, out.type});
  if (!isSum && a.type != out.type)
    raise(FaultKind::kInstruction, "a maximum has the type of its operand");
  e.spend(p.outH * p.outW * p.channels * p.kernelH * p.kernelW);
  uint8_t* const s = e.memory.scratchpad();
  std::vector<bool> seen(static_cast<size_t>(p.inH * p.inW));
  std::vector<float> values(static_cast<size_t>(p.channels)), pixel(values.size());
  for (int64_t oy = 0; oy < p.outH; ++oy)
    for (int64_t ox = 0; ox < p.outW; ++ox) {
      std::fill(values.begin(), values.end(), isSum ? 0 : -std::numeric_limits<float>::infinity());
      for (int64_t y = std::max<int64_t>(oy * p.strideH - p.padTop, 0);
           y < std::min(oy * p.strideH - p.padTop + p.kernelH, p.inH); ++y)
        for (int64_t x = std::max<int64_t>(ox * p.strideW - p.padLeft, 0);
             x < std::min(ox * p.strideW - p.padLeft + p.kernelW, p.inW); ++x) {
          const auto at = static_cast<size_t>(y * p.inW + x);
          if (!seen[at]) e.memory.reads(a.of(y, x), a.runBytes(), e.accessor);
          seen[at] = true;
          loadFloats(s + a.of(y, x), a.type, p.channels, pixel.data());
          for (size_t c = 0; c < values.size(); ++c)
            values[c] = isSum ? values[c] + pixel[c] : cdl_max_f32(values[c], pixel[c]);
        }
      e.memory.writes(out.of(oy, ox), out.runBytes(), e.accessor);
      storeFloats(values.data(), out.type, p.channels, s + out.of(oy, ox));
    }
}

void pool(Execution& e, const Pooling& p) {
  namespace f = field::vpool;
  const auto fn = static_cast<PoolFn>(e[f::kFn]);
  const int64_t at = e[f::kA], dst = e[f::kDst];
  const Lanes in{p.channels, p.inW, p.inH,   p.inPixel, p.inRow, 0,    0,
                 0,          0,     p.aType, p.aType,   p.aType, false};
  const Lanes to{p.channels, p.outW,   p.outH,  0,       0,         0,    0,
                 p.outPixel, p.outRow, p.aType, p.aType, p.outType, false};
  const Operand a{"a", at, p.inPixel, p.inRow, p.aType, p.channels},
      out{"dst", dst, p.outPixel, p.outRow, p.outType, p.channels};
  needAligned(a);
  needOutput(e, to, out);
  e.memory.range("a", a.box(in).from, a.box(in).bytes);
  if (a.box(in).touches(out.box(to)))
    raise(FaultKind::kInstruction, "a {:#x} and dst {:#x} overlap", at, dst);
  if (isFloat(p.aType) || isFloat(p.outType)) return poolFloats(e, p, a, out);
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
  std::vector<int32_t> values(static_cast<size_t>(p.channels)), pixel(values.size());
  Scaler scaler(e.kernels, r, bounds);
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
          e.kernels.load(s + from, p.aType, p.channels, pixel.data());
          if (fn == PoolFn::kMax)
            e.kernels.maximum(pixel.data(), p.channels, values.data());
          else
            e.kernels.addLess(pixel.data(), r.aZero, p.channels, values.data());
        }
      const int64_t place = out.of(oy, ox);
      e.memory.writes(place, out.runBytes(), e.accessor);
      for (int64_t first = 0; fn == PoolFn::kSum && first < p.channels; first += kChunk) {
        const int64_t n = std::min(kChunk, p.channels - first);
        for (int64_t c = 0; c < n; ++c)
          scaler.sums[c] = scaledSum(values[static_cast<size_t>(first + c)], 0, r);
        scaler.finish(n, values.data() + first);
      }
      e.kernels.store(values.data(), p.outType, p.channels, s + place);
    }
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
}

} // namespace candela::npu
