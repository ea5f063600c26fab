#include "conformance/tiers/ops/ties.h"

#include <cmath>

#include "conformance/judge/element_rule.h"
#include "conformance/tiers/primitives/fills.h"

namespace candela::conform {

TrialBuilder::Fill wholeNumbers(Elem elem, int64_t most) {
  const int64_t least = isSigned(elem) || isFloat(elem) ? -most : 0;
  if (isFloat(elem))
    return reals(elem, [=](int64_t, Random& random) {
      return static_cast<double>(random.between(least, most));
    });
  return integers(elem,
                  [=](int64_t, Random& random) -> __int128 { return random.between(least, most); });
}

TrialBuilder::Fill wholesAndHalf(Elem elem) {
  return reals(elem, [](int64_t, Random& random) {
    return static_cast<double>(random.between(-40, 40)) + 0.5;
  });
}

TrialBuilder::Fill halfFactors(Elem elem) {
  return reals(elem, [](int64_t, Random& random) { return random.oneIn(2) ? 0.5 : 0.25; });
}

TrialBuilder::Fill betweenTwo(Elem from, Elem to) {
  if (isInteger(from)) // next to 2^24 where to is f32
    return integers(
        from, [first = static_cast<__int128>(1 / unitOf(to))](int64_t, Random& random) -> __int128 {
          const __int128 odd = first + 2 * random.between(0, 40) + 1;
          return random.oneIn(2) ? odd : -odd;
        });
  return reals(from, [step = 2 * unitOf(to)](int64_t, Random& random) {
    const double size = 1 + (static_cast<double>(random.between(0, 60)) + 0.5) * step;
    return random.oneIn(2) ? size : -size;
  });
}

TrialBuilder::Fill longIntegers() {
  return integers(Elem::i32_, [](int64_t, Random& random) -> __int128 {
    return 2 * random.between(1 << 22, (1 << 23) - 1);
  });
}

TrialBuilder::Fill halfMultipliers() {
  return integers(Elem::i32_, [](int64_t, Random&) -> __int128 { return 1 << 23; });
}
TrialBuilder::Fill halfShifts() {
  return integers(Elem::i32_, [](int64_t i, Random&) -> __int128 { return 24 + i % 3; });
}

} // namespace candela::conform
