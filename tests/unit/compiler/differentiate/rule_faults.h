#pragma once

#include "core/compiler/differentiate/term.h"

/// What may be wrong in a rule, as changes of the graphs that rules build: one node gives something
/// else of the same type.
namespace candela::testing {

/// A node that a rule built, in a graph that is copied with one thing wrong.
struct Site {
  const graph::Node& node;
  const differentiate::Term& right; ///< what the node gives
  std::vector<differentiate::Term> operands;
  bool isGradient = false; ///< a gradient that comes out, by itself
};

struct RuleFault {
  const char* name;    ///< "sign"
  const char* summary; ///< what is wrong
  bool (*applies)(const graph::Node& node, bool isGradient);
  differentiate::Term (*wrong)(const Site& site); ///< of the type of site.right
};
std::span<const RuleFault> ruleFaults();

/// The places in a graph that was differentiated where a fault applies: nodes that its gradients
/// need and that were not there before, of which there were `before`, by their place.
std::vector<size_t> sitesOf(const graph::Graph& differentiated, const std::set<std::string>& before,
                            const RuleFault& fault);
/// The graph with the fault at that place.
graph::Graph withFault(const graph::Graph& differentiated, size_t site, const RuleFault& fault);

} // namespace candela::testing
