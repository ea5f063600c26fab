// Views of every operand class: an instruction on strided views gives what it gives on dense ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/runtime/host_executor/machine.h"

namespace candela {
namespace {

using namespace testing;
using Ints = Maker::Ints;

int64_t product(const Ints& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Calls f(dense position, position in the view) for every element.
template <class F> void forEachElement(const cdl_view_t& view, F f) {
  int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= view.dims[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = view.offset, rest = i;
    for (int d = view.rank - 1; d >= 0; rest /= view.dims[d], --d)
      at += rest % view.dims[d] * view.strides[d];
    f(i, at);
  }
}

class Views : public ::testing::Test {
protected:
  std::mt19937_64 random_{7};
  int64_t upTo(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n + 1)); }

  // Strides without overlap: dims in any order, with gaps, some backwards. Offset and size follow.
  void scattered(const Ints& dims, Ints& strides, int64_t& offset, int64_t& size) {
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (upTo(2)) std::shuffle(order.begin(), order.end(), random_);
    strides.assign(dims.size(), 0);
    int64_t step = 1 + upTo(1);
    offset = upTo(3);
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      strides[*d] = step;
      step *= std::max<int64_t>(dims[*d], 1) + upTo(1);
      if (upTo(3) == 0 && dims[*d] > 0) {
        offset += strides[*d] * (dims[*d] - 1);
        strides[*d] = -strides[*d];
      }
    }
    size = step + 8;
  }
  Ints randomDims(int maxRank) {
    Ints dims(static_cast<size_t>(upTo(maxRank)));
    for (int64_t& d : dims) d = upTo(20) == 0 ? 0 : 1 + upTo(dims.size() > 4 ? 2 : 5);
    if (!dims.empty() && upTo(4) == 0) dims.back() = 600;
    return dims;
  }

  struct Input {
    int elem;
    Ints dims;
  };
  // Runs the instruction on dense inputs and on strided ones of the same content (where `may` is
  // true also with dims of stride 0), and compares the results bit by bit.
  void compare(int kind, int fn, const std::vector<Input>& inputs, const Input& output,
               bool broadcast, const std::vector<cdl_attr_t>& attrs = {},
               std::vector<Array>* contents = nullptr) {
    std::vector<Array> dense, strided;
    Machine a, b;
    std::vector<cdl_view_t> viewsA, viewsB;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const auto& [elem, dims] = inputs[k];
      Ints strides;
      int64_t offset, size;
      scattered(dims, strides, offset, size);
      if (broadcast)
        for (size_t d = 0; d < dims.size(); ++d)
          if (upTo(3) == 0) {
            if (strides[d] < 0 && dims[d] > 0) offset += strides[d] * (dims[d] - 1);
            strides[d] = 0;
          }
      strided.emplace_back(elem, size);
      strided.back().fill(random_, true);
      const cdl_view_t view = b.view(strided.back(), dims, strides, offset);
      dense.emplace_back(elem, std::max<int64_t>(product(dims), 1));
      if (contents)
        forEachElement(view, [&](int64_t i, int64_t at) {
          strided.back().setBits(at, (*contents)[k].bits(i));
        });
      forEachElement(
          view, [&](int64_t i, int64_t at) { dense.back().setBits(i, strided.back().bits(at)); });
      viewsA.push_back(a.dense(dense.back(), dims));
      viewsB.push_back(view);
    }
    Ints strides;
    int64_t offset, size;
    scattered(output.dims, strides, offset, size);
    Array y(output.elem, std::max<int64_t>(product(output.dims), 1)), z(output.elem, size);
    y.fill(random_, true);
    z.fill(random_, true);
    const cdl_view_t view = b.view(z, output.dims, strides, offset);
    forEachElement(view, [&](int64_t i, int64_t at) { z.setBits(at, y.bits(i)); });
    Array untouched = z;
    a.maker.instr(kind, fn, viewsA, a.dense(y, output.dims), attrs);
    b.maker.instr(kind, fn, viewsB, view, attrs);
    ASSERT_EQ(a.run(), "");
    ASSERT_EQ(b.run(), "");
    forEachElement(view, [&](int64_t i, int64_t at) {
      ASSERT_EQ(z.bits(at), y.bits(i)) << "kind " << kind << " element " << i;
      untouched.setBits(at, z.bits(at));
    });
    for (int64_t i = 0; i < z.size(); ++i)
      ASSERT_EQ(z.bits(i), untouched.bits(i)) << "wrote beside its view";
  }
};

