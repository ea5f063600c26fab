#include "core/compiler/quantize/observer.h"

#include <gmock/gmock.h>

#include <random>

namespace candela::quantize {
namespace {

Tensor reals(const std::vector<float>& values) {
  return Tensor::of(Elem::f32_, {std::ssize(values)}, values);
}

uint64_t totalOf(const Histogram& histogram) {
  uint64_t total = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) total += histogram.count(bin);
  return total;
}

TEST(ObserverTest, KnowsMomentsAndZeros) {
  Observer seen;
  seen.add(reals({-1, 0, 0, 3}), false);
  EXPECT_EQ(seen.min, -1);
  EXPECT_EQ(seen.max, 3);
  EXPECT_EQ(seen.zeros, 2u);
  EXPECT_EQ(seen.count, 4u);
  EXPECT_DOUBLE_EQ(seen.mean(), 0.5);
  EXPECT_DOUBLE_EQ(seen.deviation(), 1.5);
  EXPECT_EQ(totalOf(seen.histogram), 4u);
}

TEST(ObserverTest, CountsWhatIsNotFiniteApart) {
  Observer seen;
  seen.add(reals({1, NAN, INFINITY, -INFINITY, 2}), false);
  EXPECT_EQ(seen.notFinite, 3u);
  EXPECT_EQ(seen.count, 2u);
  EXPECT_EQ(seen.max, 2);
}

TEST(ObserverTest, LosesNothingWhenTheRangeGrows) {
  Observer seen;
  seen.add(reals({1e-3f, -1e-3f}), false);
  seen.add(reals({1e6f}), false);
  EXPECT_EQ(totalOf(seen.histogram), 3u);
  EXPECT_GE(std::ldexp(1, seen.histogram.exponent()), 1e6);
}

TEST(ObserverTest, PlacesEveryValueInItsBin) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> spread(-4, 4);
  std::vector<float> values(5000);
  for (float& value : values) value = spread(random);
  Observer seen;
  seen.add(reals(values), false);
  std::vector<uint64_t> want(Histogram::kBins, 0);
  for (const float value : values)
    ++want[static_cast<size_t>(std::floor(static_cast<double>(value) / seen.histogram.width()) +
                               Histogram::kBins / 2)];
  for (int bin = 0; bin < Histogram::kBins; ++bin)
    ASSERT_EQ(seen.histogram.count(bin), want[static_cast<size_t>(bin)]) << bin;
}

TEST(ObserverTest, MergesAsIfTheRunsHadFollowed) {
  std::mt19937 random(2);
  Observer one, first, second;
  for (int run = 0; run < 6; ++run) {
    std::normal_distribution<float> spread(0, static_cast<float>(std::exp2(run)));
    std::vector<float> values(777);
    for (float& value : values) value = spread(random);
    one.add(reals(values), false);
    (run < 3 ? first : second).add(reals(values), false);
  }
  first.merge(second);
  EXPECT_EQ(first.min, one.min);
  EXPECT_EQ(first.count, one.count);
  EXPECT_EQ(first.histogram.exponent(), one.histogram.exponent());
  for (int bin = 0; bin < Histogram::kBins; ++bin)
    ASSERT_EQ(first.histogram.count(bin), one.histogram.count(bin));
}

TEST(ObserverTest, KnowsChannelsWhereAsked) {
  Observer seen;
  seen.add(Tensor::of<float>(Elem::f32_, {2, 2, 2}, {1, 2, -3, 4, 5, 6, 7, -8}), true);
  ASSERT_EQ(seen.channels.size(), 2u);
  EXPECT_EQ(seen.channels[0].min, 1);
  EXPECT_EQ(seen.channels[0].max, 6);
  EXPECT_EQ(seen.channels[1].min, -8);
  EXPECT_EQ(seen.channels[1].count, 4u);
}

} // namespace
} // namespace candela::quantize
