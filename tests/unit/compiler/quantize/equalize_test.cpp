// Equalization keeps the float function, makes ranges match, and leaves alone what it must.
#include "core/compiler/quantize/equalize.h"

#include <gmock/gmock.h>

#include "core/compiler/quantize/run.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::HasSubstr;

constexpr int64_t kChannels = 2, kSide = 4, kFilters = 3;

Tensor random(Shape dims, uint64_t seed) {
  return *randomTensor(Elem::f32_, std::move(dims), seed);
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.count()};
}

/// Weights whose channels (rows) differ by large factors.
std::vector<float> uneven(const Shape& dims, uint64_t seed) {
  std::vector<float> weights = values(random(dims, seed));
  const size_t each = weights.size() / static_cast<size_t>(dims[0]);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] *= std::exp2(float(i / each * 4));
  return weights;
}

class EqualizeTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// x [1,2,4,4] through a convolution, depthwise one and a third one to y; `between` follows the
  /// first.
  ModelMaker chain(const std::string& between) const {
    ModelMaker maker(17);
    maker.input("x", {1, kChannels, kSide, kSide}).output("y", {1, 1, kSide, kSide});
    maker.initializer<float>("w", {kFilters, kChannels, 1, 1}, uneven({kFilters, kChannels}, 1))
        .initializer<float>("b", {kFilters}, {0.5f, -0.25f, 3})
        .initializer<float>("d", {kFilters, 1, 3, 3}, uneven({kFilters, 9}, 2))
        .initializer<float>("v", {1, kFilters, 1, 1}, {1, -0.5f, 0.25f});
    maker.node("Conv", {"x", "w", "b"}, {"c"}, "first");
    maker.node(between, {"c"}, {"r"}, "between");
    onnx::NodeProto& depthwise = maker.node("Conv", {"r", "d"}, {"e"}, "depthwise");
    test::setAttr(depthwise, "group", kFilters);
    test::setAttr(depthwise, "pads", std::vector<int64_t>{1, 1, 1, 1});
    maker.node("Relu", {"e"}, {"f"}, "relu");
    maker.node("Conv", {"f", "v"}, {"y"}, "last");
    return maker;
  }

  Network read(const ModelMaker& maker) const {
    Network network = *Network::read(maker.write(folder_ + "/m.onnx"));
    EXPECT_TRUE(setTypes(network, {}));
    return network;
  }
  static std::vector<float> run(const Network& network, const Tensor& input) {
    const auto observed = Observed::compile(network.model, {"y"}, {});
    EXPECT_TRUE(observed) << observed.status().message();
    return values((*observed->run(std::vector<Tensor>{input}))[0]);
  }
  static void expectSameFunction(const Network& network, const Network& equalized) {
    const Tensor input = random({1, kChannels, kSide, kSide}, 7);
    const std::vector<float> want = run(network, input);
    float most = 0;
    for (const float value : want) most = std::max(most, std::abs(value));
    EXPECT_THAT(run(equalized, input),
                testing::Pointwise(testing::FloatNear(most * 0x1p-20f), want));
  }
  /// The largest magnitude of weights in each of `count` runs of them.
  static std::vector<float> ranges(const Network& network, int node, int64_t count) {
    const std::vector<float> weights = values(*network.constant(network.node(node).inputs[1]));
    std::vector<float> most(static_cast<size_t>(count), 0);
    const size_t each = weights.size() / most.size();
    for (size_t i = 0; i < weights.size(); ++i)
      most[i / each] = std::max(most[i / each], std::abs(weights[i]));
    return most;
  }

  const std::string folder_ = test::scratchFolder();
};

TEST_F(EqualizeTest, KeepsTheFunctionAndMakesRangesMatch) {
  const Network network = read(chain("Relu"));
  Network equalized = network;
  const Equalization done = equalize(equalized);
  ASSERT_EQ(done.pairs.size(), 2u);
  EXPECT_EQ(done.pairs[0].first, "first");
  EXPECT_EQ(done.pairs[0].second, "depthwise");
  EXPECT_EQ(done.pairs[1].second, "last");
  EXPECT_GT(done.pairs[0].most, 4 * done.pairs[0].least);
  expectSameFunction(network, equalized);
  const std::vector<float> made = ranges(equalized, 0, kFilters),
                           between = ranges(equalized, 2, kFilters),
                           read = ranges(equalized, 4, kFilters);
  for (size_t c = 0; c < made.size(); ++c) {
    EXPECT_NEAR(made[c] / between[c], 1, 1e-3);
    EXPECT_NEAR(between[c] / read[c], 1, 1e-3);
  }
}

