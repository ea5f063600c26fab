#include "threads.hpp"

#include <chrono>
#include <exception>

namespace cpu {

namespace {

constexpr auto kSpin = std::chrono::microseconds(100);

/// Waits for `done` by spinning, at most kSpin.
template <class F> bool spinFor(F&& done) {
  const auto limit = std::chrono::steady_clock::now() + kSpin;
  for (int i = 0; !done(); ++i) {
    __builtin_ia32_pause();
    if (i % 64 == 63 && std::chrono::steady_clock::now() > limit) return done();
  }
  return true;
}

} // namespace

Threads::Threads(int count) {
  workers_.reserve(static_cast<size_t>(count) - 1);
  try {
    for (int t = 1; t < count; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::exception&) {} // no room for another one: those that run can be stopped and joined
}

Threads::~Threads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    ++round_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::run(const std::function<void(int, int)>& body) {
  std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
  if (!busy.owns_lock() || workers_.empty()) return body(0, 1);
  body_ = &body;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(mutex_); // a worker that is about to sleep sees the round or is woken
    round_.fetch_add(1, std::memory_order_release);
  }
  if (asleep_.load() > 0) wake_.notify_all();
  body(0, count());
  for (int spins = 0; pending_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < 4096)
      __builtin_ia32_pause();
    else
      std::this_thread::yield();
  }
}

void Threads::work(int index) {
  for (uint64_t seen = 0;;) {
    if (!spinFor([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++asleep_;
      wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
      --asleep_;
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_) return;
    (*body_)(index, count());
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

} // namespace cpu
