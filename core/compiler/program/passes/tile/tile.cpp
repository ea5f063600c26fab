#include "core/compiler/program/passes/tile/tile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/passes/tile/borders.h"
#include "core/compiler/program/passes/tile/device_costs.h"
#include "core/compiler/program/passes/tile/emission.h"
#include "core/compiler/program/passes/tile/fold.h"
#include "core/compiler/program/passes/tile/halves.h"
#include "core/compiler/program/passes/tile/kept_plans.h"
#include "core/compiler/program/passes/tile/residency.h"
#include "core/compiler/program/passes/tile/unroll.h"

namespace candela::program::passes::tile {

namespace {

/// Removes TEMP buffers that nothing touches.
void dropUnused(Program& program) {
  std::vector<bool> isUsed(program.buffers.size(), false);
  for (const Instr& instr : program.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) isUsed[view.buffer] = true;
  std::vector<uint32_t> index(program.buffers.size());
  std::vector<Buffer> kept;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    index[b] = static_cast<uint32_t>(kept.size());
    if (isUsed[b] || program.buffers[b].role != Role::temp)
      kept.push_back(std::move(program.buffers[b]));
  }
  program.buffers = std::move(kept);
  for (Instr& instr : program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views) view.buffer = index[view.buffer];
}

/// The space of the memory; a new one unless the Program has it.
uint32_t spaceOf(Program& program, const LocalMemory& memory) {
  for (uint32_t s = 0; s < program.spaces.size(); ++s)
    if (program.spaces[s].name == memory.name) return s;
  Space space;
  space.name = memory.name;
  space.hostMapped = false;
  space.local = true;
  space.capacityBytes = memory.capacityBytes;
  space.alignment = memory.alignment;
  program.spaces.push_back(std::move(space));
  return static_cast<uint32_t>(program.spaces.size() - 1);
}

/// MovedValue::leastBytes of each chain, by buffer.
std::vector<std::map<uint32_t, uint64_t>> leastOf(const Program& program,
                                                  const std::vector<std::vector<Port>>& ports,
                                                  const LocalMemory& memory) {
  std::vector<uint64_t> written(program.buffers.size(), 0), toWrite(program.buffers.size(), 0);
  for (const auto& chain : ports)
    for (const Port& port : chain)
      if (port.output)
        written[port.view.buffer] +=
            elemBytes(port.view.elem, static_cast<uint64_t>(port.view.count()));
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    // without what nothing writes
    toWrite[b] = written[b] = std::min(written[b], program.buffers[b].bytes);
  std::vector<bool> isMoved(program.buffers.size(), false);
  std::vector<std::map<uint32_t, uint64_t>> least(ports.size());
  for (size_t c = 0; c < ports.size(); ++c)
    for (const Port& port : ports[c]) {
      const uint32_t b = port.view.buffer;
      const Buffer& buffer = program.buffers[b];
      if (buffer.role != Role::temp) {
        if (!isMoved[b]) least[c][b] += buffer.bytes;
        isMoved[b] = true;
      } else if (written[b] > memory.capacityBytes && port.output) {
        const uint64_t bytes = std::min(
            toWrite[b], elemBytes(port.view.elem, static_cast<uint64_t>(port.view.count())));
        least[c][b] += bytes;
        toWrite[b] -= bytes;
      } else if (written[b] > memory.capacityBytes && !isMoved[b]) {
        least[c][b] += written[b];
        isMoved[b] = true;
      }
    }
  return least;
}

/// What a plan may take, and how long is searched for it.
struct Limits {
  size_t stayers = SIZE_MAX;
  size_t reach = SIZE_MAX; ///< over how many chains constants are copied ahead
  PlanBounds bounds{};
  bool brief = false;           ///< the search for offsets
  PlanDemand* demand = nullptr; ///< takes what is held against the bounds; null: nobody asks
};

/// Puts all instructions of a Program on one memory: chains of them are cut into tiles, values that
/// stay get local buffers, and copies are written down ahead of what they are for.
class Level {
public:
  Level(Program& program, std::vector<bool>& isDone, const Machine& machine,
        const TileOptions& options)
      : program_(program), isDone_(isDone), machine_(machine), options_(options) {}

