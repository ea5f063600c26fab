// The control processor: fetch, loops, descriptors, and what it sends to the queues.
#include <algorithm>

#include "simulator/error.h"
#include "simulator/timing/schedule.h"

namespace candela::npu {
namespace {

constexpr uint32_t kPmuControl = 0x30;

} // namespace

int64_t Schedule::access(size_t memory, int64_t cycle, uint64_t address, int64_t bytes,
                         bool isWrite, int requester) {
  return options_.memory ? options_.memory->access(cycle, address, bytes, isWrite, requester)
                         : shared_.memories[memory].dram.access(
                               cycle, address, bytes, isWrite,
                               static_cast<int>(core_) * kEngineCount + requester);
}

int64_t Schedule::readMemory(int64_t cycle, uint64_t address, int64_t bytes, double perByte,
                             int requester) {
  if (options_.fidelity == Fidelity::kAccurate) {
    const int64_t there = valueOf(Timing::kFabricLatency) / 2,
                  back = valueOf(Timing::kFabricLatency) - there;
    return access(0, cycle + there, address, bytes, false, requester) + back;
  }
  const double bus = perByte * static_cast<double>(bytes);
  SharedTime::Memory& memory = shared_.memories[0];
  memory.free = std::max(memory.free, static_cast<double>(cycle)) + bus;
  memory.busy += bus;
  ++memory.bursts;
  return static_cast<int64_t>(memory.free) + memory.latency;
}

/// Whether the word at pc is there; else the event is when it will be. Asks for those behind it.
bool Schedule::fetched() {
  Process& p = processes_[0];
  const int64_t bytes =
      std::max(configuration_[key::kDmaBurstBytes], shared_.memories[0].dram.granule());
  const int64_t line =
      static_cast<int64_t>(state_.pc()) * static_cast<int64_t>(sizeof(Word)) / bytes;
  const int64_t end = (static_cast<int64_t>(end_ * sizeof(Word)) - 1) / bytes;
  for (int64_t ahead = line; ahead <= std::min(end, line + valueOf(Timing::kFetchAhead)); ++ahead) {
    const auto slot = static_cast<size_t>(ahead) % lineTags_.size();
    if (lineTags_[slot] == ahead) continue;
    lineTags_[slot] = ahead;
    lineReady_[slot] =
        readMemory(p.event, placement_.program + static_cast<uint64_t>(ahead * bytes), bytes,
                   fetchPerByte_, 0);
  }
  const int64_t ready = lineReady_[static_cast<size_t>(line) % lineTags_.size()];
  if (ready <= p.event) return true;
  report_.engines[0].stalls[static_cast<size_t>(Stall::kDram)] += ready - p.event;
  p.event = ready;
  return false;
}

void Schedule::control() {
  Process& p = processes_[0];
  if (halted_) {
    p.event = kNever;
    return;
  }
  if (state_.hasEnded()) return fail(error("the program ends without halt"));
  if (blockedSince_ < 0 && !fetched()) return;
  const Insn& insn = shared_.code[state_.pc()];
  const std::optional<Blockage> blockage = insn.engine ? blockageOfQueue(insn) : blockageOf(insn);
  if (blockage) return block(*blockage);
  const StallCycles stalls = unblock();
  if (options_.follower) options_.follower->word();
  const int64_t word = valueOf(Timing::kControlWord);
  report_.engines[0].busy += word;
  tag(timingConstant(Timing::kControlWord).tag, word);
  if (insn.engine)
    dispatch(insn);
  else
    runOwn(insn, stalls);
  if (error_) return;
  p.free = p.event;
  p.event += word;
  if (halted_)
    endProgram();
  else
    state_.advance();
}

std::optional<Schedule::Blockage> Schedule::blockageOfQueue(const Insn& insn) const {
  if (processes_[insn.engine].queue.size() < configuration_.queueDepth()) return std::nullopt;
  return Blockage{Stall::kQueue, kNever};
}

std::optional<Schedule::Blockage> Schedule::blockageOf(const Insn& insn) const {
  const bool drains = insn.op == Op::kHalt || insn.op == Op::kFence;
  const auto mask =
      insn.op == Op::kHalt ? ~0u : static_cast<uint32_t>(insn.values[field::fence::kMask]);
  for (int engine = 1; drains && engine < kEngineCount; ++engine)
    if ((mask >> engine & 1) && !processes_[static_cast<size_t>(engine)].queue.empty())
      return Blockage{Stall::kQueue, kNever};
  const std::deque<Token>& tokens = semaphores_[insn.waitSemaphore];
  if (tokens.size() < insn.waitCount) return Blockage{Stall::kSemaphore, kNever};
  int64_t last = insn.waitCount ? tokens[insn.waitCount - 1u].cycle : 0;
  Stall by = Stall::kSemaphore;
  if (insn.op == Op::kAwait) {
    const Token* const event = awaitedBy(insn);
    if (!event) return Blockage{Stall::kCore, kNever};
    if (event->cycle > last) by = Stall::kCore;
    last = std::max(last, event->cycle);
  }
  if (last <= processes_[0].event) return std::nullopt;
  return Blockage{by, last};
}

void Schedule::block(const Blockage& blockage) {
  Process& p = processes_[0];
  if (blockedSince_ < 0) {
    blockedSince_ = p.event;
    blockedBy_ = blockage.by;
  }
  p.event = blockage.until;
}

StallCycles Schedule::unblock() {
  StallCycles stalls{};
  if (blockedSince_ < 0) return stalls;
  const auto by = static_cast<size_t>(blockedBy_);
  stalls[by] = processes_[0].event - blockedSince_;
  report_.engines[0].stalls[by] += stalls[by];
  blockedSince_ = -1;
  return stalls;
}

void Schedule::runOwn(const Insn& insn, const StallCycles& stalls) {
  flush(kNever);
  const Process& p = processes_[0];
  InstructionTime time;
  time.instruction = state_.pc();
  time.core = static_cast<uint8_t>(core_);
  time.op = insn.op;
  time.start = p.event;
  time.done = p.event + valueOf(Timing::kControlWord);
  time.stalls = stalls;
  time.waitSemaphore = insn.waitSemaphore;
  time.waitCount = insn.waitCount;
  time.signalSemaphore = insn.signalSemaphore;
  time.signalCount = insn.signalCount;
  int64_t visible = 0;
  takeTokens(insn, time, visible);
  pending_ = time;
  controlInstruction(insn);
  if (error_) return;
  count(0, insn.mark, nullptr);
  if (insn.signalCount || insn.op == Op::kPost) { // who waits names its sequence
    flush(kNever);
    time.sequence = shared_.sequence - 1;
    post(0, insn, time);
    signal(time);
  }
}

/// When the memories have all writes of a program that halts in that cycle.
int64_t Schedule::memoriesEnd(int64_t halt) {
  const bool isFast = options_.fidelity == Fidelity::kFast;
  int64_t end = options_.memory && !isFast ? options_.memory->drain(halt) : halt;
  for (SharedTime::Memory& memory : shared_.memories) {
    if (isFast)
      end = std::max(end, static_cast<int64_t>(memory.free + 0.5));
    else if (!options_.memory)
      end = std::max(end, memory.dram.drain(halt));
  }
  return end;
}

void Schedule::endProgram() {
  Process& p = processes_[0];
  // Of several cores the last one waits for the memories to have all writes.
  const bool isLast = ++shared_.halted == (own_ ? 1 : shared_.cores.size());
  report_.cycles = p.event;
  if (isLast) report_.cycles = std::max(report_.cycles, memoriesEnd(p.event));
  shared_.end = std::max(shared_.end, report_.cycles);
  report_.counters[static_cast<size_t>(Counter::kCycles)] = counted(report_.cycles);
  p.event = kNever;
}

void Schedule::controlInstruction(const Insn& insn) {
  const auto& v = insn.values;
  switch (insn.op) {
  case Op::kHalt: halted_ = true; break;
  case Op::kSnapshot: {
    Counters& slot = report_.snapshots[static_cast<size_t>(v[field::snapshot::kSlot])];
    slot = report_.counters;
    slot[static_cast<size_t>(Counter::kCycles)] = counted(processes_[0].event);
    break;
  }
  case Op::kConfig:
    if (v[field::config::kOffset] == kPmuControl) {
      countedBefore_ = (v[field::config::kValue] & 2) ? 0 : counted(processes_[0].event);
      isCounting_ = v[field::config::kValue] & 1;
      countedFrom_ = processes_[0].event;
      if (v[field::config::kValue] & 2) report_.counters = {};
    }
    break;
  default:
    if (const Outcome bad = state_.apply(insn))
      fail(error("instruction {}: {}", state_.pc(), bad->message));
  }
}

void Schedule::dispatch(const Insn& insn) {
  Result<Operation> operation = state_.operation(insn);
  if (!operation)
    return fail(error("{}instruction {}: {}{}", binary_.coreText(state_.pc()), state_.pc(),
                      binary_.origin(state_.pc()), operation.message()));
  Process& engine = processes_[insn.engine];
  engine.queue.push_back(
      {*std::move(operation), state_.pc(), processes_[0].event + valueOf(Timing::kQueueLatency)});
  wake(insn.engine);
}

} // namespace candela::npu
