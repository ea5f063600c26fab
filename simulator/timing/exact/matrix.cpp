#include "simulator/timing/exact/matrix.h"

#include <limits>

namespace candela::npu::exact {
namespace {

namespace win = descriptor::window;

constexpr int64_t kToEdge = 2;  ///< from a read to the edge of the array
constexpr int64_t kProduct = 1; ///< of the depthwise multipliers
constexpr int64_t kWritten = 2; ///< from the accumulators' read to their write

} // namespace

void MatrixEngine::begin(const Operation& operation, int64_t) {
  operation_ = operation;
  const Op op = operation.insn.op;
  isMm_ = op == Op::kMm;
  isLdw_ = op == Op::kLdw;
  isConv_ = op == Op::kConv;
  isDepthwise_ = op == Op::kDwconv;
  isRunning_ = true;
  setup_ = 2;
  endsAt_ = -1;
}

void MatrixEngine::startWalks() {
  const DescriptorValues& d = operation_.d;
  const auto& v = operation_.insn.values;
  if (isMm_ && v[field::mm::kSwap]) active_ = shadow_;
  if (isLdw_) shadow_ = {v[field::ldw::kK], v[field::ldw::kN]};
  MatrixShape s;
  s.rows = configuration_.rows();
  s.columns = configuration_.columns();
  s.outH = d[win::kOutH];
  s.outW = d[win::kOutW];
  s.strideH = d[win::kStrideH];
  s.strideW = d[win::kStrideW];
  s.dilationH = d[win::kDilationH];
  s.dilationW = d[win::kDilationW];
  s.rowStride = d[win::kRowStride];
  s.pixelStride = d[win::kPixelStride];
  s.weightPitch = d[win::kWeightPitch];
  s.isTransposed = d[win::kTransposed] != 0;
  s.isWide = static_cast<Type>(d[win::kAType]) == Type::kI16;
  s.isDepthwise = isDepthwise_;
  s.inH = isMm_ ? std::numeric_limits<int32_t>::max() : d[win::kInH];
  s.inW = isMm_ ? std::numeric_limits<int32_t>::max() : d[win::kInW];
  s.cin = d[win::kCin];
  s.cout = isDepthwise_ ? s.cin : d[win::kCout];
  if (isMm_) {
    s.cin = active_.k;
    s.cout = active_.n;
  }
  if (isLdw_) {
    s.cin = v[field::ldw::kK];
    s.cout = v[field::ldw::kN];
  }
  if (isConv_ || isDepthwise_) {
    s.kernelH = d[win::kKernelH];
    s.kernelW = d[win::kKernelW];
    s.padTop = d[win::kPadTop];
    s.padLeft = d[win::kPadLeft];
    s.wgt = v[field::conv::kWgt];
    s.planes = d[win::kPlanes];
    s.planeRows = d[win::kPlaneRows];
  }
  if (isConv_) {
    s.taps = d[win::kTaps];
    s.isFlat = d[win::kFlat] != 0;
  }
  if (isLdw_) s.wgt = v[field::ldw::kWgt];
  if (!isLdw_) {
    s.act = v[field::conv::kAct];
    accBlock_ = accAt_ = v[field::conv::kAcc];
  }
  if (isMm_) s.act = v[field::mm::kAct];
  shape_ = s;
  if (!isLdw_) act_.start(s);
  if (!isMm_) wgt_.start(s);
  isLoaded_ = false;
  isFree_ = true;
}

void MatrixEngine::ask() {
  activations.isValid = weights.isValid = false;
  const bool isPassReady = isMm_ || isDepthwise_ || isLoaded_;
  const bool isBegin = act_.isActive() && act_.isPassFirst() && act_.isSegmentFirst();
  const int64_t bytes = shape_.isWide ? 2 : 1;
  if (act_.isActive() && (isPassReady || !isBegin) && !isActServed_)
    activations.ask(act_.address(), act_.from() * bytes, act_.to() * bytes);
  const bool mayLoad = wgt_.isActive() && (wgt_.isTileFirst() || isFree_ || isDepthwise_);
  if (mayLoad && wgt_.isThere() && !isWgtServed_) weights.ask(wgt_.address(), 0, wgt_.count());
}

/// The sum of the vector that goes now, in the order of the walk.
void MatrixEngine::pushSum(bool isSumLast) {
  const auto& v = operation_.insn.values;
  const bool accumulates = v[isMm_ ? int{field::mm::kAccumulate} : int{field::conv::kAccumulate}];
  const bool isFirst = isDepthwise_ || act_.isBlockFirst();
  const int64_t skew = configuration_.rows() + configuration_.columns() - 1;
  const int64_t at = now_ + kToEdge + (isDepthwise_ ? kProduct : skew);
  sums_.push_back({at, accAt_, !isFirst || accumulates, isSumLast});
  const bool endsBlock = act_.isPassLast() && act_.isBlockLast();
  if (endsBlock) accBlock_ += operation_.d[win::kAccPitch];
  accAt_ = act_.isPassLast() ? accBlock_ : accAt_ + 1;
}

void MatrixEngine::clockDepthwise() {
  const bool hasAct = isActServed_ || (activations.isValid && activations.isGranted);
  const bool hasWgt = isWgtServed_ || (weights.isValid && weights.isGranted);
  const bool moves = act_.isActive() && hasAct && hasWgt;
  isActServed_ = hasAct && !moves;
  isWgtServed_ = hasWgt && !moves;
  if (!moves) return;
  if (act_.isSegmentLast()) pushSum(act_.isLast());
  act_.step();
  wgt_.step();
}

void MatrixEngine::clockArray() {
  const bool mayLoad = wgt_.isActive() && (wgt_.isTileFirst() || isFree_);
  const bool loads = mayLoad && (!wgt_.isThere() || weights.isGranted);
  const bool moves = activations.isValid && activations.isGranted;
  const bool swaps = moves && act_.isSegmentLast() && act_.isPassFirst() && isConv_;
  const bool fills = loads && wgt_.isTileLast();
  if (moves) {
    if (act_.isSegmentLast()) pushSum(act_.isLast());
    act_.step();
  }
  if (loads) {
    if (isLdw_ && wgt_.isLast()) endsAt_ = now_ + 2; // read, edge
    wgt_.step();
  }
  if (fills) {
    isLoaded_ = true;
    isFree_ = false;
  } else if (swaps) {
    isLoaded_ = false;
    isFree_ = true;
  }
}

void MatrixEngine::end() {
  isDone_ = true;
  isRunning_ = false;
  endsAt_ = -1;
}

void MatrixEngine::clock() {
  isDone_ = false;
  if (isRunning_) {
    if (isDepthwise_)
      clockDepthwise();
    else
      clockArray();
  }
  while (!sums_.empty() && sums_.front().cycle + kWritten < now_) sums_.pop_front();
  if (!sums_.empty() && sums_.front().isLast && sums_.front().cycle + kWritten == now_) {
    sums_.pop_front();
    end();
  } else if (endsAt_ == now_) {
    end();
  }
  if (setup_ > 0 && --setup_ == 0) startWalks();
  ++now_;
}

void MatrixEngine::useAccumulators(AccumulatorPorts& ports) const {
  ports.isRead = ports.isWritten = false;
  for (const Sum& sum : sums_) {
    if (sum.cycle > now_) break;
    if (sum.cycle == now_ && sum.adds) {
      ports.isRead = true;
      ports.readRow = sum.row;
    }
    if (sum.cycle + kWritten == now_) {
      ports.isWritten = true;
      ports.writtenRow = sum.row;
    }
  }
}

} // namespace candela::npu::exact
