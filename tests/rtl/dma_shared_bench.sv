// Two load channels (ports 0 and 1) and two store channels (2 and 3) behind the arbiter: one burst port to the memory, and each has its own ports
// to the scratchpad. An instruction goes to the channel whose bit of insn_valid_i is high.
module dma_shared_bench #(
  parameter int unsigned Width       = 8,
  parameter int unsigned BurstBytes  = 32,
  parameter int unsigned BeatBytes   = 16,
  parameter int unsigned Outstanding = 4,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [3:0]             insn_valid_i,
  output logic [3:0]             insn_ready_o,
  input  logic [127:0]           word_i,
  input  logic [255:0]           desc_i,
  input  logic [39:0]            base_i,
  output logic [3:0]             done_o,
  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic                   req_write_o,
  output logic [1:0]             req_tag_o,
  output logic [39:0]            req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  input  logic                   data_valid_i,
  output logic                   data_ready_o,
  input  logic [1:0]             data_tag_i,
  input  logic [BeatBytes*8-1:0] data_i,
  output logic                   data_valid_o,
  input  logic                   data_ready_i,
  output logic                   data_last_o,
  output logic [BeatBytes-1:0]   data_bytes_o,
  output logic [BeatBytes*8-1:0] data_o,
  input  logic                   answer_valid_i,
  output logic                   answer_ready_o,
  input  logic [1:0]             answer_tag_i,
  output logic [3:0]             read_valid_o,
  input  logic [3:0]             read_ready_i,
  output logic [4*25-1:0]        read_addr_o,
  output logic [4*Width-1:0]     read_bytes_o,
  input  logic [4*Width*8-1:0]   read_data_i,
  output logic [1:0]             write_valid_o,
  input  logic [1:0]             write_ready_i,
  output logic [2*25-1:0]        write_addr_o,
  output logic [2*Width-1:0]     write_bytes_o,
  output logic [2*Width*8-1:0]   write_data_o
);

  logic [3:0] req_valid, req_ready, put_valid, put_ready, put_last, data_valid, data_ready, answer_valid, answer_ready;
  logic [4*40-1:0] req_addr;
  logic [4*BurstWidth-1:0] req_bytes;
  logic [4*BeatBytes-1:0] put_bytes;
  logic [4*BeatBytes*8-1:0] put_data;
  for (genvar i = 0; i < 2; i++) begin : gen_load
    cdl_npu_dma_load #(.Width(Width), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding)) u_load (
      .clk_i, .rst_ni, .insn_valid_i(insn_valid_i[i]), .insn_ready_o(insn_ready_o[i]), .word_i, .desc_i, .base_i, .done_o(done_o[i]),
      .req_valid_o(req_valid[i]), .req_ready_i(req_ready[i]), .req_addr_o(req_addr[i*40 +: 40]),
      .req_bytes_o(req_bytes[i*BurstWidth +: BurstWidth]),
      .data_valid_i(data_valid[i]), .data_ready_o(data_ready[i]), .data_i,
      .read_valid_o(read_valid_o[i]), .read_ready_i(read_ready_i[i]), .read_addr_o(read_addr_o[i*25 +: 25]),
      .read_bytes_o(read_bytes_o[i*Width +: Width]),
      .read_data_i(read_data_i[i*Width*8 +: Width*8]),
      .write_valid_o(write_valid_o[i]), .write_ready_i(write_ready_i[i]), .write_addr_o(write_addr_o[i*25 +: 25]),
      .write_bytes_o(write_bytes_o[i*Width +: Width]), .write_data_o(write_data_o[i*Width*8 +: Width*8])
    );
  end
  assign put_valid[1:0]               = '0;
  assign put_last[1:0]                = '0;
  assign put_bytes[0 +: 2*BeatBytes]  = '0;
  assign put_data[0 +: 2*BeatBytes*8] = '0;
  assign answer_ready[1:0]            = '0;
  for (genvar i = 2; i < 4; i++) begin : gen_store
    cdl_npu_dma_store #(.Width(Width), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes), .Outstanding(Outstanding)) u_store (
      .clk_i, .rst_ni, .insn_valid_i(insn_valid_i[i]), .insn_ready_o(insn_ready_o[i]), .word_i, .desc_i, .base_i, .done_o(done_o[i]),
      .read_valid_o(read_valid_o[i]), .read_ready_i(read_ready_i[i]), .read_addr_o(read_addr_o[i*25 +: 25]),
      .read_bytes_o(read_bytes_o[i*Width +: Width]),
      .read_data_i(read_data_i[i*Width*8 +: Width*8]),
      .req_valid_o(req_valid[i]), .req_ready_i(req_ready[i]), .req_addr_o(req_addr[i*40 +: 40]),
      .req_bytes_o(req_bytes[i*BurstWidth +: BurstWidth]),
      .data_valid_o(put_valid[i]), .data_ready_i(put_ready[i]), .data_last_o(put_last[i]),
      .data_bytes_o(put_bytes[i*BeatBytes +: BeatBytes]), .data_o(put_data[i*BeatBytes*8 +: BeatBytes*8]),
      .answer_valid_i(answer_valid[i]), .answer_ready_o(answer_ready[i])
    );
    assign data_ready[i] = 1'b0;
  end
  logic unused;
  assign unused = ^{put_ready[1:0], answer_valid[1:0], data_valid[3:2]};

  cdl_npu_burst_arbiter #(.Ports(4), .BurstBytes(BurstBytes), .BeatBytes(BeatBytes)) u_arbiter (
    .clk_i, .rst_ni,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_write_i(4'b1100), .req_addr_i(req_addr), .req_bytes_i(req_bytes),
    .put_valid_i(put_valid), .put_ready_o(put_ready), .put_last_i(put_last), .put_bytes_i(put_bytes), .put_data_i(put_data),
    .data_valid_o(data_valid), .data_ready_i(data_ready), .answer_valid_o(answer_valid), .answer_ready_i(answer_ready),
    .req_valid_o, .req_ready_i, .req_write_o, .req_tag_o, .req_addr_o, .req_bytes_o,
    .put_valid_o(data_valid_o), .put_ready_i(data_ready_i), .put_last_o(data_last_o), .put_bytes_o(data_bytes_o), .put_data_o(data_o),
    .data_valid_i, .data_ready_o, .data_tag_i, .answer_valid_i, .answer_ready_o, .answer_tag_i
  );
endmodule
