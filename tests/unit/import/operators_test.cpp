// What changed between opsets: each form of an operator gives what that version of ONNX says.

#include <array>
#include <bit>

#include <gmock/gmock.h>

#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "tests/unit/import/model_maker.h"
#include "tests/unit/import/tensor_check.h"

namespace candela::test {
namespace {

using graph::OpKind;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Tensor f32(Shape dims, const Floats& values) { return Tensor::of<float>(Elem::f32_, std::move(dims), values); }
Tensor i64(Shape dims, const Ints& values) { return Tensor::of<int64_t>(Elem::i64_, std::move(dims), values); }
Tensor boolean(Shape dims, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(Elem::bool_, std::move(dims), values);
}

/// One operator on inputs x0, x1, ...; those that are `constant` are initializers.
class Op {
public:
  Op(int opset, std::string opType) : maker_(opset), opType_(std::move(opType)) {}
  /// Of another domain.
  Op(const std::string& domain, std::string opType) : Op(18, std::move(opType)) {
    maker_.setOpset(domain, 1);
    domain_ = domain;
  }
  Op& in(const Tensor& tensor) {
    const std::string name = fmt::format("x{}", names_.size());
    names_.push_back(name);
    maker_.input(name, {tensor.dims.begin(), tensor.dims.end()}, elemToOnnx(tensor.elem));
    inputs_.push_back(tensor);
    return *this;
  }
  Op& constant(const Tensor& tensor) {
    const std::string name = fmt::format("x{}", names_.size());
    names_.push_back(name);
    TensorProto& proto = *maker_.proto.mutable_graph()->add_initializer();
    proto.set_name(name);
    proto.set_data_type(elemToOnnx(tensor.elem));
    for (int64_t dim : tensor.dims) proto.add_dims(dim);
    proto.set_raw_data(tensor.bytes.data(), tensor.sizeBytes());
    return *this;
  }
  Op& absent() {
    names_.push_back("");
    return *this;
  }
  template <typename T> Op& attr(const std::string& name, const T& value) {
    setAttr(attributes_, name, value);
    return *this;
  }
  Op& outputs(int count) {
    outputs_ = count;
    return *this;
  }
  Result<graph::Graph> import() {
    ModelMaker maker = maker_;
    std::vector<std::string> outputs;
    for (int i = 0; i < outputs_; ++i) {
      outputs.push_back(fmt::format("y{}", i));
      maker.output(outputs.back());
    }
    auto& node = maker.node(opType_, names_, outputs, "op");
    node.set_domain(domain_);
    *node.mutable_attribute() = attributes_.attribute();
    return maker.import();
  }
  /// The results, or the failure without its prefix.
  Result<std::vector<Tensor>> run() {
    const auto graph = import();
    if (!graph) {
      const std::string prefix = fmt::format("m.onnx: node 'op' ({}): ", opType_), message = graph.status().message();
      return Status(graph.status().code(), message.starts_with(prefix) ? message.substr(prefix.size()) : message);
    }
    if (const Status status = graph::verify(*graph); !status) return status;
    return reference::run(*graph, inputs_);
  }

private:
  ModelMaker maker_;
  std::string opType_, domain_;
  std::vector<std::string> names_;
  std::vector<Tensor> inputs_;
  onnx::NodeProto attributes_;
  int outputs_ = 1;
};

void expect(Op op, const Tensor& want) {
  const auto results = op.run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), want), "");
}
std::string refusal(Op op) { return messageOf(op.run()); }
Code codeOf(Op op) { return op.run().status().code(); }

// --- Elementwise
// ---------------------------------------------------------------------------------------------------------

TEST(Clip, LimitsWereAttributesBeforeOpset11) {
  const Tensor x = f32({3}, {-2, 0.5f, 9});
  expect(Op(6 + 1, "Clip").in(x).attr("min", -1.0f).attr("max", 6.0f), f32({3}, {-1, 0.5f, 6}));
  expect(Op(10, "Clip").in(x).attr("max", 6.0f), f32({3}, {-2, 0.5f, 6}));
  expect(Op(12, "Clip").in(x).constant(f32({}, {0})).constant(f32({1}, {6})), f32({3}, {0, 0.5f, 6}));
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
  const Tensor a = f32({6}, {-7.5f, 7.5f, 5, -5, 5, INFINITY}), b = f32({6}, {2, -2, INFINITY, INFINITY, 0, 2});
  expect(Op(28, "Mod").in(a).in(b), f32({6}, {0.5f, -0.5f, 5, INFINITY, NAN, NAN}));
  expect(Op(13, "Mod").in(a).in(b).attr("fmod", int64_t(1)), f32({6}, {-1.5f, 1.5f, 5, -5, NAN, NAN}));
}

TEST(Elementwise, PowersOfIntegersAreExact) {
  const auto i32 = [](const std::vector<int32_t>& v) {
    return Tensor::of<int32_t>(Elem::i32_, {int64_t(v.size())}, v);
  };
  expect(Op(15, "Pow").in(i64({3}, {3, -3, 0})).in(i64({3}, {39, 39, 0})),
         i64({3}, {4052555153018976267, -4052555153018976267, 1}));
  // An odd exponent beyond 32 bits, and one that only an unsigned type has.
  expect(Op(15, "Pow").in(i32({-1, 3})).in(i64({2}, {8589934593, 2})), i32({-1, 9}));
  expect(Op(15, "Pow").in(i32({-1})).in(Tensor::of<uint64_t>(Elem::u64_, {1}, {UINT64_MAX})), i32({-1}));
  expect(Op(15, "Pow").in(i32({9, 2})).in(f32({2}, {0.5f, 3.5f})), i32({3, 11}));
  // exp(2 log 8) may be 63.99: a whole exponent rounds before the cast cuts off. Not a negative one: 2^-1 is 0.
  const Op mixed = Op(15, "Pow").in(i32({8, 5, 2, 1})).in(f32({4}, {2, 2, -1, -2}));
  expect(mixed, i32({64, 25, 0, 1}));
  const auto graph = Op(mixed).import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(std::ranges::count(graph->nodes(), OpKind::RoundEven, [](const auto& node) { return node->kind; }), 1);
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
  EXPECT_THAT(refusal(Op(11, "BitShift").in(x).in(by)), HasSubstr("direction '' is not LEFT or RIGHT"));
  expect(Op(18, "BitwiseNot").in(Tensor::of<uint64_t>(Elem::u64_, {1}, {1})),
         Tensor::of<uint64_t>(Elem::u64_, {1}, {UINT64_MAX - 1}));
}

