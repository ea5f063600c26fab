#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/isa/isa.h"

namespace candela::npu {

/// An engine of a core, among those of all cores.
inline constexpr size_t slotOf(size_t core, int engine) {
  return core * kEngineCount + static_cast<size_t>(engine);
}

/// How many instructions of each engine of each core (by slotOf) something is ordered behind.
using Clock = std::vector<uint32_t>;
/// Both are of the same cores.
void join(Clock& into, const Clock& other);

/// One executed instruction: the slot of its engine, its number there (from 1), and where it stands
/// in the code.
struct Access {
  uint32_t instruction = 0;
  uint32_t epoch = 0;
  uint8_t slot = 0;
};
/// Index into the accesses; 0 is none.
using AccessId = uint32_t;

/// Who is asking, and what it is ordered behind.
struct Accessor {
  AccessId id;
  uint8_t slot; ///< of its engine
  const Clock* clock;
  const std::vector<Access>* accesses;
  /// some that it is behind: neighbouring bytes often have the same
  mutable std::array<AccessId, 16> known{};

  bool isOrderedBehind(AccessId other) const {
    AccessId& recent = known[other % known.size()];
    if (other == recent) return true;
    const Access& access = (*accesses)[other];
    if (access.slot != slot && access.epoch > (*clock)[access.slot]) return false;
    recent = other;
    return true;
  }
};

/// For each byte of a memory: whether it was ever written, who wrote it last, and who read it
/// since, one of each engine. Exact to the byte: cells hold 64 of them with a mask; where two
/// instructions share a cell, the older ones move to a list beside it.
class Shadow {
public:
  /// `readers`: the slots of engines that may read. isWritten: everything is initialised from the
  /// start.
  Shadow(uint64_t bytes, std::span<const size_t> readers, bool isWritten);

  /// Notes the access. Returns one that it is not ordered behind and that conflicts with it, or 0.
  AccessId read(uint64_t at, uint64_t bytes, const Accessor& accessor);
  AccessId write(uint64_t at, uint64_t bytes, const Accessor& accessor);
  /// The first byte that nothing wrote, or -1.
  int64_t uninitialised(uint64_t at, uint64_t bytes) const;

private:
  static constexpr uint64_t kCell = 64;
  struct Cell {
    uint64_t mask = 0;
    AccessId id = 0;
    uint32_t older = 0; ///< entries of the list beside it
  };

  template <typename Visit> void eachCell(uint64_t at, uint64_t bytes, Visit visit) const;
  AccessId conflict(uint64_t slot, uint64_t mask, const Accessor& accessor) const {
    const Cell& cell = cells_[slot];
    if ((cell.mask & mask) && cell.id != accessor.id && !accessor.isOrderedBehind(cell.id))
      return cell.id;
    return cell.older ? olderConflict(slot, mask, accessor) : 0;
  }
  AccessId olderConflict(uint64_t slot, uint64_t mask, const Accessor& accessor) const;
  void note(uint64_t slot, uint64_t mask, AccessId id);
  void forget(uint64_t slot, uint64_t mask);

  /// cells of one group: the writers, then the readers of each engine
  uint64_t width_ = 1;
  std::vector<uint8_t> readerOf_; ///< by slot of an engine: where its reads stand in a group
  std::vector<Cell> cells_;
  std::vector<uint64_t> written_;
  std::unordered_map<uint64_t, std::vector<Cell>> older_;
};

} // namespace candela::npu
