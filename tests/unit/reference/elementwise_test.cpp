#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

TEST(Elementwise, ArithmeticBroadcasts) {
  const Tensor a = f32({2, 1}, {1, 10}), b = f32({3}, {1, 2, 4});
  EXPECT_THAT(op(OpKind::Add, {a, b}), are({2, 3, 5, 11, 12, 14}));
  EXPECT_THAT(op(OpKind::Sub, {a, b}), are({0, -1, -3, 9, 8, 6}));
  EXPECT_THAT(op(OpKind::Mul, {a, b}), are({1, 2, 4, 10, 20, 40}));
  EXPECT_THAT(op(OpKind::Div, {a, b}), are({1, 0.5, 0.25, 10, 5, 2.5}));
  EXPECT_THAT(op(OpKind::Add, {f32({0, 3}, {}), b}), are({}));
}

TEST(Elementwise, RoundsOnceToTheType) {
  // In f32 the sum is exact only in wider arithmetic; the result is its nearest value.
  EXPECT_THAT(op(OpKind::Add, {f32({1}, {16777216}), f32({1}, {1})}), are({16777216}));
  EXPECT_THAT(op(OpKind::Mul, {tensor(Elem::f16_, {1}, {256}), tensor(Elem::f16_, {1}, {256})}),
              are({kInf}));
  EXPECT_THAT(op(OpKind::Div, {f32({1}, {1}), f32({1}, {3})}),
              are({static_cast<double>(1.0f / 3.0f)}));
}

TEST(Elementwise, IntegersWrapAndTruncate) {
  const auto i8 = [](std::vector<double> v) {
    const Shape s{static_cast<int64_t>(v.size())};
    return tensor(Elem::i8_, s, v);
  };
  EXPECT_THAT(op(OpKind::Add, {i8({100, -100}), i8({100, -100})}), are({-56, 56}));
  EXPECT_THAT(op(OpKind::Div, {i8({-7, 7, -128}), i8({2, 0, -1})}), are({-3, 0, -128}));
  EXPECT_THAT(op(OpKind::Neg, {i8({-128, 5})}), are({-128, -5}));
  EXPECT_THAT(op(OpKind::Abs, {i8({-128, -5})}), are({-128, 5}));
  EXPECT_THAT(op(OpKind::Sub, {tensor(Elem::u8_, {1}, {3}), tensor(Elem::u8_, {1}, {5})}),
              are({254}));
}

TEST(Elementwise, MinMaxAndComparisonsOfNan) {
  const Tensor a = f32({3}, {1, kNan, 3}), b = f32({3}, {2, 2, kNan});
  EXPECT_THAT(op(OpKind::Min, {a, b}), are({1, kNan, kNan}));
  EXPECT_THAT(op(OpKind::Max, {a, b}), are({2, kNan, kNan}));
  EXPECT_THAT(op(OpKind::Less, {a, b}), are({1, 0, 0}));
  EXPECT_THAT(op(OpKind::Equal, {a, a}), are({1, 0, 1}));
  EXPECT_THAT(op(OpKind::Equal, {tensor(Elem::bool_, {2}, {1, 0}), tensor(Elem::bool_, {1}, {0})}),
              are({0, 1}));
}

TEST(Elementwise, SelectBroadcastsAllThree) {
  EXPECT_THAT(
      op(OpKind::Select, {tensor(Elem::bool_, {2, 1}, {1, 0}), f32({2}, {1, 2}), f32({}, {9})}),
      are({1, 2, 9, 9}));
  EXPECT_THAT(
      op(OpKind::Select, {tensor(Elem::bool_, {2}, {1, 0}), i32({2}, {1, 2}), i32({}, {9})}),
      are({1, 9}));
}

