// Every row of soft's capability table runs, and gives what the definitions give.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>

#include "tests/unit/runtime/host_executor/machine.h"

namespace candela {
namespace {

using namespace testing;

std::string rowName(const cdl_row_t& row) {
  std::string name =
      "kind " + std::to_string(row.kind) + " fn " + std::to_string(row.fn) + " elems";
  for (int i = 0; i < row.elem_count; ++i) name += " " + std::to_string(row.elems[i]);
  return name;
}

// What is expected of one element: an integer, or a real within `ulps` units and `slack`.
struct Want {
  Int whole = 0;
  Real real = 0;
  Real ulps = 0.5L, slack = 0;
};
Want exactly(Int whole) { return {whole, static_cast<Real>(whole)}; }
Want about(Real real, Real ulps = 0.5L, Real slack = 0) { return {0, real, ulps, slack}; }

void expectElement(const Array& y, int64_t i, const Want& want, const std::string& where) {
  if (!isFloat(y.elem())) {
    ASSERT_TRUE(y.integer(i) == want.whole &&
                y.bits(i) == (static_cast<uint64_t>(want.whole) &
                              (~uint64_t{0} >> (64 - info(y.elem()).bits))))
        << where << " element " << i << ": got " << static_cast<long double>(y.integer(i))
        << ", want " << static_cast<long double>(want.whole);
    return;
  }
  const Real got = y.real(i);
  const bool close =
      std::fabs(got - want.real) <= want.slack || near(y.elem(), got, want.real, want.ulps);
  ASSERT_TRUE(close) << where << " element " << i << ": got " << got << ", want " << want.real;
}

// ---- Element-wise definitions ----

Int roundReal(Real x, int fn, int elem, bool saturate) {
  if (std::isnan(x)) return 0;
  x = fn == CDL_CONVERT_TRUNC ? std::trunc(x)
      : fn == CDL_CONVERT_RNE ? std::nearbyint(x)
                              : std::floor(x);
  if (saturate) {
    if (x <= static_cast<Real>(lowest(elem))) return lowest(elem);
    if (x >= static_cast<Real>(highest(elem))) return highest(elem);
    return static_cast<Int>(x);
  }
  if (x >= 0x1p64L) return wrap(elem, Int{UINT64_MAX});
  if (x <= -0x1p63L) return wrap(elem, Int{INT64_MIN});
  return wrap(elem, static_cast<Int>(x));
}

Want convert(const Array& x, int64_t i, int fn, int to, bool saturate) {
  if (isFloat(to)) {
    const Real value = roundTo(to, x.real(i), saturate);
    return {0, value, 0, 0};
  }
  if (to == CDL_BOOL) return exactly(isFloat(x.elem()) ? x.real(i) != 0 : x.integer(i) != 0);
  if (isFloat(x.elem())) return exactly(roundReal(x.real(i), fn, to, saturate));
  const Int value = x.integer(i);
  return exactly(saturate ? std::min(std::max(value, lowest(to)), highest(to)) : wrap(to, value));
}

Int power(int elem, Int a, Int b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  Int result = 1;
  if (a == 0 || a == 1 || a == -1) return b == 0 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : a;
  // Even bases vanish modulo 2^64 after 64 factors; odd ones repeat after 2^62.
  if (a % 2 == 0 && b > 64) return 0;
  for (; b > 0; b /= 2, a = wrap(CDL_U64, times(a, a)))
    if (b % 2) result = wrap(CDL_U64, times(result, a));
  return wrap(elem, result);
}

Want binary(const Array& a, const Array& b, int64_t i, int fn) {
  const int elem = a.elem();
  if (isFloat(elem)) {
    const Real x = a.real(i), y = b.real(i);
    const bool nan = std::isnan(x) || std::isnan(y);
    switch (fn) {
    case CDL_BINARY_ADD: return about(x + y);
    case CDL_BINARY_SUB: return about(x - y);
    case CDL_BINARY_MUL: return about(x * y);
    case CDL_BINARY_DIV: return about(x / y);
    case CDL_BINARY_MIN: return about(nan ? NAN : std::min(x, y));
    case CDL_BINARY_MAX: return about(nan ? NAN : std::max(x, y));
    case CDL_BINARY_POW: return about(std::pow(x, y), 3);
    default: return about(std::fmod(x, y), 0);
    }
  }
  const Int x = a.integer(i), y = b.integer(i);
  const bool far = y < 0 || y >= info(elem).bits;
  const Int unit = far ? 1 : Int{1} << static_cast<int>(y);
  switch (fn) {
  case CDL_BINARY_ADD: return exactly(wrap(elem, x + y));
  case CDL_BINARY_SUB: return exactly(wrap(elem, x - y));
  case CDL_BINARY_MUL: return exactly(wrap(elem, times(x, y)));
  case CDL_BINARY_DIV: return exactly(y == 0 ? 0 : wrap(elem, x / y));
  case CDL_BINARY_MIN: return exactly(std::min(x, y));
  case CDL_BINARY_MAX: return exactly(std::max(x, y));
  case CDL_BINARY_AND: return exactly(x & y);
  case CDL_BINARY_OR: return exactly(x | y);
  case CDL_BINARY_XOR: return exactly(x ^ y);
  case CDL_BINARY_SHL: return exactly(far ? 0 : wrap(elem, times(x, unit)));
  case CDL_BINARY_SHR: return exactly(far ? -(x < 0) : (x - ((x % unit) + unit) % unit) / unit);
  case CDL_BINARY_POW: return exactly(power(elem, x, y));
  default: return exactly(y == 0 ? x : x % y);
  }
}

Want unary(const Array& a, int64_t i, int fn) {
  if (!isFloat(a.elem())) {
    const Int x = a.integer(i);
    return exactly(wrap(a.elem(), fn == CDL_UNARY_NEG || x < 0 ? -x : x));
  }
  const Real x = a.real(i);
  switch (fn) {
  case CDL_UNARY_NEG: return about(-x, 0);
  case CDL_UNARY_ABS: return about(std::fabs(x), 0);
  case CDL_UNARY_FLOOR: return about(std::floor(x), 0);
  case CDL_UNARY_SQRT: return about(std::sqrt(x), 3);
  case CDL_UNARY_RCP: return about(1 / x, 3);
  case CDL_UNARY_EXP: return about(std::exp(x), 3);
  case CDL_UNARY_LOG: return about(std::log(x), 3);
  case CDL_UNARY_CEIL: return about(std::ceil(x), 0);
  case CDL_UNARY_TRUNC: return about(std::trunc(x), 0);
  case CDL_UNARY_ROUND_EVEN: return about(std::nearbyint(x), 0);
  case CDL_UNARY_RSQRT: return about(1 / std::sqrt(x), 3);
  case CDL_UNARY_LOG1P: return about(std::log1p(x), 3);
  case CDL_UNARY_EXPM1: return about(std::expm1(x), 3);
  case CDL_UNARY_SIN: return about(std::sin(x), 3);
  case CDL_UNARY_COS: return about(std::cos(x), 3);
  case CDL_UNARY_TAN: return about(std::tan(x), 3);
  case CDL_UNARY_TANH: return about(std::tanh(x), 3);
  case CDL_UNARY_ERF: return about(std::erf(x), 3);
  default: return about(x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)), 3);
  }
}

