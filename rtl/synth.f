// What Yosys synthesizes, in an order in which each file follows what it needs. rtl/synth/synthesize.py takes each module as a top, with the
// parameters that stand in it, or behind its file.
rtl/generated/cdl_npu_isa_pkg.sv
rtl/generated/cdl_npu_regs_pkg.sv
rtl/prim/cdl_npu_delay.sv
rtl/prim/cdl_npu_fifo.sv
rtl/prim/cdl_npu_table.sv
rtl/prim/cdl_npu_table.sv Int16=1
rtl/prim/cdl_npu_interpolate.sv
rtl/prim/cdl_npu_byte_fifo.sv
rtl/matrix/cdl_npu_pe.sv
rtl/matrix/cdl_npu_unpack.sv
rtl/matrix/cdl_npu_depthwise.sv
rtl/matrix/cdl_npu_im2col.sv
rtl/matrix/cdl_npu_weight_walker.sv
rtl/requant/cdl_npu_rescale.sv
rtl/requant/cdl_npu_requant_lane.sv
rtl/requant/cdl_npu_requant_lane.sv Int16=1
rtl/requant/cdl_npu_requant_walker.sv
rtl/requant/cdl_npu_requant_walker.sv Int16=1
rtl/vector/cdl_npu_lanes_walker.sv
rtl/vector/cdl_npu_pool_walker.sv
rtl/vector/cdl_npu_vector_lane.sv
rtl/vector/cdl_npu_vector_lane.sv Int16=1
rtl/dma/cdl_npu_box_walker.sv
rtl/dma/cdl_npu_dma_load.sv
rtl/dma/cdl_npu_dma_store.sv
rtl/dma/cdl_npu_burst_arbiter.sv
rtl/dma/cdl_npu_transfer_check.sv
rtl/dma/cdl_npu_axi_master.sv
rtl/scratchpad/cdl_npu_port_adapter.sv
rtl/matrix/cdl_npu_window_check.sv
rtl/requant/cdl_npu_epilogue_check.sv
rtl/vector/cdl_npu_lanes_check.sv
rtl/command/cdl_npu_word_check.sv
rtl/command/cdl_npu_queue.sv
rtl/command/cdl_npu_faults.sv
rtl/command/cdl_npu_registers.sv
