#include "core/compiler/lowering/partition/by_cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/compiler/solvers/cut/stages.h"

namespace candela::lowering::partition {

using graph::Node, graph::OpKind, graph::Value;
using solvers::cut::CutPlan, solvers::cut::CutProblem, solvers::cut::CutValue;
using solvers::cut::kForbidden, solvers::cut::kOutside;

namespace {

constexpr double kUnitsPerSecond = 1e12; // of the solver: picoseconds
constexpr size_t kMostWeighed = 100'000; // nodes of the placements that are weighed as parts
constexpr double kLeastGain = 1e-12;     // seconds, against moves to and fro by rounding

uint64_t unitsOf(double seconds) {
  return static_cast<uint64_t>(std::llround(seconds * kUnitsPerSecond));
}

/// The value that an alias shows in another shape.
const Value* rootOf(const Value* value) {
  while (value->producer && !value->isConstant() && decompose::isAlias(*value->producer))
    value = value->producer->operand(0);
  return value;
}

/// The choices as numbers: an item for each node that computes something, a label for each of the
/// first `labels` targets.
struct Stated {
  CutProblem problem;
  std::vector<size_t> nodes;    ///< of items, in the graph's order
  std::vector<uint32_t> itemOf; ///< by node; kOutside: none

  Stated(const Choices& choices, size_t labels) : itemOf(choices.list.nodes.size(), kOutside) {
    problem.labels = static_cast<uint32_t>(labels);
    for (size_t i = 0; i < choices.list.nodes.size(); ++i)
      if (!decompose::isAlias(*choices.list.nodes[i])) addItem(choices, i);
    addValues(choices);
    for (const Bond& bond : choices.bonds)
      if (bond.target < labels)
        problem.ties.push_back(
            {itemOf[bond.node], itemOf[bond.leader], static_cast<uint32_t>(bond.target)});
  }

  std::vector<size_t> targetsOf(const std::vector<uint32_t>& labels) const {
    std::vector<size_t> targetOf(itemOf.size(), kNobody);
    for (size_t item = 0; item < labels.size(); ++item) targetOf[nodes[item]] = labels[item];
    return targetOf;
  }

private:
  void addItem(const Choices& choices, size_t i) {
    const Node& node = *choices.list.nodes[i];
    itemOf[i] = static_cast<uint32_t>(nodes.size());
    nodes.push_back(i);
    std::vector<uint64_t>& costs = problem.costs.emplace_back();
    for (size_t t = 0; t < problem.labels; ++t) {
      const bool isTaken = choices.assessments.at(&node)[t].verdict != Verdict::no;
      costs.push_back(isTaken ? unitsOf(costOn(choices, node, t).seconds) : kForbidden);
    }
  }

  void addValues(const Choices& choices) {
    std::map<const Value*, CutValue> byRoot;
    std::vector<const Value*> order;
    const auto valueOf = [&](const Value* root) -> CutValue& {
      const auto [at, isNew] = byRoot.try_emplace(root);
      if (!isNew) return at->second;
      order.push_back(root);
      if (root->producer) at->second.producer = itemOf[choices.list.indexOf.at(root->producer)];
      for (size_t t = 0; t < problem.labels; ++t)
        at->second.leave.push_back(unitsOf(choices.costs.crossingSeconds(t, bytesOf(*root))));
      at->second.enter = at->second.leave;
      return at->second;
    };
    for (size_t item = 0; item < nodes.size(); ++item) {
      const Node& node = *choices.list.nodes[nodes[item]];
      std::set<const Value*> read;
      for (const Value* operand : node.operands())
        if (operand && !rootOf(operand)->isConstant()) read.insert(rootOf(operand));
      for (const Value* root : read) valueOf(root).readers.push_back(static_cast<uint32_t>(item));
    }
    for (const Value* output : choices.graph.outputs())
      if (const Value* root = rootOf(output); root->producer && !root->isConstant())
        valueOf(root).isReadOutside = true;
    for (const Value* root : order) problem.values.push_back(std::move(byRoot.at(root)));
  }
};

/// A placement as the parts that it makes.
struct Weighed {
  std::vector<size_t> targetOf; ///< of all nodes
  std::vector<size_t> partOf;   ///< by node: what stands for its part
  Totals totals;
};

/// Weighs placements as they will run.
class Scale {
public:
  explicit Scale(const Choices& choices) : choices_(choices), nodes_(choices.list.nodes) {
    for (const Node* node : nodes_) {
      std::vector<double>& seconds = seconds_.emplace_back(choices.costs.rates.size(), 0);
      if (decompose::isAlias(*node)) continue;
      for (size_t t = 0; t < seconds.size(); ++t)
        if (takes(*node, t)) seconds[t] = costOn(choices, *node, t).seconds;
    }
  }

