// Looks at an instruction of the requant engine when it begins: the descriptors are ones that this configuration has, its addresses aligned, its
// accumulators there. What is wrong shows two cycles later, for one. Addresses in the scratchpad are checked where they go.
module cdl_npu_epilogue_check #(
  parameter int unsigned Columns = 16,
  parameter bit          Int16   = 1'b0,
  parameter int unsigned AccRows = 1024
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic                                       insn_valid_i,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] second_i,
  output logic                                       bad_o,
  output cdl_npu_regs_pkg::fault_e                   code_o
);

  localparam int unsigned ColumnLog2 = $clog2(Columns);
  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  cdl_npu_isa_pkg::desc_epilogue_t d;
  cdl_npu_isa_pkg::desc_rescale_t r;
  cdl_npu_isa_pkg::insn_requant_t insn;
  cdl_npu_isa_pkg::insn_accload_t move;
  assign insn = word_q;
  assign move = word_q;
  logic is_requant, has_residual;
  assign is_requant   = insn.opcode_f == cdl_npu_isa_pkg::OP_REQUANT;
  assign has_residual = is_requant && insn.residual_f[0];

  // ---- Types and bounds ----
  function automatic logic signed [16:0] joined(input logic [7:0] more, input logic [8:0] others);
    joined = {more ^ {8{others[8]}}, others};
  endfunction
  function automatic logic isOutside(input logic [2:0] kind, input logic signed [16:0] value);
    unique case (kind)
      cdl_npu_isa_pkg::TYPE_I8: isOutside = value < -128 || value > 127;
      cdl_npu_isa_pkg::TYPE_U8: isOutside = value < 0 || value > 255;
      default:                  isOutside = value < -17'sd32768 || value > 17'sd32767;
    endcase
  endfunction
  // Zero points of a RESCALE, and its left shifts.
  function automatic logic isScaleOff(input logic [2:0] kind, input logic signed [16:0] zero, input logic [4:0] shift);
    if (kind == cdl_npu_isa_pkg::TYPE_I16) begin
      isScaleOff = isOutside(kind, zero) || shift > 5'd22;
    end else begin
      isScaleOff = zero < -256 || zero > 255 || shift > 5'd30;
    end
  endfunction
  function automatic logic isNarrow(input logic [2:0] kind);
    isNarrow = kind <= cdl_npu_isa_pkg::TYPE_U8 || (Int16 && kind == cdl_npu_isa_pkg::TYPE_I16);
  endfunction
  logic signed [16:0] zp, low, high, r_zp, r_b_zp, r_low, r_high;
  logic types_bad, bounds_bad, residual_bad;
  assign zp     = joined(d.zp_more_f, d.zp_f);
  assign low    = joined(d.low_more_f, d.low_f);
  assign high   = joined(d.high_more_f, d.high_f);
  assign r_zp   = joined(r.zp_more_f, r.zp_f);
  assign r_b_zp = joined(r.b_zp_more_f, r.b_zp_f);
  assign r_low  = joined(r.low_more_f, r.low_f);
  assign r_high = joined(r.high_more_f, r.high_f);
  assign types_bad    = d.reserved0 != '0 || !isNarrow(d.out_type_f) || (!Int16 && d.wide_f[0]);
  assign bounds_bad   = isOutside(d.out_type_f, zp) || isOutside(d.out_type_f, low) || isOutside(d.out_type_f, high) || low > high;
  assign residual_bad = has_residual && (r.reserved0 != '0 || !isNarrow(r.b_type_f) || !isNarrow(r.out_type_f) ||
                        (r.out_type_f == cdl_npu_isa_pkg::TYPE_I16) != (d.out_type_f == cdl_npu_isa_pkg::TYPE_I16) ||
                        isScaleOff(r.out_type_f, r_zp, r.a_shift_f) || isScaleOff(r.b_type_f, r_b_zp, r.b_shift_f) || r_low > r_high ||
                        isOutside(r.out_type_f, r_low) || isOutside(r.out_type_f, r_high));

  // ---- Alignment ----
  function automatic logic isOff(input logic [1:0] log2, input logic [2:0] low_bits);
    isOff = (low_bits & ~(3'b111 << log2)) != '0;
  endfunction
  logic [1:0] out_log2, residual_log2, sum_log2;
  logic misaligned;
  assign out_log2      = {1'b0, d.out_type_f == cdl_npu_isa_pkg::TYPE_I16};
  assign residual_log2 = {1'b0, r.b_type_f == cdl_npu_isa_pkg::TYPE_I16};
  assign sum_log2      = d.wide_f[0] ? 2'd3 : 2'd2;
  always_comb begin
    if (is_requant) begin
      misaligned = isOff(out_log2, insn.dst_f[2:0] | d.row_stride_f[2:0] | d.pixel_stride_f[2:0]) || d.params_f[2:0] != '0 ||
                   (has_residual && isOff(residual_log2, insn.res_f[2:0] | r.row_stride_f[2:0] | r.pixel_stride_f[2:0])) ||
                   (insn.table_f[0] && isOff(out_log2, d.table_f[2:0]));
    end else begin
      misaligned = isOff(sum_log2, move.src_f[2:0] | d.row_stride_f[2:0] | d.pixel_stride_f[2:0]);
    end
  end

  // ---- Accumulators, and windows that reach into them ----
  logic [15:0] blocks_less_one;
  logic [25:0] pixels;
  logic [32:0] acc_end;
  logic pitch_bad, rows_bad, reach_bad;
  function automatic logic misses(input logic [11:0] outs, input logic [3:0] stride, input logic [3:0] size, input logic [2:0] pad, input logic [11:0] ins);
    misses = 4'(pad) > size || 18'(outs) * (18'(stride) + 18'd1) > 18'(ins) + 18'(pad);
  endfunction
  assign blocks_less_one = d.channels_f >> ColumnLog2;
  assign pixels          = is_requant ? (26'(d.in_h_f) + 26'd1) * (26'(d.in_w_f) + 26'd1) : (26'(d.out_h_f) + 26'd1) * (26'(d.out_w_f) + 26'd1);
  assign acc_end         = 33'(insn.acc_f) + 33'(blocks_less_one) * 33'(d.acc_pitch_f) + 33'(pixels);
  assign pitch_bad       = blocks_less_one != '0 && 26'(d.acc_pitch_f) < pixels;
  assign rows_bad        = acc_end > 33'(AccRows);
  assign reach_bad       = is_requant && (misses(d.out_h_f, d.pool_stride_h_f, d.pool_h_f, d.pool_pad_top_f, d.in_h_f) ||
                                          misses(d.out_w_f, d.pool_stride_w_f, d.pool_w_f, d.pool_pad_left_f, d.in_w_f));

  logic came_q, bad_q, is_none;
  cdl_npu_regs_pkg::fault_e code_q;
  assign bad_o   = bad_q;
  assign code_o  = code_q;
  assign is_none = types_bad || bounds_bad || residual_bad || pitch_bad || reach_bad;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      came_q <= 1'b0;
      bad_q  <= 1'b0;
    end else begin
      came_q <= insn_valid_i;
      bad_q  <= came_q && (is_none || misaligned || rows_bad);
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i) begin
      word_q <= word_i;
      d      <= desc_i;
      r      <= second_i;
    end
    if (is_none) begin
      code_q <= cdl_npu_regs_pkg::FAULT_INSTRUCTION;
    end else begin
      code_q <= misaligned ? cdl_npu_regs_pkg::FAULT_PORT : cdl_npu_regs_pkg::FAULT_RANGE;
    end
  end
  logic unused;
  assign unused = ^{insn, move, d, r};
endmodule
