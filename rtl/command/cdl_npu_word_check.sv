// Whether a word is one that this configuration runs: what the control processor itself does not look at. Reserved bits are 0, enums have the value, the
// engine is there, x0 is not written, config names a register of programs.
module cdl_npu_word_check #(
  parameter logic [11:0] Engines = 12'hfff          // bit n: engine n is there
) (
  input  logic [cdl_npu_isa_pkg::WordBits-1:0] word_i,
  output logic                                 bad_o
);

  cdl_npu_isa_pkg::header_t header;
  cdl_npu_isa_pkg::insn_nop_t nop;
  cdl_npu_isa_pkg::insn_loop_t repeated;
  cdl_npu_isa_pkg::insn_movi_t movi;
  cdl_npu_isa_pkg::insn_setd_t setd;
  cdl_npu_isa_pkg::insn_fence_t fence;
  cdl_npu_isa_pkg::insn_load_t load;
  cdl_npu_isa_pkg::insn_store_t store;
  cdl_npu_isa_pkg::insn_copy_t copy;
  cdl_npu_isa_pkg::insn_fill_t fill;
  cdl_npu_isa_pkg::insn_ldw_t ldw;
  cdl_npu_isa_pkg::insn_mm_t mm;
  cdl_npu_isa_pkg::insn_conv_t conv;
  cdl_npu_isa_pkg::insn_requant_t requant;
  cdl_npu_isa_pkg::insn_accload_t move;
  cdl_npu_isa_pkg::insn_vbinary_t vector;
  cdl_npu_isa_pkg::insn_vselect_t select;
  cdl_npu_isa_pkg::insn_vreduce_t reduce;
  cdl_npu_isa_pkg::insn_snapshot_t snapshot;
  cdl_npu_isa_pkg::insn_config_t config_insn;
  assign header      = word_i[31:0];
  assign nop         = word_i;
  assign repeated    = word_i;
  assign movi        = word_i;
  assign setd        = word_i;
  assign fence       = word_i;
  assign load        = word_i;
  assign store       = word_i;
  assign copy        = word_i;
  assign fill        = word_i;
  assign ldw         = word_i;
  assign mm          = word_i;
  assign conv        = word_i;
  assign requant     = word_i;
  assign move        = word_i;
  assign vector      = word_i;
  assign select      = word_i;
  assign reduce      = word_i;
  assign snapshot    = word_i;
  assign config_insn = word_i;

  logic is_of_programs, reserved, unknown;
  assign is_of_programs = config_insn.offset_f == cdl_npu_regs_pkg::RegPmuControl[11:0] ||
                          config_insn.offset_f == cdl_npu_regs_pkg::RegTag[11:0];
  always_comb begin
    reserved = 1'b0;
    unknown  = 1'b0;
    unique case (header.opcode_f)
      cdl_npu_isa_pkg::OP_NOP, cdl_npu_isa_pkg::OP_HALT: reserved = nop.reserved0[98:3] != '0;
      cdl_npu_isa_pkg::OP_LOOP: reserved = repeated.reserved1 != '0;
      cdl_npu_isa_pkg::OP_MOVI, cdl_npu_isa_pkg::OP_ADDI: begin
        reserved = {movi.reserved1, movi.reserved2} != '0;
        unknown  = movi.x_f == '0;
      end
      cdl_npu_isa_pkg::OP_SETD:  reserved = setd.reserved1 != '0;
      cdl_npu_isa_pkg::OP_FENCE: reserved = fence.reserved1 != '0;
      cdl_npu_isa_pkg::OP_LOAD:  reserved = load.reserved1 != '0;
      cdl_npu_isa_pkg::OP_STORE: reserved = store.reserved1 != '0;
      cdl_npu_isa_pkg::OP_COPY:  reserved = copy.reserved1 != '0;
      cdl_npu_isa_pkg::OP_FILL:  reserved = fill.reserved1 != '0;
      cdl_npu_isa_pkg::OP_LDW:   reserved = ldw.reserved1 != '0;
      cdl_npu_isa_pkg::OP_MM:    reserved = mm.reserved1 != '0;
      cdl_npu_isa_pkg::OP_CONV, cdl_npu_isa_pkg::OP_DWCONV: reserved = conv.reserved1 != '0;
      cdl_npu_isa_pkg::OP_REQUANT: reserved = requant.reserved1 != '0;
      cdl_npu_isa_pkg::OP_ACCLOAD, cdl_npu_isa_pkg::OP_ACCSTORE: reserved = move.reserved1 != '0;
      cdl_npu_isa_pkg::OP_VBINARY: unknown = vector.fn_f > cdl_npu_isa_pkg::BINARY_SCALED_MUL;
      cdl_npu_isa_pkg::OP_VUNARY:  unknown = vector.fn_f > cdl_npu_isa_pkg::UNARY_TABLE;
      cdl_npu_isa_pkg::OP_VREDUCE: begin
        reserved = reduce.reserved1 != '0;
        unknown  = reduce.fn_f > cdl_npu_isa_pkg::REDUCE_MAX;
      end
      cdl_npu_isa_pkg::OP_VSELECT: reserved = select.reserved1 != '0;
      cdl_npu_isa_pkg::OP_VPOOL: begin
        reserved = reduce.reserved1 != '0;
        unknown  = reduce.fn_f > cdl_npu_isa_pkg::POOL_SUM;
      end
      cdl_npu_isa_pkg::OP_SNAPSHOT: reserved = snapshot.reserved1 != '0;
      cdl_npu_isa_pkg::OP_CONFIG: begin
        reserved = {config_insn.reserved1, config_insn.reserved2} != '0;
        unknown  = !is_of_programs;
      end
      default: unknown = 1'b1;
    endcase
  end
  logic engine_there;
  assign engine_there = 32'(header.engine_f) < 12 && Engines[header.engine_f];
  assign bad_o        = header.reserved0 != '0 || reserved || unknown || !engine_there;
  logic unused;
  assign unused = ^{header, nop, repeated, movi, setd, fence, load, store, copy, fill, ldw, mm, conv, requant, move, vector, select, reduce, snapshot,
                    config_insn};
endmodule
