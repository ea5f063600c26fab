// What changed between opsets: each form of an operator gives what that version of ONNX says.

#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using graph::OpKind;
using testing::HasSubstr;

// --- Elementwise
// -------------------------------------------------------------------------------------------------

TEST(Clip, LimitsWereAttributesBeforeOpset11) {
  const Tensor x = f32({3}, {-2, 0.5f, 9});
  expect(Op(6 + 1, "Clip").in(x).attr("min", -1.0f).attr("max", 6.0f), f32({3}, {-1, 0.5f, 6}));
  expect(Op(10, "Clip").in(x).attr("max", 6.0f), f32({3}, {-2, 0.5f, 6}));
  expect(Op(12, "Clip").in(x).constant(f32({}, {0})).constant(f32({1}, {6})),
         f32({3}, {0, 0.5f, 6}));
  expect(Op(12, "Clip").in(x).absent().constant(f32({}, {6})), f32({3}, {-2, 0.5f, 6}));
  expect(Op(12, "Clip").in(i64({2}, {-5, 5})).constant(i64({}, {0})), i64({2}, {0, 5}));
  EXPECT_THAT(refusal(Op(12, "Clip").in(x).attr("min", 0.0f)),
              HasSubstr("attribute 'min' is unknown to Clip in opset 12"));
}

TEST(Elementwise, ComposesComparisonsAndLogic) {
  const Tensor a = f32({4}, {1, 2, 3, NAN}), b = f32({4}, {2, 2, 2, 2});
  expect(Op(13, "Greater").in(a).in(b), boolean({4}, {0, 0, 1, 0}));
  expect(Op(16, "GreaterOrEqual").in(a).in(b), boolean({4}, {0, 1, 1, 0}));
  expect(Op(16, "LessOrEqual").in(a).in(b), boolean({4}, {1, 1, 0, 0}));
  const Tensor p = boolean({4}, {0, 0, 1, 1}), q = boolean({4}, {0, 1, 0, 1});
  expect(Op(7, "And").in(p).in(q), boolean({4}, {0, 0, 0, 1}));
  expect(Op(7, "Or").in(p).in(q), boolean({4}, {0, 1, 1, 1}));
  expect(Op(7, "Xor").in(p).in(q), boolean({4}, {0, 1, 1, 0}));
  expect(Op(7, "Not").in(p), boolean({4}, {1, 1, 0, 0}));
  EXPECT_THAT(refusal(Op(7, "And").in(a).in(b)), HasSubstr("operand is f32[4], expected bool"));
}

TEST(Elementwise, ChainsVariadicOperators) {
  const Tensor a = f32({2}, {1, 5}), b = f32({2, 1}, {3, 0}), c = f32({}, {2});
  expect(Op(13, "Max").in(a).in(b).in(c), f32({2, 2}, {3, 5, 2, 5}));
  expect(Op(13, "Min").in(a).in(b).in(c), f32({2, 2}, {1, 2, 0, 0}));
  expect(Op(13, "Sum").in(a).in(b).in(c), f32({2, 2}, {6, 10, 3, 7}));
  expect(Op(13, "Max").in(a), a);
}

TEST(Elementwise, RemaindersTakeTheSignOfTheirChoice) {
  const Tensor big = i64({3}, {9007199254740993, -9007199254740993, -4}), two = i64({3}, {2, 2, 2});
  expect(Op(13, "Mod").in(big).in(two), i64({3}, {1, 1, 0}));
  expect(Op(13, "Mod").in(big).in(two).attr("fmod", int64_t(1)), i64({3}, {1, -1, 0}));
  const Tensor most = Tensor::of<uint64_t>(Elem::u64_, {1}, {UINT64_MAX}),
               ten = Tensor::of<uint64_t>(Elem::u64_, {1}, {10});
  expect(Op(13, "Mod").in(most).in(ten), Tensor::of<uint64_t>(Elem::u64_, {1}, {5}));
  const Tensor a = f32({6}, {-7.5f, 7.5f, 5, -5, 5, INFINITY}),
               b = f32({6}, {2, -2, INFINITY, INFINITY, 0, 2});
  expect(Op(28, "Mod").in(a).in(b), f32({6}, {0.5f, -0.5f, 5, INFINITY, NAN, NAN}));
  expect(Op(13, "Mod").in(a).in(b).attr("fmod", int64_t(1)),
         f32({6}, {-1.5f, 1.5f, 5, -5, NAN, NAN}));
}

TEST(Elementwise, PowersOfIntegersAreExact) {
  const auto i32 = [](const std::vector<int32_t>& v) {
    return Tensor::of<int32_t>(Elem::i32_, {int64_t(v.size())}, v);
  };
  expect(Op(15, "Pow").in(i64({3}, {3, -3, 0})).in(i64({3}, {39, 39, 0})),
         i64({3}, {4052555153018976267, -4052555153018976267, 1}));
  // An odd exponent beyond 32 bits, and one that only an unsigned type has.
  expect(Op(15, "Pow").in(i32({-1, 3})).in(i64({2}, {8589934593, 2})), i32({-1, 9}));
  expect(Op(15, "Pow").in(i32({-1})).in(Tensor::of<uint64_t>(Elem::u64_, {1}, {UINT64_MAX})),
         i32({-1}));
  expect(Op(15, "Pow").in(i32({9, 2})).in(f32({2}, {0.5f, 3.5f})), i32({3, 11}));
  // exp(2 log 8) may be 63.99: a whole exponent rounds before the cast cuts off. Not a negative
  // one: 2^-1 is 0.
  const Op mixed = Op(15, "Pow").in(i32({8, 5, 2, 1})).in(f32({4}, {2, 2, -1, -2}));
  expect(mixed, i32({64, 25, 0, 1}));
  const auto graph = Op(mixed).import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(std::ranges::count(graph->nodes(), OpKind::RoundEven,
                               [](const auto& node) { return node->kind; }),
            1);
  expect(Op(15, "Pow").in(f32({2}, {-2, 4})).in(i64({2}, {3, -1})), f32({2}, {-8, 0.25f}));
  EXPECT_THAT(refusal(Op(15, "Pow").in(i32({2})).in(boolean({1}, {1}))),
              HasSubstr("operand is bool[1], expected numbers"));
}

TEST(Elementwise, ShiftsKeepTheSign) {
  const Tensor x = Tensor::of<int8_t>(Elem::i8_, {4}, {-128, 64, -3, 5}),
               by = Tensor::of<int8_t>(Elem::i8_, {4}, {7, 1, 9, -1});
  expect(Op(28, "BitShift").in(x).in(by).attr("direction", "RIGHT"),
         Tensor::of<int8_t>(Elem::i8_, {4}, {-1, 32, -1, 0}));
  expect(Op(28, "BitShift").in(x).in(by).attr("direction", "LEFT"),
         Tensor::of<int8_t>(Elem::i8_, {4}, {0, -128, 0, 0}));
  EXPECT_THAT(refusal(Op(11, "BitShift").in(x).in(by)),
              HasSubstr("direction '' is not LEFT or RIGHT"));
  expect(Op(18, "BitwiseNot").in(Tensor::of<uint64_t>(Elem::u64_, {1}, {1})),
         Tensor::of<uint64_t>(Elem::u64_, {1}, {UINT64_MAX - 1}));
}

TEST(Elementwise, SignsAndShrinksOfIntegersAreExact) {
  expect(Op(13, "Sign").in(i64({3}, {INT64_MIN, 0, 7})), i64({3}, {-1, 0, 1}));
  expect(Op(13, "Sign").in(f32({4}, {-INFINITY, 0, 0.25f, NAN})), f32({4}, {-1, 0, 1, NAN}));
  expect(Op(9, "Shrink")
             .in(i64({4}, {9007199254740993, -3, 2, 1}))
             .attr("lambd", 1.5f)
             .attr("bias", 1.0f),
         i64({4}, {9007199254740992, -2, 1, 0}));
  expect(Op(9, "Shrink")
             .in(Tensor::of<uint8_t>(Elem::u8_, {3}, {200, 2, 1}))
             .attr("lambd", 1.5f)
             .attr("bias", 0.5f),
         Tensor::of<uint8_t>(Elem::u8_, {3}, {199, 1, 0}));
}

TEST(Elementwise, ActivationsHoldAtTheirEnds) {
  const Tensor x = f32({5}, {-INFINITY, -1e-6f, 0, 1000, NAN});
  expect(Op(22, "Softplus").in(x), f32({5}, {0, 0.6931466806f, 0.6931471806f, 1000, NAN}));
  expect(Op(22, "Elu").in(x).attr("alpha", 2.0f), f32({5}, {-2, -1.999999e-6f, 0, 1000, NAN}));
  expect(Op(12, "Celu").in(x).attr("alpha", 2.0f), f32({5}, {-2, -9.9999975e-7f, 0, 1000, NAN}));
  EXPECT_THAT(refusal(Op(12, "Celu").in(x).attr("alpha", 0.0f)), HasSubstr("alpha is 0"));
  EXPECT_THAT(refusal(Op(28, "SwiGLU").in(x).in(f32({1}, {1}))),
              HasSubstr("operands have shapes 5 and 1, expected one shape"));
  expect(Op(20, "IsInf").in(x), boolean({5}, {1, 0, 0, 0, 0}));
  expect(Op(20, "IsInf").in(x).attr("detect_negative", int64_t(0)), boolean({5}, {0, 0, 0, 0, 0}));
  EXPECT_THAT(refusal(Op(20, "IsInf").in(i64({1}, {0}))),
              HasSubstr("operand is i64[1], expected floats"));
}

TEST(Cast, ConvertsBetweenTypes) {
  expect(Op(13, "Cast").in(f32({3}, {-1.7f, 0, 2.5f})).attr("to", TensorProto::INT64),
         i64({3}, {-1, 0, 2}));
  expect(Op(13, "Cast").in(f32({2}, {0, 0.1f})).attr("to", TensorProto::BOOL),
         boolean({2}, {0, 1}));
  expect(Op(19, "Cast").in(i64({2}, {3, -4})).attr("to", TensorProto::FLOAT).attr("saturate", 1),
         f32({2}, {3, -4}));
  expect(Op(15, "CastLike").in(f32({1}, {2.9f})).in(i64({1}, {0})), i64({1}, {2}));
  EXPECT_EQ(codeOf(Op(13, "Cast").in(f32({1}, {0})).attr("to", TensorProto::STRING)),
            Code::unsupported);
}

Tensor stored(Elem elem, Shape dims, const std::vector<uint8_t>& bytes) {
  return Tensor::of<uint8_t>(elem, std::move(dims), bytes);
}

