#include "core/support/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

#include "core/support/text/scan.h"

namespace candela {
namespace {

/// How long a thread looks for what comes next before it sleeps: about what waking it costs.
constexpr auto kSpin = std::chrono::microseconds(30);

void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <class F> bool spinFor(F&& done) {
  const auto limit = std::chrono::steady_clock::now() + kSpin;
  for (int i = 0; !done(); ++i) {
    pauseProcessor();
    if (i % 64 == 63 && std::chrono::steady_clock::now() > limit) return done();
  }
  return true;
}

/// Signals of the process go to the threads that the program made; faults to the one that has them.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_;
};

unsigned threadsWithoutRequest() {
  const Result<unsigned> wanted = threadsOfEnvironment();
  if (wanted && wanted.value()) return wanted.value();
  return std::clamp(std::thread::hardware_concurrency(), 1u, WorkerPool::kMostThreads);
}

} // namespace

Result<unsigned> threadsOfEnvironment() {
  const char* text = std::getenv("CANDELA_THREADS");
  if (!text || !*text) return 0u;
  const std::optional<unsigned> count = text::parseNumber<unsigned>(text);
  if (!count || *count < 1 || *count > WorkerPool::kMostThreads)
    return badArgument("CANDELA_THREADS={}: expected a number of 1 to {}", text,
                       WorkerPool::kMostThreads);
  return *count;
}

/// One run in progress, on the stack of who called it.
struct WorkerPool::Call {
  void (*body)(void* arg, uint32_t index);
  void* arg;
  uint32_t count;
  uint32_t places; ///< further threads that may join; below the mutex
  std::fenv_t environment;
  Call* next = nullptr;
  std::atomic<uint64_t> taken{1}; ///< bodies that some thread has, and failed attempts
  std::atomic<uint32_t> helpers{0};

  bool isOpen() const { return places > 0 && taken.load(std::memory_order_relaxed) < count; }
  void work() {
    for (uint64_t i = taken.fetch_add(1); i < count; i = taken.fetch_add(1))
      body(arg, static_cast<uint32_t>(i));
  }
};

// Never destroyed: its threads may still run when static objects go.
WorkerPool& WorkerPool::ofProcess() {
  alignas(WorkerPool) static std::byte memory[sizeof(WorkerPool)];
  static WorkerPool* const pool = [] {
    pthread_atfork(nullptr, nullptr, [] { new (memory) WorkerPool(ofProcess().threads()); });
    return new (memory) WorkerPool(threadsWithoutRequest());
  }();
  return *pool;
}

void WorkerPool::setThreads(unsigned count) {
  const unsigned wanted = count ? std::min(count, kMostThreads) : threadsWithoutRequest();
  threads_.store(wanted, std::memory_order_relaxed);
}

/// With the mutex held.
void WorkerPool::startWorkers(unsigned count) {
  if (denied_ || workers_ >= count) return;
  const SignalsBlocked blocked;
  try {
    for (; workers_ < count; ++workers_) std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
    denied_ = true;
  } catch (const std::bad_alloc&) {
    denied_ = true;
  }
}

void WorkerPool::run(uint32_t count, void (*body)(void* arg, uint32_t index), void* arg) {
  const unsigned others = std::min(threads(), count) - (count ? 1 : 0);
  if (others == 0) {
    for (uint32_t i = 0; i < count; ++i) body(arg, i);
    return;
  }
  Call call{body, arg, count, others, {}};
  std::fegetenv(&call.environment);
  unsigned sleepers = 0;
  {
    const std::lock_guard lock(mutex_);
    startWorkers(threads() - 1);
    call.next = calls_;
    calls_ = &call;
    submitted_.fetch_add(1, std::memory_order_release);
    sleepers = std::min(asleep_, others);
  }
  for (; sleepers; --sleepers) wake_.notify_one();
  body(arg, 0); // the same thread has the same one from call to call
  call.work();
  spinFor([&] { return call.helpers.load(std::memory_order_acquire) == 0; });
  std::unique_lock lock(mutex_);
  call.places = 0; // nobody joins from here on
  for (Call** at = &calls_; *at; at = &(*at)->next)
    if (*at == &call) {
      *at = call.next;
      break;
    }
  done_.wait(lock, [&] { return call.helpers.load(std::memory_order_relaxed) == 0; });
}

WorkerPool::Call* WorkerPool::findCall() const {
  for (Call* call = calls_; call; call = call->next)
    if (call->isOpen()) return call;
  return nullptr;
}

/// A look without the mutex first: the next instruction mostly follows at once.
void WorkerPool::waitForCall(std::unique_lock<std::mutex>& lock) {
  const uint64_t seen = submitted_.load(std::memory_order_relaxed);
  lock.unlock();
  spinFor([&] { return submitted_.load(std::memory_order_acquire) != seen; });
  lock.lock();
  if (findCall()) return;
  ++asleep_;
  wake_.wait(lock, [&] { return findCall() != nullptr; });
  --asleep_;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Call* call = findCall();
    if (!call) {
      waitForCall(lock);
      continue;
    }
    --call->places;
    call->helpers.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    std::fesetenv(&call->environment);
    call->work();
    lock.lock();
    // below the mutex: after this the call may be gone
    if (call->helpers.fetch_sub(1, std::memory_order_release) == 1) done_.notify_all();
  }
}

} // namespace candela
