#include "simulator/func/machine.h"

#include <algorithm>

#include "simulator/isa/assembler.h"

namespace candela::npu {
namespace {

constexpr size_t kMaxLoops = 4;
constexpr uint64_t kInstructionCost = 4096; ///< in operations: a loop over nothing also ends

} // namespace

Machine::Machine(const Configuration& configuration, const FunctionalOptions& options,
                 const Binary& binary, const std::vector<Insn>& code, size_t core, Memory& memory,
                 SharedRun& shared, bool isCounting)
    : configuration_(configuration), options_(options), binary_(binary), code_(code), core_(core),
      end_(binary.codeOf(core).first + binary.codeOf(core).count), memory_(memory), shared_(shared),
      kernels_(options.plainKernels ? plainKernels() : bestKernels()),
      counting_(configuration, binary), pc_(binary.codeOf(core).first), isCounting_(isCounting) {
  const Clock none(slotOf(configuration.cores(), 0));
  clocks_.fill(none);
  dispatchOrders_.push_back(none);
  if (options.onRetire) memory.record();
}

std::string Machine::describe(uint32_t instruction) const {
  const std::string text =
      fmt::format("{}instruction {}", binary_.coreText(instruction), instruction);
  if (instruction >= code_.size()) return text;
  return fmt::format("{}: {}{}", text, binary_.origin(instruction), insnText(code_[instruction]));
}

/// False: a fault, which then stands in the report.
template <typename Work> bool Machine::guarded(Work work) {
  if (run_.fault) return false;
  try {
    work();
  } catch (const FaultSignal& fault) {
    run_.fault = Fault{fault.kind, current_, fmt::format("{}: {}", describe(current_), fault.text)};
  }
  return !run_.fault;
}

void Machine::stopStuck(const std::string& text) {
  guarded([&] {
    current_ = pc_;
    raise(FaultKind::kDeadlock, "nobody can go on; {}", text);
  });
}

bool Machine::word() {
  bool moved = false;
  guarded([&] { moved = controlStep(); });
  if (!moved) stopStuck(standing());
  return !run_.fault;
}

bool Machine::advance(int engine) {
  if (!run_.fault && !isReady(engine)) stopStuck(standing());
  return guarded([&] { execute(engine); });
}

bool Machine::goOn() {
  bool moved = false;
  guarded([&] {
    while (!halted_ && round()) moved = true;
  });
  return moved;
}

/// Whether anything could go on.
bool Machine::round() {
  bool moved = false;
  while (!halted_ && controlStep()) moved = true;
  // What needs no token first: tokens are then taken when as many as can be there are there.
  for (int engine = 1; engine < kEngineCount; ++engine)
    while (!queues_[engine].empty() && queues_[engine].front().insn.waitCount == 0 &&
           mayBegin(queues_[engine].front().insn)) {
      execute(engine);
      moved = true;
    }
  if (moved) return true;
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (isReady(engine)) {
      execute(engine);
      return true;
    }
  return false;
}

/// Whether tokens and events are there.
bool Machine::mayBegin(const Insn& insn) const {
  if (semaphores_[insn.waitSemaphore].count() < insn.waitCount) return false;
  if (insn.op != Op::kAwait) return true;
  const size_t slot = slotOf(static_cast<size_t>(insn.values[field::await::kCore]),
                             static_cast<int>(insn.values[field::await::kOf]));
  return shared_.posts[slot].size() >= static_cast<size_t>(insn.values[field::await::kEvents]);
}

bool Machine::isReady(int engine) const {
  return !queues_[engine].empty() && mayBegin(queues_[engine].front().insn);
}

bool Machine::takeToken(const Insn& insn, int engine) {
  if (insn.waitCount == 0) return true;
  Semaphore& semaphore = semaphores_[insn.waitSemaphore];
  if (semaphore.count() < insn.waitCount) return false;
  Clock& clock = clocks_[engine];
  if (semaphore.lastWaiter >= 0 && semaphore.lastWaiter != engine &&
      clock[slotOf(core_, semaphore.lastWaiter)] < semaphore.lastWait)
    raise(FaultKind::kSemaphore, "waits for s{} as {} does, without an order between them",
          insn.waitSemaphore, engineName(semaphore.lastWaiter));
  join(clock, semaphore.take(insn.waitCount));
  semaphore.lastWaiter = engine;
  semaphore.lastWait = clock[slotOf(core_, engine)] + 1; // this very instruction
  return true;
}

/// Orders an await behind its event, and keeps what a post is behind.
void Machine::meetCores(const Insn& insn, int engine) {
  if (insn.op == Op::kPost) shared_.posts[slotOf(core_, engine)].push_back(clocks_[engine]);
  if (insn.op != Op::kAwait || insn.values[field::await::kEvents] == 0) return;
  const size_t slot = slotOf(static_cast<size_t>(insn.values[field::await::kCore]),
                             static_cast<int>(insn.values[field::await::kOf]));
  join(clocks_[engine],
       shared_.posts[slot][static_cast<size_t>(insn.values[field::await::kEvents]) - 1]);
}

void Machine::signal(const Insn& insn, int engine) {
  if (insn.signalCount == 0) return;
  Semaphore& semaphore = semaphores_[insn.signalSemaphore];
  if (semaphore.count() + insn.signalCount > kSemaphoreMax)
    raise(FaultKind::kSemaphore, "s{} has {}, {} more are above {}", insn.signalSemaphore,
          semaphore.count(), insn.signalCount, kSemaphoreMax);
  semaphore.signal(clocks_[engine], insn.signalCount);
}

void Machine::retire(const Insn& insn, int engine, uint32_t instruction) {
  signal(insn, engine);
  if (options_.onRetire) {
    RetireRecord record{};
    record[trace::kSequence] = shared_.retired++;
    record[trace::kInstruction] = instruction;
    record[trace::kEngine] = static_cast<uint64_t>(engine);
    record[trace::kOpcode] = static_cast<uint64_t>(insn.op);
    std::tie(record[trace::kBytes], record[trace::kCrc]) = memory_.takeWritten();
    options_.onRetire(record);
  }
  if (!isCounting_) return;
  Counters& counters = run_.counters;
  ++counters[static_cast<int>(Counter::kInstructions)];
  ++counters[static_cast<int>(instructionCounter(engine))];
  counters[static_cast<int>(Counter::kDramReadProgram)] += sizeof(Word);
  if (insn.mark) ++counters[static_cast<int>(Counter::kMarks)];
}

void Machine::execute(int engine) {
  const Entry& entry = queues_[engine].front();
  current_ = entry.instruction;
  Clock& clock = clocks_[engine];
  join(clock, dispatchOrders_[entry.order]);
  takeToken(entry.insn, engine);
  const size_t slot = slotOf(core_, engine);
  ++clock[slot];
  meetCores(entry.insn, engine);
  if (hasWork(entry.insn.op)) {
    std::vector<Access>& accesses = shared_.accesses;
    accesses.push_back({entry.instruction, clock[slot], static_cast<uint8_t>(slot)});
    Execution execution{configuration_,
                        kernels_,
                        memory_,
                        matrix_,
                        shared_.budget,
                        entry.insn,
                        entry.d,
                        entry.second,
                        {static_cast<AccessId>(accesses.size() - 1),
                         static_cast<uint8_t>(slot),
                         &clock,
                         &accesses,
                         {}}};
    if (isLoad(engine) || isStore(engine))
      runDma(execution);
    else if (engine == static_cast<int>(Engine::kMatrix))
      runMatrix(execution);
    else if (engine == static_cast<int>(Engine::kRequant))
      runRequant(execution);
    else
      runVector(execution);
    count(entry);
  }
  retire(entry.insn, engine, entry.instruction);
  queues_[engine].pop_front();
}

/// Behind its execution, which has found its descriptors to be some.
void Machine::count(const Entry& entry) {
  const Counters counted = counting_.of(*operationOf(entry.insn, entry.d, entry.second));
  if (options_.onCounted) options_.onCounted(entry.instruction, counted);
  if (!isCounting_) return;
  for (size_t i = 0; i < counted.size(); ++i) run_.counters[i] += counted[i];
}

bool Machine::controlStep() {
  current_ = pc_;
  if (pc_ >= end_) raise(FaultKind::kInstruction, "the program ends without halt");
  if (shared_.budget < kInstructionCost)
    raise(FaultKind::kLimit, "{} operations were allowed", options_.maxOperations);
  const Insn& insn = code_[pc_];
  if (insn.engine != static_cast<int>(Engine::kControl)) {
    if (!dispatch(insn)) return false;
  } else {
    const auto idle = [&](uint32_t mask) {
      for (int engine = 1; engine < kEngineCount; ++engine)
        if ((mask >> engine & 1) && !queues_[engine].empty()) return false;
      return true;
    };
    const bool drains = insn.op == Op::kHalt || insn.op == Op::kFence;
    uint32_t mask = drains ? ~0u : 0;
    if (insn.op == Op::kFence) mask = static_cast<uint32_t>(insn.values[field::fence::kMask]);
    if (!idle(mask)) {
      controlWaits_ = "waits until engines are idle";
      return false;
    }
    if (!mayBegin(insn)) {
      controlWaits_ = waitText(insn);
      return false;
    }
    const bool isPostOrAwait = insn.op == Op::kPost || insn.op == Op::kAwait;
    if (mask || insn.signalCount || insn.waitCount || isPostOrAwait) orderControl(insn, mask);
    controlInstruction(insn);
    retire(insn, 0, pc_);
  }
  shared_.budget -= kInstructionCost;
  if (insn.op != Op::kHalt) {
    ++pc_;
    jumpBack();
  }
  return true;
}

/// Orders the control processor behind engines of the mask, tokens and events.
void Machine::orderControl(const Insn& insn, uint32_t mask) {
  Clock& clock = clocks_[0];
  const Clock before = clock;
  takeToken(insn, 0);
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (mask >> engine & 1) join(clock, clocks_[engine]);
  if (insn.signalCount || insn.waitCount || insn.op == Op::kPost) ++clock[slotOf(core_, 0)];
  meetCores(insn, 0);
  if (clock != before) dispatchOrders_.push_back(clock);
}

void Machine::jumpBack() {
  while (!loops_.empty() && pc_ == loops_.back().end) {
    if (--loops_.back().left > 0) {
      pc_ = loops_.back().begin;
      return;
    }
    loops_.pop_back();
  }
}

void Machine::controlInstruction(const Insn& insn) {
  const auto& v = insn.values;
  switch (insn.op) {
  case Op::kHalt: halted_ = true; break;
  case Op::kLoop: {
    const uint32_t begin = pc_ + 1;
    const int64_t end = begin + v[field::loop::kLength];
    const auto limit = static_cast<int64_t>(loops_.empty() ? end_ : loops_.back().end);
    if (end > limit)
      raise(FaultKind::kInstruction, "the loop ends at {}, what it lies in at {}", end, limit);
    if (loops_.size() == kMaxLoops)
      raise(FaultKind::kInstruction, "loops nest deeper than {}", kMaxLoops);
    loops_.push_back({begin, static_cast<uint32_t>(end), v[field::loop::kCount]});
    break;
  }
  case Op::kMovi:
  case Op::kAddi: {
    int32_t& x = index_[static_cast<size_t>(v[field::movi::kX])];
    const auto value = static_cast<uint32_t>(v[field::movi::kValue]);
    x = static_cast<int32_t>(insn.op == Op::kMovi ? value : static_cast<uint32_t>(x) + value);
    break;
  }
  case Op::kSetd:
    descriptors_[static_cast<size_t>(v[field::setd::kD])]
                [static_cast<size_t>(v[field::setd::kWord])] =
                    static_cast<uint64_t>(v[field::setd::kValue]);
    break;
  case Op::kSnapshot:
    run_.snapshots[static_cast<size_t>(v[field::snapshot::kSlot])] = run_.counters;
    break;
  case Op::kConfig:
    // PMU_CONTROL; the device checked that it is one for programs
    if (v[field::config::kOffset] == 0x30) {
      isCounting_ = v[field::config::kValue] & 1;
      if (v[field::config::kValue] & 2) run_.counters = {};
    }
    break;
  default: break; // nop, fence, post, await
  }
}

bool Machine::dispatch(const Insn& insn) {
  std::deque<Entry>& queue = queues_[insn.engine];
  if (queue.size() >= configuration_.queueDepth()) {
    controlWaits_ = fmt::format("waits for room in the queue of {}", engineName(insn.engine));
    return false;
  }
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  Entry entry{pc_, insn, {}, {}, dispatchOrders_.size() - 1};
  for (size_t i = 0; i < info.fields.size(); ++i) {
    const FieldInfo& field = info.fields[i];
    if (field.kind == FieldKind::kIndex)
      entry.insn.values[i - 1] += index_[static_cast<size_t>(insn.values[i])];
    if (field.kind != FieldKind::kDescriptor) continue;
    const auto d = static_cast<size_t>(insn.values[i]);
    if (field.name == "d") {
      entry.d = descriptors_[d];
      if (info.second >= 0) entry.second = descriptors_[(d + 1) % kDescriptors];
    } else {
      entry.second = descriptors_[d];
    }
  }
  queue.push_back(std::move(entry));
  return true;
}

/// What an instruction waits for that is not there.
std::string Machine::waitText(const Insn& insn) const {
  const auto tokens = static_cast<uint32_t>(semaphores_[insn.waitSemaphore].count());
  if (insn.op != Op::kAwait || tokens < insn.waitCount)
    return fmt::format("waits for {} of s{}, which has {}", insn.waitCount, insn.waitSemaphore,
                       tokens);
  const auto core = static_cast<size_t>(insn.values[field::await::kCore]);
  const int of = static_cast<int>(insn.values[field::await::kOf]);
  return fmt::format("awaits event {} of {} of core {}, which has {}",
                     insn.values[field::await::kEvents], engineName(of), core,
                     shared_.posts[slotOf(core, of)].size());
}

std::string Machine::standing() const {
  std::string text = fmt::format("control {}", halted_ ? "has halted" : controlWaits_);
  for (int engine = 1; engine < kEngineCount; ++engine) {
    if (queues_[engine].empty()) continue;
    const Entry& entry = queues_[engine].front();
    text += fmt::format("; {} {}, at {}", engineName(engine), waitText(entry.insn),
                        describe(entry.instruction));
  }
  return text;
}

} // namespace candela::npu
