#include "core/compiler/lowering/decompose/lower.h"

#include <gmock/gmock.h>

#include <set>

#include "core/compiler/capabilities/rows.h"
#include "core/reference/reference.h"
#include "tests/unit/compiler/capabilities/tables.h"
#include "tests/unit/compiler/lowering/decompose/cases.h"

namespace candela::lowering::decompose {
namespace {

using graph::Graph;
using graph::OpKind;
using testing::HasSubstr;

// Lowers a copy and compares what both compute; every node left must be one that the target takes.
void expectSame(const cases::Case& test, const capabilities::Target& target, bool toPrimitives) {
  SCOPED_TRACE(
      fmt::format("{} on {}{}", test.name, target.name(), toPrimitives ? " to primitives" : ""));
  const Graph graph = cases::graphOf(test);
  Graph lowered = cases::graphOf(test);
  const LowerOptions options{toPrimitives};
  const Status status = lower(lowered, target, options);
  ASSERT_TRUE(status.isOk()) << status.message();
  ASSERT_TRUE(graph::verify(lowered).isOk()) << graph::verify(lowered).message();
  for (const auto& node : lowered.nodes()) {
    if (isAlias(*node)) continue;
    EXPECT_NE(ask(*node, target, options).support, capabilities::Support::none)
        << graph::opName(node->kind);
    for (const NodeInstr& desc : instructionsOf(*node))
      EXPECT_TRUE(!toPrimitives || capabilities::isRequiredFn(desc.kind, desc.fn) ||
                  (capabilities::isHostOp(desc.kind) && target.isHost()))
          << instrText(desc.kind, desc.fn);
    EXPECT_THAT(node->provenance, testing::ElementsAre("Node"));
  }
  const std::vector<Tensor> inputs = cases::inputsOf(test);
  auto expected = reference::run(graph, inputs), got = reference::run(lowered, inputs);
  ASSERT_TRUE(expected.isOk()) << expected.status().message();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  ASSERT_EQ(expected->size(), got->size());
  for (size_t i = 0; i < expected->size(); ++i)
    EXPECT_EQ(cases::compare(test, (*expected)[i], (*got)[i]), "") << "result " << i;
}

bool inProfiles(const cases::Case& test) {
  for (const cases::Operand& operand : test.operands)
    if (!operand.absent && !(operand.constant && test.kind == OpKind::Gather) &&
        !capabilities::profilesCover(0x3f, operand.tensor.elem))
      return false;
  const auto to = test.attrs.find("to");
  return to == test.attrs.end() || capabilities::profilesCover(0x3f, std::get<Elem>(to->second));
}

TEST(Lower, EveryOpHasACase) {
  std::set<OpKind> covered;
  for (const cases::Case& test : cases::all()) covered.insert(test.kind);
  for (const graph::OpInfo& info : graph::allOps())
    // tests/ir/program/loop*.cdl
    EXPECT_TRUE(covered.count(info.kind) || info.has(graph::kTraitRegion)) << info.name;
}

TEST(Lower, RequiredRowsCarryEveryOpOfTheirTypes) {
  const capabilities::Target target = cases::accelerator();
  int run = 0;
  for (const cases::Case& test : cases::all()) {
    if (test.hostOnly || !inProfiles(test)) continue;
    ++run;
    expectSame(test, target, true);
  }
  EXPECT_GT(run, 600);
}

TEST(Lower, TheHostCarriesEveryOp) {
  const capabilities::Target target = cases::host();
  for (const cases::Case& test : cases::all()) {
    if (test.kind != OpKind::Expr) expectSame(test, target, true);
    expectSame(test, target, false);
  }
}

TEST(Lower, ClaimedOptionalFunctionsStayWhole) {
  Graph whole, primitive;
  for (Graph* graph : {&whole, &primitive}) {
    graph::Value* x = graph->addInput("x", graph::TensorType(Elem::f32_, {2, 8}));
    auto tanh = graph->addNode(OpKind::Tanh, {x});
    auto softmax = graph->addNode(OpKind::Softmax, {(*tanh)->result()});
    graph->addOutput((*softmax)->result(), "y");
  }
  ASSERT_TRUE(lower(whole, cases::host()).isOk());
  EXPECT_EQ(whole.nodeCount(), 2u);
  ASSERT_TRUE(lower(primitive, cases::host(), {.toPrimitives = true}).isOk());
  EXPECT_GT(primitive.nodeCount(), 10u);
}

/// x . w of 4 bits in blocks of 16, with scales of x's type.
Graph productOfFourBits(Elem elem, const char* fn) {
  Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(elem, {3, 40}));
  graph::Value* w = graph.addConstant(std::move(Tensor::zeros(Elem::i4_, {5, 3, 16})).value());
  graph::Value* scale = graph.addConstant(std::move(Tensor::zeros(elem, {5, 3})).value());
  auto product = graph.addNode(OpKind::ScaledMatmul, {x, w, scale},
                               {{"to", elem}, {"fn", std::string(fn)}}, {"Product"});
  EXPECT_TRUE(product.isOk()) << product.status().message();
  graph.addOutput((*product)->result(), "y");
  return graph;
}

/// The one product with scales of a Graph; null: there is another number of them.
const graph::Node* onlyProduct(const Graph& graph) {
  const graph::Node* found = nullptr;
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::ScaledMatmul) continue;
    if (found) return nullptr;
    found = node.get();
  }
  return found;
}

