// What requant does to one accumulator on its way to the scratchpad: bias and first RESCALE by the channel's record; with
// residual_i the two-operand RESCALE of that and a value of the scratchpad; with table_i a table of 256 bytes. Results of i8 and u8.
//
// Ten stages whatever is switched on, one value in each cycle. All but acc_i, record_i and residual_value_i stand still while values
// are under way.
module cdl_npu_requant_lane #(
  parameter int unsigned AccWidth   = 32,
  parameter int unsigned TableBytes = 16,         // that are written at once: a power of two, up to 128
  localparam int unsigned InWord     = $clog2(TableBytes),
  localparam int unsigned TableIndex = 8 - InWord
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       valid_i,
  output logic                       ready_o,
  input  logic signed [AccWidth-1:0] acc_i,
  input  logic        [63:0]         record_i,          // shift 8, mult 24, bias 32
  input  logic signed [8:0]          residual_value_i,  // widened by its type

  // The epilogue descriptor; type_i8_i: the last result is i8, not u8.
  input  logic signed [8:0]          zp_i,
  input  logic signed [8:0]          low_i,
  input  logic signed [8:0]          high_i,
  input  logic                       type_i8_i,
  input  logic                       residual_i,
  input  logic                       table_i,
  // The rescale descriptor.
  input  logic        [23:0]         r_a_mult_i,
  input  logic        [23:0]         r_b_mult_i,
  input  logic        [4:0]          r_a_shift_i,
  input  logic        [4:0]          r_b_shift_i,
  input  logic        [6:0]          r_shift_i,
  input  logic signed [8:0]          r_b_zp_i,
  input  logic signed [8:0]          r_zp_i,
  input  logic signed [8:0]          r_low_i,
  input  logic signed [8:0]          r_high_i,

  // Writes entries of the table from TableBytes * table_index_i on; not while values are under way.
  input  logic                       table_we_i,
  input  logic        [TableIndex-1:0] table_index_i,
  input  logic        [TableBytes*8-1:0] table_entries_i,

  output logic                       valid_o,
  input  logic                       ready_i,
  output logic        [7:0]          result_o
);

  logic first_ready, first_valid, second_ready, second_valid, table_ready;
  logic signed [8:0] first_result, second_result;

  // Stage 1: the bias. The sum wraps as the accumulator does.
  logic biased_valid_q;
  logic signed [AccWidth-1:0] biased_q;
  logic [31:0] scale_q;
  logic signed [31:0] bias;
  assign bias    = $signed(record_i[31:0]);
  assign ready_o = first_ready || !biased_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      biased_valid_q <= 1'b0;
    end else if (ready_o) begin
      biased_valid_q <= valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      biased_q <= acc_i + AccWidth'(bias);
      scale_q  <= record_i[63:32];
    end
  end

  // Stages 2 to 5.
  cdl_npu_rescale #(
    .AWidth   (AccWidth),
    .BWidth   (2),
    .OutWidth (9)
  ) u_first (
    .clk_i, .rst_ni,
    .valid_i   (biased_valid_q),
    .ready_o   (first_ready),
    .a_i       (biased_q),
    .a_mult_i  (scale_q[23:0]),
    .b_i       (2'sd0),
    .b_mult_i  (24'd0),
    .shift_i   (scale_q[31:24]),
    .a_shift_i (5'd0),
    .b_shift_i (5'd0),
    .zp_i, .low_i, .high_i,
    .valid_o   (first_valid),
    .ready_i   (second_ready),
    .result_o  (first_result)
  );

  // The residual beside them. It moves when they do.
  logic [5*9-1:0] residual_q;
  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      residual_q[8:0] <= residual_value_i;
    end
    if (first_ready) begin
      residual_q[44:9] <= residual_q[35:0];
    end
  end

  // Stages 6 to 9. Without a residual they pass the first result on: times 1, no shift, no zero point.
  logic signed [9:0] a, b;
  assign a = residual_i ? 10'(first_result) - 10'(zp_i) : 10'(first_result);
  assign b = residual_i ? 10'($signed(residual_q[44:36])) - 10'(r_b_zp_i) : 10'sd0;
  cdl_npu_rescale #(
    .AWidth   (10),
    .BWidth   (10),
    .OutWidth (9)
  ) u_second (
    .clk_i, .rst_ni,
    .valid_i   (first_valid),
    .ready_o   (second_ready),
    .a_i       (a),
    .a_mult_i  (residual_i ? r_a_mult_i : 24'd1),
    .b_i       (b),
    .b_mult_i  (r_b_mult_i),
    .shift_i   (residual_i ? {1'b0, r_shift_i} : 8'd0),
    .a_shift_i (residual_i ? r_a_shift_i : 5'd0),
    .b_shift_i (r_b_shift_i),
    .zp_i      (residual_i ? r_zp_i : 9'sd0),
    .low_i     (residual_i ? r_low_i : low_i),
    .high_i    (residual_i ? r_high_i : high_i),
    .valid_o   (second_valid),
    .ready_i   (table_ready),
    .result_o  (second_result)
  );

  // Stage 10: the table. Entry 0 is that of the lowest value: of i8 the sign is inverted.
  logic result_valid_q, unused_sign;
  logic [TableBytes*8-1:0] entries [256 / TableBytes];
  logic [TableBytes*8-1:0] word;
  logic [7:0] result_q, index;
  assign table_ready = ready_i || !result_valid_q;
  assign index       = {second_result[7] ^ type_i8_i, second_result[6:0]};
  assign unused_sign = second_result[8];
  assign word        = entries[index[7:InWord]];
  assign valid_o     = result_valid_q;
  assign result_o    = result_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_valid_q <= 1'b0;
    end else if (table_ready) begin
      result_valid_q <= second_valid;
    end
  end
  always_ff @(posedge clk_i) begin
    if (table_we_i) begin
      entries[table_index_i] <= table_entries_i;
    end
    if (table_ready) begin
      result_q <= table_i ? word[(32'(index) % TableBytes)*8 +: 8] : second_result[7:0];
    end
  end
endmodule
