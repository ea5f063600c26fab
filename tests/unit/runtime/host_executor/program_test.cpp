// Expressions, epilogues, accumulation, large products, loops, threads and errors.
#include <gtest/gtest.h>

#include <thread>

#include "candela/backend/status.hpp"
#include "tests/unit/runtime/host_executor/machine.h"
#include "tests/unit/runtime/host_executor/run_image.h"

namespace candela {
namespace {

using namespace testing;

cdl_operand_t acc(int elem) { return Maker::from(CDL_FROM_ACC, elem); }
cdl_operand_t view(int elem, int index) { return Maker::from(CDL_FROM_VIEW, elem, index); }
cdl_operand_t constant(int elem) { return Maker::from(CDL_FROM_CONST, elem); }
cdl_operand_t stepOf(int elem, int index) { return Maker::from(CDL_FROM_STEP, elem, index); }

// Small whole numbers lo .. lo + count - 1 in an order that is not simple, exact in every type.
Array numbers(int elem, int64_t size, int64_t lo, int64_t count) {
  Array array(elem, size);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t value = (i * i * 7 + i * 3) % count + lo;
    if (!isFloat(elem)) {
      array.setInteger(i, value);
      continue;
    }
    uint64_t bits = 0; // the type's exponents are searched: no conversion of the code under test
    const ElemInfo e = info(elem);
    if (value != 0) {
      const int exponent = std::ilogb(static_cast<double>(value));
      const int64_t magnitude = std::abs(value);
      const int shift = e.manBits - exponent;
      bits = static_cast<uint64_t>(exponent + (1 << (e.expBits - 1)) - 1) << e.manBits;
      bits |= ((shift >= 0 ? static_cast<uint64_t>(magnitude) << shift : 0)) &
              ((uint64_t{1} << e.manBits) - 1);
      if (value < 0) bits |= uint64_t{1} << (e.bits - 1);
    }
    array.setBits(i, bits);
  }
  return array;
}

// y = select(a < b, a * 2, -b) with a broadcast along the rows; longer than a block.
TEST(SoftProgram, ElementwiseExpression) {
  Machine m;
  constexpr int64_t rows = 3, n = 700;
  Array a = numbers(CDL_I32, n, -50, 100), b = numbers(CDL_I32, rows * n, -40, 90),
        y(CDL_I32, rows * n);
  const uint32_t expr = m.maker.expr({
      Maker::step(CDL_KIND_COMPARE, CDL_COMPARE_LT, CDL_BOOL, {view(CDL_I32, 0), view(CDL_I32, 1)}),
      Maker::step(CDL_KIND_BINARY, CDL_BINARY_MUL, CDL_I32, {view(CDL_I32, 0), constant(CDL_I32)},
                  2),
      Maker::step(CDL_KIND_UNARY, CDL_UNARY_NEG, CDL_I32, {view(CDL_I32, 1)}),
      Maker::step(CDL_KIND_SELECT, 0, CDL_I32,
                  {stepOf(CDL_BOOL, 0), stepOf(CDL_I32, 1), stepOf(CDL_I32, 2)}),
  });
  m.maker.instr(CDL_KIND_ELEMENTWISE, 0, {m.view(a, {rows, n}, {0, 1}), m.dense(b, {rows, n})},
                m.dense(y, {rows, n}), {}, expr);
  ASSERT_EQ(m.run(), "");
  for (int64_t i = 0; i < rows * n; ++i) {
    const Int x = a.integer(i % n), z = b.integer(i);
    ASSERT_TRUE(y.integer(i) == (x < z ? 2 * x : -z)) << i;
  }
}

// Every row of MATMUL with an epilogue: y = max(f32(product) * scale[n] + residual, 0). With i8
// also behind a zero point.
TEST(SoftProgram, MatmulEpilogues) {
  constexpr int64_t rows = 5, depth = 40, columns = 530;
  const cdl_capabilities_t& capabilities = runtime::host_executor::capabilities();
  int seen = 0;
  for (uint32_t k = 0; k < capabilities.row_count; ++k) {
    const cdl_row_t& row = capabilities.rows[k];
    if (row.kind != CDL_KIND_MATMUL || row.steps_mask == 0 || row.elem_count == 5) continue;
    ++seen;
    const int ea = row.elems[0], eb = row.elems[1];
    const bool zero = row.elem_count == 4;
    const int own = isFloat(ea) || info(ea).bits >= 32 ? ea
                    : info(ea).bits == 8               ? CDL_I32
                                                       : CDL_I64;
    // unsigned products do not go below 0
    const bool isSigned = info(ea).kind != 2 && info(eb).kind != 2;
    Machine m;
    Array a = numbers(ea, rows * depth, 0, 5),
          b = numbers(eb, depth * columns, isSigned ? -3 : 0, 7);
    Array scale = numbers(CDL_F32, columns, 1, 5),
          residual = numbers(CDL_F32, rows * columns, -100, 201);
    Array point(zero ? row.elems[2] : ea, 1), y(CDL_F32, rows * columns);
    std::vector<cdl_view_t> views{m.dense(a, {1, rows, depth}), m.dense(b, {1, depth, columns})};
    if (zero) {
      point.setInteger(0, 2);
      views.push_back(m.dense(point, {1}));
    }
    const int first = static_cast<int>(views.size());
    views.push_back(m.view(scale, {1, rows, columns}, {0, 0, 1}));
    views.push_back(m.dense(residual, {1, rows, columns}));
    std::vector<cdl_step_t> steps;
    if (own != CDL_F32) steps.push_back(Maker::step(CDL_KIND_CONVERT, 0, CDL_F32, {acc(own)}));
    const int at = static_cast<int>(steps.size());
    const cdl_operand_t value = own == CDL_F32 ? acc(CDL_F32) : stepOf(CDL_F32, 0);
    steps.push_back(
        Maker::step(CDL_KIND_BINARY, CDL_BINARY_MUL, CDL_F32, {value, view(CDL_F32, first)}));
    steps.push_back(Maker::step(CDL_KIND_BINARY, CDL_BINARY_ADD, CDL_F32,
                                {stepOf(CDL_F32, at), view(CDL_F32, first + 1)}));
    steps.push_back(Maker::step(CDL_KIND_BINARY, CDL_BINARY_MAX, CDL_F32,
                                {stepOf(CDL_F32, at + 1), constant(CDL_F32)}));
    m.maker.instr(CDL_KIND_MATMUL, 0, views, m.dense(y, {1, rows, columns}), {},
                  m.maker.expr(steps));
    ASSERT_EQ(m.run(), "") << ea << " " << eb;
    for (int64_t i = 0; i < rows * columns; ++i) {
      Real sum = 0;
      for (int64_t d = 0; d < depth; ++d)
        sum +=
            (a.real(i / columns * depth + d) - (zero ? 2 : 0)) * b.real(d * columns + i % columns);
      const Real want =
          std::max<Real>(roundTo(isFloat(own) ? own : int{CDL_F32}, sum) * scale.real(i % columns) +
                             residual.real(i),
                         0);
      ASSERT_EQ(y.real(i), want) << ea << " " << eb << " element " << i;
    }
  }
  EXPECT_GE(seen, 20);
}

TEST(SoftProgram, ReduceEpiloguesOnEveryRow) {
  const cdl_capabilities_t& capabilities = runtime::host_executor::capabilities();
  for (uint32_t k = 0; k < capabilities.row_count; ++k) {
    const cdl_row_t& row = capabilities.rows[k];
    if (row.kind != CDL_KIND_REDUCE || !(row.flags & CDL_ROW_EPILOGUE)) continue;
    Machine m;
    const int elem = row.elems[0];
    Array x = numbers(elem, 2 * 4 * 600, 0, 2), y(CDL_F32, 2 * 600);
    std::vector<cdl_step_t> steps;
    if (elem != CDL_F32) steps.push_back(Maker::step(CDL_KIND_CONVERT, 0, CDL_F32, {acc(elem)}));
    steps.push_back(Maker::step(CDL_KIND_UNARY, CDL_UNARY_NEG, CDL_F32,
                                {elem == CDL_F32 ? acc(CDL_F32) : stepOf(CDL_F32, 0)}));
    m.maker.instr(CDL_KIND_REDUCE, row.fn, {m.dense(x, {2, 4, 600})}, m.dense(y, {2, 600}), {},
                  m.maker.expr(steps));
    ASSERT_EQ(m.run(), "") << elem;
    for (int64_t i = 0; i < 1200; ++i) {
      const auto at = [&](int64_t r) { return x.real((i / 600 * 4 + r) * 600 + i % 600); };
      Real want = at(0);
      for (int64_t r = 1; r < 4; ++r)
        want = row.fn == CDL_REDUCE_SUM   ? want + at(r)
               : row.fn == CDL_REDUCE_MAX ? std::max(want, at(r))
               : row.fn == CDL_REDUCE_MIN ? std::min(want, at(r))
                                          : want * at(r);
      if (elem == CDL_BOOL) want = want != 0;
      ASSERT_EQ(y.real(i), -want) << elem << " fn " << row.fn;
    }
  }
}

// Depths beyond every block; the extremes of 8 and 16 bits; zero points outside of their type.
TEST(SoftProgram, LargeProductsAreExact) {
  struct Case {
    int a, b, y;
    int64_t depth;
    Int zeroA, zeroB;
  };
  for (const Case& c :
       {Case{CDL_U8, CDL_I8, CDL_I32, 1000, 0, 0}, Case{CDL_I8, CDL_I8, CDL_I32, 1000, 127, -128},
        Case{CDL_U8, CDL_U8, CDL_I32, 70000, 0, 0}, Case{CDL_I8, CDL_I8, CDL_I32, 300, 5000000, -7},
        Case{CDL_I16, CDL_I8, CDL_I64, 9000, 32767, -128},
        Case{CDL_I16, CDL_I16, CDL_I64, 9000, 0, 0}, Case{CDL_I32, CDL_I32, CDL_I32, 5000, 0, 0}}) {
    Machine m;
    const bool zeros = c.zeroA != 0;
    Array a(c.a, 2 * c.depth), b(c.b, c.depth), y(c.y, 2), za(CDL_I32, 1), zb(CDL_I32, 1);
    for (int64_t k = 0; k < c.depth; ++k) {
      a.setInteger(k, lowest(c.a));
      a.setInteger(c.depth + k, highest(c.a));
      b.setInteger(k, k % 3 ? highest(c.b) : lowest(c.b));
    }
    za.setInteger(0, c.zeroA);
    zb.setInteger(0, c.zeroB);
    std::vector<cdl_view_t> views{m.dense(a, {1, 2, c.depth}), m.dense(b, {1, c.depth, 1})};
    if (zeros) views.insert(views.end(), {m.dense(za, {1}), m.dense(zb, {1})});
    m.maker.instr(CDL_KIND_MATMUL, 0, views, m.dense(y, {1, 2, 1}));
    ASSERT_EQ(m.run(), "");
    for (int64_t r = 0; r < 2; ++r) {
      Int sum = 0;
      for (int64_t k = 0; k < c.depth; ++k)
        sum += (a.integer(r * c.depth + k) - c.zeroA) * (b.integer(k) - c.zeroB);
      EXPECT_TRUE(y.integer(r) == wrap(c.y, sum)) << c.a << " x " << c.b << " depth " << c.depth;
    }
  }
}

// The same dot product at every place of every block: one order of the sum, so the same bits.
TEST(SoftProgram, SumsDoNotDependOnBlocks) {
  constexpr int64_t depth = 9001;
  std::mt19937_64 random(9);
  Array line(CDL_F32, depth), column(CDL_F32, depth);
  line.fill(random, true);
  column.fill(random, true);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {9, 21}, {3, 70}}) {
    Machine m;
    Array y(CDL_F32, rows * columns);
    m.maker.instr(
        CDL_KIND_MATMUL, 0,
        {m.view(line, {1, rows, depth}, {0, 0, 1}), m.view(column, {1, depth, columns}, {0, 1, 0})},
        m.dense(y, {1, rows, columns}));
    ASSERT_EQ(m.run(), "");
    float want = 0;
    for (int64_t k = 0; k < depth; ++k)
      want += static_cast<float>(line.real(k)) * static_cast<float>(column.real(k));
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.real(i), want) << i;
  }
}

