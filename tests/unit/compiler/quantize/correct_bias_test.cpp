// Bias correction takes back what rounded weights shift channels by, wherever a layer has a bias.
#include "core/compiler/quantize/correct_bias.h"

#include <gmock/gmock.h>

#include "core/compiler/quantize/quantizer.h"
#include "core/support/file.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::ElementsAre, testing::HasSubstr;

constexpr int64_t kSamples = 16, kFeatures = 12, kResults = 6;

/// Small random weights, and data that is never negative: whatever weights lose adds up.
class CorrectBiasTest : public testing::Test {
protected:
  void SetUp() override {
    data_ = *randomTensor(Elem::f32_, {kSamples, kFeatures}, 1);
    for (int64_t i = 0; i < data_.count(); ++i)
      data_.mutableAs<float>()[i] = std::abs(data_.as<float>()[i]);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::vector<float> random(int64_t count, uint64_t seed) {
    const Tensor tensor = *randomTensor(Elem::f32_, {count}, seed);
    return {tensor.as<float>(), tensor.as<float>() + count};
  }
  /// x [N,12] by weights [12,6] to y [N,6].
  static ModelMaker product() {
    ModelMaker maker(17);
    maker.input("x", {"N", kFeatures}).output("y", {"N", kResults});
    maker.initializer<float>("w", {kFeatures, kResults}, random(kFeatures * kResults, 2))
        .initializer<float>("b", {kResults}, random(kResults, 3));
    return maker;
  }

  Result<Quantizer> quantizer(const ModelMaker& maker, Settings settings) const {
    CDL_ASSIGN(Network network, Network::read(maker.write(folder_ + "/m.onnx")));
    CDL_TRY(writeNpy(folder_ + "/x.npy", data_));
    CDL_ASSIGN(const Samples samples, Samples::open({folder_ + "/x.npy"}, network.ports(), 1, {}));
    RunConditions run;
    run.shapes = samples.shapes();
    CDL_TRY(setTypes(network, run));
    Quantizer made(std::move(network), settings);
    CDL_ASSIGN(Profile profile,
               profileModel(made.network(), made.observed(), samples, run, false, {}));
    made.setProfile(std::move(profile));
    made.setData(samples, run);
    return made;
  }
  /// Of each channel of y, the mean of what the quantized model has more.
  std::vector<double> shifts(const ModelMaker& maker, Settings settings, Quantized& made) const {
    Result<Quantizer> from = quantizer(maker, settings);
    EXPECT_TRUE(from) << from.status().message();
    Result<Quantized> quantized = from->quantize({});
    EXPECT_TRUE(quantized) << quantized.status().message();
    made = std::move(*quantized);
    RunConditions run;
    run.dims["N"] = kSamples;
    const std::vector<Tensor> in = {data_};
    const Tensor want = (*Observed::compile(from->network().model, {"y"}, run)->run(in))[0],
                 got = (*Observed::compile(made.network.model, {"y"}, run)->run(in))[0];
    std::vector<double> means(kResults, 0);
    for (int64_t i = 0; i < want.count(); ++i)
      means[static_cast<size_t>(i % kResults)] +=
          static_cast<double>(got.as<float>()[i] - want.as<float>()[i]) / kSamples;
    return means;
  }
  static double largest(const std::vector<double>& means) {
    double most = 0;
    for (const double mean : means) most = std::max(most, std::abs(mean));
    return most;
  }
  /// Expects the shifts of channels to go away, by the biases of these nodes.
  void expectCorrected(const ModelMaker& maker, Settings settings) const {
    Quantized plain, corrected;
    const double before = largest(shifts(maker, settings, plain));
    settings.correctsBias = true;
    const double after = largest(shifts(maker, settings, corrected));
    EXPECT_GT(before, 0.02);
    EXPECT_LT(after, before / 50);
    ASSERT_TRUE(corrected.biases);
    EXPECT_THAT(corrected.biases->nodes, ElementsAre("product"));
    EXPECT_THAT(corrected.biases->leftOut, testing::IsEmpty());
    EXPECT_EQ(corrected.biases->runs, kSamples);
  }

  static Settings narrow(int64_t block = 0) {
    Settings settings;
    settings.weights.elem = Elem::i4_;
    settings.weights.block = block;
    return settings;
  }

  Tensor data_;
  const std::string folder_ = test::scratchFolder();
};

TEST_F(CorrectBiasTest, CorrectsABiasInIntegers) {
  ModelMaker maker = product();
  maker.node("Gemm", {"x", "w", "b"}, {"y"}, "product");
  expectCorrected(maker, narrow());
}

TEST_F(CorrectBiasTest, GivesALayerWithoutABiasOne) {
  ModelMaker maker = product();
  maker.node("Gemm", {"x", "w"}, {"y"}, "product");
  expectCorrected(maker, narrow());
}

TEST_F(CorrectBiasTest, CorrectsABiasThatStaysFloat) {
  ModelMaker maker = product();
  test::setAttr(maker.node("Gemm", {"x", "w", "b"}, {"y"}, "product"), "beta", 0.5f);
  expectCorrected(maker, narrow(4));
  Settings weightsOnly = narrow(4);
  weightsOnly.weightsOnly = true;
  expectCorrected(maker, weightsOnly);
}

TEST_F(CorrectBiasTest, CorrectsARowThatIsAddedToAProduct) {
  ModelMaker maker = product();
  maker.node("MatMul", {"x", "w"}, {"m"}, "product");
  maker.node("Add", {"b", "m"}, {"y"}, "add");
  expectCorrected(maker, narrow());
}

TEST_F(CorrectBiasTest, CorrectsTheChannelsOfAConvolutionWithBorders) {
  ModelMaker maker(17);
  maker.input("x", {"N", kFeatures}).output("y", {"N", kResults});
  maker.initializer<int64_t>("shape", {4}, {-1, 3, 2, 2})
      .initializer<float>("w", {kResults, 3, 3, 3}, random(kResults * 27, 4));
  maker.node("Reshape", {"x", "shape"}, {"r"}, "reshape");
  onnx::NodeProto& conv = maker.node("Conv", {"r", "w"}, {"c"}, "product");
  test::setAttr(conv, "pads", std::vector<int64_t>{1, 1, 1, 1});
  test::setAttr(conv, "strides", std::vector<int64_t>{2, 2});
  maker.node("Flatten", {"c"}, {"y"}, "flatten");
  expectCorrected(maker, narrow());
}

TEST_F(CorrectBiasTest, LeavesOutAProductThatHasNoBiasToTakeIt) {
  ModelMaker maker = product();
  maker.node("MatMul", {"x", "w"}, {"y"}, "product");
  Settings settings = narrow();
  settings.correctsBias = true;
  Quantized made;
  shifts(maker, settings, made);
  ASSERT_TRUE(made.biases);
  EXPECT_THAT(made.biases->nodes, testing::IsEmpty());
  ASSERT_EQ(made.biases->leftOut.size(), 1u);
  EXPECT_EQ(made.biases->leftOut[0].why, "it has no bias");
}

TEST_F(CorrectBiasTest, IsRefusedWithoutData) {
  ModelMaker maker = product();
  maker.node("Gemm", {"x", "w", "b"}, {"y"}, "product");
  Settings settings = narrow();
  settings.correctsBias = true;
  Result<Quantizer> from = quantizer(maker, settings);
  ASSERT_TRUE(from);
  from->setData({}, {});
  EXPECT_THAT(test::messageOf(from->quantize({})), HasSubstr("bias correction needs data"));
}

} // namespace
} // namespace candela::quantize
