#include "simulator/timing/exact/requant.h"

#include <algorithm>

namespace candela::npu::exact {
namespace {

constexpr int64_t kMoveLatency = 2;  ///< from a step to the first cycle in which its word can leave
constexpr int64_t kLaneLatency = 13; ///< the same, through pool and lanes

} // namespace

void RequantEngine::begin(const Operation& operation, int64_t) {
  operation_ = operation;
  isMove_ = operation.insn.op != Op::kRequant;
  isLoad_ = operation.insn.op == Op::kAccload;
  hasResidual_ = !isMove_ && operation.insn.values[field::requant::kResidual];
  isLongTable_ = !isMove_ && operation.insn.values[field::requant::kTable] &&
                 static_cast<Type>(operation.d[descriptor::epilogue::kOutType]) == Type::kI16;
  isWalked_ = false;
  setup_ = 2;
}

int64_t RequantEngine::latency() const {
  if (isMove_) return kMoveLatency;
  return kLaneLatency + (isLongTable_ ? valueOf(Timing::kRequantInterpolation) : 0);
}

bool RequantEngine::wantsRead() const {
  if (walk_.state() == RequantWalk::State::kIdle) return false;
  if (walk_.state() != RequantWalk::State::kValues) return true;
  return results_.hasRoom() && (isLoad_ || (hasResidual_ && walk_.isWindowLast()));
}
bool RequantEngine::wantsRow() const {
  return walk_.state() == RequantWalk::State::kValues && results_.hasRoom() && !isLoad_ &&
         walk_.isInside();
}

void RequantEngine::ask() {
  read.isValid = write.isValid = false;
  const bool isValue = walk_.state() == RequantWalk::State::kValues;
  if (wantsRead() && !isReadServed_) {
    const DescriptorValues& r = operation_.second;
    if (!isValue) {
      read.ask(walk_.constantAddress(), 0,
               std::min(walk_.constantBytes(), configuration_[key::kScratchpadBankWidth]));
    } else if (isLoad_) {
      const bool isWide = operation_.d[descriptor::epilogue::kWide] != 0;
      const int64_t width = configuration_[key::kScratchpadBankWidth];
      read.ask(walk_.sideAddress(), 0, std::min(width, walk_.count() * (isWide ? 8 : 4)));
    } else {
      const bool isI16 = static_cast<Type>(r[descriptor::rescale::kBType]) == Type::kI16;
      read.ask(walk_.residualAddress(), 0, walk_.count() * (isI16 ? 2 : 1));
    }
  }
  const Results::Place* place = results_.front(now_);
  if (place && !isLoad_) write.ask(place->address, 0, place->bytes);
}

void RequantEngine::useAccumulators(const AccumulatorPorts& ports) {
  hasRow_ = wantsRow() && !isRowServed_ && ports.mayRead(walk_.row());
  const Results::Place* place = results_.front(now_);
  putsRow_ = place && isLoad_ && ports.mayWrite(place->row);
}

void RequantEngine::clock() {
  isDone_ = false;
  const bool sent = isLoad_ ? putsRow_ : write.isValid && write.isGranted;
  if (isWalked_ && sent && results_.underWay() == 1) {
    isDone_ = true;
    isWalked_ = false;
  }
  const bool isActive = walk_.state() != RequantWalk::State::kIdle;
  const bool isValue = walk_.state() == RequantWalk::State::kValues;
  const bool hasRead = !wantsRead() || isReadServed_ || (read.isValid && read.isGranted);
  const bool hasRow = !wantsRow() || isRowServed_ || hasRow_;
  const bool steps = isActive && (!isValue || results_.hasRoom()) && hasRead && hasRow;
  isReadServed_ = !steps && (isReadServed_ || (read.isValid && read.isGranted));
  isRowServed_ = !steps && (isRowServed_ || hasRow_);
  if (sent) results_.pop();
  if (steps) {
    if (isValue && walk_.isWindowLast()) {
      const bool isWide = operation_.d[descriptor::epilogue::kWide] != 0;
      const bool isI16 =
          static_cast<Type>(operation_.d[descriptor::epilogue::kOutType]) == Type::kI16;
      const int64_t width = configuration_[key::kScratchpadBankWidth];
      int64_t bytes = walk_.count() * (isI16 ? 2 : 1);
      if (isMove_) bytes = std::min(width, walk_.count() * (isWide ? 8 : 4));
      results_.add({walk_.sideAddress(), bytes, walk_.row()}, now_ + latency());
    }
    if (walk_.isLast()) isWalked_ = true;
    walk_.step();
  }
  if (setup_ > 0 && --setup_ == 0) walk_.start(configuration_, operation_);
  ++now_;
}

} // namespace candela::npu::exact
