// What the threads of a dispatcher do with requests: their stages, and what follows from those.
#include <algorithm>

#include "core/runtime/requests/dispatcher.h"

namespace candela::runtime::requests {

using session::nowNs;

namespace {

/// Of a trace that nobody takes, the newest events are left out.
constexpr size_t kMostEvents = 1 << 20;

/// Runs `body`, which may find no memory.
template <class Body> Status caught(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "no memory is left");
  } catch (const std::exception& error) {
    return Status(Code::internal, error.what());
  }
}

} // namespace

// ---- Work

void Dispatcher::perform(Lane& lane, const Job& job, std::unique_lock<std::mutex>& lock) {
  Request& request = *job.request;
  const auto free = std::ranges::find(lane.slots, false);
  const auto slot = static_cast<size_t>(free - lane.slots.begin());
  lane.slots[slot] = true;
  ++lane.running;
  ++request.jobs_;
  const uint64_t start = nowNs();
  if (!request.times_.startedNs) request.times_.startedNs = start;
  lock.unlock();
  std::vector<session::TraceEvent> events;
  Status status;
  if (options_.traces) {
    session::Trace trace(false);
    status = caught([&] { return run(job); });
    events = trace.take();
  } else {
    status = caught([&] { return run(job); });
  }
  const uint64_t end = nowNs();
  if (options_.traces)
    events.push_back(
        {.name = "request", .of = std::to_string(request.id_), .startNs = start, .endNs = end});
  lock.lock();
  if (options_.traces) keepTrace(lane, request, slot, std::move(events));
  replicas_[request.replica_].health.busyNs += end - start;
  lane.slots[slot] = false;
  --lane.running;
  --request.jobs_;
  if (!lane.jobs.empty() && lane.idle > 0) lane.ready.notify_one();
  follow(job, status, lock);
  tell(lock);
}

/// Begins the run of a request where nobody did, then takes it through one stage.
Status Dispatcher::run(const Job& job) {
  Request& request = *job.request;
  Submission& submission = request.submission_;
  CDL_TRY(request.control_.status());
  if (submission.whole) return submission.whole(request.replica_, request.control_, request.stats_);
  session::Session& session = *replicas_[request.replica_].replica.session;
  if (!request.run_) {
    CDL_ASSIGN(request.run_,
               session.begin(submission.inputs, submission.outputs, &request.control_));
    const std::lock_guard lock(mutex_);
    for (uint32_t other = 1; other < request.openStages_.size(); ++other)
      if (request.openStages_[other] == 0) post({job.request, other});
  }
  return job.stage == kNoStage ? Status::ok() : session.runStage(*request.run_, job.stage);
}

/// What a job that is done leads to: the stages behind it, the end of the request, or its failure.
void Dispatcher::follow(const Job& job, const Status& status, std::unique_lock<std::mutex>& lock) {
  Request& request = *job.request;
  if (!status && request.failure_.isOk()) request.failure_ = status;
  if (!request.failure_) {
    fail(job.request, lock);
    return;
  }
  if (job.stage != kNoStage) {
    const auto& stages = replicas_[request.replica_].replica.session->stages();
    for (uint32_t next = job.stage + 1; next < stages.size(); ++next)
      if (std::ranges::count(stages[next].after, job.stage) && --request.openStages_[next] == 0)
        post({job.request, next});
  }
  if (--request.stagesLeft_ > 0) return;
  Status ended;
  if (request.run_) {
    session::Session& session = *replicas_[request.replica_].replica.session;
    ++request.jobs_;
    lock.unlock();
    ended = session.end(std::move(request.run_), &request.stats_);
    lock.lock();
    --request.jobs_;
  }
  if (!request.failure_) ended = request.failure_;
  request.failure_ = ended;
  if (ended) {
    release(request);
    answer(job.request, ended);
    assign();
  } else {
    fail(job.request, lock);
  }
}

