// What a run costs beside its kernels, once runs before it made what they leave: no allocation, and
// no system call on one thread. Exact counts: allocations by functions in the place of malloc's,
// system calls by a filter of the kernel.
#include <candela/candela.hpp>
#include <gtest/gtest.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

// ---- Allocations of this process, those of libraries too

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

std::atomic<bool> counting = false;
std::atomic<uint64_t> allocations = 0;

void* counted(void* made) {
  if (counting) ++allocations;
  return made;
}

} // namespace

extern "C" {
void* malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* realloc(void* old, size_t bytes) { return counted(__libc_realloc(old, bytes)); }
void* memalign(size_t alignment, size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** made, size_t alignment, size_t bytes) {
  *made = counted(__libc_memalign(alignment, bytes));
  return *made ? 0 : ENOMEM;
}
}

namespace candela {
namespace {

namespace fs = std::filesystem;

// ---- System calls

/// What a child process under the filter shares with its parent.
struct Counts {
  volatile uint64_t calls = 0;
  volatile long first = -1; ///< number of the first one
  volatile bool ended = false;
};
Counts* shared = nullptr;

void countCall(int, siginfo_t* info, void*) {
  if (shared->calls == 0) shared->first = info->si_syscall;
  shared->calls = shared->calls + 1;
}

/// From here on the kernel turns every system call of this process into a signal, but for those
/// that end it.
bool trapCalls() {
  struct sigaction action = {};
  action.sa_sigaction = countCall;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// System calls that `body` makes, counted in a child process; `first` gets the number of the first
/// one.
template <class F> uint64_t systemCalls(F&& body, long* first = nullptr) {
  void* page =
      mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(page, MAP_FAILED);
  shared = new (page) Counts();
  const pid_t child = fork();
  if (child == 0) {
    if (!trapCalls()) _exit(2);
    body();
    shared->ended = true;
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0 && shared->ended)
      << "the child ended with " << status << " after " << shared->calls
      << " system calls, the first " << shared->first;
  const uint64_t calls = shared->calls;
  if (first) *first = shared->first;
  munmap(page, sizeof(Counts));
  return calls;
}

TEST(Counters, CountWhatIsThere) {
  EXPECT_EQ(systemCalls([] {}), 0u);
  long first = 0;
  EXPECT_EQ(systemCalls([] { syscall(SYS_getppid), syscall(SYS_getuid); }, &first), 2u);
  EXPECT_EQ(first, SYS_getppid);
  allocations = 0;
  counting = true;
  std::free(std::malloc(10));
  delete new int(1);
  std::free(std::aligned_alloc(64, 64));
  counting = false;
  EXPECT_GE(allocations, 2u); // a compiler may leave one out
}

// ---- Models

struct Case {
  const char* name;
  const char* text;
  std::vector<std::string> states = {};
};

const Case kCases[] = {
    {"exp", R"(graph @g(%x: f32[1024,1024]) -> (%y: f32[1024,1024]) {
  %y = exp %x
}
)"},
    {"layers",
     R"(graph @g(%x: f32[4,8,32], %i: i32[8]) -> (%y: f32[4,32,16], %top: i32[4,1,16], %w: f32[4,8,32]) {
  %k = constant random(1) : f32[16,8]
  %n = softmax %x {axis = 2}
  %r = relu %n
  %m = reduce_max %r {axes = [0], keepdims = 1}
  %s = sub %r, %m
  %e = exp %s
  %h = matmul %k, %e
  %y = transpose %h {perm = [0, 2, 1]}
  %top = arg_reduce %y {axis = 1, fn = "max"}
  %w = gather %e, %i {axis = 1}
}
)"},
    {"passed_on",
     R"(graph @g(%x: f32[64], %y: f32[64]) -> (%a: f32[64], %b: f32[64], %c: f32[8,8], %d: f32[3]) {
  %a = add %x, %y
  %b = add %x, %y
  %c = reshape %x {shape = [8, 8]}
  %d = constant [1.0, 2.0, 3.0] : f32[3]
}
)"},
    {"states",
     R"(graph @g(%sum: f32[100], %x: f32[100], %old: f32[100]) -> (%new: f32[100], %twice: f32[100], %last: f32[100]) {
  %new = add %sum, %x
  %twice = add %new, %old
  %last = reshape %x {shape = [100]}
}
)",
     {"sum=new", "old=last"}},
};

std::string fileOf(const Case& of) {
  const std::string name =
      "run_cost_" + std::string(of.name) + "_" + std::to_string(getpid()) + ".cdl";
  const std::string path = (fs::temp_directory_path() / name).string();
  std::ofstream(path) << of.text;
  return path;
}

/// A compiled model with memory for its inputs and outputs.
class Subject {
public:
  Subject(const Case& of, const std::string& backends) {
    const std::string path = fileOf(of);
    sdk::Options options;
    options.backends = backends;
    options.states = of.states;
    model_ = std::make_unique<sdk::Model>(sdk::Model::compile(path, options));
    fs::remove(path);
    for (const sdk::Port& port : model_->inputs()) in_.push_back(tensor(port, of, true));
    for (const sdk::Port& port : model_->outputs()) out_.push_back(tensor(port, of, false));
  }

