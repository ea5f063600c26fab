#include "conformance/suite.h"

namespace candela::conformance {

std::span<const Tier> allTiers() {
  static constexpr Tier tiers[] = {
      {"abi", tiers::abi::abiCases},
      {"memory", tiers::memoryCases},
      {"queue", tiers::queueCases},
      {"devices", tiers::devices::deviceCases},
      {"async", tiers::async::asyncCases},
      {"primitives", tiers::primitives::primitiveCases},
      {"ops", tiers::ops::opCases},
      {"onnx", tiers::onnxCases},
      {"models", tiers::models::modelCases},
      {"gradients", tiers::gradientCases},
      {"fuzz", tiers::fuzzCases},
  };
  return tiers;
}

const Tier* findTier(std::string_view name) {
  for (const Tier& tier : allTiers())
    if (name == tier.name) return &tier;
  return nullptr;
}

} // namespace candela::conformance
