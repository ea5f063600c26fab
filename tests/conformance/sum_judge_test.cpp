// What is right of sums: every order of summation passes, and what only looks right element by
// element does not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "conformance/judge/sum_bounds.h"
#include "conformance/random/random_ops.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using program::Program, program::Role;

/// y[rows] = sum or product of x[rows, k].
struct Reduction {
  Program program;
  std::vector<Tensor> inputs;
  Elem elem;
  int64_t rows, k;

  Reduction(uint16_t fn, Elem elem, int64_t rows, int64_t k,
            const std::function<double(int64_t r, int64_t i)>& term)
      : elem(elem), rows(rows), k(k) {
    program::Instr instr;
    instr.kind = CDL_KIND_REDUCE;
    instr.fn = fn;
    const auto view = [&](const char* name, Role role, Shape dims) {
      program::Buffer buffer;
      buffer.name = name;
      buffer.role = role;
      buffer.bytes = elemBytes(elem, *elementCount(dims));
      return program::denseView(program.addBuffer(std::move(buffer)), elem, dims);
    };
    instr.inputs = {view("x", Role::input, {rows, k, 1})};
    instr.outputs = {view("y", Role::output, {rows, 1})};
    program.instrs = {instr};
    inputs = {Tensor::zeros(elem, {rows, k, 1}).orAbort()};
    for (int64_t i = 0; i < rows * k; ++i)
      storeElement(elem, inputs[0].bytes.mutableData(), i, fromReal(elem, term(i / k, i % k)));
  }

  double at(int64_t r, int64_t i) const {
    return toReal(elem, loadElement(elem, inputs[0].bytes.data(), r * k + i));
  }
  /// Each row by a function of its terms.
  Tensor answer(const std::function<double(const std::vector<double>&)>& sum) const {
    Tensor y = Tensor::zeros(elem, {rows, 1}).orAbort();
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> terms;
      for (int64_t i = 0; i < k; ++i) terms.push_back(at(r, i));
      storeElement(elem, y.bytes.mutableData(), r, fromReal(elem, sum(terms)));
    }
    return y;
  }
  const judge::Expectation& expected() const {
    if (!expected_) expected_ = judge::sumStatistics(program, inputs).orAbort();
    return *expected_;
  }
  /// Of elements alone.
  std::string outsideOf(const Tensor& y) const {
    return judge::outside(expected().intervals[0], y);
  }
  /// Of all of them together.
  std::string rounding(const Tensor& y) const {
    return judge::checkRounding(expected().roundings[0], y).message();
  }

private:
  mutable std::optional<judge::Expectation> expected_;
};

using Terms = std::vector<double>;

double forwards(const Terms& terms) {
  float sum = 0;
  for (const double term : terms) sum += static_cast<float>(term);
  return sum;
}
double backwards(const Terms& terms) { return forwards({terms.rbegin(), terms.rend()}); }
double pairwise(const Terms& terms) {
  if (terms.size() < 3) return forwards(terms);
  const auto half = terms.begin() + static_cast<std::ptrdiff_t>(terms.size() / 2);
  return static_cast<float>(pairwise({terms.begin(), half})) +
         static_cast<float>(pairwise({half, terms.end()}));
}
double inF16(const Terms& terms) {
  double sum = 0;
  for (const double term : terms) sum = toReal(Elem::f16_, fromReal(Elem::f16_, sum + term));
  return sum;
}
/// Of f32, by what the sum of two numbers is before it is rounded; the sums here have less than 53
/// bits.
double roundedBy(const Terms& terms, double (*round)(double)) {
  double sum = 0;
  for (const double term : terms) {
    const double exact = sum + term;
    if (exact == 0) continue;
    const int step = std::ilogb(exact) - 23;
    sum = std::ldexp(round(std::ldexp(exact, -step)), step);
  }
  return sum;
}
double truncating(const Terms& terms) { return roundedBy(terms, std::trunc); }
double halfUp(const Terms& terms) {
  return roundedBy(terms, [](double value) { return std::floor(value + 0.5); });
}

