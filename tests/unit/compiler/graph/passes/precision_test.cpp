// What becomes of numbers where a graph is computed in other types: within what
// requested_passes.inc says. Which nodes change is told by tests/ir/passes/{widen,narrow}.cdl.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/compiler/graph/passes/passes.h"
#include "core/reference/reference.h"
#include "core/support/float_bits.h"

namespace candela {
namespace {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

Value* add(Graph& graph, OpKind kind, std::vector<Value*> operands, graph::Attrs attrs = {}) {
  return graph.addNode(kind, std::move(operands), std::move(attrs)).orAbort()->result();
}

void runPass(Graph& graph, const std::string& pass) {
  const Status status = graph::passes::runPasses(graph, {&pass, 1});
  ASSERT_TRUE(status) << status.message();
}

std::vector<double> outputOf(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto results = reference::run(graph, inputs);
  EXPECT_TRUE(results.isOk()) << results.status().message();
  const Tensor& y = results->front();
  std::vector<double> numbers;
  for (int64_t i = 0; i < y.count(); ++i)
    numbers.push_back(toReal(y.elem, loadElement(y.elem, y.bytes.data(), i)));
  return numbers;
}

double at(const Tensor& tensor, int64_t i) {
  return toReal(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), i));
}

/// y = x . w, and the sums of the terms' magnitudes.
struct Product {
  Graph graph;
  Tensor x, w;

  Product(int64_t m, int64_t k, int64_t n, uint64_t seed)
      : x(randomTensor(Elem::f32_, {m, k}, seed).orAbort()),
        w(randomTensor(Elem::f32_, {k, n}, seed + 1).orAbort()) {
    Value* in = graph.addInput("x", {Elem::f32_, {m, k}});
    graph.addOutput(add(graph, OpKind::Matmul, {in, graph.addConstant(w)}), "y");
  }
  double magnitude(int64_t i) const {
    const int64_t k = w.dims[0];
    const int64_t n = w.dims[1];
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += std::abs(at(x, i / n * k + j) * at(w, j * n + i % n));
    return sum;
  }
};

/// A pass, and half a unit of the half that it rounds to, relative.
struct Rounding {
  const char* pass;
  double most;
  int roundings; // of a term
};

class NarrowProducts : public testing::TestWithParam<Rounding> {};

TEST_P(NarrowProducts, MoveByNoMoreThanTheirBound) {
  const Rounding& rounding = GetParam();
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto size = static_cast<int64_t>(seed);
    Product product(1 + size % 5, size * 3, 1 + size % 7, seed);
    const std::vector<double> before = outputOf(product.graph, {product.x});
    runPass(product.graph, rounding.pass);
    const std::vector<double> after = outputOf(product.graph, {product.x});
    bool isMoved = false;
    for (size_t i = 0; i < before.size(); ++i) {
      const double terms = product.magnitude(static_cast<int64_t>(i)) + 0x1p-14;
      const double slack = terms * 0x1p-20; // second order, and f32's own
      EXPECT_LE(std::abs(after[i] - before[i]), rounding.roundings * rounding.most * terms + slack)
          << rounding.pass << ", seed " << seed << ", element " << i;
      isMoved |= after[i] != before[i];
    }
    EXPECT_TRUE(isMoved) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowProducts,
                         testing::Values(Rounding{"weights-f16", 0x1p-11, 1},
                                         Rounding{"weights-bf16", 0x1p-8, 1},
                                         Rounding{"products-f16", 0x1p-11, 3},
                                         Rounding{"products-bf16", 0x1p-8, 3}));

TEST(NarrowProducts, NameAWeightThatTheHalfDoesNotHave) {
  Graph graph;
  Value* x = graph.addInput("x", {Elem::f32_, {1, 2}});
  Value* w = graph.addConstant(Tensor::of<float>(Elem::f32_, {2, 1}, {1, -65520}));
  graph.addOutput(add(graph, OpKind::Matmul, {x, w}), "y");
  for (const std::string pass : {"weights-f16", "products-f16"}) {
    const Status status = graph::passes::runPasses(graph, {&pass, 1});
    EXPECT_NE(status.message().find("element 1 of its weights is -65520, beyond f16"),
              std::string::npos)
        << status.message();
  }
}

