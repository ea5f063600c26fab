#include "core/compiler/lowering/emit/emit.h"

#include <gmock/gmock.h>

#include <random>

#include "core/compiler/lowering/partition/partition.h"
#include "core/reference/interpreter/interp.h"
#include "core/reference/reference.h"
#include "tests/unit/compiler/capabilities/tables.h"
#include "tests/unit/compiler/lowering/decompose/cases.h"

namespace candela::lowering::emit {
namespace {

using graph::Graph;
using graph::OpKind;
using graph::TensorType;
using graph::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Value* add(Graph& graph, OpKind kind, std::vector<Value*> operands, graph::Attrs attrs = {},
           graph::Provenance provenance = {}) {
  auto node = graph.addNode(kind, std::move(operands), std::move(attrs), std::move(provenance));
  EXPECT_TRUE(node.isOk()) << node.status().message();
  return (*node)->result();
}
Value* f32(Graph& graph, const char* name, Shape dims) {
  return graph.addInput(name, TensorType(Elem::f32_, dims));
}
Value* one(Graph& graph, Shape dims = {}) {
  const int64_t count = *elementCount(dims);
  return graph.addConstant(Payload::splat(Elem::f32_, count, 0x3f800000),
                           TensorType(Elem::f32_, dims));
}

program::Program emitted(const Graph& graph, const capabilities::Target& target) {
  auto program = emit(graph, target);
  EXPECT_TRUE(program.isOk()) << program.status().message();
  return program ? std::move(program).value() : program::Program{};
}
program::Program emitted(const Graph& graph) { return emitted(graph, cases::accelerator()); }

std::vector<std::string> kinds(const program::Program& program) {
  std::vector<std::string> out;
  for (const program::Instr& instr : program.instrs)
    out.push_back(std::string(kindName(instr.kind)));
  return out;
}

Graph copyOf(const Graph& graph) {
  Graph copy;
  std::map<const Value*, Value*> copies;
  for (const Value* input : graph.inputs()) copies[input] = copy.addInput(input->name, input->type);
  for (const auto& node : graph.nodes()) copy.addCopy(*node, copies);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    copy.addOutput(copies.at(graph.outputs()[i]), graph.outputNames()[i]);
  return copy;
}

// The Program on the oracle's arithmetic against the graph that it came from.
void expectSame(const cases::Case& test, const Graph& graph, const capabilities::Target& target,
                std::span<const Tensor> inputs, bool toPrimitives) {
  SCOPED_TRACE(
      fmt::format("{} on {}{}", test.name, target.name(), toPrimitives ? " to primitives" : ""));
  Graph lowered = copyOf(graph);
  const Status status = decompose::lower(lowered, target, {.toPrimitives = toPrimitives});
  ASSERT_TRUE(status.isOk()) << status.message();
  auto program = emit(lowered, target);
  ASSERT_TRUE(program.isOk()) << program.status().message();
  auto expected = reference::run(graph, inputs);
  auto got = reference::interpret(*program, inputs, {.inPlaceArena = false});
  ASSERT_TRUE(expected.isOk()) << expected.status().message();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  ASSERT_EQ(expected->size(), got->size());
  for (size_t i = 0; i < expected->size(); ++i)
    EXPECT_EQ(cases::compare(test, (*expected)[i], (*got)[i]), "") << "result " << i;
}

TEST(Emit, EveryOpKeepsItsMeaning) {
  const capabilities::Target host = cases::host(), acme = cases::accelerator();
  int onAcme = 0;
  for (const cases::Case& test : cases::all()) {
    const Graph graph = cases::graphOf(test);
    const std::vector<Tensor> inputs = cases::inputsOf(test);
    expectSame(test, graph, host, inputs, false);
    if (test.kind != OpKind::Expr) expectSame(test, graph, host, inputs, true);
    if (test.kind == OpKind::Reshape ||
        partition::assess(*graph.outputs()[0]->producer, acme).verdict == partition::Verdict::no)
      continue;
    ++onAcme;
    expectSame(test, graph, acme, inputs, false);
  }
  EXPECT_GT(onAcme, 600);
}

// Optional instructions that a backend may claim, as they are emitted.
capabilities::Target generous() {
  capabilities::Table table = capabilities::Table::all();
  table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_F32, CDL_F32});
  table.rows.back().flags = CDL_ROW_EPILOGUE;
  table.rows.back().steps_mask = 1 << CDL_KIND_BINARY;
  for (uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE})
    table.add(CDL_KIND_POOL2D, fn, {CDL_F32, CDL_F32});
  table.add(CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX, {CDL_F32, CDL_F32});
  for (uint16_t fn : {CDL_ARG_REDUCE_MAX, CDL_ARG_REDUCE_MIN})
    table.add(CDL_KIND_ARG_REDUCE, fn, {CDL_F32, CDL_I32});
  return std::move(table.target("generous")).value();
}

