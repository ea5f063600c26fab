// Quantized and fused operators of com.microsoft.

#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;

// --- com.microsoft
// -------------------------------------------------------------------------------------------------

Tensor i8(Shape dims, const std::vector<int8_t>& values) {
  return Tensor::of<int8_t>(Elem::i8_, std::move(dims), values);
}
Op microsoft(const std::string& opType) { return {"com.microsoft", opType}; }

TEST(Microsoft, QuantizedSumsAndProductsRoundOnce) {
  const Tensor half = f32({}, {0.5f}), quarter = f32({1}, {0.25f}), one = f32({}, {1}),
               three = u8({}, {3});
  // (3 - 3) / 2 + (b - 1) / 4, in steps of 1 around 3: 0.25, 0.5, 1.5 and 63.5 go to the even
  // neighbour.
  const Tensor b = u8({4}, {2, 3, 7, 255});
  expect(microsoft("QLinearAdd")
             .in(u8({1}, {3}))
             .constant(half)
             .constant(three)
             .in(b)
             .constant(quarter)
             .constant(u8({1}, {1}))
             .constant(one)
             .constant(three),
         u8({4}, {3, 3, 5, 67}));
  // Without zero points they are 0: 100 * 0.5 + b * 0.25.
  expect(microsoft("QLinearAdd")
             .in(u8({}, {100}))
             .constant(half)
             .absent()
             .in(b)
             .constant(quarter)
             .absent()
             .constant(one),
         u8({4}, {50, 51, 52, 114}));
  // -128 * -1 / 4 is clamped where the result is i8.
  expect(microsoft("QLinearMul")
             .in(i8({2}, {-128, 10}))
             .constant(half)
             .absent()
             .in(i8({2}, {-2, -2}))
             .constant(one)
             .constant(i8({}, {1}))
             .constant(quarter),
         i8({2}, {127, -60}));
}

TEST(Microsoft, QuantizedOperatorsNameWhatIsWrong) {
  const Tensor x = u8({2}, {1, 2}), one = f32({}, {1}), two = f32({2}, {1, 1});
  EXPECT_EQ(refusal(microsoft("QLinearAdd").in(x).constant(one).absent().in(x)),
            "input 4 is missing");
  EXPECT_EQ(refusal(microsoft("QLinearSigmoid").in(x).constant(two).absent().constant(one)),
            "scale or zero point of shape 2, expected one value");
  EXPECT_EQ(
      refusal(
          microsoft("QLinearSigmoid").in(f32({2}, {1, 2})).constant(one).absent().constant(one)),
      "operand is f32[2], expected i8 or u8");
  EXPECT_EQ(refusal(microsoft("QLinearSigmoid").in(x).constant(x).absent().constant(one)),
            "scale is u8[2], expected f32");
  EXPECT_EQ(refusal(microsoft("QLinearConcat")
                        .constant(one)
                        .constant(u8({}, {0}))
                        .in(x)
                        .constant(one)
                        .attr("axis", int64_t(0))),
            "has 4 inputs, expected at least 5");
  EXPECT_EQ(refusal(microsoft("QLinearConcat")
                        .constant(one)
                        .constant(u8({}, {0}))
                        .in(x)
                        .constant(one)
                        .constant(u8({}, {0}))
                        .in(x)
                        .attr("axis", int64_t(0))),
            "has 6 inputs, expected 2 and three for each operand");
  EXPECT_THAT(refusal(microsoft("QLinearLeakyRelu")
                          .in(x)
                          .constant(one)
                          .absent()
                          .constant(one)
                          .attr("slope", 1.0f)),
              HasSubstr("attribute 'slope' is unknown"));
  EXPECT_EQ(refusal(microsoft("QLinearAveragePool")
                        .in(x)
                        .constant(one)
                        .absent()
                        .constant(one)
                        .attr("channels_last", int64_t(1))
                        .attr("kernel_shape", Ints{1})),
            "input f32[2] has rank 1, expected at least 3");
  EXPECT_THAT(
      refusal(microsoft("QGemm").in(x).constant(one).constant(x).in(x).constant(one).constant(x)),
      HasSubstr("scale or zero point of shape 2"));
  EXPECT_EQ(codeOf(microsoft("QLinearNothing").in(x)), Code::unsupported);
}

