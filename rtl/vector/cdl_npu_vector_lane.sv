// One lane of the vector engine: two operands of 32 bits to one result, five cycles later. Functions without a RESCALE are made in the first of
// them, a table of i16 in the first two, and then wait. All inputs but valid_i, first_i, last_i, a_i, b_i, entry_i and next_i stand still while
// values are under way.
module cdl_npu_vector_lane #(
  parameter bit Int16 = 1'b0,               // zero points and products of 16 bits, tables of i16
  localparam int unsigned EntryWidth = Int16 ? 16 : 8,
  localparam int unsigned ZeroWidth  = Int16 ? 17 : 9
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               valid_i,
  input  logic signed [31:0] a_i,
  input  logic signed [31:0] b_i,
  input  logic [EntryWidth-1:0] entry_i,    // the table's of a; of i16 the one at or before it,
  input  logic [EntryWidth-1:0] next_i,     // and the one behind
  input  logic               table_wide_i,  // of i16

  input  logic               is_binary_i,
  input  logic               is_unary_i,
  input  logic               is_pool_i,
  input  logic        [4:0]  fn_i,
  input  logic               first_i,       // of a pool window
  input  logic               last_i,

  input  logic        [23:0] a_mult_i,
  input  logic        [23:0] b_mult_i,
  input  logic        [4:0]  a_shift_i,
  input  logic        [4:0]  b_shift_i,
  input  logic        [6:0]  shift_i,
  input  logic signed [ZeroWidth-1:0] a_zp_i,
  input  logic signed [ZeroWidth-1:0] b_zp_i,
  input  logic signed [ZeroWidth-1:0] zp_i,
  input  logic signed [31:0] low_i,
  input  logic signed [31:0] high_i,

  output logic               valid_o,
  output logic signed [31:0] result_o
);

  logic signed [32:0] a_centred, b_centred;
  assign a_centred = 33'(a_i) - 33'(a_zp_i);
  assign b_centred = 33'(b_i) - 33'(b_zp_i);

  // Stage 1: what a RESCALE takes, or the plain result.
  logic scaled_add, scaled_mul, rescales, pool_sum;
  assign scaled_add = is_binary_i && fn_i == cdl_npu_isa_pkg::BINARY_SCALED_ADD;
  assign scaled_mul = is_binary_i && fn_i == cdl_npu_isa_pkg::BINARY_SCALED_MUL;
  assign pool_sum   = is_pool_i && fn_i == cdl_npu_isa_pkg::POOL_SUM;
  assign rescales   = scaled_add || scaled_mul || pool_sum || (is_unary_i && fn_i == cdl_npu_isa_pkg::UNARY_RESCALE);

  logic signed [31:0] plain_d, plain_q;
  logic signed [32:0] left_d, left_q, right_q;
  // Operands of scaled_mul have 8 bits, or 16: less their zero points they have 10, or 17.
  localparam int unsigned Factor  = Int16 ? 17 : 10;
  localparam int unsigned Product = Int16 ? 33 : 20;
  logic signed [Product-1:0] product;
  assign product = Product'($signed(a_centred[Factor-1:0])) * Product'($signed(b_centred[Factor-1:0]));
  always_comb begin
    plain_d = a_i;
    if (is_binary_i) begin
      unique case (fn_i)
        cdl_npu_isa_pkg::BINARY_ADD:        plain_d = a_i + b_i;
        cdl_npu_isa_pkg::BINARY_SUB:        plain_d = a_i - b_i;
        cdl_npu_isa_pkg::BINARY_MUL:        plain_d = a_i * b_i;
        cdl_npu_isa_pkg::BINARY_MIN:        plain_d = a_i < b_i ? a_i : b_i;
        cdl_npu_isa_pkg::BINARY_MAX:        plain_d = a_i > b_i ? a_i : b_i;
        cdl_npu_isa_pkg::BINARY_EQUAL:      plain_d = 32'(a_i == b_i);
        cdl_npu_isa_pkg::BINARY_LESS:       plain_d = 32'(a_i < b_i);
        cdl_npu_isa_pkg::BINARY_LESS_EQUAL: plain_d = 32'(a_i <= b_i);
        default:                            plain_d = a_i;
      endcase
    end else if (is_unary_i) begin
      unique case (fn_i)
        cdl_npu_isa_pkg::UNARY_NEG:   plain_d = -a_i;
        cdl_npu_isa_pkg::UNARY_ABS:   plain_d = a_i < 0 ? -a_i : a_i;
        cdl_npu_isa_pkg::UNARY_TABLE: plain_d = 32'(entry_i);
        default:                      plain_d = a_i;
      endcase
    end else if (is_pool_i) begin
      plain_d = first_i || a_i > plain_q ? a_i : plain_q;
    end
  end
  logic signed [31:0] pooled;
  assign pooled = (first_i ? '0 : left_q[31:0]) + a_centred[31:0];
  assign left_d = scaled_mul ? 33'(product) : pool_sum ? 33'(pooled) : a_centred;

  logic valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else begin
      valid_q <= valid_i && (!is_pool_i || last_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      plain_q <= plain_d;
      left_q  <= left_d;
      right_q <= scaled_add ? b_centred : '0;
    end
  end

  // Stages 2 to 5.
  logic unused_ready;
  logic signed [31:0] rescaled;
  logic [31:0] waited;
  cdl_npu_rescale #(
    .AWidth   (33),
    .BWidth   (33),
    .OutWidth (32)
  ) u_rescale (
    .clk_i, .rst_ni,
    .valid_i   (valid_q),
    .ready_o   (unused_ready),
    .a_i       (left_q),
    .a_mult_i,
    .b_i       (right_q),
    .b_mult_i,
    .shift_i   ({1'b0, shift_i}),
    .a_shift_i,
    .b_shift_i,
    .zp_i      (32'(zp_i)),
    .low_i, .high_i,
    .valid_o,
    .ready_i   (1'b1),
    .result_o  (rescaled)
  );
  logic [31:0] plain;
  cdl_npu_delay #(.Width(32), .Depth(4)) u_wait (.clk_i, .rst_ni, .data_i(plain), .data_o(waited));
  if (Int16) begin : gen_between
    logic [15:0] next_q, between;
    logic [6:0] fraction_q;
    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        next_q     <= next_i;
        fraction_q <= a_i[6:0];
      end
    end
    cdl_npu_interpolate u_interpolate (
      .base_i(plain_q[15:0]), .next_i(next_q), .fraction_i(fraction_q), .value_o(between)
    );
    assign plain = table_wide_i ? {16'd0, between} : plain_q;
  end else begin : gen_as_it_is
    logic unused;
    assign unused = ^{next_i, table_wide_i};
    assign plain  = plain_q;
  end
  assign result_o = rescales ? rescaled : $signed(waited);
endmodule
