#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/family.h"
#include "conformance/judge/bounds.h"
#include "conformance/port.h"
#include "conformance/suite.h"
#include "conformance/tiers/models/manifest.h"
#include "conformance/tiers/models/networks.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/loop.h"
#include "core/support/compare.h"
#include "core/support/out_of_memory.h"

// Whole networks with everything that the pipeline does, judged by the oracle's answer.
namespace candela::conformance::tiers::models {
namespace {

using graph::Graph;

double largestOf(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.count(); ++i)
    largest = std::max(largest, std::abs(elementAsReal(tensor, i)));
  return largest;
}

/// How far from the oracle an answer may be, where the error analysis says too little: as far as
/// whole models are from ONNX Runtime's answers in tests/models.
struct Leeway {
  double ofLargest = 2e-4, absolute = 0;
  static Leeway of(const Network& network, bool quantized) {
    if (!quantized) return {};
    return network.quantized == Network::Quantized::steps ? Leeway{0, 1.001 * kActivationStep}
                                                          : Leeway{0.04, 0};
  }
};

/// What is right for one set of inputs.
struct Right {
  std::vector<Tensor> outputs;            ///< of the oracle
  std::vector<judge::Interval> intervals; ///< empty: too wide to say something, or too dear

  Status judge(const std::vector<Tensor>& got, const Leeway& leeway) const {
    if (got.size() != outputs.size())
      return failure(Code::mismatch, "{} outputs, expected {}", got.size(), outputs.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const Tensor& want = outputs[i];
      std::string text;
      if (!intervals.empty()) {
        text = judge::outside(intervals[i], got[i]);
      } else {
        const CompareBound bound{0, std::max(leeway.absolute, leeway.ofLargest * largestOf(want))};
        if (const Comparison found = compareTensors(got[i], want, bound); !found.passed())
          text = found.text();
      }
      if (!text.empty()) return failure(Code::mismatch, "output {}: {}", i, text);
    }
    return Status::ok();
  }
};

bool isTight(const std::vector<judge::Interval>& intervals) {
  return std::ranges::all_of(
      intervals, [](const judge::Interval& x) { return x.tight() * 10 >= x.count() * 9; });
}

Result<Right> rightFor(const Graph& graph, const std::vector<Tensor>& inputs, bool analyzed) {
  Right right;
  CDL_ASSIGN(right.outputs, reference::run(graph, inputs));
  if (!analyzed) return right;
  std::vector<judge::Interval> given;
  for (const Tensor& input : inputs) {
    CDL_ASSIGN(judge::Interval interval, judge::Interval::of(input));
    given.push_back(std::move(interval));
  }
  CDL_ASSIGN(right.intervals, judge::analyze(graph, given, driver::hostTarget()));
  if (!isTight(right.intervals)) right.intervals.clear();
  return right;
}

std::vector<Tensor> inputsOf(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const graph::Value* input : graph.inputs())
    inputs.push_back(
        orThrow(randomTensor(input->type.elem, input->type.shape(), splitmix64(seed++))));
  return inputs;
}

/// A network on the port, which is not the reference.
class Subject {
public:
  Subject(Port& port, bool toPrimitives) : port_(port) { options_.toPrimitives = toPrimitives; }

  Status compile(const Graph& graph, const std::vector<std::string>& states, CaseResult& result) {
    CDL_ASSIGN(const auto devices, port_.devices());
    device_ = devices.front();
    CDL_ASSIGN(session_, driver::compile(graph::clone(graph), graph.name, devices, options_));
    if (!states.empty()) CDL_TRY(session_->bindStates(states));
    const std::vector<runtime::bundle::NodePlacement>& placement = session_->bundle().placement;
    for (const runtime::bundle::NodePlacement& node : placement)
      result.work += {1, node.cls == runtime::bundle::NodePlacement::Class::native, node.macs,
                      node.nativeMacs};
    result.placement = manifestOf(placement);
    return checkClaims(placement, device_->compiles());
  }

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    runtime::session::RunStats stats;
    CDL_ASSIGN(std::vector<Tensor> outputs, session_->run(inputs, &stats));
    nativeInstrs_ += stats.nativeInstrs;
    if (device_->compiles() && stats.emulatedInstrs)
      return failure(Code::mismatch, "{} instructions ran emulated, of rows that say NATIVE",
                     stats.emulatedInstrs);
    return outputs;
  }

  bool isDeterministic() const {
    return device_->table().device_capabilities(device_->handle())->flags &
           CDL_DEVICE_DETERMINISTIC;
  }
  /// Whether anything of it ran on what is judged, and not in the SDK's own hands.
  bool isJudged() const { return nativeInstrs_ > 0; }

