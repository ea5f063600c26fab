#include "core/compiler/lowering/partition/partition.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>
#include <utility>

#include "core/compiler/capabilities/refusal.h"
#include "core/compiler/graph/text.h"

namespace candela::lowering::partition {

using graph::Graph, graph::Node, graph::OpKind, graph::Value;

namespace {

using Assessments = std::map<const Node*, std::vector<Assessment>>;

constexpr size_t kNobody = SIZE_MAX;

// Everything that an assessment depends on: nodes that agree in it share one.
std::string signatureOf(const Node& node) {
  std::string text(graph::opName(node.kind));
  if (node.body) text += fmt::format("@{}", fmt::ptr(&node)); // never alike
  for (const auto& [name, attr] : node.attrs) text += ";" + name + "=" + graph::attrText(attr);
  for (const Value* operand : node.operands())
    text += operand
                ? fmt::format("|{}{}", operand->isConstant() ? "const " : "", operand->type.text())
                : "|_";
  for (const Value* result : node.results()) text += ">" + result->type.text();
  return text;
}

// The first target that claims it or lowers it natively, else the first that emulates it.
size_t bestOf(const std::vector<Assessment>& assessments) {
  for (const bool emulated : {false, true})
    for (size_t t = 0; t < assessments.size(); ++t)
      if (assessments[t].verdict != Verdict::no &&
          (assessments[t].verdict == Verdict::lowersEmulated) == emulated)
        return t;
  return kNobody;
}

/// What goes on with the sums of a product stays with it, where the target has them in its
/// instruction alone.
bool staysWithProduct(const Graph& graph, const Node& node, size_t target,
                      const std::map<const Node*, size_t>& indexOf,
                      const std::vector<size_t>& targetOf, const Assessments& assessments) {
  const Value* sums = node.operands().empty() ? nullptr : node.operand(0);
  while (sums && sums->producer && decompose::isAlias(*sums->producer) && !graph.isOutput(sums))
    sums = sums->producer->operands().empty() ? nullptr : sums->producer->operand(0);
  if (!sums || !sums->producer || graph.isOutput(sums)) return false;
  // A convolution by parts ends in a transpose.
  const bool isWhole = sums->producer->kind != OpKind::ConvInteger ||
                       assessments.at(sums->producer)[target].verdict == Verdict::claimed;
  return isWhole && targetOf[indexOf.at(sums->producer)] == target;
}

/// Clusters of nodes on one target, and which cluster feeds which. Merging never closes a cycle.
class Clusters {
public:
  /// `several`: there are several targets. With one, no way from a cluster to another leads through
  /// a third, as edges come in the graph's order.
  Clusters(size_t count, bool several)
      : parent_(count), next_(count), last_(count), first_(count), visit_(count),
        several_(several) {
    for (size_t i = 0; i < count; ++i) parent_[i] = last_[i] = first_[i] = i;
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void addEdge(size_t from, size_t to) { next_[from].push_back(to); }

  /// u feeds v. Merges their clusters unless a way from one to the other leads through a third.
  void tryMerge(size_t u, size_t v) {
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
  const std::vector<size_t>& next(size_t root) const { return next_[root]; }
  size_t first(size_t root) const { return first_[root]; }

private:
  bool reachesAround(size_t from, size_t to) {
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
  void forgetInner(size_t root) {
    visit_[root] = ++visits_;
    std::erase_if(next_[root], [&](size_t n) {
      const size_t other = find(n);
      return std::exchange(visit_[other], visits_) == visits_;
    });
  }

  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> next_; ///< of roots: nodes that their nodes feed
  std::vector<size_t> last_, first_;      ///< of roots: indices of nodes
  std::vector<size_t> visit_;             ///< of roots: the last walk that met them
  size_t visits_ = 0;
  const bool several_;
};

// Parts in dependency order; among those that are ready the one that begins first.
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

// Aliases go where their operand is; what is left (of inputs and constants) goes where the first
// user is.
void placeAliases(const std::vector<Node*>& nodes, const std::map<const Node*, size_t>& indexOf,
                  std::vector<size_t>& targetOf, size_t host) {
  const auto isPlain = [](const Node* node) {
    return node->kind != OpKind::Constant && decompose::isAlias(*node);
  };
  for (size_t i = 0; i < nodes.size(); ++i)
    if (isPlain(nodes[i]) && nodes[i]->operand(0)->producer)
      targetOf[i] = targetOf[indexOf.at(nodes[i]->operand(0)->producer)];
  for (size_t i = nodes.size(); i-- > 0;) {
    if (targetOf[i] != kNobody) continue;
    size_t best = kNobody;
    for (const Value* result : nodes[i]->results())
      for (const Node* user : result->users()) best = std::min(best, indexOf.at(user));
    targetOf[i] = best == kNobody ? host : targetOf[best];
  }
}

// Text may say more than the core expects at this point.
Status checkRowMajor(const Graph& graph) {
  const auto check = [](const Value* value) {
    if (value->type.layout.isRowMajor() && !value->type.halo) return Status::ok();
    return failure(Code::unsupported, "'{}' is {}: layouts and halos are chosen after a target is",
                   value->name, value->type.text());
  };
  for (const Value* input : graph.inputs()) CDL_TRY(check(input));
  for (const auto& node : graph.nodes())
    for (const Value* result : node->results())
      if (result) CDL_TRY(check(result));
  return Status::ok();
}

/// The nodes of a graph in its order, and where each stands.
struct NodeList {
  std::vector<Node*> nodes;
  std::map<const Node*, size_t> indexOf;

  explicit NodeList(const Graph& graph) : nodes(graph.snapshot()) {
    for (size_t i = 0; i < nodes.size(); ++i) indexOf[nodes[i]] = i;
  }
};

/// Chooses a target for each node that computes something.
class TargetChooser {
public:
  TargetChooser(const Graph& graph, std::span<const capabilities::Target* const> targets,
                const Barred& barred, const decompose::LowerOptions& options)
      : graph_(graph), targets_(targets), barred_(barred), options_(options) {}

  /// Targets by node; kNobody for aliases. Failure: nodes that no target takes.
  Result<std::vector<size_t>> choose(const NodeList& list, Assessments& assessments) {
    std::vector<size_t> targetOf(list.nodes.size(), kNobody);
    std::string refused;
    for (size_t i = 0; i < list.nodes.size(); ++i) {
      const Node& node = *list.nodes[i];
      if (decompose::isAlias(node)) continue;
      std::vector<Assessment> own = assessAlike(node);
      for (size_t t = 0; t < own.size(); ++t)
        if (own[t].verdict == Verdict::claimed && decompose::endsInProduct(node, *targets_[t]) &&
            !staysWithProduct(graph_, node, t, list.indexOf, targetOf, assessments))
          own[t] = {Verdict::no, CDL_REASON_NO_ROW, "its product is elsewhere"};
      excludeBarred(node, own);
      targetOf[i] = bestOf(own);
      if (targetOf[i] == kNobody)
        refused +=
            fmt::format("{}{} '{}': {}", refused.empty() ? "" : "\n", graph::opName(node.kind),
                        node.userName(), own[decompose::claimantOf(node, targets_)].detail);
      assessments.emplace(&node, std::move(own));
    }
    if (!refused.empty()) return Status(Code::unsupported, refused);
    return targetOf;
  }

private:
  /// What each target says of nodes that are like this one.
  const std::vector<Assessment>& assessAlike(const Node& node) {
    std::string signature = signatureOf(node);
    for (const capabilities::Target* target : targets_)
      signature += decompose::endsInProduct(node, *target) ? "+" : "";
    std::vector<Assessment>& shared = known_[signature];
    if (shared.empty())
      for (const capabilities::Target* target : targets_)
        shared.push_back(assess(node, *target, options_));
    return shared;
  }

  void excludeBarred(const Node& node, std::vector<Assessment>& own) const {
    for (size_t t = 0; t < own.size(); ++t)
      if (const auto at = barred_.find({t, node.result()->name}); at != barred_.end())
        own[t] = {
            Verdict::no, CDL_REASON_BARRED,
            capabilities::refusalText(CDL_REASON_BARRED, "refused by the backend: " + at->second)};
  }

  const Graph& graph_;
  const std::span<const capabilities::Target* const> targets_;
  const Barred& barred_;
  const decompose::LowerOptions& options_;
  std::map<std::string, std::vector<Assessment>> known_; ///< by signature
};

/// Merges the nodes of each target into clusters, as far as no cycle is made.
Clusters clusterNodes(const NodeList& list, const std::vector<size_t>& targetOf) {
  const std::vector<Node*>& nodes = list.nodes;
  const bool several =
      std::ranges::adjacent_find(targetOf, std::not_equal_to<>()) != targetOf.end();
  Clusters clusters(nodes.size(), several);
  // A constant stands in the part of its first user and is copied to the others: it ties no parts
  // together.
  const auto eachEdge = [&](auto&& visit) {
    for (size_t v = 0; v < nodes.size(); ++v)
      for (const Value* operand : nodes[v]->operands())
        if (operand && operand->producer && !operand->isConstant())
          visit(list.indexOf.at(operand->producer), v);
  };
  eachEdge([&](size_t u, size_t v) { clusters.addEdge(u, v); });
  eachEdge([&](size_t u, size_t v) {
    if (targetOf[u] == targetOf[v]) clusters.tryMerge(u, v);
  });
  for (size_t u = 0; u < nodes.size(); ++u) {
    if (nodes[u]->kind != OpKind::Constant || nodes[u]->result()->users().empty()) continue;
    size_t first = kNobody;
    for (const Node* user : nodes[u]->result()->users())
      first = std::min(first, list.indexOf.at(user));
    clusters.tryMerge(u, first);
  }
  if (!several) joinUnconnected(nodes, clusters);
  return clusters;
}

} // namespace

Result<Partitioning> partition(const Graph& graph,
                               std::span<const capabilities::Target* const> targets,
                               const Barred& barred, const decompose::LowerOptions& options) {
  if (targets.empty() || !targets.back()->isHost())
    return badArgument("the last target of {} is not the host", targets.size());
  CDL_TRY(checkRowMajor(graph));
  Partitioning result;
  const NodeList list(graph);
  TargetChooser chooser(graph, targets, barred, options);
  CDL_ASSIGN(std::vector<size_t> targetOf, chooser.choose(list, result.assessments));
  placeAliases(list.nodes, list.indexOf, targetOf, targets.size() - 1);
  Clusters clusters = clusterNodes(list, targetOf);
  result.parts = orderParts(list.nodes, targetOf, clusters);
  for (size_t i = 0; i < list.nodes.size(); ++i) result.targetOf[list.nodes[i]] = targetOf[i];
  return result;
}

Extractor::Extractor(const Graph& graph) : graph_(graph) {
  for (const Value* input : graph.inputs()) positionOf_.emplace(input, positionOf_.size());
  for (const auto& node : graph.nodes())
    for (const Value* value : node->results()) positionOf_.emplace(value, positionOf_.size());
}

Result<Graph> Extractor::extract(const Part& part) const {
  Graph out;
  out.name = graph_.name;
  const std::unordered_set<const Node*> inside(part.nodes.begin(), part.nodes.end());
  // Inputs: the graph's own in its order, then what other parts produce in theirs; constants are
  // copied.
  std::map<size_t, const Value*> needed; // by position
  for (const Node* node : part.nodes)
    for (const Value* operand : node->operands())
      if (operand && !(operand->producer && inside.contains(operand->producer)))
        needed.emplace(positionOf_.at(operand), operand);
  std::map<const Value*, Value*> copies;
  for (const auto& [position, value] : needed) {
    if (value->isConstant())
      out.addCopy(*value->producer, copies);
    else
      copies[value] = out.addInput(value->name, value->type);
  }
  for (const Node* node : part.nodes) out.addCopy(*node, copies);
  for (const Node* node : part.nodes)
    for (const Value* value : node->results()) {
      bool leaves = graph_.isOutput(value);
      for (const Node* user : value->users())
        leaves |= !value->isConstant() && !inside.contains(user);
      if (leaves) out.addOutput(copies.at(value), value->name);
    }
  CDL_TRY(verify(out));
  return out;
}

} // namespace candela::lowering::partition
