#pragma once

#include <cstring>
#include <memory>
#include <type_traits>

#include "simulator/rtl_model/pins.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
#if VM_COVERAGE
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "verilated_cov.h"
#endif

namespace candela::npu {

#if VM_TRACE
/// Verilator ends the process where it cannot write: here nothing is refused, and the sink knows.
class WaveFile : public VerilatedVcdFile {
public:
  explicit WaveFile(RtlWaveSink& sink) : sink_(sink) {}
  bool open(const std::string&) override { return true; }
  void close() override {}
  ssize_t write(const char* bytes, ssize_t count) override {
    sink_.write(bytes, static_cast<size_t>(count));
    return count;
  }

private:
  RtlWaveSink& sink_;
};
#endif

/// The class that Verilator made of `rtl/top/cdl_npu.sv`, behind plain pins.
template <typename Module> class VerilatedTop : public RtlTop {
public:
  /// Registers without a reset begin with random bits of `seed`.
  explicit VerilatedTop(int seed) {
    context_.randReset(2);
    context_.randSeed(seed);
    context_.traceEverOn(VM_TRACE);
    top_ = std::make_unique<Module>(&context_);
    top_->clk_i = 0;
  }
  ~VerilatedTop() override {
    top_->final();
#if VM_COVERAGE
    if (const char* const folder = std::getenv("CANDELA_RTL_COVERAGE")) {
      std::string file = std::string(folder) + "/XXXXXX";
      close(mkstemp(file.data())); // a name of its own
      context_.coveragep()->write(file.c_str());
    }
#endif
  }
  RtlPins& pins() override { return pins_; }

  void settle() override {
    setInputs();
    top_->eval();
    getOutputs();
    wave(0);
  }
  void edge() override {
    top_->clk_i = 1;
    top_->eval();
    wave(1);
    top_->clk_i = 0;
    waveCycle_ = -1;
  }
#if VM_TRACE
  bool openWaves(RtlWaveSink& sink) override {
    waveFile_ = std::make_unique<WaveFile>(sink);
    waves_ = std::make_unique<VerilatedVcdC>(waveFile_.get());
    constexpr int kAllLevels = 99;
    top_->trace(waves_.get(), kAllLevels);
    waves_->open("");
    return true;
  }
  void closeWaves() override {
    if (waves_) waves_->close();
    waveCycle_ = -1;
  }
#else
  bool openWaves(RtlWaveSink&) override { return false; }
  void closeWaves() override {}
#endif
  void beginWave(int64_t cycle) override { waveCycle_ = cycle; }
  Module& module() { return *top_; }
  VerilatedContext& context() { return context_; }

private:
  void setInputs() {
    Module& t = *top_;
    t.rst_ni = pins_.rst_n;
    t.s_axil_awvalid_i = pins_.s_axil_awvalid;
    t.s_axil_awaddr_i = pins_.s_axil_awaddr;
    t.s_axil_wvalid_i = pins_.s_axil_wvalid;
    t.s_axil_wdata_i = pins_.s_axil_wdata;
    t.s_axil_wstrb_i = pins_.s_axil_wstrb;
    t.s_axil_bready_i = pins_.s_axil_bready;
    t.s_axil_arvalid_i = pins_.s_axil_arvalid;
    t.s_axil_araddr_i = pins_.s_axil_araddr;
    t.s_axil_rready_i = pins_.s_axil_rready;
    t.m_axi_awready_i = pins_.m_axi_awready;
    t.m_axi_wready_i = pins_.m_axi_wready;
    t.m_axi_arready_i = pins_.m_axi_arready;
    t.m_axi_bvalid_i = pins_.m_axi_bvalid;
    t.m_axi_bid_i = pins_.m_axi_bid;
    t.m_axi_bresp_i = pins_.m_axi_bresp;
    t.m_axi_rvalid_i = pins_.m_axi_rvalid;
    t.m_axi_rid_i = pins_.m_axi_rid;
    t.m_axi_rresp_i = pins_.m_axi_rresp;
    t.m_axi_rlast_i = pins_.m_axi_rlast;
    if (pins_.m_axi_rvalid)
      std::memcpy(&t.m_axi_rdata_i, pins_.m_axi_rdata, sizeof t.m_axi_rdata_i);
  }

  void getOutputs() {
    const Module& t = *top_;
    pins_.irq = t.irq_o;
    pins_.s_axil_awready = t.s_axil_awready_o;
    pins_.s_axil_wready = t.s_axil_wready_o;
    pins_.s_axil_bvalid = t.s_axil_bvalid_o;
    pins_.s_axil_bresp = t.s_axil_bresp_o;
    pins_.s_axil_arready = t.s_axil_arready_o;
    pins_.s_axil_rvalid = t.s_axil_rvalid_o;
    pins_.s_axil_rdata = t.s_axil_rdata_o;
    pins_.m_axi_awvalid = t.m_axi_awvalid_o;
    pins_.m_axi_awid = t.m_axi_awid_o;
    pins_.m_axi_awlen = t.m_axi_awlen_o;
    pins_.m_axi_awaddr = t.m_axi_awaddr_o;
    pins_.m_axi_awuser = static_cast<uint16_t>(t.m_axi_awuser_o);
    pins_.m_axi_wvalid = t.m_axi_wvalid_o;
    pins_.m_axi_wlast = t.m_axi_wlast_o;
    pins_.m_axi_bready = t.m_axi_bready_o;
    pins_.m_axi_arvalid = t.m_axi_arvalid_o;
    pins_.m_axi_arid = t.m_axi_arid_o;
    pins_.m_axi_arlen = t.m_axi_arlen_o;
    pins_.m_axi_araddr = t.m_axi_araddr_o;
    pins_.m_axi_aruser = static_cast<uint16_t>(t.m_axi_aruser_o);
    pins_.m_axi_rready = t.m_axi_rready_o;
    if (pins_.m_axi_wvalid) {
      std::memcpy(pins_.m_axi_wdata, &t.m_axi_wdata_o, sizeof t.m_axi_wdata_o);
      std::memcpy(pins_.m_axi_wstrb, &t.m_axi_wstrb_o, sizeof t.m_axi_wstrb_o);
    }
    pins_.event_running = t.event_running_o;
    pins_.event_begin = t.event_begin_o;
    pins_.event_beat = t.event_beat_o;
    pins_.event_retire = t.event_retire_o;
    if (pins_.event_begin)
      std::memcpy(pins_.event_begin_pc, &t.event_begin_pc_o, sizeof pins_.event_begin_pc);
    if (pins_.event_retire)
      std::memcpy(pins_.event_retire_pc, &t.event_retire_pc_o, sizeof pins_.event_retire_pc);
  }

  void wave(int half) {
#if VM_TRACE
    if (waveCycle_ >= 0) waves_->dump(static_cast<uint64_t>(2 * waveCycle_ + half));
#else
    static_cast<void>(half);
#endif
  }

  VerilatedContext context_;
  std::unique_ptr<Module> top_;
  RtlPins pins_{};
  int64_t waveCycle_ = -1; ///< the cycle to write, or -1
#if VM_TRACE
  std::unique_ptr<WaveFile> waveFile_;
  std::unique_ptr<VerilatedVcdC> waves_;
#endif
};

} // namespace candela::npu