// Sums whose bits show their order, cut into columns of one: run() compares with one thread.
TEST(SoftProgram, SumsDoNotDependOnParts) {
  std::mt19937_64 random(11);
  for (const int64_t columns : {1, 2, 7, 700}) {
    Machine m;
    Array x(CDL_F64, 3 * 333 * columns), y(CDL_F64, 3 * columns);
    x.fill(random, true);
    m.maker.instr(CDL_KIND_REDUCE, CDL_REDUCE_SUM, {m.dense(x, {3, 333, columns})},
                  m.dense(y, {3, columns}));
    ASSERT_EQ(m.run(), "");
  }
}

TEST(SoftProgram, EmptyProductIsZeroOrWhatAccumulates) {
  for (const int accumulate : {0, 1}) {
    Machine m;
    Array a(CDL_F32, 1), b(CDL_F32, 1), y = numbers(CDL_F32, 6, 1, 9);
    const Array before = y;
    m.maker.instr(CDL_KIND_MATMUL, 0, {m.dense(a, {1, 2, 0}), m.dense(b, {1, 0, 3})},
                  m.dense(y, {1, 2, 3}), {Maker::attr(CDL_ATTR_ACCUMULATE, accumulate)});
    ASSERT_EQ(m.run(), "");
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.real(i), accumulate ? before.real(i) : 0);
  }
}