  Result<std::vector<TiledStep>> run(const Cuts& cuts, uint32_t space, uint32_t sumsSpace,
                                     const Limits& limits) {
    const LocalMemory& memory = cuts.memory();
    const std::vector<ChainTilings*>& chains = cuts.chains();
    CDL_ASSIGN(const Settled settled,
               settle(program_, cuts, machine_.costs, options_.keep ? limits.stayers : 0));
    stayers_ = settled.stayers.size();
    const auto least = leastOf(program_, settled.ports, memory);
    uint64_t count = 0;
    for (const Tiling& tiling : settled.tilings) {
      count += tiling.instrs;
      cost_ += tiling.cost;
      computing_ += tiling.computing;
    }
    if (limits.demand) limits.demand->cost = std::max(limits.demand->cost, cost_);
    if (cost_ > limits.bounds.cost)
      return failure(Code::out_of_memory, "the tiles cost {} cycles, at most {} are allowed", cost_,
                     limits.bounds.cost);
    if (count > options_.instrs)
      return failure(
          Code::out_of_memory,
          "tiled for memory '{}' the program has {} instructions, at most {} are allowed",
          memory.name, count, options_.instrs);
    place(settled.stayers, space, memory);
    std::vector<Emitted> emitted;
    for (size_t c = 0; c < chains.size(); ++c) {
      std::vector<Kept> kept(settled.ports[c].size());
      for (size_t p = 0; p < kept.size(); ++p)
        if (settled.settings[c].stays[p] != Stay::no)
          kept[p].buffer = localOf_[settled.ports[c][p].view.buffer];
      emitted.push_back(emitChain(program_, chains[c]->chain(), settled.ports[c],
                                  settled.settings[c], settled.tilings[c], kept, space, sumsSpace,
                                  machine_));
    }
    for (const Stayer& stayer : settled.stayers)
      if (stayer.fetched) fetch(stayer, emitted[stayer.first]);
    for (size_t c = 0; c < chains.size(); ++c)
      for (const auto& [buffer, bytes] : least[c]) {
        movedOf(buffer, emitted[c]).leastBytes += bytes;
        bound_ += bytes;
      }
    if (options_.prefetch) prefetch(settled, emitted, memory, limits.reach);
    join(chains, std::move(emitted));
    return std::move(steps_);
  }

  size_t stayers() const { return stayers_; }
  double cost() const { return cost_; }
  double computing() const { return computing_; }
  uint64_t bound() const { return bound_; }

private:
  /// Puts what stays into the memory: the buffer itself, or a second one where memory keeps it too.
  void place(const std::vector<Stayer>& stayers, uint32_t space, const LocalMemory& memory) {
    localOf_.assign(program_.buffers.size(), kNone);
    for (const Stayer& stayer : stayers) {
      uint32_t local = stayer.buffer;
      if (stayer.stored || stayer.fetched) {
        Buffer copy = program_.buffers[stayer.buffer];
        copy.name += "." + memory.name;
        copy.role = Role::temp;
        copy.constant = kNone;
        copy.offset = CDL_UNPLACED;
        local = program_.addBuffer(std::move(copy));
      }
      program_.buffers[local].space = space;
      program_.buffers[local].alignment = memory.alignment;
      localOf_[stayer.buffer] = local;
    }
  }

  /// Copies all bytes of a value that stays before the first tile.
  void fetch(const Stayer& stayer, Emitted& chain) {
    const auto [elem, dims] = program_.contentType(stayer.buffer);
    const View from = denseView(stayer.buffer, elem, dims),
               to = denseView(localOf_[stayer.buffer], elem, dims);
    std::vector<Origin> origins;
    if (!chain.step.nodes.empty()) origins.push_back({chain.step.nodes[0], "load"});
    auto& loads = chain.parts[0].loads;
    loads.insert(loads.begin(), copyBetween(from, to, machine_.loadEngine, std::move(origins)));
    chain.step.loadedBytes += program_.buffers[stayer.buffer].bytes;
    movedOf(stayer.buffer, chain).loadedBytes += program_.buffers[stayer.buffer].bytes;
  }

