#include "core/compiler/quantize/states.h"

#include <algorithm>

namespace candela::quantize {
namespace {

using import::onnx_io::Node;
using import::onnx_io::ValueInfo;

bool isQuantizing(const Node& node, const char* op) {
  return node.opType == op && node.domain.empty();
}

/// The type of what a QuantizeLinear gives: that of its zero point.
Elem storedElem(const Network& network, const Node& quantize) {
  return network.constant(quantize.inputs[2])->elem;
}

/// Where the integers of one state begin and end.
struct Border {
  int quantizesInput = -1;
  int quantizesOutput = -1;
  int dequantizesOutput = -1;
};

Result<Border> borderOf(const Network& network, const std::string& input,
                        const std::string& output) {
  const auto whose = [&](int node) { return network.nodeName(node); };
  Border border;
  for (const int user : network.users(input)) {
    if (!isQuantizing(network.node(user), "QuantizeLinear"))
      return badArgument("state '{}': node '{}', which stays float, reads it", input, whose(user));
    border.quantizesInput = user;
  }
  if (border.quantizesInput < 0) return badArgument("state '{}': nothing reads it", input);
  border.dequantizesOutput = network.producer(output);
  const bool isReal = border.dequantizesOutput < 0 ||
                      !isQuantizing(network.node(border.dequantizesOutput), "DequantizeLinear");
  if (isReal)
    return badArgument("state '{}': {}, which stays float, gives it", output,
                       border.dequantizesOutput < 0
                           ? "an input"
                           : fmt::format("node '{}'", whose(border.dequantizesOutput)));
  const std::string& stored = network.node(border.dequantizesOutput).inputs[0];
  border.quantizesOutput = network.producer(stored);
  const bool isComputed = border.quantizesOutput >= 0 &&
                          isQuantizing(network.node(border.quantizesOutput), "QuantizeLinear");
  if (!isComputed) return badArgument("state '{}': it is the input itself", output);
  return border;
}

void setElem(std::vector<ValueInfo>& infos, const std::string& name, Elem elem) {
  const auto info = std::ranges::find(infos, name, &ValueInfo::name);
  if (info != infos.end()) info->elem = elem;
}

void renameReads(Network& network, const std::string& from, const std::string& to) {
  for (Node& node : network.model.graph.nodes) std::ranges::replace(node.inputs, from, to);
}

/// Gives both ends of a state their integers; returns the nodes that nothing needs any more.
std::set<int> store(Network& network, const std::string& input, const std::string& output,
                    const Border& border) {
  import::onnx_io::Graph& graph = network.model.graph;
  const auto at = [&](int node) -> Node& { return graph.nodes[static_cast<size_t>(node)]; };
  setElem(graph.inputs, input, storedElem(network, at(border.quantizesInput)));
  setElem(graph.outputs, output, storedElem(network, at(border.quantizesOutput)));
  renameReads(network, at(border.quantizesInput).outputs[0], input);
  const std::string real = network.takeName(output + "_dequantized");
  renameReads(network, output, real);
  renameReads(network, at(border.quantizesOutput).outputs[0], output);
  at(border.quantizesOutput).outputs[0] = output;
  at(border.dequantizesOutput).outputs[0] = real;
  std::set<int> unneeded{border.quantizesInput};
  const bool isRead = std::ranges::any_of(
      graph.nodes, [&](const Node& node) { return std::ranges::count(node.inputs, real) > 0; });
  if (!isRead) unneeded.insert(border.dequantizesOutput);
  return unneeded;
}

} // namespace

Status storeStates(Network& network, const std::map<std::string, std::string>& states) {
  std::map<std::string, Border> borders;
  for (const auto& [input, output] : states) {
    CDL_ASSIGN(borders[input], borderOf(network, input, output));
  }
  std::set<int> gone;
  for (const auto& [input, output] : states)
    gone.merge(store(network, input, output, borders[input]));
  network.removeNodes(gone);
  network.dropUnused();
  return Status::ok();
}

} // namespace candela::quantize
