// Looks at an instruction of a DMA channel while the channel sets up: the descriptor is one, a store has no padding, the box lies within its region, and
// regions of class constants are not written. What is wrong shows from the cycle of the first burst on, until the next instruction.
module cdl_npu_transfer_check (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic                                       insn_valid_i,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  input  logic [31:0]                                region_bytes_i,    // of the region of word_i
  input  logic [3:0]                                 region_flags_i,

  output logic                                       bad_o,
  output cdl_npu_regs_pkg::fault_e                   code_o
);

  cdl_npu_isa_pkg::insn_load_t load;
  cdl_npu_isa_pkg::desc_transfer_t d, d_q;
  assign load = word_i;
  assign d    = desc_i;
  logic is_store, is_far;
  assign is_store = load.opcode_f == cdl_npu_isa_pkg::OP_STORE;
  assign is_far   = is_store || load.opcode_f == cdl_npu_isa_pkg::OP_LOAD;
  logic unused;
  assign unused = ^{load, d, d_q};

  // A dimension in a cycle: how far it reaches before and behind the first run.
  typedef enum logic [2:0] {StIdle, StDim1, StDim2, StDim3, StBound} state_e;
  state_e state_q;
  logic [15:0] len;
  logic signed [31:0] stride;
  logic signed [48:0] reach;
  logic signed [50:0] from_q, to_q;
  always_comb begin
    unique case (state_q)
      StDim2:  begin len = d_q.len2_f; stride = d_q.far_stride2_f; end
      StDim3:  begin len = d_q.len3_f; stride = d_q.far_stride3_f; end
      default: begin len = d_q.len1_f; stride = d_q.far_stride1_f; end
    endcase
  end
  assign reach = 49'(stride) * $signed({33'd0, len});

  logic is_far_q, is_none_q, is_read_only_q, is_outside;
  logic [31:0] bytes_q;
  assign is_outside = is_far_q && (from_q < 0 || to_q > $signed({19'd0, bytes_q}));
  logic bad_q;
  cdl_npu_regs_pkg::fault_e code_q;
  assign bad_o  = bad_q;
  assign code_o = code_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      bad_q   <= 1'b0;
    end else begin
      unique case (state_q)
        StDim1:  state_q <= StDim2;
        StDim2:  state_q <= StDim3;
        StDim3:  state_q <= StBound;
        default: state_q <= StIdle;
      endcase
      if (insn_valid_i) begin
        state_q <= StDim1;
        bad_q   <= 1'b0;
      end else if (state_q == StBound) begin
        bad_q <= is_none_q || is_outside || is_read_only_q;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i) begin
      d_q            <= d;
      bytes_q        <= region_bytes_i;
      is_far_q       <= is_far;
      is_none_q      <= d.reserved0 != '0 ||
                        (is_store && {d.pad_left_f, d.pad_right_f, d.pad_top_f, d.pad_bottom_f} != '0);
      is_read_only_q <= is_store && (region_flags_i[0] || region_flags_i[3:1] == cdl_npu_regs_pkg::REGION_CONSTANTS);
      from_q         <= $signed({19'd0, load.far_f});
      to_q           <= $signed({19'd0, load.far_f}) + $signed({35'd0, d.run_f}) + 51'sd1;
    end else if (state_q == StDim1 || state_q == StDim2 || state_q == StDim3) begin
      if (reach < 0) begin
        from_q <= from_q + 51'(reach);
      end else begin
        to_q <= to_q + 51'(reach);
      end
    end
    if (state_q == StBound) begin
      code_q <= is_none_q ? cdl_npu_regs_pkg::FAULT_INSTRUCTION
              : is_outside ? cdl_npu_regs_pkg::FAULT_RANGE : cdl_npu_regs_pkg::FAULT_PORT;
    end
  end
endmodule
