// First in, first out. What enters can leave from the next cycle on; Depth of them fit.
module cdl_npu_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 4,           // a power of two, 2 or more
  localparam int unsigned AddrWidth = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  // One bit more than an address: full and empty differ in it.
  logic [AddrWidth:0] in_q, out_q;
  logic [Width-1:0] entries [Depth];

  assign ready_o = in_q != {~out_q[AddrWidth], out_q[AddrWidth-1:0]};
  assign valid_o = in_q != out_q;
  assign data_o  = entries[out_q[AddrWidth-1:0]];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q  <= '0;
      out_q <= '0;
    end else begin
      if (valid_i && ready_o) begin
        in_q <= in_q + (AddrWidth+1)'(1);
      end
      if (valid_o && ready_i) begin
        out_q <= out_q + (AddrWidth+1)'(1);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) begin
      entries[in_q[AddrWidth-1:0]] <= data_i;
    end
  end
endmodule
