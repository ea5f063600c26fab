// Functions of rows by tables of 16 bits.
//
// Both functions end in a product with a reciprocal that differs from row to row: of the sum of
// exponentials, or of the standard deviation. A device without floats and division has tables with
// linear interpolation, which are good where a function is nearly straight between two entries. So
// the range of the sum is cut into segments, each at most 16 (the last 24) times as wide as where
// it begins; 512 entries make the error of 1 / v below 2^-12 there. Segment by segment, from the
// last one down, a table holds how much higher the function is than at the segment's end. A sum
// beyond a segment saturates to entries of 0, one before it to the whole height, so heights only
// add up. Each height is built on the integers of those behind it, which rounds each segment once.
#include "core/compiler/graph/passes/integer_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/compiler/graph/rescale_factor.h"

namespace candela::graph::passes {
namespace {

constexpr int kEntries = 513, kEndEntry = 511; ///< of TABLE on i16, 128 steps apart
constexpr double kSegmentWidth = (kEndEntry * 128);
constexpr double kSegmentRatio = 16;
constexpr int64_t kMostSoftmaxCount = 65536, kMostNormCount = 16384;
constexpr int kMostRescaleShift = 62; ///< of RESCALE

/// Nothing where no RESCALE of one operand has the factor without a left shift.
std::optional<RescaleFactor> plainFactor(double factor) {
  if (!std::isnormal(static_cast<float>(factor))) return std::nullopt;
  const RescaleFactor result = rescaleFactor(factor);
  if (result.shift < 0 || result.shift > kMostRescaleShift) return std::nullopt;
  return result;
}

/// A falling function of whole numbers as segments: operands and attribute of both ops.
struct Segments {
  std::vector<int32_t> parameters; ///< begin, multiplier, shift and weight of each
  std::vector<int16_t> entries;
  int64_t base = 0; ///< the function beyond the last one

  int64_t count() const { return std::ssize(parameters) / 4; }
  Tensor parameterTensor() const { return Tensor::of(Elem::i32_, {count(), 4}, parameters); }
  Tensor entryTensor() const { return Tensor::of(Elem::i16_, {count(), kEntries}, entries); }
};

using Falling = std::function<double(double)>;

/// The segment from `begin` to `end`; `reached`: what base and the segments behind it give.
std::optional<int64_t> addSegment(Segments& segments, const Falling& function, double begin,
                                  double end, int64_t reached) {
  const auto place = plainFactor(kSegmentWidth / (end - begin));
  if (!place) return std::nullopt;
  const double perUnit = std::ldexp(static_cast<double>(place->significand), -place->shift);
  int64_t weight = 1;
  const double height = function(begin) - static_cast<double>(reached);
  while (height > 32767.0 * static_cast<double>(weight)) weight *= 2;
  std::vector<int16_t> entries(kEntries, 0);
  for (int i = 0; i < kEndEntry; ++i) {
    const double v = begin + 128 * i / perUnit;
    const double above = (function(v) - static_cast<double>(reached)) / static_cast<double>(weight);
    entries[static_cast<size_t>(i)] =
        static_cast<int16_t>(std::clamp<long long>(std::llrint(above), 0, 32767));
  }
  for (const int64_t parameter :
       {static_cast<int64_t>(begin), place->significand, int64_t(place->shift), weight})
    segments.parameters.push_back(static_cast<int32_t>(parameter));
  segments.entries.insert(segments.entries.end(), entries.begin(), entries.end());
  return reached + weight * entries[0];
}

std::optional<Segments> segmentsOf(const Falling& function, double lowest, double highest) {
  std::vector<double> ends{lowest};
  while (ends.back() * kSegmentRatio * 1.5 < highest) ends.push_back(ends.back() * kSegmentRatio);
  ends.push_back(std::max(highest, 2 * lowest));
  Segments segments;
  segments.base = std::llrint(function(ends.back()));
  int64_t reached = segments.base;
  for (size_t s = ends.size() - 1; s > 0; --s) {
    const auto next = addSegment(segments, function, ends[s - 1], ends[s], reached);
    if (!next) return std::nullopt;
    reached = *next;
  }
  return segments;
}

/// The attributes of the RESCALE by `factor` that ends a row function.
std::optional<Attrs> endOf(double factor, const QuantizedBytes& y) {
  const auto end = plainFactor(factor);
  if (!end) return std::nullopt;
  return Attrs{{"multiplier", end->significand},
               {"shift", int64_t(end->shift)},
               {"zero", y.zero},
               {"to", y.elem}};
}

double greatestMagnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// How many of `least..most` doublings keep `value` at most `limit`.
int doublings(double value, double limit, int least, int most) {
  int count = least;
  while (count < most && std::ldexp(value, count + 1) <= limit) ++count;
  return count;
}

/// Each value * 2^doubled, rounded.
Tensor fixedPoint(const std::vector<double>& values, int doubled) {
  std::vector<int32_t> fixed;
  for (const double value : values)
    fixed.push_back(static_cast<int32_t>(std::llrint(std::ldexp(value, doubled))));
  return Tensor::of(Elem::i32_, {std::ssize(fixed)}, fixed);
}

/// The sum of squares of a row, and what a norm adds to it, in units of 2^-fraction.
struct SpreadOfRow {
  double count = 1;
  double epsilon = 0; ///< in units of one
  int fraction = 0;
  double most = 1; ///< of the sum

