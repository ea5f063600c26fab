// Looks at an instruction of the vector engine when it begins: the descriptors are ones that this configuration has, and its addresses aligned. What is
// wrong shows two cycles later, for one. Addresses in the scratchpad are checked where they go.
module cdl_npu_lanes_check #(
  parameter bit Int16 = 1'b0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic                                       insn_valid_i,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  output logic                                       bad_o,
  output cdl_npu_regs_pkg::fault_e                   code_o
);

  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_q;
  cdl_npu_isa_pkg::insn_vbinary_t insn;
  cdl_npu_isa_pkg::desc_lanes_t l;
  cdl_npu_isa_pkg::desc_pooling_t p;
  assign insn = word_q;
  assign l    = desc_q;
  assign p    = desc_q;
  logic is_pool, is_select, is_table, has_b;
  assign is_pool   = insn.opcode_f == cdl_npu_isa_pkg::OP_VPOOL;
  assign is_select = insn.opcode_f == cdl_npu_isa_pkg::OP_VSELECT;
  assign is_table  = insn.opcode_f == cdl_npu_isa_pkg::OP_VUNARY && insn.fn_f == cdl_npu_isa_pkg::UNARY_TABLE;
  assign has_b     = is_select || insn.opcode_f == cdl_npu_isa_pkg::OP_VBINARY;

  function automatic logic isKnown(input logic [2:0] kind);
    isKnown = kind <= cdl_npu_isa_pkg::TYPE_I32 || (Int16 && kind == cdl_npu_isa_pkg::TYPE_I16);
  endfunction
  function automatic logic isOff(input logic [2:0] kind, input logic [1:0] low);
    isOff = (kind == cdl_npu_isa_pkg::TYPE_I32 && low != 2'b00) || (kind == cdl_npu_isa_pkg::TYPE_I16 && low[0]);
  endfunction
  function automatic logic misses(input logic [11:0] outs, input logic [7:0] stride, input logic [7:0] size, input logic [5:0] pad, input logic [11:0] ins);
    misses = 8'(pad) > size || 22'(outs) * (22'(stride) + 22'd1) > 22'(ins) + 22'(pad);
  endfunction
  logic is_none, misaligned;
  always_comb begin
    if (is_pool) begin
      is_none    = p.reserved0 != '0 || !isKnown(p.a_type_f) || !isKnown(p.out_type_f) ||
                   (insn.fn_f == cdl_npu_isa_pkg::POOL_MAX && p.a_type_f != p.out_type_f) ||
                   misses(p.out_h_f, p.stride_h_f, p.kernel_h_f, p.pad_top_f, p.in_h_f) ||
                   misses(p.out_w_f, p.stride_w_f, p.kernel_w_f, p.pad_left_f, p.in_w_f);
      misaligned = isOff(p.a_type_f, insn.a_f[1:0] | p.in_row_stride_f[1:0] | p.in_pixel_stride_f[1:0]) ||
                   isOff(p.out_type_f, insn.dst_f[1:0] | p.out_row_stride_f[1:0] | p.out_pixel_stride_f[1:0]);
    end else begin
      is_none    = l.reserved0 != '0 || !isKnown(l.a_type_f) || !isKnown(l.b_type_f) || !isKnown(l.out_type_f) ||
                   (is_select && (l.a_type_f != cdl_npu_isa_pkg::TYPE_U8 || l.b_type_f != l.out_type_f)) ||
                   (is_table && (l.a_type_f == cdl_npu_isa_pkg::TYPE_I32 || l.out_type_f == cdl_npu_isa_pkg::TYPE_I32 ||
                                 (l.a_type_f == cdl_npu_isa_pkg::TYPE_I16) != (l.out_type_f == cdl_npu_isa_pkg::TYPE_I16)));
      misaligned = isOff(l.a_type_f, insn.a_f[1:0] | l.a_stride1_f[1:0] | l.a_stride2_f[1:0]) ||
                   isOff(l.out_type_f, insn.dst_f[1:0] | l.out_stride1_f[1:0] | l.out_stride2_f[1:0]) ||
                   (has_b && isOff(l.b_type_f, insn.b_f[1:0] | l.b_stride1_f[1:0] | l.b_stride2_f[1:0])) ||
                   (is_table && isOff(l.a_type_f, insn.b_f[1:0]));
    end
  end

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
      bad_q  <= came_q && (is_none || misaligned);
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i) begin
      word_q <= word_i;
      desc_q <= desc_i;
    end
    code_q <= is_none ? cdl_npu_regs_pkg::FAULT_INSTRUCTION : cdl_npu_regs_pkg::FAULT_PORT;
  end
  logic unused;
  assign unused = ^{insn, l, p};
endmodule
