// Threads that share the units of one kernel after the other by a fixed partition, so that results do not depend on how
// many there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cpu {

class Threads {
public:
  /// `count` threads work, the caller of run among them; at least 1. Where the system does not give so many, count() is
  /// what it gave.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }
  /// Calls body(t, total) for t = 0 .. total - 1 at the same time, 0 on this thread, and returns when all are done. One
  /// caller at a time has the workers (total = count()); one that comes meanwhile works alone (total = 1).
  void run(const std::function<void(int, int)>& body);

private:
  void work(int index);

  std::vector<std::thread> workers_;
  std::mutex busy_; // held by the caller that has the workers
  const std::function<void(int, int)>* body_ = nullptr;
  std::atomic<uint64_t> round_{0};  // rises with each run
  std::atomic<int> pending_{0};     // workers that have not finished this round
  std::atomic<bool> stop_{false};
  std::mutex mutex_;                // for those that sleep
  std::condition_variable wake_;
  std::atomic<int> asleep_{0};
};

/// Where all threads of one run meet between two kernels. Spins, since the others are a few microseconds away.
class Barrier {
public:
  explicit Barrier(int count) : count_(count) {}
  void arrive() {
    const uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < 4096)
        __builtin_ia32_pause();
      else
        std::this_thread::yield(); // fewer cores than threads
    }
  }

private:
  const int count_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> round_{0};
};

} // namespace cpu
