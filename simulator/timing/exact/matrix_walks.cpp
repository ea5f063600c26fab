#include <algorithm>

#include "simulator/timing/exact/matrix.h"

namespace candela::npu::exact {

// ---- Activations

void ActivationWalk::start(const MatrixShape& shape) {
  s_ = shape;
  const int64_t bytes = s_.isWide ? 2 : 1;
  isContiguous_ =
      (s_.isPacked() || s_.isFlat) && s_.dilationW == 1 && s_.pixelStride == s_.cin * bytes;
  n_ = plane_ = oy_ = ox_ = 0;
  isActive_ = true;
  beginBlock();
}

void ActivationWalk::beginBlock() {
  isFirstPass_ = true;
  groupPlace_ = {.term = s_.isDepthwise ? n_ : 0};
  groupLeft_ = s_.isDepthwise ? s_.allTaps() : s_.terms();
  beginGroup();
}
void ActivationWalk::beginGroup() {
  groupTerms_ = std::min(mostTerms(), groupLeft_);
  beginVector();
}
void ActivationWalk::beginVector() {
  place_ = groupPlace_;
  left_ = groupTerms_;
  rowsBefore_ = 0;
}

/// Of a vector that begins at the group's place.
int64_t ActivationWalk::mostTerms() const {
  if (s_.isDepthwise) return s_.allTaps();
  if (s_.isFlat) return s_.rows;
  return s_.isPacked() ? s_.taps * s_.cin : std::min(s_.cin - groupPlace_.term, s_.rows);
}
int64_t ActivationWalk::segmentTerms() const {
  return s_.isDepthwise ? 1 : std::min(stretch() - place_.term, left_);
}
bool ActivationWalk::isLast() const {
  return isSegmentLast() && isPassLast() && isBlockLast() && n_ + s_.columns >= s_.cout;
}

int64_t ActivationWalk::address() const {
  const int64_t bytes = s_.isWide ? 2 : 1;
  const int64_t y = oy_ * s_.strideH + place_.ky * s_.dilationH - s_.padTop;
  const int64_t x = ox_ * s_.strideW + place_.kx * s_.dilationW - s_.padLeft;
  return s_.act + (plane_ * s_.planeRows + y) * s_.rowStride + x * s_.pixelStride +
         (place_.term - rowsBefore_) * bytes;
}

std::pair<int64_t, int64_t> ActivationWalk::valid() const {
  const int64_t y = oy_ * s_.strideH + place_.ky * s_.dilationH - s_.padTop;
  const int64_t x = ox_ * s_.strideW + place_.kx * s_.dilationW - s_.padLeft;
  const int64_t terms = segmentTerms();
  const bool isInside = x >= 0 && x < s_.inW;
  int64_t from = 0, to = isInside ? terms : 0;
  if (isContiguous_) { // of a row of the tile as one row of terms
    const int64_t at = x * s_.cin + place_.term;
    from = std::clamp<int64_t>(-at, 0, terms);
    to = std::clamp<int64_t>(s_.inW * s_.cin - at, 0, terms);
  }
  if (y < 0 || y >= s_.inH || to <= from) return {0, 0};
  if (s_.isDepthwise) return {0, std::min(s_.cin - n_, s_.columns)};
  return {rowsBefore_ + from, rowsBefore_ + to};
}

/// Where the segment behind this one begins.
ActivationWalk::Place ActivationWalk::behind() const {
  const int64_t term = place_.term + segmentTerms();
  if (!s_.isDepthwise && term < stretch()) return {place_.kx, place_.ky, term};
  const int64_t kx = place_.kx + (isContiguous_ ? s_.kernelW : 1),
                first = s_.isDepthwise ? place_.term : 0;
  if (kx == s_.kernelW) return {0, place_.ky + 1, first};
  return {kx, place_.ky, first};
}

void ActivationWalk::step() {
  if (isLast()) {
    isActive_ = false;
    return;
  }
  const Place next = behind();
  if (!isSegmentLast()) {
    rowsBefore_ += s_.isDepthwise ? 0 : segmentTerms();
    left_ -= segmentTerms();
    place_ = next;
    return;
  }
  if (!isPassLast()) {
    if (++ox_ == s_.outW) {
      ox_ = 0;
      ++oy_;
    }
    if (oy_ == s_.outH) {
      oy_ = 0;
      ++plane_;
    }
    return beginVector();
  }
  ox_ = oy_ = plane_ = 0;
  if (isBlockLast()) {
    n_ += s_.columns;
    return beginBlock();
  }
  isFirstPass_ = false;
  groupLeft_ -= groupTerms_;
  groupPlace_ = next;
  beginGroup();
}

// ---- Weights

void WeightWalk::start(const MatrixShape& shape) {
  s_ = shape;
  if (s_.isFlat) { // a matrix product over all terms
    s_.cin = s_.terms();
    s_.kernelH = s_.kernelW = 1;
  }
  index_ = n_ = c_ = 0;
  tapsLeft_ = s_.allTaps();
  outsLeft_ = s_.planes * s_.outH * s_.outW;
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
  outsLeft_ = s_.planes * s_.outH * s_.outW;
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
