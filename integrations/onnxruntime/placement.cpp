#include "integrations/onnxruntime/placement.h"

#include <nlohmann/json.hpp>

namespace candela::ort {

namespace {

/// What candela::driver says of nodes for which no backend can be asked, or need be.
bool isNeither(const std::string& why) {
  for (const char* const begin : {"a step of the run", "waits for the run", "native: no work"})
    if (why.rfind(begin, 0) == 0) return true;
  return false;
}

} // namespace

Placement placementOf(const std::string& report) {
  Placement placement;
  const auto json = nlohmann::json::parse(report);
  for (const auto& node : json.at("nodes_detail")) {
    Placed& placed = placement.nodes[node.at("node").get<std::string>()];
    const auto why = node.at("why").get<std::string>();
    if (isNeither(why)) continue;
    const bool isOnHost = node.at("class").get<std::string>() == "host";
    Work& work = isOnHost ? placed.onHost : placed.onBackend;
    work.macs += node.at("macs").get<double>();
    work.elements += node.at("elements").get<double>();
    if (isOnHost) placed.why = why;
    placement.usesBackend = placement.usesBackend || !isOnHost;
  }
  return placement;
}

} // namespace candela::ort
