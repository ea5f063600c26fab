#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "Vrtl_requant_lane.h"
#include "candela/numerics.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260101;

/// What stands still while values are under way.
struct Setting {
  int zp = 0, low = -128, high = 127;
  bool isI8 = true, residual = false, table = false;
  uint32_t aMult = 0, bMult = 0;
  int aShift = 0, bShift = 0, shift = 0, bZp = 0, rZp = 0, rLow = -128, rHigh = 127;
};
struct Value {
  int32_t acc, bias;
  uint32_t mult, shift;
  int residual;
};

struct Lane {
  Lane() : bench(kSeed) {
    bench->valid_i = 0;
    bench->ready_i = 0;
    bench->table_we_i = 0;
  }
  void set(const Setting& to) {
    s = to;
    bench->zp_i = s.zp & 0x1ff, bench->low_i = s.low & 0x1ff, bench->high_i = s.high & 0x1ff;
    bench->type_i8_i = s.isI8, bench->residual_i = s.residual, bench->table_i = s.table;
    bench->r_a_mult_i = s.aMult, bench->r_b_mult_i = s.bMult;
    bench->r_a_shift_i = s.aShift, bench->r_b_shift_i = s.bShift, bench->r_shift_i = s.shift;
    bench->r_b_zp_i = s.bZp & 0x1ff, bench->r_zp_i = s.rZp & 0x1ff;
    bench->r_low_i = s.rLow & 0x1ff, bench->r_high_i = s.rHigh & 0x1ff;
  }
  void loadTable(Dice& dice) {
    for (int i = 0; i < 256; ++i) {
      table[static_cast<size_t>(i)] = static_cast<uint8_t>(dice.of(0, 255));
      bench->table_we_i = 1, bench->table_index_i = i, bench->table_entries_i = table[static_cast<size_t>(i)];
      bench.settle();
      bench.edge();
    }
    bench->table_we_i = 0;
  }
  uint8_t expected(const Value& v) const {
    int64_t r = cdl_rescale1(cdl_add_i32(v.acc, v.bias), static_cast<int32_t>(v.mult), 0, static_cast<int32_t>(v.shift),
                             s.zp, s.low, s.high);
    if (s.residual)
      r = cdl_rescale2(r - s.zp, v.residual - s.bZp, static_cast<int32_t>(s.aMult), static_cast<int32_t>(s.bMult),
                       s.aShift, s.bShift, s.shift, s.rZp, s.rLow, s.rHigh);
    if (s.table) return table[static_cast<size_t>(r + (s.isI8 ? 128 : 0))];
    return static_cast<uint8_t>(r);
  }
  /// Sends all values, in `offer` of 100 cycles one and with a consumer that is ready in `accept` of 100; returns the
  /// cycles.
  int64_t run(const std::vector<Value>& values, Dice& dice, int offer, int accept) {
    std::deque<Value> under;
    size_t sent = 0, got = 0;
    const int64_t from = bench.cycle;
    bool offered = false;
    while (got < values.size() && bench.cycle < from + 100 * static_cast<int64_t>(values.size()) + 1000) {
      offered = sent < values.size() && (offered || dice.chance(offer));
      bench->valid_i = offered;
      if (offered) {
        const Value& v = values[sent];
        bench->acc_i = static_cast<uint32_t>(v.acc);
        bench->record_i = uint64_t{v.shift} << 56 | uint64_t{v.mult} << 32 | static_cast<uint32_t>(v.bias);
        bench->residual_value_i = v.residual & 0x1ff;
      }
      bench->ready_i = dice.chance(accept);
      bench.settle();
      if (bench->valid_o && bench->ready_i) {
        if (under.empty()) {
          ADD_FAILURE() << "a result of nothing";
          return 0;
        }
        const Value v = under.front();
        EXPECT_EQ(bench->result_o, expected(v)) << "acc " << v.acc << " bias " << v.bias << " mult " << v.mult
                                                << " shift " << v.shift << " residual " << v.residual;
        under.pop_front();
        ++got;
      }
      if (bench->valid_i && bench->ready_o) {
        under.push_back(values[sent++]);
        offered = false;
      }
      bench.edge();
    }
    EXPECT_EQ(got, values.size()) << "the lane stopped";
    bench->valid_i = 0;
    return bench.cycle - from;
  }

