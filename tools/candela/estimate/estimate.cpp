// Layers from instructions: each belongs to the node that it came from first, and takes the moments
// that are its own, so that layers sum to the whole.
#include "tools/candela/estimate/estimate.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/driver/device_costs.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/program/image.h"

namespace candela::tool {
namespace {

constexpr const char* kNoNode = "(no node)";

/// What each instruction takes by the device's own cost_batch; empty where it cannot say.
std::vector<InstrCost> askedCosts(const cdl_image_t* image, const runtime::plugin::Device& device,
                                  double bytesPerCycle) {
  if (!device.table().cost_batch) return {};
  std::vector<cdl_cost_query_t> queries;
  for (uint32_t i = 1; i < image->instrs.count; ++i) queries.push_back({image, i, 0});
  std::vector<cdl_cost_t> answers(queries.size());
  const Status asked = runtime::plugin::callSlot(
      device.plugin().name(), CDL_SLOT(device.table(), cost_batch), device.handle(), queries.data(),
      static_cast<uint32_t>(queries.size()), answers.data());
  if (!asked) return {};
  std::vector<InstrCost> costs(1);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl_cost_t& answer = answers[i - 1];
    InstrCost& cost = costs.emplace_back();
    cost.unit = unitOf(image, i);
    cost.macs = macsOf(image, i);
    cost.cycles = std::max(*std::ranges::max_element(answer.busy_cycles), answer.latency_cycles);
    cost.bytes = answer.bytes[0];
    const double bus = bytesPerCycle > 0 ? static_cast<double>(cost.bytes) / bytesPerCycle : 0;
    cost.busCycles = std::min(cost.cycles, static_cast<uint64_t>(std::ceil(bus)));
  }
  return costs;
}

/// Bytes between memories of all runs of an instruction.
struct MovedBytes {
  uint64_t weights = 0;
  uint64_t tables = 0;
  uint64_t loaded = 0;
  uint64_t stored = 0;
};

std::vector<MovedBytes> movedBytes(const program::Program& program, const cdl_image_t* image,
                                   const std::vector<uint64_t>& runs) {
  std::vector<MovedBytes> moved;
  const auto copies = program::passes::tile::copiesOf(program);
  for (size_t i = 0; i < copies.instrs.size(); ++i) {
    const program::passes::tile::CopiedBytes& copied = copies.instrs[i];
    const uint64_t times = runs[i + 1];
    MovedBytes& each = moved.emplace_back();
    if (copied.copies > 0) {
      each = {copied.weights, copied.tables, copied.loaded, copied.stored};
    } else {
      const MemoryBytes own = memoryBytesOf(image, static_cast<uint32_t>(i + 1));
      each = {own.constants, 0, own.read, own.written};
    }
    for (uint64_t* bytes : {&each.weights, &each.tables, &each.loaded, &each.stored})
      *bytes *= times;
  }
  return moved;
}

void addCount(Json& to, const char* key, uint64_t value) {
  to[key] = to.value(key, uint64_t{0}) + value;
}

/// What the moments of an instruction went to. Of a product the unit is partly idle: where rows and
/// columns are left over, and before it begins.
void addCauses(Json& to, const InstrCost& cost, uint64_t useful, uint64_t moments) {
  const bool isCopy = cost.unit == Unit::load || cost.unit == Unit::store;
  const bool isBoundByMemory = !isCopy && cost.isBoundByMemory();
  if (isBoundByMemory) return addCount(to, "memory", moments);
  if (cost.unit != Unit::matrix)
    return addCount(to, kUnits[static_cast<size_t>(cost.unit)], moments);
  const uint64_t busy = useful == 0 ? cost.cycles : std::min(useful, cost.cycles);
  const double share =
      static_cast<double>(busy) / static_cast<double>(std::max<uint64_t>(cost.cycles, 1));
  const auto products = static_cast<uint64_t>(static_cast<double>(moments) * share);
  addCount(to, "products", products);
  addCount(to, "unused", moments - products);
}

double shareOf(const Json& part, const Json& whole) {
  const auto all = whole.get<double>();
  return all > 0 ? part.get<double>() / all : 0.0;
}

/// The most cycles first.
Json inOrder(const Json& causes) {
  std::vector<std::pair<std::string, uint64_t>> list;
  for (const auto& [cause, cycles] : causes.items())
    if (cycles.get<uint64_t>() > 0) list.emplace_back(cause, cycles.get<uint64_t>());
  std::ranges::stable_sort(list, std::greater<>(), &std::pair<std::string, uint64_t>::second);
  Json ordered = Json::object();
  for (const auto& [cause, cycles] : list) ordered[cause] = cycles;
  return ordered;
}

class Estimator {
public:
  Estimator(const runtime::plugin::Device& device, Estimate& into)
      : device_(device), into_(into), declared_(declaredRates(device.target())) {
    into.timeline.engines.assign(std::begin(kUnits), std::end(kUnits));
    into.measured.time = {
        {"cycles", uint64_t{0}}, {"busy", Json::object()}, {"causes", Json::object()}};
    for (const char* unit : kUnits) into.measured.time["busy"][unit] = uint64_t{0};
    if (declared_) into.rates = *declared_;
  }

