// Runs the jobs of a sweep, some at once, in processes that each take several of them.
#include <fcntl.h>
#include <poll.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>

#include "tools/candela/command_line.h"
#include "tools/candela/simulate/reuse.h"
#include "tools/candela/simulate/sweep_files.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

/// Keys whose values change few plans, or none: what is compiled for one value serves others.
constexpr const char* kKeysOfPrice[] = {
    "clock_mhz",       "dram.type",          "dram.width_bits",   "dram.bytes",
    "second.type",     "second.width_bits",  "dma.load_channels", "dma.store_channels",
    "dma.outstanding", "command.queue_depth"};
/// The most jobs of a process: what it keeps goes with it, and who ends last is not waited for
/// long.
constexpr size_t kMostOfBatch = 40;
/// As many batches for each of the processes, if there are jobs for them.
constexpr size_t kBatchesOfProcess = 4;

/// Jobs that one process runs one behind the other.
using Batch = std::deque<const SweepJob*>;

/// How a job ended.
struct Ending {
  int exitCode = 0;
  int signal = 0; ///< 0: none
};

std::string logOf(const Sweep& sweep, const SweepJob& job) {
  return sweep.folder + "/" + job.id + ".log";
}

/// Whether there is a result; one that is damaged is named, and taken away so that it is made
/// again.
bool hasResult(const std::string& path, Console& console) {
  const Result<Json> result = readResult(path);
  if (result) return true;
  if (result.status().code() == Code::not_found) return false;
  console.note("{}; it is computed again", result.status().message());
  std::error_code ignored;
  fs::remove(path, ignored);
  return false;
}

/// Equal for jobs that can take much from each other: of one model, batch and configuration but for
/// keys of price.
std::string groupOf(const SweepJob& job) {
  std::string group = fmt::format("{}\n{}\n{}\n", job.model, job.base, job.batch);
  for (const auto& [key, value] : job.varied)
    if (std::ranges::find(kKeysOfPrice, key) == std::end(kKeysOfPrice))
      group += fmt::format("{}={}\n", key, value);
  return group;
}

/// The jobs of each group together, in the order in which groups come first.
std::deque<Batch> batchesOf(const std::vector<const SweepJob*>& jobs, size_t processes) {
  const size_t wanted = processes * kBatchesOfProcess;
  const size_t most = std::clamp<size_t>((jobs.size() + wanted - 1) / wanted, 1, kMostOfBatch);
  std::map<std::string, size_t> open; // the last batch of a group
  std::deque<Batch> batches;
  for (const SweepJob* job : jobs) {
    const auto [at, isNew] = open.try_emplace(groupOf(*job), batches.size());
    if (!isNew && batches[at->second].size() >= most) at->second = batches.size();
    if (at->second == batches.size()) batches.emplace_back();
    batches[at->second].push_back(job);
  }
  return batches;
}

/// Sends one stream of this process to a file; false where that fails.
bool redirect(const char* path, int flags, int to) {
  const int file = open(path, flags, 0644);
  if (file < 0) return false;
  const bool isDone = file == to || dup2(file, to) >= 0;
  if (file != to) close(file);
  return isDone;
}

/// One job in this process; what it says goes to its log.
int runJob(const Sweep& sweep, const SweepJob& job, const std::string& program) {
  if (!redirect(logOf(sweep, job).c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO))
    return kWorkFailed;
  std::vector<std::string> command = commandOf(sweep, job, program);
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  return runCommandLine(static_cast<int>(command.size()), arguments.data());
}

/// What a process of the sweep does: says how each job ended as soon as it has.
void runBatch(const Sweep& sweep, const Batch& batch, const std::string& program, int told) {
  if (!redirect("/dev/null", O_RDONLY, STDIN_FILENO) ||
      !redirect("/dev/null", O_WRONLY, STDOUT_FILENO))
    return;
  const Reuse reuse;
  for (const SweepJob* job : batch) {
    const int exitCode = runJob(sweep, *job, program);
    if (write(told, &exitCode, sizeof exitCode) != sizeof exitCode) return;
  }
}

/// Counts a job that ended, and keeps or removes what it said.
void finish(const Sweep& sweep, const SweepJob& job, const Ending& ending, SweepCounts& counts,
            Console& console) {
  std::error_code ignored;
  if (!ending.signal && ending.exitCode == kSuccess) {
    fs::remove(logOf(sweep, job), ignored);
  } else if (!ending.signal && ending.exitCode == kBadInput) {
    // It would say the same again.
    fs::rename(logOf(sweep, job), refusalOf(sweep, job), ignored);
    ++counts.refused;
  } else { // a full disk, no memory: another time it may do
    const std::string said = lastLine(logOf(sweep, job));
    console.note("{} on {}, {}: {}{}", job.model, job.base, job.id,
                 ending.signal ? fmt::format("ended by signal {}", ending.signal)
                               : fmt::format("exit status {}", ending.exitCode),
                 said.empty() ? "" : ": " + said);
    ++counts.failed;
  }
}

