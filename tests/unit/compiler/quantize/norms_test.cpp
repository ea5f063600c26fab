// Norms that a model writes out become one node each, whatever way they are written; what only
// looks like one stays.
#include "core/compiler/quantize/norms.h"

#include <gmock/gmock.h>

#include "core/support/file.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::quantize {
namespace {

using test::ModelMaker;
using testing::ElementsAre;

constexpr int64_t kRow = 8;

/// How a norm may be written.
struct Spelling {
  const char* square = "Pow";
  const char* root = "Sqrt"; ///< or "Half", a power
  const char* inverse = "Reciprocal";
  bool scaleFirst = false;
  bool centres = false;
  bool biased = false;
  float exponent = 2;
  float epsilon = 1e-5f;
  int64_t axis = -1;
};

/// x[N,8] to y[N,8] by a norm, with a Relu behind it.
ModelMaker written(const Spelling& how, int opset = 17) {
  ModelMaker maker(opset);
  maker.input("x", {"N", kRow}).output("y", {"N", kRow});
  maker.initializer<float>("w", {kRow}, std::vector<float>(kRow, 1.5f))
      .initializer<float>("b", {kRow}, std::vector<float>(kRow, 0.5f))
      .initializer<float>("two", {}, {how.exponent})
      .initializer<float>("one", {}, {1})
      .initializer<float>("half", {}, {0.5f})
      .initializer<float>("minus_half", {}, {-0.5f})
      .initializer<float>("epsilon", {}, {how.epsilon});
  const auto mean = [&](const char* of, const char* to, const char* name) {
    onnx::NodeProto& node = maker.node("ReduceMean", {of}, {to}, name);
    test::setAttr(node, "axes", std::vector<int64_t>{how.axis});
  };
  std::string x = "x";
  if (how.centres) {
    mean("x", "m", "middle");
    maker.node("Sub", {"x", "m"}, {"c"}, "centre");
    x = "c";
  }
  if (std::string(how.square) == "Pow")
    maker.node("Pow", {x, "two"}, {"s"}, "square");
  else
    maker.node("Mul", {x, x}, {"s"}, "square");
  mean("s", "v", "mean");
  maker.node("Add", {"epsilon", "v"}, {"e"}, "add");
  const std::string inverse = how.inverse;
  if (inverse == "Pow") {
    maker.node("Pow", {"e", "minus_half"}, {"i"}, "inverse");
  } else {
    if (std::string(how.root) == "Sqrt")
      maker.node("Sqrt", {"e"}, {"r"}, "root");
    else
      maker.node("Pow", {"e", "half"}, {"r"}, "root");
    if (inverse == "Reciprocal") maker.node("Reciprocal", {"r"}, {"i"}, "inverse");
    if (inverse == "One") maker.node("Div", {"one", "r"}, {"i"}, "inverse");
  }
  if (inverse == "Div")
    maker.node("Div", {x, "r"}, {"n"}, "normal");
  else
    maker.node("Mul", {"i", x}, {"n"}, "normal");
  const std::string product = how.biased ? "p" : "q";
  maker.node("Mul", {how.scaleFirst ? "w" : "n", how.scaleFirst ? "n" : "w"}, {product}, "scale");
  if (how.biased) maker.node("Add", {"p", "b"}, {"q"}, "bias");
  maker.node("Relu", {"q"}, {"y"}, "relu");
  return maker;
}

class NormsTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Network joined(const ModelMaker& maker) {
    Network network = Network::read(maker.write(folder_ + "/m.onnx")).orAbort();
    joinNorms(network);
    return network;
  }
  static std::vector<std::string> operators(const Network& network) {
    std::vector<std::string> list;
    for (const auto& node : network.model.graph.nodes) list.push_back(node.opType);
    return list;
  }
  const std::string folder_ = test::scratchFolder();
};

TEST_F(NormsTest, AreFoundHoweverTheyAreWritten) {
  for (const char* square : {"Pow", "Mul"})
    for (const char* inverse : {"Reciprocal", "One", "Div", "Pow"})
      for (const char* root : {"Sqrt", "Half"})
        for (const bool centres : {false, true})
          for (const bool biased : {false, true}) {
            SCOPED_TRACE(fmt::format("{} {} {} {} {}", square, inverse, root, centres, biased));
            const Spelling how{square, root, inverse, biased, centres, biased};
            const Network network = joined(written(how));
            const char* name = centres ? "LayerNormalization" : "RMSNormalization";
            if (biased && !centres)
              EXPECT_THAT(operators(network), ElementsAre(name, "Add", "Relu"));
            else
              EXPECT_THAT(operators(network), ElementsAre(name, "Relu"));
            const auto& norm = network.node(0);
            EXPECT_EQ(norm.inputs[0], "x");
            EXPECT_EQ(norm.inputs[1], "w");
            EXPECT_EQ(norm.inputs.size(), centres && biased ? 3u : 2u);
            EXPECT_EQ(attributeOf<float>(norm, "epsilon", 0), 1e-5f);
            EXPECT_EQ(network.opset(), centres ? 17 : 23);
          }
}

TEST_F(NormsTest, WhatOthersReadStays) {
  ModelMaker maker = written({});
  maker.output("r", {"N", 1}); // the root is a result too
  EXPECT_EQ(operators(joined(maker)).size(), 8u);
  ModelMaker other = written({});
  other.node("Neg", {"v"}, {"z"}, "neg");
  other.output("z", {"N", 1});
  EXPECT_EQ(operators(joined(other)).size(), 9u);
}

TEST_F(NormsTest, WhatIsNoNormStays) {
  for (const Spelling& how :
       {Spelling{.exponent = 3}, Spelling{.epsilon = -1}, Spelling{.axis = 0}}) {
    const Network network = joined(written(how));
    EXPECT_EQ(network.opset(), 17);
    EXPECT_EQ(operators(network).size(), 8u);
  }
}

} // namespace
} // namespace candela::quantize