TEST_F(Views, ElementwiseKindsTakeAnyStrides) {
  for (int round = 0; round < 150 && !HasFatalFailure(); ++round) {
    const Ints dims = randomDims(8);
    const int elems[] = {CDL_U8, CDL_F16, CDL_I32, CDL_F64};
    const int e = elems[round % 4];
    compare(CDL_KIND_COPY, 0, {{e, dims}}, {e, dims}, true);
    compare(CDL_KIND_FILL, 0, {}, {e, dims}, false, {Maker::attr(CDL_ATTR_VALUE, 0x3c, 4)});
    compare(CDL_KIND_BINARY, CDL_BINARY_SUB, {{e, dims}, {e, dims}}, {e, dims}, true);
    compare(CDL_KIND_SELECT, 0, {{CDL_BOOL, dims}, {e, dims}, {e, dims}}, {e, dims}, true);
    compare(CDL_KIND_COMPARE, CDL_COMPARE_LT, {{e, dims}, {e, dims}}, {CDL_BOOL, dims}, true);
    compare(CDL_KIND_CONVERT, CDL_CONVERT_RNE, {{e, dims}}, {CDL_I16, dims}, true);
    compare(CDL_KIND_UNARY, CDL_UNARY_NEG, {{CDL_F32, dims}}, {CDL_F32, dims}, true);
    compare(CDL_KIND_TABLE, 0, {{CDL_I8, dims}, {CDL_U8, {256}}}, {CDL_U8, dims}, false);
    compare(CDL_KIND_RESCALE, 0,
            {{CDL_I32, dims}, {CDL_I32, dims}, {CDL_I32, dims}, {CDL_I32, dims}}, {CDL_I8, dims},
            true);
  }
}

TEST_F(Views, OtherKindsTakeAnyStrides) {
  for (int round = 0; round < 100 && !HasFatalFailure(); ++round) {
    const int64_t o = upTo(4), n = 1 + upTo(8), i = upTo(3) ? upTo(9) : 520, k = upTo(6);
    const int e = round % 2 ? CDL_F32 : CDL_I16;
    compare(CDL_KIND_REDUCE, round % 4, {{e, {o, n, i}}}, {e, {o, i}}, true);
    compare(CDL_KIND_ARG_REDUCE, 0, {{e, {o, n, i}}}, {CDL_I64, {o, i}}, true);
    compare(CDL_KIND_SOFTMAX, 0, {{CDL_F32, {o, n, i}}}, {CDL_F32, {o, n, i}}, true);
    compare(CDL_KIND_NORM, 0, {{CDL_BF16, {o, n}}, {CDL_BF16, {n}}, {CDL_BF16, {n}}},
            {CDL_BF16, {o, n}}, true);
    const int64_t rows = upTo(9), columns = 1 + upTo(20), depth = upTo(3) ? upTo(30) : 300;
    compare(CDL_KIND_MATMUL, 0, {{CDL_F32, {o, rows, depth}}, {CDL_F32, {o, depth, columns}}},
            {CDL_F32, {o, rows, columns}}, true, {Maker::attr(CDL_ATTR_ACCUMULATE, round % 2)});
    compare(CDL_KIND_MATMUL, 0,
            {{CDL_I8, {o, rows, depth}},
             {CDL_I8, {o, depth, columns}},
             {CDL_I8, {1}},
             {CDL_I8, {columns}}},
            {CDL_I32, {o, rows, columns}}, true);
    std::vector<Array> contents;
    contents.emplace_back(e, o * n * i).fill(random_, true);
    contents.emplace_back(CDL_I32, k);
    for (int64_t j = 0; j < k; ++j) contents[1].setInteger(j, upTo(n + 1) - 1);
    compare(CDL_KIND_GATHER, round % 2, {{e, {o, n, i}}, {CDL_I32, {k}}}, {e, {o, k, i}}, false, {},
            &contents);
    contents.emplace_back(e, o * k * i).fill(random_, true);
    contents.erase(contents.begin());
    compare(CDL_KIND_SCATTER, CDL_SCATTER_ADD, {{CDL_I32, {k}}, {e, {o, k, i}}}, {e, {o, n, i}},
            false, {}, &contents);
  }
}

TEST_F(Views, RankZeroIsOneElement) {
  Machine m;
  Array a(CDL_F32, 1), b(CDL_F32, 1), y(CDL_F32, 1);
  a.setBits(0, 0x40400000); // 3
  b.setBits(0, 0x3f800000); // 1
  m.maker.instr(CDL_KIND_BINARY, CDL_BINARY_DIV, {m.dense(b, {}), m.dense(a, {})}, m.dense(y, {}));
  ASSERT_EQ(m.run(), "");
  EXPECT_EQ(y.bits(0), 0x3eaaaaabu);
}

TEST_F(Views, InPlaceAndOverlappingWindows) {
  Machine m;
  Array x(CDL_I32, 40), windows(CDL_I32, 3 * 8);
  for (int64_t i = 0; i < 40; ++i) x.setInteger(i, i * i);
  const cdl_view_t whole = m.dense(x, {40});
  m.maker.instr(CDL_KIND_BINARY, CDL_BINARY_ADD, {whole, whole}, whole);
  m.maker.instr(CDL_KIND_COPY, 0, {Maker::view(whole.buffer, CDL_I32, {3, 8}, {1, 2}, 4)},
                m.dense(windows, {3, 8}));
  ASSERT_EQ(m.run(), "");
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_TRUE(windows.integer(k * 8 + i) == 2 * (4 + k + 2 * i) * (4 + k + 2 * i));
}

TEST_F(Views, NibblesAreRead) {
  for (const int elem : {CDL_I4, CDL_U4}) {
    Machine m;
    Array x(elem, 24), y(CDL_F32, 12);
    x.fill(random_);
    m.maker.instr(CDL_KIND_CONVERT, 0, {m.view(x, {3, 4}, {-6, 1}, 16)}, m.dense(y, {3, 4}));
    ASSERT_EQ(m.run(), "");
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y.real(i), x.real(16 - 6 * (i / 4) + i % 4));
  }
}

} // namespace
} // namespace candela
