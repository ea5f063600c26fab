#include "conformance/suite.h"

namespace candela::conform {

std::span<const Tier> allTiers() {
  static constexpr Tier tiers[] = {
      {"abi", abiCases},      {"memory", memoryCases},
      {"queue", queueCases},  {"primitives", primitiveCases},
      {"ops", opCases},       {"onnx", onnxCases},
      {"models", modelCases}, {"fuzz", fuzzCases},
  };
  return tiers;
}

const Tier* findTier(std::string_view name) {
  for (const Tier& tier : allTiers())
    if (name == tier.name) return &tier;
  return nullptr;
}

} // namespace candela::conform
