#include <gmock/gmock.h>

#include "core/compiler/graph/text.h"
#include "core/reference/reference.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::test {
namespace {

using graph::OpKind;
using import::ImportOptions;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<OpKind> kinds(const graph::Graph& graph) {
  std::vector<OpKind> out;
  for (const auto& node : graph.nodes())
    if (node->kind != OpKind::Constant) out.push_back(node->kind);
  return out;
}

ModelMaker reluModel() {
  ModelMaker maker;
  maker.input("x", {2, 3}).output("y", {2, 3});
  maker.node("Relu", {"x"}, {"y"}, "act");
  return maker;
}

TEST(ModelImporter, KeepsTheModelsNames) {
  auto graph = reluModel().import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->name, "g");
  EXPECT_EQ(graph->inputs().at(0)->name, "x");
  EXPECT_EQ(graph->inputs()[0]->type.text(), "f32[2,3]");
  EXPECT_EQ(graph->outputNames(), std::vector<std::string>{"y"});
  const graph::Node& node = *graph->nodes().front();
  EXPECT_EQ(node.kind, OpKind::Relu);
  EXPECT_EQ(node.provenance, graph::Provenance{"act"});
  EXPECT_EQ(node.result()->name, "y");
  EXPECT_TRUE(graph::verify(*graph).isOk());
}

TEST(ModelImporter, NamesNodesWithoutAName) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  maker.node("Relu", {"x"}, {"a"});
  maker.node("Abs", {"a"}, {"y"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->nodes().back()->provenance, graph::Provenance{"Abs_1"});
}

TEST(ModelImporter, ListsEveryUnsupportedOperator) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  maker.node("StringNormalizer", {"x"}, {"a"}, "first");
  maker.node("Relu", {"a"}, {"b"});
  maker.node("TfIdfVectorizer", {"b"}, {"y"}, "second");
  auto graph = maker.import();
  EXPECT_EQ(graph.status().code(), Code::unsupported);
  EXPECT_EQ(messageOf(graph), "m.onnx: node 'first' (StringNormalizer): operator StringNormalizer "
                              "of opset 17 is not supported\n"
                              "m.onnx: node 'second' (TfIdfVectorizer): operator TfIdfVectorizer "
                              "of opset 17 is not supported");
}

TEST(ModelImporter, MixedDiagnosticsAreABadModel) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2}).output("z", {2});
  maker.node("StringNormalizer", {"x"}, {"a"});
  maker.node("Add", {"a"}, {"y"}, "lonely");
  auto graph = maker.import();
  EXPECT_EQ(graph.status().code(), Code::bad_model);
  EXPECT_THAT(messageOf(graph),
              AllOf(HasSubstr("node 'StringNormalizer_0' (StringNormalizer): operator"),
                    HasSubstr("node 'lonely' (Add): has 1 inputs, expected 2"),
                    HasSubstr("output 'z' is produced by nothing")));
}

TEST(ModelImporter, SaysSinceWhenAnOperatorOrAttributeIsKnown) {
  ModelMaker maker(13);
  maker.input("x", {2}).output("y", {2});
  maker.node("Foo", {"x"}, {"a"});
  setAttr(maker.node("Clip", {"x"}, {"b"}), "min", 0.0f);
  setAttr(maker.node("Shape", {"x"}, {"c"}), "start", 0);
  maker.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(messageOf(maker.import()), "m.onnx: node 'Foo_0' (Foo): operator Foo of opset 13 is "
                                       "not supported: no opset up to 28 has it\n"
                                       "m.onnx: node 'Clip_1' (Clip): attribute 'min' is unknown "
                                       "to Clip in opset 13: known until opset 10\n"
                                       "m.onnx: node 'Shape_2' (Shape): attribute 'start' is "
                                       "unknown to Shape in opset 13: known since opset 15");
}