  bool takes(const Node& node, size_t target) const {
    return choices_.assessments.at(&node)[target].verdict != Verdict::no;
  }

  /// `targetOf`: kNobody for aliases.
  template <typename MakeClusters>
  Weighed weigh(std::vector<size_t> targetOf, MakeClusters&& makeClusters) const {
    Weighed weighed;
    placeAliases(choices_.list, targetOf, choices_.costs.rates.size() - 1);
    Clusters clusters = makeClusters(choices_.list, targetOf);
    std::set<size_t> started;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      weighed.partOf.push_back(clusters.find(i));
      weighed.totals.compute += seconds_[i][targetOf[i]];
      const bool isWork = nodes_[i]->kind != OpKind::Constant;
      if (isWork && started.insert(weighed.partOf.back()).second)
        weighed.totals.starts += choices_.costs.rates[targetOf[i]].partSeconds;
    }
    weighed.targetOf = std::move(targetOf);
    for (const Value* input : choices_.graph.inputs()) addTransfers(weighed, *input);
    for (const Node* node : nodes_)
      for (const Value* result : node->results())
        if (!result->isConstant()) addTransfers(weighed, *result);
    return weighed;
  }
  Weighed weigh(const std::vector<size_t>& targetOf) const { return weigh(targetOf, clusterNodes); }

private:
  void addTransfers(Weighed& weighed, const Value& value) const {
    const size_t home =
        value.producer ? weighed.partOf[choices_.list.indexOf.at(value.producer)] : kNobody;
    std::map<size_t, size_t> readers; // targets by part
    for (const Node* user : value.users()) {
      const size_t at = choices_.list.indexOf.at(user);
      if (weighed.partOf[at] != home) readers.emplace(weighed.partOf[at], weighed.targetOf[at]);
    }
    const uint64_t bytes = bytesOf(value);
    double& transfer = weighed.totals.transfer;
    for (const auto& [part, target] : readers)
      transfer += choices_.costs.crossingSeconds(target, bytes);
    const bool leaves = !readers.empty() || choices_.graph.isOutput(&value);
    if (home != kNobody && leaves)
      transfer += choices_.costs.crossingSeconds(
          weighed.targetOf[choices_.list.indexOf.at(value.producer)], bytes);
  }

  const Choices& choices_;
  const std::vector<Node*>& nodes_;
  std::vector<std::vector<double>> seconds_; ///< by node and target
};

/// Moves parts as wholes as long as that saves.
class PartMover {
public:
  PartMover(const Choices& choices, const Scale& scale)
      : choices_(choices), scale_(scale),
        trials_(kMostWeighed / std::max<size_t>(choices.list.nodes.size(), 1)) {}

  /// Whether one move made it better.
  bool improve(Weighed& best) {
    std::map<size_t, std::vector<size_t>> parts;
    for (size_t i = 0; i < best.partOf.size(); ++i)
      if (!decompose::isAlias(*choices_.list.nodes[i])) parts[best.partOf[i]].push_back(i);
    for (const auto& [root, nodes] : parts)
      for (size_t target = 0; target < choices_.costs.rates.size(); ++target)
        if (tryMove(best, nodes, target)) return true;
    return false;
  }

private:
  bool tryMove(Weighed& best, const std::vector<size_t>& nodes, size_t target) {
    if (best.targetOf[nodes[0]] == target || trials_ == 0) return false;
    const auto isTaken = [&](size_t i) { return scale_.takes(*choices_.list.nodes[i], target); };
    if (!std::ranges::all_of(nodes, isTaken)) return false;
    std::vector<size_t> targetOf = best.targetOf;
    for (size_t i = 0; i < targetOf.size(); ++i)
      if (decompose::isAlias(*choices_.list.nodes[i])) targetOf[i] = kNobody;
    for (const size_t i : nodes) targetOf[i] = target;
    if (!keepsBonds(targetOf)) return false;
    --trials_;
    Weighed moved = scale_.weigh(targetOf);
    if (moved.totals.sum() > best.totals.sum() - kLeastGain) return false;
    best = std::move(moved);
    return true;
  }

