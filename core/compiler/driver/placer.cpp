#include "core/compiler/driver/placer.h"

#include "core/support/file.h"

namespace candela::driver {

using lowering::partition::Partitioning, lowering::partition::TargetRates;

Placer::Placer(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
               std::span<const capabilities::Target* const> targets, const CompileOptions& options)
    : targets_(targets), options_(options), costs_(devices, targets, options) {
  request_.policy = options.policy;
  request_.isOneOfSeveral = options.isOneOfSeveral;
  request_.costs = &costs_.model();
}

Result<std::unique_ptr<Placer>>
Placer::create(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
               std::span<const capabilities::Target* const> targets,
               const CompileOptions& options) {
  std::unique_ptr<Placer> placer(new Placer(devices, targets, options));
  if (options.pinFile.empty()) return placer;
  std::vector<std::string> names;
  for (const TargetRates& rates : placer->rates()) names.push_back(rates.name);
  CDL_ASSIGN(const Bytes file, mapFile(options.pinFile));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  CDL_ASSIGN(placer->request_.pins, lowering::partition::parsePins(text, options.pinFile, names));
  return placer;
}

Result<Partitioning> Placer::partition(const graph::Graph& graph,
                                       const lowering::partition::Barred& barred) const {
  return lowering::partition::partition(graph, targets_, barred,
                                        {options_.toPrimitives, options_.stack}, request_);
}

std::optional<runtime::bundle::PlacementPolicy>
describePolicy(const Partitioning& partitioning, const std::vector<TargetRates>& rates) {
  if (!partitioning.choice) return std::nullopt;
  const lowering::partition::Choice& choice = *partitioning.choice;
  runtime::bundle::PlacementPolicy policy;
  policy.name = lowering::partition::policyName(choice.policy);
  policy.isLeast = choice.isLeast;
  policy.computeSeconds = choice.totals.compute;
  policy.transferSeconds = choice.totals.transfer;
  policy.startSeconds = choice.totals.starts;
  policy.preferenceSeconds = choice.byPreference.sum();
  policy.stageSeconds = choice.stageSeconds;
  for (const TargetRates& at : rates)
    policy.rates.push_back({at.name, at.macsPerSecond, at.elementsPerSecond, at.bytesPerSecond,
                            at.nodeSeconds, at.linkBytesPerSecond, at.linkSeconds, at.partSeconds,
                            at.computeSource, at.linkSource});
  return policy;
}

} // namespace candela::driver
