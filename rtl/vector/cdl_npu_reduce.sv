// A run of chunks to one value: sum, least or largest. The elements of a chunk meet in $clog2(Lanes) stages, then the chunks of the run; valid_o
// is high with the result $clog2(Lanes) + 1 cycles after last_i. Elements that are not there take part with what changes nothing.
module cdl_npu_reduce #(
  parameter int unsigned Lanes = 16,              // a power of two
  localparam int unsigned CountWidth = $clog2(Lanes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  input  logic                  first_i,
  input  logic                  last_i,
  input  logic [CountWidth-1:0] count_i,
  input  logic [Lanes*32-1:0]   values_i,
  input  logic [4:0]            fn_i,             // stands still while values are under way

  output logic                  valid_o,
  output logic [31:0]           result_o
);

  localparam int unsigned Levels = $clog2(Lanes);

  function automatic logic [31:0] join2(input logic [4:0] fn, input logic [31:0] a, input logic [31:0] b);
    if (fn == cdl_npu_isa_pkg::REDUCE_SUM) begin
      join2 = a + b;
    end else if (fn == cdl_npu_isa_pkg::REDUCE_MIN) begin
      join2 = $signed(a) < $signed(b) ? a : b;
    end else begin
      join2 = $signed(a) > $signed(b) ? a : b;
    end
  endfunction

  logic [31:0] neutral;
  assign neutral = fn_i == cdl_npu_isa_pkg::REDUCE_SUM ? 32'd0
                 : fn_i == cdl_npu_isa_pkg::REDUCE_MIN ? 32'h7fff_ffff : 32'h8000_0000;

  // Node 1 is the root, n has the children 2 n and 2 n + 1, the leaves are Lanes .. 2 Lanes - 1.
  logic [2*Lanes*32-1:0] nodes;
  assign nodes[31:0] = '0;
  for (genvar i = 0; i < Lanes; i++) begin : gen_leaf
    assign nodes[(Lanes + i)*32 +: 32] = CountWidth'(i) < count_i ? values_i[i*32 +: 32] : neutral;
  end
  for (genvar i = 1; i < Lanes; i++) begin : gen_node
    logic [31:0] node_q;
    assign nodes[i*32 +: 32] = node_q;
    always_ff @(posedge clk_i) begin
      node_q <= join2(fn_i, nodes[2*i*32 +: 32], nodes[(2*i + 1)*32 +: 32]);
    end
  end
  logic unused;
  assign unused = ^nodes[31:0];

  logic valid, first, last, valid_q;
  cdl_npu_delay #(.Width(3), .Depth(Levels)) u_flags (
    .clk_i, .rst_ni, .data_i({valid_i, first_i, last_i}), .data_o({valid, first, last})
  );
  logic [31:0] result_q;
  assign valid_o  = valid_q;
  assign result_o = result_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else begin
      valid_q <= valid && last;
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid) begin
      result_q <= first ? nodes[63:32] : join2(fn_i, result_q, nodes[63:32]);
    end
  end
endmodule
