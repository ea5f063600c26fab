// BINARY, COMPARE, SELECT and UNARY: element by element; broadcasting is a stride of 0.
#include "../template.hpp"

#include <cmath>

namespace {

template <class T, class F> cdl::Status apply(const cdl::Binary& op, F f) {
  map(f, op.y<T>(), op.a<const T>(), op.b<const T>());
  return cdl::ok();
}

cdl::Status binaryF32(const cdl::Binary& op) {
  switch (op.fn()) {
  case CDL_BINARY_ADD: return apply<float>(op, Add());
  case CDL_BINARY_SUB: return apply<float>(op, [](float a, float b) { return a - b; });
  case CDL_BINARY_MUL: return apply<float>(op, Mul());
  case CDL_BINARY_DIV: return apply<float>(op, [](float a, float b) { return a / b; });
  case CDL_BINARY_MIN: return apply<float>(op, Min());
  case CDL_BINARY_MAX: return apply<float>(op, Max());
  default: return unknownFunction(op, CDL_F32);
  }
}

cdl::Status binaryI32(const cdl::Binary& op) {
  switch (op.fn()) {
  case CDL_BINARY_ADD: return apply<int32_t>(op, cdl_add_i32);
  case CDL_BINARY_SUB: return apply<int32_t>(op, cdl_sub_i32);
  case CDL_BINARY_MUL: return apply<int32_t>(op, cdl_mul_i32);
  case CDL_BINARY_DIV: return apply<int32_t>(op, cdl_div_i32);
  case CDL_BINARY_MIN: return apply<int32_t>(op, cdl_min_i32);
  case CDL_BINARY_MAX: return apply<int32_t>(op, cdl_max_i32);
  case CDL_BINARY_AND: return apply<int32_t>(op, [](int32_t a, int32_t b) { return a & b; });
  case CDL_BINARY_OR: return apply<int32_t>(op, [](int32_t a, int32_t b) { return a | b; });
  case CDL_BINARY_XOR: return apply<int32_t>(op, [](int32_t a, int32_t b) { return a ^ b; });
  case CDL_BINARY_SHL: return apply<int32_t>(op, cdl_shl_i32);
  case CDL_BINARY_SHR: return apply<int32_t>(op, cdl_shr_i32);
  default: return unknownFunction(op, CDL_I32);
  }
}

cdl::Status binaryBool(const cdl::Binary& op) {
  switch (op.fn()) {
  case CDL_BINARY_AND:
    return apply<uint8_t>(op, [](uint8_t a, uint8_t b) -> uint8_t { return a & b; });
  case CDL_BINARY_OR:
    return apply<uint8_t>(op, [](uint8_t a, uint8_t b) -> uint8_t { return a | b; });
  case CDL_BINARY_XOR:
    return apply<uint8_t>(op, [](uint8_t a, uint8_t b) -> uint8_t { return a ^ b; });
  default: return unknownFunction(op, CDL_BOOL);
  }
}

} // namespace

cdl::Status Template::binary(const cdl::Binary& op) {
  switch (op.y().elem) {
  case CDL_F32: return binaryF32(op);
  case CDL_I32: return binaryI32(op);
  case CDL_BOOL: return binaryBool(op);
  default: return unknownFunction(op, op.y().elem);
  }
}

cdl::Status Template::compare(const cdl::Compare& op) {
  return withElem(op, op.a().elem, [&](auto type) {
    using T = typename decltype(type)::Value;
    const auto a = op.a<const T>(), b = op.b<const T>();
    const auto y = op.y<uint8_t>();
    if (op.fn() == CDL_COMPARE_EQ)
      map([](T l, T r) -> uint8_t { return l == r; }, y, a, b);
    else
      map([](T l, T r) -> uint8_t { return l < r; }, y, a, b);
    return cdl::ok();
  });
}

cdl::Status Template::select(const cdl::Select& op) {
  return withElem(op, op.y().elem, [&](auto type) {
    using T = typename decltype(type)::Value;
    map([](uint8_t cond, T a, T b) { return cond ? a : b; }, op.y<T>(), op.cond<const uint8_t>(),
        op.a<const T>(), op.b<const T>());
    return cdl::ok();
  });
}

cdl::Status Template::unary(const cdl::Unary& op) {
  const auto x = op.x<const float>();
  const auto y = op.y<float>();
  switch (op.fn()) {
  case CDL_UNARY_NEG: map([](float v) { return -v; }, y, x); break;
  case CDL_UNARY_ABS: map([](float v) { return std::fabs(v); }, y, x); break;
  case CDL_UNARY_FLOOR: map([](float v) { return std::floor(v); }, y, x); break;
  case CDL_UNARY_SQRT: map([](float v) { return std::sqrt(v); }, y, x); break;
  case CDL_UNARY_RCP: map([](float v) { return 1.0f / v; }, y, x); break;
  case CDL_UNARY_EXP: map([](float v) { return std::exp(v); }, y, x); break;
  case CDL_UNARY_LOG: map([](float v) { return std::log(v); }, y, x); break;
  default: return unknownFunction(op, CDL_F32);
  }
  return cdl::ok();
}
