#pragma once

#include "conformance/trial_builder.h"

/// Operands that make what an instruction rounds lie half-way between two numbers, most of the
/// time. All that is computed of them on the way is exact.
namespace candela::conformance::tiers::ops {

/// Whole numbers up to `most`, of both signs where the type has them.
TrialBuilder::Fill wholeNumbers(Elem elem, int64_t most);
/// Whole numbers and a half.
TrialBuilder::Fill wholesAndHalf(Elem elem);
/// 1/2 and 1/4: products with whole numbers.
TrialBuilder::Fill halfFactors(Elem elem);
/// Numbers of `from` half-way between two of `to`, which has fewer digits.
TrialBuilder::Fill betweenTwo(Elem from, Elem to);
/// What sums of five to ten i32 that f32 cannot hold are made of.
TrialBuilder::Fill longIntegers();

/// The multiplier and the shift of a RESCALE by 1/2, 1/4 or 1/8.
TrialBuilder::Fill halfMultipliers();
TrialBuilder::Fill halfShifts();

} // namespace candela::conformance::tiers::ops
