// RESCALE and TABLE: the integer kinds of quantized programs.
#include <limits>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

// Bits of magnitude of an operand: |value| <= 2^bits. i64 ones come out of MATMUL and stay below
// 2^39 by the integer law.
int magnitudeBits(uint8_t elem) {
  if (elem == CDL_I64) return 39;
  return elem == CDL_U8 || elem == CDL_U16 || elem == CDL_U32 ? elemBits(elem) : elemBits(elem) - 1;
}

bool isRescaleInput(uint8_t elem) { return isIntegerElem(elem) && elem != CDL_U64; }

template <class T> void widen(const void* from, int64_t n, int64_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<const T*>(from)[i];
}
void widenElem(uint8_t elem, const void* from, int64_t n, int64_t* to) {
  withInteger<int>(elem, 0, [&](auto tag) {
    widen<typename decltype(tag)::Type>(from, n, to);
    return 0;
  });
}
template <class T> void narrow(const int64_t* from, int64_t n, void* to) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[i] = static_cast<T>(from[i]);
}

struct Range {
  int64_t lo, hi;
};
Range rangeOf(uint8_t elem) {
  return withInteger<Range>(elem, Range{0, 0}, [](auto tag) {
    using Limits = std::numeric_limits<typename decltype(tag)::Type>;
    return Range{static_cast<int64_t>(Limits::min()),
                 sizeof(Limits::max()) == 8 ? INT64_MAX : static_cast<int64_t>(Limits::max())};
  });
}

// Linear interpolation in 513 entries is only for i16; 1-byte inputs pick one of 256 entries of any
// type.
template <class T> void tableBlock(bool isSigned, const uint8_t* x, const T* table, void* out, int64_t n) {
  const uint8_t flip = isSigned ? 128 : 0;
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = table[x[i] ^ flip];
}

} // namespace

cdl_code_t runRescale(const Call& call) {
  const Operand y = call.output();
  std::vector<Operand> in;
  static const char* const names[] = {"a", "a_multiplier", "shift", "zero", "b", "b_multiplier"};
  for (uint32_t i = 0; i < 6; ++i) {
    Operand operand = call.input(i);
    if (!operand.present() && i >= 4) break;
    const bool value = i == 0 || i == 4;
    if (value ? !isRescaleInput(operand.elem) : operand.elem != CDL_I32) return call.failElems();
    const char* dims = dimsText(operand);
    if (!broadcastTo(operand, y))
      return call.fail(CDL_BAD_MODEL, "%s has dims %s but y has %s", names[i], dims, dimsText(y));
    in.push_back(operand);
  }
  if (!isIntegerElem(y.elem) || y.elem == CDL_U64 || in.size() == 5) return call.failElems();
  const bool two = in.size() == 6;
  const int64_t ka = call.attr(CDL_ATTR_A_LEFT_SHIFT, 0), kb = call.attr(CDL_ATTR_B_LEFT_SHIFT, 0);
  for (const auto& [k, operand] : {std::pair{ka, 0}, std::pair{kb, 4}}) {
    if (operand == 4 && !two) break;
    // The sum of two has to stay in 63 bits as well.
    const int64_t bits = magnitudeBits(in[static_cast<size_t>(operand)].elem) + 24 + (two ? 1 : 0);
    if (k < 0 || k > 63 || bits + k > 63)
      return call.fail(CDL_BAD_MODEL, "%s of %s with left shift %lld needs %lld bits, at most 63", names[operand],
                       elemName(in[static_cast<size_t>(operand)].elem), static_cast<long long>(k),
                       static_cast<long long>(bits + k));
  }
  const Range range = rangeOf(y.elem);
  const int64_t lo = call.attr(CDL_ATTR_CLAMP_MIN, range.lo), hi = call.attr(CDL_ATTR_CLAMP_MAX, range.hi);
  if (lo < range.lo || hi > range.hi || lo > hi)
    return call.fail(CDL_BAD_MODEL, "clamps to %lld..%lld, which %s does not hold", static_cast<long long>(lo),
                     static_cast<long long>(hi), elemName(y.elem));
  if (call.checkOnly()) return CDL_OK;
  const int32_t shiftA = static_cast<int32_t>(ka), shiftB = static_cast<int32_t>(kb);
  std::vector<int64_t> a(kBlock), b(kBlock);
  mapBlocks(in, y, [&](const void* const* blocks, void* out, int64_t n) {
    const auto* ma = static_cast<const int32_t*>(blocks[1]);
    const auto* s = static_cast<const int32_t*>(blocks[2]);
    const auto* zero = static_cast<const int32_t*>(blocks[3]);
    widenElem(in[0].elem, blocks[0], n, a.data());
    if (two) {
      const auto* mb = static_cast<const int32_t*>(blocks[5]);
      widenElem(in[4].elem, blocks[4], n, b.data());
      for (int64_t i = 0; i < n; ++i)
        a[i] = cdl_rescale2(a[i], b[i], ma[i], mb[i], shiftA, shiftB, s[i], zero[i], lo, hi);
    } else {
      for (int64_t i = 0; i < n; ++i) a[i] = cdl_rescale1(a[i], ma[i], shiftA, s[i], zero[i], lo, hi);
    }
    withInteger<int>(y.elem, 0, [&](auto tag) {
      narrow<typename decltype(tag)::Type>(a.data(), n, out);
      return 0;
    });
  });
  return CDL_OK;
}

cdl_code_t runTable(const Call& call) {
  const Operand x = call.input(0), table = call.input(1), y = call.output();
  const bool bytes = x.elem == CDL_I8 || x.elem == CDL_U8, words = x.elem == CDL_I16;
  if (table.elem != y.elem || !(bytes ? isArithmetic(y.elem) : words && y.elem == CDL_I16)) return call.failElems();
  const int64_t entries = words ? 513 : 256;
  if (table.rank != 1 || table.dims[0] != entries)
    return call.fail(CDL_BAD_MODEL, "table has dims %s, not [%lld]", dimsText(table), static_cast<long long>(entries));
  if (!sameDims(x, y)) return call.fail(CDL_BAD_MODEL, "x has dims %s but y has %s", dimsText(x), dimsText(y));
  if (call.checkOnly()) return CDL_OK;
  std::vector<uint64_t> dense(static_cast<size_t>(entries));
  gatherBlock(table, table.start, table.strides[0], entries, dense.data());
  mapBlocks({x}, y, [&](const void* const* blocks, void* out, int64_t n) {
    const void* entry = dense.data();
    if (words) {
      for (int64_t i = 0; i < n; ++i)
        static_cast<int16_t*>(out)[i] =
            cdl_table_i16(static_cast<const int16_t*>(entry), static_cast<const int16_t*>(blocks[0])[i]);
      return;
    }
    const auto* index = static_cast<const uint8_t*>(blocks[0]);
    switch (elemBits(y.elem)) {
    case 8: return tableBlock(x.elem == CDL_I8, index, static_cast<const uint8_t*>(entry), out, n);
    case 16: return tableBlock(x.elem == CDL_I8, index, static_cast<const uint16_t*>(entry), out, n);
    case 32: return tableBlock(x.elem == CDL_I8, index, static_cast<const uint32_t*>(entry), out, n);
    default: return tableBlock(x.elem == CDL_I8, index, static_cast<const uint64_t*>(entry), out, n);
    }
  });
  return CDL_OK;
}

} // namespace candela::soft