TEST(Cast, GivesStorageTypes) {
  const Tensor x = f32({3}, {1000, -1000, NAN});
  const auto cast = [](const Tensor& from, int to) {
    return Op(28, "Cast").in(from).attr("to", int64_t(to));
  };
  expect(cast(x, 17), stored(Elem::f8e4m3_, {3}, {0x7e, 0xfe, 0x7f}));
  expect(cast(x, 17).attr("saturate", 0), stored(Elem::f8e4m3_, {3}, {0x7f, 0xff, 0x7f}));
  expect(cast(x, 18), stored(Elem::f8e4m3fnuz_, {3}, {0x7f, 0xff, 0x80}));
  expect(cast(x, 18).attr("saturate", 0), stored(Elem::f8e4m3fnuz_, {3}, {0x80, 0x80, 0x80}));
  expect(cast(x, 23), stored(Elem::f4e2m1_, {3}, {0xf7, 0x08}));
  expect(cast(i64({3}, {9, -1, 7}), 22), stored(Elem::i4_, {3}, {0xf9, 0x07}));
  expect(cast(f32({5}, {-1, 2, 3, 4, 1}), 25), stored(Elem::u2_, {5}, {0x3b, 0x01}));
  expect(cast(stored(Elem::i2_, {5}, {0xe4, 0x02}), 7), i64({5}, {0, 1, -2, -1, -2}));
}

TEST(Cast, RoundsToPowersOfTwoAsAsked) {
  const Tensor x = f32({6}, {3, 0.7f, 0, INFINITY, NAN, 2});
  const auto cast = [&](const char* mode, int saturate) {
    return Op(24, "Cast")
        .in(x)
        .attr("to", int64_t(24))
        .attr("round_mode", mode)
        .attr("saturate", saturate);
  };
  expect(cast("up", 1), stored(Elem::f8e8m0_, {6}, {129, 127, 0, 254, 255, 128}));
  expect(cast("down", 1), stored(Elem::f8e8m0_, {6}, {128, 126, 0, 254, 255, 128}));
  expect(cast("nearest", 1), stored(Elem::f8e8m0_, {6}, {129, 126, 0, 254, 255, 128}));
  expect(cast("nearest", 0), stored(Elem::f8e8m0_, {6}, {129, 126, 255, 255, 255, 128}));
  EXPECT_THAT(refusal(cast("even", 1)), HasSubstr("round_mode 'even' is not up, down or nearest"));
}

TEST(Transpose, MovesPackedElements) {
  expect(Op(21, "Transpose").in(stored(Elem::i4_, {2, 3}, {0x21, 0x43, 0x65})),
         stored(Elem::i4_, {3, 2}, {0x41, 0x52, 0x63}));
  expect(Op(23, "Transpose").in(stored(Elem::f4e2m1_, {1, 3}, {0x98, 0x07})),
         stored(Elem::f4e2m1_, {3, 1}, {0x98, 0x07}));
}

TEST(QuantizeLinear, HasScalesOfBlocks) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), scale = f32({2, 2}, {1, 2, 1, 2});
  const auto blocks = [&](const Tensor& by) {
    return Op(21, "QuantizeLinear").in(x).in(by).attr("block_size", 2);
  };
  expect(blocks(scale).attr("output_dtype", 3), stored(Elem::i8_, {2, 3}, {1, 2, 2, 4, 5, 3}));
  expect(blocks(scale).in(stored(Elem::u4_, {2, 2}, {0x10, 0x9f})),
         stored(Elem::u4_, {2, 3}, {0x21, 0xf3, 0xcf}));
  expect(Op(21, "DequantizeLinear")
             .in(stored(Elem::u2_, {2, 3}, {0xe4, 0x04}))
             .in(scale)
             .in(stored(Elem::u2_, {2, 2}, {0x09}))
             .attr("block_size", 2),
         f32({2, 3}, {-1, 0, 0, 3, 0, 2}));
  EXPECT_THAT(refusal(blocks(f32({2, 3}, {1, 1, 1, 1, 1, 1}))),
              HasSubstr("scale of shape 2x3, but f32[2,3] along axis 1 in blocks of 2 has 2x2"));
  EXPECT_THAT(refusal(Op(21, "QuantizeLinear").in(x).in(scale).attr("block_size", -1)),
              HasSubstr("block_size -1 is below 0"));
}

TEST(QuantizeLinear, RoundsInThePrecisionOfTheScale) {
  const Tensor x = f32({2}, {2.5002f, 1e6f}), one = Tensor::of<uint16_t>(Elem::f16_, {}, {0x3c00});
  const auto scaled = [&](int precision) {
    Op op = Op(23, "QuantizeLinear").in(x).in(one);
    return precision ? op.attr("precision", precision) : op;
  };
  expect(scaled(0), stored(Elem::u8_, {2}, {2, 255})); // 2.5 in f16
  expect(scaled(1), stored(Elem::u8_, {2}, {3, 255}));
  EXPECT_THAT(refusal(scaled(7)), HasSubstr("precision is i64"));
  EXPECT_THAT(refusal(scaled(0).in(stored(Elem::u8_, {}, {0})).attr("output_dtype", 3)),
              HasSubstr("output_dtype is i8, but the zero point is u8"));
  EXPECT_THAT(refusal(scaled(0).attr("output_dtype", 24)), HasSubstr("quantization to f8e8m0"));
}

// --- Movement
// -------------------------------------------------------------------------------------------------

TEST(Reshape, ResolvesCopiedAndOpenDims) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto shaped = [&](Ints shape) {
    return Op(13, "Reshape").in(x).constant(i64({int64_t(shape.size())}, shape));
  };
  expect(shaped({0, -1, 1}), f32({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  expect(shaped({6}), f32({6}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(refusal(shaped({4, -1})),
              HasSubstr("f32[2,3] has 6 elements, which shape [4,-1] cannot hold"));
  EXPECT_THAT(refusal(shaped({-1, -1})), HasSubstr("more than one dim open"));
  EXPECT_THAT(refusal(shaped({7})), HasSubstr("has 6 elements, but shape [7] has 7"));
  EXPECT_THAT(refusal(shaped({1, 1, 0})), HasSubstr("copies dim 2 of an input of rank 2"));
  EXPECT_THAT(refusal(shaped({-6})), HasSubstr("shape [-6] has a dim of -6"));
}

TEST(Reshape, ZeroMeansZeroOnlyWhenAllowed) {
  const Tensor empty = f32({0, 3}, {});
  const Tensor shape = i64({2}, {3, 0});
  expect(Op(14, "Reshape").in(empty).constant(shape).attr("allowzero", 1), f32({3, 0}, {}));
  EXPECT_THAT(refusal(Op(13, "Reshape").in(empty).constant(shape)),
              HasSubstr("has 0 elements, but shape [3,0] has 9"));
  EXPECT_THAT(refusal(Op(13, "Reshape").in(empty).constant(i64({2}, {0, 3})).attr("allowzero", 1)),
              HasSubstr("is unknown to Reshape"));
}

TEST(Squeeze, AxesBecameAnOperandAtOpset13) {
  const Tensor x = f32({1, 2, 1}, {1, 2}), y = f32({1, 2}, {1, 2});
  expect(Op(11, "Squeeze").in(x).attr("axes", Ints{-1}), y);
  expect(Op(13, "Squeeze").in(x).constant(i64({1}, {-1})), y);
  expect(Op(13, "Squeeze").in(x), f32({2}, {1, 2}));
  EXPECT_THAT(refusal(Op(13, "Squeeze").in(x).constant(i64({1}, {1}))),
              HasSubstr("dim 1 of f32[1,2,1] is 2, not 1"));
  EXPECT_THAT(refusal(Op(13, "Squeeze").in(x).attr("axes", Ints{2})),
              HasSubstr("attribute 'axes' is unknown"));
  expect(Op(11, "Unsqueeze").in(y).attr("axes", Ints{2}), x);
  expect(Op(13, "Unsqueeze").in(y).constant(i64({1}, {-1})), x);
  EXPECT_THAT(refusal(Op(13, "Unsqueeze").in(y).constant(i64({2}, {1, -3}))),
              HasSubstr("axis -3 is named twice"));
  EXPECT_THAT(refusal(Op(13, "Unsqueeze").in(y)), HasSubstr("input 'axes' is missing"));
}

TEST(Slice, BoundsBecameOperandsAtOpset10) {
  const Tensor x = f32({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect(Op(9, "Slice").in(x).attr("starts", Ints{1}).attr("ends", Ints{3}).attr("axes", Ints{1}),
         f32({2, 2}, {1, 2, 5, 6}));
  const auto slice = [&](Ints starts, Ints ends, Ints axes, Ints steps) {
    const auto list = [](const Ints& values) { return i64({int64_t(values.size())}, values); };
    return Op(13, "Slice")
        .in(x)
        .constant(list(starts))
        .constant(list(ends))
        .constant(list(axes))
        .constant(list(steps));
  };
  expect(slice({1}, {3}, {1}, {1}), f32({2, 2}, {1, 2, 5, 6}));
  expect(slice({-1, 0}, {INT64_MIN, INT64_MAX}, {-1, 0}, {-2, 1}), f32({2, 2}, {3, 1, 7, 5}));
  expect(slice({10}, {-10}, {1}, {-1}), f32({2, 4}, {3, 2, 1, 0, 7, 6, 5, 4}));
  expect(slice({0}, {INT64_MAX}, {1}, {INT64_MAX}), f32({2, 1}, {0, 4}));
  expect(slice({3}, {0}, {1}, {INT64_MIN}), f32({2, 1}, {3, 7}));
  expect(slice({3}, {1}, {1}, {1}), f32({2, 0}, {}));
  EXPECT_THAT(refusal(slice({0}, {1}, {1}, {0})), HasSubstr("step 0 along axis 1"));
  EXPECT_THAT(refusal(slice({0}, {1, 2}, {1}, {1})),
              HasSubstr("1 starts but 2 ends, 1 axes and 1 steps"));
  EXPECT_THAT(refusal(slice({0}, {1}, {2}, {1})), HasSubstr("axis 2 is out of range for rank 2"));
}

TEST(Pad, HasThreeForms) {
  const Tensor x = f32({1, 3}, {1, 2, 3});
  const Tensor y = f32({1, 5}, {9, 1, 2, 3, 9});
  const Ints pads = {0, 1, 0, 1};
  expect(Op(10, "Pad").in(x).attr("pads", pads).attr("value", 9.0f), y);
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).constant(f32({}, {9})), y);
  expect(Op(18, "Pad")
             .in(x)
             .constant(i64({2}, {1, 1}))
             .constant(f32({}, {9}))
             .constant(i64({1}, {-1})),
         y);
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "reflect"),
         f32({1, 5}, {2, 1, 2, 3, 2}));
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "edge"),
         f32({1, 5}, {1, 1, 2, 3, 3}));
  expect(Op(19, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "wrap"),
         f32({1, 5}, {3, 1, 2, 3, 1}));
  expect(Op(11, "Pad").in(x).constant(i64({4}, {0, -1, 0, 1})), f32({1, 3}, {2, 3, 0}));
  EXPECT_THAT(refusal(Op(18, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "wrap")),
              HasSubstr("needs opset 19"));
  EXPECT_THAT(refusal(Op(11, "Pad").in(x).constant(i64({2}, {1, 1}))),
              HasSubstr("2 pads for 2 axes"));
  EXPECT_THAT(
      refusal(Op(17, "Pad").in(x).constant(i64({2}, {1, 1})).absent().constant(i64({1}, {1}))),
      HasSubstr("input 'axes' needs opset 18, the model has 17"));
}

