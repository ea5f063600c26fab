#pragma once

#include <atomic>
#include <functional>
#include <string>

/// What a backend does, it does in processes of its own: it may crash, hang or exit there.
namespace candela::tool {

/// Where a process is, in memory that it shares with the one that waits for it.
struct Pulse {
  enum Phase : uint32_t { opening = 0, compiling = 1, running = 2, judging = 3 };
  std::atomic<uint32_t> phase;
  std::atomic<uint64_t> beat; ///< changes with every step
};
/// The one of this process and all that it starts.
Pulse& pulse();
void enter(Pulse::Phase phase);

struct Answer {
  bool arrived = false; ///< else the process ended, or was late
  bool late = false;
  /// what the function returned, or how the process ended: "SIGSEGV"
  std::string text;
  Pulse::Phase phase = Pulse::judging; ///< where it was
};

/// What `run` returns in a process that is forked here, and is ended when nothing happens in it for
/// `limitSeconds`. A Failure that it throws is thrown here. The calling process must have one
/// thread.
Answer inChild(const std::function<std::string()>& run, double limitSeconds);

} // namespace candela::tool
