// Offsets: the same numbers in one arena as in buffers of their own, and a validator that sees
// every kind of mistake.
#include <gmock/gmock.h>

#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/schedule.h"
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
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kPrograms = 150;

std::vector<Tensor> inputsOf(uint64_t seed) {
  std::vector<Tensor> inputs;
  for (uint64_t i = 0; i < 2; ++i)
    inputs.push_back(*randomTensor(Elem::f32_, {testing::ProgramMaker::kLarge}, seed + i));
  return inputs;
}

void expectEqualBytes(const Result<std::vector<Tensor>>& a, const Result<std::vector<Tensor>>& b) {
  ASSERT_TRUE(a.isOk()) << a.status().message();
  ASSERT_TRUE(b.isOk()) << b.status().message();
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i) {
    ASSERT_EQ((*a)[i].sizeBytes(), (*b)[i].sizeBytes());
    EXPECT_TRUE(std::equal((*a)[i].bytes.data(), (*a)[i].bytes.data() + (*a)[i].sizeBytes(),
                           (*b)[i].bytes.data()));
  }
}

TEST(Place, KeepsNumbersInOneArena) {
  int shared = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::ProgramMaker(seed).make(24);
    const auto inputs = inputsOf(seed);
    const auto expected = reference::interpret(program, inputs, {.inPlaceArena = false});
    if (seed % 2) {
      ASSERT_TRUE(program::passes::schedule::schedule(program).isOk());
    }
    uint64_t separate = 0;
    for (const auto& buffer : program.buffers)
      separate += buffer.role == Role::temp ? buffer.bytes : 0;
    const auto report = program::passes::schedule::place(program);
    ASSERT_TRUE(report.isOk()) << report.status().message();
    ASSERT_TRUE(program::verify(program).isOk()) << program::verify(program).message();
    EXPECT_TRUE(program::passes::schedule::validatePlacement(program).isOk());
    EXPECT_GE(report->arenaBytes, report->maxLiveBytes);
    EXPECT_EQ(report->arenaBytes, program.arenaBytes());
    shared += report->arenaBytes < separate;
    expectEqualBytes(expected, reference::interpret(program, inputs));
  }
  EXPECT_GT(shared, kPrograms / 2);
}

TEST(Place, TakesWhateverVerifies) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = test::randomProgram(seed);
    const auto report = program::passes::schedule::place(program);
    if (report) {
      EXPECT_TRUE(program::verify(program).isOk()) << program::verify(program).message();
    } else {
      EXPECT_EQ(report.status().code(), Code::out_of_memory) << report.status().message();
    }
  }
}

/// x -> neg -> a -> fn -> b -> neg -> y, all of 16 floats.
Program chain(uint16_t kind, uint16_t fn) {
  Program program;
  for (const char* name : {"x", "a", "b", "y"}) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.bytes = 64;
    buffer.role = *name == 'x' ? Role::input : *name == 'y' ? Role::output : Role::temp;
    if (buffer.role != Role::temp) buffer.offset = 0;
    program.addBuffer(buffer);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    Instr instr;
    instr.kind = i == 1 ? kind : uint16_t{CDL_KIND_UNARY};
    instr.fn = i == 1 ? fn : uint16_t{CDL_UNARY_NEG};
    instr.inputs = {denseView(i, Elem::f32_, {16})};
    instr.outputs = {denseView(i + 1, Elem::f32_, {16})};
    program.instrs.push_back(instr);
  }
  return program;
}

TEST(Place, LetsAnElementwiseResultTakeItsOperandsPlace) {
  Program program = chain(CDL_KIND_UNARY, CDL_UNARY_ABS);
  const auto report = program::passes::schedule::place(program);
  ASSERT_TRUE(report.isOk());
  EXPECT_EQ(report->arenaBytes, 64u);
  EXPECT_EQ(program.buffers[1].offset, program.buffers[2].offset);
}

