#include "core/compiler/solvers/cut/cut.h"

#include <algorithm>
#include <set>

#include "core/compiler/solvers/cut/flow.h"

namespace candela::solvers::cut {

namespace {

using Labels = std::vector<uint32_t>;

/// One expansion move: which items take the label `alpha`, as a least cut. Who is with the source
/// takes it, or has it already.
class Expansion {
public:
  Expansion(const CutProblem& problem, const Labels& labels, uint32_t alpha)
      : problem_(problem), labels_(labels), alpha_(alpha) {
    for (size_t item = 0; item < labels.size(); ++item) addItem(item);
    for (const CutValue& value : problem.values) addValue(value);
    for (const CutTie& tie : problem.ties) addTie(tie);
  }

  Labels best() {
    network_.leastCut();
    Labels labels = labels_;
    for (size_t item = 0; item < labels.size(); ++item)
      if (network_.isWithSource(nodes_[item])) labels[item] = alpha_;
    return labels;
  }

private:
  void addItem(size_t item) {
    const uint64_t after = problem_.costs[item][alpha_];
    if (labels_[item] == alpha_) {
      nodes_.push_back(FlowNetwork::kSource);
      return;
    }
    if (after == kForbidden) {
      nodes_.push_back(FlowNetwork::kSink);
      return;
    }
    nodes_.push_back(network_.addNode());
    network_.addArc(nodes_.back(), FlowNetwork::kSink, after);
    network_.addArc(FlowNetwork::kSource, nodes_.back(), problem_.costs[item][labels_[item]]);
  }

  /// Pays where `node` takes the label and one of the readers does not.
  void payWhereSomeStay(uint32_t node, const std::vector<uint32_t>& readers, uint64_t cost) {
    const uint32_t between = network_.addNode();
    network_.addArc(node, between, cost);
    for (const uint32_t reader : readers) network_.addArc(between, nodes_[reader], kUnlimited);
  }

  /// Pays where one of the readers takes the label and `node` does not.
  void payWhereSomeGo(uint32_t node, const std::vector<uint32_t>& readers, uint64_t cost) {
    const uint32_t between = network_.addNode();
    network_.addArc(between, node, cost);
    for (const uint32_t reader : readers) network_.addArc(nodes_[reader], between, kUnlimited);
  }

  void addValue(const CutValue& value) {
    // The world outside never takes the label.
    const bool isMade = value.producer != kOutside;
    const uint32_t producer = isMade ? nodes_[value.producer] : FlowNetwork::kSink;
    payWhereSomeGo(producer, value.readers, value.enter[alpha_]);
    std::vector<std::vector<uint32_t>> byLabel(problem_.labels);
    for (const uint32_t reader : value.readers) byLabel[labels_[reader]].push_back(reader);
    for (uint32_t label = 0; label < problem_.labels; ++label) {
      if (label == alpha_ || byLabel[label].empty()) continue;
      const bool isAtHome = isMade && labels_[value.producer] == label;
      payWhereSomeStay(isAtHome ? producer : FlowNetwork::kSource, byLabel[label],
                       value.enter[label]);
    }
    if (isMade) addLeaving(value);
  }

  void addLeaving(const CutValue& value) {
    const uint32_t producer = nodes_[value.producer], home = labels_[value.producer];
    if (value.isReadOutside)
      network_.addArc(producer, FlowNetwork::kSink, value.leave[alpha_]);
    else
      payWhereSomeStay(producer, value.readers, value.leave[alpha_]);
    if (home == alpha_) return;
    const bool leavesAnyway =
        value.isReadOutside || std::ranges::any_of(value.readers, [&](uint32_t reader) {
          return labels_[reader] != home;
        });
    if (leavesAnyway)
      network_.addArc(FlowNetwork::kSource, producer, value.leave[home]);
    else
      payWhereSomeGo(producer, value.readers, value.leave[home]);
  }

  void addTie(const CutTie& tie) {
    const uint32_t item = nodes_[tie.item], leader = nodes_[tie.leader];
    if (tie.label == alpha_)
      network_.addArc(item, leader, kUnlimited);
    else if (labels_[tie.item] == tie.label)
      network_.addArc(leader, item, kUnlimited);
  }

