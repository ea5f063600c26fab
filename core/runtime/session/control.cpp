#include "core/runtime/session/control.h"

#include <algorithm>

namespace candela::runtime::session {

void RunControl::cancel(Status why) {
  const std::lock_guard lock(mutex_);
  if (why_) why_ = std::move(why);
  // A queue that cannot give up its work does it to the end; the run ends behind it.
  for (plugin::Queue* queue : queues_) (void)queue->cancel();
}

Status RunControl::status() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void RunControl::reset() {
  const std::lock_guard lock(mutex_);
  why_ = Status::ok();
}

Status RunControl::enter(plugin::Queue& queue) {
  const std::lock_guard lock(mutex_);
  if (!why_) return why_;
  queues_.push_back(&queue);
  return Status::ok();
}

bool RunControl::leave(plugin::Queue& queue) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_, &queue);
  return !why_.isOk();
}

} // namespace candela::runtime::session