  MovedValue& movedOf(uint32_t buffer, Emitted& chain) const {
    const std::string& name = program_.buffers[buffer].name;
    const auto known = std::ranges::find(chain.step.moved, name, &MovedValue::name);
    return known != chain.step.moved.end() ? *known
                                           : chain.step.moved.emplace_back(MovedValue{name});
  }

  /// Moves copies of constants for first tiles back to where the copying engine has time for them:
  /// as late as that is early enough, over at most `reach` chains, and as far as there is room
  /// beside the tiles of each. From the last chain to the first, so that the copies that are needed
  /// latest take the latest time; they keep their order.
  void prefetch(const Settled& settled, std::vector<Emitted>& emitted, const LocalMemory& memory,
                size_t reach) {
    std::vector<uint64_t> room;
    std::vector<double> idle; // cycles of the copying engine beside a chain's own copies
    for (size_t c = 0; c < emitted.size(); ++c) {
      const Tiling& tiling = settled.tilings[c];
      const uint64_t taken = settled.settings[c].reserved + tiling.localBytes;
      room.push_back(memory.capacityBytes - std::min(taken, memory.capacityBytes));
      double own = tiling.copying;
      for (const uint64_t bytes : emitted[c].aheadBytes)
        own -= static_cast<double>(bytes) / machine_.costs.bytesPerCycle;
      idle.push_back(std::max(0.0, tiling.computing - std::max(0.0, own)));
    }
    struct Early {
      /// for the next chain, and for those behind it; the latest needed first
      std::vector<Instr> near, far;
    };
    std::vector<Early> early(emitted.size());
    size_t begin = emitted.size(); // where the copies of the chains behind begin
    for (size_t c = emitted.size(); c-- > 1;) {
      begin = std::min(begin, c - 1);
      std::vector<Instr> later;
      for (size_t i = emitted[c].ahead.size(); i-- > 0;) {
        const uint64_t bytes =
            (emitted[c].aheadBytes[i] + memory.alignment - 1) / memory.alignment * memory.alignment;
        size_t earliest = c;
        while (earliest > 0 && c - earliest < reach && room[earliest - 1] >= bytes) --earliest;
        if (earliest == c) {
          later.insert(later.begin(), std::move(emitted[c].ahead[i]));
          continue;
        }
        double left = static_cast<double>(bytes) / machine_.costs.bytesPerCycle;
        for (; begin > 0 && left > idle[begin]; --begin) left -= std::exchange(idle[begin], 0.0);
        const size_t at = std::max(begin, earliest);
        idle[begin] = std::max(0.0, idle[begin] - left);
        for (size_t between = at; between < c; ++between) room[between] -= bytes;
        (at + 1 == c ? early[at].near : early[at].far).push_back(std::move(emitted[c].ahead[i]));
      }
      emitted[c].ahead = std::move(later);
    }
    for (size_t c = 0; c < emitted.size(); ++c) {
      auto& parts = emitted[c].parts;
      const auto add = [](std::vector<Instr>& loads, std::vector<Instr>& copies) {
        loads.insert(loads.end(), std::make_move_iterator(copies.rbegin()),
                     std::make_move_iterator(copies.rend()));
      };
      add(parts.back().loads, early[c].near);
      add(parts.back().loads, early[c].far);
    }
  }

  /// Writes down the chains where they stand, copies so many tiles ahead as there are buffers.
  void join(const std::vector<ChainTilings*>& chains, std::vector<Emitted> emitted) {
    std::vector<bool> isIn(program_.instrs.size(), false);
    for (const ChainTilings* chain : chains)
      for (const Link& link : chain->chain().links) isIn[link.instr] = true;
    size_t count = program_.instrs.size();
    size_t next = 0;
    for (const Emitted& chain : emitted) {
      count += chain.ahead.size();
      for (const Emitted::Part& part : chain.parts)
        count += part.loads.size() + part.computes.size() + part.stores.size();
    }
    std::vector<Instr> before = std::exchange(program_.instrs, {});
    const std::vector<bool> wasDone = std::exchange(isDone_, {});
    program_.instrs.reserve(count);
    for (uint32_t i = 0; i < before.size(); ++i) {
      if (next < chains.size() && chains[next]->chain().place() == i) append(emitted[next++]);
      if (!isIn[i]) add(std::move(before[i]), wasDone[i]);
    }
  }

