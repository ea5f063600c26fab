// If, Loop and Scan that contradict themselves or ask for too much, and what becomes of turns
// within turns.
#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "core/compiler/import/script.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;
constexpr int kF32 = TensorProto::FLOAT, kI64 = TensorProto::INT64, kBool = TensorProto::BOOL;

Result<import::Script> scriptOf(const ModelMaker& maker) {
  const std::string folder = scratchFolder();
  auto model = import::onnx_io::readModel(maker.write(folder + "/m.onnx"));
  std::filesystem::remove_all(folder);
  if (!model) return model.status();
  return import::importScript(
      std::make_shared<const import::onnx_io::Model>(std::move(model).value()));
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

void checkUnits(const import::Script& script, const runtime::control_flow::Block& block) {
  for (const runtime::control_flow::Step& step : block.steps) {
    for (const runtime::control_flow::Block& inner : step.blocks) checkUnits(script, inner);
    if (step.kind != runtime::control_flow::StepKind::unit) continue;
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
  for (ModelMaker* maker : {&grows, &turns})
    maker->input("x", {2}).input("m", {}, kI64).output("y");
  addNode(bodyOf(grows.node("Loop", {"m", "", "x"}, {"y"}, "loop")), "Concat", {"s", "s"},
          {"next"});
  setAttr(*grows.proto.mutable_graph()
               ->mutable_node(0)
               ->mutable_attribute(0)
               ->mutable_g()
               ->mutable_node(0),
          "axis", 0);
  EXPECT_THAT(
      messageOf(scriptOf(grows)),
      HasSubstr("node 'loop' (Loop): its body turns carried value 's' from f32[2] to f32[4]"));
  auto& cast = addNode(bodyOf(turns.node("Loop", {"m", "", "x"}, {"y"}, "loop"), "", ""), "Cast",
                       {"s"}, {"next"});
  setAttr(cast, "to", kI64);
  EXPECT_THAT(
      messageOf(scriptOf(turns)),
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
  EXPECT_THAT(messageOf(scriptOf(maker)),
              HasSubstr("its body turns state 's' from f32[2] to f32[8]"));
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
  EXPECT_THAT(messageOf(chosen([](auto& graph) {
                setAttr(addNode(graph, "Cast", {"x"}, {"other"}), "to", kI64);
              })),
              HasSubstr("output 'y' is f32[2] in one branch and i64[2] in the other"));
  EXPECT_THAT(
      messageOf(chosen([](auto& graph) { addNode(graph, "SequenceConstruct", {"x"}, {"other"}); })),
      HasSubstr("output 'y' is f32[2] in one branch and sequence in the other"));
  EXPECT_THAT(messageOf(chosen([](auto& graph) { addNode(graph, "Abs", {"negated"}, {"other"}); })),
              HasSubstr("input 'negated' is produced by nothing"));
}

/// Adds a MatMul of `value` by itself, which f32[2,3] does not allow.
void addImpossible(onnx::GraphProto& graph, const std::string& value, const std::string& result) {
  addNode(graph, "Unsqueeze", {value, "zero"}, {result + "_row"});
  addNode(graph, "Concat", {result + "_row", result + "_row", result + "_row"}, {result + "_rows"})
      .set_name("rows");
  setAttr(*graph.mutable_node(graph.node_size() - 1), "axis", 0);
  addNode(graph, "MatMul", {result + "_rows", result + "_rows"}, {result}, "product");
}

size_t countSteps(const runtime::control_flow::Block& block, runtime::control_flow::StepKind kind) {
  size_t count = 0;
  for (const runtime::control_flow::Step& step : block.steps) {
    count += step.kind == kind;
    for (const runtime::control_flow::Block& inner : step.blocks) count += countSteps(inner, kind);
  }
  return count;
}

/// An If over p whose branches are `fill`ed; both give "v". x: f32[2].
ModelMaker choosing(const std::array<std::function<void(onnx::GraphProto&)>, 2>& fill) {
  ModelMaker maker;
  maker.input("p", {}, kBool)
      .input("q", {}, kBool)
      .input("m", {}, kI64)
      .input("x", {2})
      .output("y");
  maker.initializer<int64_t>("zero", {1}, {0});
  auto& node = maker.node("If", {"p"}, {"y"}, "if");
  for (const size_t side : {0, 1}) {
    onnx::GraphProto& branch = graphAttr(node, side ? "else_branch" : "then_branch");
    fill[side](branch);
    branch.add_output()->set_name("v");
  }
  return maker;
}

const auto possible = [](onnx::GraphProto& graph) { addNode(graph, "Neg", {"x"}, {"v"}); };
const auto impossible = [](onnx::GraphProto& graph) { addImpossible(graph, "x", "v"); };

TEST(ControlFlow, AnImpossibleBranchIsAnErrorOfTheRunThatTakesIt) {
  for (const bool then : {false, true}) {
    const auto script =
        scriptOf(then ? choosing({impossible, possible}) : choosing({possible, impossible}));
    ASSERT_TRUE(script) << messageOf(script);
    EXPECT_EQ(countSteps(script->flow.main, runtime::control_flow::StepKind::fail), 1u);
    EXPECT_EQ(script->flow.slots[script->flow.outputs[0]].typeText(), "f32[2]")
        << "as the other branch says";
    EXPECT_THAT(script->flow.text(), HasSubstr("node 'if/product' (MatMul): "));
  }
  EXPECT_THAT(messageOf(scriptOf(choosing({impossible, impossible}))),
              HasSubstr("node 'if/product' (MatMul): "))
      << "no run gets through";
}

TEST(ControlFlow, ADeclaredShapeOfABranchThatDiffersIsAnErrorOfTheRunThatTakesIt) {
  ModelMaker maker = choosing({possible, possible});
  auto& branch = *maker.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  fillValueInfo(*branch.mutable_output(0), "v", {1, "", 128}, kF32);
  const auto script = scriptOf(maker);
  ASSERT_TRUE(script) << messageOf(script);
  EXPECT_THAT(
      script->flow.text(),
      HasSubstr("node 'if': output 'v' is declared f32[1,?,128] but inference gives f32[2]"));
}

TEST(ControlFlow, ImpossibleBranchesWithinBranchesAndLoops) {
  const auto inner = [](onnx::GraphProto& graph) {
    auto& node = addNode(graph, "If", {"q"}, {"v"}, "inner");
    for (const char* side : {"then_branch", "else_branch"}) {
      onnx::GraphProto& branch = graphAttr(node, side);
      addImpossible(branch, "x", std::string("w") + side);
      branch.add_output()->set_name(std::string("w") + side);
    }
  };
  const auto nested = scriptOf(choosing({possible, inner}));
  ASSERT_TRUE(nested) << messageOf(nested);
  EXPECT_EQ(countSteps(nested->flow.main, runtime::control_flow::StepKind::fail), 1u)
      << "the outer branch, as no inner one is possible";
  EXPECT_THAT(nested->flow.text(), HasSubstr("node 'if/inner/product' (MatMul): "));

  const auto loop = [](onnx::GraphProto& graph) {
    onnx::GraphProto& body = bodyOf(addNode(graph, "Loop", {"m", "", "x"}, {"v"}, "loop"));
    addImpossible(body, "s", "next");
  };
  const auto turning = scriptOf(choosing({possible, loop}));
  ASSERT_TRUE(turning) << messageOf(turning);
  EXPECT_THAT(turning->flow.text(), HasSubstr("node 'if/loop/product' (MatMul): "));

  const auto within = [](onnx::GraphProto& graph) { // an If in the body of a Loop in a branch
    onnx::GraphProto& body = bodyOf(addNode(graph, "Loop", {"m", "", "x"}, {"v"}, "loop"));
    auto& node = addNode(body, "If", {"q"}, {"next"}, "inner");
    addNode(graphAttr(node, "then_branch"), "Neg", {"s"}, {"w"});
    node.mutable_attribute(0)->mutable_g()->add_output()->set_name("w");
    addImpossible(graphAttr(node, "else_branch"), "s", "u");
    node.mutable_attribute(1)->mutable_g()->add_output()->set_name("u");
  };
  const auto deep = scriptOf(choosing({possible, within}));
  ASSERT_TRUE(deep) << messageOf(deep);
  EXPECT_EQ(countSteps(deep->flow.main, runtime::control_flow::StepKind::fail), 1u);
  EXPECT_EQ(countSteps(deep->flow.main, runtime::control_flow::StepKind::loop), 1u)
      << "which turns where the branch is possible";
}

TEST(ControlFlow, TheBranchThatAConstantLeavesOutIsNotLookedAt) {
  const auto nothing = [](onnx::GraphProto& graph) {
    addNode(graph, "Mystery", {"nowhere"}, {"v"});
  };
  for (const bool then : {false, true}) {
    ModelMaker maker = then ? choosing({possible, nothing}) : choosing({nothing, possible});
    auto& node = *maker.proto.mutable_graph()->mutable_node(0);
    node.set_input(0, "known");
    node.mutable_attribute(then ? 1 : 0)->mutable_g()->clear_output();
    TensorProto known;
    known.set_name("known");
    known.set_data_type(kBool);
    known.add_int32_data(then);
    *maker.proto.mutable_graph()->add_initializer() = known;
    const auto script = scriptOf(maker);
    EXPECT_TRUE(script) << messageOf(script);
  }
}

} // namespace
} // namespace candela::test
