// The weight side of the matrix engine: one read of the scratchpad for each row of a tile of Rows x Columns weights, transposed for each
// column, in the order in which cdl_npu_im2col needs the tiles: block of columns, then Rows of k = (tap, channel), or the packed
// taps of a group, at a time. Rows and columns that the tile lacks take their cycle without a read, and are zero.
//
// The first of a tile may be read before the array is free for it; those behind it wait for free_i. depthwise_i: one row of Columns weights for
// each tap of each output, without waiting.
//
// All inputs but req_ready_i and free_i stand still from start_i to last_o.
module cdl_npu_weight_walker #(
  parameter int unsigned Rows    = 16,
  parameter int unsigned Columns = 16,
  localparam int unsigned Longer     = Rows > Columns ? Rows : Columns,
  localparam int unsigned IndexWidth = $clog2(Longer),
  localparam int unsigned RowWidth   = $clog2(Longer + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  start_i,      // a cycle before the first request
  input  logic [24:0]           wgt_i,
  input  logic [26:0]           cin_i,        // flat sums: all terms, of one tap; a cycle later than the others
  input  logic [16:0]           cout_i,       // depthwise: the channels
  input  logic [11:0]           taps_all_i,   // of the kernel
  input  logic [6:0]            taps_i,
  input  logic [15:0]           weight_pitch_i,
  input  logic                  transposed_i,
  input  logic                  depthwise_i,
  input  logic [25:0]           outs_i,       // of all planes

  input  logic                  free_i,       // the array has swapped in the tile before this one
  output logic                  req_valid_o,  // a read is wanted
  output logic                  step_o,       // one row or column moves on in this cycle, read or not
  input  logic                  req_ready_i,
  output logic [24:0]           req_addr_o,
  // Of that step:
  output logic [RowWidth-1:0]   valid_o,      // so many weights of it are there, 0: none
  output logic [IndexWidth-1:0] index_o,      // which row, or column
  output logic                  tile_first_o,
  output logic                  tile_last_o,
  output logic                  last_o
);

  logic active_q;
  logic [IndexWidth-1:0] index_q;
  logic [16:0] n_q;
  logic [26:0] c_q;
  logic [11:0] taps_left_q;
  logic [25:0] outs_left_q;
  logic [24:0] k_base_q;           // address of the tile
  logic [24:0] n_base_q;           // address of the block
  logic [24:0] at_q;               // of the row or column within the tile

  logic packed_taps, taps_end, channels_end, blocks_end;
  logic [6:0]  group_taps;
  logic [26:0] rows_left;
  logic [16:0] rows, columns_left, columns;
  assign packed_taps  = taps_i != 7'd1;
  assign group_taps   = taps_left_q < 12'(taps_i) ? 7'(taps_left_q) : taps_i;
  assign rows_left    = packed_taps ? 27'(group_taps) * 27'(cin_i[8:0]) : cin_i - c_q;
  assign rows         = rows_left < 27'(Rows) ? 17'(rows_left) : 17'(Rows);
  assign columns_left = cout_i - n_q;
  assign columns      = columns_left < 17'(Columns) ? columns_left : 17'(Columns);
  assign taps_end     = taps_left_q <= 12'(taps_i);
  assign channels_end = packed_taps || rows_left <= 27'(Rows);
  assign blocks_end   = columns_left <= 17'(Columns);

  logic [RowWidth-1:0] along;      // of the step: its weights
  logic [16:0] across;             // how many steps have some
  assign along  = RowWidth'(depthwise_i || !transposed_i ? columns : rows);
  assign across = transposed_i ? columns : rows;
  logic there;
  assign there = depthwise_i || 17'(index_q) < across;

  logic tile_ends;
  assign tile_ends    = depthwise_i || (transposed_i ? index_q == IndexWidth'(Columns - 1) : index_q == IndexWidth'(Rows - 1));
  assign tile_first_o = index_q == '0;
  assign tile_last_o  = tile_ends;
  assign index_o      = index_q;
  assign valid_o      = there ? along : '0;
  assign req_addr_o   = at_q;

  logic may;
  assign may         = active_q && (tile_first_o || free_i || depthwise_i);
  assign req_valid_o = may && there;
  assign step_o      = may && (!there || req_ready_i);

  logic block_ends;
  assign block_ends = depthwise_i ? taps_left_q == 12'd1 && outs_left_q == 26'd1 : taps_end && channels_end;
  assign last_o     = tile_ends && block_ends && blocks_end;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= 1'b1;
    end else if (step_o && last_o) begin
      active_q <= 1'b0;
    end
  end

  // A block further: Columns bytes, transposed Columns rows of k.
  logic [24:0] n_step, n_next, k_next;
  assign n_step = transposed_i ? 25'(weight_pitch_i) << $clog2(Columns) : 25'(Columns);
  assign n_next = n_base_q + n_step;
  assign k_next = k_base_q + (transposed_i ? 25'(rows) : 25'(rows[RowWidth-1:0]) * 25'(weight_pitch_i));

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      {index_q, n_q, c_q} <= '0;
      taps_left_q <= taps_all_i;
      outs_left_q <= outs_i;
      {k_base_q, n_base_q, at_q} <= {3{wgt_i}};
    end else if (step_o && depthwise_i) begin
      at_q        <= at_q + 25'(weight_pitch_i);
      taps_left_q <= taps_left_q - 12'd1;
      if (taps_left_q == 12'd1) begin
        at_q        <= n_base_q;
        taps_left_q <= taps_all_i;
        outs_left_q <= outs_left_q - 26'd1;
        if (outs_left_q == 26'd1) begin
          n_q         <= n_q + 17'(Columns);
          n_base_q    <= n_base_q + 25'(Columns);
          at_q        <= n_base_q + 25'(Columns);
          outs_left_q <= outs_i;
        end
      end
    end else if (step_o) begin
      index_q <= index_q + IndexWidth'(1);
      at_q    <= at_q + 25'(weight_pitch_i);
      if (tile_ends) begin
        index_q  <= '0;
        k_base_q <= k_next;
        at_q     <= k_next;
        c_q      <= channels_end ? '0 : c_q + 27'(Rows);
        if (channels_end) begin
          taps_left_q <= taps_left_q - 12'(group_taps);
        end
        if (block_ends) begin
          taps_left_q <= taps_all_i;
          n_q         <= n_q + 17'(Columns);
          {k_base_q, n_base_q, at_q} <= {3{n_next}};
        end
      end
    end
  end
endmodule
