#include "simulator/func/machine.h"

#include <algorithm>

#include "simulator/isa/assembler.h"

namespace candela::npu {
namespace {

constexpr size_t kMaxLoops = 4;
constexpr uint64_t kInstructionCost = 4096; ///< in operations: a loop over nothing also ends

} // namespace

Machine::Machine(const Configuration& configuration, const FunctionalOptions& options,
                 const Binary& binary, const std::vector<Insn>& code, Memory& memory,
                 bool isCounting)
    : configuration_(configuration), options_(options), binary_(binary), code_(code),
      memory_(memory), kernels_(options.plainKernels ? plainKernels() : bestKernels()),
      counting_(configuration, binary), isCounting_(isCounting), budget_(options.maxOperations) {
  if (options.onRetire) memory.record();
}

std::string Machine::describe(uint32_t instruction) const {
  const std::string text = fmt::format("instruction {}", instruction);
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

bool Machine::word() {
  return guarded([&] {
    if (!controlStep()) deadlock();
  });
}

bool Machine::advance(int engine) {
  return guarded([&] {
    if (!isReady(engine)) deadlock();
    execute(engine);
  });
}

RunReport Machine::run() {
  guarded([&] {
    while (!halted_) {
      bool moved = false;
      while (!halted_ && controlStep()) moved = true;
      // What needs no token first: tokens are then taken when as many as can be there are there.
      for (int engine = 1; engine < kEngineCount; ++engine)
        while (!queues_[engine].empty() && queues_[engine].front().insn.waitCount == 0) {
          execute(engine);
          moved = true;
        }
      if (moved) continue;
      for (int engine = 1; engine < kEngineCount && !moved; ++engine)
        if (isReady(engine)) {
          execute(engine);
          moved = true;
        }
      if (!moved && !halted_) deadlock();
    }
  });
  return std::move(run_);
}

bool Machine::isReady(int engine) const {
  if (queues_[engine].empty()) return false;
  const Insn& insn = queues_[engine].front().insn;
  return semaphores_[insn.waitSemaphore].count() >= insn.waitCount;
}

bool Machine::takeToken(const Insn& insn, int engine) {
  if (insn.waitCount == 0) return true;
  Semaphore& semaphore = semaphores_[insn.waitSemaphore];
  if (semaphore.count() < insn.waitCount) return false;
  Clock& clock = clocks_[engine];
  if (semaphore.lastWaiter >= 0 && semaphore.lastWaiter != engine &&
      clock[semaphore.lastWaiter] < semaphore.lastWait)
    raise(FaultKind::kSemaphore, "waits for s{} as {} does, without an order between them",
          insn.waitSemaphore, engineName(semaphore.lastWaiter));
  join(clock, semaphore.take(insn.waitCount));
  semaphore.lastWaiter = engine;
  semaphore.lastWait = clock[engine] + 1; // this very instruction
  return true;
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
    record[trace::kSequence] = retired_++;
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
  ++clock[engine];
  if (entry.insn.op != Op::kNop) {
    accesses_.push_back({entry.instruction, clock[engine], static_cast<uint8_t>(engine)});
    Execution execution{configuration_,
                        kernels_,
                        memory_,
                        matrix_,
                        budget_,
                        entry.insn,
                        entry.d,
                        entry.second,
                        {static_cast<AccessId>(accesses_.size() - 1),
                         static_cast<uint8_t>(engine),
                         &clock,
                         &accesses_,
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
  if (pc_ >= code_.size()) raise(FaultKind::kInstruction, "the program ends without halt");
  if (budget_ < kInstructionCost)
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
    if (semaphores_[insn.waitSemaphore].count() < insn.waitCount) {
      controlWaits_ = fmt::format("waits for {} of s{}, which has {}", insn.waitCount,
                                  insn.waitSemaphore, semaphores_[insn.waitSemaphore].count());
      return false;
    }
    Clock& clock = clocks_[0];
    const Clock before = clock;
    takeToken(insn, 0);
    for (int engine = 1; engine < kEngineCount; ++engine)
      if (mask >> engine & 1) join(clock, clocks_[engine]);
    if (insn.signalCount || insn.waitCount) ++clock[0];
    if (clock != before) dispatchOrders_.push_back(clock);
    controlInstruction(insn);
    retire(insn, 0, pc_);
  }
  budget_ -= kInstructionCost;
  if (insn.op != Op::kHalt) {
    ++pc_;
    jumpBack();
  }
  return true;
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
    const auto limit = static_cast<int64_t>(loops_.empty() ? code_.size() : loops_.back().end);
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
  default: break; // nop, fence
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

void Machine::deadlock() {
  std::string text = fmt::format("nobody can go on; control {}", controlWaits_);
  for (int engine = 1; engine < kEngineCount; ++engine) {
    if (queues_[engine].empty()) continue;
    const Entry& entry = queues_[engine].front();
    text += fmt::format("; {} waits for {} of s{}, which has {}, at {}", engineName(engine),
                        entry.insn.waitCount, entry.insn.waitSemaphore,
                        semaphores_[entry.insn.waitSemaphore].count(), describe(entry.instruction));
  }
  current_ = pc_;
  raise(FaultKind::kDeadlock, "{}", text);
}

} // namespace candela::npu
