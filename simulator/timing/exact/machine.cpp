#include "simulator/timing/exact/machine.h"

#include <algorithm>
#include <bit>

#include "simulator/error.h"
#include "simulator/timing/exact/buildable.h"

namespace candela::npu::exact {
namespace {

constexpr int kLoad0 = static_cast<int>(npu::Engine::kLoad0);
constexpr int kStore0 = static_cast<int>(npu::Engine::kStore0);

/// Answers as the memory of a configuration does.
class DramPort : public MemoryPort {
public:
  explicit DramPort(Dram& dram) : dram_(dram) {}
  int64_t access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                 int requester) override {
    return dram_.access(cycle, address, bytes, isWrite, requester);
  }
  int64_t drain(int64_t cycle) override { return dram_.drain(cycle); }

private:
  Dram& dram_;
};

} // namespace

Machine::Machine(const Configuration& configuration, const Binary& binary,
                 const ScheduleOptions& options)
    : configuration_(configuration), binary_(binary), options_(options), dram_(configuration),
      port_(std::make_unique<DramPort>(dram_)),
      placement_(options.placement ? *options.placement : placementOf(binary)),
      counting_(configuration, binary), matrix_(configuration), requant_(configuration),
      vector_(configuration), scratchpad_(configuration),
      fetch_(configuration, placement_.program, binary.code.size()),
      transactions_(options.memory ? *options.memory : *port_, enginesOfChannels(configuration)),
      state_(0, static_cast<uint32_t>(binary.code.size())), isCounting_(options.isCounting) {
  Outcome bad = needHardware(configuration, "exact is its cycles: accurate and fast have time too");
  if (!bad) bad = checkBuildable(configuration);
  if (bad) {
    error_ = *bad;
    return;
  }
  for (uint32_t i = 0; i < binary.code.size(); ++i) {
    Result<Insn> insn = decode(binary.code[i]);
    if (insn && !(configuration.engines() >> insn->engine & 1))
      insn = error("'{}' has no engine {}", configuration.name, engineName(insn->engine));
    if (!insn) {
      fail(i, insn.message());
      return;
    }
    code_.push_back(*insn);
  }
  report_.fidelity = Fidelity::kExact;
  report_.dramBytesPerCycle = dram_.bytesPerCycle();
  accumulators_.bankRows =
      std::max<int64_t>(1, static_cast<int64_t>(std::bit_ceil(configuration.accumulatorRows())) /
                               configuration[key::kAccumulatorBanks]);
  connect();
}

/// Ports of the scratchpad and of the memory, in the order of rtl/top.
void Machine::connect() {
  ports_ = {&matrix_.activations, &matrix_.weights, &requant_.read, &requant_.write,
            &vector_.a,           &vector_.b,       &vector_.write};
  requests_ = {&fetch_.burst};
  isWrite_ = {false};
  for (int i = 0; i < configuration_.loadChannels(); ++i) {
    loads_.push_back(std::make_unique<LoadChannel>(configuration_));
    queues_[static_cast<size_t>(kLoad0 + i)].engine = loads_.back().get();
    ports_.insert(ports_.end(), {&loads_.back()->read, &loads_.back()->write});
    requests_.push_back(&loads_.back()->burst);
    isWrite_.push_back(false);
  }
  for (int i = 0; i < configuration_.storeChannels(); ++i) {
    stores_.push_back(std::make_unique<StoreChannel>(configuration_));
    queues_[static_cast<size_t>(kStore0 + i)].engine = stores_.back().get();
    ports_.push_back(&stores_.back()->read);
    requests_.push_back(&stores_.back()->burst);
    isWrite_.push_back(true);
  }
  queues_[static_cast<size_t>(npu::Engine::kMatrix)].engine = &matrix_;
  queues_[static_cast<size_t>(npu::Engine::kRequant)].engine = &requant_;
  queues_[static_cast<size_t>(npu::Engine::kVector)].engine = &vector_;
}

void Machine::fail(uint32_t instruction, std::string_view text) {
  if (!error_)
    error_ = error("instruction {}: {}{}", instruction, binary_.origin(instruction), text);
}

