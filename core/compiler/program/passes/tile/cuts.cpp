#include "core/compiler/program/passes/tile/cuts.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/compiler/program/passes/tile/device_costs.h"

namespace candela::program::passes::tile {

std::string formOf(const Program& program, const Chain& chain) {
  std::string form;
  std::vector<uint32_t> buffers; // in the order in which views name them
  for (const Link& link : chain.links) {
    form += fmt::format("{}#{}.{}.{}", costKeyOf(link.work), fmt::join(link.fromBefore, ","),
                        link.reshapes, link.leaves);
    for (const auto* views : {&link.work.inputs, &link.work.outputs})
      for (const View& view : *views) {
        const auto at = std::ranges::find(buffers, view.buffer);
        form += fmt::format("@{}.{}", at - buffers.begin(), view.offset);
        if (at != buffers.end()) continue;
        const Buffer& buffer = program.buffers[view.buffer];
        form += fmt::format(":{}.{}.{}.{}", static_cast<int>(buffer.role), buffer.bytes,
                            buffer.alignment, buffer.halo.has_value());
        buffers.push_back(view.buffer);
      }
  }
  return form;
}

Setting ChainTilings::settingWith(uint64_t reserved, const std::vector<Stay>& stays) const {
  Setting setting = setting_;
  setting.reserved = reserved;
  setting.stays = stays;
  return setting;
}

/// How many operands are small beside so much room: they are held (Chooser::addOperand), so where
/// there are others, one room says nothing of another.
size_t ChainTilings::smallOperands(uint64_t room) const {
  const uint64_t alignment = setting_.memory->alignment;
  size_t count = 0;
  for (size_t p = 0; p < ports().size(); ++p) {
    const uint64_t whole = space_.view(p).wholeBytes;
    count += (whole + alignment - 1) / alignment * alignment <= room / 32;
  }
  return count;
}

/// Whether what was found for a larger room is the best for a smaller one: what fits there fits
/// the larger one too.
bool ChainTilings::isBestToo(uint64_t larger, const FoundTiling& found, uint64_t room) const {
  if (costs_.device && costs_.device->knowsTiles()) return false; // it ranks those that fit
  return (!found || found->localBytes <= room) && smallOperands(larger) == smallOperands(room);
}

const Tiling* ChainTilings::find(uint64_t reserved, const std::vector<Stay>& stays) {
  const uint64_t capacity = setting_.memory->capacityBytes;
  const uint64_t room = capacity - std::min(reserved, capacity);
  std::map<uint64_t, FoundTiling>& rooms = found_[stays];
  const auto larger = rooms.lower_bound(room);
  if (larger != rooms.end() && larger->first == room) return larger->second.get();
  FoundTiling found;
  if (larger != rooms.end() && isBestToo(larger->first, larger->second, room))
    found = larger->second;
  else if (auto tiling = chooseTiling(space_, settingWith(reserved, stays), costs_))
    found = std::make_shared<const Tiling>(*std::move(tiling));
  return rooms.emplace_hint(larger, room, std::move(found))->second.get();
}

Result<Tiling> ChainTilings::get(uint64_t reserved, const std::vector<Stay>& stays) {
  if (const Tiling* tiling = find(reserved, stays)) return *tiling;
  return whyNoTiling(space_, settingWith(reserved, stays), costs_);
}

Cuts::Cuts(const Program& program, const std::vector<bool>& isDone, const LocalMemory& memory,
           const LocalMemory* sums, const Machine& machine, const TileOptions& options,
           KnownChains& known)
    : program_(program), isDone_(isDone), memory_(memory), sums_(sums), machine_(machine),
      options_(options), known_(known) {
  for (const Chain& chain : bestChains()) chains_.push_back(&tilingsOf(chain));
}

ChainTilings& Cuts::tilingsOf(const Chain& chain) {
  ChainKey key;
  for (const Link& link : chain.links) key.emplace_back(link.instr, link.leaves);
  const auto made = tilings_.find(key);
  if (made != tilings_.end()) return made->second;
  const auto [at, isNew] = known_.chains.try_emplace(key);
  KnownChain& known = at->second;
  if (isNew) {
    known.chain = chain;
    known.ports = portsOf(program_, chain, machine_, sums_ != nullptr);
    known.form = &known_.forms[formOf(program_, chain)];
  }
  const TileCosts& costs = machine_.costs;
  std::unique_ptr<TileSpace>& space = known.form->spaces[{costs.rows, costs.columns}];
  if (!space) space = std::make_unique<TileSpace>(known.chain, known.ports, costs);
  Setting setting;
  setting.memory = &memory_;
  setting.sums = sums_;
  setting.mostBuffers = options_.buffers;
  setting.splitSums = options_.splitSums;
  setting.engine = machine_.computeEngine;
  FoundTilings& found = found_[known.form];
  return tilings_.try_emplace(key, known, *space, std::move(setting), costs, found).first->second;
}

/// With nothing kept.
double Cuts::costOf(const Chain& chain) {
  ChainTilings& tilings = tilingsOf(chain);
  const Tiling* const tiling = tilings.find(0, std::vector<Stay>(tilings.ports().size(), Stay::no));
  return tiling ? tiling->cost : std::numeric_limits<double>::infinity();
}

/// Chains with followers of another shape only where such a chain costs less than its parts apart,
/// with nothing else kept. A follower that does not pay is barred, and chains are made anew.
std::vector<Chain> Cuts::bestChains() {
  ChainOptions options{options_.fuse, UINT64_MAX, {}};
  std::vector<Chain> apart = chainsOf(program_, isDone_, options);
  if (!options.fuse) return apart;
  std::vector<size_t> apartOf(program_.instrs.size(), SIZE_MAX); // by instruction
  for (size_t c = 0; c < apart.size(); ++c)
    for (const Link& link : apart[c].links) apartOf[link.instr] = c;
  options.largeBytes = memory_.capacityBytes / 2;
  options.mayNotShape.assign(program_.instrs.size(), false);
  for (;;) {
    std::vector<Chain> chains = chainsOf(program_, isDone_, options);
    bool isBest = true;
    for (const Chain& chain : chains) {
      const auto shaped =
          std::ranges::find_if(chain.links.rbegin(), chain.links.rend(), &Link::reshapes);
      if (shaped == chain.links.rend()) continue;
      std::set<size_t> parts;
      for (const Link& link : chain.links) parts.insert(apartOf[link.instr]);
      double cost = 0;
      for (const size_t part : parts) cost += costOf(apart[part]);
      if (costOf(chain) < cost) continue;
      options.mayNotShape[shaped->instr] = true;
      isBest = false;
    }
    if (isBest) return chains;
  }
}

} // namespace candela::program::passes::tile
