#include "core/compiler/quantize/observer.h"

#include <algorithm>
#include <cfloat>

namespace candela::quantize {
namespace {

/// The least exponent whose range has the magnitude.
int exponentOf(double magnitude) {
  int exponent = Histogram::kLeastExponent;
  if (magnitude > 0) std::frexp(magnitude, &exponent);
  return std::max(exponent, Histogram::kLeastExponent);
}

constexpr size_t kLanes = 16;

/// What a run's values are, in one pass.
struct Sums {
  float min = FLT_MAX, max = -FLT_MAX;
  double sum = 0, squares = 0;
  uint64_t zeros = 0;
  bool finite = true;
};

/// Lane by lane, so that it is computed on vectors; blocks keep the sums of f32 exact enough.
Sums sumsOf(std::span<const float> values) {
  constexpr size_t kBlock = 1024;
  Sums total;
  for (size_t start = 0; start < values.size(); start += kBlock) {
    const size_t end = std::min(values.size(), start + kBlock);
    float low[kLanes], high[kLanes], sum[kLanes] = {}, squares[kLanes] = {};
    uint32_t zeros[kLanes] = {}, odd[kLanes] = {};
    std::fill_n(low, kLanes, FLT_MAX);
    std::fill_n(high, kLanes, -FLT_MAX);
    for (size_t i = start; i < end; i += kLanes) {
      const size_t lanes = std::min(kLanes, end - i);
      for (size_t lane = 0; lane < lanes; ++lane) {
        const float value = values[i + lane];
        low[lane] = value < low[lane] ? value : low[lane];
        high[lane] = value > high[lane] ? value : high[lane];
        sum[lane] += value;
        squares[lane] += value * value;
        zeros[lane] += value == 0;
        odd[lane] += !(std::abs(value) <= FLT_MAX);
      }
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      total.min = std::min(total.min, low[lane]);
      total.max = std::max(total.max, high[lane]);
      total.sum += static_cast<double>(sum[lane]);
      total.squares += static_cast<double>(squares[lane]);
      total.zeros += zeros[lane];
      total.finite = total.finite && odd[lane] == 0;
    }
  }
  return total;
}

} // namespace

void Histogram::widen(int exponent) {
  if (counts_.empty()) {
    counts_.assign(kBins, 0);
    exponent_ = exponent;
    return;
  }
  for (; exponent_ < exponent; ++exponent_) {
    std::vector<uint64_t> halves(kBins, 0);
    for (int bin = 0; bin < kBins; ++bin)
      halves[static_cast<size_t>(kBins / 4 + bin / 2)] += counts_[static_cast<size_t>(bin)];
    counts_ = std::move(halves);
  }
}

void Histogram::add(std::span<const float> values, double largest) {
  widen(exponentOf(largest));
  const auto scale = static_cast<float>(1 / width());
  constexpr float kMiddle = kBins / 2;
  for (const float value : values) {
    const auto bin = static_cast<int>(value * scale + kMiddle); // positive, so this is the floor
    ++counts_[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
  }
}

void Histogram::merge(const Histogram& other) {
  if (other.empty()) return;
  Histogram copy = other;
  widen(std::max(copy.exponent_, empty() ? copy.exponent_ : exponent_));
  copy.widen(exponent_);
  for (size_t bin = 0; bin < counts_.size(); ++bin) counts_[bin] += copy.counts_[bin];
}

double Observer::deviation() const {
  if (!count) return 0;
  const double variance = sumOfSquares / static_cast<double>(count) - mean() * mean();
  return std::sqrt(std::max(0.0, variance));
}

void Observer::add(const Tensor& tensor, bool perChannel) {
  const std::span<const float> all(tensor.as<float>(), static_cast<size_t>(tensor.count()));
  Sums sums = sumsOf(all);
  std::span<const float> values = all;
  std::vector<float> finite;
  if (!sums.finite) {
    std::ranges::copy_if(all, std::back_inserter(finite),
                         [](float value) { return std::isfinite(value); });
    notFinite += all.size() - finite.size();
    values = finite;
    sums = sumsOf(values);
  }
  if (values.empty()) return;
  const double lowest = static_cast<double>(sums.min), highest = static_cast<double>(sums.max);
  const double past = runs ? kInertia : 0;
  averageMin = past * averageMin + (1 - past) * lowest;
  averageMax = past * averageMax + (1 - past) * highest;
  ++runs;
  min = std::min(min, lowest);
  max = std::max(max, highest);
  sum += sums.sum;
  sumOfSquares += sums.squares;
  zeros += sums.zeros;
  count += values.size();
  histogram.add(values, std::max(std::abs(lowest), std::abs(highest)));
  if (perChannel && tensor.dims.size() >= 2) addChannels(tensor);
}

void Observer::addChannels(const Tensor& tensor) {
  const auto wanted = static_cast<size_t>(tensor.dims[1]);
  const size_t outer = static_cast<size_t>(tensor.dims[0]);
  channels.resize(std::max(channels.size(), wanted));
  const size_t inner = static_cast<size_t>(tensor.count()) / std::max<size_t>(1, outer * wanted);
  const float* at = tensor.as<float>();
  for (size_t row = 0; row < outer * wanted; ++row, at += inner) {
    const Sums sums = sumsOf({at, inner});
    if (!sums.finite || inner == 0) continue;
    Channel& channel = channels[row % wanted];
    channel.min = std::min(channel.min, static_cast<double>(sums.min));
    channel.max = std::max(channel.max, static_cast<double>(sums.max));
    channel.sum += sums.sum;
    channel.count += inner;
  }
}

void Observer::merge(const Observer& other) {
  if (other.runs) {
    const double past = runs ? std::pow(kInertia, static_cast<double>(other.runs)) : 0;
    averageMin = past * averageMin + (1 - past) * other.averageMin;
    averageMax = past * averageMax + (1 - past) * other.averageMax;
  }
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  sum += other.sum;
  sumOfSquares += other.sumOfSquares;
  count += other.count;
  zeros += other.zeros;
  runs += other.runs;
  notFinite += other.notFinite;
  histogram.merge(other.histogram);
  channels.resize(std::max(channels.size(), other.channels.size()));
  for (size_t c = 0; c < other.channels.size(); ++c) {
    channels[c].min = std::min(channels[c].min, other.channels[c].min);
    channels[c].max = std::max(channels[c].max, other.channels[c].max);
    channels[c].sum += other.channels[c].sum;
    channels[c].count += other.channels[c].count;
  }
}

} // namespace candela::quantize
