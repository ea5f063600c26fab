#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

Tensor counting(Shape dims) {
  std::vector<double> values(elementCount(dims).value());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  return f32(std::move(dims), values);
}
Tensor ones(Shape dims) { return f32(dims, std::vector<double>(elementCount(dims).value(), 1)); }

TEST(Contraction, Matmul) {
  const Tensor a = counting({2, 2}), v = f32({2}, {1, -1});
  EXPECT_THAT(op(OpKind::Matmul, {a, a}), are({7, 10, 15, 22}));
  EXPECT_THAT(op(OpKind::Matmul, {a, v}), are({-1, -1}));
  EXPECT_THAT(op(OpKind::Matmul, {v, a}), are({-2, -2}));
  EXPECT_THAT(op(OpKind::Matmul, {v, v}), are({2}));
  EXPECT_THAT(op(OpKind::Matmul, {ones({2, 0}), ones({0, 2})}), are({0, 0, 0, 0}));
  EXPECT_THAT(op(OpKind::Matmul, {counting({2, 1, 1, 2}), counting({3, 2, 1})}),
              are({5, 11, 17, 11, 25, 39}));
  EXPECT_THAT(op(OpKind::Matmul,
                 {tensor(Elem::u8_, {1, 2}, {200, 200}), tensor(Elem::u8_, {2, 1}, {2, 1})}),
              are({88}));
}

TEST(Contraction, Gemm) {
  const Tensor a = counting({2, 3}), b = counting({3, 2});
  EXPECT_THAT(op(OpKind::Gemm, {a, b}), are({22, 28, 49, 64}));
  EXPECT_THAT(op(OpKind::Gemm, {a, a}, {{"transB", int64_t(1)}}), are({14, 32, 32, 77}));
  EXPECT_THAT(op(OpKind::Gemm, {a, a}, {{"transA", int64_t(1)}}),
              are({17, 22, 27, 22, 29, 36, 27, 36, 45}));
  EXPECT_THAT(op(OpKind::Gemm, {a, b, f32({2, 1}, {1, 2})}, {{"alpha", 2.0}, {"beta", 10.0}}),
              are({54, 66, 118, 148}));
  EXPECT_THAT(
      op(OpKind::Gemm, {i32({1, 1}, {3}), i32({1, 1}, {3}), i32({}, {5})}, {{"alpha", 0.5}}),
      are({9}));
}

TEST(Contraction, Conv) {
  const Tensor x = counting({1, 1, 3, 3});
  EXPECT_THAT(op(OpKind::Conv, {x, ones({1, 1, 2, 2})}), are({12, 16, 24, 28}));
  EXPECT_THAT(op(OpKind::Conv, {x, counting({1, 1, 2, 2}), f32({1}, {100})}),
              are({137, 147, 167, 177}));
  const Attrs padded = {{"pads", Ints{1, 0, 0, 1}}};
  EXPECT_THAT(op(OpKind::Conv, {x, ones({1, 1, 2, 2})}, padded),
              are({3, 5, 3, 12, 16, 9, 24, 28, 15}));
  EXPECT_THAT(op(OpKind::Conv, {x, ones({1, 1, 2, 2})}, {{"dilations", Ints{2, 2}}}), are({20}));
  EXPECT_THAT(op(OpKind::Conv, {x, ones({1, 1, 1, 1})}, {{"strides", Ints{3, 2}}}), are({1, 3}));
}

TEST(Contraction, GroupedAndDepthwiseConv) {
  const Tensor x = counting({2, 2, 1, 2});
  const Attrs two = {{"group", int64_t(2)}};
  EXPECT_THAT(op(OpKind::Conv, {x, f32({2, 1, 1, 1}, {1, 10})}, two),
              are({1, 2, 30, 40, 5, 6, 70, 80}));
  EXPECT_THAT(op(OpKind::Conv, {x, f32({4, 1, 1, 1}, {1, 2, 3, 4})}, two),
              are({1, 2, 2, 4, 9, 12, 12, 16, 5, 6, 10, 12, 21, 24, 28, 32}));
}

TEST(Contraction, ConvOfOneAndThreeDims) {
  EXPECT_THAT(op(OpKind::Conv, {counting({1, 2, 3}), ones({1, 2, 2})}, {{"pads", Ints{1, 1}}}),
              are({5, 12, 16, 9}));
  EXPECT_THAT(op(OpKind::Conv, {counting({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2})}), are({36}));
  // Windows that lie in the padding alone see nothing.
  EXPECT_THAT(op(OpKind::Conv, {counting({1, 1, 1}), ones({1, 1, 1})},
                 {{"pads", Ints{2, 3}}, {"strides", Ints{2}}}),
              are({0, 1, 0}));
}