TEST(Flatten, TakesAnyAxis) {
  const Tensor x = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  expect(Op(13, "Flatten").in(x), f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect(Op(13, "Flatten").in(x).attr("axis", 3), f32({6, 1}, {1, 2, 3, 4, 5, 6}));
  expect(Op(13, "Flatten").in(x).attr("axis", -1), f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(refusal(Op(13, "Flatten").in(x).attr("axis", 4)),
              HasSubstr("axis 4 is out of range for rank 3"));
}

TEST(Movement, ExpandsTransposesAndGathers) {
  expect(Op(13, "Expand").in(f32({2, 1}, {1, 2})).constant(i64({3}, {2, 1, 2})),
         f32({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2}));
  expect(Op(13, "Transpose").in(f32({1, 3}, {1, 2, 3})), f32({3, 1}, {1, 2, 3}));
  expect(Op(13, "Gather").in(f32({3}, {1, 2, 3})).in(i64({2}, {-1, 0})), f32({2}, {3, 1}));
  expect(Op(13, "Concat").in(f32({1, 1}, {1})).in(f32({1, 2}, {2, 3})).attr("axis", -1),
         f32({1, 3}, {1, 2, 3}));
}

// --- Places and pieces
// -------------------------------------------------------------------------------------------------

TEST(BitCast, KeepsBitsOfTheSameWidth) {
  const Tensor x = f32({3}, {-0.0f, 1, -2.5f});
  const Tensor bits = Tensor::of<int32_t>(Elem::i32_, {3}, {INT32_MIN, 0x3f800000, -1071644672});
  expect(Op(26, "BitCast").in(x).attr<int64_t>("to", 6), bits);
  expect(Op(26, "BitCast").in(bits).attr<int64_t>("to", 1), x);
  expect(Op(26, "BitCast").in(i64({2}, {-1, 5})).attr<int64_t>("to", 13),
         Tensor::of<uint64_t>(Elem::u64_, {2}, {UINT64_MAX, 5}));
  EXPECT_THAT(refusal(Op(26, "BitCast").in(x).attr<int64_t>("to", 7)),
              HasSubstr("f32 have 32 bits, those of i64 64"));
}

TEST(Split, LastPieceMayFallShortSinceOpset18) {
  const Tensor x = f32({7}, {0, 1, 2, 3, 4, 5, 6});
  const auto last = [&](Op op, int count) {
    const auto results = op.in(x).outputs(count).run();
    return results ? results->back().dims[0] : -1;
  };
  EXPECT_EQ(last(Op(18, "Split").attr<int64_t>("num_outputs", 4), 4), 1);
  // 2 each leave less than nothing
  EXPECT_EQ(last(Op(18, "Split").attr<int64_t>("num_outputs", 5), 5), -1);
  EXPECT_EQ(last(Op(12, "Split").attr("split", Ints{4, 0, 3}), 3), 3);
  EXPECT_EQ(last(Op(12, "Split").attr("split", Ints{4, 2}), 2), -1);
  EXPECT_THAT(refusal(Op(13, "Split").in(x).outputs(2)),
              HasSubstr("a dim of 7 is not 2 equal pieces"));
}

TEST(Trilu, DiagonalMayBeKnownAtRunTimeOnly) {
  const Tensor x = f32({2, 3}, {1, NAN, 3, 4, 5, 6});
  expect(Op(14, "Trilu").in(x).in(i64({}, {2})), f32({2, 3}, {0, 0, 3, 0, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {-1})).attr<int64_t>("upper", 0),
         f32({2, 3}, {0, 0, 0, 4, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {INT64_MIN})).attr<int64_t>("upper", 0),
         f32({2, 3}, {0, 0, 0, 0, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {INT64_MAX})).attr<int64_t>("upper", 0), x);
}

TEST(Scatter, PlacesOutsideWriteNothing) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  // [0,5] would be the last element of the next row, 2^32 the first one in 32 bits.
  const Tensor tuples = i64({4, 2}, {0, 5, 1, -1, -3, 0, int64_t(1) << 32, 0});
  expect(Op(18, "ScatterND").in(x).in(tuples).in(f32({4}, {10, 20, 30, 40})),
         f32({2, 3}, {0, 1, 2, 3, 4, 20}));
  const Tensor columns = i64({2, 2}, {3, -1, -4, 1});
  expect(Op(18, "ScatterElements")
             .in(x)
             .in(columns)
             .in(f32({2, 2}, {10, 20, 30, 40}))
             .attr<int64_t>("axis", 1),
         f32({2, 3}, {0, 1, 20, 3, 40, 5}));
  EXPECT_THAT(refusal(Op(18, "ScatterND").in(x).constant(tuples).in(f32({4}, {10, 20, 30, 40}))),
              HasSubstr("index 5 is outside of a dim of 3"));
}

TEST(Gather, ReadsNothingOutside) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  // 2^32 + 1 would be 1 in 32 bits, and 2^31 - 1 times a stride of 3 another row.
  const int64_t far = (int64_t(1) << 32) + 1, most = INT32_MAX;
  expect(Op(13, "Gather").in(x).in(i64({4}, {far, -far, most, INT64_MIN})).attr<int64_t>("axis", 1),
         f32({2, 4}, {2, 0, 2, 0, 5, 3, 5, 3}));
  expect(Op(13, "GatherElements").in(x).in(i64({2, 3}, {far, most, -far, 1, -1, INT64_MIN})),
         f32({2, 3}, {3, 4, 2, 3, 4, 2}));
  expect(Op(13, "GatherND").in(x).in(i64({3, 2}, {far, 0, 0, -far, most, most})),
         f32({3}, {3, 0, 5}));
  for (const char* op : {"Gather", "GatherElements", "GatherND"})
    EXPECT_THAT(refusal(Op(13, op).in(x).constant(i64({1, 1}, {-3}))),
                HasSubstr("index -3 is outside of a dim of 2"));
}

TEST(Scatter, ReducesDuplicatesInEveryType) {
  const Tensor index = i64({3, 1}, {1, 1, -3});
  const auto scatter = [&](const Tensor& x, const Tensor& updates, const std::string& reduction) {
    return Op(18, "ScatterND").in(x).in(index).in(updates).attr("reduction", reduction.c_str());
  };
  const int64_t big = (int64_t(1) << 53) + 1;
  expect(scatter(i64({3}, {5, big, 7}), i64({3}, {1, 1, -1}), "add"), i64({3}, {4, big + 2, 7}));
  expect(scatter(f32({3}, {5, 6, 7}), f32({3}, {2, 3, -1}), "mul"), f32({3}, {-5, 36, 7}));
  expect(scatter(f32({3}, {5, 6, 7}), f32({3}, {2, NAN, 9}), "max"), f32({3}, {9, NAN, 7}));
  expect(scatter(boolean({3}, {1, 0, 1}), boolean({3}, {0, 1, 0}), "add"), boolean({3}, {1, 1, 1}));
  expect(scatter(boolean({3}, {1, 1, 1}), boolean({3}, {0, 1, 0}), "mul"), boolean({3}, {0, 0, 1}));
  EXPECT_THAT(refusal(scatter(f32({3}, {5, 6, 7}), f32({3}, {2, 3, -1}), "sub")),
              HasSubstr("reduction 'sub'"));
}

