// Models and data at the edges of what can be quantized: each works, or is refused by name.
#include "core/compiler/quantize/quantizer.h"

#include <gmock/gmock.h>

#include "core/compiler/import/onnx_io/write.h"
#include "core/support/file.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::HasSubstr;

constexpr int64_t kSamples = 8, kChannels = 2, kSide = 4, kFilters = 3;

std::vector<float> spread(int64_t count, float size, uint32_t seed) {
  std::vector<float> values;
  uint32_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    values.push_back(size * (static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1));
  }
  return values;
}

/// A convolution of one pixel with these weights [3,2,1,1] and bias, a Relu, and a second
/// convolution: x [N,2,4,4] to y [N,1,4,4].
ModelMaker convolutions(const std::vector<float>& weights, const std::vector<float>& bias,
                        int opset = 17) {
  ModelMaker maker(opset);
  maker.input("x", {"N", kChannels, kSide, kSide}).output("y", {"N", 1, kSide, kSide});
  maker.initializer<float>("w", {kFilters, kChannels, 1, 1}, weights)
      .initializer<float>("b", {kFilters}, bias)
      .initializer<float>("v", {1, kFilters, 1, 1}, {1, -0.5f, 0.25f});
  maker.node("Conv", {"x", "w", "b"}, {"c"}, "first");
  maker.node("Relu", {"c"}, {"r"}, "relu");
  maker.node("Conv", {"r", "v"}, {"y"}, "second");
  return maker;
}

class QuantizerTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What a model became, and how near it is on the data that it was profiled on.
  struct Outcome {
    Quantized made;
    Comparison comparison;
    double snr() const { return comparison.values.at("y").snr(); }
  };
  /// `more`: files of inputs beside x.
  Result<Outcome> quantize(const ModelMaker& maker, const Tensor& data, const Settings& how = {},
                           const std::vector<std::string>& more = {}) {
    CDL_ASSIGN(Network network, Network::read(maker.write(folder_ + "/m.onnx")));
    CDL_TRY(writeNpy(folder_ + "/x.npy", data));
    std::vector<std::string> files{"x=" + folder_ + "/x.npy"};
    files.insert(files.end(), more.begin(), more.end());
    CDL_ASSIGN(const Samples samples, Samples::open(files, network.ports(), 1, {}));
    RunConditions run;
    run.shapes = samples.shapes();
    CDL_TRY(setTypes(network, run));
    Quantizer quantizer(std::move(network), how);
    CDL_ASSIGN(Profile profile,
               profileModel(quantizer.network(), quantizer.observed(), samples, run, false, {}));
    quantizer.setProfile(std::move(profile));
    CDL_ASSIGN(Quantized made, quantizer.quantize({}));
    const std::string file = folder_ + "/int8.onnx";
    CDL_TRY(import::onnx_io::writeModel(made.network.model, file));
    CDL_ASSIGN(const import::onnx_io::Model written, import::onnx_io::readModel(file));
    CDL_ASSIGN(Comparison comparison,
               compareModels(quantizer.network(), written, made.rewritten.dequantized, samples,
                             kSamples, {}, run, {}));
    return Outcome{std::move(made), std::move(comparison)};
  }
  static Tensor images(int64_t samples = kSamples, float size = 1) {
    return Tensor::of(Elem::f32_, {samples, kChannels, kSide, kSide},
                      spread(samples * kChannels * kSide * kSide, size, 1));
  }
  const std::vector<float> weights_ = spread(kFilters * kChannels, 1, 2);
  const std::string folder_ = test::scratchFolder();
};

TEST_F(QuantizerTest, OneSampleIsEnough) {
  const auto outcome = quantize(convolutions(weights_, {0.1f, 0.2f, 0.3f}), images(1));
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_GT(outcome->snr(), 30);
  EXPECT_EQ(outcome->comparison.samples, 1);
}

