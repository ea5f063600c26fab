#include "core/compiler/train/step_graph.h"

#include <algorithm>

#include "core/compiler/differentiate/differentiate.h"

namespace candela::train {
namespace {

using differentiate::Failure, differentiate::need, differentiate::Writer;
using graph::Graph, graph::Node, graph::OpKind, graph::TensorType, graph::Value;
using import::onnx_io::Model;

class StepMaker {
public:
  StepMaker(Graph graph, const std::vector<Parameter>& parameters, const StepSettings& settings)
      : parameters_(parameters), settings_(settings) {
    step_.graph = std::move(graph);
    for (const Parameter& parameter : parameters) values_.push_back(find(parameter.name));
    for (const Value* input : step_.graph.inputs())
      if (!std::ranges::count(values_, input)) step_.dataInputs.push_back(input->name);
  }

  StepGraph make() {
    trainNorms();
    const Term output = lossOutput();
    const Term scores = settings_.loss == Loss::crossEntropy ? scoresOf(output) : output;
    step_.scores = output.value()->type;
    const Term loss = lossOf(scores);
    const StepNumbers numbers{addScalar("learning_rate"), addScalar("correction1"),
                              addScalar("correction2")};
    const std::vector<Term> gradients = gradientsOf(loss);
    replaceOutputs(loss, output);
    addUpdates(gradients, numbers);
    check(graph::verify(step_.graph));
    return std::move(step_);
  }

private:
  static void check(const Status& status) {
    if (!status) throw Failure{status};
  }

  Value* find(const std::string& name) const {
    for (Value* input : step_.graph.inputs())
      if (input->name == name) return input;
    throw Failure{badArgument("parameter '{}' is no value of the model's main graph", name)};
  }
  bool isParameter(const Value* value) const { return std::ranges::count(values_, value) > 0; }

  /// Statistics that move have a next value: the norm's own result.
  void trainNorms() {
    nextStatistics_.resize(values_.size());
    for (Node* node : step_.graph.snapshot()) {
      if (node->kind != OpKind::BatchNorm || node->intAttr("training_mode")) continue;
      if (!isParameter(node->operand(3)) || !isParameter(node->operand(4))) continue;
      graph::Attrs attrs = node->attrs;
      attrs["training_mode"] = int64_t{1};
      const Node* training =
          need(step_.graph.addNode(node->kind, node->operands(), attrs, node->provenance, node, 3));
      step_.graph.replaceAllUses(node->result(), training->result());
      for (size_t i = 0; i < values_.size(); ++i)
        for (const size_t statistic : {size_t{3}, size_t{4}})
          if (values_[i] == node->operand(statistic))
            nextStatistics_[i] = training->result(statistic - 2);
      step_.graph.erase(node);
    }
  }

  Term lossOutput() {
    const std::vector<std::string>& names = step_.graph.outputNames();
    size_t which = 0;
    if (!settings_.output.empty())
      which = static_cast<size_t>(std::ranges::find(names, settings_.output) - names.begin());
    if (which >= names.size())
      throw Failure{badArgument("the model has no output '{}'; there are {}", settings_.output,
                                fmt::join(names, ", "))};
    if (settings_.output.empty() && names.size() > 1)
      throw Failure{badArgument("the model has {} outputs, say which one the loss is of: {}",
                                names.size(), fmt::join(names, ", "))};
    Value* output = step_.graph.outputs()[which];
    if (output->type.elem != Elem::f32_)
      throw Failure{
          badArgument("output '{}' is {}, a loss is of f32", names[which], output->type.text())};
    return {writer_, output};
  }

  Term lossOf(const Term& scores) {
    if (settings_.loss == Loss::meanSquares) {
      step_.labels = scores.value()->type;
      return meanSquares(scores, addInput("labels", step_.labels));
    }
    if (scores.rank() < 2)
      throw Failure{badArgument("the output is {}, cross_entropy takes [batch, classes]",
                                scores.value()->type.text())};
    Shape dims = scores.shape();
    dims.erase(dims.begin() + 1);
    step_.labels = {Elem::i32_, dims};
    return crossEntropy(scores, addInput("labels", step_.labels));
  }

  Term addInput(const std::string& name, const TensorType& type) {
    if (Value* other = step_.graph.find(name)) step_.graph.rename(other, freeName(name));
    return {writer_, step_.graph.addInput(name, type)};
  }
  Term addScalar(const std::string& name) { return addInput(name, {Elem::f32_, {}}); }
  /// Inputs of the model give way to those of the step, and are known by their place.
  std::string freeName(const std::string& name) {
    const std::string free = step_.graph.uniqueName("model." + name);
    std::ranges::replace(step_.dataInputs, name, free);
    return free;
  }

