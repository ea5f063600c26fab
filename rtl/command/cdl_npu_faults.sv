// The first fault of a run: of those of one cycle that of the lowest source. What comes behind it is of no interest until the next start.
module cdl_npu_faults #(
  parameter int unsigned Sources = 4,
  localparam int unsigned CodeBits = 4
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic                        clear_i,
  input  logic                        run_i,
  input  logic [Sources-1:0]          valid_i,
  input  logic [Sources*CodeBits-1:0] code_i,
  input  logic [Sources*32-1:0]       pc_i,
  output logic                        fault_o,
  output logic [CodeBits-1:0]         code_o,
  output logic [31:0]                 pc_o
);

  logic fault_q;
  logic [CodeBits-1:0] code_q, code;
  logic [31:0] pc_q, pc;
  assign fault_o = fault_q;
  assign code_o  = code_q;
  assign pc_o    = pc_q;
  always_comb begin
    code = '0;
    pc   = '0;
    for (int unsigned i = Sources; i > 0; i--) begin
      if (valid_i[i-1]) begin
        code = code_i[(i-1)*CodeBits +: CodeBits];
        pc   = pc_i[(i-1)*32 +: 32];
      end
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fault_q <= 1'b0;
      code_q  <= '0;
      pc_q    <= '0;
    end else if (clear_i) begin
      fault_q <= 1'b0;
      code_q  <= '0;
      pc_q    <= '0;
    end else if (run_i && !fault_q && valid_i != '0) begin
      fault_q <= 1'b1;
      code_q  <= code;
      pc_q    <= pc;
    end
  end
endmodule
