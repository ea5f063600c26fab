#include "tools/candela/debug/layers.h"

#include "core/compiler/import/formats.h"
#include "core/compiler/quantize/layers.h"
#include "tools/candela/support/lowered.h"

namespace candela::tool {
namespace {

using quantize::LayerError, quantize::LayerErrors;

/// The inputs of the quantized model, with data.
std::map<std::string, Tensor> inputsOf(const RunOptions& quantized) {
  RunOptions onHost = quantized;
  onHost.model.backends = "soft";
  onHost.model.options.clear();
  Session session = openSession(onHost);
  std::map<std::string, Tensor> inputs;
  for (size_t i = 0; i < session.inputPorts.size(); ++i)
    inputs[session.inputPorts[i].name] = std::move(session.inputs[i]);
  return inputs;
}

/// Both take the same inputs.
void checkInputs(const quantize::Network& network, const std::map<std::string, Tensor>& inputs,
                 const std::string& quantizedPath) {
  std::set<std::string> names;
  for (const quantize::Port& port : network.ports()) names.insert(port.name);
  for (const std::string& name : names)
    if (!inputs.count(name))
      fail(kBadInput, "{}: no input '{}', which {} has", quantizedPath, name, network.model.path);
  for (const auto& [name, tensor] : inputs)
    if (!names.count(name))
      fail(kBadInput, "{}: no input '{}', which {} has", network.model.path, name, quantizedPath);
}

LayerErrors errorsOf(const RunOptions& quantized, const std::string& floatPath) {
  if (endsWith(quantized.model.path, ".cdl"))
    fail(kBadInput, "{}: --float is for models whose values have names", quantized.model.path);
  quantize::Network network = check(quantize::Network::read(floatPath).context("--float"));
  const import::onnx_io::Model model = check(import::readModel(quantized.model.path));
  const std::map<std::string, Tensor> inputs = inputsOf(quantized);
  checkInputs(network, inputs, quantized.model.path);
  quantize::RunConditions conditions;
  conditions.devices = openDevices(quantized.model);
  for (const auto& [name, tensor] : inputs) conditions.shapes[name] = tensor.dims;
  check(quantize::setTypes(network, conditions));
  return check(quantize::compareLayers(network, model, inputs, conditions));
}

bool isExact(double snr) { return snr >= quantize::kExactSnr; }
/// For a column of decibels.
std::string cellOf(double snr) { return isExact(snr) ? "exact" : fmt::format("{:.1f}", snr); }
/// In a sentence.
std::string wordsOf(double snr) { return isExact(snr) ? "exact" : fmt::format("{:.1f} dB", snr); }

Json layerJson(const LayerError& layer) {
  return {{"node", layer.node},      {"op", layer.op},
          {"value", layer.value},    {"counterpart", layer.counterpart},
          {"snr_db", layer.snr},     {"inputs_snr_db", layer.inputSnr},
          {"step_db", layer.step()}, {"largest_difference", layer.largest}};
}

void print(const LayerErrors& errors, Console& console) {
  Table table({"SNR dB", "at inputs", "step", "layer", "op", "value"});
  for (const LayerError& layer : errors.layers)
    table.add({cellOf(layer.snr), cellOf(layer.inputSnr), fmt::format("{:.1f}", layer.step()),
               layer.node, layer.op, layer.value});
  console.printText(table.text());
  if (!errors.unmatched.empty())
    console.print("{} of {} values of the float model have no counterpart, the first '{}'\n",
                  errors.unmatched.size(), errors.unmatched.size() + errors.layers.size(),
                  errors.unmatched.front());
  if (const LayerError* worst = errors.worst())
    console.print("{} at {} ({}): {} at its inputs, {} at its output '{}'\n",
                  console.bold("the error enters"), worst->node, worst->op,
                  wordsOf(worst->inputSnr), wordsOf(worst->snr), worst->value);
  else
    console.print("no layer loses anything\n");
}

} // namespace

void debugLayers(const RunOptions& quantized, const std::string& floatPath, Console& console) {
  const LayerErrors errors = errorsOf(quantized, floatPath);
  console.print("{}  against {}, layer by layer\n", console.bold(fileName(quantized.model.path)),
                fileName(floatPath));
  print(errors, console);
  Json report = console.report("debug");
  report["model"] = quantized.model.path;
  report["float"] = floatPath;
  report["layers"] = Json::array();
  for (const LayerError& layer : errors.layers) report["layers"].push_back(layerJson(layer));
  report["unmatched"] = errors.unmatched;
  const LayerError* worst = errors.worst();
  report["enters"] = worst ? layerJson(*worst) : Json();
  console.writeJson(report);
}

} // namespace candela::tool