TEST(Gather, TuplesMayHaveBatches) {
  const Tensor x = f32({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect(Op(12, "GatherND").in(x).in(i64({2, 1, 1}, {1, -2})).attr<int64_t>("batch_dims", 1),
         f32({2, 1, 3}, {3, 4, 5, 6, 7, 8}));
  expect(Op(12, "GatherND").in(x).in(i64({2, 2}, {1, -1, -2, 0})),
         f32({2, 3}, {9, 10, 11, 0, 1, 2}));
  expect(Op(13, "GatherElements").in(f32({2, 2}, {1, 2, 3, 4})).in(i64({1, 2}, {-1, 0})),
         f32({1, 2}, {3, 2}));
  EXPECT_THAT(refusal(Op(12, "GatherND").in(x).in(i64({1, 4}, {0, 0, 0, 0}))),
              HasSubstr("4 indices for each place"));
  EXPECT_THAT(refusal(Op(12, "GatherND").in(f32({0, 3}, {})).in(i64({1, 1}, {0}))),
              HasSubstr("empty"));
}

TEST(TensorScatter, EndsOrGoesAround) {
  const Tensor x = f32({2, 3, 1}, {0, 1, 2, 3, 4, 5}), update = f32({2, 2, 1}, {10, 20, 30, 40});
  const Tensor places = i64({2}, {2, 1});
  expect(Op(24, "TensorScatter").in(x).in(update).in(places),
         f32({2, 3, 1}, {0, 1, 10, 3, 30, 40}));
  expect(Op(24, "TensorScatter").in(x).in(update).in(places).attr("mode", "circular"),
         f32({2, 3, 1}, {20, 1, 10, 3, 30, 40}));
  expect(Op(24, "TensorScatter").in(x).in(update), f32({2, 3, 1}, {10, 20, 2, 30, 40, 5}));
}

TEST(OneHot, NegativeIndicesCountSinceOpset11) {
  const Tensor index = i64({3}, {-1, 1, 7}), values = f32({2}, {-2, 5});
  expect(Op(11, "OneHot").in(index).constant(i64({}, {2})).in(values),
         f32({3, 2}, {-2, 5, -2, 5, -2, -2}));
  expect(Op(9, "OneHot").in(index).constant(f32({1}, {2})).in(values),
         f32({3, 2}, {-2, -2, -2, 5, -2, -2}));
  expect(Op(11, "OneHot")
             .in(f32({2}, {1.9f, 0}))
             .constant(i64({}, {2}))
             .in(boolean({2}, {0, 1}))
             .attr<int64_t>("axis", 0),
         boolean({2, 2}, {0, 1, 1, 0}));
  EXPECT_EQ(codeOf(Op(11, "OneHot").in(index).in(i64({}, {2})).in(values)), Code::unsupported);
}

TEST(CumSum, IsExactInIntegersAndRoundsOnceInHalves) {
  const int64_t big = (int64_t(1) << 53) + 1;
  expect(Op(14, "CumSum").in(i64({3}, {big, 1, -big})).constant(i64({}, {0})),
         i64({3}, {big, big + 1, 1}));
  expect(Op(14, "CumSum")
             .in(f32({3}, {1, 2, 4}))
             .constant(i64({}, {0}))
             .attr<int64_t>("exclusive", 1)
             .attr<int64_t>("reverse", 1),
         f32({3}, {6, 4, 0}));
  // 2048, 2049, 2050 and 2051 in steps of 2, ties to even.
  expect(Op(14, "CumSum")
             .in(Tensor::of<uint16_t>(Elem::f16_, {4}, {0x6800, 0x3c00, 0x3c00, 0x3c00}))
             .constant(i64({}, {-1})),
         Tensor::of<uint16_t>(Elem::f16_, {4}, {0x6800, 0x6800, 0x6801, 0x6802}));
  expect(Op(26, "CumProd").in(i64({4}, {2, 3, -1, 5})).constant(i64({1}, {0})),
         i64({4}, {2, 6, -6, -30}));
}

TEST(Det, EliminatesWithPivots) {
  const Tensor three = f32({2, 3, 3}, {0, 2, 1, 3, 0, 0, 0, 1, 4, 1, 2, 3, 2, 4, 6, 0, 1, 5});
  expect(Op(11, "Det").in(three), f32({2}, {-21, 0}));
  expect(Op(11, "Det").in(f32({2, 2}, {NAN, 1, 2, 3})), f32({}, {NAN}));
  expect(Op(11, "Det").in(f32({1, 1}, {-3})), f32({}, {-3}));
  Floats shifted(25, 0); // an even permutation
  for (int i = 0; i < 5; ++i) shifted[i * 5 + (i + 1) % 5] = 2;
  expect(Op(11, "Det").in(f32({5, 5}, shifted)), f32({}, {32}));
  EXPECT_EQ(codeOf(Op(11, "Det").in(f32({17, 17}, Floats(289, 0)))), Code::unsupported);
}

// --- Shapes and constants
// ------------------------------------------------------------------------------------------------

TEST(Shape, IsAConstantSliceOfDims) {
  const Tensor x = f32({4, 1, 2}, Floats(8));
  expect(Op(13, "Shape").in(x), i64({3}, {4, 1, 2}));
  expect(Op(15, "Shape").in(x).attr("start", -2).attr("end", 2), i64({1}, {1}));
  expect(Op(15, "Shape").in(x).attr("start", 2).attr("end", 1), i64({0}, {}));
  expect(Op(13, "Size").in(x), i64({}, {8}));
  EXPECT_THAT(refusal(Op(13, "Shape").in(x).attr("start", 1)),
              HasSubstr("attribute 'start' is unknown to Shape in opset 13"));
}

TEST(Constant, HasManyForms) {
  expect(Op(13, "Constant").attr("value_int", 7), i64({}, {7}));
  expect(Op(13, "Constant").attr("value_float", 0.5f), f32({}, {0.5f}));
  expect(Op(13, "Constant").attr("value_ints", Ints{1, 2}), i64({2}, {1, 2}));
  expect(Op(13, "Constant").attr("value", tensorProto("", {1}, Floats{3})), f32({1}, {3}));
  EXPECT_THAT(refusal(Op(13, "Constant")), HasSubstr("has 0 values, expected 1"));
  EXPECT_THAT(refusal(Op(13, "Constant").attr("value_int", 7).attr("value_float", 1.0f)),
              HasSubstr("has 2 values, expected 1"));
  EXPECT_EQ(codeOf(Op(13, "Constant").attr("value_string", "text")), Code::unsupported);
}

TEST(ConstantOfShape, CostsOneElement) {
  expect(Op(9, "ConstantOfShape").constant(i64({2}, {1, 2})), f32({1, 2}, {0, 0}));
  expect(
      Op(9, "ConstantOfShape").constant(i64({1}, {2})).attr("value", tensorProto("", {1}, Ints{5})),
      i64({2}, {5, 5}));
  auto huge = Op(9, "ConstantOfShape").constant(i64({2}, {1 << 20, 1 << 20})).import();
  ASSERT_TRUE(huge) << messageOf(huge);
  EXPECT_EQ(huge->outputs()[0]->payload().form(), Payload::Form::splat);
  EXPECT_THAT(refusal(Op(9, "ConstantOfShape").constant(i64({1}, {-1}))),
              HasSubstr("impossible shape [-1]"));
}

TEST(Range, CountsItsElements) {
  expect(Op(11, "Range").constant(i64({}, {10})).constant(i64({}, {4})).constant(i64({}, {-3})),
         i64({2}, {10, 7}));
  expect(Op(11, "Range").constant(f32({}, {1})).constant(f32({}, {2})).constant(f32({}, {0.25f})),
         f32({4}, {1, 1.25f, 1.5f, 1.75f}));
  expect(Op(11, "Range").constant(i64({}, {5})).constant(i64({}, {1})).constant(i64({}, {1})),
         i64({0}, {}));
  EXPECT_THAT(
      refusal(Op(11, "Range").constant(i64({}, {0})).constant(i64({}, {1})).constant(i64({}, {0}))),
      HasSubstr("has no end"));
  EXPECT_THAT(refusal(Op(11, "Range")
                          .constant(f32({}, {0}))
                          .constant(f32({}, {INFINITY}))
                          .constant(f32({}, {1}))),
              HasSubstr("has no end"));
  EXPECT_EQ(codeOf(Op(11, "Range").in(i64({}, {0})).constant(i64({}, {1})).constant(i64({}, {1}))),
            Code::unsupported);
}

// --- Windows
// -------------------------------------------------------------------------------------------------

std::vector<int64_t> padsOf(Op op, OpKind kind) {
  const auto graph = op.import();
  if (!graph) return {};
  for (const auto& node : graph->nodes())
    if (node->kind == kind) return node->intsAttr("pads");
  return {};
}

TEST(Conv, ResolvesAutoPad) {
  const Tensor x = f32({1, 1, 5, 6}, Floats(30)), w = f32({1, 1, 2, 3}, Floats(6));
  const auto conv = [&](const char* mode) {
    return Op(11, "Conv").in(x).constant(w).attr("auto_pad", mode).attr("strides", Ints{1, 2});
  };
  EXPECT_EQ(padsOf(conv("SAME_UPPER"), OpKind::Conv), (Ints{0, 0, 1, 1}));
  EXPECT_EQ(padsOf(conv("SAME_LOWER"), OpKind::Conv), (Ints{1, 1, 0, 0}));
  EXPECT_EQ(padsOf(conv("VALID").attr("pads", Ints{1, 1, 1, 1}), OpKind::Conv), (Ints{0, 0, 0, 0}));
  EXPECT_EQ(padsOf(conv("NOTSET").attr("pads", Ints{1, 0, 0, 1}), OpKind::Conv),
            (Ints{1, 0, 0, 1}));
  EXPECT_THAT(refusal(conv("SAME")),
              HasSubstr("auto_pad 'SAME' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

TEST(Conv, WorksOverOneToThreeDims) {
  expect(Op(11, "Conv")
             .in(f32({1, 1, 3}, {1, 2, 3}))
             .constant(f32({1, 1, 2}, {1, 10}))
             .constant(f32({1}, {100})),
         f32({1, 1, 2}, {121, 132}));
  expect(
      Op(11, "Conv").in(f32({1, 1, 1, 2, 2}, {1, 2, 3, 4})).in(f32({1, 1, 1, 2, 2}, {1, 1, 1, 1})),
      f32({1, 1, 1, 1, 1}, {10}));
  expect(Op(22, "Conv")
             .in(f32({1, 2, 1, 1}, {3, 4}))
             .in(f32({2, 1, 1, 1}, {10, 100}))
             .attr("group", 2)
             .attr("kernel_shape", Ints{1, 1}),
         f32({1, 2, 1, 1}, {30, 400}));
}

TEST(Conv, RefusesAttributesThatDoNotFit) {
  const auto conv = [] {
    return Op(11, "Conv").in(f32({1, 1, 5}, Floats(5))).in(f32({1, 1, 2}, Floats(2)));
  };
  EXPECT_THAT(refusal(conv().attr("strides", Ints{1, 1})),
              HasSubstr("attribute 'strides' has 2 values, expected 1"));
  EXPECT_THAT(refusal(conv().attr("strides", Ints{0})),
              HasSubstr("attribute 'strides' has value 0, expected 1 to"));
  EXPECT_THAT(refusal(conv().attr("pads", Ints{-1, 0})),
              HasSubstr("attribute 'pads' has value -1"));
  EXPECT_THAT(refusal(conv().attr("kernel_shape", Ints{3})),
              HasSubstr("kernel_shape [3] but weight f32[1,1,2]"));
  EXPECT_THAT(refusal(conv().attr("dilations", Ints{INT64_MAX})),
              HasSubstr("attribute 'dilations' has value 9223372036854775807"));
  EXPECT_THAT(refusal(Op(11, "Conv").in(f32({5}, Floats(5))).in(f32({1, 1, 2}, Floats(2)))),
              HasSubstr("has rank 1"));
}

TEST(Pools, GainTheirAttributesByVersion) {
  const Tensor x = f32({1, 1, 4}, {1, 4, 2, 3});
  expect(Op(8, "MaxPool").in(x).attr("kernel_shape", Ints{3}).attr("strides", Ints{2}),
         f32({1, 1, 1}, {4}));
  expect(Op(10, "MaxPool")
             .in(x)
             .attr("kernel_shape", Ints{3})
             .attr("strides", Ints{2})
             .attr("ceil_mode", 1),
         f32({1, 1, 2}, {4, 3}));
  expect(Op(10, "MaxPool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{2}),
         f32({1, 1, 2}, {2, 4}));
  EXPECT_THAT(refusal(Op(8, "MaxPool").in(x).attr("kernel_shape", Ints{2}).attr("ceil_mode", 1)),
              HasSubstr("'ceil_mode' is unknown"));
  EXPECT_THAT(
      refusal(Op(18, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{1})),
      HasSubstr("'dilations' is unknown"));
  expect(Op(19, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{2}),
         f32({1, 1, 2}, {1.5f, 3.5f}));
  expect(Op(7, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("auto_pad", "SAME_UPPER"),
         f32({1, 1, 4}, {2.5f, 3, 2.5f, 3}));
  expect(Op(7, "AveragePool")
             .in(x)
             .attr("kernel_shape", Ints{2})
             .attr("pads", Ints{0, 1})
             .attr("count_include_pad", 1),
         f32({1, 1, 4}, {2.5f, 3, 2.5f, 1.5f}));
  expect(Op(7, "GlobalMaxPool").in(x), f32({1, 1, 1}, {4}));
  expect(Op(7, "GlobalAveragePool").in(x), f32({1, 1, 1}, {2.5f}));
  EXPECT_THAT(refusal(Op(10, "MaxPool").in(x)), HasSubstr("attribute 'kernel_shape' is missing"));
}

TEST(Pools, MaxPoolGivesIndicesWhenAsked) {
  const auto results = Op(12, "MaxPool")
                           .in(f32({1, 1, 4}, {1, 4, 2, 3}))
                           .attr("kernel_shape", Ints{2})
                           .outputs(2)
                           .run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(1), i64({1, 1, 3}, {1, 1, 3})), "");
}

// --- Reductions and normalization
// ----------------------------------------------------------------------------------------

TEST(Reduce, AxesBecameAnOperandAtTheirOwnOpsets) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect(Op(11, "ReduceSum").in(x).attr("axes", Ints{-1}).attr("keepdims", 0), f32({2}, {3, 7}));
  expect(Op(13, "ReduceSum").in(x).constant(i64({1}, {0})), f32({1, 2}, {4, 6}));
  expect(Op(13, "ReduceSum").in(x).constant(i64({0}, {})).attr("noop_with_empty_axes", 1), x);
  expect(Op(13, "ReduceSum").in(x).constant(i64({0}, {})), f32({1, 1}, {10}));
  expect(Op(17, "ReduceMean").in(x).attr("axes", Ints{1}), f32({2, 1}, {1.5f, 3.5f}));
  expect(Op(18, "ReduceMean").in(x).constant(i64({1}, {1})), f32({2, 1}, {1.5f, 3.5f}));
  expect(Op(13, "ReduceMax").in(x).attr("keepdims", 0), f32({}, {4}));
  expect(Op(18, "ReduceMin").in(x), f32({1, 1}, {1}));
  expect(Op(18, "ReduceProd").in(x).constant(i64({1}, {1})), f32({2, 1}, {2, 12}));
  EXPECT_THAT(refusal(Op(18, "ReduceMean").in(x).attr("axes", Ints{1})),
              HasSubstr("attribute 'axes' is unknown"));
  EXPECT_THAT(refusal(Op(17, "ReduceMean").in(x).constant(i64({1}, {1}))),
              HasSubstr("input 'axes' needs opset 18"));
  EXPECT_THAT(refusal(Op(13, "ReduceSum").in(x).constant(i64({2}, {0, -2}))),
              HasSubstr("axis -2 is named twice"));
}

TEST(Reduce, FormulasKeepTypesAndExtremes) {
  const auto reduce = [](const char* op, const Tensor& x) {
    return Op(18, op).in(x).attr("keepdims", 0);
  };
  expect(reduce("ReduceLogSumExp", f32({2}, {1000, 1000})), f32({}, {1000 + std::log(2.0f)}));
  const float inf = std::numeric_limits<float>::infinity();
  expect(reduce("ReduceLogSumExp", f32({2}, {-inf, -inf})), f32({}, {-inf}));
  expect(reduce("ReduceLogSumExp", f32({2}, {inf, 1})), f32({}, {inf}));
  expect(reduce("ReduceLogSumExp", f32({0}, {})), f32({}, {-inf}));
  // 2^53 + 1 has no double; squares wrap.
  expect(reduce("ReduceL1", i64({2}, {-(int64_t(1) << 53), 1})), i64({}, {(int64_t(1) << 53) + 1}));
  expect(reduce("ReduceSumSquare", i64({2}, {(int64_t(1) << 32) + 1, 0})),
         i64({}, {(int64_t(1) << 33) + 1}));
  expect(reduce("ReduceL2", i64({2}, {3, 5})), i64({}, {5}));
  // 255 * 255 + 255 * 255 is beyond f16, its root is not: 360.6 and a step of 0.25.
  expect(reduce("ReduceL2", Tensor::of<uint16_t>(Elem::f16_, {2}, {0x5BF8, 0x5BF8})),
         Tensor::of<uint16_t>(Elem::f16_, {}, {0x5DA2}));
  expect(Op(18, "ReduceL2").in(f32({2}, {-3, 4})).attr("noop_with_empty_axes", 1),
         f32({2}, {3, 4}));
  expect(reduce("ReduceMax", boolean({2}, {0, 1})), boolean({}, {1}));
  expect(reduce("ReduceMin", boolean({0}, {})), boolean({}, {1}));
}
TEST(Pools, NormsOfWindows) {
  const auto pool = [](const Floats& values) {
    return Op(18, "LpPool")
        .in(f32({1, 1, 5}, values))
        .attr("kernel_shape", Ints{2})
        .attr("strides", Ints{2});
  };
  expect(pool({1, -2, 3, 4, 5}).attr("p", 1).attr("ceil_mode", 1), f32({1, 1, 3}, {3, 7, 5}));
  expect(pool({1, -2, 2, 4, 5}).attr("pads", Ints{1, 0}),
         f32({1, 1, 3}, {1, std::sqrt(8.0f), std::sqrt(41.0f)}));
  expect(pool({1, -2, 3, 4, 5}).attr("p", 3), f32({1, 1, 2}, {std::cbrt(9.0f), std::cbrt(91.0f)}));
  EXPECT_THAT(refusal(pool({1, 2, 3, 4, 5}).attr("p", 0)),
              HasSubstr("attribute 'p' is 0, expected at least 1"));
  EXPECT_THAT(refusal(pool({1, 2, 3, 4, 5}).attr("dilations", Ints{9})),
              HasSubstr("kernel of 10 is larger than the padded input of 5 in spatial dim 0"));
  expect(Op(13, "LpNormalization").in(f32({2, 2}, {-3, 4, 0, 0})),
         f32({2, 2}, {-0.6f, 0.8f, 0, 0}));
}
TEST(Softmax, FlattensBeforeOpset13) {
  const Tensor x = f32({1, 2, 2}, {0, 0, 0, 0});
  expect(Op(11, "Softmax").in(x), f32({1, 2, 2}, {0.25f, 0.25f, 0.25f, 0.25f}));
  expect(Op(13, "Softmax").in(x), f32({1, 2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}));
  expect(Op(11, "Softmax").in(x).attr("axis", 2), f32({1, 2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}));
  expect(Op(13, "LogSoftmax").in(f32({1, 2}, {1000, 0})), f32({1, 2}, {0, -1000}));
  const float quarter = std::log(0.25f);
  expect(Op(11, "LogSoftmax").in(x), f32({1, 2, 2}, {quarter, quarter, quarter, quarter}));
}

TEST(BatchNormalization, TellsInferenceFromTraining) {
  const Tensor x = f32({2, 1}, {1, 3}), one = f32({1}, {1}), zero = f32({1}, {0});
  const auto norm = [&](int opset) {
    return Op(opset, "BatchNormalization")
        .in(x)
        .constant(one)
        .constant(zero)
        .constant(one)
        .constant(f32({1}, {4}))
        .attr("epsilon", 0.0f);
  };
  for (int opset : {7, 9, 14, 15}) expect(norm(opset), f32({2, 1}, {0, 1}));
  expect(norm(8).attr("spatial", 1), f32({2, 1}, {0, 1}));
  EXPECT_THAT(refusal(norm(9).attr("spatial", 1)), HasSubstr("'spatial' is unknown"));
  // Statistics of each element.
  const auto each = [&](int opset, const Tensor& scale) {
    return Op(opset, "BatchNormalization")
        .in(f32({2, 1, 2}, {1, 3, 5, 7}))
        .in(scale)
        .in(f32({1, 2}, {0, 1}))
        .in(f32({1, 2}, {1, 3}))
        .in(f32({1, 2}, {4, 1}))
        .attr("epsilon", 0.0f)
        .attr("spatial", 0);
  };
  expect(each(8, f32({1, 2}, {1, 2})), f32({2, 1, 2}, {0, 1, 2, 9}));
  EXPECT_THAT(refusal(each(8, f32({2}, {1, 2}))),
              HasSubstr("input 1 is f32[2], expected shape 1x2"));
  for (Op op : {norm(9).outputs(3), norm(15).outputs(3).attr("training_mode", 1)}) {
    const auto results = op.run();
    ASSERT_TRUE(results) << messageOf(results);
    EXPECT_EQ(difference(results->at(0), f32({2, 1}, {-1, 1})), "");
    EXPECT_EQ(difference(results->at(1), f32({1}, {1 * 0.9f + 2 * 0.1f})), "");
    EXPECT_EQ(difference(results->at(2), f32({1}, {4 * 0.9f + 1 * 0.1f})), "");
  }
  const auto saved = norm(9).outputs(5).run();
  ASSERT_TRUE(saved) << messageOf(saved);
  EXPECT_EQ(difference(saved->at(3), f32({1}, {2})), "");
  EXPECT_EQ(difference(saved->at(4), f32({1}, {1})), "");
  EXPECT_THAT(refusal(norm(15).outputs(3)), HasSubstr("need training_mode = 1"));
  EXPECT_THAT(refusal(norm(15).outputs(5).attr("training_mode", 1)),
              HasSubstr("has 5 outputs, expected at most 3"));
}

constexpr float kInf = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LayerNormalization, MeansHaveTheStashedTypeAndAScaleMayCoverAll) {
  const Tensor x = f16({2, 2}, {0x3C00, 0x4200, 0x4400, 0x4400}); // 1 3 4 4
  const auto results =
      Op(17, "LayerNormalization").in(x).in(f16({2}, {0x3C00, 0x4000})).outputs(2).run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), f16({2, 2}, {0xBC00, 0x4000, 0, 0})), ""); // -1 2 0 0
  EXPECT_EQ(difference(results->at(1), f32({2, 1}, {2, 4})), "");
  const Tensor y = f32({2, 2}, {1, 3, 7, 5});
  expect(Op(17, "LayerNormalization").in(y).in(f32({2, 1}, {2, 3})).in(f32({1}, {1})),
         f32({2, 2}, {-1, 3, 4, -2}));
  EXPECT_THAT(refusal(Op(17, "LayerNormalization").in(y).in(f32({3, 1, 1}, {1, 1, 1}))),
              HasSubstr("scale f32[3,1,1] or bias does not broadcast to input f32[2,2]"));
  EXPECT_THAT(
      refusal(Op(17, "LayerNormalization").in(y).in(f32({2}, {1, 1})).attr("stash_type", 7)),
      HasSubstr("stash_type 7 is no float type"));
  // The result has the scale's type: 3 / sqrt(5), 1 / sqrt(5).
  expect(Op(23, "RMSNormalization").in(f16({1, 2}, {0x4200, 0x3C00})).in(f32({2}, {1, 2})),
         f32({1, 2}, {1.341641f, 0.894427f}));
}

