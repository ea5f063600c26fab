// Every rule against central differences, on random nodes that are made of the records of spec/ops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/compiler/graph/loop.h"
#include "core/reference/reference.h"
#include "tests/unit/compiler/differentiate/central_differences.h"

namespace candela {
namespace {

using conformance::random::Draft, conformance::random::Random;
using graph::OpKind;
using testing::Comparison;

bool isNightly() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  return size && std::string_view(size) == "nightly";
}
int shapesEach() { return isNightly() ? 200 : 30; }

struct Limits {
  double lo, hi;
};
/// Where an op is smooth and defined; else anything up to 2.
std::optional<Limits> limitsOf(OpKind kind, size_t operand) {
  switch (kind) {
  case OpKind::Log:
  case OpKind::Sqrt:
  case OpKind::Reciprocal:
  case OpKind::Log1p: return Limits{0.4, 2};
  case OpKind::Acosh: return Limits{1.2, 3};
  case OpKind::Asin:
  case OpKind::Acos:
  case OpKind::Atanh: return Limits{-0.9, 0.9};
  case OpKind::Tan: return Limits{-1.2, 1.2};
  case OpKind::Pow:
    if (operand == 0) return Limits{0.4, 2};
    break;
  case OpKind::Div:
  case OpKind::Rem:
    if (operand == 1) return Limits{0.4, 2};
    break;
  case OpKind::BatchNorm:
    if (operand == 4) return Limits{0.3, 2};
    break;
  default: break;
  }
  return std::nullopt;
}

/// Ops whose rules refuse some forms; tests/ir/differentiate/refusals.cdl says which.
bool refusesSome(OpKind kind) { return kind == OpKind::Put || kind == OpKind::Place; }

/// All floats are f64, and all are inputs.
void adapt(Draft& draft) {
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    Draft::Operand& operand = draft.operands[i];
    if (!isFloat(operand.elem) || isStorageOnly(operand.elem)) continue;
    operand.elem = Elem::f64_;
    operand.constant = false;
    if (const auto limits = limitsOf(draft.kind, i)) {
      operand.lo = limits->lo;
      operand.hi = limits->hi;
    }
  }
  if (const auto to = draft.attrs.find("to"); to != draft.attrs.end()) to->second = Elem::f64_;
}

struct Sample {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

/// Whether the sample has something to compare, of finite numbers.
bool isUseful(const Sample& sample) {
  const Result<std::vector<Tensor>> outputs = reference::run(sample.graph, sample.inputs);
  if (!outputs) return false;
  bool hasReal = false;
  for (const Tensor& output : *outputs) {
    if (output.elem != Elem::f64_) continue;
    hasReal = hasReal || output.count() > 0;
    for (int64_t i = 0; i < output.count(); ++i)
      if (!std::isfinite(output.as<double>()[i])) return false;
  }
  for (const Tensor& input : sample.inputs)
    if (input.elem == Elem::f64_ && input.count() > 0) return hasReal;
  return false;
}

/// A node of the op by itself; nullopt where this seed draws none.
std::optional<Sample> sampleOf(const graph::OpInfo& info, Random& random) {
  const std::vector<Elem> elems = conformance::random::firstElems(info);
  const Elem elem = std::ranges::count(elems, Elem::f64_) ? Elem::f64_ : random.of(elems);
  std::optional<Draft> draft = conformance::random::draftOf(info, elem, nullptr, random);
  if (!draft) return std::nullopt;
  adapt(*draft);
  auto recipe = conformance::random::recipeOf(*draft, conformance::random::Data::calm, random);
  if (!recipe) return std::nullopt;
  Sample sample{recipe->build().orAbort(), recipe->inputs()};
  if (!isUseful(sample)) return std::nullopt;
  return sample;
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
    if (refusesSome(GetParam()) && isRefused(sample->graph)) {
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
    if (!isUseful(*sample)) continue;
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
