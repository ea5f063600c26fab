// Static memory planning on numbers: lifetimes and sizes in, offsets out. Knows no IR.
#pragma once

#include <cstdint>
#include <vector>

#include "core/support/status.h"

namespace candela::plan {

/// A buffer, alive in [begin, end) of any time scale.
struct Interval {
  int64_t begin = 0, end = 0; ///< begin < end
  uint64_t size = 0;          ///< bytes; 0 takes no room
  uint64_t alignment = 1;     ///< bytes, a power of two
};

struct MemoryProblem {
  std::vector<Interval> buffers;
  uint64_t capacity = UINT64_MAX; ///< bytes of the arena
};

/// offsets[i] belongs to buffers[i]; `size` is the end of the highest one.
struct MemoryPlan {
  std::vector<uint64_t> offsets;
  uint64_t size = 0;
};

/// Places every buffer so that no two that are alive at the same time share a byte. The smallest of
/// six greedy plans (buffers in the order of size, of begin, or of size x lifetime; each into the
/// first or the tightest gap), and, while it is above maxLive and the problem is not too large, of
/// a search from there. The same problem always gets the same plan. Fails with invalid_argument on
/// a malformed buffer, naming it by index, and with out_of_memory
/// when the best plan exceeds the capacity. Any thread. 10,000 buffers take some seconds at most.
Result<MemoryPlan> planMemory(const MemoryProblem& problem);

/// The most bytes alive at once: no plan is smaller. Alignment not counted; UINT64_MAX on
/// overflow.
uint64_t maxLive(const MemoryProblem& problem);

/// What is wrong with a plan, naming the buffers and the two numbers, or nothing: overlaps in time
/// and space, alignment, capacity, size. Shares no code with the planner. In validate.cpp.
std::optional<std::string> validate(const MemoryProblem& problem, const MemoryPlan& plan);

} // namespace candela::plan
