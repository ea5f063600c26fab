// Order, dead stores and copies: the same numbers, never more memory.
#include "core/compiler/program/passes/schedule/schedule.h"

#include <gmock/gmock.h>

#include <functional>
#include <numeric>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"
#include "core/compiler/program/passes/schedule/units.h"
#include "core/reference/interpreter/interp.h"
#include "tests/fuzz/random_program.h"
#include "tests/unit/compiler/program/passes/schedule/runnable_program.h"

namespace candela {
namespace {

using program::denseView;
using program::Instr;
using program::kNone;
using program::Program;
using program::Role;
using program::View;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kPrograms = 150;

std::vector<Tensor> inputsOf(uint64_t seed) {
  std::vector<Tensor> inputs;
  for (uint64_t i = 0; i < 2; ++i) {
    std::vector<float> values;
    for (uint64_t e = 0; e < testing::ProgramMaker::kLarge; ++e)
      values.push_back(static_cast<float>(splitmix64(seed * 100 + i * 50 + e) % 17) - 8);
    inputs.push_back(Tensor::of<float>(Elem::f32_, {testing::ProgramMaker::kLarge}, values));
  }
  return inputs;
}

std::vector<std::vector<std::byte>> bytesOf(const Result<std::vector<Tensor>>& tensors) {
  EXPECT_TRUE(tensors.isOk()) << tensors.status().message();
  std::vector<std::vector<std::byte>> bytes;
  if (!tensors) return bytes;
  for (const Tensor& tensor : *tensors)
    bytes.emplace_back(tensor.bytes.data(), tensor.bytes.data() + tensor.sizeBytes());
  return bytes;
}

/// Buffers by name of f32 elements, and instructions between whole buffers.
struct Builder {
  Program program;
  uint32_t buffer(const char* name, Role role, int64_t elements) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = static_cast<uint64_t>(elements) * 4;
    buffer.offset = role == Role::temp ? CDL_UNPLACED : 0;
    return program.addBuffer(buffer);
  }
  View view(uint32_t buffer) {
    return denseView(buffer, Elem::f32_, {static_cast<int64_t>(program.buffers[buffer].bytes / 4)});
  }
  void add(uint16_t kind, uint16_t fn, std::vector<View> inputs, View output) {
    Instr instr;
    instr.kind = kind;
    instr.fn = fn;
    instr.inputs = std::move(inputs);
    instr.outputs = {std::move(output)};
    program.instrs.push_back(std::move(instr));
  }
  void neg(uint32_t from, uint32_t to) {
    add(CDL_KIND_UNARY, CDL_UNARY_NEG, {view(from)}, view(to));
  }
  void copy(uint32_t from, uint32_t to) { add(CDL_KIND_COPY, 0, {view(from)}, view(to)); }
};

std::vector<uint16_t> kindsOf(const Program& program) {
  std::vector<uint16_t> kinds;
  for (const Instr& instr : program.instrs) kinds.push_back(instr.kind);
  return kinds;
}

TEST(Schedule, KeepsNumbersAndNeverNeedsMore) {
  int shorter = 0, smaller = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::ProgramMaker(seed).make(24);
    ASSERT_TRUE(program::verify(program).isOk()) << program::verify(program).message();
    const auto inputs = inputsOf(seed);
    const auto expected = bytesOf(reference::interpret(program, inputs, {.inPlaceArena = false}));
    const size_t count = program.instrs.size();
    const uint64_t peak = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true))[0];
    const Status status = program::passes::schedule::schedule(program);
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(expected, bytesOf(reference::interpret(program, inputs, {.inPlaceArena = false})));
    const uint64_t now = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true))[0];
    EXPECT_LE(now, peak);
    shorter += program.instrs.size() < count;
    smaller += now < peak;
  }
  EXPECT_GT(shorter, kPrograms / 2);
  EXPECT_GT(smaller, kPrograms / 2);
}

TEST(Schedule, TakesWhateverVerifies) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = test::randomProgram(seed);
    for (program::Buffer& buffer : program.buffers)
      if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
    ASSERT_TRUE(program::verify(program).isOk());
    const Status status = program::passes::schedule::schedule(program);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
}

