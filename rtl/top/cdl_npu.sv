// The NPU. A driver writes registers by AXI4-Lite and gets an interrupt at the end of a program; program and data come and go by one AXI4 master, whose beats
// are those of the DMA's channels (up to 128 bytes for AXI4). What a program does is docs/reference/npu_isa.md.
//
// The control processor sends words to the queues of the engines; the engines share the banks of the scratchpad, a port for each stream, and the burst
// port of the memory. A program that ends, by halt, a fault or a reset, leaves no transaction behind: then its state is cleared, but semaphores,
// counters and memories stay until the next start.
//
// event_begin_o, event_beat_o and event_retire_o say for each engine when an instruction begins, moves data and ends, for who follows a program.
module cdl_npu #(
  parameter int unsigned Rows            = 32'(cdl_npu_cfg_pkg::ArrayRows),
  parameter int unsigned Columns         = 32'(cdl_npu_cfg_pkg::ArrayColumns),
  parameter int unsigned ScratchpadBytes = 32'(cdl_npu_cfg_pkg::ScratchpadBytes),
  parameter int unsigned ScratchpadBanks = 32'(cdl_npu_cfg_pkg::ScratchpadBanks),
  parameter int unsigned BankWidth       = 32'(cdl_npu_cfg_pkg::ScratchpadBankWidth),
  parameter int unsigned AccBytes        = 32'(cdl_npu_cfg_pkg::AccumulatorBytes),
  parameter int unsigned AccBanks        = 32'(cdl_npu_cfg_pkg::AccumulatorBanks),
  parameter int unsigned RequantLanes    = 32'(cdl_npu_cfg_pkg::RequantLanes),
  parameter int unsigned VectorLanes     = 32'(cdl_npu_cfg_pkg::VectorLanes),
  parameter int unsigned LoadChannels    = 32'(cdl_npu_cfg_pkg::DmaLoadChannels),
  parameter int unsigned StoreChannels   = 32'(cdl_npu_cfg_pkg::DmaStoreChannels),
  parameter int unsigned BurstBytes      = 32'(cdl_npu_cfg_pkg::DmaBurstBytes),
  parameter int unsigned BeatBytes       = 32'(cdl_npu_cfg_pkg::DmaBeatBytes) < BurstBytes ? 32'(cdl_npu_cfg_pkg::DmaBeatBytes) : BurstBytes,
  parameter int unsigned Outstanding     = 32'(cdl_npu_cfg_pkg::DmaOutstanding),
  parameter int unsigned QueueDepth      = 32'(cdl_npu_cfg_pkg::CommandQueueDepth),
  parameter bit          Int16           = 1'b0,
  parameter int unsigned FetchBytes      = BurstBytes,     // of a line of the program, BurstBytes or more
  parameter int unsigned AddrWidth       = 40,
  parameter logic [63:0] ConfigHash      = '0,
  localparam int unsigned Engines    = 12,
  localparam int unsigned Channels   = LoadChannels + StoreChannels,
  localparam int unsigned IdWidth    = $clog2(Channels + 2),
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  output logic                   irq_o,                    // a program has ended, by halt or by a fault

  input  logic                   s_axil_awvalid_i,
  output logic                   s_axil_awready_o,
  input  logic [11:0]            s_axil_awaddr_i,
  input  logic                   s_axil_wvalid_i,
  output logic                   s_axil_wready_o,
  input  logic [31:0]            s_axil_wdata_i,
  input  logic [3:0]             s_axil_wstrb_i,
  output logic                   s_axil_bvalid_o,
  input  logic                   s_axil_bready_i,
  output logic [1:0]             s_axil_bresp_o,
  input  logic                   s_axil_arvalid_i,
  output logic                   s_axil_arready_o,
  input  logic [11:0]            s_axil_araddr_i,
  output logic                   s_axil_rvalid_o,
  input  logic                   s_axil_rready_i,
  output logic [31:0]            s_axil_rdata_o,
  output logic [1:0]             s_axil_rresp_o,

  output logic                   m_axi_awvalid_o,
  input  logic                   m_axi_awready_i,
  output logic [IdWidth-1:0]     m_axi_awid_o,
  output logic [AddrWidth-1:0]   m_axi_awaddr_o,
  output logic [7:0]             m_axi_awlen_o,
  output logic [2:0]             m_axi_awsize_o,
  output logic [1:0]             m_axi_awburst_o,
  output logic [BurstWidth-1:0]  m_axi_awuser_o,           // bytes that are written of those beats
  output logic                   m_axi_wvalid_o,
  input  logic                   m_axi_wready_i,
  output logic [BeatBytes*8-1:0] m_axi_wdata_o,
  output logic [BeatBytes-1:0]   m_axi_wstrb_o,
  output logic                   m_axi_wlast_o,
  input  logic                   m_axi_bvalid_i,
  output logic                   m_axi_bready_o,
  input  logic [IdWidth-1:0]     m_axi_bid_i,
  input  logic [1:0]             m_axi_bresp_i,
  output logic                   m_axi_arvalid_o,
  input  logic                   m_axi_arready_i,
  output logic [IdWidth-1:0]     m_axi_arid_o,
  output logic [AddrWidth-1:0]   m_axi_araddr_o,
  output logic [7:0]             m_axi_arlen_o,
  output logic [2:0]             m_axi_arsize_o,
  output logic [1:0]             m_axi_arburst_o,
  output logic [BurstWidth-1:0]  m_axi_aruser_o,           // bytes that are wanted of those beats
  input  logic                   m_axi_rvalid_i,
  output logic                   m_axi_rready_o,
  input  logic [IdWidth-1:0]     m_axi_rid_i,
  input  logic [BeatBytes*8-1:0] m_axi_rdata_i,
  input  logic [1:0]             m_axi_rresp_i,
  input  logic                   m_axi_rlast_i,

  output logic                   event_running_o,          // the control processor runs
  output logic [Engines-1:0]     event_begin_o,
  output logic [Engines*32-1:0]  event_begin_pc_o,
  output logic [Engines-1:0]     event_beat_o,
  output logic [Engines-1:0]     event_retire_o,
  output logic [Engines*32-1:0]  event_retire_pc_o
);

  localparam int unsigned WordBits       = cdl_npu_isa_pkg::WordBits;
  localparam int unsigned DescriptorBits = cdl_npu_isa_pkg::DescriptorBits;
  localparam int unsigned Semaphores     = cdl_npu_isa_pkg::Semaphores;
  localparam int unsigned CodeBits       = 4;
  localparam int unsigned Load0          = 32'(cdl_npu_isa_pkg::ENGINE_LOAD0);
  localparam int unsigned Store0         = 32'(cdl_npu_isa_pkg::ENGINE_STORE0);
  localparam int unsigned Matrix         = 32'(cdl_npu_isa_pkg::ENGINE_MATRIX);
  localparam int unsigned Requant        = 32'(cdl_npu_isa_pkg::ENGINE_REQUANT);
  localparam int unsigned Vector         = 32'(cdl_npu_isa_pkg::ENGINE_VECTOR);
  localparam logic [11:0] EngineMask     = 12'hE01 | 12'(((1 << LoadChannels) - 1) << Load0) | 12'(((1 << StoreChannels) - 1) << Store0);

  // Of the memories.
  localparam int unsigned ActBytes     = Int16 ? 2 : 1;
  localparam int unsigned Longer       = Rows > Columns ? Rows : Columns;
  localparam int unsigned UsedLanes    = RequantLanes < Columns ? RequantLanes : Columns;
  localparam int unsigned RequantBytes = UsedLanes * ActBytes > BankWidth ? UsedLanes * ActBytes : BankWidth;
  localparam int unsigned PortBytes    = Longer * ActBytes > RequantBytes ? Longer * ActBytes : RequantBytes;
  localparam int unsigned SumWidth     = Int16 ? 40 : 32;
  localparam int unsigned AccRows      = AccBytes / 4 / Columns;
  localparam int unsigned AccRowWidth  = $clog2(AccRows);
  if (PortBytes > (ScratchpadBanks - 1) * BankWidth + 1) begin : gen_bad_banks
    $error("the banks of the scratchpad are fewer than what the widest port spans");
  end
  if (BankWidth < 4) begin : gen_bad_width
    $error("a bank of the scratchpad is narrower than an i32");
  end

  // ---- Registers, and the life of a program ----
  typedef enum logic [1:0] {StIdle, StRun, StDrain, StClear} state_e;
  state_e state_q;
  logic start_written, reset_written, starts, hold, drained, core_rst_n, clears_q;
  logic halted, control_fault, control_running, halted_q, resets_q, faulted;
  logic [63:0] program_base;
  logic [31:0] words, fault_pc;
  logic [3:0] fault_code;
  logic [16*64-1:0] region_base;
  logic [16*32-1:0] region_bytes;
  logic [16*4-1:0] region_flags;
  logic counts, clear_counters, config_valid, profile_idle;
  logic [63:0] profile_base;
  logic [31:0] profile_bytes, profile_records, profile_lost, tag;
  logic [11:0] config_offset;
  logic [31:0] config_value, pmu_data;
  logic [Semaphores*8-1:0] semaphore_counts;
  logic [4:0] pmu_id;
  logic pmu_high, pmu_copy;
  logic [1:0] pmu_slot;
  assign starts     = start_written && state_q == StIdle;
  assign hold       = state_q != StRun;
  assign core_rst_n = rst_ni && !clears_q;
  assign irq_o      = state_q == StIdle && (halted_q || faulted);
  assign event_running_o = control_running;
  cdl_npu_registers #(.ConfigHash(ConfigHash)) u_registers (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i, .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i, .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .start_o          (start_written),
    .reset_o          (reset_written),
    .program_o        (program_base),
    .words_o          (words),
    .region_base_o    (region_base),
    .region_bytes_o   (region_bytes),
    .region_flags_o   (region_flags),
    .count_o          (counts),
    .clear_counters_o (clear_counters),
    .profile_base_o   (profile_base),
    .profile_bytes_o  (profile_bytes),
    .tag_o            (tag),
    .config_i         (config_valid),
    .config_offset_i  (config_offset),
    .config_value_i   (config_value),
    .status_i         ({faulted && state_q == StIdle, halted_q && state_q == StIdle, state_q != StIdle}),
    .fault_pc_i       (fault_pc),
    .fault_code_i     (fault_code),
    .profile_records_i(profile_records),
    .profile_lost_i   (profile_lost),
    .semaphores_i     (semaphore_counts),
    .pmu_id_o         (pmu_id),
    .pmu_high_o       (pmu_high),
    .pmu_copy_o       (pmu_copy),
    .pmu_slot_o       (pmu_slot),
    .pmu_data_i       (pmu_data)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      clears_q <= 1'b0;
      halted_q <= 1'b0;
      resets_q <= 1'b0;
    end else begin
      clears_q <= state_q == StDrain && drained;
      if (starts || resets_q) begin
        halted_q <= 1'b0;
      end else if (state_q == StRun && halted) begin
        halted_q <= 1'b1;
      end
      // A reset of an idle NPU forgets how the last program ended.
      resets_q <= reset_written || (resets_q && state_q != StIdle);
      unique case (state_q)
        StIdle:  if (starts) state_q <= StRun;
        StRun:   if (resets_q || reset_written || faulted || (halted_q && profile_idle)) state_q <= StDrain;
        StDrain: if (drained) state_q <= StClear;
        default: state_q <= StIdle;
      endcase
    end
  end

  // ---- Control processor and queues ----
  logic fetch_valid, fetch_ready, control_stuck, control_retires, control_marks, snapshot;
  logic [31:0] fetch_index, pc;
  logic [1:0] snapshot_slot;
  logic [WordBits-1:0] fetch_word, send_word;
  logic [DescriptorBits-1:0] send_desc, send_second;
  logic [Engines-1:0] send_valid, send_ready, idle, stuck, take_valid, take_ready, signal_valid, begins, retires, marks;
  logic [Engines-1:0] insn_valid, insn_ready, done;
  logic [Engines*5-1:0] take_semaphore, signal_semaphore;
  logic [Engines*3-1:0] take_count, signal_count;
  logic [Engines*WordBits-1:0] insn_word;
  logic [Engines*DescriptorBits-1:0] insn_desc, insn_second;
  logic [Engines*32-1:0] begin_pc, running_pc;
  logic control_signals;
  logic [4:0] control_signal_semaphore;
  logic [2:0] control_signal_count;
  cdl_npu_control #(.EngineMask(EngineMask)) u_control (
    .clk_i, .rst_ni(core_rst_n),
    .start_i            (starts),
    .words_i            (words),
    .running_o          (control_running),
    .halted_o           (halted),
    .fault_o            (control_fault),
    .pc_o               (pc),
    .fetch_valid_o      (fetch_valid),
    .fetch_ready_i      (fetch_ready),
    .fetch_index_o      (fetch_index),
    .fetch_word_i       (fetch_word),
    .send_valid_o       (send_valid),
    .send_ready_i       (send_ready),
    .send_word_o        (send_word),
    .send_desc_o        (send_desc),
    .send_second_o      (send_second),
    .idle_i             (idle),
    .take_valid_o       (take_valid[0]),
    .take_ready_i       (take_ready[0]),
    .take_semaphore_o   (take_semaphore[4:0]),
    .take_count_o       (take_count[2:0]),
    .signal_valid_o     (control_signals),
    .signal_semaphore_o (control_signal_semaphore),
    .signal_count_o     (control_signal_count),
    .snapshot_o         (snapshot),
    .snapshot_slot_o    (snapshot_slot),
    .config_o           (config_valid),
    .config_offset_o    (config_offset),
    .config_value_o     (config_value),
    .retire_o           (control_retires),
    .mark_o             (control_marks),
    .stuck_o            (control_stuck)
  );
  // An instruction of the control processor ends in the cycle behind, as those of others do.
  logic control_retired_q, control_marked_q, control_signalled_q, snapshot_q;
  logic [1:0] snapshot_slot_q;
  logic [4:0] signal_semaphore_q;
  logic [2:0] signal_count_q;
  logic [31:0] control_pc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      control_retired_q   <= 1'b0;
      control_marked_q    <= 1'b0;
      control_signalled_q <= 1'b0;
      snapshot_q          <= 1'b0;
    end else begin
      snapshot_q          <= snapshot;   // by then what stands before it has been counted
      control_retired_q   <= control_retires;
      control_marked_q    <= control_marks;
      control_signalled_q <= control_signals;
    end
  end
  always_ff @(posedge clk_i) begin
    signal_semaphore_q <= control_signal_semaphore;
    signal_count_q     <= control_signal_count;
    control_pc_q       <= pc;
    snapshot_slot_q    <= snapshot_slot;
  end
  assign {retires[0], marks[0], signal_valid[0]} = {control_retired_q, control_marked_q, control_signalled_q};
  assign signal_semaphore[4:0] = signal_semaphore_q;
  assign signal_count[2:0]     = signal_count_q;
  assign begins[0]             = control_retires;
  assign begin_pc[31:0]        = pc;
  assign running_pc[31:0]      = control_pc_q;
  assign {send_ready[0], idle[0], stuck[0], insn_valid[0], insn_ready[0], done[0]} = '0;
  assign insn_word[WordBits-1:0]         = '0;
  assign insn_desc[DescriptorBits-1:0]   = '0;
  assign insn_second[DescriptorBits-1:0] = '0;

  for (genvar e = 1; e < Engines; e++) begin : gen_queue
    if (EngineMask[e]) begin : gen_there
      cdl_npu_queue #(.Depth(QueueDepth)) u_queue (
        .clk_i, .rst_ni(core_rst_n),
        .hold_i             (hold),
        .send_valid_i       (send_valid[e]),
        .send_ready_o       (send_ready[e]),
        .send_word_i        (send_word),
        .send_desc_i        (send_desc),
        .send_second_i      (send_second),
        .send_pc_i          (pc),
        .take_valid_o       (take_valid[e]),
        .take_ready_i       (take_ready[e]),
        .take_semaphore_o   (take_semaphore[e*5 +: 5]),
        .take_count_o       (take_count[e*3 +: 3]),
        .insn_valid_o       (insn_valid[e]),
        .insn_ready_i       (insn_ready[e]),
        .insn_word_o        (insn_word[e*WordBits +: WordBits]),
        .insn_desc_o        (insn_desc[e*DescriptorBits +: DescriptorBits]),
        .insn_second_o      (insn_second[e*DescriptorBits +: DescriptorBits]),
        .done_i             (done[e]),
        .begin_o            (begins[e]),
        .begin_pc_o         (begin_pc[e*32 +: 32]),
        .retire_o           (retires[e]),
        .retire_mark_o      (marks[e]),
        .signal_valid_o     (signal_valid[e]),
        .signal_semaphore_o (signal_semaphore[e*5 +: 5]),
        .signal_count_o     (signal_count[e*3 +: 3]),
        .pc_o               (running_pc[e*32 +: 32]),
        .idle_o             (idle[e]),
        .stuck_o            (stuck[e])
      );
    end else begin : gen_absent
      assign {send_ready[e], take_valid[e], insn_valid[e], insn_ready[e], done[e], begins[e], retires[e], marks[e], signal_valid[e]} = '0;
      assign {idle[e], stuck[e]} = 2'b11;
      assign take_semaphore[e*5 +: 5]   = '0;
      assign take_count[e*3 +: 3]       = '0;
      assign signal_semaphore[e*5 +: 5] = '0;
      assign signal_count[e*3 +: 3]     = '0;
      assign insn_word[e*WordBits +: WordBits]               = '0;
      assign insn_desc[e*DescriptorBits +: DescriptorBits]   = '0;
      assign insn_second[e*DescriptorBits +: DescriptorBits] = '0;
      assign begin_pc[e*32 +: 32]   = '0;
      assign running_pc[e*32 +: 32] = '0;
    end
  end
  assign event_begin_o     = begins;
  assign event_begin_pc_o  = begin_pc;
  assign event_retire_o    = retires;
  assign event_retire_pc_o = running_pc;

  logic overflow;
  cdl_npu_semaphores #(.Engines(Engines)) u_semaphores (
    .clk_i, .rst_ni,
    .clear_i            (starts),
    .take_valid_i       (take_valid),
    .take_ready_o       (take_ready),
    .take_semaphore_i   (take_semaphore),
    .take_count_i       (take_count),
    .signal_valid_i     (signal_valid),
    .signal_semaphore_i (signal_semaphore),
    .signal_count_i     (signal_count),
    .counts_o           (semaphore_counts),
    .overflow_o         (overflow)
  );

  // ---- The memory: port 0 is the fetch of the program, then load channels, store channels, and the writer of profile records ----
  localparam int unsigned Ports   = Channels + 2;
  localparam int unsigned Profile = Ports - 1;
  logic [Ports-1:0] req_valid, req_ready, put_valid, put_ready, put_last, data_valid, data_ready, answer_valid, answer_ready, channel_bad;
  logic [Ports*AddrWidth-1:0] req_addr;
  logic [Ports*BurstWidth-1:0] req_bytes;
  logic [Ports*BeatBytes-1:0] put_bytes;
  logic [Ports*BeatBytes*8-1:0] put_data;
  logic bus_valid, bus_ready, bus_write, bus_put_valid, bus_put_ready, bus_put_last, bus_data_valid, bus_data_ready, bus_answer_valid,
        bus_answer_ready, bus_fault;
  logic [IdWidth-1:0] bus_tag, bus_data_tag, bus_answer_tag, bus_fault_id;
  logic [AddrWidth-1:0] bus_addr;
  logic [BurstWidth-1:0] bus_bytes;
  logic [BeatBytes-1:0] bus_put_bytes;
  logic [BeatBytes*8-1:0] bus_put_data, bus_data;
  logic [31:0] coming_index;
  cdl_npu_fetch #(.LineBytes(FetchBytes), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .AddrWidth(AddrWidth)) u_fetch (
    .clk_i, .rst_ni(core_rst_n),
    .clear_i       (starts),
    .run_i         (control_running && !hold),
    .program_i     (AddrWidth'(program_base)),
    .words_i       (words),
    .pc_i          (pc),
    .fetch_valid_i (fetch_valid),
    .fetch_ready_o (fetch_ready),
    .fetch_index_i (fetch_index),
    .fetch_word_o  (fetch_word),
    .req_valid_o   (req_valid[0]),
    .req_ready_i   (req_ready[0]),
    .req_addr_o    (req_addr[AddrWidth-1:0]),
    .req_bytes_o   (req_bytes[BurstWidth-1:0]),
    .data_valid_i  (data_valid[0]),
    .data_ready_o  (data_ready[0]),
    .data_i        (bus_data),
    .data_index_o  (coming_index)
  );
  assign {put_valid[0], put_last[0], answer_ready[0], channel_bad[0]} = '0;
  assign put_bytes[BeatBytes-1:0]  = '0;
  assign put_data[BeatBytes*8-1:0] = '0;
  cdl_npu_profile #(.Engines(Engines), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .AddrWidth(AddrWidth)) u_profile (
    .clk_i, .rst_ni,
    .clear_i        (starts),
    .drop_i         (clears_q),
    .running_i      (control_running),
    .base_i         (AddrWidth'(profile_base)),
    .bytes_i        (profile_bytes),
    .tag_i          (tag),
    .begin_i        (begins),
    .retire_i       (retires),
    .mark_i         (marks),
    .pc_i           (running_pc),
    .idle_o         (profile_idle),
    .records_o      (profile_records),
    .lost_o         (profile_lost),
    .req_valid_o    (req_valid[Profile]),
    .req_ready_i    (req_ready[Profile]),
    .req_addr_o     (req_addr[Profile*AddrWidth +: AddrWidth]),
    .req_bytes_o    (req_bytes[Profile*BurstWidth +: BurstWidth]),
    .put_valid_o    (put_valid[Profile]),
    .put_ready_i    (put_ready[Profile]),
    .put_last_o     (put_last[Profile]),
    .put_bytes_o    (put_bytes[Profile*BeatBytes +: BeatBytes]),
    .put_data_o     (put_data[Profile*BeatBytes*8 +: BeatBytes*8]),
    .answer_valid_i (answer_valid[Profile]),
    .answer_ready_o (answer_ready[Profile])
  );
  assign {data_ready[Profile], channel_bad[Profile]} = '0;
  localparam logic [Ports-1:0] Writes = Ports'((((1 << StoreChannels) - 1) << (LoadChannels + 1)) | (1 << Profile));
  cdl_npu_burst_arbiter #(.Ports(Ports), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .AddrWidth(AddrWidth)) u_arbiter (
    .clk_i, .rst_ni(core_rst_n),
    .req_valid_i(req_valid & ~channel_bad), .req_ready_o(req_ready), .req_write_i(Writes), .req_addr_i(req_addr), .req_bytes_i(req_bytes),
    .put_valid_i(put_valid), .put_ready_o(put_ready), .put_last_i(put_last), .put_bytes_i(put_bytes), .put_data_i(put_data),
    .data_valid_o(data_valid), .data_ready_i(data_ready), .answer_valid_o(answer_valid), .answer_ready_i(answer_ready),
    .req_valid_o(bus_valid), .req_ready_i(bus_ready), .req_write_o(bus_write), .req_tag_o(bus_tag), .req_addr_o(bus_addr), .req_bytes_o(bus_bytes),
    .put_valid_o(bus_put_valid), .put_ready_i(bus_put_ready), .put_last_o(bus_put_last), .put_bytes_o(bus_put_bytes), .put_data_o(bus_put_data),
    .data_valid_i(bus_data_valid), .data_ready_o(bus_data_ready), .data_tag_i(bus_data_tag),
    .answer_valid_i(bus_answer_valid), .answer_ready_o(bus_answer_ready), .answer_tag_i(bus_answer_tag)
  );
  cdl_npu_axi_master #(.BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .AddrWidth(AddrWidth), .IdWidth(IdWidth)) u_axi (
    .clk_i, .rst_ni,
    .hold_i(hold), .drained_o(drained), .fault_o(bus_fault), .fault_id_o(bus_fault_id),
    .req_valid_i(bus_valid), .req_ready_o(bus_ready), .req_write_i(bus_write), .req_tag_i(bus_tag), .req_addr_i(bus_addr), .req_bytes_i(bus_bytes),
    .put_valid_i(bus_put_valid), .put_ready_o(bus_put_ready), .put_last_i(bus_put_last), .put_bytes_i(bus_put_bytes), .put_data_i(bus_put_data),
    .data_valid_o(bus_data_valid), .data_ready_i(bus_data_ready), .data_tag_o(bus_data_tag), .data_o(bus_data),
    .answer_valid_o(bus_answer_valid), .answer_ready_i(bus_answer_ready), .answer_tag_o(bus_answer_tag),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o, .m_axi_awsize_o, .m_axi_awburst_o, .m_axi_awuser_o,
    .m_axi_wvalid_o, .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o,
    .m_axi_bvalid_i, .m_axi_bready_o, .m_axi_bid_i, .m_axi_bresp_i,
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o, .m_axi_arsize_o, .m_axi_arburst_o, .m_axi_aruser_o,
    .m_axi_rvalid_i, .m_axi_rready_o, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i
  );

  // ---- Ports of the scratchpad: two of the matrix engine, two of requant, three of vector, two of each load channel, one of each store channel ----
  localparam int unsigned PadPorts   = 7 + 2*LoadChannels + StoreChannels;
  localparam int unsigned PadAddr    = $clog2(ScratchpadBytes);
  logic [PadPorts-1:0] pad_valid, pad_ready, pad_write, pad_fault, pad_moves;
  logic [PadPorts*PadAddr-1:0] pad_addr;
  logic [PadPorts*PortBytes-1:0] pad_bytes, pad_claim;
  logic [PadPorts*PortBytes*8-1:0] pad_data, pad_read;
  cdl_npu_scratchpad #(.Ports(PadPorts), .Banks(ScratchpadBanks), .Width(BankWidth), .PortBytes(PortBytes), .Bytes(1 << PadAddr)) u_scratchpad (
    .clk_i, .rst_ni,
    .valid_i(pad_valid), .ready_o(pad_ready), .write_i(pad_write), .addr_i(pad_addr), .claim_i(pad_claim), .bytes_i(pad_bytes),
    .data_i(pad_data), .data_o(pad_read)
  );
  // An engine's stream, by the number of its port.
  logic [PadPorts-1:0] want, grant;
  logic [PadPorts*25-1:0] want_addr;
  logic [PadPorts*PortBytes-1:0] want_bytes, want_claim;
  localparam int unsigned VectorWrites = 6;        // the one stream that claims more than it moves
  logic [PadPorts*PortBytes*8-1:0] want_data;
  for (genvar i = 0; i < PadPorts; i++) begin : gen_port
    cdl_npu_port_adapter #(.EngineBytes(PortBytes), .PortBytes(PortBytes), .Bytes(ScratchpadBytes)) u_adapter (
      .valid_i     (want[i]),
      .ready_o     (grant[i]),
      .addr_i      (want_addr[i*25 +: 25]),
      .claim_i     (want_claim[i*PortBytes +: PortBytes]),
      .bytes_i     (want_bytes[i*PortBytes +: PortBytes]),
      .data_i      (want_data[i*PortBytes*8 +: PortBytes*8]),
      .fault_o     (pad_fault[i]),
      .valid_o     (pad_valid[i]),
      .ready_i     (pad_ready[i]),
      .addr_o      (pad_addr[i*PadAddr +: PadAddr]),
      .claim_o     (pad_claim[i*PortBytes +: PortBytes]),
      .bytes_o     (pad_bytes[i*PortBytes +: PortBytes]),
      .data_to_o   (pad_data[i*PortBytes*8 +: PortBytes*8])
    );
    assign pad_moves[i] = want[i] && grant[i];
    if (i != VectorWrites) begin : gen_claim
      assign want_claim[i*PortBytes +: PortBytes] = want_bytes[i*PortBytes +: PortBytes];
    end
  end

  // ---- Checks of what begins; an access outside of the scratchpad; a memory that refuses ----
  logic [Engines-1:0] check_bad, pad_bad, bus_bad;
  logic [Engines*CodeBits-1:0] check_code;
  localparam int unsigned Sources = Engines + 3;
  logic [Sources-1:0] source_valid;
  logic [Sources*CodeBits-1:0] source_code;
  logic [Sources*32-1:0] source_pc;
  for (genvar e = 1; e < Engines; e++) begin : gen_source
    assign source_valid[e] = check_bad[e] || pad_bad[e] || bus_bad[e];
    assign source_code[e*CodeBits +: CodeBits] = check_bad[e] ? check_code[e*CodeBits +: CodeBits]
                                               : pad_bad[e] ? cdl_npu_regs_pkg::FAULT_RANGE : cdl_npu_regs_pkg::FAULT_BUS;
    assign source_pc[e*32 +: 32] = running_pc[e*32 +: 32];
  end
  assign {check_bad[0], pad_bad[0]} = '0;
  assign check_code[CodeBits-1:0]   = '0;
  assign bus_bad[0]                 = bus_fault && (bus_fault_id == '0 || 32'(bus_fault_id) == Profile);
  assign source_valid[0]            = control_fault;
  assign source_code[CodeBits-1:0]  = cdl_npu_regs_pkg::FAULT_INSTRUCTION;
  assign source_pc[31:0]            = pc;
  // A program that does not begin at a multiple of a line has no first word.
  logic misplaced;
  assign misplaced                                = control_running && program_base[$clog2(FetchBytes)-1:0] != '0;
  assign source_valid[Engines]                    = bus_bad[0] || misplaced;
  assign source_code[Engines*CodeBits +: CodeBits] = misplaced ? cdl_npu_regs_pkg::FAULT_PORT : cdl_npu_regs_pkg::FAULT_BUS;
  assign source_pc[Engines*32 +: 32]              = misplaced ? '0 : coming_index;
  logic [31:0] signaller_pc;
  always_comb begin
    signaller_pc = '0;
    for (int unsigned e = Engines; e > 0; e--) begin
      if (signal_valid[e-1]) begin
        signaller_pc = running_pc[(e-1)*32 +: 32];
      end
    end
  end
  assign source_valid[Engines+1]                       = overflow;
  assign source_code[(Engines+1)*CodeBits +: CodeBits] = cdl_npu_regs_pkg::FAULT_SEMAPHORE;
  assign source_pc[(Engines+1)*32 +: 32]               = signaller_pc;
  assign source_valid[Engines+2]                       = control_stuck && stuck[Engines-1:1] == '1 && signal_valid == '0;
  assign source_code[(Engines+2)*CodeBits +: CodeBits] = cdl_npu_regs_pkg::FAULT_DEADLOCK;
  assign source_pc[(Engines+2)*32 +: 32]               = pc;
  cdl_npu_faults #(.Sources(Sources)) u_faults (
    .clk_i, .rst_ni,
    .clear_i (starts || resets_q),
    .run_i   (state_q == StRun),
    .valid_i (source_valid),
    .code_i  (source_code),
    .pc_i    (source_pc),
    .fault_o (faulted),
    .code_o  (fault_code),
    .pc_o    (fault_pc)
  );

  // Of words of load and store, which have it in the same place, the region. Here, since Yosys reads no struct within a generate block.
  logic [Engines*4-1:0] regions;
  cdl_npu_isa_pkg::insn_load_t transfer;
  always_comb begin
    for (int unsigned e = 0; e < Engines; e++) begin
      transfer          = insn_word[e*WordBits +: WordBits];
      regions[e*4 +: 4] = transfer.region_f;
    end
  end

  // ---- Load channels ----
  for (genvar i = 0; i < LoadChannels; i++) begin : gen_load
    localparam int unsigned E = Load0 + i, Port = 1 + i, Reads = 7 + 2*i, WritesTo = 8 + 2*i;
    logic [31:0] region;
    assign region = 32'(regions[E*4 +: 4]);
    cdl_npu_transfer_check u_check (
      .clk_i, .rst_ni(core_rst_n),
      .insn_valid_i   (insn_valid[E]),
      .word_i         (insn_word[E*WordBits +: WordBits]),
      .desc_i         (insn_desc[E*DescriptorBits +: DescriptorBits]),
      .region_bytes_i (region_bytes[region*32 +: 32]),
      .region_flags_i (region_flags[region*4 +: 4]),
      .bad_o          (check_bad[E]),
      .code_o         (check_code[E*CodeBits +: CodeBits])
    );
    cdl_npu_dma_load #(
      .Width(BankWidth), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding), .AddrWidth(AddrWidth)
    ) u_channel (
      .clk_i, .rst_ni(core_rst_n),
      .insn_valid_i  (insn_valid[E]),
      .insn_ready_o  (insn_ready[E]),
      .word_i        (insn_word[E*WordBits +: WordBits]),
      .desc_i        (insn_desc[E*DescriptorBits +: DescriptorBits]),
      .base_i        (region_base[region*64 +: AddrWidth]),
      .done_o        (done[E]),
      .req_valid_o   (req_valid[Port]),
      .req_ready_i   (req_ready[Port]),
      .req_addr_o    (req_addr[Port*AddrWidth +: AddrWidth]),
      .req_bytes_o   (req_bytes[Port*BurstWidth +: BurstWidth]),
      .data_valid_i  (data_valid[Port]),
      .data_ready_o  (data_ready[Port]),
      .data_i        (bus_data),
      .read_valid_o  (want[Reads]),
      .read_ready_i  (grant[Reads]),
      .read_addr_o   (want_addr[Reads*25 +: 25]),
      .read_bytes_o  (want_bytes[Reads*PortBytes +: BankWidth]),
      .read_data_i   (pad_read[Reads*PortBytes*8 +: BankWidth*8]),
      .write_valid_o (want[WritesTo]),
      .write_ready_i (grant[WritesTo]),
      .write_addr_o  (want_addr[WritesTo*25 +: 25]),
      .write_bytes_o (want_bytes[WritesTo*PortBytes +: BankWidth]),
      .write_data_o  (want_data[WritesTo*PortBytes*8 +: BankWidth*8])
    );
    if (PortBytes > BankWidth) begin : gen_wider
      assign want_bytes[Reads*PortBytes + BankWidth +: PortBytes - BankWidth]       = '0;
      assign want_bytes[WritesTo*PortBytes + BankWidth +: PortBytes - BankWidth]    = '0;
      assign want_data[(WritesTo*PortBytes + BankWidth)*8 +: (PortBytes - BankWidth)*8] = '0;
    end
    assign want_data[Reads*PortBytes*8 +: PortBytes*8] = '0;
    assign {pad_write[WritesTo], pad_write[Reads]}     = 2'b10;
    assign channel_bad[Port]  = check_bad[E];
    assign pad_bad[E]         = pad_fault[Reads] || pad_fault[WritesTo];
    assign bus_bad[E]         = bus_fault && 32'(bus_fault_id) == Port;
    assign event_beat_o[E]    = data_valid[Port] || pad_moves[Reads];
    assign put_valid[Port]    = 1'b0;
    assign put_last[Port]     = 1'b0;
    assign answer_ready[Port] = 1'b0;
    assign put_bytes[Port*BeatBytes +: BeatBytes]    = '0;
    assign put_data[Port*BeatBytes*8 +: BeatBytes*8] = '0;
    logic unused;
    assign unused = ^insn_second[E*DescriptorBits +: DescriptorBits];
  end
  for (genvar e = Load0 + LoadChannels; e < Store0; e++) begin : gen_no_load
    assign {check_bad[e], pad_bad[e], bus_bad[e], event_beat_o[e]} = '0;
    assign check_code[e*CodeBits +: CodeBits] = '0;
  end

  // ---- Store channels ----
  for (genvar i = 0; i < StoreChannels; i++) begin : gen_store
    localparam int unsigned E = Store0 + i, Port = 1 + LoadChannels + i, Reads = 7 + 2*LoadChannels + i;
    logic [31:0] region;
    assign region = 32'(regions[E*4 +: 4]);
    cdl_npu_transfer_check u_check (
      .clk_i, .rst_ni(core_rst_n),
      .insn_valid_i   (insn_valid[E]),
      .word_i         (insn_word[E*WordBits +: WordBits]),
      .desc_i         (insn_desc[E*DescriptorBits +: DescriptorBits]),
      .region_bytes_i (region_bytes[region*32 +: 32]),
      .region_flags_i (region_flags[region*4 +: 4]),
      .bad_o          (check_bad[E]),
      .code_o         (check_code[E*CodeBits +: CodeBits])
    );
    cdl_npu_dma_store #(
      .Width(BankWidth), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding), .AddrWidth(AddrWidth)
    ) u_channel (
      .clk_i, .rst_ni(core_rst_n),
      .insn_valid_i   (insn_valid[E]),
      .insn_ready_o   (insn_ready[E]),
      .word_i         (insn_word[E*WordBits +: WordBits]),
      .desc_i         (insn_desc[E*DescriptorBits +: DescriptorBits]),
      .base_i         (region_base[region*64 +: AddrWidth]),
      .done_o         (done[E]),
      .read_valid_o   (want[Reads]),
      .read_ready_i   (grant[Reads]),
      .read_addr_o    (want_addr[Reads*25 +: 25]),
      .read_bytes_o   (want_bytes[Reads*PortBytes +: BankWidth]),
      .read_data_i    (pad_read[Reads*PortBytes*8 +: BankWidth*8]),
      .req_valid_o    (req_valid[Port]),
      .req_ready_i    (req_ready[Port]),
      .req_addr_o     (req_addr[Port*AddrWidth +: AddrWidth]),
      .req_bytes_o    (req_bytes[Port*BurstWidth +: BurstWidth]),
      .data_valid_o   (put_valid[Port]),
      .data_ready_i   (put_ready[Port]),
      .data_last_o    (put_last[Port]),
      .data_bytes_o   (put_bytes[Port*BeatBytes +: BeatBytes]),
      .data_o         (put_data[Port*BeatBytes*8 +: BeatBytes*8]),
      .answer_valid_i (answer_valid[Port]),
      .answer_ready_o (answer_ready[Port])
    );
    if (PortBytes > BankWidth) begin : gen_wider
      assign want_bytes[Reads*PortBytes + BankWidth +: PortBytes - BankWidth] = '0;
    end
    assign want_data[Reads*PortBytes*8 +: PortBytes*8] = '0;
    assign pad_write[Reads]  = 1'b0;
    assign channel_bad[Port] = check_bad[E];
    assign pad_bad[E]        = pad_fault[Reads];
    assign bus_bad[E]        = bus_fault && 32'(bus_fault_id) == Port;
    assign event_beat_o[E]   = put_valid[Port] && put_ready[Port];
    assign data_ready[Port]  = 1'b0;
    logic unused;
    assign unused = ^{insn_second[E*DescriptorBits +: DescriptorBits], data_valid[Port]};
  end
  for (genvar e = Store0 + StoreChannels; e < Matrix; e++) begin : gen_no_store
    assign {check_bad[e], pad_bad[e], bus_bad[e], event_beat_o[e]} = '0;
    assign check_code[e*CodeBits +: CodeBits] = '0;
  end

  // What the counters get of engines.
  logic pass, tile;
  logic [16:0] products;
  logic [15:0] requant_values, vector_values;

  // ---- Matrix engine and accumulators ----
  logic acc_valid, acc_add, acc_narrow, acc_writes, acc_read_valid, acc_read_ready, acc_write_valid, acc_write_ready;
  logic [AccRowWidth-1:0] acc_row, acc_read_row, acc_write_row;
  logic [Columns-1:0] acc_columns, acc_write_columns;
  logic [Columns*SumWidth-1:0] acc_sums, acc_read_data, acc_write_data;
  cdl_npu_window_check #(.Rows(Rows), .Columns(Columns), .Int16(Int16), .AccRows(AccRows)) u_window_check (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i (insn_valid[Matrix]),
    .word_i       (insn_word[Matrix*WordBits +: WordBits]),
    .desc_i       (insn_desc[Matrix*DescriptorBits +: DescriptorBits]),
    .bad_o        (check_bad[Matrix]),
    .code_o       (check_code[Matrix*CodeBits +: CodeBits])
  );
  cdl_npu_matrix #(.Rows(Rows), .Columns(Columns), .Int16(Int16), .AccRows(1 << AccRowWidth)) u_matrix (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i  (insn_valid[Matrix]),
    .insn_ready_o  (insn_ready[Matrix]),
    .word_i        (insn_word[Matrix*WordBits +: WordBits]),
    .desc_i        (insn_desc[Matrix*DescriptorBits +: DescriptorBits]),
    .done_o        (done[Matrix]),
    .act_valid_o   (want[0]),
    .act_ready_i   (grant[0]),
    .act_addr_o    (want_addr[0 +: 25]),
    .act_bytes_o   (want_bytes[0 +: Longer*ActBytes]),
    .act_data_i    (pad_read[0 +: Longer*ActBytes*8]),
    .wgt_valid_o   (want[1]),
    .wgt_ready_i   (grant[1]),
    .wgt_addr_o    (want_addr[25 +: 25]),
    .wgt_bytes_o   (want_bytes[PortBytes +: Longer]),
    .wgt_data_i    (pad_read[PortBytes*8 +: Longer*8]),
    .acc_valid_o   (acc_valid),
    .acc_row_o     (acc_row),
    .acc_add_o     (acc_add),
    .acc_narrow_o  (acc_narrow),
    .acc_columns_o (acc_columns),
    .acc_sums_o    (acc_sums),
    .acc_writes_i  (acc_writes),
    .pass_o        (pass),
    .products_o    (products),
    .tile_o        (tile)
  );
  if (PortBytes > Longer*ActBytes) begin : gen_act_wider
    assign want_bytes[Longer*ActBytes +: PortBytes - Longer*ActBytes] = '0;
  end
  if (PortBytes > Longer) begin : gen_wgt_wider
    assign want_bytes[PortBytes + Longer +: PortBytes - Longer] = '0;
  end
  assign want_data[0 +: 2*PortBytes*8] = '0;
  assign pad_write[1:0]                = '0;
  assign pad_bad[Matrix]               = pad_fault[0] || pad_fault[1];
  assign event_beat_o[Matrix]          = pad_moves[0] || pad_moves[1];
  cdl_npu_accumulators #(.Columns(Columns), .SumWidth(SumWidth), .Banks(AccBanks), .Rows(1 << AccRowWidth)) u_accumulators (
    .clk_i, .rst_ni(core_rst_n),
    .matrix_valid_i(acc_valid), .matrix_row_i(acc_row), .matrix_add_i(acc_add), .matrix_narrow_i(acc_narrow),
    .matrix_columns_i(acc_columns), .matrix_sums_i(acc_sums), .matrix_writes_o(acc_writes),
    .read_valid_i(acc_read_valid), .read_ready_o(acc_read_ready), .read_row_i(acc_read_row), .read_data_o(acc_read_data),
    .write_valid_i(acc_write_valid), .write_ready_o(acc_write_ready), .write_row_i(acc_write_row), .write_columns_i(acc_write_columns),
    .write_data_i(acc_write_data)
  );

  // ---- Requant engine ----
  cdl_npu_epilogue_check #(.Columns(Columns), .Int16(Int16), .AccRows(AccRows)) u_epilogue_check (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i (insn_valid[Requant]),
    .word_i       (insn_word[Requant*WordBits +: WordBits]),
    .desc_i       (insn_desc[Requant*DescriptorBits +: DescriptorBits]),
    .second_i     (insn_second[Requant*DescriptorBits +: DescriptorBits]),
    .bad_o        (check_bad[Requant]),
    .code_o       (check_code[Requant*CodeBits +: CodeBits])
  );
  cdl_npu_requant #(.Columns(Columns), .Lanes(RequantLanes), .Width(BankWidth), .AccRows(1 << AccRowWidth), .Int16(Int16)) u_requant (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i        (insn_valid[Requant]),
    .insn_ready_o        (insn_ready[Requant]),
    .word_i              (insn_word[Requant*WordBits +: WordBits]),
    .desc_i              (insn_desc[Requant*DescriptorBits +: DescriptorBits]),
    .second_i            (insn_second[Requant*DescriptorBits +: DescriptorBits]),
    .done_o              (done[Requant]),
    .read_valid_o        (want[2]),
    .read_ready_i        (grant[2]),
    .read_addr_o         (want_addr[2*25 +: 25]),
    .read_bytes_o        (want_bytes[2*PortBytes +: RequantBytes]),
    .read_data_i         (pad_read[2*PortBytes*8 +: RequantBytes*8]),
    .write_valid_o       (want[3]),
    .write_ready_i       (grant[3]),
    .write_addr_o        (want_addr[3*25 +: 25]),
    .write_bytes_o       (want_bytes[3*PortBytes +: RequantBytes]),
    .write_data_o        (want_data[3*PortBytes*8 +: RequantBytes*8]),
    .acc_read_valid_o    (acc_read_valid),
    .acc_read_ready_i    (acc_read_ready),
    .acc_read_row_o      (acc_read_row),
    .acc_read_data_i     (acc_read_data),
    .acc_write_valid_o   (acc_write_valid),
    .acc_write_ready_i   (acc_write_ready),
    .acc_write_row_o     (acc_write_row),
    .acc_write_columns_o (acc_write_columns),
    .acc_write_data_o    (acc_write_data),
    .values_o            (requant_values)
  );
  if (PortBytes > RequantBytes) begin : gen_requant_wider
    assign want_bytes[2*PortBytes + RequantBytes +: PortBytes - RequantBytes]       = '0;
    assign want_bytes[3*PortBytes + RequantBytes +: PortBytes - RequantBytes]       = '0;
    assign want_data[(3*PortBytes + RequantBytes)*8 +: (PortBytes - RequantBytes)*8] = '0;
  end
  assign want_data[2*PortBytes*8 +: PortBytes*8] = '0;
  assign pad_write[3:2]                          = 2'b10;
  assign pad_bad[Requant]                        = pad_fault[2] || pad_fault[3];
  assign event_beat_o[Requant]                   = pad_moves[2] || (acc_read_valid && acc_read_ready);

  // ---- Vector engine ----
  cdl_npu_lanes_check #(.Int16(Int16)) u_lanes_check (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i (insn_valid[Vector]),
    .word_i       (insn_word[Vector*WordBits +: WordBits]),
    .desc_i       (insn_desc[Vector*DescriptorBits +: DescriptorBits]),
    .bad_o        (check_bad[Vector]),
    .code_o       (check_code[Vector*CodeBits +: CodeBits])
  );
  cdl_npu_vector #(.Lanes(VectorLanes), .Width(BankWidth), .Int16(Int16)) u_vector (
    .clk_i, .rst_ni(core_rst_n),
    .insn_valid_i  (insn_valid[Vector]),
    .insn_ready_o  (insn_ready[Vector]),
    .word_i        (insn_word[Vector*WordBits +: WordBits]),
    .desc_i        (insn_desc[Vector*DescriptorBits +: DescriptorBits]),
    .second_i      (insn_second[Vector*DescriptorBits +: DescriptorBits]),
    .done_o        (done[Vector]),
    .a_valid_o     (want[4]),
    .a_ready_i     (grant[4]),
    .a_addr_o      (want_addr[4*25 +: 25]),
    .a_bytes_o     (want_bytes[4*PortBytes +: BankWidth]),
    .a_data_i      (pad_read[4*PortBytes*8 +: BankWidth*8]),
    .b_valid_o     (want[5]),
    .b_ready_i     (grant[5]),
    .b_addr_o      (want_addr[5*25 +: 25]),
    .b_bytes_o     (want_bytes[5*PortBytes +: BankWidth]),
    .b_data_i      (pad_read[5*PortBytes*8 +: BankWidth*8]),
    .write_valid_o (want[VectorWrites]),
    .write_ready_i (grant[VectorWrites]),
    .write_addr_o  (want_addr[VectorWrites*25 +: 25]),
    .write_claim_o (want_claim[VectorWrites*PortBytes +: BankWidth]),
    .write_bytes_o (want_bytes[VectorWrites*PortBytes +: BankWidth]),
    .write_data_o  (want_data[VectorWrites*PortBytes*8 +: BankWidth*8]),
    .values_o      (vector_values)
  );
  if (PortBytes > BankWidth) begin : gen_vector_wider
    assign want_bytes[4*PortBytes + BankWidth +: PortBytes - BankWidth]       = '0;
    assign want_bytes[5*PortBytes + BankWidth +: PortBytes - BankWidth]       = '0;
    assign want_bytes[VectorWrites*PortBytes + BankWidth +: PortBytes - BankWidth]       = '0;
    assign want_claim[VectorWrites*PortBytes + BankWidth +: PortBytes - BankWidth]       = '0;
    assign want_data[(VectorWrites*PortBytes + BankWidth)*8 +: (PortBytes - BankWidth)*8] = '0;
  end
  assign want_data[4*PortBytes*8 +: 2*PortBytes*8] = '0;
  assign pad_write[6:4]                            = 3'b100;
  assign pad_bad[Vector]                           = pad_fault[4] || pad_fault[5] || pad_fault[VectorWrites];
  assign event_beat_o[Vector]                      = pad_moves[4] || pad_moves[5];
  assign {bus_bad[Matrix], bus_bad[Requant], bus_bad[Vector], event_beat_o[0]} = '0;

  // ---- Counters ----
  cdl_npu_counts #(.Engines(Engines), .BurstWidth(BurstWidth), .Ports(PadPorts), .PortBytes(PortBytes)) u_counts (
    .clk_i, .rst_ni,
    .enable_i        (counts),
    .clear_i         (clear_counters || starts),
    .running_i       (control_running),
    .retire_i        (retires),
    .mark_i          (marks),
    .pass_i          (pass),
    .products_i      (products),
    .tile_i          (tile),
    .requant_i       (requant_values),
    .vector_i        (vector_values),
    .port_moves_i    (pad_moves),
    .port_writes_i   (pad_write),
    .port_bytes_i    (pad_claim),
    .moves_i         (bus_valid && bus_ready && bus_tag != '0 && 32'(bus_tag) != Profile),
    .write_i         (bus_write),
    .bytes_i         (bus_bytes),
    .class_i         (moved_class),
    .snapshot_i      (snapshot_q),
    .snapshot_slot_i (snapshot_slot_q),
    .read_id_i       (pmu_id),
    .read_high_i     (pmu_high),
    .read_copy_i     (pmu_copy),
    .read_slot_i     (pmu_slot),
    .read_data_o     (pmu_data)
  );
  // The class of the region of what each channel runs.
  logic [Ports*3-1:0] channel_class;
  logic [2:0] moved_class;
  assign moved_class        = channel_class[32'(bus_tag)*3 +: 3];
  assign channel_class[2:0] = '0;
  assign channel_class[Profile*3 +: 3] = '0;
  for (genvar p = 1; p < Profile; p++) begin : gen_class
    localparam int unsigned E = p <= LoadChannels ? Load0 + p - 1 : Store0 + p - 1 - LoadChannels;
    logic [31:0] region;
    logic [2:0] class_q;
    assign region = 32'(regions[E*4 +: 4]);
    assign channel_class[p*3 +: 3] = class_q;
    always_ff @(posedge clk_i) begin
      if (insn_valid[E]) begin
        class_q <= region_flags[region*4 + 1 +: 3];
      end
    end
  end
  // Of engines that are not there, and of the control processor, which has no queue.
  logic unused;
  assign unused = ^{program_base, profile_base, region_base, insn_word, insn_desc, insn_second, insn_valid, insn_ready, done, send_valid, stuck[0], take_ready,
                    check_bad[0], check_code[CodeBits-1:0], pad_bad[0], data_ready, answer_valid, put_ready, pad_read, pad_moves, transfer, regions};
endmodule