  void add(const PlannedPart& part) {
    const Bytes bytes = program::toImage(part.program, false);
    const auto* image = reinterpret_cast<const cdl_image_t*>(bytes.data());
    const std::vector<InstrCost> costs = costsOf(part, image);
    const std::optional<Schedule> schedule = scheduleOf(image, costs);
    if (!schedule)
      fail(kWorkFailed,
           "program '{}' executes millions of instructions: that many are not estimated",
           part.program.name);
    layerOf_.assign(1, -1);
    for (const program::Instr& instr : part.program.instrs) layerOf_.push_back(layerFor(instr));
    count(part, image, costs, *schedule);
    place(image, costs, *schedule);
    begin_ += schedule->cycles;
    into_.measured.time["cycles"] = begin_;
    ++into_.measured.programs;
    index_.clear();
  }

  void finish() {
    Json& time = into_.measured.time;
    time["peak_macs_per_cycle"] = peak_;
    time["dram_bytes_per_cycle"] = into_.rates.bytesPerCycle;
    time["causes"] = inOrder(time["causes"]);
    into_.macUtilization = shareOf(into_.measured.sum("product_cycles"), time["cycles"]);
    for (Json& layer : into_.measured.layers) {
      layer["causes"] = inOrder(layer["causes"]);
      if (!layer["causes"].empty()) layer["bound"] = layer["causes"].begin().key();
      layer["mac_utilization"] = shareOf(layer["product_cycles"], layer["cycles"]);
      addLeast(layer);
    }
  }

private:
  /// All products at the unit's rate beside all bytes at the memory's.
  void addLeast(Json& layer) const {
    const auto products = layer["product_cycles"].get<uint64_t>();
    const bool isKnown = products > 0 || layer["macs"].get<uint64_t>() == 0;
    if (!isKnown || into_.rates.bytesPerCycle <= 0) return;
    const double bytes = layer["weights"].get<double>() + layer["tables"].get<double>() +
                         layer["loaded"].get<double>() + layer["stored"].get<double>();
    const auto moved = static_cast<uint64_t>(std::ceil(bytes / into_.rates.bytesPerCycle));
    const uint64_t least = std::max(products, moved);
    if (least == 0) return;
    layer["least_cycles"] = least;
    layer["least_by"] = products >= moved ? "array" : "dram";
    layer["of_least"] = layer["cycles"].get<double>() / static_cast<double>(least);
  }

  /// Numbers that no schedule can add up are told, whoever they are from.
  std::vector<InstrCost> costsOf(const PlannedPart& part, const cdl_image_t* image) {
    std::vector<InstrCost> costs = allCosts(image);
    for (uint32_t i = 1; i < costs.size(); ++i)
      if (costs[i].cycles > kMostInstrCycles)
        fail(kWorkFailed, "{} would take more than {} cycles by {}", part.program.instrName(i - 1),
             kMostInstrCycles,
             into_.source == CostSource::device ? "cost_batch" : "the rates of cdl_tiling_t");
    return costs;
  }

  std::vector<InstrCost> allCosts(const cdl_image_t* image) {
    std::vector<InstrCost> costs = askedCosts(image, device_, into_.rates.bytesPerCycle);
    into_.source = costs.empty() ? CostSource::declared : CostSource::device;
    if (!costs.empty()) return costs;
    if (!declared_)
      fail(kBadInput,
           "{} says nothing to estimate by: neither cost_batch prices instructions nor are there "
           "rates in cdl_tiling_t",
           device_.id());
    costs.resize(1);
    for (uint32_t i = 1; i < image->instrs.count; ++i)
      costs.push_back(costOf(image, i, *declared_));
    return costs;
  }

  int32_t layerFor(const program::Instr& instr) {
    const std::string name = instr.provenance.empty() ? kNoNode : instr.provenance[0].node;
    Json& layers = into_.measured.layers;
    const auto [at, isNew] = index_.try_emplace(name, layers.size());
    if (isNew)
      layers.push_back({{"name", name},
                        {"program", into_.measured.programs},
                        {"macs", uint64_t{0}},
                        {"product_cycles", uint64_t{0}},
                        {"weights", uint64_t{0}},
                        {"tables", uint64_t{0}},
                        {"loaded", uint64_t{0}},
                        {"stored", uint64_t{0}},
                        {"cycles", uint64_t{0}},
                        {"busy", Json::object()},
                        {"causes", Json::object()}});
    return static_cast<int32_t>(at->second);
  }

