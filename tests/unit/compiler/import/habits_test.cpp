// What exporters write, whole: chains of shape arithmetic, names and types that mean nothing,
// leftovers of training, models that are long or wide. The expected values are worked out by hand.
#include <gmock/gmock.h>

#include "tests/unit/compiler/import/model_maker.h"
#include "tests/unit/compiler/import/tensor_check.h"

namespace candela::test {
namespace {

using graph::OpKind;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

/// 0, 1, 2, ...
Tensor counted(Shape dims) {
  Floats values(static_cast<size_t>(*elementCount(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of<float>(Elem::f32_, std::move(dims), values);
}

TensorProto ints32(const std::string& name, std::vector<int64_t> dims,
                   const std::vector<int32_t>& values) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(TensorProto::INT32);
  for (int64_t dim : dims) proto.add_dims(dim);
  for (int32_t value : values) proto.add_int32_data(value);
  return proto;
}

void constant(ModelMaker& maker, const std::string& name, const std::vector<int64_t>& dims,
              const Ints& values) {
  setAttr(maker.node("Constant", {}, {name}), "value", tensorProto("", dims, values));
}

std::vector<OpKind> kindsOf(const graph::Graph& graph) {
  std::vector<OpKind> kinds;
  for (const auto& node : graph.nodes())
    if (node->kind != OpKind::Constant) kinds.push_back(node->kind);
  return kinds;
}

/// The only result on `inputs`, or an empty tensor with a failure noted.
Tensor run(const ModelMaker& maker, const std::vector<Tensor>& inputs,
           const import::ImportOptions& options = {}) {
  const auto graph = maker.import(options);
  EXPECT_TRUE(graph) << messageOf(graph);
  if (!graph) return {};
  EXPECT_TRUE(graph::verify(*graph).isOk());
  const auto results = reference::run(*graph, inputs);
  EXPECT_TRUE(results) << messageOf(results);
  return results ? results->front() : Tensor();
}

/// x.view(x.size(0), -1) of PyTorch, and the same as TensorFlow writes it, in int32.
TEST(Habits, ChainsOfShapesBecomeOneReshape) {
  ModelMaker torch;
  torch.input("x", {"N", 3, 4}).output("y", {"N", "rest"});
  torch.node("Shape", {"x"}, {"s"});
  constant(torch, "zero", {}, {0});
  torch.node("Gather", {"s", "zero"}, {"n"});
  constant(torch, "axis", {1}, {0});
  torch.node("Unsqueeze", {"n", "axis"}, {"n1"});
  constant(torch, "open", {1}, {-1});
  setAttr(torch.node("Concat", {"n1", "open"}, {"shape"}), "axis", 0);
  torch.node("Reshape", {"x", "shape"}, {"y"});

  ModelMaker tensorflow;
  tensorflow.input("x", {"unk__1", 3, 4}).output("y", {"unk__2", "unk__3"});
  for (const auto& proto :
       {ints32("begin", {1}, {0}), ints32("end", {1}, {1}), ints32("open", {1}, {-1})})
    *tensorflow.proto.mutable_graph()->add_initializer() = proto;
  tensorflow.initializer("axis", {1}, Ints{0});
  tensorflow.node("Shape", {"x"}, {"s"});
  setAttr(tensorflow.node("Cast", {"s"}, {"s32"}), "to", TensorProto::INT32);
  tensorflow.node("Slice", {"s32", "begin", "end", "axis"}, {"piece"});
  tensorflow.node("Squeeze", {"piece", "axis"}, {"n"});
  tensorflow.node("Unsqueeze", {"n", "axis"}, {"n1"});
  setAttr(tensorflow.node("Concat", {"n1", "open"}, {"shape32"}), "axis", 0);
  setAttr(tensorflow.node("Cast", {"shape32"}, {"shape"}), "to", TensorProto::INT64);
  tensorflow.node("Reshape", {"x", "shape"}, {"y"});

  for (const ModelMaker& maker : {torch, tensorflow}) {
    const import::ImportOptions options{.shapes = {{"x", {2, 3, 4}}}};
    const auto graph = maker.import(options);
    ASSERT_TRUE(graph) << messageOf(graph);
    EXPECT_EQ(kindsOf(*graph), std::vector{OpKind::Reshape});
    Tensor want = counted({2, 3, 4});
    want.dims = {2, 12};
    EXPECT_EQ(difference(run(maker, {counted({2, 3, 4})}, options), want), "");
  }
}

/// torch.nn.functional.pad lists its pads from the last dim on: they are filled up with zeros,
/// turned around and split into firsts and lasts.
TEST(Habits, PadsAreTurnedAround) {
  ModelMaker maker;
  maker.input("x", {1, 1, 2, 2}).output("y");
  constant(maker, "given", {4}, {1, 0, 0, 2}); // left 1, right 0, top 0, bottom 2
  constant(maker, "four", {1}, {4});
  setAttr(maker.node("ConstantOfShape", {"four"}, {"zeros"}), "value",
          tensorProto("", {1}, Ints{0}));
  setAttr(maker.node("Concat", {"given", "zeros"}, {"all"}), "axis", 0);
  constant(maker, "pairs", {2}, {-1, 2});
  maker.node("Reshape", {"all", "pairs"}, {"m"});
  constant(maker, "last", {1}, {-1});
  constant(maker, "end", {1}, {INT64_MIN + 1});
  constant(maker, "zero", {1}, {0});
  maker.node("Slice", {"m", "last", "end", "zero", "last"}, {"turned"});
  setAttr(maker.node("Transpose", {"turned"}, {"t"}), "perm", Ints{1, 0});
  maker.node("Reshape", {"t", "last"}, {"flat"});
  setAttr(maker.node("Cast", {"flat"}, {"pads"}), "to", TensorProto::INT64);
  setAttr(maker.node("Pad", {"x", "pads", ""}, {"y"}), "mode", std::string("constant"));
  EXPECT_EQ(difference(run(maker, {counted({1, 1, 2, 2})}),
                       Tensor::of<float>(Elem::f32_, {1, 1, 4, 3},
                                         Floats{0, 0, 1, 0, 2, 3, 0, 0, 0, 0, 0, 0})),
            "");
}

/// torch.expand: -1 keeps a dim.
TEST(Habits, ExpandSelectsTheDimsThatStay) {
  ModelMaker maker;
  maker.input("x", {2, 1}).output("y");
  constant(maker, "wanted", {2}, {-1, 3});
  constant(maker, "rank", {1}, {2});
  setAttr(maker.node("ConstantOfShape", {"rank"}, {"ones"}), "value",
          tensorProto("", {1}, Ints{1}));
  constant(maker, "minus", {}, {-1});
  maker.node("Mul", {"ones", "minus"}, {"kept"});
  maker.node("Equal", {"wanted", "kept"}, {"isKept"});
  maker.node("Where", {"isKept", "ones", "wanted"}, {"shape"});
  maker.node("Expand", {"x", "shape"}, {"y"});
  EXPECT_EQ(difference(run(maker, {counted({2, 1})}),
                       Tensor::of<float>(Elem::f32_, {2, 3}, Floats{0, 0, 0, 1, 1, 1})),
            "");
}

/// Before dims had names, writers gave 0 or -1 for what they did not know.
TEST(Habits, DimsOfZeroTakeTheShapeThatIsGiven) {
  ModelMaker maker;
  maker.input("x", {0, 2}).output("y", {0, 2});
  maker.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(difference(run(maker, {counted({3, 2})}, {.shapes = {{"x", {3, 2}}}}), counted({3, 2})),
            "");
  EXPECT_EQ(run(maker, {counted({0, 2})}).typeText(), "f32[0,2]");
  auto* dim = maker.proto.mutable_graph()
                  ->mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape();
  dim->mutable_dim(0)->set_dim_value(-1);
  EXPECT_THAT(messageOf(maker.import()),
              HasSubstr("input 'x' has dims without a name or value: --shape x=<d0>x2"));
  EXPECT_EQ(difference(run(maker, {counted({3, 2})}, {.shapes = {{"x", {3, 2}}}}), counted({3, 2})),
            "");
}

TEST(Habits, NamesOfNodesMeanNothing) {
  ModelMaker maker;
  maker.input("x", {2})
      .input("unused", {5}, TensorProto::INT64)
      .output("y")
      .output("x")
      .output("w");
  maker.initializer("w", {1}, Floats{7}).initializer("nobody", {3}, Floats{1, 2, 3});
  maker.node("Neg", {"x"}, {"a"}, "same");
  maker.node("Abs", {"a"}, {"/b c/\xc3\xbc:0"}, "same");
  maker.node("Identity", {"/b c/\xc3\xbc:0"}, {"y"}, "");
  maker.proto.mutable_graph()->mutable_node(0)->set_doc_string("File \"m.py\", line 3\n\tx");
  maker.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  for (const char* domain : {"ai.onnx.ml", "com.microsoft", "pkg.onnxscript.torch_lib"})
    maker.setOpset(domain, 1);
  const auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->outputNames(), (std::vector<std::string>{"y", "x", "w"}));
  const std::vector<Tensor> inputs{counted({2}), Tensor::of<int64_t>(Elem::i64_, {5}, Ints(5))};
  const auto results = reference::run(*graph, inputs);
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference((*results)[0], counted({2})), "");
  EXPECT_EQ((*results)[2].as<float>()[0], 7.0f);
}

/// A shape that the file declares for a value in between is a note, not the truth.
TEST(Habits, DeclaredValuesInBetweenMayLie) {
  ModelMaker maker;
  maker.input("x", {2, 3}).output("y", {"whatever", ""});
  fillValueInfo(*maker.proto.mutable_graph()->add_value_info(), "a", {9, 9, 9}, TensorProto::INT64);
  maker.node("Neg", {"x"}, {"a"});
  maker.node("Abs", {"a"}, {"y"});
  EXPECT_EQ(difference(run(maker, {counted({2, 3})}), counted({2, 3})), "");
}

/// Results without a name are not asked for: that is inference still.
TEST(Habits, LeftoversOfTrainingAreInference) {
  for (int opset : {7, 9, 13}) {
    ModelMaker maker(opset);
    maker.input("x", {1, 2, 1}).output("y");
    for (const auto& [name, values] :
         std::map<std::string, Floats>{{"s", {2, 1}}, {"b", {1, 0}}, {"m", {1, 1}}, {"v", {4, 1}}})
      maker.initializer(name, {2}, values);
    setAttr(maker.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n", "", "", "", ""}),
            "epsilon", 0.0f);
    if (opset < 12)
      setAttr(maker.node("Dropout", {"n"}, {"y", "mask"}), "ratio", 0.5f);
    else
      maker.node("Dropout", {"n", "", ""}, {"y", "mask"});
    // (0 - 1) / 2 * 2 + 1, (1 - 1) / 1
    EXPECT_EQ(difference(run(maker, {counted({1, 2, 1})}),
                         Tensor::of<float>(Elem::f32_, {1, 2, 1}, Floats{0, 0})),
              "")
        << opset;
  }
}

TEST(Habits, ChainsMayBeLong) {
  constexpr int kNodes = 10000;
  ModelMaker maker;
  maker.input("v0", {2}).output(fmt::format("v{}", kNodes));
  maker.initializer("one", {}, Floats{1});
  for (int i = 0; i < kNodes; ++i) {
    // From the last to the first, so that sorting has work to do.
    const int at = kNodes - 1 - i;
    maker.node("Add", {fmt::format("v{}", at), "one"}, {fmt::format("v{}", at + 1)});
  }
  EXPECT_EQ(difference(run(maker, {counted({2})}),
                       Tensor::of<float>(Elem::f32_, {2}, Floats{kNodes, kNodes + 1})),
            "");
}

TEST(Habits, ConcatsMayBeWide) {
  constexpr int64_t kPieces = 2000;
  ModelMaker maker;
  maker.input("x", {kPieces}).output("y");
  std::vector<std::string> pieces;
  Floats want;
  for (int64_t i = 0; i < kPieces; ++i) { // from the last element to the first
    const auto name = [&](const char* what) { return fmt::format("{}{}", what, i); };
    maker.initializer(name("begin"), {1}, Ints{kPieces - 1 - i})
        .initializer(name("end"), {1}, Ints{kPieces - i});
    maker.node("Slice", {"x", name("begin"), name("end")}, {name("piece")});
    pieces.push_back(name("piece"));
    want.push_back(static_cast<float>(kPieces - 1 - i));
  }
  setAttr(maker.node("Concat", pieces, {"y"}), "axis", -1);
  EXPECT_EQ(
      difference(run(maker, {counted({kPieces})}), Tensor::of<float>(Elem::f32_, {kPieces}, want)),
      "");
}

} // namespace
} // namespace candela::test
