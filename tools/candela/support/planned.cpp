#include "tools/candela/support/planned.h"

#include <algorithm>

#include "core/compiler/program/passes/passes.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

bool isPlaced(const program::Program& program) {
  return std::ranges::none_of(program.buffers, [](const program::Buffer& buffer) {
    return buffer.role == program::Role::temp && buffer.offset == CDL_UNPLACED;
  });
}

/// What a Program holds and moves before it is planned.
void describeEmitted(PlannedPart& part, const program::Program& emitted,
                     std::span<const uint64_t> content) {
  part.emittedLiveBytes = program::passes::schedule::peakBytes(
      emitted, program::passes::schedule::sharesOf(emitted, true));
  part.emittedTraffic = program::report::trafficOf(emitted, content).total;
}

/// Plans it once more from what was emitted, its parts joined, so that a clock can stand beside it.
void measure(PlannedPart& part, program::Program emitted, uint64_t bandBytes,
             const std::optional<program::passes::tile::Machine>& machine,
             const ModelOptions& options) {
  program::passes::PassContext context;
  context.machine = machine;
  context.schedule.rematerialize = options.rematerialize;
  context.bandBytes = machine ? 0 : bandBytes;
  const auto timed = [&](std::initializer_list<std::string_view> passes, double& milliseconds) {
    const auto start = std::chrono::steady_clock::now();
    program::passes::PassReport report = check(
        program::passes::runPasses(emitted, passes, context).context(options.path), kWorkFailed);
    milliseconds = millisecondsSince(start);
    return report;
  };
  timed({"schedule", "group"}, part.scheduleMs);
  part.tiled = timed({machine ? "tile" : "place"}, part.placeMs).tiles;
  part.emittedLiveBytes.resize(emitted.spaces.size()); // nothing lay in local memory
  part.program = std::move(emitted);
}

} // namespace

program::report::Traffic PlannedModel::traffic() const {
  program::report::Traffic sum;
  for (const PlannedPart& part : parts) sum += part.traffic.total;
  return sum;
}

PlannedPart plannedProgram(program::Program program, const ModelOptions& options) {
  PlannedPart part;
  const std::optional<program::passes::tile::Machine> machine = machineOf(options);
  part.wasPlaced = !machine && isPlaced(program);
  if (part.wasPlaced) {
    part.program = std::move(program);
  } else {
    describeEmitted(part, program, {});
    check(program::passes::runPasses(program, std::initializer_list<std::string_view>{"join-parts"},
                                     {})
              .status());
    measure(part, std::move(program), 0, machine, options);
  }
  part.maps = program::report::memoryMaps(part.program);
  part.traffic = program::report::trafficOf(part.program);
  return part;
}

PlannedModel planModel(const ModelOptions& options) {
  refuseBundle(options.path);
  PlannedModel model;
  model.path = options.path;
  if (endsWith(options.path, ".cdl")) {
    Diagnostics diagnostics;
    Result<Ir> ir = parseIr(check(readText(options.path)), options.path, diagnostics);
    check(diagnostics.status());
    check(ir.status().context(options.path));
    if (auto* program = std::get_if<program::Program>(&*ir)) {
      model.parts.push_back(plannedProgram(std::move(*program), options));
      return model;
    }
  }
  driver::CompileOptions compile;
  compile.keepEmitted = true;
  compile.schedule.rematerialize = options.rematerialize;
  LoweredModel lowered = lowerModel(options, compile);
  model.perNode = lowered.traffic;
  model.placed = std::move(lowered.placed);
  model.backends = lowered.backends;
  model.overflows = lowered.overflows;
  model.tooLarge = lowered.tooLarge;
  for (driver::LoweredPart& from : lowered.parts) {
    PlannedPart& part = model.parts.emplace_back();
    part.backend = lowered.backends[from.target];
    from.program = *std::move(from.emitted);
    describeEmitted(part, from.program, driver::contentBytes(from));
    measure(part, std::move(from.program),
            from.target < lowered.bandBytes.size() ? lowered.bandBytes[from.target] : 0,
            from.machine, options);
    part.maps = program::report::memoryMaps(part.program);
    from.program = part.program;
    part.traffic = part.tiled
                       ? program::report::trafficOf(part.program)
                       : program::report::trafficOf(part.program, driver::contentBytes(from));
  }
  return model;
}

std::string valueText(const program::Program& program, uint32_t buffer) {
  const std::vector<std::string> nodes = program::report::nodesBehind(program, buffer);
  if (nodes.empty()) return program.buffers[buffer].name;
  const size_t shown = std::min<size_t>(nodes.size(), 3);
  std::string text = fmt::format(
      "{}", fmt::join(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return nodes.size() > shown ? fmt::format("{} and {} more", text, nodes.size() - shown) : text;
}

} // namespace candela::tool
