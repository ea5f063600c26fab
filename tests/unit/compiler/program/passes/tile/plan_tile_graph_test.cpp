// Random Graphs, lowered as for a device, tiled for random memories: the tiled Program gives what
// the untiled one gives, on poisoned memory and with every wait checked, or is refused with the
// numbers that disagree.
// CANDELA_TILING_DRAWS and _FIRST: how many instead of the quick few, and from where; the counts
// are printed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "conformance/random/random_graphs.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/lowering/fusion/fuse.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/compiler/program/passes/join_parts/parts.h"
#include "core/compiler/program/passes/schedule/described.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/passes/tile/tile.h"
#include "core/reference/interpreter/interp.h"
#include "tests/fuzz/stacked_graphs.h"
#include "tests/unit/compiler/capabilities/tables.h"
#include "tests/unit/compiler/lowering/layout/blocking.h"
#include "tests/unit/compiler/lowering/layout/random_network.h"
#include "tests/unit/compiler/program/passes/tile/refusals.h"

using namespace candela;

namespace {

struct Drawn {
  program::Program program;
  std::vector<Tensor> inputs;
};

/// As the pipeline goes, up to an order without offsets. Failure: what the target has no rows for.
Result<program::Program> lowered(graph::Graph graph, const capabilities::Target& target) {
  CDL_TRY(lowering::decompose::lower(graph, target));
  CDL_TRY(lowering::layout::chooseLayouts(graph, target).status());
  CDL_TRY(lowering::fusion::fuse(graph, target).status());
  lowering::layout::giveHalos(graph, target);
  CDL_ASSIGN(program::Program program, lowering::emit::emit(graph, target));
  program::passes::join_parts::joinParts(program);
  CDL_TRY(program::passes::schedule::schedule(program));
  return program;
}

/// Networks of convolutions on a device with blocked layouts and borders; products, chains and
/// integers of quantized networks; anything that there is.
Result<Drawn> draw(uint64_t seed) {
  if (seed % 4 < 2) {
    static const capabilities::Target target = candela::testing::blocking();
    auto network = candela::testing::NetworkMaker(seed, seed % 3 ? 5 : 12).make();
    CDL_ASSIGN(auto program, lowered(std::move(network.graph), target));
    return Drawn{std::move(program), std::move(network.inputs)};
  }
  const conformance::random::Recipe recipe =
      seed % 4 == 2 ? conformance::stackedGraph(seed) : conformance::random::randomGraph(seed);
  CDL_ASSIGN(auto graph, recipe.build());
  CDL_ASSIGN(auto program, lowered(std::move(graph), driver::hostTarget()));
  return Drawn{std::move(program), recipe.inputs()};
}

/// One to three levels of 4 KB to 1 MB, the small ones more often, each no larger than the one
/// before it.
program::passes::tile::Machine randomMachine(conformance::random::Random& random) {
  program::passes::tile::Machine machine;
  int64_t most = 20;
  for (int64_t levels = random.between(1, 3), l = 0; l < levels; ++l) {
    most = std::min(random.between(12, most), random.between(12, most));
    const uint64_t bytes = (uint64_t{1} << most) + static_cast<uint64_t>(random.below(3)) * 64;
    machine.memories.push_back({fmt::format("l{}", levels - l), bytes, 8u << random.below(4)});
  }
  if (random.oneIn(3))
    machine.memories.push_back({"sums", uint64_t{1} << random.between(12, 16), 64, true});
  if (random.oneIn(2)) machine.loadEngine = 1, machine.storeEngine = 2;
  machine.costs.bytesPerCycle = static_cast<double>(random.between(1, 64)) / 4;
  machine.costs.copyCycles = static_cast<uint32_t>(random.between(1, 64));
  return machine;
}

/// Two Programs' results of one type, bit by bit; floats of sums that were split may differ as two
/// orders of adding do.
void expectSame(const Tensor& a, const Tensor& b, bool isSplit, size_t output) {
  ASSERT_EQ(a.bytes.size(), b.bytes.size());
  if (std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0) return;
  ASSERT_TRUE(isSplit && a.elem == Elem::f32_) << "output " << output << " differs";
  for (size_t i = 0; i < a.bytes.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.bytes.data() + i, sizeof x), std::memcpy(&y, b.bytes.data() + i, sizeof y);
    ASSERT_LE(std::fabs(x - y), 1e-4f * std::max(1.f, std::fabs(y)))
        << "output " << output << " element " << i / 4;
  }
}

struct Counts {
  int tiled = 0, cut = 0, refused = 0, skipped = 0;
  uint64_t instrs = 0, copies = 0, kept = 0;
};