TEST(Elementwise, SignsAndShrinksOfIntegersAreExact) {
  expect(Op(13, "Sign").in(i64({3}, {INT64_MIN, 0, 7})), i64({3}, {-1, 0, 1}));
  expect(Op(13, "Sign").in(f32({4}, {-INFINITY, 0, 0.25f, NAN})), f32({4}, {-1, 0, 1, NAN}));
  expect(Op(9, "Shrink").in(i64({4}, {9007199254740993, -3, 2, 1})).attr("lambd", 1.5f).attr("bias", 1.0f),
         i64({4}, {9007199254740992, -2, 1, 0}));
  expect(Op(9, "Shrink").in(Tensor::of<uint8_t>(Elem::u8_, {3}, {200, 2, 1})).attr("lambd", 1.5f).attr("bias", 0.5f),
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
  EXPECT_THAT(refusal(Op(20, "IsInf").in(i64({1}, {0}))), HasSubstr("operand is i64[1], expected floats"));
}

TEST(Cast, ConvertsBetweenTypes) {
  expect(Op(13, "Cast").in(f32({3}, {-1.7f, 0, 2.5f})).attr("to", TensorProto::INT64), i64({3}, {-1, 0, 2}));
  expect(Op(13, "Cast").in(f32({2}, {0, 0.1f})).attr("to", TensorProto::BOOL), boolean({2}, {0, 1}));
  expect(Op(19, "Cast").in(i64({2}, {3, -4})).attr("to", TensorProto::FLOAT).attr("saturate", 1), f32({2}, {3, -4}));
  expect(Op(15, "CastLike").in(f32({1}, {2.9f})).in(i64({1}, {0})), i64({1}, {2}));
  EXPECT_EQ(codeOf(Op(13, "Cast").in(f32({1}, {0})).attr("to", TensorProto::STRING)), Code::unsupported);
}

Tensor stored(Elem elem, Shape dims, const std::vector<uint8_t>& bytes) {
  return Tensor::of<uint8_t>(elem, std::move(dims), bytes);
}

TEST(Cast, GivesStorageTypes) {
  const Tensor x = f32({3}, {1000, -1000, NAN});
  const auto cast = [](const Tensor& from, int to) { return Op(28, "Cast").in(from).attr("to", int64_t(to)); };
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
    return Op(24, "Cast").in(x).attr("to", int64_t(24)).attr("round_mode", mode).attr("saturate", saturate);
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
  const auto blocks = [&](const Tensor& by) { return Op(21, "QuantizeLinear").in(x).in(by).attr("block_size", 2); };
  expect(blocks(scale).attr("output_dtype", 3), stored(Elem::i8_, {2, 3}, {1, 2, 2, 4, 5, 3}));
  expect(blocks(scale).in(stored(Elem::u4_, {2, 2}, {0x10, 0x9f})), stored(Elem::u4_, {2, 3}, {0x21, 0xf3, 0xcf}));
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
// ------------------------------------------------------------------------------------------------------------

TEST(Reshape, ResolvesCopiedAndOpenDims) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto shaped = [&](Ints shape) { return Op(13, "Reshape").in(x).constant(i64({int64_t(shape.size())}, shape)); };
  expect(shaped({0, -1, 1}), f32({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  expect(shaped({6}), f32({6}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(refusal(shaped({4, -1})), HasSubstr("f32[2,3] has 6 elements, which shape [4,-1] cannot hold"));
  EXPECT_THAT(refusal(shaped({-1, -1})), HasSubstr("more than one dim open"));
  EXPECT_THAT(refusal(shaped({7})), HasSubstr("has 6 elements, but shape [7] has 7"));
  EXPECT_THAT(refusal(shaped({1, 1, 0})), HasSubstr("copies dim 2 of an input of rank 2"));
  EXPECT_THAT(refusal(shaped({-6})), HasSubstr("shape [-6] has a dim of -6"));
}

TEST(Reshape, ZeroMeansZeroOnlyWhenAllowed) {
  const Tensor empty = f32({0, 3}, {});
  const Tensor shape = i64({2}, {3, 0});
  expect(Op(14, "Reshape").in(empty).constant(shape).attr("allowzero", 1), f32({3, 0}, {}));
  EXPECT_THAT(refusal(Op(13, "Reshape").in(empty).constant(shape)), HasSubstr("has 0 elements, but shape [3,0] has 9"));
  EXPECT_THAT(refusal(Op(13, "Reshape").in(empty).constant(i64({2}, {0, 3})).attr("allowzero", 1)),
              HasSubstr("is unknown to Reshape"));
}

TEST(Squeeze, AxesBecameAnOperandAtOpset13) {
  const Tensor x = f32({1, 2, 1}, {1, 2}), y = f32({1, 2}, {1, 2});
  expect(Op(11, "Squeeze").in(x).attr("axes", Ints{-1}), y);
  expect(Op(13, "Squeeze").in(x).constant(i64({1}, {-1})), y);
  expect(Op(13, "Squeeze").in(x), f32({2}, {1, 2}));
  EXPECT_THAT(refusal(Op(13, "Squeeze").in(x).constant(i64({1}, {1}))), HasSubstr("dim 1 of f32[1,2,1] is 2, not 1"));
  EXPECT_THAT(refusal(Op(13, "Squeeze").in(x).attr("axes", Ints{2})), HasSubstr("attribute 'axes' is unknown"));
  expect(Op(11, "Unsqueeze").in(y).attr("axes", Ints{2}), x);
  expect(Op(13, "Unsqueeze").in(y).constant(i64({1}, {-1})), x);
  EXPECT_THAT(refusal(Op(13, "Unsqueeze").in(y).constant(i64({2}, {1, -3}))), HasSubstr("axis -3 is named twice"));
  EXPECT_THAT(refusal(Op(13, "Unsqueeze").in(y)), HasSubstr("input 'axes' is missing"));
}

TEST(Slice, BoundsBecameOperandsAtOpset10) {
  const Tensor x = f32({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect(Op(9, "Slice").in(x).attr("starts", Ints{1}).attr("ends", Ints{3}).attr("axes", Ints{1}),
         f32({2, 2}, {1, 2, 5, 6}));
  const auto slice = [&](Ints starts, Ints ends, Ints axes, Ints steps) {
    const auto list = [](const Ints& values) { return i64({int64_t(values.size())}, values); };
    return Op(13, "Slice").in(x).constant(list(starts)).constant(list(ends)).constant(list(axes)).constant(list(steps));
  };
  expect(slice({1}, {3}, {1}, {1}), f32({2, 2}, {1, 2, 5, 6}));
  expect(slice({-1, 0}, {INT64_MIN, INT64_MAX}, {-1, 0}, {-2, 1}), f32({2, 2}, {3, 1, 7, 5}));
  expect(slice({10}, {-10}, {1}, {-1}), f32({2, 4}, {3, 2, 1, 0, 7, 6, 5, 4}));
  expect(slice({0}, {INT64_MAX}, {1}, {INT64_MAX}), f32({2, 1}, {0, 4}));
  expect(slice({3}, {0}, {1}, {INT64_MIN}), f32({2, 1}, {3, 7}));
  expect(slice({3}, {1}, {1}, {1}), f32({2, 0}, {}));
  EXPECT_THAT(refusal(slice({0}, {1}, {1}, {0})), HasSubstr("step 0 along axis 1"));
  EXPECT_THAT(refusal(slice({0}, {1, 2}, {1}, {1})), HasSubstr("1 starts but 2 ends, 1 axes and 1 steps"));
  EXPECT_THAT(refusal(slice({0}, {1}, {2}, {1})), HasSubstr("axis 2 is out of range for rank 2"));
}

TEST(Pad, HasThreeForms) {
  const Tensor x = f32({1, 3}, {1, 2, 3});
  const Tensor y = f32({1, 5}, {9, 1, 2, 3, 9});
  const Ints pads = {0, 1, 0, 1};
  expect(Op(10, "Pad").in(x).attr("pads", pads).attr("value", 9.0f), y);
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).constant(f32({}, {9})), y);
  expect(Op(18, "Pad").in(x).constant(i64({2}, {1, 1})).constant(f32({}, {9})).constant(i64({1}, {-1})), y);
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "reflect"), f32({1, 5}, {2, 1, 2, 3, 2}));
  expect(Op(11, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "edge"), f32({1, 5}, {1, 1, 2, 3, 3}));
  expect(Op(19, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "wrap"), f32({1, 5}, {3, 1, 2, 3, 1}));
  expect(Op(11, "Pad").in(x).constant(i64({4}, {0, -1, 0, 1})), f32({1, 3}, {2, 3, 0}));
  EXPECT_THAT(refusal(Op(18, "Pad").in(x).constant(i64({4}, pads)).attr("mode", "wrap")), HasSubstr("needs opset 19"));
  EXPECT_THAT(refusal(Op(11, "Pad").in(x).constant(i64({2}, {1, 1}))), HasSubstr("2 pads for 2 axes"));
  EXPECT_THAT(refusal(Op(17, "Pad").in(x).constant(i64({2}, {1, 1})).absent().constant(i64({1}, {1}))),
              HasSubstr("input 'axes' needs opset 18, the model has 17"));
}

TEST(Flatten, TakesAnyAxis) {
  const Tensor x = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  expect(Op(13, "Flatten").in(x), f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect(Op(13, "Flatten").in(x).attr("axis", 3), f32({6, 1}, {1, 2, 3, 4, 5, 6}));
  expect(Op(13, "Flatten").in(x).attr("axis", -1), f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(refusal(Op(13, "Flatten").in(x).attr("axis", 4)), HasSubstr("axis 4 is out of range for rank 3"));
}

TEST(Movement, ExpandsTransposesAndGathers) {
  expect(Op(13, "Expand").in(f32({2, 1}, {1, 2})).constant(i64({3}, {2, 1, 2})),
         f32({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2}));
  expect(Op(13, "Transpose").in(f32({1, 3}, {1, 2, 3})), f32({3, 1}, {1, 2, 3}));
  expect(Op(13, "Gather").in(f32({3}, {1, 2, 3})).in(i64({2}, {-1, 0})), f32({2}, {3, 1}));
  expect(Op(13, "Concat").in(f32({1, 1}, {1})).in(f32({1, 2}, {2, 3})).attr("axis", -1), f32({1, 3}, {1, 2, 3}));
}

// --- Places and pieces
// ---------------------------------------------------------------------------------------------------------

TEST(BitCast, KeepsBitsOfTheSameWidth) {
  const Tensor x = f32({3}, {-0.0f, 1, -2.5f});
  const Tensor bits = Tensor::of<int32_t>(Elem::i32_, {3}, {INT32_MIN, 0x3f800000, -1071644672});
  expect(Op(26, "BitCast").in(x).attr<int64_t>("to", 6), bits);
  expect(Op(26, "BitCast").in(bits).attr<int64_t>("to", 1), x);
  expect(Op(26, "BitCast").in(i64({2}, {-1, 5})).attr<int64_t>("to", 13),
         Tensor::of<uint64_t>(Elem::u64_, {2}, {UINT64_MAX, 5}));
  EXPECT_THAT(refusal(Op(26, "BitCast").in(x).attr<int64_t>("to", 7)), HasSubstr("f32 have 32 bits, those of i64 64"));
}

TEST(Split, LastPieceMayFallShortSinceOpset18) {
  const Tensor x = f32({7}, {0, 1, 2, 3, 4, 5, 6});
  const auto last = [&](Op op, int count) {
    const auto results = op.in(x).outputs(count).run();
    return results ? results->back().dims[0] : -1;
  };
  EXPECT_EQ(last(Op(18, "Split").attr<int64_t>("num_outputs", 4), 4), 1);
  EXPECT_EQ(last(Op(18, "Split").attr<int64_t>("num_outputs", 5), 5), -1); // 2 each leave less than nothing
  EXPECT_EQ(last(Op(12, "Split").attr("split", Ints{4, 0, 3}), 3), 3);
  EXPECT_EQ(last(Op(12, "Split").attr("split", Ints{4, 2}), 2), -1);
  EXPECT_THAT(refusal(Op(13, "Split").in(x).outputs(2)), HasSubstr("a dim of 7 is not 2 equal pieces"));
}

TEST(Trilu, DiagonalMayBeKnownAtRunTimeOnly) {
  const Tensor x = f32({2, 3}, {1, NAN, 3, 4, 5, 6});
  expect(Op(14, "Trilu").in(x).in(i64({}, {2})), f32({2, 3}, {0, 0, 3, 0, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {-1})).attr<int64_t>("upper", 0), f32({2, 3}, {0, 0, 0, 4, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {INT64_MIN})).attr<int64_t>("upper", 0), f32({2, 3}, {0, 0, 0, 0, 0, 0}));
  expect(Op(14, "Trilu").in(x).in(i64({}, {INT64_MAX})).attr<int64_t>("upper", 0), x);
}

TEST(Scatter, PlacesOutsideWriteNothing) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  // [0,5] would be the last element of the next row, 2^32 the first one in 32 bits.
  const Tensor tuples = i64({4, 2}, {0, 5, 1, -1, -3, 0, int64_t(1) << 32, 0});
  expect(Op(18, "ScatterND").in(x).in(tuples).in(f32({4}, {10, 20, 30, 40})), f32({2, 3}, {0, 1, 2, 3, 4, 20}));
  const Tensor columns = i64({2, 2}, {3, -1, -4, 1});
  expect(Op(18, "ScatterElements").in(x).in(columns).in(f32({2, 2}, {10, 20, 30, 40})).attr<int64_t>("axis", 1),
         f32({2, 3}, {0, 1, 20, 3, 40, 5}));
  EXPECT_THAT(refusal(Op(18, "ScatterND").in(x).constant(tuples).in(f32({4}, {10, 20, 30, 40}))),
              HasSubstr("index 5 is outside of a dim of 3"));
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
  EXPECT_THAT(refusal(scatter(f32({3}, {5, 6, 7}), f32({3}, {2, 3, -1}), "sub")), HasSubstr("reduction 'sub'"));
}

TEST(Gather, TuplesMayHaveBatches) {
  const Tensor x = f32({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect(Op(12, "GatherND").in(x).in(i64({2, 1, 1}, {1, -2})).attr<int64_t>("batch_dims", 1),
         f32({2, 1, 3}, {3, 4, 5, 6, 7, 8}));
  expect(Op(12, "GatherND").in(x).in(i64({2, 2}, {1, -1, -2, 0})), f32({2, 3}, {9, 10, 11, 0, 1, 2}));
  expect(Op(13, "GatherElements").in(f32({2, 2}, {1, 2, 3, 4})).in(i64({1, 2}, {-1, 0})), f32({1, 2}, {3, 2}));
  EXPECT_THAT(refusal(Op(12, "GatherND").in(x).in(i64({1, 4}, {0, 0, 0, 0}))), HasSubstr("4 indices for each place"));
  EXPECT_THAT(refusal(Op(12, "GatherND").in(f32({0, 3}, {})).in(i64({1, 1}, {0}))), HasSubstr("empty"));
}

TEST(TensorScatter, EndsOrGoesAround) {
  const Tensor x = f32({2, 3, 1}, {0, 1, 2, 3, 4, 5}), update = f32({2, 2, 1}, {10, 20, 30, 40});
  const Tensor places = i64({2}, {2, 1});
  expect(Op(24, "TensorScatter").in(x).in(update).in(places), f32({2, 3, 1}, {0, 1, 10, 3, 30, 40}));
  expect(Op(24, "TensorScatter").in(x).in(update).in(places).attr("mode", "circular"),
         f32({2, 3, 1}, {20, 1, 10, 3, 30, 40}));
  expect(Op(24, "TensorScatter").in(x).in(update), f32({2, 3, 1}, {10, 20, 2, 30, 40, 5}));
}

TEST(OneHot, NegativeIndicesCountSinceOpset11) {
  const Tensor index = i64({3}, {-1, 1, 7}), values = f32({2}, {-2, 5});
  expect(Op(11, "OneHot").in(index).constant(i64({}, {2})).in(values), f32({3, 2}, {-2, 5, -2, 5, -2, -2}));
  expect(Op(9, "OneHot").in(index).constant(f32({1}, {2})).in(values), f32({3, 2}, {-2, -2, -2, 5, -2, -2}));
  expect(
      Op(11, "OneHot").in(f32({2}, {1.9f, 0})).constant(i64({}, {2})).in(boolean({2}, {0, 1})).attr<int64_t>("axis", 0),
      boolean({2, 2}, {0, 1, 1, 0}));
  EXPECT_EQ(codeOf(Op(11, "OneHot").in(index).in(i64({}, {2})).in(values)), Code::unsupported);
}

TEST(CumSum, IsExactInIntegersAndRoundsOnceInHalves) {
  const int64_t big = (int64_t(1) << 53) + 1;
  expect(Op(14, "CumSum").in(i64({3}, {big, 1, -big})).constant(i64({}, {0})), i64({3}, {big, big + 1, 1}));
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
  expect(Op(26, "CumProd").in(i64({4}, {2, 3, -1, 5})).constant(i64({1}, {0})), i64({4}, {2, 6, -6, -30}));
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

// --- What data selects
// ---------------------------------------------------------------------------------------------------

TEST(Selection, IsAsLongAsItsMaskHasTrues) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect(Op(11, "Compress").constant(x).constant(boolean({3}, {0, 1, 1})), f32({2}, {2, 3}));
  expect(Op(11, "Compress").in(x).constant(boolean({2}, {0, 1})).attr("axis", int64_t(-1)), f32({2, 1}, {2, 4}));
  expect(Op(11, "Compress").in(x).constant(boolean({2}, {0, 0})).attr("axis", int64_t(0)), f32({0, 2}, {}));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).in(boolean({2}, {0, 1}))),
              HasSubstr("the shape of its result is known at run only"));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).constant(boolean({7}, {0, 0, 0, 1, 0, 1, 1}))),
              HasSubstr("2 of a condition of 7 are true beyond the dim of 4"));
  EXPECT_THAT(refusal(Op(11, "Compress").in(x).constant(i64({2}, {0, 1}))), HasSubstr("expected a vector of bool"));

  expect(Op(13, "NonZero").constant(f32({2, 3}, {0, NAN, -0.0f, 5, 0, -1})), i64({2, 3}, {0, 1, 1, 1, 0, 2}));
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
// ---------------------------------------------------------------------------------------------------------

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
  EXPECT_EQ(threefry({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}), (Words{0xc4923a9c, 0x483df7a0}));
  for (const float seed : {0.0f, 7.0f, -1.5e9f}) {
    constexpr uint32_t kHalf = 1001; // too many to be folded
    Floats want(2 * kHalf - 1);
    std::vector<double> wide(kHalf);
    for (uint32_t i = 0; i < kHalf; ++i) {
      const Words words = threefry({i, 0}, {std::bit_cast<uint32_t>(seed), 0});
      want[i] = static_cast<float>(words[0] >> 8) * 0x1p-24f;
      if (i + 1 < kHalf) want[i + kHalf] = static_cast<float>(words[1] >> 8) * 0x1p-24f;
      wide[i] = (static_cast<double>(words[0] >> 5) * 0x1p26 + static_cast<double>(words[1] >> 6)) * 0x1p-53;
    }
    const Ints shape{1, 2 * kHalf - 1};
    expect(Op(22, "RandomUniform").attr("seed", seed).attr("shape", shape), f32(shape, want));
    expect(Op(22, "RandomUniformLike").in(Tensor::of<double>(Elem::f64_, {kHalf}, wide)).attr("seed", seed),
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
    const auto results = graph ? reference::run(*graph, {}) : Result<std::vector<Tensor>>(graph.status());
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
  const Tensor flat =
      first(Op(22, "RandomUniform").attr("seed", 3.0f).attr("low", -1.0f).attr("high", 3.0f).attr("shape", shape));
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
  const Tensor coin = first(Op(22, "Bernoulli").in(f32(shape, Floats(20001, 0.3f))).attr("dtype", int64_t(7)));
  ASSERT_EQ(coin.elem, Elem::i64_);
  expectMean(coin, 0.3, std::sqrt(0.21), [](double x) { return x; });
  expect(Op(22, "Bernoulli").in(f32({4}, {0, 1, 0, 1})), f32({4}, {0, 1, 0, 1}));

  // exp gives 1 : 0 : 2 : 5.
  const Tensor classes = f32({1, 4}, {0, -INFINITY, std::log(2.0f), std::log(5.0f)});
  const Tensor picks = first(Op(22, "Multinomial").in(classes).attr("sample_size", int64_t(20001)).attr("seed", 1.0f));
  ASSERT_EQ(picks.elem, Elem::i32_);
  expectMean(picks, 1 / 8.0, std::sqrt(7) / 8, [](double x) { return double(x == 0); });
  expectMean(picks, 0, 0, [](double x) { return double(x == 1 || x < 0 || x > 3); });
  expectMean(picks, 5 / 8.0, std::sqrt(15) / 8, [](double x) { return double(x == 3); });
}

TEST(Random, DropoutScalesWhatItKeeps) {
  const Tensor x = f32({20001}, Floats(20001, 3));
  const auto dropout = [&](const Tensor& ratio, bool training) {
    return Op(22, "Dropout").in(x).in(ratio).in(boolean({}, {training})).attr("seed", int64_t(1)).outputs(2).run();
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
  EXPECT_THAT(refusal(Op(22, "RandomNormal").attr("shape", Ints{2, -1})), HasSubstr("impossible shape [2,-1]"));
  EXPECT_THAT(refusal(Op(22, "RandomUniform").attr("shape", Ints{1 << 20, 1 << 20})), HasSubstr("at most"));
  EXPECT_THAT(refusal(Op(22, "RandomUniformLike").in(i64({2}, {0, 0}))), HasSubstr("random i64, expected floats"));
  EXPECT_THAT(refusal(Op(22, "Multinomial").in(f32({4}, {1, 2, 3, 4}))), HasSubstr("expected floats [batch, classes]"));
  EXPECT_THAT(refusal(Op(22, "Multinomial").in(f32({1, 2}, {1, 2})).attr("sample_size", int64_t(0))),
              HasSubstr("sample_size is 0"));
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
  expect(Op(9, "ConstantOfShape").constant(i64({1}, {2})).attr("value", tensorProto("", {1}, Ints{5})),
         i64({2}, {5, 5}));
  auto huge = Op(9, "ConstantOfShape").constant(i64({2}, {1 << 20, 1 << 20})).import();
  ASSERT_TRUE(huge) << messageOf(huge);
  EXPECT_EQ(huge->outputs()[0]->payload().form(), Payload::Form::splat);
  EXPECT_THAT(refusal(Op(9, "ConstantOfShape").constant(i64({1}, {-1}))), HasSubstr("impossible shape [-1]"));
}

TEST(Range, CountsItsElements) {
  expect(Op(11, "Range").constant(i64({}, {10})).constant(i64({}, {4})).constant(i64({}, {-3})), i64({2}, {10, 7}));
  expect(Op(11, "Range").constant(f32({}, {1})).constant(f32({}, {2})).constant(f32({}, {0.25f})),
         f32({4}, {1, 1.25f, 1.5f, 1.75f}));
  expect(Op(11, "Range").constant(i64({}, {5})).constant(i64({}, {1})).constant(i64({}, {1})), i64({0}, {}));
  EXPECT_THAT(refusal(Op(11, "Range").constant(i64({}, {0})).constant(i64({}, {1})).constant(i64({}, {0}))),
              HasSubstr("has no end"));
  EXPECT_THAT(refusal(Op(11, "Range").constant(f32({}, {0})).constant(f32({}, {INFINITY})).constant(f32({}, {1}))),
              HasSubstr("has no end"));
  EXPECT_EQ(codeOf(Op(11, "Range").in(i64({}, {0})).constant(i64({}, {1})).constant(i64({}, {1}))), Code::unsupported);
}

// --- Windows
// -------------------------------------------------------------------------------------------------------------

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
  EXPECT_EQ(padsOf(conv("NOTSET").attr("pads", Ints{1, 0, 0, 1}), OpKind::Conv), (Ints{1, 0, 0, 1}));
  EXPECT_THAT(refusal(conv("SAME")), HasSubstr("auto_pad 'SAME' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

TEST(Conv, WorksOverOneToThreeDims) {
  expect(Op(11, "Conv").in(f32({1, 1, 3}, {1, 2, 3})).constant(f32({1, 1, 2}, {1, 10})).constant(f32({1}, {100})),
         f32({1, 1, 2}, {121, 132}));
  expect(Op(11, "Conv").in(f32({1, 1, 1, 2, 2}, {1, 2, 3, 4})).in(f32({1, 1, 1, 2, 2}, {1, 1, 1, 1})),
         f32({1, 1, 1, 1, 1}, {10}));
  expect(Op(22, "Conv")
             .in(f32({1, 2, 1, 1}, {3, 4}))
             .in(f32({2, 1, 1, 1}, {10, 100}))
             .attr("group", 2)
             .attr("kernel_shape", Ints{1, 1}),
         f32({1, 2, 1, 1}, {30, 400}));
}

TEST(Conv, RefusesAttributesThatDoNotFit) {
  const auto conv = [] { return Op(11, "Conv").in(f32({1, 1, 5}, Floats(5))).in(f32({1, 1, 2}, Floats(2))); };
  EXPECT_THAT(refusal(conv().attr("strides", Ints{1, 1})), HasSubstr("attribute 'strides' has 2 values, expected 1"));
  EXPECT_THAT(refusal(conv().attr("strides", Ints{0})), HasSubstr("attribute 'strides' has value 0, expected 1 to"));
  EXPECT_THAT(refusal(conv().attr("pads", Ints{-1, 0})), HasSubstr("attribute 'pads' has value -1"));
  EXPECT_THAT(refusal(conv().attr("kernel_shape", Ints{3})), HasSubstr("kernel_shape [3] but weight f32[1,1,2]"));
  EXPECT_THAT(refusal(conv().attr("dilations", Ints{INT64_MAX})),
              HasSubstr("attribute 'dilations' has value 9223372036854775807"));
  EXPECT_THAT(refusal(Op(11, "Conv").in(f32({5}, Floats(5))).in(f32({1, 1, 2}, Floats(2)))), HasSubstr("has rank 1"));
}

TEST(Pools, GainTheirAttributesByVersion) {
  const Tensor x = f32({1, 1, 4}, {1, 4, 2, 3});
  expect(Op(8, "MaxPool").in(x).attr("kernel_shape", Ints{3}).attr("strides", Ints{2}), f32({1, 1, 1}, {4}));
  expect(Op(10, "MaxPool").in(x).attr("kernel_shape", Ints{3}).attr("strides", Ints{2}).attr("ceil_mode", 1),
         f32({1, 1, 2}, {4, 3}));
  expect(Op(10, "MaxPool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{2}), f32({1, 1, 2}, {2, 4}));
  EXPECT_THAT(refusal(Op(8, "MaxPool").in(x).attr("kernel_shape", Ints{2}).attr("ceil_mode", 1)),
              HasSubstr("'ceil_mode' is unknown"));
  EXPECT_THAT(refusal(Op(18, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{1})),
              HasSubstr("'dilations' is unknown"));
  expect(Op(19, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("dilations", Ints{2}),
         f32({1, 1, 2}, {1.5f, 3.5f}));
  expect(Op(7, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("auto_pad", "SAME_UPPER"),
         f32({1, 1, 4}, {2.5f, 3, 2.5f, 3}));
  expect(Op(7, "AveragePool").in(x).attr("kernel_shape", Ints{2}).attr("pads", Ints{0, 1}).attr("count_include_pad", 1),
         f32({1, 1, 4}, {2.5f, 3, 2.5f, 1.5f}));
  expect(Op(7, "GlobalMaxPool").in(x), f32({1, 1, 1}, {4}));
  expect(Op(7, "GlobalAveragePool").in(x), f32({1, 1, 1}, {2.5f}));
  EXPECT_THAT(refusal(Op(10, "MaxPool").in(x)), HasSubstr("attribute 'kernel_shape' is missing"));
}

TEST(Pools, MaxPoolGivesIndicesWhenAsked) {
  const auto results =
      Op(12, "MaxPool").in(f32({1, 1, 4}, {1, 4, 2, 3})).attr("kernel_shape", Ints{2}).outputs(2).run();
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
  EXPECT_THAT(refusal(Op(18, "ReduceMean").in(x).attr("axes", Ints{1})), HasSubstr("attribute 'axes' is unknown"));
  EXPECT_THAT(refusal(Op(17, "ReduceMean").in(x).constant(i64({1}, {1}))), HasSubstr("input 'axes' needs opset 18"));
  EXPECT_THAT(refusal(Op(13, "ReduceSum").in(x).constant(i64({2}, {0, -2}))), HasSubstr("axis -2 is named twice"));
}

TEST(Reduce, FormulasKeepTypesAndExtremes) {
  const auto reduce = [](const char* op, const Tensor& x) { return Op(18, op).in(x).attr("keepdims", 0); };
  expect(reduce("ReduceLogSumExp", f32({2}, {1000, 1000})), f32({}, {1000 + std::log(2.0f)}));
  const float inf = std::numeric_limits<float>::infinity();
  expect(reduce("ReduceLogSumExp", f32({2}, {-inf, -inf})), f32({}, {-inf}));
  expect(reduce("ReduceLogSumExp", f32({2}, {inf, 1})), f32({}, {inf}));
  expect(reduce("ReduceLogSumExp", f32({0}, {})), f32({}, {-inf}));
  // 2^53 + 1 has no double; squares wrap.
  expect(reduce("ReduceL1", i64({2}, {-(int64_t(1) << 53), 1})), i64({}, {(int64_t(1) << 53) + 1}));
  expect(reduce("ReduceSumSquare", i64({2}, {(int64_t(1) << 32) + 1, 0})), i64({}, {(int64_t(1) << 33) + 1}));
  expect(reduce("ReduceL2", i64({2}, {3, 5})), i64({}, {5}));
  // 255 * 255 + 255 * 255 is beyond f16, its root is not: 360.6 and a step of 0.25.
  expect(reduce("ReduceL2", Tensor::of<uint16_t>(Elem::f16_, {2}, {0x5BF8, 0x5BF8})),
         Tensor::of<uint16_t>(Elem::f16_, {}, {0x5DA2}));
  expect(Op(18, "ReduceL2").in(f32({2}, {-3, 4})).attr("noop_with_empty_axes", 1), f32({2}, {3, 4}));
  expect(reduce("ReduceMax", boolean({2}, {0, 1})), boolean({}, {1}));
  expect(reduce("ReduceMin", boolean({0}, {})), boolean({}, {1}));
}
TEST(Pools, NormsOfWindows) {
  const auto pool = [](const Floats& values) {
    return Op(18, "LpPool").in(f32({1, 1, 5}, values)).attr("kernel_shape", Ints{2}).attr("strides", Ints{2});
  };
  expect(pool({1, -2, 3, 4, 5}).attr("p", 1).attr("ceil_mode", 1), f32({1, 1, 3}, {3, 7, 5}));
  expect(pool({1, -2, 2, 4, 5}).attr("pads", Ints{1, 0}), f32({1, 1, 3}, {1, std::sqrt(8.0f), std::sqrt(41.0f)}));
  expect(pool({1, -2, 3, 4, 5}).attr("p", 3), f32({1, 1, 2}, {std::cbrt(9.0f), std::cbrt(91.0f)}));
  EXPECT_THAT(refusal(pool({1, 2, 3, 4, 5}).attr("p", 0)), HasSubstr("attribute 'p' is 0, expected at least 1"));
  EXPECT_THAT(refusal(pool({1, 2, 3, 4, 5}).attr("dilations", Ints{9})),
              HasSubstr("kernel of 10 is larger than the padded input of 5 in spatial dim 0"));
  expect(Op(13, "LpNormalization").in(f32({2, 2}, {-3, 4, 0, 0})), f32({2, 2}, {-0.6f, 0.8f, 0, 0}));
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
  EXPECT_THAT(refusal(each(8, f32({2}, {1, 2}))), HasSubstr("input 1 is f32[2], expected shape 1x2"));
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
  EXPECT_THAT(refusal(norm(15).outputs(5).attr("training_mode", 1)), HasSubstr("has 5 outputs, expected at most 3"));
}

Tensor f16(Shape dims, const std::vector<uint16_t>& bits) {
  return Tensor::of<uint16_t>(Elem::f16_, std::move(dims), bits);
}
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LayerNormalization, MeansHaveTheStashedTypeAndAScaleMayCoverAll) {
  const Tensor x = f16({2, 2}, {0x3C00, 0x4200, 0x4400, 0x4400}); // 1 3 4 4
  const auto results = Op(17, "LayerNormalization").in(x).in(f16({2}, {0x3C00, 0x4000})).outputs(2).run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), f16({2, 2}, {0xBC00, 0x4000, 0, 0})), ""); // -1 2 0 0
  EXPECT_EQ(difference(results->at(1), f32({2, 1}, {2, 4})), "");
  const Tensor y = f32({2, 2}, {1, 3, 7, 5});
  expect(Op(17, "LayerNormalization").in(y).in(f32({2, 1}, {2, 3})).in(f32({1}, {1})), f32({2, 2}, {-1, 3, 4, -2}));
  EXPECT_THAT(refusal(Op(17, "LayerNormalization").in(y).in(f32({3, 1, 1}, {1, 1, 1}))),
              HasSubstr("scale f32[3,1,1] or bias does not broadcast to input f32[2,2]"));
  EXPECT_THAT(refusal(Op(17, "LayerNormalization").in(y).in(f32({2}, {1, 1})).attr("stash_type", 7)),
              HasSubstr("stash_type 7 is no float type"));
  // The result has the scale's type: 3 / sqrt(5), 1 / sqrt(5).
  expect(Op(23, "RMSNormalization").in(f16({1, 2}, {0x4200, 0x3C00})).in(f32({2}, {1, 2})),
         f32({1, 2}, {1.341641f, 0.894427f}));
}

TEST(GroupNormalization, ScalesGroupsBeforeOpset21AndChannelsSince) {
  const Tensor x = f32({1, 4, 1}, {1, 3, 10, 30});
  const auto norm = [&](int opset, const Tensor& scale, const Tensor& bias, int groups) {
    return Op(opset, "GroupNormalization").in(x).in(scale).in(bias).attr("num_groups", groups).attr("epsilon", 0.0f);
  };
  expect(norm(18, f32({2}, {1, 2}), f32({2}, {0, 1}), 2), f32({1, 4, 1}, {-1, 1, -1, 3}));
  expect(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 2), f32({1, 4, 1}, {-1, 2, -3, 5}));
  EXPECT_THAT(refusal(norm(21, f32({2}, {1, 2}), f32({2}, {0, 1}), 2)),
              HasSubstr("input 1 is f32[2], expected 4 values"));
  EXPECT_THAT(refusal(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 3)),
              HasSubstr("num_groups is 3 but the input has 4 channels"));
  EXPECT_THAT(refusal(norm(21, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1}), 0)), HasSubstr("num_groups is 0"));
}

TEST(Lrn, NeighboursBeyondTheLastChannelCostNothing) {
  const Tensor x = f32({1, 3, 1, 1}, {1, 2, 3}); // squares 1 4 9
  const auto lrn = [&](int64_t size) {
    return Op(13, "LRN").in(x).attr("size", size).attr("alpha", static_cast<float>(size)).attr("beta", 1.0f);
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
  EXPECT_THAT(refusal(Op(13, "ArgMax").in(f32({0, 2}, {}))), HasSubstr("axis 0 of 0 elements has no extreme"));
}

TEST(Hardmax, FlattensBeforeOpset13) {
  const Tensor x = f32({1, 2, 2}, {3, 1, 2, 3});
  expect(Op(11, "Hardmax").in(x), f32({1, 2, 2}, {1, 0, 0, 0}));
  expect(Op(13, "Hardmax").in(x), f32({1, 2, 2}, {1, 0, 0, 1}));
  expect(Op(13, "Hardmax").in(f32({0, 2}, {})).attr("axis", 0), f32({0, 2}, {}));
}

TEST(Loss, GathersAtLabelsOfTheRun) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 0, 5, 7});
  const Tensor labels = Tensor::of<int32_t>(Elem::i32_, {3}, {1, 1, 0}), weights = f32({2}, {1, 0.5f});
  const auto nll = [&](const char* reduction) {
    return Op(13, "NegativeLogLikelihoodLoss").in(x).in(labels).attr("reduction", reduction);
  };
  expect(nll("none"), f32({3}, {-2, 0, -5}));
  expect(nll("mean"), f32({}, {-7 / 3.0f}));
  expect(nll("mean").in(weights), f32({}, {-3}));                                 // (-1 + 0 - 5) / (0.5 + 0.5 + 1)
  expect(nll("mean").in(weights).attr("ignore_index", 1), f32({}, {-5}));         // (-5) / 1
  expect(nll("sum").attr("ignore_index", (int64_t(1) << 32) + 1), f32({}, {-7})); // no label of 32 bits
  expect(nll("mean").attr("ignore_index", 0), f32({}, {-1}));
  const auto far = Tensor::of<int64_t>(Elem::i64_, {3}, {1, 999, 0});
  expect(Op(13, "NegativeLogLikelihoodLoss").in(x).in(far).attr("ignore_index", 999).attr("reduction", "none"),
         f32({3}, {-2, 0, -5}));
  EXPECT_THAT(refusal(nll("most")), HasSubstr("reduction 'most' is not none, sum or mean"));
  EXPECT_THAT(refusal(nll("sum").in(f32({3}, {1, 1, 1}))),
              HasSubstr("weights f32[3] are not one for each of 2 classes"));
  EXPECT_THAT(refusal(Op(13, "SoftmaxCrossEntropyLoss").in(x).in(i64({2}, {0, 0}))),
              HasSubstr("labels i64[2] do not fit input f32[3,2]"));
}

