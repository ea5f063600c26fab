// Random chains of windows and elementwise steps give the same bits when their rows are computed in
// bands.
#include "core/compiler/graph/passes/row_bands.h"

#include <gtest/gtest.h>

#include <random>

#include "core/reference/reference.h"

namespace candela {
namespace {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

/// An image through a few random nodes.
class ChainMaker {
public:
  explicit ChainMaker(uint64_t seed) : random_(seed) {}

  Graph make() {
    const Shape dims = {in(1, 2), in(1, 3), in(9, 20), in(4, 7)};
    at_ = graph_.addInput("x", {Elem::f32_, dims});
    const int64_t steps = in(3, 7);
    for (int64_t s = 0; s < steps; ++s) addStep();
    graph_.addOutput(at_, "y");
    return std::move(graph_);
  }

private:
  int64_t in(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Value* constant(Elem elem, Shape dims) {
    const auto tensor = randomTensor(elem, std::move(dims), random_());
    return graph_.addConstant(*tensor);
  }
  Value* number(Elem elem, double value) {
    if (elem == Elem::f32_)
      return graph_.addConstant(Tensor::of<float>(elem, {}, {static_cast<float>(value)}));
    return graph_.addConstant(Tensor::of<uint8_t>(elem, {}, {static_cast<uint8_t>(value)}));
  }

  void add(OpKind kind, std::vector<Value*> operands, Attrs attrs = {}) {
    const Result<Node*> node = graph_.addNode(kind, std::move(operands), std::move(attrs));
    ASSERT_TRUE(node.isOk()) << node.status().message();
    at_ = (*node)->result();
  }

  /// The attributes of a window that fits. Padding is smaller than the kernel.
  Attrs window(int64_t kernel, int64_t dilation) {
    Attrs attrs;
    const int64_t reach = (kernel - 1) * dilation;
    attrs["strides"] = std::vector<int64_t>{in(1, 2), 1};
    attrs["dilations"] = std::vector<int64_t>{dilation, 1};
    attrs["pads"] = std::vector<int64_t>{in(0, reach), kernel - 1, in(0, reach), kernel - 1};
    return attrs;
  }

  void addConv() {
    const int64_t kernel = in(1, 3);
    const int64_t ins = at_->type.dim(1);
    const bool isDepthwise = in(0, 1) == 1;
    const int64_t outs = isDepthwise ? ins : in(1, 4);
    Attrs attrs = window(kernel, in(1, 2));
    attrs["group"] = isDepthwise ? ins : 1;
    add(OpKind::Conv, {at_, constant(Elem::f32_, {outs, isDepthwise ? 1 : ins, kernel, kernel})},
        std::move(attrs));
  }

  void addPool() {
    const int64_t kernel = in(2, 3);
    Attrs attrs = window(kernel, 1);
    attrs["kernel_shape"] = std::vector<int64_t>{kernel, kernel};
    const bool isMaximum = in(0, 1) == 1;
    if (!isMaximum) attrs["count_include_pad"] = in(0, 1);
    add(isMaximum ? OpKind::MaxPool : OpKind::AveragePool, {at_}, std::move(attrs));
  }

  void addStep() {
    // Enough rows are left for windows and bands.
    const bool mayShrink = at_->type.dim(2) >= 8;
    switch (in(mayShrink ? 0 : 2, 5)) {
    case 0: return addConv();
    case 1: return addPool();
    case 2: return add(OpKind::Relu, {at_});
    case 3: return add(OpKind::Mul, {constant(Elem::f32_, {at_->type.dim(1), 1, 1}), at_});
    case 4: return add(OpKind::Add, {at_, constant(Elem::f32_, {1, at_->type.dim(1), 1, 1})});
    default:
      add(OpKind::Quantize, {at_, number(Elem::f32_, 0.03), number(Elem::u8_, 100)});
      add(OpKind::Dequantize, {at_, number(Elem::f32_, 0.03), number(Elem::u8_, 100)});
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  Value* at_ = nullptr;
};

void expectSameBits(const std::vector<Tensor>& expected, const std::vector<Tensor>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(expected[i].dims, got[i].dims);
    EXPECT_EQ(std::memcmp(expected[i].bytes.data(), got[i].bytes.data(), expected[i].sizeBytes()),
              0);
  }
}

TEST(RowBands, GiveTheSameBits) {
  int cut = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = ChainMaker(seed).make();
    const auto input = randomTensor(Elem::f32_, graph.inputs()[0]->type.shape(), seed);
    ASSERT_TRUE(input.isOk());
    const auto expected = reference::run(graph, std::vector{*input});
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const auto runs = graph::passes::rowRuns(graph);
    ASSERT_EQ(runs.size(), 1u);
    const int64_t rows = runs[0].back().node->result()->type.dim(2);
    const int64_t bands = std::min<int64_t>(rows, static_cast<int64_t>(2 + seed % 5));
    const Status status = graph::passes::cutRows(graph, runs[0], bands);
    ASSERT_TRUE(status.isOk()) << status.message();
    ASSERT_TRUE(graph::verify(graph).isOk()) << graph::verify(graph).message();
    const auto got = reference::run(graph, std::vector{*input});
    ASSERT_TRUE(got.isOk()) << got.status().message();
    expectSameBits(*expected, *got);
    cut += bands > 1;
  }
  EXPECT_GT(cut, 150);
}

TEST(RowBands, TheCutsAreThoseThatSaveMemoryTheLeastWorkFirst) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = ChainMaker(seed).make();
    const auto cuts = graph::passes::rowCuts(graph);
    EXPECT_TRUE(std::ranges::is_sorted(cuts, {}, &graph::passes::RowCut::more));
    for (const graph::passes::RowCut& cut : cuts) {
      EXPECT_GE(cut.bands, 2);
      EXPECT_LE(cut.bands, cut.run.back().node->result()->type.dim(2));
    }
    found += !cuts.empty();
  }
  EXPECT_GT(found, 5);
}

TEST(RowBands, RunsAreCutUntilTheyFit) {
  int fitted = 0;
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = ChainMaker(seed).make();
    const auto input = randomTensor(Elem::f32_, graph.inputs()[0]->type.shape(), seed);
    ASSERT_TRUE(input.isOk());
    const auto expected = reference::run(graph, std::vector{*input});
    const uint64_t bytes = graph::passes::rowBytes(graph) * 7 / 8;
    const auto cuts = graph::passes::rowCuts(graph);
    const auto made = graph::passes::cutToFit(graph, bytes);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    EXPECT_EQ(made->empty(), cuts.empty());
    const auto fits = [&](const graph::passes::RowCut& cut) { return cut.bytes <= bytes; };
    if (std::ranges::none_of(cuts, fits)) continue;
    EXPECT_LE(graph::passes::rowBytes(graph), bytes) << *made;
    EXPECT_NE(made->find("bands of rows"), std::string::npos);
    const auto got = reference::run(graph, std::vector{*input});
    ASSERT_TRUE(got.isOk() && expected.isOk());
    expectSameBits(*expected, *got);
    ++fitted;
  }
  EXPECT_GT(fitted, 3);
}

TEST(RowBands, MoreBandsThanRowsAreRefused) {
  Graph graph = ChainMaker(1).make();
  const auto runs = graph::passes::rowRuns(graph);
  const Status status = graph::passes::cutRows(graph, runs[0], 1000);
  ASSERT_FALSE(status.isOk());
  EXPECT_NE(status.message().find("1000 bands of the "), std::string::npos) << status.message();
}

// Rows of one value that two nodes read, or that a node reads next to others, are not cut.
TEST(RowBands, EndWhereSomethingElseReads) {
  Graph graph;
  Value* x = graph.addInput("x", {Elem::f32_, {1, 2, 8, 8}});
  Value* a = (*graph.addNode(OpKind::Relu, {x}))->result();
  Value* b = (*graph.addNode(OpKind::Neg, {a}))->result();
  Value* c = (*graph.addNode(OpKind::Exp, {a}))->result();
  Value* sum = (*graph.addNode(OpKind::Add, {b, c}))->result();
  graph.addOutput(sum, "y");
  EXPECT_EQ(graph::passes::rowRuns(graph).size(), 3u);
}

} // namespace
} // namespace candela
