// The walk of requant, accload and accstore, a step in each cycle in which step_i is high: [table], then for each block of Columns
// channels and each group of Lanes of them [the records of the group], then for each output (oy, ox) the positions of its pool window or,
// where sums move as they are (move_i), the words of Width bytes that its sums fill.
//
// All inputs but step_i stand still from start_i to last_o. Extents are not less one.
module cdl_npu_requant_walker #(
  parameter int unsigned Columns = 16,
  parameter int unsigned Lanes   = 16,           // up to Columns
  parameter int unsigned Width   = 16,           // bytes of a word of the scratchpad port
  parameter bit          Int16   = 1'b0,
  localparam int unsigned ColumnWidth = $clog2(Columns + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   start_i,        // a cycle before the first step
  input  logic                   move_i,
  input  logic                   table_i,
  // With Int16: moved sums have 64 bits, the table has 513 entries, values are of two bytes.
  input  logic                   wide_i,
  input  logic                   table_wide_i,
  input  logic                   side_wide_i,
  input  logic                   residual_wide_i,
  input  logic [15:0]            acc_i,
  input  logic [24:0]            side_i,         // destination, of accload the source
  input  logic [24:0]            residual_i,
  input  logic [24:0]            params_i,
  input  logic [24:0]            table_addr_i,
  input  logic [12:0]            out_h_i,
  input  logic [12:0]            out_w_i,
  input  logic [16:0]            channels_i,
  input  logic [12:0]            in_h_i,
  input  logic [12:0]            in_w_i,
  input  logic [15:0]            acc_pitch_i,
  input  logic [4:0]             pool_h_i,
  input  logic [4:0]             pool_w_i,
  input  logic [4:0]             pool_stride_h_i,
  input  logic [4:0]             pool_stride_w_i,
  input  logic [2:0]             pool_pad_top_i,
  input  logic [2:0]             pool_pad_left_i,
  input  logic [23:0]            row_stride_i,
  input  logic [15:0]            pixel_stride_i,
  input  logic [23:0]            residual_row_stride_i,
  input  logic [15:0]            residual_pixel_stride_i,

  output logic                   active_o,
  input  logic                   step_i,
  // Of the step:
  output logic                   is_table_o,
  output logic                   is_params_o,
  output logic [24:0]            constant_addr_o, // of the table or of the records
  output logic [8:0]             constant_index_o,// its place among them, in words
  output logic                   inside_o,        // the position is one of the accumulated ones
  output logic                   window_first_o,
  output logic                   window_last_o,
  output logic [15:0]            acc_row_o,
  output logic [ColumnWidth-1:0] column_o,        // the first one of the group within the block; moving, of the word
  output logic [ColumnWidth-1:0] count_o,         // channels of the group; moving, of the word
  output logic                   upper_o,         // moving: the word is the upper half of its one sum
  output logic [24:0]            side_addr_o,
  output logic [24:0]            residual_addr_o,
  output logic                   odd_group_o,     // groups take turns with two sets of records
  output logic                   last_o
);

  typedef enum logic [1:0] {StIdle, StTable, StParams, StValues} state_e;
  state_e state_q;
  assign active_o    = state_q != StIdle;
  assign is_table_o  = state_q == StTable;
  assign is_params_o = state_q == StParams;

  localparam int unsigned TableWords     = (256 + Width - 1) / Width;
  localparam int unsigned WideTableWords = (2 * 513 + Width - 1) / Width;
  logic wide, table_wide, side_wide, residual_wide;
  // A sum of 64 bits may be two words.
  localparam bit Halves = Int16 && Width == 4;
  logic halves, upper_q;
  logic [6:0] word_sums;
  assign wide          = Int16 && wide_i;
  assign table_wide    = Int16 && table_wide_i;
  assign side_wide     = Int16 && side_wide_i;
  assign residual_wide = Int16 && residual_wide_i;
  assign halves        = Halves && wide && move_i;
  assign upper_o       = upper_q;
  assign word_sums     = wide && !halves ? 7'(Width / 8) : 7'(Width / 4);

  logic [8:0]  index_q;                          // of the table or the records, in words
  logic [16:0] channel_q, channels_left;         // the first of the group
  logic [ColumnWidth-1:0] in_block_q, block_count, group_count;
  logic [15:0] block_row_q;
  logic        odd_q;
  logic [12:0] oy_q, ox_q;
  logic [4:0]  py_q, px_q;
  logic [ColumnWidth-1:0] moved_q;               // columns of the row that words before this one moved
  logic signed [13:0] top_q, left_q;             // of the window
  logic [15:0] row_q, window_row_q, step_oy_q;   // accumulator row of (top, 0), of (y, 0)
  logic [24:0] side_row_q, side_q, residual_row_q, residual_q;

  // The channels from here to the end of the block, and of the group.
  logic [16:0] block_left;
  logic [ColumnWidth-1:0] group_limit;
  assign channels_left = channels_i - channel_q;
  assign block_left    = 17'(Columns) - 17'(in_block_q);
  assign block_count   = ColumnWidth'(channels_left < block_left ? channels_left : block_left);
  assign group_limit   = move_i ? ColumnWidth'(Columns) : ColumnWidth'(Lanes);
  assign group_count   = block_count < group_limit ? block_count : group_limit;

  logic table_end, params_end, window_end, out_row_ends, outs_end, block_ends, all_end;
  logic [24:0] record_bytes;
  assign table_end    = index_q == (table_wide ? 9'(WideTableWords - 1) : 9'(TableWords - 1));
  assign record_bytes = 25'(group_count) << 3;
  assign params_end   = (25'(index_q) + 25'd1) * 25'(Width) >= record_bytes;
  logic [ColumnWidth-1:0] move_left;
  assign move_left    = group_count - moved_q;
  assign window_end   = move_i ? 17'(move_left) <= 17'(word_sums) && upper_q == halves
                               : px_q + 5'd1 == pool_w_i && py_q + 5'd1 == pool_h_i;
  assign out_row_ends = ox_q + 13'd1 == out_w_i;
  assign outs_end     = window_end && out_row_ends && oy_q + 13'd1 == out_h_i;
  assign block_ends   = group_count == block_count;
  assign all_end      = channels_left == 17'(group_count);
  assign last_o       = state_q == StValues && outs_end && all_end;

  logic signed [13:0] y, x;
  assign y = top_q + $signed(14'(py_q));
  assign x = left_q + $signed(14'(px_q));
  assign inside_o = move_i || (y >= 0 && y < $signed({1'b0, in_h_i}) && x >= 0 && x < $signed({1'b0, in_w_i}));

  assign constant_index_o = index_q;
  assign constant_addr_o  = (is_table_o ? table_addr_i : params_i + (25'(channel_q) << 3)) + 25'(index_q) * 25'(Width);
  assign window_first_o   = move_i || (px_q == '0 && py_q == '0);
  assign window_last_o    = move_i || window_end;
  assign acc_row_o        = window_row_q + 16'(x);
  assign column_o         = move_i ? moved_q : in_block_q;
  assign count_o          = !move_i ? group_count : 17'(move_left) < 17'(word_sums) ? move_left : ColumnWidth'(word_sums);
  assign side_addr_o      = side_q + (move_i ? (25'(channel_q) + 25'(moved_q)) << (wide ? 3 : 2) : 25'(channel_q) << side_wide)
                          + {22'd0, upper_q, 2'b00};
  assign residual_addr_o  = residual_q + (25'(channel_q) << residual_wide);
  assign odd_group_o      = odd_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else if (start_i) begin
      state_q <= table_i ? StTable : move_i ? StValues : StParams;
    end else if (step_i) begin
      unique case (state_q)
        StTable:  if (table_end) state_q <= StParams;
        StParams: if (params_end) state_q <= StValues;
        StValues: if (outs_end) state_q <= all_end ? StIdle : move_i ? StValues : StParams;
        default:  state_q <= StIdle;
      endcase
    end
  end

  // Where the first window begins: rows above the accumulated ones are walked, not read.
  logic signed [13:0] top, left;
  logic [15:0] top_row;
  assign top     = -$signed(14'(pool_pad_top_i));
  assign left    = -$signed(14'(pool_pad_left_i));
  assign top_row = 16'(pool_pad_top_i) * 16'(in_w_i);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      {index_q, channel_q, in_block_q, odd_q, oy_q, ox_q, py_q, px_q, moved_q, upper_q} <= '0;
      block_row_q <= acc_i;
      step_oy_q   <= 16'(pool_stride_h_i) * 16'(in_w_i);
      top_q       <= top;
      left_q      <= left;
      {row_q, window_row_q}        <= {2{acc_i - top_row}};
      {side_row_q, side_q}         <= {2{side_i}};
      {residual_row_q, residual_q} <= {2{residual_i}};
    end else if (step_i && state_q != StValues) begin
      index_q <= (is_table_o ? table_end : params_end) ? '0 : index_q + 9'd1;
    end else if (step_i && !window_end) begin
      upper_q <= halves && !upper_q;
      if (upper_q == halves) begin
        moved_q <= moved_q + ColumnWidth'(word_sums);
      end
      px_q    <= px_q + 5'd1;
      if (px_q + 5'd1 == pool_w_i) begin
        px_q <= '0;
        if (!move_i) begin
          py_q         <= py_q + 5'd1;
          window_row_q <= window_row_q + 16'(in_w_i);
        end
      end
    end else if (step_i) begin
      {py_q, px_q, moved_q, upper_q} <= '0;
      window_row_q <= row_q;
      ox_q         <= ox_q + 13'd1;
      left_q       <= left_q + $signed(14'(pool_stride_w_i));
      side_q       <= side_q + 25'(pixel_stride_i);
      residual_q   <= residual_q + 25'(residual_pixel_stride_i);
      if (out_row_ends) begin
        ox_q   <= '0;
        left_q <= left;
        oy_q   <= oy_q + 13'd1;
        top_q  <= top_q + $signed(14'(pool_stride_h_i));
        {row_q, window_row_q}        <= {2{row_q + step_oy_q}};
        {side_row_q, side_q}         <= {2{side_row_q + 25'(row_stride_i)}};
        {residual_row_q, residual_q} <= {2{residual_row_q + 25'(residual_row_stride_i)}};
      end
      if (outs_end) begin
        oy_q  <= '0;
        top_q <= top;
        odd_q <= !odd_q;
        {side_row_q, side_q}         <= {2{side_i}};
        {residual_row_q, residual_q} <= {2{residual_i}};
        channel_q  <= channel_q + 17'(group_count);
        in_block_q <= block_ends ? '0 : in_block_q + group_count;
        if (block_ends) begin
          block_row_q           <= block_row_q + acc_pitch_i;
          {row_q, window_row_q} <= {2{block_row_q + acc_pitch_i - top_row}};
        end else begin
          {row_q, window_row_q} <= {2{block_row_q - top_row}};
        end
      end
    end
  end
endmodule
