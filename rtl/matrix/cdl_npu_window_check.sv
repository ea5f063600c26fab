// Looks at an instruction of the matrix engine when it begins: the descriptor is one that this configuration has, and its accumulators are there. What is
// wrong shows two cycles later, for one. Addresses in the scratchpad are checked where they go.
module cdl_npu_window_check #(
  parameter int unsigned Rows    = 16,
  parameter int unsigned Columns = 16,
  parameter bit          Int16   = 1'b0,
  parameter int unsigned AccRows = 1024
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic                                       insn_valid_i,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  output logic                                       bad_o,
  output cdl_npu_regs_pkg::fault_e                   code_o
);

  localparam int unsigned ColumnLog2 = $clog2(Columns);
  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  cdl_npu_isa_pkg::desc_window_t d;
  cdl_npu_isa_pkg::insn_conv_t conv;
  cdl_npu_isa_pkg::insn_ldw_t ldw;
  assign conv = word_q;
  assign ldw  = word_q;
  logic is_ldw, is_mm, is_depthwise;
  assign is_ldw       = conv.opcode_f == cdl_npu_isa_pkg::OP_LDW;
  assign is_mm        = conv.opcode_f == cdl_npu_isa_pkg::OP_MM;
  assign is_depthwise = conv.opcode_f == cdl_npu_isa_pkg::OP_DWCONV;

  // ---- Types and zero points ----
  logic a_is_wide, types_bad, zeros_bad;
  logic signed [16:0] a_zp;
  logic signed [8:0] w_zp;
  assign a_zp      = {d.a_zp_more_f ^ {8{d.a_zp_f[8]}}, d.a_zp_f};
  assign w_zp      = d.w_zp_f;
  assign a_is_wide = d.a_type_f == cdl_npu_isa_pkg::TYPE_I16;
  assign types_bad = d.reserved0 != '0 || d.w_type_f > cdl_npu_isa_pkg::TYPE_U8 ||
                     (d.a_type_f > cdl_npu_isa_pkg::TYPE_U8 && !(Int16 && a_is_wide));
  function automatic logic isOutside(input logic is_unsigned, input logic signed [16:0] value);
    isOutside = is_unsigned ? value < 0 || value > 255 : value < -128 || value > 127;
  endfunction
  assign zeros_bad = (!a_is_wide && isOutside(d.a_type_f == cdl_npu_isa_pkg::TYPE_U8, a_zp)) ||
                     (a_is_wide && (a_zp < -17'sd32768 || a_zp > 17'sd32767)) ||
                     isOutside(d.w_type_f == cdl_npu_isa_pkg::TYPE_U8, 17'(w_zp));

  // ---- Shapes ----
  logic [23:0] packed_rows;
  logic packs, shape_bad, misaligned;
  assign packs       = d.taps_f != '0;
  assign packed_rows = (24'(d.taps_f) + 24'd1) * (24'(d.cin_f) + 24'd1);
  assign shape_bad   = (packs && (packed_rows > 24'(Rows) || d.flat_f[0])) || (is_depthwise && (packs || d.flat_f[0] || d.transposed_f[0])) ||
                       (is_ldw && (32'(ldw.k_f) >= Rows || 32'(ldw.n_f) >= Columns));
  assign misaligned  = a_is_wide && !is_ldw && (conv.act_f[0] || d.row_stride_f[0] || d.pixel_stride_f[0]);

  // ---- Accumulators ----
  logic [15:0] blocks_less_one;
  logic [32:0] pixels, acc_end;
  logic pitch_bad, rows_bad;
  assign blocks_less_one = is_mm ? '0 : (is_depthwise ? d.cin_f : d.cout_f) >> ColumnLog2;
  assign pixels          = (33'(d.out_h_f) + 33'd1) * (33'(d.out_w_f) + 33'd1) * (is_mm ? 33'd1 : 33'(d.planes_f) + 33'd1);
  assign acc_end         = 33'(conv.acc_f) + 33'(blocks_less_one) * 33'(d.acc_pitch_f) + pixels;
  assign pitch_bad       = !is_ldw && blocks_less_one != '0 && 33'(d.acc_pitch_f) < pixels;
  assign rows_bad        = !is_ldw && acc_end > 33'(AccRows);

  logic came_q, bad_q;
  cdl_npu_regs_pkg::fault_e code_q;
  assign bad_o  = bad_q;
  assign code_o = code_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      came_q <= 1'b0;
      bad_q  <= 1'b0;
    end else begin
      came_q <= insn_valid_i;
      bad_q  <= came_q && (types_bad || zeros_bad || shape_bad || misaligned || pitch_bad || rows_bad);
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i) begin
      word_q <= word_i;
      d      <= desc_i;
    end
    if (types_bad || zeros_bad || shape_bad || pitch_bad) begin
      code_q <= cdl_npu_regs_pkg::FAULT_INSTRUCTION;
    end else begin
      code_q <= misaligned ? cdl_npu_regs_pkg::FAULT_PORT : cdl_npu_regs_pkg::FAULT_RANGE;
    end
  end
  logic unused;
  assign unused = ^{conv, ldw, d};
endmodule