  /// Of the parameters that are trained and that the loss depends on.
  std::vector<Term> gradientsOf(const Term& loss) {
    std::vector<Value*> wrt;
    for (size_t i = 0; i < values_.size(); ++i)
      if (isTrained(parameters_[i].role)) wrt.push_back(values_[i]);
    const differentiate::Cotangent of{loss.value(), nullptr};
    const auto gradients = need(differentiate::differentiate(step_.graph, std::span(&of, 1), wrt));
    std::vector<Term> all;
    size_t next = 0;
    for (const Parameter& parameter : parameters_) {
      if (!isTrained(parameter.role)) continue;
      const differentiate::Gradient& gradient = gradients[next++];
      if (gradient.isReached)
        all.emplace_back(writer_, gradient.value);
      else
        step_.unreached.push_back(parameter.name);
    }
    if (all.empty())
      throw Failure{badArgument("the loss depends on no parameter, there is nothing to train")};
    return settings_.clipNorm > 0 ? clippedByNorm(all, settings_.clipNorm) : all;
  }

  /// The step's own outputs in the place of the model's.
  void replaceOutputs(const Term& loss, const Term& output) {
    Graph own;
    own.name = step_.graph.name;
    std::map<const Value*, Value*> copies;
    for (const Value* input : step_.graph.inputs())
      copies[input] = own.addInput(input->name, input->type);
    for (const auto& node : step_.graph.nodes()) own.addCopy(*node, copies);
    copies_ = std::move(copies);
    step_.graph = std::move(own);
    for (Value*& value : values_) value = copies_.at(value);
    for (Value*& value : nextStatistics_)
      if (value) value = copies_.at(value);
    addOutput(copies_.at(loss.value()), "loss");
    addOutput(copies_.at(output.value()), "scores");
  }

  /// Each output is a value of its own.
  void addOutput(Value* value, const std::string& name) {
    Value* own = differentiate::make(OpKind::Reshape, {Term(writer_, value)},
                                     {{"shape", value->type.shape()}})
                     .value();
    step_.graph.rename(own, step_.graph.uniqueName(name));
    step_.graph.addOutput(own, name);
  }

  /// The input that holds a state, which is there for a parameter, and its next value.
  void carry(Value* input, const std::string& name, const Tensor& first, const Term& next) {
    const size_t number = step_.states.size();
    CarriedState state{fmt::format("state.{}", number), fmt::format("next.{}", number), name,
                       first};
    step_.graph.rename(input, step_.graph.uniqueName(state.input));
    state.input = input->name;
    addOutput(next.value(), state.output);
    step_.states.push_back(std::move(state));
  }

  void addUpdates(const std::vector<Term>& gradients, const StepNumbers& numbers) {
    const auto copied = [&](const Term& term) { return Term(writer_, copies_.at(term.value())); };
    const StepNumbers own{copied(numbers.learningRate), copied(numbers.correction1),
                          copied(numbers.correction2)};
    struct Kept {
      Term before, next;
      std::string name;
    };
    std::vector<Kept> kept; // by the optimizer: behind all parameters
    size_t gradient = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Parameter& parameter = parameters_[i];
      if (!isTrained(parameter.role) || std::ranges::count(step_.unreached, parameter.name)) {
        carry(values_[i], parameter.name, parameter.value,
              Term(writer_, nextStatistics_[i] ? nextStatistics_[i] : values_[i]));
        continue;
      }
      Updated before{Term(writer_, values_[i]), {}};
      for (size_t s = 0; s < stateCount(settings_.optimizer.kind); ++s)
        before.states.push_back(addInput(fmt::format("kept.{}.{}", i, s), values_[i]->type));
      const Updated after = update(settings_.optimizer, before, copied(gradients[gradient++]), own);
      for (size_t s = 0; s < after.states.size(); ++s)
        kept.push_back(
            {before.states[s], after.states[s],
             fmt::format("{}:{} {}", parameter.name, optimizerName(settings_.optimizer.kind), s)});
      carry(values_[i], parameter.name, parameter.value, after.parameter);
    }
    for (const Kept& state : kept)
      carry(state.before.value(), state.name, need(Tensor::zeros(Elem::f32_, state.before.shape())),
            state.next);
  }

  const std::vector<Parameter>& parameters_;
  const StepSettings& settings_;
  StepGraph step_;
  Writer writer_{step_.graph};
  std::vector<Value*> values_;         ///< per parameter
  std::vector<Value*> nextStatistics_; ///< per parameter; null where none moves
  std::map<const Value*, Value*> copies_;
};

} // namespace

Model withParametersAsInputs(const Model& model, const std::vector<Parameter>& parameters) {
  Model open = model;
  for (const Parameter& parameter : parameters) {
    std::erase_if(open.graph.initializers,
                  [&](const auto& each) { return each.name == parameter.name; });
    std::erase_if(open.graph.inputs, [&](const auto& each) { return each.name == parameter.name; });
    import::onnx_io::ValueInfo info;
    info.name = parameter.name;
    info.elem = parameter.value.elem;
    info.hasShape = true;
    for (const int64_t dim : parameter.value.dims) info.dims.push_back({dim, ""});
    open.graph.inputs.push_back(std::move(info));
  }
  return open;
}

Result<StepGraph> makeStep(const Model& model, const std::vector<Parameter>& parameters,
                           const StepSettings& settings) {
  CDL_ASSIGN(Graph graph,
             import::importModel(withParametersAsInputs(model, parameters), settings.import));
  try {
    return StepMaker(std::move(graph), parameters, settings).make();
  } catch (const Failure& failure) {
    return failure.status.context(model.path);
  }
}

} // namespace candela::train
