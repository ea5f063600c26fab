#pragma once

#include "core/support/elem.h"

namespace candela {

/// The real number that one element of a float type holds: exact; the payload of a NaN is kept.
double toReal(Elem elem, uint64_t bits);

/// The bits of the float type's element nearest to `value`, ties to even. Overflow gives infinity,
/// NaN where there is none, or the largest value where there is neither; NaN in f6 and f4 gives a
/// zero of the other sign. f8e8m0: ties up, and NaN outside of its powers of two. What toReal gave
/// comes back to the same bits.
uint64_t fromReal(Elem elem, double value);

/// The largest finite value of a float type.
double largestReal(Elem elem);

/// The bits of the lowest value of any type: -inf for floats.
uint64_t lowestBits(Elem elem);

} // namespace candela
