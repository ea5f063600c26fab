// The requant engine: one of requant, accload and accstore at a time, from the cycle in which it takes the instruction to the one behind the
// last write. Index registers are added to the addresses already, and whoever sends the instruction has checked it. Results of i8 and u8, sums of
// 32 bits; with Int16 results, residuals and tables of i16 too, and sums of 40.
//
// One read port of the scratchpad for tables, records, residuals and sums to load, one write port; both take as many values as there are lanes. A
// row of accumulators is read or written in a cycle. What was read stands there in the cycle behind the one in which valid and ready are both
// high. Nothing enters the lanes that has no room behind them.
module cdl_npu_requant #(
  parameter int unsigned Columns = 16,
  parameter int unsigned Lanes   = 16,
  parameter int unsigned Width   = 16,            // bytes of a word of the scratchpad, 4 to 256
  parameter int unsigned AccRows = 1024,
  parameter bit          Int16   = 1'b0,
  localparam int unsigned Used        = Lanes < Columns ? Lanes : Columns,
  localparam int unsigned ValueBytes  = Int16 ? 2 : 1,
  localparam int unsigned SumWidth    = Int16 ? 40 : 32,
  localparam int unsigned PortBytes   = Used*ValueBytes > Width ? Used*ValueBytes : Width,
  localparam int unsigned AccRowWidth = $clog2(AccRows)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic                          insn_valid_i,
  output logic                          insn_ready_o,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] second_i,
  output logic                          done_o,           // in the cycle behind the last write

  output logic                          read_valid_o,
  input  logic                          read_ready_i,
  output logic [24:0]                   read_addr_o,
  output logic [PortBytes-1:0]          read_bytes_o,     // those that are needed
  input  logic [PortBytes*8-1:0]        read_data_i,

  output logic                          write_valid_o,
  input  logic                          write_ready_i,
  output logic [24:0]                   write_addr_o,
  output logic [PortBytes-1:0]          write_bytes_o,
  output logic [PortBytes*8-1:0]        write_data_o,

  output logic                          acc_read_valid_o,
  input  logic                          acc_read_ready_i,
  output logic [AccRowWidth-1:0]        acc_read_row_o,
  input  logic [Columns*SumWidth-1:0]   acc_read_data_i,

  output logic                          acc_write_valid_o,
  input  logic                          acc_write_ready_i,
  output logic [AccRowWidth-1:0]        acc_write_row_o,
  output logic [Columns-1:0]            acc_write_columns_o,
  output logic [Columns*SumWidth-1:0]   acc_write_data_o,

  output logic [15:0]                   values_o          // that leave in this cycle, for the counters
);

  localparam int unsigned ColumnWidth = $clog2(Columns + 1);
  localparam int unsigned ValueWidth  = 8*ValueBytes + 1;
  localparam int unsigned TableWords  = ((Int16 ? 2 * 513 : 256) + Width - 1) / Width;
  localparam int unsigned TableIndex  = TableWords > 1 ? $clog2(TableWords) : 1;
  localparam bit          Halves      = Int16 && Width == 4;  // a sum of 64 bits is two words

  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  cdl_npu_isa_pkg::desc_epilogue_t d_q;
  cdl_npu_isa_pkg::desc_rescale_t r_q;
  cdl_npu_isa_pkg::insn_requant_t insn;
  cdl_npu_isa_pkg::insn_accload_t load;
  assign insn = word_q;
  assign load = word_q;
  // The header is for who sends the instruction, and each operation uses its own fields of the word; without Int16 some mean nothing.
  logic unused;
  assign unused = ^{insn, load, d_q, r_q};

  logic is_requant, is_load, has_residual, has_table;
  assign is_requant   = insn.opcode_f == cdl_npu_isa_pkg::OP_REQUANT;
  assign is_load      = insn.opcode_f == cdl_npu_isa_pkg::OP_ACCLOAD;
  assign has_residual = is_requant && insn.residual_f[0];
  assign has_table    = is_requant && insn.table_f[0];

  // All bits of the sums, and values of i16.
  logic wide, out_wide, residual_wide;
  assign wide          = Int16 && d_q.wide_f[0];
  assign out_wide      = Int16 && d_q.out_type_f == cdl_npu_isa_pkg::TYPE_I16;
  assign residual_wide = Int16 && r_q.b_type_f == cdl_npu_isa_pkg::TYPE_I16;
  function automatic logic signed [16:0] joined(input logic [7:0] more, input logic [8:0] others);
    joined = {more ^ {8{others[8]}}, others};
  endfunction

  typedef enum logic [1:0] {StIdle, StSetup, StRun} state_e;
  state_e state_q;
  logic start;
  assign start        = state_q == StSetup;
  assign insn_ready_o = state_q == StIdle;

  // ---- The walk ----
  logic active, step, is_table, is_params, is_inside, window_first, window_last, odd, last, upper;
  logic [24:0] constant_addr, side_addr, residual_addr;
  logic [8:0] constant_index;
  logic [15:0] acc_row;
  logic [ColumnWidth-1:0] column, count;
  cdl_npu_requant_walker #(.Columns(Columns), .Lanes(Used), .Width(Width), .Int16(Int16)) u_walker (
    .clk_i, .rst_ni,
    .start_i                 (start),
    .move_i                  (!is_requant),
    .table_i                 (has_table),
    .wide_i                  (wide),
    .table_wide_i            (out_wide),
    .side_wide_i             (out_wide),
    .residual_wide_i         (residual_wide),
    .acc_i                   (insn.acc_f),
    .side_i                  (is_requant ? insn.dst_f : load.src_f),
    .residual_i              (insn.res_f),
    .params_i                (d_q.params_f),
    .table_addr_i            (d_q.table_f),
    .out_h_i                 (13'(d_q.out_h_f) + 13'd1),
    .out_w_i                 (13'(d_q.out_w_f) + 13'd1),
    .channels_i              (17'(d_q.channels_f) + 17'd1),
    .in_h_i                  (13'(d_q.in_h_f) + 13'd1),
    .in_w_i                  (is_requant ? 13'(d_q.in_w_f) + 13'd1 : 13'(d_q.out_w_f) + 13'd1),
    .acc_pitch_i             (d_q.acc_pitch_f),
    .pool_h_i                (is_requant ? 5'(d_q.pool_h_f) + 5'd1 : 5'd1),
    .pool_w_i                (is_requant ? 5'(d_q.pool_w_f) + 5'd1 : 5'd1),
    .pool_stride_h_i         (is_requant ? 5'(d_q.pool_stride_h_f) + 5'd1 : 5'd1),
    .pool_stride_w_i         (is_requant ? 5'(d_q.pool_stride_w_f) + 5'd1 : 5'd1),
    .pool_pad_top_i          (is_requant ? d_q.pool_pad_top_f : 3'd0),
    .pool_pad_left_i         (is_requant ? d_q.pool_pad_left_f : 3'd0),
    .row_stride_i            (d_q.row_stride_f),
    .pixel_stride_i          (d_q.pixel_stride_f),
    .residual_row_stride_i   (r_q.row_stride_f),
    .residual_pixel_stride_i (r_q.pixel_stride_f),
    .active_o                (active),
    .step_i                  (step),
    .is_table_o              (is_table),
    .is_params_o             (is_params),
    .constant_addr_o         (constant_addr),
    .constant_index_o        (constant_index),
    .inside_o                (is_inside),
    .window_first_o          (window_first),
    .window_last_o           (window_last),
    .acc_row_o               (acc_row),
    .column_o                (column),
    .count_o                 (count),
    .upper_o                 (upper),
    .side_addr_o             (side_addr),
    .residual_addr_o         (residual_addr),
    .odd_group_o             (odd),
    .last_o                  (last)
  );

  // A step goes when all that it reads is granted, in the same cycle or one after the other, and what comes of it has room.
  localparam int unsigned Room = 32;
  logic [5:0] under_way_q;
  logic is_value, has_room, wants_read, wants_row, read_served_q, row_served_q, read_done, row_done;
  assign is_value         = active && !is_table && !is_params;
  assign has_room         = under_way_q != 6'(Room);
  assign wants_read       = active && (!is_value || (has_room && (is_load || (has_residual && window_last))));
  assign wants_row        = is_value && has_room && !is_load && is_inside;
  assign read_valid_o     = wants_read && !read_served_q;
  assign read_addr_o      = !is_value ? constant_addr : is_load ? side_addr : residual_addr;
  assign acc_read_valid_o = wants_row && !row_served_q;
  assign acc_read_row_o   = AccRowWidth'(acc_row);
  assign read_done        = !wants_read || read_served_q || read_ready_i;
  assign row_done         = !wants_row || row_served_q || acc_read_ready_i;
  assign step             = active && (!is_value || has_room) && read_done && row_done;

  // The last word of a table or of records is a part of one.
  logic [31:0] table_bytes, needed;
  assign table_bytes = out_wide ? 32'd1026 : 32'd256;
  always_comb begin
    if (is_table) begin
      needed = table_bytes - 32'(constant_index) * Width;
    end else if (is_params) begin
      needed = 32'(count) * 8 - 32'(constant_index) * Width;
    end else if (is_load) begin
      needed = 32'(count) << (wide && !Halves ? 3 : 2);
    end else begin
      needed = 32'(count) << residual_wide;
    end
  end
  for (genvar i = 0; i < PortBytes; i++) begin : gen_read_bytes
    assign read_bytes_o[i] = 32'(i) < needed && (is_value || i < Width);
  end

  logic sent;                                    // a result, or a row, leaves
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_served_q <= 1'b0;
      row_served_q  <= 1'b0;
      under_way_q   <= '0;
    end else begin
      read_served_q <= !step && (read_served_q || (read_valid_o && read_ready_i));
      row_served_q  <= !step && (row_served_q || (acc_read_valid_o && acc_read_ready_i));
      under_way_q   <= under_way_q + 6'(step && is_value && window_last) - 6'(sent);
    end
  end

  // ---- One cycle behind: data comes ----
  logic read_came_q, row_came_q, table_came_q, params_came_q, odd_came_q, first_came_q, seen_q, upper_came_q;
  logic [8:0] index_came_q;
  logic [ColumnWidth-1:0] column_came_q;
  logic is_result_came_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_came_q      <= 1'b0;
      row_came_q       <= 1'b0;
      is_result_came_q <= 1'b0;
    end else begin
      read_came_q      <= read_valid_o && read_ready_i;
      row_came_q       <= acc_read_valid_o && acc_read_ready_i;
      is_result_came_q <= step && is_value && window_last;
    end
  end
  always_ff @(posedge clk_i) begin
    if (active) begin
      table_came_q  <= is_table;
      params_came_q <= is_params;
      index_came_q  <= constant_index;
      odd_came_q    <= odd;
      column_came_q <= column;
      first_came_q  <= window_first;
      upper_came_q  <= upper;
    end
  end

  // Records of two groups in turn: those of the one before may still be on their way into the lanes.
  localparam int unsigned RecordBytes = 8 * Used;
  logic [2*RecordBytes*8-1:0] records_q;
  always_ff @(posedge clk_i) begin
    if (read_came_q && params_came_q) begin
      for (int unsigned i = 0; i < RecordBytes; i++) begin
        if (i / Width == 32'(index_came_q)) begin
          if (odd_came_q) begin
            records_q[(RecordBytes + i)*8 +: 8] <= read_data_i[(i % Width)*8 +: 8];
          end else begin
            records_q[i*8 +: 8] <= read_data_i[(i % Width)*8 +: 8];
          end
        end
      end
    end
  end

  // The largest of the window, of the columns of the group. A window begins anew with the first position that is read in it.
  logic signed [Used*SumWidth-1:0] largest_q, sums;
  logic odd_enters_q, enters_q;
  logic [Columns*SumWidth-1:0] group_row;
  assign group_row = acc_read_data_i >> (SumWidth * 32'(column_came_q));
  for (genvar i = 0; i < Used; i++) begin : gen_sum
    assign sums[i*SumWidth +: SumWidth] = wide ? group_row[i*SumWidth +: SumWidth] : SumWidth'($signed(group_row[i*SumWidth +: 32]));
  end
  logic fresh;
  assign fresh = !seen_q || first_came_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      seen_q   <= 1'b0;
      enters_q <= 1'b0;
    end else begin
      enters_q <= is_result_came_q && is_requant;
      if (row_came_q) begin
        seen_q <= 1'b1;
      end
      if (is_result_came_q) begin
        seen_q <= 1'b0;
      end
    end
  end
  logic [Used*ValueBytes*8-1:0] residual_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Used; i++) begin
      if (row_came_q && (fresh || $signed(sums[i*SumWidth +: SumWidth]) > $signed(largest_q[i*SumWidth +: SumWidth]))) begin
        largest_q[i*SumWidth +: SumWidth] <= sums[i*SumWidth +: SumWidth];
      end
    end
    odd_enters_q   <= odd_came_q;
    if (read_came_q && !table_came_q && !params_came_q) begin
      residual_q <= read_data_i[Used*ValueBytes*8-1:0];
    end
  end

  // ---- Lanes ----
  logic [Used-1:0] lane_valid;
  logic [Used*ValueBytes*8-1:0] lane_results;
  logic last_type_i8;
  assign last_type_i8 = (has_residual ? r_q.out_type_f : d_q.out_type_f) == cdl_npu_isa_pkg::TYPE_I8;
  for (genvar i = 0; i < Used; i++) begin : gen_lane
    logic signed [ValueWidth-1:0] residual, residual_byte;
    logic unused_ready;
    assign residual_byte = r_q.b_type_f == cdl_npu_isa_pkg::TYPE_U8 ? ValueWidth'($signed({1'b0, residual_q[i*8 +: 8]}))
                                                                    : ValueWidth'($signed(residual_q[i*8 +: 8]));
    assign residual = residual_wide ? ValueWidth'($signed(residual_q[i*8*ValueBytes +: 8*ValueBytes])) : residual_byte;
    cdl_npu_requant_lane #(.Int16(Int16), .TableBytes(Width)) u_lane (
      .clk_i, .rst_ni,
      .valid_i          (enters_q),
      .ready_o          (unused_ready),
      .acc_i            (largest_q[i*SumWidth +: SumWidth]),
      .record_i         (odd_enters_q ? records_q[(RecordBytes + 8*i)*8 +: 64] : records_q[8*i*8 +: 64]),
      .residual_value_i (residual),
      .wide_i           (wide),
      .zp_i             (ValueWidth'(joined(d_q.zp_more_f, d_q.zp_f))),
      .low_i            (ValueWidth'(joined(d_q.low_more_f, d_q.low_f))),
      .high_i           (ValueWidth'(joined(d_q.high_more_f, d_q.high_f))),
      .type_i8_i        (last_type_i8),
      .type_i16_i       (out_wide),
      .residual_i       (has_residual),
      .table_i          (has_table),
      .r_a_mult_i       (r_q.a_mult_f),
      .r_b_mult_i       (r_q.b_mult_f),
      .r_a_shift_i      (r_q.a_shift_f),
      .r_b_shift_i      (r_q.b_shift_f),
      .r_shift_i        (r_q.shift_f),
      .r_b_zp_i         (ValueWidth'(joined(r_q.b_zp_more_f, r_q.b_zp_f))),
      .r_zp_i           (ValueWidth'(joined(r_q.zp_more_f, r_q.zp_f))),
      .r_low_i          (ValueWidth'(joined(r_q.low_more_f, r_q.low_f))),
      .r_high_i         (ValueWidth'(joined(r_q.high_more_f, r_q.high_f))),
      .table_we_i       (read_came_q && table_came_q),
      .table_index_i    (index_came_q[TableIndex-1:0]),
      .table_entries_i  (read_data_i[Width*8-1:0]),
      .valid_o          (lane_valid[i]),
      .ready_i          (1'b1),
      .result_o         (lane_results[i*8*ValueBytes +: 8*ValueBytes])
    );
  end
  logic unused_lanes;
  assign unused_lanes = ^{lane_valid, acc_row, group_row, upper_came_q, place_upper};

  // Values and sums as they lie in the scratchpad.
  logic [Used*ValueBytes*8-1:0] values;
  logic [Width*8-1:0] stored;
  if (Int16) begin : gen_packed
    logic [Used*8-1:0] packed_bytes;
    logic [Width*8-1:0] narrow_sums, wide_sums;
    for (genvar i = 0; i < Used; i++) begin : gen_byte
      assign packed_bytes[i*8 +: 8] = lane_results[i*16 +: 8];
    end
    for (genvar i = 0; i < Width / 4; i++) begin : gen_narrow
      assign narrow_sums[i*32 +: 32] = i < Columns ? group_row[(i % Columns)*SumWidth +: 32] : '0;
    end
    if (Halves) begin : gen_halves
      assign wide_sums = upper_came_q ? 32'($signed(group_row[SumWidth-1:32])) : group_row[31:0];
    end else begin : gen_whole
      for (genvar i = 0; i < Width / 8; i++) begin : gen_wide
        assign wide_sums[i*64 +: 64] = i < Columns ? 64'($signed(group_row[(i % Columns)*SumWidth +: SumWidth])) : '0;
      end
    end
    assign values = out_wide ? lane_results : (Used*16)'(packed_bytes);
    assign stored = wide ? wide_sums : narrow_sums;
  end else begin : gen_as_they_are
    assign values = lane_results;
    assign stored = (Width*8)'(group_row);
  end

  // ---- What leaves: where it goes was known when the step was made ----
  localparam int unsigned PlaceWidth = 26 + AccRowWidth + 2*ColumnWidth;
  logic [PlaceWidth-1:0] place;
  logic [24:0] place_addr;
  logic [AccRowWidth-1:0] place_row;
  logic [ColumnWidth-1:0] place_column, place_count;
  logic place_upper;
  logic result_valid, result_in, unused_place_valid, unused_place_ready, unused_result_ready;
  logic [PortBytes*8-1:0] result_d, result;
  cdl_npu_fifo #(.Width(PlaceWidth), .Depth(Room)) u_places (
    .clk_i, .rst_ni,
    .valid_i(step && is_value && window_last),
    .ready_o(unused_place_ready),
    .data_i ({side_addr, AccRowWidth'(acc_row), column, count, upper}),
    .valid_o(unused_place_valid),
    .ready_i(sent),
    .data_o (place)
  );
  assign {place_addr, place_row, place_column, place_count, place_upper} = place;
  assign result_in = is_requant ? lane_valid[0] : is_result_came_q;
  assign result_d  = is_requant ? (PortBytes*8)'(values) : is_load ? read_data_i : (PortBytes*8)'(stored);
  cdl_npu_fifo #(.Width(PortBytes*8), .Depth(Room)) u_results (
    .clk_i, .rst_ni,
    .valid_i(result_in),
    .ready_o(unused_result_ready),
    .data_i (result_d),
    .valid_o(result_valid),
    .ready_i(is_load ? acc_write_ready_i : write_ready_i),
    .data_o (result)
  );
  logic [31:0] bytes;
  assign bytes         = is_requant ? 32'(place_count) << out_wide : 32'(place_count) << (wide && !Halves ? 3 : 2);
  assign write_valid_o = result_valid && !is_load;
  assign write_addr_o  = place_addr;
  assign write_data_o  = result;
  for (genvar i = 0; i < PortBytes; i++) begin : gen_bytes
    assign write_bytes_o[i] = 32'(i) < bytes;
  end
  logic [Columns*SumWidth-1:0] loaded;
  if (Halves) begin : gen_loaded_halves
    // The upper half comes behind the lower one, which is written with it once more.
    logic [31:0] lower_q;
    logic [SumWidth-1:0] sum;
    always_ff @(posedge clk_i) begin
      if (sent) begin
        lower_q <= result[31:0];
      end
    end
    assign sum    = place_upper ? SumWidth'({result[31:0], lower_q}) : SumWidth'($signed(result[31:0]));
    assign loaded = (Columns*SumWidth)'(sum);
  end else if (Int16) begin : gen_loaded
    for (genvar i = 0; i < Columns; i++) begin : gen_column
      logic [SumWidth-1:0] narrow, whole;
      assign narrow = i < Width / 4 ? SumWidth'($signed(result[(i % (Width / 4))*32 +: 32])) : '0;
      assign whole  = i < Width / 8 ? result[(i % (Width / 8))*64 +: SumWidth] : '0;
      assign loaded[i*SumWidth +: SumWidth] = wide ? whole : narrow;
    end
  end else begin : gen_loaded_as_it_is
    assign loaded = (Columns*32)'(result);
  end
  assign acc_write_valid_o = result_valid && is_load;
  assign acc_write_row_o   = place_row;
  assign acc_write_data_o  = loaded << (SumWidth * 32'(place_column));
  for (genvar i = 0; i < Columns; i++) begin : gen_columns
    assign acc_write_columns_o[i] = 32'(i) >= 32'(place_column) && 32'(i) < 32'(place_column) + 32'(place_count);
  end
  assign sent = result_valid && (is_load ? acc_write_ready_i : write_ready_i);
  // A sum of two words counts with its upper one.
  logic is_lower;
  assign is_lower = Halves && wide && !is_requant && !place_upper;
  assign values_o = sent && !is_lower ? 16'(place_count) : '0;

  // ---- Begin and end ----
  logic done_q, walked_q;
  assign done_o = done_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      done_q   <= 1'b0;
      walked_q <= 1'b0;
    end else begin
      done_q   <= 1'b0;
      walked_q <= !start && (walked_q || (step && last));
      unique case (state_q)
        StIdle:  if (insn_valid_i) state_q <= StSetup;
        StSetup: state_q <= StRun;
        StRun: begin
          if (walked_q && sent && under_way_q == 6'd1) begin
            state_q <= StIdle;
            done_q  <= 1'b1;
          end
        end
        default: state_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i && insn_ready_o) begin
      word_q <= word_i;
      d_q    <= desc_i;
      r_q    <= second_i;
    end
  end
endmodule
