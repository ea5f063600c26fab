#include "core/compiler/quantize/layers.h"

#include <algorithm>

namespace candela::quantize {
namespace {

using import::onnx_io::Model, import::onnx_io::Node;

/// Inputs of the model that no initializer has a value for, in order.
Result<std::vector<Tensor>> operandsOf(const Model& model,
                                       const std::map<std::string, Tensor>& inputs) {
  std::set<std::string> constants;
  for (const import::onnx_io::Initializer& initializer : model.graph.initializers)
    constants.insert(initializer.name);
  std::vector<Tensor> operands;
  for (const import::onnx_io::ValueInfo& input : model.graph.inputs) {
    if (constants.count(input.name)) continue;
    const auto given = inputs.find(input.name);
    if (given == inputs.end())
      return badArgument("{}: no data for input '{}': the other model has no such input",
                         model.path, input.name);
    operands.push_back(given->second);
  }
  return operands;
}

/// Values of a model by name, from one run.
Result<std::map<std::string, Tensor>> observe(const Model& model,
                                              const std::set<std::string>& values,
                                              const std::map<std::string, Tensor>& inputs,
                                              const RunConditions& options) {
  std::map<std::string, Tensor> seen;
  std::vector<std::string> wanted;
  for (const std::string& value : values) {
    if (const auto input = inputs.find(value); input != inputs.end())
      seen[value] = input->second;
    else
      wanted.push_back(value);
  }
  if (wanted.empty()) return seen;
  CDL_ASSIGN(const std::vector<Tensor> operands, operandsOf(model, inputs));
  CDL_ASSIGN(const Observed observed, Observed::compile(model, wanted, options));
  CDL_ASSIGN(std::vector<Tensor> results, observed.run(operands));
  for (size_t i = 0; i < wanted.size(); ++i) seen[wanted[i]] = std::move(results[i]);
  return seen;
}

/// Goes along the float model and carries what is known of each value's error to its readers.
class ErrorTracer {
public:
  ErrorTracer(const Network& network, const std::map<std::string, std::string>& names,
              const std::map<std::string, Tensor>& wanted,
              const std::map<std::string, Tensor>& found)
      : network_(network), names_(names), wanted_(wanted), found_(found) {}

  LayerErrors run() {
    for (const Port& port : network_.ports())
      if (const std::optional<Nearness> near = nearnessOf(port.name)) snr_[port.name] = near->snr();
    for (int i = 0; i < std::ssize(network_.model.graph.nodes); ++i) {
      const double before = operandSnr(network_.node(i));
      for (const std::string& value : network_.node(i).outputs) {
        snr_[value] = before; // as long as nothing else is known
        if (network_.isReal(value)) addLayer(i, value, before);
      }
    }
    return std::move(errors_);
  }

private:
  double operandSnr(const Node& node) const {
    double worst = kExactSnr;
    for (const std::string& input : node.inputs)
      if (const auto at = snr_.find(input); at != snr_.end()) worst = std::min(worst, at->second);
    return worst;
  }

  std::optional<Nearness> nearnessOf(const std::string& value) const {
    const auto name = names_.find(value);
    if (name == names_.end()) return std::nullopt;
    const Tensor& want = wanted_.at(value);
    const Tensor& have = found_.at(name->second);
    if (want.elem != Elem::f32_ || have.elem != Elem::f32_ || want.dims != have.dims)
      return std::nullopt;
    Nearness near;
    near.add(want, have);
    return near;
  }

  void addLayer(int node, const std::string& value, double before) {
    const std::optional<Nearness> near = nearnessOf(value);
    if (!near) return errors_.unmatched.push_back(value);
    snr_[value] = near->snr();
    errors_.layers.push_back({network_.nodeName(node), network_.node(node).opType, value,
                              names_.at(value), near->snr(), before, near->largest});
  }

  const Network& network_;
  const std::map<std::string, std::string>& names_;
  const std::map<std::string, Tensor>&wanted_, &found_;
  std::map<std::string, double> snr_; ///< by value of the float model
  LayerErrors errors_;
};

} // namespace

std::map<std::string, std::string> counterparts(const Network& network, const Model& quantized) {
  std::map<std::string, std::string> stored, rounded; // by value of the quantized model
  std::set<std::string> values;
  for (const import::onnx_io::ValueInfo& input : quantized.graph.inputs) values.insert(input.name);
  for (const Node& node : quantized.graph.nodes) {
    values.insert(node.outputs.begin(), node.outputs.end());
    if (node.opType == "QuantizeLinear") stored.emplace(node.outputs[0], node.inputs[0]);
  }
  for (const Node& node : quantized.graph.nodes)
    if (const auto from = stored.find(node.inputs.empty() ? "" : node.inputs[0]);
        node.opType == "DequantizeLinear" && from != stored.end())
      rounded.emplace(from->second, node.outputs[0]);
  std::map<std::string, std::string> names;
  for (const auto& [value, type] : network.types) {
    if (!network.isReal(value) || !values.count(value)) continue;
    const auto pair = rounded.find(value);
    // Of an output the user gets what bears its name.
    names[value] = pair == rounded.end() || network.isOutput(value) ? value : pair->second;
  }
  return names;
}

const LayerError* LayerErrors::worst() const {
  const auto at = std::ranges::max_element(layers, {}, &LayerError::step);
  return at == layers.end() || at->step() <= 0 ? nullptr : &*at;
}

Result<LayerErrors> compareLayers(const Network& network, const Model& quantized,
                                  const std::map<std::string, Tensor>& inputs,
                                  const RunConditions& options) {
  const std::map<std::string, std::string> names = counterparts(network, quantized);
  std::set<std::string> values, others;
  for (const auto& [value, other] : names) {
    values.insert(value);
    others.insert(other);
  }
  CDL_TRY(operandsOf(network.model, inputs).status());
  if (std::ranges::none_of(names,
                           [&](const auto& name) { return network.producer(name.first) >= 0; }))
    return badArgument("{}: no value of it has a counterpart in {}", network.model.path,
                       quantized.path);
  CDL_ASSIGN(const auto wanted, observe(network.model, values, inputs, options));
  CDL_ASSIGN(const auto found, observe(quantized, others, inputs, options));
  return ErrorTracer(network, names, wanted, found).run();
}

} // namespace candela::quantize
