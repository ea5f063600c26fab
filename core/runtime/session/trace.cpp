#include "core/runtime/session/trace.h"

#include <algorithm>
#include <new>

namespace candela::runtime::session {
namespace {

thread_local Trace* newest = nullptr;
thread_local int openSpans = 0; ///< that will be kept

// Of a long loop the first million is kept; without instructions, what a run consists of, so that
// it costs nothing.
constexpr size_t kMostEvents = 1 << 20;
constexpr int kMostLevels = 2;

} // namespace

Trace::Trace(bool instrs, std::vector<TraceEvent> room)
    : instrs_(instrs), outer_(newest), events_(std::move(room)) {
  events_.clear();
  newest = this;
}
Trace::~Trace() { newest = outer_; }
Trace* Trace::current() { return newest; }

void Trace::enter(const Bytes& image, const std::string& backend) {
  if (!instrs_) return;
  auto at = std::ranges::find(images_, image.data(), &Bytes::data);
  // kept, so that no other one takes its place
  if (at == images_.end()) at = images_.insert(at, image);
  place_.partition = static_cast<uint32_t>(at - images_.begin());
  place_.backend = backend;
  place_.image = image;
}

void Trace::add(TraceEvent event) {
  if (events_.size() >= kMostEvents) return;
  if (event.instr) {
    event.partition = place_.partition;
    event.backend = place_.backend;
    event.image = place_.image;
  }
  events_.push_back(std::move(event));
}

Span::Span(const char* what, std::string_view of, uint64_t bytes) : trace_(newest) {
  if (trace_ && !trace_->wantsInstrs() && openSpans >= kMostLevels) trace_ = nullptr;
  if (!trace_) return;
  ++openSpans;
  event_.name = what;
  event_.of = of;
  event_.bytes = bytes;
  event_.startNs = nowNs();
}

Span::~Span() {
  if (!trace_) return;
  --openSpans;
  event_.endNs = nowNs();
  try {
    trace_->add(std::move(event_));
  } catch (const std::bad_alloc&) {
  } // a trace has gaps rather than that it ends a run, be it one that fails
}

} // namespace candela::runtime::session
