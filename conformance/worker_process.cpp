#include "conformance/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/workers.h"
#include "core/support/json.h"

namespace candela::conformance {

// A result as it travels from a worker.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Work, nodes, nativeNodes, macs, nativeMacs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseResult, name, outcome, rawPassed, reason, work, milliseconds,
                                   placement)

namespace {

using Json = nlohmann::json;

constexpr uint64_t kMagic = 0x43444C434F4E464D; ///< in front of every answer
constexpr uint64_t kLongest = uint64_t(1) << 30;
constexpr int kNoConnection = 121; ///< exit status of a worker whose socket is gone
constexpr int kNoMemory = 122;     ///< of one that has none left for its answer
constexpr int kHighFd = 1000;      ///< where a backend that closes all that it finds seldom looks

struct Head {
  uint64_t magic, index, size;
  uint64_t isLast; ///< the process is in no state to go on
};

/// All of it, through what a signal interrupts.
template <typename Call, typename Bytes>
bool transferAll(Call call, int fd, Bytes* data, size_t size) {
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
bool readAll(int fd, void* data, size_t size) {
  return transferAll(read, fd, static_cast<char*>(data), size);
}

/// The life of a worker.
class Life {
public:
  Life(const std::vector<std::string>& names, const WorkerProcess::Run& run, int socket)
      : names_(names), run_(run) {
    const int high = fcntl(socket, F_DUPFD_CLOEXEC, kHighFd);
    if (high >= 0) close(socket);
    socket_ = high >= 0 ? high : socket;
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
    if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0)
      dup2(nothing, STDIN_FILENO), close(nothing);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    // Shared with whatever the backend forks.
    void* page =
        mmap(nullptr, sizeof(Strays), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strays_ = page == MAP_FAILED ? nullptr : new (page) Strays(0);
  }

  [[noreturn]] void live() {
    try {
      answerAll();
    } catch (const std::bad_alloc&) {
      _exit(kNoMemory);
    }
    std::fflush(nullptr);
    _exit(errno == EBADF ? kNoConnection : 0);
  }

private:
  using Strays = std::atomic<uint32_t>;

  void answerAll() {
    uint64_t index;
    while (readAll(socket_, &index, sizeof index)) {
      CaseResult result;
      try {
        result = run_(index);
      } catch (const std::exception& error) {
        result.reason = fmt::format("threw: {}", error.what());
      } catch (...) {
        result.reason = "threw something that is no std::exception";
      }
      endCopies(result);
      result.name = names_[index];
      const std::string text = Json(result).dump(-1, ' ', false, Json::error_handler_t::replace);
      const Head head{kMagic, index, text.size(), hasCopies_};
      if (!writeAll(socket_, &head, sizeof head) || !writeAll(socket_, text.data(), text.size()))
        _exit(kNoConnection);
    }
  }

  /// A call that returns in two processes: the copy ends here, and the case fails.
  void endCopies(CaseResult& result) {
    if (getpid() != pid_) {
      if (strays_) ++*strays_;
      _exit(0);
    }
    siginfo_t child{}; // which stays for the backend to wait for
    const bool hasChildren = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (!strays_ || !hasChildren) return;
    // The copy comes by here at about the same time. Children that stay, as a compiler may, are
    // waited for once.
    const auto end =
        WorkerProcess::Clock::now() + std::chrono::milliseconds(hadChildren_ ? 0 : 500);
    while (!*strays_ && WorkerProcess::Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    hadChildren_ = true;
    if (!*strays_) return;
    hasCopies_ = true; // there may be more of them, which end with this process
    result = CaseResult{.reason = "the backend forked, and returned in both processes"};
  }

  const std::vector<std::string>& names_;
  const WorkerProcess::Run& run_;
  const pid_t pid_ = getpid();
  int socket_;
  Strays* strays_;
  bool hadChildren_ = false, hasCopies_ = false;
};

} // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::vector<std::string>& names,
                                                            const Run& run) {
  // ours, the worker's; ours is not for other workers that the worker's backend may start
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(Code::internal, "cannot make a pair of sockets: {}", std::strerror(errno));
  std::fflush(nullptr); // else the child would write what is buffered once more
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    Life(names, run, ends[1]).live();
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return failure(Code::internal, "cannot start a worker: {}", std::strerror(errno));
  }
  setpgid(pid, pid); // whoever is first
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(names, pid, ends[0]));
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& names, pid_t pid, int socket)
    : names_(names), pid_(pid), socket_(socket),
      pidFd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

