// The problem as the planner sees it: buffers that ties connect are one rigid body, which has one
// place. In: a MemoryProblem; out: bodies.
#pragma once

#include "core/compiler/solvers/memory/memory.h"

namespace candela::solvers::memory {

/// The origin of a body that has no legal place.
constexpr uint64_t kNowhere = UINT64_MAX;
/// The bytes that a plan stays below, so that sums of two offsets fit 64 bits.
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

/// Bytes [low, high) above a body's origin, taken in [begin, end).
struct Part {
  int64_t begin = 0, end = 0;
  uint64_t low = 0, high = 0;
};

struct Member {
  size_t buffer = 0;
  uint64_t delta = 0; ///< bytes from the origin to the buffer, its halo not counted
  uint64_t size = 0;  ///< bytes, without halos
};

struct Body {
  std::vector<Part> parts; ///< by begin; the lowest at 0
  std::vector<Member> members;
  uint64_t alignment = 1, residue = 0; ///< the origin modulo alignment
  std::optional<uint64_t> fixed;       ///< the origin, when a member is pinned
  uint64_t height = 0;                 ///< bytes
  int64_t begin = 0, end = 0;          ///< from the first part to the last
  bool banked = false;                 ///< its members must keep within banks
};

class Bodies {
public:
  /// invalid_argument on what no plan can satisfy whatever the capacity, naming the buffers.
  static Result<Bodies> make(const MemoryProblem& problem);

  const std::vector<Body>& all() const { return bodies_; }
  /// The lowest legal origin of a body that is not below `from`, or kNowhere. Knows no other
  /// bodies.
  uint64_t lowest(const Body& body, uint64_t from) const;
  /// The origins of all(), in their order, as a plan.
  MemoryPlan planOf(const std::vector<uint64_t>& origins) const;

private:
  std::vector<Body> bodies_;
  std::vector<Interval> buffers_;
  uint64_t bankBytes_ = 0;
};

} // namespace candela::solvers::memory