/// 500 nodes one behind the other; those that are named are wrong, each in its own way.
TEST(ModelImporter, NamesAllProblemsOfALargeModel) {
  ModelMaker maker(13);
  maker.setOpset("com.acme", 3);
  maker.input("v0", {1, 8, 4, 4}).output("v500", {1, 8, 4, 4});
  maker.initializer("w", {8, 7, 1, 1}, std::vector<float>(56))
      .initializer("s", {5}, std::vector<float>(5));
  const auto value = [](int i) { return fmt::format("v{}", i); };
  for (int i = 0; i < 500; ++i) {
    const std::string from = value(i), to = value(i + 1);
    fillValueInfo(*maker.proto.mutable_graph()->add_value_info(), to, {1, 8, 4, 4},
                  TensorProto::FLOAT);
    const auto add = [&](const char* op, std::vector<std::string> inputs) -> onnx::NodeProto& {
      return maker.node(op, std::move(inputs), {to}, fmt::format("n{}", i));
    };
    switch (i) {
    case 40: add("Foo", {from}); break;
    case 90: add("Conv", {from, "w"}); break;
    case 140: setAttr(add("Relu", {from}), "axis", 1); break;
    case 190: add("Add", {from, "s"}); break;
    case 240: setAttr(add("Softmax", {from}), "axis", 4); break;
    case 290: add("Mul", {from, "ghost"}); break;
    case 340: add("Sigmoid", {from, from}); break;
    case 390: setAttr(add("Softmax", {from}), "axis", 1.5f); break;
    case 440: add("Gizmo", {from}).set_domain("com.acme"); break;
    case 490: add("Cast", {from}); break;
    default: add(i % 2 ? "Relu" : "Tanh", {from});
    }
  }
  const std::string message = messageOf(maker.import());
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 9) << message;
  for (const char* line :
       {"node 'n40' (Foo): operator Foo of opset 13 is not supported",
        "node 'n90' (Conv): input has 8 channels but weight expects 7",
        "node 'n140' (Relu): attribute 'axis' is unknown to Relu in opset 13",
        "node 'n190' (Add): ", "node 'n240' (Softmax): axis 4 is out of range for rank 4",
        "node 'n290' (Mul): input 'ghost' is produced by nothing",
        "node 'n340' (Sigmoid): has 2 inputs, expected 1",
        "node 'n390' (Softmax): attribute 'axis' is a float, expected an int",
        "node 'n440' (Gizmo): operator com.acme.Gizmo of opset 3 is not supported",
        "node 'n490' (Cast): attribute 'to' is missing"})
    EXPECT_THAT(message, HasSubstr(line));
}

/// Behind a node that gives no type, names are judged all the same.
TEST(ModelImporter, NamesUnknownAttributesWhereTypesAreMissing) {
  ModelMaker maker(13);
  maker.input("x", {2}).output("y", {2});
  maker.node("Foo", {"x"}, {"a"});
  setAttr(maker.node("Clip", {"a"}, {"b"}, "old"), "max", 1.0f);
  setAttr(maker.node("Relu", {"b"}, {"c"}, "bent"), "slope", 0.5f);
  setAttr(maker.node("Softmax", {"c"}, {"y"}, "good"), "axis", 0);
  const std::string message = messageOf(maker.import());
  EXPECT_THAT(message, HasSubstr("node 'old' (Clip): attribute 'max' is unknown to Clip in opset "
                                 "13: known until opset 10"));
  EXPECT_THAT(message,
              HasSubstr("node 'bent' (Relu): attribute 'slope' is unknown to Relu in opset 13"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
}

TEST(ModelImporter, AStandInIsNoInputOfTheModel) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  fillValueInfo(*maker.proto.mutable_graph()->add_value_info(), "a", {3}, TensorProto::FLOAT);
  maker.node("Foo", {"x"}, {"a"});
  maker.node("Relu", {"a"}, {"b"});
  maker.node("Add", {"b", "x"}, {"y"}, "judged by what is declared");
  EXPECT_THAT(messageOf(maker.import()), HasSubstr("node 'judged by what is declared' (Add): "));
}

TEST(ModelImporter, KnowsWhichDomainsAreImported) {
  ModelMaker maker;
  maker.setOpset("com.acme", 1);
  maker.input("x", {2}).output("y", {2});
  maker.node("Mish", {"x"}, {"a"}).set_domain("com.acme");
  maker.node("Mish", {"a"}, {"y"}).set_domain("org.other");
  EXPECT_EQ(messageOf(maker.import()),
            "m.onnx: node 'Mish_0' (Mish): operator com.acme.Mish of opset 1 is not supported\n"
            "m.onnx: node 'Mish_1' (Mish): domain 'org.other' has no opset import");
}

TEST(ModelImporter, RefusesOpsetsThatItDoesNotKnow) {
  for (int opset : {0, 29}) {
    ModelMaker maker(opset);
    maker.input("x", {2}).output("y", {2});
    maker.node("Relu", {"x"}, {"y"});
    auto graph = maker.import();
    EXPECT_EQ(graph.status().code(), Code::unsupported);
    EXPECT_EQ(messageOf(graph), fmt::format("m.onnx: opset {} is outside 6 to 28", opset));
  }
  ModelMaker old(5), unchanged(1);
  old.input("x", {2}).output("y", {2});
  old.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(messageOf(old.import()), "m.onnx: node 'Relu_0' (Relu): operator Relu of opset 5 is "
                                     "not supported: known since opset 6");
  unchanged.input("x", {1, 2, 3, 3}).output("y", {1, 2, 1, 1});
  unchanged.node("GlobalAveragePool", {"x"}, {"y"});
  EXPECT_TRUE(unchanged.import().isOk());
  ModelMaker none = reluModel();
  none.proto.clear_opset_import();
  EXPECT_THAT(messageOf(none.import()), HasSubstr("domain 'ai.onnx' has no opset import"));
}

TEST(ModelImporter, BindsDimsByNameAndByInput) {
  ModelMaker maker;
  maker.input("a", {"N", 4}).input("b", {"M", 4}).output("y", {"N", 4});
  maker.node("Add", {"a", "b"}, {"y"});
  for (const ImportOptions& options :
       {ImportOptions{.dims = {{"N", 3}, {"M", 3}}},
        ImportOptions{.dims = {{"M", 3}}, .shapes = {{"a", {3, 4}}}}}) {
    auto graph = maker.import(options);
    ASSERT_TRUE(graph) << messageOf(graph);
    EXPECT_EQ(graph->outputs().at(0)->type.text(), "f32[3,4]");
  }
  auto unbound = maker.import();
  EXPECT_EQ(unbound.status().code(), Code::invalid_argument);
  EXPECT_EQ(messageOf(unbound), "m.onnx: dim 'M' of input 'b' is not bound: --dim M=<value>\n"
                                "m.onnx: dim 'N' of input 'a' is not bound: --dim N=<value>");
}

TEST(ModelImporter, QuestionMarksAreNoNameThatDimsShare) {
  ModelMaker maker;
  maker.input("a", {"?", 3, "?"}).output("y", {"?", 3, "?"});
  maker.node("Relu", {"a"}, {"y"});
  auto graph = maker.import({.shapes = {{"a", {2, 3, 5}}}});
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->outputs().at(0)->type.text(), "f32[2,3,5]");
  EXPECT_EQ(messageOf(maker.import()),
            "m.onnx: input 'a' has dims without a name or value: --shape a=<d0>x3x<d2>");
}

