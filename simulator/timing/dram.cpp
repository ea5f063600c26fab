#include "simulator/timing/dram.h"

#include <algorithm>

#include "simulator/timing/constants.h"

namespace candela::npu {
namespace {

constexpr std::string_view kDdr3 = "JESD79-3F and data sheets of 4 Gb x8 DDR3-2133, 14-14-14";
constexpr std::string_view kDdr4 =
    "JESD79-4 and data sheets of 4 Gb x8 devices; DRAMSys memory specifications";
constexpr std::string_view kLp4 =
    "JESD209-4 and DRAMSys memory specifications, x16, 8 Gb a channel";
constexpr std::string_view kLp5 = "JESD209-5, x16, 16 banks in 4 groups, WCK to CK 4:1";

constexpr std::string_view kHbm2 =
    "JESD235A, a pseudo channel of 64 bits; gem5's HBM_2000_4H_1x64 (src/mem/DRAMInterface.py)";
constexpr std::string_view kSram = "no data sheet: no rows, no refresh, 8 cycles through a bus";
constexpr std::string_view kHyperRam =
    "data sheets of 64 and 256 Mb HYPERRAM at 200 MHz: 3 clocks of command and address, a fixed "
    "latency of 14, in which it refreshes; the controller ends a transaction with each row";
constexpr std::string_view kNor =
    "data sheets of 512 Mb octal NOR flash at 200 MHz, Macronix MX25UM51245G, by both edges of the "
    "clock: a clock of command and two of address, 20 of latency, 10 ns between two reads; the "
    "controller ends a transaction with each 2 KiB";
/// Longer than any program runs.
constexpr int64_t kNever = int64_t{1} << 40;

constexpr DramTiming kTimingsOfDram[] = {
    {"DDR3-2133", kDdr3, 3200, 3, 64, 8,  4, 8,  1, 8192, 14,   14, 14,
     10,          36,    4,    4, 6,  27, 8, 16, 8, 8,    8320, 278},
    {"DDR4-2400", kDdr4, 1200, 1, 64, 8,  4, 16, 4, 8192, 16,   16, 16,
     12,          39,    4,    6, 6,  26, 9, 18, 3, 9,    9360, 312},
    {"DDR4-3200", kDdr4, 1600, 1, 64, 8,  4,  16, 4, 8192, 22,    22, 22,
     16,          52,    4,    8, 8,  34, 12, 24, 4, 12,   12480, 416},
    {"LPDDR4-3200",
     kLp4,
     1600,
     1,
     16,
     16,
     8,
     8,
     1,
     2048,
     29,
     29,
     28,
     14,
     68,
     8,
     8,
     16,
     64,
     12,
     29,
     16,
     16,
     6246,
     448},
    {"LPDDR5-6400",
     kLp5,
     800,
     1,
     16,
     16,
     2,
     16,
     4,
     2048,
     15,
     15,
     17,
     9,
     34,
     2,
     4,
     4,
     16,
     8,
     28,
     5,
     10,
     3124,
     224},
    {"HBM2-2000", kHbm2, 1000, 1, 64, 4,  2, 16, 4, 1024, 12,   14, 18,
     7,           28,    2,    3, 4,  16, 5, 14, 4, 9,    3900, 220},
    {"SRAM-1000", kSram, 1000, 1, 128, 4, 4, 1, 1, kNever, 0,      0, 8,
     1,           0,     4,    4, 0,   0, 0, 0, 0, 0,      kNever, 0},
    {"HyperRAM-400",
     kHyperRam,
     200,
     1,
     16,
     16,
     8,
     1,
     1,
     2048,
     3,
     2,
     14,
     14,
     0,
     8,
     8,
     0,
     0,
     0,
     0,
     17,
     17,
     kNever,
     0},
    {"NOR-octal-400",
     kNor,
     200,
     1,
     8,
     32,
     16,
     1,
     1,
     2048,
     3,
     2,
     20,
     20,
     0,
     16,
     16,
     0,
     0,
     0,
     0,
     0,
     0,
     kNever,
     0,
     true},
};
static_assert(std::size(kTimingsOfDram) == std::size(kSecondTypeValues) &&
              std::size(kDramTypeValues) < std::size(kSecondTypeValues));

} // namespace

std::span<const DramTiming> dramTimings() { return kTimingsOfDram; }

const DramTiming& dramTimingOf(const Configuration& configuration) {
  return kTimingsOfDram[configuration[key::kDramType]];
}

Dram::Dram(const Configuration& configuration, MemoryId which)
    : timing_(which == MemoryId::kDram ? dramTimingOf(configuration)
                                       : kTimingsOfDram[configuration[key::kSecondType]]),
      clockMhz_(configuration[key::kClockMhz]), turn_(valueOf(Timing::kControllerTurn)),
      gathered_(static_cast<size_t>(valueOf(Timing::kControllerWrites))) {
  const int64_t
      width = configuration[which == MemoryId::kDram ? key::kDramWidthBits : key::kSecondWidthBits],
      bits = std::min(width, timing_.channelBits);
  granule_ = bits / 8 * timing_.burstLength;
  last_.resize(configuration.cores() * kEngineCount + 1);
  timing_.rowBytes = timing_.rowBytes * bits / timing_.channelBits;
  controller_ = valueOf(Timing::kControllerLatency) * timing_.clockNumerator /
                (1000 * timing_.clockDenominator);
  channels_.resize(static_cast<size_t>(width / bits));
  for (Channel& channel : channels_) {
    channel.banks.resize(static_cast<size_t>(timing_.banks));
    channel.groupCas.assign(static_cast<size_t>(timing_.groups), kLongAgo);
    channel.nextRefresh = timing_.refi;
  }
  inGroup_ = timing_.banks / timing_.groups;
  byGranule_ = Divisor(granule_);
  byChannel_ = Divisor(channels());
  byGroup_ = Divisor(timing_.groups);
  byColumns_ = Divisor(timing_.rowBytes / granule_);
  byInGroup_ = Divisor(inGroup_);
}

double Dram::bytesPerCycle() const {
  const double perMemoryCycle =
      static_cast<double>(granule_ * channels()) / static_cast<double>(timing_.burstCycles);
  return perMemoryCycle * static_cast<double>(timing_.clockNumerator) /
         static_cast<double>(timing_.clockDenominator * clockMhz_);
}

int64_t Dram::toMemory(int64_t cycle) const {
  const int64_t by = timing_.clockDenominator * clockMhz_;
  return (cycle * timing_.clockNumerator + by - 1) / by;
}
int64_t Dram::toNpu(int64_t cycles) const {
  return (cycles * timing_.clockDenominator * clockMhz_ + timing_.clockNumerator - 1) /
         timing_.clockNumerator;
}

int64_t Dram::serve(Channel& channel, int64_t at, int64_t unit, bool isWrite) {
  const DramTiming& t = timing_;
  while (at >= channel.nextRefresh || channel.lastCas >= channel.nextRefresh) {
    // All rows close, and no bank opens one before the end.
    const int64_t end = std::max(channel.nextRefresh, channel.lastCas) + t.rp + t.rfc;
    for (Bank& bank : channel.banks) bank = {-1, -1, kLongAgo, kLongAgo, end - t.rp};
    channel.nextRefresh += t.refi;
    ++counts_.refreshes;
  }
  const int64_t group = byGroup_.rest(unit);
  const int64_t page = byColumns_.quotient(byGroup_.quotient(unit));
  const int64_t bankOf = byInGroup_.rest(page), row = byInGroup_.quotient(page);
  // The upper bits of the row permute the banks: strides of a power of two spread.
  Bank& bank = channel.banks[static_cast<size_t>(group * inGroup_ + byInGroup_.rest(bankOf + row))];
  int64_t ready = at;
  // What was there before the row gave way to another one would have gone first: the controller
  // prefers open rows.
  const bool isLate = bank.row != row && bank.previous == row && at <= bank.closed;
  if (bank.row == row || isLate) {
    ++counts_.rowHits;
  } else {
    ++counts_.rowMisses;
    int64_t open = std::max(at, bank.prechargeable + t.rp);
    if (bank.row >= 0) open = std::max(open, at + t.rp);
    open = std::max({open, channel.activations[3] + t.rrd, channel.activations[0] + t.faw});
    std::copy(channel.activations.begin() + 1, channel.activations.end(),
              channel.activations.begin());
    channel.activations[3] = open;
    bank.previous = bank.row;
    bank.closed = open - t.rp;
    bank.row = row;
    bank.activated = open;
    bank.prechargeable = open + t.ras;
  }
  if (!isLate) ready = std::max(ready, bank.activated + t.rcd);
  int64_t& groupCas = channel.groupCas[static_cast<size_t>(group)];
  int64_t cas = std::max({ready, channel.lastCas + t.ccdShort, groupCas + t.ccdLong});
  if (isWrite) {
    cas =
        std::max(cas, channel.lastReadCas + t.readLatency + t.burstCycles + turn_ - t.writeLatency);
    channel.writeEnd = cas + t.writeLatency + t.burstCycles;
    channel.writeGroup = group;
    bank.prechargeable = std::max(bank.prechargeable, channel.writeEnd + t.wr);
  } else {
    cas = std::max(cas, channel.writeEnd + (channel.writeGroup == group ? t.wtrLong : t.wtrShort));
    channel.lastReadCas = cas;
    bank.prechargeable = std::max(bank.prechargeable, cas + t.rtp);
  }
  channel.lastCas = groupCas = cas;
  ++counts_.bursts;
  counts_.busBusy += static_cast<uint64_t>(t.burstCycles);
  return cas + (isWrite ? t.writeLatency : t.readLatency) + t.burstCycles;
}

/// Writes that can be done before `until`, all of them where it is negative. Returns when the first
/// one left.
int64_t Dram::drainWrites(Channel& channel, int64_t from, int64_t until) {
  int64_t first = from;
  size_t done = 0;
  // The rows of the writes open from then on, those of other banks while the writes before them
  // pass.
  const int64_t decided = until < 0 ? from : channel.lastCas;
  for (const Write& write : channel.writes) {
    const int64_t begin = std::max(write.arrival, decided);
    // An idle channel writes ahead of what comes, as long as that hardly waits for it.
    const int64_t cas =
        std::max(begin + timing_.rp + timing_.rcd, channel.lastCas + timing_.ccdLong);
    if (until >= 0 && cas + timing_.writeLatency + timing_.burstCycles + timing_.wtrLong > until)
      break;
    const int64_t end = serve(channel, begin, write.unit, true);
    if (done++ == 0) first = end;
  }
  channel.writes.erase(channel.writes.begin(),
                       channel.writes.begin() + static_cast<std::ptrdiff_t>(done));
  return first;
}

int64_t Dram::access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite, int requester) {
  const int64_t at = toMemory(cycle) + controller_;
  const int64_t first = byGranule_.quotient(static_cast<int64_t>(address));
  const int64_t last = byGranule_.quotient(static_cast<int64_t>(address) + bytes - 1);
  Last& known = last_[static_cast<size_t>(requester + 1)][isWrite];
  int64_t done = at;
  for (int64_t granule = first; granule <= last; ++granule) {
    if (granule == known.granule) { // the rest of what was just there
      done = std::max(done, known.done);
      continue;
    }
    Channel& channel = channels_[static_cast<size_t>(byChannel_.rest(granule))];
    const int64_t unit = byChannel_.quotient(granule);
    int64_t end = at;
    if (!isWrite) {
      if (!channel.writes.empty()) drainWrites(channel, at, at);
      end = serve(channel, at, unit, false);
    } else {
      if (channel.writes.size() == gathered_) end = drainWrites(channel, at, -1);
      channel.writes.push_back({at, unit});
    }
    known = {granule, end};
    done = std::max(done, end);
  }
  return toNpu(done);
}

int64_t Dram::drain(int64_t cycle) {
  int64_t end = toMemory(cycle);
  for (Channel& channel : channels_) {
    drainWrites(channel, end, -1);
    end = std::max(end, channel.writeEnd);
  }
  return std::max(cycle, toNpu(end));
}

} // namespace candela::npu