/// A request that cannot go on. The last thread that is at it answers, or lets it begin anew.
void Dispatcher::fail(const RequestPtr& request, std::unique_lock<std::mutex>& lock) {
  removeJobs(*request);
  ++request->jobs_;
  if (request->jobs_ > 1) {
    const Status why = request->failure_;
    lock.unlock();
    request->control_.cancel(why);
    lock.lock();
  }
  if (--request->jobs_ > 0) {
    // A cancellation may have come before the work was on its queue. Without a watcher the run ends
    // when its work does.
    if (!std::ranges::count(ending_, request)) ending_.push_back(request);
    (void)startWatcher();
    late_.notify_all();
    return;
  }
  std::erase(ending_, request);
  ++request->jobs_; // so that nobody else ends it meanwhile
  const bool mayBeLost = request->failure_.code() == Code::device_lost;
  Served& served = replicas_[request->replica_];
  lock.unlock();
  request->run_ = nullptr;
  const bool isLost = mayBeLost && isGone(served);
  lock.lock();
  --request->jobs_;
  release(*request);
  if (isLost && !served.health.isLost) {
    served.health.isLost = true;
    served.health.why = request->failure_.message();
  }
  if (isLost && mayRepeat(*request)) {
    ++counters_.repeated;
    request->failure_ = Status::ok();
    request->control_.reset();
    request->phase_ = Request::Phase::queued;
    queue_.push_front(request);
  } else {
    answer(request, request->endedBy_ ? *request->endedBy_ : request->failure_);
  }
  assign();
}

/// A device that is lost says so at every call. A run may fail so by what it was given of another.
bool Dispatcher::isGone(const Served& served) {
  return std::ranges::any_of(served.devices, [](const std::shared_ptr<plugin::Device>& device) {
    return device && device->createQueue().status().code() == Code::device_lost;
  });
}

/// On another replica. What a lost device held of it was made by the run itself, unless the model
/// has states.
bool Dispatcher::mayRepeat(const Request& request) const {
  const bool isStaged = replicas_[request.replica_].replica.isStaged();
  return isStaged && !request.endedBy_ && !isClosing_ && hasReplica();
}

void Dispatcher::release(Request& request) { --replicas_[request.replica_].health.active; }

// ---- Answers

void Dispatcher::answer(const RequestPtr& request, const Status& status) {
  request->phase_ = Request::Phase::done;
  request->status_ = status;
  request->times_.endedNs = nowNs();
  if (request->deadline_) deadlines_.erase(*request->deadline_);
  request->deadline_.reset();
  count(*request);
  open_.erase(request->id_);
  untold_.push_back(request);
  room_.notify_one();
  if (isClosing_ && open_.empty())
    for (Served& served : replicas_)
      for (const std::unique_ptr<Lane>& lane : served.lanes) lane->ready.notify_all();
}

void Dispatcher::count(const Request& request) {
  counters_.stats.add(request.stats_);
  const Code code = request.status_.code();
  if (code == Code::ok)
    ++counters_.succeeded;
  else if (code == Code::cancelled)
    ++counters_.cancelled;
  else if (code == Code::timeout)
    ++counters_.timedOut;
  else
    ++counters_.failed;
}

void Dispatcher::tell(std::unique_lock<std::mutex>& lock) {
  while (!untold_.empty()) {
    const RequestPtr request = std::move(untold_.front());
    untold_.pop_front();
    ++telling_;
    lock.unlock();
    Submission submission = std::move(request->submission_);
    // What it was given belongs to its caller alone before anybody hears that it is done.
    submission.inputs.clear();
    submission.outputs.clear();
    submission.whole = nullptr;
    lock.lock();
    request->done_.store(true, std::memory_order_release);
    request->answered_.notify_all();
    lock.unlock();
    for (const Moment& signal : submission.signals)
      if (request->status_)
        (void)signal.timeline->signal(signal.value); // one that is there already stays
      else
        signal.timeline->fail(request->status_);
    if (submission.done) submission.done(request->status_);
    lock.lock();
    --telling_;
  }
  told_.notify_all();
}

void Dispatcher::keepTrace(const Lane& lane, const Request& request, size_t slot,
                           std::vector<session::TraceEvent> events) {
  for (session::TraceEvent& event : events) {
    if (trace_.size() >= kMostEvents) return;
    event.process =
        replicas_.size() > 1 ? fmt::format("{} (copy {})", lane.name, request.replica_) : lane.name;
    event.thread = fmt::format("execution {}", slot);
    event.request = request.id_;
    trace_.push_back(std::move(event));
  }
}

} // namespace candela::runtime::requests
