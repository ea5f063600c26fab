// UNARY, BINARY, COMPARE and SELECT on dense blocks. Transcendental functions come from libm in the
// compute type: f32 for f32, f16 and bf16.
#include <cmath>

#include "core/runtime/host_executor/block.h"
#include "core/runtime/host_executor/elements.h"

namespace candela::runtime::host_executor {
namespace {

// exp of the negative magnitude only, so that neither tail overflows on the way.
template <class C> C sigmoid(C x) {
  const C e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

template <int Fn, class C> C apply(C x) {
  if constexpr (std::is_floating_point_v<C>) {
    switch (Fn) {
    case CDL_UNARY_NEG: return -x;
    case CDL_UNARY_ABS: return std::fabs(x);
    case CDL_UNARY_FLOOR: return std::floor(x);
    case CDL_UNARY_SQRT: return std::sqrt(x);
    case CDL_UNARY_RCP: return 1 / x;
    case CDL_UNARY_EXP: return std::exp(x);
    case CDL_UNARY_LOG: return std::log(x);
    case CDL_UNARY_CEIL: return std::ceil(x);
    case CDL_UNARY_TRUNC: return std::trunc(x);
    case CDL_UNARY_ROUND_EVEN: return std::nearbyint(x);
    case CDL_UNARY_RSQRT: return 1 / std::sqrt(x);
    case CDL_UNARY_LOG1P: return std::log1p(x);
    case CDL_UNARY_EXPM1: return std::expm1(x);
    case CDL_UNARY_SIN: return std::sin(x);
    case CDL_UNARY_COS: return std::cos(x);
    case CDL_UNARY_TAN: return std::tan(x);
    case CDL_UNARY_TANH: return std::tanh(x);
    case CDL_UNARY_ERF: return std::erf(x);
    default: return sigmoid(x);
    }
  } else {
    return Fn == CDL_UNARY_NEG ? semantics::neg(x) : semantics::abs(x);
  }
}

template <class T, int Fn>
void unaryBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<T>(apply<Fn>(load(x[i])));
}

template <class T, int Fn> BlockOp::Function pick(uint16_t fn) {
  constexpr int last = isFloating<T> ? CDL_UNARY_SIGMOID : CDL_UNARY_ABS;
  if (fn == Fn) return unaryBlock<T, Fn>;
  if constexpr (Fn < last)
    return pick<T, Fn + 1>(fn);
  else
    return nullptr;
}

template <class T, class Op>
void binaryBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<T>(Op::apply(load(a[i]), load(b[i])));
}

template <class T> BlockOp::Function binaryFunction(uint16_t fn) {
  switch (fn) {
#define CDL_CASE(ID, Op, function)                                                                 \
  case CDL_BINARY_##ID:                                                                            \
    if constexpr (requires(Compute<T> x) { Op::apply(x, x); }) return binaryBlock<T, Op>;          \
    break;
    CDL_BINARIES(CDL_CASE)
#undef CDL_CASE
  }
  return nullptr;
}

template <class T, bool Less>
void compareBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
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

BlockOp::Function findCompare(uint16_t fn, uint8_t elem) {
  return withAny(elem, [&]<class T>(Tag<T>) -> BlockOp::Function {
    return fn == CDL_COMPARE_LT ? compareBlock<T, true> : compareBlock<T, false>;
  });
}

BlockOp::Function findSelect(uint8_t elem) {
  if (!isArithmetic(elem)) return nullptr;
  return withBits(elem, []<class T>(Tag<T>) -> BlockOp::Function { return selectBlock<T>; });
}

} // namespace

BlockOp::Function findUnary(uint16_t fn, uint8_t elem) {
  return withNumber(elem, [&]<class T>(Tag<T>) { return pick<T, 0>(fn); });
}

BlockOp::Function findBinary(uint16_t fn, uint8_t elem) {
  const bool logical = fn == CDL_BINARY_AND || fn == CDL_BINARY_OR || fn == CDL_BINARY_XOR;
  if (elem == CDL_BOOL && !logical) return nullptr;
  return withAny(elem, [&]<class T>(Tag<T>) { return binaryFunction<T>(fn); });
}

bool findBlockOp(uint16_t kind, uint16_t fn, const uint8_t* in, uint8_t out, bool saturate,
                 BlockOp& op) {
  op = BlockOp{};
  op.fn = static_cast<uint8_t>(fn);
  op.from = in[0];
  op.to = out;
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

} // namespace candela::runtime::host_executor
