// One step of arithmetic on values in registers, by element type: the functions of UNARY, BINARY,
// COMPARE, SELECT and CONVERT, and RESCALE. The same code for any number of lanes, so that a result
// does not depend on its place in a row.
#pragma once

#include "lowering.hpp"

namespace cpu {

/// A value of an element type. bool is 0 or 1 in an I8.
struct Typed {
  Value value;
  uint8_t elem = 0;
};

/// Whether kernels can do this on these types. `elems`: the operands, then the result.
bool canCompute(uint16_t kind, uint16_t fn, const std::vector<uint8_t>& elems);

/// What (kind, fn) makes of its operands; canCompute said yes. `saturate`: CONVERT's attribute.
Typed compute(Builder& b, uint16_t kind, uint16_t fn, uint8_t elem, bool saturate,
              const std::vector<Typed>& in);

/// The steps of an expression on its views (converted to registers) and, in an epilogue, the
/// accumulator.
Typed computeExpr(Builder& b, const cdl_image_t* image, const cdl_expr_t& expr,
                  const std::vector<Typed>& views, const Typed* acc);
/// Computes steps first .. end of it: the prologue of a REDUCE, or its epilogue.
Typed computeSteps(Builder& b, const cdl_image_t* image, const cdl_expr_t& expr, uint32_t first,
                   uint32_t end, const std::vector<Typed>& views, const Typed* acc);
bool canComputeExpr(const cdl_image_t* image, const cdl_expr_t& expr);
/// Whether it is more than a few instructions per value: not to be written once per register.
bool isLongExpr(const cdl_image_t* image, const cdl_expr_t& expr);

struct RescaleForm {
  int64_t aLeftShift = 0, bLeftShift = 0, clampMin = 0, clampMax = 0;
};
/// The form of a RESCALE that is a step.
RescaleForm stepForm(const cdl_step_t& step);
/// Computes clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp): in = a, Ma, s, zp and, with six of
/// them, b, Mb.
Typed computeRescale(Builder& b, const RescaleForm& form, uint8_t elem,
                     const std::vector<Typed>& in);

/// Computes clamp(rne(a * scale) + zero) of f64 values, exact for |a| < 2^53 and a scale of 24
/// significant bits.
Value roundedF64(Builder& b, const RescaleForm& form, uint8_t elem, Value a, Value scale,
                 Value zero);

/// The same of i32 values, in f32, as i32. Exact where saturatesInF32() says so.
Value roundedF32(Builder& b, const RescaleForm& form, Value a, Value scale, int64_t zero);
/// Whether any sum that f32 cannot hold is beyond the limits of the result: then a product of f32
/// and one fused addition round as the integer semantics do. scale: of 24 significant bits.
bool saturatesInF32(const RescaleForm& form, double scale, int64_t zero);

/// Constants of a RESCALE of two operands, of 8 bits each: clamp(rne((x * a + y * b) / 2^shift) +
/// zero).
struct JoinRescale {
  int64_t a = 0, b = 0, shift = 0, zero = 0;
  RescaleForm form;
  /// Whether its numbers fit into the arithmetic of joined().
  bool isNarrow() const;
};
/// Joins two values by the joining. x, y: i32 of 9 bits; the result is i32 too.
Value joined(Builder& b, const JoinRescale& joining, Value x, Value y);

// Functions of f32 vectors; errors in units in the last place over all of f32, measured by the
// tests.
Value expF32(Builder& b, Value x);     // 1
Value logF32(Builder& b, Value x);     // 0.8
Value tanhF32(Builder& b, Value x);    // 1.4
Value erfF32(Builder& b, Value x);     // 5.1
Value sigmoidF32(Builder& b, Value x); // 2.5

} // namespace cpu