  void add(Instr instr, bool isDone) {
    program_.instrs.push_back(std::move(instr));
    isDone_.push_back(isDone);
  }

  void append(Emitted& chain) {
    const auto addAll = [&](std::vector<Instr>& instrs, bool isDone) {
      for (Instr& instr : instrs) add(std::move(instr), isDone);
    };
    addAll(chain.ahead, true);
    const size_t ahead = chain.step.buffers - 1;
    for (size_t t = 0; t < std::min(ahead, chain.parts.size()); ++t)
      addAll(chain.parts[t].loads, true);
    for (size_t t = 0; t < chain.parts.size(); ++t) {
      if (t + ahead < chain.parts.size()) addAll(chain.parts[t + ahead].loads, true);
      addAll(chain.parts[t].computes, false);
      addAll(chain.parts[t].stores, true);
    }
    steps_.push_back(std::move(chain.step));
  }

  Program& program_;
  std::vector<bool>& isDone_; ///< by instruction
  const Machine& machine_;
  const TileOptions& options_;
  std::vector<uint32_t> localOf_; ///< by buffer
  std::vector<TiledStep> steps_;
  size_t stayers_ = 0;
  double cost_ = 0;      ///< Tiling::cost of all tilings
  double computing_ = 0; ///< Tiling::computing of all tilings
  uint64_t bound_ = 0;
};

/// Makes every store wait for the loads from the same space in front of it: for the last copy of
/// each buffer, since a device may spread buffers over channels.
void waitForLoads(Program& program, const Machine& machine) {
  if (machine.storeEngine == machine.loadEngine) return;
  const auto spaceOfView = [&](const View& view) { return program.buffers[view.buffer].space; };
  // by buffer, since the last store to the space
  std::vector<std::map<uint32_t, uint32_t>> loads(program.spaces.size());
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    Instr& instr = program.instrs[i];
    if (instr.kind != CDL_KIND_COPY) continue;
    if (instr.engine == machine.loadEngine)
      loads[spaceOfView(instr.inputs[0])][instr.inputs[0].buffer] = i;
    if (instr.engine != machine.storeEngine) continue;
    const std::vector<uint32_t> own = instr.waits;
    const auto isBehind = [&](uint32_t load) {
      return std::ranges::any_of(own, [&](uint32_t wait) {
        return wait == load || std::ranges::find(program.instrs[wait].waits, load) !=
                                   program.instrs[wait].waits.end();
      });
    };
    for (const auto& [buffer, load] : std::exchange(loads[spaceOfView(instr.outputs[0])], {}))
      if (!isBehind(load)) instr.waits.push_back(load);
    std::ranges::sort(instr.waits);
  }
}

/// Nodes of the exact search before less may stay instead: some hundredths of a second.
constexpr uint64_t kNodesBeforeLess = 250'000;
/// The search for offsets of a plan that is one of several.
constexpr solvers::memory::PlanOptions kBrief = [] {
  solvers::memory::PlanOptions options;
  options.placements = 50'000;
  options.nodes = 1'000;
  options.shrinkNodes = 0;
  return options;
}();

/// How long offsets are searched: not long where less may stay instead.
solvers::memory::PlanOptions searchFor(bool brief, bool mayGiveUp) {
  solvers::memory::PlanOptions options;
  if (mayGiveUp) options.nodes = kNodesBeforeLess;
  return brief ? kBrief : options;
}

/// The memory for sums, if the machine has one.
const LocalMemory* sumsOf(const Machine& machine) {
  return machine.memories.back().sums ? &machine.memories.back() : nullptr;
}
/// How many memories hold more than sums.
size_t levelsOf(const Machine& machine) {
  return machine.memories.size() - (sumsOf(machine) ? 1 : 0);
}

