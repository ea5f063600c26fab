#include "tools/candela/simulate/least.h"

#include <algorithm>
#include <cmath>

namespace candela::tool {
namespace {

uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t arrayCycles(const Json& products, const npu::Configuration& npu) {
  const auto of = [&](const char* key) { return products.value(key, uint64_t{0}); };
  const auto rows = static_cast<uint64_t>(npu.rows()),
             columns = static_cast<uint64_t>(npu.columns());
  const uint64_t cycles =
      npu.isOutputStationary()
          ? of("count") * ceilDiv(of("rows"), rows) * ceilDiv(of("columns"), columns) * of("terms")
          : of("count") * ceilDiv(of("terms"), rows) * ceilDiv(of("columns"), columns) *
                std::max(of("rows"), rows);
  // Channel by channel a column takes one of them, a term at a time.
  const uint64_t least =
      of("columns") == 1
          ? std::min(cycles, ceilDiv(of("count"), columns) * of("rows") * of("terms"))
          : cycles;
  return ceilDiv(least, npu.cores());
}

/// Of a node, or of several of one name.
struct Known {
  uint64_t macs = 0, cycles = 0;
};

std::map<std::string, Known> knownProducts(const Json& placement, const npu::Configuration& npu) {
  std::map<std::string, Known> nodes;
  for (const Json& node : placement.value("nodes_detail", Json::array())) {
    Known& known = nodes[node.value("node", "")];
    known.macs += node.value("macs", uint64_t{0});
    if (node.contains("products"))
      known.cycles += arrayCycles(node["products"], npu);
    else if (node.value("macs", uint64_t{0}))
      known.macs = UINT64_MAX / 2; // no layer has as many
  }
  return nodes;
}

} // namespace

void addLeastCycles(Measured& measured, const Json& placement, const npu::Configuration& npu) {
  const auto nodes = knownProducts(placement, npu);
  const double bytesPerCycle = measured.time.value("dram_bytes_per_cycle", 1.0);
  const double secondPerCycle = measured.time.value("second_bytes_per_cycle", 1.0);
  for (Json& layer : measured.layers) {
    const auto of = [&](const char* key) { return layer.value(key, uint64_t{0}); };
    uint64_t array = 0;
    if (of("macs")) {
      const auto node = nodes.find(layer.value("name", ""));
      // One that has a part of its node's products alone has an unknown part of the cycles.
      if (node == nodes.end() || of("macs") < node->second.macs) continue;
      array = node->second.cycles;
    }
    const auto bytes = static_cast<double>(of("weights") + of("tables") + of("loaded") +
                                           of("stored") + of("compressed_bytes")) -
                       static_cast<double>(of("expanded_bytes"));
    const auto inSecond = static_cast<double>(of("second_loaded") + of("second_stored"));
    const std::pair<uint64_t, const char*> bounds[] = {
        {array, "array"},
        {static_cast<uint64_t>(std::ceil((bytes - inSecond) / bytesPerCycle)), "dram"},
        {static_cast<uint64_t>(std::ceil(inSecond / secondPerCycle)), "second"}};
    const auto& [least, by] =
        *std::ranges::max_element(bounds, {}, &std::pair<uint64_t, const char*>::first);
    if (least == 0) continue;
    layer["least_cycles"] = least;
    layer["least_by"] = by;
    // Of several cores other layers have the cycles in which this one ran beside them.
    if (npu.cores() > 1 && of("cycles") < least) continue;
    layer["of_least"] = static_cast<double>(of("cycles")) / static_cast<double>(least);
  }
}

std::string ofLeastText(const Json& layer) {
  if (!layer.contains("of_least")) return "";
  return fmt::format("{:.2f}", layer["of_least"].get<double>());
}

std::optional<uint64_t> leastCycles(const Json& layers) {
  uint64_t sum = 0;
  for (const Json& layer : layers) {
    if (!layer.contains("least_cycles") && layer.value("macs", uint64_t{0})) return std::nullopt;
    sum += layer.value("least_cycles", uint64_t{0});
  }
  return sum;
}

} // namespace candela::tool