// ---- One case per kind ----

class Rows : public ::testing::Test {
protected:
  std::mt19937_64 random_{42};

  Array make(int elem, int64_t count, bool moderate = false) {
    Array array(elem, count);
    array.fill(random_, moderate);
    return array;
  }

  void elementwise(const cdl_row_t& row) {
    constexpr int64_t n = 1300; // more than two blocks
    const int inputs = row.elem_count - 1, out = row.elems[inputs];
    std::vector<Array> in;
    for (int k = 0; k < inputs; ++k) in.push_back(make(row.elems[k], n));
    for (const bool saturate : {false, true}) {
      if (saturate && row.kind != CDL_KIND_CONVERT) break;
      Machine m;
      Array y(out, n);
      std::vector<cdl_view_t> views;
      for (Array& array : in) views.push_back(m.dense(array, {n}));
      m.maker.instr(row.kind, row.fn, views, m.dense(y, {n}),
                    saturate ? std::vector{Maker::attr(CDL_ATTR_SATURATE, 1)}
                             : std::vector<cdl_attr_t>{});
      ASSERT_EQ(m.run(), "") << rowName(row);
      for (int64_t i = 0; i < n; ++i) {
        Want want;
        switch (row.kind) {
        case CDL_KIND_CONVERT: want = convert(in[0], i, row.fn, out, saturate); break;
        case CDL_KIND_BINARY: want = binary(in[0], in[1], i, row.fn); break;
        case CDL_KIND_UNARY: want = unary(in[0], i, row.fn); break;
        case CDL_KIND_COMPARE: {
          const Real a = in[0].real(i), b = in[1].real(i);
          want = exactly(row.fn == CDL_COMPARE_LT ? a < b : a == b);
          break;
        }
        default:
          ASSERT_EQ(y.bits(i), in[in[0].integer(i) ? 1 : 2].bits(i)) << rowName(row);
          continue;
        }
        expectElement(y, i, want, rowName(row));
        if (HasFatalFailure()) return;
      }
    }
  }