TEST(ModelImporter, SaysEverythingBesideUnboundDims) {
  ModelMaker maker;
  maker.input("a", {"N"}).input("b", {"N"}).input("c", {"", 7}).output("y", {"N"});
  maker.node("StringNormalizer", {"a"}, {"y"});
  EXPECT_EQ(messageOf(maker.import()),
            "m.onnx: input 'c' has dims without a name or value: --shape c=<d0>x7\n"
            "m.onnx: dim 'N' of input 'a', 'b' is not bound: --dim N=<value>\n"
            "m.onnx: node 'StringNormalizer_0' (StringNormalizer): operator StringNormalizer of "
            "opset 17 is not supported");
}

TEST(ModelImporter, RefusesBindingsThatContradict) {
  ModelMaker maker;
  maker.input("a", {"N", 4}).output("y", {"N", 4});
  maker.node("Relu", {"a"}, {"y"});
  const auto message = [&](ImportOptions options) { return messageOf(maker.import(options)); };
  EXPECT_THAT(message({.dims = {{"N", 3}}, .shapes = {{"a", {2, 4}}}}),
              HasSubstr("dim 'N' is 3 by --dim N=3 but 2 by --shape a=2x4"));
  EXPECT_THAT(message({.shapes = {{"a", {2, 5}}}}),
              HasSubstr("--shape a=2x5 has 5 in dim 1 but the model declares 4"));
  EXPECT_THAT(message({.shapes = {{"a", {2}}}}),
              HasSubstr("--shape a=2 has 1 dims but the model declares 2"));
  EXPECT_THAT(message({.dims = {{"N", 1}, {"K", 2}}}),
              HasSubstr("--dim K=2: no such dim in the model, which has 'N'"));
  EXPECT_THAT(message({.dims = {{"N", 1}}, .shapes = {{"b", {1}}}}),
              HasSubstr("--shape b=1: no such input in the model, which has 'a'"));
  EXPECT_THAT(message({.dims = {{"N", -2}}}), HasSubstr("--dim N=-2 is negative"));
}

