// The exact search: whether bodies fit into a capacity, and where.
#pragma once

#include "core/plan/memory/body.h"

namespace candela::plan {

enum class Verdict { Fits, NeverFits, Undecided };

struct SearchResult {
  Verdict verdict = Verdict::Undecided;
  uint64_t nodes = 0;
  std::vector<uint64_t> origins; ///< of all bodies, when they fit
};

/// Decides, within a number of nodes, whether all bodies fit into `capacity` bytes. Deterministic, whatever `threads`
/// is. Undecided at once for more than 2,048 bodies that touch in time. NeverFits is a proof only when `bodies` are
/// flat: see isFlat.
SearchResult search(const Bodies& bodies, uint64_t capacity, uint64_t nodes, unsigned threads);

/// No body has a part that hangs over free bytes.
bool isFlat(const Bodies& bodies);

} // namespace candela::plan