TEST(Lower, WeightsOfFourBitsAreOneInstructionWhereTheProfileIsClaimed) {
  for (const auto& [elem, beside] :
       {std::pair(Elem::f32_, CDL_PROFILE_FP32), std::pair(Elem::f16_, CDL_PROFILE_FP16),
        std::pair(Elem::bf16_, CDL_PROFILE_BF16)}) {
    const unsigned floats = static_cast<unsigned>(beside);
    for (const bool isClaimed : {true, false}) {
      capabilities::Table table = capabilities::Table::required({CDL_PROFILE_BASE, floats});
      if (isClaimed)
        table = capabilities::Table::required({CDL_PROFILE_BASE, floats, CDL_PROFILE_INT4W});
      Graph graph = productOfFourBits(elem, "exact");
      const Status status = lower(graph, std::move(table.target()).value());
      ASSERT_TRUE(status.isOk()) << status.message();
      if (isClaimed) {
        EXPECT_EQ(graph.nodeCount(), 3u) << elemName(elem); // with its two constants
      }
      EXPECT_EQ(onlyProduct(graph) != nullptr, isClaimed) << elemName(elem);
    }
  }
}

TEST(Lower, RoundedActivationsMeetWeightsOfFourBitsAsTheyAre) {
  Graph graph = productOfFourBits(Elem::f32_, "dynamic");
  capabilities::Table table =
      capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32, CDL_PROFILE_INT4W});
  ASSERT_TRUE(lower(graph, std::move(table.target()).value()).isOk());
  const graph::Node* const product = onlyProduct(graph);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->stringAttr("fn"), "exact");
  EXPECT_EQ(product->operand(1)->type.elem, Elem::i4_);
  EXPECT_TRUE(product->operand(1)->isConstant());
}

TEST(Lower, ScalesOfHalvesAreWidenedWhereRowsAreOfFloatsAlone) {
  Graph graph = productOfFourBits(Elem::f16_, "exact");
  capabilities::Table table =
      capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32, CDL_PROFILE_INT4W});
  table.add(CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {CDL_F16, CDL_F32});
  table.add(CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {CDL_F32, CDL_F16});
  const Status status = lower(graph, std::move(table.target()).value());
  ASSERT_TRUE(status.isOk()) << status.message();
  const graph::Node* const product = onlyProduct(graph);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->operand(0)->type.elem, Elem::f32_);
  EXPECT_EQ(product->operand(2)->type.elem, Elem::f32_);
  EXPECT_TRUE(product->operand(2)->isConstant());
}

TEST(Lower, NamesOfResultsSurvive) {
  Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::f32_, {2, 8}));
  auto softmax = graph.addNode(OpKind::Softmax, {x}, {}, {"Softmax_3"});
  graph.rename((*softmax)->result(), "probabilities");
  graph.addOutput((*softmax)->result(), "y");
  ASSERT_TRUE(lower(graph, cases::accelerator()).isOk());
  EXPECT_EQ(graph.outputs()[0]->name, "probabilities");
  EXPECT_EQ(graph.outputNames()[0], "y");
}

TEST(Lower, WhatNoRowTakesIsNamed) {
  Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::f64_, {2, 8}));
  auto softmax = graph.addNode(OpKind::Softmax, {x}, {}, {"Softmax_3"});
  graph.addOutput((*softmax)->result(), "y");
  const Status status = lower(graph, cases::accelerator());
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.message(),
              HasSubstr("'Softmax_3': 'acme' cannot do it: f64 is outside every claimed profile"));
}