TEST(ModelImporter, OutputDimsMustAgreeWithTheirNames) {
  ModelMaker maker;
  maker.input("a", {2}).output("y", {"N"});
  maker.node("Relu", {"a"}, {"y"});
  EXPECT_TRUE(maker.import({.dims = {{"N", 2}}}).isOk());
  EXPECT_THAT(messageOf(maker.import({.dims = {{"N", 3}}})),
              HasSubstr("--dim N=3 but dim 0 of output 'y' is 2"));
}

TEST(ModelImporter, DeclaredOutputsMustAgreeWithInference) {
  ModelMaker shape;
  shape.input("x", {2, 3}).output("y", {2, 4});
  shape.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(messageOf(shape.import()),
            "m.onnx: output 'y' is declared f32[2,4] but inference gives f32[2,3]");
  ModelMaker type;
  type.input("x", {2, 3}).output("y", {"A", "B"}, TensorProto::DOUBLE);
  type.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(messageOf(type.import()),
            "m.onnx: output 'y' is declared f64[A,B] but inference gives f32[2,3]");
  ModelMaker silent;
  silent.input("x", {2, 3}).output("y");
  silent.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(silent.import().isOk());
}

TEST(ModelImporter, InputsWithInitializersAreConstants) {
  ModelMaker maker;
  maker.input("x", {2}).input("w", {2}).output("y", {2}).initializer("w", {2},
                                                                     std::vector<float>{1, 2});
  maker.node("Add", {"x", "w"}, {"y"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->inputs().size(), 1u);
  ASSERT_TRUE(graph->find("w"));
  EXPECT_TRUE(graph->find("w")->isConstant());
}

TEST(ModelImporter, FrozenInputsAreConstants) {
  ModelMaker maker;
  maker.input("x", {6}).input("shape", {2}, TensorProto::INT64).output("y", {2, 3});
  maker.node("Reshape", {"x", "shape"}, {"y"}, "r");
  auto open = maker.import();
  EXPECT_EQ(open.status().code(), Code::unsupported);
  EXPECT_EQ(messageOf(open),
            "m.onnx: node 'r' (Reshape): shape ('shape') is not known when the model is imported");
  auto graph = maker.import({.frozen = {{"shape", Tensor::of<int64_t>(Elem::i64_, {2}, {2, -1})}}});
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(graph->outputs()[0]->type.text(), "f32[2,3]");
  EXPECT_THAT(messageOf(maker.import({.frozen = {{"shape", Tensor::scalarI64(6)}}})),
              HasSubstr("frozen input 'shape' is i64[] but the model declares i64[2]"));
  EXPECT_THAT(messageOf(maker.import({.frozen = {{"q", Tensor::scalarI64(6)}}})),
              HasSubstr("frozen input 'q': no such input"));
}

TEST(ModelImporter, SortsNodesThatAreOutOfOrder) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  maker.node("Neg", {"b"}, {"y"}, "third");
  maker.node("Abs", {"a"}, {"b"}, "second");
  maker.node("Relu", {"x"}, {"a"}, "first");
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(kinds(*graph), (std::vector{OpKind::Relu, OpKind::Abs, OpKind::Neg}));
}

TEST(ModelImporter, AnInitializerThatIsAnInputIsADefault) {
  ModelMaker maker;
  maker.input("x", {2}).input("w", {2}).output("y", {2}).initializer("w", {2},
                                                                     std::vector<float>{1, 2});
  maker.initializer("fixed", {2}, std::vector<float>{1, 2});
  maker.node("Add", {"x", "w"}, {"s"});
  maker.node("Mul", {"s", "fixed"}, {"y"});
  const auto inputs = [&](std::map<std::string, Shape> shapes) {
    const auto graph = maker.import({.shapes = std::move(shapes)});
    std::string names;
    for (size_t i = 0; graph && i < graph->inputs().size(); ++i) names += graph->inputs()[i]->name;
    return graph ? names : messageOf(graph);
  };
  EXPECT_EQ(inputs({}), "x");
  EXPECT_EQ(inputs({{"w", {2}}}), "xw");
  EXPECT_THAT(inputs({{"w", {3}}}),
              HasSubstr("m.onnx: --shape w=3 has 3 in dim 0 but the model declares 2"));
  EXPECT_EQ(inputs({{"fixed", {2}}}),
            "m.onnx: --shape fixed=2: no such input in the model, which has 'x'");
}

