#pragma once

#include <functional>

#include "core/compiler/graph/graph.h"

/// Graph -> Graph, no target known.
namespace candela::graph::passes {

/// What a pass may do to the numbers of a graph's outputs.
enum class Effect {
  sameBits, ///< nothing
  rounds,   ///< other or fewer roundings, within what PassInfo::values says
};

/// One line of passes.inc.
struct PassInfo {
  std::string_view name;
  Effect effect;
  std::string_view summary, values; ///< what it does, and what becomes of the numbers
  /// Rewrites in place; returns how many rewrites it did. The graph verifies before and after.
  Result<int> (*run)(Graph& graph);
};

/// In the standard order of optimize().
std::span<const PassInfo> allPasses();
/// What optimize() leaves out: requested_passes.inc.
std::span<const PassInfo> requestedPasses();

/// Runs the named passes in order, verifying after each. Failure: an unknown name, listing the
/// known ones.
Status runPasses(Graph& graph, std::span<const std::string> names);

/// What a report says about a node of a quantized model: "runs as integers", "dequantized because
/// ..." and why; empty for one that has nothing to do with quantization.
std::string integerNote(const Node& node);

/// Told of each pass that changed something, for --print-ir-after-all.
using PassObserver = std::function<void(std::string_view pass, const Graph& after)>;
/// The standard order, repeated until nothing changes (at most 8 rounds).
Status optimize(Graph& graph, const PassObserver& observe = nullptr);

} // namespace candela::graph::passes
