// What the kernels of SCALED_MATMUL share: weights out of words, results into memory.
#include "elementwise.hpp"
#include "scaled_product.hpp"

#include <candela/numerics.h>

#include <array>

namespace cpu {

Values ScaledKernel::weightsAt(Value words) {
  Values weights;
  if (p_.hasFloatWeights()) {
    for (int k = 0; k < perWord_; ++k) weights.push_back(floatAt(words, k));
    return weights;
  }
  const Value word = b_.load(Ty::I32, lanes_, words);
  for (int k = 0; k < perWord_; ++k) weights.push_back(numberOf(word, k));
  return weights;
}

/// Floats of a column lie apart: weight k of all lanes, then k + 1. Those of 8 bits are f16 whose
/// low bits are missing, and f8e4m3 has a bit of exponent less, which is a factor.
Value ScaledKernel::floatAt(Value words, int k) {
  const int64_t place = int64_t(k) * lanes_ * bits_ / 8;
  if (bits_ == 16) {
    const Value bits = b_.load(Ty::I16, lanes_, words, place);
    if (p_.in[1].elem == CDL_F16) return b_.fromF16(bits);
    return b_.bitcast(b_.shl(b_.cast(bits, Ty::I32, false), b_.i32(16)), Ty::F32);
  }
  const Value bits = b_.cast(b_.load(Ty::I8, lanes_, words, place), Ty::I16, false);
  const auto word = [&](int value) { return b_.integer(Ty::I16, value); };
  if (p_.in[1].elem == CDL_F8E5M2) return b_.fromF16(b_.shl(bits, word(8)));
  const Value sign = b_.shl(b_.bitAnd(bits, word(0x80)), word(8));
  const Value rest = b_.shl(b_.bitAnd(bits, word(0x7f)), word(7));
  return b_.mul(b_.fromF16(b_.bitOr(sign, rest)), b_.f32(256));
}

/// Weight k of each lane's word.
Value ScaledKernel::integerOf(Value word, int k) {
  const int at = k % 4 * 8 + k / 4 * bits_;
  const int rest = 32 - bits_;
  if (p_.isSigned()) return b_.shr(b_.shl(word, b_.i32(rest - at)), b_.i32(rest), true);
  return b_.bitAnd(b_.shr(word, b_.i32(at), false), b_.i32((1 << bits_) - 1));
}

/// Weight k of each lane's word as f32. The 16 numbers of f4e2m1 lie in a register, or eight of
/// them without their signs.
Value ScaledKernel::numberOf(Value word, int k) {
  const Value bits = integerOf(word, k);
  if (p_.in[1].elem != CDL_F4E2M1) return b_.cast(bits, Ty::F32, true);
  std::array<float, 16> numbers;
  for (uint8_t i = 0; i < numbers.size(); ++i) numbers[i] = cdl_storage_to_f32(CDL_F4E2M1, i);
  const Value table = b_.vector({numbers.begin(), numbers.begin() + lanes_});
  const Value number = b_.permute(table, bits);
  if (lanes_ == 16) return number;
  const Value sign = b_.shl(b_.bitAnd(bits, b_.i32(8)), b_.i32(28));
  return b_.bitcast(b_.bitOr(b_.bitcast(number, Ty::I32), sign), Ty::F32);
}

void ScaledKernel::finish(Value sum, Value m, Value panel) {
  const Value first = b_.mul(panel, b_.i64(lanes_));
  if (group_.live == lanes_) return store(sum, m, first);
  for (int k = 0; k < group_.live; ++k) store(b_.extract(sum, k), m, b_.add(first, b_.i64(k)));
}

Value ScaledKernel::addressOf(const Operand& o, int arg, Value m, Value n) {
  return b_.at(b_.at(b_.arg(arg), m, o.bytes(o.strides[0])), n, o.bytes(o.strides[1]));
}

void ScaledKernel::store(Value sum, Value m, Value n) {
  Value result = sum;
  if (p_.epilogue) {
    std::vector<Typed> views(p_.in.size());
    for (size_t i = p_.operands; i < p_.in.size(); ++i) {
      const Operand& o = p_.in[i];
      const Value at = addressOf(o, static_cast<int>(4 + i - p_.operands), m, n);
      views[i] = {b_.loadStrided(tyOf(o.elem), sum.lanes, at, o.bytes(o.strides[1])), o.elem};
    }
    const Typed acc{sum, CDL_F32};
    result = computeExpr(b_, image_, *p_.epilogue, views, &acc).value;
  }
  b_.storeStrided(result, addressOf(p_.y, 3, m, n), p_.y.bytes(p_.y.strides[1]));
}

} // namespace cpu
