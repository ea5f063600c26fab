#include "core/runtime/requests/timeline.h"

#include <algorithm>

namespace candela::runtime::requests {

uint64_t Timeline::value() const {
  const std::lock_guard lock(mutex_);
  return value_;
}

std::vector<Timeline::Waiter> Timeline::takeEnded() {
  const auto isOpen = [&](const Waiter& waiter) {
    return failure_.isOk() && waiter.value > value_;
  };
  const auto ended = std::stable_partition(waiters_.begin(), waiters_.end(), isOpen);
  std::vector<Waiter> taken(std::make_move_iterator(ended),
                            std::make_move_iterator(waiters_.end()));
  waiters_.erase(ended, waiters_.end());
  return taken;
}

Status Timeline::signal(uint64_t value) {
  std::vector<Waiter> ended;
  {
    const std::lock_guard lock(mutex_);
    if (value <= value_) return badArgument("a timeline at {} cannot move to {}", value_, value);
    value_ = value;
    ended = takeEnded();
  }
  changed_.notify_all();
  for (const Waiter& waiter : ended) waiter.reached(Status::ok());
  return Status::ok();
}

void Timeline::fail(const Status& why) {
  std::vector<Waiter> ended;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) return;
    failure_ = why;
    ended = takeEnded();
  }
  changed_.notify_all();
  for (const Waiter& waiter : ended) waiter.reached(why);
}

Status Timeline::wait(uint64_t value, Clock::time_point until) const {
  std::unique_lock lock(mutex_);
  const auto isOver = [&] { return value_ >= value || !failure_; };
  if (until == Clock::time_point::max())
    changed_.wait(lock, isOver);
  else
    changed_.wait_until(lock, until, isOver);
  if (value_ >= value) return Status::ok();
  if (!failure_) return failure_;
  return failure(Code::timeout, "the timeline stands at {}, not yet at {}", value_, value);
}

void Timeline::whenReached(uint64_t value, Reached reached) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.isOk() && value_ < value) {
      waiters_.push_back({value, std::move(reached)});
      return;
    }
    if (value_ < value) status = failure_;
  }
  reached(status);
}

} // namespace candela::runtime::requests
