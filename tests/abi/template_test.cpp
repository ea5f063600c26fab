// The template's primitives on small cases with answers by hand; linked statically, through its own
// entry.
#include "host.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <random>

extern "C" cdl_code_t template_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                             cdl_error_t* error);

namespace candela::abi {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int32_t kLowest = INT32_MIN;

template <class T> constexpr uint8_t elemOf() {
  if (std::is_same_v<T, float>) return CDL_F32;
  if (std::is_same_v<T, int32_t>) return CDL_I32;
  if (std::is_same_v<T, int8_t>) return CDL_I8;
  return CDL_U8;
}

// One instruction on dense operands that lie in buffers of their own.
struct Case {
  ImageBuilder m;
  Buffers contents;
  std::vector<cdl_view_t> views;
  std::string failure;

  template <class T>
  Case& in(std::initializer_list<int64_t> dims, const std::vector<T>& values,
           uint8_t elem = elemOf<T>()) {
    const uint32_t buffer = m.buffer(CDL_ROLE_INPUT, values.size() * sizeof(T));
    contents[buffer] = bytesOf(values);
    views.push_back(ImageBuilder::view(buffer, elem, dims));
    return *this;
  }
  // An operand of one value that is broadcast to these dims.
  Case& broadcast(std::initializer_list<int64_t> dims, int32_t value) {
    in<int32_t>({1}, {value});
    const uint32_t buffer = views.back().buffer;
    views.back() = ImageBuilder::view(buffer, CDL_I32, dims);
    for (int64_t& stride : views.back().strides) stride = 0;
    return *this;
  }
  // Runs with a result of type T; `before` is what @inout results hold.
  template <class T>
  std::vector<T> run(uint16_t kind, uint16_t fn, std::initializer_list<int64_t> dims,
                     uint8_t elem = elemOf<T>(),
                     std::initializer_list<std::pair<uint16_t, int64_t>> attrs = {},
                     const std::vector<T>& before = {}) {
    cdl_view_t y = ImageBuilder::view(0, elem, dims);
    uint64_t count = 1;
    for (int64_t d : dims) count *= static_cast<uint64_t>(d);
    y.buffer = m.buffer(CDL_ROLE_INOUT, count * sizeof(T));
    if (!before.empty()) contents[y.buffer] = bytesOf(before);
    views.push_back(y);
    cdl_instr_t& instr = m.instr(kind, fn, views);
    for (const auto& [id, value] : attrs) m.attr(instr, id, cdl_attr_facts(id)->type, {value});
    Device device(template_backend_query);
    Buffers after = device.run(Block(m.bytes()), contents);
    failure = device.text;
    EXPECT_EQ(device.code, CDL_OK) << device.text;
    return valuesOf<T>(after[y.buffer]);
  }
};

TEST(Template, CopyFollowsAnyStrides) {
  Case c;
  c.in<int32_t>({6}, {0, 1, 2, 3, 4, 5});
  cdl_view_t& x = c.views[0]; // overlapping windows, backwards
  x = ImageBuilder::view(x.buffer, CDL_I32, {2, 3});
  x.offset = 5, x.strides[0] = -2, x.strides[1] = -1;
  EXPECT_THAT(c.run<int32_t>(CDL_KIND_COPY, 0, {2, 3}), ElementsAre(5, 4, 3, 3, 2, 1));
}

TEST(Template, FillTakesTheBitsOfItsType) {
  EXPECT_THAT(Case().run<float>(CDL_KIND_FILL, 0, {3}, CDL_F32, {{CDL_ATTR_VALUE, 0x3fc00000}}),
              ElementsAre(1.5f, 1.5f, 1.5f));
  EXPECT_THAT(Case().run<int8_t>(CDL_KIND_FILL, 0, {2}, CDL_I8, {{CDL_ATTR_VALUE, 0xff}}),
              ElementsAre(-1, -1));
  EXPECT_THAT(Case().run<int32_t>(CDL_KIND_FILL, 0, {}, CDL_I32, {{CDL_ATTR_VALUE, 7}}),
              ElementsAre(7));
}

TEST(Template, ConvertRoundsWrapsAndSaturates) {
  const std::vector<float> x = {2.5f, 3.5f, -2.5f, -0.5f, std::nanf(""), 3e9f, -3e9f};
  const auto convert = [&](uint16_t fn, int64_t saturate) {
    return Case().in<float>({7}, x).run<int32_t>(CDL_KIND_CONVERT, fn, {7}, CDL_I32,
                                                 {{CDL_ATTR_SATURATE, saturate}});
  };
  EXPECT_THAT(convert(CDL_CONVERT_TRUNC, 1), ElementsAre(2, 3, -2, 0, 0, INT32_MAX, kLowest));
  EXPECT_THAT(convert(CDL_CONVERT_RNE, 1), ElementsAre(2, 4, -2, 0, 0, INT32_MAX, kLowest));
  EXPECT_THAT(convert(CDL_CONVERT_FLOOR, 0), ElementsAre(2, 3, -3, -1, 0, -1294967296, 1294967296));
  const std::vector<int32_t> n = {300, -1, 0, 127};
  EXPECT_THAT(Case().in<int32_t>({4}, n).run<uint8_t>(CDL_KIND_CONVERT, 0, {4}),
              ElementsAre(44, 255, 0, 127));
  EXPECT_THAT(Case().in<int32_t>({4}, n).run<int8_t>(CDL_KIND_CONVERT, 0, {4}, CDL_I8,
                                                     {{CDL_ATTR_SATURATE, 1}}),
              ElementsAre(127, -1, 0, 127));
  EXPECT_THAT(Case().in<int32_t>({4}, n).run<uint8_t>(CDL_KIND_CONVERT, 0, {4}, CDL_BOOL),
              ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(Case().in<int32_t>({2}, {16777217, -3}).run<float>(CDL_KIND_CONVERT, 0, {2}),
              ElementsAre(16777216.f, -3.f));
}

TEST(Template, BinaryFollowsTheIntegerSemantics) {
  const auto binary = [](uint16_t fn, const std::vector<int32_t>& a,
                         const std::vector<int32_t>& b) {
    const auto n = static_cast<int64_t>(a.size());
    return Case().in({n}, a).in({n}, b).run<int32_t>(CDL_KIND_BINARY, fn, {n});
  };
  EXPECT_THAT(binary(CDL_BINARY_ADD, {INT32_MAX, 2}, {1, 3}), ElementsAre(kLowest, 5));
  EXPECT_THAT(binary(CDL_BINARY_SUB, {kLowest, 2}, {1, 3}), ElementsAre(INT32_MAX, -1));
  EXPECT_THAT(binary(CDL_BINARY_MUL, {65536, -3}, {65536, 4}), ElementsAre(0, -12));
  EXPECT_THAT(binary(CDL_BINARY_DIV, {7, -7, 5, kLowest}, {2, 2, 0, -1}),
              ElementsAre(3, -3, 0, kLowest));
  EXPECT_THAT(binary(CDL_BINARY_MIN, {1, -2}, {0, 3}), ElementsAre(0, -2));
  EXPECT_THAT(binary(CDL_BINARY_MAX, {1, -2}, {0, 3}), ElementsAre(1, 3));
  EXPECT_THAT(binary(CDL_BINARY_AND, {6}, {3}), ElementsAre(2));
  EXPECT_THAT(binary(CDL_BINARY_OR, {6}, {3}), ElementsAre(7));
  EXPECT_THAT(binary(CDL_BINARY_XOR, {6}, {3}), ElementsAre(5));
  EXPECT_THAT(binary(CDL_BINARY_SHL, {1, 1, 3}, {31, 32, 1}), ElementsAre(kLowest, 0, 6));
  EXPECT_THAT(binary(CDL_BINARY_SHR, {-8, -8, 8, 8}, {1, 40, 1, 40}), ElementsAre(-4, -1, 4, 0));
}

TEST(Template, BinaryOnFloatsAndBools) {
  const float nan = std::nanf("");
  const auto binary = [](uint16_t fn, float a, float b) {
    return Case().in<float>({1}, {a}).in<float>({1}, {b}).run<float>(CDL_KIND_BINARY, fn, {1})[0];
  };
  EXPECT_EQ(binary(CDL_BINARY_ADD, 1.5f, 2), 3.5f);
  EXPECT_EQ(binary(CDL_BINARY_SUB, 1.5f, 2), -0.5f);
  EXPECT_EQ(binary(CDL_BINARY_MUL, 1.5f, 2), 3);
  EXPECT_EQ(binary(CDL_BINARY_DIV, 1, 0), kInf);
  EXPECT_EQ(binary(CDL_BINARY_MIN, 1, -kInf), -kInf);
  EXPECT_EQ(binary(CDL_BINARY_MAX, 1, 2), 2);
  for (uint16_t fn : {CDL_BINARY_MIN, CDL_BINARY_MAX}) {
    EXPECT_TRUE(std::isnan(binary(fn, nan, 1)));
    EXPECT_TRUE(std::isnan(binary(fn, 1, nan)));
  }
  EXPECT_THAT(Case()
                  .in<uint8_t>({4}, {0, 0, 1, 1}, CDL_BOOL)
                  .in<uint8_t>({4}, {0, 1, 0, 1}, CDL_BOOL)
                  .run<uint8_t>(CDL_KIND_BINARY, CDL_BINARY_XOR, {4}, CDL_BOOL),
              ElementsAre(0, 1, 1, 0));
}

TEST(Template, CompareAndSelectBroadcast) {
  const float nan = std::nanf("");
  for (const auto& [fn, expected] :
       {std::pair{CDL_COMPARE_EQ, std::vector<uint8_t>{0, 1, 0}}, {CDL_COMPARE_LT, {1, 0, 0}}})
    EXPECT_THAT(Case()
                    .in<float>({3}, {1, 2, nan})
                    .in<float>({3}, {3, 2, nan})
                    .run<uint8_t>(CDL_KIND_COMPARE, static_cast<uint16_t>(fn), {3}, CDL_BOOL),
                ElementsAreArray(expected));
  Case c;
  c.in<uint8_t>({2, 2}, {1, 0, 0, 1}, CDL_BOOL)
      .in<int32_t>({2, 2}, {1, 2, 3, 4})
      .broadcast({2, 2}, 9);
  EXPECT_THAT(c.run<int32_t>(CDL_KIND_SELECT, 0, {2, 2}), ElementsAre(1, 9, 9, 4));
}

TEST(Template, GatherClampsOrGivesZero) {
  const std::vector<int32_t> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, index = {2, -1, 7, 0};
  const auto gather = [&](uint16_t fn) {
    return Case().in({2, 3, 2}, x).in({4}, index).run<int32_t>(CDL_KIND_GATHER, fn, {2, 4, 2});
  };
  EXPECT_THAT(gather(CDL_GATHER_CLAMP),
              ElementsAre(5, 6, 1, 2, 5, 6, 1, 2, 11, 12, 7, 8, 11, 12, 7, 8));
  EXPECT_THAT(gather(CDL_GATHER_ZERO),
              ElementsAre(5, 6, 0, 0, 0, 0, 1, 2, 11, 12, 0, 0, 0, 0, 7, 8));
}

TEST(Template, ScatterTakesUpdatesInOrderAndSkipsOutside) {
  const std::vector<int32_t> index = {1, 5, 1, -1}, updates = {10, 20, 3, 40}, before = {7, 7, 7};
  const auto scatter = [&](uint16_t fn) {
    return Case()
        .in({4}, index)
        .in({1, 4, 1}, updates)
        .run<int32_t>(CDL_KIND_SCATTER, fn, {1, 3, 1}, CDL_I32, {}, before);
  };
  EXPECT_THAT(scatter(CDL_SCATTER_SET), ElementsAre(7, 3, 7));
  EXPECT_THAT(scatter(CDL_SCATTER_ADD), ElementsAre(7, 20, 7));
  EXPECT_THAT(scatter(CDL_SCATTER_MIN), ElementsAre(7, 3, 7));
  EXPECT_THAT(scatter(CDL_SCATTER_MAX), ElementsAre(7, 10, 7));
  EXPECT_THAT(Case()
                  .in<int32_t>({2}, {0, 0})
                  .in<uint8_t>({1, 2, 1}, {1, 1}, CDL_BOOL)
                  .run<uint8_t>(CDL_KIND_SCATTER, CDL_SCATTER_ADD, {1, 1, 1}, CDL_BOOL, {}, {0}),
              ElementsAre(1));
}

TEST(Template, ReduceCollectsAlongTheMiddle) {
  const std::vector<float> x = {1, 2, 3, 4, -1, 5};
  const auto reduce = [&](uint16_t fn) {
    return Case().in({1, 3, 2}, x).run<float>(CDL_KIND_REDUCE, fn, {1, 2});
  };
  EXPECT_THAT(reduce(CDL_REDUCE_SUM), ElementsAre(3, 11));
  EXPECT_THAT(reduce(CDL_REDUCE_PROD), ElementsAre(-3, 40));
  EXPECT_THAT(reduce(CDL_REDUCE_MAX), ElementsAre(3, 5));
  EXPECT_THAT(reduce(CDL_REDUCE_MIN), ElementsAre(-1, 2));
  EXPECT_TRUE(std::isnan(Case()
                             .in<float>({1, 3, 1}, {1, std::nanf(""), 2})
                             .run<float>(CDL_KIND_REDUCE, CDL_REDUCE_MAX, {1, 1})[0]));
  EXPECT_THAT(Case()
                  .in<uint8_t>({1, 2, 2}, {1, 0, 1, 0}, CDL_BOOL)
                  .run<uint8_t>(CDL_KIND_REDUCE, CDL_REDUCE_SUM, {1, 2}, CDL_BOOL),
              ElementsAre(1, 0));
  EXPECT_THAT(
      Case().in<int8_t>({1, 2, 1}, {-128, 3}).run<int8_t>(CDL_KIND_REDUCE, CDL_REDUCE_MIN, {1, 1}),
      ElementsAre(-128));
}

TEST(Template, ReduceOfNothingGivesTheNeutralElement) {
  const auto reduce = [](uint16_t fn) {
    return Case().in<float>({1, 0, 1}, {}).run<float>(CDL_KIND_REDUCE, fn, {1, 1})[0];
  };
  EXPECT_EQ(reduce(CDL_REDUCE_SUM), 0);
  EXPECT_EQ(reduce(CDL_REDUCE_PROD), 1);
  EXPECT_EQ(reduce(CDL_REDUCE_MAX), -kInf);
  EXPECT_EQ(reduce(CDL_REDUCE_MIN), kInf);
  EXPECT_THAT(
      Case().in<int32_t>({1, 0, 1}, {}).run<int32_t>(CDL_KIND_REDUCE, CDL_REDUCE_MAX, {1, 1}),
      ElementsAre(kLowest));
}

TEST(Template, MatMulOfManySizesIsExactOnSmallIntegers) {
  std::mt19937 random(7);
  for (const auto& [b, m, n, k] : {std::array<int64_t, 4>{1, 1, 1, 1},
                                   {2, 5, 17, 3},
                                   {1, 4, 16, 8},
                                   {3, 9, 33, 70},
                                   {1, 3, 2, 0}}) {
    std::vector<float> a(static_cast<size_t>(b * m * k)), w(static_cast<size_t>(b * k * n)),
        expected(static_cast<size_t>(b * m * n), 2);
    for (float& v : a) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
    for (float& v : w) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
    for (int64_t o = 0; o < b; ++o)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t r = 0; r < k; ++r)
            expected[static_cast<size_t>((o * m + i) * n + j)] +=
                a[static_cast<size_t>((o * m + i) * k + r)] *
                w[static_cast<size_t>((o * k + r) * n + j)];
    const std::vector<float> twos(expected.size(), 2);
    EXPECT_THAT(
        Case()
            .in({b, m, k}, a)
            .in({b, k, n}, w)
            .run<float>(CDL_KIND_MATMUL, 0, {b, m, n}, CDL_F32, {{CDL_ATTR_ACCUMULATE, 1}}, twos),
        ElementsAreArray(expected));
    for (float& v : expected) v -= 2;
    EXPECT_THAT(Case().in({b, m, k}, a).in({b, k, n}, w).run<float>(CDL_KIND_MATMUL, 0, {b, m, n}),
                ElementsAreArray(expected));
  }
}

TEST(Template, MatMulSharesAnOperandByBatchStrideZero) {
  Case c;
  c.in<float>({2, 1, 2}, {1, 2, 3, 4}).in<float>({1, 2, 1}, {10, 1});
  c.views[1].dims[0] = 2;
  c.views[1].strides[0] = 0;
  EXPECT_THAT(c.run<float>(CDL_KIND_MATMUL, 0, {2, 1, 1}), ElementsAre(12, 34));
}

TEST(Template, MatMulSubtractsZeroPoints) {
  EXPECT_THAT(Case()
                  .in<int8_t>({1, 1, 2}, {1, -128})
                  .in<int8_t>({1, 2, 2}, {3, 4, 127, -128})
                  .run<int32_t>(CDL_KIND_MATMUL, 0, {1, 1, 2}),
              ElementsAre(3 - 128 * 127, 4 + 128 * 128));
  EXPECT_THAT(Case()
                  .in<uint8_t>({1, 1, 2}, {200, 255})
                  .in<int8_t>({1, 2, 2}, {1, 2, 3, 4})
                  .in<uint8_t>({1}, {128})
                  .in<int8_t>({2}, {1, -1})
                  .run<int32_t>(CDL_KIND_MATMUL, 0, {1, 1, 2}),
              ElementsAre(72 * 0 + 127 * 2, 72 * 3 + 127 * 5));
}

TEST(Template, Unary) {
  const auto unary = [](uint16_t fn, float x) {
    return Case().in<float>({1}, {x}).run<float>(CDL_KIND_UNARY, fn, {1})[0];
  };
  EXPECT_EQ(unary(CDL_UNARY_NEG, 2), -2);
  EXPECT_EQ(unary(CDL_UNARY_ABS, -2), 2);
  EXPECT_EQ(unary(CDL_UNARY_FLOOR, -1.5f), -2);
  EXPECT_EQ(unary(CDL_UNARY_SQRT, 9), 3);
  EXPECT_TRUE(std::isnan(unary(CDL_UNARY_SQRT, -1)));
  EXPECT_EQ(unary(CDL_UNARY_RCP, 4), 0.25f);
  EXPECT_FLOAT_EQ(unary(CDL_UNARY_EXP, 1), 2.7182818f);
  EXPECT_EQ(unary(CDL_UNARY_LOG, 0), -kInf);
}

TEST(Template, RescaleRoundsOnceHalfToEven) {
  // a * 2^23 / 2^24 = a / 2, plus 3.
  Case one;
  one.in<int32_t>({4}, {1, 3, -1, 1000})
      .broadcast({4}, 1 << 23)
      .broadcast({4}, 24)
      .broadcast({4}, 3);
  EXPECT_THAT(one.run<int8_t>(CDL_KIND_RESCALE, 0, {4}), ElementsAre(3, 5, 3, 127));
  // (a * 2^23 + b * 2^23 * 2) / 2^25 = a / 4 + b / 2, clamped to 0 .. 20.
  Case two;
  two.in<uint8_t>({3}, {2, 4, 200})
      .broadcast({3}, 1 << 23)
      .broadcast({3}, 25)
      .broadcast({3}, 0)
      .in<uint8_t>({3}, {0, 3, 200})
      .broadcast({3}, 1 << 23);
  EXPECT_THAT(two.run<uint8_t>(
                  CDL_KIND_RESCALE, 0, {3}, CDL_U8,
                  {{CDL_ATTR_B_LEFT_SHIFT, 1}, {CDL_ATTR_CLAMP_MIN, 0}, {CDL_ATTR_CLAMP_MAX, 20}}),
              ElementsAre(0, 2, 20));
}

TEST(Template, TableBeginsAtTheLowestValue) {
  std::vector<int8_t> squares(256);
  for (int i = 0; i < 256; ++i)
    squares[static_cast<size_t>(i)] = static_cast<int8_t>((i - 128) / 2);
  EXPECT_THAT(Case()
                  .in<int8_t>({4}, {-128, -1, 0, 127})
                  .in<int8_t>({256}, squares)
                  .run<int8_t>(CDL_KIND_TABLE, 0, {4}),
              ElementsAre(-64, 0, 0, 63));
  std::vector<uint8_t> reversed(256);
  for (int i = 0; i < 256; ++i) reversed[static_cast<size_t>(i)] = static_cast<uint8_t>(255 - i);
  EXPECT_THAT(Case()
                  .in<uint8_t>({2}, {0, 200})
                  .in<uint8_t>({256}, reversed)
                  .run<uint8_t>(CDL_KIND_TABLE, 0, {2}),
              ElementsAre(255, 55));
}

TEST(Template, WhatItDoesNotHaveIsNamed) {
  ImageBuilder m;
  const uint32_t x = m.buffer(CDL_ROLE_INPUT, 4), y = m.buffer(CDL_ROLE_OUTPUT, 4);
  m.instr(CDL_KIND_UNARY, CDL_UNARY_ERF,
          {ImageBuilder::view(x, CDL_F32, {1}), ImageBuilder::view(y, CDL_F32, {1})});
  Device device(template_backend_query);
  (void)device.run(Block(m.bytes()), {});
  EXPECT_EQ(device.code, CDL_UNSUPPORTED);
  EXPECT_STREQ(device.text, "unary at instruction 1 (''): unary function 17 on f32");
}

} // namespace
} // namespace candela::abi
