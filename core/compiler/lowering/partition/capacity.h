#pragma once

#include <functional>
#include <optional>

#include "core/compiler/lowering/partition/partition.h"

/// Parts that fit into the memory of their device. Where a part does not, it becomes several that
/// run one after the other: each needs only its own constants and values there.
namespace candela::lowering::partition {

/// Bytes of a device's default memory that a part takes while it runs.
struct Demand {
  uint64_t constants = 0;
  uint64_t arena = 0;  ///< values between its instructions
  uint64_t values = 0; ///< its inputs and outputs

  uint64_t working() const { return arena + values; }
  uint64_t total() const { return constants + working(); }
  /// "9437184 bytes (constants 9437184, values 0, arena 0)"
  std::string text() const;
};

/// What there is of a device's memory.
struct Capacity {
  uint64_t bytes = 0; ///< of the default memory; 0: without a limit
  /// Bytes of a memory for constants alone, 0: without a limit; nullopt: they lie in the default
  /// one.
  std::optional<uint64_t> constants;

  bool isLimited() const { return bytes != 0 || constants.value_or(0) != 0; }
  /// How full it is with all of that at once: above 1 it does not fit.
  double load(const Demand& demand) const;
  bool holds(const Demand& demand) const { return load(demand) <= 1; }
  /// Of both memories, where both have a limit, else of the one that has.
  uint64_t total() const { return bytes + constants.value_or(0); }
  /// "40000", "40000 and 16384 for constants"
  std::string text() const;
};

/// Lowers a part and says what it takes. Failure: out_of_memory where no plan of it fits.
using Measure = std::function<Result<Demand>(const Part&)>;

struct Fitting {
  std::vector<Part> parts;     ///< in an order that respects every dependency
  std::vector<Demand> demands; ///< by part; zero of the parts of targets without a limit
  /// Nodes that do not fit on their target even alone; the parts are of no use then.
  Barred tooLarge;
};

/// Cuts the parts that take more than there is, by target. Cuts lie where few bytes cross them and
/// few constants have readers on both sides; sizes are estimated of the graph first, then measured.
/// Failure: the measure's.
Result<Fitting> fitParts(const graph::Graph& graph, const Partitioning& partitioning,
                         std::span<const capabilities::Target* const> targets,
                         std::span<const Capacity> capacities, const Measure& measure);

} // namespace candela::lowering::partition