TEST(Place, KeepsALookedUpTableApart) {
  // Of 256 bytes through 256 entries: both could die here, but entries are read in any order.
  Program program;
  for (const char* name : {"x", "a", "table", "y", "out"}) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.bytes = 256;
    buffer.role = *name == 'x' ? Role::input : *name == 'o' ? Role::output : Role::temp;
    if (buffer.role != Role::temp) buffer.offset = 0;
    program.addBuffer(buffer);
  }
  const auto add = [&](uint16_t kind, std::vector<uint32_t> from, uint32_t to) {
    Instr instr;
    instr.kind = kind;
    for (const uint32_t buffer : from) instr.inputs.push_back(denseView(buffer, Elem::i8_, {256}));
    instr.outputs = {denseView(to, Elem::i8_, {256})};
    program.instrs.push_back(instr);
  };
  add(CDL_KIND_COPY, {0}, 1);
  add(CDL_KIND_COPY, {0}, 2);
  add(CDL_KIND_TABLE, {1, 2}, 3);
  add(CDL_KIND_COPY, {3}, 4);
  const auto report = program::passes::schedule::place(program);
  ASSERT_TRUE(report.isOk()) << report.status().message();
  EXPECT_EQ(program.buffers[3].offset, program.buffers[1].offset);
  EXPECT_NE(program.buffers[3].offset, program.buffers[2].offset);
  EXPECT_EQ(report->arenaBytes, 512u);
  program.buffers[1].offset = 256;
  program.buffers[2].offset = 0;
  program.buffers[3].offset = 0;
  EXPECT_THAT(program::passes::schedule::validatePlacement(program).message(),
              HasSubstr("buffers 'table' and 'y'"));
}

TEST(Place, KeepsSourceAndTargetOfOtherKindsApart) {
  Program program = chain(CDL_KIND_COPY, 0);
  const auto report = program::passes::schedule::place(program);
  ASSERT_TRUE(report.isOk());
  EXPECT_EQ(report->arenaBytes, 128u);
}

TEST(Place, SaysWhatDoesNotFit) {
  Program program = chain(CDL_KIND_COPY, 0);
  program.spaces[0].capacityBytes = 100;
  const auto report = program::passes::schedule::place(program);
  ASSERT_FALSE(report.isOk());
  EXPECT_EQ(report.status().code(), Code::out_of_memory);
  EXPECT_EQ(report.status().message(), "space 'host' has 100 bytes but 128 are live at once");
}

TEST(Place, WaitsForWhoeverHadTheBytes) {
  // Two chains that share nothing but the arena.
  Program program = chain(CDL_KIND_COPY, 0);
  const Program other = chain(CDL_KIND_COPY, 0);
  for (const auto& buffer : other.buffers) program.addBuffer(buffer);
  for (Instr instr : other.instrs) {
    instr.inputs[0].buffer += 4;
    instr.outputs[0].buffer += 4;
    program.instrs.push_back(instr);
  }
  const auto report = program::passes::schedule::place(program);
  ASSERT_TRUE(report.isOk());
  EXPECT_EQ(report->arenaBytes, 128u);
  EXPECT_FALSE(program.instrs[3].waits.empty()) << "it writes where the first chain lay";
}

TEST(ValidatePlacement, NamesTheTwoBuffers) {
  // b lies half on a, which is read again afterwards.
  Program program = chain(CDL_KIND_UNARY, CDL_UNARY_ABS);
  program.buffers[1].offset = 0;
  program.buffers[2].offset = 0;
  EXPECT_TRUE(program::passes::schedule::validatePlacement(program).isOk());
  program.instrs[2].kind = CDL_KIND_BINARY;
  program.instrs[2].inputs.push_back(denseView(1, Elem::f32_, {16}));
  const Status status = program::passes::schedule::validatePlacement(program);
  EXPECT_EQ(
      status.message(),
      "buffers 'a' and 'b' overlap while both are live: instruction 3 reads what instruction 2 "
      "overwrote");
}