TEST(SumJudge, EveryOrderIsRight) {
  random::Random random(1);
  for (const int64_t k : {1, 2, 7, 300}) {
    const Reduction mixed(CDL_REDUCE_SUM, Elem::f32_, 64, k,
                          [&](int64_t, int64_t) { return random.unit() * 4 - 2; });
    const Reduction positive(CDL_REDUCE_SUM, Elem::f32_, 64, k,
                             [&](int64_t, int64_t) { return 0.5 + random.unit(); });
    for (const Reduction* reduction : {&mixed, &positive})
      for (const auto order : {forwards, backwards, pairwise}) {
        const Tensor y = reduction->answer(order);
        EXPECT_EQ(reduction->outsideOf(y), "") << k;
        EXPECT_EQ(reduction->rounding(y), "") << k;
      }
  }
}

TEST(SumJudge, EachRoundOfALoopIsJudged) {
  random::Random random(3);
  Reduction sums(CDL_REDUCE_SUM, Elem::f32_, 4, 50,
                 [&](int64_t, int64_t) { return 0.5 + random.unit(); });
  program::Instr& instr = sums.program.instrs[0];
  sums.program.loops = {{0, 1, program::kNone, 4}};
  instr.loop = 0;
  instr.inputs[0].dims = {1, 50, 1}, instr.inputs[0].ivStrides[0] = 50;
  instr.outputs[0].dims = {1, 1}, instr.outputs[0].ivStrides[0] = 1;
  const auto answer = [&](double (*sum)(const Terms&)) {
    Tensor y = sums.answer(sum);
    y.dims = {4}; // as a buffer has it
    return y;
  };
  Tensor y = answer(backwards);
  EXPECT_EQ(sums.outsideOf(y), "");
  EXPECT_EQ(sums.rounding(y), "");
  y.mutableAs<float>()[3] *= 1.001f;
  EXPECT_NE(sums.outsideOf(y), "") << "the last round";
  EXPECT_NE(sums.outsideOf(answer([](const Terms&) { return 0.0; })), "");
}

TEST(SumJudge, SmallWholeNumbersMustBeExact) {
  random::Random random(2);
  const Reduction sums(CDL_REDUCE_SUM, Elem::f32_, 8, 1000, [&](int64_t, int64_t) {
    return static_cast<double>(random.between(-4, 4));
  });
  Tensor y = sums.answer(forwards);
  EXPECT_EQ(sums.outsideOf(y), "");
  y.mutableAs<float>()[3] = std::nextafter(y.as<float>()[3], 1e9f);
  EXPECT_NE(sums.outsideOf(y), "");
}

TEST(SumJudge, AHalfHasOneRoundingToItsType) {
  // 2049 lies half-way between 2048 and 2050, which is the odd one.
  const Reduction sums(CDL_REDUCE_SUM, Elem::f16_, 1, 2,
                       [&](int64_t, int64_t i) { return i ? 1 : 2048; });
  EXPECT_EQ(sums.outsideOf(sums.answer([](const Terms&) { return 2048; })), "");
  EXPECT_NE(sums.outsideOf(sums.answer([](const Terms&) { return 2050; })), "");
  // A narrow accumulator stays where a wide one goes on.
  const Reduction many(CDL_REDUCE_SUM, Elem::f16_, 1, 65,
                       [&](int64_t, int64_t i) { return i ? 0.5 : 2048; });
  EXPECT_EQ(many.outsideOf(many.answer(forwards)), "");
  EXPECT_NE(many.outsideOf(many.answer(inF16)), "");
}

