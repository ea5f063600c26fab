#pragma once

#include "core/support/elem.h"

namespace candela {

/// The real number that one element of a float type holds: exact; the payload of a NaN is kept.
double toReal(Elem elem, uint64_t bits);

/// The bits of the float type's element nearest to `value`, ties to even. Overflow gives infinity,
/// or NaN for f8e4m3, which has none. What toReal gave comes back to the same bits.
uint64_t fromReal(Elem elem, double value);

/// The bits of the lowest value of any type: -inf for floats.
uint64_t lowestBits(Elem elem);

} // namespace candela
