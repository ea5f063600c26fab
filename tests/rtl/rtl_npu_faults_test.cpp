// Programs that stop: what the registers say must be what the functional model says, where hardware
// looks for it. Resets, a memory that refuses, snapshots of counters, profile records, and
// values that random programs hardly ever meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/rtl/bench4_program.h"

namespace {
using namespace candela;
using namespace candela::npu;
using namespace candela::rtl;
using testing::Contains;
using testing::ElementsAre;

constexpr int kSeed = 20261127;
constexpr uint32_t kInstructionFault = 1 + static_cast<uint32_t>(FaultKind::kInstruction);
constexpr uint32_t kBusFault = 1 + static_cast<uint32_t>(FaultKind::kBus);

class NpuFaults : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(NpuFaults, AreThoseOfTheModel) {
  Loaded loaded(assembled(GetParam().second));
  const Fault expected = loaded.expected();
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top);
  ASSERT_TRUE(result) << result.message();
  EXPECT_EQ(result->status, kRtlFaulted);
  EXPECT_EQ(result->faultCode, 1 + static_cast<uint32_t>(expected.kind)) << expected.message;
  EXPECT_EQ(result->faultPc, expected.instruction) << expected.message;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, NpuFaults,
    testing::Values(
        std::pair("NoSignal", "nop@load0 wait=s3:1\nhalt\n"),
        std::pair("NoSignalForControl", "fill dst=0 d=d0\nnop wait=s3:2\nhalt\n"),
        std::pair("TooFewTokens", "fill dst=0 d=d0 signal=s0:1\nnop@store0 wait=s0:2\nhalt\n"),
        std::pair("BehindTheRegion", "load region=1 far=49 dst=0 d=d0\nhalt\n"),
        std::pair("BeforeTheRegion", "desc d1 transfer run=4 len1=2 far_stride1=-8 near_stride1=4\n"
                                     "load region=1 far=7 dst=0 d=d1\nhalt\n"),
        std::pair("NoSuchRegion", "load region=9 far=0 dst=0 d=d0\nhalt\n"),
        std::pair("ConstantsAreReadOnly",
                  "fill dst=0 d=d0 signal=s0:1\nstore region=0 far=0 src=0 d=d0 wait=s0:1\nhalt\n"),
        std::pair("BehindTheScratchpad", "fill dst=0xfff1 d=d0\nhalt\n"),
        std::pair("StoreHasNoPadding",
                  "fill dst=0 d=d0 signal=s0:1\ndesc d1 transfer run=16 pad_left=1\n"
                  "store region=2 far=0 src=0 d=d1 wait=s0:1\nhalt\n"),
        std::pair("TooManyTokens", "loop count=300 length=1\nnop signal=s5:1\nhalt\n"),
        std::pair("AccumulatorsThatAreNotThere",
                  "fill dst=0 d=d0 signal=s0:1\ndesc d1 epilogue channels=4 out_h=2\n"
                  "accload acc=1023 src=0 d=d1 wait=s0:1\nhalt\n"),
        std::pair("SumsThatAreNotAligned",
                  "fill dst=0 d=d0 signal=s0:1\ndesc d1 epilogue channels=2\n"
                  "accload acc=0 src=2 d=d1 wait=s0:1\nhalt\n"),
        std::pair("TypesThatAreNotThere",
                  "fill dst=0 d=d0 signal=s0:1\ndesc d1 lanes run=4 len1=1 len2=1 a_type=i16\n"
                  "vunary a=0 b=0 dst=0x40 d=d1 fn=copy wait=s0:1\nhalt\n"),
        std::pair("NoHalt", "nop\n")),
    [](const auto& info) { return std::string(info.param.first); });

