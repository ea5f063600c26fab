// The control processor: fetch, loops, descriptors, and what it sends to the queues.
#include <algorithm>

#include "simulator/timing/schedule.h"

namespace candela::npu {
namespace {

constexpr size_t kMaxLoops = 4;
constexpr uint32_t kPmuControl = 0x30;

} // namespace

int64_t Schedule::access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                         int requester) {
  return options_.memory ? options_.memory->access(cycle, address, bytes, isWrite, requester)
                         : dram_.access(cycle, address, bytes, isWrite, requester);
}

int64_t Schedule::readMemory(int64_t cycle, uint64_t address, int64_t bytes, double perByte,
                             int requester) {
  if (options_.fidelity == Fidelity::kAccurate) {
    const int64_t there = valueOf(Timing::kFabricLatency) / 2,
                  back = valueOf(Timing::kFabricLatency) - there;
    return access(cycle + there, address, bytes, false, requester) + back;
  }
  const double bus = perByte * static_cast<double>(bytes);
  busFree_ = std::max(busFree_, static_cast<double>(cycle)) + bus;
  fastBusy_ += bus;
  ++fastBursts_;
  return static_cast<int64_t>(busFree_) + latency_;
}

/// Whether the word at pc is there; else the event is when it will be. Asks for those behind it.
bool Schedule::fetched() {
  Process& p = processes_[0];
  const int64_t bytes = std::max(configuration_[key::kDmaBurstBytes], dram_.granule());
  const int64_t line = static_cast<int64_t>(pc_) * static_cast<int64_t>(sizeof(Word)) / bytes;
  const int64_t end = (static_cast<int64_t>(code_.size() * sizeof(Word)) - 1) / bytes;
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
  if (pc_ >= code_.size()) return fail(error("the program ends without halt"));
  if (blockedSince_ < 0 && !fetched()) return;
  const Insn& insn = code_[pc_];
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
    advance();
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
  if (!insn.waitCount) return std::nullopt;
  const int64_t last = tokens[insn.waitCount - 1u].cycle;
  if (last <= processes_[0].event) return std::nullopt;
  return Blockage{Stall::kSemaphore, last};
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
  time.instruction = pc_;
  time.op = insn.op;
  time.start = p.event;
  time.done = p.event + valueOf(Timing::kControlWord);
  time.stalls = stalls;
  time.waitSemaphore = insn.waitSemaphore;
  time.waitCount = insn.waitCount;
  time.signalSemaphore = insn.signalSemaphore;
  time.signalCount = insn.signalCount;
  int64_t visible = 0;
  takeTokens(time, visible);
  pending_ = time;
  controlInstruction(insn);
  if (error_) return;
  count(0, insn.mark, nullptr);
  if (insn.signalCount) { // who waits names its sequence
    flush(kNever);
    time.sequence = sequence_ - 1;
    signal(time);
  }
}

void Schedule::endProgram() {
  Process& p = processes_[0];
  if (options_.fidelity == Fidelity::kFast)
    report_.cycles = std::max(p.event, static_cast<int64_t>(busFree_ + 0.5));
  else
    report_.cycles = options_.memory ? options_.memory->drain(p.event) : dram_.drain(p.event);
  report_.counters[static_cast<size_t>(Counter::kCycles)] = counted(report_.cycles);
  p.event = kNever;
}

void Schedule::advance() {
  ++pc_;
  while (!loops_.empty() && pc_ == loops_.back().end) {
    if (--loops_.back().left > 0) {
      pc_ = loops_.back().begin;
      break;
    }
    loops_.pop_back();
  }
}

void Schedule::controlInstruction(const Insn& insn) {
  const auto& v = insn.values;
  switch (insn.op) {
  case Op::kHalt: halted_ = true; break;
  case Op::kLoop: {
    const int64_t end = pc_ + 1 + v[field::loop::kLength];
    const auto limit = static_cast<int64_t>(loops_.empty() ? code_.size() : loops_.back().end);
    if (end > limit || loops_.size() == kMaxLoops)
      return fail(
          error("instruction {}: a loop that ends at {}, what it lies in at {}; they nest up to {}",
                pc_, end, limit, kMaxLoops));
    loops_.push_back({pc_ + 1, static_cast<uint32_t>(end), v[field::loop::kCount]});
    break;
  }
  case Op::kMovi:
  case Op::kAddi: {
    int32_t& x = index_[static_cast<size_t>(v[field::movi::kX])];
    const auto value = static_cast<uint32_t>(v[field::movi::kValue]);
    x = static_cast<int32_t>(insn.op == Op::kMovi ? value : static_cast<uint32_t>(x) + value);
    index_[0] = 0;
    break;
  }
  case Op::kSetd:
    descriptors_[static_cast<size_t>(v[field::setd::kD])]
                [static_cast<size_t>(v[field::setd::kWord])] =
                    static_cast<uint64_t>(v[field::setd::kValue]);
    break;
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
  default: break; // nop, fence
  }
}

void Schedule::dispatch(const Insn& insn) {
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  Insn sent = insn;
  static constexpr DescriptorBits kNone{};
  const DescriptorBits* d = &kNone;
  const DescriptorBits* second = &kNone;
  for (size_t i = 0; i < info.fields.size(); ++i) {
    const FieldInfo& field = info.fields[i];
    if (field.kind == FieldKind::kIndex)
      sent.values[i - 1] += index_[static_cast<size_t>(insn.values[i])];
    if (field.kind == FieldKind::kDescriptor)
      (field.name == "d" ? d : second) = &descriptors_[static_cast<size_t>(insn.values[i])];
  }
  Result<Operation> operation = operationOf(sent, *d, *second);
  if (!operation)
    return fail(error("instruction {}: {}{}", pc_, binary_.origin(pc_), operation.message()));
  Process& engine = processes_[insn.engine];
  engine.queue.push_back(
      {*std::move(operation), pc_, processes_[0].event + valueOf(Timing::kQueueLatency)});
  wake(insn.engine);
}

} // namespace candela::npu
