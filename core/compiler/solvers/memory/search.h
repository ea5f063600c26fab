// The exact search: whether bodies fit into a capacity, and where.
//
// Bodies that never meet in time are searched apart (sections.h). One search of a group
// (attempt.h) is complete, but its cost depends on the order of preference by orders of magnitude.
// So short attempts in several orders are restarted, with the lengths that lose least where nobody
// knows how long the search will take: M. Luby, A. Sinclair, D. Zuckerman, "Optimal Speedup of Las
// Vegas Algorithms", 1993.
#pragma once

#include <optional>

#include "core/compiler/solvers/memory/sections.h"

namespace candela::solvers::memory {

enum class Verdict { Fits, NeverFits, Undecided };

struct SearchResult {
  Verdict verdict = Verdict::Undecided;
  uint64_t nodes = 0;
  std::vector<uint64_t> origins; ///< of all bodies, when they fit
};

/// Searches of the same bodies for several capacities: sections are made once.
class Search {
public:
  /// The bodies must outlive it.
  explicit Search(const Bodies& bodies);

  /// Decides, within a number of nodes, whether all bodies fit into `capacity` bytes.
  /// Deterministic, whatever `threads` is. Undecided at once for more than 2,048 bodies that touch
  /// in time. NeverFits is a proof only when the bodies are flat: see isFlat.
  SearchResult run(uint64_t capacity, uint64_t nodes, unsigned threads);

private:
  const Bodies& bodies_;
  std::vector<std::vector<size_t>> groups_;
  std::vector<std::optional<Sections>> sections_; ///< by group, of those that were searched
};

/// Whether no body has a part that hangs over free bytes.
bool isFlat(const Bodies& bodies);

} // namespace candela::solvers::memory
