#include "core/compiler/quantize/network.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/import/formats.h"
#include "core/compiler/import/topological_order.h"
#include "core/support/hash.h"
#include "core/support/text/scan.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

const std::set<std::string> kQuantizing = {
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
    "MatMulInteger",  "ConvInteger",      "MatMulNBits",           "QLinearAdd",  "QAttention",
    "QGemm"};

void collectReads(const import::onnx_io::Graph& graph, std::set<std::string>& names) {
  for (const import::onnx_io::ValueInfo& output : graph.outputs) names.insert(output.name);
  for (const Node& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<import::onnx_io::Graph>>(&attribute))
        collectReads(**inner, names);
  }
}

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(tensor.as<float>()[i]);
  return values;
}

} // namespace

Result<Network> Network::read(const std::string& path) {
  Network network;
  CDL_ASSIGN(network.model, import::readModel(path));
  import::onnx_io::Graph& graph = network.model.graph;
  for (const Node& node : graph.nodes)
    if (node.outputs.empty())
      return badModel("{}: node '{}' ({}) has no outputs", path, node.name, node.opType);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (kQuantizing.count(graph.nodes[i].opType))
      return badArgument("{}: the model is quantized already: node '{}' is {}", path,
                         graph.nodes[i].name, graph.nodes[i].opType);
  const import::TopologicalOrder order = import::topologicalOrder(graph.nodes);
  std::vector<Node> sorted;
  std::set<std::string> outputs;
  for (const import::onnx_io::ValueInfo& output : graph.outputs) outputs.insert(output.name);
  for (const size_t index : order.nodes) {
    Node& node = graph.nodes[index];
    const auto value = node.attributes.find("value");
    const bool isConstant = node.opType == "Constant" && node.domain.empty() &&
                            value != node.attributes.end() &&
                            std::holds_alternative<Tensor>(value->second);
    if (isConstant && !outputs.count(node.outputs[0]))
      graph.initializers.push_back({node.outputs[0], std::get<Tensor>(value->second)});
    else
      sorted.push_back(std::move(node));
  }
  if (!order.cycle.empty()) return badModel("{}: its nodes form a cycle", path);
  graph.nodes = std::move(sorted);
  network.index();
  network.writeSumsAsAdditions();
  network.foldBatchNorms();
  network.dropUnused();
  return network;
}

std::vector<Port> Network::ports() const {
  std::vector<Port> ports;
  for (const import::onnx_io::ValueInfo& input : model.graph.inputs) {
    if (initializers_.count(input.name)) continue;
    Port port{input.name, input.elem, {}};
    for (const import::onnx_io::Dim& dim : input.dims) port.dims.push_back(dim.value);
    ports.push_back(std::move(port));
  }
  return ports;
}

const Tensor* Network::constant(const std::string& name) const {
  if (const auto at = initializers_.find(name); at != initializers_.end())
    return &model.graph.initializers[at->second].tensor;
  const int from = producer(name);
  if (from >= 0 && node(from).opType == "Identity" && node(from).domain.empty())
    return constant(node(from).inputs[0]);
  return nullptr;
}

int Network::producer(const std::string& value) const {
  const auto at = producers_.find(value);
  return at == producers_.end() ? -1 : at->second;
}

const std::vector<int>& Network::users(const std::string& value) const {
  static const std::vector<int> none;
  const auto at = users_.find(value);
  return at == users_.end() ? none : at->second;
}

bool Network::isReal(const std::string& value) const {
  const auto type = types.find(value);
  return type != types.end() && type->second.elem == Elem::f32_ && !constant(value);
}

std::string Network::nodeName(int index) const {
  const Node& it = node(index);
  if (!it.name.empty()) return it.name;
  const auto named = std::ranges::find_if(it.outputs, [](const auto& o) { return !o.empty(); });
  return named == it.outputs.end() ? it.opType : *named;
}

int64_t Network::opset() const {
  const auto at = model.opsets.find("");
  return at == model.opsets.end() ? 0 : at->second;
}

std::string Network::takeName(const std::string& hint) {
  std::string name = hint;
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
  return name;
}