TEST_F(QuantizerTest, ALayerThatIsAlwaysZeroHasStepsOfOne) {
  const auto outcome =
      quantize(convolutions(std::vector<float>(kFilters * kChannels, 0), {-1, -2, 0}), images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_EQ(outcome->made.steps.at("r").scale, 1);
  EXPECT_EQ(outcome->snr(), kExactSnr);
  EXPECT_TRUE(outcome->made.rewritten.notes.empty());
}

TEST_F(QuantizerTest, ASumOfSeveralIsAdditionsOfIntegers) {
  ModelMaker maker(17);
  maker.input("x", {"N", kChannels, kSide, kSide}).output("y", {"N", 1, kSide, kSide});
  maker.initializer<float>("v", {1, kFilters, 1, 1}, {1, -0.5f, 0.25f});
  for (const char* branch : {"a", "b", "c"}) {
    const std::string weights = std::string("w_") + branch;
    maker.initializer<float>(weights, {kFilters, kChannels, 1, 1}, weights_);
    maker.node("Conv", {"x", weights}, {branch}, branch);
  }
  maker.node("Sum", {"a", "b", "c"}, {"s"}, "sum");
  maker.node("Relu", {"s"}, {"r"}, "relu");
  maker.node("Conv", {"r", "v"}, {"y"}, "last");
  const auto outcome = quantize(maker, images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  for (const char* value : {"a", "b", "c", "s:1", "r"})
    EXPECT_TRUE(outcome->made.steps.count(value)) << value;
  EXPECT_GT(outcome->snr(), 30);
}

TEST_F(QuantizerTest, ANodeWithoutOutputsIsRefusedByName) {
  ModelMaker maker = convolutions(weights_, {0.1f, 0.2f, 0.3f});
  maker.node("Sum", {"x", "x"}, {}, "lost");
  const auto outcome = quantize(maker, images());
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.status().message().find("node 'lost' (Sum) has no outputs"), std::string::npos)
      << outcome.status().message();
}

TEST_F(QuantizerTest, ALayerThatIsConstantKeepsItsBias) {
  const auto outcome =
      quantize(convolutions(std::vector<float>(kFilters * kChannels, 0), {1, 2, 3}), images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_GT(outcome->snr(), 35);
  EXPECT_TRUE(outcome->made.rewritten.notes.empty());
}

TEST_F(QuantizerTest, AChannelOfZerosHasStepsLikeTheOthers) {
  std::vector<float> weights = weights_;
  weights[2] = weights[3] = 0;
  const auto outcome = quantize(convolutions(weights, {0.1f, 0.37f, 0.3f}), images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_GT(outcome->snr(), 30);
  const Tensor* scales = outcome->made.network.constant("w_scale");
  ASSERT_TRUE(scales);
  EXPECT_EQ(scales->as<float>()[1], std::max(scales->as<float>()[0], scales->as<float>()[2]));
  EXPECT_TRUE(outcome->made.rewritten.notes.empty());
}

TEST_F(QuantizerTest, RescalingBehindALimitRoundsOnceInEveryRuntime) {
  const auto outcome = quantize(convolutions(weights_, {0.1f, 0.2f, 0.3f}), images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  const std::map<std::string, Quantization>& steps = outcome->made.steps;
  const Tensor* scales = outcome->made.network.constant("w_scale");
  ASSERT_TRUE(scales);
  for (int channel = 0; channel < kFilters; ++channel) {
    const float multiplier =
        steps.at("x").scale * scales->as<float>()[channel] / steps.at("r").scale;
    EXPECT_EQ(multiplier * 0x1p16f, std::nearbyint(multiplier * 0x1p16f)) << channel;
  }
  EXPECT_GT(outcome->snr(), 30);
}

TEST_F(QuantizerTest, ABiasBeyondItsIntegersWidensTheStepsOfItsChannelAndIsTold) {
  std::vector<float> weights = weights_;
  weights[2] = weights[3] = 1e-9f;
  const auto outcome = quantize(convolutions(weights, {0.1f, 1000, 0.3f}), images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_GT(outcome->snr(), 40);
  EXPECT_THAT(outcome->made.rewritten.notes,
              testing::ElementsAre(HasSubstr("node 'first': the bias of 1 channels needs larger "
                                             "steps of the weights to fit 32 bits")));
  const Tensor* bias = outcome->made.network.constant("b_first_quantized");
  ASSERT_TRUE(bias);
  EXPECT_NEAR(bias->as<int32_t>()[1], 0x1p29, 0x1p8);
}

TEST_F(QuantizerTest, InfinitiesInActivationsAreRefusedByName) {
  ModelMaker maker(17);
  maker.input("x", {"N", 2}).output("y", {"N", 2});
  maker.initializer<float>("w", {2, 2}, {1, 0, 0, 1});
  maker.node("MatMul", {"x", "w"}, {"m"}, "first");
  maker.node("Exp", {"m"}, {"e"}, "exp");
  maker.node("MatMul", {"e", "w"}, {"y"}, "second");
  const Tensor data = Tensor::of<float>(Elem::f32_, {2, 2}, {0, 1, 1000, -1});
  EXPECT_THAT(test::messageOf(quantize(maker, data)),
              HasSubstr("value 'e' was NaN or infinite 1 times"));
}

TEST_F(QuantizerTest, NanInTheDataIsRefusedBySample) {
  Tensor data = images();
  data.mutableAs<float>()[3 * kChannels * kSide * kSide + 5] = NAN;
  EXPECT_THAT(test::messageOf(quantize(convolutions(weights_, {0, 0, 0}), data)),
              HasSubstr("sample 3 of input 'x' has a value that is nan"));
}

TEST_F(QuantizerTest, AnOutputThatIsInfiniteBothTimesIsNoError) {
  ModelMaker maker = convolutions(weights_, {0.1f, 0.2f, 0.3f});
  maker.proto.mutable_graph()->mutable_node(2)->set_output(0, "s");
  maker.initializer<float>("zero", {1}, {0});
  maker.node("Abs", {"s"}, {"a"}, "abs");
  maker.node("Div", {"a", "zero"}, {"y"}, "div");
  const auto outcome = quantize(maker, images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_TRUE(std::isfinite(outcome->snr()));
}

/// x [N,4,4] to y by a softmax of products, behind a mask of 0 and `most`; then a product.
ModelMaker maskedScores(float most) {
  ModelMaker maker(17);
  maker.input("x", {"N", 4, 4}).output("y", {"N", 4, 4});
  maker.initializer<float>("w", {4, 4}, spread(16, 1, 3));
  std::vector<float> mask(16, 0);
  for (size_t i = 0; i < 16; ++i)
    if (i % 4 > i / 4) mask[i] = most;
  maker.initializer<float>("mask", {1, 4, 4}, mask);
  maker.node("MatMul", {"x", "w"}, {"q"}, "product");
  maker.node("Mul", {"q", "q"}, {"s"}, "square"); // so that nothing joins the product
  maker.node("Add", {"mask", "s"}, {"m"}, "behind");
  maker.node("Softmax", {"m"}, {"p"}, "weights");
  maker.node("MatMul", {"p", "w"}, {"y"}, "result");
  return maker;
}

TEST_F(QuantizerTest, AMaskTakesNoPrecisionHoweverFarDownItIs) {
  Settings how;
  how.plan.integerRows = true;
  how.activations.scheme = Scheme::symmetricUint8;
  const Tensor data = Tensor::of(Elem::f32_, {kSamples, 4, 4}, spread(kSamples * 16, 1, 4));
  for (const float most : {-30.0f, -1e4f, -1e9f, -FLT_MAX, -INFINITY}) {
    const auto outcome = quantize(maskedScores(most), data, how);
    ASSERT_TRUE(outcome) << outcome.status().message();
    EXPECT_GT(outcome->snr(), 25) << most;
    EXPECT_TRUE(outcome->made.plan.quantized[2]) << most;
    EXPECT_GT(outcome->made.steps.at("m").lowest(), -20) << most;
  }
}

TEST_F(QuantizerTest, AMaskOfTwoSumsMasksBoth) {
  ModelMaker maker(17);
  maker.input("x", {"N", 4, 4}).input("mask", {"N", 4, 4});
  maker.output("y", {"N", 4, 4}).output("z", {"N", 4, 4});
  maker.initializer<float>("w", {4, 4}, spread(16, 1, 3));
  maker.initializer<float>("large", {}, {30});
  maker.node("MatMul", {"x", "w"}, {"q"}, "product");
  maker.node("Mul", {"q", "q"}, {"s"}, "square");
  maker.node("Mul", {"s", "large"}, {"l"}, "larger");
  for (const auto& [scores, result] : {std::pair("l", "y"), std::pair("s", "z")}) {
    const std::string name = scores;
    maker.node("Add", {scores, "mask"}, {name + "_m"}, name + "_behind");
    maker.node("Softmax", {name + "_m"}, {result}, name + "_weights");
  }
  Settings how;
  how.plan.integerRows = true;
  how.activations.scheme = Scheme::symmetricUint8;
  std::vector<float> mask(kSamples * 16, 0);
  for (size_t i = 0; i < mask.size(); ++i)
    if (i % 4 > i / 4 % 4) mask[i] = -1e9f;
  ASSERT_TRUE(writeNpy(folder_ + "/mask.npy", Tensor::of(Elem::f32_, {kSamples, 4, 4}, mask)));
  const Tensor data = Tensor::of(Elem::f32_, {kSamples, 4, 4}, spread(kSamples * 16, 1, 4));
  const auto outcome = quantize(maker, data, how, {"mask=" + folder_ + "/mask.npy"});
  ASSERT_TRUE(outcome) << outcome.status().message();
  const auto& steps = outcome->made.steps;
  // The lowest mask takes the largest scores below the lowest ones.
  EXPECT_LT(steps.at("mask").lowest(), steps.at("l").lowest() - steps.at("l").highest() - 7);
  EXPECT_GT(outcome->snr(), 20);
}

TEST_F(QuantizerTest, ConstantsOfSeveralValuesHaveStepsOfTheirOwnWhereAllIsIntegers) {
  ModelMaker maker(17);
  maker.input("x", {"N", 2, 4}).output("y", {"N", 2, 4});
  maker.initializer<float>("w", {4, 4}, spread(16, 1, 3));
  maker.initializer<float>("places", {2, 4}, spread(8, 0.5, 5));
  maker.initializer<float>("gains", {4}, {1, -0.5f, 0.25f, 2});
  maker.node("Add", {"x", "places"}, {"a"}, "add");
  maker.node("Mul", {"gains", "a"}, {"g"}, "mul");
  maker.node("Sub", {"places", "g"}, {"d"}, "sub");
  maker.node("MatMul", {"d", "w"}, {"y"}, "product");
  const Tensor data = Tensor::of(Elem::f32_, {kSamples, 2, 4}, spread(kSamples * 8, 1, 4));
  Settings how;
  how.activations.scheme = Scheme::symmetricUint8;
  const auto floats = quantize(maker, data, how);
  ASSERT_TRUE(floats) << floats.status().message();
  EXPECT_EQ(floats->made.plan.why[0],
            "a constant of several values is integers only with --integer-functions");
  how.plan.integerRows = true;
  const auto outcome = quantize(maker, data, how);
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_THAT(outcome->made.plan.quantized, testing::Each(true));
  EXPECT_TRUE(outcome->made.network.constant("places_quantized"));
  EXPECT_GT(outcome->snr(), 28);
}

TEST_F(QuantizerTest, AConstantThatIsInfiniteIsRefusedByName) {
  ModelMaker maker(17);
  maker.input("x", {"N", 4}).output("y", {"N", 4});
  maker.initializer<float>("w", {4, 4}, spread(16, 1, 3));
  maker.initializer<float>("row", {4}, {0, 1, INFINITY, 2});
  maker.node("Mul", {"x", "row"}, {"a"}, "scaled");
  maker.node("Clip", {"a"}, {"c"}, "clip");
  maker.initializer<float>("least", {}, {-1}).initializer<float>("most", {}, {1});
  onnx::NodeProto& clip = *maker.proto.mutable_graph()->mutable_node(1);
  clip.add_input("least");
  clip.add_input("most");
  maker.node("MatMul", {"c", "w"}, {"y"}, "product");
  Settings how;
  how.plan.integerRows = true;
  const Tensor data = Tensor::of(Elem::f32_, {2, 4}, spread(8, 1, 4));
  EXPECT_THAT(test::messageOf(quantize(maker, data, how)),
              HasSubstr("constant 'row' is NaN or infinite"));
}

/// Every opset whose models can be raised to the one that scales by channel need.
class OldOpsetTest : public QuantizerTest, public testing::WithParamInterface<int> {};

TEST_P(OldOpsetTest, IsRaised) {
  ModelMaker maker = convolutions(weights_, {0.1f, 0.2f, 0.3f}, GetParam());
  maker.proto.mutable_graph()->mutable_node(2)->set_output(0, "s");
  onnx::NodeProto& clip = maker.node("Clip", {"s"}, {"l"}, "clip");
  if (GetParam() < 11) {
    test::setAttr(clip, "min", -0.5f);
    test::setAttr(clip, "max", 0.75f);
  } else {
    maker.initializer<float>("least", {}, {-0.5f}).initializer<float>("most", {}, {0.75f});
    clip.add_input("least");
    clip.add_input("most");
  }
  test::setAttr(maker.node("Unsqueeze", {"l"}, {"u"}, "wider"), "axes", std::vector<int64_t>{0});
  test::setAttr(maker.node("Squeeze", {"u"}, {"y"}, "narrower"), "axes", std::vector<int64_t>{0});
  const auto outcome = quantize(maker, images());
  ASSERT_TRUE(outcome) << outcome.status().message();
  EXPECT_EQ(outcome->made.network.opset(), 13);
  EXPECT_GT(outcome->snr(), 25);
}

INSTANTIATE_TEST_SUITE_P(Opsets, OldOpsetTest, testing::Values(7, 8, 9, 10, 11, 12));

TEST_F(QuantizerTest, OpsetsThatAreTooOldAreRefusedByName) {
  EXPECT_THAT(test::messageOf(quantize(convolutions(weights_, {0, 0, 0}, 6), images())),
              HasSubstr("m.onnx: opset 6 is too old to write quantization into: 7 and newer"));
}

TEST_F(QuantizerTest, AProfileWithoutAValueIsRefusedByName) {
  Network network = *Network::read(convolutions(weights_, {0, 0, 0}).write(folder_ + "/m.onnx"));
  RunConditions run;
  run.dims["N"] = 1;
  ASSERT_TRUE(setTypes(network, run));
  const Quantizer quantizer(std::move(network), {});
  EXPECT_THAT(test::messageOf(quantizer.quantize({})),
              HasSubstr("the profile does not have value '"));
}

} // namespace
} // namespace candela::quantize
