// Operators whose results are as long as data says, and random numbers.

#include <array>
#include <bit>

#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;

// --- What data selects
// -------------------------------------------------------------------------------------------------

TEST(Selection, IsAsLongAsItsMaskHasTrues) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect(Op(11, "Compress").constant(x).constant(boolean({3}, {0, 1, 1})), f32({2}, {2, 3}));
  expect(Op(11, "Compress").in(x).constant(boolean({2}, {0, 1})).attr("axis", int64_t(-1)),
         f32({2, 1}, {2, 4}));
  expect(Op(11, "Compress").in(x).constant(boolean({2}, {0, 0})).attr("axis", int64_t(0)),
         f32({0, 2}, {}));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).in(boolean({2}, {0, 1}))),
              HasSubstr("the shape of its result is known at run only"));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).constant(boolean({7}, {0, 0, 0, 1, 0, 1, 1}))),
              HasSubstr("2 of a condition of 7 are true beyond the dim of 4"));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).constant(i64({2}, {0, 1}))),
              HasSubstr("expected a vector of bool"));

  expect(Op(13, "NonZero").constant(f32({2, 3}, {0, NAN, -0.0f, 5, 0, -1})),
         i64({2, 3}, {0, 1, 1, 1, 0, 2}));
  expect(Op(13, "NonZero").constant(f32({}, {2})), i64({0, 1}, {}));
  expect(Op(13, "NonZero").constant(boolean({0, 3}, {})), i64({2, 0}, {}));
}

TEST(Selection, CountsBeyondOneBlockOfTheMask) {
  constexpr int64_t kCount = 5000; // in blocks of blocks
  std::vector<uint8_t> mask(kCount);
  Ints places;
  for (int64_t i = 0; i < kCount; ++i) {
    mask[i] = i * i % 7 == 2;
    if (mask[i]) places.push_back(i);
  }
  const auto count = static_cast<int64_t>(places.size());
  expect(Op(13, "NonZero").constant(boolean({kCount}, mask)), i64({1, count}, places));
}

TEST(Unique, KeepsIntegersExactAndOneNaN) {
  const auto all = [](const Tensor& x, bool sorted) {
    return Op(11, "Unique").constant(x).attr("sorted", int64_t(sorted)).outputs(4).run();
  };
  constexpr int64_t kBig = (int64_t(1) << 53) + 1; // no double
  const auto big = all(i64({5}, {kBig, kBig - 1, kBig, -1, kBig - 1}), true);
  ASSERT_TRUE(big) << big.status().message();
  EXPECT_EQ(difference(big->at(0), i64({3}, {-1, kBig - 1, kBig})), "");
  EXPECT_EQ(difference(big->at(1), i64({3}, {3, 1, 0})), "");
  EXPECT_EQ(difference(big->at(2), i64({5}, {2, 1, 2, 0, 1})), "");
  EXPECT_EQ(difference(big->at(3), i64({3}, {1, 2, 2})), "");
  const auto real = all(f32({6}, {NAN, 3, -0.0f, NAN, 0, 3}), false);
  ASSERT_TRUE(real) << real.status().message();
  EXPECT_EQ(difference(real->at(0), f32({3}, {NAN, 3, -0.0f})), "");
  EXPECT_EQ(difference(real->at(2), i64({6}, {0, 1, 2, 0, 2, 1})), "");
  EXPECT_EQ(difference(real->at(3), i64({3}, {2, 2, 2})), "");
}

TEST(Unique, OrdersSlicesByTheirFirstDifference) {
  // Along axis 1: (2,1,0), (1,9,9), (2,1,0), (2,0,7).
  const Tensor x = i64({3, 4}, {2, 1, 2, 2, 1, 9, 1, 0, 0, 9, 0, 7});
  const auto y = Op(11, "Unique").constant(x).attr("axis", int64_t(-1)).outputs(4).run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), i64({3, 3}, {1, 2, 2, 9, 0, 1, 9, 7, 0})), "");
  EXPECT_EQ(difference(y->at(1), i64({3}, {1, 3, 0})), "");
  EXPECT_EQ(difference(y->at(2), i64({4}, {2, 0, 2, 1})), "");
  EXPECT_EQ(difference(y->at(3), i64({3}, {1, 1, 2})), "");
  EXPECT_THAT(refusal(Op(11, "Unique").constant(x).attr("axis", int64_t(2)).outputs(1)),
              HasSubstr("axis 2 is out of range for rank 2"));
}

