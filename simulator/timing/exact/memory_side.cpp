#include "simulator/timing/exact/memory_side.h"

#include <algorithm>

namespace candela::npu::exact {
namespace {

constexpr int64_t kBehindRequest = 2; ///< a store's first beat follows its request by so much

} // namespace

std::vector<int> enginesOfChannels(const Configuration& c) {
  std::vector<int> engines{0};
  for (int i = 0; i < c.loadChannels(); ++i)
    engines.push_back(static_cast<int>(npu::Engine::kLoad0) + i);
  for (int i = 0; i < c.storeChannels(); ++i)
    engines.push_back(static_cast<int>(npu::Engine::kStore0) + i);
  engines.push_back(static_cast<int>(npu::Engine::kControl));
  return engines;
}

// ---- Transactions

int64_t Transactions::answerTo(int64_t now, uint64_t address, int64_t bytes, bool isWrite,
                               int channel) {
  const int64_t there = valueOf(Timing::kFabricLatency) / 2,
                back = valueOf(Timing::kFabricLatency) - there;
  const int engine = engines_[static_cast<size_t>(channel)];
  return port_.access(now + there, address, bytes, isWrite, engine) + back - 1;
}

void Transactions::askRead(int64_t now, uint64_t address, int64_t bytes, int channel, int beats) {
  reads_.push_back({address, channel, beats, answerTo(now, address, bytes, false, channel)});
}

/// The memory has a burst of a single beat with its request, others as much before their last beat.
void Transactions::askWrite(int64_t now, uint64_t address, int64_t bytes, int channel, int beats) {
  Write write{address, channel, beats, beats, bytes, std::nullopt};
  if (beats == 1) write.due = answerTo(now, address, bytes, true, channel);
  writes_.push_back(write);
}

void Transactions::offer(int64_t now) {
  read_ = answer_ = SIZE_MAX;
  uint32_t seen = 0;
  for (size_t i = 0; i < reads_.size(); ++i) {
    const Read& read = reads_[i];
    if (seen >> read.channel & 1) continue;
    seen |= uint32_t{1} << read.channel;
    if (read.due <= now && (read_ == SIZE_MAX || read.due < reads_[read_].due)) read_ = i;
  }
  for (size_t i = 0; i < writes_.size(); ++i) {
    const Write& write = writes_[i];
    if (write.left || *write.due > now) continue;
    if (answer_ == SIZE_MAX || *write.due < *writes_[answer_].due) answer_ = i;
  }
}

void Transactions::takeBeat(uint64_t next) {
  Read& read = reads_[read_];
  read.address = next;
  if (--read.beats == 0) reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(read_));
}
void Transactions::takeAnswer() {
  writes_.erase(writes_.begin() + static_cast<std::ptrdiff_t>(answer_));
}

const Transactions::Write* Transactions::writing() const {
  const auto write =
      std::find_if(writes_.begin(), writes_.end(), [](const Write& w) { return w.left > 0; });
  return write == writes_.end() ? nullptr : &*write;
}
void Transactions::takeData(int64_t now) {
  const auto write =
      std::find_if(writes_.begin(), writes_.end(), [](const Write& w) { return w.left > 0; });
  if (write == writes_.end()) return;
  if (--write->left == 0 && !write->due)
    write->due = answerTo(now - kBehindRequest, write->address, write->bytes, true, write->channel);
}

// ---- Fetch

Fetch::Fetch(const Configuration& c, uint64_t program, size_t words)
    : lineBytes_(std::max(c[key::kDmaBurstBytes], Dram(c).granule())),
      burstBytes_(c[key::kDmaBurstBytes]), beatBytes_(std::min(c[key::kDmaBeatBytes], burstBytes_)),
      rowBytes_(std::max<int64_t>(beatBytes_, sizeof(Word))),
      last_((static_cast<int64_t>(words * sizeof(Word)) - 1) / lineBytes_), program_(program),
      lines_(static_cast<size_t>(valueOf(Timing::kFetchBuffer))) {}

void Fetch::ask(uint32_t pc) {
  burst.isValid = false;
  const int64_t first = static_cast<int64_t>(pc) * static_cast<int64_t>(sizeof(Word)) / lineBytes_;
  if (held_ < 0) {
    const int64_t end = std::min(last_, first + valueOf(Timing::kFetchAhead));
    int64_t line = first;
    while (line <= end && slotOf(line).number == line) ++line;
    if (line > end || slotOf(line).isComing) return;
    held_ = line;
  }
  burst.isValid = true;
  burst.address = static_cast<int64_t>(program_) + held_ * lineBytes_ + part_ * burstBytes_;
  burst.bytes = burstBytes_;
}

bool Fetch::has(uint32_t index) const {
  const int64_t at = static_cast<int64_t>(index) * static_cast<int64_t>(sizeof(Word));
  const int64_t line = at / lineBytes_, row = at % lineBytes_ / rowBytes_;
  const Line& slot = slotOf(line);
  if (slot.number != line) return false;
  if (!slot.isComing) return true;
  if (coming_.empty() || coming_.front() != line) return false;
  const int64_t lanes = rowBytes_ / beatBytes_, coming = beat_ / lanes;
  return row < coming || (hasBeat && row == coming && beat_ % lanes == lanes - 1);
}

void Fetch::clock() {
  if (hasBeat && ++beat_ == lineBytes_ / beatBytes_) {
    beat_ = 0;
    slotOf(coming_.front()).isComing = false;
    coming_.pop_front();
  }
  if (!burst.isValid || !burst.isTaken) return;
  if (part_ == 0) coming_.push_back(held_);
  slotOf(held_) = {held_, true};
  if (++part_ < lineBytes_ / burstBytes_) return;
  part_ = 0;
  held_ = -1;
}

// ---- Arbiter

int Arbiter::choose(const std::vector<BurstRequest*>& requests, const std::vector<bool>& isWrite) {
  const bool mayWrite = writers_.size() < kWrites;
  for (size_t i = 0; i < requests.size(); ++i) {
    const size_t at = (first_ + i) % requests.size();
    if (requests[at]->isValid && (mayWrite || !isWrite[at])) return static_cast<int>(at);
  }
  return -1;
}

void Arbiter::take(int channel, size_t channels, bool isWrite) {
  first_ = (static_cast<size_t>(channel) + 1) % channels;
  if (isWrite) writers_.push_back(channel);
}

} // namespace candela::npu::exact
