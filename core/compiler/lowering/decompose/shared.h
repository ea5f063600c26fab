#pragma once

#include "core/compiler/graph/window.h"
#include "core/compiler/lowering/decompose/lower.h"

/// What several decompositions use.
namespace candela::lowering::decompose {

using graph::Node, graph::OpKind;
using Value = Lowering::Value;

/// All windows of x[n,c,spatial..] side by side: [n*c, taps, places], places of the spatial dims
/// `out`. What lies outside of x is `bits`.
Value unfold(Lowering& l, Value x, const graph::Window& window, const Shape& out, uint64_t bits);

/// fn over these dims of x, which stay as 1.
Value reduceDims(Lowering& l, Value x, const std::vector<bool>& reduced, const char* fn);
/// Their mean. Integers of less than 32 bits sum in i32; the quotient truncates. Halves go by way
/// of f32 where the target can; else f16 is scaled in two halves so that a sum near the mean's own
/// size does not overflow.
Value meanDims(Lowering& l, Value x, const std::vector<bool>& reduced);

/// The bits of an integer in a type, zero-extended.
inline uint64_t wholeBits(Elem elem, int64_t value) {
  return static_cast<uint64_t>(value) & elemMask(elem);
}

/// batch_matmul of [batch.., m, k] and [batch.., k, n], whose batch dims broadcast, or of vectors
/// that stand for a row and a column; of integers with zero points.
Value matmulAnyRank(Lowering& l, Value a, Value b, Elem to, Value aZero = nullptr,
                    Value bZero = nullptr);

/// x[c] with dims of 1 behind it, so that it broadcasts along `axis` of a value of this rank.
Value alongAxis(Lowering& l, Value x, int axis, int rank);

/// matmul_integer and conv_integer of i16 as two of bytes. Empty where the zero point of the i16 is
/// no constant.
Values lowerByBytes(Lowering& l, const Node& node);

bool isSmallInteger(Elem elem); ///< of less than 32 bits, and computed with
/// The same op on i32, exact for every function of small integers that wraps, orders or truncates.
Values lowerThroughI32(Lowering& l, const Node& node);
/// Optional functions by required ones. Empty when there is no such way.
Values lowerFunction(Lowering& l, const Node& node);

/// SCATTER by `mul`, which is optional; empty where it is another function or would take too many
/// elements.
std::vector<Value> lowerScatterProduct(Lowering& l, const Node& node);

/// Tables with a number for each place or tap are written out while lowering: larger ones are
/// refused.
constexpr int64_t kMostTabled = int64_t(1) << 28;

/// A constant i32 tensor.
Value indexConstant(Lowering& l, const std::vector<int32_t>& values, Shape dims);

/// Bits of the significand of f64, f32, f16 and bf16: whole numbers up to 2^digits are exact.
inline int digits(Elem elem) {
  switch (elem) {
  case Elem::f64_: return 53;
  case Elem::f32_: return 24;
  case Elem::f16_: return 11;
  default: return 8;
  }
}

} // namespace candela::lowering::decompose