TEST(ConvTranspose, ResolvesPads) {
  const Tensor x = f32({1, 1, 2}, {1, 10}), w = f32({1, 1, 3}, {1, 2, 3});
  const auto convolve = [&] { return Op(11, "ConvTranspose").in(x).in(w).attr("strides", Ints{2}); };
  expect(convolve(), f32({1, 1, 5}, {1, 2, 13, 20, 30}));
  expect(convolve().attr("output_padding", Ints{1}).in(f32({1}, {1})), f32({1, 1, 6}, {2, 3, 14, 21, 31, 1}));
  expect(convolve().attr("auto_pad", "SAME_UPPER"), f32({1, 1, 4}, {1, 2, 13, 20}));
  expect(convolve().attr("auto_pad", "SAME_LOWER"), f32({1, 1, 4}, {2, 13, 20, 30}));
  expect(convolve().attr("auto_pad", "VALID").attr("pads", Ints{1, 1}), f32({1, 1, 5}, {1, 2, 13, 20, 30}));
  expect(convolve().attr("output_shape", Ints{7}), f32({1, 1, 7}, {0, 1, 2, 13, 20, 30, 0}));
  expect(convolve().attr("output_shape", Ints{2}), f32({1, 1, 2}, {13, 20}));
  EXPECT_THAT(refusal(convolve().attr("pads", Ints{3, 3})), HasSubstr("gives no extent"));
  EXPECT_THAT(refusal(convolve().attr("output_shape", Ints{1, 7})),
              HasSubstr("'output_shape' has 2 values, expected 1"));
  EXPECT_THAT(refusal(convolve().attr("group", 2)), HasSubstr("input has 1 channels but weight has 1, in 2 groups"));
  EXPECT_THAT(refusal(Op(11, "ConvTranspose").in(x).in(f32({1, 1, 1, 1}, {1}))), HasSubstr("weight f32[1,1,1,1]"));
}

