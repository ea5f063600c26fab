#include "conformance/tiers/primitives/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "conformance/judge/element_rule.h"
#include "conformance/tiers/primitives/families.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::tiers::primitives {
namespace {

using Fill = TrialBuilder::Fill;
using Values = std::vector<uint64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();

void addOnce(Values& values, uint64_t bits) {
  if (std::ranges::find(values, bits) == values.end()) values.push_back(bits);
}

/// The number and its neighbours in the order of bits.
void addAround(Values& values, Elem elem, uint64_t bits) {
  for (const uint64_t step : {uint64_t(0), uint64_t(1), ~uint64_t(0)})
    addOnce(values, (bits + step) & elemMask(elem));
}

/// One number after the other, from a place on that the seed says; each one `repeat` times.
Fill inTurn(Elem elem, Values values, int64_t repeat = 1) {
  return [elem, values = std::move(values), repeat](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    const auto n = static_cast<int64_t>(values.size());
    const int64_t start = random.below(n) * repeat;
    for (int64_t i = 0; i < count; ++i)
      storeElement(elem, tensor.bytes.mutableData(), i,
                   values[static_cast<size_t>((start + i) / repeat % n)]);
    return tensor;
  };
}

Fill pairOf(Elem elem, Values values, bool slow) {
  const auto n = static_cast<int64_t>(values.size());
  return inTurn(elem, std::move(values), slow ? n : 1);
}

/// Integers of each length, and those that lie between two numbers of so many digits, or next to
/// there.
void addLengths(Values& values, Elem elem, std::initializer_list<int> digits,
                random::Random& random) {
  const int width = elemBits(elem) - (isSigned(elem) ? 1 : 0);
  const auto add = [&](uint64_t magnitude) {
    addAround(values, elem, magnitude & elemMask(elem));
    if (isSigned(elem)) addAround(values, elem, (0 - magnitude) & elemMask(elem));
  };
  for (int length = 1; length <= width; ++length) {
    const uint64_t top = uint64_t(1) << (length - 1);
    add(top);
    for (int i = 0; i < 3; ++i)
      values.push_back((top | (random.bits() & (top - 1))) & elemMask(elem));
    for (const int d : digits)
      if (length > d) {
        const uint64_t half = uint64_t(1) << (length - d - 1);
        add(((top | (random.bits() & (top - 1))) & ~(2 * half - 1)) | half);
      }
  }
}

Values allOf(Elem elem, random::Random& random) {
  Values values;
  const int bits = elemBits(elem);
  if (bits <= 16) {
    for (uint64_t v = 0; v <= elemMask(elem); ++v) values.push_back(v);
  } else if (!isFloat(elem)) {
    addLengths(values, elem, {8, 11, 24, 53}, random);
  } else {
    const int mantissa = elem == Elem::f64_ ? 52 : 23;
    const uint64_t last = (uint64_t(1) << mantissa) - 1, exponents = uint64_t(1)
                                                                     << (bits - 1 - mantissa);
    // Of f64 every eighth binade, another one in each run, and all where f32 has numbers too.
    const auto offset = static_cast<uint64_t>(random.below(8));
    for (uint64_t e = 0; e < exponents; ++e) {
      if (elem == Elem::f64_ && e % 8 != offset &&
          (e + 160 < exponents / 2 || e > exponents / 2 + 130))
        continue;
      for (uint64_t sign = 0; sign < 2; ++sign) {
        const uint64_t base = sign << (bits - 1) | e << mantissa;
        for (const uint64_t edge : {uint64_t(0), uint64_t(1), last}) values.push_back(base | edge);
        for (int i = 0; i < 5; ++i) values.push_back(base | (random.bits() & last));
      }
    }
  }
  return values;
}

} // namespace