/// Runs the levels, each on the instructions that the one before it left. `first`: how the Program
/// is cut for the first one. `stayers`: how many values stayed, once every instruction is cut.
Status tileWith(Plan& plan, const Cuts& first, const Machine& machine, TileOptions options,
                const Limits& limits, std::optional<size_t>& stayers) {
  options.prefetch &= limits.reach > 0;
  std::vector<bool> isDone = first.isDone();
  Program& program = plan.program;
  TileReport& report = plan.report;
  const LocalMemory* const sums = sumsOf(machine);
  const size_t levels = levelsOf(machine);
  size_t stayed = 0;
  for (size_t l = 0; l < levels; ++l) {
    const bool hasSums = sums && l + 1 == levels;
    const uint32_t space = spaceOf(program, machine.memories[l]);
    const uint32_t sumsSpace = hasSums ? spaceOf(program, *sums) : space;
    KnownChains known;
    std::optional<Cuts> own;
    if (l > 0)
      own.emplace(program, isDone, machine.memories[l], hasSums ? sums : nullptr, machine, options,
                  known);
    Level level(program, isDone, machine, options);
    CDL_ASSIGN(std::vector<TiledStep> steps,
               level.run(own ? *own : first, space, sumsSpace, limits));
    stayed += level.stayers();
    plan.cost += level.cost();
    plan.computing += level.computing();
    if (l == 0) report.boundBytes = level.bound();
    if (l > 0)
      for (TiledStep& step : steps)
        for (MovedValue& moved : step.moved) moved.leastBytes = 0;
    report.steps.insert(report.steps.end(), std::make_move_iterator(steps.begin()),
                        std::make_move_iterator(steps.end()));
  }
  if (program.instrs.size() > options.instrs)
    return failure(Code::out_of_memory,
                   "the tiled program has {} instructions, at most {} are allowed",
                   program.instrs.size(), options.instrs);
  for (const TiledStep& step : report.steps)
    if (step.memory == machine.memories[0].name)
      plan.bytes += static_cast<double>(step.loadedBytes + step.storedBytes);
  if (limits.demand) limits.demand->bytes = std::max(limits.demand->bytes, plan.bytes);
  if (plan.bytes > limits.bounds.bytes)
    return failure(Code::out_of_memory, "the tiled program copies {} bytes, at most {} are allowed",
                   plan.bytes, limits.bounds.bytes);
  stayers = stayed;
  dropUnused(program);
  program.engines = std::max<uint32_t>({program.engines, machine.loadEngine + 1u,
                                        machine.storeEngine + 1u, machine.computeEngine + 1u});
  const bool mayGiveUp = stayed > 0 || options.prefetch;
  solvers::memory::PlanOptions search = searchFor(limits.brief, mayGiveUp);
  search.ownsCapacity = !machine.costs.packs;
  CDL_ASSIGN(const schedule::PlacementReport placed, schedule::placeUnchecked(program, search));
  if (machine.costs.storesLast) waitForLoads(program, machine);
  report.arenaBytes = placed.arenaBytes;
  report.maxLiveBytes = placed.maxLiveBytes;
  return {};
}

/// A plan with offsets. What is live at once always fits; where no offsets are found for it, first
/// constants are copied less far ahead, then fewer values stay.
Result<Plan> planFor(const Program& whole, const Machine& machine, const TileOptions& options,
                     Limits limits, KnownChains& known) {
  const std::vector<bool> isDone(whole.instrs.size(), false);
  const Cuts cuts(whole, isDone, machine.memories[0],
                  levelsOf(machine) == 1 ? sumsOf(machine) : nullptr, machine, options, known);
  for (;;) {
    Plan plan{whole, {}};
    std::optional<size_t> stayers;
    const Status status = tileWith(plan, cuts, machine, options, limits, stayers);
    if (status.isOk()) return plan;
    if (!stayers || (*stayers == 0 && limits.reach == 0)) return status;
    if (limits.reach > 0)
      limits.reach = limits.reach > 1 ? 1 : 0;
    else
      limits.stayers = std::min(limits.stayers, *stayers) / 2;
  }
}