std::string Network::addConstant(const std::string& hint, Tensor tensor) {
  const std::string name = takeName(hint);
  initializers_[name] = model.graph.initializers.size();
  model.graph.initializers.push_back({name, std::move(tensor)});
  return name;
}

void Network::index() {
  const import::onnx_io::Graph& graph = model.graph;
  initializers_.clear();
  producers_.clear();
  users_.clear();
  outputs_.clear();
  names_.clear();
  for (size_t i = 0; i < graph.initializers.size(); ++i)
    initializers_[graph.initializers[i].name] = i;
  for (int i = 0; i < std::ssize(graph.nodes); ++i) {
    for (const std::string& output : node(i).outputs)
      if (!output.empty()) producers_[output] = i;
    std::set<std::string> reads;
    collectReads({"", {node(i)}, {}, {}, {}, {}}, reads);
    for (const std::string& input : reads) users_[input].push_back(i);
  }
  for (const import::onnx_io::ValueInfo& output : graph.outputs) outputs_.insert(output.name);
  for (const auto* infos : {&graph.inputs, &graph.outputs, &graph.values})
    for (const import::onnx_io::ValueInfo& info : *infos) names_.insert(info.name);
  for (const auto& [name, at] : initializers_) names_.insert(name);
  for (const auto& [name, at] : producers_) names_.insert(name);
  for (const auto& [name, at] : users_) names_.insert(name);
}

void Network::dropUnused() {
  std::set<std::string> reads;
  collectReads(model.graph, reads);
  std::set<std::string> dropped;
  std::erase_if(model.graph.initializers, [&](const import::onnx_io::Initializer& initializer) {
    const bool isDropped = !reads.count(initializer.name);
    if (isDropped) dropped.insert(initializer.name);
    return isDropped;
  });
  std::erase_if(model.graph.inputs, [&](const import::onnx_io::ValueInfo& input) {
    return dropped.count(input.name) > 0;
  });
  index();
}

/// Sums of several are additions, one after the other: these have an integer form.
void Network::writeSumsAsAdditions() {
  std::vector<Node> nodes;
  for (Node& node : model.graph.nodes) {
    const size_t operands = node.inputs.size();
    const bool isWhole = std::ranges::count(node.inputs, "") == 0;
    if (node.opType != "Sum" || !node.domain.empty() || operands < 2 || !isWhole) {
      nodes.push_back(std::move(node));
      continue;
    }
    std::string sum = node.inputs[0];
    for (size_t i = 1; i < operands; ++i) {
      const bool isLast = i + 1 == operands;
      Node add;
      add.opType = "Add";
      add.name = isLast ? node.name : takeName(fmt::format("{}:{}", node.name, i));
      add.inputs = {sum, node.inputs[i]};
      sum = isLast ? node.outputs[0] : takeName(fmt::format("{}:{}", node.outputs[0], i));
      add.outputs = {sum};
      nodes.push_back(std::move(add));
    }
  }
  model.graph.nodes = std::move(nodes);
  index();
}

/// Convolutions whose result only a batch norm reads take it into weights and bias, computed in
/// double precision.
void Network::foldBatchNorms() {
  std::set<int> gone;
  for (int i = 0; i < std::ssize(model.graph.nodes); ++i) {
    const Node norm = node(i);
    if (norm.opType != "BatchNormalization" || !norm.domain.empty() || norm.outputs.size() != 1 ||
        attributeOf<int64_t>(norm, "training_mode", 0))
      continue;
    const int from = producer(norm.inputs[0]);
    if (from < 0 || isOutput(norm.inputs[0]) || users(norm.inputs[0]).size() != 1) continue;
    if (foldBatchNorm(model.graph.nodes[static_cast<size_t>(from)], norm)) gone.insert(i);
  }
  removeNodes(gone);
}

void Network::removeNodes(const std::set<int>& gone) {
  std::vector<Node> kept;
  for (int i = 0; i < std::ssize(model.graph.nodes); ++i)
    if (!gone.count(i)) kept.push_back(std::move(model.graph.nodes[static_cast<size_t>(i)]));
  model.graph.nodes = std::move(kept);
  index();
}

