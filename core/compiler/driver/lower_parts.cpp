#include "core/compiler/driver/device_costs.h"
#include "core/compiler/driver/packing.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/lowering/fusion/fuse.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/compiler/program/passes/in_place/in_place.h"
#include "core/compiler/program/passes/passes.h"
#include "core/runtime/host_executor/soft.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/pairs.h"
#include "core/support/text/scan.h"

namespace candela::driver {

std::optional<uint64_t> declaredNumber(const runtime::plugin::Device& device,
                                       std::string_view name) {
  for (const cdl_option_schema_t& option : device.plugin().options()) {
    if (std::string_view(option.name) != name) continue;
    const auto given = device.options().find(option.name);
    const std::string_view otherwise = option.default_value ? option.default_value : "";
    return text::parseNumber<uint64_t>(given != device.options().end() ? given->second : otherwise);
  }
  return std::nullopt;
}

uint64_t bandBytesOf(const runtime::plugin::Device& device) {
  return declaredNumber(device, "band_bytes").value_or(0);
}

void addDevice(const std::shared_ptr<runtime::plugin::Device>& device, CompileOptions& options) {
  options.bandBytes.push_back(options.groups ? bandBytesOf(*device) : 0);
  options.deviceCosts.push_back(costsOf(device));
  options.packers.push_back(packerOf(device));
  options.memory.push_back(memoryLimitOf(*device));
}

const capabilities::Target& hostTarget() {
  static const capabilities::Target target = orThrow(
      capabilities::Target::fromCapabilities("soft", runtime::host_executor::capabilities(), true));
  return target;
}

Status tileFor(const capabilities::Target& target, program::Program& program) {
  const std::optional<program::passes::tile::Machine> machine =
      program::passes::tile::machineOf(target);
  return machine ? program::passes::tile::tile(program, *machine).status() : Status::ok();
}

/// What a device with this target tiles for, if it does.
std::optional<program::passes::tile::Machine>
machineFor(size_t index, const capabilities::Target& target, const CompileOptions& options) {
  if (options.machine) return options.machine;
  std::optional<program::passes::tile::Machine> machine = program::passes::tile::machineOf(target);
  if (machine && index < options.deviceCosts.size())
    machine->costs.device = options.deviceCosts[index];
  return machine;
}

/// Lets the Program update its states in place.
void joinStates(LoweredPart& part, const CompileOptions& options) {
  std::vector<std::string> inputs, outputs;
  for (const program::Buffer& buffer : part.program.buffers) {
    if (buffer.role == program::Role::input) inputs.push_back(buffer.name);
    if (buffer.role == program::Role::output) outputs.push_back(buffer.name);
  }
  std::vector<text::NamePair> states;
  for (const std::string& text : options.states) {
    const std::vector<text::NamePair> some = text::pairsOf(text, inputs, outputs);
    states.insert(states.end(), some.begin(), some.end());
  }
  if (!states.empty())
    part.outputOrder = program::passes::in_place::updateInPlace(part.program, states);
}

/// Takes the emitted Program of a part through the passes, to one with an order and offsets.
Status planPart(LoweredPart& part, const capabilities::Target& target,
                const CompileOptions& options) {
  part.machine = machineFor(part.target, target, options);
  program::passes::PassContext context;
  context.target = &target;
  context.machine = part.machine;
  context.schedule = options.schedule;
  if (part.target < options.packers.size()) context.packer = options.packers[part.target];
  if (part.target < options.bandBytes.size()) context.bandBytes = options.bandBytes[part.target];

  std::vector<std::string_view> joins = {"join-parts"};
  if (options.stack && !options.toPrimitives) joins.push_back("join-movement");
  CDL_TRY(program::passes::runPasses(part.program, joins, context).status());
  if (!part.machine) joinStates(part, options);
  if (options.keepEmitted) part.emitted = part.program;

  const std::vector<std::string_view> rest =
      part.machine ? std::vector<std::string_view>{"schedule", "tile"}
                   : std::vector<std::string_view>{"pack", "schedule", "group", "place"};
  CDL_ASSIGN(const program::passes::PassReport report,
             program::passes::runPasses(part.program, rest, context));
  part.arenaBytes = report.arenaBytes;
  part.maxLiveBytes = report.maxLiveBytes;
  return Status::ok();
}

Result<LoweredPart> lowerPart(const lowering::partition::Extractor& extractor,
                              const lowering::partition::Part& part,
                              const capabilities::Target& target, const CompileOptions& options) {
  LoweredPart lowered;
  lowered.target = part.target;
  CDL_ASSIGN(lowered.graph, extractor.extract(part));
  CDL_TRY(lowering::decompose::lower(lowered.graph, target, {options.toPrimitives, options.stack}));
  for (graph::Graph* each : graph::nestedGraphs(lowered.graph)) {
    CDL_TRY(lowering::layout::chooseLayouts(*each, target).status());
    if (options.stack && !options.toPrimitives)
      CDL_TRY(lowering::fusion::fuse(*each, target).status());
    lowering::layout::giveHalos(*each, target);
    for (const auto& node : each->nodes())
      if (lowering::decompose::endsInProduct(*node, target))
        lowered.unfused.insert(node->provenance.begin(), node->provenance.end());
  }
  if (!lowered.unfused.empty()) return lowered;
  CDL_ASSIGN(lowered.program, lowering::emit::emit(lowered.graph, target));
  CDL_TRY(planPart(lowered, target, options));
  return lowered;
}

} // namespace candela::driver