TEST(SumJudge, WhatIsNoNumberIsTheSameInEveryOrder) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto isRight = [](uint16_t fn, const Terms& terms, double y) {
    const Reduction one(fn, Elem::f32_, 1, static_cast<int64_t>(terms.size()),
                        [&](int64_t, int64_t i) { return terms[static_cast<size_t>(i)]; });
    return one.outsideOf(one.answer([&](const Terms&) { return y; })).empty();
  };
  for (const uint16_t fn : {CDL_REDUCE_SUM, CDL_REDUCE_PROD}) {
    EXPECT_TRUE(isRight(fn, {1, infinity, 2}, infinity));
    EXPECT_FALSE(isRight(fn, {1, infinity, 2}, 3e38));
    EXPECT_TRUE(isRight(fn, {1, nan, 2}, nan));
    EXPECT_FALSE(isRight(fn, {1, nan, 2}, 3));
  }
  EXPECT_TRUE(isRight(CDL_REDUCE_SUM, {infinity, -infinity}, nan));
  EXPECT_FALSE(isRight(CDL_REDUCE_SUM, {infinity, -infinity}, 0));
  EXPECT_TRUE(isRight(CDL_REDUCE_PROD, {infinity, 0}, nan));
  EXPECT_FALSE(isRight(CDL_REDUCE_PROD, {2, 0.5, 0}, 1));
  EXPECT_FALSE(isRight(CDL_REDUCE_PROD, {2, 0.5, 4}, std::nextafter(4.0f, 5.0f)));
  // In another order this is 3e38, or not a number.
  EXPECT_TRUE(isRight(CDL_REDUCE_SUM, {3e38, 3e38, -3e38}, infinity));
  EXPECT_TRUE(isRight(CDL_REDUCE_SUM, {3e38, 3e38, -3e38}, 3e38));
}

TEST(SumJudge, ANarrowAccumulatorHasTooMuchVariance) {
  random::Random random(3);
  const Reduction sums(CDL_REDUCE_SUM, Elem::f32_, 16, 32768, [&](int64_t, int64_t) {
    return toReal(Elem::f16_, fromReal(Elem::f16_, random.unit() * 2 - 1));
  });
  const Tensor honest = sums.answer(forwards), narrow = sums.answer(inF16);
  EXPECT_EQ(sums.outsideOf(honest), "");
  EXPECT_EQ(sums.rounding(honest), "");
  EXPECT_EQ(sums.outsideOf(narrow), ""); // sums of so many terms have wide bounds
  EXPECT_NE(sums.rounding(narrow).find("variance"), std::string::npos) << sums.rounding(narrow);
}

TEST(SumJudge, TruncationLeansToZero) {
  random::Random random(4);
  const Reduction sums(CDL_REDUCE_SUM, Elem::f32_, 64, 33,
                       [&](int64_t, int64_t) { return 0.5 + random.unit() / 2; });
  const Tensor truncated = sums.answer(truncating);
  EXPECT_EQ(sums.outsideOf(truncated), "");
  EXPECT_NE(sums.rounding(truncated).find("bias of -"), std::string::npos)
      << sums.rounding(truncated);
}

TEST(SumJudge, HalvesThatAllGoUpAreABias) {
  random::Random random(5);
  const Reduction sums(CDL_REDUCE_SUM, Elem::f32_, 400, 2, [&](int64_t, int64_t i) {
    return i ? 0.5 : 0x1p23 + static_cast<double>(random.below(1 << 23));
  });
  const Tensor even = sums.answer(forwards), up = sums.answer(halfUp);
  EXPECT_EQ(sums.outsideOf(up), "");
  EXPECT_EQ(sums.rounding(even), "");
  EXPECT_NE(sums.rounding(up).find("bias of 0."), std::string::npos) << sums.rounding(up);
}

TEST(SumJudge, FewResultsProveNothing) {
  const judge::RoundingModel model{std::vector<double>(15, 0.0), std::vector<double>(15, 1e-9)};
  EXPECT_TRUE(
      judge::checkRounding(model, Tensor::of<float>(Elem::f32_, {15}, std::vector<float>(15, 1))));
  const judge::RoundingModel enough{std::vector<double>(16, 0.0), std::vector<double>(16, 1e-9)};
  EXPECT_FALSE(
      judge::checkRounding(enough, Tensor::of<float>(Elem::f32_, {16}, std::vector<float>(16, 1))));
}

} // namespace
} // namespace candela::conformance