Attrs pool(Ints kernel, Ints strides, Ints pads, Attrs more = {}) {
  more.insert({{"kernel_shape", std::move(kernel)},
               {"strides", std::move(strides)},
               {"pads", std::move(pads)}});
  return more;
}

TEST(Window, MaxPool) {
  const Tensor x = counting({1, 1, 3, 3});
  EXPECT_THAT(op(OpKind::MaxPool, {x}, pool({2, 2}, {1, 1}, {0, 0, 0, 0})), are({5, 6, 8, 9}));
  EXPECT_THAT(op(OpKind::MaxPool, {x}, pool({2, 2}, {2, 2}, {1, 1, 0, 0})), are({1, 3, 7, 9}));
  EXPECT_THAT(
      op(OpKind::MaxPool, {x}, pool({2, 2}, {2, 2}, {0, 0, 0, 0}, {{"ceil_mode", int64_t(1)}})),
      are({5, 6, 8, 9}));
  EXPECT_THAT(
      op(OpKind::MaxPool, {x}, pool({2, 1}, {1, 1}, {0, 0, 0, 0}, {{"dilations", Ints{2, 1}}})),
      are({7, 8, 9}));
  EXPECT_THAT(op(OpKind::MaxPool, {f32({1, 1, 3}, {1, kNan, 3})}, pool({2}, {1}, {0, 0})),
              are({kNan, kNan}));
  EXPECT_THAT(
      op(OpKind::MaxPool, {tensor(Elem::i8_, {1, 1, 2}, {-128, -5})}, pool({2}, {1}, {1, 0})),
      are({-128, -5}));
  // In ceil mode no window starts in the padding at the end: without that rule there would be a
  // third.
  EXPECT_THAT(op(OpKind::MaxPool, {f32({1, 1, 3}, {1, 2, 3})},
                 pool({1}, {2}, {0, 1}, {{"ceil_mode", int64_t(1)}})),
              are({1, 3}));
}

TEST(Window, MaxPoolIndices) {
  const Tensor x = f32({1, 2, 2, 2}, {4, 3, 2, 4, 1, 1, 1, 8});
  const auto indices = [&](Attrs attrs) {
    return numbers(evaluateOp(OpKind::MaxPool, {x}, std::move(attrs), 2).value()[1]);
  };
  EXPECT_THAT(indices(pool({2, 2}, {1, 1}, {0, 0, 0, 0})), are({0, 7})); // the first of equals
  EXPECT_THAT(indices(pool({1, 2}, {1, 1}, {0, 0, 0, 0})), are({0, 3, 4, 7}));
  EXPECT_THAT(indices(pool({1, 2}, {1, 1}, {0, 0, 0, 0}, {{"storage_order", int64_t(1)}})),
              are({0, 3, 4, 7}));
  EXPECT_THAT(indices(pool({2, 1}, {1, 1}, {0, 0, 0, 0})), are({0, 3, 4, 7}));
  EXPECT_THAT(indices(pool({1, 1}, {1, 1}, {0, 0, 0, 0}, {{"storage_order", int64_t(1)}})),
              are({0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST(Window, AveragePool) {
  const Tensor x = counting({1, 1, 2, 2});
  const Attrs counted = {{"count_include_pad", int64_t(1)}};
  EXPECT_THAT(op(OpKind::AveragePool, {x}, pool({2, 2}, {1, 1}, {0, 0, 0, 0})), are({2.5}));
  EXPECT_THAT(op(OpKind::AveragePool, {x}, pool({2, 2}, {2, 2}, {1, 1, 1, 1})), are({1, 2, 3, 4}));
  EXPECT_THAT(op(OpKind::AveragePool, {x}, pool({2, 2}, {2, 2}, {1, 1, 1, 1}, counted)),
              are({0.25, 0.5, 0.75, 1}));
  // The last window reaches beyond the padded input: only what lies in it counts.
  const Attrs ceil = {{"ceil_mode", int64_t(1)}, {"count_include_pad", int64_t(1)}};
  EXPECT_THAT(op(OpKind::AveragePool, {f32({1, 1, 3}, {3, 6, 9})}, pool({2}, {2}, {0, 0}, ceil)),
              are({4.5, 9}));
  EXPECT_THAT(op(OpKind::GlobalAveragePool, {counting({1, 2, 1, 2})}), are({1.5, 3.5}));
}

} // namespace
} // namespace candela::reference
