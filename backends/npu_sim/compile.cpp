#include "compile.hpp"

#include "layer_report.hpp"

#include "codegen/split.hpp"
#include "lower/lowering.hpp"
#include "lower/widening.hpp"

#include "simulator/timing/placement.h"
#include "simulator/timing/schedule.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace npu_sim {

namespace {

/// Instructions that only fill buffers which the compiler reads itself.
bool isDropped(const ProgramImage& image, const cdl::Op& op) {
  return op.kind() == cdl::Kind::Copy &&
         image.isImmediate(cdl_get_output(image.raw(), &op.instr(), 0)->buffer);
}

/// What a copy of a constant that is none of a product's weights would move as the Program has it.
uint64_t tableBytes(const ProgramImage& image, const cdl::Op& op) {
  const DeviceView from = image.input(op, 0), to = image.output(op);
  const bool isTable =
      from.memory == Access::kPayload && to.isLocal() && !image.holdsWeights(to.buffer);
  return isTable ? static_cast<uint64_t>(to.elements() * to.bytes) : 0;
}

/// Bytes of the local memory that are alive at each instruction of the image.
std::vector<uint64_t> liveBytes(const cdl_image_t* image, uint32_t localSpace) {
  struct Life {
    uint32_t first = 0, last = 0;
  };
  std::vector<Life> lives(image->buffers.count);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl::Op op(image, i, nullptr, nullptr);
    const auto touch = [&](const cdl_view_t* view) {
      Life& life = lives[view->buffer];
      if (!life.first) life.first = i;
      life.last = i;
    };
    for (uint32_t v = 0; v < op.inputs(); ++v) touch(cdl_get_input(image, &op.instr(), v));
    for (uint32_t v = 0; v < op.instr().outputs; ++v) touch(cdl_get_output(image, &op.instr(), v));
  }
  // what begins less what has ended, wrapping
  std::vector<uint64_t> live(image->instrs.count + 1, 0);
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image, b);
    if (buffer->space != localSpace || !lives[b].first) continue;
    live[lives[b].first] += buffer->bytes;
    live[lives[b].last + 1] -= buffer->bytes;
  }
  for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  return live;
}

/// A copy out of the scratchpad stays behind the copies into it that it waits for, whatever bytes
/// those touch.
std::vector<Access> orderOf(const ProgramImage& image, const cdl::Op& op, uint32_t i) {
  if (image.output(op).isLocal()) return {{Access::kInstrs, i, i + 1, false}};
  std::vector<Access> order;
  for (uint32_t w = 0; w < op.instr().waits; ++w) {
    const uint32_t before = cdl_get_wait(image.raw(), op.instr().first_wait + w)->instr;
    order.push_back({Access::kInstrs, before, before + 1, true});
  }
  return order;
}

/// By instruction: whether it is not emitted.
std::vector<bool> leftOut(ProgramImage& image) {
  std::vector<bool> isLeftOut(image.instrs(), false);
  for (const uint32_t i : leaveOutWidenings(image)) isLeftOut[i] = true;
  for (uint32_t i = 1; i < image.instrs(); ++i)
    if (isDropped(image, image.op(i))) isLeftOut[i] = true;
  return isLeftOut;
}

/// What parts of their results the cores of a node compute, of a Program for several.
class Parts {
public:
  Parts(const ProgramImage& image, const std::vector<bool>& isLeftOut, const Split& split)
      : image_(image) {
    std::map<uint32_t, std::vector<Part>> parts; // by unit
    for (uint32_t i = 1; i < image.instrs(); ++i)
      if (!isLeftOut[i]) add(i, split, parts[split.unitOf[i]]);
    for (uint32_t i = 1; i < image.instrs(); ++i) {
      const cdl::Op op = image.op(i);
      const bool moves = op.kind() == cdl::Kind::Copy || op.kind() == cdl::Kind::Fill;
      if (isLeftOut[i] || moves) continue;
      Node& node = nodes_[op.node()];
      node.cores |= split.cores[i];
      if (node.units.insert(split.unitOf[i]).second) {
        const std::vector<Part>& of = parts[split.unitOf[i]];
        node.parts.insert(node.parts.end(), of.begin(), of.end());
      }
    }
  }

