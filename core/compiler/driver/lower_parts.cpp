#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/lowering/fusion/fuse.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/compiler/program/passes/group/group.h"
#include "core/compiler/program/passes/join_movement/movement.h"
#include "core/compiler/program/passes/join_parts/parts.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/runtime/host_executor/soft.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"

namespace candela::pipeline {

uint64_t bandBytesOf(const runtime::Device& device) {
  for (const cdl_option_schema_t& option : device.plugin().options()) {
    if (std::string_view(option.name) != "band_bytes") continue;
    const auto given = device.options().find(option.name);
    const std::string_view otherwise = option.default_value ? option.default_value : "";
    return text::parseNumber<uint64_t>(given != device.options().end() ? given->second : otherwise).value_or(0);
  }
  return 0;
}

const target::Target& hostTarget() {
  static const target::Target target = orThrow(target::Target::fromCapabilities("soft", soft::capabilities(), true));
  return target;
}

Status tileFor(const target::Target& target, program::Program& program) {
  const std::optional<plan::Machine> machine = plan::machineOf(target);
  return machine ? plan::tile(program, *machine).status() : Status::ok();
}

Result<std::vector<LoweredPart>> lowerParts(const graph::Graph& graph, const target::Partitioning& partitioning,
                                            std::span<const target::Target* const> targets,
                                            const CompileOptions& options) {
  std::vector<LoweredPart> parts;
  const target::Extractor extractor(graph);
  for (size_t p = 0; p < partitioning.parts.size(); ++p) {
    if (options.progress) options.progress("lower", static_cast<double>(p) / partitioning.parts.size());
    const target::Part& part = partitioning.parts[p];
    const target::Target& target = *targets[part.target];
    LoweredPart lowered;
    lowered.target = part.target;
    CDL_ASSIGN(lowered.graph, extractor.extract(part));
    CDL_TRY(target::lower(lowered.graph, target, {options.toPrimitives, options.stack}));
    for (graph::Graph* each : graph::nestedGraphs(lowered.graph)) {
      CDL_TRY(target::chooseLayouts(*each, target).status());
      if (options.stack && !options.toPrimitives) CDL_TRY(target::fuse(*each, target).status());
      target::giveHalos(*each, target);
      for (const auto& node : each->nodes())
        if (target::endsInProduct(*node, target))
          lowered.unfused.insert(node->provenance.begin(), node->provenance.end());
    }
    if (!lowered.unfused.empty()) {
      parts.push_back(std::move(lowered));
      continue;
    }
    CDL_ASSIGN(lowered.program, program::emit(lowered.graph, target));
    plan::joinParts(lowered.program);
    if (options.stack && !options.toPrimitives) plan::joinMovement(lowered.program, target);
    if (options.keepEmitted) lowered.emitted = lowered.program;
    CDL_TRY(plan::schedule(lowered.program, options.schedule));
    lowered.machine = options.machine ? options.machine : plan::machineOf(target);
    if (lowered.machine && !options.machine && part.target < options.deviceCosts.size())
      lowered.machine->costs.device = options.deviceCosts[part.target];
    if (lowered.machine) {
      CDL_ASSIGN(const plan::TileReport tiled, plan::tile(lowered.program, *lowered.machine));
      lowered.arenaBytes = tiled.arenaBytes;
      lowered.maxLiveBytes = tiled.maxLiveBytes;
    } else {
      if (part.target < options.bandBytes.size()) plan::markGroups(lowered.program, options.bandBytes[part.target]);
      CDL_ASSIGN(const plan::PlacementReport report, plan::place(lowered.program));
      lowered.arenaBytes = report.arenaBytes;
      lowered.maxLiveBytes = report.maxLiveBytes;
    }
    parts.push_back(std::move(lowered));
  }
  if (options.progress) options.progress("lower", 1);
  return parts;
}

} // namespace candela::pipeline