  int64_t added() const { return std::llrint(std::ldexp(epsilon, fraction)); }
};

/// 2^bits / (128 * the root of a mean square) by its spread. No element of a row is further from
/// the middle than sqrt(count) of these roots, so that its product stays below 2^30.
struct InverseRoot {
  Segments segments;
  int bits = 0;
};

std::optional<InverseRoot> inverseRoot(const SpreadOfRow& spread) {
  const int bits = doublings(std::sqrt(spread.count), 0x1p30, 0, 30);
  const auto reciprocal = [&](double sum) {
    return std::ldexp(1, bits) /
           (128 * std::sqrt(std::ldexp(sum / spread.count, -spread.fraction)));
  };
  const double least = std::max<double>(1, static_cast<double>(spread.added()));
  auto segments = segmentsOf(reciprocal, least, spread.most);
  if (!segments) return std::nullopt;
  return InverseRoot{*std::move(segments), bits};
}

/// How many bits behind the point i16 has of what is at most sqrt(count).
int normalBitsOf(double count) { return doublings(1.01 * std::sqrt(count), 32767, 0, 14); }

/// The attributes of a norm whose factors have `scaleBits` behind the point.
std::optional<Attrs> endOfNorm(const SpreadOfRow& spread, const InverseRoot& inverse, int scaleBits,
                               const QuantizedBytes& y) {
  const int normalBits = normalBitsOf(spread.count);
  auto attrs = endOf(std::ldexp(1 / y.scale, -normalBits - scaleBits), y);
  if (!attrs) return std::nullopt;
  (*attrs)["base"] = inverse.segments.base;
  (*attrs)["fraction"] = int64_t(spread.fraction);
  (*attrs)["epsilon"] = spread.added();
  (*attrs)["normal_shift"] = int64_t(inverse.bits - normalBits);
  return attrs;
}

} // namespace

std::optional<RowFunction> integerSoftmax(double xScale, int64_t count, const QuantizedBytes& y) {
  constexpr double kOne = 32767;        // of an exponential
  constexpr double kReciprocal = 32768; // of a sum of one
  if (count < 1 || count > kMostSoftmaxCount) return std::nullopt;
  std::vector<int16_t> exponential(kEntries, 0);
  for (int distance = 0; distance <= 255; ++distance)
    exponential[static_cast<size_t>(kEndEntry - distance)] =
        static_cast<int16_t>(std::lrint(kOne * std::exp(-xScale * distance)));
  exponential[kEndEntry + 1] = exponential[kEndEntry];
  const auto reciprocal = [](double sum) { return kReciprocal * kOne / sum; };
  const auto segments = segmentsOf(reciprocal, kOne, kOne * static_cast<double>(count));
  auto attrs = endOf(1 / (kOne * kReciprocal * y.scale), y);
  if (!segments || !attrs) return std::nullopt;
  (*attrs)["base"] = segments->base;
  return RowFunction{{Tensor::of(Elem::i16_, {kEntries}, exponential), segments->parameterTensor(),
                      segments->entryTensor()},
                     std::move(*attrs)};
}

std::optional<RowFunction> integerLayerNorm(double xScale, const RowNorm& norm,
                                            const QuantizedBytes& y) {
  const auto n = static_cast<double>(norm.scale.size());
  if (n < 1 || n > kMostNormCount || !(xScale > 0)) return std::nullopt;
  // No byte is further from the mean of a row than sqrt(n) deviations, and no deviation is above
  // half of what bytes span.
  constexpr double kMostVariance = 1.05 * 128 * 128, kMostSum = 0x1p31 - 1;
  const double epsilon = n * norm.epsilon / (xScale * xScale);
  int fraction = 7;
  while (fraction > 0 && (std::ldexp(n * kMostVariance + epsilon, fraction) > kMostSum ||
                          std::ldexp(n / 4, fraction) > 32767))
    --fraction;
  const double most = std::ldexp(n * kMostVariance + epsilon, fraction);
  if (!(most <= kMostSum)) return std::nullopt;
  const SpreadOfRow spread{n, epsilon, fraction, most};
  const auto inverse = inverseRoot(spread);
  const int normalBits = normalBitsOf(n);
  const int scaleBits =
      std::min(doublings(greatestMagnitude(norm.scale), 32767, -40, 30),
               doublings(greatestMagnitude(norm.bias), 0x1p30, -40, 44) - normalBits);
  auto attrs = inverse ? endOfNorm(spread, *inverse, scaleBits, y) : std::nullopt;
  if (!attrs) return std::nullopt;
  return RowFunction{{fixedPoint(norm.scale, scaleBits),
                      fixedPoint(norm.bias, scaleBits + normalBits),
                      inverse->segments.parameterTensor(), inverse->segments.entryTensor()},
                     std::move(*attrs)};
}

std::optional<RowFunction> integerRmsNorm(const QuantizedBytes& x, const RowNorm& norm,
                                          const QuantizedBytes& y) {
  const auto n = static_cast<double>(norm.scale.size());
  if (n < 1 || n > kMostNormCount || !(x.scale > 0)) return std::nullopt;
  constexpr double kMostSum = 0x1p31 - 1;
  const IntegerRange range = integerRange(x.elem);
  const auto furthest =
      static_cast<double>(std::max(x.zero - range.lowest, range.highest - x.zero));
  const double epsilon = n * norm.epsilon / (x.scale * x.scale);
  const double mostSquares = n * furthest * furthest + epsilon;
  if (!(mostSquares <= kMostSum)) return std::nullopt;
  const int fraction = doublings(mostSquares, kMostSum, 0, 7);
  const SpreadOfRow spread{n, epsilon, fraction, std::ldexp(mostSquares, fraction)};
  const auto inverse = inverseRoot(spread);
  const int scaleBits = doublings(greatestMagnitude(norm.scale), 32767, -40, 30);
  auto attrs = inverse ? endOfNorm(spread, *inverse, scaleBits, y) : std::nullopt;
  if (!attrs) return std::nullopt;
  (*attrs)["x_zero"] = x.zero;
  return RowFunction{{fixedPoint(norm.scale, scaleBits), inverse->segments.parameterTensor(),
                      inverse->segments.entryTensor()},
                     std::move(*attrs)};
}

} // namespace candela::graph::passes
