#pragma once

#include "conformance/trial_builder.h"

/// Contents of operands that are easily got wrong.
namespace candela::conformance::tiers::primitives {

/// Zeros of both signs, ones, halves between two integers, limits of the type and their neighbours,
/// denormals, infinities, NaNs with a payload, the width of the type and its neighbours.
std::vector<uint64_t> specials(Elem elem);

/// Every pair of specials, when the operands are `slow` and not, and n * n elements long.
TrialBuilder::Fill pairs(Elem elem, bool slow);
/// The same of numbers whose quotients a float type holds.
TrialBuilder::Fill tamePairs(Elem elem, bool slow);

/// Every number of a type of at most 16 bits in so many elements. Of wider floats both ends and
/// some of the middle of each binade, of integers the same of each bit length.
TrialBuilder::Fill every(Elem elem);
/// "65537", "257", "4099": a shape that every() fills, of a prime number of elements.
std::string everyShape(Elem elem);

/// Numbers of `from` next to where a conversion to `to` changes its answer: ties, limits, halves;
/// and specials.
TrialBuilder::Fill near(Elem from, Elem to);

/// The same, but with numbers below the limit instead of larger ones.
TrialBuilder::Fill below(double limit, Elem elem, TrialBuilder::Fill fill);

/// One of "calm", "steps", "corners", "wide", "bits", "extremes", "every".
TrialBuilder::Fill dataOf(Elem elem, const std::string& name);

} // namespace candela::conformance::tiers::primitives
