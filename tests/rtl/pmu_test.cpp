#include <gtest/gtest.h>

#include <array>

#include "Vrtl_pmu.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260110, kCounters = 8, kSlots = 4, kAddBits = 16;

TEST(Pmu, CountsAndKeepsSnapshots) {
  Bench<Vrtl_pmu> bench(kSeed);
  Dice dice(kSeed);
  std::array<uint64_t, kCounters> counts{};
  std::array<std::array<uint64_t, kCounters>, kSlots> copies{};
  bool carried = false;
  for (int i = 0; i < 200000; ++i) {
    // Clears are rare, so that some counts go beyond 32 bits.
    bench->enable_i = dice.chance(95), bench->clear_i = i % 90000 == 89999;
    bench->snapshot_i = dice.chance(5),
    bench->snapshot_slot_i = static_cast<uint8_t>(dice.of(0, kSlots - 1));
    std::array<uint64_t, kCounters> add{};
    for (int c = 0; c < kCounters; ++c) {
      add[static_cast<size_t>(c)] = static_cast<uint64_t>(c % 2 ? 0xffff : dice.of(0, 3));
      setBits(bench->add_i, c * kAddBits, kAddBits, add[static_cast<size_t>(c)]);
    }
    const auto id = static_cast<size_t>(dice.of(0, kCounters - 1)),
               slot = static_cast<size_t>(dice.of(0, kSlots - 1));
    bench->read_id_i = static_cast<uint8_t>(id), bench->read_slot_i = static_cast<uint8_t>(slot);
    bench->read_high_i = dice.chance(50), bench->read_copy_i = dice.chance(50);
    bench.settle();
    const uint64_t count = bench->read_copy_i ? copies[slot][id] : counts[id];
    ASSERT_EQ(bench->read_data_o, static_cast<uint32_t>(bench->read_high_i ? count >> 32 : count))
        << "cycle " << i;
    carried |= bench->read_high_i && count >> 32;
    if (bench->snapshot_i) copies[bench->snapshot_slot_i] = counts;
    for (size_t c = 0; c < kCounters; ++c)
      counts[c] = bench->clear_i ? 0 : counts[c] + (bench->enable_i ? add[c] : 0);
    bench.edge();
  }
  EXPECT_TRUE(carried) << "no count went beyond 32 bits";
}

} // namespace
