// Random loops in integers, so that every way to run them must give the same bits: the oracle on
// the graph as it stands, the oracle on the planned Program, and the host.
#include "core/compiler/graph/loop.h"

#include <gtest/gtest.h>

#include <random>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/lowering/fusion/fuse.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/text.h"
#include "core/reference/interpreter/interp.h"
#include "core/reference/reference.h"

namespace candela::lowering::emit {
namespace {

using graph::Graph, graph::OpKind, graph::TensorType, graph::Value;

/// Everything has this shape, but for what is scanned.
const Shape kShape{2, 3};

class Maker {
public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Graph make() {
    Graph graph;
    std::vector<Value*> pool;
    for (int i = 0; i < 3; ++i)
      pool.push_back(graph.addInput(fmt::format("x{}", i), TensorType(Elem::i32_, kShape)));
    for (int i = 0; i < 3; ++i) addNode(graph, pool, 2);
    addLoop(graph, pool, 2);
    for (int i = 0; i < 4; ++i) addNode(graph, pool, 2);
    for (size_t i = 0; i < pool.size(); ++i)
      if (below(2)) graph.addOutput(pool[i], fmt::format("y{}", i));
    for (size_t i = 0; i < stacks_.size(); ++i)
      graph.addOutput(stacks_[i], fmt::format("stack{}", i));
    if (graph.outputs().empty()) graph.addOutput(pool.back(), "y");
    return graph;
  }

private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Value* any(const std::vector<Value*>& pool) {
    return pool[below(2) ? pool.size() - 1 - below(std::min<int64_t>(3, std::ssize(pool)))
                         : below(std::ssize(pool))];
  }

  Value* op(Graph& graph, OpKind kind, std::vector<Value*> operands, graph::Attrs attrs = {}) {
    return graph.addNode(kind, std::move(operands), std::move(attrs)).orAbort()->result();
  }

  void addNode(Graph& graph, std::vector<Value*>& pool, int loopsLeft) {
    using enum OpKind;
    constexpr OpKind kBinary[] = {Add, Sub, Mul, Min, Max};
    Value *a = any(pool), *b = any(pool);
    switch (below(loopsLeft > 0 ? 9 : 8)) {
    case 0:
    case 1:
    case 2: pool.push_back(op(graph, kBinary[below(5)], {a, b})); break;
    case 3: pool.push_back(op(graph, Neg, {a})); break;
    case 4: {
      Value* turned = op(graph, Transpose, {a}, {{"perm", std::vector<int64_t>{1, 0}}});
      pool.push_back(op(graph, Reshape, {turned}, {{"shape", kShape}}));
      break;
    }
    case 5: {
      Value* left = op(graph, Slice, {a}, sliceAttrs({0, 0}, {2, 2}));
      Value* right = op(graph, Slice, {b}, sliceAttrs({0, 2}, {2, 1}));
      pool.push_back(op(graph, Concat, {right, left}, {{"axis", int64_t{1}}}));
      break;
    }
    case 6: {
      Value* sum = op(graph, ReduceSum, {a}, {{"axes", std::vector<int64_t>{1}}});
      pool.push_back(op(graph, Add, {sum, b}));
      break;
    }
    case 7: {
      Tensor tensor = randomTensor(Elem::i32_, kShape, random_()).orAbort();
      pool.push_back(graph.addConstant(std::move(tensor)));
      break;
    }
    default: addLoop(graph, pool, loopsLeft);
    }
  }

  static graph::Attrs sliceAttrs(std::vector<int64_t> starts, std::vector<int64_t> counts) {
    return {{"starts", std::move(starts)},
            {"counts", std::move(counts)},
            {"steps", std::vector<int64_t>{1, 1}}};
  }

