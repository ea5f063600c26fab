// What is right of products with scales: any order of sums, with the scales within or outside of
// them, and no more than that.
#include <gtest/gtest.h>

#include <functional>

#include "conformance/judge/scaled_bounds.h"
#include "conformance/random/random_ops.h"
#include "core/reference/reference.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using program::Program, program::Role;

constexpr int64_t kRows = 2;
constexpr int64_t kDepth = 200;
constexpr int64_t kColumns = 5;
constexpr int64_t kBlocks = 7;
constexpr int64_t kBlock = 32; // the last one is not full

/// y[2,5] = a[2,200] . w[5,7,32] of u4, with scales and zero points by block.
struct Product {
  Program program;
  std::vector<Tensor> inputs;
  judge::Expectation expected;

  Product() {
    program::Instr instr;
    instr.kind = CDL_KIND_SCALED_MATMUL;
    instr.fn = CDL_SCALED_MATMUL_EXACT;
    random::Random random(1);
    const auto view = [&](const char* name, Role role, Elem elem, const Shape& dims) {
      program::Buffer buffer;
      buffer.name = name;
      buffer.role = role;
      buffer.bytes = elemBytes(elem, *elementCount(dims));
      return program::denseView(program.addBuffer(std::move(buffer)), elem, dims);
    };
    const auto input = [&](const char* name, Elem elem, const Shape& dims, random::Data data) {
      instr.inputs.push_back(view(name, Role::input, elem, dims));
      inputs.push_back(random::randomData(elem, dims, data, random));
    };
    input("a", Elem::f32_, {kRows, kDepth}, random::Data::calm);
    input("w", Elem::u4_, {kColumns, kBlocks, kBlock}, random::Data::bits);
    input("w_scale", Elem::f32_, {kColumns, kBlocks}, random::Data::calm);
    input("w_zero", Elem::u8_, {kColumns, kBlocks}, random::Data::steps);
    instr.outputs = {view("y", Role::output, Elem::f32_, {kRows, kColumns})};
    program.instrs = {instr};
    expected = judge::primitiveBounds(program, inputs).orAbort();
  }

  float number(size_t operand, int64_t at) const {
    const Tensor& tensor = inputs[operand];
    const uint64_t bits = loadElement(tensor.elem, tensor.bytes.data(), at);
    return isFloat(tensor.elem) ? static_cast<float>(toReal(tensor.elem, bits))
                                : static_cast<float>(bits);
  }
  /// What a device answers whose results are of this function of row and column.
  std::string outsideOf(const std::function<float(int64_t m, int64_t n)>& result) const {
    Tensor y = Tensor::zeros(Elem::f32_, {kRows, kColumns}).orAbort();
    for (int64_t m = 0; m < kRows; ++m)
      for (int64_t n = 0; n < kColumns; ++n) y.mutableAs<float>()[m * kColumns + n] = result(m, n);
    return judge::outside(expected.intervals[0], y);
  }
  float a(int64_t m, int64_t k) const { return number(0, m * kDepth + k); }
  float w(int64_t n, int64_t k) const { return number(1, n * kBlocks * kBlock + k); }
  float scale(int64_t n, int64_t k) const { return number(2, n * kBlocks + k / kBlock); }
  float zero(int64_t n, int64_t k) const { return number(3, n * kBlocks + k / kBlock); }
};

TEST(ScaledJudge, ScalesStandWhereverTheyAre) {
  const Product p;
  EXPECT_EQ(p.outsideOf([&](int64_t m, int64_t n) {
    float sum = 0;
    for (int64_t k = 0; k < kDepth; ++k)
      sum += p.a(m, k) * ((p.w(n, k) - p.zero(n, k)) * p.scale(n, k));
    return sum;
  }),
            "");
  EXPECT_EQ(p.outsideOf([&](int64_t m, int64_t n) {
    float sum = 0;
    for (int64_t k = kDepth; k-- > 0;)
      sum += (p.a(m, k) * p.scale(n, k)) * (p.w(n, k) - p.zero(n, k));
    return sum;
  }),
            "");
}

TEST(ScaledJudge, ABlocksSumsMayBeScaledAndItsZeroTakenOff) {
  const Product p;
  EXPECT_EQ(p.outsideOf([&](int64_t m, int64_t n) {
    float sum = 0;
    for (int64_t first = 0; first < kDepth; first += kBlock) {
      float products = 0, ofA = 0;
      for (int64_t k = first; k < std::min(kDepth, first + kBlock); ++k) {
        products += p.a(m, k) * p.w(n, k);
        ofA += p.a(m, k);
      }
      sum += (products - ofA * p.zero(n, first)) * p.scale(n, first);
    }
    return sum;
  }),
            "");
}

TEST(ScaledJudge, WhatIsLeftOutIsFound) {
  const Product p;
  const auto sumOf = [&](int64_t m, const std::function<float(int64_t k)>& weight) {
    float sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) sum += p.a(m, k) * weight(k);
    return sum;
  };
  EXPECT_NE(p.outsideOf([&](int64_t m, int64_t n) {
    return sumOf(m, [&](int64_t k) { return p.w(n, k) * p.scale(n, k); });
  }),
            "");
  EXPECT_NE(p.outsideOf([&](int64_t m, int64_t n) {
    return sumOf(m, [&](int64_t k) { return p.w(n, k) - p.zero(n, k); });
  }),
            "");
  EXPECT_NE(p.outsideOf([&](int64_t m, int64_t n) {
    return sumOf(m, [&](int64_t k) {
      return k < kDepth / kBlock * kBlock ? (p.w(n, k) - p.zero(n, k)) * p.scale(n, k) : 0;
    });
  }),
            "");
}

TEST(ScaledJudge, AnAccumulatorOfHalvesIsFound) {
  const Product p;
  EXPECT_NE(p.outsideOf([&](int64_t m, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < kDepth; ++k)
      sum = reference::roundReal(Elem::f16_, sum + static_cast<double>(p.a(m, k)) *
                                                       (p.w(n, k) - p.zero(n, k)) * p.scale(n, k));
    return static_cast<float>(sum);
  }),
            "");
}

TEST(ScaledJudge, ProductsOfIntegersAreNotJudgedSo) {
  Product p;
  p.program.instrs[0].fn = CDL_SCALED_MATMUL_DYNAMIC;
  EXPECT_FALSE(judge::primitiveBounds(p.program, p.inputs).isOk());
}

} // namespace
} // namespace candela::conformance
