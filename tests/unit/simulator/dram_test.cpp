// The memory against the closed forms of simple streams.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/timing/constants.h"
#include "simulator/timing/dram.h"

namespace candela::npu {
namespace {

Configuration with(int type, int64_t bits) {
  Configuration c = *findConfiguration("gem16");
  c.values[key::kDramType] = type;
  c.values[key::kDramWidthBits] = bits;
  return c;
}

constexpr int64_t kStreamed = 4 << 20; ///< bytes

/// `stream` says when all of them have passed: not before the bus can bring them, and hardly later
/// but for refresh.
template <class F>
void expectRateOfTheBus(std::span<const DramTiming> kinds, int64_t slack, F&& stream) {
  for (int type = 0; type < static_cast<int>(kinds.size()); ++type)
    for (const int64_t bits : {8, 16, 64, 128}) {
      Dram dram(with(type, bits));
      const auto end = static_cast<double>(stream(dram));
      const DramTiming& t = dram.timing();
      const double least = kStreamed / dram.bytesPerCycle();
      // In a memory of one bank no row opens while another is read or written.
      const auto inRow = static_cast<double>(t.rowBytes / dram.granule() * t.burstCycles);
      const double opened = t.banks == 1 ? 1 + static_cast<double>(t.rcd + t.rp) / inRow : 1;
      const double refreshed =
          least * opened * static_cast<double>(t.refi) / static_cast<double>(t.refi - t.rfc - t.rp);
      EXPECT_GT(end, least) << t.name << " x" << bits;
      EXPECT_LT(end, 1.05 * refreshed + static_cast<double>(slack)) << t.name << " x" << bits;
      EXPECT_EQ(dram.counts().bursts, static_cast<uint64_t>(kStreamed / dram.granule()));
    }
}

TEST(Dram, AStreamComesAtTheRateOfTheBusLessRefresh) {
  // All are asked for at once: nothing but the bus is in the way.
  expectRateOfTheBus(dramTimings(), 200, [](Dram& dram) {
    int64_t end = 0;
    for (int64_t at = 0; at < kStreamed; at += 64)
      end = dram.access(0, static_cast<uint64_t>(at), 64, false, 1);
    return end;
  });
}

TEST(Dram, AStreamOfWritesWaitsForNoRows) {
  // Flash, which is not written, is the last one.
  expectRateOfTheBus(dramTimings().first(std::size(kDramTypeValues)), 500, [](Dram& dram) {
    int64_t accepted = 0;
    for (int64_t at = 0; at < kStreamed; at += 64) { // as fast as the bus takes them
      const double asked = static_cast<double>(at) / dram.bytesPerCycle();
      accepted = dram.access(static_cast<int64_t>(asked), static_cast<uint64_t>(at), 64, true, 5);
    }
    return dram.drain(accepted);
  });
}

int typeOf(std::string_view name) {
  const auto found = std::ranges::find(dramTimings(), name, &DramTiming::name);
  return static_cast<int>(found - dramTimings().begin());
}

TEST(Dram, ReachesFromAnOctalBusToFourStacks) {
  // gem16 has 1,000 MHz: bytes of a cycle are gigabytes of a second.
  EXPECT_DOUBLE_EQ(Dram(with(typeOf("HyperRAM-400"), 8)).bytesPerCycle(), 0.4);
  EXPECT_DOUBLE_EQ(Dram(with(typeOf("DDR3-2133"), 8)).bytesPerCycle(), 3200.0 / 3 * 2 / 1000);
  EXPECT_DOUBLE_EQ(Dram(with(typeOf("SRAM-1000"), 32)).bytesPerCycle(), 4);
  EXPECT_DOUBLE_EQ(Dram(with(typeOf("HBM2-2000"), 1024)).bytesPerCycle(), 256);
  EXPECT_EQ(Dram(with(typeOf("HBM2-2000"), 4096)).channels(), 64);
}

TEST(Dram, AMemoryWithoutRowsAnswersAlikeEverywhere) {
  Dram dram(with(typeOf("SRAM-1000"), 128));
  const DramTiming& t = dram.timing();
  const int64_t once = valueOf(Timing::kControllerLatency) + t.readLatency + t.burstCycles;
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_EQ(dram.access(i * 1000, static_cast<uint64_t>(i) << 20, 64, false, 1), i * 1000 + once);
}

TEST(Dram, FlashAnswersATransactionLater) {
  Configuration c = with(1, 64);
  c.values[key::kSecondHolds] = 1;
  c.values[key::kSecondType] = typeOf("NOR-octal-400");
  c.values[key::kSecondWidthBits] = 8;
  Dram flash(c, MemoryId::kSecond);
  EXPECT_DOUBLE_EQ(flash.bytesPerCycle(), 0.4);
  EXPECT_TRUE(flash.timing().isFlash);
  // 20 ns of the controller; of 200 MHz three clocks of command and address, 20 of latency, and 16
  // for 32 bytes.
  const int64_t once = 20 + 5 * (3 + 20 + 16);
  EXPECT_EQ(flash.access(0, 0, 32, false, 1), once);
  // What follows goes on; what lies elsewhere is another transaction, two clocks behind this one.
  EXPECT_EQ(flash.access(1000, 32, 32, false, 1), 1000 + once - 5 * 3);
  EXPECT_EQ(flash.access(2000, 1 << 20, 32, false, 1), 2000 + once + 5 * 2);
}

TEST(Dram, OneAccessToAClosedBankOpensItAndReads) {
  const Configuration c = with(1, 64); // DDR4-2400: 1,200 MHz beside 1,000
  Dram dram(c);
  const DramTiming& t = dram.timing();
  const int64_t controller = valueOf(Timing::kControllerLatency) * 1200 / 1000;
  EXPECT_EQ(dram.access(0, 0, 64, false, 1),
            dram.toNpu(controller + t.rcd + t.readLatency + t.burstCycles));
  EXPECT_EQ(dram.counts().rowMisses, 1u);
}

TEST(Dram, RowsOfOneBankCostARowCycleEach) {
  const Configuration c = with(1, 64);
  Dram dram(c);
  const DramTiming& t = dram.timing();
  // The same bank, another row: row r of a group lies behind all banks of it, moved by r.
  const int64_t column = t.rowBytes * t.groups, row = column * (t.banks / t.groups);
  constexpr int64_t kTimes = 100;
  int64_t end = 0;
  for (int64_t i = 0; i < kTimes; ++i) {
    const int64_t bank = ((-i) % 4 + 4) % 4;
    end = dram.access(0, static_cast<uint64_t>(i * row + bank * column), 64, false, 1);
  }
  EXPECT_EQ(dram.counts().rowMisses, static_cast<uint64_t>(kTimes));
  EXPECT_GE(end, dram.toNpu((kTimes - 1) * (t.ras + t.rp)));
  EXPECT_LE(end, dram.toNpu(kTimes * (t.ras + t.rp) + 500));
}

TEST(Dram, ARestOfABurstIsNotReadAgain) {
  const Configuration c = with(1, 64);
  Dram dram(c);
  for (uint64_t at = 0; at < 256; at += 16) dram.access(0, at, 16, false, 1);
  EXPECT_EQ(dram.counts().bursts, 4u);
}

TEST(Dram, WritesAreGatheredAndAllArrive) {
  const Configuration c = with(1, 64);
  Dram dram(c);
  int64_t accepted = 0;
  for (uint64_t at = 0; at < 64 * 1000; at += 64) accepted = dram.access(accepted, at, 64, true, 5);
  const int64_t end = dram.drain(accepted);
  EXPECT_EQ(dram.counts().bursts, 1000u);
  EXPECT_GE(end, dram.toNpu(1000 * dram.timing().burstCycles));
  EXPECT_LE(accepted, end);
}

} // namespace
} // namespace candela::npu
