#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/compiler/import/term.h"
#include "core/reference/reference.h"

/// Operators whose whole result is known at import.
namespace candela::import {
namespace {

constexpr int64_t kMostComputed = int64_t(1) << 24; // elements that are computed one by one

Elem elemAttr(NodeContext& context, const char* name, Elem fallback) {
  const auto given = need(context.maybe<int64_t>(name));
  if (!given) return fallback;
  const auto elem =
      *given >= 0 && *given <= INT32_MAX ? elemFromOnnx(static_cast<int>(*given)) : std::nullopt;
  if (!elem || isStorageOnly(*elem))
    need(failure(Code::unsupported, "{} {} is no element type here", name, *given));
  return *elem;
}

int64_t knownCount(NodeContext& context, size_t input, const char* what, int64_t least) {
  const auto ints = need(context.neededInts(what, input, 1));
  if (ints.size() != 1) need(badModel("{} has {} values, expected 1", what, ints.size()));
  if (ints[0] < least || ints[0] > kMostComputed)
    need(badModel("{} is {}, expected {} to {}", what, ints[0], least, kMostComputed));
  return ints[0];
}

/// a - b cos(t) + c cos(2t), where t goes once around.
Status cosines(NodeContext& context, double a, double b, double c) {
  const int64_t size = knownCount(context, 0, "size", 0);
  const Elem elem = elemAttr(context, "output_datatype", Elem::f32_);
  const bool periodic = need(context.flagAttr("periodic", true));
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) /
                     static_cast<double>(periodic ? size : size - 1);
    values.push_back(a - b * std::cos(t) + c * std::cos(2 * t));
  }
  return context.set(constant(context.build, values, {size}, elem));
}
Status importHann(NodeContext& context) { return cosines(context, 0.5, 0.5, 0); }
Status importHamming(NodeContext& context) { return cosines(context, 25.0 / 46, 21.0 / 46, 0); }
Status importBlackman(NodeContext& context) { return cosines(context, 0.42, 0.5, 0.08); }

/// Triangles over the bins of a spectrum, whose corners are equally far apart in mel: 2595 log10(1
/// + hertz / 700).
Status importMelWeightMatrix(NodeContext& context) {
  const int64_t mels = knownCount(context, 0, "num_mel_bins", 1),
                length = knownCount(context, 1, "dft_length", 1);
  const int64_t rate = knownCount(context, 2, "sample_rate", 1), bins = length / 2 + 1;
  const Elem elem = elemAttr(context, "output_datatype", Elem::f32_);
  if (mels > kMostComputed / bins)
    return failure(Code::unsupported, "{} bands of {} bins are too many", mels, bins);
  const auto mel = [&](size_t input, const char* what) {
    return 2595 * std::log10(1 + knownNumber(context, input, what) / 700);
  };
  const double low = mel(3, "lower_edge_hertz"), high = mel(4, "upper_edge_hertz");
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * (high - low) /
                                                        static_cast<double>(mels + 2)) /
                                                 2595) -
                                1);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(bins)))
      return badModel("edge of {} hertz is outside of a spectrum of {} bins", hertz, bins);
    corners.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> weights(bins * mels, 0);
  for (int64_t i = 0; i < mels; ++i) {
    const int64_t left = corners[i], center = corners[i + 1], right = corners[i + 2];
    for (int64_t bin = left; bin < center; ++bin)
      weights[bin * mels + i] =
          static_cast<double>(bin - left) / static_cast<double>(center - left);
    weights[center * mels + i] = 1;
    for (int64_t bin = center + 1; bin < right; ++bin)
      weights[bin * mels + i] =
          static_cast<double>(right - bin) / static_cast<double>(right - center);
  }
  return context.set(constant(context.build, weights, {bins, mels}, elem));
}

/// Ones where the column is k behind the row.
Status importEyeLike(NodeContext& context) {
  const Term x = termOf(context, 0);
  if (x.rank() != 2) return badModel("input has rank {}, expected 2", x.rank());
  const Elem elem = elemAttr(context, "dtype", x.elem());
  const int64_t k = std::clamp(attrOf<int64_t>(context, "k", 0), -x.dim(0), x.dim(1));
  const Term row =
      Term(context.build,
           context.build.constant(Payload::iota(Elem::i64_, x.dim(0), k, 1), {x.dim(0), 1}));
  return context.set(equal(row, iota(context.build, x.dim(1))).cast(elem));
}

constexpr Operator kConstantsOperators[] = {
    {"BlackmanWindow", 1, 1, 1, importBlackman},         {"EyeLike", 1, 1, 1, importEyeLike},
    {"HammingWindow", 1, 1, 1, importHamming},           {"HannWindow", 1, 1, 1, importHann},
    {"MelWeightMatrix", 5, 5, 1, importMelWeightMatrix},
};

} // namespace

std::span<const Operator> constantsOperators() { return kConstantsOperators; }

} // namespace candela::import