// --- Random numbers
// -------------------------------------------------------------------------------------------------

/// Threefry-2x32 of 20 rounds as its authors write it, on unsigned numbers.
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key) {
  const uint32_t words[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t a = counter[0] + words[0], b = counter[1] + words[1];
  for (uint32_t round = 0; round < 20; ++round) {
    a += b;
    b = std::rotl(b, rotations[round % 8]) ^ a;
    if (const uint32_t turn = round / 4 + 1; round % 4 == 3) {
      a += words[turn % 3];
      b += words[(turn + 1) % 3] + turn;
    }
  }
  return {a, b};
}

TEST(Random, HasTheBitsOfThreefry) {
  using Words = std::array<uint32_t, 2>;
  // The vectors that Random123 is tested with.
  EXPECT_EQ(threefry({0, 0}, {0, 0}), (Words{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry({~0U, ~0U}, {~0U, ~0U}), (Words{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}),
            (Words{0xc4923a9c, 0x483df7a0}));
  for (const float seed : {0.0f, 7.0f, -1.5e9f}) {
    constexpr uint32_t kHalf = 1001; // too many to be folded
    Floats want(2 * kHalf - 1);
    std::vector<double> wide(kHalf);
    for (uint32_t i = 0; i < kHalf; ++i) {
      const Words words = threefry({i, 0}, {std::bit_cast<uint32_t>(seed), 0});
      want[i] = static_cast<float>(words[0] >> 8) * 0x1p-24f;
      if (i + 1 < kHalf) want[i + kHalf] = static_cast<float>(words[1] >> 8) * 0x1p-24f;
      wide[i] = (static_cast<double>(words[0] >> 5) * 0x1p26 + static_cast<double>(words[1] >> 6)) *
                0x1p-53;
    }
    const Ints shape{1, 2 * kHalf - 1};
    expect(Op(22, "RandomUniform").attr("seed", seed).attr("shape", shape), f32(shape, want));
    expect(Op(22, "RandomUniformLike")
               .in(Tensor::of<double>(Elem::f64_, {kHalf}, wide))
               .attr("seed", seed),
           Tensor::of<double>(Elem::f64_, {kHalf}, wide));
  }
}

TEST(Random, NodesWithoutASeedDifferAndRepeat) {
  const auto numbers = [](const std::string& node) {
    ModelMaker maker(22);
    maker.output("y0");
    maker.output("y1");
    setAttr(maker.node("RandomUniform", {}, {"y0"}, node), "shape", Ints{8});
    setAttr(maker.node("RandomUniform", {}, {"y1"}, node + "_2"), "shape", Ints{8});
    const auto graph = maker.import();
    const auto results =
        graph ? reference::run(*graph, {}) : Result<std::vector<Tensor>>(graph.status());
    EXPECT_TRUE(results) << messageOf(results);
    return results ? *results : std::vector<Tensor>(2);
  };
  const auto first = numbers("r"), again = numbers("r");
  EXPECT_EQ(difference(first[0], again[0]), "");
  EXPECT_NE(difference(first[0], first[1]), "");
}

/// The mean of f(x), and how many deviations of such a mean it may miss: for 20,000 numbers.
void expectMean(const Tensor& x, double want, double deviation, double (*f)(double)) {
  double sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) sum += f(elementAsReal(x, i));
  const auto count = static_cast<double>(x.count());
  EXPECT_NEAR(sum / count, want, 4 * deviation / std::sqrt(count));
}

TEST(Random, NumbersAreDistributedAsTheyShould) {
  const Ints shape{20001};
  const auto first = [](const Op& op) {
    Op copy = op;
    const auto results = copy.run();
    EXPECT_TRUE(results) << messageOf(results);
    return results ? results->at(0) : Tensor();
  };
  const Tensor flat = first(Op(22, "RandomUniform")
                                .attr("seed", 3.0f)
                                .attr("low", -1.0f)
                                .attr("high", 3.0f)
                                .attr("shape", shape));
  expectMean(flat, 1, std::sqrt(16 / 12.0), [](double x) { return x; });
  expectMean(flat, 0.25, std::sqrt(3) / 4, [](double x) { return double(x >= 2); });
  for (const int64_t dtype : {1, 10, 11}) {
    const Tensor bell = first(Op(22, "RandomNormal")
                                  .attr("seed", 5.0f)
                                  .attr("mean", 2.0f)
                                  .attr("scale", 0.5f)
                                  .attr("dtype", dtype)
                                  .attr("shape", shape));
    expectMean(bell, 2, 0.5, [](double x) { return x; });
    expectMean(bell, 0.25, 0.25 * std::sqrt(2), [](double x) { return (x - 2) * (x - 2); });
    expectMean(bell, 3 / 16.0, std::sqrt(96) / 16, [](double x) { return std::pow(x - 2, 4); });
  }
  const Tensor coin =
      first(Op(22, "Bernoulli").in(f32(shape, Floats(20001, 0.3f))).attr("dtype", int64_t(7)));
  ASSERT_EQ(coin.elem, Elem::i64_);
  expectMean(coin, 0.3, std::sqrt(0.21), [](double x) { return x; });
  expect(Op(22, "Bernoulli").in(f32({4}, {0, 1, 0, 1})), f32({4}, {0, 1, 0, 1}));

  // exp gives 1 : 0 : 2 : 5.
  const Tensor classes = f32({1, 4}, {0, -INFINITY, std::log(2.0f), std::log(5.0f)});
  const Tensor picks = first(
      Op(22, "Multinomial").in(classes).attr("sample_size", int64_t(20001)).attr("seed", 1.0f));
  ASSERT_EQ(picks.elem, Elem::i32_);
  expectMean(picks, 1 / 8.0, std::sqrt(7) / 8, [](double x) { return double(x == 0); });
  expectMean(picks, 0, 0, [](double x) { return double(x == 1 || x < 0 || x > 3); });
  expectMean(picks, 5 / 8.0, std::sqrt(15) / 8, [](double x) { return double(x == 3); });
}

TEST(Random, DropoutScalesWhatItKeeps) {
  const Tensor x = f32({20001}, Floats(20001, 3));
  const auto dropout = [&](const Tensor& ratio, bool training) {
    return Op(22, "Dropout")
        .in(x)
        .in(ratio)
        .in(boolean({}, {training}))
        .attr("seed", int64_t(1))
        .outputs(2)
        .run();
  };
  const auto some = dropout(f32({}, {0.25f}), true);
  ASSERT_TRUE(some) << some.status().message();
  expectMean(some->at(0), 3, std::sqrt(3), [](double y) { return y; });
  expectMean(some->at(0), 0, 0, [](double y) { return double(y != 0 && y != 4); });
  expectMean(some->at(1), 0.75, std::sqrt(3) / 4, [](double y) { return y; });
  const auto none = dropout(f32({}, {0.25f}), false);
  ASSERT_TRUE(none) << none.status().message();
  EXPECT_EQ(difference(none->at(0), x), "");
  EXPECT_EQ(difference(none->at(1), boolean({20001}, std::vector<uint8_t>(20001, 1))), "");
}

TEST(Random, RefusesWhatHasNoNumbers) {
  EXPECT_THAT(refusal(Op(22, "RandomNormal")), HasSubstr("attribute 'shape' is missing"));
  EXPECT_THAT(refusal(Op(22, "RandomNormal").attr("shape", Ints{2, -1})),
              HasSubstr("impossible shape [2,-1]"));
  EXPECT_THAT(refusal(Op(22, "RandomUniform").attr("shape", Ints{1 << 20, 1 << 20})),
              HasSubstr("at most"));
  EXPECT_THAT(refusal(Op(22, "RandomUniformLike").in(i64({2}, {0, 0}))),
              HasSubstr("random i64, expected floats"));
  EXPECT_THAT(refusal(Op(22, "Multinomial").in(f32({4}, {1, 2, 3, 4}))),
              HasSubstr("expected floats [batch, classes]"));
  EXPECT_THAT(
      refusal(Op(22, "Multinomial").in(f32({1, 2}, {1, 2})).attr("sample_size", int64_t(0))),
      HasSubstr("sample_size is 0"));
}

} // namespace
} // namespace candela::test
