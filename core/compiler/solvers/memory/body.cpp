#include "core/compiler/solvers/memory/body.h"

#include <algorithm>

namespace candela::solvers::memory {
namespace {

Status checkBuffer(size_t i, const Interval& b, uint64_t bankBytes, uint64_t& total) {
  if (b.begin >= b.end)
    return badArgument("buffer {} begins at {} but ends at {}", i, b.begin, b.end);
  if (b.alignment == 0 || (b.alignment & (b.alignment - 1)) != 0)
    return badArgument("buffer {} has alignment {}, not a power of two", i, b.alignment);
  uint64_t room = 0;
  if (__builtin_add_overflow(b.size, b.alignment - 1, &room) ||
      __builtin_add_overflow(room, b.haloBefore, &room) ||
      __builtin_add_overflow(room, b.haloAfter, &room) ||
      __builtin_add_overflow(room, bankBytes, &room) ||
      __builtin_add_overflow(total, room, &total) || total >= kMaxBytes)
    return badArgument("buffer {} of {} bytes is beyond 64 bits", i, b.size);
  int64_t after = b.begin;
  for (const TimeSpan& gap : b.gaps) {
    if (gap.begin < after || gap.begin >= gap.end || gap.end > b.end)
      return badArgument(
          "buffer {} lives from {} to {} and has a gap from {} to {}, out of order or outside", i,
          b.begin, b.end, gap.begin, gap.end);
    after = gap.end;
  }
  if (bankBytes != 0 && b.size > bankBytes)
    return badArgument("buffer {} of {} bytes is larger than a bank of {}", i, b.size, bankBytes);
  if (!b.offset) return Status::ok();
  if (*b.offset % b.alignment != 0)
    return badArgument("buffer {} is pinned at {}, not a multiple of its alignment {}", i,
                       *b.offset, b.alignment);
  if (*b.offset < b.haloBefore || *b.offset >= kMaxBytes - total)
    return badArgument("buffer {} is pinned at {} with a halo of {} bytes before it", i, *b.offset,
                       b.haloBefore);
  if (bankBytes != 0 && b.size != 0 &&
      *b.offset / bankBytes != (*b.offset + b.size - 1) / bankBytes)
    return badArgument("buffer {} of {} bytes is pinned at {}, across banks of {}", i, b.size,
                       *b.offset, bankBytes);
  return Status::ok();
}

/// Groups of tied buffers: a union-find whose nodes know their distance to the root, so that two
/// ties that contradict each other are found.
class Ties {
public:
  explicit Ties(size_t count) : parent_(count), distance_(count, 0) {
    for (size_t i = 0; i < count; ++i) parent_[i] = i;
  }
  size_t root(size_t i, int64_t& distance) const {
    for (distance = 0; parent_[i] != i; i = parent_[i]) distance += distance_[i];
    return i;
  }
  /// False when the two are tied already, at another distance.
  bool join(const Tie& tie) {
    int64_t buffer = 0, base = 0;
    const size_t from = root(tie.buffer, buffer), to = root(tie.base, base);
    const int64_t apart = base + static_cast<int64_t>(tie.delta) - buffer;
    if (from == to) return apart == 0;
    parent_[from] = to;
    distance_[from] = apart;
    return true;
  }

private:
  std::vector<size_t> parent_;
  std::vector<int64_t> distance_;
};

/// Adds what a member at `delta` above the origin asks of the origin.
Status constrain(Body& body, const Interval& b, size_t index, uint64_t delta) {
  const uint64_t residue = (b.alignment - delta % b.alignment) % b.alignment;
  const uint64_t common = std::min(body.alignment, b.alignment);
  if (body.residue % common != residue % common)
    return badArgument(
        "buffer {} is tied {} bytes above others of alignment {}: it cannot keep its alignment {}",
        index, delta, body.alignment, b.alignment);
  if (b.alignment > body.alignment) {
    body.alignment = b.alignment;
    body.residue = residue;
  }
  if (!b.offset) return Status::ok();
  if (*b.offset < delta)
    return badArgument("buffer {} is pinned at {} but tied {} bytes above others", index, *b.offset,
                       delta);
  if (body.fixed && *body.fixed != *b.offset - delta)
    return badArgument("buffer {} is pinned at {} but tied to one that is pinned elsewhere", index,
                       *b.offset);
  body.fixed = *b.offset - delta;
  return Status::ok();
}

void addParts(Body& body, const Interval& b, uint64_t delta) {
  const uint64_t low = delta - b.haloBefore, high = delta + b.size + b.haloAfter;
  if (low == high) return;
  int64_t from = b.begin;
  for (const TimeSpan& gap : b.gaps) {
    if (from < gap.begin) body.parts.push_back({from, gap.begin, low, high});
    from = gap.end;
  }
  if (from < b.end) body.parts.push_back({from, b.end, low, high});
}

/// Removes parts that lie within another one, as a view lies in its buffer.
void dropInner(std::vector<Part>& parts) {
  const auto within = [](const Part& inner, const Part& outer) {
    return inner.begin >= outer.begin && inner.end <= outer.end && inner.low >= outer.low &&
           inner.high <= outer.high;
  };
  for (size_t i = parts.size(); i-- > 0;)
    for (size_t j = 0; j < parts.size(); ++j)
      if (j != i && within(parts[i], parts[j])) {
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
}

} // namespace

Result<Bodies> Bodies::make(const MemoryProblem& problem) {
  Bodies made;
  made.bankBytes_ = problem.bankBytes;
  made.buffers_ = problem.buffers;
  if ((problem.bankBytes & (problem.bankBytes - 1)) != 0 || problem.bankBytes >= kMaxBytes)
    return badArgument("banks of {} bytes, not a power of two", problem.bankBytes);
  const size_t count = problem.buffers.size();
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i)
    CDL_TRY(checkBuffer(i, problem.buffers[i], problem.bankBytes, total));
  Ties ties(count);
  for (const Tie& tie : problem.ties) {
    if (tie.buffer >= count || tie.base >= count)
      return badArgument("a tie of buffer {} to buffer {}, of {} buffers", tie.buffer, tie.base,
                         count);
    if (tie.delta >= kMaxBytes - total || __builtin_add_overflow(total, tie.delta, &total))
      return badArgument("buffer {} is tied {} bytes above buffer {}, beyond 64 bits", tie.buffer,
                         tie.delta, tie.base);
    if (!ties.join(tie))
      return badArgument("buffer {} is tied {} bytes above buffer {} but other ties say otherwise",
                         tie.buffer, tie.delta, tie.base);
  }
  // First the lowest byte of each group, relative to its root; then each member relative to it.
  std::vector<size_t> bodyOf(count, SIZE_MAX), roots(count);
  std::vector<int64_t> distances(count), lowest(count, INT64_MAX);
  for (size_t i = 0; i < count; ++i) {
    roots[i] = ties.root(i, distances[i]);
    lowest[roots[i]] = std::min(lowest[roots[i]],
                                distances[i] - static_cast<int64_t>(problem.buffers[i].haloBefore));
  }
  for (size_t i = 0; i < count; ++i) {
    const Interval& b = problem.buffers[i];
    size_t& index = bodyOf[roots[i]];
    if (index == SIZE_MAX) {
      index = made.bodies_.size();
      made.bodies_.emplace_back();
    }
    Body& body = made.bodies_[index];
    const uint64_t delta = static_cast<uint64_t>(distances[i] - lowest[roots[i]]);
    CDL_TRY(constrain(body, b, i, delta));
    body.members.push_back({i, delta, b.size});
    body.banked |= problem.bankBytes != 0 && b.size != 0;
    addParts(body, b, delta);
  }
  for (Body& body : made.bodies_) {
    dropInner(body.parts);
    std::ranges::stable_sort(body.parts, {}, &Part::begin);
    if (!body.parts.empty()) body.begin = body.parts[0].begin;
    body.end = body.begin;
    for (const Part& part : body.parts) {
      body.height = std::max(body.height, part.high);
      body.end = std::max(body.end, part.end);
    }
    if (made.lowest(body, body.fixed.value_or(0)) == kNowhere)
      return badArgument("buffer {} and those tied to it lie nowhere within banks of {} bytes",
                         body.members[0].buffer, problem.bankBytes);
  }
  return made;
}

uint64_t Bodies::lowest(const Body& body, uint64_t from) const {
  if (from > kMaxBytes || (body.fixed && *body.fixed < from)) return kNowhere;
  const uint64_t start = body.fixed.value_or(from), mask = body.alignment - 1;
  const auto aligned = [&](uint64_t value) { return value + ((body.residue - value) & mask); };
  uint64_t at = aligned(start);
  if (body.fixed && at != start) return kNowhere;
  if (!body.banked) return at;
  // Legal places repeat with the larger of alignment and bank.
  for (const uint64_t stop = at + std::max(body.alignment, bankBytes_); at <= stop;) {
    uint64_t push = 0; // until the first member that lies across begins in the next bank
    for (const Member& m : body.members) {
      const uint64_t size = buffers_[m.buffer].size, within = (at + m.delta) & (bankBytes_ - 1);
      if (size != 0 && within + size > bankBytes_) push = std::max(push, bankBytes_ - within);
    }
    if (push == 0) return at;
    if (body.fixed) return kNowhere;
    at = aligned(at + push);
  }
  return kNowhere;
}

MemoryPlan Bodies::planOf(const std::vector<uint64_t>& origins) const {
  MemoryPlan plan;
  plan.offsets.assign(buffers_.size(), 0);
  for (size_t i = 0; i < bodies_.size(); ++i) {
    for (const Member& m : bodies_[i].members) plan.offsets[m.buffer] = origins[i] + m.delta;
    if (!bodies_[i].parts.empty()) plan.size = std::max(plan.size, origins[i] + bodies_[i].height);
  }
  return plan;
}

} // namespace candela::solvers::memory
