#include "core/compiler/import/topological_order.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/compiler/import/dynamic/outer_names.h"

namespace candela::import {
namespace {

/// Follows producers that are stuck themselves until a node comes again.
std::vector<size_t> findCycle(const std::vector<std::vector<size_t>>& producers,
                              const std::vector<bool>& isStuck, size_t start) {
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
    node = *std::find_if(producers[node].begin(), producers[node].end(),
                         [&](size_t p) { return isStuck[p]; });
  }
}

} // namespace

TopologicalOrder topologicalOrder(const std::vector<onnx_io::Node>& nodes) {
  std::unordered_map<std::string_view, size_t> definedBy;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) definedBy.emplace(output, i);

  std::vector<std::vector<size_t>> producers(nodes.size()), consumers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads(nodes[i].inputs.begin(), nodes[i].inputs.end());
    for (const auto& [name, attribute] : nodes[i].attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute);
          graph && *graph)
        collectOuterNames(**graph, reads);
    for (const std::string& input : reads)
      if (const auto found = definedBy.find(input); found != definedBy.end()) {
        producers[i].push_back(found->second);
        consumers[found->second].push_back(i);
        ++missing[i];
      }
  }

  TopologicalOrder order;
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

} // namespace candela::import