TEST(Dropout, IsTheIdentityInInference) {
  const Tensor x = f32({2}, {1, 2});
  expect(Op(7, "Dropout").in(x).attr("ratio", 0.5f), x);
  expect(Op(12, "Dropout").in(x).constant(f32({}, {0.5f})), x);
  expect(Op(13, "Dropout").in(x).constant(f32({}, {0.5f})).constant(boolean({}, {0})).attr("seed", 1), x);
  expect(Op(13, "Dropout").in(x).constant(f32({}, {0})).constant(boolean({}, {1})), x);
  for (const auto& [opset, mask] : {std::pair(7, f32({2}, {1, 1})), std::pair(10, boolean({2}, {1, 1}))}) {
    const auto results = Op(opset, "Dropout").in(x).outputs(2).run();
    ASSERT_TRUE(results) << messageOf(results);
    EXPECT_EQ(difference(results->at(1), mask), "") << opset;
  }
  expect(Op(13, "Dropout").in(x).absent().in(boolean({}, {0})), x);
}

// --- Recurrences: activations without curves keep the numbers whole
// -----------------------------------------------------------------------------------------------

using Names = std::vector<std::string>;

Op rnn(const std::string& direction, const Floats& x) {
  Op op(14, "RNN");
  const auto steps = static_cast<int64_t>(x.size());
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Floats w(directions, 1), r(directions, 2), b(directions * 2, 0.5f);
  op.in(f32({steps, 1, 1}, x)).constant(f32({directions, 1, 1}, w)).constant(f32({directions, 1, 1}, r));
  op.constant(f32({directions, 2}, b)).attr("hidden_size", int64_t(1)).attr("direction", direction);
  return op.attr("activations", Names(directions, "Relu")).outputs(2);
}

