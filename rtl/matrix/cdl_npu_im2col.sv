// The activation side of the matrix engine: the walk of an implicit im2col. One read of the scratchpad for each segment of an
// activation vector, in the order: block of columns, group of terms (tap, channel) of the sum, plane, output (oy, ox), segment.
//
// A group is up to Rows channels of one tap, with packed taps all terms of those, with flat_i Rows terms whatever taps they are of. A segment is what
// a group has of one stretch: of the terms of a tap, or of those of a row of the kernel where they are gathered and their bytes follow one another.
// depthwise_i: a block of Columns channels and all taps of an output are one vector, each tap a segment, and what counts terms counts taps.
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
  input  logic [6:0]          planes_i,
  input  logic [12:0]         plane_rows_i,
  input  logic [16:0]         cin_i,
  input  logic [16:0]         cout_i,          // depthwise: the channels
  input  logic [26:0]         terms_i,         // of a sum: all taps by cin_i; depthwise: all taps
  input  logic [5:0]          kernel_w_i,
  input  logic [4:0]          stride_h_i,
  input  logic [4:0]          stride_w_i,
  input  logic [5:0]          dilation_h_i,
  input  logic [5:0]          dilation_w_i,
  input  logic [5:0]          pad_top_i,
  input  logic [5:0]          pad_left_i,
  input  logic [6:0]          taps_i,          // packed into one pass
  input  logic                flat_i,          // passes of Rows terms each
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

  // Steps of addresses, made once: nothing of an address is multiplied on the way.
  logic [24:0] step_oy_q, step_ox_q, step_ky_q, step_kx_q, step_plane_q, origin_q;
  logic        contiguous_q, packed_taps, gathers;
  assign packed_taps = taps_i != 7'd1 && !depthwise_i;
  assign gathers     = packed_taps || flat_i;

  // Terms, made once too: of all, of a stretch, of packed taps, and of what a row of the tile has from its first tap on.
  logic [26:0] terms_q;
  logic [22:0] stretch_q;
  logic [RowWidth-1:0] packed_q;
  logic signed [34:0] step_u_q, before_u_q, in_u_q;

  // The place at which a group begins, and the one at which a segment does: a stretch, by its first tap, and the terms of it before that.
  logic [5:0]  group_kx_q, kx_q, kx_d;
  logic [24:0] group_row_q, row_q, row_d;       // address of kernel row ky at kx = 0
  logic [24:0] group_column_q, column_q, column_d;
  logic signed [17:0] group_y_q, y_q, y_d, group_x_q, x_q, x_d;
  logic [22:0] group_term_q, term_q, term_d, behind_d; // depthwise: the block's first channel
  logic [26:0] group_left_q, group_left_d;      // terms from there to the end of all
  logic [11:0] left_q, left_d;                  // and of the vector
  logic [11:0] group_terms_q, group_terms_d, segment_terms;
  logic [RowWidth-1:0] rows_before_q, rows_before_d;
  logic        stretch_ends, kernel_row_ends;

  // The block, and the output.
  logic [16:0] n_q;
  logic [12:0] oy_q, ox_q;
  logic [17:0] out_y_q, out_x_q;
  logic [24:0] out_row_q, out_column_q, plane_row_q;
  logic [6:0]  plane_q;
  logic signed [34:0] out_u_q;
  logic        first_pass_q;

  // The segment.
  logic [22:0] stretch_left;
  assign stretch_left  = stretch_q - term_q;
  assign segment_terms = depthwise_i ? 12'd1 : stretch_left < 23'(left_q) ? 12'(stretch_left) : left_q;
  assign rows_before_d = depthwise_i ? '0 : rows_before_q + RowWidth'(segment_terms);
  assign left_d        = left_q - segment_terms;

  assign behind_d        = term_q + 23'(segment_terms);
  assign stretch_ends    = depthwise_i || behind_d == stretch_q;
  assign kernel_row_ends = contiguous_q || kx_q + 6'd1 == kernel_w_i;
  always_comb begin
    kx_d     = kx_q;
    row_d    = row_q;
    column_d = column_q;
    y_d      = y_q;
    x_d      = x_q;
    term_d   = behind_d;
    if (stretch_ends) begin
      kx_d     = kx_q + 6'd1;
      column_d = column_q + step_kx_q;
      x_d      = x_q + $signed(18'(dilation_w_i));
      term_d   = depthwise_i ? term_q : '0;
      if (kernel_row_ends) begin
        kx_d     = '0;
        row_d    = row_q + step_ky_q;
        column_d = '0;
        y_d      = y_q + $signed(18'(dilation_h_i));
        x_d      = -$signed(18'(pad_left_i));
      end
    end
  end

  // The next group: the terms of a vector of it.
  function automatic logic [26:0] least(input logic [26:0] a, input logic [26:0] b);
    least = a < b ? a : b;
  endfunction
  assign group_left_d  = group_left_q - 27'(group_terms_q);
  assign group_terms_d = 12'(least(packed_taps ? 27'(packed_q) : 27'(Rows), flat_i || packed_taps ? group_left_d : 27'(cin_i) - 27'(term_d)));

  // Which rows of the array it fills.
  logic signed [17:0] y, x;
  logic               x_inside, y_inside;
  logic [11:0]        terms_from, terms_to;
  logic signed [34:0] u, right;                 // its first term in the row of the tile, and what of that is behind it
  assign y        = y_q + $signed(out_y_q);
  assign x        = x_q + $signed(out_x_q);
  assign y_inside = y >= 0 && y < $signed({1'b0, in_h_i});
  assign x_inside = x >= 0 && x < $signed({1'b0, in_w_i});
  assign u        = out_u_q + $signed(35'(term_q)) - before_u_q;
  assign right    = in_u_q - u;
  always_comb begin
    terms_from = '0;
    terms_to   = segment_terms;
    if (!contiguous_q) begin
      terms_to = x_inside ? segment_terms : '0;
    end else begin
      if (u < 0) begin
        terms_from = -u < $signed(35'(segment_terms)) ? 12'(-u) : segment_terms;
      end
      if (right < $signed(35'(segment_terms))) begin
        terms_to = right > 0 ? 12'(right) : '0;
      end
    end
  end
  logic [16:0] channels_left;
  logic [RowWidth-1:0] depthwise_rows;
  assign channels_left  = cin_i - 17'(term_q);
  assign depthwise_rows = RowWidth'(channels_left < 17'(Columns) ? channels_left : 17'(Columns));
  always_comb begin
    valid_from_o = '0;
    valid_to_o   = '0;
    if (y_inside && terms_to > terms_from) begin
      valid_from_o = depthwise_i ? '0 : rows_before_q + RowWidth'(terms_from);
      valid_to_o   = depthwise_i ? depthwise_rows : rows_before_q + RowWidth'(terms_to);
    end
  end
  logic [16:0] vector_rows, columns_left;
  assign columns_left = cout_i - n_q;
  assign vector_rows  = depthwise_i ? 17'(depthwise_rows) : 17'(rows_before_d);
  assign products_o   = depthwise_i ? vector_rows : vector_rows * (columns_left < 17'(Columns) ? columns_left : 17'(Columns));
  assign req_addr_o = row_q + column_q + out_row_q + out_column_q + ((25'(term_q) - 25'(rows_before_q)) << wide_i);

  // Where in the loops it stands.
  logic out_row_ends, plane_ends, out_ends, blocks_end;
  assign out_row_ends = ox_q + 13'd1 == out_w_i;
  assign plane_ends   = out_row_ends && oy_q + 13'd1 == out_h_i;
  assign out_ends     = plane_ends && plane_q + 7'd1 == planes_i;
  assign blocks_end   = n_q + 17'(Columns) >= cout_i;

  assign segment_first_o = left_q == group_terms_q;
  assign segment_last_o  = left_q == segment_terms;
  assign pass_first_o    = ox_q == '0 && oy_q == '0 && plane_q == '0;
  assign pass_last_o     = out_ends;
  assign block_first_o   = first_pass_q;
  assign block_last_o    = group_left_q == 27'(group_terms_q);
  assign last_o          = segment_last_o && out_ends && block_last_o && blocks_end;
  assign req_valid_o     = active_q && (pass_ready_i || !(pass_first_o && segment_first_o));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= 1'b1;
    end else if (req_valid_o && req_ready_i && last_o) begin
      active_q <= 1'b0;
    end
  end

  // The first group of a block, from the inputs where these are new.
  logic [24:0] start;
  logic [26:0] first_left;
  logic [RowWidth-1:0] packed_terms, first_packed;
  logic [11:0] first_terms;
  logic contiguous;
  assign start        = act_i - 25'(pad_top_i) * 25'(row_stride_i) - 25'(pad_left_i) * 25'(pixel_stride_i);
  assign contiguous   = gathers && dilation_w_i == 6'd1 && 18'(pixel_stride_i) == 18'(cin_i) << wide_i;
  assign packed_terms = RowWidth'(taps_i) * RowWidth'(cin_i);
  assign first_left   = start_i ? terms_i : terms_q;
  assign first_packed = start_i ? packed_terms : packed_q;
  always_comb begin
    first_terms = 12'(least(27'(Rows), flat_i ? first_left : 27'(cin_i)));
    if (packed_taps) begin
      first_terms = 12'(least(27'(first_packed), first_left));
    end
    if (depthwise_i) begin
      first_terms = 12'(first_left);
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      step_oy_q    <= 25'(stride_h_i) * 25'(row_stride_i);
      step_ox_q    <= 25'(stride_w_i) * 25'(pixel_stride_i);
      step_ky_q    <= 25'(dilation_h_i) * 25'(row_stride_i);
      step_kx_q    <= 25'(dilation_w_i) * 25'(pixel_stride_i);
      step_plane_q <= 25'(plane_rows_i) * 25'(row_stride_i);
      step_u_q     <= $signed(35'(stride_w_i) * 35'(cin_i));
      before_u_q   <= $signed(35'(pad_left_i) * 35'(cin_i));
      in_u_q       <= $signed(35'(in_w_i[12:0]) * 35'(cin_i));
      stretch_q    <= contiguous ? 23'(kernel_w_i) * 23'(cin_i) : 23'(cin_i);
      packed_q     <= packed_terms;
      terms_q      <= terms_i;
      origin_q     <= start;
      contiguous_q <= contiguous;
      n_q          <= '0;
      first_pass_q <= 1'b1;
      {plane_q, plane_row_q, oy_q, ox_q, out_y_q, out_x_q, out_row_q, out_column_q, out_u_q} <= '0;
      {kx_q, group_kx_q, column_q, group_column_q, rows_before_q} <= '0;
      {term_q, group_term_q} <= '0;
      {row_q, group_row_q} <= {2{start}};
      {y_q, group_y_q}     <= {2{-$signed(18'(pad_top_i))}};
      {x_q, group_x_q}     <= {2{-$signed(18'(pad_left_i))}};
      group_left_q         <= first_left;
      {left_q, group_terms_q} <= {2{first_terms}};
    end else if (req_valid_o && req_ready_i) begin
      // The next segment, or the group from its first term on.
      kx_q          <= segment_last_o ? group_kx_q : kx_d;
      row_q         <= segment_last_o ? group_row_q : row_d;
      column_q      <= segment_last_o ? group_column_q : column_d;
      y_q           <= segment_last_o ? group_y_q : y_d;
      x_q           <= segment_last_o ? group_x_q : x_d;
      term_q        <= segment_last_o ? group_term_q : term_d;
      left_q        <= segment_last_o ? group_terms_q : left_d;
      rows_before_q <= segment_last_o ? '0 : rows_before_d;
      if (segment_last_o) begin
        ox_q         <= ox_q + 13'd1;
        out_x_q      <= out_x_q + 18'(stride_w_i);
        out_column_q <= out_column_q + step_ox_q;
        out_u_q      <= out_u_q + step_u_q;
        if (out_row_ends) begin
          {ox_q, out_x_q, out_column_q, out_u_q} <= '0;
          oy_q      <= oy_q + 13'd1;
          out_y_q   <= out_y_q + 18'(stride_h_i);
          out_row_q <= out_row_q + step_oy_q;
        end
        if (plane_ends) begin
          {oy_q, out_y_q} <= '0;
          plane_q     <= plane_q + 7'd1;
          plane_row_q <= plane_row_q + step_plane_q;
          out_row_q   <= plane_row_q + step_plane_q;
        end
        if (out_ends) begin
          {plane_q, plane_row_q, out_row_q} <= '0;
          first_pass_q <= block_last_o;
          if (block_last_o) begin
            n_q <= n_q + 17'(Columns);
            {kx_q, group_kx_q, column_q, group_column_q} <= '0;
            {term_q, group_term_q} <= depthwise_i ? {2{term_q + 23'(Columns)}} : '0;
            {row_q, group_row_q} <= {2{origin_q}};
            {y_q, group_y_q}     <= {2{-$signed(18'(pad_top_i))}};
            {x_q, group_x_q}     <= {2{-$signed(18'(pad_left_i))}};
            group_left_q         <= first_left;
            {left_q, group_terms_q} <= {2{first_terms}};
          end else begin
            {kx_q, group_kx_q}         <= {2{kx_d}};
            {row_q, group_row_q}       <= {2{row_d}};
            {column_q, group_column_q} <= {2{column_d}};
            {y_q, group_y_q}           <= {2{y_d}};
            {x_q, group_x_q}           <= {2{x_d}};
            {term_q, group_term_q}     <= {2{term_d}};
            group_left_q               <= group_left_d;
            {left_q, group_terms_q}    <= {2{group_terms_d}};
          end
        end
      end
    end
  end
endmodule
