// Which outputs of a bundle are inputs of the next run.
#include <algorithm>

#include "core/runtime/bundle/bundle.h"

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

std::optional<uint32_t> portNamed(const Bundle& bundle, const std::vector<uint32_t>& ports,
                                  std::string_view name) {
  for (uint32_t i = 0; i < ports.size(); ++i)
    if (bundle.values[ports[i]].name == name) return i;
  return std::nullopt;
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
  for (const std::string& text : texts) {
    std::optional<uint32_t> input, output;
    // A name may hold a '=' itself.
    for (size_t equals = text.find('='); equals != std::string::npos;
         equals = text.find('=', equals + 1)) {
      input = portNamed(bundle, bundle.inputs, std::string_view(text).substr(0, equals));
      output = portNamed(bundle, bundle.outputs, std::string_view(text).substr(equals + 1));
      if (input && output) break;
    }
    if (!input || !output)
      return badArgument("state '{}' is not of the form INPUT=OUTPUT; inputs are {}, outputs {}",
                         text, namesOf(bundle, bundle.inputs), namesOf(bundle, bundle.outputs));
    bundle.states.push_back({*input, *output});
  }
  return verifyStates(bundle);
}

} // namespace candela::runtime::bundle
