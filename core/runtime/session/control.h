#pragma once

#include <mutex>

#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::session {

/// By which another thread ends a run that is in progress. The run looks between its steps; what a
/// device is doing is given up where its plugin can.
class RunControl {
public:
  /// Why the run ends; the first reason counts. Any thread. A queue to which its work comes only
  /// afterwards gives up nothing: who must not wait for that work says it again.
  void cancel(Status why);
  /// Ok while nobody cancelled.
  Status status() const;
  /// Before the next run.
  void reset();

  // ---- For runners

  /// From here on a cancellation reaches this queue. Failure: the reason, if it came before.
  Status enter(plugin::Queue& queue);
  /// Whether the queue was given up in the meantime: then it is only destroyed.
  bool leave(plugin::Queue& queue);

private:
  mutable std::mutex mutex_;
  Status why_;
  std::vector<plugin::Queue*> queues_; ///< with work of the run on them
};

} // namespace candela::runtime::session
