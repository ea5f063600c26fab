#include "simulator/timing/exact/vector.h"

#include <algorithm>
#include <bit>

namespace candela::npu::exact {
namespace {

namespace lan = descriptor::lanes;
namespace poo = descriptor::pooling;

constexpr int64_t kLaneLatency =
    8; ///< from a step to the first cycle in which its result can leave

} // namespace

// ---- Runs

void LanesWalk::start(const Operation& o, int64_t chunk) {
  const DescriptorValues& d = o.d;
  chunk_ = chunk;
  isReduce_ = o.insn.op == Op::kVreduce;
  isScalar_ = d[lan::kBScalar] != 0;
  a_ = o.insn.values[field::vbinary::kA];
  // vreduce has no b, so that its result stands in another place
  b_ = isReduce_ ? 0 : o.insn.values[field::vbinary::kB];
  out_ = o.insn.values[isReduce_ ? int{field::vreduce::kDst} : int{field::vbinary::kDst}];
  run_ = d[lan::kRun];
  len1_ = d[lan::kLen1];
  len2_ = d[lan::kLen2];
  a1_ = d[lan::kAStride1];
  a2_ = d[lan::kAStride2];
  b1_ = d[lan::kBStride1];
  b2_ = d[lan::kBStride2];
  out1_ = d[lan::kOutStride1];
  out2_ = d[lan::kOutStride2];
  aBytes_ = bytesOf(d[lan::kAType]);
  bBytes_ = bytesOf(d[lan::kBType]);
  outBytes_ = bytesOf(d[lan::kOutType]);
  element_ = i_ = j_ = 0;
  isActive_ = true;
}

VectorStep LanesWalk::current() const {
  VectorStep step;
  step.count = std::min(chunk_, run_ - element_);
  step.a = a_ + j_ * a2_ + i_ * a1_ + element_ * aBytes_;
  step.b = b_ + j_ * b2_ + i_ * b1_ + (isScalar_ ? 0 : element_ * bBytes_);
  step.out = out_ + j_ * out2_ + i_ * out1_ + (isReduce_ ? 0 : element_ * outBytes_);
  step.isLastOfRun = run_ - element_ <= chunk_;
  step.isLast = step.isLastOfRun && i_ + 1 == len1_ && j_ + 1 == len2_;
  return step;
}

void LanesWalk::step() {
  element_ += chunk_;
  if (element_ < run_) return;
  element_ = 0;
  if (++i_ < len1_) return;
  i_ = 0;
  isActive_ = ++j_ < len2_;
}

// ---- Windows

void PoolWalk::start(const Operation& o, int64_t chunk) {
  d_ = o.d;
  chunk_ = chunk;
  a_ = o.insn.values[field::vpool::kA];
  out_ = o.insn.values[field::vpool::kDst];
  aBytes_ = bytesOf(d_[poo::kAType]);
  outBytes_ = bytesOf(d_[poo::kOutType]);
  channel_ = oy_ = ox_ = 0;
  beginWindow();
  isActive_ = true;
}

PoolWalk::Window PoolWalk::rowsOf(int64_t oy) const {
  const int64_t top = oy * d_[poo::kStrideH] - d_[poo::kPadTop];
  return {std::max<int64_t>(top, 0), std::min(top + d_[poo::kKernelH], d_[poo::kInH])};
}
PoolWalk::Window PoolWalk::columnsOf(int64_t ox) const {
  const int64_t left = ox * d_[poo::kStrideW] - d_[poo::kPadLeft];
  return {std::max<int64_t>(left, 0), std::min(left + d_[poo::kKernelW], d_[poo::kInW])};
}
void PoolWalk::beginWindow() {
  y_ = rowsOf(oy_).from;
  x_ = columnsOf(ox_).from;
}

VectorStep PoolWalk::current() const {
  VectorStep step;
  step.count = std::min(chunk_, d_[poo::kChannels] - channel_);
  step.a = a_ + y_ * d_[poo::kInRowStride] + x_ * d_[poo::kInPixelStride] + channel_ * aBytes_;
  step.out =
      out_ + oy_ * d_[poo::kOutRowStride] + ox_ * d_[poo::kOutPixelStride] + channel_ * outBytes_;
  step.isLastOfRun = x_ + 1 == columnsOf(ox_).to && y_ + 1 == rowsOf(oy_).to;
  step.isLast = step.isLastOfRun && d_[poo::kChannels] - channel_ <= chunk_ &&
                ox_ + 1 == d_[poo::kOutW] && oy_ + 1 == d_[poo::kOutH];
  return step;
}

void PoolWalk::step() {
  if (++x_ < columnsOf(ox_).to) return;
  x_ = columnsOf(ox_).from;
  if (++y_ < rowsOf(oy_).to) return;
  channel_ += chunk_;
  if (channel_ >= d_[poo::kChannels]) {
    channel_ = 0;
    if (++ox_ == d_[poo::kOutW]) {
      ox_ = 0;
      isActive_ = ++oy_ < d_[poo::kOutH];
    }
  }
  beginWindow();
}

// ---- The engine

void VectorEngine::begin(const Operation& operation, int64_t) {
  operation_ = operation;
  const Op op = operation.insn.op;
  const DescriptorValues& d = operation.d;
  isPool_ = op == Op::kVpool;
  isReduce_ = op == Op::kVreduce;
  hasB_ = op == Op::kVbinary || op == Op::kVselect;
  hasTable_ = op == Op::kVunary &&
              static_cast<UnaryFn>(operation.insn.values[field::vunary::kFn]) == UnaryFn::kTable;
  isScalar_ = !isPool_ && d[lan::kBScalar];
  aBytes_ = bytesOf(d[isPool_ ? int{poo::kAType} : int{lan::kAType}]);
  bBytes_ = isPool_ ? 1 : bytesOf(d[lan::kBType]);
  outBytes_ = bytesOf(d[isPool_ ? int{poo::kOutType} : int{lan::kOutType}]);
  const int64_t width = configuration_[key::kScratchpadBankWidth];
  used_ = std::min(configuration_[key::kVectorLanes], width);
  int64_t widest = aBytes_;
  if (hasB_ && !isScalar_) widest = std::max(widest, bBytes_);
  if (!isReduce_) widest = std::max(widest, outBytes_);
  chunk_ = std::min(used_, width / widest);
  isWalked_ = false;
  setup_ = 2;
}

void VectorEngine::startWalk() {
  if (isPool_)
    pool_.start(operation_, chunk_);
  else
    lanes_.start(operation_, chunk_);
}

void VectorEngine::ask() {
  a.isValid = b.isValid = write.isValid = false;
  const int64_t width = configuration_[key::kScratchpadBankWidth];
  if (isInTable_)
    b.ask(operation_.insn.values[field::vunary::kB] + tableWord_ * width, 0,
          std::min(width, tableBytes() - tableWord_ * width));
  if (isStepping()) {
    const VectorStep step = current();
    if (!isAServed_) a.ask(step.a, 0, step.count * aBytes_);
    if (hasB_ && !isBServed_) b.ask(step.b, 0, (isScalar_ ? 1 : step.count) * bBytes_);
  }
  if (const Results::Place* place = results_.front(now_))
    write.ask(place->address, 0, place->bytes);
}

void VectorEngine::clock() {
  isDone_ = false;
  const bool sent = write.isValid && write.isGranted;
  if (isWalked_ && sent && results_.underWay() == 1) {
    isDone_ = true;
    isWalked_ = false;
  }
  const bool may = isStepping();
  const bool hasA = may && (isAServed_ || (a.isValid && a.isGranted));
  const bool hasB = may && (!hasB_ || isBServed_ || (b.isValid && b.isGranted));
  const bool steps = hasA && hasB;
  isAServed_ = hasA && !steps;
  isBServed_ = hasB_ && hasB && !steps;
  if (sent) results_.pop();
  if (steps) {
    const VectorStep step = current();
    if (step.isLastOfRun || !(isPool_ || isReduce_)) {
      const int64_t levels = isReduce_ ? std::countr_zero(static_cast<uint64_t>(used_)) : 0;
      results_.add({step.out, (isReduce_ ? 1 : step.count) * outBytes_, 0},
                   now_ + kLaneLatency + levels);
    }
    if (step.isLast) isWalked_ = true;
    if (isPool_)
      pool_.step();
    else
      lanes_.step();
  }
  if (isInTable_ && b.isGranted) {
    const int64_t width = configuration_[key::kScratchpadBankWidth];
    if (++tableWord_ * width >= tableBytes()) {
      isInTable_ = false;
      startWalk();
    }
  } else if (setup_ > 0 && --setup_ == 0) {
    isInTable_ = hasTable_;
    tableWord_ = 0;
    if (!hasTable_) startWalk();
  }
  ++now_;
}

} // namespace candela::npu::exact
