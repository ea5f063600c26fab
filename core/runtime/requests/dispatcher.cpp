#include "core/runtime/requests/dispatcher.h"

#include <algorithm>
#include <system_error>

namespace candela::runtime::requests {

using session::nowNs;

namespace {

/// Between two cancellations of a run that goes on.
constexpr auto kAgain = std::chrono::milliseconds(1);

} // namespace

/// Who is inside holds up the end of the dispatcher, and nothing else.
class Dispatcher::Gate {
public:
  explicit Gate(Dispatcher* dispatcher) : dispatcher_(dispatcher) {}

  template <class Body> void pass(Body&& body) {
    {
      const std::lock_guard lock(mutex_);
      if (!dispatcher_) return;
      ++inside_;
    }
    body(*dispatcher_);
    const std::lock_guard lock(mutex_);
    --inside_;
    left_.notify_all();
  }
  void close() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return inside_ == 0; });
    dispatcher_ = nullptr;
  }

private:
  std::mutex mutex_;
  std::condition_variable left_;
  Dispatcher* dispatcher_;
  size_t inside_ = 0;
};

Request::Request(uint64_t id, Submission submission) : id_(id), submission_(std::move(submission)) {
  openWaits_ = submission_.waits.size() + 1; // and who submits it
  times_.submittedNs = nowNs();
}

// ---- Life

Dispatcher::Dispatcher(std::vector<Replica> replicas, const DispatcherOptions& options)
    : options_(options), gate_(std::make_shared<Gate>(this)) {
  for (Replica& replica : replicas) {
    Served& served = replicas_.emplace_back();
    served.health.name = replica.name;
    served.replica = std::move(replica);
    makeLanes(served);
  }
}

void Dispatcher::makeLanes(Served& served) const {
  const auto addLane = [&](std::string name) {
    served.lanes.push_back(std::make_unique<Lane>());
    Lane& lane = *served.lanes.back();
    lane.name = std::move(name);
    const bool takeTurns = served.replica.session && served.replica.session->hasStates();
    lane.limit = takeTurns ? 1 : options_.inFlight;
    lane.slots.resize(lane.limit);
  };
  auto& devices = served.devices;
  if (served.replica.isStaged())
    for (const session::Stage& stage : served.replica.session->stages()) {
      const auto known = std::ranges::find(devices, stage.device);
      served.laneOf.push_back(static_cast<uint32_t>(known - devices.begin()));
      if (known != devices.end()) continue;
      devices.push_back(stage.device);
      addLane(stage.device ? stage.device->id() : "host");
    }
  if (served.lanes.empty()) addLane(served.replica.name);
}

Result<std::unique_ptr<Dispatcher>> Dispatcher::create(std::vector<Replica> replicas,
                                                       const DispatcherOptions& options) {
  if (replicas.empty() || options.capacity == 0 || options.inFlight == 0)
    return badArgument("{} replicas, a capacity of {} requests, {} in flight: at least 1 of each",
                       replicas.size(), options.capacity, options.inFlight);
  std::unique_ptr<Dispatcher> made(new Dispatcher(std::move(replicas), options));
  const std::lock_guard lock(made->mutex_);
  for (Served& served : made->replicas_)
    for (const std::unique_ptr<Lane>& lane : served.lanes) CDL_TRY(made->startThread(*lane));
  return made;
}

Dispatcher::~Dispatcher() {
  std::unique_lock lock(mutex_);
  isClosing_ = true;
  room_.notify_all();
  std::vector<RequestPtr> left;
  for (const auto& [id, request] : open_) left.push_back(request);
  lock.unlock();
  for (const RequestPtr& request : left)
    cancel(request, Status(Code::cancelled, "the session was closed"));
  gate_->close();
  lock.lock();
  told_.wait(lock, [&] { return open_.empty() && untold_.empty() && telling_ == 0; });
  for (Served& served : replicas_)
    for (const std::unique_ptr<Lane>& lane : served.lanes) lane->ready.notify_all();
  late_.notify_all();
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  if (watcher_.joinable()) watcher_.join();
}

Status Dispatcher::startThread(Lane& lane) {
  try {
    threads_.emplace_back([this, &lane] { work(lane); });
  } catch (const std::system_error& error) {
    return failure(Code::out_of_memory, "no thread for requests on {}: {}", lane.name,
                   error.what());
  }
  ++lane.threads;
  return Status::ok();
}

