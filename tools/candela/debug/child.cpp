#include "tools/candela/debug/child.h"

#include <poll.h>
#include <sys/mman.h>

#include "conformance/worker_process.h"
#include "tools/candela/support/console.h"

namespace candela::tool {
namespace {

using conformance::CaseResult;
using conformance::WorkerProcess;
using Clock = WorkerProcess::Clock;

constexpr double kForEver = 1e6; ///< for the process; the limit here is for each of its steps
constexpr std::string_view kDied = "the process died of ", kEnded = "the process ended with ";

/// In place of the text, the message of a Failure with its code.
constexpr char kFailureMark = '\1';

} // namespace

Pulse& pulse() {
  static Pulse* shared = [] {
    void* page =
        mmap(nullptr, sizeof(Pulse), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) fail(kWorkFailed, "no memory to share with other processes");
    return new (page) Pulse{};
  }();
  return *shared;
}

void enter(Pulse::Phase phase) {
  pulse().phase = phase;
  ++pulse().beat;
}

Answer inChild(const std::function<std::string()>& run, double limitSeconds) {
  pulse().phase = Pulse::opening;
  const std::vector<std::string> names{"step"};
  const auto worker = check(WorkerProcess::start(names,
                                                 [&](size_t) {
                                                   CaseResult result = CaseResult::passed();
                                                   try {
                                                     result.reason = run();
                                                   } catch (const Failure& failure) {
                                                     result.reason = fmt::format(
                                                         "{}{}{}", kFailureMark, failure.exitCode(),
                                                         failure.what());
                                                   }
                                                   return result;
                                                 }),
                            kWorkFailed);
  worker->send(0, kForEver);
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limitSeconds));
  uint64_t beat = pulse().beat;
  auto deadline = Clock::now() + limit;
  std::optional<CaseResult> result;
  while (!(result = worker->receive())) {
    if (const uint64_t now = pulse().beat; now != beat) {
      beat = now;
      deadline = Clock::now() + limit;
    } else if (pulse().phase == Pulse::judging) { // that is ours, which takes its time
      deadline = Clock::now() + limit;
    } else if (Clock::now() >= deadline) {
      return {false, true, fmt::format("no answer after {} s", limitSeconds),
              Pulse::Phase(pulse().phase.load())};
    }
    pollfd fds[] = {{worker->socket(), POLLIN, 0}, {worker->ended(), POLLIN, 0}};
    (void)poll(fds, 2, 50); // whatever woke us, the worker is asked
  }
  const auto phase = Pulse::Phase(pulse().phase.load());
  if (result->outcome == CaseResult::Outcome::passed) {
    if (!result->reason.empty() && result->reason[0] == kFailureMark)
      throw Failure(result->reason[1] - '0', result->reason.substr(2));
    return {true, false, std::move(result->reason), phase};
  }
  std::string how = std::move(result->reason);
  if (how.starts_with(kDied)) how.erase(0, kDied.size());
  if (how.starts_with(kEnded)) how.replace(0, kEnded.size(), "exit with ");
  return {false, false, std::move(how), phase};
}

} // namespace candela::tool
