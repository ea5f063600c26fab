// Columns multipliers beside the array, for depthwise convolutions: column c sums a product of its own in each cycle with valid_i. The sums of an
// output leave in the cycle behind that of its last_i.
module cdl_npu_depthwise #(
  parameter int unsigned Columns     = 16,
  parameter int unsigned ActWidth    = 9,
  parameter int unsigned WeightWidth = 9,
  parameter int unsigned SumWidth    = 32
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  logic                           valid_i,
  input  logic                           first_i,
  input  logic                           last_i,
  input  logic [Columns*ActWidth-1:0]    act_i,
  input  logic [Columns*WeightWidth-1:0] weight_i,

  output logic                           valid_o,
  output logic [Columns*SumWidth-1:0]    sum_o
);

  logic valid_q, first_q, last_q;
  assign valid_o = valid_q && last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else begin
      valid_q <= valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    first_q <= first_i;
    last_q  <= last_i;
  end

  for (genvar c = 0; c < Columns; c++) begin : gen_column
    logic signed [ActWidth-1:0] act;
    logic signed [WeightWidth-1:0] weight;
    logic signed [ActWidth+WeightWidth-1:0] product_q;
    logic signed [SumWidth-1:0] sum_d, sum_q;
    assign act    = $signed(act_i[c*ActWidth +: ActWidth]);
    assign weight = $signed(weight_i[c*WeightWidth +: WeightWidth]);
    assign sum_d  = (first_q ? '0 : sum_q) + SumWidth'(product_q);
    assign sum_o[c*SumWidth +: SumWidth] = sum_d;
    always_ff @(posedge clk_i) begin
      product_q <= act * weight;
      if (valid_q) begin
        sum_q <= sum_d;
      end
    end
  end
endmodule