TEST(Recurrent, DirectionsShareTheirPlaces) {
  expect(rnn("forward", {1, 2, 3}), f32({3, 1, 1, 1}, {2, 7, 18}));
  expect(rnn("reverse", {1, 2, 3}), f32({3, 1, 1, 1}, {24, 11, 4}));
  const auto both = rnn("bidirectional", {1, 2, 3}).run();
  ASSERT_TRUE(both) << messageOf(both);
  EXPECT_EQ(difference(both->at(0), f32({3, 2, 1, 1}, {2, 24, 7, 11, 18, 4})), "");
  EXPECT_EQ(difference(both->at(1), f32({2, 1, 1}, {18, 24})), "");
  EXPECT_EQ(difference(rnn("forward", {}).run()->at(0), f32({0, 1, 1, 1}, {})), "");
}

TEST(Recurrent, LongOnesAreLoopsThatHoldTheirWeights) {
  constexpr int64_t kSteps = 100;
  // Running sums: R is 1, and so is every input.
  Op op(14, "RNN");
  op.in(f32({kSteps, 1, 1}, Floats(kSteps, 1))).constant(f32({2, 1, 1}, {1, 1})).constant(f32({2, 1, 1}, {1, 1}));
  op.absent().in(Tensor::of<int32_t>(Elem::i32_, {1}, {90})).attr("activations", Names{"Relu", "Relu"}).outputs(2);
  op.attr("direction", std::string("bidirectional"));
  const auto graph = op.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  int loops = 0;
  for (const auto& node : graph->nodes()) {
    if (node->kind != OpKind::Loop) continue;
    ++loops;
    EXPECT_EQ(node->operands().size(), 3u); // the state, X's products and which steps count
    EXPECT_EQ(node->intAttr("trips"), kSteps);
    EXPECT_EQ(node->provenance, graph::Provenance{"op"});
  }
  EXPECT_EQ(loops, 2);
  Floats sums;
  for (int64_t t = 0; t < kSteps; ++t)
    for (const int64_t sum : {t + 1, 90 - t}) sums.push_back(t < 90 ? static_cast<float>(sum) : 0);
  const auto results = op.run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), f32({kSteps, 2, 1, 1}, sums)), "");
  EXPECT_EQ(difference(results->at(1), f32({2, 1, 1}, {90, 90})), "");
}