  void run(int times) {
    for (int i = 0; i < times; ++i) model_->run(in_, out_);
  }

private:
  /// Aligned as malloc does it. A state has none: it is kept.
  candela_tensor_t tensor(const sdk::Port& port, const Case& of, bool isInput) {
    candela_tensor_t tensor{port.elem, static_cast<uint32_t>(port.dims.size()), {}, nullptr, 0};
    std::copy(port.dims.begin(), port.dims.end(), tensor.dims);
    for (const std::string& state : of.states) {
      const size_t equals = state.find('=');
      if (port.name == (isInput ? state.substr(0, equals) : state.substr(equals + 1)))
        return tensor;
    }
    memory_.emplace_back(port.bytes, '\0');
    tensor.data = memory_.back().data();
    tensor.bytes = port.bytes;
    return tensor;
  }

  std::unique_ptr<sdk::Model> model_;
  std::vector<candela_tensor_t> in_, out_;
  std::vector<std::vector<char>> memory_;
};

const Case& caseOf(const std::string& name) {
  return *std::find_if(std::begin(kCases), std::end(kCases),
                       [&](const Case& c) { return c.name == name; });
}

class RunCost : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(RunCost, IsItsKernels) {
  const auto [backends, name] = GetParam();
  const Case& of = caseOf(name);
  ASSERT_EQ(candela_set_threads(1), CANDELA_OK);
  Subject subject(of, backends);
  subject.run(4); // two for each of the two rooms of a state

  allocations = 0;
  counting = true;
  subject.run(10);
  counting = false;
  EXPECT_EQ(allocations, 0u) << "in 10 runs";

  long first = 0;
  EXPECT_EQ(systemCalls([&] { subject.run(10); }, &first), 0u)
      << "in 10 runs, the first one number " << first;
}

std::string placeName(const std::string& backends) {
  std::string stem = fs::path(backends).stem().string();
  const std::string prefix = "libcandela_";
  return stem.rfind(prefix, 0) == 0 ? stem.substr(prefix.size()) : stem;
}

constexpr const char* kBackends[] = {
    "soft",
    PLUGIN_template,
    PLUGIN_door2,
#ifdef PLUGIN_cpu
    PLUGIN_cpu,
#endif
};

std::string nameOf(const testing::TestParamInfo<RunCost::ParamType>& info) {
  return placeName(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, RunCost,
                         testing::Combine(testing::ValuesIn(kBackends),
                                          testing::Values("exp", "layers", "passed_on", "states")),
                         nameOf);

// ---- The tool

/// Threads that compile kernels meet each other sooner or later, and wait in system calls or not:
/// with one processor there is none but the caller's.
void stayOnOneProcessor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// System calls of a program until it ends, at the same addresses each time, but for what it writes
/// to stderr: how far it is, after two seconds. 0 where it cannot be traced.
uint64_t systemCallsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    stayOnOneProcessor();
    if (personality(ADDR_NO_RANDOMIZE) < 0 || ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      _exit(126);
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr))
      _exit(125);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  uint64_t calls = 0;
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 126) return 0;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
    const bool isCall = WSTOPSIG(status) == (SIGTRAP | 0x80);
    __ptrace_syscall_info info{};
    if (isCall &&
        ptrace(PTRACE_GET_SYSCALL_INFO, child, reinterpret_cast<void*>(sizeof info), &info) > 0)
      calls += info.op == PTRACE_SYSCALL_INFO_ENTRY &&
               !(info.entry.nr == SYS_write && info.entry.args[0] == 2);
    const bool isSignal = !isCall && WSTOPSIG(status) != SIGTRAP;
    ptrace(PTRACE_SYSCALL, child, nullptr, isSignal ? WSTOPSIG(status) : 0);
    if (waitpid(child, &status, 0) != child) break;
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << words[1] << " ended with " << status;
  return calls;
}

class ToolCost : public RunCost {};

/// A hundred runs more make no system call more.
TEST_P(ToolCost, IsTheSameForMoreRuns) {
  const auto [backends, name] = GetParam();
  const Case& of = caseOf(name);
  const std::string path = fileOf(of);
  std::vector<std::string> words{TOOL, "run", path, "--backend", backends, "--random", "1"};
  for (const std::string& state : of.states) words.insert(words.end(), {"--state", state});
  const auto repeated = [&](const char* times) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--repeat", times});
    return systemCallsOf(all);
  };
  const uint64_t few = repeated("10"), many = repeated("110");
  fs::remove(path);
  if (few == 0) GTEST_SKIP() << "this system lets nobody trace a program";
  EXPECT_EQ(few, many);
}

INSTANTIATE_TEST_SUITE_P(All, ToolCost,
                         testing::Combine(testing::ValuesIn(kBackends),
                                          testing::Values("layers", "passed_on", "states")),
                         nameOf);

} // namespace
} // namespace candela
