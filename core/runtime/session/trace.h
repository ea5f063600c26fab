#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/compiler/capabilities/target.h"
#include "core/support/tensor.h"

/// When what happened. Who wants to know puts a Trace on his thread; without one nothing is kept.
namespace candela::runtime::session {

/// Nanoseconds of the steady clock.
inline uint64_t nowNs() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

/// A step of the host, or one execution of an instruction.
struct TraceEvent {
  std::string name = {}, of = {};    ///< of a step: "upload", "images"
  uint64_t startNs = 0, endNs = 0;   ///< by nowNs()
  uint64_t bytes = 0;                ///< that a step moved
  uint32_t partition = 0, instr = 0; ///< instr 0: a step
  uint32_t engine = 0;
  /// of an instruction: native ran on the backend, the rest here
  capabilities::Support support = capabilities::Support::none;
  /// the backend told the times by a clock of its own; they were moved to the host's
  bool deviceClock = false;
  std::string backend = {}; ///< of an instruction; "soft" where there is none
  Bytes image = {};         ///< what the instruction stands in
  // ---- Of requests that run beside each other
  std::string process = {}, thread = {}; ///< where it is drawn; empty: the run's own
  uint64_t request = 0;
};

/// What one thread does while it lives.
class Trace {
public:
  /// With `instrs`, every instruction too, not only steps. `room`: of events that nobody wants any
  /// more.
  explicit Trace(bool instrs, std::vector<TraceEvent> room = {});
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  /// The one of this thread, the newest first; null when there is none.
  static Trace* current();

  bool wantsInstrs() const { return instrs_; }
  /// The instructions to come stand in this image.
  void enter(const Bytes& image, const std::string& backend);
  void add(TraceEvent event);
  const std::vector<TraceEvent>& events() const { return events_; }
  std::vector<TraceEvent> take() { return std::move(events_); }

private:
  bool instrs_;
  Trace* outer_;
  std::vector<Bytes> images_; ///< by partition
  TraceEvent place_;          ///< partition, backend and image of the instructions to come
  std::vector<TraceEvent> events_;
};

/// A step of the host from here to the end of the block, in the trace of this thread; without
/// instructions, of the two outermost levels.
class Span {
public:
  explicit Span(const char* what, std::string_view of = {}, uint64_t bytes = 0);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

private:
  Trace* trace_;
  TraceEvent event_;
};

} // namespace candela::runtime::session
