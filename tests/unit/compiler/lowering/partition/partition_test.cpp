#include "core/compiler/lowering/partition/partition.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/compiler/lowering/partition/graphs.h"

namespace candela::lowering::partition {
namespace {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::TensorType;
using graph::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Assess, Verdicts) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {2, 8}));
  Value* d = graph.addInput("d", TensorType(Elem::f64_, {2, 8}));
  Value* sum = add(graph, OpKind::Add, {x, x});
  Value* softmax = add(graph, OpKind::Softmax, {x});
  Value* wide = add(graph, OpKind::Add, {d, d});
  const capabilities::Target native = accelerator(),
                             emulating = accelerator({CDL_PROFILE_BASE, CDL_PROFILE_FP32},
                                                     CDL_SUPPORT_EMULATED);
  EXPECT_EQ(assess(*sum->producer, native).verdict, Verdict::claimed);
  EXPECT_EQ(assess(*sum->producer, emulating).verdict, Verdict::lowersEmulated);
  EXPECT_EQ(assess(*sum->producer, host()).verdict, Verdict::lowersEmulated);
  const Assessment lowered = assess(*softmax->producer, native);
  EXPECT_EQ(lowered.verdict, Verdict::lowersNative);
  EXPECT_EQ(lowered.reason, CDL_REASON_NO_ROW);
  EXPECT_EQ(assess(*softmax->producer, emulating).verdict, Verdict::lowersEmulated);
  const Assessment none = assess(*wide->producer, native);
  EXPECT_EQ(none.verdict, Verdict::no);
  EXPECT_EQ(none.reason, CDL_REASON_PROFILE);
  EXPECT_THAT(none.detail, HasSubstr("f64 is outside every claimed profile"));
}

TEST(Assess, SaysWhatTheRowLacksAndWhatItsPartsLack) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {2, 8}));
  const Value* softmax = add(graph, OpKind::Softmax, {x});
  capabilities::Table table = capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32});
  for (cdl_row_t& row : table.rows)
    if (row.kind == CDL_KIND_REDUCE) row.support = CDL_SUPPORT_EMULATED;
  const auto assessed = [&] {
    return assess(*softmax->producer, table.target("acme")->nativeOnly()).detail;
  };
  EXPECT_THAT(assessed(), StartsWith("no row for reduce.max"));
  table.add(CDL_KIND_SOFTMAX, 0, {CDL_F32, CDL_F32});
  table.limit(CDL_ATOM_ELEMENTS, CDL_REL_LE, 0, 4);
  EXPECT_THAT(assessed(), StartsWith("elements of operand 0 16, expected <= 4 (row"));
  EXPECT_THAT(assessed(), HasSubstr("; nor by parts: no row for reduce.max"));
}

TEST(Assess, WhatLowersToNothingStillHasAType) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::i64_, {2, 8}));
  Value* same = add(graph, OpKind::Transpose, {x}, {{"perm", std::vector<int64_t>{0, 1}}});
  EXPECT_EQ(assess(*same->producer, accelerator()).verdict, Verdict::no);
  EXPECT_EQ(assess(*same->producer, host()).verdict, Verdict::lowersEmulated);
}

TEST(Partition, ForeignTypesGoToTheHostAndNeighboursMerge) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4}));
  Value* a = add(graph, OpKind::Exp, {x});
  Value* b = add(graph, OpKind::Cast, {a}, {{"to", Elem::f64_}});
  Value* c = add(graph, OpKind::Sqrt, {b});
  Value* d = add(graph, OpKind::Cast, {c}, {{"to", Elem::f32_}});
  Value* e = add(graph, OpKind::Add, {d, a});
  graph.addOutput(e, "e");
  const capabilities::Target acme = accelerator(), soft = host();
  auto result = partition(graph, std::vector<const capabilities::Target*>{&acme, &soft});
  ASSERT_TRUE(result.isOk()) << result.status().message();
  expectValid(graph, *result);
  ASSERT_EQ(result->parts.size(), 3u);
  EXPECT_THAT(result->parts[0].nodes, ElementsAre(a->producer));
  EXPECT_THAT(result->parts[1].nodes, ElementsAre(b->producer, c->producer, d->producer));
  EXPECT_THAT(result->parts[2].nodes, ElementsAre(e->producer));
  EXPECT_EQ(result->assessments.at(c->producer)[0].reason, CDL_REASON_PROFILE);
}

TEST(Partition, AHostNodeBesideTheChainDoesNotCutIt) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4}));
  Value* d = graph.addInput("d", TensorType(Elem::f64_, {4}));
  Value* a = add(graph, OpKind::Exp, {x});
  Value* h = add(graph, OpKind::Cast, {d}, {{"to", Elem::f32_}});
  Value* b = add(graph, OpKind::Add, {a, h});
  graph.addOutput(b, "b");
  const capabilities::Target acme = accelerator(), soft = host();
  auto result = partition(graph, std::vector<const capabilities::Target*>{&acme, &soft});
  ASSERT_TRUE(result.isOk());
  expectValid(graph, *result);
  ASSERT_EQ(result->parts.size(), 2u);
  EXPECT_EQ(result->parts[0].target, 1u);
  EXPECT_THAT(result->parts[1].nodes, ElementsAre(a->producer, b->producer));
}