void Dispatcher::work(Lane& lane) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++lane.idle;
    lane.ready.wait(lock, [&] {
      const bool hasJob = !lane.jobs.empty() && lane.running < lane.limit;
      return hasJob || (isClosing_ && open_.empty());
    });
    --lane.idle;
    if (lane.jobs.empty()) return;
    const Job job = std::move(lane.jobs.front());
    lane.jobs.pop_front();
    perform(lane, job, lock);
  }
}

// ---- Submission

Result<RequestPtr> Dispatcher::submit(Submission submission, WhenFull whenFull) {
  std::unique_lock lock(mutex_);
  const auto hasRoom = [&] { return open_.size() < options_.capacity || isClosing_; };
  const Clock::time_point deadline = submission.deadline;
  const auto until = whenFull == WhenFull::refuse ? Clock::time_point::min() : deadline;
  if (until == Clock::time_point::max())
    room_.wait(lock, hasRoom);
  else if (!hasRoom() && !room_.wait_until(lock, until, hasRoom))
    return failure(Code::timeout, "{} requests are in flight, which is the most", open_.size());
  if (isClosing_) return failure(Code::cancelled, "the session was closed");
  const auto request = std::make_shared<Request>(++lastId_, std::move(submission));
  if (deadline != Clock::time_point::max()) {
    CDL_TRY(startWatcher());
    request->deadline_ = deadlines_.emplace(deadline, request);
    late_.notify_all();
  }
  open_.emplace(request->id_, request);
  ++counters_.submitted;
  counters_.mostOpen = std::max<uint64_t>(counters_.mostOpen, open_.size());
  if (request->submission_.waits.empty()) {
    request->openWaits_ = 0;
    request->phase_ = Request::Phase::queued;
    queue_.push_back(request);
    assign();
    tell(lock);
    return request;
  }
  const std::vector<Moment> waits = request->submission_.waits;
  lock.unlock();
  for (const Moment& wait : waits)
    wait.timeline->whenReached(wait.value, [gate = gate_, request](const Status& status) {
      gate->pass([&](Dispatcher& dispatcher) { dispatcher.ready(request, status); });
    });
  ready(request, Status::ok());
  return request;
}

/// One of the things that a request waits for is there, or never will be.
void Dispatcher::ready(const RequestPtr& request, const Status& waited) {
  std::unique_lock lock(mutex_);
  if (request->phase_ != Request::Phase::waiting) return;
  if (!waited) {
    answer(request, waited.context("waited for"));
  } else if (--request->openWaits_ == 0) {
    request->phase_ = Request::Phase::queued;
    queue_.push_back(request);
    assign();
  }
  tell(lock);
}

// ---- Replicas and lanes

Dispatcher::Served* Dispatcher::freeReplica() {
  Served* best = nullptr;
  for (Served& served : replicas_) {
    const ReplicaHealth& health = served.health;
    if (health.isLost || health.active >= options_.inFlight) continue;
    const auto load = [](const Served& of) {
      return std::pair(of.health.active, of.health.requests);
    };
    if (!best || load(served) < load(*best)) best = &served;
  }
  return best;
}

bool Dispatcher::hasReplica() const {
  return std::ranges::any_of(replicas_, [](const Served& served) { return !served.health.isLost; });
}

void Dispatcher::assign() {
  while (!queue_.empty()) {
    Served* const served = freeReplica();
    if (!served && hasReplica()) return;
    const RequestPtr request = std::move(queue_.front());
    queue_.pop_front();
    if (!served) {
      const ReplicaHealth& first = replicas_.front().health;
      answer(request, Status(Code::device_lost, first.why));
      continue;
    }
    ++served->health.active;
    ++served->health.requests;
    request->replica_ = static_cast<size_t>(served - replicas_.data());
    request->phase_ = Request::Phase::running;
    postFirst(request);
  }
}

/// A request begins with its first stage, which waits for no other.
void Dispatcher::postFirst(const RequestPtr& request) {
  const Replica& replica = replicas_[request->replica_].replica;
  request->openStages_.clear();
  if (replica.isStaged())
    for (const session::Stage& stage : replica.session->stages())
      request->openStages_.push_back(static_cast<uint32_t>(stage.after.size()));
  request->stagesLeft_ = std::max<size_t>(request->openStages_.size(), 1);
  post({request, request->openStages_.empty() ? kNoStage : 0});
}

Dispatcher::Lane& Dispatcher::laneOf(const Job& job) {
  Served& served = replicas_[job.request->replica_];
  return *served.lanes[job.stage == kNoStage ? 0 : served.laneOf[job.stage]];
}

