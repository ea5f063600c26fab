#include "simulator/rtl_model/axi_memory.h"

#include <algorithm>
#include <cstring>

namespace candela::npu {
namespace {

constexpr uint8_t kOkay = 0, kDecodeError = 3;

} // namespace

AxiMemory::AxiMemory(const Configuration& configuration, MemoryPort& port)
    : transactions_(port, exact::enginesOfChannels(configuration)),
      beatBytes_(static_cast<uint64_t>(
          std::min(configuration[key::kDmaBeatBytes], configuration[key::kDmaBurstBytes]))) {}

void AxiMemory::read(RtlPins& pins, const exact::Transactions::Read& read) const {
  pins.m_axi_rid = static_cast<uint8_t>(read.channel);
  pins.m_axi_rlast = read.beats == 1;
  pins.m_axi_rresp = isRefused(read.address) ? kDecodeError : kOkay;
  const uint64_t beat = read.address / beatBytes_ * beatBytes_;
  const uint64_t end =
      std::min<uint64_t>(beat + beatBytes_, std::max<uint64_t>(beat, memory_.size()));
  std::memset(pins.m_axi_rdata, 0, beatBytes_);
  if (end > beat) std::memcpy(pins.m_axi_rdata, memory_.data() + beat, end - beat);
}

void AxiMemory::drive(RtlPins& pins, int64_t now) {
  pins.m_axi_awready = pins.m_axi_wready = pins.m_axi_arready = 1;
  transactions_.offer(now);
  const exact::Transactions::Read* const offered = transactions_.read();
  pins.m_axi_rvalid = offered != nullptr;
  if (offered) read(pins, *offered);
  const exact::Transactions::Write* const answer = transactions_.answer();
  pins.m_axi_bvalid = answer != nullptr;
  if (!answer) return;
  pins.m_axi_bid = static_cast<uint8_t>(answer->channel);
  pins.m_axi_bresp = isRefused(answer->address) ? kDecodeError : kOkay;
}

void AxiMemory::write(const RtlPins& pins, const exact::Transactions::Write& write) {
  const auto done = static_cast<uint64_t>(write.beats - write.left);
  const uint64_t beat = (write.address / beatBytes_ + done) * beatBytes_;
  for (uint64_t i = 0; i < beatBytes_; ++i) {
    const bool isWritten = pins.m_axi_wstrb[i / 8] >> (i % 8) & 1;
    if (isWritten && !isRefused(write.address) && beat + i < memory_.size())
      memory_[beat + i] = static_cast<std::byte>(pins.m_axi_wdata[i]);
  }
}

void AxiMemory::take(const RtlPins& pins, int64_t now) {
  if (pins.m_axi_rvalid && pins.m_axi_rready)
    transactions_.takeBeat((transactions_.read()->address / beatBytes_ + 1) * beatBytes_);
  if (pins.m_axi_bvalid && pins.m_axi_bready) transactions_.takeAnswer();
  if (pins.m_axi_wvalid && transactions_.writing()) {
    write(pins, *transactions_.writing());
    transactions_.takeData(now);
  }
  if (pins.m_axi_arvalid)
    transactions_.askRead(now, pins.m_axi_araddr, pins.m_axi_aruser, pins.m_axi_arid,
                          pins.m_axi_arlen + 1);
  if (pins.m_axi_awvalid)
    transactions_.askWrite(now, pins.m_axi_awaddr, pins.m_axi_awuser, pins.m_axi_awid,
                           pins.m_axi_awlen + 1);
}

} // namespace candela::npu