private:
  Port& port_;
  driver::CompileOptions options_;
  std::shared_ptr<runtime::plugin::Device> device_;
  std::unique_ptr<runtime::session::Session> session_;
  uint64_t nativeInstrs_ = 0;
};

bool equalBytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.sizeBytes() == y.sizeBytes() &&
           std::memcmp(x.bytes.data(), y.bytes.data(), x.sizeBytes()) == 0;
  });
}

/// Twice on different inputs, then on the first ones again: an answer of another run shows.
Status tryNetwork(const Graph& graph, const Leeway& leeway, bool analyzed, Subject& subject) {
  std::vector<Tensor> first;
  for (const uint64_t run : {1, 2, 3}) {
    const std::vector<Tensor> inputs = inputsOf(graph, run == 2);
    const std::string who = fmt::format("run {}", run);
    auto got = subject.run(inputs);
    if (!got) return got.status().context(who);
    CDL_ASSIGN(const Right right, rightFor(graph, inputs, analyzed));
    CDL_TRY(right.judge(*got, leeway).context(who));
    if (run == 1) first = *got;
    if (run == 3 && subject.isDeterministic() && !equalBytes(first, *got))
      return failure(Code::mismatch,
                     "run 3: other bytes than in run 1 on the same inputs, of a device that calls "
                     "itself deterministic");
  }
  return Status::ok();
}

/// What passes may do to values that are looked at: a batch norm in its convolution's weights or a
/// GELU in one piece rounds elsewhere than the nodes that it stands for.
void loosen(judge::Interval& interval) {
  double largest = 0;
  for (const double value : interval.lo.real)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (double& value : interval.lo.real) value -= 4e-6 * largest;
  for (double& value : interval.hi.real) value += 4e-6 * largest;
}

/// Every value of it by itself: what a node made of what it received, the backend's own answers,
/// lies within the bounds of that one node, however deep it stands. Nothing is fused across what is
/// looked at.
Status tryNodes(const Graph& graph, Port& port, bool toPrimitives) {
  Graph open = graph::clone(graph);
  driver::keepValues(open);
  Subject subject(port, toPrimitives);
  CaseResult ignored;
  CDL_TRY(subject.compile(open, {}, ignored));
  const std::vector<Tensor> inputs = inputsOf(open, 0);
  CDL_ASSIGN(const std::vector<Tensor> got, subject.run(inputs));
  std::map<const graph::Value*, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[open.inputs()[i]] = inputs[i];
  for (size_t i = 0; i < got.size(); ++i) values[open.outputs()[i]] = got[i];
  for (const auto& node : open.nodes()) {
    if (node->kind == graph::OpKind::Constant) continue;
    std::vector<Tensor> tensors;
    std::vector<judge::Interval> intervals;
    std::vector<const judge::Interval*> operands;
    intervals.reserve(node->operands().size());
    for (const graph::Value* operand : node->operands()) {
      if (!operand) {
        tensors.emplace_back();
        operands.push_back(nullptr);
        continue;
      }
      tensors.push_back(operand->isConstant() ? orThrow(operand->tensor()) : values.at(operand));
      CDL_ASSIGN(intervals.emplace_back(), judge::Interval::of(tensors.back()));
      operands.push_back(&intervals.back());
    }
    Right right;
    if (node->body) {
      CDL_ASSIGN(right.outputs, reference::evaluate(*node, tensors));
    } else {
      CDL_ASSIGN(right.intervals, judge::analyze(*node, operands, driver::hostTarget()));
      std::ranges::for_each(right.intervals, loosen);
      right.outputs.resize(right.intervals.size());
    }
    std::vector<Tensor> results;
    for (const graph::Value* result : node->results()) results.push_back(values.at(result));
    CDL_TRY(right.judge(results, {}).context(fmt::format("node '{}' alone", node->userName())));
  }
  return Status::ok();
}

/// Nothing here is unsupported: what a backend does not claim, the host does.
CaseResult finish(const Status& status, const Subject* subject, CaseResult result) {
  result.outcome = status ? CaseResult::Outcome::passed : CaseResult::Outcome::failed;
  result.reason = status.message();
  if (status && subject && !subject->isJudged()) {
    result.outcome = CaseResult::Outcome::emulated;
    result.reason = "nothing of it ran natively";
  }
  return result;
}

int64_t batchOf(const Choice& choice) { return choice.at("batch") == "3" ? 3 : 1; }

