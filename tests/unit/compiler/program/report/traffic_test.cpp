// Counts against counting one by one, and sums that must agree.
#include "core/compiler/program/report/traffic.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/report/memory_map.h"
#include "tests/fuzz/random_program.h"

namespace candela {
namespace {

using program::Program;
using program::View;

uint64_t countOneByOne(const View& view) {
  std::set<int64_t> reached;
  std::vector<int64_t> index(view.dims.size(), 0);
  if (view.count() == 0) return 0;
  for (;;) {
    int64_t at = view.offset;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * view.strides[d];
    reached.insert(at);
    size_t d = 0;
    while (d < index.size() && ++index[d] == view.dims[d]) index[d++] = 0;
    if (d == index.size()) return reached.size();
  }
}

TEST(DistinctElements, AreWhatCountingOneByOneFinds) {
  std::mt19937_64 rng(1);
  const auto pick = [&](int64_t count) {
    return static_cast<int64_t>(rng() % static_cast<uint64_t>(count));
  };
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    View view;
    view.offset = 1000;
    const int64_t rank = pick(5);
    for (int64_t d = 0; d < rank; ++d) {
      view.dims.push_back(pick(20) ? 1 + pick(5) : 0);
      view.strides.push_back(pick(14) - 3);
    }
    const uint64_t expected = countOneByOne(view);
    overlapping += expected < static_cast<uint64_t>(view.count());
    ASSERT_EQ(program::report::distinctElements(view), expected)
        << fmt::format("round {}: dims {} strides {}", round, fmt::join(view.dims, ","),
                       fmt::join(view.strides, ","));
  }
  EXPECT_GT(overlapping, 1000);
}

TEST(Traffic, SumsAgreeAndMapsAgreeWithTheirPrograms) {
  int maps = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = test::randomProgram(seed);
    if (!program::passes::schedule::place(program)) continue;
    const program::report::ProgramTraffic traffic = program::report::trafficOf(program);
    program::report::Traffic byInstr, byBuffer;
    for (const program::report::Traffic& one : traffic.instrs) byInstr += one;
    for (const program::report::Traffic& one : traffic.buffers) byBuffer += one;
    EXPECT_EQ(byInstr, traffic.total);
    EXPECT_EQ(byBuffer, traffic.total);
    for (const program::report::MemoryMap& map : program::report::memoryMaps(program)) {
      EXPECT_GE(map.arenaBytes, map.maxLiveBytes);
      EXPECT_EQ(map.arenaBytes, program.arenaBytes(map.space));
      if (map.peak == program::kNone) continue;
      ++maps;
      EXPECT_EQ(map.live[map.peak], map.maxLiveBytes);
      EXPECT_FALSE(map.at(map.peak).empty());
    }
  }
  EXPECT_GT(maps, 50);
}

} // namespace
} // namespace candela
