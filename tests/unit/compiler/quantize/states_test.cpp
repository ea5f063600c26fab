// Caches that are integers at the borders of the model: what is written, and what is refused by
// name.
#include "core/compiler/quantize/states.h"

#include <gmock/gmock.h>

#include "core/compiler/import/onnx_io/write.h"
#include "core/compiler/quantize/quantizer.h"
#include "core/support/file.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::HasSubstr;

constexpr int64_t kPlaces = 3;
constexpr int64_t kWidth = 4;
constexpr int64_t kSamples = 4;

std::vector<float> wave(int64_t count, float size) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(size * std::sin(static_cast<float>(3 * i + 1)));
  return values;
}

/// Puts x [1,4] times a matrix into row 1 of past [3,4], and multiplies what is there then.
ModelMaker appending() {
  ModelMaker maker(17);
  maker.input("x", {1, kWidth}).input("past", {kPlaces, kWidth});
  maker.output("present", {kPlaces, kWidth}).output("y", {kPlaces, kWidth});
  maker.initializer<float>("w", {kWidth, kWidth}, wave(kWidth * kWidth, 1));
  maker.initializer<int64_t>("row", {1, 1}, {1});
  maker.node("MatMul", {"x", "w"}, {"k"}, "project");
  maker.node("ScatterND", {"past", "row", "k"}, {"present"}, "append");
  maker.node("MatMul", {"present", "w"}, {"y"}, "read");
  return maker;
}

class StatesTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The quantized model with its states stored.
  Result<Quantized> quantize(const ModelMaker& maker,
                             const std::map<std::string, std::string>& states) {
    CDL_ASSIGN(Network network, Network::read(maker.write(folder_ + "/m.onnx")));
    std::vector<std::string> files;
    for (const Port& port : network.ports()) {
      Shape dims = port.dims;
      dims.insert(dims.begin(), kSamples);
      files.push_back(port.name + "=" + folder_ + "/" + port.name + ".npy");
      CDL_TRY(writeNpy(folder_ + "/" + port.name + ".npy",
                       Tensor::of(Elem::f32_, dims, wave(*elementCount(dims), 1))));
    }
    CDL_ASSIGN(const Samples samples, Samples::open(files, network.ports(), 1, {}));
    RunConditions run;
    run.shapes = samples.shapes();
    CDL_TRY(setTypes(network, run));
    Settings settings;
    settings.activations.scheme = Scheme::symmetricUint8;
    settings.plan = {true, states};
    Quantizer quantizer(std::move(network), settings);
    CDL_ASSIGN(Profile profile,
               profileModel(quantizer.network(), quantizer.observed(), samples, run, false, {}));
    quantizer.setProfile(std::move(profile));
    CDL_ASSIGN(Quantized made, quantizer.quantize({}));
    CDL_TRY(storeStates(made.network, states));
    return made;
  }
  const std::string folder_ = test::scratchFolder();
};

TEST_F(StatesTest, BothEndsAreIntegersOfTheSameSteps) {
  const auto made = quantize(appending(), {{"past", "present"}});
  ASSERT_TRUE(made) << made.status().message();
  const auto& graph = made->network.model.graph;
  EXPECT_EQ(graph.inputs[1].elem, Elem::i8_);
  EXPECT_EQ(graph.outputs[0].elem, Elem::i8_);
  EXPECT_EQ(graph.inputs[0].elem, Elem::f32_);
  const Quantization& past = made->steps.at("past");
  const Quantization& present = made->steps.at("present");
  EXPECT_EQ(past.scale, present.scale);
  EXPECT_EQ(past.zero, 0);
  EXPECT_EQ(present.zero, 0);
  // What is put has these steps from the product on: nothing is rounded twice.
  EXPECT_EQ(made->steps.at("k").scale, present.scale);
  for (const auto& node : graph.nodes) {
    const bool rounds = node.opType == "QuantizeLinear";
    EXPECT_FALSE(rounds && node.inputs[0] == "past");
  }
  const std::string file = folder_ + "/int8.onnx";
  ASSERT_TRUE(import::onnx_io::writeModel(made->network.model, file));
  const auto written = import::onnx_io::readModel(file);
  ASSERT_TRUE(written) << written.status().message();
  EXPECT_EQ(written->graph.inputs[1].elem, Elem::i8_);
  EXPECT_EQ(written->graph.outputs[0].elem, Elem::i8_);
  const auto imported = import::importModel(*written, {});
  EXPECT_TRUE(imported) << imported.status().message();
}

TEST_F(StatesTest, AStateThatANodeReadsAsFloatsIsRefusedByName) {
  ModelMaker maker = appending();
  maker.output("z", {kPlaces, kWidth});
  maker.node("Round", {"past"}, {"z"}, "rounds");
  EXPECT_THAT(test::messageOf(quantize(maker, {{"past", "present"}})),
              HasSubstr("state 'past': node 'rounds', which stays float, reads it"));
}

TEST_F(StatesTest, AStateThatANodeGivesAsFloatsIsRefusedByName) {
  ModelMaker maker = appending();
  maker.proto.mutable_graph()->mutable_node(1)->set_output(0, "put");
  maker.proto.mutable_graph()->mutable_node(2)->set_input(0, "put");
  maker.node("Round", {"put"}, {"present"}, "rounds");
  EXPECT_THAT(test::messageOf(quantize(maker, {{"past", "present"}})),
              HasSubstr("state 'present': node 'rounds', which stays float, gives it"));
}

} // namespace
} // namespace candela::quantize
