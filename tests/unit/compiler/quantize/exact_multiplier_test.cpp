#include "core/compiler/quantize/exact_multiplier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace candela::quantize {
namespace {

constexpr int kSeed = 1;

/// As ONNX Runtime rescales a sum: f32 throughout.
int64_t rescaleInF32(int32_t sum, float weights, const StepsAround& around) {
  const float multiplier = around.input * weights / around.result;
  return static_cast<int64_t>(std::nearbyint(static_cast<float>(sum) * multiplier));
}

/// One rounding of the exact product: both factors have 24 bits here.
int64_t rescaleExactly(int32_t sum, float weights, const StepsAround& around) {
  const double multiplier = static_cast<double>(around.input) * static_cast<double>(weights) /
                            static_cast<double>(around.result);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(sum) *
                                             static_cast<double>(static_cast<float>(multiplier))));
}

/// Sums around each half of a step: those that two roundings may move.
int64_t disagreements(float weights, const StepsAround& around) {
  const double multiplier = static_cast<double>(around.input) * static_cast<double>(weights) /
                            static_cast<double>(around.result);
  int64_t count = 0;
  for (int steps = -255; steps <= 255; ++steps)
    for (int beside = -2; beside <= 2; ++beside) {
      const auto sum = static_cast<int32_t>(std::nearbyint((steps + 0.5) / multiplier)) + beside;
      count += rescaleInF32(sum, weights, around) != rescaleExactly(sum, weights, around);
    }
  return count;
}

TEST(ExactMultiplier, NoSumIsRoundedTwice) {
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> exponents(-9, -2);
  int64_t ofOtherSteps = 0;
  for (int i = 0; i < 2000; ++i) {
    const StepsAround around{std::exp2(exponents(random)), std::exp2(exponents(random))};
    const double wanted = static_cast<double>(around.result / around.input) *
                          std::exp2(static_cast<double>(exponents(random)) - 2);
    const auto step = stepOfExactMultiplier(wanted, wanted * 1.25, around);
    ASSERT_TRUE(step) << "seed " << kSeed << ", case " << i;
    EXPECT_GE(static_cast<double>(*step), wanted * (1 - 1e-6));
    EXPECT_LE(static_cast<double>(*step), wanted * 1.25);
    const double units = static_cast<double>(around.input * *step / around.result) * 0x1p16;
    EXPECT_EQ(units, std::nearbyint(units)) << "seed " << kSeed << ", case " << i;
    EXPECT_EQ(disagreements(*step, around), 0) << "seed " << kSeed << ", case " << i;
    ofOtherSteps += disagreements(static_cast<float>(wanted), around);
  }
  EXPECT_GT(ofOtherSteps, 0); // or the search would be of no use
}

TEST(ExactMultiplier, AMultiplierOfLessThanAUnitHasNone) {
  EXPECT_FALSE(stepOfExactMultiplier(0x1p-18, 1.25 * 0x1p-18, {1, 1}));
  EXPECT_EQ(stepOfExactMultiplier(0x1p-18, 0x1p-16, {1, 1}), 0x1p-16F);
}

TEST(ExactMultiplier, AnEmptyRangeHasNone) {
  EXPECT_FALSE(stepOfExactMultiplier(0.51, 0.5, {1, 1}));
}

TEST(ExactMultiplier, AMultiplierOfMoreBitsThanF32HasNone) {
  EXPECT_FALSE(stepOfExactMultiplier(0x1p9, 0x1p9 + 1e-9, {1, 1}));
}

} // namespace
} // namespace candela::quantize
