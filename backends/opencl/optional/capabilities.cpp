// The second level: what is claimed beyond the primitives that the profiles ask for.
#include "../opencl.hpp"

void OpenCl::claimOptional() {
  using cdl::Kind;
  constexpr uint8_t F32 = CDL_F32, I8 = CDL_I8, I32 = CDL_I32;
  constexpr cdl_operand_class_t kAffine = CDL_CLASS_AFFINE;
  const uint8_t small[] = {CDL_I8, CDL_U8};
  epilogue(Kind::Elementwise,
           {Kind::Convert, Kind::Binary, Kind::Compare, Kind::Select, Kind::Unary});
  native(Kind::Elementwise, 0, {}, kAffine);

  limit(Kind::Conv2d, {cdl::attr(CDL_ATTR_TRANSPOSED) == 0});
  native(Kind::Conv2d, 0, {F32, F32, F32});
  for (uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE}) native(Kind::Pool2d, fn, {F32, F32});
  for (uint8_t elem : small) {
    native(Kind::Pool2d, CDL_POOL2D_MAX, {elem, elem});
    for (Kind kind : {Kind::Conv2d, Kind::MatMul}) { // without zero points, with one, with both
      if (kind == Kind::Conv2d) native(kind, 0, {elem, I8, I32});
      native(kind, 0, {elem, I8, elem, I32});
      native(kind, 0, {elem, I8, elem, I8, I32});
    }
  }
  for (uint8_t a : {CDL_I8, CDL_U8, CDL_I32}) // RESCALE of two, and between integers of any width
    for (uint8_t y : {CDL_I8, CDL_U8, CDL_I32}) {
      const bool isRequired = y != I32 && (a == I32 || a == y); // by INT8
      if (!isRequired) native(Kind::Rescale, 0, {a, I32, I32, I32, y}, kAffine);
      for (uint8_t b : {CDL_I8, CDL_U8, CDL_I32})
        native(Kind::Rescale, 0, {a, I32, I32, I32, b, I32, y}, kAffine);
    }
  for (uint16_t fn : {CDL_UNARY_CEIL, CDL_UNARY_TRUNC, CDL_UNARY_ROUND_EVEN, CDL_UNARY_RSQRT,
                      CDL_UNARY_TANH, CDL_UNARY_ERF, CDL_UNARY_SIGMOID})
    native(Kind::Unary, fn, {F32, F32}, kAffine);
  native(Kind::Binary, CDL_BINARY_REM, {I32, I32, I32}, kAffine);
  for (uint8_t elem : small) native(Kind::Convert, CDL_CONVERT_TRUNC, {F32, elem}, kAffine);
  for (uint8_t elem : small) native(Kind::Convert, CDL_CONVERT_RNE, {F32, elem}, kAffine);
  for (uint8_t elem : small) native(Kind::Convert, CDL_CONVERT_TRUNC, {elem, F32}, kAffine);
}
