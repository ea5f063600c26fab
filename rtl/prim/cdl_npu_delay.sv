// A value, Depth cycles later; Depth 0 is a wire.
module cdl_npu_delay #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  if (Depth == 0) begin : gen_wire
    logic unused;
    assign unused = clk_i ^ rst_ni;
    assign data_o = data_i;
  end else begin : gen_stages
    logic [Width*Depth-1:0] stages_q;
    assign data_o = stages_q[Width*(Depth-1) +: Width];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        stages_q <= '0;
      end else begin
        stages_q <= (Width*Depth)'({stages_q, data_i});
      end
    end
  end
endmodule