TEST(Partition, EmulatedRowsGoBeforeTheHostAndNativeOnesBeforeBoth) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4}));
  Value* a = add(graph, OpKind::Exp, {x});
  graph.addOutput(a, "a");
  const capabilities::Target slow = accelerator({CDL_PROFILE_BASE, CDL_PROFILE_FP32},
                                                CDL_SUPPORT_EMULATED),
                             fast = accelerator(), soft = host();
  EXPECT_EQ(
      partition(graph, std::vector<const capabilities::Target*>{&slow, &soft})->parts[0].target,
      0u);
  EXPECT_EQ(partition(graph, std::vector<const capabilities::Target*>{&slow, &fast, &soft})
                ->parts[0]
                .target,
            1u);
  const Barred barred{{{1, a->name}, {"only add"}}};
  auto again =
      partition(graph, std::vector<const capabilities::Target*>{&slow, &fast, &soft}, barred);
  EXPECT_EQ(again->parts[0].target, 0u);
  EXPECT_EQ(again->assessments.at(a->producer)[1].reason, CDL_REASON_BARRED);
  EXPECT_THAT(again->assessments.at(a->producer)[1].detail,
              HasSubstr("refused by the backend: only add: say the limit"));
}

TEST(Partition, AliasesFollowTheirOperandAndConstantsTheirUsers) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {2, 2}));
  Value* one =
      graph.addConstant(Payload::splat(Elem::f32_, 1, 0x3f800000), TensorType(Elem::f32_, {}));
  Value* early = add(graph, OpKind::Reshape, {x}, {{"shape", std::vector<int64_t>{4}}});
  Value* a = add(graph, OpKind::Add, {early, one});
  Value* flat = add(graph, OpKind::Reshape, {a}, {{"shape", std::vector<int64_t>{2, 2}}});
  Value* d = add(graph, OpKind::Cast, {flat}, {{"to", Elem::f64_}});
  Value* alone = add(graph, OpKind::Reshape, {x}, {{"shape", std::vector<int64_t>{1, 4}}});
  graph.addOutput(d, "d");
  graph.addOutput(alone, "alone");
  const capabilities::Target acme = accelerator(), soft = host();
  auto result = partition(graph, std::vector<const capabilities::Target*>{&acme, &soft});
  ASSERT_TRUE(result.isOk());
  expectValid(graph, *result);
  for (const Value* value : {one, early, a, flat})
    EXPECT_EQ(result->targetOf.at(value->producer), 0u) << value->name;
  for (const Value* value : {d, alone})
    EXPECT_EQ(result->targetOf.at(value->producer), 1u) << value->name;
}

TEST(Partition, EveryNodeThatNobodyTakesIsListed) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f64_, {4}));
  auto first = graph.addNode(OpKind::Exp, {x}, {}, {"First"});
  auto second = graph.addNode(OpKind::Log, {x}, {}, {"Second"});
  graph.addOutput((*first)->result(), "a");
  graph.addOutput((*second)->result(), "b");
  auto poor =
      capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32}).target("poor", true);
  auto result = partition(graph, std::vector<const capabilities::Target*>{&*poor});
  ASSERT_FALSE(result.isOk());
  EXPECT_EQ(result.status().code(), Code::unsupported);
  EXPECT_THAT(result.status().message(), HasSubstr("exp 'First'"));
  EXPECT_THAT(result.status().message(), HasSubstr("log 'Second'"));
  const capabilities::Target acme = accelerator();
  EXPECT_THAT(partition(graph, std::vector<const capabilities::Target*>{&acme}).status().message(),
              HasSubstr("is not the host"));
}