/// The processes of a sweep.
class Workers {
public:
  Workers(const Sweep& sweep, std::deque<Batch> batches, SweepCounts& counts, Console& console)
      : sweep_(sweep), program_(fs::read_symlink("/proc/self/exe").string()),
        waiting_(std::move(batches)), counts_(counts), console_(console) {
    for (const Batch& batch : waiting_) jobs_ += batch.size();
  }

  void run(size_t processes) {
    while (!waiting_.empty() || !running_.empty()) {
      while (!waiting_.empty() && running_.size() < processes) startNext();
      listen();
    }
  }

private:
  struct Worker {
    pid_t pid = -1;
    int told = -1; ///< where it says how jobs ended
    Batch left;    ///< the one that it is at first
  };

  void startNext() {
    Worker worker;
    worker.left = std::move(waiting_.front());
    waiting_.pop_front();
    std::array<int, 2> ends{};
    const bool hasPipe = pipe2(ends.data(), O_CLOEXEC) == 0;
    const pid_t self = getpid();
    worker.pid = hasPipe ? fork() : -1;
    if (worker.pid == 0) {
      becomeWorker(worker.left, ends[1], self);
      _exit(kSuccess);
    }
    if (worker.pid < 0) {
      const int bad = errno;
      for (const Worker& other : running_) kill(other.pid, SIGTERM);
      fail(kWorkFailed, "a process cannot be started: {}", std::strerror(bad));
    }
    close(ends[1]);
    worker.told = ends[0];
    running_.push_back(std::move(worker));
  }

  /// Nobody would wait for a worker without the sweep, nor see what it says.
  void becomeWorker(const Batch& batch, int told, pid_t parent) const noexcept {
    (void)parent;
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return;
#endif
    runBatch(sweep_, batch, program_, told);
  }

  /// Waits until a worker says something, or ends.
  void listen() {
    std::vector<pollfd> all;
    for (const Worker& worker : running_) all.push_back({worker.told, POLLIN, 0});
    if (poll(all.data(), all.size(), -1) < 0) {
      if (errno == EINTR) return;
      fail(kWorkFailed, "waiting for a simulation: {}", std::strerror(errno));
    }
    for (size_t w = all.size(); w-- > 0;)
      if (all[w].revents) hear(w);
  }

  void hear(size_t index) {
    Worker& worker = running_[index];
    int exitCode = 0;
    const ssize_t got = read(worker.told, &exitCode, sizeof exitCode);
    if (got < 0 && errno == EINTR) return;
    if (got == sizeof exitCode && !worker.left.empty()) return jobEnded(worker, {exitCode, 0});
    Worker gone = std::move(worker);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    close(gone.told);
    int status = 0;
    while (waitpid(gone.pid, &status, 0) < 0 && errno == EINTR) {}
    if (gone.left.empty()) return;
    // The one that it was at ended it; others do not pay for that.
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    jobEnded(gone, {WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : kWorkFailed,
                    signal});
    if (!gone.left.empty()) waiting_.push_front(std::move(gone.left));
  }

  void jobEnded(Worker& worker, const Ending& ending) {
    const SweepJob& job = *worker.left.front();
    worker.left.pop_front();
    progress_.update(fs::path(job.model).filename().string(),
                     static_cast<double>(++ended_) / static_cast<double>(jobs_));
    finish(sweep_, job, ending, counts_, console_);
  }

  const Sweep& sweep_;
  const std::string program_;
  std::deque<Batch> waiting_;
  std::vector<Worker> running_;
  SweepCounts& counts_;
  Console& console_;
  Progress progress_{"simulating"};
  size_t jobs_ = 0, ended_ = 0;
};

} // namespace

SweepCounts runSweep(const Sweep& sweep, size_t processes, Console& console) {
  writeConfigurations(sweep);
  std::signal(SIGCHLD, SIG_DFL); // who ignores it cannot wait
  std::vector<const SweepJob*> left;
  std::set<std::string> ids; // equal jobs are one
  size_t possible = 0;       // jobs that have a configuration
  size_t before = 0;         // of them, those that ran
  SweepCounts counts;
  for (const SweepJob& job : sweep.jobs) {
    if (!job.refused.empty()) {
      ++counts.refused;
      continue;
    }
    ++possible;
    const bool wasRefused = !lastLine(refusalOf(sweep, job)).empty();
    if (wasRefused) ++counts.refused;
    if (wasRefused || hasResult(resultOf(sweep, job), console))
      ++before;
    else if (ids.insert(job.id).second)
      left.push_back(&job);
  }
  if (before > 0)
    console.print("  {} of {} were done before{}\n", before, possible,
                  left.empty() ? "" : "; going on");
  Workers(sweep, batchesOf(left, processes), counts, console).run(processes);
  return counts;
}

} // namespace candela::tool