TEST(Microsoft, MeansAndSoftmaxOfQuantizedNumbers) {
  const Tensor x = u8({1, 2, 2, 1}, {10, 20, 30, 41}), one = f32({}, {1}), ten = u8({}, {10});
  const auto op = [&](const char* name) {
    return microsoft(name).in(x).constant(one).constant(ten).constant(one).constant(ten);
  };
  // 35.5 has two neighbours as near.
  expect(op("QLinearReduceMean").attr("axes", Ints{2}).attr("keepdims", int64_t(0)),
         u8({1, 2, 1}, {15, 36}));
  expect(op("QLinearGlobalAveragePool"), u8({1, 2, 1, 1}, {15, 36}));
  expect(op("QLinearGlobalAveragePool").attr("channels_last", int64_t(1)), u8({1, 1, 1, 1}, {25}));
  // Of 0, ln 3: 1/4 and 3/4 in steps of 1/256.
  const Op softmax = microsoft("QLinearSoftmax")
                         .in(i8({1, 2}, {4, 5}))
                         .constant(f32({}, {1.0986123f}))
                         .absent()
                         .constant(f32({}, {1.0f / 256}))
                         .constant(i8({}, {-128}));
  expect(Op(softmax).attr("opset", int64_t(13)), i8({1, 2}, {-64, 64}));
  EXPECT_EQ(refusal(Op(softmax)), "attribute 'opset' is 0");
}

TEST(Microsoft, ProductsOfQuantizedMatrices) {
  const Tensor a = u8({1, 2}, {12, 14}), b = i8({2, 2}, {1, 2, 3, 4}), half = f32({}, {0.5f}),
               ten = u8({}, {10});
  const Tensor columns = f32({2}, {1, 0.25f}), zeros = i8({2}, {0, 1}),
               c = Tensor::of<int32_t>(Elem::i32_, {2}, {1, -5});
  // (2 4) . (1 1; 3 3) = (14 14), with c (15 9), in steps of 0.5 and 0.125.
  const Op gemm =
      microsoft("QGemm").in(a).constant(half).constant(ten).constant(b).constant(columns).constant(
          zeros);
  expect(Op(gemm).constant(c), f32({1, 2}, {7.5f, 1.125f}));
  expect(Op(gemm).constant(c).attr("alpha", 2.0f), f32({1, 2}, {15, 2.25f}));
  expect(Op(gemm).constant(c).constant(f32({}, {1})).constant(u8({}, {1})), u8({1, 2}, {9, 2}));
  expect(Op(gemm), f32({1, 2}, {7, 1.75f}));
  EXPECT_EQ(refusal(Op(gemm).constant(Tensor::of<int32_t>(Elem::i32_, {3}, {1, 2, 3}))),
            "input 6 of shape 3 does not broadcast to 1x2");
  expect(microsoft("MatMulIntegerToFloat")
             .in(a)
             .constant(b)
             .constant(half)
             .constant(columns)
             .constant(ten)
             .constant(zeros)
             .constant(f32({2}, {1, -1})),
         f32({1, 2}, {8, 0.75f}));
  EXPECT_EQ(refusal(microsoft("MatMulIntegerToFloat")
                        .in(a)
                        .constant(b)
                        .constant(half)
                        .constant(f32({3}, {1, 1, 1}))),
            "operand scale has shape 3, expected 2 (dequantize_c1)");
  EXPECT_EQ(refusal(microsoft("MatMulIntegerToFloat")
                        .in(a)
                        .constant(b)
                        .constant(half)
                        .constant(f32({2, 1}, {1, 1}))),
            "scales or a bias of 2x2 do not broadcast to 1x2");
  EXPECT_EQ(codeOf(microsoft("MatMulIntegerToFloat")
                       .in(a)
                       .constant(b)
                       .constant(f32({2}, {1, 1}))
                       .constant(half)),
            Code::unsupported);
  // 0 to 255 in steps of 1.
  expect(microsoft("DynamicQuantizeMatMul").in(f32({1, 2}, {255, 0})).constant(b).constant(half),
         f32({1, 2}, {127.5f, 255}));
}