WorkerProcess::~WorkerProcess() { end(); }

void WorkerProcess::send(size_t index, double limitSeconds) {
  current_ = index;
  limitSeconds_ = limitSeconds;
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(limitSeconds));
  const uint64_t number = index;
  // A worker that ended meanwhile shows when its answer is read.
  (void)::send(socket_, &number, sizeof number, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Takes what has arrived. Never blocks: half an answer is no reason to wait for the rest for ever.
void WorkerProcess::fill() {
  char part[1 << 16];
  while (!closed_) {
    const ssize_t n = recv(socket_, part, sizeof part, MSG_DONTWAIT);
    if (n > 0) inbox_.append(part, static_cast<size_t>(n));
    if (n < 0 && errno == EINTR) continue;
    closed_ = n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    if (n <= 0) return;
  }
}

bool WorkerProcess::hasEnded() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

std::optional<CaseResult> WorkerProcess::receive() {
  const bool over = hasEnded(); // before the last look at what it wrote
  fill();
  if (inbox_.size() >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, inbox_.data(), sizeof head);
    if (head.magic != kMagic || head.index != *current_ || head.size > kLongest)
      return fail("the process answered nonsense");
    if (inbox_.size() >= sizeof head + head.size) {
      const Json json = parseJson<Json>(std::string_view(inbox_).substr(sizeof head, head.size));
      if (inbox_.size() > sizeof head + head.size || !json.is_object())
        return fail("the process answered nonsense");
      inbox_.clear();
      current_.reset();
      if (head.isLast) end();
      return json.get<CaseResult>();
    }
  }
  if (over) return fail("");
  if (Clock::now() >= deadline_) {
    CaseResult result = fail(closed_ ? "the process closed its connection"
                                     : fmt::format("{}{} s", kNoAnswer, limitSeconds_));
    result.isLate = true;
    return result;
  }
  // Without a connection it has only its end left to show.
  if (closed_) deadline_ = std::min(deadline_, Clock::now() + std::chrono::seconds(1));
  return std::nullopt;
}

/// The case that runs ends with the process; no reason: for what the process ended of.
CaseResult WorkerProcess::fail(std::string reason) {
  const std::string how = end();
  CaseResult result{.name = names_[*current_], .reason = reason.empty() ? how : std::move(reason)};
  current_.reset();
  return result;
}

/// Ends the process and what it started, and says how it ended.
std::string WorkerProcess::end() {
  if (pid_ < 0) return "";
  // While the first of its group is not waited for, the group's number is not given to others.
  if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);
  close(socket_);
  if (pidFd_ >= 0) close(pidFd_);
  int state = 0;
  while (waitpid(pid_, &state, 0) < 0 && errno == EINTR) {}
  pid_ = socket_ = pidFd_ = -1;
  if (WIFSIGNALED(state)) {
    const char* name = sigabbrev_np(WTERMSIG(state));
    return fmt::format("the process died of SIG{}", name ? name : std::to_string(WTERMSIG(state)));
  }
  if (WEXITSTATUS(state) == kNoConnection) return "the process closed its connection";
  if (WEXITSTATUS(state) == kNoMemory) return "the process had no memory left";
  return fmt::format("the process ended with status {}", WEXITSTATUS(state));
}

} // namespace candela::conformance
