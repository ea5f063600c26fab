// Every convolution and every product of quantized operands in the benchmark models runs as
// integers, and says so.
#include <gtest/gtest.h>

#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/import/import.h"

namespace candela {
namespace {

using graph::OpKind;

struct Expected {
  const char* model;
  int convs, products, floatProducts;
};

class QuantizedModel : public ::testing::TestWithParam<Expected> {};

TEST_P(QuantizedModel, RunsAsIntegers) {
  import::ImportOptions options;
  options.dims["N"] = 1;
  auto graph = import::importModel(
      import::onnx_io::readModel(std::string(CANDELA_MODELS) + "/" + GetParam().model + ".onnx")
          .orAbort(),
      options);
  ASSERT_TRUE(graph.isOk()) << graph.status().message();
  ASSERT_TRUE(graph::passes::optimize(*graph).isOk());
  int convs = 0, products = 0, floatProducts = 0;
  for (const auto& node : graph->nodes()) {
    const std::string note = graph::passes::integerNote(*node);
    const bool isFloat = node->kind == OpKind::Conv || node->kind == OpKind::Matmul ||
                         node->kind == OpKind::Gemm || node->kind == OpKind::Attention;
    const bool isInteger = node->kind == OpKind::ConvInteger || node->kind == OpKind::MatmulInteger;
    convs += node->kind == OpKind::ConvInteger;
    products += node->kind == OpKind::MatmulInteger;
    floatProducts += isFloat;
    if (isFloat || isInteger) {
      EXPECT_EQ(note, isInteger ? "runs as integers" : "") << node->userName();
    }
  }
  EXPECT_EQ(convs, GetParam().convs);
  EXPECT_EQ(products, GetParam().products);
  EXPECT_EQ(floatProducts, GetParam().floatProducts)
      << "products of operands that the model does not quantize";
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedModel,
                         ::testing::Values(Expected{"mbv2_int8", 52, 1, 0},
                                           Expected{"resnet50_int8", 53, 1, 0},
                                           Expected{"bert4_int8", 0, 24, 4}),
                         [](const auto& info) { return std::string(info.param.model); });

TEST(IntegerNote, SaysWhyAProductStaysFloat) {
  graph::Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::u8_, {2, 3}));
  graph::Value* scale = graph.addInput("scale", graph::TensorType(Elem::f32_, {}));
  graph::Value* known = graph.addConstant(Tensor::of<float>(Elem::f32_, {}, {0.5f}));
  const auto dequantized = [&](graph::Value* by) {
    return (*graph.addNode(OpKind::Dequantize, {x, by}))->result();
  };
  const auto transposed = graph.addNode(OpKind::Transpose, {dequantized(scale)},
                                        {{"perm", std::vector<int64_t>{1, 0}}});
  const auto product = graph.addNode(OpKind::Matmul, {dequantized(known), (*transposed)->result()});
  EXPECT_EQ(graph::passes::integerNote(**product),
            "dequantized because operand b is not quantized by constants");
  const auto root = graph.addNode(OpKind::Sqrt, {dequantized(known)});
  EXPECT_EQ(graph::passes::integerNote(**root), "dequantized because its result is not quantized");
}

} // namespace
} // namespace candela
