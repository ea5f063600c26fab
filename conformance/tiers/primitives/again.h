#pragma once

#include <span>

#include "conformance/case.h"

namespace candela::conformance::tiers::primitives {

using CasesOf = std::vector<Case> (*)(const Selection& selection);
/// One case of each kind in these families, run often.
std::vector<Case> againCases(const Selection& selection, std::span<const CasesOf> families);

} // namespace candela::conformance::tiers::primitives
