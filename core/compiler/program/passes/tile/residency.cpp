#include "core/compiler/program/passes/tile/residency.h"

#include <algorithm>

namespace candela::program::passes::tile {

namespace {

/// How many chains a constant may stay for: it is worth keeping only for what follows soon.
constexpr size_t kMostChainsOfConstant = 8;

class Settler {
public:
  Settler(const Program& program, const Cuts& cuts, const TileCosts& costs)
      : program_(program), chains_(cuts.chains()), memory_(cuts.memory()), costs_(costs) {
    for (const ChainTilings* chain : chains_) {
      out_.ports.push_back(chain->ports());
      out_.settings.push_back(
          chain->settingWith(0, std::vector<Stay>(chain->ports().size(), Stay::no)));
    }
    findUses(cuts.isDone());
  }

  Result<Settled> settle(size_t mostStayers) {
    for (size_t c = 0; c < chains_.size(); ++c) {
      const auto tiling = tilingOf(c);
      if (!tiling)
        return tiling.status().context(program_.instrName(chains_[c]->chain().links[0].instr));
    }
    std::vector<uint32_t> order;
    for (uint32_t b = 0; b < program_.buffers.size(); ++b)
      if (canStay(b)) order.push_back(b);
    std::ranges::stable_sort(order, {}, [&](uint32_t b) { return firstOf(b); });
    for (const uint32_t buffer : order)
      if (out_.stayers.size() < mostStayers) decide(buffer);
    for (size_t c = 0; c < chains_.size(); ++c) {
      CDL_ASSIGN(Tiling tiling, tilingOf(c));
      out_.tilings.push_back(std::move(tiling));
    }
    return std::move(out_);
  }

private:
  struct Uses {
    std::vector<size_t> readers, writers; ///< chains, ascending, each once
    bool isBarred = false;                ///< something else touches it
  };

  void findUses(const std::vector<bool>& isDone) {
    uses_.resize(program_.buffers.size());
    std::vector<bool> isIn(program_.instrs.size(), false);
    for (size_t c = 0; c < chains_.size(); ++c) {
      for (const Link& link : chains_[c]->chain().links) isIn[link.instr] = true;
      for (const Port& port : out_.ports[c]) {
        Uses& uses = uses_[port.view.buffer];
        std::vector<size_t>& list = port.output ? uses.writers : uses.readers;
        if (list.empty() || list.back() != c) list.push_back(c);
        uses.isBarred |= port.inout;
      }
    }
    for (uint32_t i = 0; i < program_.instrs.size(); ++i)
      if (!isIn[i] || isDone[i])
        for (const auto* views : {&program_.instrs[i].inputs, &program_.instrs[i].outputs})
          for (const View& view : *views) uses_[view.buffer].isBarred = true;
  }

  size_t firstOf(uint32_t b) const {
    return uses_[b].writers.empty() ? uses_[b].readers[0] : uses_[b].writers[0];
  }

  bool canStay(uint32_t b) const {
    const Buffer& buffer = program_.buffers[b];
    const Uses& uses = uses_[b];
    if (uses.isBarred || uses.readers.empty() || buffer.halo ||
        buffer.bytes > memory_.capacityBytes)
      return false;
    if (buffer.role == Role::constant || buffer.role == Role::input)
      return uses.writers.empty() && uses.readers.size() > 1 && !isPackedSomewhere(b);
    return buffer.role == Role::temp && uses.writers.size() == 1 &&
           uses.writers[0] < uses.readers[0];
  }
  bool isPackedSomewhere(uint32_t b) const {
    for (const size_t c : uses_[b].readers)
      for (const Port& port : out_.ports[c])
        if (port.view.buffer == b && isPacked(port.view.elem)) return true;
    return false;
  }

  Result<Tiling> tilingOf(size_t c) {
    return chains_[c]->get(out_.settings[c].reserved, out_.settings[c].stays);
  }

  /// What stays of a chain's ports, beside one more value.
  std::vector<Stay> staysWith(size_t c, const Stayer& stayer) const {
    std::vector<Stay> stays = out_.settings[c].stays;
    for (size_t p = 0; p < out_.ports[c].size(); ++p)
      if (out_.ports[c][p].view.buffer == stayer.buffer)
        stays[p] = out_.ports[c][p].output && stayer.stored ? Stay::stored : Stay::local;
    return stays;
  }

  /// Cycles saved; nullopt where a chain does not fit beside it.
  std::optional<double> savingOf(const Stayer& stayer) {
    double saving = 0;
    if (stayer.fetched)
      saving -= static_cast<double>(stayer.bytes) / costs_.bytesPerCycle + costs_.copyCycles;
    for (size_t c = stayer.first; c <= stayer.last; ++c) {
      const Setting& setting = out_.settings[c];
      const uint64_t reserved = setting.reserved + stayer.bytes;
      if (reserved > memory_.capacityBytes) return std::nullopt;
      const Tiling* const before = chains_[c]->find(setting.reserved, setting.stays);
      const Tiling* const after = chains_[c]->find(reserved, staysWith(c, stayer));
      if (!after) return std::nullopt;
      saving += before->cost - after->cost;
    }
    return saving;
  }

  void decide(uint32_t b) {
    const Uses& uses = uses_[b];
    const Buffer& buffer = program_.buffers[b];
    const bool fetched = uses.writers.empty();
    const size_t first = firstOf(b);
    const uint64_t bytes =
        (buffer.bytes + memory_.alignment - 1) / memory_.alignment * memory_.alignment;
    std::optional<Stayer> best;
    double mostSaved = 0;
    for (size_t r = 0; r < uses.readers.size(); ++r) {
      const size_t last = uses.readers[r];
      if (last == first) continue;
      if (fetched && last - first > kMostChainsOfConstant) break;
      const bool isAll = r + 1 == uses.readers.size();
      const Stayer stayer{b, first, last, !fetched && !isAll, fetched, bytes};
      const auto saved = savingOf(stayer);
      if (!saved) break; // longer takes more room
      if (*saved <= mostSaved) continue;
      mostSaved = *saved;
      best = stayer;
    }
    if (!best) return;
    for (size_t c = best->first; c <= best->last; ++c) {
      std::vector<Stay> stays = staysWith(c, *best);
      out_.settings[c].stays = std::move(stays);
      out_.settings[c].reserved += best->bytes;
    }
    out_.stayers.push_back(*best);
  }

  const Program& program_;
  const std::vector<ChainTilings*>& chains_;
  const LocalMemory& memory_;
  const TileCosts& costs_;
  std::vector<Uses> uses_; ///< by buffer
  Settled out_;
};

} // namespace

Result<Settled> settle(const Program& program, const Cuts& cuts, const TileCosts& costs,
                       size_t mostStayers) {
  return Settler(program, cuts, costs).settle(mostStayers);
}

} // namespace candela::program::passes::tile