  /// `,"cores":[..],"parts":{..}`; nothing of a node that computes nothing.
  std::string text(const std::string& name) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return {};
    Node& node = found->second;
    std::string cores;
    for (int core = 0; core < 32; ++core)
      if (node.cores >> core & 1) cores += cdl::text(cores.empty() ? "" : ",", core);
    // [core, first byte, behind the last one, bytes of all], what lies side by side once
    std::ranges::sort(node.parts);
    std::string ranges;
    bool isInterleaved = false;
    Part last;
    const auto flush = [&] {
      if (last.all)
        ranges += cdl::text(ranges.empty() ? "" : ",", "[", last.core, ",", last.begin, ",",
                            last.end, ",", last.all, "]");
    };
    for (const Part& part : node.parts) {
      const bool isSame = last.all == part.all && last.core == part.core;
      isInterleaved |= last.all == part.all && !isSame && part.begin < last.end;
      if (isSame && part.begin <= last.end) {
        last.end = std::max(last.end, part.end);
        continue;
      }
      flush();
      last = part;
    }
    flush();
    if (isInterleaved) ranges.clear();
    return cdl::text(",\"cores\":[", cores,
                     "],\"parts\":{\"interleaved\":", isInterleaved ? "true" : "false",
                     ",\"ranges\":[", ranges, "]}");
  }

private:
  /// Bytes of a result, from the first to the last.
  struct Part {
    int64_t all = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int core = 0;
    auto operator<=>(const Part&) const = default;
  };
  struct Node {
    uint32_t cores = 0;
    std::set<uint32_t> units;
    std::vector<Part> parts;
  };

  /// A result goes to DRAM, or stays and is handed to other cores.
  void add(uint32_t i, const Split& split, std::vector<Part>& parts) const {
    const cdl::Op op = image_.op(i);
    const DeviceView to = image_.output(op);
    const bool isStored = op.kind() == cdl::Kind::Copy && !to.isLocal();
    if ((!isStored && !split.isHanded[i]) || to.elements() == 0) return;
    const cdl_buffer_t* const buffer = cdl_get_buffer(image_.raw(), to.buffer);
    const Access bytes = to.access(true);
    const int64_t base =
        isStored ? image_.beginOf(to.buffer) : static_cast<int64_t>(buffer->offset);
    parts.push_back({static_cast<int64_t>(buffer->bytes), bytes.begin - base, bytes.end - base,
                     std::countr_zero(split.cores[i])});
  }

  const ProgramImage& image_;
  std::map<std::string, Node> nodes_;
};

/// JSON; the order is that of the program. `parts`: null where there is one core.
std::string costsText(const std::vector<Costs>& costs, Parts* parts) {
  std::string text;
  for (const Costs& c : costs) {
    text += cdl::text(
        text.empty() ? "[" : ",", "{\"node\":\"", jsonString(c.node), "\",\"macs\":", c.macs,
        c.floatMacs ? cdl::text(",\"bf16_macs\":", c.floatMacs) : std::string(),
        ",\"weights\":", c.weights, ",\"tables\":", c.tables, ",\"tiled_tables\":", c.tiledTables,
        ",\"loaded\":", c.loaded, ",\"stored\":", c.stored, ",\"scratchpad_peak\":", c.peak,
        parts ? parts->text(c.node) : std::string(), "}");
  }
  return text.empty() ? "[]" : text + "]";
}

/// Lowers instruction `i`; how many instructions it took in.
uint32_t lower(LoweringState& l, uint32_t i) {
  const cdl::Op op = l.image.op(i);
  if (l.image.output(op).elements() == 0) return 1;
  switch (op.kind()) {
  case cdl::Kind::Copy:
    l.order = orderOf(l.image, op, i);
    lowerCopy(l, l.image.input(op, 0), l.image.output(op));
    l.order.clear();
    return 1;
  case cdl::Kind::Fill:
    lowerFill(l, l.image.output(op), static_cast<uint64_t>(op.attr(CDL_ATTR_VALUE, 0)));
    return 1;
  case cdl::Kind::Conv2d:
  case cdl::Kind::MatMul: l.own().isBeforeProducts = false; return lowerProduct(l, op);
  case cdl::Kind::Convert:
  case cdl::Kind::Binary:
  case cdl::Kind::Compare:
  case cdl::Kind::Rescale:
  case cdl::Kind::Table: lowerElementwise(l, op); return 1;
  case cdl::Kind::Reduce: lowerReduce(l, op); return 1;
  case cdl::Kind::Pool2d: lowerPool(l, op); return 1;
  default: throw Refusal{CDL_REASON_NO_ROW, "the device has no such instruction"};
  }
}

