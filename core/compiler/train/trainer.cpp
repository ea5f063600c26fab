#include "core/compiler/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/graph/loop.h"
#include "core/runtime/session/session.h"

namespace candela::train {

using runtime::session::BufferRef;

namespace {

/// Outputs of a step before its states: the loss and the scores.
constexpr size_t kStateOutputs = 2;

Tensor number(double value) {
  return Tensor::of<float>(Elem::f32_, {}, {static_cast<float>(value)});
}

/// An output more: what the loss is computed from.
Status addScores(graph::Graph& graph, graph::Value* output) {
  differentiate::Writer writer{graph};
  try {
    const Term scores = scoresOf(Term(writer, output));
    const Term own =
        differentiate::make(graph::OpKind::Reshape, {scores}, {{"shape", scores.shape()}});
    graph.addOutput(own.value(), graph.uniqueName("scores"));
  } catch (const differentiate::Failure& failure) {
    return failure.status;
  }
  return Status::ok();
}

} // namespace

Trainer::Trainer(StepGraph step, const OptimizerSettings& optimizer)
    : step_(std::move(step)), optimizer_(optimizer) {
  for (const CarriedState& state : step_.states) states_.push_back(state.first);
}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

const runtime::bundle::Bundle& Trainer::bundle() const { return session_->bundle(); }

Result<Trainer> Trainer::create(StepGraph step, const OptimizerSettings& optimizer,
                                const std::string& modelName,
                                std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
                                driver::CompileOptions options) {
  Trainer trainer(std::move(step), optimizer);
  options.states.clear();
  for (const CarriedState& state : trainer.step_.states)
    options.states.push_back(state.input + "=" + state.output);
  const std::vector<std::string> states = options.states;
  CDL_ASSIGN(trainer.session_,
             driver::compile(graph::clone(trainer.step_.graph), modelName, devices, options));
  CDL_TRY(trainer.session_->bindStates(states));
  return trainer;
}

void Trainer::start(std::vector<Tensor> states) {
  states_ = std::move(states);
  isGiven_ = true;
}

Status Trainer::readStates() {
  if (isGiven_) return Status::ok();
  std::vector<Tensor> read;
  std::vector<BufferRef> to;
  for (const CarriedState& state : step_.states) {
    CDL_ASSIGN(Tensor room, Tensor::zeros(state.first.elem, state.first.dims));
    to.push_back(BufferRef::onHost(room.bytes.data()));
    read.push_back(std::move(room));
  }
  CDL_TRY(session_->readStates(to));
  states_ = std::move(read);
  return Status::ok();
}

/// The host's part of a step, by the names of its inputs; states that go on are not among them.
std::map<std::string, Tensor> Trainer::given(const StepInput& input) const {
  const auto correction = [&](double beta) {
    return number(1 / (1 - std::pow(beta, static_cast<double>(input.number))));
  };
  std::map<std::string, Tensor> given{{"labels", input.labels},
                                      {"learning_rate", number(input.learningRate)},
                                      {"correction1", correction(optimizer_.beta1)},
                                      {"correction2", correction(optimizer_.beta2)}};
  for (size_t i = 0; i < input.data.size(); ++i) given.emplace(step_.dataInputs[i], input.data[i]);
  for (size_t i = 0; isGiven_ && i < states_.size(); ++i)
    given.emplace(step_.states[i].input, states_[i]);
  return given;
}

Result<StepOutput> Trainer::run(const StepInput& input, Reads reads) {
  const std::map<std::string, Tensor> bound = given(input);
  std::vector<BufferRef> in;
  for (const graph::Value* value : step_.graph.inputs()) {
    const auto found = bound.find(value->name);
    in.push_back(found == bound.end() ? BufferRef()
                                      : BufferRef::onHost(found->second.bytes.data()));
  }
  StepOutput output;
  CDL_ASSIGN(Tensor loss, Tensor::zeros(Elem::f32_, {}));
  std::vector<BufferRef> out(kStateOutputs + step_.states.size());
  out[0] = BufferRef::onHost(loss.bytes.data());
  if (reads == Reads::scores) {
    CDL_ASSIGN(output.scores, Tensor::zeros(step_.scores.elem, step_.scores.shape()));
    out[1] = BufferRef::onHost(output.scores.bytes.data());
  }
  CDL_TRY(session_->runAt(in, out));
  isGiven_ = false;
  output.loss = static_cast<double>(*loss.as<float>());
  return output;
}

Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator::~Evaluator() = default;

Result<Evaluator>
Evaluator::create(const import::onnx_io::Model& model, const std::vector<Parameter>& parameters,
                  const StepSettings& settings,
                  std::span<const std::shared_ptr<runtime::plugin::Device>> devices) {
  CDL_ASSIGN(graph::Graph graph,
             import::importModel(withParametersAsInputs(model, parameters), settings.import));
  Evaluator made;
  for (const graph::Value* input : graph.inputs()) made.inputs_.push_back(input->name);
  for (const Parameter& parameter : parameters) made.parameters_.push_back(parameter.name);
  if (!settings.output.empty())
    made.output_ = static_cast<size_t>(std::ranges::find(graph.outputNames(), settings.output) -
                                       graph.outputNames().begin());
  if (made.output_ >= graph.outputs().size())
    return badArgument("{}: the model has no output '{}'", model.path, settings.output);
  if (settings.loss == Loss::crossEntropy) {
    CDL_TRY(addScores(graph, graph.outputs()[made.output_]).context(model.path));
    made.output_ = graph.outputs().size() - 1;
  }
  CDL_ASSIGN(made.session_, driver::compile(std::move(graph), model.path, devices));
  return made;
}

Result<Tensor> Evaluator::run(const std::map<std::string, Tensor>& data,
                              std::span<const Tensor> values) {
  std::vector<Tensor> inputs;
  for (const std::string& name : inputs_) {
    const auto parameter = std::ranges::find(parameters_, name);
    inputs.push_back(parameter == parameters_.end()
                         ? data.at(name)
                         : values[static_cast<size_t>(parameter - parameters_.begin())]);
  }
  CDL_ASSIGN(const std::vector<Tensor> outputs, session_->run(inputs));
  return outputs[output_];
}

} // namespace candela::train