/// Whether the device is known to know nothing of single tiles, by which it would rank them. Asks
/// it about a chain where it was not asked yet.
bool knowsNoTiles(const Machine& machine, const KnownChains& known) {
  DeviceCosts* const device = machine.costs.device.get();
  if (!device || !device->knowsTiles()) return true;
  if (known.chains.empty()) return false;
  const Chain& chain = known.chains.begin()->second.chain;
  Box all;
  for (const Axis& axis : chain.work.axes) all.push_back({0, axis.extent});
  const LocalMemory& memory = machine.memories[0];
  (void)device->cyclesOf(chain, {all},
                         {memory.name, false, true, memory.capacityBytes, memory.alignment, 0},
                         machine.computeEngine);
  return !device->knowsTiles();
}

/// Plans of one Program, taken from earlier calls where there are such.
class Planner {
public:
  Planner(const Program& whole, const Machine& device, const TileOptions& options)
      : whole_(whole), device_(device), options_(options) {
    KeptPlans* const kept = KeptPlans::innermost();
    family_ = kept ? &kept->familyOf(whole, device, options) : nullptr;
  }

  Result<SharedPlan> plan(const Machine& machine, Limits limits) {
    if (!family_) return make(machine, limits, own_);
    if (!knowsNoTiles(machine, family_->known)) return make(machine, limits, family_->known);
    KeptPlan& kept = family_->plans[planKeyOf(machine, device_, limits.brief)];
    if (kept.demand.cost > limits.bounds.cost || kept.demand.bytes > limits.bounds.bytes)
      return failure(Code::out_of_memory, "an equal plan before took more than is allowed");
    if (kept.plan) return kept.plan;
    limits.demand = &kept.demand;
    CDL_ASSIGN(SharedPlan made, make(machine, limits, family_->known));
    KeptPlans::keep(*family_, kept, made);
    return made;
  }

  /// The Program of a plan, which is no one else's then.
  static Program take(SharedPlan plan) {
    if (plan.use_count() > 1) return plan->program;
    return std::move(std::const_pointer_cast<Plan>(plan)->program); // made by make()
  }

private:
  Result<SharedPlan> make(const Machine& machine, const Limits& limits, KnownChains& known) const {
    CDL_ASSIGN(Plan made, planFor(whole_, machine, options_, limits, known));
    for (Space& space : made.program.spaces)
      for (const LocalMemory& memory : device_.memories)
        if (space.name == memory.name) space.capacityBytes = memory.capacityBytes;
    return SharedPlan(std::make_shared<Plan>(std::move(made)));
  }

  const Program& whole_;
  const Machine& device_;
  const TileOptions& options_;
  KnownChains own_; ///< where nothing is kept
  PlanFamily* family_ = nullptr;
};

} // namespace

Result<TileReport> tile(Program& program, const Machine& machine, const TileOptions& options) {
  CDL_TRY(checkMachine(machine));
  if (options.buffers < 1 || options.buffers > 3)
    return badArgument("{} buffers for each tile, expected 1 to 3", options.buffers);
  for (const LocalMemory& memory : machine.memories)
    for (const Space& space : program.spaces)
      if (space.name == memory.name &&
          (!space.local || space.capacityBytes != memory.capacityBytes))
        return badArgument("memory '{}' of {} bytes is {} of {} in the program", memory.name,
                           memory.capacityBytes, space.local ? "a local space" : "a space",
                           space.capacityBytes);
  CDL_TRY(verify(program));
  Program whole = program;
  CDL_TRY(unroll(whole, options.instrs));
  dropBorders(whole);
  if (options.fuse) foldInputCopies(whole);
  for (Buffer& buffer : whole.buffers)
    if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
  Planner planner(whole, machine, options);
  CDL_ASSIGN(SharedPlan best, planner.plan(machine, {}));
  takeFastest(best, whole, machine, [&](const Machine& half, const PlanBounds& bounds) {
    return planner.plan(half, {.bounds = bounds, .brief = true});
  });
  CDL_TRY(verify(best->program));
  const Status valid = schedule::validatePlacement(best->program);
  CDL_CHECK(valid.isOk(), "{}", valid.message());
  TileReport report = best->report;
  program = Planner::take(std::move(best));
  return report;
}

} // namespace candela::program::passes::tile
