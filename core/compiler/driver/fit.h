#pragma once

#include "core/compiler/driver/placer.h"

/// Parts lowered so that each fits into the memory of its device.
namespace candela::driver {

/// What a model takes of a device whose memory cannot hold all of it at once.
struct Overflow {
  size_t target = 0;
  lowering::partition::Demand demand; ///< of all its parts before they were cut
  lowering::partition::Capacity capacity;
  size_t parts = 0;           ///< that run one after the other
  uint64_t streamedBytes = 0; ///< of constants, by each run
};

struct FittedParts {
  lowering::partition::Partitioning partitioning;
  std::vector<LoweredPart> parts; ///< by part of the partitioning
  std::vector<Overflow> overflows;
};

/// Partitions an optimized graph by `placer` and lowers it, by options.memory. What does not fit on
/// a target even alone goes to the next one, and into `barred`.
Result<FittedParts> lowerFitting(const graph::Graph& graph, const Placer& placer,
                                 std::span<const capabilities::Target* const> targets,
                                 lowering::partition::Barred& barred,
                                 const CompileOptions& options);

} // namespace candela::driver
