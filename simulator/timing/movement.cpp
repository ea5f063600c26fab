#include "simulator/timing/movement.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/error.h"

namespace candela::npu {
namespace {

namespace tra = descriptor::transfer;

constexpr double kMostBytes = 1LL << 41; ///< of a transfer: the largest memory holds half of it
/// The class of the region of a load or a store that lies within one.
RegionClass classOf(const Operation& o, const Binary& binary) {
  return binary.regions[static_cast<size_t>(o.insn.values[field::load::kRegion])].kind;
}

constexpr int64_t kMostWords = 1 << 22; ///< of a copy that is followed word by word

} // namespace

struct Movement::Box {
  int64_t run, lengths[3], strides[3];

  /// Makes neighbours one.
  void join() {
    int kept = 0;
    for (int i = 0; i < 3; ++i) {
      if (lengths[i] == 1) continue;
      if (kept == 0 && strides[i] == run) {
        run *= lengths[i];
        continue;
      }
      lengths[kept] = lengths[i];
      strides[kept++] = strides[i];
    }
    for (; kept < 3; ++kept) {
      lengths[kept] = 1;
      strides[kept] = 0;
    }
  }
  int64_t runs() const { return lengths[0] * lengths[1] * lengths[2]; }
  double bytes() const {
    return static_cast<double>(run) * static_cast<double>(lengths[0]) *
           static_cast<double>(lengths[1]) * static_cast<double>(lengths[2]);
  }
};

Result<Movement> Movement::of(const Configuration& configuration, const Operation& o,
                              const Binary& binary, const std::vector<uint64_t>& bases,
                              const CompressedConstants* compressed) {
  const DescriptorValues& d = o.d;
  const int64_t width = configuration[key::kScratchpadBankWidth];
  Box far{d[tra::kRun],
          {d[tra::kLen1], d[tra::kLen2], d[tra::kLen3]},
          {d[tra::kFarStride1], d[tra::kFarStride2], d[tra::kFarStride3]}};
  const Box near{d[tra::kRun],
                 {d[tra::kLen1] + d[tra::kPadLeft] + d[tra::kPadRight],
                  d[tra::kLen2] + d[tra::kPadTop] + d[tra::kPadBottom], d[tra::kLen3]},
                 {d[tra::kNearStride1], d[tra::kNearStride2], d[tra::kNearStride3]}};
  if (near.bytes() > kMostBytes) return error("a transfer of {:.0f} bytes", near.bytes());
  Movement m;
  m.isStore_ = o.insn.op == Op::kStore;
  m.isDram_ = m.isStore_ || o.insn.op == Op::kLoad;
  if (m.isDram_)
    if (Outcome outside = m.placeInRegion(far, o, binary, bases)) return *std::move(outside);
  far.join();
  const bool isExpanded = compressed && !compressed->empty() && o.insn.op == Op::kLoad &&
                          classOf(o, binary) == RegionClass::kConstants;
  if (isExpanded) m.compress(far, o.insn.values[field::load::kFar], *compressed);
  m.widthLog2_ = std::countr_zero(static_cast<uint64_t>(width));
  const bool isPadded =
      d[tra::kPadLeft] || d[tra::kPadRight] || d[tra::kPadTop] || d[tra::kPadBottom];
  if (isPadded)
    m.countPadded(near, d);
  else
    m.countDense(near);
  m.runWords_ = m.wordsOfRun(m.nearRun_);
  m.portCycles_ = m.planes_ * m.planeWords_;
  if (o.insn.op == Op::kCopy)
    m.portCycles_ = std::max(m.portCycles_, far.runs() * m.wordsOfRun(far.run));
  m.run_ = far.run;
  std::copy(far.lengths, far.lengths + 3, m.lengths_);
  std::copy(far.strides, far.strides + 3, m.strides_);
  const bool isFill = o.insn.op == Op::kFill; // it has no side but the scratchpad's
  m.farRuns_ = m.left_ = isFill ? 0 : far.runs();
  m.farBytes_ = m.farRuns_ * far.run;
  m.step_ = std::abs(far.strides[0]);
  return m;
}

void Movement::compress(Box& far, int64_t at, const CompressedConstants& compressed) {
  expandedBytes_ = far.runs() * far.run;
  const auto base = start_ - static_cast<uint64_t>(at);
  const auto blocks = [&](int64_t offset) {
    return compressed.bytesOf(at + offset, at + offset + far.run);
  };
  start_ = base + static_cast<uint64_t>(compressed.placeOf(at));
  int64_t bytes = 0;
  if (far.runs() > kMostWords) // of so many the first one stands for all
    bytes = static_cast<int64_t>(static_cast<double>(blocks(0)) * static_cast<double>(far.runs()));
  else
    for (int64_t k = 0; k < far.lengths[2]; ++k)
      for (int64_t j = 0; j < far.lengths[1]; ++j)
        for (int64_t i = 0; i < far.lengths[0]; ++i)
          bytes += blocks(k * far.strides[2] + j * far.strides[1] + i * far.strides[0]);
  far = {bytes, {1, 1, 1}, {0, 0, 0}};
}

Outcome Movement::placeInRegion(const Box& far, const Operation& o, const Binary& binary,
                                const std::vector<uint64_t>& bases) {
  namespace f = field::load;
  static_assert(int{f::kRegion} == int{field::store::kRegion} &&
                int{f::kFar} == int{field::store::kFar});
  int64_t from = 0, to = far.run;
  for (int i = 0; i < 3; ++i) {
    const int64_t reach = (far.lengths[i] - 1) * far.strides[i];
    (reach < 0 ? from : to) += reach;
  }
  const auto region = static_cast<size_t>(o.insn.values[f::kRegion]);
  const int64_t at = o.insn.values[f::kFar];
  if (region >= binary.regions.size())
    return error("region {}: the program has {}", region, binary.regions.size());
  if (at + from < 0 || static_cast<uint64_t>(at + to) > binary.regions[region].bytes)
    return error("bytes {}..{} of region '{}', which has {}", at + from, at + to - 1,
                 binary.regions[region].name, binary.regions[region].bytes);
  start_ = bases[region] + static_cast<uint64_t>(at);
  return std::nullopt;
}

void Movement::countPadded(const Box& near, const DescriptorValues& d) {
  const int64_t run = near.run;
  const bool isPacked = near.strides[0] == run;
  const auto runs = [&](int64_t count) {
    return isPacked ? wordsOfRun(count * run) : count * wordsOfRun(run);
  };
  nearRun_ = isPacked ? run * d[tra::kLen1] : run;
  rowBytes_ = run * d[tra::kLen1];
  planeBytes_ = rowBytes_ * d[tra::kLen2];
  planes_ = d[tra::kLen3];
  const int64_t empty = runs(near.lengths[0]);
  topWords_ = d[tra::kPadTop] * empty;
  leftWords_ = runs(d[tra::kPadLeft]);
  rowWords_ = leftWords_ + runs(d[tra::kLen1]) + runs(d[tra::kPadRight]);
  planeWords_ = topWords_ + d[tra::kLen2] * rowWords_ + d[tra::kPadBottom] * empty;
  nearBytes_ = near.runs() * run;
}

void Movement::countDense(Box near) {
  near.join();
  nearRun_ = near.run;
  nearBytes_ = rowBytes_ = planeBytes_ = near.runs() * near.run;
  rowWords_ = planeWords_ = near.runs() * wordsOfRun(near.run);
}

int64_t Movement::wordsWithin(int64_t bytes) const {
  if (expandedBytes_) { // zeros are taken to be spread evenly
    const auto all = static_cast<double>(expandedBytes_);
    bytes = bytes == farBytes_ ? expandedBytes_
                               : static_cast<int64_t>(static_cast<double>(bytes) * all /
                                                      static_cast<double>(farBytes_));
  }
  // Most boxes are one run or one row, for which a comparison saves the division.
  const auto split = [](int64_t a, int64_t by) {
    return a < by ? std::pair(int64_t{0}, a) : std::pair(a / by, a % by);
  };
  const auto [plane, inPlane] = split(bytes, planeBytes_);
  if (plane == planes_) return plane * planeWords_;
  const auto [row, inRow] = split(inPlane, rowBytes_);
  const auto [run, inRun] = split(inRow, nearRun_);
  return plane * planeWords_ + topWords_ + row * rowWords_ + leftWords_ + run * runWords_ +
         (inRun >> widthLog2_);
}

int64_t Movement::portUntil(int64_t bytes) const {
  if (!isStore_) return wordsWithin(bytes);
  return bytes ? wordsWithin(bytes - 1) + 1 : 0;
}

Movement::Burst Movement::next(int64_t limit) {
  int64_t at = offset_;
  for (int i = 0; i < 3; ++i) at += index_[i] * strides_[i];
  const uint64_t address = start_ + static_cast<uint64_t>(at);
  const int64_t most = isDram_ ? limit - restOf(static_cast<int64_t>(address), limit) : limit;
  const int64_t bytes = std::min(run_ - offset_, most);
  Burst burst{address, bytes, wordsOf(moved_, bytes)};
  moved_ += bytes;
  offset_ += bytes;
  if (offset_ == run_) {
    offset_ = 0;
    --left_;
    for (int i = 0; i < 3 && ++index_[i] == lengths_[i]; ++i) index_[i] = 0;
  }
  return burst;
}

void Landing::begin(const Configuration& configuration, const Movement& movement, int64_t at) {
  words_ = movement.leadingWords();
  port_ = at + words_;
  // The channel has room for twice the bursts under way, and asks as long as the longest one fits.
  const int64_t longest =
      std::max(configuration[key::kDmaBurstBytes], configuration[key::kScratchpadBankWidth]);
  const auto outstanding = static_cast<uint64_t>(configuration[key::kDmaOutstanding]);
  room_ = longest * (2 * static_cast<int64_t>(std::bit_ceil(outstanding)) - 1);
  canFill_ = movement.farBytes() > room_;
  written_.clear();
  first_ = 0;
}

void Landing::arrive(int64_t cycle, int64_t words) {
  const int64_t begin = std::max(port_, cycle);
  if (canFill_ && words) written_.push_back({begin, words_, words});
  words_ += words;
  port_ = begin + words;
}

int64_t Landing::roomFor(const Movement& movement, const Movement::Burst& burst) {
  const int64_t leave = movement.asked() - burst.bytes - room_; // so many bytes must have left
  if (leave <= 0) return 0;
  const int64_t word = movement.wordsWithin(leave - 1);
  while (written_[first_].before + written_[first_].words <= word) ++first_;
  if (2 * first_ > written_.size()) {
    written_.erase(written_.begin(), written_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  return written_[first_].begin + word - written_[first_].before + 1;
}

int64_t cyclesWithin(const Configuration& configuration, Movement& movement) {
  if (movement.isDone()) return movement.portCycles();
  if (movement.portCycles() > kMostWords) return movement.portCycles() + valueOf(Timing::kDmaRead);
  Landing landing;
  landing.begin(configuration, movement, 0);
  for (int64_t read = 0; !movement.isDone(); ++read) {
    const Movement::Burst word = movement.next(configuration[key::kScratchpadBankWidth]);
    read = std::max(read, landing.roomFor(movement, word));
    landing.arrive(read + valueOf(Timing::kDmaRead), word.port);
  }
  return landing.end();
}

/// The memory stands still while rows are refreshed; its cycles are those of another clock.
static double withRefresh(double cycles, const DramTiming& t, const Configuration& configuration) {
  cycles *= static_cast<double>(t.refi) / static_cast<double>(t.refi - t.rfc - t.rp);
  return cycles * static_cast<double>(t.clockDenominator * configuration[key::kClockMhz]) /
         static_cast<double>(t.clockNumerator);
}

double memoryCycles(const Dram& dram, const Configuration& configuration, int64_t runs, int64_t run,
                    int64_t step) {
  const DramTiming& t = dram.timing();
  const double granule = static_cast<double>(dram.granule()), channels = dram.channels();
  const double perRun = run % dram.granule() == 0 ? static_cast<double>(run) / granule
                                                  : std::ceil(static_cast<double>(run) / granule);
  // Short runs side by side share what one access brings.
  const double touched = runs > 1 && step < dram.granule()
                             ? static_cast<double>(runs * step) / granule + 1
                             : perRun * static_cast<double>(runs);
  double bus = touched * static_cast<double>(t.burstCycles) / channels;
  const double page = static_cast<double>(t.rowBytes * t.groups) * channels;
  const double span = static_cast<double>(std::max(step, run));
  const double rows = static_cast<double>(runs) * std::min(1.0, span / page) +
                      static_cast<double>(runs * run) / page;
  const double openings = rows * (span >= page ? 1 : static_cast<double>(t.groups));
  bus = std::max(bus, openings *
                          std::max(static_cast<double>(t.rrd), static_cast<double>(t.faw) / 4) /
                          channels);
  return withRefresh(bus, t, configuration);
}

double turningCycles(const Dram& dram, const Configuration& configuration, double bytes) {
  const DramTiming& t = dram.timing();
  const double channels = dram.channels(),
               writes = static_cast<double>(valueOf(Timing::kControllerWrites));
  const double turns = bytes / static_cast<double>(dram.granule()) / channels / writes;
  const double rows = bytes / static_cast<double>(t.rowBytes * t.groups) / channels;
  return withRefresh(
      turns * static_cast<double>(t.readLatency + t.wtrLong + valueOf(Timing::kControllerTurn)) +
          rows * static_cast<double>(t.rp + t.rcd),
      t, configuration);
}

} // namespace candela::npu
