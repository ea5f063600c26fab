#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

Tensor counting(Shape dims) {
  std::vector<double> values(elementCount(dims).value());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return f32(std::move(dims), values);
}

TEST(Movement, ReshapeKeepsBits) {
  // a quiet and a signalling NaN
  const Tensor x = Tensor::of<uint32_t>(Elem::f32_, {2}, {0x7fc00001, 0x7f800001});
  const auto y = evaluateOp(OpKind::Reshape, {x}, {{"shape", Ints{2, 1}}});
  ASSERT_TRUE(y);
  EXPECT_EQ((*y)[0].as<uint32_t>()[0], 0x7fc00001u);
  EXPECT_EQ((*y)[0].as<uint32_t>()[1], 0x7f800001u);
  EXPECT_EQ((*y)[0].dims, (Shape{2, 1}));
}

TEST(Movement, Transpose) {
  EXPECT_THAT(op(OpKind::Transpose, {counting({2, 3})}, {{"perm", Ints{1, 0}}}),
              are({0, 3, 1, 4, 2, 5}));
  EXPECT_THAT(op(OpKind::Transpose, {counting({2, 1, 2})}, {{"perm", Ints{2, 0, 1}}}),
              are({0, 2, 1, 3}));
  EXPECT_THAT(op(OpKind::Transpose, {f32({}, {7})}, {{"perm", Ints{}}}), are({7}));
}

TEST(Movement, Expand) {
  EXPECT_THAT(op(OpKind::Expand, {counting({2, 1})}, {{"shape", Ints{2, 1, 2}}}),
              are({0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(Movement, Concat) {
  EXPECT_THAT(op(OpKind::Concat, {counting({2, 1}), counting({2, 2})}, {{"axis", int64_t(-1)}}),
              are({0, 0, 1, 1, 2, 3}));
  EXPECT_THAT(
      op(OpKind::Concat, {i32({0}, {}), i32({2}, {4, 5}), i32({1}, {6})}, {{"axis", int64_t(0)}}),
      are({4, 5, 6}));
}

TEST(Movement, Slice) {
  const auto slice = [](const Tensor& x, Ints starts, Ints counts, Ints steps) {
    return op(OpKind::Slice, {x}, {{"starts", starts}, {"counts", counts}, {"steps", steps}});
  };
  EXPECT_THAT(slice(counting({3, 4}), {2, 1}, {2, 2}, {-2, 2}), are({9, 11, 1, 3}));
  EXPECT_THAT(slice(counting({3, 4}), {0, 0}, {0, 4}, {1, 1}), are({}));
  EXPECT_THAT(slice(counting({2}), {1}, {1}, {INT64_MAX}), are({1}));
}

TEST(Movement, PadInEveryMode) {
  const auto pad = [](const std::string& mode, Ints lo, Ints hi) {
    return op(OpKind::Pad, {counting({4})}, {{"lo", lo}, {"hi", hi}, {"mode", mode}});
  };
  EXPECT_THAT(pad("constant", {2}, {1}), are({0, 0, 0, 1, 2, 3, 0}));
  EXPECT_THAT(pad("edge", {2}, {1}), are({0, 0, 0, 1, 2, 3, 3}));
  EXPECT_THAT(pad("reflect", {3}, {2}), are({3, 2, 1, 0, 1, 2, 3, 2, 1}));
  EXPECT_THAT(pad("wrap", {2}, {3}), are({2, 3, 0, 1, 2, 3, 0, 1, 2}));
  EXPECT_THAT(pad("constant", {-1}, {-2}), are({1}));
  EXPECT_THAT(pad("edge", {-1}, {1}), are({1, 2, 3, 3}));
  EXPECT_THAT(
      op(OpKind::Pad, {counting({1, 2}), f32({}, {9})}, {{"lo", Ints{1, 0}}, {"hi", Ints{0, 1}}}),
      are({9, 9, 9, 0, 1, 9}));
}

TEST(Movement, Gather) {
  const Attrs axis1 = {{"axis", int64_t(1)}};
  EXPECT_THAT(op(OpKind::Gather, {counting({2, 3}), i32({2}, {-1, 0})}, axis1), are({2, 0, 5, 3}));
  EXPECT_THAT(op(OpKind::Gather, {counting({2, 3}), i32({}, {1})}, axis1), are({1, 4}));
  EXPECT_THAT(op(OpKind::Gather, {counting({2, 3}), i32({0}, {})}, axis1), are({}));
  EXPECT_THAT(op(OpKind::Gather, {counting({3}), i32({2, 1}, {7, -9})}), are({2, 0}));
}

} // namespace
} // namespace candela::reference
