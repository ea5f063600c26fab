// The activation side of the matrix engine: the walk of an implicit im2col. One read of the scratchpad for each segment of an
// activation vector, in the order: block of columns, group of taps, block of Rows channels, output (oy, ox), segment.
//
// A vector of one tap is one segment. With packed taps a segment is a run of taps in one row of the kernel whose bytes follow one
// another, else one tap. depthwise_i: a block of Columns channels and all taps of an output are one vector, each tap a segment.
//
// Byte (element) r of what is read belongs to row r of the array: the address is moved back by the rows before the segment, and may lie
// outside of the scratchpad where no row of valid_from_o <= r < valid_to_o needs it. Rows outside of that are padding or not used: zero.
//
// All inputs but req_ready_i and pass_ready_i stand still from start_i to last_o. Extents are not less one.
module cdl_npu_im2col #(
  parameter int unsigned Rows    = 16,
  parameter int unsigned Columns = 16,
  localparam int unsigned Longer   = Rows > Columns ? Rows : Columns,
  localparam int unsigned RowWidth = $clog2(Longer + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                start_i,         // a cycle before the first request
  input  logic [24:0]         act_i,
  input  logic [16:0]         in_h_i,
  input  logic [16:0]         in_w_i,
  input  logic [12:0]         out_h_i,
  input  logic [12:0]         out_w_i,
  input  logic [16:0]         cin_i,
  input  logic [16:0]         cout_i,          // depthwise: the channels
  input  logic [5:0]          kernel_h_i,
  input  logic [5:0]          kernel_w_i,
  input  logic [4:0]          stride_h_i,
  input  logic [4:0]          stride_w_i,
  input  logic [5:0]          dilation_h_i,
  input  logic [5:0]          dilation_w_i,
  input  logic [5:0]          pad_top_i,
  input  logic [5:0]          pad_left_i,
  input  logic [6:0]          taps_i,          // packed into one pass
  input  logic [23:0]         row_stride_i,
  input  logic [15:0]         pixel_stride_i,
  input  logic                wide_i,          // activations of two bytes
  input  logic                depthwise_i,

  input  logic                pass_ready_i,    // the weights of the pass that comes next are there, or none are needed
  output logic                req_valid_o,
  input  logic                req_ready_i,
  output logic [24:0]         req_addr_o,
  // Of that request:
  output logic [RowWidth-1:0] valid_from_o,
  output logic [RowWidth-1:0] valid_to_o,
  output logic                segment_first_o, // of the vector
  output logic                segment_last_o,
  output logic                pass_first_o,    // the first vector of a pass
  output logic                pass_last_o,     // the last one
  output logic                block_first_o,   // in the first pass of a block
  output logic                block_last_o,    // in the last pass of a block
  output logic [16:0]         products_o,      // of the vector, at its last segment: what its rows and the columns of the block multiply
  output logic                last_o           // the last request of all
);

  logic active_q;

  // Steps of addresses, made once: nothing is multiplied on the way but small numbers of taps.
  logic [24:0] step_oy_q, step_ox_q, step_ky_q, step_kx_q, origin_q;
  logic [11:0] taps_all_q;
  logic contiguous_q, packed_taps;
  assign packed_taps = taps_i != 7'd1 && !depthwise_i;

  // The tap at which a group begins, and the one at which a segment does.
  logic [5:0]  group_kx_q, kx_q, kx_d;
  logic [24:0] group_row_q, row_q, row_d;       // address of kernel row ky at kx = 0
  logic [24:0] group_column_q, column_q, column_d;
  logic signed [17:0] group_y_q, y_q, y_d, group_x_q, x_q, x_d;
  logic [11:0] group_left_q, left_q, left_d;    // taps from there to the end of all, and of the group
  logic [11:0] group_taps_q, segment_taps;
  logic [16:0] rows_before_q, rows_before_d, segment_rows;
  logic        kernel_row_ends;

  // The block, and the output.
  logic [16:0] n_q, c_q, channels_left;
  logic [12:0] oy_q, ox_q;
  logic [17:0] out_y_q, out_x_q;
  logic [24:0] out_row_q, out_column_q;
  logic        first_pass_q;

  // The segment.
  logic [11:0] row_taps;
  assign row_taps      = 12'(kernel_w_i) - 12'(kx_q);
  assign segment_taps  = !contiguous_q ? 12'd1 : row_taps < left_q ? row_taps : left_q;
  assign segment_rows  = packed_taps ? 17'(segment_taps[6:0]) * 17'(cin_i[8:0]) : '0;
  assign rows_before_d = rows_before_q + segment_rows;
  assign left_d        = left_q - segment_taps;

  assign kernel_row_ends = 12'(kx_q) + segment_taps == 12'(kernel_w_i);
  always_comb begin
    kx_d     = kx_q + 6'(segment_taps);
    row_d    = row_q;
    column_d = column_q + (contiguous_q ? 25'(segment_rows) << wide_i : step_kx_q);
    y_d      = y_q;
    x_d      = x_q + (contiguous_q ? $signed(18'(segment_taps)) : $signed(18'(dilation_w_i)));
    if (kernel_row_ends) begin
      kx_d     = '0;
      row_d    = row_q + step_ky_q;
      column_d = '0;
      y_d      = y_q + $signed(18'(dilation_h_i));
      x_d      = -$signed(18'(pad_left_i));
    end
  end

  // Which rows of the array it fills.
  logic signed [17:0] y, x;
  logic               y_inside;
  logic [11:0]        taps_from, taps_to;
  logic signed [17:0] right;
  assign y        = y_q + $signed(out_y_q);
  assign x        = x_q + $signed(out_x_q);
  assign y_inside = y >= 0 && y < $signed({1'b0, in_h_i});
  assign right    = $signed({1'b0, in_w_i}) - x;
  assign channels_left = cin_i - c_q;
  always_comb begin
    taps_from = '0;
    taps_to   = segment_taps;
    if (x < 0) begin
      taps_from = -x < $signed(18'(segment_taps)) ? 12'(-x) : segment_taps;
    end
    if (right < $signed(18'(segment_taps))) begin
      taps_to = right > 0 ? 12'(right) : '0;
    end
  end
  logic [16:0] limit;
  logic [RowWidth-1:0] unpacked_rows;
  assign limit         = depthwise_i ? 17'(Columns) : 17'(Rows);
  assign unpacked_rows = RowWidth'(channels_left < limit ? channels_left : limit);
  always_comb begin
    valid_from_o = '0;
    valid_to_o   = '0;
    if (y_inside && taps_to > taps_from) begin
      valid_from_o = packed_taps ? RowWidth'(rows_before_q + 17'(taps_from[6:0]) * 17'(cin_i[8:0])) : '0;
      valid_to_o   = packed_taps ? RowWidth'(rows_before_q + 17'(taps_to[6:0]) * 17'(cin_i[8:0])) : unpacked_rows;
    end
  end
  logic [16:0] vector_rows, columns_left;
  assign columns_left = cout_i - n_q;
  assign vector_rows  = packed_taps ? rows_before_d : 17'(unpacked_rows);
  assign products_o   = depthwise_i ? vector_rows : vector_rows * (columns_left < 17'(Columns) ? columns_left : 17'(Columns));
  assign req_addr_o = row_q + column_q + out_row_q + out_column_q + ((25'(c_q) - 25'(rows_before_q)) << wide_i);

  // Where in the loops it stands.
  logic out_row_ends, out_ends, channels_end, groups_end, blocks_end;
  assign out_row_ends = ox_q + 13'd1 == out_w_i;
  assign out_ends     = out_row_ends && oy_q + 13'd1 == out_h_i;
  assign channels_end = packed_taps || depthwise_i || channels_left <= 17'(Rows);
  assign groups_end   = group_left_q == group_taps_q;
  assign blocks_end   = n_q + 17'(Columns) >= cout_i;

  assign segment_first_o = left_q == group_taps_q;
  assign segment_last_o  = left_q == segment_taps;
  assign pass_first_o    = ox_q == '0 && oy_q == '0;
  assign pass_last_o     = out_ends;
  assign block_first_o   = first_pass_q;
  assign block_last_o    = channels_end && groups_end;
  assign last_o          = segment_last_o && out_ends && block_last_o && blocks_end;
  assign req_valid_o     = active_q && (pass_ready_i || !(pass_first_o && segment_first_o));

  function automatic logic [11:0] least(input logic [11:0] a, input logic [11:0] b);
    least = a < b ? a : b;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= 1'b1;
    end else if (req_valid_o && req_ready_i && last_o) begin
      active_q <= 1'b0;
    end
  end

  logic [24:0] start;
  logic [11:0] taps_all, group_most;
  assign start      = act_i - 25'(pad_top_i) * 25'(row_stride_i) - 25'(pad_left_i) * 25'(pixel_stride_i);
  assign taps_all   = 12'(kernel_h_i) * 12'(kernel_w_i);
  assign group_most = depthwise_i ? 12'd1024 : 12'(taps_i);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      step_oy_q    <= 25'(stride_h_i) * 25'(row_stride_i);
      step_ox_q    <= 25'(stride_w_i) * 25'(pixel_stride_i);
      step_ky_q    <= 25'(dilation_h_i) * 25'(row_stride_i);
      step_kx_q    <= 25'(dilation_w_i) * 25'(pixel_stride_i);
      origin_q     <= start;
      taps_all_q   <= taps_all;
      contiguous_q <= packed_taps && dilation_w_i == 6'd1 && 18'(pixel_stride_i) == 18'(cin_i) << wide_i;
      n_q          <= '0;
      c_q          <= '0;
      first_pass_q <= 1'b1;
      {oy_q, ox_q, out_y_q, out_x_q, out_row_q, out_column_q} <= '0;
      {kx_q, group_kx_q, column_q, group_column_q, rows_before_q} <= '0;
      {row_q, group_row_q} <= {2{start}};
      {y_q, group_y_q}     <= {2{-$signed(18'(pad_top_i))}};
      {x_q, group_x_q}     <= {2{-$signed(18'(pad_left_i))}};
      group_left_q         <= taps_all;
      {left_q, group_taps_q} <= {2{least(group_most, taps_all)}};
    end else if (req_valid_o && req_ready_i) begin
      // The next segment, or the group from its first tap on.
      kx_q          <= segment_last_o ? group_kx_q : kx_d;
      row_q         <= segment_last_o ? group_row_q : row_d;
      column_q      <= segment_last_o ? group_column_q : column_d;
      y_q           <= segment_last_o ? group_y_q : y_d;
      x_q           <= segment_last_o ? group_x_q : x_d;
      left_q        <= segment_last_o ? group_taps_q : left_d;
      rows_before_q <= segment_last_o ? '0 : rows_before_d;
      if (segment_last_o) begin
        ox_q         <= ox_q + 13'd1;
        out_x_q      <= out_x_q + 18'(stride_w_i);
        out_column_q <= out_column_q + step_ox_q;
        if (out_row_ends) begin
          {ox_q, out_x_q, out_column_q} <= '0;
          oy_q      <= oy_q + 13'd1;
          out_y_q   <= out_y_q + 18'(stride_h_i);
          out_row_q <= out_row_q + step_oy_q;
        end
        if (out_ends) begin
          {oy_q, out_y_q, out_row_q} <= '0;
          first_pass_q <= block_last_o;
          c_q          <= depthwise_i ? c_q + 17'(Columns) : channels_end ? '0 : c_q + 17'(Rows);
          if (block_last_o) begin
            n_q <= n_q + 17'(Columns);
            {kx_q, group_kx_q, column_q, group_column_q} <= '0;
            {row_q, group_row_q} <= {2{origin_q}};
            {y_q, group_y_q}     <= {2{-$signed(18'(pad_top_i))}};
            {x_q, group_x_q}     <= {2{-$signed(18'(pad_left_i))}};
            group_left_q         <= taps_all_q;
            {left_q, group_taps_q} <= {2{least(group_most, taps_all_q)}};
          end else if (channels_end) begin
            {kx_q, group_kx_q}         <= {2{kx_d}};
            {row_q, group_row_q}       <= {2{row_d}};
            {column_q, group_column_q} <= {2{column_d}};
            {y_q, group_y_q}           <= {2{y_d}};
            {x_q, group_x_q}           <= {2{x_d}};
            group_left_q               <= group_left_q - group_taps_q;
            {left_q, group_taps_q}     <= {2{least(group_most, group_left_q - group_taps_q)}};
          end
        end
      end
    end
  end
endmodule
