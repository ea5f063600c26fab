// Ranges from histograms.
//
// Entropy: of all thresholds, the one under which the values, once quantized, tell most about what
// they were: the least Kullback-Leibler divergence between the distribution that is clamped at the
// threshold and the same distribution in as many steps as the integers have (S. Migacz, "8-bit
// Inference with TensorRT", GTC 2017; Glow and ONNX Runtime do the same). Here zeros are left out
// of it: every scheme has them exactly. Rare values that are large count little as information and
// much in what a network computes; so only thresholds are asked whose square of the error is no
// larger than that of the whole range.
//
// Least squares: of the thresholds on either side, those under which rounding (a twelfth of the
// square of a step, for values within) and clamping (its distance, for values beyond) cost least.
#include "core/compiler/quantize/calibrate.h"

#include <algorithm>
#include <array>
#include <cfloat>

namespace candela::quantize {
namespace {

constexpr std::array<std::string_view, 5> kCalibrators = {"minmax", "moving-average", "percentile",
                                                          "entropy", "mse"};
constexpr std::array<std::string_view, 4> kSchemes = {"asymmetric", "symmetric", "symmetric-uint8",
                                                      "power-of-two"};

template <typename T, size_t N>
std::optional<T> parseName(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<T>(at - names.begin());
}

constexpr int kHalf = Histogram::kBins / 2;

/// Counts of magnitudes, bin by bin from 0, without the zeros.
std::vector<double> magnitudes(const Observer& seen) {
  std::vector<double> counts(kHalf, 0);
  for (int bin = 0; bin < kHalf; ++bin)
    counts[static_cast<size_t>(bin)] = static_cast<double>(seen.histogram.count(kHalf + bin) +
                                                           seen.histogram.count(kHalf - 1 - bin));
  counts[0] = std::max(0.0, counts[0] - static_cast<double>(seen.zeros));
  while (counts.size() > 1 && counts.back() == 0) counts.pop_back();
  return counts;
}

/// The divergence of the first `kept` bins, with what is beyond in the last one, from themselves in
/// `levels` steps.
double divergence(const std::vector<double>& counts, size_t kept, size_t levels, double beyond) {
  double total = beyond, within = 0, sum = 0;
  for (size_t i = 0; i < kept; ++i) within += counts[i];
  total += within;
  if (within == 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-9; // of a probability that would be none
  for (size_t level = 0; level < levels; ++level) {
    const size_t begin = level * kept / levels, end = (level + 1) * kept / levels;
    double mass = 0;
    int filled = 0;
    for (size_t i = begin; i < end; ++i) {
      mass += counts[i];
      filled += counts[i] > 0;
    }
    for (size_t i = begin; i < end; ++i) {
      const double p = (counts[i] + (i + 1 == kept ? beyond : 0)) / total;
      if (p == 0) continue;
      const double q = counts[i] > 0 ? mass / filled / within : 0;
      sum += p * std::log(p / std::max(q, kLeast));
    }
  }
  return sum;
}

double squareOfError(const Observer& seen, const Range& range, const CalibrationOptions& options) {
  return expectedError(seen.histogram, seen.zeros,
                       quantizationOf(range, options.scheme, options.elem));
}

/// What was seen, clamped at a magnitude.
Range within(const Observer& seen, double threshold) {
  return {std::max(seen.min, -threshold), std::min(seen.max, threshold)};
}

/// Steps of a magnitude that symmetric integers have; of unsigned ones all.
size_t levelsOf(const Observer& seen, const CalibrationOptions& options) {
  const bool isOneSided =
      seen.min >= 0 && options.scheme != Scheme::symmetric && options.scheme != Scheme::powerOfTwo;
  return isOneSided ? 256 : 128;
}

Range leastDivergence(const Observer& seen, const CalibrationOptions& options) {
  const std::vector<double> counts = magnitudes(seen);
  const size_t levels = levelsOf(seen, options);
  const Range all{seen.min, seen.max};
  if (counts.size() <= levels) return all;
  const double mostError = squareOfError(seen, all, options);
  std::vector<double> beyond(counts.size() + 1, 0);
  for (size_t i = counts.size(); i-- > 0;) beyond[i] = beyond[i + 1] + counts[i];
  double best = std::numeric_limits<double>::infinity();
  Range chosen = all;
  const size_t step = std::max<size_t>(1, counts.size() / 256);
  for (size_t kept = counts.size(); kept >= levels; kept -= step) {
    const double cost = divergence(counts, kept, levels, beyond[kept]);
    const bool isWhole = kept == counts.size();
    const Range range =
        isWhole ? all : within(seen, static_cast<double>(kept) * seen.histogram.width());
    if (cost < best && squareOfError(seen, range, options) <= mostError) {
      best = cost;
      chosen = range;
    }
    if (kept < step) break;
  }
  return chosen;
}

Range percentileRange(const Observer& seen, double percentile) {
  const double outside = (1 - percentile / 100) / 2 * static_cast<double>(seen.count);
  const auto end = [&](int from, int step, double otherwise) {
    double passed = 0;
    for (int bin = from; bin >= 0 && bin < Histogram::kBins; bin += step) {
      passed += static_cast<double>(seen.histogram.count(bin));
      if (passed > outside) return seen.histogram.edge(step > 0 ? bin : bin + 1);
    }
    return otherwise;
  };
  return {std::max(seen.min, end(0, 1, seen.min)),
          std::min(seen.max, end(Histogram::kBins - 1, -1, seen.max))};
}

/// Both ends in turn, each over shares of itself.
Range leastSquares(const Observer& seen, const CalibrationOptions& options) {
  constexpr int kShares = 64, kTurns = 2;
  Range best{seen.min, seen.max};
  double least = squareOfError(seen, best, options);
  const bool isSymmetric = options.scheme != Scheme::asymmetric;
  for (int turn = 0; turn < kTurns; ++turn)
    for (double Range::* end : {&Range::highest, &Range::lowest}) {
      const Range full = turn == 0 ? Range{seen.min, seen.max} : best;
      for (int share = 1; share <= kShares; ++share) {
        Range range = best;
        const double factor = share / double(kShares);
        range.*end = full.*end * factor;
        if (isSymmetric) range = {full.lowest * factor, full.highest * factor};
        const double cost = squareOfError(seen, range, options);
        if (cost < least) {
          least = cost;
          best = range;
        }
      }
    }
  return best;
}

} // namespace

std::optional<Calibrator> parseCalibrator(std::string_view name) {
  return parseName<Calibrator>(kCalibrators, name);
}
std::optional<Scheme> parseScheme(std::string_view name) {
  return parseName<Scheme>(kSchemes, name);
}
std::string_view calibratorName(Calibrator calibrator) {
  return kCalibrators[static_cast<size_t>(calibrator)];
}
std::string_view schemeName(Scheme scheme) { return kSchemes[static_cast<size_t>(scheme)]; }

double Quantization::lowest() const {
  return static_cast<double>(scale) *
         static_cast<double>(static_cast<int64_t>(integerRange(elem).lowest) - zero);
}
double Quantization::highest() const {
  return static_cast<double>(scale) *
         static_cast<double>(static_cast<int64_t>(integerRange(elem).highest) - zero);
}

Range calibrate(const Observer& seen, const CalibrationOptions& options) {
  if (!seen.count) return {};
  switch (options.calibrator) {
  case Calibrator::minmax: break;
  case Calibrator::movingAverage: return {seen.averageMin, seen.averageMax};
  case Calibrator::percentile: return percentileRange(seen, options.percentile);
  case Calibrator::entropy: return leastDivergence(seen, options);
  case Calibrator::mse: return leastSquares(seen, options);
  }
  return {seen.min, seen.max};
}

Quantization quantizationOf(const Range& range, Scheme scheme, Elem elem) {
  const double low = std::min(range.lowest, 0.0), high = std::max(range.highest, 0.0);
  Quantization q;
  const bool isUnsigned = scheme == Scheme::symmetricUint8 && low == 0 && elem != Elem::i16_;
  if (elem == Elem::i16_)
    q.elem = Elem::i16_;
  else if (scheme == Scheme::asymmetric)
    q.elem = elem;
  else
    q.elem = isUnsigned ? Elem::u8_ : Elem::i8_;
  const IntegerRange integers = integerRange(q.elem);
  const auto least = static_cast<double>(integers.lowest),
             most = static_cast<double>(integers.highest);
  const bool isAsymmetric = scheme == Scheme::asymmetric && elem != Elem::i16_;
  double scale = isAsymmetric ? (high - low) / (most - least) : std::max(high, -low) / most;
  if (scheme == Scheme::powerOfTwo && scale > 0) scale = std::exp2(std::ceil(std::log2(scale)));
  // Nothing to tell apart, or steps that no f32 has.
  if (scale == 0) scale = 1;
  q.scale = static_cast<float>(std::max(scale, static_cast<double>(FLT_MIN)));
  if (isAsymmetric)
    q.zero = static_cast<int64_t>(
        std::clamp(std::nearbyint(least - low / static_cast<double>(q.scale)), least, most));
  return q;
}

Quantization chooseQuantization(const Observer& seen, const CalibrationOptions& options) {
  return quantizationOf(calibrate(seen, options), options.scheme, options.elem);
}

double saturation(const Observer& seen, const Quantization& quantization) {
  if (seen.histogram.empty() || !seen.count) return 0;
  const double slack = static_cast<double>(quantization.scale) / 2;
  const double low = quantization.lowest() - slack, high = quantization.highest() + slack;
  uint64_t beyond = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    const double middle = seen.histogram.edge(bin) + seen.histogram.width() / 2;
    if (middle < low || middle > high) beyond += seen.histogram.count(bin);
  }
  return static_cast<double>(beyond) / static_cast<double>(seen.count);
}

double expectedError(const Histogram& histogram, uint64_t zeros, const Quantization& quantization) {
  if (histogram.empty()) return 0;
  const double low = quantization.lowest(), high = quantization.highest();
  const double step = static_cast<double>(quantization.scale), within = step * step / 12;
  double sum = 0, all = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    auto count = static_cast<double>(histogram.count(bin));
    all += count;
    if (bin == kHalf) count = std::max(0.0, count - static_cast<double>(zeros));
    if (count == 0) continue;
    const double middle = histogram.edge(bin) + histogram.width() / 2;
    const double distance = std::max({low - middle, middle - high, 0.0});
    sum += count * (within + distance * distance);
  }
  return all > 0 ? sum / all : 0;
}

} // namespace candela::quantize
