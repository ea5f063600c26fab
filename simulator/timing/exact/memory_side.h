#pragma once

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "simulator/timing/exact/channels.h"
#include "simulator/timing/schedule.h"

namespace candela::npu::exact {

/// Whose each channel of the memory's port is: the fetch of the program, load channels, store
/// channels, and the writer of profile records, which is the control processor's.
std::vector<int> enginesOfChannels(const Configuration& configuration);

/// The transactions at the NPU's one port to the memory. It takes each request at once, and answers
/// when a MemoryPort says, there and back over the fabric: a burst's first beat comes in the cycle
/// before the one in which a Schedule has it. A beat, and an answer to a write, in a cycle: of
/// those that are due the one that was due first, of one channel in the order of requests.
class Transactions {
public:
  struct Read {
    uint64_t address;
    int channel, beats;
    int64_t due;
  };
  struct Write {
    uint64_t address;
    int channel, beats, left;
    int64_t bytes;
    std::optional<int64_t> due; ///< of its answer, once it is known
  };
  /// `engines`: whose each channel is.
  Transactions(MemoryPort& port, std::vector<int> engines)
      : port_(port), engines_(std::move(engines)) {}

  void askRead(int64_t now, uint64_t address, int64_t bytes, int channel, int beats);
  void askWrite(int64_t now, uint64_t address, int64_t bytes, int channel, int beats);
  /// Chooses what is offered in a cycle.
  void offer(int64_t now);
  const Read* read() const { return at(reads_, read_); }
  const Write* answer() const { return at(writes_, answer_); }
  /// A beat of what is offered is taken, and `next` is where the one behind it begins; the answer
  /// is.
  void takeBeat(uint64_t next);
  void takeAnswer();
  /// The write that the next beat belongs to, or null; and that it has come.
  const Write* writing() const;
  void takeData(int64_t now);
  bool isBusy() const { return !reads_.empty() || !writes_.empty(); }

private:
  template <typename T> static const T* at(const std::deque<T>& all, size_t index) {
    return index < all.size() ? &all[index] : nullptr;
  }
  int64_t answerTo(int64_t now, uint64_t address, int64_t bytes, bool isWrite, int channel);

  MemoryPort& port_;
  std::vector<int> engines_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
  size_t read_ = SIZE_MAX, answer_ = SIZE_MAX;
};

/// As rtl/command/cdl_npu_fetch.sv: which lines of the program are there.
class Fetch {
public:
  Fetch(const Configuration& configuration, uint64_t program, size_t words);
  /// What it asks for while the word at `pc` is run, or waited for.
  void ask(uint32_t pc);
  /// Whether a word is there, or comes in this cycle.
  bool has(uint32_t index) const;
  void clock();

  BurstRequest burst;
  bool hasBeat = false; ///< set by the memory in this cycle

private:
  struct Line {
    int64_t number = -1;
    bool isComing = false;
  };
  Line& slotOf(int64_t line) { return lines_[static_cast<size_t>(line) % lines_.size()]; }
  const Line& slotOf(int64_t line) const {
    return lines_[static_cast<size_t>(line) % lines_.size()];
  }

  int64_t lineBytes_, burstBytes_, beatBytes_, rowBytes_, last_;
  uint64_t program_;
  std::vector<Line> lines_;
  int64_t held_ = -1, part_ = 0, beat_ = 0; ///< the line that is asked for; bursts and beats of one
  std::deque<int64_t> coming_;
};

/// As rtl/dma/cdl_npu_burst_arbiter.sv: a request in a cycle, in turn.
class Arbiter {
public:
  static constexpr size_t kWrites = 4; ///< bursts of stores whose data has not passed

  /// The channel that asks first, or -1.
  int choose(const std::vector<BurstRequest*>& requests, const std::vector<bool>& isWrite);
  void take(int channel, size_t channels, bool isWrite);
  /// Whose data passes, or -1.
  int writer() const { return writers_.empty() ? -1 : writers_.front(); }
  void endWrite() { writers_.pop_front(); }

private:
  size_t first_ = 0;
  std::deque<int> writers_;
};

} // namespace candela::npu::exact
