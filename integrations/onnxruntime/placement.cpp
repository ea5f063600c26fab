#include "integrations/onnxruntime/placement.h"

#include <nlohmann/json.hpp>

namespace candela::ort {

Placement placementOf(const std::string& report) {
  // What candela::driver says of nodes for which no backend can be asked yet, or ever.
  constexpr const char* kStep = "a step of the run";
  constexpr const char* kWaits = "waits for the run";
  Placement placement;
  const auto json = nlohmann::json::parse(report);
  for (const auto& node : json.at("nodes_detail")) {
    const auto why = node.at("why").get<std::string>();
    const bool isOnHost = node.at("class").get<std::string>() == "host";
    Placed& placed = placement.nodes[node.at("node").get<std::string>()];
    if (!isOnHost) {
      placed.isOnBackend = true;
      placement.usesBackend = true;
    } else if (why.rfind(kStep, 0) != 0 && why.rfind(kWaits, 0) != 0) {
      placed.isOnHost = true;
      placed.why = why;
    }
  }
  return placement;
}

} // namespace candela::ort
