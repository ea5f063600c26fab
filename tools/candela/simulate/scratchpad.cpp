#include "tools/candela/simulate/scratchpad.h"

#include <algorithm>

#include "tools/candela/simulate/measure.h"

namespace candela::tool {

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
                      {"blocks", std::move(blocks)}});
    }
    ++part;
  }
  return maps;
}

} // namespace candela::tool
