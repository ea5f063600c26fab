#include "core/import/order.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace candela::import {
namespace {

/// Follows producers that are stuck themselves until a node comes again.
std::vector<size_t> findCycle(const std::vector<std::vector<size_t>>& producers, const std::vector<bool>& isStuck,
                              size_t start) {
  std::vector<size_t> path;
  std::vector<size_t> position(isStuck.size(), SIZE_MAX);
  for (size_t node = start;;) {
    if (position[node] != SIZE_MAX) {
      path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(position[node]));
      std::reverse(path.begin(), path.end());
      return path;
    }
    position[node] = path.size();
    path.push_back(node);
    node = *std::find_if(producers[node].begin(), producers[node].end(), [&](size_t p) { return isStuck[p]; });
  }
}

} // namespace

Order topologicalOrder(const std::vector<onnx_io::Node>& nodes) {
  std::unordered_map<std::string_view, size_t> definedBy;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) definedBy.emplace(output, i);

  std::vector<std::vector<size_t>> producers(nodes.size()), consumers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads(nodes[i].inputs.begin(), nodes[i].inputs.end());
    for (const auto& [name, attribute] : nodes[i].attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute); graph && *graph)
        collectOuterNames(**graph, reads);
    for (const std::string& input : reads)
      if (const auto found = definedBy.find(input); found != definedBy.end()) {
        producers[i].push_back(found->second);
        consumers[found->second].push_back(i);
        ++missing[i];
      }
  }

  Order order;
  std::set<size_t> ready; // the earliest in the file first
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.insert(i);
  while (!ready.empty()) {
    const size_t node = ready.extract(ready.begin()).value();
    order.nodes.push_back(node);
    for (size_t consumer : consumers[node])
      if (--missing[consumer] == 0) ready.insert(consumer);
  }
  if (order.nodes.size() == nodes.size()) return order;

  std::vector<bool> isStuck(nodes.size(), true);
  for (size_t node : order.nodes) isStuck[node] = false;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (isStuck[i]) order.stuck.push_back(i);
  order.cycle = findCycle(producers, isStuck, order.stuck.front());
  return order;
}

void collectOuterNames(const onnx_io::Graph& graph, std::set<std::string>& names) {
  std::set<std::string> own;
  for (const onnx_io::ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const onnx_io::Initializer& initializer : graph.initializers) own.insert(initializer.name);
  for (const onnx_io::Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::set<std::string> reads;
  for (const onnx_io::Node& node : graph.nodes) {
    reads.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute); inner && *inner)
        collectOuterNames(**inner, reads);
  }
  for (const onnx_io::ValueInfo& output : graph.outputs) reads.insert(output.name);
  for (const std::string& name : reads)
    if (!name.empty() && !own.count(name)) names.insert(name);
}

onnx_io::Graph withOuterNames(const onnx_io::Graph& graph, const std::map<std::string, std::string>& names) {
  std::map<std::string, std::string> visible = names;
  for (const onnx_io::ValueInfo& input : graph.inputs) visible.erase(input.name);
  for (const onnx_io::Initializer& initializer : graph.initializers) visible.erase(initializer.name);
  for (const onnx_io::Node& node : graph.nodes)
    for (const std::string& output : node.outputs) visible.erase(output);
  const auto rename = [&](std::string& name) {
    if (const auto found = visible.find(name); found != visible.end()) name = found->second;
  };
  onnx_io::Graph renamed = graph;
  for (onnx_io::Node& node : renamed.nodes) {
    for (std::string& input : node.inputs) rename(input);
    for (auto& [name, attribute] : node.attributes)
      if (auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute); inner && *inner)
        *inner = std::make_shared<onnx_io::Graph>(withOuterNames(**inner, visible));
  }
  for (onnx_io::ValueInfo& output : renamed.outputs) rename(output.name);
  return renamed;
}

} // namespace candela::import
