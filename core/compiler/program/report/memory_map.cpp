#include "core/compiler/program/report/memory_map.h"

#include <algorithm>

#include "core/compiler/program/passes/schedule/lifetimes.h"

namespace candela::program::report {

std::vector<MemoryMap::Block> MemoryMap::at(uint32_t instr) const {
  std::vector<Block> alive;
  for (const Block& block : blocks)
    if (block.first <= instr && instr <= block.last) alive.push_back(block);
  std::ranges::stable_sort(alive, [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  return alive;
}

namespace {

/// In one place by intention: an operand's last instruction is the first one of the result that
/// takes its place.
void markTakeovers(const passes::schedule::Share& share,
                   const std::vector<MemoryMap::Block*>& blockOf) {
  for (const uint32_t from : share.buffers)
    for (const uint32_t to : share.buffers) {
      MemoryMap::Block &operand = *blockOf[from], &result = *blockOf[to];
      if (from == to || operand.last != result.first || operand.first == operand.last ||
          operand.offset != result.offset)
        continue;
      operand.handsOver = result.takesOver = true;
    }
}

} // namespace

std::vector<MemoryMap> memoryMaps(const Program& program) {
  const std::vector<passes::schedule::Share> together = passes::schedule::sharesOf(program, true),
                                             apart = passes::schedule::sharesOf(program, false);
  std::vector<MemoryMap> maps;
  for (uint32_t space = 0; space < program.spaces.size(); ++space) {
    MemoryMap map;
    map.space = space;
    map.capacityBytes = program.spaces[space].capacityBytes;
    map.arenaBytes = program.arenaBytes(space);
    std::vector<uint64_t> born(program.instrs.size() + 1, 0), dead(program.instrs.size() + 1, 0);
    for (const passes::schedule::Share& share : together)
      if (share.space == space && share.last < program.instrs.size()) {
        born[share.first] += share.bytes;
        dead[share.last + 1] += share.bytes;
      }
    uint64_t live = 0;
    for (size_t i = 0; i < program.instrs.size(); ++i)
      map.live.push_back(live += born[i] - dead[i]);
    const auto most = std::ranges::max_element(map.live);
    if (most != map.live.end() && *most != 0) {
      map.maxLiveBytes = *most;
      map.peak = static_cast<uint32_t>(most - map.live.begin());
    }
    for (const passes::schedule::Share& share : apart) {
      const Buffer& buffer = program.buffers[share.buffers[0]];
      if (share.space == space)
        map.blocks.push_back(
            {share.buffers[0], share.first, share.last, buffer.offset, buffer.bytes});
    }
    std::vector<MemoryMap::Block*> blockOf(program.buffers.size(), nullptr);
    for (MemoryMap::Block& block : map.blocks) blockOf[block.buffer] = &block;
    for (const passes::schedule::Share& share : together)
      if (share.space == space) markTakeovers(share, blockOf);
    std::ranges::stable_sort(
        map.blocks, {}, [](const MemoryMap::Block& b) { return std::pair(b.first, b.offset); });
    maps.push_back(std::move(map));
  }
  return maps;
}

std::vector<std::string> nodesBehind(const Program& program, uint32_t buffer) {
  std::vector<std::string> nodes;
  for (const Instr& instr : program.instrs) {
    if (std::ranges::none_of(instr.outputs,
                             [&](const View& view) { return view.buffer == buffer; }))
      continue;
    for (const Origin& origin : instr.provenance)
      if (std::ranges::count(nodes, origin.node) == 0) nodes.push_back(origin.node);
    break;
  }
  return nodes;
}

} // namespace candela::program::report