  const CutProblem& problem_;
  const Labels& labels_;
  const uint32_t alpha_;
  FlowNetwork network_;
  std::vector<uint32_t> nodes_; ///< by item
};

/// Whether the items that have a choice have it between the same two labels. Then labels that no
/// expansion move betters are the best of all: the sum f is submodular, so that with the best
/// labels B beside those that were found, A, f(B) >= f(A and B) + f(A or B) - f(A) >= f(A), as both
/// moves from A were tried.
bool hasTwoLabels(const CutProblem& problem) {
  std::set<uint32_t> chosen;
  for (const std::vector<uint64_t>& costs : problem.costs) {
    const auto isAllowed = [](uint64_t cost) { return cost != kForbidden; };
    if (std::ranges::count_if(costs, isAllowed) < 2) continue;
    for (uint32_t label = 0; label < problem.labels; ++label)
      if (isAllowed(costs[label])) chosen.insert(label);
  }
  return chosen.size() <= 2;
}

/// Expansion moves until none lowers the sum.
void descend(const CutProblem& problem, CutPlan& plan) {
  // Labels in turn since one of them gained last: all of them, and no move is left.
  for (uint32_t label = 0, idle = 0; idle < problem.labels; label = (label + 1) % problem.labels) {
    Labels labels = Expansion(problem, plan.labels, label).best();
    const uint64_t cost = costOf(problem, labels);
    ++idle;
    if (cost >= plan.cost) continue;
    plan.labels = std::move(labels);
    plan.cost = cost;
    idle = 0;
  }
}

/// Where no move is left, holds one item to another label while the rest follows, then lets it go
/// again: item by item, until the work is done or a round betters nothing.
void kick(const CutProblem& problem, uint64_t work, CutPlan& plan) {
  const uint64_t each = problem.labels * (problem.costs.size() + problem.values.size() + 1);
  CutProblem held = problem;
  const auto tryAt = [&](size_t item, uint32_t label) {
    CutPlan other = plan;
    other.labels[item] = label;
    other.cost = costOf(problem, other.labels);
    if (other.cost == kForbidden) return false;
    for (uint32_t l = 0; l < problem.labels; ++l)
      if (l != label) held.costs[item][l] = kForbidden;
    descend(held, other);
    held.costs[item] = problem.costs[item];
    descend(problem, other);
    if (other.cost >= plan.cost) return false;
    plan = std::move(other);
    return true;
  };
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (size_t item = 0; item < problem.costs.size(); ++item)
      for (uint32_t label = 0; label < problem.labels; ++label) {
        if (label == plan.labels[item]) continue;
        if (work < each) return;
        work -= each;
        isBetter |= tryAt(item, label);
      }
  }
}

uint64_t costOfValue(const CutValue& value, std::span<const uint32_t> labels) {
  const uint32_t home = value.producer == kOutside ? kOutside : labels[value.producer];
  std::set<uint32_t> entered;
  for (const uint32_t reader : value.readers)
    if (labels[reader] != home) entered.insert(labels[reader]);
  uint64_t cost = 0;
  for (const uint32_t label : entered) cost += value.enter[label];
  const bool leaves = value.isReadOutside || !entered.empty();
  return home != kOutside && leaves ? cost + value.leave[home] : cost;
}

Status checkValue(const CutProblem& problem, size_t index) {
  const CutValue& value = problem.values[index];
  if (value.leave.size() != problem.labels || value.enter.size() != problem.labels)
    return badArgument("value {} has {} and {} costs for {} labels", index, value.leave.size(),
                       value.enter.size(), problem.labels);
  if (value.producer != kOutside && value.producer >= problem.costs.size())
    return badArgument("value {} is made by item {} of {}", index, value.producer,
                       problem.costs.size());
  for (const uint32_t reader : value.readers)
    if (reader >= problem.costs.size())
      return badArgument("value {} is read by item {} of {}", index, reader, problem.costs.size());
  return Status::ok();
}

} // namespace

Status checkProblem(const CutProblem& problem) {
  // As a number of floating point: it may be larger than any integer.
  double sum = 0;
  const auto add = [&](const std::vector<uint64_t>& costs) {
    for (const uint64_t cost : costs)
      if (cost != kForbidden) sum += static_cast<double>(cost);
  };
  for (size_t item = 0; item < problem.costs.size(); ++item) {
    if (problem.costs[item].size() != problem.labels)
      return badArgument("item {} has {} costs for {} labels", item, problem.costs[item].size(),
                         problem.labels);
    add(problem.costs[item]);
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    CDL_TRY(checkValue(problem, v));
    add(problem.values[v].leave);
    add(problem.values[v].enter);
  }
  for (const CutTie& tie : problem.ties)
    if (tie.item >= problem.costs.size() || tie.leader >= problem.costs.size() ||
        tie.label >= problem.labels)
      return badArgument("a tie of item {} to item {} by label {}: there are {} items, {} labels",
                         tie.item, tie.leader, tie.label, problem.costs.size(), problem.labels);
  // The moves of one value pay for it at most twice.
  if (sum * 2 >= static_cast<double>(kUnlimited))
    return badArgument("all costs together are {:.3g}, expected less than {:.3g}", sum,
                       static_cast<double>(kUnlimited) / 2);
  return Status::ok();
}

uint64_t costOf(const CutProblem& problem, std::span<const uint32_t> labels) {
  uint64_t sum = 0;
  for (size_t item = 0; item < labels.size(); ++item) {
    const uint64_t cost = problem.costs[item][labels[item]];
    if (cost == kForbidden) return kForbidden;
    sum += cost;
  }
  for (const CutTie& tie : problem.ties)
    if (labels[tie.item] == tie.label && labels[tie.leader] != tie.label) return kForbidden;
  for (const CutValue& value : problem.values) sum += costOfValue(value, labels);
  return sum;
}

Result<CutPlan> leastCut(const CutProblem& problem, std::span<const uint32_t> start,
                         const CutOptions& options) {
  CDL_TRY(checkProblem(problem));
  if (start.size() != problem.costs.size())
    return badArgument("{} labels to begin with for {} items", start.size(), problem.costs.size());
  for (size_t item = 0; item < start.size(); ++item)
    if (start[item] >= problem.labels)
      return badArgument("item {} begins with label {} of {}", item, start[item], problem.labels);
  CutPlan plan{{start.begin(), start.end()}, costOf(problem, start), hasTwoLabels(problem)};
  if (plan.cost == kForbidden) return badArgument("the labels to begin with are not allowed");
  descend(problem, plan);
  if (!plan.isOptimal) kick(problem, options.work, plan);
  return plan;
}

} // namespace candela::solvers::cut
