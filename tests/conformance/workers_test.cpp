// Worker processes: a crash, a hang and an exit are one failed case each, and the run goes on.
#include "conformance/workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include <set>

#include "conformance/repeated.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

CaseResult passed() {
  CaseResult result;
  result.outcome = Outcome::passed;
  result.rawPassed = true;
  return result;
}

std::vector<CaseResult> runCases(size_t count, const std::function<CaseResult(size_t)>& run,
                                 int jobs = 1, double limit = 30) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("tier:case_" + std::to_string(i));
  size_t calls = 0;
  auto results = runInWorkers(names, run, {jobs, limit}, [&](const CaseResult&, size_t finished) {
    EXPECT_EQ(finished, ++calls);
  });
  EXPECT_TRUE(results.isOk()) << results.status().message();
  EXPECT_EQ(calls, count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(results->at(i).name, names[i]);
  return *results;
}

TEST(Workers, BringEveryFieldBack) {
  const auto results = runCases(
      5,
      [](size_t i) {
        CaseResult result = passed();
        result.outcome = i == 3 ? Outcome::unsupported : Outcome::passed;
        result.reason = i == 3 ? "line\n\"quoted\"" : "";
        result.work = {i, 2, 3, 4};
        result.milliseconds = 1.5;
        return result;
      },
      2);
  EXPECT_EQ(results[3].outcome, Outcome::unsupported);
  EXPECT_EQ(results[3].reason, "line\n\"quoted\"");
  EXPECT_EQ(results[4].work.nodes, 4u);
  EXPECT_EQ(results[4].work.nativeMacs, 4u);
  EXPECT_TRUE(results[0].rawPassed);
  EXPECT_EQ(results[0].milliseconds, 1.5);
}

/// Counts the runs of each case over all processes.
class SharedCounts {
public:
  explicit SharedCounts(size_t count)
      : counts_(static_cast<std::atomic<int>*>(mmap(nullptr, count * sizeof(std::atomic<int>),
                                                    PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  int next(size_t i) const { return counts_[i]++; }
  int operator[](size_t i) const { return counts_[i]; }

private:
  std::atomic<int>* counts_; // goes with the test
};

TEST(Workers, TellWhatIsWrongFromWhatIsUnsteady) {
  const std::vector<std::string> names = {"ops:right",  "ops:wrong",   "ops:now_and_then",
                                          "ops:other",  "ops:crashes", "queue:waits",
                                          "ops:says_so"};
  const SharedCounts counts(names.size());
  const auto run = [&](size_t i) -> CaseResult {
    const int before = counts.next(i);
    CaseResult result = passed();
    if (i == 0 || (i == 2 && before == 1)) return result;
    if (i == 4 && before > 0) std::abort();
    result.outcome = Outcome::failed;
    result.reason = i == 6   ? std::string("result 0: ") + kOtherBytes
                    : i >= 3 ? fmt::format("element 7 is {}", before)
                             : "element 7 is 3";
    return result;
  };
  size_t told = 0;
  const auto results =
      runInWorkers(names, run, {.jobs = 2, .timeLimitSeconds = 60, .repeats = 2},
                   [&](const CaseResult&, size_t finished) { EXPECT_EQ(finished, ++told); });
  ASSERT_TRUE(results.isOk()) << results.status().message();
  EXPECT_EQ(told, names.size());
  using Again = CaseResult::Again;
  const Again expected[] = {Again::unknown,   Again::same, Again::otherwise, Again::otherwise,
                            Again::otherwise, Again::same, Again::otherwise};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(results->at(i).name, names[i]);
    EXPECT_EQ(results->at(i).outcome, i == 0 ? Outcome::passed : Outcome::failed) << names[i];
    EXPECT_EQ(results->at(i).again, expected[i]) << names[i];
    EXPECT_EQ(counts[i], i == 0 ? 1 : 3) << names[i];
  }
  EXPECT_EQ(results->at(1).reason, "element 7 is 3");
  EXPECT_EQ(results->at(2).reason, "unsteady, 2 of 3 runs fail: element 7 is 3");
  EXPECT_EQ(results->at(3).reason, "unsteady, fails in 3 runs, not alike: element 7 is 0");
}

TEST(Workers, DoNotRepeatWhatHangs) {
  const SharedCounts counts(1);
  const auto run = [&](size_t) -> CaseResult {
    counts.next(0);
    for (;;) pause();
  };
  const auto results =
      runInWorkers({"ops:hangs"}, run, {.jobs = 1, .timeLimitSeconds = 0.2, .repeats = 2}, {});
  ASSERT_TRUE(results.isOk()) << results.status().message();
  EXPECT_EQ(results->at(0).again, CaseResult::Again::unknown);
  EXPECT_EQ(counts[0], 1);
}

TEST(Workers, ACrashIsOneFailedCase) {
  for (const int jobs : {1, 3}) {
    const auto results = runCases(
        12,
        [](size_t i) {
          if (i == 4) raise(SIGSEGV);
          if (i == 5) std::abort();
          if (i == 6) _exit(3);
          return passed();
        },
        jobs);
    std::set<size_t> failed;
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].outcome != Outcome::passed) failed.insert(i);
    EXPECT_EQ(failed, (std::set<size_t>{4, 5, 6}));
    EXPECT_EQ(results[5].reason, "the process died of SIGABRT");
    EXPECT_EQ(results[6].reason, "the process ended with status 3");
  }
}

