// Each rule of core/compiler/differentiate on the backend: the gradients of a node on random
// numbers, judged thrice. By the oracle and the running error analysis, as any other graph; by
// central differences of the node in f64; and, where it is short, by the derivative as it stands in
// a table of them.
#include <cmath>

#include "conformance/judge/bounds.h"
#include "conformance/judge/slopes.h"
#include "conformance/port.h"
#include "conformance/random/smooth_ops.h"
#include "conformance/suite.h"
#include "conformance/tiers/derivatives.h"
#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/loop.h"

namespace candela::conformance::tiers {
namespace {

using graph::OpKind;
using random::Random, random::Recipe;

constexpr int kSamples[] = {1, 2, 20}; ///< of each rule, by Size
constexpr int kMostTries = 4000;       ///< until a record draws a node

/// A node, its gradients as a graph, and numbers to run that on.
struct GradientSample {
  graph::Graph node;    ///< of f32
  graph::Graph doubles; ///< the same in f64
  graph::Graph gradients;
  std::vector<Tensor> nodeInputs, doubleInputs;
  std::vector<Tensor> inputs; ///< of the gradients: the node's, and the cotangents
  judge::Weights weights;     ///< of the node's outputs, as f32 has them
};

Result<GradientSample> sampleOf(const Recipe& recipe, Random& random) {
  GradientSample sample;
  CDL_ASSIGN(sample.node, recipe.build());
  const Recipe doubles = random::inDoubles(recipe, Elem::f32_);
  CDL_ASSIGN(sample.doubles, doubles.build());
  sample.nodeInputs = recipe.inputs();
  sample.doubleInputs = doubles.inputs();
  sample.gradients = graph::clone(sample.node);
  CDL_TRY(differentiate::differentiateGraph(sample.gradients));
  sample.weights = judge::randomWeights(sample.node, random);
  for (std::vector<double>& output : sample.weights)
    for (double& weight : output) weight = static_cast<double>(static_cast<float>(weight));
  sample.inputs = sample.nodeInputs;
  for (const std::vector<double>& cotangent : judge::cotangentsOf(sample.node, sample.weights)) {
    const graph::Value* input = sample.gradients.inputs()[sample.inputs.size()];
    sample.inputs.push_back(Tensor::of(Elem::f32_, input->type.shape(),
                                       std::vector<float>(cotangent.begin(), cotangent.end())));
  }
  return sample;
}

/// The first node that the record draws for this sample and that has gradients.
Result<GradientSample> drawSample(OpKind kind, int number) {
  const graph::OpInfo& info = graph::opInfo(kind);
  Status last = failure(Code::internal, "the record of {} draws no node", info.name);
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    Random random(
        splitmix64(static_cast<uint64_t>(number) * kMostTries + static_cast<uint64_t>(attempt)));
    const std::optional<Recipe> recipe = random::smoothNode(info, Elem::f32_, random);
    if (!recipe) continue;
    auto sample = sampleOf(*recipe, random);
    if (sample || !random::refusesSomeForms(kind)) return sample;
    last = sample.status();
  }
  return last;
}

/// A run of the gradients, and where their nodes went.
struct GradientRun {
  std::vector<Tensor> outputs;
  Work work;
  std::string whyNotNative; ///< of the first node that is not
};
Result<GradientRun> runOn(Port& port, const GradientSample& sample, const Selection& selection) {
  GradientRun run;
  driver::CompileOptions options;
  options.toPrimitives = selection.toPrimitives;
  CDL_ASSIGN(const auto devices, port.devices());
  CDL_ASSIGN(const auto session,
             driver::compile(graph::clone(sample.gradients), "gradients", devices, options));
  for (const runtime::bundle::NodePlacement& node : session->bundle().placement) {
    const bool isNative = node.cls == runtime::bundle::NodePlacement::Class::native;
    run.work += {1, isNative, node.macs, node.nativeMacs};
    if (!isNative && run.whyNotNative.empty())
      run.whyNotNative = fmt::format("{}: {}", node.op, node.why);
  }
  CDL_ASSIGN(run.outputs, session->run(sample.inputs));
  return run;
}

/// What the oracle says of all outputs, and how far they may be off.
struct Allowed {
  std::vector<judge::Interval> outputs;
};
Result<Allowed> allowedOf(const GradientSample& sample) {
  std::vector<judge::Interval> inputs;
  for (const Tensor& input : sample.inputs) {
    CDL_ASSIGN(judge::Interval interval, judge::Interval::of(input));
    inputs.push_back(std::move(interval));
  }
  Allowed allowed;
  CDL_ASSIGN(allowed.outputs, judge::analyze(sample.gradients, inputs, driver::hostTarget()));
  return allowed;
}

/// The gradient of input `i` among the outputs; nullopt: it is of no floats.
std::optional<size_t> outputOf(const GradientSample& sample, size_t i) {
  if (sample.nodeInputs[i].elem != Elem::f32_) return std::nullopt;
  size_t output = sample.node.outputs().size();
  for (size_t before = 0; before < i; ++before)
    output += sample.nodeInputs[before].elem == Elem::f32_;
  return output;
}

/// A gradient along a direction, and how far that may be off by the widths of its elements.
struct Along {
  double value = 0;
  double slack = 0;
  bool isKnown = true; ///< no element may be anything
};
Along along(const GradientSample& sample, const Allowed& allowed, const std::vector<Tensor>& got,
            const judge::Direction& direction) {
  Along sum;
  for (size_t i = 0; i < direction.size(); ++i) {
    const auto output = outputOf(sample, i);
    if (!output) continue;
    const judge::Interval& interval = allowed.outputs[*output];
    const auto* values = got[*output].as<float>();
    for (size_t e = 0; e < direction[i].size(); ++e) {
      const double by = direction[i][e];
      if (by == 0) continue;
      const auto at = static_cast<int64_t>(e);
      sum.isKnown = sum.isKnown && !interval.isWild(at);
      sum.value += by * static_cast<double>(values[e]);
      sum.slack += std::abs(by) * (interval.hi.real[e] - interval.lo.real[e]);
    }
  }
  return sum;
}

/// Failure: a slope that the gradients on the device are too far from.
Status compareSlopes(const GradientSample& sample, const Allowed& allowed,
                     const std::vector<Tensor>& got, Random& random) {
  for (const judge::Slope& slope :
       judge::centralDifferences(sample.doubles, sample.doubleInputs, sample.weights, random)) {
    if (!slope.isSmooth) continue;
    const Along is = along(sample, allowed, got, slope.direction);
    if (!is.isKnown) continue;
    const double bound = slope.bound + is.slack;
    if (!(std::abs(is.value - slope.value) <= bound))
      return failure(Code::internal,
                     "the gradient along a direction is {}, the central difference {}: {} apart, "
                     "{} may be",
                     is.value, slope.value, std::abs(is.value - slope.value), bound);
  }
  return Status::ok();
}

/// Failure: a derivative of the table that is not what the rule's graph may give.
Status compareDerivatives(const GradientSample& sample, const Allowed& allowed) {
  const auto wanted = derivativesOf(sample.node, sample.nodeInputs, sample.weights);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].empty()) continue;
    const size_t output = *outputOf(sample, i);
    const Tensor exact = Tensor::of(Elem::f32_, sample.nodeInputs[i].dims,
                                    std::vector<float>(wanted[i].begin(), wanted[i].end()));
    if (const std::string text = judge::outside(allowed.outputs[output], exact); !text.empty())
      return failure(Code::internal, "the derivative by operand {} as its formula says it: {}", i,
                     text);
  }
  return Status::ok();
}

