#pragma once

#include <unordered_map>

#include "core/compiler/lowering/decompose/lower.h"

namespace candela::lowering::partition {

/// How a target would do a node, best first.
enum class Verdict : uint8_t { claimed, lowersNative, lowersEmulated, no };

struct Assessment {
  Verdict verdict = Verdict::no;
  uint16_t reason = CDL_REASON_NONE; ///< why it is not claimed
  std::string detail;
};

/// Nodes that a target must not get again (late refusals): (index of the target, node's first
/// result name), and why.
using Barred = std::map<std::pair<size_t, std::string>, std::string>;

struct Part {
  size_t target = 0;
  std::vector<graph::Node*> nodes; ///< in the graph's order
};

struct Partitioning {
  std::vector<Part> parts; ///< in an order that respects every dependency
  std::map<const graph::Node*, size_t> targetOf;
  std::map<const graph::Node*, std::vector<Assessment>> assessments; ///< per node, per target
};

Assessment assess(const graph::Node& node, const capabilities::Target& target,
                  const decompose::LowerOptions& options = {});

/// Each node goes to the first target that claims it or lowers it natively, else to the first that
/// emulates it; the last target must be the host. Neighbours on one target merge unless that made a
/// cycle; so do nodes without neighbours where everything is on one. Aliases follow their operand,
/// constants their users. Failure: a node that no target takes, all of them listed; a value with a
/// layout or a halo.
Result<Partitioning> partition(const graph::Graph& graph,
                               std::span<const capabilities::Target* const> targets,
                               const Barred& barred = {},
                               const decompose::LowerOptions& options = {});

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