TEST(ModelImporter, ASeedChangesRandomNodesThatHaveNone) {
  const auto numbers = [](std::optional<uint64_t> seed, bool own) {
    ModelMaker maker;
    maker.output("y");
    auto& node = maker.node("RandomUniform", {}, {"y"});
    setAttr(node, "shape", std::vector<int64_t>{4});
    if (own) setAttr(node, "seed", 3.f);
    const auto graph = maker.import({.randomSeed = seed});
    EXPECT_TRUE(graph) << messageOf(graph);
    const auto made = reference::run(*graph, {});
    EXPECT_TRUE(made) << messageOf(made);
    return std::vector<float>((*made)[0].as<float>(), (*made)[0].as<float>() + 4);
  };
  EXPECT_EQ(numbers({}, false), numbers({}, false));
  EXPECT_EQ(numbers(7, false), numbers(7, false));
  EXPECT_NE(numbers(7, false), numbers({}, false));
  EXPECT_NE(numbers(7, false), numbers(8, false));
  EXPECT_EQ(numbers(7, true), numbers({}, true)) << "a node's own seed stands";
}

TEST(ModelImporter, NamesTheNodesOfACycle) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  maker.node("Add", {"x", "c"}, {"a"}, "A");
  maker.node("Relu", {"a"}, {"b"}, "B");
  maker.node("Abs", {"b"}, {"c"}, "C");
  maker.node("StringNormalizer", {"c"}, {"y"}, "behind");
  EXPECT_EQ(messageOf(maker.import()), "m.onnx: cyclic or out of order: 'B' -> 'C' -> 'A' -> 'B'\n"
                                       "m.onnx: node 'behind' (StringNormalizer): operator "
                                       "StringNormalizer of opset 17 is not supported");
  ModelMaker itself;
  itself.input("x", {2}).output("y", {2});
  itself.node("Add", {"x", "y"}, {"y"}, "loop");
  EXPECT_EQ(messageOf(itself.import()), "m.onnx: cyclic or out of order: 'loop' -> 'loop'");
}

TEST(ModelImporter, RefusesNamesThatAreDefinedTwiceOrNever) {
  ModelMaker maker;
  maker.input("x", {2})
      .output("y", {2})
      .initializer("w", {1}, std::vector<float>{1})
      .initializer("w", {1}, std::vector<float>{2});
  maker.node("Relu", {"x"}, {"y"}, "n1");
  maker.node("Abs", {"x"}, {"y"}, "n2");
  maker.node("Abs", {"ghost"}, {"x"}, "n3");
  const std::string message = messageOf(maker.import());
  EXPECT_THAT(message, HasSubstr("initializer 'w': value 'w' is defined twice"));
  EXPECT_THAT(message, HasSubstr("node 'n2' (Abs): value 'y' is defined twice"));
  EXPECT_THAT(message, HasSubstr("node 'n3' (Abs): input 'ghost' is produced by nothing"));
  EXPECT_THAT(message, HasSubstr("node 'n3' (Abs): value 'x' is defined twice"));
  ModelMaker inputs;
  inputs.input("x", {2}).input("x", {2}).output("y", {2}).output("y", {2});
  inputs.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(messageOf(inputs.import()), AllOf(HasSubstr("input 'x' is declared twice"),
                                                HasSubstr("output 'y' is declared twice")));
  ModelMaker empty;
  empty.input("x", {2});
  EXPECT_THAT(messageOf(empty.import()), HasSubstr("the graph has no outputs"));
}

TEST(ModelImporter, ChecksArityAndAttributes) {
  ModelMaker maker;
  maker.input("x", {2, 3}).output("y", {2, 3});
  maker.node("Relu", {"x", "x"}, {"a"}, "wide");
  maker.node("Add", {"x", ""}, {"b"}, "hole");
  setAttr(maker.node("Softmax", {"x"}, {"c"}, "typed"), "axis", 1.0f);
  setAttr(maker.node("Relu", {"x"}, {"d"}, "extra"), "axis", 1);
  maker.node("Cast", {"x"}, {"e"}, "missing");
  setAttr(maker.node("Softmax", {"x"}, {"f"}, "range"), "axis", 5);
  maker.node("Relu", {"x"}, {"y", "z"}, "outputs");
  const std::string message = messageOf(maker.import());
  EXPECT_THAT(message, HasSubstr("node 'wide' (Relu): has 2 inputs, expected 1"));
  EXPECT_THAT(message, HasSubstr("node 'hole' (Add): has 1 inputs, expected 2"));
  EXPECT_THAT(message,
              HasSubstr("node 'typed' (Softmax): attribute 'axis' is a float, expected an int"));
  EXPECT_THAT(message,
              HasSubstr("node 'extra' (Relu): attribute 'axis' is unknown to Relu in opset 17"));
  EXPECT_THAT(message, HasSubstr("node 'missing' (Cast): attribute 'to' is missing"));
  EXPECT_THAT(message, HasSubstr("node 'range' (Softmax): axis 5 is out of range for rank 2"));
  EXPECT_THAT(message, HasSubstr("node 'outputs' (Relu): has 2 outputs, expected 1"));
}

