#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/compiler/graph/graph.h"

/// What targets take, in numbers: the policies that weigh them ask for nothing else.
namespace candela::lowering::partition {

/// Of a value without layout and halo, which are chosen later.
inline uint64_t bytesOf(const graph::Value& value) {
  return elemBytes(value.type.elem, static_cast<uint64_t>(value.type.count()));
}

/// What one target is known or believed to do, in SI units; `computeSource` and `linkSource` say
/// where the numbers are from.
struct TargetRates {
  std::string name;              ///< as the user says it
  double macsPerSecond = 0;      ///< multiply-accumulates of products
  double elementsPerSecond = 0;  ///< results of everything else
  double bytesPerSecond = 0;     ///< of the target's own memory
  double nodeSeconds = 0;        ///< of a node before its first element
  double secondsPerCycle = 0;    ///< of cycles that the device itself counts
  double linkBytesPerSecond = 0; ///< from or to the host; infinity: nothing is copied
  double linkSeconds = 0;        ///< of a value that crosses, before its first byte
  double partSeconds = 0;        ///< of a part, before its first node
  uint64_t capacityBytes = 0;    ///< of the default memory; 0: not said. No policy splits by it
  std::string computeSource, linkSource;
};

/// What a node takes on a target, and how that is known.
struct NodeCost {
  double seconds = 0;
  const char* source = "";
};

struct CostModel {
  std::vector<TargetRates> rates; ///< by target, the host last
  /// Of a node that the target claims or lowers natively, and of any node on the host.
  std::function<NodeCost(const graph::Node& node, size_t target)> costOf;

  /// What it takes to bring so many bytes from or to the host's memory.
  double crossingSeconds(size_t target, uint64_t bytes) const {
    const TargetRates& at = rates[target];
    return at.linkSeconds + static_cast<double>(bytes) / at.linkBytesPerSecond;
  }
};

} // namespace candela::lowering::partition