Status judgeGradients(const GradientSample& sample, const std::vector<Tensor>& got,
                      Random& random) {
  CDL_ASSIGN(const Allowed allowed, allowedOf(sample));
  if (got.size() != allowed.outputs.size())
    return failure(Code::internal, "{} outputs, expected {}", got.size(), allowed.outputs.size());
  for (size_t o = 0; o < got.size(); ++o)
    if (const std::string text = judge::outside(allowed.outputs[o], got[o]); !text.empty())
      return failure(Code::internal, "output '{}': {}", sample.gradients.outputNames()[o], text);
  CDL_TRY(compareSlopes(sample, allowed, got, random));
  return compareDerivatives(sample, allowed);
}

CaseResult runGradient(OpKind kind, int number, const Selection& selection, Port& port) {
  const auto sample = drawSample(kind, number);
  if (!sample)
    return CaseResult::of(sample.status().context("the suite cannot make a node of the op"));
  CaseResult result = CaseResult::passed();
  const auto got = runOn(port, *sample, selection);
  if (!got && got.status().code() == Code::unsupported)
    return CaseResult::unsupported(got.status().message());
  if (!got) return CaseResult::of(got.status());
  result.work = got->work;
  Random random(static_cast<uint64_t>(number));
  const Status status = judgeGradients(*sample, got->outputs, random);
  if (!status) {
    result.outcome = CaseResult::Outcome::failed;
    result.reason = status.message();
    return result;
  }
  // What the SDK did alone says nothing of the backend.
  const auto devices = port.devices();
  if (devices && !devices->empty() && result.work.nativeNodes == 0) {
    result.outcome = CaseResult::Outcome::emulated;
    result.reason = "no node of the gradients is native: " + got->whyNotNative;
  }
  return result;
}

} // namespace

Result<std::vector<Case>> gradientCases(const Selection& selection) {
  std::vector<Case> cases;
  for (const graph::OpInfo& info : graph::allOps()) {
    // What a loop's body is differentiated by are the other rules.
    const bool hasRule = differentiate::reasonWithout(info.kind).empty();
    if (!hasRule || info.kind == OpKind::Loop) continue;
    for (int number = 1; number <= kSamples[static_cast<size_t>(selection.size)]; ++number)
      cases.push_back({fmt::format("gradients:{}/f32:sample={}", info.name, number),
                       [kind = info.kind, number, selection](Port& port) {
                         return runGradient(kind, number, selection, port);
                       }});
  }
  return cases;
}

} // namespace candela::conformance::tiers
