#include "conformance/tiers/ops/ties.h"

#include <cmath>

#include "conformance/judge/element_rule.h"
#include "conformance/tiers/primitives/fills.h"

namespace candela::conformance::tiers::ops {

TrialBuilder::Fill wholeNumbers(Elem elem, int64_t most) {
  const int64_t least = isSigned(elem) || isFloat(elem) ? -most : 0;
  if (isFloat(elem))
    return primitives::reals(elem, [=](int64_t, random::Random& random) {
      return static_cast<double>(random.between(least, most));
    });
  return primitives::integers(elem, [=](int64_t, random::Random& random) -> __int128 {
    return random.between(least, most);
  });
}

TrialBuilder::Fill wholesAndHalf(Elem elem) {
  return primitives::reals(elem, [](int64_t, random::Random& random) {
    return static_cast<double>(random.between(-40, 40)) + 0.5;
  });
}

TrialBuilder::Fill halfFactors(Elem elem) {
  return primitives::reals(
      elem, [](int64_t, random::Random& random) { return random.oneIn(2) ? 0.5 : 0.25; });
}

TrialBuilder::Fill betweenTwo(Elem from, Elem to) {
  if (isInteger(from)) // next to 2^24 where to is f32
    return primitives::integers(from,
                                [first = static_cast<__int128>(1 / judge::unitOf(to))](
                                    int64_t, random::Random& random) -> __int128 {
                                  const __int128 odd = first + 2 * random.between(0, 40) + 1;
                                  return random.oneIn(2) ? odd : -odd;
                                });
  return primitives::reals(from, [step = 2 * judge::unitOf(to)](int64_t, random::Random& random) {
    const double size = 1 + (static_cast<double>(random.between(0, 60)) + 0.5) * step;
    return random.oneIn(2) ? size : -size;
  });
}

TrialBuilder::Fill longIntegers() {
  return primitives::integers(Elem::i32_, [](int64_t, random::Random& random) -> __int128 {
    return 2 * random.between(1 << 22, (1 << 23) - 1);
  });
}

TrialBuilder::Fill halfMultipliers() {
  return primitives::integers(Elem::i32_,
                              [](int64_t, random::Random&) -> __int128 { return 1 << 23; });
}
TrialBuilder::Fill halfShifts() {
  return primitives::integers(Elem::i32_,
                              [](int64_t i, random::Random&) -> __int128 { return 24 + i % 3; });
}

} // namespace candela::conformance::tiers::ops
