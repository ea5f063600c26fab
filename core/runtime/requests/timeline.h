#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/support/status.h"

namespace candela::runtime::requests {

using Clock = std::chrono::steady_clock;

/// A number that only rises: requests wait for its values and move it, and so does the program that
/// made it. Once it failed, whoever waits for a value that it has not reached gets that failure,
/// now and later. Any thread.
class Timeline {
public:
  using Reached = std::function<void(const Status&)>;

  uint64_t value() const;
  /// Failure: invalid_argument for a value that is not above the one that it has.
  Status signal(uint64_t value);
  /// The first failure counts.
  void fail(const Status& why);
  /// Blocks until the value is reached. Failure: the timeline's, or timeout.
  Status wait(uint64_t value, Clock::time_point until) const;
  /// Calls `reached` once, here or on the thread that moves the timeline there or fails it.
  void whenReached(uint64_t value, Reached reached);

private:
  struct Waiter {
    uint64_t value;
    Reached reached;
  };
  /// Takes out the waiters whose wait is over.
  std::vector<Waiter> takeEnded();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t value_ = 0;
  Status failure_;
  std::vector<Waiter> waiters_;
};

/// A value of a timeline.
struct Moment {
  std::shared_ptr<Timeline> timeline;
  uint64_t value = 0;
};

} // namespace candela::runtime::requests
