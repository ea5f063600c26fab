// What TensorFlow Lite models become: names, shapes, layouts and quantization as import takes them.

#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/import/import.h"
#include "core/support/file.h"

namespace candela::test {
namespace {

using import::onnx_io::Model, import::onnx_io::Node;
using testing::ElementsAre, testing::HasSubstr;

Bytes contentOf(const std::string& seed) {
  const auto bytes = mapFile(fmt::format("{}/{}.tflite", TFLITE_SEEDS, seed));
  EXPECT_TRUE(bytes.isOk()) << seed;
  return bytes ? *bytes : Bytes();
}

Model modelOf(const std::string& seed) {
  auto model = import::parseModel(contentOf(seed), seed);
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return model ? *std::move(model) : Model();
}

std::vector<std::string> opsOf(const Model& model) {
  std::vector<std::string> ops;
  for (const Node& node : model.graph.nodes) ops.push_back(node.opType);
  return ops;
}

TEST(Tflite, IsRecognisedByItsContent) {
  EXPECT_EQ(import::formatOf(contentOf("signed")).name, "TensorFlow Lite");
  EXPECT_EQ(import::formatOf(Bytes()).name, "ONNX");
  // A producer of that name in an ONNX file: no table lies where the first word says.
  const std::string onnx("\x08\x07\x12\x04TFL3\x1a\x01x", 11);
  EXPECT_EQ(import::formatOf(Bytes::copyOf(onnx.data(), onnx.size())).name, "ONNX");
}

TEST(Tflite, ReadsContentThatIsNotAligned) {
  const Bytes content = contentOf("conv_2d_i8_relu6");
  std::string shifted(1, 'x');
  shifted.append(reinterpret_cast<const char*>(content.data()), content.size());
  const Bytes odd = Bytes::wrap(shifted.data() + 1, content.size(), nullptr);
  const auto model = import::parseModel(odd, "odd");
  ASSERT_TRUE(model.isOk()) << model.status().message();
  EXPECT_EQ(opsOf(*model), opsOf(modelOf("conv_2d_i8_relu6")));
}

/// A subgraph whose tensors are one table, `uses` times, with a name of 1 MB.
std::string modelOfOneTensor(size_t uses) {
  using Table = flatbuffers::Offset<flatbuffers::Table>;
  const auto field = [](int id) { return static_cast<flatbuffers::voffset_t>(4 + 2 * id); };
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(1 << 20, 'n'));
  auto start = builder.StartTable();
  builder.AddOffset(field(3), name);
  const Table tensor(builder.EndTable(start));
  const auto tensors = builder.CreateVector(std::vector<Table>(uses, tensor));
  start = builder.StartTable();
  builder.AddOffset(field(0), tensors);
  const Table subgraph(builder.EndTable(start));
  const auto subgraphs = builder.CreateVector(std::vector<Table>{subgraph});
  start = builder.StartTable();
  builder.AddElement<uint32_t>(field(0), 3, 0); // the schema's version
  builder.AddOffset(field(2), subgraphs);
  builder.Finish(Table(builder.EndTable(start)), "TFL3");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

TEST(Tflite, BoundsWhatTablesThatAreSharedTake) {
  const auto statusOf = [](size_t uses) {
    const std::string content = modelOfOneTensor(uses);
    return import::parseModel(Bytes::copyOf(content.data(), content.size()), "shared").status();
  };
  EXPECT_EQ(statusOf(40).message(), "");
  EXPECT_THAT(statusOf(200).message(), HasSubstr("its tables are shared too often"));
}

TEST(Tflite, NamesPortsByTheSignatureAndDimsByAxis) {
  const Model model = modelOf("signed");
  ASSERT_EQ(model.graph.inputs.size(), 1u);
  EXPECT_EQ(model.graph.inputs[0].name, "x");
  EXPECT_EQ(model.graph.inputs[0].dims[0].name, "batch");
  EXPECT_EQ(model.graph.inputs[0].dims[1].value, 2);
  EXPECT_EQ(model.graph.outputs[0].name, "y");
  EXPECT_EQ(model.graph.outputs[0].dims[0].value, -1);
}

TEST(Tflite, PutsProductsBetweenQuantization) {
  EXPECT_THAT(opsOf(modelOf("conv_2d_i8_relu6")),
              ElementsAre("DequantizeLinear", "DequantizeLinear", "Transpose", "DequantizeLinear",
                          "Conv", "Clip", "Transpose", "QuantizeLinear", "Identity"));
}

TEST(Tflite, MovesStoredElements) {
  EXPECT_THAT(opsOf(modelOf("space_to_batch_nd_i8")),
              ElementsAre("Cast", "Pad", "Reshape", "Transpose", "Reshape", "Identity"));
}

TEST(Tflite, WritesSubgraphsAsGraphs) {
  const Model model = modelOf("chosen");
  EXPECT_THAT(opsOf(model), ElementsAre("If", "Identity"));
  EXPECT_THAT(opsOf(modelOf("repeated")), ElementsAre("Less", "Loop", "Identity", "Identity"));
}

TEST(Tflite, GivesCustomOperatorsToWhoClaimsThem) {
  const Model model = modelOf("custom");
  std::string asked;
  import::ImportOptions options;
  options.claim = [&](const import::CustomNode& node) -> Result<import::CustomOp> {
    asked = node.node.domain + "." + node.node.opType;
    EXPECT_EQ(std::get<std::string>(node.node.attributes.at("custom_options")), "\x01\x02\x03");
    return failure(Code::unsupported, "not mine");
  };
  const auto graph = import::importModel(model, options);
  EXPECT_EQ(asked, "tflite.Acme");
  EXPECT_THAT(graph.status().message(), HasSubstr("node 'Acme 0' (Acme)"));
  EXPECT_THAT(graph.status().message(), HasSubstr("not mine"));
}

TEST(Tflite, EndsKeysOfCustomOperatorsWithTheirOptions) {
  const Model model = modelOf("custom_open_key");
  ASSERT_THAT(opsOf(model), ElementsAre("Acme", "Identity"));
  const auto& attributes = model.graph.nodes[0].attributes;
  ASSERT_EQ(attributes.size(), 1u);
  EXPECT_EQ(attributes.begin()->first, "a\x01\x02\x01\x01\x01\x05\x04\x02$\x01");
  EXPECT_EQ(std::get<int64_t>(attributes.begin()->second), 5);
}

TEST(Tflite, LoadsFromMemoryAsFromAFile) {
  const auto loaded = driver::loadContent(contentOf("mean_i8"), "in memory", {});
  ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
  EXPECT_TRUE(std::holds_alternative<graph::Graph>(*loaded));
}

} // namespace
} // namespace candela::test
