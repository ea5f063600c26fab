#include "core/compiler/lowering/partition/partition.h"

#include <unordered_set>

#include "core/compiler/capabilities/refusal.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/lowering/partition/clusters.h"

namespace candela::lowering::partition {

using graph::Graph, graph::Node, graph::OpKind, graph::Value;

namespace {

using Assessments = std::map<const Node*, std::vector<Assessment>>;

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
  placeAliases(list, targetOf, targets.size() - 1);
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
