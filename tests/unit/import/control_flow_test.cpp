// If, Loop and Scan that contradict themselves or ask for too much, and what becomes of turns within turns.
#include <gmock/gmock.h>

#include "core/import/script.h"
#include "tests/unit/import/model_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;
constexpr int kF32 = TensorProto::FLOAT, kI64 = TensorProto::INT64, kBool = TensorProto::BOOL;

Result<import::Script> scriptOf(const ModelMaker& maker) {
  const std::string folder = scratchFolder();
  auto model = onnx_io::readModel(maker.write(folder + "/m.onnx"));
  std::filesystem::remove_all(folder);
  if (!model) return model.status();
  return import::importScript(std::make_shared<const onnx_io::Model>(std::move(model).value()));
}

onnx::GraphProto& graphAttr(onnx::NodeProto& node, const std::string& name) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::GRAPH);
  attr->mutable_g()->set_name(name);
  return *attr->mutable_g();
}

/// A body of Loop whose condition goes round; its carried value is `s`, declared f32[dim].
onnx::GraphProto& bodyOf(onnx::NodeProto& loop, const std::string& suffix = "", DimSpec dim = 2) {
  onnx::GraphProto& body = graphAttr(loop, "body");
  fillValueInfo(*body.add_input(), "i" + suffix, {}, kI64);
  fillValueInfo(*body.add_input(), "c" + suffix, {}, kBool);
  fillValueInfo(*body.add_input(), "s" + suffix, {dim}, kF32);
  body.add_output()->set_name("c" + suffix);
  body.add_output()->set_name("next" + suffix);
  return body;
}

/// Loops in loops, `depth` of them, each of m turns; the innermost adds x.
ModelMaker nested(int depth, bool known) {
  ModelMaker maker;
  maker.input("x", {2}).output("y");
  if (known)
    maker.initializer<int64_t>("m", {}, {40});
  else
    maker.input("m", {}, kI64);
  onnx::GraphProto* body = &bodyOf(maker.node("Loop", {"m", "", "x"}, {"y"}), "0");
  for (int k = 1; k < depth; ++k) {
    const std::string outer = std::to_string(k - 1), inner = std::to_string(k);
    body = &bodyOf(addNode(*body, "Loop", {"m", "", "s" + outer}, {"next" + outer}), inner);
  }
  const std::string last = std::to_string(depth - 1);
  addNode(*body, "Add", {"s" + last, "x"}, {"next" + last});
  return maker;
}

void checkUnits(const import::Script& script, const flow::Block& block) {
  for (const flow::Step& step : block.steps) {
    for (const flow::Block& inner : step.blocks) checkUnits(script, inner);
    if (step.kind != flow::StepKind::unit) continue;
    const auto* graph = std::get_if<graph::Graph>(&script.units[step.unit]);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->outputs().size(), step.outputs.size());
    EXPECT_EQ(graph->inputs().size(), step.inputs.size());
  }
}

TEST(ControlFlow, TurnsWithinTurnsStaySmall) {
  const auto script = scriptOf(nested(4, true));
  ASSERT_TRUE(script) << messageOf(script);
  size_t nodes = 0;
  for (const auto& unit : script->units)
    if (const auto* graph = std::get_if<graph::Graph>(&unit)) nodes += graph->nodes().size();
  EXPECT_LT(nodes, 2000u) << "of 2,560,000 turns";
  checkUnits(*script, script->flow.main);
}

TEST(ControlFlow, DeepNestsAreReadOrNamed) {
  EXPECT_TRUE(scriptOf(nested(20, false)));
  EXPECT_THAT(messageOf(scriptOf(nested(100, false))), HasSubstr("too deeply nested"));
}

TEST(ControlFlow, CarriedValuesKeepWhatTheyAreDeclared) {
  ModelMaker grows, turns;
  for (ModelMaker* maker : {&grows, &turns}) maker->input("x", {2}).input("m", {}, kI64).output("y");
  addNode(bodyOf(grows.node("Loop", {"m", "", "x"}, {"y"}, "loop")), "Concat", {"s", "s"}, {"next"});
  setAttr(*grows.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0), "axis", 0);
  EXPECT_THAT(messageOf(scriptOf(grows)),
              HasSubstr("node 'loop' (Loop): its body turns carried value 's' from f32[2] to f32[4]"));
  auto& cast = addNode(bodyOf(turns.node("Loop", {"m", "", "x"}, {"y"}, "loop"), "", ""), "Cast", {"s"}, {"next"});
  setAttr(cast, "to", kI64);
  EXPECT_THAT(messageOf(scriptOf(turns)),
              HasSubstr("node 'loop' (Loop): its body turns carried value 's' from f32[2] to i64[2]"));
}

TEST(ControlFlow, ScanStatesKeepTheirShape) {
  ModelMaker maker;
  maker.input("x", {2}).input("z", {3, 2}).output("y");
  auto& scan = maker.node("Scan", {"x", "z"}, {"y"}, "scan");
  setAttr(scan, "num_scan_inputs", 1);
  onnx::GraphProto& body = graphAttr(scan, "body");
  fillValueInfo(*body.add_input(), "s", {""}, kF32);
  fillValueInfo(*body.add_input(), "e", {2}, kF32);
  body.add_output()->set_name("next");
  setAttr(addNode(body, "Concat", {"s", "e"}, {"next"}), "axis", 0);
  EXPECT_THAT(messageOf(scriptOf(maker)), HasSubstr("its body turns state 's' from f32[2] to f32[8]"));
}

/// If over x: `fill` writes the else branch, the then branch negates.
Result<import::Script> chosen(const std::function<void(onnx::GraphProto&)>& fill) {
  ModelMaker maker;
  maker.input("p", {}, kBool).input("x", {2}).output("y");
  auto& node = maker.node("If", {"p"}, {"y"}, "if");
  onnx::GraphProto& thenBranch = graphAttr(node, "then_branch");
  addNode(thenBranch, "Neg", {"x"}, {"negated"});
  thenBranch.add_output()->set_name("negated");
  onnx::GraphProto& elseBranch = graphAttr(node, "else_branch");
  elseBranch.add_output()->set_name("other");
  fill(elseBranch);
  return scriptOf(maker);
}

TEST(ControlFlow, BranchesGiveOneKindOfValueAndSeeTheirOwnNames) {
  EXPECT_TRUE(chosen([](auto& graph) { addNode(graph, "Abs", {"x"}, {"other"}); }));
  EXPECT_THAT(messageOf(chosen([](auto& graph) { setAttr(addNode(graph, "Cast", {"x"}, {"other"}), "to", kI64); })),
              HasSubstr("output 'y' is f32[2] in one branch and i64[2] in the other"));
  EXPECT_THAT(messageOf(chosen([](auto& graph) { addNode(graph, "SequenceConstruct", {"x"}, {"other"}); })),
              HasSubstr("output 'y' is f32[2] in one branch and sequence in the other"));
  EXPECT_THAT(messageOf(chosen([](auto& graph) { addNode(graph, "Abs", {"negated"}, {"other"}); })),
              HasSubstr("input 'negated' is produced by nothing"));
}

} // namespace
} // namespace candela::test
