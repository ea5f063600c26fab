// The threads of the process that share work: the portable executor's, and those that plugins are
// lent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/support/status.h"

namespace candela {

/// Threads that take parts of what others compute. A call is never left waiting for a thread that
/// the system did not give or that is busy: whoever calls works too, and alone if need be.
class WorkerPool {
public:
  /// The one of this process, or after fork of the child, which has no thread of its parent's. Its
  /// threads start when they are first needed.
  static WorkerPool& ofProcess();

  static constexpr unsigned kMostThreads = 4096;

  /// Threads of one call, its own among them: what setThreads said, else CANDELA_THREADS, else as
  /// many as the process may run on.
  unsigned threads() const { return threads_.load(std::memory_order_relaxed); }
  /// 1 to kMostThreads, for the calls to come; 0: what it would be without this. Any thread.
  void setThreads(unsigned count);

  /// Calls body(arg, 0) .. body(arg, count - 1) once each, some at the same time, and returns when
  /// all are done. `body` does not throw. It sees the caller's floating-point environment. Any
  /// thread, a body too: calls at the same time share the threads, and one waits for its own bodies
  /// alone. A body does not fork: what other threads have of the call stays behind.
  void run(uint32_t count, void (*body)(void* arg, uint32_t index), void* arg);

private:
  struct Call;

  explicit WorkerPool(unsigned threads) : threads_(threads) {}
  void startWorkers(unsigned count);
  void work();
  Call* findCall() const;
  void waitForCall(std::unique_lock<std::mutex>& lock);

  std::atomic<unsigned> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Call* calls_ = nullptr; ///< those that have bodies left, the newest first
  unsigned workers_ = 0, asleep_ = 0;
  bool denied_ = false;                ///< the system gave fewer than were asked for
  std::atomic<uint64_t> submitted_{0}; ///< calls so far: what a worker that spins looks at
};

/// How many threads CANDELA_THREADS asks for, or 0 where it is not set. Failure: it is no number of
/// 1 to WorkerPool::kMostThreads.
Result<unsigned> threadsOfEnvironment();

} // namespace candela
