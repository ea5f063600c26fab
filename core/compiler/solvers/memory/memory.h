// Static memory planning on numbers: lifetimes and sizes in, offsets out. Knows no IR.
#pragma once

#include <cstdint>
#include <vector>

#include "core/support/status.h"

namespace candela::solvers::memory {

/// Times [begin, end) of any scale.
struct TimeSpan {
  int64_t begin = 0, end = 0; ///< begin < end
};

/// A buffer, alive in [begin, end) of any time scale.
struct Interval {
  int64_t begin = 0, end = 0; ///< begin < end
  uint64_t size = 0;          ///< bytes; 0 takes no room
  uint64_t alignment = 1;     ///< bytes, a power of two
  /// when others may have its bytes; within its life, ascending, disjoint
  std::vector<TimeSpan> gaps{};
  std::optional<uint64_t> offset{}; ///< bytes; where it must lie
  /// bytes beside it that no other buffer may take while it lives
  uint64_t haloBefore = 0, haloAfter = 0;
};

/// offset(buffer) = offset(base) + delta bytes. Buffers that ties connect may share bytes: a result
/// in the place of its operand, a view of a part.
struct Tie {
  size_t buffer = 0, base = 0;
  uint64_t delta = 0;
};

struct MemoryProblem {
  std::vector<Interval> buffers;
  uint64_t capacity = UINT64_MAX; ///< bytes of the arena
  std::vector<Tie> ties{};
  /// a power of two: no buffer (halos not counted) lies across a multiple of it; 0: no banks
  uint64_t bankBytes = 0;
};

/// offsets[i] belongs to buffers[i]; `size` is the end of the highest one, halos included.
struct MemoryPlan {
  std::vector<uint64_t> offsets;
  uint64_t size = 0;  ///< bytes
  uint64_t bound = 0; ///< bytes; the planner's proof that no plan is smaller
  /// of the exact search; the same on every machine and for every number of threads
  uint64_t nodes = 0;
};

/// How much work a plan may cost, in counts, so that the same problem gets the same plan
/// everywhere.
struct PlanOptions {
  /// hundreds of placed buffers that the quick planner may look at
  uint64_t placements = 20'000'000;
  uint64_t nodes = 20'000'000;  ///< of the exact search for a plan within the capacity
  uint64_t shrinkNodes = 1'000; ///< of the exact search for a smaller plan than one that fits
  unsigned threads = 1;         ///< that the exact search may use
  /// Nobody else has use of what is left of the capacity: a plan that fits need not be small, and
  /// bytes are taken again as late as may be, so that little waits for who had them.
  bool ownsCapacity = false;
};

/// Places every buffer so that no two that are alive at the same time share a byte. The smallest of
/// twelve greedy plans (orders of size, area, begin, length, neighbours and end; each into the
/// first or the tightest gap); while it is above maxLive, of a search from there; then, for up to
/// 2,048 buffers that touch in time, of an exact search: at the capacity when nothing fits yet,
/// else below the best plan. Exact for buffers with alignment, gaps, offsets, halos and banks; tied
/// buffers with a delta count as solid down to the lowest of them there. Always the same plan for
/// the same problem and counts. Fails with invalid_argument on a malformed buffer, naming it by
/// index, and with out_of_memory when no plan within the capacity was found, saying whether none
/// exists. Any thread. `validate` has passed the result.
Result<MemoryPlan> planMemory(const MemoryProblem& problem, const PlanOptions& options = {});

/// The most bytes alive at once: no plan is smaller. Alignment not counted; UINT64_MAX on overflow.
uint64_t maxLive(const MemoryProblem& problem);

/// What is wrong with a plan, naming the buffers and the two numbers, or nothing: overlaps in time
/// and space, alignment, offsets, ties, banks, capacity, size. Shares no code with the planner. In
/// validate.cpp.
std::optional<std::string> validate(const MemoryProblem& problem, const MemoryPlan& plan);

} // namespace candela::solvers::memory