TEST(GroupNormalization, ScalesGroupsBeforeOpset21AndChannelsSince) {
  const Tensor x = f32({1, 4, 1}, {1, 3, 10, 30});
  const auto norm = [&](int opset, const Tensor& scale, const Tensor& bias, int groups) {
    return Op(opset, "GroupNormalization")
        .in(x)
        .in(scale)
        .in(bias)
        .attr("num_groups", groups)
        .attr("epsilon", 0.0f);
  };
  expect(norm(18, f32({2}, {1, 2}), f32({2}, {0, 1}), 2), f32({1, 4, 1}, {-1, 1, -1, 3}));
  expect(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 2),
         f32({1, 4, 1}, {-1, 2, -3, 5}));
  EXPECT_THAT(refusal(norm(21, f32({2}, {1, 2}), f32({2}, {0, 1}), 2)),
              HasSubstr("input 1 is f32[2], expected 4 values"));
  EXPECT_THAT(refusal(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 3)),
              HasSubstr("num_groups is 3 but the input has 4 channels"));
  EXPECT_THAT(refusal(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 0)),
              HasSubstr("num_groups is 0"));
}

TEST(Lrn, NeighboursBeyondTheLastChannelCostNothing) {
  const Tensor x = f32({1, 3, 1, 1}, {1, 2, 3}); // squares 1 4 9
  const auto lrn = [&](int64_t size) {
    return Op(13, "LRN")
        .in(x)
        .attr("size", size)
        .attr("alpha", static_cast<float>(size))
        .attr("beta", 1.0f);
  };
  expect(lrn(3), f32({1, 3, 1, 1}, {1 / 6.0f, 2 / 15.0f, 3 / 14.0f}));
  expect(lrn(2), f32({1, 3, 1, 1}, {1 / 6.0f, 2 / 14.0f, 3 / 10.0f})); // itself and the next one
  expect(lrn(int64_t(1) << 40), f32({1, 3, 1, 1}, {1 / 15.0f, 2 / 15.0f, 3 / 15.0f}));
  EXPECT_THAT(refusal(lrn(0)), HasSubstr("attribute 'size' is 0, expected at least 1"));
}