void tryOne(uint64_t seed, Counts& counts) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  auto drawn = draw(seed);
  if (!drawn) {
    ++counts.skipped;
    return;
  }
  auto expected = reference::interpret(drawn->program, drawn->inputs, {false, false});
  if (!expected) { // random casts and integer divisions have no meaning everywhere
    ++counts.skipped;
    return;
  }
  conformance::random::Random random(seed ^ 0x711e);
  const program::passes::tile::Machine machine = randomMachine(random);
  program::passes::tile::TileOptions options;
  options.buffers = static_cast<uint32_t>(random.between(1, 3));
  options.splitSums = random.oneIn(4);
  options.instrs = 20'000;
  program::Program tiled = drawn->program;
  const auto report = program::passes::tile::tile(tiled, machine, options);
  if (!report) {
    ++counts.refused;
    candela::testing::expectBothNumbers(report.status().message());
    return;
  }
  ++counts.tiled;
  counts.instrs += tiled.instrs.size();
  counts.copies += program::passes::tile::copiesOf(tiled).total.copies;
  bool isCut = false;
  for (const program::passes::tile::TiledStep& step : report->steps) {
    isCut |= step.boxes > 1;
    counts.kept += step.kept.size();
  }
  counts.cut += isCut;
  ASSERT_TRUE(program::verify(tiled)) << program::verify(tiled).message();
  for (uint32_t s = 1; s < tiled.spaces.size(); ++s)
    EXPECT_TRUE(!tiled.spaces[s].local || tiled.arenaBytes(s) <= tiled.spaces[s].capacityBytes);
  auto results = reference::interpret(tiled, drawn->inputs, {true, true});
  ASSERT_TRUE(results) << results.status().message();
  ASSERT_EQ(results->size(), expected->size());
  for (size_t i = 0; i < results->size(); ++i)
    expectSame((*results)[i], (*expected)[i], options.splitSums, i);
}

} // namespace

TEST(PlanTileGraph, DoesWhatItDidBefore) {
  const char* draws = std::getenv("CANDELA_TILING_DRAWS");
  const char* first = std::getenv("CANDELA_TILING_FIRST");
  const uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 0;
  const uint64_t count = draws ? std::strtoull(draws, nullptr, 10) : 40;
  Counts counts;
  for (uint64_t seed = begin; seed < begin + count && !::testing::Test::HasFatalFailure(); ++seed)
    tryOne(seed, counts);
  fmt::print("seeds {}..{}: {} tiled, {} in several tiles, {} refused, {} skipped, {} "
             "instructions, {} copies, {} stays\n",
             begin, begin + count - 1, counts.tiled, counts.cut, counts.refused, counts.skipped,
             counts.instrs, counts.copies, counts.kept);
  if (count >= 40) {
    EXPECT_GT(counts.tiled, static_cast<int>(count / 2));
    EXPECT_GT(counts.cut, static_cast<int>(count / 10));
  }
}

namespace {

/// The first instruction that no row of the target takes; empty: there is none.
std::string refusedBy(const capabilities::Target& target, const program::Program& program) {
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    if (const capabilities::Answer answer =
            target.query(program::passes::schedule::described(program, program.instrs[i]));
        answer.support == capabilities::Support::none)
      return fmt::format("{}: {}", program.instrName(i), answer.detail);
  return "";
}

/// Rows of dense operands alone, as a port has them that walks no strides.
const capabilities::Target& denseTarget() {
  static const capabilities::Target target = [] {
    capabilities::Table table = capabilities::Table::all();
    return table.target().orAbort();
  }();
  return target;
}

/// Ten convolutions of 20 channels, whose columns are parts of matrices that stay in local memory.
graph::Graph chainOfConvolutions() {
  std::string text = "graph @chain(%x: f32[1,1,8,8]) -> (%c9: f32[1,20,8,8]) {\n";
  for (int i = 0; i < 10; ++i)
    text += fmt::format("  %w{0} = constant random({1}) : f32[20,{2},3,3]\n"
                        "  %c{0} = conv {3}, %w{0} {{pads = [1, 1, 1, 1]}} loc(\"C{0}\")\n",
                        i, i + 1, i ? 20 : 1, i ? fmt::format("%c{}", i - 1) : "%x");
  Diagnostics diagnostics;
  return graph::parse(text + "}\n", "chain.cdl", diagnostics).orAbort();
}

/// Tiled for a device of these memories and rows; what its rows took before they take in tiles, and
/// the results stay.
void expectTaken(const program::Program& program, const std::vector<Tensor>& inputs,
                 program::passes::tile::Machine machine) {
  ASSERT_EQ(refusedBy(denseTarget(), program), "");
  machine.target = std::make_shared<const capabilities::Target>(denseTarget());
  program::Program tiled = program;
  const auto report = program::passes::tile::tile(tiled, machine);
  if (!report) return candela::testing::expectBothNumbers(report.status().message());
  EXPECT_EQ(refusedBy(denseTarget(), tiled), "");
  ASSERT_TRUE(program::verify(tiled)) << program::verify(tiled).message();
  const auto expected = reference::interpret(program, inputs, {false, false});
  if (!expected) return;
  const auto results = reference::interpret(tiled, inputs, {true, true});
  ASSERT_TRUE(results) << results.status().message();
  for (size_t i = 0; i < results->size(); ++i) expectSame((*results)[i], (*expected)[i], true, i);
}

} // namespace