  void count(const PlannedPart& part, const cdl_image_t* image, const std::vector<InstrCost>& costs,
             const Schedule& schedule) {
    const std::vector<MovedBytes> moved = movedBytes(part.program, image, schedule.runs);
    for (uint32_t i = 1; i < costs.size(); ++i) {
      Json& layer = into_.measured.layers[static_cast<size_t>(layerOf_[i])];
      const InstrCost& cost = costs[i];
      const uint64_t macs = cost.macs * schedule.runs[i];
      const uint64_t busy = cost.cycles * schedule.runs[i];
      const char* unit = kUnits[static_cast<size_t>(cost.unit)];
      addCount(layer, "macs", macs);
      addCount(layer, "weights", moved[i - 1].weights);
      addCount(layer, "tables", moved[i - 1].tables);
      addCount(layer, "loaded", moved[i - 1].loaded);
      addCount(layer, "stored", moved[i - 1].stored);
      addCount(layer, "cycles", schedule.own[i]);
      addCount(layer["busy"], unit, busy);
      const uint64_t useful = usefulCycles(image, i, into_.rates);
      addCount(layer, "product_cycles", useful * schedule.runs[i]);
      addCauses(layer["causes"], cost, useful, schedule.own[i]);
      addCount(into_.measured.counters, "macs", macs);
      addCount(into_.measured.time["busy"], unit, busy);
      addCauses(into_.measured.time["causes"], cost, useful, schedule.own[i]);
    }
  }

  /// When layers and instructions run, on the clock of all programs.
  void place(const cdl_image_t* image, const std::vector<InstrCost>& costs,
             const Schedule& schedule) {
    for (const ScheduledInstr& each : schedule.order) {
      const InstrCost& cost = costs[each.instr];
      const cdl_instr_t* instr = cdl_get_instr(image, each.instr);
      Json& layer = into_.measured.layers[static_cast<size_t>(layerOf_[each.instr])];
      const uint64_t start = begin_ + each.start;
      const uint64_t done = begin_ + each.done;
      layer["start"] = std::min(layer.value("start", start), start);
      layer["done"] = std::max(layer.value("done", done), done);
      TimedInstruction timed;
      timed.start = start;
      timed.done = done;
      timed.engine = static_cast<uint32_t>(cost.unit);
      timed.op = opFor(instr->kind);
      timed.layer = layerOf_[each.instr];
      timed.instruction = each.instr;
      timed.bytes = cost.bytes;
      into_.timeline.instructions.push_back(std::move(timed));
    }
    for (uint32_t i = 1; i < costs.size(); ++i)
      if (costs[i].unit == Unit::matrix) {
        const auto elem = static_cast<Elem>(cdl_get_input(image, cdl_get_instr(image, i), 0)->elem);
        peak_ = std::max(peak_, into_.rates.matrix.macsPerCycle.of(elem));
      }
  }

  uint32_t opFor(uint16_t kind) {
    std::vector<std::string>& ops = into_.timeline.ops;
    const std::string name(candela::kindName(kind));
    const auto at = std::ranges::find(ops, name);
    if (at != ops.end()) return static_cast<uint32_t>(at - ops.begin());
    ops.push_back(name);
    return static_cast<uint32_t>(ops.size() - 1);
  }

  const runtime::plugin::Device& device_;
  Estimate& into_;
  std::optional<DeviceRates> declared_;
  std::map<std::string, size_t> index_; ///< of the program at hand: name -> layer
  std::vector<int32_t> layerOf_;        ///< by instruction
  uint64_t begin_ = 0;
  double peak_ = 0;
};

/// What the device says of the programs as wholes.
std::optional<uint64_t> wholeCycles(const PlannedModel& model,
                                    const std::shared_ptr<runtime::plugin::Device>& device) {
  const auto costs = driver::costsOf(device);
  if (!costs) return std::nullopt;
  double sum = 0;
  for (const PlannedPart& part : model.parts) {
    if (part.backend != device->id()) continue;
    const std::optional<double> cycles = costs->cyclesOf(part.program);
    if (!cycles) return std::nullopt;
    sum += *cycles;
  }
  return static_cast<uint64_t>(std::llround(sum));
}

} // namespace

Estimate estimateOf(const PlannedModel& model,
                    const std::shared_ptr<runtime::plugin::Device>& device,
                    const std::optional<DeviceRates>& described) {
  Estimate estimate;
  Estimator estimator(*device, estimate);
  if (described) estimate.rates = *described;
  for (const PlannedPart& part : model.parts)
    if (part.backend == device->id()) estimator.add(part);
  estimator.finish();
  estimate.deviceCycles = wholeCycles(model, device);
  return estimate;
}

std::optional<double> clockOf(const runtime::plugin::Device& device) {
  const std::optional<uint64_t> megahertz = driver::declaredNumber(device, "clock_mhz");
  if (!megahertz || *megahertz == 0) return std::nullopt;
  return static_cast<double>(*megahertz) * 1e6;
}

} // namespace candela::tool
