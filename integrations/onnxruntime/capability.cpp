#include "integrations/onnxruntime/capability.h"

#include <algorithm>
#include <optional>
#include <set>

#include "integrations/onnxruntime/groups.h"
#include "integrations/onnxruntime/placement.h"

namespace candela::ort {
namespace {

/// The line of a message that begins there.
std::string lineAt(const std::string& message, size_t begin) {
  return message.substr(begin, message.find('\n', begin) - begin);
}
/// The first line of a message, which may list many nodes.
std::string firstLine(const std::string& message) { return lineAt(message, 0); }

class Search {
public:
  Search(Compiler& compiler, const ProviderOptions& options, const GraphView& graph)
      : compiler_(compiler), options_(options), graph_(graph) {
    nodes_.taken.resize(graph.nodes.size(), true);
    addEdges();
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      const std::string reason = reasonAgainst(graph.nodes[node]);
      if (!reason.empty()) leave(node, reason);
    }
  }

  Capability run() {
    bool isSettled = false;
    while (!isSettled) {
      isSettled = true;
      for (const std::vector<size_t>& group : groupsOf(nodes_))
        if (!settled_.contains(group) && !settle(group)) isSettled = false;
    }
    for (const std::vector<size_t>& group : groupsOf(nodes_))
      found_.parts.push_back(partOf(graph_, group));
    return std::move(found_);
  }

private:
  void addEdges() {
    std::map<std::string, size_t> producers;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for (const std::string& output : graph_.nodes[node].outputs)
        if (!output.empty()) producers[output] = node;
    std::set<std::pair<size_t, size_t>> edges;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for (const auto* names : {&graph_.nodes[node].inputs, &graph_.nodes[node].captured})
        for (const std::string& name : *names) {
          const auto producer = producers.find(name);
          if (producer != producers.end()) edges.emplace(producer->second, node);
        }
    nodes_.edges.assign(edges.begin(), edges.end());
    // By consumers, so that a group grows along the graph.
    std::stable_sort(nodes_.edges.begin(), nodes_.edges.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
  }

  /// What a look at the node alone says against it; empty: nothing.
  std::string reasonAgainst(const NodeView& node) const {
    if (isContext(node)) return "it is compiled already";
    for (const auto* names : {&node.inputs, &node.outputs, &node.captured})
      for (const std::string& name : *names) {
        if (name.empty()) continue;
        const Value& value = graph_.value(name);
        if (!value.isTensor) return "'" + name + "' is no tensor";
        if (!value.constant && !isCandelas(value.type))
          return "'" + name + "' is of a type that Candela's tensors have not";
      }
    return "";
  }

  void leave(size_t node, const std::string& why) {
    nodes_.taken[node] = false;
    found_.left.emplace(graph_.nodes[node].name, why);
  }

  /// Whether a group is Candela's as it is; otherwise one node at least was left out of it.
  bool settle(const std::vector<size_t>& group) {
    const Part part = partOf(graph_, group);
    if (leavesUnranked(part)) return false;
    try {
      const Compiler::Answer answer = compiler_.ask(graph_, part);
      if (leavesHosts(group, placementOf(answer.placement))) {
        compiler_.forget(answer.key);
        return false;
      }
      found_.kept.push_back(answer.key);
    } catch (const std::exception& error) {
      leaveCulprits(group, error.what());
      return false;
    }
    settled_.insert(group);
    return true;
  }

  /// Leaves the readers of what comes from outside without a rank.
  bool leavesUnranked(const Part& part) {
    bool isAny = false;
    for (const size_t node : part.nodes)
      for (const auto* names : {&graph_.nodes[node].inputs, &graph_.nodes[node].captured})
        for (const std::string& name : *names) {
          const bool isOutside =
              std::find(part.inputs.begin(), part.inputs.end(), name) != part.inputs.end();
          if (!isOutside || graph_.value(name).isRanked) continue;
          leave(node, "the rank of '" + name + "' is not known");
          isAny = true;
        }
    return isAny;
  }

  /// Leaves what would run on Candela's host, unless that is a backend that the session names.
  bool leavesHosts(const std::vector<size_t>& group, const Placement& placement) {
    if (options_.takesHost) return false;
    bool isAny = false;
    for (const size_t node : group) {
      const auto found = placement.nodes.find(graph_.nodes[node].name);
      const bool isHosts = found != placement.nodes.end() && found->second.isHosts();
      if (!isHosts && placement.usesBackend) continue;
      leave(node, isHosts ? found->second.why : "no backend has work in its part");
      isAny = true;
    }
    return isAny;
  }

  std::optional<std::string> refusalOf(const std::vector<size_t>& nodes) const {
    try {
      compiler_.forget(compiler_.ask(graph_, partOf(graph_, nodes)).key);
      return std::nullopt;
    } catch (const std::exception& error) {
      return firstLine(error.what());
    }
  }

  /// Leaves the nodes that a refusal names, with the line that does.
  bool leavesNamed(const std::vector<size_t>& group, const std::string& refusal) {
    bool isAny = false;
    for (const size_t node : group) {
      const size_t at = refusal.find("node '" + graph_.nodes[node].name + "'");
      if (at == std::string::npos) continue;
      const size_t end = at == 0 ? std::string::npos : refusal.rfind('\n', at - 1);
      leave(node, lineAt(refusal, end == std::string::npos ? 0 : end + 1));
      isAny = true;
    }
    return isAny;
  }

  /// Leaves the nodes that are named, or that Candela refuses on their own; where there is none,
  /// the first node with which those before it are refused.
  void leaveCulprits(const std::vector<size_t>& group, const std::string& refusal) {
    if (leavesNamed(group, refusal)) return;
    bool isAny = false;
    for (const size_t node : group) {
      const std::optional<std::string> alone = group.size() > 1 ? refusalOf({node}) : refusal;
      if (!alone) continue;
      leave(node, *alone);
      isAny = true;
    }
    if (isAny) return;
    size_t good = 0;
    size_t bad = group.size();
    while (bad - good > 1) {
      const size_t middle = (good + bad) / 2;
      const std::vector<size_t> prefix(group.begin(),
                                       group.begin() + static_cast<ptrdiff_t>(middle));
      (refusalOf(prefix) ? bad : good) = middle;
    }
    leave(group[bad - 1], firstLine(refusal));
  }

  Compiler& compiler_;
  const ProviderOptions& options_;
  const GraphView& graph_;
  NodeGraph nodes_;
  Capability found_;
  std::set<std::vector<size_t>> settled_;
};

} // namespace

bool isContext(const NodeView& node) {
  return node.op == "EPContext" && node.domain == "com.microsoft";
}

Capability capabilityOf(Compiler& compiler, const ProviderOptions& options,
                        const GraphView& graph) {
  return Search(compiler, options, graph).run();
}

bool takesWhole(const Api& api, Compiler& compiler, const ProviderOptions& options,
                const abi::OrtNode* node, const GraphView& opsets) {
  GraphView graph;
  graph.modelPath = opsets.modelPath;
  graph.irVersion = opsets.irVersion;
  graph.opsets = opsets.opsets;
  graph.nodes.push_back(readNode(api, node, graph.values));
  if (graph.nodes[0].name.empty()) graph.nodes[0].name = graph.nodes[0].op;
  graph.outputs = graph.nodes[0].outputs;
  const Capability capability = capabilityOf(compiler, options, graph);
  for (const std::string& key : capability.kept) compiler.forget(key);
  return !capability.parts.empty();
}

} // namespace candela::ort
