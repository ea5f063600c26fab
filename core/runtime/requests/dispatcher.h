#pragma once

#include <deque>
#include <map>
#include <thread>

#include "core/runtime/requests/request.h"

/// Many requests on one or several compiled copies of a model.
///
/// A request goes through the stages of its session (session::Stage), each on a lane: the threads
/// that serve one device of one replica. While one request is in a stage another one is in the
/// next, so that devices work at the same time; and a lane with several threads has several
/// executions on its device. Threads block in the plugin's calls, as the ABI has no callbacks.
namespace candela::runtime::requests {

/// A compiled copy of a model, with devices of its own.
struct Replica {
  std::string name; ///< of its devices, for messages
  /// Null, or with states: requests say how they run as a whole.
  session::Session* session = nullptr;
  bool isStaged() const { return session && !session->hasStates(); }
};

struct DispatcherOptions {
  uint32_t capacity = 256; ///< requests that are submitted and not done
  uint32_t inFlight = 2;   ///< of them on one replica; executions on one device
  bool traces = false;
};

/// What was done so far.
struct Counters {
  uint64_t submitted = 0, succeeded = 0, failed = 0, cancelled = 0, timedOut = 0;
  uint64_t repeated = 0; ///< on another replica, when a device was lost
  uint64_t open = 0, mostOpen = 0;
  session::RunStats stats;
};

/// How a replica fares.
struct ReplicaHealth {
  std::string name;
  bool isLost = false;
  std::string why;
  uint64_t requests = 0, active = 0;
  uint64_t busyNs = 0;      ///< summed over its threads
  uint64_t memoryBytes = 0; ///< that its devices have given, to whomever
};

/// Whether submit() waits while the dispatcher is full.
enum class WhenFull { wait, refuse };

/// Bounded, fair by order of arrival, any thread.
class Dispatcher {
public:
  /// Starts one thread for each device of each replica; others start when they are needed. The
  /// sessions live longer. Failure: out_of_memory, where the system gives no thread.
  static Result<std::unique_ptr<Dispatcher>> create(std::vector<Replica> replicas,
                                                    const DispatcherOptions& options);
  /// Cancels what is not done and waits for it. Not in a callback of a request.
  ~Dispatcher();

  /// Failure: timeout when it is full until the deadline, or at once with WhenFull::refuse; then
  /// nothing was submitted.
  Result<RequestPtr> submit(Submission submission, WhenFull whenFull = WhenFull::wait);
  /// Ends a request with `why`, unless it is done. What a device is doing is given up where its
  /// plugin can; the request is done when nothing touches its memory any more.
  void cancel(const RequestPtr& request, const Status& why);
  /// The request's status, or timeout while it goes on. A thread that waits works on it meanwhile,
  /// where no other one does.
  Status wait(const RequestPtr& request, Clock::time_point until);

  Counters counters() const;
  std::vector<ReplicaHealth> health() const;
  /// What threads did since the last call, where that is traced.
  std::vector<session::TraceEvent> takeTrace();

private:
  static constexpr uint32_t kNoStage = UINT32_MAX; ///< of a run without stages, or as a whole

  struct Job {
    RequestPtr request;
    uint32_t stage = kNoStage;
  };
  /// What serves one device of a replica.
  struct Lane {
    std::string name; ///< of the device
    std::deque<Job> jobs;
    uint32_t limit = 1;      ///< executions at the same time
    std::vector<bool> slots; ///< which of them are in progress
    uint32_t running = 0, threads = 0, idle = 0;
    std::condition_variable ready;
  };
  struct Served {
    Replica replica;
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<std::shared_ptr<plugin::Device>> devices; ///< per lane; null: the host
    std::vector<uint32_t> laneOf;                         ///< per stage
    ReplicaHealth health;
  };

  /// By which timelines reach a dispatcher that may be gone by then.
  class Gate;

  Dispatcher(std::vector<Replica> replicas, const DispatcherOptions& options);
  void makeLanes(Served& served) const;
  Status startThread(Lane& lane);
  Status startWatcher();

  // ---- Threads
  void work(Lane& lane);
  void watch();
  /// Does a job of a lane, without the lock, and what follows from it.
  void perform(Lane& lane, const Job& job, std::unique_lock<std::mutex>& lock);
  Status run(const Job& job);
  static bool isGone(const Served& served);
  void ready(const RequestPtr& request, const Status& waited);

  // ---- With the mutex held
  Lane& laneOf(const Job& job);
  Lane* laneToHelp(const Request& request);
  void post(Job job);
  void postFirst(const RequestPtr& request);
  /// Gives waiting requests to replicas with room, or fails them where no replica is left.
  void assign();
  Served* freeReplica();
  bool hasReplica() const;
  bool mayRepeat(const Request& request) const;
  void removeJobs(const Request& request);
  void follow(const Job& job, const Status& status, std::unique_lock<std::mutex>& lock);
  void fail(const RequestPtr& request, std::unique_lock<std::mutex>& lock);
  void failAgain(std::unique_lock<std::mutex>& lock);
  Clock::time_point nextWatch() const;
  void release(Request& request);
  void answer(const RequestPtr& request, const Status& status);
  void count(const Request& request);
  /// Tells of answers what waits for them: timelines, callbacks.
  void tell(std::unique_lock<std::mutex>& lock);
  void keepTrace(const Lane& lane, const Request& request, size_t slot,
                 std::vector<session::TraceEvent> events);

  const DispatcherOptions options_;
  std::vector<Served> replicas_;
  std::shared_ptr<Gate> gate_;
  mutable std::mutex mutex_;
  std::condition_variable room_;        ///< a request was answered
  std::condition_variable late_;        ///< the earliest deadline changed
  std::condition_variable told_;        ///< an answer was told
  std::deque<RequestPtr> queue_;        ///< that wait for a replica
  std::map<uint64_t, RequestPtr> open_; ///< submitted and not done, by id
  Deadlines deadlines_;
  std::vector<RequestPtr> ending_; ///< failed or cancelled, with threads at them
  std::deque<RequestPtr> untold_;  ///< answered, and nobody was told
  size_t telling_ = 0;             ///< threads that tell
  uint64_t lastId_ = 0;
  Counters counters_;
  bool isClosing_ = false;
  std::vector<std::thread> threads_;
  std::thread watcher_; ///< of deadlines, and of what is slow to end; started when first needed
  std::vector<session::TraceEvent> trace_;
};

} // namespace candela::runtime::requests
