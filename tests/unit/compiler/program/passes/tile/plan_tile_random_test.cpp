// Random Programs tiled for random memories do what they did before: bit by bit, on poisoned
// memory, with no access out of order. CANDELA_TILING_DRAWS: how many instead of the quick few; the
// counts are printed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/text.h"
#include "core/reference/interpreter/interp.h"
#include "tests/unit/compiler/program/passes/tile/random_layers.h"
#include "tests/unit/compiler/program/passes/tile/refusals.h"

using namespace candela;
using namespace candela::testing;

namespace {

/// One to three levels of 256 bytes to 1 MB, the inner ones no larger, sometimes a memory for sums.
program::passes::tile::Machine randomMachine(LayerMaker& random) {
  program::passes::tile::Machine machine;
  int64_t most = 20;
  for (int64_t levels = random.between(1, 3), l = 0; l < levels; ++l) {
    most = random.between(8, most);
    const uint64_t bytes = (uint64_t{1} << most) + static_cast<uint64_t>(random.below(3)) * 64;
    machine.memories.push_back({fmt::format("l{}", levels - l), bytes, 8u << random.below(4)});
  }
  if (random.oneIn(3))
    machine.memories.push_back({"sums", uint64_t{1} << random.between(7, 16), 64, true});
  if (random.oneIn(2)) machine.loadEngine = 1, machine.storeEngine = 2;
  machine.costs.bytesPerCycle = static_cast<double>(random.between(1, 64));
  machine.costs.storesLast = random.oneIn(2);
  return machine;
}

/// One memory that the largest value hardly fits in, or hardly does not: there chains of other
/// shapes pay.
program::passes::tile::Machine tightMachine(LayerMaker& random, const program::Program& program) {
  uint64_t largest = 0;
  for (const program::Buffer& buffer : program.buffers)
    if (buffer.role == program::Role::temp) largest = std::max(largest, buffer.bytes);
  program::passes::tile::Machine machine;
  const uint64_t bytes = largest * static_cast<uint64_t>(random.between(2, 15)) / 10;
  machine.memories.push_back({"l1", std::max<uint64_t>(bytes, 512), 8u << random.below(4)});
  machine.costs.copyCycles = machine.costs.instrCycles = 1;
  machine.costs.bytesPerCycle = 0.25;
  if (random.oneIn(2))
    machine.loadEngine = 1, machine.storeEngine = 2, machine.costs.storesLast = true;
  return machine;
}

struct Counts {
  int tiled = 0, refused = 0;
  uint64_t instrs = 0, copies = 0, kept = 0;
  uint64_t reshaped = 0; ///< chains that go on with another shape
};

void tryOne(uint64_t seed, Counts& counts) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  LayerMaker maker(seed);
  program::Program program = maker.make();
  const std::vector<Tensor> inputs = maker.inputs();
  program::rebuildWaits(program);
  ASSERT_TRUE(program::verify(program)) << program::verify(program).message();
  auto expected = reference::interpret(program, inputs);
  ASSERT_TRUE(expected) << expected.status().message();
  const program::passes::tile::Machine machine =
      seed % 2 == 0 ? tightMachine(maker, program) : randomMachine(maker);
  program::passes::tile::TileOptions options;
  options.buffers = static_cast<uint32_t>(maker.between(1, 3));
  options.keep = !maker.oneIn(4), options.fuse = !maker.oneIn(4),
  options.prefetch = !maker.oneIn(4);
  options.instrs = 20'000;
  program::Program tiled = program;
  const auto report = program::passes::tile::tile(tiled, machine, options);
  if (!report) {
    ++counts.refused;
    candela::testing::expectBothNumbers(report.status().message());
    return;
  }
  ++counts.tiled;
  counts.instrs += tiled.instrs.size();
  ASSERT_TRUE(program::verify(tiled)) << program::verify(tiled).message();
  ASSERT_TRUE(program::passes::schedule::validatePlacement(tiled))
      << program::passes::schedule::validatePlacement(tiled).message();
  for (uint32_t s = 1; s < tiled.spaces.size(); ++s)
    EXPECT_LE(tiled.arenaBytes(s), tiled.spaces[s].capacityBytes);
  const program::passes::tile::CopiedBytes copied = program::passes::tile::copiesOf(tiled).total;
  counts.copies += copied.copies;
  uint64_t steps = 0, moved = 0, least = 0;
  for (const program::passes::tile::TiledStep& step : report->steps) {
    counts.kept += step.kept.size();
    counts.reshaped += std::any_of(step.kinds.begin() + 1, step.kinds.end(), [](uint16_t kind) {
      return kind == CDL_KIND_CONV2D || kind == CDL_KIND_POOL2D || kind == CDL_KIND_REDUCE ||
             kind == CDL_KIND_SOFTMAX || kind == CDL_KIND_NORM;
    });
    steps += step.loadedBytes + step.storedBytes;
    for (const program::passes::tile::MovedValue& value : step.moved) {
      moved += value.loadedBytes + value.storedBytes;
      least += value.leastBytes;
    }
  }
  EXPECT_EQ(moved, steps);
  EXPECT_EQ(least, report->boundBytes);
  if (machine.memories.size() == 1u + machine.memories.back().sums) {
    EXPECT_EQ(copied.memory(), steps);
  } else {
    // copies that compute are in no step's account
    EXPECT_GE(copied.memory() + copied.inner, steps);
  }
  // What computes does so on local memory alone.
  for (uint32_t i = 0; i < tiled.instrs.size(); ++i)
    for (const auto* views : {&tiled.instrs[i].inputs, &tiled.instrs[i].outputs})
      for (const program::View& view : *views)
        EXPECT_TRUE(tiled.instrs[i].kind == CDL_KIND_COPY ||
                    tiled.spaces[tiled.buffers[view.buffer].space].local)
            << tiled.instrName(i);
  const auto text = program::print(tiled);
  ASSERT_TRUE(text) << text.status().message();
  auto results = reference::interpret(tiled, inputs, {true, true});
  ASSERT_TRUE(results) << results.status().message();
  ASSERT_EQ(results->size(), expected->size());
  for (size_t i = 0; i < results->size(); ++i) {
    const Bytes &a = (*results)[i].bytes, &b = (*expected)[i].bytes;
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0) << "output " << i;
  }
}

} // namespace

TEST(PlanTileRandom, DoesWhatItDidBefore) {
  const char* draws = std::getenv("CANDELA_TILING_DRAWS");
  const char* first = std::getenv("CANDELA_TILING_FIRST");
  const uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 0;
  const uint64_t count = draws ? std::strtoull(draws, nullptr, 10) : 60;
  Counts counts;
  for (uint64_t seed = begin; seed < begin + count && !::testing::Test::HasFatalFailure(); ++seed)
    tryOne(seed, counts);
  fmt::print(
      "seeds {}..{}: {} tiled, {} refused, {} instructions, {} copies, {} stays, {} reshaped\n",
      begin, begin + count - 1, counts.tiled, counts.refused, counts.instrs, counts.copies,
      counts.kept, counts.reshaped);
  if (count >= 60) {
    EXPECT_GT(counts.tiled, static_cast<int>(count / 2));
    EXPECT_GT(counts.refused, 0);
    EXPECT_GT(counts.kept, 0u);
    EXPECT_GT(counts.reshaped, 0u);
  }
}