void Dispatcher::post(Job job) {
  Lane& lane = laneOf(job);
  lane.jobs.push_back(std::move(job));
  if (lane.idle > 0) lane.ready.notify_one();
  // Where the system gives none, those that are there take longer.
  if (lane.idle < lane.jobs.size() && lane.threads < lane.limit) (void)startThread(lane);
}

void Dispatcher::removeJobs(const Request& request) {
  for (const std::unique_ptr<Lane>& lane : replicas_[request.replica_].lanes)
    std::erase_if(lane->jobs, [&](const Job& job) { return job.request.get() == &request; });
}

// ---- Ends that come from outside

void Dispatcher::cancel(const RequestPtr& request, const Status& why) {
  std::unique_lock lock(mutex_);
  if (request->phase_ == Request::Phase::done || request->endedBy_) return;
  request->endedBy_ = why;
  if (!request->failure_) return; // it ends by itself, and is not repeated
  request->failure_ = why;
  if (request->phase_ == Request::Phase::running) {
    fail(request, lock);
  } else {
    std::erase(queue_, request);
    answer(request, why);
  }
  tell(lock);
}

Status Dispatcher::startWatcher() {
  if (watcher_.joinable()) return Status::ok();
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    return failure(Code::out_of_memory, "no thread for deadlines: {}", error.what());
  }
  return Status::ok();
}

Clock::time_point Dispatcher::nextWatch() const {
  const auto again = ending_.empty() ? Clock::time_point::max() : Clock::now() + kAgain;
  return deadlines_.empty() ? again : std::min(again, deadlines_.begin()->first);
}

void Dispatcher::watch() {
  std::unique_lock lock(mutex_);
  while (!(isClosing_ && open_.empty())) {
    const Clock::time_point next = nextWatch();
    if (next == Clock::time_point::max())
      late_.wait(lock);
    else
      late_.wait_until(lock, next);
    failAgain(lock);
    while (!deadlines_.empty() && deadlines_.begin()->first <= Clock::now()) {
      const RequestPtr request = deadlines_.begin()->second.lock();
      deadlines_.erase(deadlines_.begin());
      if (!request) continue;
      request->deadline_.reset();
      lock.unlock();
      cancel(request, Status(Code::timeout, "the deadline passed"));
      lock.lock();
    }
  }
}

void Dispatcher::failAgain(std::unique_lock<std::mutex>& lock) {
  const std::vector<RequestPtr> ending = ending_;
  for (const RequestPtr& request : ending)
    if (std::ranges::count(ending_, request)) fail(request, lock);
  tell(lock);
}

Dispatcher::Lane* Dispatcher::laneToHelp(const Request& request) {
  if (request.phase_ != Request::Phase::running) return nullptr;
  for (const std::unique_ptr<Lane>& lane : replicas_[request.replica_].lanes) {
    const bool hasJob = std::ranges::any_of(
        lane->jobs, [&](const Job& job) { return job.request.get() == &request; });
    if (hasJob && lane->running < lane->limit) return lane.get();
  }
  return nullptr;
}

Status Dispatcher::wait(const RequestPtr& request, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto isDone = [&] { return request->isDone(); };
  const bool isForever = until == Clock::time_point::max();
  while (Lane* const lane = isForever ? laneToHelp(*request) : nullptr) {
    const auto at =
        std::ranges::find_if(lane->jobs, [&](const Job& job) { return job.request == request; });
    const Job job = std::move(*at);
    lane->jobs.erase(at);
    perform(*lane, job, lock);
  }
  if (isForever)
    request->answered_.wait(lock, isDone);
  else if (!request->answered_.wait_until(lock, until, isDone))
    return failure(Code::timeout, "request {} is not done yet", request->id_);
  return request->status_;
}

// ---- What it did

Counters Dispatcher::counters() const {
  const std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.open = open_.size();
  return counters;
}

std::vector<ReplicaHealth> Dispatcher::health() const {
  const std::lock_guard lock(mutex_);
  std::vector<ReplicaHealth> all;
  for (const Served& served : replicas_) {
    ReplicaHealth& health = all.emplace_back(served.health);
    for (const std::shared_ptr<plugin::Device>& device : served.devices)
      if (device) health.memoryBytes += device->memoryUse().now;
  }
  return all;
}

std::vector<session::TraceEvent> Dispatcher::takeTrace() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trace_, {});
}

} // namespace candela::runtime::requests
