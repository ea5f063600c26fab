#include "simulator/timing/movement.h"

#include <algorithm>
#include <cmath>

namespace candela::npu {
namespace {

namespace tra = descriptor::transfer;

/// A box of runs; neighbours are joined.
struct Box {
  int64_t run, lengths[3], strides[3];

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
    for (; kept < 3; ++kept) lengths[kept] = 1, strides[kept] = 0;
  }
  int64_t runs() const { return lengths[0] * lengths[1] * lengths[2]; }
};

} // namespace

Result<Movement> Movement::of(const Configuration& configuration, const Operation& o, const Binary& binary,
                              const std::vector<uint64_t>& bases) {
  const DescriptorValues& d = o.d;
  const int64_t width = configuration[key::kScratchpadBankWidth];
  Box far{d[tra::kRun],
          {d[tra::kLen1], d[tra::kLen2], d[tra::kLen3]},
          {d[tra::kFarStride1], d[tra::kFarStride2], d[tra::kFarStride3]}};
  Box near{d[tra::kRun],
           {d[tra::kLen1] + d[tra::kPadLeft] + d[tra::kPadRight], d[tra::kLen2] + d[tra::kPadTop] + d[tra::kPadBottom],
            d[tra::kLen3]},
           {d[tra::kNearStride1], d[tra::kNearStride2], d[tra::kNearStride3]}};
  Movement m;
  m.isStore_ = o.insn.op == Op::kStore;
  m.isDram_ = m.isStore_ || o.insn.op == Op::kLoad;
  int64_t from = 0, to = far.run;
  for (int i = 0; i < 3; ++i) {
    const int64_t reach = (far.lengths[i] - 1) * far.strides[i];
    (reach < 0 ? from : to) += reach;
  }
  if (m.isDram_) {
    namespace f = field::load;
    static_assert(int{f::kRegion} == int{field::store::kRegion} && int{f::kFar} == int{field::store::kFar});
    const auto region = static_cast<size_t>(o.insn.values[f::kRegion]);
    const int64_t at = o.insn.values[f::kFar];
    if (region >= binary.regions.size()) return error("region {}: the program has {}", region, binary.regions.size());
    if (at + from < 0 || static_cast<uint64_t>(at + to) > binary.regions[region].bytes)
      return error("bytes {}..{} of region '{}', which has {}", at + from, at + to - 1, binary.regions[region].name,
                   binary.regions[region].bytes);
    m.start_ = bases[region] + static_cast<uint64_t>(at);
  }
  far.join();
  near.join();
  const auto words = [&](const Box& box) { return box.runs() * ((box.run + width - 1) / width); };
  m.nearBytes_ = near.runs() * near.run;
  m.portCycles_ = words(near);
  if (o.insn.op == Op::kCopy) m.portCycles_ = std::max(m.portCycles_, words(far));
  m.run_ = far.run;
  std::copy(far.lengths, far.lengths + 3, m.lengths_);
  std::copy(far.strides, far.strides + 3, m.strides_);
  m.farRuns_ = m.left_ = m.isDram_ ? far.runs() : 0;
  m.farBytes_ = m.farRuns_ * far.run;
  m.step_ = std::abs(far.strides[0]);
  return m;
}

int64_t Movement::portUntil(int64_t bytes) const {
  return static_cast<int64_t>(static_cast<__int128>(bytes) * portCycles_ / farBytes_);
}

Movement::Burst Movement::next(int64_t limit) {
  int64_t at = offset_;
  for (int i = 0; i < 3; ++i) at += index_[i] * strides_[i];
  const uint64_t address = start_ + static_cast<uint64_t>(at);
  const int64_t bytes = std::min(run_ - offset_, limit - static_cast<int64_t>(address % static_cast<uint64_t>(limit)));
  Burst burst{address, bytes, portUntil(moved_ + bytes) - portUntil(moved_)};
  moved_ += bytes;
  offset_ += bytes;
  if (offset_ == run_) {
    offset_ = 0;
    --left_;
    for (int i = 0; i < 3 && ++index_[i] == lengths_[i]; ++i) index_[i] = 0;
  }
  return burst;
}

double memoryCycles(const Dram& dram, const Configuration& configuration, int64_t runs, int64_t run, int64_t step,
                    bool isStore) {
  const DramTiming& t = dram.timing();
  const double granule = static_cast<double>(dram.granule()), channels = dram.channels();
  const double perRun =
      run % dram.granule() == 0 ? static_cast<double>(run) / granule : std::ceil(static_cast<double>(run) / granule);
  // Short runs side by side share what one access brings.
  const double touched = runs > 1 && step < dram.granule() ? static_cast<double>(runs * step) / granule + 1
                                                           : perRun * static_cast<double>(runs);
  double bus = touched * static_cast<double>(t.burstCycles) / channels;
  const double page = static_cast<double>(t.rowBytes * t.groups) * channels;
  const double span = static_cast<double>(std::max(step, run));
  const double rows = static_cast<double>(runs) * std::min(1.0, span / page) + static_cast<double>(runs * run) / page;
  const double openings = rows * (span >= page ? 1 : static_cast<double>(t.groups));
  bus = std::max(bus, openings * std::max(static_cast<double>(t.rrd), static_cast<double>(t.faw) / 4) / channels);
  if (isStore) bus += touched / channels / 32 * static_cast<double>(t.readLatency + t.wtrLong + 2);
  bus *= static_cast<double>(t.refi) / static_cast<double>(t.refi - t.rfc - t.rp);
  return bus * static_cast<double>(t.clockDenominator * configuration[key::kClockMhz]) /
         static_cast<double>(t.clockNumerator);
}

} // namespace candela::npu