// Nine dims that no two of can be walked as one: a view has eight.
TEST(Lower, MoreDimsThanAViewHasAreRefused) {
  Graph graph;
  graph::Value* a = graph.addInput("a", graph::TensorType(Elem::f32_, {2, 1, 2, 1, 2, 1, 2, 1, 2}));
  graph::Value* b = graph.addInput("b", graph::TensorType(Elem::f32_, {1, 2, 1, 2, 1, 2, 1, 2, 1}));
  auto add = graph.addNode(OpKind::Add, {a, b}, {}, {"Add_1"});
  graph.addOutput((*add)->result(), "y");
  const Status status = lower(graph, cases::host());
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), HasSubstr("add 'Add_1'"));
  EXPECT_THAT(status.message(), HasSubstr("rank 9 is above 8"));
}

TEST(Lower, HugeWindowsAreRefusedNotBuilt) {
  Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::f32_, {1, 1, 1 << 20, 1 << 20}));
  graph::Value* w = graph.addInput("w", graph::TensorType(Elem::f32_, {1, 1, 1 << 10, 1 << 10}));
  auto conv = graph.addNode(OpKind::Conv, {x, w}, {}, {"Conv_0"});
  ASSERT_TRUE(conv.isOk()) << conv.status().message();
  graph.addOutput((*conv)->result(), "y");
  const Status status = lower(graph, cases::accelerator());
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), HasSubstr("conv 'Conv_0'"));
}

// Each would be a table of a number for every place.
TEST(Lower, HugeTablesAreRefusedNotBuilt) {
  constexpr int64_t kHuge = (int64_t(1) << 31) - 1;
  Graph pads;
  graph::Value* row = pads.addInput("x", graph::TensorType(Elem::f32_, {2, 3}));
  auto pad = pads.addNode(
      OpKind::Pad, {row},
      {{"lo", Shape{kHuge, 0}}, {"hi", Shape{0, 0}}, {"mode", std::string("edge")}}, {"Pad_0"});
  ASSERT_TRUE(pad.isOk()) << pad.status().message();
  pads.addOutput((*pad)->result(), "y");
  Status status = lower(pads, cases::host());
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_EQ(status.message(),
            "pad 'Pad_0': mode edge of dim 0 becomes 2147483649 elements, at most 268435456");

  Graph means;
  graph::Value* image = means.addInput("x", graph::TensorType(Elem::f32_, {1, 1, 4, 4}));
  auto pool = means.addNode(OpKind::AveragePool, {image},
                            {{"kernel_shape", Shape{2, 2}},
                             {"strides", Shape{1, 1}},
                             {"dilations", Shape{1, 1}},
                             {"pads", Shape{kHuge, 1, 1, 1}}},
                            {"Pool_0"});
  ASSERT_TRUE(pool.isOk()) << pool.status().message();
  means.addOutput((*pool)->result(), "y");
  status = lower(means, cases::host());
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.message(),
              HasSubstr("'Pool_0': 10737418255 windows are too many to count their elements"));
}

TEST(Describe, QuestionsThatARowWouldSee) {
  Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::f32_, {1, 3, 8, 8}));
  graph::Value* w = graph.addConstant(Payload::splat(Elem::f32_, 108, 0),
                                      graph::TensorType(Elem::f32_, {4, 3, 3, 3}));
  graph::Value* b =
      graph.addConstant(Payload::splat(Elem::f32_, 4, 0), graph::TensorType(Elem::f32_, {4}));
  auto conv = graph.addNode(OpKind::Conv, {x, w, b}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  capabilities::InstrDesc desc = describe(instructionsOf(**conv).at(0));
  EXPECT_EQ(desc.kind, CDL_KIND_CONV2D);
  ASSERT_EQ(desc.operands.size(), 3u);
  EXPECT_TRUE(desc.operands[1].isConstant);
  EXPECT_EQ(desc.stepKinds, uint64_t(1) << CDL_KIND_BINARY);
  auto scaled = graph.addNode(
      OpKind::Mul,
      {(*conv)->result(), b->producer ? graph.addConstant(Payload::splat(Elem::f32_, 4, 0),
                                                          graph::TensorType(Elem::f32_, {4, 1, 1}))
                                      : b});
  desc = describe(instructionsOf(**scaled).at(0));
  EXPECT_EQ(desc.operands[1].cls, capabilities::OperandClass::broadcast);
  EXPECT_EQ(desc.operands[1].dims, (Shape{4, 64}));
  auto reshape = graph.addNode(OpKind::Reshape, {x}, {{"shape", std::vector<int64_t>{192}}});
  EXPECT_TRUE(instructionsOf(**reshape).empty());
  EXPECT_TRUE(isAlias(**reshape));
}

} // namespace
} // namespace candela::lowering::decompose
