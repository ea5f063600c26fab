// Time as the exact search sees it: instead of points in time, the few stretches that differ in
// what lives then. In: bodies that touch in time; out: sections, and what lies in each.
#pragma once

#include "core/compiler/solvers/memory/body.h"

namespace candela::solvers::memory {

/// `height` bytes in the sections first .. last - 1.
struct Piece {
  uint32_t first = 0, last = 0;
  uint64_t height = 0;
};

struct Item {
  size_t body = 0;
  std::vector<Piece> pieces;    ///< ascending
  uint32_t first = 0, last = 0; ///< sections from the first piece to the end of the last
  uint64_t height = 0;          ///< bytes of the highest piece
  std::vector<uint32_t> near;   ///< items with a section in common
  int64_t twin = -1;            ///< the latest item before it that it could change places with
};

/// Bodies that touch in time. Sections are the stretches of time in which nobody is born or dies,
/// without those whose bodies are all in a neighbouring section: what fits into the others fits
/// there too.
struct Sections {
  std::vector<Item> items; ///< by first section
  uint32_t count = 0;
  /// [i * items + j]: bytes that item i takes below item j when it lies under it; 0: they never
  /// meet
  std::vector<uint64_t> under;

  uint64_t heightUnder(size_t i, size_t j) const { return under[i * items.size() + j]; }
};

/// Splits the bodies into groups, in order of time: bodies of different groups never meet. Each
/// group is sorted by begin. Bodies without bytes are left out.
std::vector<std::vector<size_t>> touching(const Bodies& bodies);

/// The sections of one such group.
Sections sectionsOf(const Bodies& bodies, const std::vector<size_t>& group);

} // namespace candela::solvers::memory
