#include "simulator/timing/exact/channels.h"

#include <bit>

namespace candela::npu::exact {
namespace {

namespace tra = descriptor::transfer;

constexpr int64_t kRoom = 4;         ///< words of a load between its bytes and the scratchpad
constexpr size_t kRequestsAhead = 4; ///< bursts of a store ahead of their data

BoxWalker::Side farSide(const DescriptorValues& d, int64_t address) {
  return {address, {d[tra::kFarStride1], d[tra::kFarStride2], d[tra::kFarStride3]}, {}};
}
BoxWalker::Side nearSide(const DescriptorValues& d, int64_t address) {
  return {address,
          {d[tra::kNearStride1], d[tra::kNearStride2], d[tra::kNearStride3]},
          {d[tra::kPadLeft], d[tra::kPadRight], d[tra::kPadTop], d[tra::kPadBottom]}};
}

} // namespace

ChannelSizes::ChannelSizes(const Configuration& c)
    : width(c[key::kScratchpadBankWidth]), burst(c[key::kDmaBurstBytes]),
      beat(std::min(c[key::kDmaBeatBytes], burst)), outstanding(c[key::kDmaOutstanding]),
      longest(std::max(burst, width)),
      depth(2 * longest * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(outstanding)))) {
}

// ---- Load

void LoadChannel::begin(const Operation& operation, int64_t base) {
  operation_ = operation;
  base_ = base;
  isCopy_ = operation.insn.op == Op::kCopy;
  isFill_ = operation.insn.op == Op::kFill;
  isRunning_ = true;
  isWalked_ = false;
  setup_ = 2; // of which the second one starts the walks
}

void LoadChannel::startWalks() {
  const auto& v = operation_.insn.values;
  const DescriptorValues& d = operation_.d;
  int64_t target = v[field::load::kDst];
  if (isCopy_) target = v[field::copy::kDst];
  if (isFill_) target = v[field::fill::kDst];
  near_.start(d, nearSide(d, target), sizes_.width, sizes_.width);
  if (isCopy_)
    far_.start(d, farSide(d, v[field::copy::kSrc]), sizes_.width, sizes_.burst);
  else if (!isFill_)
    far_.start(d, farSide(d, base_ + v[field::load::kFar]), 0, sizes_.burst);
}

void LoadChannel::ask() {
  read.isValid = write.isValid = burst.isValid = false;
  const bool hasRoom = reserved_ <= sizes_.depth - sizes_.longest;
  if (far_.isActive() && hasRoom && isCopy_) read.ask(far_.address(), 0, far_.bytes());
  if (far_.isActive() && hasRoom && !isCopy_ && inFlight_ != sizes_.outstanding) {
    burst.isValid = true;
    burst.address = far_.address();
    burst.bytes = far_.bytes();
  }
  if (!results_.empty()) write.ask(results_.front().address, 0, results_.front().bytes);
}

/// Bytes of the beat that comes.
int64_t LoadChannel::takeBeat(bool& burstEnds) {
  const Flight& flight = flights_.front();
  const int64_t bytes = sizes_.beatBytes(flight.address, flight.bytes, taken_);
  taken_ += bytes;
  burstEnds = taken_ == flight.bytes;
  if (burstEnds) {
    flights_.pop_front();
    taken_ = 0;
  }
  return bytes;
}

void LoadChannel::clock() {
  isDone_ = false;
  const bool isPadding = isFill_ || near_.isPadding();
  const bool steps =
      near_.isActive() && underWay_ != kRoom && (isPadding || level_ >= near_.bytes());
  const bool sent = write.isValid && write.isGranted;
  const bool asked = burst.isValid && burst.isTaken, wasRead = read.isValid && read.isGranted;
  if (isWalked_ && sent && underWay_ == 1) {
    isRunning_ = false;
    isWalked_ = false;
    isDone_ = true;
  }
  int64_t entered = came_;
  bool burstEnds = false;
  if (hasBeat) entered += takeBeat(burstEnds);
  came_ = wasRead ? far_.bytes() : 0;
  if (asked) flights_.push_back({burst.address, burst.bytes});
  inFlight_ += asked - burstEnds;
  if (asked || wasRead) {
    reserved_ += far_.bytes();
    far_.step();
  }
  if (sent) results_.pop_front();
  if (nearCame_) results_.push_back(nearPiece_);
  nearCame_ = steps;
  underWay_ += steps - sent;
  level_ += entered;
  if (steps) {
    nearPiece_ = {near_.address(), near_.bytes()};
    if (!isPadding) {
      level_ -= near_.bytes();
      reserved_ -= near_.bytes();
    }
    isWalked_ = near_.isLast();
    near_.step();
  }
  far_.tick();
  near_.tick();
  if (setup_ > 0 && --setup_ == 0) startWalks();
}

// ---- Store

void StoreChannel::begin(const Operation& operation, int64_t base) {
  operation_ = operation;
  base_ = base;
  isRunning_ = true;
  isWalked_ = false;
  setup_ = 2;
}

void StoreChannel::startWalks() {
  const auto& v = operation_.insn.values;
  const DescriptorValues& d = operation_.d;
  BoxWalker::Side near = nearSide(d, v[field::store::kSrc]);
  near.pads = {};
  near_.start(d, near, sizes_.width, sizes_.width);
  far_.start(d, farSide(d, base_ + v[field::store::kFar]), 0, sizes_.burst);
}

void StoreChannel::ask() {
  read.isValid = burst.isValid = false;
  if (near_.isActive() && reserved_ <= sizes_.depth - sizes_.width)
    read.ask(near_.address(), 0, near_.bytes());
  const bool may = far_.isActive() && bursts_.size() < kRequestsAhead &&
                   inFlight_ != sizes_.outstanding && unclaimed_ >= far_.bytes();
  if (!may) return;
  burst.isValid = true;
  burst.address = far_.address();
  burst.bytes = far_.bytes();
}

/// The next beat leaves the bytes.
int64_t StoreChannel::popBeat() {
  const Flight& flight = bursts_.front();
  const int64_t bytes = sizes_.beatBytes(flight.address, flight.bytes, taken_);
  taken_ += bytes;
  isLastBeat_ = taken_ == flight.bytes;
  if (isLastBeat_) {
    bursts_.pop_front();
    taken_ = 0;
  }
  return bytes;
}

void StoreChannel::clock() {
  isDone_ = false;
  const bool wasRead = read.isValid && read.isGranted, asked = burst.isValid && burst.isTaken;
  const bool answered = hasAnswer && inFlight_ != 0;
  if (isWalked_ && answered && inFlight_ == 1) {
    isRunning_ = false;
    isWalked_ = false;
    isDone_ = true;
  }
  const bool pops = !bursts_.empty() && (!hasBeat_ || mayPut);
  hasBeat_ = pops || (hasBeat_ && !mayPut);
  if (pops) reserved_ -= popBeat();
  unclaimed_ += came_;
  came_ = wasRead ? near_.bytes() : 0;
  if (wasRead) {
    reserved_ += near_.bytes();
    near_.step();
  }
  inFlight_ += asked - answered;
  if (asked) {
    bursts_.push_back({burst.address, burst.bytes});
    unclaimed_ -= burst.bytes;
    isWalked_ = far_.isLast();
    far_.step();
  }
  far_.tick();
  near_.tick();
  if (setup_ > 0 && --setup_ == 0) startWalks();
}

} // namespace candela::npu::exact
