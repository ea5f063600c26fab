#include "core/reference/scalar.h"

#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

TEST(Scalar, WrapsLikeTheType) {
  EXPECT_EQ(static_cast<int64_t>(wrap(Elem::i8_, 130)), -126);
  EXPECT_EQ(static_cast<int64_t>(wrap(Elem::u8_, -1)), 255);
  EXPECT_EQ(static_cast<int64_t>(wrap(Elem::i64_, integerRange(Elem::i64_).highest + 1)),
            INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(wrap(Elem::u64_, -1)), UINT64_MAX);
  EXPECT_EQ(static_cast<int64_t>(wrap(Elem::i4_, 9)), -7);
  EXPECT_EQ(static_cast<int64_t>(wrap(Elem::bool_, 256)), 1);
}

TEST(Scalar, IntegerSemantics) {
  const auto of = [](uint16_t fn, Elem elem, Whole a, Whole b) {
    return static_cast<int64_t>(wrap(elem, binary(fn, elem, a, b)));
  };
  EXPECT_EQ(of(CDL_BINARY_DIV, Elem::i32_, -7, 2), -3);
  EXPECT_EQ(of(CDL_BINARY_DIV, Elem::i32_, 7, 0), 0);
  EXPECT_EQ(of(CDL_BINARY_DIV, Elem::i32_, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(of(CDL_BINARY_REM, Elem::i32_, -7, 3), -1);
  EXPECT_EQ(of(CDL_BINARY_REM, Elem::i32_, -7, 0), -7);
  EXPECT_EQ(of(CDL_BINARY_SHL, Elem::i8_, 1, 7), -128);
  EXPECT_EQ(of(CDL_BINARY_SHL, Elem::i8_, 1, 8), 0);
  EXPECT_EQ(of(CDL_BINARY_SHL, Elem::i32_, 1, -1), 0);
  EXPECT_EQ(of(CDL_BINARY_SHR, Elem::i8_, -128, 9), -1);
  EXPECT_EQ(of(CDL_BINARY_SHR, Elem::u8_, 128, 9), 0);
  EXPECT_EQ(of(CDL_BINARY_SHR, Elem::i32_, -5, 1), -3);
  EXPECT_EQ(of(CDL_BINARY_MUL, Elem::i32_, 65536, 65537), 65536);
  EXPECT_EQ(of(CDL_BINARY_POW, Elem::i32_, -3, 3), -27);
  EXPECT_EQ(of(CDL_BINARY_POW, Elem::i32_, 2, 32), 0);
  EXPECT_EQ(of(CDL_BINARY_POW, Elem::i32_, -1, -3), -1);
  EXPECT_EQ(of(CDL_BINARY_POW, Elem::i32_, 2, -1), 0);
  EXPECT_EQ(of(CDL_BINARY_XOR, Elem::u8_, 12, 10), 6);
}

TEST(Scalar, FloatFunctions) {
  EXPECT_TRUE(std::isnan(binary(CDL_BINARY_MIN, 1.0, kNan)));
  EXPECT_TRUE(std::isnan(binary(CDL_BINARY_MAX, kNan, 1.0)));
  EXPECT_TRUE(std::signbit(binary(CDL_BINARY_MIN, 0.0, -0.0)));
  EXPECT_FALSE(std::signbit(binary(CDL_BINARY_MAX, -0.0, 0.0)));
  EXPECT_EQ(binary(CDL_BINARY_REM, -7.5, 2.0), -1.5);
  EXPECT_EQ(unary(CDL_UNARY_ROUND_EVEN, 2.5), 2.0);
  EXPECT_EQ(unary(CDL_UNARY_ROUND_EVEN, -3.5), -4.0);
  EXPECT_EQ(unary(CDL_UNARY_TRUNC, -3.9), -3.0);
  EXPECT_EQ(unary(CDL_UNARY_SIGMOID, 0.0), 0.5);
  EXPECT_NEAR(unary(CDL_UNARY_SIGMOID, -720.0), 2.03223080242e-313, 1e-322); // exp(720) is infinite
  EXPECT_EQ(unary(CDL_UNARY_RSQRT, 4.0), 0.5);
  EXPECT_DOUBLE_EQ(unary(CDL_UNARY_EXPM1, 1e-17), 1e-17);
  EXPECT_DOUBLE_EQ(unary(CDL_UNARY_LOG1P, 1e-17), 1e-17);
  EXPECT_FALSE(compare(CDL_COMPARE_EQ, kNan, kNan));
  EXPECT_FALSE(compare(CDL_COMPARE_LT, kNan, 1.0));
}

TEST(Scalar, RealToWhole) {
  const auto of = [](Elem to, double value, uint16_t fn, bool saturate) {
    return static_cast<int64_t>(realToWhole(to, value, fn, saturate));
  };
  EXPECT_EQ(of(Elem::i32_, -2.7, CDL_CONVERT_TRUNC, false), -2);
  EXPECT_EQ(of(Elem::i32_, -2.7, CDL_CONVERT_FLOOR, false), -3);
  EXPECT_EQ(of(Elem::i32_, 2.5, CDL_CONVERT_RNE, false), 2);
  EXPECT_EQ(of(Elem::i8_, 300.0, CDL_CONVERT_TRUNC, false), 44);
  EXPECT_EQ(of(Elem::i8_, 300.0, CDL_CONVERT_TRUNC, true), 127);
  EXPECT_EQ(of(Elem::u8_, -5.0, CDL_CONVERT_TRUNC, true), 0);
  EXPECT_EQ(of(Elem::i8_, kNan, CDL_CONVERT_TRUNC, true), 0);
  EXPECT_EQ(of(Elem::i32_, kInf, CDL_CONVERT_TRUNC, true), INT32_MAX);
  EXPECT_EQ(of(Elem::i32_, -kInf, CDL_CONVERT_TRUNC, false), 0);
  EXPECT_EQ(of(Elem::i32_, kInf, CDL_CONVERT_TRUNC, false), -1);
  EXPECT_EQ(of(Elem::bool_, 0.25, CDL_CONVERT_TRUNC, false), 1);
  EXPECT_EQ(of(Elem::bool_, kNan, CDL_CONVERT_TRUNC, false), 1);
}

TEST(Scalar, WholeToRealRoundsOnce) {
  EXPECT_EQ(wholeToReal(Elem::f32_, (Whole(1) << 24) + 1), 0x1p24);
  EXPECT_EQ(wholeToReal(Elem::f32_, (Whole(1) << 24) + 3), 0x1p24 + 4);
  // Just above a tie of f32, but f64 would round it onto the tie first, and then down to even.
  EXPECT_EQ(wholeToReal(Elem::f32_, (Whole(1) << 62) + (Whole(1) << 38) + 1), 0x1p62 + 0x1p39);
  EXPECT_EQ(wholeToReal(Elem::f32_, -((Whole(1) << 62) + (Whole(1) << 38) + 1)),
            -(0x1p62 + 0x1p39));
  EXPECT_EQ(wholeToReal(Elem::f16_, 70000), kInf);
  EXPECT_EQ(wholeToReal(Elem::f64_, INT64_MIN), -0x1p63);
}

TEST(Scalar, RealToReal) {
  EXPECT_EQ(realToReal(Elem::f16_, 70000, false), kInf);
  EXPECT_EQ(realToReal(Elem::f16_, -70000, true), -65504);
  EXPECT_TRUE(std::isnan(realToReal(Elem::f8e4m3_, 1000, false)));
  EXPECT_EQ(realToReal(Elem::f8e4m3_, 1000, true), 448);
  EXPECT_TRUE(std::isnan(realToReal(Elem::f8e4m3_, kNan, true)));
  EXPECT_EQ(realToReal(Elem::bf16_, 1 + 0x1p-8, false), 1);
}

TEST(Scalar, ShiftRightEven) {
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(6, 2)), 2);
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(2, 2)), 0);
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(-6, 2)), -2);
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(-7, 2)), -2);
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(-5, 0)), -5);
  EXPECT_EQ(static_cast<int64_t>(shiftRightEven(12345, 126)), 0);
}

} // namespace
} // namespace candela::reference