Result<TimeReport> Machine::run() {
  while (!isHalted_ && !error_) {
    if (static_cast<uint64_t>(now_) > options_.maxEvents)
      return error("more than {} cycles", options_.maxEvents);
    cycle();
  }
  if (error_) return *error_;
  if (ownEnded_) { // halt
    count(*ownEnded_, nullptr, isOwnMarked_);
    emit(*ownEnded_);
  }
  report_.cycles = options_.memory ? options_.memory->drain(now_) : dram_.drain(now_);
  report_.counters[static_cast<size_t>(Counter::kCycles)] =
      countedBefore_ + (isCounting_ ? static_cast<uint64_t>(report_.cycles - countedFrom_) : 0);
  if (!options_.memory) addMemory(report_, dram_);
  return report_;
}

void Machine::cycle() {
  hasMoved_ = false;
  offerMemory();
  fetch_.ask(state_.pc());
  askPorts();
  passMemory();
  retireEnded();
  stepControl();
  for (int engine = 1; engine < kEngineCount; ++engine) beginHead(engine);
  noteBeats();
  clock();
}

// ---- The memory

void Machine::offerMemory() {
  transactions_.offer(now_);
  fetch_.hasBeat = false;
  for (const auto& load : loads_) load->hasBeat = false;
  for (const auto& store : stores_) store->hasAnswer = store->mayPut = false;
  const size_t loads = loads_.size();
  if (const Transactions::Read* read = transactions_.read()) {
    hasMoved_ = true;
    if (read->channel == 0)
      fetch_.hasBeat = true;
    else
      loads_[static_cast<size_t>(read->channel) - 1]->hasBeat = true;
  }
  if (const Transactions::Write* answer = transactions_.answer()) {
    hasMoved_ = true;
    stores_[static_cast<size_t>(answer->channel) - 1 - loads]->hasAnswer = true;
  }
}

void Machine::passMemory() {
  const ChannelSizes sizes(configuration_);
  if (const Transactions::Read* read = transactions_.read())
    transactions_.takeBeat((read->address / static_cast<uint64_t>(sizes.beat) + 1) *
                           static_cast<uint64_t>(sizes.beat));
  if (transactions_.answer()) transactions_.takeAnswer();
  if (const int writer = arbiter_.writer(); writer >= 0) {
    StoreChannel& store = *stores_[static_cast<size_t>(writer) - 1 - loads_.size()];
    if (store.hasData()) {
      store.mayPut = true;
      transactions_.takeData(now_);
      if (store.isLastBeat()) arbiter_.endWrite();
    }
  }
  for (BurstRequest* request : requests_) request->isTaken = false;
  const int chosen = arbiter_.choose(requests_, isWrite_);
  if (chosen < 0) return;
  BurstRequest& request = *requests_[static_cast<size_t>(chosen)];
  const bool isWrite = isWrite_[static_cast<size_t>(chosen)];
  request.isTaken = true;
  arbiter_.take(chosen, requests_.size(), isWrite);
  const int beats = static_cast<int>(sizes.beatsOf(request.address, request.bytes));
  const auto address = static_cast<uint64_t>(request.address);
  if (isWrite)
    transactions_.askWrite(now_, address, request.bytes, chosen, beats);
  else
    transactions_.askRead(now_, address, request.bytes, chosen, beats);
}

// ---- Engines

void Machine::askPorts() {
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (Engine* e = queues_[static_cast<size_t>(engine)].engine) e->ask();
  matrix_.useAccumulators(accumulators_);
  requant_.useAccumulators(accumulators_);
  scratchpad_.arbitrate(ports_);
}

/// Takes the tokens of an instruction, if they are there.
bool Machine::take(InstructionTime& time) {
  if (time.waitCount == 0) return true;
  Semaphore& semaphore = semaphores_[time.waitSemaphore];
  if (semaphore.count < time.waitCount) return false;
  semaphore.count -= time.waitCount;
  for (int i = 0; i < time.waitCount; ++i) {
    time.after[static_cast<size_t>(i)] = semaphore.from.front();
    semaphore.from.pop_front();
  }
  return true;
}

InstructionTime timeOfWord(const Insn& insn, uint32_t instruction) {
  InstructionTime time;
  time.instruction = instruction;
  time.engine = insn.engine;
  time.op = insn.op;
  time.waitSemaphore = insn.waitSemaphore;
  time.waitCount = insn.waitCount;
  time.signalSemaphore = insn.signalSemaphore;
  time.signalCount = insn.signalCount;
  return time;
}

