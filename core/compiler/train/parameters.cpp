#include "core/compiler/train/parameters.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

namespace candela::train {
namespace {

using import::onnx_io::Initializer;
using LayerNode = import::onnx_io::Node;

/// An operand that may be a parameter.
struct Slot {
  std::string_view op;
  size_t operand;
  Role role;
};
constexpr Slot kSlots[] = {
    {"Conv", 1, Role::weight},
    {"Conv", 2, Role::bias},
    {"ConvTranspose", 1, Role::weight},
    {"ConvTranspose", 2, Role::bias},
    {"Gemm", 0, Role::weight},
    {"Gemm", 1, Role::weight},
    {"Gemm", 2, Role::bias},
    {"MatMul", 0, Role::weight},
    {"MatMul", 1, Role::weight},
    {"Einsum", 0, Role::weight},
    {"Einsum", 1, Role::weight},
    {"BatchNormalization", 1, Role::scale},
    {"BatchNormalization", 2, Role::bias},
    {"BatchNormalization", 3, Role::runningMean},
    {"BatchNormalization", 4, Role::runningVariance},
    {"InstanceNormalization", 1, Role::scale},
    {"InstanceNormalization", 2, Role::bias},
    {"GroupNormalization", 1, Role::scale},
    {"GroupNormalization", 2, Role::bias},
    {"LayerNormalization", 1, Role::scale},
    {"LayerNormalization", 2, Role::bias},
    {"RMSNormalization", 1, Role::scale},
    {"SimplifiedLayerNormalization", 1, Role::scale},
    {"LSTM", 1, Role::weight},
    {"LSTM", 2, Role::weight},
    {"LSTM", 3, Role::bias},
    {"GRU", 1, Role::weight},
    {"GRU", 2, Role::weight},
    {"GRU", 3, Role::bias},
    {"RNN", 1, Role::weight},
    {"RNN", 2, Role::weight},
    {"RNN", 3, Role::bias},
    {"Gather", 0, Role::embedding},
    {"PRelu", 1, Role::slope},
    {"Add", 0, Role::bias},
    {"Add", 1, Role::bias},
    {"Mul", 0, Role::scale},
    {"Mul", 1, Role::scale},
};

int64_t product(const Shape& dims, size_t first) {
  int64_t count = 1;
  for (size_t d = first; d < dims.size(); ++d) count *= dims[d];
  return count;
}

int64_t flagOf(const LayerNode& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  const int64_t* value =
      found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : 0;
}

/// How many terms a sum by these weights has.
int64_t fanInOf(const LayerNode& node, size_t operand, const Shape& dims) {
  if (dims.size() < 2) return std::max<int64_t>(1, product(dims, 0));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  if (node.opType == "Conv") return product(dims, 1);
  if (node.opType == "ConvTranspose") return dims[0] * product(dims, 2);
  if (node.opType == "MatMul") return operand == 1 ? rows : columns;
  if (node.opType == "Gemm") {
    const bool isTransposed = flagOf(node, operand == 1 ? "transB" : "transA") != 0;
    return (operand == 1) != isTransposed ? rows : columns;
  }
  return columns;
}

/// The scalars that formulas add and multiply are no layers.
bool isPlainNumber(const LayerNode& node, const Tensor& value) {
  return (node.opType == "Add" || node.opType == "Mul") && value.count() <= 1;
}

std::string nameOf(const LayerNode& node) {
  return node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
}

std::vector<Parameter> allOf(const import::onnx_io::Model& model) {
  std::map<std::string, const Tensor*> values;
  for (const Initializer& each : model.graph.initializers)
    if (each.tensor.elem == Elem::f32_) values.emplace(each.name, &each.tensor);
  std::vector<Parameter> found;
  for (const LayerNode& node : model.graph.nodes) {
    for (const Slot& slot : kSlots) {
      if (node.opType != slot.op || slot.operand >= node.inputs.size()) continue;
      const std::string& name = node.inputs[slot.operand];
      const auto value = values.find(name);
      if (value == values.end() || isPlainNumber(node, *value->second)) continue;
      if (std::ranges::count(found, name, &Parameter::name)) continue;
      found.push_back({name, slot.role, fanInOf(node, slot.operand, value->second->dims),
                       nameOf(node), *value->second});
    }
  }
  return found;
}

} // namespace

Result<std::vector<Parameter>> parametersOf(const import::onnx_io::Model& model,
                                            const std::vector<std::string>& freeze) {
  std::vector<Parameter> parameters = allOf(model);
  if (std::ranges::none_of(parameters, isTrained, &Parameter::role))
    return badArgument("{}: no layer reads an initializer of f32, there is nothing to train",
                       model.path);
  for (const std::string& pattern : freeze) {
    const auto isFrozen = [&](const Parameter& parameter) {
      return fnmatch(pattern.c_str(), parameter.name.c_str(), 0) == 0 ||
             fnmatch(pattern.c_str(), parameter.node.c_str(), 0) == 0;
    };
    if (std::erase_if(parameters, isFrozen) == 0)
      return badArgument("{}: --freeze {} matches no parameter and no node that reads one",
                         model.path, pattern);
  }
  if (std::ranges::none_of(parameters, isTrained, &Parameter::role))
    return badArgument("{}: every parameter is frozen, there is nothing to train", model.path);
  return parameters;
}

import::onnx_io::Model withValues(const import::onnx_io::Model& model,
                                  const std::vector<Parameter>& parameters) {
  import::onnx_io::Model changed = model;
  for (Initializer& each : changed.graph.initializers)
    for (const Parameter& parameter : parameters)
      if (parameter.name == each.name) each.tensor = parameter.value;
  return changed;
}

} // namespace candela::train