TEST(Recurrent, SequencesEndAtTheirLengths) {
  // Two sequences, of three steps and of one; the batch comes first.
  Op op(14, "RNN");
  op.in(f32({2, 3, 1}, {1, 2, 3, 4, 5, 6})).constant(f32({1, 1, 1}, {1})).constant(f32({1, 1, 1}, {2})).absent();
  op.in(Tensor::of<int32_t>(Elem::i32_, {2}, {3, 1})).in(f32({2, 1, 1}, {10, 20}));
  op.attr("layout", int64_t(1)).attr("activations", Names{"Relu"}).outputs(2);
  const auto forward = op.run(), backward = op.attr("direction", std::string("reverse")).run();
  ASSERT_TRUE(forward && backward) << messageOf(forward) << messageOf(backward);
  EXPECT_EQ(difference(forward->at(0), f32({2, 3, 1, 1}, {21, 44, 91, 44, 0, 0})), "");
  EXPECT_EQ(difference(forward->at(1), f32({2, 1, 1}, {91, 44})), "");
  EXPECT_EQ(difference(backward->at(0), f32({2, 3, 1, 1}, {97, 48, 23, 44, 0, 0})), "");
  EXPECT_EQ(difference(backward->at(1), f32({2, 1, 1}, {97, 44})), "");
}

Op lstm(int64_t coupled = 0) {
  Op op(14, "LSTM");
  op.in(f32({1, 1, 1}, {1})).constant(f32({1, 4, 1}, {1, 2, 3, 4})).constant(f32({1, 4, 1}, {1, 1, 1, 1})).absent();
  op.absent().in(f32({1, 1, 1}, {1})).in(f32({1, 1, 1}, {2})).constant(f32({1, 3}, {10, 20, 30}));
  if (coupled) op.attr("input_forget", coupled);
  return op.attr("activations", Names{"affine", "Affine", "Affine"}).outputs(3);
}

TEST(Recurrent, LstmPeepsAtItsCell) {
  // Gates: 2 + 10 * 2, 4 + 30 * 2 and 5; the cell 64 * 2 + 22 * 5; the output gate 3 + 20 * 238.
  const auto plain = lstm().run(), coupled = lstm(1).run(), clipped = lstm().attr("clip", 3.0f).run();
  ASSERT_TRUE(plain && coupled && clipped) << messageOf(plain) << messageOf(coupled) << messageOf(clipped);
  EXPECT_EQ(difference(plain->at(1), f32({1, 1, 1}, {4763 * 238})), "");
  EXPECT_EQ(difference(plain->at(2), f32({1, 1, 1}, {238})), "");
  EXPECT_EQ(difference(coupled->at(1), f32({1, 1, 1}, {1363 * 68})), "");
  EXPECT_EQ(difference(clipped->at(0), f32({1, 1, 1, 1}, {3 * 15})), ""); // the cell itself is not clipped
  EXPECT_EQ(difference(clipped->at(2), f32({1, 1, 1}, {15})), "");
}

TEST(Recurrent, GruResetsBeforeOrBehindItsMatrix) {
  Op op(14, "GRU");
  op.in(f32({1, 1, 1}, {1})).constant(f32({1, 3, 1}, {1, 2, 3})).constant(f32({1, 3, 1}, {1, 1, 2}));
  op.constant(f32({1, 6}, {0, 0, 0, 0, 0, 1})).absent().in(f32({1, 1, 1}, {2}));
  op.attr("activations", Names{"Affine", "Affine"});
  // Gates: 3, 4 and 3 + 4 * 2 * 2 + 1, or 3 + 4 * (2 * 2 + 1).
  expect(op, f32({1, 1, 1, 1}, {-2 * 20 + 3 * 2}));
  expect(op.attr("linear_before_reset", int64_t(1)), f32({1, 1, 1, 1}, {-2 * 23 + 3 * 2}));
}

TEST(Recurrent, ActivationsTakeTheirNumbersInTurn) {
  const auto of = [](const std::string& name, const Floats& alphas, const Floats& betas, float x) {
    Op op(14, "RNN");
    op.in(f32({1, 1, 1}, {x})).constant(f32({2, 1, 1}, {1, 1})).constant(f32({2, 1, 1}, {0, 0}));
    op.attr("direction", std::string("bidirectional")).attr("activations", Names{"LeakyRelu", name});
    op.attr("activation_alpha", alphas).attr("activation_beta", betas);
    return op;
  };
  expect(of("Affine", {0.5f, 3}, {1}, -2), f32({1, 2, 1, 1}, {-1, -5}));
  expect(of("ThresholdedRelu", {0.5f, 3}, {}, 3), f32({1, 2, 1, 1}, {3, 3}));
  expect(of("ThresholdedRelu", {0.5f}, {}, 0.5f), f32({1, 2, 1, 1}, {0.5f, 0}));
  expect(of("HardSigmoid", {0.5f, 0.25f}, {0.5f}, -1), f32({1, 2, 1, 1}, {-0.5f, 0.25f}));
  expect(of("Softsign", {0.5f}, {}, -3), f32({1, 2, 1, 1}, {-1.5f, -0.75f}));
  EXPECT_THAT(refusal(of("Cosine", {}, {}, 1)), HasSubstr("activation 'Cosine' is none that ONNX names"));
}