TEST(Schedule, RunsWhatFreesMemoryFirst) {
  // Two branches that grow by 64 floats each before they shrink: one after the other needs one
  // large buffer.
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 1), y = b.buffer("y", Role::output, 1);
  uint32_t large[2], small[2];
  for (int i = 0; i < 2; ++i) {
    large[i] = b.buffer("large", Role::temp, 64);
    small[i] = b.buffer("small", Role::temp, 1);
    View spread = b.view(x);
    spread.dims = {64};
    spread.strides = {0};
    b.add(CDL_KIND_COPY, 0, {spread}, b.view(large[i]));
  }
  for (int i = 0; i < 2; ++i)
    b.add(CDL_KIND_REDUCE, CDL_REDUCE_SUM, {denseView(large[i], Elem::f32_, {1, 64, 1})},
          denseView(small[i], Elem::f32_, {1, 1}));
  b.add(CDL_KIND_BINARY, CDL_BINARY_ADD, {b.view(small[0]), b.view(small[1])}, b.view(y));
  ASSERT_TRUE(program::passes::schedule::schedule(b.program).isOk());
  EXPECT_THAT(kindsOf(b.program), ElementsAre(CDL_KIND_COPY, CDL_KIND_REDUCE, CDL_KIND_COPY,
                                              CDL_KIND_REDUCE, CDL_KIND_BINARY));
  EXPECT_EQ(program::passes::schedule::peakBytes(
                b.program, program::passes::schedule::sharesOf(b.program, true))[0],
            66 * 4u);
  EXPECT_THAT(b.program.instrs[1].waits, ElementsAre(0));
  EXPECT_THAT(b.program.instrs[2].waits, IsEmpty());
  EXPECT_THAT(b.program.instrs[4].waits, ElementsAre(1, 3));
}

/// What the search counts must be what the memory planner counts, in the order that came and in the
/// one that it found.
TEST(Units, CountWhatThePlannerCounts) {
  int several = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Program program = seed % 2 ? testing::ProgramMaker(seed).make(24) : test::randomProgram(seed);
    for (program::Buffer& buffer : program.buffers)
      if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
    for (const bool reorder : {false, true}) {
      ASSERT_TRUE(program::passes::schedule::schedule(program, {reorder, false}).isOk());
      const program::passes::schedule::Units units = program::passes::schedule::unitsOf(program);
      const std::vector<uint64_t> peaks = program::passes::schedule::peakBytes(
          program, program::passes::schedule::sharesOf(program, true));
      for (uint32_t space = 0; space < program.spaces.size(); ++space) {
        const solvers::order::OrderProblem problem =
            program::passes::schedule::problemOf(program, units, space);
        std::vector<uint32_t> order(problem.tasks.size());
        std::iota(order.begin(), order.end(), 0);
        EXPECT_EQ(solvers::order::peakOf(problem, order), peaks[space]) << "space " << space;
        several += problem.buffers.size() > 3;
      }
    }
  }
  EXPECT_GT(several, 300);
}

/// Elementwise chains over one input that are summed at the end: what a small Program's best order
/// is can be tried out.
TEST(Schedule, FindsTheBestOrderOfSmallPrograms) {
  int lowered = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::ProgramMaker(seed).make(7);
    ASSERT_TRUE(program::passes::schedule::schedule(program, {.reorder = false}).isOk());
    const program::passes::schedule::Units units = program::passes::schedule::unitsOf(program);
    if (units.units.size() > 8) continue;
    uint64_t least = UINT64_MAX;
    std::vector<uint32_t> prefix;
    const std::function<void()> extend = [&] {
      if (prefix.size() == units.units.size()) {
        std::vector<uint32_t> order;
        for (const uint32_t u : prefix)
          for (uint32_t i = 0; i < units.units[u].count; ++i)
            order.push_back(units.units[u].first + i);
        Program other = program;
        program::passes::schedule::reorder(other, order);
        least = std::min(least, program::passes::schedule::peakBytes(
                                    other, program::passes::schedule::sharesOf(other, true))[0]);
      }
      const auto isDone = [&](uint32_t u) { return std::ranges::count(prefix, u) > 0; };
      for (uint32_t u = 0; u < units.units.size(); ++u) {
        if (isDone(u) || !std::ranges::all_of(units.after[u], isDone)) continue;
        prefix.push_back(u);
        extend();
        prefix.pop_back();
      }
    };
    extend();
    const uint64_t own = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true))[0];
    ASSERT_TRUE(program::passes::schedule::schedule(program).isOk());
    EXPECT_EQ(program::passes::schedule::peakBytes(
                  program, program::passes::schedule::sharesOf(program, true))[0],
              least);
    lowered += least < own;
  }
  EXPECT_GT(lowered, 20);
}