// Random directed acyclic graphs over three targets, each of which has one type to itself.
TEST(Partition, RandomGraphsGiveNoCycleAndEveryNodeOnce) {
  const capabilities::Target floats = accelerator(),
                             halves = accelerator({CDL_PROFILE_BASE, CDL_PROFILE_FP16}),
                             soft = host();
  const std::vector<const capabilities::Target*> targets{&floats, &halves, &soft};
  constexpr Elem kElems[] = {Elem::f32_, Elem::f16_, Elem::f64_};
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Graph graph;
    std::vector<Value*> values[3];
    for (int e = 0; e < 3; ++e) {
      values[e].push_back(graph.addInput(fmt::format("x{}", e), TensorType(kElems[e], {4})));
      values[e].push_back(
          graph.addConstant(Payload::splat(kElems[e], 4, 0), TensorType(kElems[e], {4})));
    }
    for (int n = 0; n < 60; ++n) {
      const int e = static_cast<int>(random() % 3),
                from = random() % 4 == 0 ? static_cast<int>(random() % 3) : e;
      const auto any = [&](int elem) { return values[elem][random() % values[elem].size()]; };
      if (from != e)
        values[e].push_back(add(graph, OpKind::Cast, {any(from)}, {{"to", kElems[e]}}));
      else if (random() % 5 == 0)
        values[e].push_back(
            add(graph, OpKind::Reshape, {any(e)}, {{"shape", std::vector<int64_t>{4}}}));
      else
        values[e].push_back(add(graph, OpKind::Add, {any(e), any(e)}));
    }
    for (auto& list : values) graph.addOutput(list.back(), list.back()->name);
    auto result = partition(graph, targets);
    ASSERT_TRUE(result.isOk()) << result.status().message();
    expectValid(graph, *result);
    EXPECT_LT(result->parts.size(), graph.nodeCount());
    // Running the parts in order meets every input that was made before.
    std::set<std::string> known;
    for (const Value* input : graph.inputs()) known.insert(input->name);
    for (const Part& part : result->parts) {
      auto extracted = Extractor(graph).extract(part);
      ASSERT_TRUE(extracted.isOk()) << extracted.status().message();
      for (const Value* input : extracted->inputs())
        EXPECT_TRUE(known.count(input->name)) << input->name;
      for (const std::string& name : extracted->outputNames()) known.insert(name);
    }
    for (const Value* output : graph.outputs())
      EXPECT_TRUE(known.count(output->name)) << output->name;
  }
}

TEST(Partition, NodesWithoutNeighboursAreOnePart) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4}));
  Value* y = graph.addInput("y", TensorType(Elem::f32_, {4}));
  graph.addOutput(add(graph, OpKind::Exp, {x}), "one");
  graph.addOutput(add(graph, OpKind::Exp, {add(graph, OpKind::Exp, {y})}), "chain");
  graph.addOutput(add(graph, OpKind::Exp, {y}), "another");
  const capabilities::Target soft = host();
  const auto result = partition(graph, std::vector<const capabilities::Target*>{&soft});
  ASSERT_TRUE(result.isOk()) << result.status().message();
  expectValid(graph, *result);
  ASSERT_EQ(result->parts.size(), 2u);
  EXPECT_THAT(result->parts[0].nodes, ::testing::SizeIs(2));
  const auto unconnected = Extractor(graph).extract(result->parts[0]);
  ASSERT_TRUE(unconnected.isOk()) << unconnected.status().message();
  EXPECT_THAT(unconnected->inputs(), ::testing::SizeIs(2));
  EXPECT_THAT(unconnected->outputNames(), ::testing::SizeIs(2));
}

TEST(Partition, TextMayNotChooseLayouts) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4, 8}));
  Value* y = add(graph, OpKind::Exp, {x});
  y->type.layout.steps = {{0, 0}, {1, 0}, {1, 4}};
  graph.addOutput(y, "y");
  const capabilities::Target soft = host();
  const auto result = partition(graph, std::vector<const capabilities::Target*>{&soft});
  ASSERT_FALSE(result.isOk());
  EXPECT_EQ(result.status().code(), Code::unsupported);
  EXPECT_THAT(result.status().message(),
              HasSubstr("is f32[4,8]{layout [d0, d1, d1%4]}: layouts and halos are chosen"));
}

TEST(Extract, BordersKeepTheirNames) {
  Graph graph;
  Value* x = graph.addInput("x", TensorType(Elem::f32_, {4}));
  Value* weight =
      graph.addConstant(Payload::splat(Elem::f32_, 4, 0x40000000), TensorType(Elem::f32_, {4}));
  graph.rename(weight, "weight");
  Value* a = add(graph, OpKind::Mul, {x, weight});
  Value* b = add(graph, OpKind::Cast, {a}, {{"to", Elem::f64_}});
  Value* c = add(graph, OpKind::Cast, {b}, {{"to", Elem::f32_}});
  Value* d = add(graph, OpKind::Mul, {c, weight});
  graph.addOutput(d, "model output");
  graph.addOutput(a, "also a");
  graph.addOutput(weight, "weights");
  const capabilities::Target acme = accelerator(), soft = host();
  auto result = partition(graph, std::vector<const capabilities::Target*>{&acme, &soft});
  ASSERT_EQ(result->parts.size(), 3u);
  const Extractor extractor(graph);
  auto first = extractor.extract(result->parts[0]), last = extractor.extract(result->parts[2]);
  ASSERT_TRUE(first.isOk() && last.isOk());
  EXPECT_THAT(first->outputNames(), ElementsAre("weight", a->name));
  ASSERT_EQ(last->inputs().size(), 1u);
  EXPECT_EQ(last->inputs()[0]->name, c->name);
  EXPECT_THAT(last->outputNames(), ElementsAre(d->name));
  ASSERT_NE(last->find("weight"), nullptr); // copied, not handed over
  EXPECT_TRUE(last->find("weight")->isConstant());
}

} // namespace
} // namespace candela::lowering::partition
