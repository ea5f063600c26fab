#include "tests/unit/reference/evaluate_op.h"

namespace candela::reference {
namespace {

Attrs over(Ints axes) { return {{"axes", std::move(axes)}}; }

TEST(Reduction, SumOverEveryChoiceOfAxes) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(op(OpKind::ReduceSum, {x}, over({1})), are({6, 15}));
  EXPECT_THAT(op(OpKind::ReduceSum, {x}, over({-2})), are({5, 7, 9}));
  EXPECT_THAT(op(OpKind::ReduceSum, {x}, over({0, 1})), are({21}));
  EXPECT_THAT(op(OpKind::ReduceSum, {x}, over({})), are({1, 2, 3, 4, 5, 6}));
  const auto dropped =
      evaluateOp(OpKind::ReduceSum, {x}, {{"axes", Ints{1}}, {"keepdims", int64_t(0)}});
  EXPECT_EQ((*dropped)[0].dims, (Shape{2}));
}

TEST(Reduction, OfNothing) {
  const Tensor x = f32({2, 0}, {}), i = i32({0}, {});
  EXPECT_THAT(op(OpKind::ReduceSum, {x}, over({1})), are({0, 0}));
  EXPECT_THAT(op(OpKind::ReduceProd, {x}, over({1})), are({1, 1}));
  EXPECT_THAT(op(OpKind::ReduceMax, {x}, over({1})), are({-kInf, -kInf}));
  EXPECT_THAT(op(OpKind::ReduceMin, {x}, over({1})), are({kInf, kInf}));
  EXPECT_THAT(op(OpKind::ReduceMean, {x}, over({1})), are({kNan, kNan}));
  EXPECT_THAT(op(OpKind::ReduceMax, {i}, over({0})), are({INT32_MIN}));
  EXPECT_THAT(op(OpKind::ReduceMin, {i}, over({0})), are({INT32_MAX}));
  EXPECT_THAT(op(OpKind::ReduceMean, {i}, over({0})), are({0}));
}

TEST(Reduction, NanAndIntegers) {
  const Tensor x = f32({3}, {1, kNan, 3}), i = tensor(Elem::i8_, {3}, {100, 100, -3});
  EXPECT_THAT(op(OpKind::ReduceMax, {x}, over({0})), are({kNan}));
  EXPECT_THAT(op(OpKind::ReduceMin, {x}, over({0})), are({kNan}));
  EXPECT_THAT(op(OpKind::ReduceSum, {i}, over({0})), are({-59}));  // 197 wraps
  EXPECT_THAT(op(OpKind::ReduceMean, {i}, over({0})), are({65}));  // 197 / 3, of the exact sum
  EXPECT_THAT(op(OpKind::ReduceProd, {i}, over({0})), are({-48})); // -30000 wraps
  EXPECT_THAT(op(OpKind::ReduceMax, {i}, over({0})), are({100}));
}

TEST(Reduction, AccumulatesInF64) {
  EXPECT_THAT(op(OpKind::ReduceSum, {f32({3}, {16777216, 1, 1})}, over({0})), are({16777218}));
  EXPECT_THAT(op(OpKind::ReduceMean, {f32({2, 2}, {1, 2, 3, 5})}, over({0, 1})), are({2.75}));
}

TEST(Normalization, Softmax) {
  const Tensor x = f32({1, 3}, {1, 2, 3}); // known values of SciPy
  EXPECT_THAT(op(OpKind::Softmax, {x}),
              near({0.09003057317038046, 0.24472847105479764, 0.6652409557748218}));
  EXPECT_THAT(op(OpKind::Softmax, {x}, {{"axis", int64_t(0)}}), are({1, 1, 1}));
  EXPECT_THAT(op(OpKind::Softmax, {f32({4}, {7, 7, 7, 7})}), are({0.25, 0.25, 0.25, 0.25}));
  EXPECT_THAT(op(OpKind::Softmax, {f32({2}, {kInf, 0})}), are({kNan, kNan}));
  EXPECT_THAT(op(OpKind::Softmax, {f32({2}, {-kInf, -kInf})}), are({kNan, kNan}));
  EXPECT_THAT(op(OpKind::Softmax, {f32({2}, {1000, -1000})}), are({1, 0}));
}

TEST(Normalization, BatchNorm) {
  const Tensor x = f32({2, 2, 1}, {1, 2, 3, 4});
  const std::vector<Tensor> operands = {x, f32({2}, {2, 1}), f32({2}, {10, 0}), f32({2}, {1, 2}),
                                        f32({2}, {4, 1})};
  EXPECT_THAT(op(OpKind::BatchNorm, operands, {{"epsilon", 0.0}}), are({10, 0, 12, 2}));
  const auto trained =
      evaluateOp(OpKind::BatchNorm, operands,
                 {{"epsilon", 0.0}, {"training_mode", int64_t(1)}, {"momentum", 0.5}}, 3);
  ASSERT_TRUE(trained) << trained.status().message();
  EXPECT_THAT(numbers((*trained)[0]), are({8, -1, 12, 1})); // means 2 and 3, variances 1 and 1
  EXPECT_THAT(numbers((*trained)[1]), are({1.5, 2.5}));
  EXPECT_THAT(numbers((*trained)[2]), are({2.5, 1}));
}

} // namespace
} // namespace candela::reference
