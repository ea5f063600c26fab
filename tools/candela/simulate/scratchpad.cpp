#include "tools/candela/simulate/scratchpad.h"

#include <algorithm>
#include <set>

#include "tools/candela/simulate/measure.h"

namespace candela::tool {
namespace {

/// About when instructions begin: [instruction, cycle, ...], of each layer its first one, and the
/// end. Streams overlap, so that one may begin before another that stands in front of it: cycles
/// never fall here.
Json beginsOf(const std::vector<int64_t>& layerAt, const Json& layers) {
  Json begins = Json::array();
  std::set<int64_t> known;
  uint64_t latest = 0;
  uint64_t end = 0;
  for (size_t i = 0; i < layerAt.size(); ++i) {
    if (layerAt[i] < 0 || !known.insert(layerAt[i]).second) continue;
    const Json& layer = layers[static_cast<size_t>(layerAt[i])];
    latest = std::max(latest, layer.value("start", uint64_t{0}));
    end = std::max(end, layer.value("done", uint64_t{0}));
    begins.push_back(i);
    begins.push_back(latest);
  }
  if (begins.empty()) return begins;
  begins.push_back(layerAt.size());
  begins.push_back(std::max(latest, end));
  return begins;
}

} // namespace

Json scratchpadMaps(const PlannedModel& model, const Json& layers) {
  Json maps = Json::array();
  const auto layerOf = layerIndex(layers);
  uint64_t part = 0; // among those of the device, as layers count them
  for (const PlannedPart& planned : model.parts) {
    const program::Program& program = planned.program;
    if (std::ranges::none_of(program.spaces, &program::Space::local)) continue;
    for (const program::report::MemoryMap& map : planned.maps) {
      if (!program.spaces[map.space].local || map.capacityBytes == 0) continue;
      std::vector<int64_t> layerAt(program.instrs.size(), -1);
      for (uint32_t i = 0; i < program.instrs.size(); ++i) {
        const auto& provenance = program.instrs[i].provenance;
        const auto found = layerOf.find({part, provenance.empty() ? "" : provenance.front().node});
        if (found != layerOf.end()) layerAt[i] = static_cast<int64_t>(found->second);
      }
      Json blocks = Json::array();
      for (const program::report::MemoryMap::Block& block : map.blocks) {
        for (const uint64_t value :
             {block.offset, block.bytes, uint64_t{block.first}, uint64_t{block.last}})
          blocks.push_back(value);
        blocks.push_back(block.first < layerAt.size() ? layerAt[block.first] : -1);
      }
      maps.push_back({{"name", fmt::format("program {}, {}", part, program.spaces[map.space].name)},
                      {"capacity", map.capacityBytes},
                      {"instructions", program.instrs.size()},
                      {"begins", beginsOf(layerAt, layers)},
                      {"blocks", std::move(blocks)}});
    }
    ++part;
  }
  return maps;
}

} // namespace candela::tool