/// `analyzed`: small and of floats, so that the error analysis can follow it.
CaseResult runGraph(const Graph& graph, const Leeway& leeway, bool analyzed, Port& port,
                    bool toPrimitives) {
  CaseResult result;
  if (port.isReference())
    return finish(rightFor(graph, inputsOf(graph, 0), false).status(), nullptr, result);
  Subject subject(port, toPrimitives);
  Status status = subject.compile(graph, {}, result);
  if (status)
    status = tryNetwork(graph, leeway, analyzed && graph::nestedGraphs(graph).size() == 1, subject);
  if (status && analyzed) status = tryNodes(graph, port, toPrimitives);
  return finish(status, &subject, result);
}

/// Rows are "cnn_f32" and "cnn_int8".
CaseResult runNetwork(const Choice& choice, Port& port, bool toPrimitives) {
  const std::string& row = choice.at("row");
  const size_t split = row.rfind('_');
  const auto network = std::ranges::find(allNetworks(), row.substr(0, split), &Network::name);
  const NetworkForm form{batchOf(choice), row.substr(split + 1) == "int8",
                         choice.at("size") == "large"};
  const Graph graph = network->build(form);
  return runGraph(graph, Leeway::of(*network, form.quantized), !form.quantized && !form.large, port,
                  toPrimitives);
}

CaseResult runDigits(const Choice& choice, Port& port, bool toPrimitives) {
  auto graph = importDigits(batchOf(choice));
  return graph ? runGraph(*graph, {}, true, port, toPrimitives) : CaseResult::of(graph.status());
}

/// Token by token, the caches kept by the session, beside the oracle, which is given its own caches
/// again. Once more from the start of another session: nothing may be left of the first one.
Status tryDecoder(const Decoder& decoder, Subject& subject) {
  std::vector<Tensor> kept;
  for (const graph::Value* input : decoder.graph.inputs())
    kept.push_back(orThrow(Tensor::zeros(input->type.elem, input->type.shape())));
  const Tensor none;
  for (int64_t place = 0; place < decoder.places; ++place) {
    kept[0] = inputsOf(decoder.graph, static_cast<uint64_t>(place)).front();
    std::vector<Tensor> given(kept.size(), none);
    given[0] = kept[0];
    const std::string who = fmt::format("token {}", place);
    auto got = subject.run(given);
    if (!got) return got.status().context(who);
    CDL_ASSIGN(const Right right, rightFor(decoder.graph, kept, false));
    CDL_TRY(right.judge(*got, {}).context(who));
    // Outputs are the answer, then the states in the order of the inputs.
    std::copy(right.outputs.begin() + 1, right.outputs.end(), kept.begin() + 1);
  }
  return Status::ok();
}

CaseResult runDecoder(const Choice& choice, Port& port, bool toPrimitives) {
  const Decoder decoder = buildDecoder(batchOf(choice));
  CaseResult result;
  if (port.isReference())
    return finish(rightFor(decoder.graph, inputsOf(decoder.graph, 0), false).status(), nullptr,
                  result);
  Status status;
  for (const std::string who : {"first session", "second session"}) {
    Subject subject(port, toPrimitives);
    result.work = {};
    status = subject.compile(decoder.graph, decoder.states, result);
    if (status) status = tryDecoder(decoder, subject).context(who);
    if (!status || who == "second session") return finish(status, &subject, result);
  }
  return result;
}

} // namespace

Result<std::vector<Case>> modelCases(const Selection& selection) {
  std::vector<Case> cases;
  const auto append = [&](std::vector<Case> more) {
    std::ranges::move(more, std::back_inserter(cases));
  };
  const bool toPrimitives = selection.toPrimitives;
  Family family{"models:", {}, {{"size", {"small"}}, {"batch", {"1", "3"}}}, {}, {}};
  if (selection.size == Size::nightly) family.axes[0].values.emplace_back("large");
  for (const Network& network : allNetworks()) {
    family.rows.push_back(fmt::format("{}_f32", network.name));
    if (network.quantized != Network::Quantized::none)
      family.rows.push_back(fmt::format("{}_int8", network.name));
  }
  family.run = [toPrimitives](const Choice& choice, Port& port) {
    return runNetwork(choice, port, toPrimitives);
  };
  append(expand(family, selection, {.quick = 1, .full = 40}));
  Family others{"models:", {"decoder", "digits"}, {{"batch", {"1", "3"}}}, {}, {}};
  others.run = [toPrimitives](const Choice& choice, Port& port) {
    return choice.at("row") == "digits" ? runDigits(choice, port, toPrimitives)
                                        : runDecoder(choice, port, toPrimitives);
  };
  append(expand(others, selection, {.quick = 1, .full = 4}));
  return cases;
}

} // namespace candela::conformance::tiers::models