// for i in 0..3: for j in 0..4: y[i, j] += x[2 * i + j]; and an instruction on each side of the
// inner loop.
TEST(SoftProgram, LoopsMoveViews) {
  Machine m;
  Array x = numbers(CDL_I32, 20, 0, 50), y = numbers(CDL_I32, 12, 0, 9), starts(CDL_I32, 3),
        ends(CDL_I32, 3);
  const Array before = y;
  const uint32_t bx = m.buffer(x), by = m.buffer(y), bs = m.buffer(starts), be = m.buffer(ends);
  const uint32_t outer = m.maker.loop(2, 3, 3), inner = m.maker.loop(3, 1, 4, outer);
  const cdl_view_t all = Maker::dense(by, CDL_I32, {12});
  m.maker.instr(CDL_KIND_BINARY, CDL_BINARY_MUL, {all, all}, all);
  m.maker.instr(CDL_KIND_COPY, 0, {Maker::view(by, CDL_I32, {}, {}, 0, {4, 0})},
                Maker::view(bs, CDL_I32, {}, {}, 0, {1, 0}), {}, 0, outer);
  const cdl_view_t place = Maker::view(by, CDL_I32, {}, {}, 0, {4, 1});
  m.maker.instr(CDL_KIND_BINARY, CDL_BINARY_ADD,
                {place, Maker::view(bx, CDL_I32, {}, {}, 0, {2, 1})}, place, {}, 0, inner);
  m.maker.instr(CDL_KIND_COPY, 0, {Maker::view(by, CDL_I32, {}, {}, 3, {4, 0})},
                Maker::view(be, CDL_I32, {}, {}, 0, {1, 0}), {}, 0, outer);
  m.maker.instr(CDL_KIND_UNARY, CDL_UNARY_NEG, {all}, all);
  ASSERT_EQ(m.run(), "");
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const Int old = before.integer(i * 4 + j);
      EXPECT_TRUE(y.integer(i * 4 + j) == -(old * old + x.integer(2 * i + j)));
    }
    EXPECT_TRUE(starts.integer(i) == before.integer(i * 4) * before.integer(i * 4));
    EXPECT_TRUE(ends.integer(i) == -y.integer(i * 4 + 3));
  }
}