TEST(Schedule, ComputesAgainWhatGivesTheSameNumbers) {
  int again = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::ProgramMaker(seed).make(24);
    const auto inputs = inputsOf(seed);
    const auto expected = bytesOf(reference::interpret(program, inputs, {.inPlaceArena = false}));
    ASSERT_TRUE(program::passes::schedule::schedule(program).isOk());
    const uint64_t once = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true))[0];
    const size_t count = program.instrs.size();
    ASSERT_TRUE(program::passes::schedule::schedule(program, {.rematerialize = true}).isOk());
    const uint64_t peak = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true))[0];
    EXPECT_LE(peak, once);
    EXPECT_EQ(peak<once, program.instrs.size()> count);
    again += peak < once;
    ASSERT_TRUE(program::passes::schedule::place(program).isOk());
    EXPECT_TRUE(program::passes::schedule::validatePlacement(program).isOk())
        << program::passes::schedule::validatePlacement(program).message();
    EXPECT_EQ(expected, bytesOf(reference::interpret(program, inputs)));
  }
  EXPECT_GT(again, 5);
}

TEST(Schedule, KeepsWaitsThatNoBytesStandFor) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = test::randomProgram(seed);
    for (program::Buffer& buffer : program.buffers)
      if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
    // By name of what they came from: instructions change places.
    for (uint32_t i = 0; i < program.instrs.size(); ++i)
      program.instrs[i].provenance = {{std::to_string(i), "op"}};
    const Program before = program;
    ASSERT_TRUE(program::passes::schedule::schedule(program, {.rematerialize = true}).isOk());
    std::vector<uint32_t> place(before.instrs.size(), kNone);
    for (uint32_t i = static_cast<uint32_t>(program.instrs.size()); i-- > 0;)
      place[static_cast<size_t>(std::stoul(program.instrs[i].provenance[0].node))] = i;
    for (uint32_t i = 0; i < before.instrs.size(); ++i)
      for (const uint32_t wait : before.instrs[i].waits)
        if (place[i] != kNone && place[wait] != kNone) {
          EXPECT_LT(place[wait], place[i]) << i << " behind " << wait;
        }
  }
}

TEST(Schedule, RemovesDeadStores) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 4), y = b.buffer("y", Role::output, 4);
  const uint32_t t = b.buffer("t", Role::temp, 4), u = b.buffer("u", Role::temp, 4);
  b.neg(x, t);
  b.neg(t, u); // nobody reads u, and then nobody reads t
  b.neg(x, y);
  ASSERT_TRUE(program::passes::schedule::schedule(b.program).isOk());
  EXPECT_EQ(b.program.instrs.size(), 1u);
  EXPECT_EQ(b.program.buffers.size(), 2u);
}

TEST(Schedule, ElidesACopyWhoseTargetCanBeItsSource) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 4), y = b.buffer("y", Role::output, 4);
  const uint32_t t = b.buffer("t", Role::temp, 4), u = b.buffer("u", Role::temp, 4);
  b.copy(x, t);
  b.neg(t, u);
  b.copy(u, y);
  ASSERT_TRUE(program::passes::schedule::schedule(b.program).isOk());
  EXPECT_THAT(kindsOf(b.program), ElementsAre(CDL_KIND_UNARY));
  EXPECT_EQ(b.program.buffers[b.program.instrs[0].inputs[0].buffer].name, "x");
  EXPECT_EQ(b.program.buffers[b.program.instrs[0].outputs[0].buffer].name, "y");
}

