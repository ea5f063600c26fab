// Worker processes: a crash, a hang and an exit are one failed case each, and the run goes on.
#include "core/conform/workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <set>

namespace candela::conform {
namespace {

using Outcome = CaseResult::Outcome;

CaseResult passed() {
  CaseResult result;
  result.outcome = Outcome::passed;
  result.rawPassed = true;
  return result;
}

std::vector<CaseResult> runCases(size_t count, const std::function<CaseResult(size_t)>& run, int jobs = 1,
                                 double limit = 30) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("tier:case_" + std::to_string(i));
  size_t calls = 0;
  auto results = runInWorkers(names, run, {jobs, limit},
                              [&](const CaseResult&, size_t finished) { EXPECT_EQ(finished, ++calls); });
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

TEST(Workers, StateStaysInTheWorker) {
  int counter = 0;
  runCases(3, [&](size_t) {
    ++counter;
    return passed();
  });
  EXPECT_EQ(counter, 0);
}

TEST(Workers, NoCaseIsNoWork) {
  EXPECT_TRUE(runCases(0, [](size_t) { return passed(); }).empty());
}

} // namespace
} // namespace candela::conform
