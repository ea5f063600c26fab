// minimalloc's form: what is written is read again, and damaged text gets a message, never a crash.
#include "core/compiler/program/report/problem_file.h"

#include <gtest/gtest.h>

#include <random>

namespace candela {
namespace {

program::report::NamedProblem randomProblem(std::mt19937_64& rng) {
  program::report::NamedProblem named;
  for (int i = 0; i < 12; ++i) {
    const auto begin = static_cast<int64_t>(rng() % 50) - 10;
    named.problem.buffers.push_back({begin, begin + 1 + static_cast<int64_t>(rng() % 20),
                                     rng() % 1000, uint64_t{1} << rng() % 7});
    named.ids.push_back(fmt::format("b{}", i));
  }
  return named;
}

TEST(ProblemFile, IsReadAsItWasWritten) {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 200; ++round) {
    const program::report::NamedProblem named = randomProblem(rng);
    const auto solved = solvers::memory::planMemory(named.problem);
    ASSERT_TRUE(solved.isOk());
    Diagnostics diagnostics;
    const auto again = program::report::parseProblem(program::report::solutionText(named, *solved),
                                                     "again.csv", diagnostics);
    ASSERT_TRUE(again.isOk()) << again.status().message();
    ASSERT_EQ(again->ids, named.ids);
    for (size_t i = 0; i < named.ids.size(); ++i) {
      const solvers::memory::Interval &a = named.problem.buffers[i], &b = again->problem.buffers[i];
      EXPECT_TRUE(a.begin == b.begin && a.end == b.end && a.size == b.size &&
                  a.alignment == b.alignment);
    }
  }
}

TEST(ProblemFile, DamageIsReported) {
  std::mt19937_64 rng(11);
  const program::report::NamedProblem named = randomProblem(rng);
  const std::string text =
      program::report::solutionText(named, *solvers::memory::planMemory(named.problem));
  constexpr std::string_view kBytes = "0-9,\n\r\"a\0\xff 123456789";
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (uint64_t changes = 1 + rng() % 4; changes > 0; --changes) {
      const size_t at = rng() % damaged.size();
      if (rng() % 2)
        damaged[at] = kBytes[rng() % kBytes.size()];
      else
        damaged.erase(at, 1 + rng() % 5);
    }
    Diagnostics diagnostics;
    const auto parsed = program::report::parseProblem(damaged, "damaged.csv", diagnostics);
    ASSERT_EQ(parsed.isOk(), diagnostics.empty()) << round;
    refused += !parsed;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 20000);
}

} // namespace
} // namespace candela
