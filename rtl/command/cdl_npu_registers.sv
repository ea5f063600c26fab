// The registers as an AXI4-Lite slave of 32 bits: what the driver writes, what it may read, the counters of the PMU. Writes of parts of a register and of
// what is none are answered with SLVERR and do nothing; what is not there reads as 0. A program writes those that are its own by the other port.
module cdl_npu_registers #(
  parameter logic [63:0] ConfigHash = '0,
  localparam int unsigned Regions = 16
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [11:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [3:0]  s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [1:0]  s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [11:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o,

  output logic                  start_o,           // written in this cycle
  output logic                  reset_o,
  output logic [63:0]           program_o,
  output logic [31:0]           words_o,
  output logic [Regions*64-1:0] region_base_o,
  output logic [Regions*32-1:0] region_bytes_o,
  output logic [Regions*4-1:0]  region_flags_o,
  output logic                  count_o,
  output logic                  clear_counters_o,
  output logic [63:0]           profile_base_o,
  output logic [31:0]           profile_bytes_o,
  output logic [31:0]           tag_o,

  input  logic        config_i,                    // the program writes
  input  logic [11:0] config_offset_i,
  input  logic [31:0] config_value_i,

  input  logic [2:0]  status_i,
  input  logic [31:0] fault_pc_i,
  input  logic [3:0]  fault_code_i,
  input  logic [31:0] profile_records_i,
  input  logic [31:0] profile_lost_i,
  input  logic [cdl_npu_isa_pkg::Semaphores*8-1:0] semaphores_i,

  output logic [4:0]  pmu_id_o,
  output logic        pmu_high_o,
  output logic        pmu_copy_o,
  output logic [1:0]  pmu_slot_o,
  input  logic [31:0] pmu_data_i
);

  localparam logic [31:0] DeviceId = 32'h43444c4e;

  logic [63:0] program_q, profile_q;
  logic [31:0] words_q, tag_q, profile_bytes_q;
  logic [Regions*64-1:0] bases_q;
  logic [Regions*32-1:0] bytes_q;
  logic [Regions*4-1:0] flags_q;
  logic count_q;
  assign program_o      = program_q;
  assign words_o        = words_q;
  assign region_base_o  = bases_q;
  assign region_bytes_o = bytes_q;
  assign region_flags_o = flags_q;
  assign count_o        = count_q;
  assign profile_base_o  = profile_q;
  assign profile_bytes_o = profile_bytes_q;
  assign tag_o           = tag_q;

  function automatic logic isAt(input logic [11:0] address, input logic [15:0] offset);
    isAt = {4'd0, address} == offset;
  endfunction
  // Of an array of `count` registers.
  function automatic logic isIn(input logic [11:0] address, input logic [15:0] offset, input logic [15:0] count);
    isIn = {4'd0, address} >= offset && {4'd0, address} < offset + (count << 2) && address[1:0] == 2'b00;
  endfunction

  // ---- Writes: address and data are taken together ----
  logic write, is_whole, is_known, b_valid_q, b_fails_q;
  logic [11:0] address;
  logic [31:0] value;
  assign write            = s_axil_awvalid_i && s_axil_wvalid_i && !b_valid_q;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o  = write;
  assign s_axil_bvalid_o  = b_valid_q;
  assign s_axil_bresp_o   = b_fails_q ? 2'b10 : 2'b00;
  assign address          = s_axil_awaddr_i;
  assign value            = s_axil_wdata_i;
  assign is_whole         = s_axil_wstrb_i == 4'b1111;
  assign is_known = isAt(address, cdl_npu_regs_pkg::RegControl) || isAt(address, cdl_npu_regs_pkg::RegProgramLo) ||
                    isAt(address, cdl_npu_regs_pkg::RegProgramHi) || isAt(address, cdl_npu_regs_pkg::RegProgramWords) ||
                    isAt(address, cdl_npu_regs_pkg::RegPmuControl) || isAt(address, cdl_npu_regs_pkg::RegTag) ||
                    isAt(address, cdl_npu_regs_pkg::RegProfileLo) || isAt(address, cdl_npu_regs_pkg::RegProfileHi) ||
                    isAt(address, cdl_npu_regs_pkg::RegProfileBytes) ||
                    isIn(address, cdl_npu_regs_pkg::RegRegionBaseLo, 16'(Regions)) ||
                    isIn(address, cdl_npu_regs_pkg::RegRegionBaseHi, 16'(Regions)) ||
                    isIn(address, cdl_npu_regs_pkg::RegRegionBytes, 16'(Regions)) ||
                    isIn(address, cdl_npu_regs_pkg::RegRegionFlags, 16'(Regions));
  logic does, to_control, pmu_by_driver, pmu_by_program;
  assign does             = write && is_whole && is_known;
  assign to_control       = does && isAt(address, cdl_npu_regs_pkg::RegControl);
  assign reset_o          = to_control && value[1];
  assign start_o          = to_control && value[0] && !value[1];
  assign pmu_by_driver    = does && isAt(address, cdl_npu_regs_pkg::RegPmuControl);
  assign pmu_by_program   = config_i && isAt(config_offset_i, cdl_npu_regs_pkg::RegPmuControl);
  assign clear_counters_o = (pmu_by_driver && value[1]) || (pmu_by_program && config_value_i[1]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      program_q <= '0;
      words_q   <= '0;
      profile_q <= '0;
      profile_bytes_q <= '0;
      tag_q     <= '0;
      bases_q   <= '0;
      bytes_q   <= '0;
      flags_q   <= '0;
      count_q   <= 1'b1;
    end else begin
      b_valid_q <= write || (b_valid_q && !s_axil_bready_i);
      if (pmu_by_driver) begin
        count_q <= value[0];
      end else if (pmu_by_program) begin
        count_q <= config_value_i[0];
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegTag)) begin
        tag_q <= value;
      end else if (config_i && isAt(config_offset_i, cdl_npu_regs_pkg::RegTag)) begin
        tag_q <= config_value_i;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProgramLo)) begin
        program_q[31:0] <= value;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProgramHi)) begin
        program_q[63:32] <= value;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProgramWords)) begin
        words_q <= value;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProfileLo)) begin
        profile_q[31:0] <= value;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProfileHi)) begin
        profile_q[63:32] <= value;
      end
      if (does && isAt(address, cdl_npu_regs_pkg::RegProfileBytes)) begin
        profile_bytes_q <= value;
      end
      if (does && isIn(address, cdl_npu_regs_pkg::RegRegionBaseLo, 16'(Regions))) begin
        bases_q[32'(address[5:2])*64 +: 32] <= value;
      end
      if (does && isIn(address, cdl_npu_regs_pkg::RegRegionBaseHi, 16'(Regions))) begin
        bases_q[32'(address[5:2])*64 + 32 +: 32] <= value;
      end
      if (does && isIn(address, cdl_npu_regs_pkg::RegRegionBytes, 16'(Regions))) begin
        bytes_q[32'(address[5:2])*32 +: 32] <= value;
      end
      if (does && isIn(address, cdl_npu_regs_pkg::RegRegionFlags, 16'(Regions))) begin
        flags_q[32'(address[5:2])*4 +: 4] <= value[3:0];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (write) begin
      b_fails_q <= !(is_whole && is_known);
    end
  end

  // ---- Reads: an answer in the cycle behind ----
  logic read, r_valid_q;
  logic [11:0] at;
  logic [31:0] data, data_q;
  assign read             = s_axil_arvalid_i && !r_valid_q;
  assign s_axil_arready_o = read;
  assign s_axil_rvalid_o  = r_valid_q;
  assign s_axil_rdata_o   = data_q;
  assign s_axil_rresp_o   = 2'b00;
  assign at               = s_axil_araddr_i;
  // Copies lie from 0x800 on, 512 bytes for each slot; counters from 0x400 on.
  assign pmu_copy_o = at[11];
  assign pmu_slot_o = at[10:9];
  assign pmu_id_o   = at[7:3];
  assign pmu_high_o = at[2];
  logic is_pmu;
  assign is_pmu = !at[8] && (at[11] || at[10:9] == 2'b10);
  always_comb begin
    data = '0;
    if (at >= cdl_npu_regs_pkg::Pmu[11:0]) begin
      data = is_pmu ? pmu_data_i : '0;
    end else if (isIn(at, cdl_npu_regs_pkg::RegSemaphore, 16'(cdl_npu_isa_pkg::Semaphores))) begin
      data = 32'(semaphores_i[32'(at[6:2])*8 +: 8]);
    end else if (isIn(at, cdl_npu_regs_pkg::RegRegionBaseLo, 16'(Regions))) begin
      data = bases_q[32'(at[5:2])*64 +: 32];
    end else if (isIn(at, cdl_npu_regs_pkg::RegRegionBaseHi, 16'(Regions))) begin
      data = bases_q[32'(at[5:2])*64 + 32 +: 32];
    end else if (isIn(at, cdl_npu_regs_pkg::RegRegionBytes, 16'(Regions))) begin
      data = bytes_q[32'(at[5:2])*32 +: 32];
    end else if (isIn(at, cdl_npu_regs_pkg::RegRegionFlags, 16'(Regions))) begin
      data = 32'(flags_q[32'(at[5:2])*4 +: 4]);
    end else begin
      unique case ({4'd0, at})
        cdl_npu_regs_pkg::RegId:           data = DeviceId;
        cdl_npu_regs_pkg::RegSpecHashLo:   data = cdl_npu_isa_pkg::SpecHash[31:0];
        cdl_npu_regs_pkg::RegSpecHashHi:   data = cdl_npu_isa_pkg::SpecHash[63:32];
        cdl_npu_regs_pkg::RegConfigHashLo: data = ConfigHash[31:0];
        cdl_npu_regs_pkg::RegConfigHashHi: data = ConfigHash[63:32];
        cdl_npu_regs_pkg::RegStatus:       data = 32'(status_i);
        cdl_npu_regs_pkg::RegFaultPc:      data = fault_pc_i;
        cdl_npu_regs_pkg::RegFaultCode:    data = 32'(fault_code_i);
        cdl_npu_regs_pkg::RegProgramLo:    data = program_q[31:0];
        cdl_npu_regs_pkg::RegProgramHi:    data = program_q[63:32];
        cdl_npu_regs_pkg::RegProgramWords: data = words_q;
        cdl_npu_regs_pkg::RegPmuControl:   data = 32'(count_q);
        cdl_npu_regs_pkg::RegTag:          data = tag_q;
        cdl_npu_regs_pkg::RegProfileLo:    data = profile_q[31:0];
        cdl_npu_regs_pkg::RegProfileHi:    data = profile_q[63:32];
        cdl_npu_regs_pkg::RegProfileBytes: data = profile_bytes_q;
        cdl_npu_regs_pkg::RegProfileRecords: data = profile_records_i;
        cdl_npu_regs_pkg::RegProfileLost:  data = profile_lost_i;
        default:                           data = '0;
      endcase
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_valid_q <= 1'b0;
    end else begin
      r_valid_q <= read || (r_valid_q && !s_axil_rready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (read) begin
      data_q <= data;
    end
  end
endmodule
