// Which outputs of a bundle are inputs of the next run.
#include <algorithm>

#include "core/runtime/bundle/bundle.h"
#include "core/support/text/pairs.h"

namespace candela::runtime::bundle {
namespace {

const BundleValue& inputOf(const Bundle& bundle, const BundleState& state) {
  return bundle.values[bundle.inputs[state.input]];
}
const BundleValue& outputOf(const Bundle& bundle, const BundleState& state) {
  return bundle.values[bundle.outputs[state.output]];
}

/// Open dims are below 0.
bool mayHold(const BundleValue& input, const BundleValue& output) {
  if (input.elem != output.elem || input.dims.size() != output.dims.size()) return false;
  for (size_t d = 0; d < input.dims.size(); ++d) {
    const int64_t a = input.dims[d], b = output.dims[d];
    if (a == INT64_MIN || b == INT64_MIN || (a >= 0 && b >= 0 && a != b)) return false;
  }
  return true;
}

std::vector<std::string> listOf(const Bundle& bundle, const std::vector<uint32_t>& ports) {
  std::vector<std::string> names;
  for (const uint32_t port : ports) names.push_back(bundle.values[port].name);
  return names;
}

uint32_t placeOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<uint32_t>(std::ranges::find(names, name) - names.begin());
}

std::string namesOf(const Bundle& bundle, const std::vector<uint32_t>& ports) {
  std::string names;
  for (const uint32_t port : ports) names += (names.empty() ? "" : ", ") + bundle.values[port].name;
  return names;
}

} // namespace

Status verifyStates(const Bundle& bundle) {
  std::vector<uint32_t> inputs, outputs;
  for (const BundleState& state : bundle.states) {
    if (state.input >= bundle.inputs.size() || state.output >= bundle.outputs.size())
      return badModel("a state of input {} and output {}, there are {} and {}", state.input,
                      state.output, bundle.inputs.size(), bundle.outputs.size());
    const BundleValue &input = inputOf(bundle, state), &output = outputOf(bundle, state);
    if (std::ranges::count(inputs, state.input) || std::ranges::count(outputs, state.output))
      return badArgument("state '{}={}': the {} '{}' is in another state already", input.name,
                         output.name, std::ranges::count(inputs, state.input) ? "input" : "output",
                         std::ranges::count(inputs, state.input) ? input.name : output.name);
    inputs.push_back(state.input);
    outputs.push_back(state.output);
    if (!mayHold(input, output))
      return badArgument("state '{0}={1}': input '{0}' is {2} but output '{1}' is {3}", input.name,
                         output.name, input.typeText(), output.typeText());
  }
  return Status::ok();
}

Status addStates(Bundle& bundle, const std::vector<std::string>& texts) {
  const std::vector<std::string> inputs = listOf(bundle, bundle.inputs),
                                 outputs = listOf(bundle, bundle.outputs);
  for (const std::string& text : texts) {
    const std::vector<text::NamePair> pairs = text::pairsOf(text, inputs, outputs);
    if (pairs.empty())
      return badArgument("state '{}' is not of the form INPUT=OUTPUT; inputs are {}, outputs {}",
                         text, namesOf(bundle, bundle.inputs), namesOf(bundle, bundle.outputs));
    for (const auto& [input, output] : pairs)
      bundle.states.push_back({placeOf(inputs, input), placeOf(outputs, output)});
  }
  return verifyStates(bundle);
}

} // namespace candela::runtime::bundle