bool Network::foldBatchNorm(Node& conv, const Node& norm) {
  if (conv.opType != "Conv" || !conv.domain.empty() || norm.inputs.size() != 5) return false;
  const Tensor* w = constant(conv.inputs[1]);
  const std::string biasName = conv.inputs.size() > 2 ? conv.inputs[2] : "";
  const Tensor* b = biasName.empty() ? nullptr : constant(biasName);
  if (!w || w->elem != Elem::f32_ || w->dims.empty() || (!b && !biasName.empty())) return false;
  const int64_t channels = w->dims[0];
  std::vector<std::vector<double>> rows; // scale, bias, mean, variance
  for (size_t i = 1; i < 5; ++i) {
    const Tensor* row = constant(norm.inputs[i]);
    if (!row || row->elem != Elem::f32_ || row->count() != channels) return false;
    rows.push_back(reals(*row));
  }
  std::vector<double> bias = b ? reals(*b) : std::vector<double>(static_cast<size_t>(channels), 0);
  std::vector<double> weights = reals(*w);
  const double epsilon = static_cast<double>(attributeOf<float>(norm, "epsilon", 1e-5f));
  const size_t each = weights.size() / static_cast<size_t>(channels);
  for (size_t c = 0; c < bias.size(); ++c) {
    const double factor = rows[0][c] / std::sqrt(rows[3][c] + epsilon);
    for (size_t i = 0; i < each; ++i) weights[c * each + i] *= factor;
    bias[c] = (bias[c] - rows[2][c]) * factor + rows[1][c];
  }
  const auto narrow = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  const Shape dims = w->dims;
  const std::string who = norm.outputs[0];
  const std::string name = conv.inputs[1];
  conv.inputs.resize(3);
  conv.inputs[1] = addConstant(name + "_folded", Tensor::of(Elem::f32_, dims, narrow(weights)));
  conv.inputs[2] =
      addConstant(name + "_folded_bias", Tensor::of(Elem::f32_, {channels}, narrow(bias)));
  conv.outputs[0] = who;
  producers_[who] = static_cast<int>(&conv - model.graph.nodes.data());
  return true;
}

std::string modelFingerprint(const Network& network) {
  std::string text;
  for (const Node& node : network.model.graph.nodes) {
    text += node.domain + ":" + node.opType;
    for (const auto* names : {&node.inputs, &node.outputs})
      for (const std::string& name : *names) text += "," + name;
    text += "\n";
  }
  for (const import::onnx_io::Initializer& initializer : network.model.graph.initializers)
    text += initializer.name + initializer.tensor.typeText() +
            hashText(sha256(initializer.tensor.bytes.data(), initializer.tensor.sizeBytes()));
  return hashText(sha256(text.data(), text.size()));
}

