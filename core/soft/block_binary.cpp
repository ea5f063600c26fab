// BINARY, COMPARE and SELECT on dense blocks.
#include <cmath>

#include "core/soft/block.h"
#include "core/soft/elements.h"

namespace candela::soft {
namespace {

struct Sub {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_floating_point_v<C>)
      return a - b;
    else
      return law::sub(a, b);
  }
};
struct Div {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_floating_point_v<C>)
      return a / b;
    else
      return law::div(a, b);
  }
};
struct And {
  template <class C> static C apply(C a, C b) { return static_cast<C>(a & b); }
};
struct Or {
  template <class C> static C apply(C a, C b) { return static_cast<C>(a | b); }
};
struct Xor {
  template <class C> static C apply(C a, C b) { return static_cast<C>(a ^ b); }
};
struct Shl {
  template <class C> static C apply(C a, C b) { return law::shl(a, b); }
};
struct Shr {
  template <class C> static C apply(C a, C b) { return law::shr(a, b); }
};
struct Rem {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_floating_point_v<C>)
      return std::fmod(a, b);
    else
      return law::rem(a, b);
  }
};
// Integers: by squaring, wrapping. A negative exponent gives the truncated power: 0 but for the
// bases 1 and -1.
struct Pow {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
      return std::pow(a, b);
    } else {
      if (b < C{1} && b != 0) return a == 1 ? C{1} : a == static_cast<C>(-1) ? ((b & 1) ? a : C{1}) : C{0};
      C result = 1;
      for (uint64_t e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
        if (e & 1) result = law::mul(result, a);
        a = law::mul(a, a);
      }
      return result;
    }
  }
};

template <class T, class Op> void binaryBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<T>(Op::apply(load(a[i]), load(b[i])));
}

template <class T> BlockOp::Function numberFunction(uint16_t fn) {
  switch (fn) {
  case CDL_BINARY_ADD: return binaryBlock<T, Add>;
  case CDL_BINARY_SUB: return binaryBlock<T, Sub>;
  case CDL_BINARY_MUL: return binaryBlock<T, Mul>;
  case CDL_BINARY_DIV: return binaryBlock<T, Div>;
  case CDL_BINARY_MIN: return binaryBlock<T, Min>;
  case CDL_BINARY_MAX: return binaryBlock<T, Max>;
  case CDL_BINARY_POW: return binaryBlock<T, Pow>;
  case CDL_BINARY_REM: return binaryBlock<T, Rem>;
  default: break;
  }
  if constexpr (!isFloating<T>) {
    switch (fn) {
    case CDL_BINARY_AND: return binaryBlock<T, And>;
    case CDL_BINARY_OR: return binaryBlock<T, Or>;
    case CDL_BINARY_XOR: return binaryBlock<T, Xor>;
    case CDL_BINARY_SHL: return binaryBlock<T, Shl>;
    case CDL_BINARY_SHR: return binaryBlock<T, Shr>;
    default: break;
    }
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
  if (elem == CDL_BOOL) {
    switch (fn) {
    case CDL_BINARY_AND: return binaryBlock<Bool, And>;
    case CDL_BINARY_OR: return binaryBlock<Bool, Or>;
    case CDL_BINARY_XOR: return binaryBlock<Bool, Xor>;
    default: return nullptr;
    }
  }
  return withNumber<BlockOp::Function>(elem, nullptr,
                                       [&](auto tag) { return numberFunction<typename decltype(tag)::Type>(fn); });
}

BlockOp::Function findCompare(uint16_t fn, uint8_t elem) {
  if (fn > CDL_COMPARE_LT) return nullptr;
  return withAny<BlockOp::Function>(elem, nullptr, [&](auto tag) -> BlockOp::Function {
    using T = typename decltype(tag)::Type;
    return fn == CDL_COMPARE_LT ? compareBlock<T, true> : compareBlock<T, false>;
  });
}

BlockOp::Function findSelect(uint8_t elem) {
  if (!isArithmetic(elem)) return nullptr;
  switch (elemBits(elem)) {
  case 8: return selectBlock<uint8_t>;
  case 16: return selectBlock<uint16_t>;
  case 32: return selectBlock<uint32_t>;
  default: return selectBlock<uint64_t>;
  }
}

bool findBlockOp(uint16_t kind, uint16_t fn, const uint8_t* in, int inputs, uint8_t out, bool saturate, BlockOp& op) {
  op = BlockOp{};
  op.fn = static_cast<uint8_t>(fn);
  switch (kind) {
  case CDL_KIND_BINARY:
    if (inputs == 2 && in[0] == in[1] && in[0] == out) op.run = findBinary(fn, out);
    break;
  case CDL_KIND_COMPARE:
    if (inputs == 2 && in[0] == in[1] && out == CDL_BOOL) op.run = findCompare(fn, in[0]);
    break;
  case CDL_KIND_SELECT:
    if (inputs == 3 && in[0] == CDL_BOOL && in[1] == in[2] && in[1] == out && fn == 0) op.run = findSelect(out);
    break;
  case CDL_KIND_UNARY:
    if (inputs == 1 && in[0] == out) op.run = findUnary(fn, out);
    break;
  case CDL_KIND_CONVERT:
    op.from = in[0];
    op.to = out;
    op.saturate = saturate;
    if (inputs == 1) op.run = findConvert(fn, in[0], out, saturate);
    break;
  default: break;
  }
  return op.run != nullptr;
}

} // namespace candela::soft
