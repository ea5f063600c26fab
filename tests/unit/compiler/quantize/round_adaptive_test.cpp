// Adaptive rounding is never worse than the nearest on the data, and better where inputs go
// together.
#include "core/compiler/quantize/round_adaptive.h"

#include <gmock/gmock.h>

#include "core/compiler/quantize/quantizer.h"
#include "core/support/file.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::HasSubstr, testing::IsEmpty;

constexpr int64_t kSamples = 24;

std::vector<float> random(int64_t count, uint64_t seed) {
  const Tensor tensor = *randomTensor(Elem::f32_, {count}, seed);
  return {tensor.as<float>(), tensor.as<float>() + count};
}

/// Values around 1: what is wrong with one weight shows with all others.
Tensor correlated(Shape dims) {
  Tensor data = *randomTensor(Elem::f32_, std::move(dims), 1);
  for (int64_t i = 0; i < data.count(); ++i)
    data.mutableAs<float>()[i] = 1 + 0.25f * data.as<float>()[i];
  return data;
}

/// A model of one product "p" from x to y, and data for it.
class RoundAdaptiveTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  struct Outcome {
    Quantized made;
    double noise = 0; ///< of y on the data, with nothing but weights rounded
  };
  Outcome quantize(const ModelMaker& maker, Settings settings, const Tensor& data) const {
    Outcome outcome;
    settings.weightsOnly = true;
    const auto status = quantizeInto(outcome, maker, settings, data);
    EXPECT_TRUE(status) << status.message();
    return outcome;
  }
  Status quantizeInto(Outcome& outcome, const ModelMaker& maker, const Settings& settings,
                      const Tensor& data) const {
    CDL_ASSIGN(Network network, Network::read(maker.write(folder_ + "/m.onnx")));
    CDL_TRY(writeNpy(folder_ + "/x.npy", data));
    CDL_ASSIGN(const Samples samples, Samples::open({folder_ + "/x.npy"}, network.ports(), 1, {}));
    RunConditions run;
    run.shapes = samples.shapes();
    CDL_TRY(setTypes(network, run));
    Quantizer quantizer(std::move(network), settings);
    quantizer.setData(samples, run);
    CDL_ASSIGN(outcome.made, quantizer.quantize({}));
    CDL_ASSIGN(const Comparison comparison,
               compareModels(quantizer.network(), outcome.made.network.model, {}, samples, kSamples,
                             {}, run, {}));
    outcome.noise = comparison.values.at("y").noise;
    return Status::ok();
  }

  /// Expects less noise with the option, and that what is told of it is what comes out.
  void expectBetter(const ModelMaker& maker, Settings settings, const Tensor& data) const {
    const double nearest = quantize(maker, settings, data).noise;
    settings.roundsAdaptively = true;
    const Outcome adaptive = quantize(maker, settings, data);
    EXPECT_LT(adaptive.noise, 0.9 * nearest);
    ASSERT_TRUE(adaptive.made.rounding);
    EXPECT_THAT(adaptive.made.rounding->leftOut, IsEmpty());
    ASSERT_EQ(adaptive.made.rounding->layers.size(), 1u);
    const AdaptedLayer& layer = adaptive.made.rounding->layers[0];
    EXPECT_EQ(layer.node, "p");
    EXPECT_NEAR(layer.nearest / nearest, 1, 1e-3);
    EXPECT_NEAR(layer.adaptive / adaptive.noise, 1, 1e-3);
  }

  static Settings narrow(int64_t block = 0) {
    Settings settings;
    settings.weights.elem = Elem::i4_;
    settings.weights.block = block;
    return settings;
  }

  const std::string folder_ = test::scratchFolder();
};

/// Two weights of 1.4 steps whose inputs are the same: one has to go up.
TEST_F(RoundAdaptiveTest, LetsOneWeightMakeUpForAnother) {
  ModelMaker maker(17);
  maker.input("x", {"N", 3}).output("y", {"N", 1});
  maker.initializer<float>("w", {3, 1}, {127, 1.4f, 1.4f});
  maker.node("MatMul", {"x", "w"}, {"y"}, "p");
  Tensor data = *Tensor::zeros(Elem::f32_, {kSamples, 3});
  for (int64_t i = 0; i < kSamples; ++i)
    data.mutableAs<float>()[3 * i + 1] = data.mutableAs<float>()[3 * i + 2] =
        static_cast<float>(i + 1);
  Settings settings;
  settings.roundsAdaptively = true;
  const Outcome outcome = quantize(maker, settings, data);
  const Tensor* weights = outcome.made.network.constant("w_quantized_adapted");
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->as<int8_t>()[0], 127);
  EXPECT_EQ(weights->as<int8_t>()[1] + weights->as<int8_t>()[2], 3);
  const AdaptedLayer& layer = outcome.made.rounding->layers[0];
  EXPECT_NEAR(layer.adaptive / layer.nearest, 0.2 * 0.2 / (0.8 * 0.8), 1e-3);
}

TEST_F(RoundAdaptiveTest, IsBetterForMatricesOfAnyLayout) {
  const Tensor data = *randomTensor(Elem::f32_, {kSamples, 20}, 1);
  for (const int64_t block : {0, 8}) {
    for (const int64_t transposed : {0, 1}) {
      ModelMaker maker(17);
      maker.input("x", {"N", 20}).output("y", {"N", 6});
      maker.initializer<float>("w", transposed ? Shape{6, 20} : Shape{20, 6}, random(120, 2));
      test::setAttr(maker.node("Gemm", {"x", "w"}, {"y"}, "p"), "transB", transposed);
      expectBetter(maker, narrow(block), data);
    }
    ModelMaker maker(17);
    maker.input("x", {"N", 4, 5}).output("y", {"N", 4, 6});
    maker.initializer<float>("w", {5, 6}, random(30, 2));
    maker.node("MatMul", {"x", "w"}, {"y"}, "p");
    expectBetter(maker, narrow(block), correlated({kSamples, 4, 5}));
  }
}

