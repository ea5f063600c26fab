// The vector engine: one of vbinary, vunary, vreduce, vselect and vpool at a time, from the cycle in which it takes the instruction to the one
// behind the last write. Index registers are added to the addresses already, and whoever sends the instruction has checked it. Elements of i8, u8
// and i32, with Int16 of i16 too.
//
// Two read ports of the scratchpad and one write port, of Width bytes each from any byte on. A cycle takes as many elements as there are lanes, or
// as the widest of the operands and the result has in Width bytes. What was read stands there in the cycle behind the one in which valid and
// ready are both high. Nothing enters the lanes that has no room behind them.
module cdl_npu_vector #(
  parameter int unsigned Lanes = 16,               // a power of two
  parameter int unsigned Width = 16,               // bytes of a word of the scratchpad, 4 to 256
  parameter bit          Int16 = 1'b0
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               insn_valid_i,
  output logic               insn_ready_o,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] second_i,
  output logic               done_o,               // in the cycle behind the last write

  output logic               a_valid_o,
  input  logic               a_ready_i,
  output logic [24:0]        a_addr_o,
  output logic [Width-1:0]   a_bytes_o,            // those that are needed
  input  logic [Width*8-1:0] a_data_i,

  output logic               b_valid_o,
  input  logic               b_ready_i,
  output logic [24:0]        b_addr_o,
  output logic [Width-1:0]   b_bytes_o,
  input  logic [Width*8-1:0] b_data_i,

  output logic               write_valid_o,
  input  logic               write_ready_i,
  output logic [24:0]        write_addr_o,
  output logic [Width-1:0]   write_claim_o,        // of all elements, so that time depends on no data
  output logic [Width-1:0]   write_bytes_o,        // of those that are chosen
  output logic [Width*8-1:0] write_data_o,

  output logic [15:0]        values_o              // that leave in this cycle, for the counters
);

  localparam int unsigned Used       = Lanes < Width ? Lanes : Width;
  localparam int unsigned CountWidth = $clog2(Used + 1);
  localparam int unsigned WidthLog2  = $clog2(Width);
  localparam int unsigned UsedLog2   = $clog2(Used);
  localparam int unsigned EntryWidth = Int16 ? 16 : 8;
  localparam int unsigned ZeroWidth  = Int16 ? 17 : 9;
  localparam int unsigned TableWords     = (256 + Width - 1) / Width;
  localparam int unsigned WideTableWords = (2 * 513 + Width - 1) / Width;
  localparam int unsigned MostWords  = Int16 ? WideTableWords : TableWords;
  localparam int unsigned TableIndex = MostWords > 1 ? $clog2(MostWords) : 1;

  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_q;
  cdl_npu_isa_pkg::insn_vbinary_t insn;
  cdl_npu_isa_pkg::desc_lanes_t l;
  cdl_npu_isa_pkg::desc_pooling_t p;
  cdl_npu_isa_pkg::desc_rescale_t r_q;
  assign insn = word_q;
  assign l    = desc_q;
  assign p    = desc_q;
  // The header is for who sends the instruction; a descriptor is one of two kinds, and has bounds of 16 bits with Int16 alone. A word may be
  // wider than all lanes are.
  logic unused;
  assign unused = ^{insn, l, p, r_q, a_data_i};

  logic is_binary, is_unary, is_reduce, is_select, is_pool, has_table, has_b;
  assign is_binary = insn.opcode_f == cdl_npu_isa_pkg::OP_VBINARY;
  assign is_unary  = insn.opcode_f == cdl_npu_isa_pkg::OP_VUNARY;
  assign is_reduce = insn.opcode_f == cdl_npu_isa_pkg::OP_VREDUCE;
  assign is_select = insn.opcode_f == cdl_npu_isa_pkg::OP_VSELECT;
  assign is_pool   = insn.opcode_f == cdl_npu_isa_pkg::OP_VPOOL;
  assign has_table = is_unary && insn.fn_f == cdl_npu_isa_pkg::UNARY_TABLE;
  assign has_b     = is_binary || is_select;

  function automatic logic [1:0] log2Of(input logic [2:0] kind);
    log2Of = kind == cdl_npu_isa_pkg::TYPE_I32 ? 2'd2 : Int16 && kind == cdl_npu_isa_pkg::TYPE_I16 ? 2'd1 : 2'd0;
  endfunction
  function automatic logic signed [16:0] joined(input logic [7:0] more, input logic [8:0] others);
    joined = {more ^ {8{others[8]}}, others};
  endfunction
  logic [2:0] a_type, b_type, out_type;
  logic [1:0] a_log2, b_log2, out_log2, some, widest;
  logic [3:0] chunk_log2;
  assign a_type   = is_pool ? p.a_type_f : l.a_type_f;
  assign b_type   = l.b_type_f;
  assign out_type = is_pool ? p.out_type_f : l.out_type_f;
  assign a_log2   = log2Of(a_type);
  assign b_log2   = log2Of(b_type);
  assign out_log2 = log2Of(out_type);
  assign some     = a_log2 | (has_b && !l.b_scalar_f[0] ? b_log2 : 2'd0) | (is_reduce ? 2'd0 : out_log2);
  assign widest   = {some[1], some[0] && !some[1]};
  assign chunk_log2 = 4'(WidthLog2) - 4'(widest) <= 4'(UsedLog2) ? 4'(WidthLog2) - 4'(widest) : 4'(UsedLog2);

  typedef enum logic [1:0] {StIdle, StSetup, StTable, StRun} state_e;
  state_e state_q;
  logic start;
  assign start        = state_q == StSetup;
  assign insn_ready_o = state_q == StIdle;

  // ---- The table ----
  logic [8:0] table_q;                             // words
  logic table_ends, table_step, table_wide;
  assign table_step = state_q == StTable && b_ready_i;
  assign table_wide = Int16 && a_type == cdl_npu_isa_pkg::TYPE_I16;
  assign table_ends = table_q == (table_wide ? 9'(WideTableWords - 1) : 9'(TableWords - 1));

  // ---- The walk ----
  logic walk_start, lanes_active, pool_active, active, step, first, last_of_run, last;
  logic [24:0] lanes_a, pool_a, lanes_out, pool_out, out_addr, lanes_b;
  logic [CountWidth-1:0] lanes_count, pool_count, count;
  logic lanes_first, pool_first, lanes_ends, pool_ends, lanes_last, pool_last;
  assign walk_start = (start && !has_table) || (table_step && table_ends);
  cdl_npu_lanes_walker #(.Lanes(Used)) u_lanes_walker (
    .clk_i, .rst_ni,
    .start_i       (walk_start && !is_pool),
    .a_i           (insn.a_f),
    .b_i           (insn.b_f),
    .out_i         (insn.dst_f),
    .run_i         (17'(l.run_f) + 17'd1),
    .len1_i        (17'(l.len1_f) + 17'd1),
    .len2_i        (17'(l.len2_f) + 17'd1),
    .a_stride1_i   (l.a_stride1_f),
    .a_stride2_i   (l.a_stride2_f),
    .b_stride1_i   (l.b_stride1_f),
    .b_stride2_i   (l.b_stride2_f),
    .out_stride1_i (l.out_stride1_f),
    .out_stride2_i (l.out_stride2_f),
    .chunk_log2_i  (chunk_log2),
    .a_log2_i      (a_log2),
    .b_log2_i      (b_log2),
    .out_log2_i    (out_log2),
    .b_scalar_i    (l.b_scalar_f[0]),
    .reduce_i      (is_reduce),
    .active_o      (lanes_active),
    .step_i        (step),
    .a_addr_o      (lanes_a),
    .b_addr_o      (lanes_b),
    .out_addr_o    (lanes_out),
    .count_o       (lanes_count),
    .first_o       (lanes_first),
    .last_of_run_o (lanes_ends),
    .last_o        (lanes_last)
  );
  cdl_npu_pool_walker #(.Lanes(Used)) u_pool_walker (
    .clk_i, .rst_ni,
    .start_i            (walk_start && is_pool),
    .a_i                (insn.a_f),
    .out_i              (insn.dst_f),
    .in_h_i             (13'(p.in_h_f) + 13'd1),
    .in_w_i             (13'(p.in_w_f) + 13'd1),
    .out_h_i            (13'(p.out_h_f) + 13'd1),
    .out_w_i            (13'(p.out_w_f) + 13'd1),
    .channels_i         (17'(p.channels_f) + 17'd1),
    .kernel_h_i         (9'(p.kernel_h_f) + 9'd1),
    .kernel_w_i         (9'(p.kernel_w_f) + 9'd1),
    .stride_h_i         (9'(p.stride_h_f) + 9'd1),
    .stride_w_i         (9'(p.stride_w_f) + 9'd1),
    .pad_top_i          (p.pad_top_f),
    .pad_left_i         (p.pad_left_f),
    .in_row_stride_i    (p.in_row_stride_f),
    .in_pixel_stride_i  (p.in_pixel_stride_f),
    .out_row_stride_i   (p.out_row_stride_f),
    .out_pixel_stride_i (p.out_pixel_stride_f),
    .chunk_log2_i       (chunk_log2),
    .a_log2_i           (a_log2),
    .out_log2_i         (out_log2),
    .active_o           (pool_active),
    .step_i             (step),
    .a_addr_o           (pool_a),
    .out_addr_o         (pool_out),
    .count_o            (pool_count),
    .first_o            (pool_first),
    .last_of_window_o   (pool_ends),
    .last_o             (pool_last)
  );
  assign active      = is_pool ? pool_active : lanes_active;
  assign count       = is_pool ? pool_count : lanes_count;
  assign first       = is_pool ? pool_first : lanes_first;
  assign last_of_run = is_pool ? pool_ends : lanes_ends;
  assign last        = is_pool ? pool_last : lanes_last;
  assign out_addr    = is_pool ? pool_out : lanes_out;

  // A step goes when all that it reads is granted, in the same cycle or one after the other, and its result has room.
  localparam int unsigned Room = 32;
  logic [5:0] under_way_q;
  logic may, makes_result, a_served_q, b_served_q, sent;
  assign makes_result = last_of_run || !(is_pool || is_reduce);
  assign may          = active && under_way_q != 6'(Room);
  assign a_valid_o    = may && !a_served_q;
  assign a_addr_o     = is_pool ? pool_a : lanes_a;
  assign b_valid_o    = state_q == StTable || (may && has_b && !b_served_q);
  assign b_addr_o     = state_q == StTable ? insn.b_f + 25'(table_q) * 25'(Width) : lanes_b;
  // The last word of a table is a part of one.
  logic [31:0] a_needed, b_needed, b_count, table_left;
  assign a_needed   = 32'(count) << a_log2;
  assign table_left = (table_wide ? 32'd1026 : 32'd256) - 32'(table_q) * Width;
  assign b_count    = l.b_scalar_f[0] ? 32'd1 : 32'(count);
  assign b_needed   = state_q == StTable ? table_left : b_count << b_log2;
  for (genvar i = 0; i < Width; i++) begin : gen_needed
    assign a_bytes_o[i] = 32'(i) < a_needed;
    assign b_bytes_o[i] = 32'(i) < b_needed;
  end
  assign step         = may && (a_served_q || a_ready_i) && (!has_b || b_served_q || b_ready_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_served_q  <= 1'b0;
      b_served_q  <= 1'b0;
      under_way_q <= '0;
    end else begin
      a_served_q  <= may && !step && (a_served_q || a_ready_i);
      b_served_q  <= may && !step && has_b && (b_served_q || b_ready_i);
      under_way_q <= under_way_q + 6'(step && makes_result) - 6'(sent);
    end
  end

  // ---- One cycle behind: data comes; the cycle behind that it enters the lanes ----
  logic a_came_q, b_came_q, step_came_q, enters_q, first_came_q, last_came_q, first_q, last_q, table_came_q;
  logic [CountWidth-1:0] count_came_q, count_q;
  logic [TableIndex-1:0] table_index_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_came_q     <= 1'b0;
      b_came_q     <= 1'b0;
      step_came_q  <= 1'b0;
      enters_q     <= 1'b0;
      table_came_q <= 1'b0;
    end else begin
      a_came_q     <= a_valid_o && a_ready_i;
      b_came_q     <= b_valid_o && b_ready_i;
      step_came_q  <= step;
      enters_q     <= step_came_q;
      table_came_q <= table_step;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      {first_came_q, last_came_q, count_came_q} <= {first, last_of_run, count};
    end
    {first_q, last_q, count_q} <= {first_came_q, last_came_q, count_came_q};
    table_index_q <= TableIndex'(table_q);
  end

  logic [Used*32-1:0] a_q, b_q;
  logic [Used*EntryWidth-1:0] looked_up, entries, nexts;
  cdl_npu_table #(.Int16(Int16), .Bytes(Width), .Ports(Used)) u_table (
    .clk_i,
    .write_i   (table_came_q),
    .index_i   (table_index_q),
    .word_i    (b_data_i),
    .wide_i    (table_wide),
    .signed_i  (a_type == cdl_npu_isa_pkg::TYPE_I8),
    .values_i  (looked_up),
    .entries_o (entries),
    .nexts_o   (nexts)
  );
  logic [Used-1:0] lane_valid;
  logic [Used*32-1:0] results;
  logic signed [ZeroWidth-1:0] low, high;
  assign low  = ZeroWidth'(joined(r_q.low_more_f, r_q.low_f));
  assign high = ZeroWidth'(joined(r_q.high_more_f, r_q.high_f));
  function automatic logic [31:0] widened(input logic [2:0] kind, input logic [7:0] bits8, input logic [15:0] bits16, input logic [31:0] bits32);
    widened = kind == cdl_npu_isa_pkg::TYPE_I32          ? bits32
            : Int16 && kind == cdl_npu_isa_pkg::TYPE_I16 ? 32'($signed(bits16))
            : kind == cdl_npu_isa_pkg::TYPE_U8           ? 32'(bits8) : 32'($signed(bits8));
  endfunction
  for (genvar i = 0; i < Used; i++) begin : gen_lane
    // Element i of a word, widened. A scalar is element 0 for all.
    logic [7:0] a_byte, b_byte;
    logic [15:0] a_half, b_half;
    logic [31:0] a, b, a_word, b_word, b_scalar;
    assign a_byte = a_data_i[i*8 +: 8];
    assign b_byte = b_data_i[i*8 +: 8];
    if (Int16 && 2*i + 2 <= Width) begin : gen_half
      assign a_half = a_data_i[i*16 +: 16];
      assign b_half = b_data_i[i*16 +: 16];
    end else begin : gen_no_half
      assign a_half = '0;
      assign b_half = '0;
    end
    if (4*i + 4 <= Width) begin : gen_word
      assign a_word = a_data_i[i*32 +: 32];
      assign b_word = b_data_i[i*32 +: 32];
    end else begin : gen_no_word
      assign a_word = '0;
      assign b_word = '0;
    end
    assign a        = widened(a_type, a_byte, a_half, a_word);
    assign b        = widened(b_type, b_byte, b_half, b_word);
    assign b_scalar = widened(b_type, b_data_i[7:0], b_data_i[15:0], b_data_i[31:0]);
    always_ff @(posedge clk_i) begin
      if (a_came_q) begin
        a_q[i*32 +: 32] <= a;
      end
      if (b_came_q) begin
        b_q[i*32 +: 32] <= l.b_scalar_f[0] && has_b ? b_scalar : b;
      end
    end

    assign looked_up[i*EntryWidth +: EntryWidth] = a_q[i*32 +: EntryWidth];
    cdl_npu_vector_lane #(.Int16(Int16)) u_lane (
      .clk_i, .rst_ni,
      .valid_i     (enters_q && !is_reduce),
      .a_i         (is_select ? b_q[i*32 +: 32] : a_q[i*32 +: 32]),
      .b_i         (b_q[i*32 +: 32]),
      .entry_i     (entries[i*EntryWidth +: EntryWidth]),
      .next_i      (nexts[i*EntryWidth +: EntryWidth]),
      .table_wide_i(has_table && table_wide),
      .is_binary_i (is_binary),
      .is_unary_i  (is_unary),
      .is_pool_i   (is_pool),
      .fn_i        (insn.fn_f),
      .first_i     (first_q),
      .last_i      (last_q),
      .a_mult_i    (r_q.a_mult_f),
      .b_mult_i    (r_q.b_mult_f),
      .a_shift_i   (r_q.a_shift_f),
      .b_shift_i   (r_q.b_shift_f),
      .shift_i     (r_q.shift_f),
      .a_zp_i      (ZeroWidth'(joined(r_q.a_zp_more_f, r_q.a_zp_f))),
      .b_zp_i      (ZeroWidth'(joined(r_q.b_zp_more_f, r_q.b_zp_f))),
      .zp_i        (ZeroWidth'(joined(r_q.zp_more_f, r_q.zp_f))),
      .low_i       (out_type == cdl_npu_isa_pkg::TYPE_I32 ? 32'sh8000_0000 : 32'(low)),
      .high_i      (out_type == cdl_npu_isa_pkg::TYPE_I32 ? 32'sh7fff_ffff : 32'(high)),
      .valid_o     (lane_valid[i]),
      .result_o    (results[i*32 +: 32])
    );
  end
  logic unused_valid;
  assign unused_valid = ^lane_valid;

  logic reduced_valid, reduced_late;
  logic [31:0] reduced, reduced_result;
  cdl_npu_reduce #(.Lanes(Used)) u_reduce (
    .clk_i, .rst_ni,
    .valid_i  (enters_q && is_reduce),
    .first_i  (first_q),
    .last_i   (last_q),
    .count_i  (count_q),
    .values_i (a_q),
    .fn_i     (insn.fn_f),
    .valid_o  (reduced_valid),
    .result_o (reduced)
  );
  // As far as a lane is long.
  cdl_npu_delay #(.Width(33), .Depth(4)) u_reduced (
    .clk_i, .rst_ni, .data_i({reduced_valid, reduced}), .data_o({reduced_late, reduced_result})
  );

  // Which elements a select takes, beside the lanes.
  logic [Used-1:0] chosen, chosen_late;
  for (genvar i = 0; i < Used; i++) begin : gen_chosen
    assign chosen[i] = !is_select || a_q[i*32 +: 8] != '0;
  end
  cdl_npu_delay #(.Width(Used), .Depth(5)) u_chosen (.clk_i, .rst_ni, .data_i(chosen), .data_o(chosen_late));

  // ---- What leaves: where it goes was known when the step was made ----
  logic [24:0] place_addr;
  logic [CountWidth-1:0] place_count;
  logic result_valid, result_in, unused_place_valid, unused_place_ready, unused_result_ready;
  logic [Width*8-1:0] packed_results, result;
  logic [Used-1:0] result_chosen;
  cdl_npu_fifo #(.Width(25 + CountWidth), .Depth(Room)) u_places (
    .clk_i, .rst_ni,
    .valid_i (step && makes_result),
    .ready_o (unused_place_ready),
    .data_i  ({out_addr, is_reduce ? CountWidth'(1) : count}),
    .valid_o (unused_place_valid),
    .ready_i (sent),
    .data_o  ({place_addr, place_count})
  );
  logic [Used*32-1:0] values;
  assign values = is_reduce ? (Used*32)'(reduced_result) : results;
  always_comb begin
    packed_results = '0;
    for (int unsigned i = 0; i < Used; i++) begin
      if (out_log2 == 2'd0) begin
        packed_results[i*8 +: 8] = values[i*32 +: 8];
      end else if (Int16 && out_log2 == 2'd1 && 2*i + 2 <= Width) begin
        packed_results[(2*i % Width)*8 +: 16] = values[i*32 +: 16];
      end else if (out_log2 == 2'd2 && 4*i + 4 <= Width) begin
        packed_results[(4*i % Width)*8 +: 32] = values[i*32 +: 32];
      end
    end
  end
  assign result_in = is_reduce ? reduced_late : lane_valid[0];
  cdl_npu_fifo #(.Width(Width*8 + Used), .Depth(Room)) u_results (
    .clk_i, .rst_ni,
    .valid_i (result_in),
    .ready_o (unused_result_ready),
    .data_i  ({chosen_late, packed_results}),
    .valid_o (result_valid),
    .ready_i (write_ready_i),
    .data_o  ({result_chosen, result})
  );
  assign write_valid_o = result_valid;
  assign write_addr_o  = place_addr;
  assign write_data_o  = result;
  assign sent          = result_valid && write_ready_i;
  assign values_o      = sent ? 16'(place_count) : '0;
  for (genvar i = 0; i < Width; i++) begin : gen_bytes
    logic [31:0] element;
    assign element = 32'(i) >> out_log2;
    assign write_claim_o[i] = element < 32'(place_count);
    assign write_bytes_o[i] = element < 32'(place_count) && (is_reduce || 1'(result_chosen >> element));
  end

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
        StSetup: state_q <= has_table ? StTable : StRun;
        StTable: if (table_step && table_ends) state_q <= StRun;
        default: begin
          if (walked_q && sent && under_way_q == 6'd1) begin
            state_q <= StIdle;
            done_q  <= 1'b1;
          end
        end
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (insn_valid_i && insn_ready_o) begin
      word_q <= word_i;
      desc_q <= desc_i;
      r_q    <= second_i;
    end
    if (start) begin
      table_q <= '0;
    end else if (table_step) begin
      table_q <= table_q + 9'd1;
    end
  end
endmodule
