#include <algorithm>

#include "simulator/timing/exact/requant.h"

namespace candela::npu::exact {
namespace {

namespace epi = descriptor::epilogue;
namespace res = descriptor::rescale;

bool isI16(int64_t type) { return static_cast<Type>(type) == Type::kI16; }

} // namespace

void RequantWalk::start(const Configuration& c, const Operation& o) {
  const DescriptorValues& d = o.d;
  const auto& v = o.insn.values;
  isMove_ = o.insn.op != Op::kRequant;
  columns_ = c.columns();
  width_ = c[key::kScratchpadBankWidth];
  lanes_ = isMove_ ? columns_ : std::min<int64_t>(c[key::kRequantLanes], columns_);
  const bool isWide = d[epi::kWide] != 0;
  isHalves_ = isMove_ && isWide && width_ == 4;
  wordSums_ = width_ / (isWide && !isHalves_ ? 8 : 4);
  sumLog2_ = isWide ? 3 : 2;
  sideLog2_ = isI16(d[epi::kOutType]);
  tableBytes_ = isI16(d[epi::kOutType]) ? 2 * 513 : 256;
  acc_ = v[field::requant::kAcc];
  side_ = isMove_ ? v[field::accload::kSrc] : v[field::requant::kDst];
  outH_ = d[epi::kOutH];
  outW_ = d[epi::kOutW];
  channels_ = d[epi::kChannels];
  accPitch_ = d[epi::kAccPitch];
  rowStride_ = d[epi::kRowStride];
  pixelStride_ = d[epi::kPixelStride];
  inH_ = outH_;
  inW_ = outW_;
  poolH_ = poolW_ = poolStrideH_ = poolStrideW_ = 1;
  padTop_ = padLeft_ = 0;
  if (!isMove_) {
    inH_ = d[epi::kInH];
    inW_ = d[epi::kInW];
    poolH_ = d[epi::kPoolH];
    poolW_ = d[epi::kPoolW];
    poolStrideH_ = d[epi::kPoolStrideH];
    poolStrideW_ = d[epi::kPoolStrideW];
    padTop_ = d[epi::kPoolPadTop];
    padLeft_ = d[epi::kPoolPadLeft];
    residual_ = v[field::requant::kRes];
    residualLog2_ = isI16(o.second[res::kBType]);
    residualRow_ = o.second[res::kRowStride];
    residualPixel_ = o.second[res::kPixelStride];
    params_ = d[epi::kParams];
    table_ = d[epi::kTable];
  }
  index_ = channel_ = inBlock_ = 0;
  blockRow_ = acc_;
  beginGroup();
  state_ = isMove_ ? State::kValues : State::kRecords;
  if (!isMove_ && v[field::requant::kTable]) state_ = State::kTable;
}

void RequantWalk::beginGroup() {
  oy_ = ox_ = py_ = px_ = moved_ = 0;
  isUpper_ = false;
  top_ = -padTop_;
  left_ = -padLeft_;
  outRow_ = windowRow_ = blockRow_ - padTop_ * inW_;
}

int64_t RequantWalk::blockCount() const {
  return std::min(channels_ - channel_, columns_ - inBlock_);
}
int64_t RequantWalk::groupCount() const { return std::min(blockCount(), lanes_); }

bool RequantWalk::windowEnds() const {
  if (isMove_) return moveLeft() <= wordSums_ && isUpper_ == isHalves_;
  return px_ + 1 == poolW_ && py_ + 1 == poolH_;
}
bool RequantWalk::outsEnd() const { return windowEnds() && ox_ + 1 == outW_ && oy_ + 1 == outH_; }
bool RequantWalk::isLast() const { return state_ == State::kValues && outsEnd() && allEnds(); }
bool RequantWalk::isInside() const {
  return isMove_ || (y() >= 0 && y() < inH_ && x() >= 0 && x() < inW_);
}
int64_t RequantWalk::count() const {
  return isMove_ ? std::min(moveLeft(), wordSums_) : groupCount();
}
int64_t RequantWalk::constantAddress() const {
  return (state_ == State::kTable ? table_ : params_ + 8 * channel_) + index_ * width_;
}
int64_t RequantWalk::constantBytes() const {
  return (state_ == State::kTable ? tableBytes_ : 8 * groupCount()) - index_ * width_;
}
int64_t RequantWalk::sideAddress() const {
  const int64_t output = side_ + oy_ * rowStride_ + ox_ * pixelStride_;
  if (isMove_) return output + ((channel_ + moved_) << sumLog2_) + (isUpper_ ? 4 : 0);
  return output + (channel_ << sideLog2_);
}
int64_t RequantWalk::residualAddress() const {
  return residual_ + oy_ * residualRow_ + ox_ * residualPixel_ + (channel_ << residualLog2_);
}

/// Within a window, or the words of a position.
void RequantWalk::stepWithin() {
  const bool wasUpper = isUpper_;
  isUpper_ = isHalves_ && !isUpper_;
  if (wasUpper == isHalves_) moved_ += wordSums_;
  if (isMove_) return;
  if (++px_ < poolW_) return;
  px_ = 0;
  ++py_;
  windowRow_ += inW_;
}

void RequantWalk::stepOutput() {
  const bool ends = outsEnd(), endsRow = ox_ + 1 == outW_;
  py_ = px_ = moved_ = 0;
  isUpper_ = false;
  windowRow_ = outRow_;
  ++ox_;
  left_ += poolStrideW_;
  if (endsRow) {
    ox_ = 0;
    left_ = -padLeft_;
    ++oy_;
    top_ += poolStrideH_;
    outRow_ = windowRow_ = outRow_ + poolStrideH_ * inW_;
  }
  if (!ends) return;
  const bool endsBlock = groupCount() == blockCount();
  const int64_t group = groupCount();
  channel_ += group;
  inBlock_ = endsBlock ? 0 : inBlock_ + group;
  if (endsBlock) blockRow_ += accPitch_;
  beginGroup();
}

void RequantWalk::step() {
  if (state_ != State::kValues) {
    const bool ends = constantBytes() <= width_;
    index_ = ends ? 0 : index_ + 1;
    if (ends) state_ = state_ == State::kTable ? State::kRecords : State::kValues;
    return;
  }
  if (!windowEnds()) return stepWithin();
  if (outsEnd()) {
    if (allEnds())
      state_ = State::kIdle;
    else if (!isMove_)
      state_ = State::kRecords;
  }
  if (state_ != State::kIdle) stepOutput();
}

} // namespace candela::npu::exact
