// numerics.h against formulations of its own: all values of the narrow formats, boundaries and
// random values elsewhere.
#include "candela/numerics.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/host_executor/naive.h"

namespace candela {
namespace {

using namespace testing;

bool sameReal(Real a, Real b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

struct Narrow {
  int elem;
  float (*decode)(uint32_t);
  uint32_t (*fromF32)(float);
  uint32_t (*fromF32Sat)(float);
  uint32_t (*fromF64)(double);
  uint32_t (*fromF64Sat)(double);
};
#define CDL_NARROW(ELEM, N)                                                                        \
  {ELEM,                                                                                           \
   [](uint32_t v) { return cdl_##N##_to_f32(static_cast<decltype(cdl_f32_to_##N(0.f))>(v)); },     \
   [](float x) -> uint32_t { return cdl_f32_to_##N(x); },                                          \
   [](float x) -> uint32_t { return cdl_f32_to_##N##_sat(x); },                                    \
   [](double x) -> uint32_t { return cdl_f64_to_##N(x); },                                         \
   [](double x) -> uint32_t { return cdl_f64_to_##N##_sat(x); }}
const Narrow kNarrow[] = {CDL_NARROW(CDL_F16, f16), CDL_NARROW(CDL_BF16, bf16)};
#undef CDL_NARROW

constexpr int kStorage[] = {CDL_F8E4M3, CDL_F8E5M2, CDL_F8E4M3FNUZ, CDL_F8E5M2FNUZ,
                            CDL_F8E8M0, CDL_F6E2M3, CDL_F6E3M2,     CDL_F4E2M1};
uint32_t encodeStorage(int elem, double x, bool saturate) {
  return cdl_f64_to_storage(static_cast<uint8_t>(elem), x, saturate);
}

// The middle between every two values of the format and what lies next to it, and far outside.
TEST(Numerics, StorageFloatsRoundOnce) {
  for (const int elem : kStorage) {
    std::vector<double> tried{0.0, -0.0, 1e-300, -1e-300, 1e300, -1e300, HUGE_VAL, -HUGE_VAL};
    for (uint32_t bits = 0; bits < 1u << std::min(8, info(elem).expBits + info(elem).manBits + 1);
         ++bits) {
      const Real value = decode(elem, bits);
      ASSERT_TRUE(sameReal(
          cdl_storage_to_f32(static_cast<uint8_t>(elem), static_cast<uint8_t>(bits)), value))
          << elem << " " << bits;
      if (std::isnan(value)) continue;
      for (const bool saturate : {false, true})
        if (!std::isinf(value)) {
          ASSERT_EQ(encodeStorage(elem, static_cast<double>(value), saturate), bits) << elem;
        }
      const double up = static_cast<double>(value + ulpAt(elem, value) / 2);
      for (const double x : {up, std::nextafter(up, 1e300), std::nextafter(up, -1e300), -up})
        tried.push_back(x);
    }
    for (const double x : tried)
      for (const bool saturate : {false, true})
        ASSERT_TRUE(
            sameReal(decode(elem, encodeStorage(elem, x, saturate)), roundTo(elem, x, saturate)))
            << elem << " " << x << " " << saturate;
  }
  EXPECT_EQ(encodeStorage(CDL_F4E2M1, NAN, false), 8u);
  EXPECT_EQ(encodeStorage(CDL_F8E5M2FNUZ, -NAN, true), 0x80u);
  EXPECT_EQ(encodeStorage(CDL_F8E8M0, NAN, true), 255u);
}

TEST(Numerics, EveryNarrowFloatDecodesAndEncodesToItself) {
  for (const Narrow& format : kNarrow)
    for (uint32_t bits = 0; bits < 1u << info(format.elem).bits; ++bits) {
      const Real value = decode(format.elem, bits);
      const float decoded = format.decode(bits);
      ASSERT_TRUE(sameReal(decoded, value)) << "elem " << format.elem << " bits " << bits;
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(decode(format.elem, format.fromF32(decoded)))) << bits;
        ASSERT_TRUE(std::isnan(decode(format.elem, format.fromF64Sat(decoded)))) << bits;
        continue;
      }
      ASSERT_EQ(format.fromF32(decoded), bits);
      ASSERT_EQ(format.fromF64(decoded), bits);
      if (!std::isinf(value)) {
        ASSERT_EQ(format.fromF32Sat(decoded), bits);
      }
    }
}

TEST(Numerics, F16AgreesWithTheCompiler) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    _Float16 half;
    const uint16_t h = static_cast<uint16_t>(bits);
    std::memcpy(&half, &h, 2);
    const float wide = static_cast<float>(half);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(cdl_f32_bits(cdl_f16_to_f32(h)), cdl_f32_bits(wide)) << bits;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000000; ++i) {
    const float x = cdl_f32_of_bits(static_cast<uint32_t>(random()));
    if (std::isnan(x)) continue;
    const _Float16 half = static_cast<_Float16>(x);
    uint16_t bits;
    std::memcpy(&bits, &half, 2);
    ASSERT_EQ(cdl_f32_to_f16(x), bits) << x;
  }
}

// Between two neighbours: the middle, and what lies next to the middle in f32 and in f64.
TEST(Numerics, NarrowFloatsRoundOnceAndToEven) {
  for (const Narrow& format : kNarrow)
    for (uint32_t bits = 0; bits < 1u << (info(format.elem).bits - 1); ++bits) {
      const Real low = decode(format.elem, bits), high = decode(format.elem, bits + 1);
      if (!std::isfinite(low) || std::isnan(high)) break;
      const Real upper = std::isinf(high) ? 2 * low - decode(format.elem, bits - 1) : high;
      const double middle = static_cast<double>((low + upper) / 2); // exact
      for (const double x :
           {std::nextafter(middle, 0.0), middle, std::nextafter(middle, 1e300), -middle}) {
        const Real want = roundTo(format.elem, x), wantSat = roundTo(format.elem, x, true);
        ASSERT_TRUE(sameReal(decode(format.elem, format.fromF64(x)), want))
            << format.elem << " " << x;
        ASSERT_TRUE(sameReal(decode(format.elem, format.fromF64Sat(x)), wantSat))
            << format.elem << " " << x;
        const float f = static_cast<float>(x);
        ASSERT_TRUE(sameReal(decode(format.elem, format.fromF32(f)), roundTo(format.elem, f)))
            << format.elem << " " << x;
        ASSERT_TRUE(
            sameReal(decode(format.elem, format.fromF32Sat(f)), roundTo(format.elem, f, true)))
            << x;
      }
    }
  // f64 -> f32 -> f16 would round this twice, upwards.
  EXPECT_EQ(cdl_f64_to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(cdl_f64_to_f16(1.0 + 0x1p-11), 0x3c00);
  EXPECT_EQ(cdl_f64_to_f16(0x1p-25), 0);
  EXPECT_EQ(cdl_f64_to_f16(0x1.0000000001p-25), 1);
  EXPECT_EQ(cdl_f64_to_f16(5e-324), 0);
}

TEST(Numerics, InfinitiesSaturateOrStay) {
  const double inf = HUGE_VAL;
  EXPECT_EQ(cdl_f64_to_f16(inf), 0x7c00);
  EXPECT_EQ(cdl_f64_to_f16_sat(-inf), 0xfbff);
  EXPECT_EQ(cdl_f32_to_bf16(HUGE_VALF), 0x7f80);
  EXPECT_EQ(cdl_f32_to_bf16_sat(HUGE_VALF), 0x7f7f);
  EXPECT_EQ(encodeStorage(CDL_F8E4M3, inf, false), 0x7fu);
  EXPECT_EQ(encodeStorage(CDL_F8E4M3, -inf, true), 0xfeu);
  EXPECT_EQ(encodeStorage(CDL_F8E5M2, inf, false), 0x7cu);
  EXPECT_EQ(encodeStorage(CDL_F8E5M2, 1e9, true), 0x7bu);
}

TEST(Numerics, IntegersRoundToOddOnTheWayToNarrowFloats) {
  EXPECT_EQ(cdl_i64_to_f64_odd(-7), -7.0);
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    // Ties of bf16 and their neighbours.
    const uint64_t tie = (value & 0xff00000000000000u) | 0x0080000000000000u;
    for (const uint64_t v : {value, tie, tie + 1, tie - 1}) {
      const Real want = roundTo(CDL_BF16, static_cast<Real>(v));
      ASSERT_EQ(decode(CDL_BF16, cdl_f64_to_bf16(cdl_u64_to_f64_odd(v))), want) << v;
      const int64_t negative = static_cast<int64_t>(v);
      ASSERT_EQ(decode(CDL_BF16, cdl_f64_to_bf16(cdl_i64_to_f64_odd(negative))),
                roundTo(CDL_BF16, static_cast<Real>(negative)));
    }
  }
}

TEST(Numerics, PackedElements) {
  uint8_t bytes[2] = {};
  const int values[] = {-8, 7, 0, -1};
  for (int i = 0; i < 4; ++i) cdl_packed_set(bytes, i, 4, values[i]);
  EXPECT_EQ(bytes[0], 0x78); // low nibble first
  EXPECT_EQ(bytes[1], 0xf0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(cdl_packed_get_signed(bytes, i, 4), values[i]);
    EXPECT_EQ(cdl_packed_get(bytes, i, 4), values[i] & 15);
  }
  cdl_packed_set(bytes, 1, 4, 3);
  EXPECT_EQ(bytes[0], 0x38);
  for (int i = 0; i < 4; ++i) cdl_packed_set(bytes, i, 2, i);
  EXPECT_EQ(bytes[0], 0xe4); // low bits first
  EXPECT_EQ(cdl_packed_get_signed(bytes, 2, 2), -2);
}

// Every pair of 8-bit values, and boundaries and random pairs of the others, against __int128.
template <class T> void checkSemantics(int elem, T a, T b, T (*const fns[])(T, T)) {
  const Int x = a, y = b, width = info(elem).bits;
  const bool far = y < 0 || y >= width;
  const Int power = far ? 0 : Int{1} << static_cast<int>(y);
  const Int want[] = {wrap(elem, x + y),
                      wrap(elem, x - y),
                      wrap(elem, times(x, y)),
                      y == 0 ? 0 : wrap(elem, x / y),
                      y == 0 ? x : x % y,
                      far ? 0 : wrap(elem, times(x, power)),
                      far ? (x < 0 ? -1 : 0) : (x - (x % power + power) % power) / power,
                      x < y ? x : y,
                      x < y ? y : x};
  for (int f = 0; f < 9; ++f)
    ASSERT_TRUE(Int{fns[f](a, b)} == want[f])
        << "elem " << elem << " fn " << f << " of " << +a << " and " << +b;
}

#define CDL_SEMANTICS_FNS(T, N)                                                                    \
  T(*const fns[])                                                                                  \
  (T, T) = {cdl_add_##N, cdl_sub_##N, cdl_mul_##N, cdl_div_##N, cdl_rem_##N,                       \
            cdl_shl_##N, cdl_shr_##N, cdl_min_##N, cdl_max_##N}
#define CDL_SEMANTICS_TEST(NAME, ELEM, T, N)                                                       \
  TEST(Numerics, IntegerSemantics##NAME) {                                                         \
    CDL_SEMANTICS_FNS(T, N);                                                                       \
    std::mt19937_64 random(3);                                                                     \
    const Int low = lowest(ELEM), high = highest(ELEM);                                            \
    std::vector<T> values;                                                                         \
    if (sizeof(T) == 1)                                                                            \
      for (Int v = low; v <= high; ++v) values.push_back(static_cast<T>(v));                       \
    for (Int d = 0; d < 70; ++d)                                                                   \
      for (Int v : {low + d, high - d, d, -d}) values.push_back(static_cast<T>(v));                \
    for (int i = 0; i < 60; ++i) values.push_back(static_cast<T>(random() >> (random() % 60)));    \
    for (T a : values) {                                                                           \
      ASSERT_TRUE(Int{cdl_neg_##N(a)} == wrap(ELEM, -Int{a}));                                     \
      ASSERT_TRUE(Int{cdl_abs_##N(a)} == wrap(ELEM, a < T(1) ? -Int{a} : Int{a}));                 \
      for (T b : values) checkSemantics<T>(ELEM, a, b, fns);                                       \
      if (HasFatalFailure()) return;                                                               \
    }                                                                                              \
  }
CDL_SEMANTICS_TEST(I8, CDL_I8, int8_t, i8)
CDL_SEMANTICS_TEST(U8, CDL_U8, uint8_t, u8)
CDL_SEMANTICS_TEST(I16, CDL_I16, int16_t, i16)
CDL_SEMANTICS_TEST(U16, CDL_U16, uint16_t, u16)
CDL_SEMANTICS_TEST(I32, CDL_I32, int32_t, i32)
CDL_SEMANTICS_TEST(U32, CDL_U32, uint32_t, u32)
CDL_SEMANTICS_TEST(I64, CDL_I64, int64_t, i64)
CDL_SEMANTICS_TEST(U64, CDL_U64, uint64_t, u64)

TEST(Numerics, FloatMinimumAndMaximumPropagateNaN) {
  const float nan = NAN;
  EXPECT_TRUE(std::isnan(cdl_min_f32(nan, 1)) && std::isnan(cdl_min_f32(1, nan)) &&
              std::isnan(cdl_max_f32(nan, 1)) && std::isnan(cdl_max_f32(1, nan)));
  EXPECT_TRUE(std::isnan(cdl_min_f64(NAN, 1)) && std::isnan(cdl_max_f64(1, NAN)));
  EXPECT_EQ(cdl_min_f32(-2, 3), -2);
  EXPECT_EQ(cdl_max_f64(-2, 3), 3);
}

TEST(Numerics, FloatsRoundToIntegers) {
  const double values[] = {0.0,
                           0.5,
                           1.5,
                           2.5,
                           -0.5,
                           -1.5,
                           -2.5,
                           0.49999999999999994,
                           1e15 + 0.5,
                           -1e300,
                           1e300,
                           0x1p63,
                           -0x1p63,
                           0x1p64,
                           NAN,
                           HUGE_VAL,
                           -HUGE_VAL,
                           127.5,
                           -128.5,
                           255.5,
                           0x1p31,
                           -0x1p31 - 1,
                           4503599627370495.5,
                           1e10};
  for (const double x : values) {
    const double rounded[] = {std::trunc(x), std::nearbyint(x), std::floor(x)};
    for (int r = 0; r < 3; ++r) {
      EXPECT_TRUE(std::isnan(x) || cdl_round_f64(x, r) == rounded[r]) << x << " by " << r;
      for (const auto& [lo, hi] :
           {std::pair<int64_t, int64_t>{-128, 127}, {0, 255}, {INT64_MIN, INT64_MAX}}) {
        const Real want = std::isnan(x)
                              ? 0
                              : std::min<Real>(std::max<Real>(rounded[r], static_cast<Real>(lo)),
                                               static_cast<Real>(hi));
        EXPECT_EQ(static_cast<Real>(cdl_f64_to_int_sat(x, r, lo, hi)), want) << x << " by " << r;
      }
      const Real wantU64 = std::isnan(x) ? 0
                                         : std::min<Real>(std::max<Real>(rounded[r], 0),
                                                          static_cast<Real>(UINT64_MAX));
      EXPECT_EQ(static_cast<Real>(cdl_f64_to_u64_sat(x, r)), wantU64) << x;
      const Int wide = std::isnan(x)           ? 0
                       : rounded[r] >= 0x1p64  ? Int{UINT64_MAX}
                       : rounded[r] <= -0x1p63 ? Int{INT64_MIN}
                                               : static_cast<Int>(rounded[r]);
      EXPECT_TRUE(Int{cdl_f64_to_int_wrap(x, r)} == wrap(CDL_U64, wide)) << x;
    }
  }
}

TEST(Numerics, ScaleSplitsExactly) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t bits = i < 1000 ? static_cast<uint32_t>(i) : static_cast<uint32_t>(random());
    const float scale = cdl_f32_of_bits(bits);
    int32_t m = -1, s = -1;
    if (!(scale >= 0) || std::isinf(scale)) {
      ASSERT_EQ(cdl_scale_split(scale, &m, &s), 0) << scale;
      ASSERT_EQ(m, -1);
      continue;
    }
    ASSERT_EQ(cdl_scale_split(scale, &m, &s), 1) << scale;
    ASSERT_EQ(std::ldexp(static_cast<double>(m), -s), static_cast<double>(scale));
    ASSERT_TRUE(scale == 0 ? m == 0 && s == 0 : m >= 1 << 23 && m < 1 << 24) << scale;
  }
}

// round half to even by division instead of by bits.
Int naiveRescale(Int sum, int s, Int zp, Int lo, Int hi) {
  const Int unit = s >= 64 ? Int{1} << 64 : Int{1} << s;
  Int quotient = sum / unit, rest = sum % unit;
  if (rest < 0) rest += unit, --quotient;
  if (2 * rest > unit || (2 * rest == unit && quotient % 2 != 0)) ++quotient;
  return std::min(std::max(quotient + zp, lo), hi);
}

TEST(Numerics, RescaleRoundsOnce) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000000; ++i) {
    const int32_t ma = static_cast<int32_t>(random() >> 40),
                  mb = static_cast<int32_t>(random() >> 40);
    const int32_t s = static_cast<int32_t>(random() % 66),
                  zp = static_cast<int32_t>(random() % 512) - 256;
    const int64_t lo = random() % 2 ? -128 : INT32_MIN, hi = lo == -128 ? 127 : INT32_MAX;
    const int64_t wideA = static_cast<int64_t>(random()) >> (25 + random() % 30); // below 2^39
    ASSERT_TRUE(Int{cdl_rescale1(wideA, ma, 0, s, zp, lo, hi)} ==
                naiveRescale(Int{wideA} * ma, s, zp, lo, hi));
    const int64_t a = static_cast<int32_t>(random()) >> (random() % 24),
                  b = static_cast<int32_t>(random()) >> (random() % 24);
    const int32_t ka = static_cast<int32_t>(random() % 8), kb = static_cast<int32_t>(random() % 8);
    const Int sum = ((Int{a} * ma) << ka) + ((Int{b} * mb) << kb);
    ASSERT_TRUE(Int{cdl_rescale2(a, b, ma, mb, ka, kb, s, zp, lo, hi)} ==
                naiveRescale(sum, s, zp, lo, hi))
        << a << " " << b;
  }
  // Ties, both parities and signs.
  for (int64_t a = -9; a <= 9; ++a)
    EXPECT_TRUE(Int{cdl_rescale1(a, 1 << 23, 0, 24, 0, -128, 127)} ==
                naiveRescale(Int{a} << 23, 24, 0, -128, 127));
  EXPECT_EQ(cdl_rescale_finish(INT64_MAX, 0, 5, INT64_MIN, INT64_MAX), INT64_MAX);
  EXPECT_EQ(cdl_rescale_finish(INT64_MIN, 0, -5, INT64_MIN, INT64_MAX), INT64_MIN);
  EXPECT_EQ(cdl_rescale_finish(INT64_MIN, 63, 0, INT64_MIN, INT64_MAX), -1);
  EXPECT_EQ(cdl_rescale_finish(INT64_MIN, 64, 0, INT64_MIN, INT64_MAX), 0);
}

TEST(Numerics, TablesOfEveryInput) {
  std::mt19937_64 random(6);
  std::vector<int16_t> table(513);
  for (int16_t& entry : table) entry = static_cast<int16_t>(random());
  table[7] = INT16_MIN, table[8] = INT16_MAX;
  for (int x = -32768; x <= 32767; ++x) {
    const int i = (x + 32768) / 128, frac = (x + 32768) % 128;
    const double exact = table[i] + (table[i + 1] - table[i]) * (frac / 128.0);
    ASSERT_EQ(cdl_table_i16(table.data(), static_cast<int16_t>(x)), std::floor(exact + 0.5)) << x;
  }
  int8_t signedTable[256];
  uint8_t unsignedTable[256];
  for (int i = 0; i < 256; ++i)
    signedTable[i] = static_cast<int8_t>(i * 7), unsignedTable[i] = static_cast<uint8_t>(i * 5);
  for (int x = -128; x < 128; ++x)
    EXPECT_EQ(cdl_table_i8(signedTable, static_cast<int8_t>(x)),
              static_cast<int8_t>((x + 128) * 7));
  for (int x = 0; x < 256; ++x)
    EXPECT_EQ(cdl_table_u8(unsignedTable, static_cast<uint8_t>(x)), static_cast<uint8_t>(x * 5));
}

} // namespace
} // namespace candela
