// The control processor, cycle by cycle, as rtl/command/cdl_npu_control.sv.
#include <algorithm>

#include "simulator/error.h"
#include "simulator/timing/exact/machine.h"

namespace candela::npu::exact {
namespace {

constexpr uint32_t kPmuControl = 0x30;

} // namespace

void Machine::stepControl() {
  if (!hasWord_) {
    hasWord_ = fetch_.has(state_.pc());
    own_.instruction = UINT32_MAX;
    return;
  }
  const Insn& insn = code_[state_.pc()];
  if (own_.instruction != state_.pc() || own_.start < 0) {
    own_ = timeOfWord(insn, state_.pc());
    own_.start = 0;
    isOwnTaken_ = false;
  }
  if (!mayRun(insn)) return;
  hasMoved_ = true;
  if (insn.engine)
    send(insn);
  else
    runOwn(insn);
  own_.start = -1; // the next word is another one, even of the same place
  if (error_ || isHalted_) return;
  state_.advance();
  if (state_.hasEnded()) {
    error_ = error("the program ends without halt");
    return;
  }
  hasWord_ = fetch_.has(state_.pc());
}

bool Machine::mayRun(const Insn& insn) {
  if (insn.engine) return queues_[insn.engine].entries.size() < configuration_.queueDepth();
  if (!isOwnTaken_) isOwnTaken_ = take(own_);
  uint32_t mask = insn.op == Op::kHalt ? ~0u : 0;
  if (insn.op == Op::kFence) mask = static_cast<uint32_t>(insn.values[field::fence::kMask]);
  for (int engine = 1; engine < kEngineCount; ++engine)
    if ((mask >> engine & 1) && !queues_[static_cast<size_t>(engine)].entries.empty()) return false;
  return isOwnTaken_;
}

void Machine::runOwn(const Insn& insn) {
  InstructionTime time = own_;
  time.start = now_;
  time.done = now_ + valueOf(Timing::kControlWord);
  controlInstruction(insn);
  ownEnded_ = time;
  isOwnMarked_ = insn.mark;
}

void Machine::controlInstruction(const Insn& insn) {
  const auto& v = insn.values;
  switch (insn.op) {
  case Op::kHalt: isHalted_ = true; break;
  case Op::kSnapshot: {
    Counters& slot = report_.snapshots[static_cast<size_t>(v[field::snapshot::kSlot])];
    slot = report_.counters;
    slot[static_cast<size_t>(Counter::kCycles)] =
        countedBefore_ + (isCounting_ ? static_cast<uint64_t>(now_ - countedFrom_) : 0);
    break;
  }
  case Op::kConfig:
    if (v[field::config::kOffset] != kPmuControl) break;
    if (isCounting_) countedBefore_ += static_cast<uint64_t>(now_ - countedFrom_);
    if (v[field::config::kValue] & 2) {
      countedBefore_ = 0;
      report_.counters = {};
    }
    isCounting_ = v[field::config::kValue] & 1;
    countedFrom_ = now_;
    break;
  default:
    if (const Outcome bad = state_.apply(insn)) fail(state_.pc(), bad->message);
  }
}

void Machine::send(const Insn& insn) {
  Result<Operation> operation = state_.operation(insn);
  if (!operation) return fail(state_.pc(), operation.message());
  queues_[insn.engine].entries.push_back(
      {*std::move(operation), state_.pc(), now_ + valueOf(Timing::kQueueLatency)});
}

/// Fails where nobody can go on any more: nothing runs, nothing is under way, and tokens are
/// missing.
void Machine::failStuck() {
  const bool isIdle = !transactions_.isBusy() && hasWord_ && !ownEnded_ &&
                      std::none_of(queues_.begin(), queues_.end(),
                                   [](const Queue& queue) { return queue.isRunning; });
  if (!isIdle || isHalted_ || error_) return;
  std::string text =
      fmt::format("deadlock at cycle {}: control stands at instruction {}", now_, state_.pc());
  for (int engine = 1; engine < kEngineCount; ++engine) {
    const Queue& queue = queues_[static_cast<size_t>(engine)];
    if (queue.entries.empty()) continue;
    const Insn& insn = queue.entries.front().operation.insn;
    text += fmt::format("; {} waits for {} of s{}, which has {}, at instruction {}",
                        engineName(engine), insn.waitCount, insn.waitSemaphore,
                        semaphores_[insn.waitSemaphore].count, queue.entries.front().instruction);
  }
  error_ = error("{}", text);
}

} // namespace candela::npu::exact