TEST_F(EqualizeTest, IsDeterministicAndDoneOnceDoesNothingTwice) {
  Network first = read(chain("Relu")), second = read(chain("Relu"));
  equalize(first);
  equalize(second);
  EXPECT_EQ(modelFingerprint(first), modelFingerprint(second));
  EXPECT_NE(modelFingerprint(first), modelFingerprint(read(chain("Relu"))));
  for (const EqualizedPair& pair : equalize(first).pairs) {
    EXPECT_NEAR(pair.least, 1, 1e-3);
    EXPECT_NEAR(pair.most, 1, 1e-3);
  }
}

TEST_F(EqualizeTest, GoesThroughWhatKeepsFactors) {
  for (const char* op : {"LeakyRelu", "Identity"}) {
    const Network network = read(chain(op));
    Network equalized = network;
    EXPECT_EQ(equalize(equalized).pairs.size(), 2u) << op;
    expectSameFunction(network, equalized);
  }
}

TEST_F(EqualizeTest, LeavesOutAClipAndAFunctionThatIsNotHomogeneous) {
  for (const auto& [op, why] :
       {std::pair("Clip", "node 'between' (Clip) has limits that would have to differ by channel"),
        {"Sigmoid", "node 'between' (Sigmoid) follows"}}) {
    Network network = read(chain(op));
    const Equalization done = equalize(network);
    EXPECT_EQ(done.pairs.size(), 1u);
    ASSERT_EQ(done.leftOut.size(), 2u);
    EXPECT_EQ(done.leftOut[0].node, "first");
    EXPECT_THAT(done.leftOut[0].why, HasSubstr(why));
    EXPECT_EQ(done.leftOut[1].why, "its result is one of the model");
  }
}

TEST_F(EqualizeTest, LeavesOutWhatOthersRead) {
  ModelMaker maker = chain("Relu");
  maker.output("r");
  Network network = read(maker);
  EXPECT_EQ(equalize(network).leftOut[0].why, "its result is one of the model");
  ModelMaker twice = chain("Relu");
  twice.output("z");
  twice.node("Sigmoid", {"r"}, {"z"}, "other");
  network = read(twice);
  EXPECT_EQ(equalize(network).leftOut[0].why, "2 nodes read its result");
}

TEST_F(EqualizeTest, LeavesAChannelWithoutWeightsAsItIs) {
  ModelMaker maker = chain("Relu");
  auto* weights = maker.proto.mutable_graph()->mutable_initializer(0)->mutable_float_data();
  weights->Set(2, 0);
  weights->Set(3, 0);
  const Network network = read(maker);
  Network equalized = network;
  EXPECT_EQ(equalize(equalized).pairs.size(), 2u);
  expectSameFunction(network, equalized);
  EXPECT_EQ(equalized.constant(equalized.node(0).inputs[2])->as<float>()[1], -0.25f);
}

/// Channels of a convolution are blocks of a Gemm's rows.
TEST_F(EqualizeTest, GoesThroughPoolsAndFlattenToTheRowsOfAGemm) {
  for (const int64_t transposed : {0, 1}) {
    ModelMaker maker(17);
    maker.input("x", {1, kChannels, kSide, kSide}).output("y", {1, 5});
    maker.initializer<float>("w", {kFilters, kChannels, 1, 1}, uneven({kFilters, kChannels}, 1));
    const Shape dims = transposed ? Shape{5, kFilters * 4} : Shape{kFilters * 4, 5};
    maker.initializer<float>("v", dims, values(random(dims, 4)));
    maker.node("Conv", {"x", "w"}, {"c"}, "first");
    onnx::NodeProto& pool = maker.node("MaxPool", {"c"}, {"p"}, "pool");
    test::setAttr(pool, "kernel_shape", std::vector<int64_t>{2, 2});
    test::setAttr(pool, "strides", std::vector<int64_t>{2, 2});
    maker.node("Flatten", {"p"}, {"f"}, "flatten");
    test::setAttr(maker.node("Gemm", {"f", "v"}, {"y"}, "last"), "transB", transposed);
    const Network network = read(maker);
    Network equalized = network;
    EXPECT_EQ(equalize(equalized).pairs.size(), 1u);
    expectSameFunction(network, equalized);
  }
}

} // namespace
} // namespace candela::quantize