TEST(SoftProgram, ThreadsShareAnImage) {
  Maker maker;
  const cdl_view_t x = Maker::dense(maker.buffer(4096), CDL_F32, {1, 32, 32}),
                   y = Maker::dense(maker.buffer(4096), CDL_F32, {1, 32, 32});
  maker.instr(CDL_KIND_MATMUL, 0, {x, x}, y);
  maker.instr(CDL_KIND_UNARY, CDL_UNARY_TANH, {y}, y);
  const cdl_image_t* image = maker.finish();
  const Array input = numbers(CDL_F32, 1024, -3, 7);
  std::vector<Array> results(4, Array(CDL_F32, 1024));
  std::vector<std::thread> threads;
  for (Array& result : results)
    threads.emplace_back([&result, &input, image] {
      Array own = input;
      void* buffers[] = {nullptr, own.data(), result.data()};
      for (int i = 0; i < 20; ++i) ASSERT_EQ(runImage(image, buffers, nullptr), CDL_OK);
    });
  for (std::thread& thread : threads) thread.join();
  for (int64_t i = 0; i < 1024; ++i)
    for (const Array& result : results) ASSERT_EQ(result.bits(i), results[0].bits(i));
}

struct Refused {
  const char* error;
  int kind, fn;
  std::vector<std::pair<int, Maker::Ints>> views; // the last one is the result
  std::vector<cdl_attr_t> attrs;
};

