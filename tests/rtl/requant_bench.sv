// The requant engine with the accumulators, which the bench writes by the port of the matrix engine and reads by that of requant when
// it is idle.
module requant_bench #(
  parameter int unsigned Columns = 8,
  parameter int unsigned Lanes   = 4,
  parameter int unsigned Width   = 8,
  parameter bit          Int16   = 1'b0,
  localparam int unsigned Used       = Lanes < Columns ? Lanes : Columns,
  localparam int unsigned ValueBytes = Int16 ? 2 : 1,
  localparam int unsigned SumWidth   = Int16 ? 40 : 32,
  localparam int unsigned PortBytes  = Used*ValueBytes > Width ? Used*ValueBytes : Width
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   insn_valid_i,
  output logic                   insn_ready_o,
  input  logic [127:0]           word_i,
  input  logic [255:0]           desc_i,
  input  logic [255:0]           second_i,
  output logic                   done_o,
  output logic                   read_valid_o,
  input  logic                   read_ready_i,
  output logic [24:0]            read_addr_o,
  output logic [PortBytes-1:0]   read_bytes_o,
  input  logic [PortBytes*8-1:0] read_data_i,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [24:0]            write_addr_o,
  output logic [PortBytes-1:0]   write_bytes_o,
  output logic [PortBytes*8-1:0] write_data_o,
  input  logic                   matrix_valid_i,
  input  logic                   matrix_add_i,
  input  logic [9:0]             matrix_row_i,
  input  logic [Columns*SumWidth-1:0] matrix_sums_i,
  input  logic                   probe_i,
  input  logic [9:0]             probe_row_i,
  output logic [Columns*SumWidth-1:0] probe_data_o
);

  logic row_valid, row_ready, put_valid, put_ready, unused_writes;
  logic [9:0] row, put_row;
  logic [15:0] unused_values;
  logic [Columns-1:0] put_columns;
  logic [Columns*SumWidth-1:0] put_data;

  cdl_npu_requant #(.Columns(Columns), .Lanes(Lanes), .Width(Width), .AccRows(1024), .Int16(Int16)) u_requant (
    .clk_i, .rst_ni, .insn_valid_i, .insn_ready_o, .word_i, .desc_i, .second_i, .done_o,
    .read_valid_o, .read_ready_i, .read_addr_o, .read_bytes_o, .read_data_i,
    .write_valid_o, .write_ready_i, .write_addr_o, .write_bytes_o, .write_data_o,
    .acc_read_valid_o(row_valid), .acc_read_ready_i(row_ready && !probe_i), .acc_read_row_o(row),
    .acc_read_data_i(probe_data_o),
    .acc_write_valid_o(put_valid), .acc_write_ready_i(put_ready), .acc_write_row_o(put_row),
    .acc_write_columns_o(put_columns), .acc_write_data_o(put_data),
    .values_o(unused_values)
  );
  cdl_npu_accumulators #(.Columns(Columns), .SumWidth(SumWidth), .Banks(2), .Rows(1024)) u_accumulators (
    .clk_i, .rst_ni,
    .matrix_valid_i, .matrix_row_i, .matrix_add_i, .matrix_narrow_i(!Int16), .matrix_columns_i('1), .matrix_sums_i,
    .matrix_writes_o(unused_writes),
    .read_valid_i(row_valid || probe_i), .read_ready_o(row_ready), .read_row_i(probe_i ? probe_row_i : row),
    .read_data_o(probe_data_o),
    .write_valid_i(put_valid), .write_ready_o(put_ready), .write_row_i(put_row), .write_columns_i(put_columns),
    .write_data_i(put_data)
  );
endmodule