TEST(Arg, TakesTheFirstOrLastExtremeAndNaNBeforeAll) {
  const Tensor x = f32({2, 3}, {1, 5, 5, 2, kNan, kNan});
  expect(Op(7, "ArgMax").in(x), i64({1, 3}, {1, 1, 1}));
  expect(Op(13, "ArgMax").in(x).attr("axis", -1).attr("keepdims", 0), i64({2}, {1, 1}));
  expect(Op(13, "ArgMin").in(x).attr("axis", 1).attr("select_last_index", 1), i64({2, 1}, {0, 2}));
  expect(Op(13, "ArgMax").in(i64({3}, {INT64_MAX - 1, INT64_MAX, -1})), i64({1}, {1}));
  EXPECT_THAT(refusal(Op(11, "ArgMax").in(x).attr("select_last_index", 1)),
              HasSubstr("'select_last_index' is unknown"));
  EXPECT_THAT(refusal(Op(13, "ArgMax").in(f32({0, 2}, {}))),
              HasSubstr("axis 0 of 0 elements has no extreme"));
}

TEST(Hardmax, FlattensBeforeOpset13) {
  const Tensor x = f32({1, 2, 2}, {3, 1, 2, 3});
  expect(Op(11, "Hardmax").in(x), f32({1, 2, 2}, {1, 0, 0, 0}));
  expect(Op(13, "Hardmax").in(x), f32({1, 2, 2}, {1, 0, 0, 1}));
  expect(Op(13, "Hardmax").in(f32({0, 2}, {})).attr("axis", 0), f32({0, 2}, {}));
}

TEST(Loss, GathersAtLabelsOfTheRun) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 0, 5, 7});
  const Tensor labels = Tensor::of<int32_t>(Elem::i32_, {3}, {1, 1, 0}),
               weights = f32({2}, {1, 0.5f});
  const auto nll = [&](const char* reduction) {
    return Op(13, "NegativeLogLikelihoodLoss").in(x).in(labels).attr("reduction", reduction);
  };
  expect(nll("none"), f32({3}, {-2, 0, -5}));
  expect(nll("mean"), f32({}, {-7 / 3.0f}));
  expect(nll("mean").in(weights), f32({}, {-3})); // (-1 + 0 - 5) / (0.5 + 0.5 + 1)
  expect(nll("mean").in(weights).attr("ignore_index", 1), f32({}, {-5})); // (-5) / 1
  expect(nll("sum").attr("ignore_index", (int64_t(1) << 32) + 1),
         f32({}, {-7})); // no label of 32 bits
  expect(nll("mean").attr("ignore_index", 0), f32({}, {-1}));
  const auto far = Tensor::of<int64_t>(Elem::i64_, {3}, {1, 999, 0});
  expect(Op(13, "NegativeLogLikelihoodLoss")
             .in(x)
             .in(far)
             .attr("ignore_index", 999)
             .attr("reduction", "none"),
         f32({3}, {-2, 0, -5}));
  EXPECT_THAT(refusal(nll("most")), HasSubstr("reduction 'most' is not none, sum or mean"));
  EXPECT_THAT(refusal(nll("sum").in(f32({3}, {1, 1, 1}))),
              HasSubstr("weights f32[3] are not one for each of 2 classes"));
  EXPECT_THAT(refusal(Op(13, "SoftmaxCrossEntropyLoss").in(x).in(i64({2}, {0, 0}))),
              HasSubstr("labels i64[2] do not fit input f32[3,2]"));
}

TEST(ConvTranspose, ResolvesPads) {
  const Tensor x = f32({1, 1, 2}, {1, 10}), w = f32({1, 1, 3}, {1, 2, 3});
  const auto convolve = [&] {
    return Op(11, "ConvTranspose").in(x).in(w).attr("strides", Ints{2});
  };
  expect(convolve(), f32({1, 1, 5}, {1, 2, 13, 20, 30}));
  expect(convolve().attr("output_padding", Ints{1}).in(f32({1}, {1})),
         f32({1, 1, 6}, {2, 3, 14, 21, 31, 1}));
  expect(convolve().attr("auto_pad", "SAME_UPPER"), f32({1, 1, 4}, {1, 2, 13, 20}));
  expect(convolve().attr("auto_pad", "SAME_LOWER"), f32({1, 1, 4}, {2, 13, 20, 30}));
  expect(convolve().attr("auto_pad", "VALID").attr("pads", Ints{1, 1}),
         f32({1, 1, 5}, {1, 2, 13, 20, 30}));
  // What is only added stands at the end, as ONNX Runtime and ONNX's own evaluator have it; a mode
  // places it.
  expect(convolve().attr("output_shape", Ints{6}), f32({1, 1, 6}, {1, 2, 13, 20, 30, 0}));
  expect(convolve().attr("output_shape", Ints{7}), f32({1, 1, 7}, {1, 2, 13, 20, 30, 0, 0}));
  expect(convolve().attr("output_shape", Ints{8}), f32({1, 1, 8}, {1, 2, 13, 20, 30, 0, 0, 0}));
  expect(convolve().attr("output_shape", Ints{7}).attr("auto_pad", "SAME_UPPER"),
         f32({1, 1, 7}, {0, 1, 2, 13, 20, 30, 0}));
  expect(convolve().attr("output_shape", Ints{2}), f32({1, 1, 2}, {13, 20}));
  EXPECT_THAT(refusal(convolve().attr("pads", Ints{3, 3})), HasSubstr("gives no extent"));
  EXPECT_THAT(refusal(convolve().attr("output_shape", Ints{1, 7})),
              HasSubstr("'output_shape' has 2 values, expected 1"));
  EXPECT_THAT(refusal(convolve().attr("group", 2)),
              HasSubstr("input has 1 channels but weight has 1, in 2 groups"));
  EXPECT_THAT(refusal(Op(11, "ConvTranspose").in(x).in(f32({1, 1, 1, 1}, {1}))),
              HasSubstr("weight f32[1,1,1,1]"));
}

TEST(Pools, OutputsDeclaredByAnotherRuleOfRoundingUpAreTaken) {
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    const auto pooled = [&](const std::vector<DimSpec>& declared, int64_t ceil) {
      ModelMaker maker(22);
      maker.input("x", {1, 1, 5}).output("y", declared);
      auto& node = maker.node(op, {"x"}, {"p"});
      setAttr(node, "kernel_shape", Ints{2});
      setAttr(node, "strides", Ints{2});
      setAttr(node, "pads", Ints{1, 1});
      setAttr(node, "ceil_mode", ceil);
      maker.node("Neg", {"p"}, {"y"});
      return maker.import();
    };
    const auto graph = pooled({1, 1, 4}, 1); // a window of padding alone, which ONNX does not count
    ASSERT_TRUE(graph) << op << ": " << messageOf(graph);
    EXPECT_EQ(graph->outputs()[0]->type.shape(), (Shape{1, 1, 3}));
    EXPECT_TRUE(pooled({1, 1, 3}, 1)) << op;
    EXPECT_THAT(messageOf(pooled({1, 4}, 1)),
                HasSubstr("is declared f32[1,4] but inference gives f32[1,1,3]"));
    EXPECT_THAT(messageOf(pooled({1, 1, 4}, 0)),
                HasSubstr("is declared f32[1,1,4] but inference gives f32[1,1,3]"))
        << "both rules agree";
  }
}