// What the check of an image leaves to the one who runs it.
TEST(SoftProgram, RefusesWithOneClearError) {
  const int f32 = CDL_F32, i32 = CDL_I32, i8 = CDL_I8;
  const Refused cases[] = {
      {"3 binary: no row for function 6 on f32, f32, result f32",
       CDL_KIND_BINARY,
       CDL_BINARY_AND,
       {{f32, {2}}, {f32, {2}}, {f32, {2}}},
       {}},
      {"3 unary: no row for function 5 on i32, result i32",
       CDL_KIND_UNARY,
       CDL_UNARY_EXP,
       {{i32, {2}}, {i32, {2}}},
       {}},
      {"3 matmul: no row for function 0 on f32, i8, result f32",
       CDL_KIND_MATMUL,
       0,
       {{f32, {1, 2, 3}}, {i8, {1, 3, 2}}, {f32, {1, 2, 2}}},
       {}},
      {"3 conv2d: soft does not run this kind",
       CDL_KIND_CONV2D,
       0,
       {{f32, {1, 1, 3, 3}}, {f32, {1, 1, 3, 3}}, {f32, {1, 1, 1, 1}}},
       {}},
      {"12 gather: cannot clamp an index into x of dims [1,0,2]",
       CDL_KIND_GATHER,
       CDL_GATHER_CLAMP,
       {{f32, {1, 0, 2}}, {i32, {3}}, {f32, {1, 3, 2}}},
       {}},
      {"12 arg_reduce: there is no extreme along x of dims [1,0,2]",
       CDL_KIND_ARG_REDUCE,
       0,
       {{f32, {1, 0, 2}}, {i32, {1, 2}}},
       {}},
      {"12 rescale: a of i32 with left shift 9 needs 64 bits, at most 63",
       CDL_KIND_RESCALE,
       0,
       {{i32, {4}}, {i32, {4}}, {i32, {4}}, {i32, {4}}, {i8, {4}}},
       {Maker::attr(CDL_ATTR_A_LEFT_SHIFT, 9)}},
      {"12 rescale: clamps to -128..300, which i8 does not hold",
       CDL_KIND_RESCALE,
       0,
       {{i32, {4}}, {i32, {4}}, {i32, {4}}, {i32, {4}}, {i8, {4}}},
       {Maker::attr(CDL_ATTR_CLAMP_MAX, 300)}},
  };
  for (const Refused& c : cases) {
    Machine m;
    std::vector<Array> arrays;
    std::vector<cdl_view_t> views;
    for (const auto& [elem, dims] : c.views) {
      arrays.emplace_back(elem, 64);
      views.push_back(m.dense(arrays.back(), dims));
    }
    const cdl_view_t result = views.back();
    views.pop_back();
    m.maker.instr(c.kind, c.fn, views, result, c.attrs);
    EXPECT_EQ(m.run(), c.error);
  }
}

TEST(SoftProgram, LayoutsRunWhereElementsKeepToThemselves) {
  struct Case {
    uint16_t kind;
    // physical dims; a dim of 4 at the end: the block of a blocked layout
    std::vector<int64_t> in, out;
    bool runs;
  };
  const Case cases[] = {{CDL_KIND_UNARY, {2, 8, 4}, {2, 8, 4}, true},
                        {CDL_KIND_COPY, {2, 8, 4}, {2, 8, 4}, true},
                        {CDL_KIND_REDUCE, {2, 2, 4, 4}, {2, 16}, false},
                        {CDL_KIND_SOFTMAX, {2, 2, 4, 4}, {2, 2, 4, 4}, false}};
  for (const Case& c : cases) {
    Machine m;
    Array x = numbers(CDL_F32, 64, 0, 9), y(CDL_F32, 64);
    const uint16_t flat = m.maker.layout({{0, 0}, {1, 0}, {1, 4}}, 2);
    const uint16_t deep = m.maker.layout({{0, 0}, {1, 0}, {2, 0}, {2, 4}}, 3);
    const auto view = [&](Array& array, const std::vector<int64_t>& dims) {
      cdl_view_t v = m.dense(array, dims);
      if (dims.back() == 4) v.layout = dims.size() == 3 ? flat : deep;
      return v;
    };
    m.maker.instr(c.kind, 0, {view(x, c.in)}, view(y, c.out));
    EXPECT_EQ(m.run(),
              c.runs ? ""
                     : "3 " + cdl::kindName(c.kind) + ": soft does not run it on these layouts");
    if (!c.runs) continue;
    EXPECT_EQ(y.real(5), c.kind == CDL_KIND_UNARY ? -x.real(5) : x.real(5));
  }
}

} // namespace
} // namespace candela
