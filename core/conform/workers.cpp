#include "core/conform/workers.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace candela::conform {

// A result as it travels from a worker.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Work, nodes, nativeNodes, macs, nativeMacs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseResult, name, outcome, rawPassed, reason, work, milliseconds)

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

/// Reads or writes (`call`) all of it.
template <typename Call, typename Bytes> bool transferAll(Call call, int fd, Bytes* data, size_t size) {
  while (size > 0) {
    const ssize_t n = call(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}
bool writeAll(int fd, const void* data, size_t size) {
  return transferAll(write, fd, static_cast<const char*>(data), size);
}
bool readAll(int fd, void* data, size_t size) { return transferAll(read, fd, static_cast<char*>(data), size); }

struct Worker {
  pid_t pid = -1;
  int socket = -1;               ///< our end of the pair
  std::optional<size_t> current; ///< the case that it runs
  Clock::time_point deadline;
};

class Supervisor {
public:
  Supervisor(const std::vector<std::string>& names, const std::function<CaseResult(size_t)>& run,
             const WorkerOptions& options, const std::function<void(const CaseResult&, size_t)>& done)
      : names_(names), run_(run), options_(options), done_(done), results_(names.size()) {}
  ~Supervisor() {
    for (Worker& worker : workers_) stop(worker, SIGKILL);
    signal(SIGPIPE, oldPipeHandler_);
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<std::vector<CaseResult>> supervise() {
    workers_.resize(std::min<size_t>(static_cast<size_t>(std::max(options_.jobs, 1)), names_.size()));
    while (finished_ < names_.size()) {
      for (Worker& worker : workers_) CDL_TRY(keepBusy(worker));
      waitForAnswers();
    }
    return std::move(results_);
  }

private:
  Status keepBusy(Worker& worker) {
    while (!worker.current && next_ < names_.size()) {
      if (worker.pid < 0) CDL_TRY(start(worker));
      worker.current = next_++;
      worker.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.timeLimitSeconds));
      const uint64_t index = *worker.current;
      // A worker that died meanwhile shows when its answer is read.
      (void)writeAll(worker.socket, &index, sizeof index);
    }
    return Status::ok();
  }

  Status start(Worker& worker) {
    int ends[2]; // ours, the worker's
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
      return failure(Code::internal, "cannot make a pair of sockets: {}", std::strerror(errno));
    std::fflush(nullptr); // else the child would write what is buffered once more
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      for (const Worker& other : workers_)
        if (other.pid >= 0) close(other.socket);
      work(ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
      close(ends[0]);
      return failure(Code::internal, "cannot start a worker: {}", std::strerror(errno));
    }
    worker = {pid, ends[0], std::nullopt, {}};
    return Status::ok();
  }

  /// The life of a worker.
  [[noreturn]] void work(int socket) const {
    signal(SIGPIPE, SIG_DFL);
    const rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    uint64_t index;
    while (readAll(socket, &index, sizeof index)) {
      CaseResult result;
      try {
        result = run_(index);
      } catch (const std::exception& error) { result.reason = fmt::format("threw: {}", error.what()); }
      result.name = names_[index];
      const std::string text = Json(result).dump(-1, ' ', false, Json::error_handler_t::replace);
      const uint64_t size = text.size();
      if (!writeAll(socket, &size, sizeof size) || !writeAll(socket, text.data(), text.size())) _exit(1);
    }
    std::fflush(nullptr);
    _exit(0);
  }

  void waitForAnswers() {
    std::vector<pollfd> fds;
    std::vector<Worker*> polled;
    auto earliest = Clock::now() + std::chrono::seconds(1);
    for (Worker& worker : workers_) {
      if (!worker.current) continue;
      fds.push_back({worker.socket, POLLIN, 0});
      polled.push_back(&worker);
      earliest = std::min(earliest, worker.deadline);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(earliest - Clock::now()).count() + 1;
    if (poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left, 0))) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents)
        receive(*polled[i]);
      else if (Clock::now() >= polled[i]->deadline)
        expire(*polled[i]);
    }
  }

  void receive(Worker& worker) {
    uint64_t size = 0;
    std::string text;
    bool alive = readAll(worker.socket, &size, sizeof size);
    const bool sane = size < (uint64_t(1) << 30);
    if (alive && sane) {
      text.resize(size);
      alive = readAll(worker.socket, text.data(), size);
    }
    const Json json = alive && sane ? Json::parse(text, nullptr, false) : Json();
    const size_t index = *worker.current;
    if (json.is_object()) {
      worker.current.reset();
      return record(index, json.get<CaseResult>());
    }
    // Whoever answers nonsense is still there, and might stay for ever.
    const std::string end = stop(worker, alive ? SIGKILL : 0);
    record(index, {.name = names_[index], .reason = alive ? "the process answered nonsense" : end});
  }

  void expire(Worker& worker) {
    const size_t index = *worker.current;
    stop(worker, SIGKILL);
    record(index, {.name = names_[index], .reason = fmt::format("no answer after {} s", options_.timeLimitSeconds)});
  }

  /// Ends a worker (signal 0: it ended by itself) and says how it died.
  std::string stop(Worker& worker, int signalNumber) {
    if (worker.pid < 0) return "";
    if (signalNumber) kill(worker.pid, signalNumber);
    close(worker.socket);
    int state = 0;
    while (waitpid(worker.pid, &state, 0) < 0 && errno == EINTR) {}
    worker = {};
    if (WIFSIGNALED(state)) {
      const char* name = sigabbrev_np(WTERMSIG(state));
      return fmt::format("the process died of SIG{}", name ? name : std::to_string(WTERMSIG(state)));
    }
    return fmt::format("the process ended with status {}", WEXITSTATUS(state));
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
  std::vector<Worker> workers_;
  size_t next_ = 0, finished_ = 0;
  void (*oldPipeHandler_)(int) = signal(SIGPIPE, SIG_IGN);
};

} // namespace

Result<std::vector<CaseResult>> runInWorkers(const std::vector<std::string>& names,
                                             const std::function<CaseResult(size_t)>& run, const WorkerOptions& options,
                                             const std::function<void(const CaseResult&, size_t)>& done) {
  return Supervisor(names, run, options, done).supervise();
}

} // namespace candela::conform
