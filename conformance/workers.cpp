#include "conformance/workers.h"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <map>
#include <span>

#include "conformance/repeated.h"
#include "conformance/report/query.h"
#include "conformance/worker_process.h"
#include "core/support/text/scan.h"

namespace candela::conformance {
namespace {

using Clock = WorkerProcess::Clock;

/// Whether a case failed in another way than before. What says how long it waited says something
/// else each time.
bool isAnother(const CaseResult& first, const CaseResult& again) {
  const bool isTimed =
      text::isOneOf(std::string(report::tierOf(first.name)), "abi|memory|queue|devices|async");
  return again.outcome != first.outcome || (again.reason != first.reason && !isTimed);
}

/// One result of all runs of a case.
CaseResult ofRuns(std::vector<CaseResult> runs) {
  CaseResult result = std::move(runs[0]);
  if (runs.size() == 1) return result;
  const auto others = std::span(runs).subspan(1);
  const bool isSteady =
      result.reason.find(kOtherBytes) == std::string::npos &&
      std::ranges::none_of(others, [&](const CaseResult& run) { return isAnother(result, run); });
  result.again = isSteady ? CaseResult::Again::same : CaseResult::Again::otherwise;
  if (isSteady) return result;
  const auto failures =
      1 + std::ranges::count(others, CaseResult::Outcome::failed, &CaseResult::outcome);
  const auto all = static_cast<ptrdiff_t>(runs.size());
  result.reason =
      failures == all
          ? fmt::format("unsteady, fails in {} runs, not alike: {}", all, result.reason)
          : fmt::format("unsteady, {} of {} runs fail: {}", failures, all, result.reason);
  return result;
}

class Supervisor {
public:
  Supervisor(const std::vector<std::string>& names, const std::function<CaseResult(size_t)>& run,
             const WorkerOptions& options,
             const std::function<void(const CaseResult&, size_t)>& done)
      : names_(names), run_(run), options_(options), done_(done), results_(names.size()) {}

  Result<std::vector<CaseResult>> supervise() {
    workers_.resize(
        std::min<size_t>(static_cast<size_t>(std::max(options_.jobs, 1)), names_.size()));
    while (finished_ < names_.size()) {
      for (auto& worker : workers_) CDL_TRY(keepBusy(worker));
      waitForAnswers();
    }
    return std::move(results_);
  }

private:
  Status keepBusy(std::unique_ptr<WorkerProcess>& worker) {
    if ((worker && worker->isBusy()) || (repeats_.empty() && next_ == names_.size()))
      return Status::ok();
    if (!worker || worker->isOver() || options_.isolates) {
      CDL_ASSIGN(worker, WorkerProcess::start(names_, run_));
    }
    size_t index = next_;
    if (repeats_.empty())
      ++next_;
    else
      index = repeats_.front(), repeats_.pop_front();
    worker->send(index, options_.timeLimitSeconds);
    return Status::ok();
  }

  void waitForAnswers() {
    std::vector<pollfd> fds;
    auto earliest = Clock::now() + std::chrono::seconds(1);
    for (const auto& worker : workers_) {
      if (!worker || !worker->isBusy()) continue;
      fds.push_back({worker->socket(), POLLIN, 0});
      fds.push_back({worker->ended(), POLLIN, 0});
      // Where the system does not tell of a process' end, one looks now and then.
      const auto soon = Clock::now() + std::chrono::milliseconds(50);
      earliest = std::min({earliest, worker->deadline(), worker->ended() < 0 ? soon : earliest});
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(earliest - Clock::now()).count() + 1;
    // Whatever woke us: each worker is asked.
    (void)poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left, 0)));
    for (const auto& worker : workers_) {
      if (!worker || !worker->isBusy()) continue;
      const size_t index = worker->current();
      if (auto result = worker->receive()) record(index, std::move(*result));
    }
  }

  void record(size_t index, CaseResult result) {
    std::vector<CaseResult>& runs = runs_[index];
    runs.push_back(std::move(result));
    const bool repeats = runs[0].outcome == CaseResult::Outcome::failed && !runs.back().isLate;
    if (repeats && runs.size() <= static_cast<size_t>(std::max(options_.repeats, 0))) {
      repeats_.push_back(index);
      return;
    }
    results_[index] = ofRuns(std::move(runs));
    runs_.erase(index);
    ++finished_;
    if (done_) done_(results_[index], finished_);
  }

  const std::vector<std::string>& names_;
  const std::function<CaseResult(size_t)>& run_;
  const WorkerOptions& options_;
  const std::function<void(const CaseResult&, size_t)>& done_;
  std::vector<CaseResult> results_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::map<size_t, std::vector<CaseResult>> runs_; ///< of cases that are not finished
  std::deque<size_t> repeats_;                     ///< that wait for a worker
  size_t next_ = 0, finished_ = 0;
};

} // namespace

Result<std::vector<CaseResult>>
runInWorkers(const std::vector<std::string>& names, const std::function<CaseResult(size_t)>& run,
             const WorkerOptions& options,
             const std::function<void(const CaseResult&, size_t)>& done) {
  return Supervisor(names, run, options, done).supervise();
}

} // namespace candela::conformance