namespace {

/// An attribute of ints becomes the operand that newer opsets have in its place.
void moveToOperand(Network& network, Node& node, const std::string& attribute, size_t operand) {
  const auto at = node.attributes.find(attribute);
  if (at == node.attributes.end()) return;
  const auto ints = std::get<std::vector<int64_t>>(at->second);
  node.inputs.resize(std::max(node.inputs.size(), operand + 1));
  node.inputs[operand] = network.addConstant(
      network.nodeName(static_cast<int>(&node - network.model.graph.nodes.data())) + "_" +
          attribute,
      Tensor::of(Elem::i64_, {std::ssize(ints)}, ints));
  node.attributes.erase(attribute);
}

/// The same of a real, as a scalar.
void moveReal(Network& network, Node& node, const std::string& attribute, size_t operand) {
  const auto at = node.attributes.find(attribute);
  if (at == node.attributes.end()) return;
  const float value = std::get<float>(at->second);
  node.inputs.resize(std::max(node.inputs.size(), operand + 1));
  node.inputs[operand] = network.addConstant(
      network.nodeName(static_cast<int>(&node - network.model.graph.nodes.data())) + "_" +
          attribute,
      Tensor::of<float>(Elem::f32_, {}, {value}));
  node.attributes.erase(attribute);
}

/// From opsets 7 to 10, whose attributes became operands.
Status raiseOldNode(Network& network, Node& node, int64_t from) {
  const std::string& op = node.opType;
  if (text::isOneOf(op, "Upsample|Scatter|Resize|TopK"))
    return failure(Code::unsupported,
                   "node '{}' ({}): opset {} is too old to write quantization into", node.name, op,
                   from);
  if (op == "BatchNormalization" && from < 9) {
    if (attributeOf<int64_t>(node, "spatial", 1) == 0)
      return failure(Code::unsupported, "node '{}' ({}): spatial = 0", node.name, op);
    node.attributes.erase("spatial");
  }
  if (op == "Slice" && from < 10) {
    moveToOperand(network, node, "starts", 1);
    moveToOperand(network, node, "ends", 2);
    moveToOperand(network, node, "axes", 3);
  }
  if (op == "Clip") {
    moveReal(network, node, "min", 1);
    moveReal(network, node, "max", 2);
  }
  if (op == "Pad") {
    moveToOperand(network, node, "pads", 1);
    moveReal(network, node, "value", 2);
  }
  return Status::ok();
}

Status raiseNode(Network& network, Node& node, int64_t from, int64_t to) {
  const std::string& op = node.opType;
  if (from < 11) CDL_TRY(raiseOldNode(network, node, from));
  if (from < 12 && op == "Dropout") node.attributes.erase("ratio"); // nothing without training
  const auto crosses = [&](int64_t opset) { return from < opset && to >= opset; };
  const auto no = [&](const char* why) {
    return failure(Code::unsupported, "node '{}' ({}): cannot go from opset {} to {}: {}",
                   node.name, op, from, to, why);
  };
  if (crosses(13)) {
    if (op == "Squeeze" || op == "Unsqueeze" || op == "ReduceSum")
      moveToOperand(network, node, "axes", 1);
    if (op == "Split") moveToOperand(network, node, "split", 1);
    if (op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") {
      const auto type = network.types.find(node.inputs[0]);
      const int64_t axis = attributeOf<int64_t>(node, "axis", 1);
      const int64_t rank = type == network.types.end() ? -1 : type->second.rank();
      if (rank < 0 || (axis != rank - 1 && axis != -1)) return no("it normalizes several dims");
      node.attributes["axis"] = int64_t(-1);
    }
  }
  if (crosses(16) && op == "RoiAlign" && !node.attributes.count("coordinate_transformation_mode"))
    node.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
  if (crosses(18)) {
    if (text::isOneOf(op, "ReduceMean|ReduceMax|ReduceMin|ReduceProd|ReduceL1|ReduceL2|"
                          "ReduceLogSum|ReduceLogSumExp|ReduceSumSquare"))
      moveToOperand(network, node, "axes", 1);
    if (op == "Split" && (node.inputs.size() < 2 || node.inputs[1].empty()))
      node.attributes["num_outputs"] = static_cast<int64_t>(node.outputs.size());
  }
  if (crosses(20) && op == "GridSample") {
    const auto mode = attributeOf<std::string>(node, "mode", "bilinear");
    if (mode == "bilinear") node.attributes["mode"] = std::string("linear");
    if (mode == "bicubic") node.attributes["mode"] = std::string("cubic");
  }
  if (crosses(21) && op == "GroupNormalization") return no("its scale has another shape");
  return Status::ok();
}

} // namespace

Status raiseOpset(Network& network, int64_t opset) {
  const int64_t from = network.opset();
  if (from >= opset) return Status::ok();
  if (from < 7)
    return failure(Code::unsupported,
                   "{}: opset {} is too old to write quantization into: 7 and newer",
                   network.model.path, from);
  for (Node& node : network.model.graph.nodes) {
    for (const auto& [name, attribute] : node.attributes)
      if (std::holds_alternative<std::shared_ptr<import::onnx_io::Graph>>(attribute))
        return failure(Code::unsupported,
                       "{}: opset {} would have to become {}, which node '{}' ({}) with a graph in "
                       "it stands against",
                       network.model.path, from, opset, node.name, node.opType);
    if (node.domain.empty())
      CDL_TRY(raiseNode(network, node, from, opset).context(network.model.path));
  }
  network.model.opsets[""] = opset;
  network.index();
  return Status::ok();
}

} // namespace candela::quantize