TEST(Elementwise, UnaryCorners) {
  EXPECT_THAT(op(OpKind::Sqrt, {f32({3}, {4, -0.0, -1})}), are({2, -0.0, kNan}));
  EXPECT_THAT(op(OpKind::Exp, {f32({4}, {0, 100, -kInf, -200})}), are({1, kInf, 0, 0}));
  EXPECT_THAT(op(OpKind::Log, {f32({3}, {1, 0, -1})}), are({0, -kInf, kNan}));
  EXPECT_THAT(op(OpKind::Tanh, {f32({4}, {50, -50, 1e-20, 0})}),
              are({1, -1, static_cast<double>(1e-20f), 0}));
  EXPECT_THAT(op(OpKind::Reciprocal, {f32({3}, {4, 0, -kInf})}), are({0.25, kInf, -0.0}));
  EXPECT_THAT(op(OpKind::Floor, {f32({3}, {-1.5, 1.5, -0.0})}), are({-2, 1, -0.0}));
  EXPECT_THAT(op(OpKind::Ceil, {f32({3}, {-1.5, 1.5, -0.5})}), are({-1, 2, -0.0}));
  EXPECT_THAT(op(OpKind::Sigmoid, {f32({3}, {0, kInf, -kInf})}), are({0.5, 1, 0}));
  EXPECT_THAT(op(OpKind::Relu, {f32({4}, {-1, 2, kNan, -0.0})}), are({0, 2, kNan, 0}));
  EXPECT_THAT(op(OpKind::Relu, {i32({2}, {-5, 5})}), are({0, 5}));
  EXPECT_THAT(op(OpKind::Abs, {f32({2}, {-0.0, -3})}), are({0, 3}));
  EXPECT_THAT(op(OpKind::Neg, {f32({2}, {0, -3})}), are({-0.0, 3}));
}

TEST(Elementwise, KnownValues) { // of NumPy and SciPy in double precision
  const Tensor x = f32({3}, {0.5, -1.25, 2});
  EXPECT_THAT(op(OpKind::Exp, {x}),
              near({1.6487212707001282, 0.2865047968601901, 7.38905609893065}));
  EXPECT_THAT(op(OpKind::Tanh, {x}),
              near({0.46211715726000973, -0.8482836399575129, 0.9640275800758169}));
  EXPECT_THAT(op(OpKind::Erf, {x}),
              near({0.5204998778130465, -0.9229001282564582, 0.9953222650189527}));
  EXPECT_THAT(op(OpKind::Sigmoid, {x}),
              near({0.6224593312018546, 0.22270013882530884, 0.8807970779778823}));
}

TEST(Function, KnownValues) { // of Python's math in double precision
  const auto at = [](OpKind kind) { return op(kind, {tensor(Elem::f64_, {2}, {0.5, -0.25})}); };
  EXPECT_THAT(at(OpKind::Sin), near({0.479425538604203, -0.24740395925452294}));
  EXPECT_THAT(at(OpKind::Cos), near({0.8775825618903728, 0.9689124217106447}));
  EXPECT_THAT(at(OpKind::Tan), near({0.5463024898437905, -0.25534192122103627}));
  EXPECT_THAT(at(OpKind::Asin), near({0.5235987755982989, -0.25268025514207865}));
  EXPECT_THAT(at(OpKind::Acos), near({1.0471975511965979, 1.8234765819369754}));
  EXPECT_THAT(at(OpKind::Atan), near({0.4636476090008061, -0.24497866312686414}));
  EXPECT_THAT(at(OpKind::Sinh), near({0.5210953054937474, -0.2526123168081683}));
  EXPECT_THAT(at(OpKind::Cosh), near({1.1276259652063807, 1.0314130998795732}));
  EXPECT_THAT(at(OpKind::Asinh), near({0.48121182505960347, -0.24746646154726346}));
  EXPECT_THAT(at(OpKind::Atanh), near({0.5493061443340548, -0.25541281188299536}));
  EXPECT_THAT(at(OpKind::Log1p), near({0.4054651081081644, -0.2876820724517809}));
  EXPECT_THAT(at(OpKind::Expm1), near({0.6487212707001282, -0.22119921692859512}));
  EXPECT_THAT(op(OpKind::Acosh, {tensor(Elem::f64_, {1}, {1.5})}), near({0.9624236501192069}));
  EXPECT_THAT(op(OpKind::Acosh, {f32({2}, {1, 0.5})}), are({0, kNan}));
  EXPECT_THAT(op(OpKind::RoundEven, {f32({5}, {0.5, 1.5, -2.5, 0.49999997, -0.25})}),
              are({0, 2, -2, 0, -0.0}));
  EXPECT_THAT(op(OpKind::Trunc, {f32({3}, {1.5, -1.5, kNan})}), are({1, -1, kNan}));
}

