#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/support/tensor.h"

/// What is remembered of the values that went by.
namespace candela::quantize {

/// Counts in bins of equal width over [-2^exponent, 2^exponent). A value beyond doubles the range,
/// and two bins become one: no count is lost or guessed, so that histograms of several runs add up
/// whatever their order.
class Histogram {
public:
  static constexpr int kBins = 8192;
  static constexpr int kLeastExponent = -120;

  bool empty() const { return counts_.empty(); }
  int exponent() const { return exponent_; }
  double width() const { return std::ldexp(2.0, exponent_) / kBins; }
  /// The lower end of a bin.
  double edge(int bin) const { return (bin - kBins / 2) * width(); }
  uint64_t count(int bin) const { return counts_[static_cast<size_t>(bin)]; }

  /// `largest`: of the magnitudes. All are finite.
  void add(std::span<const float> values, double largest);
  void merge(const Histogram& other);
  /// Makes [-2^exponent, 2^exponent) the range, which is no less than it was.
  void widen(int exponent);
  /// For parsers.
  void set(int bin, uint64_t count) { counts_[static_cast<size_t>(bin)] = count; }

private:
  int exponent_ = 0;
  std::vector<uint64_t> counts_; ///< none before the first value
};

/// Running statistics of one value of the model, of bounded size whatever goes by.
class Observer {
public:
  /// The share of the past in the moving averages, after each run.
  static constexpr double kInertia = 0.9;

  double min = std::numeric_limits<double>::infinity(), max = -min;
  double averageMin = 0, averageMax = 0; ///< moving, over runs
  double sum = 0, sumOfSquares = 0;
  uint64_t count = 0, zeros = 0, runs = 0;
  uint64_t notFinite = 0; ///< NaN and infinities, which count nowhere else
  Histogram histogram;
  /// Of dim 1, where channels are observed; empty otherwise.
  struct Channel {
    double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0;
    uint64_t count = 0;
  };
  std::vector<Channel> channels;

  /// One run's tensor of f32.
  void add(const Tensor& tensor, bool perChannel);
  /// As if the other one's runs had followed.
  void merge(const Observer& other);
  double mean() const { return count ? sum / static_cast<double>(count) : 0; }
  double deviation() const;

private:
  void addChannels(const Tensor& tensor);
};

} // namespace candela::quantize
