#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/config/configuration.h"
#include "simulator/isa/isa.h"

namespace candela::npu {

/// Timing of a kind of memory, in its clock cycles unless said otherwise: of data sheets (tag
/// spec), but for SRAM, which has none (tag assumed). Flash has transactions for rows: opening is
/// the command and the address, closing the time between two.
struct DramTiming {
  std::string_view name, source;
  int64_t clockNumerator, clockDenominator; ///< MHz
  int64_t channelBits;                      ///< width of one channel
  int64_t burstLength;                      ///< transfers
  int64_t burstCycles;                      ///< of the data bus
  int64_t banks, groups, rowBytes;          ///< of a channel
  int64_t rcd, rp, readLatency, writeLatency, ras;
  int64_t ccdShort, ccdLong, rrd, faw, rtp, wr, wtrShort, wtrLong, refi, rfc;
  bool isFlash = false; ///< it is read alone
};
std::span<const DramTiming> dramTimings();
const DramTiming& dramTimingOf(const Configuration& configuration);

/// Divides what is not negative, by shifting where that does it: most sizes are powers of two, and
/// each burst is divided by several of them.
class Divisor {
public:
  explicit Divisor(int64_t by = 1)
      : by_(by), shift_((by & (by - 1)) == 0 ? std::countr_zero(static_cast<uint64_t>(by)) : -1) {}
  int64_t quotient(int64_t value) const { return shift_ < 0 ? value / by_ : value >> shift_; }
  int64_t rest(int64_t value) const { return shift_ < 0 ? value % by_ : value & (by_ - 1); }

private:
  int64_t by_;
  int shift_;
};

/// The rest of what is not negative, likewise.
inline int64_t restOf(int64_t value, int64_t by) {
  return (by & (by - 1)) == 0 ? value & (by - 1) : value % by;
}

/// The channels, banks and rows of the memory as a state that each access moves on: no clock and no
/// events. (Controllers modelled by what an access changes, not cycle by cycle, are those of
/// Hansson et al., "Simulating DRAM controllers for future system architecture exploration", ISPASS
/// 2014.) Accesses come in the order of their cycles; those of a channel are served in that order,
/// while rows of other banks open meanwhile. Writes are accepted into a buffer and leave it
/// together, or when the channel would be idle. Neighbouring bursts go to the channels in turn,
/// then to the groups of banks; a row is followed by the same row of the next bank.
class Dram {
public:
  explicit Dram(const Configuration& configuration, MemoryId which = MemoryId::kDram);

  /// A requester that is no engine.
  static constexpr int kOther = -1;

  /// `bytes` from `address` on, asked for by `requester` (an engine, those of core c from c *
  /// kEngineCount on, or kOther) at `cycle` of the NPU. Returns the cycle in which the last of them
  /// is there, or the write is accepted.
  int64_t access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite, int requester);
  /// The cycle in which all writes are in the memory.
  int64_t drain(int64_t cycle);

  /// Bytes that one access to a channel moves.
  int64_t granule() const { return granule_; }
  int channels() const { return static_cast<int>(channels_.size()); }
  const DramTiming& timing() const { return timing_; }
  /// Bytes of all channels in a cycle of the NPU, at most.
  double bytesPerCycle() const;
  /// Cycles of the NPU from cycles of the memory, rounded up.
  int64_t toNpu(int64_t cycles) const;

  struct Counts {
    uint64_t bursts = 0, rowHits = 0, rowMisses = 0, refreshes = 0;
    uint64_t busBusy = 0; ///< cycles of the memory, all channels together
  };
  const Counts& counts() const { return counts_; }

private:
  struct Bank {
    int64_t row = -1, previous = -1;
    int64_t closed = kLongAgo;        ///< when the previous row was
    int64_t activated = kLongAgo;     ///< when its row was opened
    int64_t prechargeable = kLongAgo; ///< when that row may be closed
  };
  struct Write {
    int64_t arrival;
    int64_t unit;
  };
  struct Channel {
    std::vector<Bank> banks;
    std::vector<int64_t> groupCas; ///< the last access of each group
    std::array<int64_t, 4> activations{kLongAgo, kLongAgo, kLongAgo, kLongAgo};
    int64_t lastCas = kLongAgo, lastReadCas = kLongAgo, writeEnd = kLongAgo, writeGroup = -1;
    int64_t nextRefresh = 0;
    std::vector<Write> writes;
  };
  static constexpr int64_t kLongAgo = -1'000'000;

  int64_t toMemory(int64_t cycle) const;
  /// One granule; `unit` counts them within the channel. Returns when its data has passed.
  int64_t serve(Channel& channel, int64_t at, int64_t unit, bool isWrite);
  int64_t drainWrites(Channel& channel, int64_t from, int64_t until);

  DramTiming timing_;
  int64_t granule_, clockMhz_, controller_, turn_;
  int64_t inGroup_ = 1; ///< banks of a group
  Divisor byGranule_, byChannel_, byGroup_, byColumns_, byInGroup_;
  size_t gathered_; ///< writes, at most
  std::vector<Channel> channels_;
  struct Last {
    int64_t granule = -1, done = 0;
  };
  /// of each requester: what it read and wrote last
  std::vector<std::array<Last, 2>> last_; ///< kOther first
  Counts counts_;
};

} // namespace candela::npu