/// Lets an engine begin what is at the head of its queue, if it may.
void Machine::beginHead(int engine) {
  Queue& queue = queues_[static_cast<size_t>(engine)];
  if (queue.isRunning || queue.entries.empty() || queue.entries.front().arrival > now_) return;
  const Queue::Entry& entry = queue.entries.front();
  InstructionTime time = timeOfWord(entry.operation.insn, entry.instruction);
  if (!take(time)) return;
  hasMoved_ = true;
  const int64_t ready = std::max(queue.free, entry.arrival);
  time.start = now_;
  time.stalls[static_cast<size_t>(Stall::kQueue)] =
      std::max<int64_t>(0, entry.arrival - queue.free);
  time.stalls[static_cast<size_t>(Stall::kSemaphore)] = now_ - ready;
  queue.isRunning = true;
  queue.isNop = time.op == Op::kNop;
  queue.counted = {};
  queue.now = time;
  if (queue.isNop) return;
  if (options_.counts) {
    queue.counted = counting_.of(entry.operation);
    if (options_.onCounted) options_.onCounted(entry.instruction, queue.counted);
  }
  int64_t base = 0;
  if (isLoad(engine) || isStore(engine)) {
    const Result<Movement> movement =
        Movement::of(configuration_, entry.operation, binary_, placement_.bases);
    if (!movement) return fail(entry.instruction, movement.message());
    queue.now.bytes = movement->isStore() ? movement->farBytes() : movement->nearBytes();
    if (movement->isDram())
      base = static_cast<int64_t>(
          placement_.bases[static_cast<size_t>(entry.operation.insn.values[field::load::kRegion])]);
  }
  queue.engine->begin(entry.operation, base);
}

void Machine::noteBeats() {
  for (Queue& queue : queues_)
    if (queue.isRunning && !queue.isNop && queue.now.firstBeat < 0 && queue.now.start != now_ &&
        queue.engine->movesData())
      queue.now.firstBeat = now_;
}

void Machine::retireEnded() {
  if (ownEnded_) {
    count(*ownEnded_, nullptr, isOwnMarked_);
    emit(*ownEnded_);
    signal(*ownEnded_);
    ownEnded_.reset();
    hasMoved_ = true;
  }
  for (int engine = 1; engine < kEngineCount; ++engine) {
    Queue& queue = queues_[static_cast<size_t>(engine)];
    if (!queue.ends()) continue;
    hasMoved_ = true;
    queue.isRunning = false;
    queue.now.done = queue.free = now_;
    count(queue.now, queue.isNop ? nullptr : &queue.counted,
          queue.entries.front().operation.insn.mark);
    emit(queue.now);
    signal(queue.now);
    queue.entries.pop_front();
  }
}

/// Tokens are there in the next cycle.
void Machine::signal(const InstructionTime& time) {
  if (time.signalCount == 0) return;
  Semaphore& semaphore = semaphores_[time.signalSemaphore];
  semaphore.signalled += time.signalCount;
  for (int i = 0; i < time.signalCount; ++i) semaphore.from.push_back(time.sequence);
}

void Machine::count(const InstructionTime& time, const Counters* counted, bool isMarked) {
  if (!options_.counts || !isCounting_) return;
  const auto add = [&](Counter counter, uint64_t by) {
    report_.counters[static_cast<size_t>(counter)] += by;
  };
  add(Counter::kInstructions, 1);
  add(instructionCounter(time.engine), 1);
  add(Counter::kDramReadProgram, sizeof(Word));
  add(Counter::kMarks, isMarked);
  for (size_t i = 0; counted && i < counted->size(); ++i) report_.counters[i] += (*counted)[i];
}

void Machine::emit(InstructionTime& time) {
  time.sequence = sequence_++;
  EngineTime& engine = report_.engines[time.engine];
  engine.busy += time.done - time.start;
  for (size_t i = 0; i < time.stalls.size(); ++i) engine.stalls[i] += time.stalls[i];
  report_.tagged[static_cast<size_t>(Tag::kRtl)] += time.done - time.start;
  if (options_.onRetire) options_.onRetire(time);
}

void Machine::clock() {
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (Engine* e = queues_[static_cast<size_t>(engine)].engine) e->clock();
  fetch_.clock();
  for (Semaphore& semaphore : semaphores_) {
    semaphore.count += semaphore.signalled;
    semaphore.signalled = 0;
  }
  ++now_;
  if (!hasMoved_) failStuck();
}

} // namespace candela::npu::exact