  void move(const cdl_row_t& row) {
    Machine m;
    Array x = make(row.elems[0], 60), y(row.elems[0], 60);
    if (row.kind == CDL_KIND_COPY)
      m.maker.instr(row.kind, 0, {m.dense(x, {3, 20})}, m.dense(y, {3, 20}));
    else
      m.maker.instr(row.kind, 0, {}, m.dense(y, {60}),
                    {Maker::attr(CDL_ATTR_VALUE, static_cast<int64_t>(x.bits(5)), 4)});
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < 60; ++i)
      ASSERT_EQ(y.bits(i), x.bits(row.kind == CDL_KIND_COPY ? i : 5)) << rowName(row);
  }

  // x[2,5,3] by 7 indices, some of them outside.
  Array indices(int elem) {
    Array index(elem, 7);
    const int64_t values[] = {4, 0, -1, 5, 2, elem == CDL_I64 ? INT64_MIN : INT32_MIN, 0};
    for (int64_t k = 0; k < 7; ++k) index.setInteger(k, values[k]);
    return index;
  }
  void gather(const cdl_row_t& row) {
    Machine m;
    Array x = make(row.elems[0], 30), index = indices(row.elems[1]), y(row.elems[2], 42);
    m.maker.instr(row.kind, row.fn, {m.dense(x, {2, 5, 3}), m.dense(index, {7})},
                  m.dense(y, {2, 7, 3}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t o = 0; o < 2; ++o)
      for (int64_t k = 0; k < 7; ++k)
        for (int64_t i = 0; i < 3; ++i) {
          const int64_t at = static_cast<int64_t>(index.integer(k)),
                        inside = std::clamp<int64_t>(at, 0, 4);
          const uint64_t want =
              at != inside && row.fn == CDL_GATHER_ZERO ? 0 : x.bits((o * 5 + inside) * 3 + i);
          ASSERT_EQ(y.bits((o * 7 + k) * 3 + i), want) << rowName(row);
        }
  }
  // Folds b into a: the functions of SCATTER and REDUCE on values of the type, in the order given.
  Want fold(int elem, int what, const Want& a, Int whole,
            Real real) { // what: 0 add, 1 min, 2 max, 3 mul, 4 set
    if (isFloat(elem)) {
      const bool nan = std::isnan(a.real) || std::isnan(real);
      return about(what == 0   ? a.real + real
                   : what == 1 ? (nan ? NAN : std::min(a.real, real))
                   : what == 2 ? (nan ? NAN : std::max(a.real, real))
                   : what == 3 ? a.real * real
                               : real);
    }
    return exactly(what == 0   ? wrap(elem, a.whole + whole)
                   : what == 1 ? std::min(a.whole, whole)
                   : what == 2 ? std::max(a.whole, whole)
                   : what == 3 ? wrap(elem, times(a.whole, whole))
                               : whole);
  }
  void scatter(const cdl_row_t& row) {
    constexpr int what[] = {4, 0, 1, 2, 3};
    const int elem = row.elems[2];
    Machine m;
    Array index = indices(row.elems[0]), updates = make(elem, 42, true), y = make(elem, 30, true);
    const Array before = y;
    m.maker.instr(row.kind, row.fn, {m.dense(index, {7}), m.dense(updates, {2, 7, 3})},
                  m.dense(y, {2, 5, 3}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t o = 0; o < 2; ++o)
      for (int64_t at = 0; at < 5; ++at)
        for (int64_t i = 0; i < 3; ++i) {
          const int64_t place = (o * 5 + at) * 3 + i;
          Want want{isFloat(elem) ? 0 : before.integer(place), before.real(place), 0, 0};
          for (int64_t k = 0; k < 7; ++k)
            if (index.integer(k) == at) {
              const int64_t u = (o * 7 + k) * 3 + i;
              want = fold(elem, what[row.fn], want, isFloat(elem) ? 0 : updates.integer(u),
                          updates.real(u));
              want.real = roundTo(elem, want.real);
            }
          expectElement(y, place, want, rowName(row));
        }
  }

  void reduce(const cdl_row_t& row) {
    constexpr int what[] = {0, 2, 1, 3};
    const int elem = row.elems[0];
    const bool product = row.fn == CDL_REDUCE_PROD;
    for (const auto& [o, r, i] :
         {std::array<int64_t, 3>{3, 37, 5}, {2, 21, 1}, {2, 0, 2}, {1, 3, 700}}) {
      Machine m;
      Array x = make(elem, o * r * i, true), y(elem, o * i);
      m.maker.instr(row.kind, row.fn, {m.dense(x, {o, r, i})}, m.dense(y, {o, i}));
      ASSERT_EQ(m.run(), "") << rowName(row);
      for (int64_t p = 0; p < o * i; ++p) {
        Want want = row.fn == CDL_REDUCE_SUM   ? exactly(0)
                    : product                  ? exactly(1)
                    : row.fn == CDL_REDUCE_MAX ? Want{lowest(elem), -HUGE_VALL}
                                               : Want{highest(elem), HUGE_VALL};
        Real magnitude = 0;
        for (int64_t k = 0; k < r; ++k) {
          const int64_t at = (p / i * r + k) * i + p % i;
          want = fold(elem, what[row.fn], want, isFloat(elem) ? 0 : x.integer(at), x.real(at));
          magnitude += std::fabs(x.real(at));
        }
        const Real unit = elem == CDL_F64 || elem == CDL_F32 ? 0x1p-52L : 0x1p-23L;
        want.slack =
            row.fn == CDL_REDUCE_MAX || row.fn == CDL_REDUCE_MIN
                ? 0
                : unit * static_cast<Real>(r) * (product ? std::fabs(want.real) : magnitude) +
                      ulpAt(elem, want.real) * 0.5L;
        expectElement(y, p, want, rowName(row));
        if (HasFatalFailure()) return;
      }
    }
  }

  void argReduce(const cdl_row_t& row) {
    const bool max = row.fn == CDL_ARG_REDUCE_MAX;
    for (const bool last : {false, true}) {
      Machine m;
      Array x = make(row.elems[0], 2 * 9 * 4), y(row.elems[1], 8);
      m.maker.instr(row.kind, row.fn, {m.dense(x, {2, 9, 4})}, m.dense(y, {2, 4}),
                    {Maker::attr(CDL_ATTR_SELECT_LAST, last)});
      ASSERT_EQ(m.run(), "") << rowName(row);
      for (int64_t p = 0; p < 8; ++p) {
        const auto key = [&](int64_t r) { // NaN above everything
          const Real v = x.real((p / 4 * 9 + r) * 4 + p % 4);
          return std::isnan(v) ? std::pair{1, Real{0}} : std::pair{0, max ? v : -v};
        };
        int64_t best = 0;
        for (int64_t r = 1; r < 9; ++r)
          if (key(r) > key(best) || (last && key(r) == key(best))) best = r;
        ASSERT_TRUE(y.integer(p) == best) << rowName(row) << " at " << p;
      }
    }
  }

  void sort(const cdl_row_t& row) {
    const int elem = row.elems[0];
    Machine m;
    Array x = make(elem, 2 * 9 * 4), y(elem, 2 * 6 * 4), index(CDL_I32, 2 * 6 * 4);
    for (int64_t i = 0; i < 2 * 9 * 4; i += 3) x.setBits(i, x.bits(i / 2)); // ties
    m.maker.instr(row.kind, row.fn, {m.dense(x, {2, 9, 4})},
                  {m.dense(y, {2, 6, 4}), m.dense(index, {2, 6, 4})});
    ASSERT_EQ(m.run(), "") << rowName(row);
    const bool descending = row.fn == CDL_SORT_DESCENDING;
    for (int64_t p = 0; p < 8; ++p) {
      const auto at = [&](int64_t n, int64_t extent) { return (p / 4 * extent + n) * 4 + p % 4; };
      const auto key = [&](int64_t n) { // NaN above everything, then the lower place first
        const Real v = x.real(at(n, 9));
        const bool nan = std::isnan(v);
        return std::tuple{nan != descending, nan ? 0 : descending ? -v : v, n};
      };
      std::vector<int64_t> order(9);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
      for (int64_t k = 0; k < 6; ++k) {
        ASSERT_TRUE(index.integer(at(k, 6)) == order[k])
            << rowName(row) << " line " << p << " place " << k;
        ASSERT_EQ(y.bits(at(k, 6)), x.bits(at(order[k], 9))) << rowName(row) << " line " << p;
      }
    }
  }

  void matmul(const cdl_row_t& row) {
    const int a = row.elems[0], b = row.elems[1], out = row.elems[row.elem_count - 1];
    constexpr int64_t batch = 2, rows = 7, depth = 300, columns = 19;
    const bool hasA = row.elem_count > 3, hasB = row.elem_count > 4;
    Machine m;
    Array x = make(a, batch * rows * depth, true), w = make(b, batch * depth * columns, true),
          y(out, batch * rows * columns);
    Array zeroA = make(hasA ? row.elems[2] : int{CDL_I8}, 1),
          zeroB = make(hasB ? row.elems[3] : int{CDL_I8}, columns);
    std::vector<cdl_view_t> views{m.dense(x, {batch, rows, depth}),
                                  m.dense(w, {batch, depth, columns})};
    if (hasA) views.push_back(m.dense(zeroA, {1}));
    if (hasB) views.push_back(m.dense(zeroB, {columns}));
    m.maker.instr(row.kind, 0, views, m.dense(y, {batch, rows, columns}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t n = i % columns, r = i / columns % rows, g = i / columns / rows;
      Int whole = 0;
      Real real = 0, magnitude = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t ia = (g * rows + r) * depth + k, ib = (g * depth + k) * columns + n;
        if (isFloat(a)) {
          real += x.real(ia) * w.real(ib);
          magnitude += std::fabs(x.real(ia) * w.real(ib));
        } else {
          whole = wrap(CDL_I64,
                       whole + wrap(CDL_I64, x.integer(ia) - (hasA ? zeroA.integer(0) : 0)) *
                                   wrap(CDL_I64, w.integer(ib) - (hasB ? zeroB.integer(n) : 0)));
        }
      }
      const Real unit = a == CDL_F64 ? 0x1p-53L : 0x1p-24L;
      expectElement(
          y, i, {wrap(out, whole), real, 0.5L, unit * depth * magnitude + ulpAt(out, real) * 0.5L},
          rowName(row));
      if (HasFatalFailure()) return;
    }
  }

  void rescale(const cdl_row_t& row) {
    const bool two = row.elem_count == 7;
    const int out = row.elems[row.elem_count - 1];
    constexpr int64_t n = 600;
    Machine m;
    Array a = make(row.elems[0], n), b = make(two ? row.elems[4] : int{CDL_I8}, n), y(out, n);
    Array ma(CDL_I32, n), mb(CDL_I32, 1), shift(CDL_I32, n), zero(CDL_I32, 1);
    for (int64_t i = 0; i < n; ++i) {
      if (a.elem() == CDL_I64) a.setInteger(i, a.integer(i) >> 26); // below 2^38
      ma.setInteger(i, static_cast<Int>((1 << 23) + random_() % (1 << 23)));
      shift.setInteger(i, static_cast<Int>(random_() % 60));
    }
    mb.setInteger(0, (1 << 24) - 1);
    zero.setInteger(0, 3);
    const int room = 62 - 24 - (info(a.elem()).bits == 64 ? 39 : info(a.elem()).bits);
    const int ka = room > 3 ? 3 : 0, kb = two && info(b.elem()).bits < 32 ? 2 : 0;
    const Int lo = lowest(out) / 2, hi = highest(out) / 2;
    std::vector<cdl_view_t> views{m.dense(a, {n}), m.dense(ma, {n}), m.dense(shift, {n}),
                                  m.view(zero, {n}, {0})};
    if (two) views.insert(views.end(), {m.dense(b, {n}), m.view(mb, {n}, {0})});
    m.maker.instr(row.kind, 0, views, m.dense(y, {n}),
                  {Maker::attr(CDL_ATTR_A_LEFT_SHIFT, ka), Maker::attr(CDL_ATTR_B_LEFT_SHIFT, kb),
                   Maker::attr(CDL_ATTR_CLAMP_MIN, static_cast<int64_t>(lo)),
                   Maker::attr(CDL_ATTR_CLAMP_MAX, static_cast<int64_t>(hi))});
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < n; ++i) {
      const Int sum =
          (a.integer(i) * ma.integer(i) << ka) + (two ? b.integer(i) * mb.integer(0) << kb : 0);
      const Int unit = Int{1} << static_cast<int>(shift.integer(i));
      Int quotient = sum / unit, rest = sum % unit;
      if (rest < 0) rest += unit, --quotient;
      if (2 * rest > unit || (2 * rest == unit && quotient % 2 != 0)) ++quotient;
      expectElement(y, i, exactly(std::min(std::max(quotient + 3, lo), hi)), rowName(row));
    }
  }

  void table(const cdl_row_t& row) {
    const int elem = row.elems[0];
    const int64_t entries = elem == CDL_I16 ? 513 : 256, n = elem == CDL_I16 ? 65536 : 256;
    Machine m;
    Array x(elem, n), t = make(row.elems[1], entries), y(row.elems[2], n);
    for (int64_t i = 0; i < n; ++i) x.setInteger(i, lowest(elem) + i);
    m.maker.instr(row.kind, 0, {m.dense(x, {n}), m.dense(t, {entries})}, m.dense(y, {n}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < n; ++i) {
      if (elem != CDL_I16) {
        ASSERT_EQ(y.bits(i), t.bits(i)) << rowName(row);
        continue;
      }
      const double base = static_cast<double>(t.real(i / 128)),
                   next = static_cast<double>(t.real(i / 128 + 1));
      expectElement(y, i,
                    exactly(static_cast<Int>(std::floor(
                        base + (next - base) * (static_cast<double>(i % 128) / 128) + 0.5))),
                    rowName(row));
    }
  }

  /// The number that an element is, whatever its type.
  static Real numberAt(const Array& array, int64_t i) {
    return isFloat(array.elem()) ? array.real(i) : static_cast<Real>(array.integer(i));
  }

  /// A block of activations as `dynamic` takes it: each operation rounded to f32.
  static Real roundedBlock(std::vector<Real>& x) {
    Real largest = 0;
    for (const Real value : x) largest = std::max(largest, std::fabs(value));
    if (largest < 0x1p-100L) largest = 0;
    const Real perStep = largest == 0 ? 0 : roundTo(CDL_F32, 127 / largest);
    for (Real& value : x) value = std::nearbyint(roundTo(CDL_F32, value * perStep));
    return roundTo(CDL_F32, largest / 127);
  }

  /// Types of a, w, scales, zero points and scales of a.
  using ScaledTypes = std::array<int, 5>;

  void scaledMatmul(const cdl_row_t& row) {
    static constexpr ScaledTypes exact[] = {
        {CDL_F32, CDL_I4, CDL_F32, CDL_U8, CDL_F32},
        {CDL_F16, CDL_U4, CDL_F16, CDL_F16, CDL_BF16},
        {CDL_BF16, CDL_I8, CDL_F32, CDL_BF16, CDL_F32},
        {CDL_F32, CDL_U2, CDL_BF16, CDL_F32, CDL_F8E8M0},
        {CDL_I8, CDL_I4, CDL_F32, CDL_I8, CDL_F32},
        {CDL_I8, CDL_U8, CDL_F16, CDL_U8, CDL_F16},
        {CDL_F8E4M3, CDL_F8E5M2, CDL_F8E8M0, CDL_F32, CDL_F8E8M0},
        {CDL_F6E2M3, CDL_F6E3M2, CDL_F32, CDL_F32, CDL_F32},
        {CDL_F4E2M1, CDL_F4E2M1, CDL_F8E4M3, CDL_F32, CDL_F8E4M3}};
    static constexpr ScaledTypes dynamic[] = {{CDL_F32, CDL_I4, CDL_F32, CDL_U8},
                                              {CDL_F16, CDL_U4, CDL_F16, CDL_I8},
                                              {CDL_BF16, CDL_I2, CDL_BF16, CDL_U8},
                                              {CDL_F32, CDL_U8, CDL_F32, CDL_I8}};
    if (row.fn == CDL_SCALED_MATMUL_DYNAMIC)
      for (const ScaledTypes& types : dynamic) scaledMatmul(row, types);
    else
      for (const ScaledTypes& types : exact) scaledMatmul(row, types);
  }

  // Blocks of 8, the last one not full.
  void scaledMatmul(const cdl_row_t& row, const ScaledTypes& types) {
    constexpr int64_t rows = 3;
    constexpr int64_t depth = 21;
    constexpr int64_t columns = 5;
    constexpr int64_t blocks = 3;
    constexpr int64_t block = 8;
    const int operands = row.elem_count - 1;
    const int out = row.elems[operands];
    Machine m;
    Array a = make(types[0], rows * depth, true),
          w = make(types[1], columns * blocks * block, true),
          scale = make(types[2], columns * blocks, true),
          zero = make(operands > 3 ? types[3] : int{CDL_I8}, columns * blocks, true),
          scaleOfA = make(operands > 4 ? types[4] : int{CDL_F32}, rows * blocks, true),
          y(out, rows * columns);
    std::vector<cdl_view_t> views{m.dense(a, {rows, depth}), m.dense(w, {columns, blocks, block}),
                                  m.dense(scale, {columns, blocks})};
    if (operands > 3) views.push_back(m.dense(zero, {columns, blocks}));
    if (operands > 4) views.push_back(m.dense(scaleOfA, {rows, blocks}));
    m.maker.instr(row.kind, row.fn, views, m.dense(y, {rows, columns}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t n = i % columns;
      const int64_t r = i / columns;
      Real sum = 0, magnitude = 0;
      for (int64_t g = 0; g < blocks; ++g) {
        std::vector<Real> x;
        for (int64_t k = g * block; k < std::min(depth, (g + 1) * block); ++k)
          x.push_back(numberAt(a, r * depth + k));
        Real step = operands > 4 ? numberAt(scaleOfA, r * blocks + g) : 1;
        if (row.fn == CDL_SCALED_MATMUL_DYNAMIC) step = roundedBlock(x);
        const int64_t at = n * blocks + g;
        const Real factor = step * numberAt(scale, at);
        for (size_t k = 0; k < x.size(); ++k) {
          const Real number = numberAt(w, at * block + static_cast<int64_t>(k));
          const Real offset = operands > 3 ? numberAt(zero, at) : 0;
          sum += x[k] * (number - offset) * factor;
          magnitude += std::fabs(x[k] * factor) * (std::fabs(number) + std::fabs(offset));
        }
      }
      expectElement(y, i, about(sum, 0.5L, 0x1p-24L * (depth + 8) * magnitude + ulpAt(out, sum)),
                    rowName(row));
      if (HasFatalFailure()) return;
    }
  }

  void softmax(const cdl_row_t& row) {
    const int elem = row.elems[0];
    Machine m;
    Array x = make(elem, 2 * 11 * 3, true), y(elem, 66);
    m.maker.instr(row.kind, row.fn, {m.dense(x, {2, 11, 3})}, m.dense(y, {2, 11, 3}));
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < 66; ++i) {
      Real sum = 0;
      for (int64_t r = 0; r < 11; ++r) sum += std::exp(x.real(i / 33 * 33 + r * 3 + i % 3));
      const Real logarithm = x.real(i) - std::log(sum);
      const Real want = row.fn == CDL_SOFTMAX_SOFTMAX ? std::exp(logarithm) : logarithm;
      expectElement(y, i, about(want, 4, elem == CDL_F64 ? 1e-14L : 1e-5L * std::fabs(want)),
                    rowName(row));
    }
  }

  void norm(const cdl_row_t& row) {
    const int elem = row.elems[0];
    constexpr int64_t rows = 3, count = 17;
    Machine m;
    Array x = make(elem, rows * count, true), scale = make(elem, count, true),
          bias = make(elem, count, true), y(elem, rows * count);
    std::vector<cdl_view_t> views{m.dense(x, {rows, count})};
    const bool scaled = row.elem_count > 2, biased = row.elem_count > 3;
    if (scaled) views.push_back(m.dense(scale, {count}));
    if (biased) views.push_back(m.dense(bias, {count}));
    int64_t bits;
    const double epsilon = 0.25;
    std::memcpy(&bits, &epsilon, 8);
    m.maker.instr(row.kind, row.fn, views, m.dense(y, {rows, count}),
                  {Maker::attr(CDL_ATTR_EPSILON, bits, 2)});
    ASSERT_EQ(m.run(), "") << rowName(row);
    for (int64_t i = 0; i < rows * count; ++i) {
      Real mean = 0, squares = 0;
      for (int64_t r = 0; r < count; ++r) mean += x.real(i / count * count + r) / count;
      if (row.fn == CDL_NORM_RMS) mean = 0;
      for (int64_t r = 0; r < count; ++r)
        squares += std::pow(x.real(i / count * count + r) - mean, 2) / count;
      Real want = (x.real(i) - mean) / std::sqrt(squares + 0.25L);
      if (scaled) want *= scale.real(i % count);
      if (biased) want += bias.real(i % count);
      expectElement(y, i, about(want, 2, 1e-14L), rowName(row));
    }
  }
};

TEST_F(Rows, EveryRowGivesWhatTheDefinitionsGive) {
  const cdl_capabilities_t& capabilities = runtime::host_executor::capabilities();
  std::map<int, int> counts;
  for (uint32_t i = 0; i < capabilities.row_count; ++i) {
    const cdl_row_t& row = capabilities.rows[i];
    ASSERT_TRUE(row.support == CDL_SUPPORT_NATIVE && row.operand_class == CDL_CLASS_AFFINE);
    // with an expression: expr_test
    if ((row.flags & CDL_ROW_EPILOGUE) || row.kind == CDL_KIND_ELEMENTWISE) continue;
    ++counts[row.kind];
    switch (row.kind) {
    case CDL_KIND_COPY:
    case CDL_KIND_FILL: move(row); break;
    case CDL_KIND_GATHER: gather(row); break;
    case CDL_KIND_SCATTER: scatter(row); break;
    case CDL_KIND_REDUCE: reduce(row); break;
    case CDL_KIND_ARG_REDUCE: argReduce(row); break;
    case CDL_KIND_SORT: sort(row); break;
    case CDL_KIND_MATMUL: matmul(row); break;
    case CDL_KIND_RESCALE: rescale(row); break;
    case CDL_KIND_TABLE: table(row); break;
    case CDL_KIND_SOFTMAX: softmax(row); break;
    case CDL_KIND_NORM: norm(row); break;
    case CDL_KIND_SCALED_MATMUL: scaledMatmul(row); break;
    default: elementwise(row); break;
    }
    if (HasFatalFailure()) return;
  }
  for (int kind = CDL_KIND_COPY; kind <= CDL_KIND_TABLE; ++kind)
    EXPECT_GT(counts[kind], 0) << "kind " << kind;
}

TEST_F(Rows, EveryRequiredRowIsThere) {
  struct Required {
    int kind, fn, count;
    std::array<int, 6> elems;
  };
#define CDL_ROW(profile, kind, fn, count, e0, e1, e2, e3, e4, ...)                                 \
  {kind, fn, count, {e0, e1, e2, e3, e4}},
#define CDL_ROW_BESIDE(profile, beside, kind, fn, count, e0, e1, e2, e3, e4, e5, ...)              \
  {kind, fn, count, {e0, e1, e2, e3, e4, e5}},
  const Required required[] = {
#include "candela/cdl_rows.inc"
      CDL_REQUIRED_ROWS(CDL_ROW) CDL_REQUIRED_ROWS_BESIDE(CDL_ROW_BESIDE)};
#undef CDL_ROW
#undef CDL_ROW_BESIDE
  const cdl_capabilities_t& capabilities = runtime::host_executor::capabilities();
  for (const Required& want : required) {
    bool found = false;
    for (uint32_t i = 0; i < capabilities.row_count && !found; ++i) {
      const cdl_row_t& row = capabilities.rows[i];
      found = row.kind == want.kind && row.fn == want.fn && row.elem_count == want.count &&
              std::equal(want.elems.begin(), want.elems.begin() + want.count, row.elems,
                         [](int elem, int ofRow) { return ofRow == 0 || elem == ofRow; });
    }
    EXPECT_TRUE(found) << "kind " << want.kind << " fn " << want.fn << " on " << want.elems[0];
  }
}

} // namespace
} // namespace candela
