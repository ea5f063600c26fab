#pragma once

#include "conformance/trial_builder.h"

/// Contents of what products with scales have beside their factors.
namespace candela::conformance::tiers {

/// Magnitudes of 1/16 to 2 in eighths, of either sign where the type has one.
TrialBuilder::Fill blockScales(Elem elem);

/// Numbers within those of 4-bit weights; of floats a quarter above them.
TrialBuilder::Fill blockZeros(Elem elem);

} // namespace candela::conformance::tiers