TEST(Emit, CompositesThatATargetClaimsStayWhole) {
  const capabilities::Target target = generous();
  int whole = 0;
  for (const cases::Case& test : cases::all()) {
    const bool claims = test.kind == OpKind::Conv || test.kind == OpKind::ConvTranspose ||
                        test.kind == OpKind::MaxPool || test.kind == OpKind::AveragePool ||
                        test.kind == OpKind::Softmax || test.kind == OpKind::ArgReduce;
    if (!claims || test.hostOnly || test.operands[0].tensor.elem != Elem::f32_) continue;
    const Graph graph = cases::graphOf(test);
    Graph lowered = cases::graphOf(test);
    ASSERT_TRUE(decompose::lower(lowered, target).isOk());
    for (const auto& node : lowered.nodes()) whole += node->kind == test.kind;
    expectSame(test, graph, target, cases::inputsOf(test), false);
  }
  EXPECT_GT(whole, 50);
}

// Random graphs of everything that takes and gives a matrix of f32: movement, broadcasts, products,
// several outputs.
TEST(Emit, RandomGraphsKeepTheirMeaning) {
  const capabilities::Target acme = cases::accelerator();
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 random(seed);
    Graph graph;
    std::vector<Value*> pool{f32(graph, "x", {4, 6}), f32(graph, "z", {4, 6})};
    pool.push_back(graph.addConstant(std::move(randomTensor(Elem::f32_, {4, 6}, seed)).value()));
    const auto any = [&] { return pool[random() % pool.size()]; };
    for (int n = 0; n < 14; ++n) {
      Value* a = any();
      switch (random() % 9) {
      case 0: pool.push_back(add(graph, OpKind::Add, {a, any()})); break;
      case 1:
        pool.push_back(add(graph, OpKind::Mul,
                           {a, add(graph, OpKind::ReduceMax, {any()}, {{"axes", Shape{1}}})}));
        break;
      case 2:
        pool.push_back(add(graph, OpKind::Reshape,
                           {add(graph, OpKind::Transpose, {a}, {{"perm", Shape{1, 0}}})},
                           {{"shape", Shape{4, 6}}}));
        break;
      case 3:
        pool.push_back(add(
            graph, OpKind::Slice, {add(graph, OpKind::Concat, {a, any()}, {{"axis", int64_t(0)}})},
            {{"starts", Shape{6, 0}}, {"counts", Shape{4, 6}}, {"steps", Shape{-1, 1}}}));
        break;
      case 4: pool.push_back(add(graph, OpKind::Tanh, {a})); break;
      case 5:
        pool.push_back(add(graph, OpKind::Matmul,
                           {a, add(graph, OpKind::Gather,
                                   {any(), graph.addConstant(Tensor::of<int64_t>(
                                               Elem::i64_, {6}, {0, 1, -1, 2, 3, 0}))})}));
        break;
      case 6:
        pool.push_back(
            add(graph, OpKind::Pad,
                {add(graph, OpKind::Slice, {a},
                     {{"starts", Shape{1, 1}}, {"counts", Shape{2, 4}}, {"steps", Shape{1, 1}}})},
                {{"lo", Shape{1, 2}}, {"hi", Shape{1, 0}}}));
        break;
      case 7: pool.push_back(add(graph, OpKind::Softmax, {a})); break;
      default:
        pool.push_back(
            add(graph, OpKind::Select, {add(graph, OpKind::Less, {a, any()}), any(), one(graph)}));
        break;
      }
    }
    for (int n = 0; n < 3; ++n) graph.addOutput(any(), fmt::format("y{}", n));
    graph.addOutput(pool.back(), "last");
    cases::Case test;
    test.name = fmt::format("seed {}", seed);
    test.ulps = 4096; // errors of products of products
    const std::vector<Tensor> inputs{std::move(randomTensor(Elem::f32_, {4, 6}, 1)).value(),
                                     std::move(randomTensor(Elem::f32_, {4, 6}, 2)).value()};
    expectSame(test, graph, acme, inputs, false);
  }
}

