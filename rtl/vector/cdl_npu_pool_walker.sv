// The walk of vpool: outputs, chunks of up to 2^chunk_log2_i channels, and of each the positions of its window that lie in the tile; a position
// in each cycle in which step_i is high. Every window reaches into the tile. All inputs but step_i stand still from start_i to last_o. Extents
// are not less one.
module cdl_npu_pool_walker #(
  parameter int unsigned Lanes = 16,
  localparam int unsigned CountWidth = $clog2(Lanes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  start_i,       // a cycle before the first step
  input  logic [24:0]           a_i,
  input  logic [24:0]           out_i,
  input  logic [12:0]           in_h_i,
  input  logic [12:0]           in_w_i,
  input  logic [12:0]           out_h_i,
  input  logic [12:0]           out_w_i,
  input  logic [16:0]           channels_i,
  input  logic [8:0]            kernel_h_i,
  input  logic [8:0]            kernel_w_i,
  input  logic [8:0]            stride_h_i,
  input  logic [8:0]            stride_w_i,
  input  logic [5:0]            pad_top_i,
  input  logic [5:0]            pad_left_i,
  input  logic [23:0]           in_row_stride_i,
  input  logic [15:0]           in_pixel_stride_i,
  input  logic [23:0]           out_row_stride_i,
  input  logic [15:0]           out_pixel_stride_i,
  input  logic [3:0]            chunk_log2_i,
  input  logic [1:0]            a_log2_i,      // bytes of an element
  input  logic [1:0]            out_log2_i,

  output logic                  active_o,
  input  logic                  step_i,
  // Of the step:
  output logic [24:0]           a_addr_o,
  output logic [24:0]           out_addr_o,
  output logic [CountWidth-1:0] count_o,
  output logic                  first_o,       // of the window
  output logic                  last_of_window_o,
  output logic                  last_o
);

  logic active_q;
  logic [16:0] channel_q, channels_left, chunk;
  logic [12:0] oy_q, ox_q, y_q, x_q;           // the position stands in the tile
  logic [24:0] row_q, at_q, out_row_q, out_q;  // address of (y, 0) and of (y, x)
  logic [24:0] first_row_q, first_column_q;    // of the window's first position: (y, 0), and x within it
  logic [24:0] step_oy_q, step_ox_q;
  logic signed [21:0] top_q, left_q;           // of the window, maybe outside

  assign chunk         = 17'd1 << chunk_log2_i;
  assign channels_left = channels_i - channel_q;
  assign active_o      = active_q;
  assign a_addr_o      = at_q + (25'(channel_q) << a_log2_i);
  assign out_addr_o    = out_q + (25'(channel_q) << out_log2_i);
  assign count_o       = CountWidth'(channels_left < chunk ? channels_left : chunk);

  // The first position inside, and the last one.
  logic [12:0] first_y, first_x;
  logic        row_ends, window_ends, channels_end, out_row_ends;
  assign first_y      = top_q < 0 ? '0 : 13'(top_q);
  assign first_x      = left_q < 0 ? '0 : 13'(left_q);
  assign row_ends     = x_q + 13'd1 == in_w_i || $signed(22'(x_q)) + 22'sd1 == left_q + $signed(22'(kernel_w_i));
  assign window_ends  = row_ends && (y_q + 13'd1 == in_h_i || $signed(22'(y_q)) + 22'sd1 == top_q + $signed(22'(kernel_h_i)));
  assign channels_end = channels_left <= chunk;
  assign out_row_ends = ox_q + 13'd1 == out_w_i;
  assign first_o          = y_q == first_y && x_q == first_x;
  assign last_of_window_o = window_ends;
  assign last_o           = window_ends && channels_end && out_row_ends && oy_q + 13'd1 == out_h_i;

  // Of the output to the right and of the row below: where its window begins within the tile, and by how much that is further.
  logic signed [21:0] left_next, top_next, left_first, top_first;
  logic [24:0] column_next, row_next;
  assign left_first  = -$signed(22'(pad_left_i));
  assign top_first   = -$signed(22'(pad_top_i));
  assign left_next   = left_q + $signed(22'(stride_w_i));
  assign top_next    = top_q + $signed(22'(stride_h_i));
  assign column_next = left_next <= 0 ? '0 : left_q >= 0 ? first_column_q + step_ox_q
                                                         : 25'(left_next) * 25'(in_pixel_stride_i);
  assign row_next    = top_next <= 0 ? a_i : top_q >= 0 ? first_row_q + step_oy_q
                                                        : a_i + 25'(top_next) * 25'(in_row_stride_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= 1'b1;
    end else if (step_i && last_o) begin
      active_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      {channel_q, oy_q, ox_q, y_q, x_q, first_column_q} <= '0;
      {row_q, at_q, first_row_q} <= {3{a_i}};
      {out_row_q, out_q}         <= {2{out_i}};
      step_oy_q <= 25'(stride_h_i) * 25'(in_row_stride_i);
      step_ox_q <= 25'(stride_w_i) * 25'(in_pixel_stride_i);
      top_q     <= top_first;
      left_q    <= left_first;
    end else if (step_i && !row_ends) begin
      x_q  <= x_q + 13'd1;
      at_q <= at_q + 25'(in_pixel_stride_i);
    end else if (step_i && !window_ends) begin
      x_q   <= first_x;
      y_q   <= y_q + 13'd1;
      row_q <= row_q + 25'(in_row_stride_i);
      at_q  <= row_q + 25'(in_row_stride_i) + first_column_q;
    end else if (step_i && !channels_end) begin
      channel_q <= channel_q + chunk;
      x_q       <= first_x;
      y_q       <= first_y;
      row_q     <= first_row_q;
      at_q      <= first_row_q + first_column_q;
    end else if (step_i && !out_row_ends) begin
      channel_q      <= '0;
      ox_q           <= ox_q + 13'd1;
      left_q         <= left_next;
      first_column_q <= column_next;
      x_q            <= left_next < 0 ? '0 : 13'(left_next);
      y_q            <= first_y;
      row_q          <= first_row_q;
      at_q           <= first_row_q + column_next;
      out_q          <= out_q + 25'(out_pixel_stride_i);
    end else if (step_i) begin
      channel_q      <= '0;
      ox_q           <= '0;
      oy_q           <= oy_q + 13'd1;
      left_q         <= left_first;
      first_column_q <= '0;
      x_q            <= '0;
      top_q          <= top_next;
      y_q            <= top_next < 0 ? '0 : 13'(top_next);
      {first_row_q, row_q, at_q} <= {3{row_next}};
      {out_row_q, out_q}         <= {2{out_row_q + 25'(out_row_stride_i)}};
    end
  end
endmodule