TEST(PlanTileGraph, AsksForNoStridesThatNoRowTakes) {
  const program::Program program = lowered(chainOfConvolutions(), denseTarget()).orAbort();
  conformance::random::Random random(7);
  const std::vector<Tensor> inputs{conformance::random::randomData(
      Elem::f32_, {1, 1, 8, 8}, conformance::random::Data::calm, random)};
  for (const uint64_t kilobytes : {8192, 256, 64, 24}) {
    SCOPED_TRACE(fmt::format("{} KB", kilobytes));
    program::passes::tile::Machine machine;
    machine.memories = {{"sram", kilobytes << 10, 64}};
    expectTaken(program, inputs, machine);
  }
}

TEST(PlanTileGraph, AsksForNoStridesInRandomGraphsEither) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const conformance::random::Recipe recipe =
        seed % 2 ? conformance::stackedGraph(seed) : conformance::random::randomGraph(seed);
    auto graph = recipe.build();
    if (!graph) continue;
    const auto program = lowered(std::move(*graph), denseTarget());
    if (!program || !refusedBy(denseTarget(), *program).empty()) continue; // what the host would do
    ++tried;
    conformance::random::Random random(seed ^ 0xde45e);
    expectTaken(*program, recipe.inputs(), randomMachine(random));
  }
  EXPECT_GE(tried, 15);
}

namespace {

/// 24 rows by 40 columns of 3 blocks of 16, of which the last one ends at 41; what goes on with it
/// is read by rows too.
program::Program scaledProduct(const std::string& weights, bool hasZeros) {
  const std::string zeros = hasZeros ? "  %z = constant random(3) : i8[40,3]\n" : "";
  const std::string text =
      fmt::format("graph @scaled(%x: f32[24,41]) -> (%y: f32[24,40]) {{\n"
                  "  %w = constant random(1) : {}[40,3,16]\n"
                  "  %s = constant random(2) : f32[40,3]\n{}"
                  "  %p = scaled_matmul %x, %w, %s{} {{fn = \"exact\", to = f32}}\n"
                  "  %y = relu %p\n}}\n",
                  weights, zeros, hasZeros ? ", %z" : "");
  Diagnostics diagnostics;
  graph::Graph graph = graph::parse(text, "scaled.cdl", diagnostics).orAbort();
  return lowered(std::move(graph), driver::hostTarget()).orAbort();
}

} // namespace

TEST(PlanTileGraph, CutsProductsWithScalesByRowsAndColumns) {
  conformance::random::Random random(7);
  const std::vector<Tensor> inputs{conformance::random::randomData(
      Elem::f32_, {24, 41}, conformance::random::Data::calm, random)};
  size_t cut = 0;
  for (const std::string weights : {"i4", "i8", "u8", "f8e4m3"})
    for (const bool hasZeros : {false, true})
      for (const uint64_t kilobytes : {64, 8, 4, 3, 1}) {
        if (hasZeros && weights == "f8e4m3") continue; // floats have no zero point of integers
        SCOPED_TRACE(fmt::format("{} {} {} KB", weights, hasZeros, kilobytes));
        const program::Program program = scaledProduct(weights, hasZeros);
        program::passes::tile::Machine machine;
        machine.memories = {{"sram", kilobytes << 10, 64}};
        program::Program tiled = program;
        const auto report = program::passes::tile::tile(tiled, machine);
        if (!report) {
          candela::testing::expectBothNumbers(report.status().message());
          continue;
        }
        for (const program::passes::tile::TiledStep& step : report->steps) cut += step.boxes > 1;
        ASSERT_TRUE(program::verify(tiled)) << program::verify(tiled).message();
        const auto expected = reference::interpret(program, inputs, {false, false});
        const auto results = reference::interpret(tiled, inputs, {true, true});
        ASSERT_TRUE(expected && results) << results.status().message();
        for (size_t i = 0; i < results->size(); ++i)
          expectSame((*results)[i], (*expected)[i], false, i);
      }
  EXPECT_GE(cut, 10);
}
