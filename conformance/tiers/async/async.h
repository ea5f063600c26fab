#pragma once

#include <functional>
#include <thread>

#include "conformance/tiers/bench.h"

/// The tier `async`: work of several queues at once, what it waits for, and what becomes of it
/// where nobody wants it any more. Nothing here depends on how long work takes: executions are held
/// by a timeline that the host moves.
namespace candela::conformance::tiers::async {

/// For how long a case looks for what must not come. Who is slow passes.
inline constexpr uint64_t kGlimpseNs = 20'000'000;

/// Bytes of what a task copies, where a case does not say.
inline constexpr uint64_t kTaskBytes = 20'000;

/// Executions that wait for a timeline of the host's, submitted by threads of their own, since a
/// call that submits one may block. Whatever becomes of a case, they are let go and joined with it.
class Held {
public:
  /// Skips the case without the program API: nothing else waits for a timeline.
  static Result<std::unique_ptr<Held>> on(Bench& bench);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  /// What an execution waits for to be held.
  cdl_timeline_t gate() const { return {lane_.handle(), kOpen}; }
  /// Calls what submits, on a thread. It uses no queue that another thread submits to.
  void start(std::function<Status()> submit);
  /// Whether all threads have come back, looking for so long.
  bool haveReturned(uint64_t patienceNs) const;
  /// Moves the timeline. The threads come back by themselves then.
  Status open();
  /// Opens, and waits for the threads; the first failure counts.
  Status join();

private:
  static constexpr uint64_t kOpen = 1;
  struct Submission {
    std::atomic<bool> hasReturned = false;
    Status end = Status::ok();
    std::jthread thread; ///< last: it uses the others
  };
  explicit Held(const Lane& lane) : lane_(lane) {}
  Lane lane_;
  bool isOpen_ = false;
  std::vector<std::unique_ptr<Submission>> submissions_;
};

/// Skips the case where the device compiles no programs: `execute` is not there.
Status needsPrograms(Bench& bench);

/// Ok when the timeline has not reached the value after kGlimpseNs.
Status notReached(Bench& bench, const Lane& lane, uint64_t value, std::string_view who);

/// An execution of an echo on a queue of its own, with memory of its own.
struct Task {
  Lane lane;
  cdl_memory_t *x, *y;
  uint64_t done = 1; ///< what the timeline of the queue shows then
};
/// x holds pattern(bytes, seed); y something else.
Result<Task> makeTask(Bench& bench, uint64_t bytes, uint64_t seed);

ProbeFamilies waitFamilies();
ProbeFamilies timelineFamilies();
ProbeFamilies cancelFamilies();
ProbeFamilies profileFamilies();

} // namespace candela::conformance::tiers::async