  /// A loop whose results join the pool, what is stacked as one slice of it.
  void addLoop(Graph& graph, std::vector<Value*>& pool, int loopsLeft) {
    graph::LoopForm form;
    form.trips = 1 + below(4);
    form.carried = static_cast<size_t>(below(4));
    form.scanned = static_cast<size_t>(below(3));
    const size_t captured = static_cast<size_t>(below(3)),
                 stacked = static_cast<size_t>(below(3)) + !form.carried;
    std::vector<Value*> operands;
    for (size_t i = 0; i < form.carried; ++i) operands.push_back(any(pool));
    for (size_t i = 0; i < form.scanned; ++i) {
      std::vector<Value*> slices;
      for (int64_t t = 0; t < form.trips; ++t) slices.push_back(any(pool));
      Value* all = op(graph, OpKind::Concat, slices, {{"axis", int64_t{0}}});
      operands.push_back(op(graph, OpKind::Reshape, {all}, {{"shape", Shape{form.trips, 2, 3}}}));
    }
    for (size_t i = 0; i < captured; ++i) operands.push_back(any(pool));
    for (size_t i = 0; i < form.scanned + stacked; ++i) form.backward.push_back(below(2));

    Graph body;
    std::vector<Value*> inner;
    for (size_t i = 0; i < operands.size(); ++i)
      inner.push_back(body.addInput(fmt::format("i{}", i), TensorType(Elem::i32_, kShape)));
    if (inner.empty())
      inner.push_back(body.addConstant(randomTensor(Elem::i32_, kShape, random_()).orAbort()));
    for (int64_t n = below(6); n-- > 0;) addNode(body, inner, loopsLeft - 1);
    // Outputs may be inputs, constants, one value twice, and what changes places.
    for (size_t i = 0; i < form.carried + stacked; ++i)
      body.addOutput(any(inner), fmt::format("o{}", i));
    graph::Node* loop = graph::addLoop(graph, form, operands, std::move(body)).orAbort();
    for (size_t i = 0; i < loop->results().size(); ++i) {
      if (i < form.carried) {
        pool.push_back(loop->result(i));
        continue;
      }
      const Shape starts{below(form.trips), 0, 0};
      Value* one = op(graph, OpKind::Slice, {loop->result(i)},
                      {{"starts", starts}, {"counts", Shape{1, 2, 3}}, {"steps", Shape{1, 1, 1}}});
      pool.push_back(op(graph, OpKind::Reshape, {one}, {{"shape", kShape}}));
      if (loopsLeft == 2) stacks_.push_back(loop->result(i));
    }
  }

  std::mt19937_64 random_;
  std::vector<Value*> stacks_; ///< results of loops that stand in no other
};

std::vector<int64_t> allOf(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> all;
  for (const Tensor& tensor : tensors) {
    const std::vector<int64_t> each = tensor.toInts();
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

program::Program planned(Graph& graph, bool toPrimitives) {
  const capabilities::Target& host = driver::hostTarget();
  EXPECT_TRUE(decompose::lower(graph, host, {toPrimitives}).isOk());
  for (Graph* each : graph::nestedGraphs(graph)) {
    EXPECT_TRUE(layout::chooseLayouts(*each, host).isOk());
    EXPECT_TRUE(toPrimitives || fusion::fuse(*each, host).isOk());
  }
  EXPECT_TRUE(graph::verify(graph).isOk()) << graph::verify(graph).message();
  program::Program program = emit(graph, host).orAbort();
  EXPECT_TRUE(program::passes::schedule::schedule(program).isOk());
  EXPECT_TRUE(program::passes::schedule::place(program).isOk());
  return program;
}

TEST(EmitLoop, RandomLoopsKeepTheirMeaning) {
  int loops = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = Maker(seed).make();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, graph::print(graph).value()));
    std::vector<Tensor> inputs;
    for (uint64_t i = 0; i < 3; ++i)
      inputs.push_back(randomTensor(Elem::i32_, kShape, seed * 3 + i).orAbort());
    const std::vector<int64_t> expected = allOf(reference::run(graph, inputs).orAbort());
    Diagnostics diagnostics;
    const auto again = graph::parse(graph::print(graph).value(), "again.cdl", diagnostics);
    ASSERT_TRUE(again) << again.status().message();
    ASSERT_EQ(allOf(reference::run(*again, inputs).orAbort()), expected);

    for (const bool optimized : {false, true}) {
      Graph lowered = graph::clone(graph);
      ASSERT_TRUE(!optimized || graph::passes::optimize(lowered).isOk());
      ASSERT_EQ(allOf(reference::run(lowered, inputs).orAbort()), expected);
      const program::Program program = planned(lowered, !optimized);
      loops += static_cast<int>(program.loops.size());
      const auto got = reference::interpret(program, inputs);
      ASSERT_TRUE(got) << got.status().message() << program::print(program).value();
      ASSERT_EQ(allOf(*got), expected) << program::print(program).value();
    }
    auto session = driver::compile(std::move(graph), "loops", {});
    ASSERT_TRUE(session) << session.status().message();
    ASSERT_EQ(allOf((*session)->run(inputs).orAbort()), expected);
  }
  EXPECT_GT(loops, 800);
}

} // namespace
} // namespace candela::lowering::emit
