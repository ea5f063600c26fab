// What the kernels of SCALED_MATMUL share: weights out of words, results into memory.
#include "elementwise.hpp"
#include "scaled_product.hpp"

namespace cpu {

Value ScaledKernel::weightOf(Value word, int k) {
  const int at = k % 4 * 8 + k / 4 * bits_;
  const int rest = 32 - bits_;
  if (p_.isSigned()) return b_.shr(b_.shl(word, b_.i32(rest - at)), b_.i32(rest), true);
  return b_.bitAnd(b_.shr(word, b_.i32(at), false), b_.i32((1 << bits_) - 1));
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
