#include "core/compiler/train/parameters.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
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
};

/// Numbers from here on stand for infinity: masks.
constexpr float kMaskedFrom = 1e4F;
/// Behind the channels of what no layer before it says more of.
constexpr size_t kPlacesOfImages = 2;

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
  const int64_t rows = dims[dims.size() - 2];
  const int64_t columns = dims.back();
  if (node.opType == "Conv") return product(dims, 1);
  if (node.opType == "ConvTranspose") return dims[0] * product(dims, 2);
  if (node.opType == "MatMul") return operand == 1 ? rows : columns;
  if (node.opType == "Gemm") {
    const bool isTransposed = flagOf(node, operand == 1 ? "transB" : "transA") != 0;
    return (operand == 1) != isTransposed ? rows : columns;
  }
  return columns;
}

std::string nameOf(const LayerNode& node) {
  return node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
}

/// Of a value that a layer made: how many channels it has and on which axis, counted from the end.
struct Channels {
  int64_t count = 0; ///< 0: as many as are added or multiplied
  size_t fromEnd = 0;
};

bool isNormalization(std::string_view op) { return op.ends_with("Normalization"); }

/// Finds parameters in the order of the nodes.
class Search {
public:
  explicit Search(const import::onnx_io::Model& model) : graph_(model.graph) {
    for (const Initializer& each : graph_.initializers)
      if (each.tensor.elem == Elem::f32_) constants_.emplace(each.name, &each.tensor);
    for (const LayerNode& node : graph_.nodes)
      for (const std::string& output : node.outputs) producers_.emplace(output, &node);
  }

  std::vector<Parameter> all() {
    for (const LayerNode& node : graph_.nodes) {
      for (const Slot& slot : kSlots)
        if (node.opType == slot.op) take(node, slot.operand, slot.role);
      if (node.opType == "Add") followLayer(node, Role::bias);
      if (node.opType == "Mul") followLayer(node, Role::scale);
      if (const auto made = madeBy(node); made && !node.outputs.empty())
        channels_[node.outputs[0]] = *made;
    }
    return std::move(found_);
  }

private:
  const Tensor* constant(const LayerNode& node, size_t operand) const {
    const auto value =
        operand < node.inputs.size() ? constants_.find(node.inputs[operand]) : constants_.end();
    return value == constants_.end() ? nullptr : value->second;
  }

  void take(const LayerNode& node, size_t operand, Role role) {
    const Tensor* value = constant(node, operand);
    if (!value || std::ranges::count(found_, node.inputs[operand], &Parameter::name)) return;
    found_.push_back(
        {node.inputs[operand], role, fanInOf(node, operand, value->dims), nameOf(node), *value});
  }

  /// A constant beside what a layer made, one element for each channel, belongs to the layer;
  /// masks, positions and what prepares an input do not. Behind it the value is the layer's still.
  void followLayer(const LayerNode& node, Role role) {
    for (const size_t operand : {size_t{0}, size_t{1}}) {
      const Tensor* value = constant(node, operand);
      if (!value || node.inputs.size() != 2) continue;
      const std::optional<Channels> channels = channelsOf(node.inputs[1 - operand]);
      if (!channels || !isOfChannels(*value, *channels)) continue;
      take(node, operand, role);
      channels_[node.outputs.at(0)] = *channels;
    }
  }

  static bool isOfChannels(const Tensor& value, const Channels& channels) {
    const Shape& dims = value.dims;
    if (value.count() <= 1 || dims.size() <= channels.fromEnd) return false;
    const int64_t wanted = channels.count > 0 ? channels.count : value.count();
    if (value.count() != wanted || dims[dims.size() - 1 - channels.fromEnd] != wanted) return false;
    const float* at = value.as<float>();
    return std::all_of(at, at + value.count(), [](float x) { return std::abs(x) < kMaskedFrom; });
  }

  /// Of the result of a layer whose weights are constants.
  std::optional<Channels> madeBy(const LayerNode& node) const {
    if (isNormalization(node.opType)) {
      const Tensor* scale = constant(node, 1);
      if (!scale) return std::nullopt;
      return Channels{scale->count(), isOverLastAxis(node.opType) ? 0 : placesBehind(node)};
    }
    const Tensor* weights = constant(node, 1);
    if (!weights || weights->dims.size() < 2) return std::nullopt;
    const Shape& dims = weights->dims;
    if (node.opType == "Conv") return Channels{dims[0], dims.size() - 2};
    if (node.opType == "ConvTranspose")
      return Channels{dims[1] * std::max<int64_t>(1, flagOf(node, "group")), dims.size() - 2};
    if (node.opType == "MatMul") return Channels{dims.back(), 0};
    if (node.opType == "Gemm") return Channels{flagOf(node, "transB") ? dims[0] : dims.back(), 0};
    return std::nullopt;
  }

  static bool isOverLastAxis(std::string_view op) {
    return op == "LayerNormalization" || op == "RMSNormalization" ||
           op == "SimplifiedLayerNormalization";
  }

  /// The axes behind the channels of a norm's result: those of the layer before it, if there is
  /// one.
  size_t placesBehind(const LayerNode& node) const {
    const auto before = channels_.find(node.inputs[0]);
    return before == channels_.end() ? kPlacesOfImages : before->second.fromEnd;
  }

  const LayerNode* producer(const std::string& name) const {
    const auto found = producers_.find(name);
    return found == producers_.end() ? nullptr : found->second;
  }

  std::optional<Channels> channelsOf(const std::string& name) const {
    if (const auto found = channels_.find(name); found != channels_.end()) return found->second;
    const LayerNode* node = producer(name);
    if (node && node->opType == "Cast" && !node->inputs.empty()) node = producer(node->inputs[0]);
    if (node && isNormalized(*node)) return Channels{};
    return std::nullopt;
  }

  /// A norm in single nodes ends in x / sqrt(..) or x * (1 / sqrt(..)).
  bool isNormalized(const LayerNode& node) const {
    if (node.inputs.size() != 2) return false;
    if (node.opType == "Div") return isRoot(node.inputs[1]);
    if (node.opType != "Mul") return false;
    return std::ranges::any_of(node.inputs, [&](const std::string& factor) {
      const LayerNode* one = producer(factor);
      return one && (one->opType == "Reciprocal" || one->opType == "Div") &&
             isRoot(one->inputs.back());
    });
  }
  bool isRoot(const std::string& name) const {
    const LayerNode* node = producer(name);
    return node && node->opType == "Sqrt" && !constants_.count(node->inputs.at(0));
  }

  const import::onnx_io::Graph& graph_;
  std::map<std::string, const Tensor*> constants_; ///< of f32, by name
  std::map<std::string, const LayerNode*> producers_;
  std::map<std::string, Channels> channels_; ///< of values that layers made
  std::vector<Parameter> found_;
};

} // namespace

Result<std::vector<Parameter>> parametersOf(const import::onnx_io::Model& model,
                                            const std::vector<std::string>& freeze) {
  std::vector<Parameter> parameters = Search(model).all();
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
