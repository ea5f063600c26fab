#include <cmath>

#include "core/reference/index.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

using Operands = std::span<const Array* const>;
using Results = std::span<Array>;

/// y = fn(x): floats, and integers where the function has them.
Status map(Operands in, Results out, uint16_t fn) {
  for (size_t i = 0; i < in[0]->real.size(); ++i) out[0].real[i] = unary(fn, in[0]->real[i]);
  for (size_t i = 0; i < in[0]->whole.size(); ++i) out[0].whole[i] = unary(fn, in[0]->whole[i]);
  return Status::ok();
}

std::array<Strides, 2> pairStrides(Operands in, const Array& y) {
  return {broadcastStrides(in[0]->dims, y.dims), broadcastStrides(in[1]->dims, y.dims)};
}

/// y = fn(a, b), broadcast.
Status zip(Operands in, Results out, uint16_t fn) {
  const Array &a = *in[0], &b = *in[1];
  Array& y = out[0];
  int64_t i = 0;
  if (isFloat(y.elem)) {
    forEach(y.dims, pairStrides(in, y), [&](int64_t p, int64_t q) { y.real[i++] = binary(fn, a.real[p], b.real[q]); });
  } else {
    forEach(y.dims, pairStrides(in, y),
            [&](int64_t p, int64_t q) { y.whole[i++] = binary(fn, y.elem, a.whole[p], b.whole[q]); });
  }
  return Status::ok();
}

/// y = a fn b as bool, broadcast.
Status zipBool(Operands in, Results out, uint16_t fn) {
  const Array &a = *in[0], &b = *in[1];
  Array& y = out[0];
  int64_t i = 0;
  if (isFloat(a.elem)) {
    forEach(y.dims, pairStrides(in, y),
            [&](int64_t p, int64_t q) { y.whole[i++] = compare(fn, a.real[p], b.real[q]); });
  } else {
    forEach(y.dims, pairStrides(in, y),
            [&](int64_t p, int64_t q) { y.whole[i++] = compare(fn, a.whole[p], b.whole[q]); });
  }
  return Status::ok();
}

} // namespace

#define CANDELA_FORM(Kind, call)                                                                                       \
  Status reference##Kind(const graph::Node&, Operands in, Results out) { return call; }
CANDELA_FORM(Add, zip(in, out, CDL_BINARY_ADD))
CANDELA_FORM(Sub, zip(in, out, CDL_BINARY_SUB))
CANDELA_FORM(Mul, zip(in, out, CDL_BINARY_MUL))
CANDELA_FORM(Div, zip(in, out, CDL_BINARY_DIV))
CANDELA_FORM(Min, zip(in, out, CDL_BINARY_MIN))
CANDELA_FORM(Max, zip(in, out, CDL_BINARY_MAX))
CANDELA_FORM(Pow, zip(in, out, CDL_BINARY_POW))
CANDELA_FORM(Equal, zipBool(in, out, CDL_COMPARE_EQ))
CANDELA_FORM(Less, zipBool(in, out, CDL_COMPARE_LT))
CANDELA_FORM(Neg, map(in, out, CDL_UNARY_NEG))
CANDELA_FORM(Abs, map(in, out, CDL_UNARY_ABS))
CANDELA_FORM(Floor, map(in, out, CDL_UNARY_FLOOR))
CANDELA_FORM(Ceil, map(in, out, CDL_UNARY_CEIL))
CANDELA_FORM(Sqrt, map(in, out, CDL_UNARY_SQRT))
CANDELA_FORM(Reciprocal, map(in, out, CDL_UNARY_RCP))
CANDELA_FORM(Exp, map(in, out, CDL_UNARY_EXP))
CANDELA_FORM(Log, map(in, out, CDL_UNARY_LOG))
CANDELA_FORM(Tanh, map(in, out, CDL_UNARY_TANH))
CANDELA_FORM(Sigmoid, map(in, out, CDL_UNARY_SIGMOID))
CANDELA_FORM(Erf, map(in, out, CDL_UNARY_ERF))
#undef CANDELA_FORM

Status referenceSelect(const graph::Node&, Operands in, Results out) {
  Array& y = out[0];
  const std::array<Strides, 3> strides = {broadcastStrides(in[0]->dims, y.dims), broadcastStrides(in[1]->dims, y.dims),
                                          broadcastStrides(in[2]->dims, y.dims)};
  onElements(*in[1], y, [&](const auto& a, auto& result) {
    const auto& b = [&]() -> const auto& {
      if constexpr (std::is_same_v<decltype(a), const std::vector<double>&>)
        return in[2]->real;
      else
        return in[2]->whole;
    }
    ();
    int64_t i = 0;
    forEach(y.dims, strides, [&](int64_t c, int64_t p, int64_t q) { result[i++] = in[0]->whole[c] ? a[p] : b[q]; });
  });
  return Status::ok();
}

Status referenceGelu(const graph::Node&, Operands in, Results out) {
  for (size_t i = 0; i < out[0].real.size(); ++i)
    out[0].real[i] = in[0]->real[i] / 2 * std::erfc(-in[0]->real[i] / std::sqrt(2.0));
  return Status::ok();
}

Status referenceRelu(const graph::Node&, Operands in, Results out) {
  for (size_t i = 0; i < out[0].real.size(); ++i) out[0].real[i] = binary(CDL_BINARY_MAX, in[0]->real[i], 0.0);
  for (size_t i = 0; i < out[0].whole.size(); ++i) out[0].whole[i] = std::max<Whole>(in[0]->whole[i], 0);
  return Status::ok();
}

Status referenceClip(const graph::Node&, Operands in, Results out) {
  const Array &x = *in[0], *lo = in[1], *hi = in[2];
  for (size_t i = 0; i < x.real.size(); ++i) {
    double value = x.real[i];
    if (lo) value = binary(CDL_BINARY_MAX, value, lo->real[0]);
    if (hi) value = binary(CDL_BINARY_MIN, value, hi->real[0]);
    out[0].real[i] = value;
  }
  for (size_t i = 0; i < x.whole.size(); ++i) {
    Whole value = x.whole[i];
    if (lo) value = std::max(value, lo->whole[0]);
    if (hi) value = std::min(value, hi->whole[0]);
    out[0].whole[i] = value;
  }
  return Status::ok();
}

Status referenceCast(const graph::Node& node, Operands in, Results out) {
  const Array& x = *in[0];
  Array& y = out[0];
  const bool saturate = node.intAttr("saturate");
  for (int64_t i = 0; i < y.count(); ++i) {
    if (isFloat(x.elem) && isFloat(y.elem)) y.real[i] = realToReal(y.elem, x.real[i], saturate);
    if (isFloat(x.elem) && !isFloat(y.elem)) y.whole[i] = realToWhole(y.elem, x.real[i], CDL_CONVERT_TRUNC, saturate);
    if (!isFloat(x.elem) && isFloat(y.elem)) y.real[i] = wholeToReal(y.elem, x.whole[i]);
    if (!isFloat(x.elem) && !isFloat(y.elem)) y.whole[i] = wholeToWhole(y.elem, x.whole[i], saturate);
  }
  return Status::ok();
}

} // namespace candela::reference
