#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

using std::string;

TEST(Primitive, AffineAndPlace) {
  const Tensor x = i32({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(op(OpKind::Affine, {x},
                 {{"offset", int64_t(5)}, {"dims", Ints{2, 2}}, {"strides", Ints{-3, 0}}}),
              are({5, 5, 2, 2}));
  EXPECT_THAT(op(OpKind::Affine, {x}, {{"dims", Ints{0, 7}}, {"strides", Ints{1, 1}}}), are({}));
  EXPECT_THAT(op(OpKind::Place, {i32({2}, {1, 2}), i32({1}, {3})},
                 {{"dims", Ints{6}},
                  {"offsets", Ints{0, 5}},
                  {"steps", Ints{3}},
                  {"value", int64_t(0xffffffff)}}),
              are({1, -1, -1, 2, -1, 3}));
  EXPECT_THAT(op(OpKind::Place, {f32({1, 1}, {7})},
                 {{"dims", Ints{2, 2}}, {"offsets", Ints{1, 0}}, {"value", int64_t(0x3f800000)}}),
              are({1, 1, 7, 1}));
}

TEST(Primitive, TakeAndPut) {
  const Tensor x = f32({1, 3, 1}, {10, 20, 30});
  EXPECT_THAT(op(OpKind::Take, {x, i32({4}, {2, 0, -1, 9})}), are({30, 10, 10, 30}));
  EXPECT_THAT(op(OpKind::Take, {x, i32({4}, {2, 0, -1, 9})}, {{"mode", string("zero")}}),
              are({30, 10, 0, 0}));
  const auto put = [&](const string& fn) {
    return op(OpKind::Put, {x, i32({4}, {1, 1, -1, 3}), f32({1, 4, 1}, {2, 3, 100, 100})},
              {{"fn", fn}});
  };
  EXPECT_THAT(put("set"), are({10, 3, 30}));
  EXPECT_THAT(put("add"), are({10, 25, 30}));
  EXPECT_THAT(put("min"), are({10, 2, 30}));
  EXPECT_THAT(put("max"), are({10, 20, 30}));
  EXPECT_THAT(put("mul"), are({10, 120, 30}));
}

TEST(Primitive, SortKeepsTheFirstOfEqualsAndPutsNanAboveAll) {
  const Tensor x = f32({1, 6}, {2, kNan, -0.0, 0.0, kNan, -kInf});
  const auto sorted = [&](bool descending, int64_t k) {
    const auto results = evaluateOp(OpKind::Sort, {x}, {{"k", k}, {"descending", descending}}, 2);
    return numbers((*results)[1]);
  };
  EXPECT_THAT(sorted(false, 6), are({5, 2, 3, 0, 1, 4}));
  EXPECT_THAT(sorted(true, 6), are({1, 4, 0, 2, 3, 5}));
  EXPECT_THAT(sorted(true, 3), are({1, 4, 0}));
  EXPECT_THAT(sorted(true, 0), are({}));
  const auto columns = evaluateOp(OpKind::Sort, {i32({3, 2}, {5, 1, 4, 9, 6, 2})},
                                  {{"axis", int64_t(0)}, {"k", int64_t(2)}}, 2);
  EXPECT_THAT(numbers((*columns)[0]), are({4, 1, 5, 2}));
  EXPECT_THAT(numbers((*columns)[1]), are({1, 0, 0, 2}));
}

TEST(Primitive, Reduce) {
  const Tensor x = i32({1, 3, 2}, {1, 2, 3, 4, 5, 6}), none = f32({1, 0, 1}, {});
  const auto reduce = [](const Tensor& x, const string& fn) {
    return op(OpKind::Reduce, {x}, {{"fn", fn}});
  };
  EXPECT_THAT(reduce(x, "sum"), are({9, 12}));
  EXPECT_THAT(reduce(x, "prod"), are({15, 48}));
  EXPECT_THAT(reduce(x, "max"), are({5, 6}));
  EXPECT_THAT(reduce(x, "min"), are({1, 2}));
  EXPECT_THAT(reduce(none, "max"), are({-kInf}));
  EXPECT_THAT(reduce(none, "min"), are({kInf}));
  EXPECT_THAT(reduce(none, "sum"), are({0}));
  EXPECT_THAT(reduce(none, "prod"), are({1}));
}

TEST(Primitive, BatchMatmulTakesZeroPointsOff) {
  const Tensor a = tensor(Elem::u8_, {1, 1, 2}, {130, 126}),
               b = tensor(Elem::i8_, {2, 2, 2}, {1, 2, 3, 4, -1, -2, -3, -4});
  const Attrs to = {{"to", Elem::i32_}};
  EXPECT_THAT(op(OpKind::BatchMatmul, {a, b}, to), are({508, 764, -508, -764}));
  EXPECT_THAT(op(OpKind::BatchMatmul, {a, b, tensor(Elem::u8_, {1}, {128})}, to),
              are({-4, -4, 4, 4}));
  EXPECT_THAT(op(OpKind::BatchMatmul,
                 {a, b, tensor(Elem::u8_, {1}, {128}), tensor(Elem::i8_, {2}, {1, 2})}, to),
              are({-4, -4, 4, 4}));
  EXPECT_THAT(op(OpKind::BatchMatmul, {a, b, Tensor{}, tensor(Elem::i8_, {2}, {1, 2})}, to),
              are({252, 252, -764, -1276}));
  EXPECT_THAT(op(OpKind::BatchMatmul,
                 {tensor(Elem::f16_, {1, 1, 2}, {256, 1}), tensor(Elem::f16_, {1, 2, 1}, {256, 1})},
                 {{"to", Elem::f32_}}),
              are({65537}));
}

TEST(Primitive, Round) {
  const Tensor x = f32({6}, {-2.5, -1.5, 2.5, 200, -200, kNan});
  const auto round = [&](const string& mode, bool saturate) {
    return op(OpKind::Round, {x},
              {{"to", Elem::i8_}, {"mode", mode}, {"saturate", int64_t(saturate)}});
  };
  EXPECT_THAT(round("rne", true), are({-2, -2, 2, 127, -128, 0}));
  EXPECT_THAT(round("trunc", true), are({-2, -1, 2, 127, -128, 0}));
  EXPECT_THAT(round("floor", false), are({-3, -2, 2, -56, 56, 0}));
}

TEST(Primitive, BitcastKeepsBits) {
  EXPECT_THAT(op(OpKind::Bitcast, {f32({3}, {-0.0, 1, -2.5})}, {{"to", Elem::i32_}}),
              are({INT32_MIN, 0x3f800000, -1071644672}));
  EXPECT_THAT(
      op(OpKind::Bitcast, {tensor(Elem::u16_, {2}, {0xc000, 0x7c00})}, {{"to", Elem::f16_}}),
      are({-2, kInf}));
}

TEST(Primitive, RescaleRoundsOnceHalfToEven) {
  const auto rescale = [](const Tensor& a, double multiplier, double shift, double zero,
                          Attrs attrs) {
    return op(OpKind::Rescale, {a, i32({1}, {multiplier}), i32({}, {shift}), i32({1}, {zero})},
              std::move(attrs));
  };
  const Attrs i8 = {{"to", Elem::i8_}};
  // 0.5, 0.75, 1.5, -0.5
  EXPECT_THAT(rescale(i32({5}, {2, 3, 6, -2, 1000}), 1, 2, 0, i8), are({0, 1, 2, 0, 127}));
  EXPECT_THAT(rescale(i32({2}, {10, -10}), 8388608, 24, 3, i8), are({8, -2}));
  EXPECT_THAT(rescale(i32({2}, {10, -10}), 1, 0, 0,
                      {{"to", Elem::i8_}, {"clamp_min", int64_t(0)}, {"clamp_max", int64_t(6)}}),
              are({6, 0}));
  EXPECT_THAT(
      rescale(i32({2}, {3, -3}), 16777215, 20, 0, {{"to", Elem::i32_}, {"left_shift", int64_t(4)}}),
      are({768, -768}));
  const Tensor wide = Tensor::of<int64_t>(Elem::i64_, {2}, {INT64_MAX, INT64_MIN});
  EXPECT_THAT(rescale(wide, 16777215, 0, 0, {{"to", Elem::i32_}, {"left_shift", int64_t(63)}}),
              are({INT32_MAX, INT32_MIN}));
  EXPECT_THAT(rescale(wide, 16777215, INT32_MAX, 5, i8), are({5, 5}));
  // Per channel: the last dim has its own shift.
  EXPECT_THAT(op(OpKind::Rescale,
                 {i32({2, 2}, {8, 8, 4, 4}), i32({}, {1}), i32({2}, {1, 2}), i32({}, {0})}, i8),
              are({4, 2, 2, 1}));
}

TEST(Primitive, TableOfBytesAndInterpolatedWords) {
  std::vector<double> bytes(256), words(513);
  for (int i = 0; i < 256; ++i) bytes[i] = 127 - i;
  EXPECT_THAT(
      op(OpKind::Table, {tensor(Elem::i8_, {3}, {-128, 0, 127}), tensor(Elem::i8_, {256}, bytes)}),
      are({127, -1, -128}));
  for (int i = 0; i < 513; ++i) words[i] = i == 256 ? 100 : i == 257 ? -100 : 32000;
  const Tensor table = tensor(Elem::i16_, {513}, words);
  EXPECT_THAT(op(OpKind::Table, {tensor(Elem::i16_, {6}, {0, 64, 127, 1, -32768, 32767}), table}),
              are({100, 0, -98, 98, 32000, 32000}));
}

TEST(Primitive, Expr) {
  const auto expr = [](const std::vector<Tensor>& operands, Elem to, const string& steps) {
    return op(OpKind::Expr, operands, {{"to", to}, {"steps", steps}});
  };
  const Tensor x = f32({3}, {-2, 0.5, kNan}), y = f32({2, 1}, {1, 2});
  EXPECT_THAT(expr({x, y}, Elem::f32_, "max(add(v0, v1), 0.0)"), are({0, 1.5, kNan, 0, 2.5, kNan}));
  EXPECT_THAT(expr({x}, Elem::i8_, "convert_i8_rne_saturate(mul(v0, 100.0))"), are({-128, 50, 0}));
  EXPECT_THAT(expr({x}, Elem::f32_, "select(lt(v0, 0.0), neg(v0), 7.0)"), are({2, 7, 7}));
  EXPECT_THAT(expr({i32({2}, {INT32_MAX, 6})}, Elem::i32_, "shr(add(v0, 1), 1)"),
              are({-1073741824, 3}));
  EXPECT_THAT(expr({i32({2}, {3, 4})}, Elem::f32_, "t = convert_f32(v0); div(t, add(t, 1.0))"),
              are({0.75, static_cast<double>(0.8f)}));
  EXPECT_THAT(expr({tensor(Elem::bool_, {2}, {1, 0})}, Elem::bool_, "xor(v0, true)"), are({0, 1}));
  EXPECT_THAT(expr({f32({1}, {2049})}, Elem::f32_, "convert_f32(convert_f16(v0))"), are({2048}));
}

} // namespace
} // namespace candela::reference
