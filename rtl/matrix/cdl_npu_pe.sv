// One multiplier of the array: an active weight and the next one in its shadow. Activations pass to the right, sums downward. The
// activation that brings swap_i is the first one of the new weight; in that cycle the shadow may already take the one after it.
module cdl_npu_pe #(
  parameter int unsigned ActWidth    = 9,
  parameter int unsigned WeightWidth = 9,
  parameter int unsigned SumWidth    = 32
) (
  input  logic                          clk_i,

  input  logic signed [ActWidth-1:0]    act_i,
  input  logic                          swap_i,
  output logic signed [ActWidth-1:0]    act_o,
  output logic                          swap_o,

  input  logic signed [SumWidth-1:0]    sum_i,
  output logic signed [SumWidth-1:0]    sum_o,

  input  logic                          load_i,
  input  logic signed [WeightWidth-1:0] weight_i
);

  logic signed [WeightWidth-1:0] shadow_q, active_q, active_d;
  logic signed [ActWidth+WeightWidth-1:0] product;
  logic signed [ActWidth-1:0] act_q;
  logic signed [SumWidth-1:0] sum_q;
  logic swap_q;

  assign active_d = swap_i ? shadow_q : active_q;
  assign product  = act_i * active_d;
  assign act_o    = act_q;
  assign swap_o   = swap_q;
  assign sum_o    = sum_q;

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      shadow_q <= weight_i;
    end
    active_q <= active_d;
    act_q    <= act_i;
    swap_q   <= swap_i;
    sum_q    <= sum_i + SumWidth'(product);
  end
endmodule
