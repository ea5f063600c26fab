#include "tools/candela/package/map.h"

#include <algorithm>

#include "core/compiler/program/report/memory_map.h"
#include "tools/candela/support/planned.h"

namespace candela::tool {
namespace {

using program::report::MemoryMap;

/// The constants that an instruction reads first.
struct NodeWeights {
  uint32_t instr = program::kNone;
  uint64_t bytes = 0;
  std::vector<std::string> names;
};

std::vector<NodeWeights> weightsOf(const program::Program& program) {
  std::vector<NodeWeights> all;
  std::vector<bool> isCounted(program.buffers.size(), false);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    NodeWeights weights;
    weights.instr = i;
    for (const program::View& view : program.instrs[i].inputs) {
      const program::Buffer& buffer = program.buffers[view.buffer];
      if (buffer.role != program::Role::constant || isCounted[view.buffer]) continue;
      isCounted[view.buffer] = true;
      weights.bytes += buffer.bytes;
      weights.names.push_back("%" + buffer.name);
    }
    if (weights.bytes) all.push_back(std::move(weights));
  }
  return all;
}

/// The end of the values in the arena, from where on kernels have memory of their own. Spaces
/// follow each other as the code lays them out.
uint64_t endOfValues(const std::vector<MemoryMap>& maps) {
  constexpr uint64_t kAlignment = 64;
  uint64_t end = 0;
  for (const MemoryMap& map : maps)
    end = (end + map.arenaBytes + kAlignment - 1) & ~(kAlignment - 1);
  return end;
}

uint64_t kernelBytes(const PackagedModel& model, const std::vector<MemoryMap>& maps) {
  const uint64_t end = endOfValues(maps);
  return model.files.facts.arena_bytes > end ? model.files.facts.arena_bytes - end : 0;
}

} // namespace

std::string mapText(const PackagedModel& model) {
  const std::vector<MemoryMap> maps = program::report::memoryMaps(model.program);
  std::string text =
      fmt::format("arena {} B, {}\n", model.files.facts.arena_bytes, peakText(model));
  Table arena({"bytes", "offset", "life", "value", "of"});
  uint64_t begin = 0;
  for (const MemoryMap& map : maps) {
    for (const MemoryMap::Block& block : map.blocks)
      arena.add({fmt::format("{}", block.bytes), fmt::format("{}", begin + block.offset),
                 fmt::format("[{}..{}]", block.first + 1, block.last + 1),
                 "%" + model.program.buffers[block.buffer].name,
                 valueText(model.program, block.buffer)});
    begin = endOfValues({map}) + begin;
  }
  if (const uint64_t bytes = kernelBytes(model, maps))
    arena.add({fmt::format("{}", bytes), fmt::format("{}", endOfValues(maps)),
               fmt::format("[1..{}]", model.program.instrs.size()), "kernels", "all in turn"});
  text += arena.text(2);
  text += fmt::format("weights {} B as kernels read them; of the model:\n",
                      model.files.facts.weights_bytes);
  Table weights({"bytes", "constants", "read by"});
  for (const NodeWeights& each : weightsOf(model.program))
    weights.add({fmt::format("{}", each.bytes), fmt::format("{}", fmt::join(each.names, " ")),
                 model.program.instrName(each.instr)});
  return text + weights.text(2);
}

Json mapJson(const PackagedModel& model) {
  const std::vector<MemoryMap> maps = program::report::memoryMaps(model.program);
  Json values = Json::array();
  uint64_t begin = 0;
  for (const MemoryMap& map : maps) {
    for (const MemoryMap::Block& block : map.blocks)
      values.push_back({{"name", model.program.buffers[block.buffer].name},
                        {"bytes", block.bytes},
                        {"offset", begin + block.offset},
                        {"first", block.first},
                        {"last", block.last}});
    begin = endOfValues({map}) + begin;
  }
  Json weights = Json::array();
  for (const NodeWeights& each : weightsOf(model.program))
    weights.push_back({{"instr", model.program.instrName(each.instr)},
                       {"bytes", each.bytes},
                       {"constants", each.names}});
  return {{"values", std::move(values)},
          {"kernel_bytes", kernelBytes(model, maps)},
          {"kernel_offset", endOfValues(maps)},
          {"weights", std::move(weights)}};
}

std::string peakText(const PackagedModel& model) {
  const std::vector<MemoryMap> maps = program::report::memoryMaps(model.program);
  const auto largest = std::ranges::max_element(maps, {}, &MemoryMap::arenaBytes);
  std::string text;
  if (largest != maps.end() && largest->peak != program::kNone)
    text = fmt::format("{} B of values at {}, ", largest->live[largest->peak],
                       model.program.instrName(largest->peak));
  return text + fmt::format("{} B behind all values for kernels", kernelBytes(model, maps));
}

} // namespace candela::tool
