// The accumulators: rows of Columns sums in banks, each a contiguous range of rows that reads one row and writes one in a cycle.
//
// The matrix port adds to or replaces a row, and always goes first: read, sum, write, in three cycles. The same row may come again three cycles
// later. The other port, of requant, waits while the matrix port uses its bank in the same way.
module cdl_npu_accumulators #(
  parameter int unsigned Columns  = 16,
  parameter int unsigned SumWidth = 32,           // 32, or 40 with activations of 16 bits
  parameter int unsigned Banks    = 2,            // a power of two
  parameter int unsigned Rows     = 1024,         // a power of two, all banks together
  localparam int unsigned RowWidth = $clog2(Rows)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  input  logic                        matrix_valid_i,
  input  logic [RowWidth-1:0]         matrix_row_i,
  input  logic                        matrix_add_i,     // else replace
  input  logic                        matrix_narrow_i,  // wrap at 32 bits and extend the sign
  input  logic [Columns-1:0]          matrix_columns_i, // those that are written
  input  logic [Columns*SumWidth-1:0] matrix_sums_i,
  output logic                        matrix_writes_o,  // in this cycle

  input  logic                        read_valid_i,
  output logic                        read_ready_o,
  input  logic [RowWidth-1:0]         read_row_i,
  output logic [Columns*SumWidth-1:0] read_data_o,      // in the cycle behind

  input  logic                        write_valid_i,
  output logic                        write_ready_o,
  input  logic [RowWidth-1:0]         write_row_i,
  input  logic [Columns-1:0]          write_columns_i,
  input  logic [Columns*SumWidth-1:0] write_data_i
);

  localparam int unsigned BankRows  = Rows / Banks;
  localparam int unsigned InBank    = $clog2(BankRows);
  localparam int unsigned BankWidth = Banks > 1 ? $clog2(Banks) : 1;

  // Stage 1: what came with the row that is being read; stage 2: what is written.
  logic add_valid_q, write_valid_q, add_q, narrow_q;
  logic [RowWidth-1:0] add_row_q, matrix_write_row_q;
  logic [Columns-1:0] add_columns_q, matrix_write_columns_q;
  logic [Columns*SumWidth-1:0] sums_q, old, sums_d, matrix_write_data_q;
  assign matrix_writes_o = write_valid_q;

  for (genvar c = 0; c < Columns; c++) begin : gen_sum
    logic [SumWidth-1:0] sum;
    assign sum = sums_q[c*SumWidth +: SumWidth] + (add_q ? old[c*SumWidth +: SumWidth] : '0);
    assign sums_d[c*SumWidth +: SumWidth] = narrow_q ? SumWidth'($signed(sum[31:0])) : sum;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      add_valid_q   <= 1'b0;
      write_valid_q <= 1'b0;
    end else begin
      add_valid_q   <= matrix_valid_i;
      write_valid_q <= add_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    add_q                  <= matrix_add_i;
    narrow_q               <= matrix_narrow_i;
    add_row_q              <= matrix_row_i;
    add_columns_q          <= matrix_columns_i;
    sums_q                 <= matrix_sums_i;
    matrix_write_row_q     <= add_row_q;
    matrix_write_columns_q <= add_columns_q;
    matrix_write_data_q    <= sums_d;
  end

  function automatic logic [BankWidth-1:0] bankOf(input logic [RowWidth-1:0] row);
    bankOf = Banks > 1 ? BankWidth'(row >> InBank) : '0;
  endfunction

  logic reads;
  assign reads         = matrix_valid_i && matrix_add_i;
  assign read_ready_o  = !(reads && bankOf(matrix_row_i) == bankOf(read_row_i));
  assign write_ready_o = !(write_valid_q && bankOf(matrix_write_row_q) == bankOf(write_row_i));

  // The output register of a bank keeps its row until the bank reads again: who read it last is known by bank.
  logic [Banks*Columns*SumWidth-1:0] rows;
  logic [BankWidth-1:0] old_bank_q, read_bank_q;
  assign old         = rows[32'(old_bank_q)*Columns*SumWidth +: Columns*SumWidth];
  assign read_data_o = rows[32'(read_bank_q)*Columns*SumWidth +: Columns*SumWidth];
  always_ff @(posedge clk_i) begin
    old_bank_q  <= bankOf(matrix_row_i);
    read_bank_q <= bankOf(read_row_i);
  end

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic matrix_reads, matrix_writes, other_reads, other_writes;
    assign matrix_reads  = reads && bankOf(matrix_row_i) == BankWidth'(b);
    assign matrix_writes = write_valid_q && bankOf(matrix_write_row_q) == BankWidth'(b);
    assign other_reads   = read_valid_i && bankOf(read_row_i) == BankWidth'(b);
    assign other_writes  = write_valid_i && bankOf(write_row_i) == BankWidth'(b);
    cdl_npu_ram #(
      .Width (SumWidth),
      .Lanes (Columns),
      .Depth (BankRows)
    ) u_ram (
      .clk_i,
      .read_i  (matrix_reads || other_reads),
      .raddr_i (matrix_reads ? InBank'(matrix_row_i) : InBank'(read_row_i)),
      .rdata_o (rows[b*Columns*SumWidth +: Columns*SumWidth]),
      .write_i (matrix_writes ? matrix_write_columns_q : other_writes ? write_columns_i : '0),
      .waddr_i (matrix_writes ? InBank'(matrix_write_row_q) : InBank'(write_row_i)),
      .wdata_i (matrix_writes ? matrix_write_data_q : write_data_i)
    );
  end
endmodule