TEST(Recurrent, RefusesWhatDoesNotBelongTogether) {
  const auto op = [](const Tensor& w, const Tensor& r, const Tensor& lengths) {
    return Op(14, "GRU").in(f32({2, 1, 3}, Floats(6, 1))).in(w).in(r).absent().constant(lengths);
  };
  const Tensor w = f32({1, 6, 3}, Floats(18, 1)), r = f32({1, 6, 2}, Floats(12, 1)), full = i64({1}, {2});
  EXPECT_TRUE(op(w, r, full).run());
  EXPECT_THAT(refusal(op(w, f32({1, 6, 3}, Floats(18, 1)), full)),
              HasSubstr("R of shape 1x6x3 is not 3 square matrices below each other"));
  EXPECT_THAT(refusal(op(f32({1, 6, 2}, Floats(12, 1)), r, full)), HasSubstr("W is f32[1,6,2], expected f32[1,6,3]"));
  EXPECT_THAT(refusal(op(w, r, i64({1}, {3}))), HasSubstr("sequence_lens has 3, beyond the 2 steps of X"));
  EXPECT_THAT(refusal(op(w, r, i64({1}, {-1}))), HasSubstr("sequence_lens has -1"));
  EXPECT_THAT(refusal(op(w, r, full).attr("activations", Names{"Tanh"})), HasSubstr("has 1 values, expected 2"));
  EXPECT_THAT(refusal(op(w, r, full).attr("hidden_size", int64_t(3))), HasSubstr("attribute 'hidden_size' is 3"));
  EXPECT_THAT(refusal(op(w, r, full).attr("clip", -1.0f)), HasSubstr("attribute 'clip' is -1"));
  EXPECT_THAT(refusal(op(w, r, full).attr("direction", std::string("up"))), HasSubstr("direction 'up' is not"));
  EXPECT_THAT(refusal(op(w, r, full).attr("direction", std::string("bidirectional"))),
              HasSubstr("W is f32[1,6,3], expected f32[2,6,3]"));
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
// ---------------------------------------------------------------------------------------------------------

TEST(Opset6, OperandsBroadcastFromAnAxisOn) {
  const Tensor x = f32({2, 3, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor inner = f32({2}, {1, 2}), middle = f32({3}, {1, 2, 3});
  const auto add = [&](const Tensor& b) { return Op(6, "Add").in(x).in(b); };
  expect(add(inner).attr("broadcast", 1), f32({2, 3, 2}, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  expect(add(middle).attr("broadcast", 1).attr("axis", 1), f32({2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}));
  expect(add(f32({}, {4})).attr("broadcast", 1).attr("axis", 2), f32({2, 3, 2}, std::vector<float>(12, 4)));
  EXPECT_THAT(refusal(add(inner)), HasSubstr("operands of shapes 2x3x2 and 2 without broadcast"));
  for (const int64_t axis : {int64_t(3), int64_t(-1), INT64_MAX, INT64_MIN})
    EXPECT_THAT(refusal(add(middle).attr("broadcast", 1).attr("axis", axis)),
                HasSubstr("is out of range for ranks 3 and 1"));
  EXPECT_THAT(refusal(add(inner).attr("broadcast", 1.0f)), HasSubstr("attribute 'broadcast' is no int"));
}

TEST(Opset6, ChannelsSlopesAndTraining) {
  // As many channels as columns: only the channel's slope counts.
  expect(Op(6, "PRelu").in(f32({1, 2, 2}, {-1, -1, -1, -1})).in(f32({2}, {2, 3})), f32({1, 2, 2}, {-2, -2, -3, -3}));
  expect(Op(6, "Gemm").in(f32({1, 1}, {2})).in(f32({1, 2}, {1, 2})).in(f32({2}, {1, 1})).attr("broadcast", 1),
         f32({1, 2}, {3, 5}));
  const auto dropout = [](int isTest) { return Op(6, "Dropout").in(f32({1}, {5})).attr("is_test", isTest); };
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
  maker.initializer("zero", {}, Ints{0}).initializer("rest", {1}, Ints{-1}).initializer("axes", {1}, Ints{0});
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

Tensor u8(Shape dims, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(Elem::u8_, std::move(dims), values);
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
  const auto y =
      Op(13, "Resize").in(f32({4}, {kInfinity, 0, 0, 4})).absent().constant(f32({1}, {2})).attr("mode", "linear").run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({8}, {kInfinity, kInfinity, kInfinity, 0, 0, 1, 3, 4})), "");
}

TEST(Operators, ResizeOfBytesRoundsAndSaturates) {
  const auto y =
      Op(13, "Resize").in(u8({4}, {0, 10, 250, 255})).absent().constant(f32({1}, {2})).attr("mode", "cubic").run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), u8({8}, {0, 0, 0, 65, 195, 255, 255, 255})), "");
}

TEST(Operators, ResizeRefusesWhatItCannotSize) {
  const Tensor x = f32({1, 4}, {1, 2, 3, 4});
  const auto resize = [&](const Tensor& scales) { return Op(13, "Resize").in(x).absent().constant(scales); };
  EXPECT_THAT(refusal(resize(f32({1}, {2}))), HasSubstr("1 scales, expected 2"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, -2}))), HasSubstr("scale -2 is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, NAN}))), HasSubstr("scale nan is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 1e9f}))), HasSubstr("neighbours"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x)), HasSubstr("neither scales and sizes"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x).absent().absent().in(i64({2}, {1, 8}))),
              HasSubstr("is not known when the model is imported"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 2})).constant(i64({2}, {1, 8}))), HasSubstr("both scales and sizes"));
  EXPECT_THAT(refusal(Op(13, "Resize").in(x).absent().absent().constant(i64({2}, {1, -8}))),
              HasSubstr("size -8 is out of range"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 2})).attr("mode", "lanczos")), HasSubstr("mode 'lanczos'"));
  EXPECT_THAT(refusal(resize(f32({2}, {1, 2})).attr("coordinate_transformation_mode", "tf_crop_and_resize")),
              HasSubstr("needs a roi"));
  EXPECT_THAT(refusal(Op(9, "Upsample").in(x).constant(f32({2}, {1, 0.5f}))), HasSubstr("scale 0.5 is below 1"));
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
  const Tensor q = f32({1, 1, 2, 1}, {1, 1}), k = f32({1, 1, 2, 1}, {1, 1}), v = f32({1, 1, 2, 1}, {3, 5});
  const auto y = Op(23, "Attention").in(q).in(k).in(v).in(f32({2, 2}, {-kInfinity, -kInfinity, 0, 0})).run();
  ASSERT_TRUE(y) << y.status().message();
  EXPECT_EQ(difference(y->at(0), f32({1, 1, 2, 1}, {0, 4})), "");
}

TEST(Operators, AttentionRefusesWhatDoesNotBelongTogether) {
  const auto ones = [](const Shape& dims) { return f32(dims, Floats(static_cast<size_t>(*elementCount(dims)), 1)); };
  const Tensor q = ones({1, 3, 2, 4}), k = ones({1, 2, 5, 4}), flat = ones({1, 2, 12});
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(k).in(k)), HasSubstr("3 heads of queries are no multiple of 2"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(ones({1, 3, 5, 3})).in(ones({1, 3, 5, 3}))),
              HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(flat).in(flat).in(flat)), HasSubstr("needs its number of heads"));
  for (const int64_t heads : {int64_t(0), int64_t(-1), int64_t(5)})
    EXPECT_THAT(refusal(Op(23, "Attention").in(flat).in(flat).in(flat).attr("q_num_heads", heads)),
                HasSubstr("does not split into"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).absent().in(q)), HasSubstr("go together"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).in(ones({4, 2}))), HasSubstr("attn_mask f32[4,2]"));
  EXPECT_THAT(refusal(Op(24, "Attention").in(q).in(q).in(q).attr("left_window_size", int64_t(1))),
              HasSubstr("attribute 'left_window_size' is unknown"));
  EXPECT_THAT(refusal(Op(25, "Attention").in(q).in(q).in(q).attr("left_window_size", int64_t(-2))),
              HasSubstr("left_window_size is -2"));
  EXPECT_THAT(refusal(Op(23, "Attention").in(q).in(q).in(q).attr("softmax_precision", int64_t(7))),
              HasSubstr("softmax_precision 7 is no float type"));
}

TEST(Operators, EinsumIsExactAndFindsDiagonals) {
  const int64_t large = (int64_t(1) << 61) + 1; // no double holds it
  const auto product =
      Op(12, "Einsum").in(i64({1, 2}, {large, 1})).in(i64({2, 1}, {1, 2})).attr("equation", "ij,jk->ik").run();
  ASSERT_TRUE(product) << product.status().message();
  EXPECT_EQ(difference(product->at(0), i64({1, 1}, {large + 2})), "");
  const auto diagonal =
      Op(12, "Einsum").in(f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})).attr("equation", "iji -> ij").run();
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
    return refusal(Op(12, "Einsum").in(f32({2, 3}, Floats(6))).in(f32({3, 2}, Floats(6))).attr("equation", equation));
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
  EXPECT_THAT(
      refusal(Op(17, "STFT").in(f32({1, 8, 1}, Floats(8))).constant(i64({}, {1})).absent().constant(i64({}, {9}))),
      HasSubstr("frames of 9 but a signal of 8"));
}