TEST(NpuFaults, AWordThatIsNoneStopsTheProgram) {
  Loaded loaded(assembled("nop\nnop\nhalt\n"));
  for (const uint64_t low : {uint64_t{0xee}, uint64_t{0x1} | uint64_t{1} << 40, uint64_t{0x201}}) {
    const size_t at = loaded.binary.code.size() - 2;
    Loaded damaged(loaded.binary);
    damaged.binary.code[at] = {low, 0};
    std::memcpy(damaged.memory.data() + damaged.placement.program, damaged.binary.code.data(),
                damaged.binary.code.size() * sizeof(Word));
    const std::unique_ptr<RtlTop> top = library().make(kSeed);
    const Result<RtlResult> result = damaged.run(*top);
    ASSERT_TRUE(result) << result.message();
    EXPECT_EQ(result->status, kRtlFaulted) << low;
    EXPECT_EQ(result->faultCode, kInstructionFault) << low;
    EXPECT_EQ(result->faultPc, at) << low;
  }
}

/// As many tokens as a semaphore holds.
TEST(NpuFaults, AFullSemaphoreIsNone) {
  Loaded loaded(assembled("loop count=255 length=1\nnop signal=s5:1\nhalt\n"));
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top);
  ASSERT_TRUE(result) << result.message();
  EXPECT_EQ(result->status, kRtlHalted);
}

TEST(NpuFaults, AMemoryThatRefusesIsABusError) {
  Loaded loaded(assembled(kCopies));
  const auto storeAt = static_cast<uint32_t>(loaded.binary.code.size() - 2);
  RtlRunOptions refusesStores;
  // The program lies behind the regions: what is refused must not be read by the fetch.
  refusesStores.refusedFrom = loaded.placement.program;
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> fetch = loaded.run(*top, refusesStores);
  ASSERT_TRUE(fetch) << fetch.message();
  EXPECT_EQ(fetch->status, kRtlFaulted);
  EXPECT_EQ(fetch->faultCode, kBusFault);
  EXPECT_EQ(fetch->faultPc, 0u);
  // A region behind the program.
  const uint64_t beyond = loaded.memory.size();
  loaded.placement.bases[2] = beyond;
  refusesStores.refusedFrom = beyond;
  const Result<RtlResult> store = loaded.run(*top, refusesStores);
  ASSERT_TRUE(store) << store.message();
  EXPECT_EQ(store->status, kRtlFaulted);
  EXPECT_EQ(store->faultCode, kBusFault);
  EXPECT_EQ(store->faultPc, storeAt);
}

/// In each cycle of a program: nothing is left running, and the same program then runs as if
/// nothing had been.
TEST(NpuReset, LeavesNothingBehind) {
  const Loaded fresh(assembled(kCopies));
  Loaded whole = fresh;
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> expected = whole.run(*top);
  ASSERT_TRUE(expected) << expected.message();
  ASSERT_EQ(expected->status, kRtlHalted);
  for (int64_t at = 0; at < expected->cycles; ++at) {
    Loaded stopped = fresh, again = fresh;
    RtlRunOptions reset;
    reset.resetAt = at;
    reset.resetsFirst = false;
    const Result<RtlResult> result = stopped.run(*top, reset);
    ASSERT_TRUE(result) << result.message();
    ASSERT_EQ(result->status & kRtlRunning, 0u) << "reset in cycle " << at;
    RtlRunOptions goesOn;
    goesOn.resetsFirst = false;
    const Result<RtlResult> second = again.run(*top, goesOn);
    ASSERT_TRUE(second) << second.message();
    ASSERT_EQ(second->status, kRtlHalted) << "reset in cycle " << at;
    ASSERT_EQ(second->cycles, expected->cycles) << "reset in cycle " << at;
    ASSERT_EQ(again.memory, whole.memory) << "reset in cycle " << at;
  }
}

/// Which random multipliers hardly ever meet.
TEST(NpuValues, HalvesAreRoundedToEven) {
  Loaded loaded(assembled(R"(
load region=0 far=0 dst=0 d=d0 signal=s0:1
desc d1 lanes run=16 len1=1 len2=1 a_type=i8 out_type=i8
desc d2 rescale a_mult=1 shift=1 low=-128 high=127
vunary a=0 b=0 dst=0x40 d=d1 fn=rescale wait=s0:1 signal=s1:1
store region=2 far=0 src=0x40 d=d0 wait=s1:1
halt
)"));
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top);
  ASSERT_TRUE(result) << result.message();
  ASSERT_EQ(result->status, kRtlHalted);
  std::vector<int> values;
  for (int i = 0; i < 16; ++i)
    values.push_back(static_cast<int>(loaded.memory[loaded.placement.bases[2] + i]));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 8));
}