/// Refuses what the memories do not hold, where there are two, for what of one is too large is
/// often what the other has room for, and where cores hand values over in memory, which core's plan
/// does not count.
void needRoom(const npu::Configuration& configuration, const npu::Binary& binary) {
  if (!configuration.hasSecond() && configuration.cores() == 1) return;
  const auto need = [&](const char* memory, int key, uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(configuration[key]))
      throw Refusal{
          CDL_REASON_MEMORY,
          cdl::text(memory, ".bytes is ", configuration[key], ", the program needs ", bytes,
                    " there with second.holds = ", configuration.valueText(npu::key::kSecondHolds),
                    " and cores.count = ", configuration.cores())};
  };
  if (configuration.hasSecond())
    need("second", npu::key::kSecondBytes, npu::secondEnd(configuration, binary));
  need("dram", npu::key::kDramBytes, npu::placementOf(configuration, binary).end);
}

/// Lowers instructions on the cores that have them, and hands results from one to another.
class OverCores {
public:
  OverCores(LoweringState& l, const std::vector<bool>& isLeftOut, const Split& split)
      : l_(l), isLeftOut_(isLeftOut), split_(split) {}

  /// How many instructions it took in.
  uint32_t lower(uint32_t at) {
    uint32_t taken = 1;
    for (size_t core = 0; core < l_.cores.size(); ++core) {
      if (!(split_.cores[at] >> core & 1)) continue;
      l_.onCore(core);
      for (uint32_t i = at; i < std::min(at + kMostTaken, l_.image.instrs()); ++i)
        takeHanded(i, at, core);
      taken = npu_sim::lower(l_, at);
      assert(taken <= kMostTaken && "an instruction was taken in whose operands were not loaded");
      for (uint32_t i = at; i < at + taken; ++i)
        if (split_.isHanded[i]) hand(i, core);
    }
    return taken;
  }

private:
  /// A product, a residual or a pool, and a table.
  static constexpr uint32_t kMostTaken = 3;
  struct Handed {
    DeviceView far;
    uint32_t cores = 0; ///< that have it, bit by bit
  };

  /// Stores a result for other cores.
  void hand(uint32_t writer, size_t core) {
    const DeviceView local = l_.image.output(l_.image.op(writer));
    const DeviceView far = l_.image.addHanded(local);
    handed_[writer] = {far, 1u << core};
    lowerCopy(l_, local, far);
  }

  /// Loads what others computed before `before` and instruction i, one of this core's, reads.
  void takeHanded(uint32_t i, uint32_t before, size_t core) {
    if (isLeftOut_[i] || !(split_.cores[i] >> core & 1)) return;
    for (const uint32_t writer : split_.reads[i]) {
      const auto found = handed_.find(writer);
      const bool isHere = found == handed_.end() || (found->second.cores >> core & 1);
      if (writer >= before || isHere) continue;
      found->second.cores |= 1u << core;
      lowerCopy(l_, found->second.far, l_.image.output(l_.image.op(writer)));
    }
  }

  LoweringState& l_;
  const std::vector<bool>& isLeftOut_;
  const Split& split_;
  std::map<uint32_t, Handed> handed_; ///< by instruction that wrote it
};

} // namespace

int64_t reservedBytes(const npu::Configuration& configuration) {
  // Records of two blocks of columns at least, or two tables.
  const int64_t table = configuration.hasInt16() ? 1088 : 256; // rounded up to 64
  const int64_t bounds = configuration.hasBf16() ? 32 : 0;     // behind records of floats
  const int64_t least =
      2 * std::max<int64_t>((int64_t{8} * configuration.columns() + 31) / 32 * 32 + bounds, table);
  const int64_t bytes =
      std::clamp<int64_t>(configuration.scratchpadBytes() / 32 / 64 * 64, least, 32768);
  return bytes + configuration.scratchpadBytes() % 64;
}

npu::Configuration compiledConfiguration(const npu::Configuration& configuration) {
  npu::Configuration compiled = configuration;
  // The split over cores looks at bandwidth, and what does not fit two memories is refused.
  if (configuration.cores() > 1 || configuration.hasSecond()) return compiled;
  using namespace npu::key;
  for (const int key : {+kClockMhz, +kDramType, +kDramWidthBits, +kDramBytes, +kDmaOutstanding,
                        +kCommandQueueDepth})
    compiled.values[static_cast<size_t>(key)] = npu::kKeys[key].preset;
  return compiled;
}

