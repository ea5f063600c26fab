#include <algorithm>

#include "simulator/timing/exact/matrix.h"

namespace candela::npu::exact {

// ---- Activations

void ActivationWalk::start(const MatrixShape& shape) {
  s_ = shape;
  const int64_t bytes = s_.isWide ? 2 : 1;
  isContiguous_ = s_.isPacked() && s_.dilationW == 1 && s_.pixelStride == s_.cin * bytes;
  n_ = c_ = oy_ = ox_ = 0;
  isActive_ = true;
  beginBlock();
}

void ActivationWalk::beginBlock() {
  isFirstPass_ = true;
  groupTap_ = {};
  groupLeft_ = s_.allTaps();
  beginGroup();
}
void ActivationWalk::beginGroup() {
  groupTaps_ = std::min(mostTaps(), groupLeft_);
  beginVector();
}
void ActivationWalk::beginVector() {
  tap_ = groupTap_;
  left_ = groupTaps_;
  rowsBefore_ = 0;
}

int64_t ActivationWalk::segmentTaps() const {
  return isContiguous_ ? std::min(s_.kernelW - tap_.kx, left_) : 1;
}
bool ActivationWalk::channelsEnd() const {
  return s_.isPacked() || s_.isDepthwise || s_.cin - c_ <= s_.rows;
}
bool ActivationWalk::isLast() const {
  return isSegmentLast() && isPassLast() && isBlockLast() && n_ + s_.columns >= s_.cout;
}

int64_t ActivationWalk::address() const {
  const int64_t bytes = s_.isWide ? 2 : 1;
  const int64_t y = oy_ * s_.strideH + tap_.ky * s_.dilationH - s_.padTop;
  const int64_t x = ox_ * s_.strideW + tap_.kx * s_.dilationW - s_.padLeft;
  return s_.act + y * s_.rowStride + x * s_.pixelStride + (c_ - rowsBefore_) * bytes;
}

std::pair<int64_t, int64_t> ActivationWalk::valid() const {
  const int64_t y = oy_ * s_.strideH + tap_.ky * s_.dilationH - s_.padTop;
  const int64_t x = ox_ * s_.strideW + tap_.kx * s_.dilationW - s_.padLeft;
  const int64_t taps = segmentTaps();
  const int64_t tapsFrom = std::clamp<int64_t>(-x, 0, taps),
                tapsTo = std::clamp<int64_t>(s_.inW - x, 0, taps);
  if (y < 0 || y >= s_.inH || tapsTo <= tapsFrom) return {0, 0};
  if (s_.isPacked()) return {rowsBefore_ + tapsFrom * s_.cin, rowsBefore_ + tapsTo * s_.cin};
  return {0, std::min(s_.cin - c_, s_.isDepthwise ? s_.columns : s_.rows)};
}

/// The tap so many behind this one.
ActivationWalk::Tap ActivationWalk::behind(int64_t taps) const {
  if (tap_.kx + taps == s_.kernelW) return {0, tap_.ky + 1};
  return {tap_.kx + taps, tap_.ky};
}

void ActivationWalk::step() {
  if (isLast()) {
    isActive_ = false;
    return;
  }
  const int64_t taps = segmentTaps();
  if (!isSegmentLast()) {
    rowsBefore_ += s_.isPacked() ? taps * s_.cin : 0;
    left_ -= taps;
    tap_ = behind(taps);
    return;
  }
  const Tap next = behind(taps);
  if (!isPassLast()) {
    if (++ox_ == s_.outW) {
      ox_ = 0;
      ++oy_;
    }
    return beginVector();
  }
  const bool endsBlock = isBlockLast(), endsChannels = channelsEnd();
  ox_ = oy_ = 0;
  if (s_.isDepthwise)
    c_ += s_.columns;
  else
    c_ = endsChannels ? 0 : c_ + s_.rows;
  if (endsBlock) {
    n_ += s_.columns;
    return beginBlock();
  }
  isFirstPass_ = false;
  if (!endsChannels) return beginVector();
  groupLeft_ -= groupTaps_;
  groupTap_ = next;
  beginGroup();
}

// ---- Weights

void WeightWalk::start(const MatrixShape& shape) {
  s_ = shape;
  index_ = n_ = c_ = 0;
  tapsLeft_ = s_.allTaps();
  outsLeft_ = s_.outH * s_.outW;
  tile_ = block_ = at_ = s_.wgt;
  isActive_ = true;
}

bool WeightWalk::isThere() const {
  return s_.isDepthwise || index_ < (s_.isTransposed ? tileColumns() : tileRows());
}
int64_t WeightWalk::count() const {
  if (!isThere()) return 0;
  return s_.isDepthwise || !s_.isTransposed ? tileColumns() : tileRows();
}
bool WeightWalk::isTileLast() const {
  return s_.isDepthwise || index_ == (s_.isTransposed ? s_.columns : s_.rows) - 1;
}
bool WeightWalk::blockEnds() const {
  if (s_.isDepthwise) return tapsLeft_ == 1 && outsLeft_ == 1;
  return tapsLeft_ <= s_.taps && channelsEnd();
}

void WeightWalk::stepDepthwise() {
  at_ += s_.weightPitch;
  if (--tapsLeft_ > 0) return;
  at_ = block_;
  tapsLeft_ = s_.allTaps();
  if (--outsLeft_ > 0) return;
  n_ += s_.columns;
  block_ = at_ = block_ + s_.columns;
  outsLeft_ = s_.outH * s_.outW;
}

void WeightWalk::step() {
  if (isLast()) {
    isActive_ = false;
    return;
  }
  if (s_.isDepthwise) return stepDepthwise();
  if (!isTileLast()) {
    ++index_;
    at_ += s_.weightPitch;
    return;
  }
  const bool endsBlock = blockEnds(), endsChannels = channelsEnd();
  const int64_t rows = tileRows(), taps = groupTaps();
  index_ = 0;
  if (endsBlock) {
    c_ = 0;
    tapsLeft_ = s_.allTaps();
    n_ += s_.columns;
    block_ += s_.isTransposed ? s_.weightPitch * s_.columns : s_.columns;
    tile_ = at_ = block_;
    return;
  }
  tile_ += s_.isTransposed ? rows : rows * s_.weightPitch;
  at_ = tile_;
  c_ = endsChannels ? 0 : c_ + s_.rows;
  if (endsChannels) tapsLeft_ -= taps;
}

} // namespace candela::npu::exact
