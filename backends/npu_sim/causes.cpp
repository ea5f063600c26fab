#include "causes.hpp"

#include <algorithm>

namespace npu_sim {

namespace {

Cause causeOf(uint8_t engine) {
  if (npu::isLoad(engine)) return Cause::kLoad;
  if (npu::isStore(engine)) return Cause::kStore;
  switch (static_cast<npu::Engine>(engine)) {
  case npu::Engine::kMatrix: return Cause::kFill; // partArray() takes products out of it
  case npu::Engine::kRequant: return Cause::kRequant;
  case npu::Engine::kVector: return Cause::kVector;
  default: return Cause::kControl;
  }
}

/// Small ones take as long for their setup and the memory's latency.
constexpr int64_t kLeastScattered = 1024;

/// A transfer by whole words of the scratchpad moves several bytes in a cycle, one of single bytes
/// takes a cycle for each.
bool isScattered(const npu::InstructionTime& time) {
  const int64_t memory = time.stalls[static_cast<size_t>(npu::Stall::kDram)] +
                         time.stalls[static_cast<size_t>(npu::Stall::kBank)];
  return time.bytes >= kLeastScattered && time.done - time.start - memory >= time.bytes;
}

} // namespace

const char* causeName(Cause cause) {
  constexpr const char* kNames[] = {"products", "unused", "fill", "requant", "vector", "scatter",
                                    "load",     "store",  "dram", "bank",    "control"};
  return kNames[static_cast<size_t>(cause)];
}

void partArray(const ArrayWork& work, CauseCycles& causes) {
  int64_t& fill = causes[static_cast<size_t>(Cause::kFill)];
  const int64_t all = fill, busy = std::max<int64_t>(work.busy, 1);
  const auto shareOf = [&](int64_t part) {
    const double share = static_cast<double>(part) / static_cast<double>(busy);
    return std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(all) * share), 0, fill);
  };
  const int64_t products = shareOf(work.products);
  fill -= products;
  const int64_t unused = shareOf(work.passes - work.products);
  fill -= unused;
  causes[static_cast<size_t>(Cause::kProducts)] += products;
  causes[static_cast<size_t>(Cause::kUnused)] += unused;
}

void CycleCauses::add(const npu::InstructionTime& time) {
  const auto within = [&](npu::Stall stall) { return time.stalls[static_cast<size_t>(stall)]; };
  Step step;
  step.sequence = time.sequence;
  step.start = time.start;
  step.done = time.done;
  step.bank = within(npu::Stall::kBank);
  step.dram = within(npu::Stall::kDram);
  step.isScattered = isScattered(time);
  step.engine = time.engine;
  step.afterCount = time.waitCount;
  step.after = time.after;
  step.awaited = time.awaited;
  const auto last = lastOf_.try_emplace({time.core, time.engine}, -1).first;
  step.before = last->second;
  last->second = static_cast<int32_t>(steps_.size());
  steps_.push_back(step);
}

void CycleCauses::pushOwned(const Span& span) {
  if (span.from >= span.to) return;
  if (owned_.size() > sinceTaken_ && owned_.back().what == span.what)
    owned_.back().to = span.to;
  else
    owned_.push_back(span);
}

void CycleCauses::own(uint32_t layer, int64_t to) {
  pushOwned({owned_.empty() ? 0 : owned_.back().to, to, layer});
}

void CycleCauses::takeOver(uint32_t layer, int64_t from) {
  const std::vector<Span> changed(owned_.begin() + static_cast<std::ptrdiff_t>(sinceTaken_),
                                  owned_.end());
  owned_.resize(sinceTaken_);
  for (const Span& span : changed) {
    pushOwned({span.from, std::min(span.to, from), span.what});
    pushOwned({std::max(span.from, from), span.to, layer});
  }
  sinceTaken_ = owned_.size();
}

/// The step of that sequence; -1: none, of control.
int32_t CycleCauses::placeOf(uint32_t sequence) const {
  const auto found = std::ranges::lower_bound(steps_, sequence, {}, &Step::sequence);
  if (found == steps_.end() || found->sequence != sequence) return -1;
  return static_cast<int32_t>(found - steps_.begin());
}

/// The step that this one began behind: of its engine, one whose token it took, or one
/// of another core that it awaited, whichever ended last. -1: none.
int32_t CycleCauses::latestBefore(const Step& step) const {
  int32_t latest = step.before;
  const auto take = [&](int32_t found) {
    const auto doneOf = [&](int32_t at) { return steps_[static_cast<size_t>(at)].done; };
    if (found >= 0 && (latest < 0 || doneOf(found) > doneOf(latest))) latest = found;
  };
  for (size_t i = 0; i < step.afterCount; ++i) take(placeOf(step.after[i]));
  if (step.awaited >= 0) take(placeOf(static_cast<uint32_t>(step.awaited)));
  return latest;
}

/// From the end to the beginning: what the path was at, each cycle once.
std::vector<CycleCauses::Span> CycleCauses::path(int64_t end) const {
  std::vector<Span> spans;
  int64_t at = end; // what is behind it is told
  const auto tell = [&](Cause cause, int64_t from) {
    if (from >= at) return;
    spans.push_back({from, at, static_cast<uint32_t>(cause)});
    at = from;
  };
  int32_t current = -1;
  for (size_t i = 0; i < steps_.size(); ++i)
    if (current < 0 || steps_[i].done >= steps_[static_cast<size_t>(current)].done)
      current = static_cast<int32_t>(i);
  while (current >= 0) {
    const Step& step = steps_[static_cast<size_t>(current)];
    const int32_t before = latestBefore(step);
    const int64_t behind = before < 0 ? 0 : steps_[static_cast<size_t>(before)].done;
    const int64_t from = std::max(step.start, behind);
    tell(Cause::kControl, step.done);
    tell(Cause::kBank, std::max(from, step.done - step.bank));
    tell(Cause::kDram, std::max(from, step.done - step.bank - step.dram));
    tell(step.isScattered ? Cause::kScatter : causeOf(step.engine), from);
    current = before < current ? before : -1;
  }
  tell(Cause::kControl, 0);
  std::ranges::reverse(spans);
  return spans;
}

std::vector<CauseCycles> CycleCauses::byLayer(size_t layers, int64_t end) const {
  std::vector<CauseCycles> cycles(layers, CauseCycles{});
  const std::vector<Span> causes = path(end);
  size_t c = 0;
  for (const Span& owned : owned_) {
    for (; c < causes.size() && causes[c].from < owned.to; ++c) {
      const int64_t shared =
          std::min(owned.to, causes[c].to) - std::max(owned.from, causes[c].from);
      if (shared > 0) cycles[owned.what][causes[c].what] += shared;
      if (causes[c].to > owned.to) break;
    }
  }
  return cycles;
}

} // namespace npu_sim