TEST(Operators, GridSampleLeavesOutWhatIsOutside) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // The right border is infinite, and the points lie to the left of the left one, far beyond, and nowhere.
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
  EXPECT_THAT(refusal(Op(16, "GridSample").in(x).in(f32({1, 2, 2, 3}, Floats(12)))), HasSubstr("grid f32[1,2,2,3]"));
  EXPECT_THAT(refusal(Op(16, "GridSample").in(x).in(f32({1, 1, 1, 2}, Floats(2))).attr("mode", "linear")),
              HasSubstr("mode 'linear' is not nearest, bilinear, bicubic"));
  const Tensor rois = f32({1, 4}, {0, 0, 1, 1});
  EXPECT_THAT(refusal(Op(16, "RoiAlign").in(x).in(rois).in(i64({1}, {0}))), HasSubstr("sampling_ratio 0"));
  EXPECT_THAT(refusal(Op(16, "RoiAlign").in(x).in(rois).in(i64({2}, {0, 0})).attr("sampling_ratio", int64_t(1))),
              HasSubstr("1 regions but batch_indices i64[2]"));
  const Tensor w = f32({1, 2, 2, 2}, Floats(8));
  EXPECT_THAT(refusal(Op(19, "DeformConv").in(x).in(w).in(f32({1, 8, 1, 2}, Floats(16)))),
              HasSubstr("offset f32[1,8,1,2], expected 1x8x2x2"));
  EXPECT_THAT(
      refusal(Op(19, "DeformConv").in(x).in(w).in(f32({1, 8, 2, 2}, Floats(32))).attr("offset_group", int64_t(3))),
      HasSubstr("2 channels do not fit offset_group 3"));
  EXPECT_THAT(refusal(Op(20, "AffineGrid").in(f32({1, 2, 3}, Floats(6))).constant(i64({4}, {2, 1, 2, 2}))),
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
  const auto far = of(300).attr("update_rule", "linear").run(), none = of(0).attr("update_rule", "linear").run();
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
  EXPECT_THAT(refusal(Op(10, "TopK").in(x).constant(i64({1}, {1})).attr("largest", int64_t(0)).outputs(2)),
              HasSubstr("attribute 'largest' is unknown to TopK in opset 10"));
}

// --- com.microsoft
// ---------------------------------------------------------------------------------------------------

Tensor i8(Shape dims, const std::vector<int8_t>& values) {
  return Tensor::of<int8_t>(Elem::i8_, std::move(dims), values);
}
Op microsoft(const std::string& opType) { return {"com.microsoft", opType}; }

TEST(Microsoft, QuantizedSumsAndProductsRoundOnce) {
  const Tensor half = f32({}, {0.5f}), quarter = f32({1}, {0.25f}), one = f32({}, {1}), three = u8({}, {3});
  // (3 - 3) / 2 + (b - 1) / 4, in steps of 1 around 3: 0.25, 0.5, 1.5 and 63.5 go to the even neighbour.
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
  expect(
      microsoft("QLinearAdd").in(u8({}, {100})).constant(half).absent().in(b).constant(quarter).absent().constant(one),
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
  EXPECT_EQ(refusal(microsoft("QLinearAdd").in(x).constant(one).absent().in(x)), "input 4 is missing");
  EXPECT_EQ(refusal(microsoft("QLinearSigmoid").in(x).constant(two).absent().constant(one)),
            "scale or zero point of shape 2, expected one value");
  EXPECT_EQ(refusal(microsoft("QLinearSigmoid").in(f32({2}, {1, 2})).constant(one).absent().constant(one)),
            "operand is f32[2], expected i8 or u8");
  EXPECT_EQ(refusal(microsoft("QLinearSigmoid").in(x).constant(x).absent().constant(one)),
            "scale is u8[2], expected f32");
  EXPECT_EQ(
      refusal(
          microsoft("QLinearConcat").constant(one).constant(u8({}, {0})).in(x).constant(one).attr("axis", int64_t(0))),
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
  EXPECT_THAT(refusal(microsoft("QLinearLeakyRelu").in(x).constant(one).absent().constant(one).attr("slope", 1.0f)),
              HasSubstr("attribute 'slope' is unknown"));
  EXPECT_EQ(refusal(microsoft("QLinearAveragePool")
                        .in(x)
                        .constant(one)
                        .absent()
                        .constant(one)
                        .attr("channels_last", int64_t(1))
                        .attr("kernel_shape", Ints{1})),
            "input f32[2] has rank 1, expected at least 3");
  EXPECT_THAT(refusal(microsoft("QGemm").in(x).constant(one).constant(x).in(x).constant(one).constant(x)),
              HasSubstr("scale or zero point of shape 2"));
  EXPECT_EQ(codeOf(microsoft("QLinearNothing").in(x)), Code::unsupported);
}

TEST(Microsoft, MeansAndSoftmaxOfQuantizedNumbers) {
  const Tensor x = u8({1, 2, 2, 1}, {10, 20, 30, 41}), one = f32({}, {1}), ten = u8({}, {10});
  const auto op = [&](const char* name) {
    return microsoft(name).in(x).constant(one).constant(ten).constant(one).constant(ten);
  };
  // 35.5 has two neighbours as near.
  expect(op("QLinearReduceMean").attr("axes", Ints{2}).attr("keepdims", int64_t(0)), u8({1, 2, 1}, {15, 36}));
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
  const Tensor a = u8({1, 2}, {12, 14}), b = i8({2, 2}, {1, 2, 3, 4}), half = f32({}, {0.5f}), ten = u8({}, {10});
  const Tensor columns = f32({2}, {1, 0.25f}), zeros = i8({2}, {0, 1}),
               c = Tensor::of<int32_t>(Elem::i32_, {2}, {1, -5});
  // (2 4) . (1 1; 3 3) = (14 14), with c (15 9), in steps of 0.5 and 0.125.
  const Op gemm = microsoft("QGemm").in(a).constant(half).constant(ten).constant(b).constant(columns).constant(zeros);
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
  EXPECT_EQ(refusal(microsoft("MatMulIntegerToFloat").in(a).constant(b).constant(half).constant(f32({3}, {1, 1, 1}))),
            "operand scale has shape 3, expected 2 (dequantize_c1)");
  EXPECT_EQ(refusal(microsoft("MatMulIntegerToFloat").in(a).constant(b).constant(half).constant(f32({2, 1}, {1, 1}))),
            "scales or a bias of 2x2 do not broadcast to 1x2");
  EXPECT_EQ(codeOf(microsoft("MatMulIntegerToFloat").in(a).constant(b).constant(f32({2}, {1, 1})).constant(half)),
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
  expect(Op(conv).attr("activation", std::string("LeakyRelu")).attr("activation_params", Floats{0.5f}),
         f32({1, 1, 2}, {3, -1.5f}));
  EXPECT_EQ(refusal(Op(conv).attr("activation", std::string("Clip")).attr("activation_params", Floats{1})),
            "activation_params has 1 values, but Clip takes 2");
  EXPECT_EQ(refusal(Op(conv).attr("activation", std::string("Sin"))), "activation 'Sin'");
  EXPECT_EQ(refusal(microsoft("FusedConv").in(x).constant(w).absent().in(f32({1, 1, 1}, {1}))),
            "input 3 has shape 1x1x1, but the convolution gives 1x1x2");
  const Op gemm = microsoft("FusedGemm").in(f32({1, 2}, {1, 2})).in(f32({2, 1}, {1, -2}));
  expect(Op(gemm).attr("activation", std::string("Elu")).attr("activation_alpha", 0.0f), f32({1, 1}, {0}));
  expect(Op(gemm).attr("activation", std::string("")).attr("alpha", 2.0f), f32({1, 1}, {-6}));
  EXPECT_EQ(refusal(Op(gemm).attr("activation", std::string("Conv"))), "activation 'Conv'");
  EXPECT_THAT(refusal(Op(gemm).attr("activation", std::string("Relu")).attr("activation_alpha", 1.0f)),
              HasSubstr("attribute 'alpha' is unknown to Relu"));
  const Op matmul = microsoft("FusedMatMul").in(f32({1, 2, 2}, {1, 2, 3, 4})).in(f32({2, 2}, {1, 0, 0, 1}));
  expect(Op(matmul).attr("transA", int64_t(1)).attr("alpha", 2.0f), f32({1, 2, 2}, {2, 6, 4, 8}));
  EXPECT_EQ(refusal(Op(matmul).attr("transBatchA", int64_t(1))),
            "operands of ranks 3 and 2 have no batches to transpose");
}

TEST(Microsoft, ActivationsOfHalvesRoundOnce) {
  const auto halves = [](const std::vector<double>& values) {
    std::vector<uint16_t> bits;
    for (const double value : values) bits.push_back(static_cast<uint16_t>(fromReal(Elem::f16_, value)));
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
