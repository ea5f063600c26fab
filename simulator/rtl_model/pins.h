#pragma once

#include <cstdint>

namespace candela::npu {

/// The widest beat of the memory's port, in bytes.
inline constexpr int kMostBeatBytes = 4096;
inline constexpr int kRtlEngines = 12;

/// The pins of `rtl/top/cdl_npu.sv`, of any configuration: names as there, less `_i` and `_o`.
struct RtlPins {
  // Inputs.
  uint8_t rst_n;
  uint8_t s_axil_awvalid, s_axil_wvalid, s_axil_wstrb, s_axil_bready, s_axil_arvalid, s_axil_rready;
  uint16_t s_axil_awaddr, s_axil_araddr;
  uint32_t s_axil_wdata;
  uint8_t m_axi_awready, m_axi_wready, m_axi_arready;
  uint8_t m_axi_bvalid, m_axi_bid, m_axi_bresp;
  uint8_t m_axi_rvalid, m_axi_rid, m_axi_rresp, m_axi_rlast;
  uint8_t m_axi_rdata[kMostBeatBytes];

  // Outputs.
  uint8_t irq;
  uint8_t s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_bresp, s_axil_arready, s_axil_rvalid;
  uint32_t s_axil_rdata;
  uint8_t m_axi_awvalid, m_axi_awid, m_axi_awlen, m_axi_wvalid, m_axi_wlast, m_axi_bready;
  uint8_t m_axi_arvalid, m_axi_arid, m_axi_arlen, m_axi_rready;
  uint16_t m_axi_awuser, m_axi_aruser;
  uint64_t m_axi_awaddr, m_axi_araddr;
  uint8_t m_axi_wdata[kMostBeatBytes];
  uint8_t m_axi_wstrb[kMostBeatBytes / 8];
  uint8_t event_running;
  uint16_t event_begin, event_beat, event_retire;
  uint32_t event_begin_pc[kRtlEngines], event_retire_pc[kRtlEngines];
};

/// Takes the text of a file of waves. Its maker finds out whether it could be kept.
class RtlWaveSink {
public:
  virtual ~RtlWaveSink() = default;
  virtual void write(const char* bytes, size_t count) = 0;
};

/// A verilated NPU. A cycle: set inputs, settle(), read outputs, edge().
class RtlTop {
public:
  virtual ~RtlTop() = default;
  /// Has all signals written from now on, as VCD: settle() and edge() of cycle c are at the times
  /// 2c and 2c + 1 of what beginWave(c) announced. False: it was built without.
  virtual bool openWaves(RtlWaveSink& sink) = 0;
  virtual void beginWave(int64_t cycle) = 0;
  /// Nothing is written behind this; the sink may go.
  virtual void closeWaves() = 0;
  virtual RtlPins& pins() = 0;
  virtual void settle() = 0;
  virtual void edge() = 0;
};

} // namespace candela::npu
