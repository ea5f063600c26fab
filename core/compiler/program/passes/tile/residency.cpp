#include "core/compiler/program/passes/tile/residency.h"

#include <algorithm>
#include <map>

namespace candela::program::passes::tile {

namespace {

/// How many chains a constant may stay for: it is worth keeping only for what follows soon.
constexpr size_t kMostChainsOfConstant = 8;

class Settler {
public:
  Settler(const Program& program, const std::vector<Chain>& chains, const std::vector<bool>& isDone,
          const LocalMemory& memory, const LocalMemory* sums, const Machine& machine,
          const TileOptions& options)
      : program_(program), chains_(chains), memory_(memory), costs_(machine.costs),
        memo_(chains.size()) {
    for (const Chain& chain : chains) {
      out_.ports.push_back(portsOf(program, chain, machine, sums != nullptr));
      Setting& setting = out_.settings.emplace_back();
      setting.memory = &memory;
      setting.sums = sums;
      setting.stays.assign(out_.ports.back().size(), Stay::no);
      setting.mostBuffers = options.buffers;
      setting.splitSums = options.splitSums;
      setting.engine = machine.computeEngine;
    }
    findUses(isDone);
  }

  Result<Settled> settle(size_t mostStayers) {
    for (size_t c = 0; c < chains_.size(); ++c) {
      const auto tiling = tilingOf(c, out_.settings[c]);
      if (!tiling) return tiling.status().context(program_.instrName(chains_[c].links[0].instr));
    }
    std::vector<uint32_t> order;
    for (uint32_t b = 0; b < program_.buffers.size(); ++b)
      if (canStay(b)) order.push_back(b);
    std::ranges::stable_sort(order, {}, [&](uint32_t b) { return firstOf(b); });
    for (const uint32_t buffer : order)
      if (out_.stayers.size() < mostStayers) decide(buffer);
    for (size_t c = 0; c < chains_.size(); ++c) {
      CDL_ASSIGN(Tiling tiling, tilingOf(c, out_.settings[c]));
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
      for (const Link& link : chains_[c].links) isIn[link.instr] = true;
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

  Result<Tiling> tilingOf(size_t c, const Setting& setting) {
    const auto [found, isNew] = memo_[c].try_emplace({setting.reserved, setting.stays}, Status());
    if (isNew) found->second = chooseTiling(chains_[c], out_.ports[c], setting, costs_);
    return found->second;
  }

  Setting settingWith(size_t c, const Stayer& stayer) const {
    Setting setting = out_.settings[c];
    setting.reserved += stayer.bytes;
    for (size_t p = 0; p < out_.ports[c].size(); ++p)
      if (out_.ports[c][p].view.buffer == stayer.buffer)
        setting.stays[p] = out_.ports[c][p].output && stayer.stored ? Stay::stored : Stay::local;
    return setting;
  }

  /// Cycles saved; nullopt where a chain does not fit beside it.
  std::optional<double> savingOf(const Stayer& stayer) {
    double saving = 0;
    if (stayer.fetched)
      saving -= static_cast<double>(stayer.bytes) / costs_.bytesPerCycle + costs_.copyCycles;
    for (size_t c = stayer.first; c <= stayer.last; ++c) {
      const Setting setting = settingWith(c, stayer);
      if (setting.reserved > memory_.capacityBytes) return std::nullopt;
      const auto before = tilingOf(c, out_.settings[c]), after = tilingOf(c, setting);
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
    for (size_t c = best->first; c <= best->last; ++c) out_.settings[c] = settingWith(c, *best);
    out_.stayers.push_back(*best);
  }

  const Program& program_;
  const std::vector<Chain>& chains_;
  const LocalMemory& memory_;
  const TileCosts& costs_;
  std::vector<Uses> uses_; ///< by buffer
  std::vector<std::map<std::pair<uint64_t, std::vector<Stay>>, Result<Tiling>>> memo_;
  Settled out_;
};

} // namespace

Result<Settled> settle(const Program& program, const std::vector<Chain>& chains,
                       const std::vector<bool>& isDone, const LocalMemory& memory,
                       const LocalMemory* sums, const Machine& machine, const TileOptions& options,
                       size_t mostStayers) {
  return Settler(program, chains, isDone, memory, sums, machine, options).settle(mostStayers);
}

} // namespace candela::program::passes::tile
