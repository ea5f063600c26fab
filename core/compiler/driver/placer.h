#pragma once

#include "core/compiler/driver/node_costs.h"

namespace candela::driver {

/// Partitions the graphs of one model by the policy and the pins of its options.
class Placer {
public:
  /// `targets`: of the devices, and the host's; all outlive this. Failure: invalid_argument, io,
  /// not_found of the file of pins.
  static Result<std::unique_ptr<Placer>>
  create(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
         std::span<const capabilities::Target* const> targets, const CompileOptions& options);

  Result<lowering::partition::Partitioning>
  partition(const graph::Graph& graph, const lowering::partition::Barred& barred = {}) const;

  /// Names of targets, as the user says them.
  const std::vector<lowering::partition::TargetRates>& rates() const {
    return costs_.model().rates;
  }

private:
  Placer(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
         std::span<const capabilities::Target* const> targets, const CompileOptions& options);

  const std::span<const capabilities::Target* const> targets_;
  const CompileOptions& options_;
  NodeCosts costs_;
  lowering::partition::Request request_;
};

/// For the report of a bundle; nullopt by preference.
std::optional<runtime::bundle::PlacementPolicy>
describePolicy(const lowering::partition::Partitioning& partitioning,
               const std::vector<lowering::partition::TargetRates>& rates);

} // namespace candela::driver
