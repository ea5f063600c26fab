// A memory of Depth words of Lanes x Width bits that reads one word and writes the chosen lanes of one in a cycle. What is read stands at
// rdata_o from the cycle behind on, until the next read; a word that is written in the cycle of its read comes as it was.
module cdl_npu_ram #(
  parameter int unsigned Width = 8,
  parameter int unsigned Lanes = 16,
  parameter int unsigned Depth = 1024,
  localparam int unsigned AddrWidth = $clog2(Depth)
) (
  input  logic                   clk_i,
  input  logic                   read_i,
  input  logic [AddrWidth-1:0]   raddr_i,
  output logic [Lanes*Width-1:0] rdata_o,
  input  logic [Lanes-1:0]       write_i,
  input  logic [AddrWidth-1:0]   waddr_i,
  input  logic [Lanes*Width-1:0] wdata_i
);

  logic [Lanes*Width-1:0] words [Depth];
  logic [Lanes*Width-1:0] rdata_q;
  assign rdata_o = rdata_q;

  always_ff @(posedge clk_i) begin
    if (read_i) begin
      rdata_q <= words[raddr_i];
    end
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (write_i[i]) begin
        words[waddr_i][i*Width +: Width] <= wdata_i[i*Width +: Width];
      end
    end
  end
endmodule
