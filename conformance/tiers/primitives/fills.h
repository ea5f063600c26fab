#pragma once

#include "conformance/family.h"
#include "conformance/trial_builder.h"

/// Contents of operands that numbers alone do not make.
namespace candela::conformance::tiers::primitives {

/// What seeds the data of a case: all of its values.
std::string seedText(const Choice& choice);

/// Floats, and integers, element by element.
TrialBuilder::Fill reals(Elem elem, std::function<double(int64_t i, random::Random& random)> at);
TrialBuilder::Fill integers(Elem elem,
                            std::function<__int128(int64_t i, random::Random& random)> at);

/// Places along a dim of `extent`:
///   inside   any place, now and then one again
///   once     each place once before any comes again
///   equal    the same place always
///   outside  inside, next to either end, and beyond it
///   limits   inside, and the limits of the type and of i32, and what has the low bits of a place
TrialBuilder::Fill places(Elem elem, std::string_view which, int64_t extent);

/// Terms of sums, `along` the dim of extent k with `inner` elements behind it:
///   calm         numbers near 1
///   zeros        zeros of both signs
///   whole        small whole numbers: every sum of them is exact
///   positive     0.5 to 1, digits at random: an accumulator that leans shows it
///   alternating  nearly equal neighbours of other signs: what is left is small beside the terms
///   large_small  one large number among many small ones, which a narrow accumulator loses
///   wide         magnitudes far apart
///   specials     now and then NaN, an infinity, a zero, the limits of the type
///   ties         sums half-way between two numbers of f16, bf16 or f32
///   halves       half-way between two whole numbers
///   near_one     products stay near 1
///   powers       signed powers of 2, zeros: every product of them is exact
struct Line {
  int64_t k, inner;
};
TrialBuilder::Fill terms(Elem elem, std::string_view data, Line line);
/// What such terms are multiplied with.
TrialBuilder::Fill weights(Elem elem, std::string_view data, Line line);

/// Whether errors of sums of such terms are independent of each other: not where a result has so
/// few digits that the small ones among them are lost in it.
bool hasRandomErrors(Elem elem, std::string_view data);

} // namespace candela::conformance::tiers::primitives