TEST_F(RoundAdaptiveTest, IsBetterForConvolutionsWithBordersStridesAndGroups) {
  const Tensor data = correlated({kSamples, 4, 5, 6});
  struct Case {
    int64_t groups;
    std::vector<int64_t> strides, dilations, pads;
    const char* autoPad;
  };
  for (const Case& it : {Case{1, {1, 1}, {1, 1}, {0, 0, 0, 0}, "NOTSET"},
                         {2, {2, 1}, {1, 2}, {1, 2, 0, 1}, "NOTSET"},
                         {4, {1, 1}, {1, 1}, {1, 1, 1, 1}, "NOTSET"},
                         {1, {2, 2}, {1, 1}, {}, "SAME_UPPER"},
                         {2, {2, 2}, {1, 1}, {}, "SAME_LOWER"}}) {
    ModelMaker maker(17);
    maker.input("x", {"N", 4, 5, 6}).output("y");
    maker.initializer<float>("w", {8, 4 / it.groups, 3, 2}, random(8 * 24 / it.groups, 3));
    onnx::NodeProto& conv = maker.node("Conv", {"x", "w"}, {"y"}, "p");
    test::setAttr(conv, "group", it.groups);
    test::setAttr(conv, "strides", it.strides);
    test::setAttr(conv, "dilations", it.dilations);
    test::setAttr(conv, "auto_pad", std::string(it.autoPad));
    if (!it.pads.empty()) test::setAttr(conv, "pads", it.pads);
    expectBetter(maker, narrow(), data);
  }
}

/// On data of every rank, the error of no channel, and so of no layer, gets larger.
TEST_F(RoundAdaptiveTest, IsNeverWorseThanTheNearest) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Tensor data = *randomTensor(Elem::f32_, {kSamples, 7}, seed);
    for (int64_t i = 0; i < data.count(); ++i)
      if (static_cast<uint64_t>(i % 7) > seed / 2) data.mutableAs<float>()[i] = 0;
    ModelMaker maker(17);
    maker.input("x", {"N", 7}).output("y", {"N", 1});
    maker.initializer<float>("w", {7, 1}, random(7, 100 + seed));
    maker.node("MatMul", {"x", "w"}, {"y"}, "p");
    Settings settings = narrow();
    const double nearest = quantize(maker, settings, data).noise;
    settings.roundsAdaptively = true;
    const Outcome outcome = quantize(maker, settings, data);
    EXPECT_LE(outcome.noise, nearest * (1 + 1e-4)) << seed;
    const AdaptedLayer& layer = outcome.made.rounding->layers[0];
    EXPECT_LE(layer.adaptive, layer.nearest) << seed;
  }
}

TEST_F(RoundAdaptiveTest, LeavesWeightsWithoutInputsAtTheNearest) {
  ModelMaker maker(17);
  maker.input("x", {"N", 4}).output("y", {"N", 2});
  maker.initializer<float>("w", {4, 2}, random(8, 2));
  maker.node("MatMul", {"x", "w"}, {"y"}, "p");
  Settings settings = narrow();
  settings.roundsAdaptively = true;
  const Outcome outcome = quantize(maker, settings, *Tensor::zeros(Elem::f32_, {kSamples, 4}));
  EXPECT_EQ(outcome.noise, 0);
  EXPECT_EQ(outcome.made.rounding->layers[0].adaptive, 0);
}

TEST_F(RoundAdaptiveTest, LeavesOutSumsThatAreTooLong) {
  ModelMaker maker(17);
  maker.input("x", {"N", kMostTerms + 1}).output("y", {"N", 1});
  maker.initializer<float>("w", {kMostTerms + 1, 1}, random(kMostTerms + 1, 2));
  maker.node("MatMul", {"x", "w"}, {"y"}, "p");
  Settings settings;
  settings.roundsAdaptively = true;
  const Outcome outcome =
      quantize(maker, settings, *randomTensor(Elem::f32_, {kSamples, kMostTerms + 1}, 1));
  EXPECT_THAT(outcome.made.rounding->layers, IsEmpty());
  ASSERT_EQ(outcome.made.rounding->leftOut.size(), 1u);
  EXPECT_EQ(outcome.made.rounding->leftOut[0].why, "its sums have 3073 terms, more than 3072");
}

TEST_F(RoundAdaptiveTest, IsRefusedWithoutData) {
  ModelMaker maker(17);
  maker.input("x", {1, 4}).output("y", {1, 2});
  maker.initializer<float>("w", {4, 2}, random(8, 2));
  maker.node("MatMul", {"x", "w"}, {"y"}, "p");
  Network network = *Network::read(maker.write(folder_ + "/m.onnx"));
  ASSERT_TRUE(setTypes(network, {}));
  Settings settings;
  settings.weightsOnly = settings.roundsAdaptively = true;
  EXPECT_THAT(test::messageOf(Quantizer(std::move(network), settings).quantize({})),
              HasSubstr("adaptive rounding needs data"));
}

} // namespace
} // namespace candela::quantize
