#include "conformance/tiers/primitives/fills.h"

#include <cmath>
#include <limits>

#include "conformance/tiers/primitives/families.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::tiers::primitives {
namespace {

double signedBy(random::Random& random, double size) { return random.oneIn(2) ? size : -size; }

/// Of many such numbers the product stays near 1.
double nearOne(random::Random& random) {
  return signedBy(random, std::exp2(random.unit() / 4 - 0.125));
}

/// Sums of a number of all digits and little things that end half-way between two numbers.
TrialBuilder::Fill tiedTerms(Elem elem, std::function<int64_t(int64_t)> place) {
  if (elem == Elem::f32_)
    return reals(elem, [place](int64_t i, random::Random& random) {
      if (place(i) == 0) return 0x1p23 + static_cast<double>(random.below(1 << 23));
      return place(i) == 1 ? 0.5 : 0;
    });
  const double first = elem == Elem::bf16_ ? 0x1p8 : 0x1p11; // from here on neighbours are 2 apart
  return reals(elem, [place, first](int64_t i, random::Random& random) {
    if (place(i) == 0) return first + static_cast<double>(2 * random.between(0, 40));
    return place(i) < 4 ? static_cast<double>(random.between(0, 3)) : 0;
  });
}

/// A number so small that products with it lie far from 1, and yet are no denormals.
double smallOf(Elem elem) {
  switch (elem) {
  case Elem::f64_: return 0x1p-1000;
  case Elem::f16_: return 0x1p-11;
  default: return 0x1p-120;
  }
}

/// One that turns a sum or a product around. Sums with the largest number itself, and products with
/// denormals, may end in anything.
double special(Elem elem, random::Random& random) {
  const double infinity = std::numeric_limits<double>::infinity(), large = largestReal(elem) / 8;
  const double values[] = {infinity, -infinity, std::nan(""), 0.0,
                           -0.0,     large,     -large,       smallOf(elem)};
  return random.of(values);
}

} // namespace

std::string seedText(const Choice& choice) {
  std::string text;
  for (const auto& [axis, value] : choice) text += value + ';';
  return text;
}

TrialBuilder::Fill reals(Elem elem, std::function<double(int64_t i, random::Random& random)> at) {
  return [elem, at = std::move(at)](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    for (int64_t i = 0; i < count; ++i)
      storeElement(elem, tensor.bytes.mutableData(), i, fromReal(elem, at(i, random)));
    return tensor;
  };
}

TrialBuilder::Fill integers(Elem elem,
                            std::function<__int128(int64_t i, random::Random& random)> at) {
  return [elem, at = std::move(at)](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    for (int64_t i = 0; i < count; ++i)
      storeElement(elem, tensor.bytes.mutableData(), i,
                   static_cast<uint64_t>(at(i, random)) & elemMask(elem));
    return tensor;
  };
}

TrialBuilder::Fill places(Elem elem, std::string_view which, int64_t extent) {
  const int64_t last = std::max<int64_t>(extent - 1, 0);
  return integers(elem, [=, which = std::string(which),
                         range = integerRange(elem)](int64_t i, random::Random& random) {
    const __int128 any = random.between(0, last);
    if (which == "once")
      return static_cast<__int128>((i * 7 + 3) % 5 == 0 && extent % 7 ? i * 7 : i) % (last + 1);
    if (which == "equal") return static_cast<__int128>(last / 2);
    if (random.oneIn(2)) return any;
    if (which == "outside") {
      const int64_t beyond[] = {-1,
                                last + 1,
                                -last - 1,
                                2 * last + 1,
                                -random.between(1, 100000),
                                last + random.between(1, 100000)};
      return static_cast<__int128>(random.of(beyond));
    }
    if (which == "limits") {
      const __int128 limits[] = {range.lowest,
                                 range.highest,
                                 range.lowest + any,
                                 std::numeric_limits<int32_t>::min(),
                                 std::numeric_limits<int32_t>::max(),
                                 (static_cast<__int128>(1) << 32) + any};
      const __int128 chosen = random.of(limits);
      return chosen > range.highest ? range.highest : chosen;
    }
    return any;
  });
}

TrialBuilder::Fill terms(Elem elem, std::string_view data, Line line) {
  if (!isFloat(elem)) return numbers(elem, dataNamed(data));
  const auto place = [line](int64_t i) {
    return line.k ? i / std::max<int64_t>(line.inner, 1) % line.k : 0;
  };
  if (data == "zeros")
    return reals(elem, [](int64_t, random::Random& random) { return signedBy(random, 0); });
  if (data == "whole")
    return reals(elem, [](int64_t, random::Random& random) {
      return static_cast<double>(random.between(-4, 4));
    });
  if (data == "positive")
    return reals(elem, [](int64_t, random::Random& random) { return 0.5 + random.unit() / 2; });
  if (data == "alternating")
    return reals(elem, [place](int64_t i, random::Random& random) {
      return (place(i) % 2 ? -1 : 1) * (1 + random.unit() / 4);
    });
  if (data == "large_small")
    return reals(elem, [place, at = line.k / 3](int64_t i, random::Random& random) {
      return place(i) == at ? 2048 * (1 + random.unit()) : random.unit() / 2;
    });
  if (data == "wide")
    return reals(elem, [](int64_t, random::Random& random) {
      return signedBy(random,
                      std::ldexp(1 + random.unit(), static_cast<int>(random.between(-12, 12))));
    });
  if (data == "specials")
    return reals(elem, [elem, rarely = 3 * line.k + 1](int64_t, random::Random& random) {
      return random.oneIn(rarely) ? special(elem, random) : nearOne(random);
    });
  if (data == "ties") return tiedTerms(elem, place);
  if (data == "halves")
    return reals(elem, [](int64_t, random::Random& random) {
      return static_cast<double>(random.between(-40, 40)) + 0.5;
    });
  if (data == "near_one")
    return reals(elem, [](int64_t, random::Random& random) { return nearOne(random); });
  if (data == "powers")
    return reals(elem, [rarely = 4 * line.k + 1](int64_t i, random::Random& random) {
      if (random.oneIn(rarely)) return 0.0;
      if (i % 8) return signedBy(random, 1);
      return signedBy(random, i % 16 ? 2 : 0.5);
    });
  return numbers(elem, dataNamed(data));
}

TrialBuilder::Fill weights(Elem elem, std::string_view data, Line line) {
  if (!isFloat(elem)) return numbers(elem, dataNamed(data));
  if (data == "alternating" || data == "large_small") return terms(elem, "positive", line);
  if (data == "ties") return reals(elem, [](int64_t, random::Random&) { return 1; });
  if (data == "zeros" || data == "wide") return numbers(elem, random::Data::calm);
  return terms(elem, data, line);
}

bool hasRandomErrors(Elem elem, std::string_view data) {
  if (data == "large_small" || data == "ties") return elemBits(elem) > 16;
  return data == "calm" || data == "positive" || data == "alternating" || data == "wide";
}

} // namespace candela::conformance::tiers::primitives