TEST(Schedule, KeepsACopyWhoseSourceIsWrittenAgain) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 4), y = b.buffer("y", Role::output, 4),
                 z = b.buffer("z", Role::output, 4);
  const uint32_t t = b.buffer("t", Role::temp, 4), u = b.buffer("u", Role::temp, 4);
  b.neg(x, t);
  b.copy(t, u);
  b.neg(x, t);
  b.add(CDL_KIND_BINARY, CDL_BINARY_ADD, {b.view(t), b.view(u)}, b.view(y));
  b.neg(u, z);
  ASSERT_TRUE(program::passes::schedule::schedule(b.program).isOk());
  EXPECT_EQ(std::ranges::count(kindsOf(b.program), CDL_KIND_COPY), 1);
}

TEST(Schedule, KeepsACopyOfPart) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 8), t = b.buffer("t", Role::temp, 4),
                 y = b.buffer("y", Role::output, 4);
  View half = b.view(t);
  half.buffer = x;
  b.add(CDL_KIND_COPY, 0, {half}, b.view(t));
  b.neg(t, y);
  ASSERT_TRUE(program::passes::schedule::schedule(b.program).isOk());
  EXPECT_THAT(kindsOf(b.program), ElementsAre(CDL_KIND_COPY, CDL_KIND_UNARY));
}

TEST(Schedule, RefusesPlacedBuffers) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 4), t = b.buffer("t", Role::temp, 4);
  b.neg(x, t);
  b.program.buffers[t].offset = 128;
  const Status status = program::passes::schedule::schedule(b.program);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("buffer 't' is already placed at 128"));
}

/// Whether b must stay behind a: they meet on bytes that one of them writes.
bool dependsOn(const Program& program, uint32_t b, uint32_t a) {
  const auto later = program::accessesOf(program, program.instrs[b]);
  for (const program::Access& x : program::accessesOf(program, program.instrs[a]))
    for (const program::Access& y : later)
      if ((x.write || y.write) && x.overlaps(y)) return true;
  return false;
}

TEST(Dependences, MeetOnBytes) {
  Builder b;
  const uint32_t x = b.buffer("x", Role::input, 8), t = b.buffer("t", Role::temp, 8);
  const auto part = [&](uint32_t buffer, int64_t offset, int64_t stride) {
    View view = denseView(buffer, Elem::f32_, {4});
    view.offset = offset;
    view.strides = {stride};
    return view;
  };
  b.add(CDL_KIND_COPY, 0, {part(x, 0, 1)}, part(t, 0, 1)); // 0: first half
  b.add(CDL_KIND_COPY, 0, {part(x, 0, 1)}, part(t, 4, 1)); // 1: second half
  b.add(CDL_KIND_COPY, 0, {part(x, 0, 1)}, part(t, 0, 2)); // 2: every other one
  b.neg(t, t);                                             // 3: reads and writes all
  EXPECT_FALSE(dependsOn(b.program, 1, 0));
  EXPECT_TRUE(dependsOn(b.program, 2, 0));
  EXPECT_TRUE(dependsOn(b.program, 2, 1));
  EXPECT_TRUE(dependsOn(b.program, 3, 0));
  // Placed buffers meet where their bytes do.
  const uint32_t u = b.buffer("u", Role::temp, 4);
  b.neg(u, u); // 4
  b.program.buffers[t].offset = 0;
  b.program.buffers[u].offset = 16;
  EXPECT_FALSE(dependsOn(b.program, 4, 0));
  EXPECT_TRUE(dependsOn(b.program, 4, 1));
}

TEST(Dependences, DirectOnesLeadToAll) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Program program = testing::ProgramMaker(seed).make(20);
    const auto direct = program::directDependences(program);
    // before[i][j]: i stays behind j, by any way.
    std::vector<std::vector<bool>> before(direct.size(), std::vector<bool>(direct.size()));
    for (uint32_t i = 0; i < direct.size(); ++i) {
      for (const uint32_t j : direct[i]) {
        EXPECT_TRUE(dependsOn(program, i, j));
        before[i][j] = true;
        for (uint32_t k = 0; k < j; ++k)
          if (before[j][k]) before[i][k] = true;
      }
      for (uint32_t j = 0; j < i; ++j)
        EXPECT_TRUE(before[i][j] || !dependsOn(program, i, j))
            << i << " behind " << j << " in program " << seed;
    }
  }
}

} // namespace
} // namespace candela