  bool keepsBonds(const std::vector<size_t>& targetOf) const {
    return std::ranges::none_of(choices_.bonds, [&](const Bond& bond) {
      return targetOf[bond.node] == bond.target && targetOf[bond.leader] != bond.target;
    });
  }

  const Choices& choices_;
  const Scale& scale_;
  size_t trials_; ///< that are left
};

/// Whether the parts pay no more for transfers than the cut did: no target has two parts between
/// which values pass.
bool isWhole(const Weighed& weighed, const Stated& stated, const CutPlan& plan) {
  const double cut = static_cast<double>(plan.cost) / kUnitsPerSecond;
  const double rounding = static_cast<double>(stated.nodes.size() + stated.problem.values.size());
  return weighed.totals.compute + weighed.totals.transfer <= cut + rounding / kUnitsPerSecond;
}

/// Nodes that none of the devices takes, each with what the first of them says.
Status checkTaken(const Choices& choices, size_t devices) {
  for (const Node* node : choices.list.nodes) {
    if (decompose::isAlias(*node)) continue;
    const std::vector<Assessment>& own = choices.assessments.at(node);
    const auto isTaken = [](const Assessment& each) { return each.verdict != Verdict::no; };
    if (std::any_of(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(devices), isTaken))
      continue;
    return failure(Code::unsupported, "pipeline: {} '{}' is taken by no device; {}: {}",
                   graph::opName(node->kind), node->userName(), choices.costs.rates[0].name,
                   own[0].detail);
  }
  return Status::ok();
}

} // namespace

NodeCost costOn(const Choices& choices, const Node& node, size_t target) {
  const size_t host = choices.costs.rates.size() - 1;
  const bool isEmulated = choices.assessments.at(&node)[target].verdict == Verdict::lowersEmulated;
  return choices.costs.costOf(node, isEmulated ? host : target);
}

Result<Chosen> byCost(const Choices& choices, const std::vector<size_t>& targetOf) {
  const Stated stated(choices, choices.costs.rates.size());
  std::vector<uint32_t> start;
  for (const size_t i : stated.nodes) start.push_back(static_cast<uint32_t>(targetOf[i]));
  CDL_ASSIGN(const CutPlan plan, solvers::cut::leastCut(stated.problem, start));
  const Scale scale(choices);
  const Weighed preferred = scale.weigh(targetOf);
  Weighed best = scale.weigh(stated.targetsOf(plan.labels));
  bool isLeast = plan.isOptimal && isWhole(best, stated, plan);
  if (preferred.totals.sum() < best.totals.sum()) {
    best = preferred;
    isLeast = false;
  }
  PartMover mover(choices, scale);
  while (mover.improve(best)) isLeast = false;
  return Chosen{std::move(best.targetOf),
                {Policy::cost, best.totals, preferred.totals, isLeast, {}}};
}

Result<Chosen> byStages(const Choices& choices) {
  const size_t devices = choices.costs.rates.size() - 1;
  if (devices == 0) return badArgument("pipeline: no device is given");
  CDL_TRY(checkTaken(choices, devices));
  const Stated stated(choices, devices);
  const Result<solvers::cut::StagePlan> plan = solvers::cut::planStages(stated.problem);
  if (!plan)
    return plan.status().context(
        "pipeline: a device would have to do what it does not take, in the order of the nodes");
  Weighed weighed = Scale(choices).weigh(stated.targetsOf(plan->labels), clusterStages);
  Choice choice{Policy::pipeline, weighed.totals, {}, true, {}};
  for (const uint64_t time : plan->times)
    choice.stageSeconds.push_back(static_cast<double>(time) / kUnitsPerSecond);
  return Chosen{std::move(weighed.targetOf), std::move(choice)};
}

} // namespace candela::lowering::partition
