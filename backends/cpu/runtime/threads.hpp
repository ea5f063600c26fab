// Threads that share the units of one kernel after the other by a fixed partition, so that results
// do not depend on how many there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace cpu {

class Threads {
public:
  /// `count` threads work, the caller of run among them; at least 1 and below kRound. Where the
  /// system does not give so many, count() is what it gave.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }
  /// Calls body(t, total) for t = 0 .. total - 1 at the same time, 0 on this thread, and returns
  /// when all are done. One caller at a time has the workers (total = count(), or `most` if that is
  /// less); one that comes meanwhile works alone (total = 1).
  template <class F> void run(int most, const F& body) {
    runErased(most, {&body, [](const void* f, int t, int total) {
                       (*static_cast<const F*>(f))(t, total);
                     }});
  }

private:
  static constexpr uint64_t kRound = 1 << 16;

  /// A function of the caller's, which std::function would allocate for.
  struct Body {
    const void* function = nullptr;
    void (*call)(const void* function, int t, int total) = nullptr;
    void operator()(int t, int total) const { call(function, t, total); }
  };
  void runErased(int most, Body body);
  void call(int total);
  void work(int index);

  std::vector<std::thread> workers_;
  std::mutex busy_; // held by the caller that has the workers
  Body body_;
  std::atomic<uint64_t> round_{0}; // number of the run * kRound + how many threads work on it
  std::atomic<int> pending_{0};    // workers that have not finished this run
  std::atomic<bool> stop_{false};
  std::mutex mutex_; // for those that sleep
  std::condition_variable wake_;
  std::atomic<int> asleep_{0};
};

/// Where all threads of one run meet between two kernels. Spins, since the others are mostly a few
/// microseconds away, and sleeps when they are not, as with fewer processors than threads.
class Barrier {
public:
  explicit Barrier(int count) : count_(count) {}
  void arrive();

private:
  const int count_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> round_{0};
};

} // namespace cpu
