#pragma once

#include <map>
#include <memory>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/lowering/partition/costs.h"

namespace candela::driver {

/// What a device is known or believed to do: the numbers that it declares (cdl_tiling_t, and its
/// plugin's options clock_mhz, link_bytes_per_second, link_latency_ns), and defaults elsewhere.
lowering::partition::TargetRates ratesOf(const runtime::plugin::Device& device);
/// Of the portable executor on one thread.
lowering::partition::TargetRates hostRates();

/// Seconds of nodes on targets: of the device's own cost_batch where it has one and answers, by
/// rates elsewhere, the larger one of what is computed and what is moved. Nodes that are alike are
/// asked for once. Not for several threads at once.
class NodeCosts {
public:
  /// `targets`: of the devices, and the host's; they outlive this, as `options` does.
  NodeCosts(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
            std::span<const capabilities::Target* const> targets, const CompileOptions& options);
  /// Asks this object, which stays where it is.
  const lowering::partition::CostModel& model() const { return model_; }

private:
  lowering::partition::NodeCost costOf(const graph::Node& node, size_t target);
  std::optional<double> askDevice(const graph::Node& node, size_t target) const;

  const std::span<const capabilities::Target* const> targets_;
  const CompileOptions& options_;
  lowering::partition::CostModel model_;
  std::map<std::pair<size_t, std::string>, lowering::partition::NodeCost> known_;
};

} // namespace candela::driver