TEST(Function, BitsAndRemainders) {
  const auto i8 = [](const std::vector<double>& v) {
    return tensor(Elem::i8_, {static_cast<int64_t>(v.size())}, v);
  };
  EXPECT_THAT(op(OpKind::BitAnd, {i8({12, -1}), i8({10, 7})}), are({8, 7}));
  EXPECT_THAT(op(OpKind::BitOr, {i8({12, -128}), i8({10, 7})}), are({14, -121}));
  EXPECT_THAT(op(OpKind::BitXor, {i8({12, -1}), i8({10, 7})}), are({6, -8}));
  EXPECT_THAT(op(OpKind::ShiftLeft, {i8({3, 1, 1, 1}), i8({2, 7, 8, -1})}), are({12, -128, 0, 0}));
  EXPECT_THAT(op(OpKind::ShiftRight, {i8({-128, -1, 64, -5}), i8({7, 8, 3, -1})}),
              are({-1, -1, 8, -1}));
  EXPECT_THAT(
      op(OpKind::ShiftRight, {tensor(Elem::u8_, {2}, {128, 255}), tensor(Elem::u8_, {2}, {7, 8})}),
      are({1, 0}));
  EXPECT_THAT(op(OpKind::Rem, {i8({-7, 7, 7, -128}), i8({2, -2, 0, -1})}), are({-1, 1, 7, 0}));
  EXPECT_THAT(op(OpKind::Rem, {f32({3}, {-7.5, 7.5, 1}), f32({3}, {2, -2, 0})}),
              are({-1.5, 1.5, kNan}));
  EXPECT_THAT(op(OpKind::Pow, {i8({-3, 2, -1, 2}), i8({3, 7, -3, -1})}), are({-27, -128, -1, 0}));
}

TEST(Elementwise, ClipTakesTheUpperLimitLast) {
  const Tensor x = f32({4}, {-5, 0.5, 5, kNan}), lo = f32({}, {0}), hi = f32({}, {1});
  EXPECT_THAT(op(OpKind::Clip, {x, lo, hi}), are({0, 0.5, 1, kNan}));
  EXPECT_THAT(op(OpKind::Clip, {x, hi, lo}), are({0, 0, 0, kNan}));
  EXPECT_THAT(op(OpKind::Clip, {x, Tensor{}, hi}), are({-5, 0.5, 1, kNan}));
  EXPECT_THAT(op(OpKind::Clip, {x}), are({-5, 0.5, 5, kNan}));
  EXPECT_THAT(op(OpKind::Clip, {i32({2}, {-5, 9}), i32({}, {-1}), i32({}, {7})}), are({-1, 7}));
}

TEST(Elementwise, CastGoesTowardZeroAndWraps) {
  const auto cast = [](const Tensor& x, Elem to, bool saturate = false) {
    return op(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(saturate)}});
  };
  const Tensor x = f32({5}, {-1.9, 2.9, 300, kNan, -kInf});
  EXPECT_THAT(cast(x, Elem::i8_), are({-1, 2, 44, 0, 0}));
  EXPECT_THAT(cast(x, Elem::i8_, true), are({-1, 2, 127, 0, -128}));
  EXPECT_THAT(cast(x, Elem::bool_), are({1, 1, 1, 1, 1}));
  EXPECT_THAT(cast(i32({3}, {300, -1, 0}), Elem::u8_), are({44, 255, 0}));
  EXPECT_THAT(cast(i32({3}, {300, -1, 0}), Elem::u8_, true), are({255, 0, 0}));
  EXPECT_THAT(cast(i32({2}, {16777217, -3}), Elem::f32_), are({16777216, -3}));
  EXPECT_THAT(cast(f32({2}, {70000, 1.0009765625}), Elem::f16_, true), are({65504, 1.0009765625}));
  EXPECT_THAT(cast(f32({2}, {500, -500}), Elem::f8e4m3_, true), are({448, -448}));
  EXPECT_THAT(cast(tensor(Elem::i4_, {3}, {-8, 7, -1}), Elem::f32_), are({-8, 7, -1}));
}

} // namespace
} // namespace candela::reference
