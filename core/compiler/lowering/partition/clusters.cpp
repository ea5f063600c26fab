#include "core/compiler/lowering/partition/clusters.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace candela::lowering::partition {

using graph::Node, graph::OpKind, graph::Value;

Clusters::Clusters(size_t count, bool several)
    : parent_(count), next_(count), last_(count), first_(count), visit_(count), several_(several) {
  for (size_t i = 0; i < count; ++i) parent_[i] = last_[i] = first_[i] = i;
}

size_t Clusters::find(size_t i) {
  while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
  return i;
}

void Clusters::tryMerge(size_t u, size_t v) {
  const size_t from = find(u), to = find(v);
  if (from == to || (several_ && reachesAround(from, to))) return;
  const auto [small, large] =
      next_[from].size() < next_[to].size() ? std::pair(from, to) : std::pair(to, from);
  parent_[small] = large;
  next_[large].insert(next_[large].end(), next_[small].begin(), next_[small].end());
  next_[small] = {};
  first_[large] = std::min(first_[large], first_[small]);
  last_[large] = std::max(last_[large], last_[small]);
}

bool Clusters::reachesAround(size_t from, size_t to) {
  forgetInner(from);
  std::vector<size_t> stack;
  visit_[from] = ++visits_;
  const auto push = [&](size_t cluster, bool direct) {
    for (size_t n : next_[cluster]) {
      const size_t root = find(n);
      if (root == to) {
        if (!direct) return true;
        continue;
      }
      // What begins behind the goal's last node cannot lead to it: edges go forward in the
      // graph's order.
      if (visit_[root] == visits_ || first_[root] > last_[to]) continue;
      visit_[root] = visits_;
      stack.push_back(root);
    }
    return false;
  };
  push(from, true);
  while (!stack.empty()) {
    const size_t cluster = stack.back();
    stack.pop_back();
    if (push(cluster, false)) return true;
  }
  return false;
}

/// Leaves each cluster that `root` feeds once, and not itself, so that walks are as long as there
/// are such clusters.
void Clusters::forgetInner(size_t root) {
  visit_[root] = ++visits_;
  std::erase_if(next_[root], [&](size_t n) {
    const size_t other = find(n);
    return std::exchange(visit_[other], visits_) == visits_;
  });
}

namespace {

// Makes one part of the nodes that no other node feeds or reads: thousands of them would be as many
// compilations, and no chain that a device runs as one comes apart. Everything must be on one
// target.
void joinUnconnected(const std::vector<Node*>& nodes, Clusters& clusters) {
  std::vector<size_t> working(nodes.size(), 0); // of each root: nodes that compute something
  for (size_t i = 0; i < nodes.size(); ++i)
    working[clusters.find(i)] += !decompose::isAlias(*nodes[i]);
  size_t first = kNobody;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (decompose::isAlias(*nodes[i]) || nodes[i]->body || working[clusters.find(i)] != 1) continue;
    if (first == kNobody)
      first = i;
    else
      clusters.tryMerge(first, i);
  }
}

} // namespace

void placeAliases(const NodeList& list, std::vector<size_t>& targetOf, size_t host) {
  const std::vector<Node*>& nodes = list.nodes;
  const auto isPlain = [](const Node* node) {
    return node->kind != OpKind::Constant && decompose::isAlias(*node);
  };
  for (size_t i = 0; i < nodes.size(); ++i)
    if (isPlain(nodes[i]) && nodes[i]->operand(0)->producer)
      targetOf[i] = targetOf[list.indexOf.at(nodes[i]->operand(0)->producer)];
  for (size_t i = nodes.size(); i-- > 0;) {
    if (targetOf[i] != kNobody) continue;
    size_t best = kNobody;
    for (const Value* result : nodes[i]->results())
      for (const Node* user : result->users()) best = std::min(best, list.indexOf.at(user));
    targetOf[i] = best == kNobody ? host : targetOf[best];
  }
}

namespace {

/// Calls `visit` with each node that feeds another one. A constant stands in the part of its first
/// user and is copied to the others: it ties no parts together.
template <typename Visit> void eachEdge(const NodeList& list, Visit&& visit) {
  for (size_t v = 0; v < list.nodes.size(); ++v)
    for (const Value* operand : list.nodes[v]->operands())
      if (operand && operand->producer && !operand->isConstant())
        visit(list.indexOf.at(operand->producer), v);
}

void joinConstants(const NodeList& list, Clusters& clusters) {
  for (size_t u = 0; u < list.nodes.size(); ++u) {
    const Node& node = *list.nodes[u];
    if (node.kind != OpKind::Constant || node.result()->users().empty()) continue;
    size_t first = kNobody;
    for (const Node* user : node.result()->users()) first = std::min(first, list.indexOf.at(user));
    clusters.tryMerge(u, first);
  }
}

} // namespace

Clusters clusterNodes(const NodeList& list, const std::vector<size_t>& targetOf) {
  const bool several =
      std::ranges::adjacent_find(targetOf, std::not_equal_to<>()) != targetOf.end();
  Clusters clusters(list.nodes.size(), several);
  eachEdge(list, [&](size_t u, size_t v) { clusters.addEdge(u, v); });
  eachEdge(list, [&](size_t u, size_t v) {
    if (targetOf[u] == targetOf[v]) clusters.tryMerge(u, v);
  });
  joinConstants(list, clusters);
  if (!several) joinUnconnected(list.nodes, clusters);
  return clusters;
}

Clusters clusterStages(const NodeList& list, const std::vector<size_t>& targetOf) {
  Clusters clusters(list.nodes.size(), true);
  eachEdge(list, [&](size_t u, size_t v) { clusters.addEdge(u, v); });
  std::map<size_t, size_t> first; // node of each target
  for (size_t i = 0; i < list.nodes.size(); ++i)
    if (list.nodes[i]->kind != OpKind::Constant) {
      const auto [at, isFirst] = first.emplace(targetOf[i], i);
      if (!isFirst) clusters.tryMerge(at->second, i);
    }
  joinConstants(list, clusters);
  return clusters;
}

std::vector<Part> orderParts(const std::vector<Node*>& nodes, const std::vector<size_t>& targetOf,
                             Clusters& clusters) {
  std::map<size_t, Part> parts; // by root
  std::map<size_t, int> waiting;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Part& part = parts[clusters.find(i)];
    part.target = targetOf[i];
    part.nodes.push_back(nodes[i]);
  }
  std::map<size_t, std::set<size_t>> feeds;
  for (auto& [root, part] : parts)
    for (size_t n : clusters.next(root))
      if (const size_t other = clusters.find(n); other != root && feeds[root].insert(other).second)
        ++waiting[other];
  using Ready = std::pair<size_t, size_t>; // first node, root
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (auto& [root, part] : parts)
    if (waiting[root] == 0) ready.push({clusters.first(root), root});
  std::vector<Part> ordered;
  while (!ready.empty()) {
    const size_t root = ready.top().second;
    ready.pop();
    ordered.push_back(std::move(parts[root]));
    for (size_t other : feeds[root])
      if (--waiting[other] == 0) ready.push({clusters.first(other), other});
  }
  CDL_CHECK(ordered.size() == parts.size(), "{} of {} parts stand in a cycle",
            parts.size() - ordered.size(), parts.size());
  return ordered;
}

} // namespace candela::lowering::partition