TEST(Dropout, IsTheIdentityInInference) {
  const Tensor x = f32({2}, {1, 2});
  expect(Op(7, "Dropout").in(x).attr("ratio", 0.5f), x);
  expect(Op(12, "Dropout").in(x).constant(f32({}, {0.5f})), x);
  expect(
      Op(13, "Dropout").in(x).constant(f32({}, {0.5f})).constant(boolean({}, {0})).attr("seed", 1),
      x);
  expect(Op(13, "Dropout").in(x).constant(f32({}, {0})).constant(boolean({}, {1})), x);
  for (const auto& [opset, mask] :
       {std::pair(7, f32({2}, {1, 1})), std::pair(10, boolean({2}, {1, 1}))}) {
    const auto results = Op(opset, "Dropout").in(x).outputs(2).run();
    ASSERT_TRUE(results) << messageOf(results);
    EXPECT_EQ(difference(results->at(1), mask), "") << opset;
  }
  expect(Op(13, "Dropout").in(x).absent().in(boolean({}, {0})), x);
}

// --- By record and folding
// -----------------------------------------------------------------------------------------------

TEST(ByRecord, MapsOperandsAndAttributes) {
  expect(Op(13, "Gemm")
             .in(f32({2, 1}, {1, 2}))
             .in(f32({1, 2}, {3, 4}))
             .attr("transA", 1)
             .attr("transB", 1)
             .attr("alpha", 2.0f),
         f32({1, 1}, {22}));
  expect(Op(7, "Add").in(f32({2}, {1, 2})).in(f32({1}, {10})), f32({2}, {11, 12}));
  EXPECT_THAT(refusal(Op(7, "Add").in(f32({2}, {1, 2})).in(f32({1}, {10})).attr("broadcast", 1)),
              HasSubstr("attribute 'broadcast' is unknown to Add in opset 7"));
  EXPECT_THAT(refusal(Op(7, "Add").in(f32({2}, {1, 2})).in(i64({1}, {10}))),
              HasSubstr("operand b is i64 but a is f32"));
}

// --- Opset 6
// -------------------------------------------------------------------------------------------------

TEST(Opset6, OperandsBroadcastFromAnAxisOn) {
  const Tensor x = f32({2, 3, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor inner = f32({2}, {1, 2}), middle = f32({3}, {1, 2, 3});
  const auto add = [&](const Tensor& b) { return Op(6, "Add").in(x).in(b); };
  expect(add(inner).attr("broadcast", 1), f32({2, 3, 2}, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  expect(add(middle).attr("broadcast", 1).attr("axis", 1),
         f32({2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}));
  expect(add(f32({}, {4})).attr("broadcast", 1).attr("axis", 2),
         f32({2, 3, 2}, std::vector<float>(12, 4)));
  EXPECT_THAT(refusal(add(inner)), HasSubstr("operands of shapes 2x3x2 and 2 without broadcast"));
  for (const int64_t axis : {int64_t(3), int64_t(-1), INT64_MAX, INT64_MIN})
    EXPECT_THAT(refusal(add(middle).attr("broadcast", 1).attr("axis", axis)),
                HasSubstr("is out of range for ranks 3 and 1"));
  EXPECT_THAT(refusal(add(inner).attr("broadcast", 1.0f)),
              HasSubstr("attribute 'broadcast' is no int"));
}

TEST(Opset6, ChannelsSlopesAndTraining) {
  // As many channels as columns: only the channel's slope counts.
  expect(Op(6, "PRelu").in(f32({1, 2, 2}, {-1, -1, -1, -1})).in(f32({2}, {2, 3})),
         f32({1, 2, 2}, {-2, -2, -3, -3}));
  expect(Op(6, "Gemm")
             .in(f32({1, 1}, {2}))
             .in(f32({1, 2}, {1, 2}))
             .in(f32({2}, {1, 1}))
             .attr("broadcast", 1),
         f32({1, 2}, {3, 5}));
  const auto dropout = [](int isTest) {
    return Op(6, "Dropout").in(f32({1}, {5})).attr("is_test", isTest);
  };
  expect(dropout(1), f32({1}, {5}));
  EXPECT_EQ(codeOf(dropout(0)), Code::unsupported);
  const auto norm = [](int isTest) {
    const Tensor one = f32({1}, {1});
    return Op(6, "BatchNormalization")
        .in(f32({1, 1, 2}, {3, 5}))
        .in(one)
        .in(one)
        .in(one)
        .in(one)
        .attr("epsilon", 0.0f)
        .attr("is_test", isTest);
  };
  expect(norm(1), f32({1, 1, 2}, {3, 5}));
  EXPECT_EQ(codeOf(norm(0)), Code::unsupported);
}

TEST(Folding, FollowsShapeArithmetic) {
  ModelMaker maker(13);
  maker.input("x", {2, 3, 4}).output("y", {2, 12});
  maker.initializer("zero", {}, Ints{0})
      .initializer("rest", {1}, Ints{-1})
      .initializer("axes", {1}, Ints{0});
  maker.node("Shape", {"x"}, {"s"});
  maker.node("Gather", {"s", "zero"}, {"n"});
  maker.node("Unsqueeze", {"n", "axes"}, {"n1"});
  maker.node("Concat", {"n1", "rest"}, {"target"}).add_attribute()->CopyFrom([] {
    onnx::AttributeProto axis;
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    return axis;
  }());
  maker.node("Reshape", {"x", "target"}, {"y"}, "r");
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->nodeCount(), 1u);
  EXPECT_EQ(graph->nodes().front()->kind, OpKind::Reshape);
}

TEST(Operators, ResizeOfOpset10DividesByTheScaleAndTakesTheNextWhereAxesShrink) {
  const Tensor x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto y = Op(10, "Resize").in(x).constant(f32({4}, {1, 1, 0.6f, 0.6f})).run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({1, 1, 1, 2}, {1, 3})), "");
}

TEST(Operators, ResizeSeesThroughTheRoundingOfAScale) {
  // 1 / f32(1/3) is a little below 3.
  const auto y = Op(13, "Resize")
                     .in(f32({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8}))
                     .absent()
                     .constant(f32({1}, {1.0f / 3}))
                     .attr("coordinate_transformation_mode", "asymmetric")
                     .attr("nearest_mode", "floor")
                     .run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({3}, {0, 3, 6})), "");
}

TEST(Operators, ResizeKeepsInfinityAmongItsNeighbours) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto y = Op(13, "Resize")
                     .in(f32({4}, {kInfinity, 0, 0, 4}))
                     .absent()
                     .constant(f32({1}, {2}))
                     .attr("mode", "linear")
                     .run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({8}, {kInfinity, kInfinity, kInfinity, 0, 0, 1, 3, 4})), "");
}

TEST(Operators, ResizeOfBytesRoundsAndSaturates) {
  const auto y = Op(13, "Resize")
                     .in(u8({4}, {0, 10, 250, 255}))
                     .absent()
                     .constant(f32({1}, {2}))
                     .attr("mode", "cubic")
                     .run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), u8({8}, {0, 0, 0, 65, 195, 255, 255, 255})), "");
}

TEST(Operators, ResizeRefusesWhatItCannotSize) {
  const Tensor x = f32({1, 4}, {1, 2, 3, 4});
  const auto resize = [&](const Tensor& scales) {
    return Op(13, "Resize").in(x).absent().constant(scales);
  };
  EXPECT_THAT(refusal(resize(f32({1}, {2}))), HasSubstr("1 scales, expected 2"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, -2}))), HasSubstr("scale -2 is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, NAN}))), HasSubstr("scale nan is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 1e9f}))), HasSubstr("neighbours"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x)), HasSubstr("neither scales and sizes"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x).absent().absent().in(i64({2}, {1, 8}))),
              HasSubstr("is not known when the model is imported"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 2})).constant(i64({2}, {1, 8}))),
              HasSubstr("both scales and sizes"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x).absent().absent().constant(i64({2}, {1, -8}))),
              HasSubstr("size -8 is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 2})).attr("mode", "lanczos")),
              HasSubstr("mode 'lanczos'"));
  EXPECT_THAT(
      refusal(
          resize(f32({2}, {1, 2})).attr("coordinate_transformation_mode", "tf_crop_and_resize")),
      HasSubstr("needs a roi"));
  EXPECT_THAT(refusal(Op(9, "Upsample").in(x).constant(f32({2}, {1, 0.5f}))),
              HasSubstr("scale 0.5 is below 1"));
}

TEST(Operators, AttentionStaysWholeAndItsKeysAreNotRepeated) {
  const Tensor q = f32({1, 4, 1, 2}, Floats(8, 1)), k = f32({1, 2, 3, 2}, Floats(12, 1));
  const auto graph = Op(23, "Attention").in(q).in(k).in(k).import();
  ASSERT_TRUE(graph) << messageOf(graph);
  int whole = 0;
  for (const auto& node : graph->nodes()) {
    whole += node->kind == OpKind::Attention;
    EXPECT_NE(node->kind, OpKind::Expand);
    EXPECT_NE(node->kind, OpKind::Matmul);
  }
  EXPECT_EQ(whole, 1);
}

TEST(Operators, AttentionWithoutAnyKeyIsZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor q = f32({1, 1, 2, 1}, {1, 1}), k = f32({1, 1, 2, 1}, {1, 1}),
               v = f32({1, 1, 2, 1}, {3, 5});
  const auto y =
      Op(23, "Attention").in(q).in(k).in(v).in(f32({2, 2}, {-kInfinity, -kInfinity, 0, 0})).run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({1, 1, 2, 1}, {0, 4})), "");
}

TEST(Operators, AttentionRefusesWhatDoesNotBelongTogether) {
  const auto ones = [](const Shape& dims) {
    return f32(dims, Floats(static_cast<size_t>(*elementCount(dims)), 1));
  };
  const Tensor q = ones({1, 3, 2, 4}), k = ones({1, 2, 5, 4}), flat = ones({1, 2, 12});
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(k).in(k)),
              HasSubstr("3 heads of queries are no multiple of 2"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(ones({1, 3, 5, 3})).in(ones({1, 3, 5, 3}))),
              HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(flat).in(flat).in(flat)),
              HasSubstr("needs its number of heads"));
  for (const int64_t heads : {int64_t(0), int64_t(-1), int64_t(5)})
    EXPECT_THAT(refusal(Op(23, "Attention").in(flat).in(flat).in(flat).attr("q_num_heads", heads)),
                HasSubstr("does not split into"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).absent().in(q)),
              HasSubstr("go together"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).in(ones({4, 2}))),
              HasSubstr("attn_mask f32[4,2]"));
  EXPECT_THAT(refusal(Op(24, "Attention").in(q).in(q).in(q).attr("left_window_size", int64_t(1))),
              HasSubstr("attribute 'left_window_size' is unknown"));
  EXPECT_THAT(refusal(Op(25, "Attention").in(q).in(q).in(q).attr("left_window_size", int64_t(-2))),
              HasSubstr("left_window_size is -2"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).attr("softmax_precision", int64_t(7))),
              HasSubstr("softmax_precision 7 is no float type"));
}

