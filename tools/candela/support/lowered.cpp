#include "tools/candela/support/lowered.h"

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/device_costs.h"
#include "core/compiler/driver/placer.h"
#include "core/compiler/graph/passes/passes.h"
#include "tools/candela/support/backend_options.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {

std::vector<std::shared_ptr<runtime::plugin::Device>> openDevices(const ModelOptions& options) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  for (const std::string& name : splitList(options.backends)) {
    if (name == "reference")
      fail(kBadInput,
           "--backend reference: the reference runs graphs as they are, there is nothing to lower");
    if (name == "soft") continue;
    const auto found = check(runtime::plugin::findDevice(name));
    devices.push_back(check(found.open(optionsOf(options.options, found))));
  }
  checkBackendOptions(options.options, devices);
  return devices;
}

std::optional<program::passes::tile::Machine> machineOf(const ModelOptions& options) {
  if (options.tile.empty()) return std::nullopt;
  return check(program::passes::tile::parseMachine(options.tile).context("--tile"));
}

LoweredModel lowerModel(const ModelOptions& options, driver::CompileOptions compile) {
  LoweredModel lowered;
  const auto devices = openDevices(options);
  const ImportFlags flags{options.dims, options.shapes, check(driver::claimBy(devices))};
  std::vector<graph::Graph> graphs = readGraphs(options.compiledPath(), flags, lowered.flow);
  std::vector<capabilities::Target> nativeOnly;
  nativeOnly.reserve(devices.size());
  std::vector<const capabilities::Target*> targets;
  for (const auto& device : devices) {
    if (device->compiles()) nativeOnly.push_back(device->target().nativeOnly());
    targets.push_back(device->compiles() ? &nativeOnly.back() : &device->target());
    lowered.backends.push_back(device->id());
  }
  compile.groups = !options.noGroups;
  for (const auto& device : devices) driver::addDevice(device, compile);
  lowered.bandBytes = compile.bandBytes;
  targets.push_back(&driver::hostTarget());
  lowered.backends.push_back("soft");
  lowered.placed.targets = lowered.backends;
  const auto inModel = [&](Status status) { check(status.context(options.path)); };
  compile.toPrimitives = options.toPrimitives;
  compile.stack = !options.unstacked;
  compile.machine = machineOf(options);
  compile.policy = check(lowering::partition::parsePolicy(options.partition));
  compile.pinFile = options.pinFile;
  compile.precision = check(driver::parsePrecision(options.precision));
  compile.isOneOfSeveral = !lowered.flow.empty();
  const auto placer = check(driver::Placer::create(devices, targets, compile));
  for (graph::Graph& graph : graphs) {
    lowered.traffic += driver::graphTraffic(graph);
    inModel(
        driver::setPrecision(graph, std::span(targets).first(devices.size()), compile.precision));
    inModel(graph::passes::optimize(graph));
    lowering::partition::Barred barred;
    auto fitted = driver::lowerFitting(graph, *placer, targets, barred, compile);
    inModel(fitted.status());
    addPlaced(lowered.placed, graph, fitted->partitioning);
    std::vector<driver::LoweredPart>& parts = fitted->parts;
    for (const driver::LoweredPart& part : parts)
      if (!part.unfused.empty())
        fail(kWorkFailed, "{}: '{}' is not in the instruction of its product", options.path,
             *part.unfused.begin());
    lowered.parts.insert(lowered.parts.end(), std::make_move_iterator(parts.begin()),
                         std::make_move_iterator(parts.end()));
    lowered.overflows.insert(lowered.overflows.end(), fitted->overflows.begin(),
                             fitted->overflows.end());
    for (const auto& [at, bar] : barred)
      lowered.tooLarge.push_back({lowered.backends[at.first], at.second, bar.why});
  }
  return lowered;
}

} // namespace candela::tool
