#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/plan/tile/chain.h"

/// What a device itself says that tiles cost.
namespace candela::plan {

/// Asks a device for cycles of instructions on local memory, each shape once. It ranks; what is legal is decided
/// without it. Not for several threads at once.
class DeviceCosts {
public:
  /// Cycles that each instruction of a Program keeps its engine busy, without loops and waits, every buffer at offset 0
  /// of its space; none at all where the device cannot say.
  using Ask = std::function<std::vector<double>(const program::Program& program)>;
  explicit DeviceCosts(Ask ask) : ask_(std::move(ask)) {}

  /// Cycles that the instructions of the chain take for each of these boxes, in `memory`; nullopt where one of them is
  /// not known. All that was not asked before goes to the device as one Program.
  std::vector<std::optional<double>> cyclesOf(const Chain& chain, const std::vector<Box>& boxes,
                                              const program::Space& memory, uint16_t engine);

private:
  Ask ask_;
  std::map<std::string, std::optional<double>> known_; ///< by all that the cost may follow from
};

} // namespace candela::plan
