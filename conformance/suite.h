#pragma once

#include <span>

#include "conformance/case.h"

/// The tiers, each a rung of the porting guide.
namespace candela::conform {

struct Tier {
  const char* name;
  /// All cases of a size, in the order in which they run. No backend is opened.
  Result<std::vector<Case>> (*list)(const Selection& selection);
};
std::span<const Tier> allTiers();
/// Null when there is none of this name.
const Tier* findTier(std::string_view name);

Result<std::vector<Case>> abiCases(const Selection& selection);
Result<std::vector<Case>> memoryCases(const Selection& selection);
Result<std::vector<Case>> queueCases(const Selection& selection);
Result<std::vector<Case>> primitiveCases(const Selection& selection);
Result<std::vector<Case>> onnxCases(const Selection& selection);
Result<std::vector<Case>> opCases(const Selection& selection);
Result<std::vector<Case>> modelCases(const Selection& selection);
Result<std::vector<Case>> fuzzCases(const Selection& selection);

} // namespace candela::conform
