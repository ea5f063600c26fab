#include "core/compiler/lowering/partition/partition.h"

#include <unordered_set>

#include "core/compiler/capabilities/refusal.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/lowering/partition/by_cost.h"
#include "core/support/text/shown.h"

namespace candela::lowering::partition {

using graph::Graph, graph::Node, graph::OpKind, graph::Value;

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

Result<Policy> parsePolicy(std::string_view name) {
  for (const Policy policy : {Policy::preference, Policy::cost, Policy::pipeline})
    if (name == policyName(policy)) return policy;
  return badArgument("'{}' is no policy; there are preference, cost, pipeline",
                     text::shownLine(name));
}

std::string_view policyName(Policy policy) {
  switch (policy) {
  case Policy::preference: return "preference";
  case Policy::cost: return "cost";
  case Policy::pipeline: return "pipeline";
  }
  return "";
}

namespace {

using Assessments = std::map<const Node*, std::vector<Assessment>>;

// The first target that claims it or lowers it natively, else the first that emulates it.
size_t bestOf(const std::vector<Assessment>& assessments) {
  for (const bool emulated : {false, true})
    for (size_t t = 0; t < assessments.size(); ++t)
      if (assessments[t].verdict != Verdict::no &&
          (assessments[t].verdict == Verdict::lowersEmulated) == emulated)
        return t;
  return kNobody;
}

/// The node whose sums this one goes on with, where the target has them in its instruction; null:
/// it does not. What goes on with the sums of a product stays with it.
const Node* productOf(const Graph& graph, const Node& node, size_t target,
                      const Assessments& assessments) {
  const Value* sums = node.operands().empty() ? nullptr : node.operand(0);
  while (sums && sums->producer && decompose::isAlias(*sums->producer) && !graph.isOutput(sums))
    sums = sums->producer->operands().empty() ? nullptr : sums->producer->operand(0);
  if (!sums || !sums->producer || graph.isOutput(sums)) return nullptr;
  // A convolution by parts ends in a transpose.
  const bool isWhole = sums->producer->kind != OpKind::ConvInteger ||
                       assessments.at(sums->producer)[target].verdict == Verdict::claimed;
  return isWhole ? sums->producer : nullptr;
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

/// Which pin counts for each node.
using Pinned = std::map<const Node*, const Pin*>;

Result<Pinned> pinNodes(const NodeList& list, const Request& request) {
  Pinned pinned;
  for (const Pin& pin : request.pins) {
    bool isMet = request.isOneOfSeveral, onlyAliases = false;
    for (const Node* node : list.nodes) {
      if (node->kind == OpKind::Constant || !pin.matches(*node)) continue;
      if (decompose::isAlias(*node)) {
        onlyAliases = true;
        continue;
      }
      isMet = true;
      pinned[node] = &pin;
    }
    if (isMet) continue;
    if (onlyAliases)
      return badArgument("{}: '{}' matches only nodes that need no instruction: they follow what "
                         "they read",
                         pin.where, text::shownLine(pin.pattern));
    return badArgument("{}: '{}' matches no node that is left after optimization", pin.where,
                       text::shownLine(pin.pattern));
  }
  return pinned;
}

/// Asks the targets, and chooses by preference.
class TargetChooser {
public:
  TargetChooser(const Graph& graph, std::span<const capabilities::Target* const> targets,
                const Barred& barred, const decompose::LowerOptions& options, const Pinned& pinned)
      : graph_(graph), targets_(targets), barred_(barred), options_(options), pinned_(pinned) {}

  /// Targets by node; kNobody for aliases. Failure: nodes that no target takes, or not the one that
  /// they are pinned to.
  Result<std::vector<size_t>> choose(const NodeList& list, Assessments& assessments) {
    std::vector<size_t> targetOf(list.nodes.size(), kNobody);
    std::string refused;
    for (size_t i = 0; i < list.nodes.size(); ++i) {
      const Node& node = *list.nodes[i];
      if (decompose::isAlias(node)) continue;
      std::vector<Assessment> own = assessAlike(node);
      for (size_t t = 0; t < own.size(); ++t) {
        if (own[t].verdict != Verdict::claimed || !decompose::endsInProduct(node, *targets_[t]))
          continue;
        const Node* product = productOf(graph_, node, t, assessments);
        if (!product || targetOf[list.indexOf.at(product)] != t) own[t] = kElsewhere;
      }
      excludeBarred(node, own);
      const Pin* pin = pinOf(node);
      targetOf[i] = pin ? pinnedTarget(own, *pin) : bestOf(own);
      if (targetOf[i] == kNobody)
        refused += (refused.empty() ? "" : "\n") + refusalOf(node, own, pin);
      assessments.emplace(&node, std::move(own));
    }
    if (!refused.empty()) return Status(Code::unsupported, refused);
    return targetOf;
  }

  /// What a policy that weighs may choose from: pinned nodes have one target, and what goes on with
  /// a product is bound to it.
  std::vector<Bond> offer(const NodeList& list, Assessments& assessments) {
    std::vector<Bond> bonds;
    for (size_t i = 0; i < list.nodes.size(); ++i) {
      const Node& node = *list.nodes[i];
      if (decompose::isAlias(node)) continue;
      std::vector<Assessment> own = assessAlike(node);
      excludeBarred(node, own);
      if (const Pin* pin = pinOf(node))
        for (size_t t = 0; t < own.size(); ++t)
          if (t != pin->target) own[t] = {Verdict::no, CDL_REASON_NONE, "pinned elsewhere"};
      for (size_t t = 0; t < own.size(); ++t) {
        if (own[t].verdict != Verdict::claimed || !decompose::endsInProduct(node, *targets_[t]))
          continue;
        if (const Node* product = productOf(graph_, node, t, assessments))
          bonds.push_back({i, list.indexOf.at(product), t});
        else
          own[t] = kElsewhere;
      }
      assessments.emplace(&node, std::move(own));
    }
    return bonds;
  }

private:
  inline static const Assessment kElsewhere = {Verdict::no, CDL_REASON_NO_ROW,
                                               "its product is elsewhere"};

  const Pin* pinOf(const Node& node) const {
    const auto at = pinned_.find(&node);
    return at == pinned_.end() ? nullptr : at->second;
  }

  static size_t pinnedTarget(const std::vector<Assessment>& own, const Pin& pin) {
    return own[pin.target].verdict == Verdict::no ? kNobody : pin.target;
  }

  std::string refusalOf(const Node& node, const std::vector<Assessment>& own,
                        const Pin* pin) const {
    if (pin)
      return fmt::format("{}: {} '{}' cannot be on {}: {}", pin->where, graph::opName(node.kind),
                         node.userName(), pin->device, own[pin->target].detail);
    return fmt::format("{} '{}': {}", graph::opName(node.kind), node.userName(),
                       own[decompose::claimantOf(node, targets_)].detail);
  }

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
      if (const auto at = barred_.find({t, node.result()->name}); at != barred_.end()) {
        const Bar& bar = at->second;
        const char* who = bar.reason == CDL_REASON_BARRED ? "refused by the backend: " : "";
        own[t] = {Verdict::no, bar.reason, capabilities::refusalText(bar.reason, who + bar.why)};
      }
  }

  const Graph& graph_;
  const std::span<const capabilities::Target* const> targets_;
  const Barred& barred_;
  const decompose::LowerOptions& options_;
  const Pinned& pinned_;
  std::map<std::string, std::vector<Assessment>> known_; ///< by signature
};

std::string secondsText(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

/// What a node takes on each target, or why that is out.
std::string costsText(const Choices& choices, const Node& node) {
  std::string text;
  const std::vector<Assessment>& own = choices.assessments.at(&node);
  for (size_t t = 0; t < own.size(); ++t) {
    const std::string& name = choices.costs.rates[t].name;
    if (!text.empty()) text += ", ";
    if (own[t].verdict == Verdict::no) {
      text += fmt::format("{} no ({})", name, own[t].detail);
      continue;
    }
    const NodeCost cost = costOn(choices, node, t);
    text += fmt::format("{} {} ({})", name, secondsText(cost.seconds), cost.source);
  }
  return text;
}

/// Targets by the policy of the request, and what it says about nodes.
Result<std::vector<size_t>> weighTargets(const Graph& graph, const NodeList& list,
                                         const Request& request, TargetChooser& chooser,
                                         const std::vector<size_t>& preferred,
                                         Partitioning& result) {
  CDL_CHECK(request.costs, "policy {} without costs", policyName(request.policy));
  result.assessments.clear();
  Choices choices{graph, list, result.assessments, {}, *request.costs};
  choices.bonds = chooser.offer(list, result.assessments);
  CDL_ASSIGN(Chosen chosen,
             request.policy == Policy::cost ? byCost(choices, preferred) : byStages(choices));
  for (const Node* node : list.nodes)
    if (node->kind != OpKind::Constant)
      result.reasons[node] =
          decompose::isAlias(*node) ? "follows what it reads" : costsText(choices, *node);
  result.choice = std::move(chosen.choice);
  return std::move(chosen.targetOf);
}

} // namespace

Result<Partitioning> partition(const Graph& graph,
                               std::span<const capabilities::Target* const> targets,
                               const Barred& barred, const decompose::LowerOptions& options,
                               const Request& request) {
  if (targets.empty() || !targets.back()->isHost())
    return badArgument("the last target of {} is not the host", targets.size());
  CDL_TRY(checkRowMajor(graph));
  Partitioning result;
  const NodeList list(graph);
  CDL_ASSIGN(const Pinned pinned, pinNodes(list, request));
  TargetChooser chooser(graph, targets, barred, options, pinned);
  CDL_ASSIGN(std::vector<size_t> targetOf, chooser.choose(list, result.assessments));
  if (request.policy != Policy::preference) {
    CDL_ASSIGN(targetOf, weighTargets(graph, list, request, chooser, targetOf, result));
  }
  for (const auto& [node, pin] : pinned)
    result.reasons[node] = fmt::format("pinned by {} '{}'", pin->where, pin->pattern);
  placeAliases(list, targetOf, targets.size() - 1);
  Clusters clusters = request.policy == Policy::pipeline ? clusterStages(list, targetOf)
                                                         : clusterNodes(list, targetOf);
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