/// But of cycles, which the functional model has not.
TEST(NpuSnapshots, HaveWholeInstructionsBehindAFence) {
  Loaded loaded(
      assembled(std::string("fill dst=32 d=d0 signal=s0:1\nnop wait=s0:1\nfence mask=0xfff\n"
                            "snapshot slot=1\n") +
                kCopies));
  const std::unique_ptr<Device> device = makeFunctionalDevice(bench4());
  ASSERT_FALSE(device->load(loaded.binary));
  for (const uint32_t region : {1u, 2u}) ASSERT_FALSE(device->bind(region, loaded.regions[region]));
  const Result<RunReport> expected = device->run();
  ASSERT_TRUE(expected && !expected->fault);
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top);
  ASSERT_TRUE(result) << result.message();
  for (const CounterInfo& counter : kCounters) {
    if (counter.isTiming) continue;
    const auto id = static_cast<size_t>(counter.id);
    EXPECT_EQ(result->snapshots[1][id], expected->snapshots[1][id]) << counter.name;
    EXPECT_EQ(result->snapshots[0][id], 0u) << counter.name;
  }
}

/// Marked: an engine's instruction, one of the control processor, and more in a row than there is
/// time to write.
constexpr const char* kMarked = R"(
config offset=0x34 value=7
fill dst=32 d=d0 mark
nop mark
fence mask=0xfff
config offset=0x34 value=8
loop count=20 length=1
nop@matrix mark
load region=1 far=0 dst=0 d=d0 signal=s0:1 mark
store region=2 far=16 src=0 d=d0 wait=s0:1
halt mark
)";

TEST(NpuProfile, HasARecordOfEachMarkOrSaysThatItIsLost) {
  Loaded loaded(assembled(kMarked));
  std::map<uint32_t, std::vector<std::pair<int64_t, int64_t>>> times; // by instruction
  std::map<uint32_t, int64_t> begins;
  RtlRunOptions options;
  options.profileRecords = 16;
  options.onEvent = [&](const RtlEvent& event) {
    if (event.kind == RtlEvent::Kind::kBegin) begins[event.instruction] = event.cycle;
    if (event.kind == RtlEvent::Kind::kRetire)
      times[event.instruction].emplace_back(begins[event.instruction], event.cycle);
    return true;
  };
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top, options);
  ASSERT_TRUE(result) << result.message();
  ASSERT_EQ(result->status, kRtlHalted);
  const auto marks = result->counters[static_cast<size_t>(Counter::kMarks)];
  EXPECT_EQ(marks, 24u);
  EXPECT_EQ(result->profile.size() + result->profileLost, marks);
  EXPECT_GT(result->profileLost, 0u);
  std::map<Op, uint32_t> tags;
  for (const ProfileRecord& record : result->profile) {
    const Insn insn = *decode(loaded.binary.code[record.instruction]);
    EXPECT_TRUE(insn.mark) << record.instruction;
    EXPECT_EQ(record.engine, insn.engine) << record.instruction;
    EXPECT_THAT(times[record.instruction], Contains(std::pair(record.start, record.done)))
        << record.instruction;
    tags[insn.op] = record.tag;
  }
  EXPECT_EQ(tags[Op::kFill], 7u);
  EXPECT_EQ(tags[Op::kLoad], 8u);
  EXPECT_EQ(tags[Op::kHalt], 8u);
}

TEST(NpuProfile, StopsWhereTheBufferEnds) {
  Loaded loaded(
      assembled("nop mark\nfence mask=0xfff\nfill dst=0 d=d0 mark\nfence mask=0xfff\nhalt\n"));
  RtlRunOptions options;
  options.profileRecords = 1;
  const std::unique_ptr<RtlTop> top = library().make(kSeed);
  const Result<RtlResult> result = loaded.run(*top, options);
  ASSERT_TRUE(result) << result.message();
  ASSERT_EQ(result->profile.size(), 1u);
  EXPECT_EQ(result->profileLost, 1u);
  EXPECT_EQ(result->profile[0].engine, 0u);
}

} // namespace
