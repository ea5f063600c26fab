#include "core/compiler/driver/node_costs.h"

#include <algorithm>
#include <limits>

#include "core/compiler/lowering/decompose/row_layouts.h"

namespace candela::driver {

using lowering::partition::NodeCost, lowering::partition::TargetRates;

namespace {

constexpr double kDefaultClockHz = 1e9;
/// Of memory of the host's that is copied and not imported: one thread of memcpy.
constexpr double kCopyBytesPerSecond = 10e9, kCopySeconds = 1e-6, kCallSeconds = 5e-6;
/// Of memory that only the device's queue reaches: PCI Express 3.0 with eight lanes, less what
/// packets take, and one submission with its wait.
constexpr double kBusBytesPerSecond = 6.5e9, kBusSeconds = 10e-6, kSubmitSeconds = 20e-6;
/// Of the portable executor on one thread: ResNet-50, 4.09e9 products, in 437 ms
/// (benchmarks/results/soft_threads.json).
constexpr double kHostMacsPerSecond = 9.4e9;
/// Of 1,048,576 f32 by `candela bench --threads 1` relu takes 1.04 ms and add 0.50 ms. One rate for
/// all elements says too little of curves: exp takes 71 ms. Memory is a round number below what add
/// moves, and so is the start of a node.
constexpr double kHostElementsPerSecond = 1e9, kHostBytesPerSecond = 10e9, kHostNodeSeconds = 1e-6;

bool isMapped(const runtime::plugin::Device& device) {
  const auto& spaces = device.target().spaces();
  return !spaces.empty() && (spaces[0].space.flags & CDL_SPACE_HOST_MAPPED) != 0;
}

void rateCompute(const runtime::plugin::Device& device, TargetRates& rates) {
  const std::optional<uint64_t> clock = declaredNumber(device, "clock_mhz");
  const bool hasClock = clock && *clock > 0;
  const double hz = hasClock ? static_cast<double>(*clock) * 1e6 : kDefaultClockHz;
  const auto machine = program::passes::tile::machineOf(device.target());
  const program::passes::tile::TileCosts costs =
      machine ? machine->costs : program::passes::tile::TileCosts();
  rates.secondsPerCycle = 1 / hz;
  rates.macsPerSecond = static_cast<double>(costs.rows) * costs.columns * hz;
  rates.elementsPerSecond = costs.lanes * hz;
  rates.bytesPerSecond = costs.bytesPerCycle * hz;
  rates.nodeSeconds = costs.instrCycles / hz;
  rates.computeSource = fmt::format(
      "{} at {}", machine && device.target().tiling() ? "cdl_tiling_t" : "defaults of cdl_tiling_t",
      hasClock ? fmt::format("{} MHz of clock_mhz", *clock) : "1 GHz by default");
}

void rateLink(const runtime::plugin::Device& device, TargetRates& rates) {
  if (device.table().memory_import) {
    rates.linkBytesPerSecond = std::numeric_limits<double>::infinity();
    rates.linkSeconds = kCopySeconds;
    rates.partSeconds = kCallSeconds;
    rates.linkSource = "memory_import: nothing is copied";
  } else if (isMapped(device)) {
    rates.linkBytesPerSecond = kCopyBytesPerSecond;
    rates.linkSeconds = kCopySeconds;
    rates.partSeconds = kCallSeconds;
    rates.linkSource = "default of mapped memory";
  } else {
    rates.linkBytesPerSecond = kBusBytesPerSecond;
    rates.linkSeconds = kBusSeconds;
    rates.partSeconds = kSubmitSeconds;
    rates.linkSource = "default of memory behind a bus";
  }
  const std::optional<uint64_t> bytes = declaredNumber(device, "link_bytes_per_second");
  const std::optional<uint64_t> latency = declaredNumber(device, "link_latency_ns");
  const bool hasBytes = bytes && *bytes > 0;
  if (hasBytes) rates.linkBytesPerSecond = static_cast<double>(*bytes);
  if (latency) rates.linkSeconds = static_cast<double>(*latency) * 1e-9;
  if (hasBytes || latency) rates.linkSource = "options of the device";
}

/// By the rates: the larger one of what is computed and what is moved.
double secondsBy(const TargetRates& rates, const graph::Node& node) {
  const auto bytesOf = [](const graph::Value& value) {
    return static_cast<double>(
        elemBytes(value.type.elem, static_cast<uint64_t>(value.type.count())));
  };
  double elements = 0, bytes = 0;
  for (const graph::Value* operand : node.operands())
    if (operand) bytes += bytesOf(*operand);
  for (const graph::Value* result : node.results()) {
    bytes += bytesOf(*result);
    elements += static_cast<double>(result->type.count());
  }
  const auto products = static_cast<double>(macs(node));
  const double computed =
      products > 0 ? products / rates.macsPerSecond : elements / rates.elementsPerSecond;
  return std::max(computed, bytes / rates.bytesPerSecond) + rates.nodeSeconds;
}

} // namespace

TargetRates ratesOf(const runtime::plugin::Device& device) {
  TargetRates rates;
  rates.name = device.id();
  rateCompute(device, rates);
  rateLink(device, rates);
  const auto& spaces = device.target().spaces();
  if (!spaces.empty()) rates.capacityBytes = spaces[0].space.capacity_bytes;
  return rates;
}

TargetRates hostRates() {
  TargetRates rates;
  rates.name = "host";
  rates.macsPerSecond = kHostMacsPerSecond;
  rates.elementsPerSecond = kHostElementsPerSecond;
  rates.bytesPerSecond = kHostBytesPerSecond;
  rates.nodeSeconds = kHostNodeSeconds;
  rates.linkBytesPerSecond = std::numeric_limits<double>::infinity();
  rates.computeSource = "measured: benchmarks/results/soft_threads.json, one thread";
  rates.linkSource = "the host's own memory";
  return rates;
}

NodeCosts::NodeCosts(std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
                     std::span<const capabilities::Target* const> targets,
                     const CompileOptions& options)
    : targets_(targets), options_(options) {
  for (const auto& device : devices) model_.rates.push_back(ratesOf(*device));
  model_.rates.push_back(hostRates());
  model_.costOf = [this](const graph::Node& node, size_t target) { return costOf(node, target); };
}

NodeCost NodeCosts::costOf(const graph::Node& node, size_t target) {
  const auto [at, isNew] =
      known_.try_emplace({target, lowering::partition::signatureOf(node)}, NodeCost{});
  if (!isNew) return at->second;
  if (const std::optional<double> asked = askDevice(node, target))
    return at->second = {*asked, "cost_batch"};
  return at->second = {secondsBy(model_.rates[target], node), "rates"};
}

/// The node alone as the device would get it; nullopt where the device says nothing about it.
std::optional<double> NodeCosts::askDevice(const graph::Node& node, size_t target) const {
  if (target >= options_.deviceCosts.size() || !options_.deviceCosts[target]) return std::nullopt;
  const graph::Graph alone = lowering::decompose::alone(node);
  const lowering::partition::Extractor extractor(alone);
  CompileOptions options = options_;
  options.progress = nullptr;
  const auto part = lowerPart(extractor, {target, alone.snapshot()}, *targets_[target], options);
  // What goes on with a product is nothing alone.
  if (!part || !part->unfused.empty()) return std::nullopt;
  const program::passes::tile::DeviceCosts& device = *options_.deviceCosts[target];
  const program::Program& program = part->program;
  std::optional<double> cycles = device.cyclesOf(program);
  if (!cycles) cycles = device.sumOf(program);
  if (!cycles) return std::nullopt;
  return *cycles * model_.rates[target].secondsPerCycle;
}

} // namespace candela::driver
