#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>

#include "conformance/case.h"

namespace candela::conformance {

/// A process, forked here, that runs one case after the other. Whatever a backend does there
/// arrives here as an answer or as the reason why there is none: it may crash, hang, exit, throw,
/// close its files, write to our socket, or fork and return twice. With the process ends whatever
/// it started, unless that left its process group.
class WorkerProcess {
public:
  using Clock = std::chrono::steady_clock;
  using Run = std::function<CaseResult(size_t index)>;

  /// Failure: internal, the system gives no process.
  static Result<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& names,
                                                      const Run& run);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool isBusy() const { return current_.has_value(); }
  size_t current() const { return *current_; }
  /// When the case that runs must have been answered.
  Clock::time_point deadline() const { return deadline_; }
  /// What to poll for: the answer (-1: there will be none), and the end (-1: the system cannot say
  /// it).
  int socket() const { return closed_ ? -1 : socket_; }
  int ended() const { return pidFd_; }

  void send(size_t index, double limitSeconds);
  /// What became of the case that runs; nullopt: not known yet. A process that did not answer is
  /// over then.
  std::optional<CaseResult> receive();
  bool isOver() const { return pid_ < 0; }

private:
  WorkerProcess(const std::vector<std::string>& names, pid_t pid, int socket);
  void fill();
  bool hasEnded() const;
  std::string end();
  CaseResult fail(std::string reason);

  const std::vector<std::string>& names_;
  pid_t pid_ = -1;
  int socket_ = -1; ///< our end of the pair
  int pidFd_ = -1;
  bool closed_ = false; ///< nothing more will come
  std::string inbox_;
  std::optional<size_t> current_;
  Clock::time_point deadline_;
  double limitSeconds_ = 0;
};

} // namespace candela::conformance
