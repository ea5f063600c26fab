#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>

#include "core/runtime/requests/timeline.h"
#include "core/runtime/session/session.h"

namespace candela::runtime::requests {

/// What is asked for. Inputs and outputs are as Session::begin wants them; the memory stays until
/// the request is done.
struct Submission {
  std::vector<session::BufferRef> inputs, outputs;
  /// In the place of a session's stages, where a run cannot be taken apart: on the replica of this
  /// number, which alone can do it.
  std::function<Status(size_t replica, session::RunControl&, session::RunStats&)> whole;
  std::vector<Moment> waits;   ///< it begins when all are reached
  std::vector<Moment> signals; ///< moved when it is done, or failed as it failed
  Clock::time_point deadline = Clock::time_point::max();
  /// Called once when it is done, on a thread of the dispatcher or of who ended it. It may submit,
  /// and does not wait.
  std::function<void(const Status&)> done;
};

/// When what happened to a request, by session::nowNs(); 0: it has not.
struct RequestTimes {
  uint64_t submittedNs = 0, startedNs = 0, endedNs = 0;
};

class Dispatcher;
class Request;

/// Requests by when they are too late.
using Deadlines = std::multimap<Clock::time_point, std::weak_ptr<Request>>;

/// One run that was asked for. It is answered once.
class Request {
public:
  Request(uint64_t id, Submission submission);
  uint64_t id() const { return id_; }

  bool isDone() const { return done_.load(std::memory_order_acquire); }
  // ---- Of one that is done
  const Status& status() const { return status_; }
  const session::RunStats& stats() const { return stats_; }
  const RequestTimes& times() const { return times_; }
  size_t replica() const { return replica_; }

private:
  friend class Dispatcher;
  enum class Phase {
    waiting, ///< for other requests or the program
    queued,  ///< for a replica with room
    running, ///< on a replica
    done
  };

  const uint64_t id_;
  Submission submission_;
  // ---- Under the dispatcher's mutex
  Phase phase_ = Phase::waiting;
  size_t openWaits_ = 0;
  Status failure_;                ///< why it ends; the first reason counts
  std::optional<Status> endedBy_; ///< by cancel(): what it is answered with, if it fails
  size_t replica_ = 0;
  std::vector<uint32_t> openStages_; ///< per stage: those that it comes after and that are not done
  size_t stagesLeft_ = 0;
  size_t jobs_ = 0; ///< that threads are at
  std::optional<Deadlines::iterator> deadline_;
  std::condition_variable answered_;
  // ---- Of the thread that is at it
  std::unique_ptr<session::Session::Run> run_;
  session::RunControl control_;
  session::RunStats stats_;
  RequestTimes times_;
  Status status_;
  std::atomic<bool> done_ = false;
};

using RequestPtr = std::shared_ptr<Request>;

} // namespace candela::runtime::requests