  Bench<Vrtl_requant_lane> bench;
  Setting s;
  std::array<uint8_t, 256> table{};
};

Value randomValue(Dice& dice) {
  Value v{};
  v.acc = static_cast<int32_t>(dice.chance(50) ? dice.of(-70000, 70000) : dice.of(INT32_MIN, INT32_MAX));
  v.bias = static_cast<int32_t>(dice.chance(80) ? dice.of(-9000, 9000) : dice.of(INT32_MIN, INT32_MAX));
  v.mult = static_cast<uint32_t>(dice.chance(80) ? dice.of(1 << 23, (1 << 24) - 1) : dice.of(0, (1 << 24) - 1));
  v.shift = static_cast<uint32_t>(dice.chance(70) ? dice.of(28, 46) : dice.of(0, 255));
  v.residual = static_cast<int>(dice.of(-128, 255));
  return v;
}
Setting randomSetting(Dice& dice) {
  Setting s;
  s.isI8 = dice.chance(50), s.residual = dice.chance(50), s.table = dice.chance(30);
  const auto bound = [&] { return static_cast<int>(s.isI8 ? dice.of(-128, 127) : dice.of(0, 255)); };
  const auto bounds = [&](int& low, int& high) {
    low = bound(), high = bound();
    if (low > high) std::swap(low, high);
    if (dice.chance(70)) low = s.isI8 ? -128 : 0, high = s.isI8 ? 127 : 255;
  };
  s.zp = bound(), bounds(s.low, s.high), bounds(s.rLow, s.rHigh);
  s.aMult = static_cast<uint32_t>(dice.of(0, (1 << 24) - 1)),
  s.bMult = static_cast<uint32_t>(dice.of(0, (1 << 24) - 1));
  s.aShift = static_cast<int>(dice.of(0, dice.chance(80) ? 8 : 30)),
  s.bShift = static_cast<int>(dice.of(0, dice.chance(80) ? 8 : 30));
  s.shift = static_cast<int>(dice.chance(80) ? dice.of(20, 36) : dice.of(0, 127));
  s.bZp = static_cast<int>(dice.of(-256, 255)), s.rZp = static_cast<int>(dice.of(-256, 255));
  return s;
}

TEST(RequantLane, RoundsHalvesToEven) {
  Lane lane;
  Dice dice(kSeed);
  std::vector<Value> values;
  for (uint32_t shift = 0; shift < 256; ++shift)
    for (const int32_t acc : {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 127, -128, INT32_MAX, INT32_MIN})
      for (const uint32_t mult : {1u, 1u << 23, (1u << 24) - 1}) values.push_back({acc, 0, mult, shift, 0});
  lane.set({});
  lane.run(values, dice, 100, 100);
  values.clear();
  // Exact halves: (2 n + 1) * 2^23 / 2^24.
  for (int32_t n = -150; n < 150; ++n) values.push_back({2 * n + 1, 0, 1u << 23, 24, 0});
  lane.run(values, dice, 100, 100);
}

TEST(RequantLane, FinishesOneValueInEachCycle) {
  Lane lane;
  Dice dice(kSeed);
  std::vector<Value> values;
  for (int i = 0; i < 1000; ++i) values.push_back(randomValue(dice));
  for (const bool residual : {false, true}) {
    Setting s = randomSetting(dice);
    s.residual = residual;
    lane.set(s);
    EXPECT_EQ(lane.run(values, dice, 100, 100), 1000 + 10);
  }
}

TEST(RequantLane, AgreesWithTheIntegerLawUnderBackPressure) {
  Lane lane;
  Dice dice(kSeed + 1);
  for (int round = 0; round < 150; ++round) {
    if (round % 10 == 0) lane.loadTable(dice);
    lane.set(randomSetting(dice));
    std::vector<Value> values;
    for (int i = 0; i < 100; ++i) values.push_back(randomValue(dice));
    lane.run(values, dice, static_cast<int>(dice.of(20, 100)), static_cast<int>(dice.of(20, 100)));
    if (HasFailure()) FAIL() << "seed " << kSeed + 1 << ", round " << round;
  }
}

} // namespace