std::vector<uint64_t> specials(Elem elem) {
  if (elem == Elem::bool_) return {0, 1};
  const uint64_t mask = elemMask(elem), sign = (mask >> 1) + 1;
  Values values{0, 1, mask, sign, sign - 1, sign + 1};
  if (!isFloat(elem)) {
    const auto width = static_cast<uint64_t>(elemBits(elem));
    for (const uint64_t v :
         {uint64_t(2), uint64_t(3), uint64_t(7), uint64_t(100), width - 1, width, width + 1,
          mask - 1, mask - 6, mask - 1 - width, uint64_t(0x5555555555555555), mask >> (width / 2)})
      addOnce(values, v & mask);
    return values;
  }
  const double least = judge::leastOf(elem), normal = judge::leastNormalOf(elem),
               largest = largestReal(elem);
  for (const double v : {1.0, 0.5, 1.5, 2.5, 3.0, 0.1, 7.3, 100.0, normal, normal - least,
                         least * 3, largest, largest / 3, kInf})
    for (const double signedValue : {v, -v}) addOnce(values, fromReal(elem, signedValue));
  addAround(values, elem, fromReal(elem, 1));
  addOnce(values, fromReal(elem, std::nan("")));
  // NaN with another payload, where there is one
  addOnce(values, sign | (fromReal(elem, kInf) + 5));
  return values;
}

Fill pairs(Elem elem, bool slow) { return pairOf(elem, specials(elem), slow); }

Fill tamePairs(Elem elem, bool slow) {
  if (!isFloat(elem)) return pairs(elem, slow);
  Values values;
  for (const double v : {0.0, 1.0, 1.5, 2.5, 7.0, 0.3, 0.75, 13.7, 100.0, kInf})
    for (const double signedValue : {v, -v}) addOnce(values, fromReal(elem, signedValue));
  addOnce(values, fromReal(elem, std::nan("")));
  return pairOf(elem, values, slow);
}

Fill every(Elem elem) {
  return [elem](int64_t count, random::Random& random) {
    return inTurn(elem, allOf(elem, random))(count, random);
  };
}

std::string everyShape(Elem elem) {
  if (elemBits(elem) <= 8) return "257";
  return elemBits(elem) <= 16 ? "65537" : "4099";
}

Fill near(Elem from, Elem to) {
  if (from == Elem::bool_) return inTurn(from, specials(from));
  return [from, to](int64_t count, random::Random& random) {
    Values values = specials(from);
    const auto add = [&](double v) {
      if (isFloat(from)) addAround(values, from, fromReal(from, v));
    };
    if (isFloat(to)) {
      // Between two numbers: any, and those next to the limits.
      Values numbers = specials(to);
      for (int i = 0; i < 150; ++i) numbers.push_back(random.bits() & elemMask(to));
      for (const uint64_t bits : numbers) {
        const double lower = toReal(to, bits), upper = toReal(to, (bits + 1) & elemMask(to));
        if (std::isfinite(lower) && std::isfinite(upper)) add(lower / 2 + upper / 2);
      }
      const double largest = largestReal(to), step = judge::ulpAt(to, largest);
      for (const double v : {largest, largest + step / 2, largest + step, judge::leastOf(to) / 2}) {
        add(v);
        add(-v);
      }
      if (!isFloat(from)) addLengths(values, from, {8, 11, 24, 53}, random);
    } else {
      const IntegerRange range = integerRange(to), wide = integerRange(Elem::i64_);
      for (const __int128 limit :
           {range.lowest, range.highest, wide.lowest, wide.highest, __int128(0), __int128(3)})
        for (const double by : {-1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5}) {
          add(static_cast<double>(limit) + by);
          add(-static_cast<double>(limit) - by);
          if (!isFloat(from))
            addOnce(values, static_cast<uint64_t>(limit + int(by)) & elemMask(from));
        }
    }
    return inTurn(from, values)(count, random);
  };
}

Fill below(double limit, Elem elem, Fill fill) {
  return [=](int64_t count, random::Random& random) {
    Tensor tensor = fill(count, random);
    const int most = std::ilogb(limit);
    for (int64_t i = 0; i < count; ++i) {
      const double value = toReal(elem, loadElement(elem, tensor.bytes.data(), i));
      if (!std::isfinite(value) || std::abs(value) < limit) continue;
      const double smaller =
          std::scalbn(value, -std::ilogb(value) + static_cast<int>(i % (most + 6)) - 6);
      storeElement(elem, tensor.bytes.mutableData(), i, fromReal(elem, smaller));
    }
    return tensor;
  };
}

Fill dataOf(Elem elem, const std::string& name) {
  return name == "every" ? every(elem) : numbers(elem, dataNamed(name));
}

} // namespace candela::conformance::tiers::primitives
