// RESCALE: clamp(rne((a * a_mult * 2^a_shift + b * b_mult * 2^b_shift) / 2^shift) + zp, low, high). Products and their sum are
// exact while they stay within 64 bits (beyond, they wrap); one rounding, half to even. Of one operand: b_i = 0.
//
// Four stages: products, sum, shift with rounding, zero point and clamp. The shift travels with its value; a_shift_i, b_shift_i,
// zp_i, low_i and high_i stand still while values are under way.
module cdl_npu_rescale #(
  parameter int unsigned AWidth   = 32,  // up to 40
  parameter int unsigned BWidth   = 10,  // up to 40
  parameter int unsigned OutWidth = 9    // of zp, bounds and result; up to 33
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       valid_i,
  output logic                       ready_o,
  input  logic signed [AWidth-1:0]   a_i,
  input  logic        [23:0]         a_mult_i,
  input  logic signed [BWidth-1:0]   b_i,
  input  logic        [23:0]         b_mult_i,
  input  logic        [7:0]          shift_i,

  input  logic        [4:0]          a_shift_i,
  input  logic        [4:0]          b_shift_i,
  input  logic signed [OutWidth-1:0] zp_i,
  input  logic signed [OutWidth-1:0] low_i,
  input  logic signed [OutWidth-1:0] high_i,

  output logic                       valid_o,
  input  logic                       ready_i,
  output logic signed [OutWidth-1:0] result_o
);

  // All stages move together, or none does.
  logic move;
  logic [3:0] valid_q;
  assign move    = ready_i || !valid_q[3];
  assign ready_o = move;
  assign valid_o = valid_q[3];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (move) begin
      valid_q <= {valid_q[2:0], valid_i};
    end
  end

  // A multiplier is not negative: its 24 bits are all that a product is longer.
  logic signed [AWidth+23:0] a_product_q;
  logic signed [BWidth+23:0] b_product_q;
  logic [7:0] shift1_q, shift2_q;
  logic signed [63:0] sum_d, sum_q;
  logic signed [63:0] rounded_d, rounded_q;
  logic signed [OutWidth-1:0] result_d, result_q;

  assign sum_d = (64'(a_product_q) << a_shift_i) + (64'(b_product_q) << b_shift_i);

  // What is shifted out stands at the top of `rest`: its highest bit is a half.
  logic signed [63:0] down;
  logic        [63:0] rest;
  logic               up;
  assign down = sum_q >>> shift2_q[5:0];
  assign rest = sum_q << (7'd64 - {1'b0, shift2_q[5:0]});
  assign up   = rest[63] && (down[0] || rest[62:0] != '0);
  // Beyond 63 places even -2^63 is at most a half, which goes to the even 0.
  assign rounded_d = (shift2_q[7:6] != 2'b00) ? 64'sd0 : down + 64'($signed({1'b0, up}));

  logic signed [64:0] shifted;
  assign shifted = 65'(rounded_q) + 65'(zp_i);
  always_comb begin
    result_d = shifted[OutWidth-1:0];
    if (shifted < 65'(low_i)) begin
      result_d = low_i;
    end else if (shifted > 65'(high_i)) begin
      result_d = high_i;
    end
  end
  assign result_o = result_q;

  always_ff @(posedge clk_i) begin
    if (move) begin
      a_product_q <= a_i * $signed({1'b0, a_mult_i});
      b_product_q <= b_i * $signed({1'b0, b_mult_i});
      shift1_q    <= shift_i;
      sum_q       <= sum_d;
      shift2_q    <= shift1_q;
      rounded_q   <= rounded_d;
      result_q    <= result_d;
    end
  end
endmodule
