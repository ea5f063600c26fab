// The comparator: one that accepted everything would make every other test worthless.
#include "core/support/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace candela {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(Shape dims, const std::vector<float>& values) {
  return Tensor::of(Elem::f32_, std::move(dims), values);
}

TEST(Compare, EqualTensorsPass) {
  const Tensor x = floats({2, 2}, {1, -2, kInf, kNan});
  const Comparison result = compareTensors(x, x);
  EXPECT_TRUE(result.passed());
  EXPECT_EQ(result.count, 4);
  EXPECT_EQ(result.maxAbs, 0);
}

TEST(Compare, AWrongValueFailsAndIsNamed) {
  const Comparison result =
      compareTensors(floats({2, 2}, {1, 2, 3, 4.1f}), floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.mismatches, 1);
  EXPECT_EQ(result.first, (Shape{1, 1}));
  EXPECT_NEAR(result.maxAbs, 0.1, 1e-6);
  EXPECT_NEAR(result.maxRel, 0.025, 1e-6);
  EXPECT_NE(result.text().find("1 of 4 values differ, first at [1,1]: expected 4, got 4.1"),
            std::string::npos)
      << result.text();
}

TEST(Compare, TheBoundIsAbsolutePlusRelative) {
  const CompareBound bound{1e-2, 1e-3, true};
  const auto passes = [&](float got, float want) {
    return compareTensors(floats({1}, {got}), floats({1}, {want}), bound).passed();
  };
  EXPECT_TRUE(passes(100.9f, 100));
  EXPECT_FALSE(passes(101.1f, 100));
  EXPECT_TRUE(passes(9e-4f, 0));
  EXPECT_FALSE(passes(1.1e-3f, 0));
  EXPECT_FALSE(passes(-100, 100)) << "the sign counts";
  EXPECT_FALSE(compareTensors(floats({1}, {1.002f}), floats({1}, {1})).passed())
      << "the standard bound is 1e-3";
}

TEST(Compare, NaNAndInfinityOnOneSideFail) {
  const CompareBound wide{1e30, 1e30, true};
  const auto passes = [&](float got, float want) {
    return compareTensors(floats({1}, {got}), floats({1}, {want}), wide).passed();
  };
  EXPECT_TRUE(passes(kNan, kNan));
  EXPECT_TRUE(passes(kInf, kInf));
  EXPECT_FALSE(passes(kNan, 1));
  EXPECT_FALSE(passes(1, kNan));
  EXPECT_FALSE(passes(kInf, 1));
  EXPECT_FALSE(passes(1, kInf)) << "the bound itself is infinite there";
  EXPECT_FALSE(passes(-kInf, kInf));
  EXPECT_TRUE(std::isinf(compareTensors(floats({1}, {kNan}), floats({1}, {1})).maxAbs));
}

TEST(Compare, ShapeAndTypeFail) {
  const Comparison shape = compareTensors(floats({2, 1}, {1, 2}), floats({1, 2}, {1, 2}));
  EXPECT_FALSE(shape.passed());
  EXPECT_EQ(shape.text(), "expected f32[1,2], got f32[2,1]");
  const Tensor whole = Tensor::of<int32_t>(Elem::i32_, {2}, {1, 2});
  EXPECT_FALSE(compareTensors(whole, floats({2}, {1, 2})).passed());
  EXPECT_FALSE(compareTensors(floats({0}, {}), floats({1}, {0})).passed())
      << "nothing is not something";
  EXPECT_TRUE(compareTensors(floats({0}, {}), floats({0}, {})).passed());
}

TEST(Compare, IntegersAreExactUnlessAsked) {
  const auto one = [](int64_t value) { return Tensor::of<int64_t>(Elem::i64_, {1}, {value}); };
  EXPECT_FALSE(compareTensors(one(1000001), one(1000000)).passed());
  EXPECT_TRUE(compareTensors(one(1000001), one(1000000), {1e-3, 0, false}).passed());
  EXPECT_FALSE(compareTensors(one((int64_t(1) << 60) + 1), one(int64_t(1) << 60)).passed())
      << "beyond a double's 53 bits";
  const auto truth = [](uint8_t value) { return Tensor::of<uint8_t>(Elem::bool_, {1}, {value}); };
  EXPECT_FALSE(compareTensors(truth(1), truth(0), {10, 10, false}).passed());
}

TEST(Compare, SmallTypesAreReadRight) {
  const auto half = [](uint16_t bits) { return Tensor::of<uint16_t>(Elem::f16_, {1}, {bits}); };
  EXPECT_TRUE(compareTensors(half(0x3c00), half(0x3c01)).passed()) << "1 and 1.001";
  EXPECT_FALSE(compareTensors(half(0x3c00), half(0x3c02)).passed()) << "1 and 1.002";
  const auto brain = [](uint16_t bits) { return Tensor::of<uint16_t>(Elem::bf16_, {1}, {bits}); };
  EXPECT_FALSE(compareTensors(brain(0x3f80), brain(0x3f81)).passed()) << "1 and 1.008";
  const auto byte = [](int8_t value) { return Tensor::of<int8_t>(Elem::i8_, {1}, {value}); };
  EXPECT_EQ(compareTensors(byte(-128), byte(127)).maxAbs, 255);
}

} // namespace
} // namespace candela