TEST(ValidatePlacement, SeesSharingThatIsNotElementByElement) {
  Program program = chain(CDL_KIND_COPY, 0);
  program.buffers[1].offset = 0;
  program.buffers[2].offset = 0;
  EXPECT_THAT(
      program::passes::schedule::validatePlacement(program).message(),
      HasSubstr("buffers 'a' and 'b' overlap: instruction 2 reads one while it writes the other"));
  // Elementwise, but shifted by one cache line.
  program = chain(CDL_KIND_UNARY, CDL_UNARY_ABS);
  program.buffers[1].bytes = 128;
  program.instrs[1].inputs[0].offset = 1;
  program.buffers[1].offset = 0;
  program.buffers[2].offset = 0;
  EXPECT_THAT(program::passes::schedule::validatePlacement(program).message(),
              AllOf(HasSubstr("'a'"), HasSubstr("'b'")));
}

TEST(ValidatePlacement, SeesWhatALoopOverwritesForItsNextRound) {
  // The loop reads a in every round and writes b, which lies on a, behind the read.
  Program program = chain(CDL_KIND_COPY, 0);
  program.loops.push_back({1, 2, kNone, 3});
  program.instrs[1].loop = program.instrs[2].loop = 0;
  program.instrs[1].outputs[0].buffer = 3;
  program.instrs[2] = program.instrs[1];
  program.instrs[2].kind = CDL_KIND_FILL;
  program.instrs[2].inputs.clear();
  program.instrs[2].outputs[0].buffer = 2;
  program.instrs[2].attrs = {program::Attr::ofBits(CDL_ATTR_VALUE, 0)};
  ASSERT_TRUE(program::verify(program).isOk()) << program::verify(program).message();
  program.buffers[1].offset = 0;
  program.buffers[2].offset = 64;
  EXPECT_TRUE(program::passes::schedule::validatePlacement(program).isOk());
  program.buffers[2].offset = 0;
  EXPECT_THAT(program::passes::schedule::validatePlacement(program).message(),
              HasSubstr("buffers 'a' and 'b' overlap while both are live"));
  program.buffers[2].offset = CDL_UNPLACED;
  ASSERT_TRUE(program::passes::schedule::place(program).isOk());
  EXPECT_EQ(program.arenaBytes(), 128u);
}

TEST(ValidatePlacement, WantsEveryBufferPlaced) {
  const Program program = chain(CDL_KIND_COPY, 0);
  EXPECT_EQ(program::passes::schedule::validatePlacement(program).message(),
            "buffer 'a' has no place");
}

/// Moving any one buffer onto another that is live at the same time must be seen, whenever it
/// changes the numbers.
TEST(ValidatePlacement, MissesNothingThatChangesNumbers) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Program program = testing::ProgramMaker(seed).make(16);
    const auto inputs = inputsOf(seed);
    ASSERT_TRUE(program::passes::schedule::place(program).isOk());
    const auto expected = reference::interpret(program, inputs);
    ASSERT_TRUE(expected.isOk());
    test::Random random(seed);
    std::vector<uint32_t> temps;
    for (uint32_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].role == Role::temp) temps.push_back(b);
    if (temps.size() < 2) continue;
    for (int round = 0; round < 10; ++round) {
      Program moved = program;
      moved.buffers[random.of(temps)].offset = moved.buffers[random.of(temps)].offset;
      const auto got = reference::interpret(moved, inputs);
      bool same = got.isOk();
      for (size_t i = 0; same && i < got->size(); ++i)
        same = std::equal((*got)[i].bytes.data(), (*got)[i].bytes.data() + (*got)[i].sizeBytes(),
                          (*expected)[i].bytes.data());
      if (same) continue;
      ++changed;
      EXPECT_FALSE(program::passes::schedule::validatePlacement(moved).isOk())
          << "program " << seed << " round " << round;
    }
  }
  EXPECT_GT(changed, 20);
}

} // namespace
} // namespace candela
