#include "simulator/timing/schedule.h"

#include <algorithm>
#include <numeric>

#include "simulator/error.h"
#include "simulator/timing/exact/machine.h"

namespace candela::npu {
namespace {

constexpr int64_t kPage = 4096;  ///< regions begin at multiples
constexpr int64_t kChunk = 2048; ///< bytes that a transfer moves at a time where time is fast

/// The place in a ring of so many.
size_t inRing(size_t turn, size_t size) {
  return static_cast<size_t>(restOf(static_cast<int64_t>(turn), static_cast<int64_t>(size)));
}

MemoryTime timeOf(const SharedTime::Memory& memory, bool isFast) {
  MemoryTime time;
  time.bytesPerCycle = memory.dram.bytesPerCycle();
  if (isFast) {
    time.bursts = memory.bursts;
    time.bytes = static_cast<uint64_t>(memory.busy * time.bytesPerCycle);
    time.busy = static_cast<int64_t>(memory.busy);
    return time;
  }
  TimeReport counted;
  addMemory(counted, memory.dram);
  time.bytes = counted.dramBytes;
  time.bursts = counted.dramBursts;
  time.rowHits = counted.rowHits;
  time.rowMisses = counted.rowMisses;
  time.busy = counted.dramBusy;
  return time;
}

/// What the memories did; what lies at `options.memory` is counted there.
void addMemories(TimeReport& report, const SharedTime& shared, const ScheduleOptions& options) {
  const bool isFast = report.fidelity == Fidelity::kFast;
  const SharedTime::Memory& first = shared.memories[0];
  if (isFast) {
    report.dramBursts = first.bursts;
    report.dramBytes = static_cast<uint64_t>(first.busy * report.dramBytesPerCycle);
    report.dramBusy = static_cast<int64_t>(first.busy);
  } else if (!options.memory) {
    addMemory(report, first.dram);
  }
  if (shared.memories.size() > 1) report.second = timeOf(shared.memories[1], isFast);
}

/// The latency of a read, there and back, where every other one has to open a row.
int64_t readLatency(const Dram& dram) {
  const DramTiming& t = dram.timing();
  const int64_t controller =
      valueOf(Timing::kControllerLatency) * t.clockNumerator / (1000 * t.clockDenominator);
  return dram.toNpu(t.readLatency + t.rcd / 2 + t.burstCycles + controller) +
         valueOf(Timing::kFabricLatency);
}

} // namespace

std::string_view fidelityName(Fidelity fidelity) {
  constexpr std::string_view kNames[] = {"fast", "accurate", "exact"};
  return kNames[static_cast<int>(fidelity)];
}
std::string_view stallName(Stall stall) {
  constexpr std::string_view kNames[] = {"none", "queue", "semaphore", "bank", "dram", "core"};
  return kNames[static_cast<int>(stall)];
}
Stall InstructionTime::stall() const {
  const auto most = std::max_element(stalls.begin() + 1, stalls.end());
  return *most > 0 ? static_cast<Stall>(most - stalls.begin()) : Stall::kNone;
}

namespace {

/// The first page behind so many bytes.
uint64_t pageBehind(uint64_t base, uint64_t bytes) {
  return base + (bytes + kPage - 1) / kPage * kPage;
}

/// Regions in turn, each in the memory that `isSecond` says of it; where that one ends.
template <typename IsSecond>
uint64_t place(const Binary& binary, Placement& placement, IsSecond isSecond) {
  uint64_t second = 0;
  for (const Region& region : binary.regions) {
    uint64_t& at = isSecond(region) ? second : placement.program;
    placement.bases.push_back(at);
    at = pageBehind(at, region.bytes);
  }
  placement.end = pageBehind(placement.program, binary.code.size() * sizeof(Word));
  return second;
}

bool liesInSecond(const Configuration& configuration, const Region& region) {
  return memoryOf(configuration, region.kind) == MemoryId::kSecond;
}

} // namespace

Placement placementOf(const Binary& binary) {
  Placement placement;
  place(binary, placement, [](const Region&) { return false; });
  return placement;
}

Placement placementOf(const Configuration& configuration, const Binary& binary) {
  Placement placement;
  place(binary, placement,
        [&](const Region& region) { return liesInSecond(configuration, region); });
  return placement;
}

uint64_t secondEnd(const Configuration& configuration, const Binary& binary) {
  Placement placement;
  return place(binary, placement,
               [&](const Region& region) { return liesInSecond(configuration, region); });
}

SharedTime::SharedTime(const Configuration& configuration, const Binary& binary)
    : posts(configuration.cores() * kEngineCount) {
  memories.emplace_back(Dram(configuration));
  if (configuration.hasSecond()) memories.emplace_back(Dram(configuration, MemoryId::kSecond));
  for (Memory& memory : memories) memory.latency = readLatency(memory.dram);
  if (configuration.compressesConstants()) compressed = CompressedConstants(binary.constants);
  if (const Outcome bad = checkCores(binary, configuration)) {
    error = *bad;
    return;
  }
  code.reserve(binary.code.size());
  for (uint32_t i = 0; i < binary.code.size(); ++i) {
    Result<Insn> insn = decode(binary.code[i]);
    if (insn && !(configuration.engines() >> insn->engine & 1))
      insn = candela::npu::error("'{}' has no engine {}", configuration.name,
                                 engineName(insn->engine));
    if (insn && configuration.isOutputStationary() && (insn->op == Op::kLdw || insn->op == Op::kMm))
      insn = candela::npu::error("'{}' keeps no weights: array.dataflow is output_stationary",
                                 configuration.name);
    if (insn)
      if (const Outcome bad = checkCores(*insn, configuration)) insn = *bad;
    if (!insn) {
      error = candela::npu::error("{}instruction {}: {}{}", binary.coreText(i), i, binary.origin(i),
                                  insn.message());
      return;
    }
    code.push_back(*insn);
  }
}

Schedule::Schedule(const Configuration& configuration, const Binary& binary,
                   const ScheduleOptions& options)
    : configuration_(configuration), binary_(binary), options_(options),
      own_(std::make_unique<SharedTime>(configuration, binary)), shared_(*own_), core_(0),
      end_(static_cast<uint32_t>(binary.code.size())),
      placement_(options.placement ? *options.placement : placementOf(configuration, binary)),
      byBeat_(configuration[key::kDmaBeatBytes]), counting_(configuration, binary), state_(0, end_),
      isCounting_(options.isCounting) {
  start();
}

Schedule::Schedule(const Configuration& configuration, const Binary& binary,
                   const ScheduleOptions& options, SharedTime& shared, size_t core)
    : configuration_(configuration), binary_(binary), options_(options), shared_(shared),
      core_(core), end_(binary.codeOf(core).first + binary.codeOf(core).count),
      placement_(options.placement ? *options.placement : placementOf(configuration, binary)),
      byBeat_(configuration[key::kDmaBeatBytes]), counting_(configuration, binary),
      state_(binary.codeOf(core).first, end_), isCounting_(options.isCounting) {
  start();
}

void Schedule::start() {
  shared_.cores.push_back(this);
  if (shared_.error) return fail(*shared_.error);
  lineTags_.assign(static_cast<size_t>(valueOf(Timing::kFetchBuffer)), -1);
  lineReady_.assign(static_cast<size_t>(valueOf(Timing::kFetchBuffer)), 0);
  report_.fidelity = options_.fidelity;
  if (options_.memory)
    if (Outcome bad = needOneCoreAndMemory(configuration_, "what answers bursts here is"))
      return fail(*std::move(bad));
  report_.dramBytesPerCycle = shared_.memories[0].dram.bytesPerCycle();
  fetchPerByte_ = 1 / report_.dramBytesPerCycle;
  processes_[0].event = 0;
}

void Schedule::fail(Error error) {
  if (!error_) error_ = std::move(error);
  for (Process& process : processes_) process.event = kNever;
}

int Schedule::next() const {
  int best = -1;
  int64_t event = kNever;
  for (int engine = 0; engine < kEngineCount; ++engine) {
    const int64_t at = processes_[static_cast<size_t>(engine)].event;
    if (at >= event) continue;
    event = at;
    best = engine;
  }
  return best;
}

int64_t Schedule::nextEvent() const {
  int64_t event = kNever;
  for (const Process& process : processes_) event = std::min(event, process.event);
  return event;
}

void Schedule::step(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  if (++shared_.events > options_.maxEvents)
    return fail(error("more than {} words and bursts", options_.maxEvents));
  if (pending_) flush(p.event);
  if (engine == 0) return control();
  switch (p.state) {
  case State::kReady: return begin(engine);
  case State::kMoves:
    return options_.fidelity == Fidelity::kAccurate ? moveBurst(engine) : moveChunk(engine);
  case State::kRuns: return retire(engine);
  default: p.event = kNever; return;
  }
}

// ---- Engines

/// Lets an engine begin what is at the head of its queue, if it may.
void Schedule::wake(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  if ((p.state != State::kIdle && p.state != State::kWaits) || p.queue.empty()) return;
  const Entry& entry = p.queue.front();
  if (p.state == State::kIdle) {
    const Insn& insn = entry.operation.insn;
    p.now = {};
    p.now.instruction = entry.instruction;
    p.now.core = static_cast<uint8_t>(core_);
    p.now.engine = static_cast<uint8_t>(engine);
    p.now.op = insn.op;
    p.now.waitSemaphore = insn.waitSemaphore;
    p.now.waitCount = insn.waitCount;
    p.now.signalSemaphore = insn.signalSemaphore;
    p.now.signalCount = insn.signalCount;
    p.now.stalls[static_cast<size_t>(Stall::kQueue)] = std::max<int64_t>(0, entry.arrival - p.free);
    p.state = State::kWaits;
  }
  int64_t visible = 0;
  if (!takeTokens(entry.operation.insn, p.now, visible)) return;
  const int64_t ready = std::max(p.free, entry.arrival);
  p.event = std::max(ready, visible);
  const Stall by = p.now.op == Op::kAwait ? Stall::kCore : Stall::kSemaphore;
  p.now.stalls[static_cast<size_t>(by)] = p.event - ready;
  p.state = State::kReady;
}

const Schedule::Token* Schedule::awaitedBy(const Insn& insn) const {
  static constexpr Token kAlways{0, 0};
  const int64_t events = insn.values[field::await::kEvents];
  if (events == 0) return &kAlways;
  const auto& posts = shared_.posts[static_cast<size_t>(
      insn.values[field::await::kCore] * kEngineCount + insn.values[field::await::kOf])];
  if (static_cast<int64_t>(posts.size()) < events) return nullptr;
  return &posts[static_cast<size_t>(events) - 1];
}

/// Takes the tokens of an instruction, and meets the event of an await, where all is there.
bool Schedule::takeTokens(const Insn& insn, InstructionTime& now, int64_t& visible) {
  std::deque<Token>& tokens = semaphores_[now.waitSemaphore];
  if (tokens.size() < now.waitCount) return false;
  if (insn.op == Op::kAwait) {
    const Token* const event = awaitedBy(insn);
    if (!event) return false;
    visible = std::max(visible, event->cycle);
    if (insn.values[field::await::kEvents]) now.awaited = event->sequence;
  }
  for (int i = 0; i < now.waitCount; ++i) {
    visible = std::max(visible, tokens.front().cycle);
    now.after[static_cast<size_t>(i)] = tokens.front().sequence;
    tokens.pop_front();
  }
  return true;
}

/// Cycles that the banks cost an engine which uses its ports for so many. Two streams that both go
/// through all banks step out of each other's way after the first conflict; one that stays in few
/// meets others in its share of the banks.
int64_t Schedule::bankStall(int engine, int64_t cycles) const {
  const Process& self = processes_[static_cast<size_t>(engine)];
  const int64_t banks = configuration_[key::kScratchpadBanks];
  int64_t stall = 0;
  for (int other = 1; other < kEngineCount; ++other) {
    const Process& o = processes_[static_cast<size_t>(other)];
    if (other == engine || (o.state != State::kRuns && o.state != State::kMoves) ||
        o.until <= self.now.start)
      continue;
    const int64_t together = std::min(cycles, o.until - self.now.start);
    const int64_t stay = std::max(o.spread, self.spread) - 1;
    if (stay > 0) stall += together * o.rate / 1024 * stay / ((banks - 1) * banks);
  }
  return stall;
}

void Schedule::begin(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  const Operation& o = p.queue.front().operation;
  p.now.start = p.event;
  p.spread = 1;
  if (options_.follower) options_.follower->begin(engine, p.queue.front().instruction, o);
  if (options_.counts && hasWork(o.insn.op)) {
    p.counted = counting_.of(o);
    if (options_.onCounted) options_.onCounted(p.queue.front().instruction, p.counted);
  }
  const bool isDma = (isLoad(engine) || isStore(engine)) && hasWork(o.insn.op);
  if (isDma)
    beginMovement(engine);
  else
    beginCompute(engine);
}

void Schedule::beginCompute(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  p.cost = computeCost(configuration_, p.queue.front().operation);
  p.spread = std::gcd(p.cost.step, configuration_[key::kScratchpadBanks]);
  p.rate = 1024 * p.cost.words / std::max<int64_t>(1, p.cost.cycles());
  const int64_t stall = p.cost.words ? bankStall(engine, p.cost.stream) : 0;
  p.now.stalls[static_cast<size_t>(Stall::kBank)] = stall;
  tag(p.cost.streamTag, p.cost.stream);
  tag(p.cost.fixedTag, p.cost.fixed);
  tag(Tag::kAssumed, stall);
  if (p.cost.words) p.now.firstBeat = p.now.start + valueOf(Timing::kComputeSetup);
  p.state = State::kRuns;
  p.event = p.until = p.now.start + p.cost.cycles() + stall;
}

void Schedule::beginMovement(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  const Operation& o = p.queue.front().operation;
  Result<Movement> movement =
      Movement::of(configuration_, o, binary_, placement_.bases, &shared_.compressed);
  if (!movement) {
    const uint32_t at = p.queue.front().instruction;
    return fail(error("{}instruction {}: {}{}", binary_.coreText(at), at, binary_.origin(at),
                      movement.message()));
  }
  p.movement = *std::move(movement);
  p.memory = p.movement.isDram() ? memoryOf(o) : 0;
  const Dram& dram = shared_.memories[p.memory].dram;
  if (p.movement.isStore() && dram.timing().isFlash) {
    const uint32_t at = p.queue.front().instruction;
    return fail(error("{}instruction {}: {}it writes to second, {}, which is flash",
                      binary_.coreText(at), at, binary_.origin(at), dram.timing().name));
  }
  p.now.memory = static_cast<uint8_t>(p.memory);
  p.now.memoryBytes = p.movement.isDram() ? p.movement.farBytes() : 0;
  p.now.expandedBytes = p.movement.expandedBytes();
  const int64_t port = p.movement.portCycles();
  const double memory = p.movement.isDram()
                            ? memoryCycles(dram, configuration_, p.movement.farRuns(),
                                           p.movement.farRun(), p.movement.farStep())
                            : 0;
  p.now.bytes = p.movement.isStore() ? p.movement.farBytes() : p.movement.nearBytes();
  p.rate = memory > static_cast<double>(port)
               ? static_cast<int64_t>(1024.0 * static_cast<double>(port) / memory)
               : 1024;
  p.now.stalls[static_cast<size_t>(Stall::kBank)] = bankStall(engine, port);
  if (p.movement.isDram())
    beginTransfer(p, memory);
  else
    beginWithinScratchpad(p);
}

void Schedule::beginWithinScratchpad(Process& p) {
  const int64_t setup = valueOf(Timing::kDmaSetup), pipeline = valueOf(Timing::kDmaPipeline);
  const int64_t port = p.movement.portCycles();
  const int64_t stall = p.now.stalls[static_cast<size_t>(Stall::kBank)];
  const int64_t reading = p.now.op == Op::kCopy ? valueOf(Timing::kDmaRead) : 0;
  if (p.now.op == Op::kCopy) p.now.firstBeat = p.now.start + setup;
  const int64_t inner = options_.fidelity == Fidelity::kFast
                            ? port + reading
                            : cyclesWithin(configuration_, p.movement);
  // cyclesWithin follows each word, so they count against the limit as bursts do
  if (options_.fidelity == Fidelity::kAccurate) shared_.events += static_cast<uint64_t>(port);
  tag(timingConstant(Timing::kDmaSetup).tag, setup + pipeline);
  tag(Tag::kSpec, inner);
  tag(Tag::kAssumed, stall);
  p.state = State::kRuns;
  p.event = p.until = p.now.start + setup + inner + pipeline + stall;
}

void Schedule::beginTransfer(Process& p, double memory) {
  const int64_t setup = valueOf(Timing::kDmaSetup);
  const int64_t busiest = std::max(p.movement.portCycles(), static_cast<int64_t>(memory));
  p.until = p.now.start + setup + busiest + shared_.memories[p.memory].latency;
  p.perByte = memory / static_cast<double>(p.movement.farBytes());
  p.written = shared_.memories[p.memory].written;
  p.completions.assign(static_cast<size_t>(configuration_[key::kDmaOutstanding]), 0);
  p.burst = 0;
  p.last = p.issued = p.arrived = 0;
  p.isLast = false;
  p.port = p.now.start + setup + p.now.stalls[static_cast<size_t>(Stall::kBank)];
  p.state = State::kMoves;
  p.event = p.now.start + setup;
  if (options_.fidelity == Fidelity::kFast) return;
  p.sent.assign(static_cast<size_t>(valueOf(Timing::kDmaRequests)), p.event);
  lookAhead(p);
  if (p.movement.isStore())
    p.event = sendUntil(p, p.event);
  else
    p.landing.begin(configuration_, p.movement, p.port);
}

/// Finds the next burst, and in how many cycles its data crosses the channel's port: byte a of the
/// memory has its lane.
void Schedule::lookAhead(Process& p) const {
  p.ahead = p.movement.next(configuration_[key::kDmaBurstBytes]);
  const auto first = static_cast<int64_t>(p.ahead.address), last = first + p.ahead.bytes - 1;
  p.beats = configuration_[key::kDmaBeatBytes] >= configuration_[key::kDmaBurstBytes]
                ? 1
                : byBeat_.quotient(last) - byBeat_.quotient(first) + 1;
}

/// Lets a store ask for its next burst from cycle `asked` on, once its words were read and fewer
/// than dma.requests bursts before it have beats left. Returns when the memory has it: of one beat
/// with its request, which its beat follows two cycles later; of more, later by as many.
int64_t Schedule::sendUntil(Process& p, int64_t asked) {
  p.port += p.ahead.port;
  // of dma.requests bursts before
  int64_t& sent = p.sent[inRing(p.burst, p.sent.size())];
  const int64_t before = p.sent[inRing(p.burst + p.sent.size() - 1, p.sent.size())];
  p.asked = std::max({asked, p.port - 1 + valueOf(Timing::kDmaRead), sent});
  sent = std::max(p.asked + 1, before) + p.beats;
  return sent - 2;
}

/// Moves one burst of a transfer: of a load it is asked for now, of a store it was read and is sent
/// now.
void Schedule::moveBurst(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  if (p.isLast) return endMovement(engine);
  const int64_t there = valueOf(Timing::kFabricLatency) / 2,
                back = valueOf(Timing::kFabricLatency) - there;
  const int64_t now = p.event;
  const bool isStore = p.movement.isStore();
  // A channel takes data, and answers to what it wrote, in order and of one beat in a cycle; data
  // from when all of its burst is at the memory's port.
  const int64_t answer =
      access(p.memory, now + there, p.ahead.address, p.ahead.bytes, isStore, engine) + back;
  p.arrived = std::max(p.arrived + 1, answer) + (isStore ? 0 : p.beats - 1);
  if (p.now.firstBeat < 0)
    p.now.firstBeat = isStore ? p.asked + valueOf(Timing::kDmaRead) : p.arrived - p.beats;
  p.completions[inRing(p.burst++, p.completions.size())] = p.arrived;
  if (!isStore) land(p);
  p.isLast = p.movement.isDone();
  if (p.isLast) {
    p.event = isStore ? p.arrived : p.landing.end() + pipelineOf(p);
    return;
  }
  lookAhead(p);
  const int64_t asked = std::max((isStore ? p.asked : now) + valueOf(Timing::kDmaIssue),
                                 p.completions[inRing(p.burst, p.completions.size())]);
  p.event = isStore ? sendUntil(p, asked) : std::max(asked, p.landing.roomFor(p.movement, p.ahead));
}

int64_t Schedule::pipelineOf(const Process& p) {
  const int64_t expand = p.movement.expandedBytes() ? valueOf(Timing::kExpandPipeline) : 0;
  return valueOf(Timing::kDmaPipeline) + expand;
}

/// Lands a load's burst, beat by beat, the last one now.
void Schedule::land(Process& p) const {
  if (p.beats == 1) return p.landing.arrive(p.arrived, p.ahead.port);
  const int64_t beat = configuration_[key::kDmaBeatBytes],
                before = p.movement.asked() - p.ahead.bytes;
  int64_t end =
      // of the first beat, in the burst
      beat - static_cast<int64_t>(p.ahead.address % static_cast<uint64_t>(beat));
  for (int64_t left = p.beats, from = 0; left-- > 0; from = end, end += beat) {
    end = std::min(end, p.ahead.bytes);
    p.landing.arrive(p.arrived - left, p.movement.wordsOf(before + from, end - from));
  }
}

/// Moves some of a transfer in closed form: the bus serves in the order of asking.
void Schedule::moveChunk(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  Memory& memory = shared_.memories[p.memory];
  if (p.issued == p.movement.farBytes()) return endMovement(engine);
  const int64_t now = p.event, bytes = std::min(kChunk, p.movement.farBytes() - p.issued);
  const double part = static_cast<double>(bytes);
  const auto port = static_cast<int64_t>(part * static_cast<double>(p.movement.portCycles()) /
                                             static_cast<double>(p.movement.farBytes()) +
                                         0.5);
  const int64_t burst = std::min(configuration_[key::kDmaBurstBytes], p.movement.farRun());
  const int64_t beat = std::min(configuration_[key::kDmaBeatBytes], burst);
  const int64_t window = std::max<int64_t>(1, configuration_[key::kDmaOutstanding]) * burst;
  const int64_t asking = std::max(
      (bytes + beat - 1) / beat * valueOf(Timing::kDmaIssue),
      p.movement.isStore() ? 0
                           : static_cast<int64_t>(part * static_cast<double>(memory.latency) /
                                                  static_cast<double>(window)));
  // A row opens behind the bursts that are under way: what they do not hide is waited for.
  const DramTiming& t = memory.dram.timing();
  const int64_t hidden = window / std::max(burst, memory.dram.granule()) * t.burstCycles;
  const int64_t shown =
      p.movement.isStore() ? 0 : memory.dram.toNpu(std::max<int64_t>(0, t.rp + t.rcd - hidden));
  const double rows = part / static_cast<double>(t.rowBytes * t.groups * memory.dram.channels());
  const auto opening = static_cast<int64_t>(rows * static_cast<double>(shown) + 0.5);
  p.issued += bytes;
  const double bus = part * p.perByte;
  const bool turns = p.movement.isStore() && memory.hasRead;
  const double turning = turns ? turningCycles(memory.dram, configuration_, part) : 0;
  memory.hasRead = !p.movement.isStore();
  memory.free = std::max(memory.free, static_cast<double>(now)) + bus + turning;
  if (p.movement.isStore()) memory.written += bus + turning;
  // Writes also go together: reads that wait for an answer, not for the bus, wait for their end
  // too.
  const double written = memory.written - std::exchange(p.written, memory.written);
  const int64_t still = p.movement.isStore() ? 0 : static_cast<int64_t>(written);
  memory.busy += bus;
  memory.bursts += static_cast<uint64_t>((bytes + burst - 1) / burst);
  const auto served = static_cast<int64_t>(memory.free + 0.5);
  const int64_t next = std::max(now + std::max(port, asking + still), served) + opening;
  if (p.movement.isStore()) {
    p.port = std::max(p.port, now) + port;
    p.last = std::max({p.last, p.port + valueOf(Timing::kFabricLatency), served});
  } else {
    p.port = std::max(p.port + port, std::max(served, now + asking + still) + memory.latency);
    p.last = p.port + pipelineOf(p);
  }
  p.event = p.issued == p.movement.farBytes() ? p.last : next;
}

void Schedule::endMovement(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  const int64_t channel = valueOf(Timing::kDmaSetup) + valueOf(Timing::kDmaPipeline),
                took = p.event - p.now.start;
  const int64_t bank = p.now.stalls[static_cast<size_t>(Stall::kBank)];
  const int64_t assumed = valueOf(Timing::kFabricLatency) + bank;
  p.now.stalls[static_cast<size_t>(Stall::kDram)] =
      std::max<int64_t>(0, took - channel - p.movement.portCycles() - assumed);
  tag(timingConstant(Timing::kDmaSetup).tag, std::min(took, channel));
  tag(timingConstant(Timing::kFabricLatency).tag, std::clamp<int64_t>(took - channel, 0, assumed));
  tag(Tag::kSpec, std::max<int64_t>(0, took - channel - assumed));
  retire(engine);
}

void Schedule::retire(int engine) {
  Process& p = processes_[static_cast<size_t>(engine)];
  p.now.done = p.free = p.event;
  p.event = kNever;
  p.state = State::kIdle;
  if (options_.follower)
    options_.follower->end(engine, p.now.instruction, p.queue.front().operation);
  emit(p.now);
  const Insn& insn = p.queue.front().operation.insn;
  count(engine, insn.mark, hasWork(insn.op) ? &p.counted : nullptr);
  post(engine, insn, p.now);
  p.queue.pop_front();
  const InstructionTime ended = p.now;
  signal(ended);
  wake(engine);
  if (blockedSince_ >= 0 && processes_[0].event == kNever) processes_[0].event = ended.done;
}

/// Counts the event of a post, and lets all cores look for it.
void Schedule::post(int engine, const Insn& insn, const InstructionTime& ended) {
  if (insn.op != Op::kPost) return;
  shared_.posts[core_ * kEngineCount + static_cast<size_t>(engine)].push_back(
      {ended.done + configuration_[key::kCoresPostCycles], ended.sequence});
  for (Schedule* const core : shared_.cores) core->wakeAwaiting(ended.done);
}

void Schedule::wakeAwaiting(int64_t now) {
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (const Process& p = processes_[static_cast<size_t>(engine)];
        p.state == State::kWaits && p.now.op == Op::kAwait)
      wake(engine);
  Process& own = processes_[0];
  if (blockedSince_ >= 0 && own.event == kNever) own.event = now;
}

void Schedule::signal(const InstructionTime& ended) {
  if (ended.signalCount == 0) return;
  for (int i = 0; i < ended.signalCount; ++i)
    semaphores_[ended.signalSemaphore].push_back(
        {ended.done + valueOf(Timing::kSemaphoreLatency), ended.sequence});
  for (int other = 1; other < kEngineCount; ++other) {
    const Process& o = processes_[static_cast<size_t>(other)];
    if (o.state == State::kWaits && o.now.waitSemaphore == ended.signalSemaphore) wake(other);
  }
}

/// Adds up what an instruction that ends counts.
void Schedule::count(int engine, bool isMarked, const Counters* counted) {
  if (!options_.counts || !isCounting_) return;
  const auto add = [&](Counter counter, uint64_t by) {
    report_.counters[static_cast<size_t>(counter)] += by;
  };
  add(Counter::kInstructions, 1);
  add(instructionCounter(engine), 1);
  add(Counter::kDramReadProgram, sizeof(Word));
  add(Counter::kMarks, isMarked);
  for (size_t i = 0; counted && i < counted->size(); ++i) report_.counters[i] += (*counted)[i];
}

void Schedule::emit(InstructionTime& time) {
  time.sequence = shared_.sequence++;
  if (time.engine) { // control counted its own
    EngineTime& engine = report_.engines[time.engine];
    engine.busy += time.done - time.start;
    for (size_t i = 0; i < time.stalls.size(); ++i) engine.stalls[i] += time.stalls[i];
  }
  if (options_.onRetire) options_.onRetire(time);
}

void Schedule::flush(int64_t before) {
  if (!pending_ || pending_->done > before) return;
  InstructionTime time = *std::exchange(pending_, std::nullopt);
  emit(time);
}

std::string Schedule::deadlock() const {
  if (halted_) return {};
  std::string text = fmt::format("control stands at instruction {}", state_.pc());
  const bool isAtAwait =
      !state_.hasEnded() && shared_.code[state_.pc()].op == Op::kAwait && blockedSince_ >= 0;
  if (isAtAwait) text += ", which " + awaitText(shared_.code[state_.pc()]);
  for (int engine = 1; engine < kEngineCount; ++engine) {
    const Process& p = processes_[static_cast<size_t>(engine)];
    if (p.state != State::kWaits) continue;
    const size_t tokens = semaphores_[p.now.waitSemaphore].size();
    if (p.now.op == Op::kAwait && tokens >= p.now.waitCount)
      text += fmt::format("; {} {}, at instruction {}", engineName(engine),
                          awaitText(p.queue.front().operation.insn), p.now.instruction);
    else
      text += fmt::format("; {} waits for {} of s{}, which has {}, at instruction {}",
                          engineName(engine), p.now.waitCount, p.now.waitSemaphore, tokens,
                          p.now.instruction);
  }
  return text;
}

/// What an await waits for.
std::string Schedule::awaitText(const Insn& insn) const {
  const auto& v = insn.values;
  const auto of = static_cast<size_t>(v[field::await::kCore] * kEngineCount + v[field::await::kOf]);
  return fmt::format("awaits event {} of {} of core {}, which has {}", v[field::await::kEvents],
                     engineName(static_cast<int>(v[field::await::kOf])), v[field::await::kCore],
                     shared_.posts[of].size());
}

Result<TimeReport> Schedule::finish() {
  if (error_) return *error_;
  flush(kNever);
  if (!own_) return report_;
  if (!halted_) return error("deadlock at cycle {}: {}", processes_[0].free, deadlock());
  addMemories(report_, shared_, options_);
  return report_;
}

size_t Schedule::memoryOf(const Operation& o) const {
  const auto region = static_cast<size_t>(o.insn.values[field::load::kRegion]);
  return static_cast<size_t>(npu::memoryOf(configuration_, binary_.regions[region].kind));
}

void addMemory(TimeReport& report, const Dram& dram) {
  const Dram::Counts& counts = dram.counts();
  report.dramBursts = counts.bursts;
  report.dramBytes = counts.bursts * static_cast<uint64_t>(dram.granule());
  report.rowHits = counts.rowHits;
  report.rowMisses = counts.rowMisses;
  report.refreshes = counts.refreshes;
  report.dramBusy = dram.toNpu(static_cast<int64_t>(counts.busBusy) / dram.channels());
}

int64_t transferOverhead(const Configuration& configuration) {
  return valueOf(Timing::kDmaSetup) + valueOf(Timing::kDmaPipeline) +
         readLatency(Dram(configuration));
}
int64_t productOverhead(const Configuration& configuration) {
  const int64_t rows = configuration.rows(), skew = rows + configuration.columns() - 1;
  return rows + skew + valueOf(Timing::kMatrixPipeline);
}

namespace {

/// Sums over cores. PMU: counters are sums, cycles are those of all; snapshots are core 0's.
Result<TimeReport> reportOf(const std::vector<std::unique_ptr<Schedule>>& cores,
                            const SharedTime& shared) {
  std::string stuck;
  std::vector<TimeReport> reports;
  int64_t latest = 0;
  for (size_t core = 0; core < cores.size(); ++core) {
    Result<TimeReport> report = cores[core]->finish();
    if (!report) return report;
    if (const std::string text = cores[core]->deadlock(); !text.empty())
      stuck += fmt::format("{}core {}: {}", stuck.empty() ? "" : "; ", core, text);
    latest = std::max(latest, cores[core]->now());
    reports.push_back(*std::move(report));
  }
  if (!stuck.empty()) return error("deadlock at cycle {}: {}", latest, stuck);
  TimeReport all = reports[0];
  all.cycles = shared.end;
  all.counters[static_cast<size_t>(Counter::kCycles)] = cores[0]->counted(shared.end);
  for (size_t core = 0; core < reports.size(); ++core) {
    const TimeReport& each = reports[core];
    all.cores.push_back({each.cycles, each.engines});
    if (core == 0) continue;
    for (size_t e = 0; e < each.engines.size(); ++e) {
      all.engines[e].busy += each.engines[e].busy;
      for (size_t i = 0; i < each.engines[e].stalls.size(); ++i)
        all.engines[e].stalls[i] += each.engines[e].stalls[i];
    }
    for (size_t t = 0; t < each.tagged.size(); ++t) all.tagged[t] += each.tagged[t];
    for (size_t i = 0; i < each.counters.size(); ++i)
      if (i != static_cast<size_t>(Counter::kCycles)) all.counters[i] += each.counters[i];
  }
  addMemories(all, shared, {});
  return all;
}

/// The core with the earliest event goes on, of several the lowest: so accesses come to the memory
/// in the order of their cycles.
Result<TimeReport> timeOfCores(const Configuration& configuration, const Binary& binary,
                               const ScheduleOptions& options) {
  SharedTime shared(configuration, binary);
  if (shared.error) return *shared.error;
  std::vector<std::unique_ptr<Schedule>> cores;
  for (size_t core = 0; core < binary.coreCount(); ++core)
    cores.push_back(std::make_unique<Schedule>(configuration, binary, options, shared, core));
  for (;;) {
    Schedule* first = nullptr;
    int64_t event = Schedule::kNever;
    for (const auto& core : cores)
      if (const int64_t at = core->nextEvent(); at < event) {
        event = at;
        first = core.get();
      }
    if (!first || first->hasFailed()) break;
    first->step(first->next());
    if (first->hasFailed()) break;
  }
  return reportOf(cores, shared);
}

} // namespace

Result<TimeReport> timeOf(const Configuration& configuration, const Binary& binary,
                          const ScheduleOptions& options) {
  if (configuration.cores() > 1) {
    if (options.fidelity == Fidelity::kExact || options.memory || options.follower)
      return error("'{}': cores.count = {}: fast and accurate time have several cores",
                   configuration.name, configuration.cores());
    return timeOfCores(configuration, binary, options);
  }
  if (options.fidelity == Fidelity::kExact)
    return exact::Machine(configuration, binary, options).run();
  Schedule schedule(configuration, binary, options);
  for (int engine = schedule.next(); engine >= 0; engine = schedule.next()) schedule.step(engine);
  return schedule.finish();
}

} // namespace candela::npu