TEST(Microsoft, FusedProducts) {
  const Tensor x = f32({1, 1, 2}, {1, -2}), w = f32({1, 1, 1}, {2}), more = f32({1, 1, 2}, {1, 1});
  const Op conv = microsoft("FusedConv").in(x).constant(w).absent().in(more);
  expect(Op(conv).attr("activation", std::string("Relu")), f32({1, 1, 2}, {3, 0}));
  expect(Op(conv).attr("activation", std::string("Clip")).attr("activation_params", Floats{-1, 2}),
         f32({1, 1, 2}, {2, -1}));
  expect(
      Op(conv).attr("activation", std::string("LeakyRelu")).attr("activation_params", Floats{0.5f}),
      f32({1, 1, 2}, {3, -1.5f}));
  EXPECT_EQ(
      refusal(
          Op(conv).attr("activation", std::string("Clip")).attr("activation_params", Floats{1})),
      "activation_params has 1 values, but Clip takes 2");
  EXPECT_EQ(refusal(Op(conv).attr("activation", std::string("Sin"))), "activation 'Sin'");
  EXPECT_EQ(refusal(microsoft("FusedConv").in(x).constant(w).absent().in(f32({1, 1, 1}, {1}))),
            "input 3 has shape 1x1x1, but the convolution gives 1x1x2");
  const Op gemm = microsoft("FusedGemm").in(f32({1, 2}, {1, 2})).in(f32({2, 1}, {1, -2}));
  expect(Op(gemm).attr("activation", std::string("Elu")).attr("activation_alpha", 0.0f),
         f32({1, 1}, {0}));
  expect(Op(gemm).attr("activation", std::string("")).attr("alpha", 2.0f), f32({1, 1}, {-6}));
  EXPECT_EQ(refusal(Op(gemm).attr("activation", std::string("Conv"))), "activation 'Conv'");
  EXPECT_THAT(
      refusal(Op(gemm).attr("activation", std::string("Relu")).attr("activation_alpha", 1.0f)),
      HasSubstr("attribute 'alpha' is unknown to Relu"));
  const Op matmul =
      microsoft("FusedMatMul").in(f32({1, 2, 2}, {1, 2, 3, 4})).in(f32({2, 2}, {1, 0, 0, 1}));
  expect(Op(matmul).attr("transA", int64_t(1)).attr("alpha", 2.0f), f32({1, 2, 2}, {2, 6, 4, 8}));
  EXPECT_EQ(refusal(Op(matmul).attr("transBatchA", int64_t(1))),
            "operands of ranks 3 and 2 have no batches to transpose");
}

TEST(Microsoft, ActivationsOfHalvesRoundOnce) {
  const auto halves = [](const std::vector<double>& values) {
    std::vector<uint16_t> bits;
    for (const double value : values)
      bits.push_back(static_cast<uint16_t>(fromReal(Elem::f16_, value)));
    return Tensor::of<uint16_t>(Elem::f16_, {int64_t(values.size())}, bits);
  };
  const std::vector<double> x = {-3, -0.1, 0.7, 4};
  std::vector<double> quick, fast;
  for (const double rough : x) {
    const double v = elementAsReal(halves({rough}), 0);
    quick.push_back(v / (1 + std::exp(-1.702f * v)));
    fast.push_back(0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
  }
  expect(microsoft("QuickGelu").in(halves(x)), halves(quick));
  expect(microsoft("FastGelu").in(halves(x)), halves(fast));
  EXPECT_EQ(refusal(microsoft("BiasGelu").in(f32({2}, {1, 2})).in(f32({2, 1}, {1, 2}))),
            "bias of shape 2x1 does not broadcast to 2");
}

} // namespace
} // namespace candela::test
