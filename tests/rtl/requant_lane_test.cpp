#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "Vrtl_requant_lane.h"
#include "Vrtl_requant_lane_int16.h"
#include "candela/numerics.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260101;

enum class Type { kI8, kU8, kI16 };
struct Range {
  int64_t low, high;
};
Range rangeOf(Type type) {
  return type == Type::kI8   ? Range{-128, 127}
         : type == Type::kU8 ? Range{0, 255}
                             : Range{-32768, 32767};
}

struct Narrow {
  using Top = Vrtl_requant_lane;
  static constexpr int kTableBytes = 1;
  static constexpr bool kInt16 = false;
};
struct Wide {
  using Top = Vrtl_requant_lane_int16;
  static constexpr int kTableBytes = 8;
  static constexpr bool kInt16 = true;
};

/// What stands still while values are under way.
struct Setting {
  int zp = 0, low = -128, high = 127;
  Type type = Type::kI8;
  bool wide = false, residual = false, table = false;
  uint32_t aMult = 0, bMult = 0;
  int aShift = 0, bShift = 0, shift = 0, bZp = 0, rZp = 0, rLow = -128, rHigh = 127;
};
struct Value {
  int64_t acc;
  int32_t bias;
  uint32_t mult, shift;
  int residual;
};

template <typename Config> struct Lane {
  static constexpr int kBits = Config::kInt16 ? 17 : 9, kAccBits = Config::kInt16 ? 40 : 32;

  explicit Lane(Dice& dice) : bench(kSeed) {
    bench->valid_i = 0;
    bench->ready_i = 0;
    bench->table_we_i = 0;
    loadTable(dice);
  }
  static uint32_t bitsOf(int value) { return static_cast<uint32_t>(value) & ((1u << kBits) - 1); }
  void set(const Setting& to) {
    s = to;
    bench->zp_i = bitsOf(s.zp), bench->low_i = bitsOf(s.low), bench->high_i = bitsOf(s.high);
    bench->type_i8_i = s.type == Type::kI8, bench->type_i16_i = s.type == Type::kI16,
    bench->wide_i = s.wide;
    bench->residual_i = s.residual, bench->table_i = s.table;
    bench->r_a_mult_i = s.aMult, bench->r_b_mult_i = s.bMult;
    bench->r_a_shift_i = s.aShift, bench->r_b_shift_i = s.bShift, bench->r_shift_i = s.shift;
    bench->r_b_zp_i = bitsOf(s.bZp), bench->r_zp_i = bitsOf(s.rZp);
    bench->r_low_i = bitsOf(s.rLow), bench->r_high_i = bitsOf(s.rHigh);
  }
  /// Its first 256 bytes are a table of bytes too.
  void loadTable(Dice& dice) {
    for (int16_t& entry : table)
      entry = static_cast<int16_t>(dice.chance(80)   ? dice.of(INT16_MIN, INT16_MAX)
                                   : dice.chance(50) ? INT16_MIN
                                                     : INT16_MAX);
    std::array<uint8_t, 1032> bytes{};
    std::memcpy(bytes.data(), table.data(), sizeof table);
    for (int i = 0; i < (Config::kInt16 ? 1026 : 256); i += Config::kTableBytes) {
      bench->table_we_i = 1, bench->table_index_i = static_cast<uint8_t>(i / Config::kTableBytes);
      for (int byte = 0; byte < Config::kTableBytes; ++byte)
        setBits(bench->table_entries_i, 8 * byte, 8, bytes[static_cast<size_t>(i + byte)]);
      bench.settle();
      bench.edge();
    }
    bench->table_we_i = 0;
  }
  int64_t expected(const Value& v) const {
    const int64_t sum = s.wide ? signedBits(static_cast<uint64_t>(v.acc + v.bias), 40)
                               : cdl_add_i32(static_cast<int32_t>(v.acc), v.bias);
    int64_t r = cdl_rescale1(sum, static_cast<int32_t>(v.mult), 0, static_cast<int32_t>(v.shift),
                             s.zp, s.low, s.high);
    if (s.residual)
      r = cdl_rescale2(r - s.zp, v.residual - s.bZp, static_cast<int32_t>(s.aMult),
                       static_cast<int32_t>(s.bMult), s.aShift, s.bShift, s.shift, s.rZp, s.rLow,
                       s.rHigh);
    if (!s.table) return r;
    if (s.type == Type::kI16) return cdl_table_i16(table.data(), static_cast<int16_t>(r));
    return reinterpret_cast<const uint8_t*>(table.data())[r + (s.type == Type::kI8 ? 128 : 0)];
  }
  /// Sends all values, in `offer` of 100 cycles one and with a consumer that is ready in `accept`
  /// of 100; returns the cycles.
  int64_t run(const std::vector<Value>& values, Dice& dice, int offer, int accept) {
    std::deque<Value> under;
    size_t sent = 0, got = 0;
    const int64_t from = bench.cycle;
    const int resultBits = s.type == Type::kI16 ? 16 : 8;
    bool offered = false;
    while (got < values.size() &&
           bench.cycle < from + 100 * static_cast<int64_t>(values.size()) + 1000) {
      offered = sent < values.size() && (offered || dice.chance(offer));
      bench->valid_i = offered;
      if (offered) {
        const Value& v = values[sent];
        setBits(bench->acc_i, 0, kAccBits, static_cast<uint64_t>(v.acc));
        bench->record_i =
            uint64_t{v.shift} << 56 | uint64_t{v.mult} << 32 | static_cast<uint32_t>(v.bias);
        bench->residual_value_i = bitsOf(v.residual);
      }
      bench->ready_i = dice.chance(accept);
      bench.settle();
      if (bench->valid_o && bench->ready_i) {
        if (under.empty()) {
          ADD_FAILURE() << "a result of nothing";
          return 0;
        }
        const Value v = under.front();
        EXPECT_EQ(getBits(bench->result_o, 0, resultBits),
                  static_cast<uint64_t>(expected(v)) & ((1u << resultBits) - 1))
            << "acc " << v.acc << " bias " << v.bias << " mult " << v.mult << " shift " << v.shift
            << " residual " << v.residual;
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

  Bench<typename Config::Top> bench;
  Setting s;
  std::array<int16_t, 513> table{};
};

Value randomValue(Dice& dice, const Setting& s) {
  Value v{};
  v.acc = dice.chance(50)             ? dice.of(-70000, 70000)
          : s.wide && dice.chance(80) ? dice.of(-(int64_t{1} << 39), (int64_t{1} << 39) - 1)
                                      : dice.of(INT32_MIN, INT32_MAX);
  v.bias =
      static_cast<int32_t>(dice.chance(80) ? dice.of(-9000, 9000) : dice.of(INT32_MIN, INT32_MAX));
  v.mult = static_cast<uint32_t>(dice.chance(80) ? dice.of(1 << 23, (1 << 24) - 1)
                                                 : dice.of(0, (1 << 24) - 1));
  const int64_t shift = (s.type == Type::kI16 ? 20 : 28) + (s.wide ? dice.of(0, 8) : 0);
  v.shift = static_cast<uint32_t>(dice.chance(70) ? shift + dice.of(0, 18) : dice.of(0, 255));
  v.residual = static_cast<int>(s.type == Type::kI16 ? dice.of(-32768, 32767) : dice.of(-128, 255));
  return v;
}
Setting randomSetting(Dice& dice, bool int16) {
  Setting s;
  s.type = int16 && dice.chance(60) ? Type::kI16 : dice.chance(50) ? Type::kI8 : Type::kU8;
  s.wide = int16 && dice.chance(50), s.residual = dice.chance(50), s.table = dice.chance(30);
  const Range range = rangeOf(s.type);
  const auto bound = [&] { return static_cast<int>(dice.of(range.low, range.high)); };
  const auto bounds = [&](int& low, int& high) {
    low = bound(), high = bound();
    if (low > high) std::swap(low, high);
    if (dice.chance(70)) low = static_cast<int>(range.low), high = static_cast<int>(range.high);
  };
  s.zp = bound(), bounds(s.low, s.high), bounds(s.rLow, s.rHigh);
  s.aMult = static_cast<uint32_t>(dice.of(0, (1 << 24) - 1)),
  s.bMult = static_cast<uint32_t>(dice.of(0, (1 << 24) - 1));
  const int most = s.type == Type::kI16 ? 22 : 30;
  s.aShift = static_cast<int>(dice.of(0, dice.chance(80) ? 8 : most)),
  s.bShift = static_cast<int>(dice.of(0, dice.chance(80) ? 8 : most));
  s.shift = static_cast<int>(dice.chance(80) ? dice.of(20, 36) : dice.of(0, 127));
  const auto zero = [&] {
    return s.type == Type::kI16 ? bound() : static_cast<int>(dice.of(-256, 255));
  };
  s.bZp = zero(), s.rZp = zero();
  return s;
}

template <typename Config> class RequantLane : public testing::Test {
protected:
  Dice dice{kSeed};
  Lane<Config> lane{dice};
};
using Configurations = testing::Types<Narrow, Wide>;
TYPED_TEST_SUITE(RequantLane, Configurations);

TYPED_TEST(RequantLane, RoundsHalvesToEven) {
  std::vector<Value> values;
  for (uint32_t shift = 0; shift < 256; ++shift)
    for (const int32_t acc :
         {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 127, -128, INT32_MAX, INT32_MIN})
      for (const uint32_t mult : {1u, 1u << 23, (1u << 24) - 1})
        values.push_back({acc, 0, mult, shift, 0});
  this->lane.set({});
  this->lane.run(values, this->dice, 100, 100);
  values.clear();
  // Exact halves: (2 n + 1) * 2^23 / 2^24.
  for (int32_t n = -150; n < 150; ++n) values.push_back({2 * n + 1, 0, 1u << 23, 24, 0});
  this->lane.run(values, this->dice, 100, 100);
}

TYPED_TEST(RequantLane, TakesTheEndsOfItsNumbers) {
  if (!TypeParam::kInt16) return;
  constexpr int64_t kMost = (int64_t{1} << 39) - 1;
  for (const bool wide : {false, true})
    for (const int zp : {-32768, 0, 32767}) {
      Setting s;
      s.type = Type::kI16, s.wide = wide, s.residual = true, s.zp = zp, s.low = -32768,
      s.high = 32767;
      s.aMult = s.bMult = (1 << 24) - 1, s.aShift = s.bShift = 22, s.shift = 47, s.bZp = -1 - zp,
      s.rZp = zp;
      s.rLow = -32768, s.rHigh = 32767;
      std::vector<Value> values;
      for (const int64_t acc :
           {-kMost - 1, -kMost, int64_t{INT32_MIN}, int64_t{-1}, int64_t{INT32_MAX}, kMost})
        for (const int32_t bias : {INT32_MIN, -1, 0, 1, INT32_MAX})
          for (const uint32_t shift : {0u, 24u, 47u, 62u})
            for (const int residual : {-32768, 32767})
              values.push_back(
                  {wide ? acc : static_cast<int32_t>(acc), bias, (1u << 24) - 1, shift, residual});
      this->lane.set(s);
      this->lane.run(values, this->dice, 100, 100);
    }
}

TYPED_TEST(RequantLane, FinishesOneValueInEachCycle) {
  for (const bool residual : {false, true})
    for (const bool table : {false, true}) {
      Setting s = randomSetting(this->dice, TypeParam::kInt16);
      s.residual = residual, s.table = table;
      std::vector<Value> values;
      for (int i = 0; i < 1000; ++i) values.push_back(randomValue(this->dice, s));
      this->lane.set(s);
      // Between entries of a table takes a stage more.
      const bool interpolates = table && s.type == Type::kI16;
      EXPECT_EQ(this->lane.run(values, this->dice, 100, 100), 1000 + 10 + interpolates);
    }
}

TYPED_TEST(RequantLane, LooksUpEveryValue) {
  for (const Type type : {Type::kI8, Type::kU8, Type::kI16}) {
    if (type == Type::kI16 && !TypeParam::kInt16) continue;
    const Range range = rangeOf(type);
    Setting s;
    s.type = type, s.table = true, s.low = static_cast<int>(range.low),
    s.high = static_cast<int>(range.high);
    this->lane.set(s);
    std::vector<Value> values;
    for (int64_t value = range.low; value <= range.high; ++value)
      values.push_back({value, 0, 1, 0, 0});
    this->lane.run(values, this->dice, 100, 100);
  }
}

TYPED_TEST(RequantLane, AgreesWithTheIntegerLawUnderBackPressure) {
  for (int round = 0; round < (TypeParam::kInt16 ? 300 : 150); ++round) {
    if (round % 10 == 0) this->lane.loadTable(this->dice);
    const Setting s = randomSetting(this->dice, TypeParam::kInt16);
    this->lane.set(s);
    std::vector<Value> values;
    for (int i = 0; i < 100; ++i) values.push_back(randomValue(this->dice, s));
    this->lane.run(values, this->dice, static_cast<int>(this->dice.of(20, 100)),
                   static_cast<int>(this->dice.of(20, 100)));
    if (this->HasFailure()) FAIL() << "seed " << kSeed << ", round " << round;
  }
}

} // namespace
