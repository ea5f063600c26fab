// Between two neighbours in a table of 513 entries: a value stands fraction_i of 128 behind that of base_i. To nearest, halves up.
module cdl_npu_interpolate (
  input  logic [15:0] base_i,
  input  logic [15:0] next_i,
  input  logic [6:0]  fraction_i,
  output logic [15:0] value_o
);

  logic signed [16:0] distance;
  logic signed [24:0] part;
  assign distance = 17'($signed(next_i)) - 17'($signed(base_i));
  assign part     = 25'(distance) * 25'($signed({1'b0, fraction_i})) + 25'sd64;
  assign value_o  = base_i + 16'(part >>> 7);
endmodule