TEST(ModelImporter, NamesANodeOnceInInferencesDiagnostics) {
  ModelMaker maker;
  maker.input("x", {1, 64, 8, 8})
      .output("y")
      .initializer("w", {4, 32, 1, 1}, std::vector<float>(128));
  maker.node("Conv", {"x", "w"}, {"y"}, "Conv_12");
  EXPECT_EQ(messageOf(maker.import()), "m.onnx: node 'Conv_12' (Conv): input has 64 channels but "
                                       "weight expects 32 x group 1 (conv_c1)");
}

TEST(ModelImporter, RefusesInputsThatAreNoTensors) {
  ModelMaker maker = reluModel();
  auto* input = maker.proto.mutable_graph()->add_input();
  input->set_name("s");
  input->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  maker.input("text", {1}, TensorProto::STRING);
  auto graph = maker.import();
  EXPECT_EQ(graph.status().code(), Code::unsupported);
  EXPECT_EQ(messageOf(graph),
            "m.onnx: input 's' is a sequence\nm.onnx: input 'text' is a tensor of STRING");
}

TEST(ModelImporter, ImportsTheExample) {
  const import::onnx_io::Model model =
      import::onnx_io::readModel(CANDELA_SOURCE_DIR "/examples/digits/digits.onnx").orAbort();
  auto graph = import::importModel(model);
  const std::string unbound = messageOf(graph);
  if (!graph) { // the batch is a named dim
    ASSERT_THAT(unbound, HasSubstr("--dim "));
    const std::string name =
        unbound.substr(unbound.find("--dim ") + 6, unbound.find('=') - unbound.find("--dim ") - 6);
    graph = import::importModel(model, {.dims = {{name, 2}}});
  }
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_TRUE(graph::verify(*graph).isOk());
  EXPECT_EQ(graph->outputs().size(), 1u);
}

TEST(ModelImporter, NamesWhatIsSupported) {
  const auto names = import::supportedOperators();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"Conv", "Relu", "Softmax", "Slice"})
    EXPECT_NE(std::find(names.begin(), names.end(), std::pair<std::string, std::string>("", name)),
              names.end())
        << name;
}

// --- Functions
// -------------------------------------------------------------------------------------------------

onnx::FunctionProto& addFunction(ModelMaker& maker, const std::string& name,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  auto* function = maker.proto.add_functions();
  function->set_domain("local");
  function->set_name(name);
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  for (const auto& opset : maker.proto.opset_import()) *function->add_opset_import() = opset;
  return *function;
}

onnx::NodeProto& call(ModelMaker& maker, const std::string& function,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::string& name = "") {
  auto& node = maker.node(function, inputs, outputs, name);
  node.set_domain("local");
  return node;
}

ModelMaker functionModel() {
  ModelMaker maker;
  maker.setOpset("local", 1);
  maker.input("x", {2, 3}).output("y", {2, 3});
  return maker;
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  ModelMaker maker = functionModel();
  auto& function = addFunction(maker, "Twice", {"a", "b"}, {"c"});
  function.add_attribute("where");
  setAttrRef(addNode(function, "Softmax", {"a"}, {"x"}, "s"), "axis", "where",
             onnx::AttributeProto::INT);
  addNode(function, "Max", {"x", "b"}, {"c"}); // its own 'x' is not the model's
  setAttr(call(maker, "Twice", {"x", "x"}, {"t"}, "one"), "where", 0);
  call(maker, "Twice", {"t", "x"}, {"y"}, "two");
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(kinds(*graph),
            (std::vector{OpKind::Softmax, OpKind::Max, OpKind::Softmax, OpKind::Max}));
  std::vector<int64_t> axes;
  std::vector<std::string> names;
  for (const auto& node : graph->nodes()) {
    names.push_back(node->userName());
    if (node->kind == OpKind::Softmax) axes.push_back(node->intAttr("axis"));
  }
  // the second call leaves the attribute to Softmax
  EXPECT_EQ(axes, (std::vector<int64_t>{0, -1 + 2}));
  EXPECT_EQ(names, (std::vector<std::string>{"one/s", "one/Max_1", "two/s", "two/Max_1"}));
}

