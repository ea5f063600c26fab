#include "core/compiler/quantize/calibrate.h"

#include <gmock/gmock.h>

#include <random>

namespace candela::quantize {
namespace {

Observer seenOf(const std::vector<float>& values) {
  Observer seen;
  seen.add(Tensor::of(Elem::f32_, {std::ssize(values)}, values), false);
  return seen;
}

/// Normal values, and one far away.
Observer withOutlier(float outlier) {
  std::mt19937 random(1);
  std::normal_distribution<float> spread(0, 1);
  std::vector<float> values(100000);
  for (float& value : values) value = spread(random);
  values[5] = outlier;
  return seenOf(values);
}

TEST(CalibrateTest, MinmaxTakesWhatWasSeen) {
  const Range range = calibrate(seenOf({-2, 1, 5}), {});
  EXPECT_EQ(range.lowest, -2);
  EXPECT_EQ(range.highest, 5);
}

TEST(CalibrateTest, OthersLeaveOutliersBeyond) {
  for (const auto& [calibrator, outlier] : {std::pair(Calibrator::percentile, 1000.0f),
                                            {Calibrator::entropy, 100.0f},
                                            {Calibrator::mse, 1000.0f}}) {
    CalibrationOptions options;
    options.calibrator = calibrator;
    options.percentile = 99.99;
    const Range range = calibrate(withOutlier(outlier), options);
    EXPECT_LT(range.highest, 0.95 * static_cast<double>(outlier)) << calibratorName(calibrator);
    EXPECT_GT(range.highest, 2.5) << calibratorName(calibrator);
  }
}

TEST(CalibrateTest, MseAndEntropyAreNoWorseThanMinmax) {
  for (const float outlier : {3.0f, 8.0f, 20.0f, 60.0f}) {
    const Observer seen = withOutlier(outlier);
    CalibrationOptions options;
    const double all = expectedError(seen.histogram, seen.zeros, chooseQuantization(seen, options));
    for (const Calibrator calibrator : {Calibrator::mse, Calibrator::entropy}) {
      options.calibrator = calibrator;
      EXPECT_LE(expectedError(seen.histogram, seen.zeros, chooseQuantization(seen, options)), all)
          << calibratorName(calibrator) << ", outlier " << outlier;
    }
  }
}

TEST(CalibrateTest, EntropyKeepsAPeakOfRareValues) {
  std::vector<float> values(10000);
  std::mt19937 random(4);
  std::exponential_distribution<float> small(20);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 100 == 0 ? 3.0f + small(random) : small(random);
  CalibrationOptions options;
  options.calibrator = Calibrator::entropy;
  EXPECT_GT(calibrate(seenOf(values), options).highest, 2.9);
}

TEST(CalibrateTest, ExpectedErrorIsWhatRoundingDoes) {
  std::mt19937 random(3);
  std::normal_distribution<float> spread(0.3f, 1);
  std::vector<float> values(50000);
  for (float& value : values) value = spread(random);
  const Observer seen = seenOf(values);
  const Quantization q = quantizationOf({-2.5, 2}, Scheme::asymmetric, Elem::u8_);
  double want = 0;
  for (const float value : values) {
    const double stored = std::clamp(
        std::nearbyint(static_cast<double>(value / q.scale)) + double(q.zero), 0.0, 255.0);
    const double error =
        (stored - double(q.zero)) * static_cast<double>(q.scale) - static_cast<double>(value);
    want += error * error / 50000;
  }
  EXPECT_NEAR(expectedError(seen.histogram, seen.zeros, q), want, want * 0.05);
}

TEST(CalibrateTest, AsymmetricStepsHaveZeroExactly) {
  const Quantization q = quantizationOf({-1, 3}, Scheme::asymmetric, Elem::u8_);
  EXPECT_EQ(q.elem, Elem::u8_);
  EXPECT_EQ(q.zero, 64);
  EXPECT_NEAR(q.lowest(), -1, 0.01);
  EXPECT_NEAR(q.highest(), 3, 0.01);
  // 0 is within whatever was seen.
  const Quantization above = quantizationOf({2, 4}, Scheme::asymmetric, Elem::u8_);
  EXPECT_EQ(above.zero, 0);
  EXPECT_NEAR(above.highest(), 4, 1e-6);
}

TEST(CalibrateTest, SymmetricSchemesHaveNoZeroPoint) {
  const Quantization symmetric = quantizationOf({0, 2}, Scheme::symmetric, Elem::u8_);
  EXPECT_EQ(symmetric.elem, Elem::i8_);
  EXPECT_EQ(symmetric.zero, 0);
  const Quantization positive = quantizationOf({0, 2}, Scheme::symmetricUint8, Elem::u8_);
  EXPECT_EQ(positive.elem, Elem::u8_);
  EXPECT_NEAR(positive.highest(), 2, 1e-6);
  EXPECT_EQ(quantizationOf({-1, 2}, Scheme::symmetricUint8, Elem::u8_).elem, Elem::i8_);
}

TEST(CalibrateTest, PowersOfTwoAreSuch) {
  const Quantization q = quantizationOf({-1, 3}, Scheme::powerOfTwo, Elem::i8_);
  EXPECT_EQ(q.scale, 0.03125f);
  EXPECT_GE(q.highest(), 3);
}

TEST(CalibrateTest, AConstantOfZeroHasStepsOfOne) {
  const Quantization q = chooseQuantization(seenOf({0, 0, 0}), {});
  EXPECT_EQ(q.scale, 1);
  EXPECT_EQ(q.zero, 0);
  const Quantization none = chooseQuantization(Observer(), {});
  EXPECT_EQ(none.scale, 1);
}

TEST(CalibrateTest, SaturationCountsWhatIsBeyond) {
  std::vector<float> values(1000, 1.0f);
  for (size_t i = 0; i < 10; ++i) values[i] = 100;
  const Observer seen = seenOf(values);
  EXPECT_NEAR(saturation(seen, quantizationOf({0, 2}, Scheme::asymmetric, Elem::u8_)), 0.01, 1e-9);
}

TEST(CalibrateTest, NamesReadBack) {
  for (const auto c : {Calibrator::minmax, Calibrator::movingAverage, Calibrator::percentile,
                       Calibrator::entropy, Calibrator::mse})
    EXPECT_EQ(parseCalibrator(calibratorName(c)), c);
  EXPECT_EQ(parseCalibrator("kl"), std::nullopt);
}

} // namespace
} // namespace candela::quantize