TEST(Buffers, AliasesShareAndNamesAreTheGraphs) {
  Graph graph;
  Value* x = f32(graph, "input 0", {2, 3});
  Value* sum = add(graph, OpKind::Add, {x, x}, {}, {"Add_0"});
  Value* flat = add(graph, OpKind::Reshape, {sum}, {{"shape", Shape{6}}});
  Value* negated = add(graph, OpKind::Neg, {flat}, {}, {"Neg_1", "Cast_2"});
  graph.addOutput(negated, "the output");
  const program::Program program = emitted(graph);
  ASSERT_EQ(program.buffers.size(), 3u);
  EXPECT_EQ(program.buffers[0].name, "input 0");
  EXPECT_EQ(program.buffers[0].role, program::Role::input);
  EXPECT_EQ(program.buffers[1].name, "the output");
  EXPECT_EQ(program.buffers[1].role, program::Role::output);
  EXPECT_EQ(program.buffers[2].role, program::Role::temp);
  EXPECT_EQ(program.buffers[2].offset, CDL_UNPLACED);
  EXPECT_THAT(kinds(program), ElementsAre("binary", "unary"));
  EXPECT_THAT(program.instrs[1].provenance,
              ElementsAre(program::Origin{"Neg_1", "neg"}, program::Origin{"Cast_2", "neg"}));
  EXPECT_THAT(program.instrs[0].waits, IsEmpty());
  EXPECT_THAT(program.instrs[1].waits, ElementsAre(0u));
}

TEST(Buffers, OutputsThatNothingComputesAreCopied) {
  Graph graph;
  Value* x = f32(graph, "x", {4});
  Value* y = add(graph, OpKind::Neg, {x});
  Value* alias = add(graph, OpKind::Reshape, {y}, {{"shape", Shape{2, 2}}});
  for (Value* value : {x, y, y, alias, one(graph, {4}),
                       add(graph, OpKind::Reshape, {x}, {{"shape", Shape{2, 2}}})})
    graph.addOutput(value, fmt::format("out{}", graph.outputs().size()));
  const program::Program program = emitted(graph);
  EXPECT_THAT(kinds(program), ElementsAre("unary", "copy", "copy", "copy", "copy", "copy"));
  const Tensor input = Tensor::of<float>(Elem::f32_, {4}, {1, 2, 3, 4});
  auto got = reference::interpret(program, std::vector{input}, {.inPlaceArena = false});
  ASSERT_TRUE(got.isOk()) << got.status().message();
  ASSERT_EQ(got->size(), 6u);
  const float first[] = {1, -1, -1, -1, 1, 1};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ((*got)[i].as<float>()[0], first[i]) << i;
  EXPECT_EQ((*got)[0].as<float>()[3], 4);
  EXPECT_EQ((*got)[4].as<float>()[3], 1);
}

TEST(Buffers, ConstantsStayInTheirShortForm) {
  Graph graph;
  Value* x = f32(graph, "x", {1 << 20});
  graph.addOutput(add(graph, OpKind::Add, {x, one(graph, {1 << 20})}), "y");
  const program::Program program = emitted(graph);
  ASSERT_EQ(program.constants.size(), 1u);
  EXPECT_EQ(program.constants[0].payload.form(), Payload::Form::splat);
}

