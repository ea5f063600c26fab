#pragma once

#include <span>

#include "conformance/case.h"

/// The tiers, each a level of the porting guide.
namespace candela::conformance {

struct Tier {
  const char* name;
  /// All cases of a size, in the order in which they run. No backend is opened.
  Result<std::vector<Case>> (*list)(const Selection& selection);
};
std::span<const Tier> allTiers();
/// Null when there is none of this name.
const Tier* findTier(std::string_view name);

namespace tiers {
Result<std::vector<Case>> memoryCases(const Selection& selection);
Result<std::vector<Case>> queueCases(const Selection& selection);
Result<std::vector<Case>> onnxCases(const Selection& selection);
Result<std::vector<Case>> gradientCases(const Selection& selection);
Result<std::vector<Case>> fuzzCases(const Selection& selection);
} // namespace tiers
namespace tiers::abi {
Result<std::vector<Case>> abiCases(const Selection& selection);
} // namespace tiers::abi
namespace tiers::devices {
Result<std::vector<Case>> deviceCases(const Selection& selection);
} // namespace tiers::devices
namespace tiers::async {
Result<std::vector<Case>> asyncCases(const Selection& selection);
} // namespace tiers::async
namespace tiers::primitives {
Result<std::vector<Case>> primitiveCases(const Selection& selection);
} // namespace tiers::primitives
namespace tiers::ops {
Result<std::vector<Case>> opCases(const Selection& selection);
} // namespace tiers::ops
namespace tiers::models {
Result<std::vector<Case>> modelCases(const Selection& selection);
} // namespace tiers::models

} // namespace candela::conformance
