// A load and a store channel that take turns at the ports: store_i says which of them an instruction is for.
module dma_bench #(
  parameter int unsigned Width       = 16,
  parameter int unsigned BurstBytes  = 32,
  parameter int unsigned BeatBytes   = 32,
  parameter int unsigned Outstanding = 4,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   insn_valid_i,
  output logic                   insn_ready_o,
  input  logic                   store_i,        // stands still until the instruction ends
  input  logic [127:0]           word_i,
  input  logic [255:0]           desc_i,
  input  logic [39:0]            base_i,
  output logic                   done_o,
  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic [39:0]            req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  input  logic                   data_valid_i,
  output logic                   data_ready_o,
  input  logic [BeatBytes*8-1:0] data_i,
  output logic                   data_valid_o,
  input  logic                   data_ready_i,
  output logic                   data_last_o,
  output logic [BeatBytes-1:0]   data_bytes_o,
  output logic [BeatBytes*8-1:0] data_o,
  input  logic                   answer_valid_i,
  output logic                   answer_ready_o,
  output logic                   read_valid_o,
  input  logic                   read_ready_i,
  output logic [24:0]            read_addr_o,
  output logic [Width-1:0]       read_bytes_o,
  input  logic [Width*8-1:0]     read_data_i,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [24:0]            write_addr_o,
  output logic [Width-1:0]       write_bytes_o,
  output logic [Width*8-1:0]     write_data_o,
  output logic                   idle_offers_o   // the other channel offers something
);

  // Of the load channel, and of the store channel.
  logic [1:0] insn_ready, done, req_valid, read_valid;
  logic [39:0] load_req_addr, store_req_addr;
  logic [BurstWidth-1:0] load_req_bytes, store_req_bytes;
  logic [24:0] load_read_addr, store_read_addr;
  logic [Width-1:0] load_read_bytes, store_read_bytes;
  assign read_bytes_o  = store_i ? store_read_bytes : load_read_bytes;
  assign insn_ready_o  = insn_ready[store_i];
  assign done_o        = done[store_i];
  assign req_valid_o   = req_valid[store_i];
  assign read_valid_o  = read_valid[store_i];
  assign req_addr_o    = store_i ? store_req_addr : load_req_addr;
  assign req_bytes_o   = store_i ? store_req_bytes : load_req_bytes;
  assign read_addr_o   = store_i ? store_read_addr : load_read_addr;
  assign idle_offers_o = req_valid[!store_i] || read_valid[!store_i] || (store_i ? write_valid_o : data_valid_o);

  cdl_npu_dma_load #(.Width(Width), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding)) u_load (
    .clk_i, .rst_ni, .insn_valid_i(insn_valid_i && !store_i), .insn_ready_o(insn_ready[0]), .word_i, .desc_i, .base_i, .done_o(done[0]),
    .req_valid_o(req_valid[0]), .req_ready_i(req_ready_i && !store_i), .req_addr_o(load_req_addr), .req_bytes_o(load_req_bytes),
    .data_valid_i, .data_ready_o, .data_i,
    .read_valid_o(read_valid[0]), .read_ready_i(read_ready_i && !store_i), .read_addr_o(load_read_addr),
    .read_bytes_o(load_read_bytes), .read_data_i,
    .write_valid_o, .write_ready_i, .write_addr_o, .write_bytes_o, .write_data_o
  );
  cdl_npu_dma_store #(.Width(Width), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding)) u_store (
    .clk_i, .rst_ni, .insn_valid_i(insn_valid_i && store_i), .insn_ready_o(insn_ready[1]), .word_i, .desc_i, .base_i, .done_o(done[1]),
    .read_valid_o(read_valid[1]), .read_ready_i(read_ready_i && store_i), .read_addr_o(store_read_addr),
    .read_bytes_o(store_read_bytes), .read_data_i,
    .req_valid_o(req_valid[1]), .req_ready_i(req_ready_i && store_i), .req_addr_o(store_req_addr), .req_bytes_o(store_req_bytes),
    .data_valid_o, .data_ready_i, .data_last_o, .data_bytes_o, .data_o, .answer_valid_i, .answer_ready_o
  );
endmodule
