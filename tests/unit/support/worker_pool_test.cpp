// The pool of the process: every body once, whoever calls, whatever the system gives.
#include "core/support/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "candela/backend/parallel.hpp"

namespace candela {
namespace {

using Body = std::function<void(uint32_t)>;

void runInPool(void*, uint32_t count, void (*body)(void*, uint32_t), void* arg) {
  WorkerPool::ofProcess().run(count, body, arg);
}

cdl_host_t hostWith(decltype(cdl_host_t::parallel_for) parallelFor) {
  cdl_host_t host{};
  host.header = CDL_HEADER(cdl_host_t);
  host.parallel_for = parallelFor;
  return host;
}

void inPool(uint32_t count, const Body& body) {
  cdl::parallelFor(hostWith(runInPool), count, body);
}

/// Whether a host calls every body exactly once, and has when it returns.
bool keepsItsPromise(decltype(cdl_host_t::parallel_for) parallelFor) {
  const cdl_host_t host = hostWith(parallelFor);
  for (const uint32_t count : {0u, 1u, 2u, 3u, 8u, 1000u}) {
    std::vector<std::atomic<int>> calls(count);
    cdl::parallelFor(host, count, [&](uint32_t i) { calls.at(i).fetch_add(1); });
    for (const std::atomic<int>& of : calls)
      if (of.load() != 1) return false;
  }
  return true;
}

// ThreadSanitizer follows no threads of a child; a sanitizer takes terabytes of addresses.
#if defined(__SANITIZE_THREAD__)
#define TEST_OF_CHILDREN(name) TEST(WorkerPool, DISABLED_##name)
#else
#define TEST_OF_CHILDREN(name) TEST(WorkerPool, name)
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_OF_ADDRESSES(name) TEST(WorkerPool, DISABLED_##name)
#else
#define TEST_OF_ADDRESSES(name) TEST(WorkerPool, name)
#endif

/// How a child ends in which `holds` is asked.
int endOfChild(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// The first test: of threads that ended the C library keeps the stacks, for threads to come.
TEST_OF_ADDRESSES(WithoutThreadsTheCallerRunsAll) {
  EXPECT_EQ(endOfChild([] {
              const rlimit limit{1 << 20, 1 << 20}; // no room for the stack of a thread
              if (setrlimit(RLIMIT_AS, &limit)) return false;
              WorkerPool::ofProcess().setThreads(8);
              const auto caller = std::this_thread::get_id();
              std::atomic<int> elsewhere{0};
              inPool(100, [&](uint32_t) {
                if (std::this_thread::get_id() != caller) elsewhere.fetch_add(1);
              });
              return elsewhere.load() == 0 && keepsItsPromise(runInPool);
            }),
            0);
}

TEST(WorkerPool, CallsEveryBodyOnce) {
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    WorkerPool::ofProcess().setThreads(threads);
    for (int round = 0; round < 200; ++round) ASSERT_TRUE(keepsItsPromise(runInPool)) << threads;
  }
}

// What the test above would say of hosts that do not.
TEST(WorkerPool, AHostThatLosesOrRepeatsABodyIsFound) {
  EXPECT_TRUE(keepsItsPromise(nullptr));
  EXPECT_FALSE(keepsItsPromise([](void*, uint32_t count, void (*body)(void*, uint32_t), void* arg) {
    for (uint32_t i = 0; i + 1 < count; ++i) body(arg, i);
  }));
  EXPECT_FALSE(keepsItsPromise([](void*, uint32_t count, void (*body)(void*, uint32_t), void* arg) {
    for (uint32_t i = 0; i < count; ++i) body(arg, i);
    if (count) body(arg, count - 1);
  }));
  EXPECT_FALSE(keepsItsPromise([](void*, uint32_t count, void (*body)(void*, uint32_t), void* arg) {
    for (uint32_t i = 0; i < count; ++i) body(arg, i / 2 * 2);
  }));
}

// Each body waits for the others: on one thread alone this would have no end.
TEST(WorkerPool, BodiesRunOnAsManyThreadsAsAreAskedFor) {
  constexpr unsigned kThreads = 4;
  WorkerPool::ofProcess().setThreads(kThreads);
  for (int round = 0; round < 20; ++round) {
    std::latch all(kThreads);
    inPool(kThreads, [&](uint32_t) { all.arrive_and_wait(); });
  }
}

TEST(WorkerPool, BodiesAndSeveralThreadsMayCallIt) {
  WorkerPool::ofProcess().setThreads(3);
  std::atomic<int> calls{0};
  const auto nested = [&] {
    for (int round = 0; round < 50; ++round)
      inPool(5, [&](uint32_t) { inPool(7, [&](uint32_t) { calls.fetch_add(1); }); });
  };
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) callers.emplace_back(nested);
  }
  EXPECT_EQ(calls.load(), 4 * 50 * 5 * 7);
}

TEST(WorkerPool, WhatABodyThrowsIsThrownToWhoCalled) {
  WorkerPool::ofProcess().setThreads(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls{0};
    EXPECT_THROW(inPool(100,
                        [&](uint32_t i) {
                          calls.fetch_add(1);
                          if (i == 3) throw std::out_of_range("body 3");
                        }),
                 std::out_of_range);
    EXPECT_LE(calls.load(), 100);
  }
}

TEST(WorkerPool, BodiesRoundAsTheirCallerDoes) {
  constexpr unsigned kThreads = 3;
  WorkerPool::ofProcess().setThreads(kThreads);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST}) {
    std::fesetround(mode);
    std::latch all(kThreads); // each on a thread of its own
    std::atomic<int> same{0};
    inPool(kThreads, [&](uint32_t) {
      if (std::fegetround() == mode) same.fetch_add(1);
      all.arrive_and_wait();
    });
    EXPECT_EQ(same.load(), int{kThreads});
  }
}

TEST(WorkerPool, NumberOfThreads) {
  WorkerPool& pool = WorkerPool::ofProcess();
  pool.setThreads(5);
  EXPECT_EQ(pool.threads(), 5u);
  pool.setThreads(1u << 20);
  EXPECT_EQ(pool.threads(), WorkerPool::kMostThreads);
  setenv("CANDELA_THREADS", "7", 1);
  pool.setThreads(0);
  EXPECT_EQ(pool.threads(), 7u);
  for (const char* wrong : {"0", "4097", "-1", "many", "2 ", "1e1"}) {
    setenv("CANDELA_THREADS", wrong, 1);
    EXPECT_EQ(threadsOfEnvironment().status().message(),
              std::string("CANDELA_THREADS=") + wrong + ": expected a number of 1 to 4096");
  }
  unsetenv("CANDELA_THREADS");
  EXPECT_EQ(threadsOfEnvironment().value(), 0u);
  pool.setThreads(0);
  EXPECT_GE(pool.threads(), 1u);
}

TEST_OF_CHILDREN(AChildHasThreadsOfItsOwn) {
  WorkerPool::ofProcess().setThreads(3);
  ASSERT_TRUE(keepsItsPromise(runInPool));
  EXPECT_EQ(endOfChild([] {
              std::latch all(3);
              inPool(3, [&](uint32_t) { all.arrive_and_wait(); });
              return WorkerPool::ofProcess().threads() == 3 && keepsItsPromise(runInPool);
            }),
            0);
  EXPECT_TRUE(keepsItsPromise(runInPool));
}

} // namespace
} // namespace candela
