// BINARY, COMPARE and SELECT on dense blocks.
#include "core/soft/block.h"
#include "core/soft/elements.h"

namespace candela::soft {
namespace {

template <class T, class Op> void binaryBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<T>(Op::apply(load(a[i]), load(b[i])));
}

template <class T> BlockOp::Function binaryFunction(uint16_t fn) {
  switch (fn) {
#define CDL_CASE(ID, Op)                                                                                               \
  case CDL_BINARY_##ID:                                                                                                \
    if constexpr (requires(Compute<T> x) { Op::apply(x, x); }) return binaryBlock<T, Op>;                              \
    break;
    CDL_CASE(ADD, Add)
    CDL_CASE(SUB, Sub)
    CDL_CASE(MUL, Mul)
    CDL_CASE(DIV, Div)
    CDL_CASE(MIN, Min)
    CDL_CASE(MAX, Max)
    CDL_CASE(AND, And)
    CDL_CASE(OR, Or)
    CDL_CASE(XOR, Xor)
    CDL_CASE(SHL, Shl)
    CDL_CASE(SHR, Shr)
    CDL_CASE(POW, Pow)
    CDL_CASE(REM, Rem)
#undef CDL_CASE
  }
  return nullptr;
}

template <class T, bool Less> void compareBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  uint8_t* y = static_cast<uint8_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Less ? load(a[i]) < load(b[i]) : load(a[i]) == load(b[i]);
}

template <class T> void selectBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const uint8_t* cond = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T whenTrue = a[i], whenFalse = b[i];
    y[i] = cond[i] ? whenTrue : whenFalse;
  }
}

} // namespace

BlockOp::Function findBinary(uint16_t fn, uint8_t elem) {
  const bool logical = fn == CDL_BINARY_AND || fn == CDL_BINARY_OR || fn == CDL_BINARY_XOR;
  if (elem == CDL_BOOL && !logical) return nullptr;
  return withAny(elem, [&](auto tag) { return binaryFunction<typename decltype(tag)::Type>(fn); });
}

BlockOp::Function findCompare(uint16_t fn, uint8_t elem) {
  return withAny(elem, [&](auto tag) -> BlockOp::Function {
    using T = typename decltype(tag)::Type;
    return fn == CDL_COMPARE_LT ? compareBlock<T, true> : compareBlock<T, false>;
  });
}

BlockOp::Function findSelect(uint8_t elem) {
  if (!isArithmetic(elem)) return nullptr;
  return withBits(elem, [](auto tag) -> BlockOp::Function { return selectBlock<typename decltype(tag)::Type>; });
}

bool findBlockOp(uint16_t kind, uint16_t fn, const uint8_t* in, uint8_t out, bool saturate, BlockOp& op) {
  op = BlockOp{};
  op.fn = static_cast<uint8_t>(fn);
  op.saturate = saturate;
  switch (kind) {
  case CDL_KIND_BINARY:
    if (in[0] == in[1] && in[0] == out) op.run = findBinary(fn, out);
    break;
  case CDL_KIND_COMPARE:
    if (in[0] == in[1] && out == CDL_BOOL) op.run = findCompare(fn, in[0]);
    break;
  case CDL_KIND_SELECT:
    if (in[0] == CDL_BOOL && in[1] == in[2] && in[1] == out) op.run = findSelect(out);
    break;
  case CDL_KIND_UNARY:
    if (in[0] == out) op.run = findUnary(fn, out);
    break;
  case CDL_KIND_CONVERT: op.run = findConvert(in[0], out); break;
  default: break;
  }
  return op.run != nullptr;
}

} // namespace candela::soft
