// Every rule against central differences, on random nodes that are made of the records of spec/ops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "conformance/random/smooth_ops.h"
#include "core/compiler/graph/loop.h"
#include "core/reference/reference.h"
#include "tests/unit/compiler/differentiate/central_differences.h"

namespace candela {
namespace {

using conformance::random::Random;
using graph::OpKind;
using testing::Comparison;

bool isNightly() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  return size && std::string_view(size) == "nightly";
}
int shapesEach() { return isNightly() ? 200 : 30; }

struct Sample {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

/// A node of the op by itself; nullopt where this seed draws none.
std::optional<Sample> sampleOf(const graph::OpInfo& info, Random& random) {
  const auto recipe = conformance::random::smoothNode(info, Elem::f64_, random);
  if (!recipe) return std::nullopt;
  return Sample{recipe->build().orAbort(), recipe->inputs()};
}

/// Whether all outputs are finite.
bool isFinite(const Sample& sample) {
  const Result<std::vector<Tensor>> outputs = reference::run(sample.graph, sample.inputs);
  if (!outputs) return false;
  for (const Tensor& output : *outputs)
    for (int64_t i = 0; output.elem == Elem::f64_ && i < output.count(); ++i)
      if (!std::isfinite(output.as<double>()[i])) return false;
  return true;
}

std::vector<OpKind> opsWithRules() {
  std::vector<OpKind> kinds;
  for (const graph::OpInfo& info : graph::allOps())
    if (differentiate::reasonWithout(info.kind).empty() && info.kind != OpKind::Loop)
      kinds.push_back(info.kind);
  return kinds;
}

bool isRefused(const graph::Graph& graph) {
  graph::Graph copy = graph::clone(graph);
  return differentiate::differentiateGraph(copy).code() == Code::unsupported;
}

class GradientOf : public ::testing::TestWithParam<OpKind> {};

TEST_P(GradientOf, AgreesWithCentralDifferences) {
  const graph::OpInfo& info = graph::opInfo(GetParam());
  Comparison comparison;
  int done = 0;
  int refused = 0;
  for (uint64_t seed = 1; done < shapesEach(); ++seed) {
    SCOPED_TRACE(fmt::format("{}, seed {}", info.name, seed));
    ASSERT_LT(seed, 4000u) << "only " << done << " samples";
    Random random(seed);
    const std::optional<Sample> sample = sampleOf(info, random);
    if (!sample) continue;
    if (conformance::random::refusesSomeForms(GetParam()) && isRefused(sample->graph)) {
      ++refused;
      continue;
    }
    ++done;
    compareGradients(sample->graph, sample->inputs, random, comparison);
    if (HasFailure()) return;
  }
  EXPECT_GE(comparison.sharp * 4, comparison.compared * 3)
      << comparison.sharp << " of " << comparison.compared << " bounds are small";
  EXPECT_LE(refused, 3 * done);
}

INSTANTIATE_TEST_SUITE_P(Rules, GradientOf, ::testing::ValuesIn(opsWithRules()),
                         [](const auto& info) { return std::string(graph::opName(info.param)); });

/// Ops whose slopes have slopes of more than one operand, or whose rules use other ops.
constexpr OpKind kTwice[] = {
    OpKind::Matmul,  OpKind::Gemm,       OpKind::Conv,        OpKind::ConvTranspose,
    OpKind::Mul,     OpKind::Attention,  OpKind::Div,         OpKind::Exp,
    OpKind::Tanh,    OpKind::Sigmoid,    OpKind::Softmax,     OpKind::LayerNorm,
    OpKind::RmsNorm, OpKind::BatchNorm,  OpKind::ReduceProd,  OpKind::ReduceMean,
    OpKind::Pow,     OpKind::Gelu,       OpKind::Pad,         OpKind::Slice,
    OpKind::Gather,  OpKind::Take,       OpKind::AveragePool, OpKind::MaxPool,
    OpKind::Concat,  OpKind::ReduceMax,  OpKind::Sqrt,        OpKind::Log,
    OpKind::Sort,    OpKind::BatchMatmul};

class SecondGradientOf : public ::testing::TestWithParam<OpKind> {};

TEST_P(SecondGradientOf, AgreesWithCentralDifferences) {
  const graph::OpInfo& info = graph::opInfo(GetParam());
  Comparison comparison;
  int done = 0;
  for (uint64_t seed = 5000; done < std::max(2, shapesEach() / 2); ++seed) {
    SCOPED_TRACE(fmt::format("{}, seed {}", info.name, seed));
    ASSERT_LT(seed, 9000u) << "only " << done << " samples";
    Random random(seed);
    std::optional<Sample> sample = sampleOf(info, random);
    if (!sample) continue;
    const Status status = differentiate::differentiateGraph(sample->graph);
    ASSERT_TRUE(status.isOk()) << status.message();
    for (size_t i = sample->inputs.size(); i < sample->graph.inputs().size(); ++i)
      sample->inputs.push_back(
          randomTensor(Elem::f64_, sample->graph.inputs()[i]->type.shape(), seed + i).orAbort());
    if (!isFinite(*sample)) continue;
    ++done;
    compareGradients(sample->graph, sample->inputs, random, comparison);
    if (HasFailure()) return;
  }
  EXPECT_GE(comparison.sharp * 4, comparison.compared * 3)
      << comparison.sharp << " of " << comparison.compared << " bounds are small";
}

INSTANTIATE_TEST_SUITE_P(Rules, SecondGradientOf, ::testing::ValuesIn(kTwice),
                         [](const auto& info) { return std::string(graph::opName(info.param)); });

} // namespace
} // namespace candela
