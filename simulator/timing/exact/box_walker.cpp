#include "simulator/timing/exact/box_walker.h"

#include <algorithm>

namespace candela::npu::exact {

bool BoxWalker::join(int64_t stride, int64_t length, bool& mayJoin) {
  const bool joins = mayJoin && stride == run_;
  if (joins) run_ *= length;
  mayJoin = (joins || (length == 1 && mayJoin)) && !pads_.any();
  return joins;
}

void BoxWalker::start(const DescriptorValues& d, const Side& side, int64_t words, int64_t burst) {
  namespace tra = descriptor::transfer;
  words_ = words;
  burst_ = burst;
  pads_ = side.pads;
  std::copy_n(side.strides, 3, strides_);
  run_ = d[tra::kRun];
  leftBytes_ = run_ * (side.strides[0] == run_ ? pads_.left : 1);
  rightBytes_ = run_ * (side.strides[0] == run_ ? pads_.right : 1);
  bool mayJoin = true;
  isPacked_ = join(side.strides[0], d[tra::kLen1], mayJoin);
  len1_ = isPacked_ ? 1 : d[tra::kLen1];
  len2_ = join(side.strides[1], d[tra::kLen2], mayJoin) ? 1 : d[tra::kLen2];
  planes_ = join(side.strides[2], d[tra::kLen3], mayJoin) ? 1 : d[tra::kLen3];
  address_ = rowAddress_ = planeAddress_ = side.address;
  row_ = 0;
  beginPart(partOf(0));
  isWalking_ = true;
  wait_ = kSetup;
}

void BoxWalker::tick() {
  if (wait_ > 0) --wait_;
}

BoxWalker::Part BoxWalker::partOf(int64_t row) const {
  if (row < pads_.top || row >= pads_.top + len2_) return Part::kAll;
  return leftRuns() ? Part::kLeft : Part::kData;
}

BoxWalker::Runs BoxWalker::runsOf(Part part) const {
  switch (part) {
  case Part::kLeft: return {leftRuns(), leftBytes_};
  case Part::kRight: return {rightRuns(), rightBytes_};
  case Part::kAll:
    if (isPacked_) return {1, leftBytes_ + run_ + rightBytes_};
    return {len1_ + pads_.left + pads_.right, run_};
  default: return {len1_, run_};
  }
}

void BoxWalker::beginPart(Part part) {
  part_ = part;
  const Runs runs = runsOf(part);
  runs_ = runs.count;
  left_ = runs.bytes;
  runAddress_ = address_;
}

int64_t BoxWalker::limit() const { return words_ ? words_ : burst_ - (address_ & (burst_ - 1)); }
int64_t BoxWalker::bytes() const { return std::min(left_, limit()); }
bool BoxWalker::runEnds() const { return left_ <= limit(); }
bool BoxWalker::rowEnds() const {
  if (!partEnds()) return false;
  return part_ == Part::kAll || part_ == Part::kRight || (part_ == Part::kData && !rightRuns());
}
bool BoxWalker::isLast() const { return planeEnds() && planes_ == 1; }

void BoxWalker::step() {
  const int64_t moved = bytes();
  if (!runEnds()) {
    address_ += moved;
    left_ -= moved;
    return;
  }
  if (!rowEnds()) {
    address_ = isPacked_ ? address_ + moved : runAddress_ + strides_[0];
    if (partEnds()) return beginPart(part_ == Part::kLeft ? Part::kData : Part::kRight);
    --runs_;
    left_ = runsOf(part_).bytes;
    runAddress_ = address_;
    return;
  }
  if (isLast()) {
    isWalking_ = false;
    return;
  }
  if (planeEnds()) {
    address_ = rowAddress_ = planeAddress_ = planeAddress_ + strides_[2];
    --planes_;
    row_ = 0;
  } else {
    address_ = rowAddress_ = rowAddress_ + strides_[1];
    ++row_;
  }
  beginPart(partOf(row_));
}

} // namespace candela::npu::exact