TEST(Operators, EinsumIsExactAndFindsDiagonals) {
  const int64_t large = (int64_t(1) << 61) + 1; // no double holds it
  const auto product = Op(12, "Einsum")
                           .in(i64({1, 2}, {large, 1}))
                           .in(i64({2, 1}, {1, 2}))
                           .attr("equation", "ij,jk->ik")
                           .run();
  ASSERT_TRUE(product) << product.status().message();
  EXPECT_EQ(difference(product->at(0), i64({1, 1}, {large + 2})), "");
  const auto diagonal = Op(12, "Einsum")
                            .in(f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}))
                            .attr("equation", "iji -> ij")
                            .run();
  ASSERT_TRUE(diagonal) << diagonal.status().message();
  EXPECT_EQ(difference(diagonal->at(0), f32({2, 2}, {1, 3, 6, 8})), "");
  // Implicit: the ellipsis first, then letters that appear once.
  const auto implicit = Op(12, "Einsum")
                            .in(f32({1, 2, 2}, {1, 2, 3, 4}))
                            .in(f32({2, 2, 1}, {1, 10, 100, 1000}))
                            .attr("equation", "...ba,...ac")
                            .run();
  ASSERT_TRUE(implicit) << implicit.status().message();
  EXPECT_EQ(difference(implicit->at(0), f32({2, 2, 1}, {21, 43, 2100, 4300})), "");
}

TEST(Operators, EinsumRefusesEquationsThatDoNotFit) {
  const auto einsum = [](const char* equation) {
    return refusal(Op(12, "Einsum")
                       .in(f32({2, 3}, Floats(6)))
                       .in(f32({3, 2}, Floats(6)))
                       .attr("equation", equation));
  };
  EXPECT_THAT(einsum("ij->i"), HasSubstr("equation has 1 terms but 2 operands"));
  EXPECT_THAT(einsum("ijk,kl"), HasSubstr("term 'ijk' names 3 dims"));
  EXPECT_THAT(einsum("ij,ij"), HasSubstr("dim of 3, another term says 2"));
  EXPECT_THAT(einsum("ij,jk->il"), HasSubstr("'l' of the result is in no term"));
  EXPECT_THAT(einsum("ij,jk->ii"), HasSubstr("names a dim twice"));
  EXPECT_THAT(einsum("i1,jk"), HasSubstr("term 'i1'"));
  EXPECT_THAT(einsum("ij,jk->i->k"), HasSubstr("equation has '->k' in term"));
  EXPECT_THAT(einsum("ij..,jk"), HasSubstr("equation has '..' in term"));
}

TEST(Operators, TransformsHaveALimitAndAnAxis) {
  EXPECT_THAT(refusal(Op(20, "DFT").in(f32({1, 4, 1}, Floats(4))).absent().constant(i64({}, {2}))),
              HasSubstr("axis 2 of f32[1,4,1] holds the parts"));
  EXPECT_THAT(refusal(Op(20, "DFT").in(f32({1, 4, 3}, Floats(12)))), HasSubstr("is no signal"));
  EXPECT_THAT(refusal(Op(20, "DFT").in(f32({1, 4, 1}, Floats(4))).constant(i64({}, {0}))),
              HasSubstr("dft_length is 0"));
  EXPECT_THAT(refusal(Op(20, "DFT").in(f32({1, 8192, 1}, Floats(8192)))),
              HasSubstr("a transform of 8192 to 8192 numbers"));
  EXPECT_THAT(refusal(Op(17, "STFT").in(f32({1, 8, 1}, Floats(8))).constant(i64({}, {0}))),
              HasSubstr("frame_step is 0"));
  EXPECT_THAT(refusal(Op(17, "STFT")
                          .in(f32({1, 8, 1}, Floats(8)))
                          .constant(i64({}, {1}))
                          .absent()
                          .constant(i64({}, {9}))),
              HasSubstr("frames of 9 but a signal of 8"));
}

TEST(Operators, GridSampleLeavesOutWhatIsOutside) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // The right border is infinite, and the points lie to the left of the left one, far beyond, and
  // nowhere.
  const auto y = Op(16, "GridSample")
                     .in(f32({1, 1, 1, 2}, {2, kInfinity}))
                     .in(f32({1, 1, 3, 2}, {-1, 0, 1e30f, 0, kInfinity, 0}))
                     .attr("mode", "bilinear")
                     .run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({1, 1, 1, 3}, {1, 0, 0})), "");
}

TEST(Operators, SamplersRefuseShapesThatDoNotFit) {
  const Tensor x = f32({1, 2, 3, 3}, Floats(18));
  EXPECT_THAT(refusal(Op(16, "GridSample").in(x).in(f32({1, 2, 2, 3}, Floats(12)))),
              HasSubstr("grid f32[1,2,2,3]"));
  EXPECT_THAT(
      refusal(Op(16, "GridSample").in(x).in(f32({1, 1, 1, 2}, Floats(2))).attr("mode", "linear")),
      HasSubstr("mode 'linear' is not nearest, bilinear, bicubic"));
  const Tensor rois = f32({1, 4}, {0, 0, 1, 1});
  EXPECT_THAT(refusal(Op(16, "RoiAlign").in(x).in(rois).in(i64({1}, {0}))),
              HasSubstr("sampling_ratio 0"));
  EXPECT_THAT(refusal(Op(16, "RoiAlign")
                          .in(x)
                          .in(rois)
                          .in(i64({2}, {0, 0}))
                          .attr("sampling_ratio", int64_t(1))),
              HasSubstr("1 regions but batch_indices i64[2]"));
  const Tensor w = f32({1, 2, 2, 2}, Floats(8));
  EXPECT_THAT(refusal(Op(19, "DeformConv").in(x).in(w).in(f32({1, 8, 1, 2}, Floats(16)))),
              HasSubstr("offset f32[1,8,1,2], expected 1x8x2x2"));
  EXPECT_THAT(refusal(Op(19, "DeformConv")
                          .in(x)
                          .in(w)
                          .in(f32({1, 8, 2, 2}, Floats(32)))
                          .attr("offset_group", int64_t(3))),
              HasSubstr("2 channels do not fit offset_group 3"));
  EXPECT_THAT(
      refusal(Op(20, "AffineGrid").in(f32({1, 2, 3}, Floats(6))).constant(i64({4}, {2, 1, 2, 2}))),
      HasSubstr("expected 2x2x3"));
}

TEST(Operators, LinearAttentionCarriesItsState) {
  const auto of = [](int64_t places) {
    const Tensor x = f32({1, places, 2}, Floats(static_cast<size_t>(places) * 2, 1));
    return Op(27, "LinearAttention")
        .in(x)
        .in(x)
        .in(x)
        .attr("q_num_heads", int64_t(2))
        .attr("kv_num_heads", int64_t(2))
        .outputs(2);
  };
  EXPECT_THAT(refusal(of(4)), HasSubstr("update_rule 'gated_delta' takes a decay and a beta"));
  const auto y = of(2).attr("update_rule", "linear").attr("scale", 1.0f).run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({1, 2, 2}, {1, 1, 2, 2})), "");
  EXPECT_EQ(difference(y->at(1), f32({1, 2, 1, 1}, {2, 2})), "");
  const auto far = of(300).attr("update_rule", "linear").run(),
             none = of(0).attr("update_rule", "linear").run();
  ASSERT_TRUE(far && none) << messageOf(far) << messageOf(none);
  EXPECT_EQ(difference(far->at(1), f32({1, 2, 1, 1}, {300, 300})), "");
  EXPECT_EQ(difference(none->at(0), f32({1, 0, 2}, {})), "");
}

TEST(Folding, DoesNotMakeAModelGrow) {
  ModelMaker maker(13);
  maker.output("big").output("small");
  maker.initializer("row", {1, 64}, Floats(64)).initializer("column", {64, 1}, Floats(64));
  maker.node("Add", {"row", "column"}, {"big"}); // 16 KB out of 512 bytes
  maker.node("Add", {"row", "row"}, {"small"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_FALSE(graph->outputs()[0]->isConstant());
  EXPECT_TRUE(graph->outputs()[1]->isConstant());
  auto generous = maker.import({.foldLimitBytes = 1 << 20});
  ASSERT_TRUE(generous) << messageOf(generous);
  EXPECT_TRUE(generous->outputs()[0]->isConstant());
}

TEST(Operators, TopKTakesItsCountFromAnAttributeAndLaterFromAnInput) {
  const Tensor x = f32({2, 4}, {3, 1, 3, 2, -1, 0, 5, 5});
  const Tensor largest = f32({2, 2}, {3, 3, 5, 5}), places = i64({2, 2}, {0, 2, 2, 3});
  for (const int opset : {1, 7, 9, 10, 11, 24}) {
    Op top(opset, "TopK");
    top.in(x).outputs(2);
    opset < 10 ? top.attr("k", int64_t(2)) : top.constant(i64({1}, {2}));
    const auto results = top.run();
    ASSERT_TRUE(results) << opset << ": " << results.status().message();
    EXPECT_EQ(difference(results->at(0), largest), "") << opset;
    EXPECT_EQ(difference(results->at(1), places), "") << opset;
  }
  const auto smallest = Op(11, "TopK")
                            .in(x)
                            .constant(i64({1}, {1}))
                            .attr("largest", int64_t(0))
                            .attr("axis", int64_t(0))
                            .attr("sorted", int64_t(0))
                            .outputs(2)
                            .run();
  ASSERT_TRUE(smallest) << smallest.status().message();
  EXPECT_EQ(difference(smallest->at(0), f32({1, 4}, {-1, 0, 3, 2})), "");
  EXPECT_EQ(difference(smallest->at(1), i64({1, 4}, {1, 1, 0, 0})), "");
  EXPECT_THAT(refusal(Op(11, "TopK").in(x).in(i64({1}, {2})).outputs(2)),
              HasSubstr("K ('x1') is not known when the model is imported"));
  EXPECT_THAT(refusal(Op(11, "TopK").in(x).constant(i64({1}, {5})).outputs(2)),
              HasSubstr("k is 5 but axis 1 has 4 elements (sort_c1)"));
  EXPECT_THAT(refusal(Op(10, "TopK").in(x).outputs(2)), HasSubstr("input 'K' is missing"));
  EXPECT_THAT(refusal(Op(9, "TopK").in(x).outputs(2)), HasSubstr("attribute 'k' is missing"));
  EXPECT_THAT(
      refusal(Op(10, "TopK").in(x).constant(i64({1}, {1})).attr("largest", int64_t(0)).outputs(2)),
      HasSubstr("attribute 'largest' is unknown to TopK in opset 10"));
}

} // namespace
} // namespace candela::test
