// What requant does to one accumulator on its way to the scratchpad: bias and first RESCALE by the channel's record; with
// residual_i the two-operand RESCALE of that and a value of the scratchpad; with table_i a table. Results of i8 and u8, with Int16 of i16 too.
//
// Ten stages whatever is switched on, but for a table of i16: an eleventh interpolates. One value in each cycle. All but acc_i, record_i and
// residual_value_i stand still while values are under way.
module cdl_npu_requant_lane #(
  parameter bit          Int16      = 1'b0,       // accumulators of 40 bits, values of 16
  parameter int unsigned TableBytes = 16,         // that are written at once: a power of two, up to 256; with Int16 from 4 on
  localparam int unsigned AccWidth    = Int16 ? 40 : 32,
  localparam int unsigned ValueWidth  = Int16 ? 17 : 9,  // of any type, and of its bounds
  localparam int unsigned ResultWidth = Int16 ? 16 : 8,
  localparam int unsigned TableWords  = ((Int16 ? 2 * 513 : 256) + TableBytes - 1) / TableBytes,
  localparam int unsigned TableIndex  = TableWords > 1 ? $clog2(TableWords) : 1
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       valid_i,
  output logic                       ready_o,
  input  logic signed [AccWidth-1:0] acc_i,
  input  logic        [63:0]         record_i,          // shift 8, mult 24, bias 32
  input  logic signed [ValueWidth-1:0] residual_value_i, // widened by its type

  // The epilogue descriptor; type_i8_i, type_i16_i: the last result is that, not u8. wide_i: else acc_i has 32 bits, its sign before them.
  input  logic                       wide_i,
  input  logic signed [ValueWidth-1:0] zp_i,
  input  logic signed [ValueWidth-1:0] low_i,
  input  logic signed [ValueWidth-1:0] high_i,
  input  logic                       type_i8_i,
  input  logic                       type_i16_i,
  input  logic                       residual_i,
  input  logic                       table_i,
  // The rescale descriptor.
  input  logic        [23:0]         r_a_mult_i,
  input  logic        [23:0]         r_b_mult_i,
  input  logic        [4:0]          r_a_shift_i,
  input  logic        [4:0]          r_b_shift_i,
  input  logic        [6:0]          r_shift_i,
  input  logic signed [ValueWidth-1:0] r_b_zp_i,
  input  logic signed [ValueWidth-1:0] r_zp_i,
  input  logic signed [ValueWidth-1:0] r_low_i,
  input  logic signed [ValueWidth-1:0] r_high_i,

  // Writes the bytes of the table from TableBytes * table_index_i on; not while values are under way.
  input  logic                       table_we_i,
  input  logic        [TableIndex-1:0] table_index_i,
  input  logic        [TableBytes*8-1:0] table_entries_i,

  output logic                       valid_o,
  input  logic                       ready_i,
  output logic        [ResultWidth-1:0] result_o
);

  logic first_ready, first_valid, second_ready, second_valid, table_ready, result_ready;
  logic signed [ValueWidth-1:0] first_result, second_result;

  // Stage 1: the bias. The sum wraps as the accumulator does.
  logic biased_valid_q;
  logic signed [AccWidth-1:0] biased, biased_q;
  logic [31:0] scale_q;
  logic signed [31:0] bias;
  assign bias    = $signed(record_i[31:0]);
  assign biased  = acc_i + AccWidth'(bias);
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
      biased_q <= Int16 && !wide_i ? AccWidth'($signed(biased[31:0])) : biased;
      scale_q  <= record_i[63:32];
    end
  end

  // Stages 2 to 5.
  cdl_npu_rescale #(
    .AWidth   (AccWidth),
    .BWidth   (2),
    .OutWidth (ValueWidth)
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
  logic [5*ValueWidth-1:0] residual_q;
  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      residual_q[ValueWidth-1:0] <= residual_value_i;
    end
    if (first_ready) begin
      residual_q[5*ValueWidth-1:ValueWidth] <= residual_q[4*ValueWidth-1:0];
    end
  end

  // Stages 6 to 9. Without a residual they pass the first result on: times 1, no shift, no zero point.
  localparam int unsigned Centred = ValueWidth + 1;
  logic signed [ValueWidth-1:0] residual;
  logic signed [Centred-1:0] a, b;
  assign residual = $signed(residual_q[5*ValueWidth-1:4*ValueWidth]);
  assign a = residual_i ? Centred'(first_result) - Centred'(zp_i) : Centred'(first_result);
  assign b = residual_i ? Centred'(residual) - Centred'(r_b_zp_i) : '0;
  cdl_npu_rescale #(
    .AWidth   (Centred),
    .BWidth   (Centred),
    .OutWidth (ValueWidth)
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
    .zp_i      (residual_i ? r_zp_i : '0),
    .low_i     (residual_i ? r_low_i : low_i),
    .high_i    (residual_i ? r_high_i : high_i),
    .valid_o   (second_valid),
    .ready_i   (table_ready),
    .result_o  (second_result)
  );

  // Stage 10: the table.
  logic result_valid_q, unused_sign;
  logic [ResultWidth-1:0] result_q, value, entry, next;
  assign table_ready = result_ready || !result_valid_q;
  assign value       = second_result[ResultWidth-1:0];
  assign unused_sign = second_result[ValueWidth-1];
  cdl_npu_table #(.Int16(Int16), .Bytes(TableBytes), .Ports(1)) u_table (
    .clk_i,
    .write_i   (table_we_i),
    .index_i   (table_index_i),
    .word_i    (table_entries_i),
    .wide_i    (type_i16_i),
    .signed_i  (type_i8_i),
    .values_i  (value),
    .entries_o (entry),
    .nexts_o   (next)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_valid_q <= 1'b0;
    end else if (table_ready) begin
      result_valid_q <= second_valid;
    end
  end
  always_ff @(posedge clk_i) begin
    if (table_ready) begin
      result_q <= table_i ? entry : value;
    end
  end

  // Stage 11, of tables of i16 alone: between the two entries.
  if (Int16) begin : gen_between
    logic interpolates, last_valid_q;
    logic [15:0] next_q, between, last_q;
    logic [6:0] fraction_q;
    assign interpolates = table_i && type_i16_i;
    assign result_ready = interpolates ? ready_i || !last_valid_q : ready_i;
    assign valid_o      = interpolates ? last_valid_q : result_valid_q;
    assign result_o     = interpolates ? last_q : result_q;
    cdl_npu_interpolate u_interpolate (
      .base_i(result_q), .next_i(next_q), .fraction_i(fraction_q), .value_o(between)
    );
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        last_valid_q <= 1'b0;
      end else if (result_ready) begin
        last_valid_q <= interpolates && result_valid_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (table_ready) begin
        next_q     <= next;
        fraction_q <= value[6:0];
      end
      if (result_ready) begin
        last_q <= between;
      end
    end
  end else begin : gen_as_it_is
    logic unused;
    assign unused       = ^{type_i16_i, wide_i, next};
    assign result_ready = ready_i;
    assign valid_o      = result_valid_q;
    assign result_o     = result_q;
  end
endmodule
