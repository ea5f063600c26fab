#include "core/conform/workers.h"

#include <poll.h>

#include <algorithm>

#include "core/conform/worker_process.h"

namespace candela::conform {
namespace {

using Clock = WorkerProcess::Clock;

class Supervisor {
public:
  Supervisor(const std::vector<std::string>& names, const std::function<CaseResult(size_t)>& run,
             const WorkerOptions& options, const std::function<void(const CaseResult&, size_t)>& done)
      : names_(names), run_(run), options_(options), done_(done), results_(names.size()) {}

  Result<std::vector<CaseResult>> supervise() {
    workers_.resize(std::min<size_t>(static_cast<size_t>(std::max(options_.jobs, 1)), names_.size()));
    while (finished_ < names_.size()) {
      for (auto& worker : workers_) CDL_TRY(keepBusy(worker));
      waitForAnswers();
    }
    return std::move(results_);
  }

private:
  Status keepBusy(std::unique_ptr<WorkerProcess>& worker) {
    if ((worker && worker->isBusy()) || next_ == names_.size()) return Status::ok();
    if (!worker || worker->isOver()) { CDL_ASSIGN(worker, WorkerProcess::start(names_, run_)); }
    worker->send(next_++, options_.timeLimitSeconds);
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
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(earliest - Clock::now()).count() + 1;
    // Whatever woke us: each worker is asked.
    (void)poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left, 0)));
    for (const auto& worker : workers_) {
      if (!worker || !worker->isBusy()) continue;
      const size_t index = worker->current();
      if (auto result = worker->receive()) record(index, std::move(*result));
    }
  }

  void record(size_t index, CaseResult result) {
    results_[index] = std::move(result);
    ++finished_;
    if (done_) done_(results_[index], finished_);
  }

  const std::vector<std::string>& names_;
  const std::function<CaseResult(size_t)>& run_;
  const WorkerOptions& options_;
  const std::function<void(const CaseResult&, size_t)>& done_;
  std::vector<CaseResult> results_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  size_t next_ = 0, finished_ = 0;
};

} // namespace

Result<std::vector<CaseResult>> runInWorkers(const std::vector<std::string>& names,
                                             const std::function<CaseResult(size_t)>& run, const WorkerOptions& options,
                                             const std::function<void(const CaseResult&, size_t)>& done) {
  return Supervisor(names, run, options, done).supervise();
}

} // namespace candela::conform
