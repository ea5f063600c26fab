#pragma once

#include "conformance/tiers/bench.h"

namespace candela::conformance::tiers {

/// Cases of the slot memory_import.
std::vector<Case> memoryImportCases(const Selection& selection);

} // namespace candela::conformance::tiers