TEST(Views, BroadcastsAreStrideZeroInFewDims) {
  Graph graph;
  Value* x = f32(graph, "x", {2, 3, 4, 5});
  graph.addOutput(add(graph, OpKind::Mul, {x, one(graph, {3, 1, 1})}), "y");
  const program::Program program = emitted(graph);
  ASSERT_EQ(program.instrs.size(), 1u);
  EXPECT_THAT(program.instrs[0].inputs[1].dims, ElementsAre(2, 3, 20));
  EXPECT_THAT(program.instrs[0].inputs[1].strides, ElementsAre(0, 1, 0));
}

TEST(Views, ABatchOfOneIsRepeated) {
  Graph graph;
  Value *a = f32(graph, "a", {1, 2, 3}), *b = f32(graph, "b", {5, 3, 4});
  graph.addOutput(add(graph, OpKind::BatchMatmul, {a, b}, {{"to", Elem::f32_}}), "y");
  const program::Program program = emitted(graph);
  ASSERT_EQ(program.instrs.size(), 1u);
  EXPECT_THAT(program.instrs[0].inputs[0].dims, ElementsAre(5, 2, 3));
  EXPECT_EQ(program.instrs[0].inputs[0].strides[0], 0);
}

TEST(Waits, WritersBeforeReadersAndReadersBeforeWriters) {
  Graph graph;
  Value *x = f32(graph, "x", {2, 2}), *z = f32(graph, "z", {2, 2});
  Value* placed =
      add(graph, OpKind::Place, {x, z}, {{"dims", Shape{2, 5}}, {"offsets", Shape{0, 0, 0, 2}}});
  graph.addOutput(add(graph, OpKind::Neg, {placed}), "y");
  const program::Program program = emitted(graph);
  EXPECT_THAT(kinds(program), ElementsAre("fill", "copy", "copy", "unary"));
  EXPECT_THAT(program.instrs[1].waits, ElementsAre(0u));
  EXPECT_THAT(program.instrs[2].waits, ElementsAre(0u, 1u));
  EXPECT_THAT(program.instrs[3].waits, ElementsAre(0u, 1u, 2u));
}

TEST(Errors, WhatWasNotLoweredIsNamed) {
  Graph graph;
  Value* x = f32(graph, "x", {2, 3});
  graph.addOutput(add(graph, OpKind::ReduceSum, {x}, {{"axes", Shape{1}}}, {"ReduceSum_7"}), "y");
  auto program = emit(graph, cases::accelerator());
  ASSERT_FALSE(program.isOk());
  EXPECT_EQ(program.status().code(), Code::invalid_argument);
  EXPECT_THAT(program.status().message(), HasSubstr("reduce_sum 'ReduceSum_7' has no instruction"));
}

TEST(Errors, ConstantsThatNoMemoryHoldsAreNamed) {
  Graph graph;
  constexpr int64_t kCount = int64_t(1) << 45;
  graph.addOutput(
      graph.addConstant(Payload::iota(Elem::i64_, kCount, 0, 1), TensorType(Elem::i64_, {kCount})),
      "y");
  graph.rename(graph.outputs()[0], "range");
  auto program = emit(graph, cases::accelerator());
  ASSERT_FALSE(program.isOk());
  EXPECT_EQ(program.status().code(), Code::out_of_memory);
  EXPECT_THAT(program.status().message(),
              HasSubstr("constant 'range': cannot allocate 281474976710656 bytes"));
}

TEST(Errors, AnInstructionThatTheTargetLacksIsADefect) {
  Graph graph;
  Value* x = f32(graph, "x", {2, 3});
  graph.addOutput(add(graph, OpKind::Tanh, {x}, {}, {"Tanh_7"}), "y");
  auto program = emit(graph, cases::accelerator());
  ASSERT_FALSE(program.isOk());
  EXPECT_EQ(program.status().code(), Code::internal);
  EXPECT_THAT(program.status().message(), HasSubstr("'Tanh_7'"));
  EXPECT_THAT(program.status().message(), HasSubstr("no row for unary.tanh"));
}

} // namespace
} // namespace candela::lowering::emit