/// Ties, carries into the exponent, numbers below the normal ones, the largest, NaN and infinities.
TEST(NarrowProducts, RoundEveryWeightAsTheOracleDoes) {
  std::vector<float> numbers = {0.0F,
                                -0.0F,
                                65504,
                                65519,
                                -65504,
                                0x1p-14F,
                                0x1p-15F,
                                0x1p-24F,
                                0x1p-25F,
                                0x1.8p-25F,
                                0x1p-126F,
                                0x1p-130F,
                                1,
                                0x1.002p0F,
                                0x1.006p0F,
                                0x1.ffep0F,
                                0x1.ffffp0F,
                                0x1.01p0F,
                                0x1.03p0F,
                                std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()};
  const Tensor random = randomTensor(Elem::f32_, {2000}, 9).orAbort();
  for (int64_t i = 0; i < random.count(); ++i)
    numbers.push_back(std::ldexp(static_cast<float>(at(random, i)), static_cast<int>(i % 40) - 24));
  const auto count = static_cast<int64_t>(numbers.size());
  for (const Elem half : {Elem::f16_, Elem::bf16_}) {
    Graph graph;
    Value* x = graph.addInput("x", {Elem::f32_, {1, count}});
    Value* w = graph.addConstant(Tensor::of<float>(Elem::f32_, {count, 1}, numbers));
    graph.addOutput(add(graph, OpKind::Matmul, {x, w}), "y");
    runPass(graph, half == Elem::f16_ ? "weights-f16" : "weights-bf16");
    const Node* cast = graph.outputs()[0]->producer->operand(1)->producer;
    const Tensor stored = cast->operand(0)->tensor().orAbort();
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(loadElement(half, stored.bytes.data(), i),
                fromReal(half, numbers[static_cast<size_t>(i)]))
          << numbers[static_cast<size_t>(i)] << " as " << elemName(half);
  }
}

/// Arithmetic that f32 rounds so finely that a second rounding gives what one would have given.
TEST(Widening, OfOneStepKeepsTheBits) {
  for (const Elem half : {Elem::f16_, Elem::bf16_})
    for (const OpKind kind : {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Div, OpKind::Max}) {
      Graph graph;
      Value* a = graph.addInput("a", {half, {500}});
      Value* b = graph.addInput("b", {half, {500}});
      graph.addOutput(add(graph, kind, {a, b}), "y");
      const std::vector<Tensor> inputs = {randomTensor(half, {500}, 1).orAbort(),
                                          randomTensor(half, {500}, 2).orAbort()};
      const std::vector<double> before = outputOf(graph, inputs);
      runPass(graph, half == Elem::f16_ ? "widen-f16" : "widen-bf16");
      EXPECT_EQ(outputOf(graph, inputs), before) << opName(kind) << " of " << elemName(half);
    }
}

/// A block of a transformer: what halves lose in between is what differs.
TEST(Widening, OfManyStepsRoundsLess) {
  for (const Elem half : {Elem::f16_, Elem::bf16_}) {
    Graph graph;
    Value* x = graph.addInput("x", {half, {6, 16}});
    Value* w = graph.addConstant(randomTensor(half, {16, 16}, 3).orAbort());
    Value* scores = add(graph, OpKind::Matmul, {x, w});
    scores = add(graph, OpKind::Softmax, {scores}, {{"axis", int64_t(1)}});
    Value* turned = add(graph, OpKind::Transpose, {scores}, {{"perm", Shape{1, 0}}});
    Value* y = add(graph, OpKind::Tanh, {add(graph, OpKind::Matmul, {scores, turned})});
    graph.addOutput(y, "y");
    const std::vector<Tensor> inputs = {randomTensor(half, {6, 16}, 4).orAbort()};
    const std::vector<double> before = outputOf(graph, inputs);
    runPass(graph, half == Elem::f16_ ? "widen-f16" : "widen-bf16");
    const std::vector<double> after = outputOf(graph, inputs);
    int casts = 0;
    for (const auto& node : graph.nodes()) casts += node->kind == OpKind::Cast;
    EXPECT_EQ(casts, 3) << "of the input, the weights and the output alone";
    const double unit = half == Elem::f16_ ? 0x1p-10 : 0x1p-7;
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 4 * unit);
  }
}

} // namespace
} // namespace candela