TEST(Workers, AHangEndsAtTheLimit) {
  const auto results = runCases(
      4,
      [](size_t i) {
        while (i == 1) pause();
        return passed();
      },
      2, 0.3);
  EXPECT_EQ(results[1].outcome, Outcome::failed);
  EXPECT_EQ(results[1].reason, "no answer after 0.3 s");
  EXPECT_EQ(results[0].outcome, Outcome::passed);
  EXPECT_EQ(results[3].outcome, Outcome::passed);
}

TEST(Workers, AnExceptionIsAFailedCase) {
  const auto results = runCases(2, [](size_t i) -> CaseResult {
    if (i == 0) throw std::runtime_error("no more");
    return passed();
  });
  EXPECT_EQ(results[0].outcome, Outcome::failed);
  EXPECT_EQ(results[0].reason, "threw: no more");
  EXPECT_EQ(results[1].outcome, Outcome::passed);
}

TEST(Workers, AnExceptionOfAnyKindIsAFailedCase) {
  const auto results = runCases(2, [](size_t i) -> CaseResult {
    if (i == 0) throw 7;
    return passed();
  });
  EXPECT_EQ(results[0].reason, "threw something that is no std::exception");
  EXPECT_EQ(results[1].outcome, Outcome::passed);
}

/// Case 1 of 4 fails with the reason, the others pass.
void expectOneFailure(const std::function<void()>& deed, const std::string& reason,
                      double limit = 30) {
  const auto results = runCases(
      4,
      [&](size_t i) {
        if (i == 1) deed();
        return passed();
      },
      1, limit);
  EXPECT_EQ(results[1].outcome, Outcome::failed);
  EXPECT_EQ(results[1].reason, reason);
  for (const size_t i : {0, 2, 3})
    EXPECT_EQ(results[i].outcome, Outcome::passed) << i << ": " << results[i].reason;
}

/// The sockets of this process.
std::vector<int> sockets() {
  std::vector<int> found;
  for (int fd = 0; fd < 2000; ++fd)
    if (struct stat info; fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) found.push_back(fd);
  return found;
}

TEST(Workers, AnExitThatCallsItselfASuccessIsAFailedCase) {
  expectOneFailure([] { _exit(0); }, "the process ended with status 0");
  expectOneFailure([] { std::quick_exit(0); }, "the process ended with status 0");
}

TEST(Workers, AChildThatHoldsTheSocketHidesNoEnd) {
  const auto start = std::chrono::steady_clock::now();
  expectOneFailure(
      [] {
        if (fork() == 0)
          for (;;) pause();
        _exit(5);
      },
      "the process ended with status 5");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Workers, AForkThatReturnsTwiceIsAFailedCase) {
  const std::string reason = "the backend forked, and returned in both processes";
  expectOneFailure([] { (void)fork(); }, reason);
  expectOneFailure([] { (void)fork(), (void)fork(), (void)fork(); }, reason);
}

TEST(Workers, AChildThatStaysIsNoFailure) {
  pid_t child = -1;
  const auto results = runCases(3, [&](size_t i) {
    if (i == 0 && (child = fork()) == 0)
      for (;;) pause();
    CaseResult result = passed();
    result.reason = std::to_string(child);
    return result;
  });
  for (const CaseResult& result : results)
    EXPECT_EQ(result.outcome, Outcome::passed) << result.reason;
  // It ends with its worker, which has been waited for; the child may yet be on its way out.
  const pid_t left = std::stoi(results[2].reason);
  for (int i = 0; i < 1000 && kill(left, 0) == 0; ++i) {
    std::ifstream stat(fmt::format("/proc/{}/stat", left));
    std::string number, name, state;
    if (stat >> number >> name >> state; state == "Z") break;
    usleep(10000);
    ASSERT_LT(i, 999);
  }
}

TEST(Workers, AClosedConnectionIsAFailedCase) {
  expectOneFailure(
      [] {
        for (const int fd : sockets()) close(fd);
      },
      "the process closed its connection");
  expectOneFailure(
      [] {
        for (const int fd : sockets()) close(fd);
        for (;;) pause();
      },
      "the process closed its connection");
}

TEST(Workers, NonsenseOnTheConnectionIsAFailedCase) {
  const auto say = [](const std::string& text) {
    for (const int fd : sockets()) (void)send(fd, text.data(), text.size(), 0);
  };
  expectOneFailure([&] { say(std::string(100, 'x')); }, "the process answered nonsense");
  // The beginning of an answer, and nothing more.
  const uint64_t head[] = {0x43444C434F4E464D, 1, 1000, 0};
  std::string begun(sizeof head, 0);
  std::memcpy(begun.data(), head, sizeof head);
  expectOneFailure(
      [&] {
        say(begun);
        for (;;) pause();
      },
      "no answer after 0.3 s", 0.3);
}

TEST(Workers, AStoppedProcessEndsAtTheLimit) {
  expectOneFailure([] { raise(SIGSTOP); }, "no answer after 0.3 s", 0.3);
}

TEST(Workers, StateStaysInTheWorker) {
  int counter = 0;
  runCases(3, [&](size_t) {
    ++counter;
    return passed();
  });
  EXPECT_EQ(counter, 0);
}

TEST(Workers, StateOfACaseEndsWithItWhereCasesAreIsolated) {
  int state = 0;
  const auto run = [&](size_t) {
    CaseResult result = passed();
    result.reason = std::to_string(++state);
    return result;
  };
  const auto results =
      runInWorkers({"a", "b", "c"}, run, {.jobs = 1, .isolates = true}, nullptr).orAbort();
  for (const CaseResult& result : results) EXPECT_EQ(result.reason, "1") << result.name;
}

TEST(Workers, NoCaseIsNoWork) {
  EXPECT_TRUE(runCases(0, [](size_t) { return passed(); }).empty());
}

} // namespace
} // namespace candela::conformance
