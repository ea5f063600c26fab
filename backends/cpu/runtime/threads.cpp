#include "threads.hpp"

#include <algorithm>
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
  } catch (const std::exception&) {
  } // no room for another one: those that run can be stopped and joined
}

Threads::~Threads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    call(count());
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::runErased(int most, Body body) {
  const int total = std::min(most, count());
  std::unique_lock<std::mutex> busy(busy_, std::defer_lock);
  if (total < 2 || !busy.try_lock()) return body(0, 1);
  body_ = body;
  pending_.store(total - 1, std::memory_order_relaxed);
  {
    // a worker that is about to sleep sees the round or is woken
    std::lock_guard<std::mutex> lock(mutex_);
    call(total);
  }
  if (asleep_.load() > 0) wake_.notify_all();
  body(0, total);
  if (spinFor([&] { return pending_.load(std::memory_order_acquire) == 0; })) return;
  for (int left = 0; (left = pending_.load(std::memory_order_acquire)) > 0;) pending_.wait(left);
}

void Threads::call(int total) {
  const uint64_t last = round_.load(std::memory_order_relaxed) / kRound;
  round_.store((last + 1) * kRound + static_cast<uint64_t>(total), std::memory_order_release);
}

void Threads::work(int index) {
  uint64_t seen = 0;
  const auto called = [&] {
    const uint64_t round = round_.load(std::memory_order_acquire);
    if (round == seen || static_cast<int>(round % kRound) <= index) return false;
    seen = round; // stays the last one until this worker is done with it
    return true;
  };
  for (;;) {
    if (!spinFor(called)) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++asleep_;
      wake_.wait(lock, called);
      --asleep_;
    }
    if (stop_) return;
    body_(index, static_cast<int>(seen % kRound));
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }
}

void Barrier::arrive() {
  const uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1); // not later than the look for sleepers that follows
    round_.notify_all();
    return;
  }
  if (!spinFor([&] { return round_.load(std::memory_order_acquire) != round; }))
    round_.wait(round, std::memory_order_acquire);
}

} // namespace cpu