/// `used`: how many of the cores get instructions, at least 1.
static cdl::Status compileProgram(const cdl_image_t* raw, const void* const* payloads,
                                  const npu::Configuration& configuration, size_t used,
                                  Compiled& compiled) {
  uint32_t at = 0;
  try {
    uint32_t localSpace = 0;
    for (uint32_t s = 1; s < raw->spaces.count; ++s)
      if (cdl_get_space(raw, s)->flags & CDL_SPACE_LOCAL) localSpace = s;
    const int64_t reserved = reservedBytes(configuration);
    const int64_t localBytes = configuration.scratchpadBytes() - reserved; // a multiple of 64
    ProgramImage image(raw, payloads, localSpace, localBytes);
    Stream stream(configuration.cores());
    LoweringState lowering{image, stream, configuration, localBytes, reserved};
    lowering.cores.resize(configuration.cores());
    const std::vector<uint64_t> live = liveBytes(raw, localSpace);
    const std::vector<bool> isLeftOut = leftOut(image);
    const Split split = splitOverCores(image, configuration, isLeftOut, used);
    std::optional<Parts> parts;
    if (payloads && configuration.cores() > 1) parts.emplace(image, isLeftOut, split);
    OverCores overCores(lowering, isLeftOut, split);
    for (at = 1; at < raw->instrs.count;) {
      const cdl::Op op = image.op(at);
      const std::string node = op.node();
      lowering.begin(at, node.empty() ? cdl::text(cdl::kindName(op.instr().kind), " [", at, "]")
                                      : node);
      lowering.here().peak = std::max(lowering.here().peak, live[at]);
      if (op.kind() == cdl::Kind::Copy) lowering.here().tiledTables += tableBytes(image, op);
      const uint32_t taken = isLeftOut[at] ? 1 : overCores.lower(at);
      for (uint32_t i = 0; i < taken; ++i) image.advance(image.op(at + i));
      at += taken;
    }
    npu::Binary& binary = compiled.binary;
    binary.configurationName = configuration.name;
    binary.configurationHash = configuration.hash();
    stream.finish(binary, compiled.instrOfSymbol);
    Layout layout = image.takeLayout();
    binary.regions = std::move(layout.regions);
    binary.constants = std::move(layout.constants);
    at = 0; // what follows is of no instruction
    needRoom(configuration, binary);
    compiled.costs = costsText(lowering.costs, parts ? &*parts : nullptr);
    compiled.parts = std::move(layout.parts);
  } catch (const Refusal& refusal) {
    const bool isOne = at > 0 && at < raw->instrs.count;
    return cdl::refused(isOne ? at : 0, static_cast<cdl_reason_t>(refusal.reason), refusal.text);
  }
  return cdl::ok();
}

cdl::Status compileFastest(const cdl_image_t* raw, const void* const* payloads,
                           const npu::Configuration& configuration, Compiled& compiled) {
  const size_t cores = configuration.cores();
  if (cores == 1) {
    cdl::Status status =
        compileProgram(raw, payloads, compiledConfiguration(configuration), cores, compiled);
    compiled.binary.configurationHash = configuration.hash();
    return status;
  }
  npu::ScheduleOptions options;
  options.fidelity = npu::Fidelity::kFast;
  int64_t least = INT64_MAX;
  cdl::Status refused = cdl::ok(); // of all cores
  // Cores share the memory: where it is what all wait for, fewer of them are faster.
  for (size_t used = cores; used > 0; used /= 2) {
    Compiled one;
    cdl::Status status = compileProgram(raw, payloads, configuration, used, one);
    const bool isCompiled = status.isOk();
    if (used == cores) refused = std::move(status);
    if (!isCompiled) continue;
    const npu::Result<npu::TimeReport> time = npu::timeOf(configuration, one.binary, options);
    const int64_t cycles = time ? time->cycles : INT64_MAX - 1;
    if (cycles >= least) continue;
    least = cycles;
    compiled = std::move(one);
  }
  return least == INT64_MAX ? std::move(refused) : cdl::ok();
}

} // namespace npu_sim
