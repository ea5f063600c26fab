#include "simulator/rtl_model/axi_memory.h"

#include <algorithm>
#include <cstring>

namespace candela::npu {
namespace {

constexpr uint8_t kOkay = 0, kDecodeError = 3;
constexpr int64_t kBehindRequest = 2; ///< a store's first beat follows its request by so much

int64_t fabricThere() { return valueOf(Timing::kFabricLatency) / 2; }
int64_t fabricBack() { return valueOf(Timing::kFabricLatency) - fabricThere(); }

} // namespace

AxiMemory::AxiMemory(const Configuration& configuration, MemoryPort& port)
    : port_(port), beatBytes_(static_cast<int>(std::min(configuration[key::kDmaBeatBytes],
                                                        configuration[key::kDmaBurstBytes]))) {
  engines_.push_back(0);
  for (int i = 0; i < configuration.loadChannels(); ++i)
    engines_.push_back(static_cast<int>(Engine::kLoad0) + i);
  for (int i = 0; i < configuration.storeChannels(); ++i)
    engines_.push_back(static_cast<int>(Engine::kStore0) + i);
}

int64_t AxiMemory::answerTo(int64_t now, uint64_t address, int64_t bytes, bool isWrite, int id) {
  const int engine = engines_[static_cast<size_t>(id)];
  return port_.access(now + fabricThere(), address, bytes, isWrite, engine) + fabricBack() - 1;
}

void AxiMemory::drive(RtlPins& pins, int64_t now) {
  pins.m_axi_awready = pins.m_axi_wready = pins.m_axi_arready = 1;
  // Of each ID the first one, of all IDs the one that is due first.
  offeredRead_ = offeredWrite_ = SIZE_MAX;
  uint32_t seen = 0;
  for (size_t i = 0; i < reads_.size(); ++i) {
    const Read& read = reads_[i];
    if (seen >> read.id & 1) continue;
    seen |= uint32_t{1} << read.id;
    if (read.due <= now && (offeredRead_ == SIZE_MAX || read.due < reads_[offeredRead_].due))
      offeredRead_ = i;
  }
  for (size_t i = 0; i < writes_.size(); ++i) {
    const Write& write = writes_[i];
    if (write.left || *write.due > now) continue;
    if (offeredWrite_ == SIZE_MAX || *write.due < *writes_[offeredWrite_].due) offeredWrite_ = i;
  }
  pins.m_axi_rvalid = offeredRead_ != SIZE_MAX;
  if (pins.m_axi_rvalid) {
    const Read& read = reads_[offeredRead_];
    pins.m_axi_rid = static_cast<uint8_t>(read.id);
    pins.m_axi_rlast = read.beats == 1;
    pins.m_axi_rresp = isRefused(read.address) ? kDecodeError : kOkay;
    const uint64_t beat =
        read.address / static_cast<uint64_t>(beatBytes_) * static_cast<uint64_t>(beatBytes_);
    const uint64_t end = std::min<uint64_t>(beat + static_cast<uint64_t>(beatBytes_),
                                            std::max<uint64_t>(beat, memory_.size()));
    std::memset(pins.m_axi_rdata, 0, static_cast<size_t>(beatBytes_));
    if (end > beat) std::memcpy(pins.m_axi_rdata, memory_.data() + beat, end - beat);
  }
  pins.m_axi_bvalid = offeredWrite_ != SIZE_MAX;
  if (!pins.m_axi_bvalid) return;
  pins.m_axi_bid = static_cast<uint8_t>(writes_[offeredWrite_].id);
  pins.m_axi_bresp = writes_[offeredWrite_].isRefused ? kDecodeError : kOkay;
}

void AxiMemory::take(const RtlPins& pins, int64_t now) {
  if (pins.m_axi_rvalid && pins.m_axi_rready) {
    Read& read = reads_[offeredRead_];
    read.address =
        (read.address / static_cast<uint64_t>(beatBytes_) + 1) * static_cast<uint64_t>(beatBytes_);
    if (--read.beats == 0) reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(offeredRead_));
  }
  if (pins.m_axi_bvalid && pins.m_axi_bready)
    writes_.erase(writes_.begin() + static_cast<std::ptrdiff_t>(offeredWrite_));
  takeData(pins, now);
  if (pins.m_axi_arvalid)
    reads_.push_back({pins.m_axi_araddr, pins.m_axi_arid, pins.m_axi_arlen + 1,
                      answerTo(now, pins.m_axi_araddr, pins.m_axi_aruser, false, pins.m_axi_arid)});
  if (!pins.m_axi_awvalid) return;
  Write write{pins.m_axi_awaddr, pins.m_axi_awid, pins.m_axi_awlen + 1,        pins.m_axi_awlen + 1,
              pins.m_axi_awuser, std::nullopt,    isRefused(pins.m_axi_awaddr)};
  if (write.beats == 1) write.due = answerTo(now, write.address, write.bytes, true, write.id);
  writes_.push_back(write);
}

/// A beat of the first write that lacks some. The memory has a burst of a single beat with its
/// request, others as much before their last beat.
void AxiMemory::takeData(const RtlPins& pins, int64_t now) {
  if (!pins.m_axi_wvalid) return;
  const auto write =
      std::find_if(writes_.begin(), writes_.end(), [](const Write& w) { return w.left > 0; });
  if (write == writes_.end()) return;
  const int done = write->beats - write->left;
  const uint64_t beat =
      (write->address / static_cast<uint64_t>(beatBytes_) + static_cast<uint64_t>(done)) *
      static_cast<uint64_t>(beatBytes_);
  for (int i = 0; i < beatBytes_; ++i) {
    const uint64_t at = beat + static_cast<uint64_t>(i);
    if (!(pins.m_axi_wstrb[i / 8] >> (i % 8) & 1) || write->isRefused || at >= memory_.size())
      continue;
    memory_[at] = static_cast<std::byte>(pins.m_axi_wdata[i]);
  }
  if (--write->left == 0 && !write->due)
    write->due = answerTo(now - kBehindRequest, write->address, write->bytes, true, write->id);
}

} // namespace candela::npu
