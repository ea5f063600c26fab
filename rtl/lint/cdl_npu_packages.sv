// Elaborates the generated packages: a struct that is not as wide as its word is an error here.
module cdl_npu_packages (
  input  cdl_npu_isa_pkg::insn_conv_t word_i,
  output cdl_npu_isa_pkg::engine_e    engine_o,
  output logic                        fault_o
);
  import cdl_npu_isa_pkg::*;

  if ($bits(insn_nop_t) != WordBits || $bits(insn_setd_t) != WordBits || $bits(insn_load_t) != WordBits ||
      $bits(insn_conv_t) != WordBits || $bits(insn_requant_t) != WordBits || $bits(insn_vbinary_t) != WordBits)
      begin : gen_bad_word
    $error("an instruction is not one word");
  end
  if ($bits(desc_transfer_t) != DescriptorBits || $bits(desc_window_t) != DescriptorBits ||
      $bits(desc_epilogue_t) != DescriptorBits || $bits(desc_rescale_t) != DescriptorBits ||
      $bits(desc_lanes_t) != DescriptorBits || $bits(desc_pooling_t) != DescriptorBits) begin : gen_bad_descriptor
    $error("a descriptor is not as wide as its register");
  end
  if ($bits(cdl_npu_trace_pkg::retire_t) != cdl_npu_trace_pkg::RetireBits) begin : gen_bad_trace
    $error("a record of the trace has a gap");
  end
  if (cdl_npu_regs_pkg::Snapshot <= cdl_npu_regs_pkg::Pmu || cdl_npu_cfg_pkg::ArrayRows == 0) begin : gen_bad_map
    $error("the register map is not in order");
  end

  assign engine_o = engine_e'(word_i.engine_f);
  assign fault_o = word_i.opcode_f != OP_CONV || word_i.reserved0 != '0;
endmodule
