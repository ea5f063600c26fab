#include "simulator/func/shadow.h"

#include <algorithm>

namespace candela::npu {

void join(Clock& into, const Clock& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Shadow::Shadow(uint64_t bytes, std::span<const size_t> readers, bool isWritten) {
  for (const size_t slot : readers) {
    if (slot >= readerOf_.size()) readerOf_.resize(slot + 1);
    readerOf_[slot] = static_cast<uint8_t>(width_++);
  }
  const uint64_t groups = (bytes + kCell - 1) / kCell;
  cells_.resize(groups * width_);
  written_.assign(groups, isWritten ? ~uint64_t{0} : 0);
}

template <typename Visit> void Shadow::eachCell(uint64_t at, uint64_t bytes, Visit visit) const {
  const uint64_t end = at + bytes;
  while (at < end) {
    const uint64_t group = at / kCell, low = at % kCell, high = std::min(kCell, low + end - at);
    const uint64_t mask = ~uint64_t{0} >> (kCell - high) & ~uint64_t{0} << low;
    if (!visit(group, mask)) return;
    at = (group + 1) * kCell;
  }
}

AccessId Shadow::olderConflict(uint64_t slot, uint64_t mask, const Accessor& accessor) const {
  for (const Cell& old : older_.at(slot))
    if ((old.mask & mask) && !accessor.isOrderedBehind(old.id)) return old.id;
  return 0;
}

void Shadow::forget(uint64_t slot, uint64_t mask) {
  Cell& cell = cells_[slot];
  cell.mask &= ~mask;
  if (!cell.older) return;
  std::vector<Cell>& list = older_[slot];
  std::erase_if(list, [&](Cell& old) { return (old.mask &= ~mask) == 0; });
  cell.older = static_cast<uint32_t>(list.size());
  if (list.empty()) older_.erase(slot);
}

void Shadow::note(uint64_t slot, uint64_t mask, AccessId id) {
  Cell& cell = cells_[slot];
  if (cell.id == id) {
    cell.mask |= mask;
    return;
  }
  if ((cell.mask & ~mask) || cell.older) {
    forget(slot, mask);
    if (cell.mask) {
      older_[slot].push_back({cell.mask, cell.id, 0});
      ++cell.older;
    }
  }
  cell.id = id;
  cell.mask = mask;
}

AccessId Shadow::read(uint64_t at, uint64_t bytes, const Accessor& accessor) {
  AccessId found = 0;
  eachCell(at, bytes, [&](uint64_t group, uint64_t mask) {
    found = conflict(group * width_, mask, accessor);
    if (found) return false;
    note(group * width_ + readerOf_[accessor.slot], mask, accessor.id);
    return true;
  });
  return found;
}

AccessId Shadow::write(uint64_t at, uint64_t bytes, const Accessor& accessor) {
  AccessId found = 0;
  eachCell(at, bytes, [&](uint64_t group, uint64_t mask) {
    const uint64_t base = group * width_;
    for (uint64_t slot = 0; slot < width_ && !found; ++slot)
      found = conflict(base + slot, mask, accessor);
    if (found) return false;
    // What follows this write is ordered behind those reads wherever it is ordered behind this
    // write.
    for (uint64_t slot = 1; slot < width_; ++slot)
      if (cells_[base + slot].mask || cells_[base + slot].older) forget(base + slot, mask);
    note(base, mask, accessor.id);
    written_[group] |= mask;
    return true;
  });
  return found;
}

int64_t Shadow::uninitialised(uint64_t at, uint64_t bytes) const {
  int64_t found = -1;
  eachCell(at, bytes, [&](uint64_t group, uint64_t mask) {
    const uint64_t missing = mask & ~written_[group];
    if (missing) found = static_cast<int64_t>(group * kCell) + __builtin_ctzll(missing);
    return found < 0;
  });
  return found;
}

} // namespace candela::npu