TEST(Functions, TakeDefaultsAndLeaveOutWhatIsAbsent) {
  ModelMaker maker = functionModel();
  auto& function = addFunction(maker, "Limit", {"a", "lo", "hi"}, {"c"});
  onnx::AttributeProto fallback;
  fallback.set_name("where");
  fallback.set_type(onnx::AttributeProto::INT);
  fallback.set_i(0);
  function.mutable_unknown_fields()->AddLengthDelimited(11, fallback.SerializeAsString());
  setAttrRef(addNode(function, "Softmax", {"a"}, {"s"}), "axis", "where",
             onnx::AttributeProto::INT);
  addNode(function, "Clip", {"s", "lo", "hi"}, {"c"});
  maker.initializer("one", {}, std::vector<float>{1});
  call(maker, "Limit", {"x", "", "one"}, {"y"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  const graph::Node* clip = graph->outputs()[0]->producer;
  ASSERT_EQ(clip->kind, OpKind::Clip);
  EXPECT_EQ(clip->operand(1), nullptr);
  EXPECT_NE(clip->operand(2), nullptr);
  EXPECT_EQ(clip->operand(0)->producer->intAttr("axis"), 0);
}

TEST(Functions, NestAndOverload) {
  ModelMaker maker = functionModel();
  auto& outer = addFunction(maker, "Outer", {"a"}, {"b"});
  auto& inner = addNode(outer, "Inner", {"a"}, {"b"}, "i");
  inner.set_domain("local");
  inner.mutable_unknown_fields()->AddLengthDelimited(8, "neg");
  addNode(addFunction(maker, "Inner", {"a"}, {"b"}), "Abs", {"a"}, {"b"});
  auto& overloaded = addFunction(maker, "Inner", {"a"}, {"b"});
  overloaded.mutable_unknown_fields()->AddLengthDelimited(13, "neg");
  addNode(overloaded, "Neg", {"a"}, {"b"}, "n");
  call(maker, "Outer", {"x"}, {"y"}, "o");
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(kinds(*graph), std::vector{OpKind::Neg});
  EXPECT_EQ(graph->nodes().front()->userName(), "o/i/n");
}

TEST(Functions, AreToldApartByDomainAndOverrideOperators) {
  ModelMaker maker = functionModel();
  maker.setOpset("other", 1);
  addNode(addFunction(maker, "F", {"a"}, {"b"}), "Abs", {"a"}, {"b"});
  auto& other = addFunction(maker, "F", {"a"}, {"b"});
  other.set_domain("other");
  addNode(other, "Neg", {"a"}, {"b"});
  // the model's own meaning of an operator's name
  auto& own = addFunction(maker, "Relu", {"a"}, {"b"});
  own.set_domain("");
  addNode(own, "Tanh", {"a"}, {"b"});
  call(maker, "F", {"x"}, {"s"});
  maker.node("F", {"s"}, {"t"}).set_domain("other");
  maker.node("Relu", {"t"}, {"y"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  EXPECT_EQ(kinds(*graph), (std::vector{OpKind::Abs, OpKind::Neg, OpKind::Tanh}));
}

TEST(Functions, BringTheirOwnOpsets) {
  ModelMaker maker = functionModel();
  auto& function = addFunction(maker, "Limit", {"a"}, {"b"});
  function.mutable_opset_import(0)->set_version(10); // where Clip's limits are attributes
  setAttr(addNode(function, "Clip", {"a"}, {"b"}), "min", 0.0f);
  call(maker, "Limit", {"x"}, {"y"});
  auto graph = maker.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  ASSERT_EQ(kinds(*graph), std::vector{OpKind::Clip});
  function.mutable_opset_import(0)->set_version(29);
  EXPECT_EQ(messageOf(maker.import()), "m.onnx: function 'Limit': opset 29 is outside 6 to 28");
  function.clear_opset_import();
  EXPECT_THAT(messageOf(maker.import()), HasSubstr("domain 'ai.onnx' has no opset import"));
}

TEST(Functions, SeeNothingOfTheirCaller) {
  ModelMaker maker = functionModel();
  addNode(addFunction(maker, "F", {"a"}, {"b"}), "Add", {"a", "x"}, {"b"}, "sum");
  call(maker, "F", {"x"}, {"y"}, "f");
  EXPECT_EQ(messageOf(maker.import()),
            "m.onnx: node 'f/sum' (Add): input 'x' is produced by nothing");
}

TEST(Functions, RefuseRecursionThroughBranches) {
  ModelMaker recursive = functionModel();
  auto& function = addFunction(recursive, "F", {"a", "c"}, {"b"});
  auto& node = addNode(function, "If", {"c"}, {"b"});
  for (const char* side : {"then_branch", "else_branch"}) {
    auto* attribute = node.add_attribute();
    attribute->set_name(side);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    addNode(*attribute->mutable_g(), "F", {"a", "c"}, {"d"}).set_domain("local");
    attribute->mutable_g()->add_output()->set_name("d");
  }
  recursive.input("c", {}, TensorProto::BOOL);
  call(recursive, "F", {"x", "c"}, {"y"});
  EXPECT_EQ(messageOf(recursive.import()),
            "m.onnx: function 'local.F' calls itself: local.F -> local.F");
}

TEST(Functions, RefuseRecursionAndExplosion) {
  ModelMaker recursive = functionModel();
  addNode(addFunction(recursive, "F", {"a"}, {"b"}), "G", {"a"}, {"b"}).set_domain("local");
  addNode(addFunction(recursive, "G", {"a"}, {"b"}), "F", {"a"}, {"b"}).set_domain("local");
  call(recursive, "F", {"x"}, {"y"});
  EXPECT_EQ(messageOf(recursive.import()),
            "m.onnx: function 'local.F' calls itself: local.F -> local.G -> local.F");

  ModelMaker doubling = functionModel();
  for (int i = 0; i < 40; ++i) {
    auto& function = addFunction(doubling, fmt::format("F{}", i), {"a"}, {"c"});
    const bool leaf = i == 39;
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")})
      addNode(function, leaf ? "Abs" : fmt::format("F{}", i + 1), {from}, {to})
          .set_domain(leaf ? "" : "local");
  }
  call(doubling, "F0", {"x"}, {"y"});
  EXPECT_EQ(messageOf(doubling.import()),
            "m.onnx: the functions inline to more than 1000000 nodes");

  ModelMaker deep = functionModel();
  for (int i = 0; i < 100; ++i)
    addNode(addFunction(deep, fmt::format("F{}", i), {"a"}, {"b"}), fmt::format("F{}", i + 1),
            {"a"}, {"b"})
        .set_domain("local");
  addNode(addFunction(deep, "F100", {"a"}, {"b"}), "Abs", {"a"}, {"b"});
  call(deep, "F0", {"x"}, {"y"});
  EXPECT_THAT(messageOf(deep.import()), HasSubstr("is nested deeper than 64"));
}

TEST(Functions, RefuseCallsThatDoNotFit) {
  ModelMaker maker = functionModel();
  auto& function = addFunction(maker, "F", {"a"}, {"b"});
  addNode(function, "StringNormalizer", {"a"}, {"b"}, "inner");
  addFunction(maker, "Empty", {"a"}, {"b"});
  call(maker, "F", {"x", "x"}, {"p"}, "inputs");
  call(maker, "F", {"x"}, {"q", "r"}, "outputs");
  setAttr(call(maker, "F", {"x"}, {"s"}, "attribute"), "beta", 1);
  call(maker, "Empty", {"x"}, {"t"}, "empty");
  call(maker, "F", {"x"}, {"y"}, "good");
  const std::string message = messageOf(maker.import());
  EXPECT_THAT(message, HasSubstr("node 'inputs' (F): has 2 inputs but the function takes 1"));
  EXPECT_THAT(message, HasSubstr("node 'outputs' (F): has 2 outputs but the function gives 1"));
  EXPECT_THAT(message,
              HasSubstr("node 'attribute' (F): attribute 'beta' is unknown to the function"));
  EXPECT_THAT(message,
              HasSubstr("node 'empty' (Empty): the function's output 'b' is produced by nothing"));
  EXPECT_THAT(message, HasSubstr("node 'good/inner' (StringNormalizer): operator StringNormalizer "
                                 "of opset 17 is not supported"));
  ModelMaker outside = reluModel();
  setAttrRef(*outside.proto.mutable_graph()->mutable_node(0), "axis", "where",
             onnx::AttributeProto::INT);
  EXPECT_THAT(messageOf(outside.import()),
              HasSubstr("attribute 'axis' refers to 'where', but this is no function"));
  ModelMaker twice = functionModel();
  addNode(addFunction(twice, "F", {"a"}, {"b"}), "Abs", {"a"}, {"b"});
  addNode(addFunction(twice, "F", {"a"}, {"b"}), "Neg", {"a"}, {"b"});
  call(twice, "F", {"x"}, {"y"});
  EXPECT_EQ(messageOf(twice.import()), "m.onnx: function 'local.F' is defined twice");
}

} // namespace
} // namespace candela::test
