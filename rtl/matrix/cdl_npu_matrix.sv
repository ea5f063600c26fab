// The matrix engine: one of ldw, mm, conv and dwconv at a time, from the cycle in which it takes the instruction to the one behind the last
// write. Index registers are added to the addresses already, and whoever sends the instruction has checked it.
//
// Two read ports of the scratchpad, each of Longer elements from any byte on. Data comes in the cycle behind the one in which valid and ready
// are both high. Accumulators are written without waiting: cdl_npu_accumulators gives this engine the first place.
//
// Weights that ldw loaded stay until the next conv.
module cdl_npu_matrix #(
  parameter int unsigned Rows     = 16,
  parameter int unsigned Columns  = 16,
  parameter bit          Int16    = 1'b0,         // activations of 16 bits, sums of 40
  parameter int unsigned AccRows  = 1024,
  localparam int unsigned Longer      = Rows > Columns ? Rows : Columns,
  localparam int unsigned ActBytes    = Int16 ? 2 : 1,
  localparam int unsigned ActWidth    = 8 * ActBytes + 1,
  localparam int unsigned SumWidth    = Int16 ? 40 : 32,
  localparam int unsigned RowWidth    = $clog2(Longer + 1),
  localparam int unsigned IndexWidth  = $clog2(Longer),
  localparam int unsigned AccRowWidth = $clog2(AccRows)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic                          insn_valid_i,
  output logic                          insn_ready_o,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  output logic                          done_o,           // in the cycle behind the last write

  output logic                          act_valid_o,
  input  logic                          act_ready_i,
  output logic [24:0]                   act_addr_o,
  output logic [Longer*ActBytes-1:0]    act_bytes_o,      // those that are needed: none where all is padding
  input  logic [Longer*ActBytes*8-1:0]  act_data_i,

  output logic                          wgt_valid_o,
  input  logic                          wgt_ready_i,
  output logic [24:0]                   wgt_addr_o,
  output logic [Longer-1:0]             wgt_bytes_o,
  input  logic [Longer*8-1:0]           wgt_data_i,

  output logic                          acc_valid_o,
  output logic [AccRowWidth-1:0]        acc_row_o,
  output logic                          acc_add_o,
  output logic                          acc_narrow_o,
  output logic [Columns-1:0]            acc_columns_o,
  output logic [Columns*SumWidth-1:0]   acc_sums_o,
  input  logic                          acc_writes_i,     // a row is written in this cycle

  // For the counters, in this cycle:
  output logic                          pass_o,           // a vector of activations is complete
  output logic [16:0]                   products_o,       // of that vector
  output logic                          tile_o            // a tile of weights is
);

  // The instruction that is being run. All of the words that this engine takes have the address of accumulators and activations in one place.
  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  cdl_npu_isa_pkg::desc_window_t d_q;
  cdl_npu_isa_pkg::insn_conv_t conv;
  cdl_npu_isa_pkg::insn_mm_t mm;
  cdl_npu_isa_pkg::insn_ldw_t ldw;
  assign conv = word_q;
  assign mm   = word_q;
  assign ldw  = word_q;
  // The header is for who sends the instruction, and each operation uses its own fields of the word.
  logic unused;
  assign unused = ^{conv, mm, ldw, d_q, d_in, act_last, a_zp_wide};

  logic is_mm, is_ldw, is_conv, is_depthwise;
  assign is_mm        = conv.opcode_f == cdl_npu_isa_pkg::OP_MM;
  assign is_ldw       = conv.opcode_f == cdl_npu_isa_pkg::OP_LDW;
  assign is_conv      = conv.opcode_f == cdl_npu_isa_pkg::OP_CONV;
  assign is_depthwise = conv.opcode_f == cdl_npu_isa_pkg::OP_DWCONV;

  typedef enum logic [1:0] {StIdle, StSetup, StRun} state_e;
  state_e state_q;
  logic loads_done, written_last;
  assign insn_ready_o = state_q == StIdle;

  // Weights that ldw left: rows and columns of what is in the shadow, and of what is active.
  logic [RowWidth-1:0] shadow_k_q, shadow_n_q, active_k_q, active_n_q, mm_k, mm_n;
  assign mm_k = mm.swap_f[0] ? shadow_k_q : active_k_q;
  assign mm_n = mm.swap_f[0] ? shadow_n_q : active_n_q;

  // Extents, not less one.
  logic start;
  logic [16:0] in_h, in_w, cin, cout, walk_cin, walk_cout;
  logic [12:0] out_h, out_w;
  logic [5:0] kernel_w;
  logic [6:0] planes;
  logic [6:0] taps;
  logic wide, flat;
  assign start    = state_q == StSetup;
  assign wide     = Int16 && d_q.a_type_f == cdl_npu_isa_pkg::TYPE_I16;
  assign in_h     = is_mm ? '1 : 17'(d_q.in_h_f) + 17'd1;
  assign in_w     = is_mm ? '1 : 17'(d_q.in_w_f) + 17'd1;
  assign out_h    = 13'(d_q.out_h_f) + 13'd1;
  assign out_w    = 13'(d_q.out_w_f) + 13'd1;
  assign cin      = 17'(d_q.cin_f) + 17'd1;
  assign cout     = is_depthwise ? cin : 17'(d_q.cout_f) + 17'd1;
  assign kernel_w = is_mm || is_ldw ? 6'd1 : 6'(d_q.kernel_w_f) + 6'd1;
  assign taps     = is_conv ? 7'(d_q.taps_f) + 7'd1 : 7'd1;
  assign planes   = is_conv || is_depthwise ? 7'(d_q.planes_f) + 7'd1 : 7'd1;
  assign flat     = is_conv && d_q.flat_f[0];
  assign walk_cin  = is_mm ? 17'(mm_k) : is_ldw ? 17'(ldw.k_f) + 17'd1 : cin;
  assign walk_cout = is_mm ? 17'(mm_n) : is_ldw ? 17'(ldw.n_f) + 17'd1 : cout;

  // Taps of the kernel, counted when the instruction comes, and terms of a sum. So are outputs: of accumulators there are at most 2^16 rows.
  cdl_npu_isa_pkg::desc_window_t d_in;
  logic [11:0] taps_in_q, taps_all;
  logic [26:0] terms, terms_q;
  logic [25:0] outs_in_q, outs;
  assign d_in     = desc_i;
  assign taps_all = is_mm || is_ldw ? 12'd1 : taps_in_q;
  assign outs     = outs_in_q * 26'(planes);
  assign terms    = is_depthwise ? 27'(taps_all) : 27'(taps_all) * 27'(walk_cin);
  always_ff @(posedge clk_i) begin
    if (insn_valid_i && insn_ready_o) begin
      taps_in_q <= (12'(d_in.kernel_h_f) + 12'd1) * (12'(d_in.kernel_w_f) + 12'd1);
      outs_in_q <= (26'(d_in.out_h_f) + 26'd1) * (26'(d_in.out_w_f) + 26'd1);
    end
    if (start) begin
      terms_q <= terms;
    end
  end

  // ---- Activations ----
  logic pass_ready, loaded_q, free_q, free_late_q, act_request, act_valid, act_take;
  logic [RowWidth-1:0] act_from, act_to;
  logic segment_first, segment_last, pass_first, pass_last, block_first, block_last, act_last;
  cdl_npu_im2col #(.Rows(Rows), .Columns(Columns)) u_im2col (
    .clk_i, .rst_ni,
    .start_i         (start && !is_ldw),
    .act_i           (is_mm ? mm.act_f : conv.act_f),
    .in_h_i          (in_h),
    .in_w_i          (in_w),
    .out_h_i         (out_h),
    .out_w_i         (out_w),
    .planes_i        (planes),
    .plane_rows_i    (13'(d_q.plane_rows_f) + 13'd1),
    .cin_i           (walk_cin),
    .cout_i          (walk_cout),
    .terms_i         (terms),
    .kernel_w_i      (kernel_w),
    .stride_h_i      (5'(d_q.stride_h_f) + 5'd1),
    .stride_w_i      (5'(d_q.stride_w_f) + 5'd1),
    .dilation_h_i    (6'(d_q.dilation_h_f) + 6'd1),
    .dilation_w_i    (6'(d_q.dilation_w_f) + 6'd1),
    .pad_top_i       (is_mm ? '0 : d_q.pad_top_f),
    .pad_left_i      (is_mm ? '0 : d_q.pad_left_f),
    .taps_i          (taps),
    .flat_i          (flat),
    .row_stride_i    (d_q.row_stride_f),
    .pixel_stride_i  (d_q.pixel_stride_f),
    .wide_i          (wide),
    .depthwise_i     (is_depthwise),
    .pass_ready_i    (pass_ready),
    .req_valid_o     (act_request),
    .req_ready_i     (act_take),
    .req_addr_o      (act_addr_o),
    .valid_from_o    (act_from),
    .valid_to_o      (act_to),
    .segment_first_o (segment_first),
    .segment_last_o  (segment_last),
    .pass_first_o    (pass_first),
    .pass_last_o     (pass_last),
    .block_first_o   (block_first),
    .block_last_o    (block_last),
    .products_o      (products_o),
    .last_o          (act_last)
  );

  // ---- Weights ----
  logic wgt_request, wgt_step, wgt_take, tile_first, tile_last, wgt_last;
  logic [RowWidth-1:0] wgt_count;
  logic [IndexWidth-1:0] wgt_index;
  cdl_npu_weight_walker #(.Rows(Rows), .Columns(Columns)) u_weights (
    .clk_i, .rst_ni,
    .start_i        (start && !is_mm),
    .wgt_i          (is_ldw ? ldw.wgt_f : conv.wgt_f),
    .cin_i          (flat ? terms_q : 27'(walk_cin)),
    .cout_i         (walk_cout),
    .taps_all_i     (flat ? 12'd1 : taps_all),
    .taps_i         (taps),
    .weight_pitch_i (d_q.weight_pitch_f),
    .transposed_i   (d_q.transposed_f[0]),
    .depthwise_i    (is_depthwise),
    .outs_i         (outs),
    .free_i         (free_q),
    .req_valid_o    (wgt_request),
    .step_o         (wgt_step),
    .req_ready_i    (wgt_take),
    .req_addr_o     (wgt_addr_o),
    .valid_o        (wgt_count),
    .index_o        (wgt_index),
    .tile_first_o   (tile_first),
    .tile_last_o    (tile_last),
    .last_o         (wgt_last)
  );

  for (genvar i = 0; i < Longer*ActBytes; i++) begin : gen_act_bytes
    logic [31:0] element;
    assign element        = 32'(i) >> wide;
    assign act_bytes_o[i] = element >= 32'(act_from) && element < 32'(act_to);
  end
  for (genvar i = 0; i < Longer; i++) begin : gen_wgt_bytes
    assign wgt_bytes_o[i] = 32'(i) < 32'(wgt_count);
  end

  // Depthwise both sides go together: the one that was served first waits for the other.
  logic act_served_q, wgt_served_q, act_grant, wgt_grant, pair;
  assign act_valid   = act_request && !act_served_q;
  assign act_valid_o = act_valid;
  assign wgt_valid_o = wgt_request && !wgt_served_q;
  assign act_grant   = act_valid && act_ready_i;
  assign wgt_grant   = wgt_valid_o && wgt_ready_i;
  assign pair        = (act_grant || act_served_q) && (wgt_grant || wgt_served_q);
  assign act_take    = is_depthwise ? pair : act_ready_i;
  assign wgt_take    = is_depthwise ? pair : wgt_ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_served_q <= 1'b0;
      wgt_served_q <= 1'b0;
    end else begin
      act_served_q <= is_depthwise && (act_served_q || act_grant) && !pair;
      wgt_served_q <= is_depthwise && (wgt_served_q || wgt_grant) && !pair;
    end
  end

  // A tile is in the shadow when its last row was sent; the shadow is free for the next one when a vector swapped it in. What is held
  // at the array's edge until then is the first row alone: it enters two cycles later, where the swap is.
  logic swaps, act_moves;
  assign act_moves  = act_request && act_take;
  assign swaps      = act_moves && segment_last && pass_first && is_conv;
  assign pass_ready = is_mm || is_depthwise || loaded_q;
  assign pass_o     = act_moves && (segment_last || is_depthwise);
  assign tile_o     = is_depthwise ? act_moves && segment_first && pass_first : wgt_step && tile_last;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loaded_q    <= 1'b0;
      free_q      <= 1'b0;
      free_late_q <= 1'b0;
    end else begin
      free_late_q <= free_q;
      if (start) begin
        loaded_q    <= 1'b0;
        free_q      <= 1'b1;
        free_late_q <= 1'b1;
      end else if (wgt_step && tile_last) begin
        loaded_q <= 1'b1;
        free_q   <= 1'b0;
      end else if (swaps) begin
        loaded_q <= 1'b0;
        free_q   <= 1'b1;
      end
    end
  end

  // ---- The edge of the array ----
  // One cycle after a request its data comes and is unpacked; the cycle behind that it enters.
  localparam int unsigned Tag = 3;
  logic act_came_q, first_came_q, act_enters_q, swap_came_q, swap_enters_q;
  logic [RowWidth-1:0] from_came_q, to_came_q;
  logic [Tag-1:0] tag_came_q, tag_enters_q;
  logic vector_came_q, depthwise_came_q, depthwise_enters_q, depthwise_first_q, depthwise_last_q;
  logic [Longer*ActWidth-1:0] act_unpacked, act_q;
  logic signed [16:0] a_zp_wide;
  logic signed [ActWidth-1:0] a_zp;
  assign a_zp_wide = {d_q.a_zp_more_f ^ {8{d_q.a_zp_f[8]}}, d_q.a_zp_f};
  assign a_zp      = ActWidth'(a_zp_wide);
  cdl_npu_unpack #(.Elements(Longer), .ElementBytes(ActBytes)) u_unpack_act (
    .data_i    (act_data_i),
    .unsigned_i(d_q.a_type_f == cdl_npu_isa_pkg::TYPE_U8),
    .wide_i    (wide),
    .zp_i      (a_zp),
    .from_i    (from_came_q),
    .to_i      (to_came_q),
    .values_o  (act_unpacked)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_came_q         <= 1'b0;
      vector_came_q      <= 1'b0;
      depthwise_came_q   <= 1'b0;
      act_enters_q       <= 1'b0;
      depthwise_enters_q <= 1'b0;
    end else begin
      act_came_q         <= act_grant;
      vector_came_q      <= act_moves && segment_last && !is_depthwise;
      depthwise_came_q   <= act_moves && is_depthwise;
      act_enters_q       <= vector_came_q;
      depthwise_enters_q <= depthwise_came_q;
    end
  end
  logic segment_last_q, depthwise_enters_first_q;
  always_ff @(posedge clk_i) begin
    if (act_grant) begin
      from_came_q  <= act_from;
      to_came_q    <= act_to;
      first_came_q <= segment_first || is_depthwise;
    end
    if (act_moves) begin
      depthwise_first_q <= segment_first;
      segment_last_q    <= segment_last;
      swap_came_q       <= pass_first && (is_conv || mm.swap_f[0]);
      tag_came_q        <= {block_first, pass_last, block_last};
    end
    if (act_came_q) begin
      act_q <= first_came_q ? act_unpacked : act_q | act_unpacked;
    end
    {swap_enters_q, tag_enters_q} <= {swap_came_q, tag_came_q};
    {depthwise_enters_first_q, depthwise_last_q} <= {depthwise_first_q, segment_last_q};
  end

  logic wgt_came_q, wgt_stage_q, held, load, load_read_q;
  logic [RowWidth-1:0] count_came_q;
  logic [IndexWidth-1:0] index_came_q, index_stage_q;
  logic tile_first_stage_q, tile_first_came_q;
  logic [Longer*9-1:0] wgt_unpacked, wgt_q;
  cdl_npu_unpack #(.Elements(Longer), .ElementBytes(1)) u_unpack_weight (
    .data_i    (wgt_data_i),
    .unsigned_i(d_q.w_type_f == cdl_npu_isa_pkg::TYPE_U8),
    .wide_i    (1'b0),
    .zp_i      (d_q.w_zp_f),
    .from_i    ('0),
    .to_i      (count_came_q),
    .values_o  (wgt_unpacked)
  );
  assign held = tile_first_stage_q && !free_late_q;
  assign load = wgt_stage_q && !held && !is_depthwise;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wgt_came_q  <= 1'b0;
      load_read_q <= 1'b0;
      wgt_stage_q <= 1'b0;
    end else begin
      wgt_came_q  <= is_depthwise ? wgt_grant : wgt_step;
      load_read_q <= wgt_step;
      wgt_stage_q <= wgt_came_q || (wgt_stage_q && held);
    end
  end
  always_ff @(posedge clk_i) begin
    if (is_depthwise ? wgt_grant : wgt_step) begin
      count_came_q      <= wgt_count;
      index_came_q      <= wgt_index;
      tile_first_came_q <= tile_first;
    end
    if (wgt_came_q) begin
      wgt_q              <= wgt_unpacked;
      index_stage_q      <= index_came_q;
      tile_first_stage_q <= tile_first_came_q;
    end
  end

  logic array_valid;
  logic [Columns*SumWidth-1:0] array_sums, depthwise_sums;
  logic [Tag-1:0] array_tag;
  logic depthwise_valid;
  cdl_npu_systolic_array #(
    .Rows(Rows), .Columns(Columns), .ActWidth(ActWidth), .WeightWidth(9), .SumWidth(SumWidth)
  ) u_array (
    .clk_i, .rst_ni,
    .valid_i        (act_enters_q),
    .swap_i         (swap_enters_q),
    .act_i          (act_q[Rows*ActWidth-1:0]),
    .load_i         (load),
    .load_column_i  (d_q.transposed_f[0]),
    .load_index_i   (index_stage_q),
    .load_weights_i (wgt_q),
    .valid_o        (array_valid),
    .sum_o          (array_sums)
  );
  cdl_npu_delay #(.Width(Tag), .Depth(Rows + Columns - 1)) u_tag (
    .clk_i, .rst_ni, .data_i(tag_enters_q), .data_o(array_tag)
  );
  cdl_npu_depthwise #(
    .Columns(Columns), .ActWidth(ActWidth), .WeightWidth(9), .SumWidth(SumWidth)
  ) u_depthwise (
    .clk_i, .rst_ni,
    .valid_i (depthwise_enters_q),
    .first_i (depthwise_enters_first_q),
    .last_i  (depthwise_last_q),
    .act_i   (act_q[Columns*ActWidth-1:0]),
    .weight_i(wgt_q[Columns*9-1:0]),
    .valid_o (depthwise_valid),
    .sum_o   (depthwise_sums)
  );

  // ---- Accumulators: sums leave in the order of the walk ----
  logic [AccRowWidth-1:0] acc_block_q, acc_at_q;
  logic [16:0] columns_left_q;
  logic [25:0] outs_left_q;
  logic sums_valid, sums_first, sums_pass_end, sums_block_end, sums_last;
  assign sums_valid     = is_depthwise ? depthwise_valid : array_valid;
  assign sums_first     = is_depthwise || array_tag[2];
  assign sums_pass_end  = is_depthwise ? outs_left_q == 26'd1 : array_tag[1];
  assign sums_block_end = is_depthwise ? outs_left_q == 26'd1 : array_tag[1] && array_tag[0];
  assign sums_last      = sums_valid && sums_block_end && columns_left_q <= 17'(Columns);
  assign acc_valid_o    = sums_valid;
  assign acc_row_o      = acc_at_q;
  assign acc_add_o      = !sums_first || (is_mm ? mm.accumulate_f[0] : conv.accumulate_f[0]);
  assign acc_narrow_o   = !wide;
  assign acc_sums_o     = is_depthwise ? depthwise_sums : array_sums;
  for (genvar c = 0; c < Columns; c++) begin : gen_columns
    assign acc_columns_o[c] = columns_left_q > 17'(c);
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      acc_block_q    <= AccRowWidth'(conv.acc_f);
      acc_at_q       <= AccRowWidth'(conv.acc_f);
      columns_left_q <= walk_cout;
      outs_left_q    <= outs;
    end else if (sums_valid) begin
      acc_at_q    <= sums_pass_end ? acc_block_q : acc_at_q + AccRowWidth'(1);
      outs_left_q <= outs_left_q - 26'd1;
      if (sums_block_end) begin
        acc_block_q    <= acc_block_q + AccRowWidth'(d_q.acc_pitch_f);
        acc_at_q       <= acc_block_q + AccRowWidth'(d_q.acc_pitch_f);
        columns_left_q <= columns_left_q - 17'(Columns);
        outs_left_q    <= outs;
      end
    end
  end

  // ---- Begin and end ----
  logic last_sums_q, last_write_q, sent_q, done_q;
  assign loads_done   = is_ldw && load && sent_q && !load_read_q && !wgt_came_q;
  assign written_last = last_write_q && acc_writes_i;
  assign done_o       = done_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      last_sums_q  <= 1'b0;
      last_write_q <= 1'b0;
      sent_q       <= 1'b0;
      done_q       <= 1'b0;
    end else begin
      done_q       <= 1'b0;
      last_sums_q  <= sums_last;
      last_write_q <= last_sums_q;
      if (start) begin
        sent_q <= 1'b0;
      end else if (wgt_step && wgt_last) begin
        sent_q <= 1'b1;
      end
      unique case (state_q)
        StIdle:  if (insn_valid_i) state_q <= StSetup;
        StSetup: state_q <= StRun;
        StRun: begin
          if (written_last || loads_done) begin
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
    end
    if (start && is_ldw) begin
      shadow_k_q <= RowWidth'(ldw.k_f) + RowWidth'(1);
      shadow_n_q <= RowWidth'(ldw.n_f) + RowWidth'(1);
    end
    if (done_q && is_mm && mm.swap_f[0]) begin
      active_k_q <= shadow_k_q;
      active_n_q <= shadow_n_q;
    end
  end
endmodule
