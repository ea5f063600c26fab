// RESCALE and TABLE: the integer kinds of quantized programs.
#include "core/runtime/host_executor/block.h"
#include "core/runtime/host_executor/call.h"
#include "core/runtime/host_executor/map_blocks.h"

namespace candela::runtime::host_executor {
namespace {

bool isRescaled(uint8_t elem) { return isIntegerElem(elem) && elem != CDL_U64; }

// Linear interpolation in 513 entries is only for i16; 1-byte inputs pick one of 256 entries of any
// type.
template <class T>
void tableBlock(bool isSigned, const uint8_t* x, const T* table, void* out, int64_t n) {
  const uint8_t flip = isSigned ? 128 : 0;
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = table[x[i] ^ flip];
}

/// Blocks of a, multiplier, shift and zero.
template <class From, class To>
void rescaleBlock(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  const auto* a = static_cast<const From*>(in[0]);
  const auto *multiplier = static_cast<const int32_t*>(in[1]),
             *shift = static_cast<const int32_t*>(in[2]),
             *zero = static_cast<const int32_t*>(in[3]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<To*>(out)[i] = static_cast<To>(cdl_rescale1(
        static_cast<int64_t>(a[i]), multiplier[i], 0, shift[i], zero[i], op.low, op.high));
}

template <class From> BlockOp::Function rescaleFrom(uint8_t to) {
  switch (to) {
  case CDL_I8: return rescaleBlock<From, int8_t>;
  case CDL_U8: return rescaleBlock<From, uint8_t>;
  case CDL_I16: return rescaleBlock<From, int16_t>;
  case CDL_U16: return rescaleBlock<From, uint16_t>;
  case CDL_I32: return rescaleBlock<From, int32_t>;
  default: return nullptr;
  }
}

} // namespace

bool findRescale(uint8_t from, uint8_t to, uint64_t limits, BlockOp& op) {
  op = BlockOp{};
  op.low = static_cast<int32_t>(static_cast<uint32_t>(limits));
  op.high = static_cast<int32_t>(static_cast<uint32_t>(limits >> 32));
  op.run = [&]() -> BlockOp::Function {
    switch (from) {
    case CDL_I8: return rescaleFrom<int8_t>(to);
    case CDL_U8: return rescaleFrom<uint8_t>(to);
    case CDL_I16: return rescaleFrom<int16_t>(to);
    case CDL_U16: return rescaleFrom<uint16_t>(to);
    case CDL_I32: return rescaleFrom<int32_t>(to);
    case CDL_U32: return rescaleFrom<uint32_t>(to);
    case CDL_I64: return rescaleFrom<int64_t>(to);
    default: return nullptr;
    }
  }();
  return op.run != nullptr;
}

cdl::Status runRescale(const Call& call) {
  const Operand y = call.output();
  Scratch<Operand> in;
  for (uint32_t i = 0; i < call.operands(); ++i) {
    in.push_back(call.input(i));
    if (i == 0 || i == 4 ? !isRescaled(in[i].elem) : in[i].elem != CDL_I32) return call.failElems();
  }
  if (!isRescaled(y.elem)) return call.failElems();
  const bool two = in.size() == 6;
  const auto ka = static_cast<int32_t>(call.attr(CDL_ATTR_A_LEFT_SHIFT, 0));
  const auto kb = static_cast<int32_t>(call.attr(CDL_ATTR_B_LEFT_SHIFT, 0));
  for (size_t i = 0; i < in.size(); i += 4) {
    // The sum of two has to stay in 63 bits as well.
    // i64 operands come out of MATMUL and stay below 2^39 by the rules for integers.
    const int magnitude = in[i].elem == CDL_I64 ? 39 : IntegerRange(in[i].elem).bits;
    const int32_t shift = i ? kb : ka;
    const int32_t bits = magnitude + 24 + (two ? 1 : 0) + shift;
    if (bits > 63)
      return call.fail(CDL_BAD_MODEL,
                       cdl::text(i ? "b of " : "a of ", cdl::elemName(in[i].elem),
                                 " with left shift ", shift, " needs ", bits, " bits, at most 63"));
  }
  const IntegerRange range(y.elem);
  const int64_t lo = call.attr(CDL_ATTR_CLAMP_MIN, range.lowest),
                hi = call.attr(CDL_ATTR_CLAMP_MAX, range.highest);
  if (lo < range.lowest || hi > range.highest || lo > hi)
    return call.fail(CDL_BAD_MODEL, cdl::text("clamps to ", lo, "..", hi, ", which ",
                                              cdl::elemName(y.elem), " does not hold"));
  Scratch<int64_t> a(kBlock), b(kBlock);
  const BlockOp widenA{findConvert(in[0].elem, CDL_I64)},
      widenB{findConvert(in[two ? 4 : 0].elem, CDL_I64)};
  const BlockOp narrow{findConvert(CDL_I64, y.elem)};
  mapBlocks(call.workers, in, y, [=](const void* const* blocks, void* out, int64_t n) mutable {
    const auto* ma = static_cast<const int32_t*>(blocks[1]);
    const auto* s = static_cast<const int32_t*>(blocks[2]);
    const auto* zero = static_cast<const int32_t*>(blocks[3]);
    widenA.run(widenA, blocks, a.data(), n);
    if (two) {
      const auto* mb = static_cast<const int32_t*>(blocks[5]);
      widenB.run(widenB, blocks + 4, b.data(), n);
      for (int64_t i = 0; i < n; ++i)
        a[i] = cdl_rescale2(a[i], b[i], ma[i], mb[i], ka, kb, s[i], zero[i], lo, hi);
    } else {
      for (int64_t i = 0; i < n; ++i) a[i] = cdl_rescale1(a[i], ma[i], ka, s[i], zero[i], lo, hi);
    }
    const void* const results[] = {a.data()};
    narrow.run(narrow, results, out, n);
  });
  return cdl::ok();
}

cdl::Status runTable(const Call& call) {
  const Operand x = call.input(0), table = call.input(1), y = call.output();
  const bool bytes = x.elem == CDL_I8 || x.elem == CDL_U8, words = x.elem == CDL_I16;
  if (table.elem != y.elem || !(bytes ? isArithmetic(y.elem) : words && y.elem == CDL_I16))
    return call.failElems();
  Scratch<uint64_t> dense(static_cast<size_t>(table.dims[0]));
  gatherBlock(table, table.start, table.strides[0], table.dims[0], dense.data());
  mapBlocks(call.workers, {x}, y, [&](const void* const* blocks, void* out, int64_t n) {
    if (words) {
      const auto* entries = reinterpret_cast<const int16_t*>(dense.data());
      for (int64_t i = 0; i < n; ++i)
        static_cast<int16_t*>(out)[i] =
            cdl_table_i16(entries, static_cast<const int16_t*>(blocks[0])[i]);
      return;
    }
    withBits(y.elem, [&]<class T>(Tag<T>) {
      tableBlock(x.elem == CDL_I8, static_cast<const uint8_t*>(blocks[0]),
                 reinterpret_cast<const T*>(dense.data()), out, n);
    });
  });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
