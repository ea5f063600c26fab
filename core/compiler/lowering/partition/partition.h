#pragma once

#include <unordered_map>

#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/partition/costs.h"
#include "core/compiler/lowering/partition/pins.h"

namespace candela::lowering::partition {

/// How a target would do a node, best first.
enum class Verdict : uint8_t { claimed, lowersNative, lowersEmulated, no };

struct Assessment {
  Verdict verdict = Verdict::no;
  uint16_t reason = CDL_REASON_NONE; ///< why it is not claimed
  std::string detail;
};

/// Why a node must not go to a target.
struct Bar {
  std::string why;
  uint16_t reason = CDL_REASON_BARRED; ///< a late refusal by the backend, or CDL_REASON_MEMORY
};
/// By index of the target and name of the node's first result.
using Barred = std::map<std::pair<size_t, std::string>, Bar>;

struct Part {
  size_t target = 0;
  std::vector<graph::Node*> nodes; ///< in the graph's order
};

/// By what nodes get their targets.
enum class Policy : uint8_t {
  preference, ///< the first target that takes a node natively
  cost,       ///< the least sum of work and transfers
  pipeline    ///< stages, one for each device, whose slowest one is the fastest
};
/// "preference", "cost" or "pipeline". Failure: invalid_argument.
Result<Policy> parsePolicy(std::string_view name);
std::string_view policyName(Policy policy);

/// What the caller wants of a partitioning.
struct Request {
  Policy policy = Policy::preference;
  std::vector<Pin> pins = {}; ///< the last one that matches a node counts
  /// Pins without a node are no failure: the graph is one of several.
  bool isOneOfSeveral = false;
  const CostModel* costs = nullptr; ///< of the policies but preference
};

/// What a placement takes by the cost model, in seconds: all of it, one after the other.
struct Totals {
  double compute = 0;
  double transfer = 0; ///< of values that cross between parts, to the first and from the last too
  double starts = 0;   ///< of parts
  double sum() const { return compute + transfer + starts; }
};

/// What a policy found, for reports.
struct Choice {
  Policy policy = Policy::preference;
  Totals totals;
  /// Of cost: what the targets by preference would take. Pipeline: nothing.
  Totals byPreference;
  /// Of cost: no other cut of work and transfers is less, and no part was moved or split behind it.
  /// Of pipeline: no other stages in this order of nodes are faster.
  bool isLeast = false;
  std::vector<double> stageSeconds; ///< of pipeline, by device
};

struct Partitioning {
  std::vector<Part> parts; ///< in an order that respects every dependency
  std::map<const graph::Node*, size_t> targetOf;
  std::map<const graph::Node*, std::vector<Assessment>> assessments; ///< per node, per target
  /// Why nodes are where they are: what they take by target, or the pin. None by preference alone.
  std::map<const graph::Node*, std::string> reasons;
  std::optional<Choice> choice; ///< of the policies but preference
};

/// Everything that a target's answer to a node depends on, and what the node takes there: nodes
/// that agree in it share both.
std::string signatureOf(const graph::Node& node);

Assessment assess(const graph::Node& node, const capabilities::Target& target,
                  const decompose::LowerOptions& options = {});

/// By preference each node goes to the first target that claims it or lowers it natively, else to
/// the first that emulates it; the last target must be the host. Other policies: by_cost.h. Pinned
/// nodes go where they are pinned. Neighbours on one target merge unless that made a cycle; so do
/// nodes without neighbours where everything is on one, and all nodes of a stage. Aliases follow
/// their operand, constants their users. Failure: a node that no target takes, all of them listed;
/// a pin that no node matches, or that its target does not take; a value with a layout or a halo.
Result<Partitioning> partition(const graph::Graph& graph,
                               std::span<const capabilities::Target* const> targets,
                               const Barred& barred = {},
                               const decompose::LowerOptions& options = {},
                               const Request& request = {});

/// Parts of one graph as graphs of their own, each in a time that its own size bounds. The graph
/// must outlive this, and may not change meanwhile.
class Extractor {
public:
  explicit Extractor(const graph::Graph& graph);
  /// Inputs and outputs are the values that cross its border, under their names.
  Result<graph::Graph> extract(const Part& part) const;

private:
  const graph::Graph& graph_;
  /// inputs first, then results, in the graph's order
  std::unordered_map<const graph::Value*, size_t> positionOf_;
};

} // namespace candela::lowering::partition
