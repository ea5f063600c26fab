// The matrix engine with its accumulators, which the bench fills and reads by the port of requant.
module matrix_bench #(
  parameter int unsigned Rows    = 8,
  parameter int unsigned Columns = 4,
  parameter bit          Int16   = 1'b0,
  localparam int unsigned Longer   = Rows > Columns ? Rows : Columns,
  localparam int unsigned ActBytes = Int16 ? 2 : 1,
  localparam int unsigned SumWidth = Int16 ? 40 : 32
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         insn_valid_i,
  output logic                         insn_ready_o,
  input  logic [127:0]                 word_i,
  input  logic [255:0]                 desc_i,
  output logic                         done_o,
  output logic                         act_valid_o,
  input  logic                         act_ready_i,
  output logic [24:0]                  act_addr_o,
  output logic [Longer*ActBytes-1:0]   act_bytes_o,
  input  logic [Longer*ActBytes*8-1:0] act_data_i,
  output logic                         wgt_valid_o,
  input  logic                         wgt_ready_i,
  output logic [24:0]                  wgt_addr_o,
  output logic [Longer-1:0]            wgt_bytes_o,
  input  logic [Longer*8-1:0]          wgt_data_i,
  input  logic                         read_valid_i,
  output logic                         read_ready_o,
  input  logic [9:0]                   read_row_i,
  output logic [Columns*SumWidth-1:0]  read_data_o,
  input  logic                         write_valid_i,
  output logic                         write_ready_o,
  input  logic [9:0]                   write_row_i,
  input  logic [Columns*SumWidth-1:0]  write_data_i
);

  logic acc_valid, acc_add, acc_narrow, acc_writes;
  logic [9:0] acc_row;
  logic [Columns-1:0] acc_columns;
  logic [Columns*SumWidth-1:0] acc_sums;
  logic unused_pass, unused_tile;
  logic [16:0] unused_products;

  cdl_npu_matrix #(.Rows(Rows), .Columns(Columns), .Int16(Int16), .AccRows(1024)) u_matrix (
    .clk_i, .rst_ni, .insn_valid_i, .insn_ready_o, .word_i, .desc_i, .done_o,
    .act_valid_o, .act_ready_i, .act_addr_o, .act_bytes_o, .act_data_i,
    .wgt_valid_o, .wgt_ready_i, .wgt_addr_o, .wgt_bytes_o, .wgt_data_i,
    .acc_valid_o(acc_valid), .acc_row_o(acc_row), .acc_add_o(acc_add), .acc_narrow_o(acc_narrow),
    .acc_columns_o(acc_columns), .acc_sums_o(acc_sums), .acc_writes_i(acc_writes),
    .pass_o(unused_pass), .products_o(unused_products), .tile_o(unused_tile)
  );
  cdl_npu_accumulators #(.Columns(Columns), .SumWidth(SumWidth), .Banks(2), .Rows(1024)) u_accumulators (
    .clk_i, .rst_ni,
    .matrix_valid_i(acc_valid), .matrix_row_i(acc_row), .matrix_add_i(acc_add), .matrix_narrow_i(acc_narrow),
    .matrix_columns_i(acc_columns), .matrix_sums_i(acc_sums), .matrix_writes_o(acc_writes),
    .read_valid_i, .read_ready_o, .read_row_i, .read_data_o,
    .write_valid_i, .write_ready_o, .write_row_i, .write_columns_i('1), .write_data_i
  );
endmodule
