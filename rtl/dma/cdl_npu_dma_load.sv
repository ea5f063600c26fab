// A load channel: one of load, copy and fill at a time, from the cycle in which it takes the instruction to the one behind the last write. Index
// registers are added to the addresses already, base_i is where the region lies in the memory, and whoever sends the instruction has checked it.
//
// Of the memory it asks for bursts of up to BurstBytes that end at multiples of it, and takes their data in order, at once: it asks for no more than
// it has room for. The data of a burst comes in beats of BeatBytes, byte a of the memory in lane a % BeatBytes. What was read of the scratchpad stands
// there in the cycle behind the one in which valid and ready are both high.
module cdl_npu_dma_load #(
  parameter int unsigned Width       = 16,       // bytes of a word of the scratchpad, a power of two
  parameter int unsigned BurstBytes  = 32,       // a power of two from 2
  parameter int unsigned BeatBytes   = 32,       // a power of two from 2, up to BurstBytes
  parameter int unsigned Outstanding = 4,        // bursts under way
  parameter int unsigned AddrWidth   = 40,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   insn_valid_i,
  output logic                   insn_ready_o,
  input  logic [cdl_npu_isa_pkg::WordBits-1:0]       word_i,
  input  logic [cdl_npu_isa_pkg::DescriptorBits-1:0] desc_i,
  input  logic [AddrWidth-1:0]   base_i,
  output logic                   done_o,          // in the cycle behind the last write

  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic [AddrWidth-1:0]   req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  input  logic                   data_valid_i,
  output logic                   data_ready_o,
  input  logic [BeatBytes*8-1:0] data_i,

  output logic                   read_valid_o,    // copy
  input  logic                   read_ready_i,
  output logic [24:0]            read_addr_o,
  output logic [Width-1:0]       read_bytes_o,    // those that are needed
  input  logic [Width*8-1:0]     read_data_i,

  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [24:0]            write_addr_o,
  output logic [Width-1:0]       write_bytes_o,
  output logic [Width*8-1:0]     write_data_o
);

  localparam int unsigned Lanes      = BeatBytes > Width ? BeatBytes : Width;
  localparam int unsigned LaneLog2   = $clog2(Lanes);
  localparam int unsigned LaneCount  = $clog2(Lanes + 1);
  localparam int unsigned Longest    = BurstBytes > Width ? BurstBytes : Width;
  localparam int unsigned FarCount   = $clog2(Longest + 1);
  localparam int unsigned WordCount  = $clog2(Width + 1);
  localparam int unsigned BeatLog2   = $clog2(BeatBytes);
  localparam int unsigned Depth      = 2 * Longest * (1 << $clog2(Outstanding));
  localparam int unsigned LevelWidth = $clog2(Depth + 1);
  localparam int unsigned FlyWidth   = $clog2(Outstanding + 1);

  logic [cdl_npu_isa_pkg::WordBits-1:0] word_q;
  logic [AddrWidth-1:0] base_q;
  cdl_npu_isa_pkg::desc_transfer_t d_q;
  cdl_npu_isa_pkg::insn_load_t load;
  cdl_npu_isa_pkg::insn_copy_t copy;
  cdl_npu_isa_pkg::insn_fill_t fill;
  assign load = word_q;
  assign copy = word_q;
  assign fill = word_q;
  // The header is for who sends the instruction, and each operation uses its own fields of the word.
  logic unused;
  assign unused = ^{load, copy, fill, d_q};

  logic is_copy, is_fill, flips;
  logic [7:0] value;
  logic [24:0] dst;
  assign is_copy = load.opcode_f == cdl_npu_isa_pkg::OP_COPY;
  assign is_fill = load.opcode_f == cdl_npu_isa_pkg::OP_FILL;
  assign flips   = is_copy ? copy.flip_f[0] : load.flip_f[0];
  assign value   = is_fill ? fill.fill_f : is_copy ? copy.fill_f : load.fill_f;
  assign dst     = is_fill ? fill.dst_f : is_copy ? copy.dst_f : load.dst_f;

  typedef enum logic [1:0] {StIdle, StSetup, StRun} state_e;
  state_e state_q;
  logic start;
  assign start        = state_q == StSetup;
  assign insn_ready_o = state_q == StIdle;

  // ---- Both walks ----
  logic far_active, far_step, far_last, far_padding, near_active, near_step, near_last, near_padding;
  logic [AddrWidth-1:0] far_addr;
  logic [25:0] near_addr;
  logic [FarCount-1:0] far_bytes;
  logic [WordCount-1:0] near_bytes;
  cdl_npu_box_walker #(.AddrWidth(AddrWidth), .BurstBytes(BurstBytes), .Width(Width)) u_far (
    .clk_i, .rst_ni,
    .start_i      (start && !is_fill),
    .words_i      (is_copy),
    .addr_i       (is_copy ? AddrWidth'(copy.src_f) : base_q + AddrWidth'(load.far_f)),
    .run_i        (17'(d_q.run_f) + 17'd1),
    .len1_i       (17'(d_q.len1_f) + 17'd1),
    .len2_i       (17'(d_q.len2_f) + 17'd1),
    .len3_i       (17'(d_q.len3_f) + 17'd1),
    .stride1_i    (AddrWidth'($signed(d_q.far_stride1_f))),
    .stride2_i    (AddrWidth'($signed(d_q.far_stride2_f))),
    .stride3_i    (AddrWidth'($signed(d_q.far_stride3_f))),
    .pad_left_i   ('0),
    .pad_right_i  ('0),
    .pad_top_i    ('0),
    .pad_bottom_i ('0),
    .active_o     (far_active),
    .step_i       (far_step),
    .addr_o       (far_addr),
    .bytes_o      (far_bytes),
    .padding_o    (far_padding),
    .last_o       (far_last)
  );
  cdl_npu_box_walker #(.AddrWidth(26), .BurstBytes(Width), .Width(Width)) u_near (
    .clk_i, .rst_ni,
    .start_i      (start),
    .words_i      (1'b1),
    .addr_i       (26'(dst)),
    .run_i        (17'(d_q.run_f) + 17'd1),
    .len1_i       (17'(d_q.len1_f) + 17'd1),
    .len2_i       (17'(d_q.len2_f) + 17'd1),
    .len3_i       (17'(d_q.len3_f) + 17'd1),
    .stride1_i    (26'(d_q.near_stride1_f)),
    .stride2_i    (26'(d_q.near_stride2_f)),
    .stride3_i    (26'(d_q.near_stride3_f)),
    .pad_left_i   (d_q.pad_left_f),
    .pad_right_i  (d_q.pad_right_f),
    .pad_top_i    (d_q.pad_top_f),
    .pad_bottom_i (d_q.pad_bottom_f),
    .active_o     (near_active),
    .step_i       (near_step),
    .addr_o       (near_addr),
    .bytes_o      (near_bytes),
    .padding_o    (near_padding),
    .last_o       (near_last)
  );
  logic unused_walks;
  assign unused_walks = ^{far_last, far_padding, near_addr[25]};

  // ---- Asking: for what has room, and of the memory for no more bursts than may be under way ----
  logic [LevelWidth-1:0] reserved_q;             // bytes that were asked for and have not left
  logic [FlyWidth-1:0] in_flight_q;
  logic has_room, pop, burst_ends;
  assign has_room     = reserved_q <= LevelWidth'(Depth - Longest);
  assign req_valid_o  = far_active && !is_copy && has_room && in_flight_q != FlyWidth'(Outstanding);
  assign req_addr_o   = far_addr;
  assign req_bytes_o  = BurstWidth'(far_bytes);
  assign read_valid_o = far_active && is_copy && has_room;
  assign read_addr_o  = far_addr[24:0];
  for (genvar i = 0; i < Width; i++) begin : gen_read_bytes
    assign read_bytes_o[i] = FarCount'(i) < far_bytes;
  end
  assign far_step     = (req_valid_o && req_ready_i) || (read_valid_o && read_ready_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reserved_q  <= '0;
      in_flight_q <= '0;
    end else begin
      reserved_q  <= reserved_q + (far_step ? LevelWidth'(far_bytes) : '0) - (pop ? LevelWidth'(near_bytes) : '0);
      in_flight_q <= in_flight_q + FlyWidth'(req_valid_o && req_ready_i) - FlyWidth'(burst_ends);
    end
  end

  // ---- What comes: beats of the bursts in the order of asking, or a word of the scratchpad ----
  logic burst_valid, unused_bursts_ready, beat_ends;
  logic [BeatLog2-1:0] burst_lane, beat_lane;
  logic [BurstWidth-1:0] burst_bytes, taken_q, burst_left, beat_room, beat_bytes;
  cdl_npu_fifo #(.Width(BeatLog2 + BurstWidth), .Depth(Outstanding > 2 ? 1 << $clog2(Outstanding) : 2)) u_bursts (
    .clk_i, .rst_ni,
    .valid_i (req_valid_o && req_ready_i),
    .ready_o (unused_bursts_ready),
    .data_i  ({far_addr[BeatLog2-1:0], req_bytes_o}),
    .valid_o (burst_valid),
    .ready_i (burst_ends),
    .data_o  ({burst_lane, burst_bytes})
  );
  assign data_ready_o = 1'b1;
  assign beat_lane    = taken_q == '0 ? burst_lane : '0;
  assign burst_left   = burst_bytes - taken_q;
  assign beat_room    = BurstWidth'(BeatBytes) - BurstWidth'(beat_lane);
  assign beat_ends    = burst_left <= beat_room;
  assign beat_bytes   = beat_ends ? burst_left : beat_room;
  assign burst_ends   = burst_valid && data_valid_i && beat_ends;
  logic word_came_q;
  logic [WordCount-1:0] word_bytes_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q     <= '0;
      word_came_q <= 1'b0;
    end else begin
      word_came_q <= read_valid_o && read_ready_i;
      if (burst_valid && data_valid_i) begin
        taken_q <= beat_ends ? '0 : taken_q + beat_bytes;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    word_bytes_q <= WordCount'(far_bytes);
  end

  logic [LevelWidth-1:0] level;
  logic [Lanes*8-1:0] bytes;
  cdl_npu_byte_fifo #(.Lanes(Lanes), .Depth(Depth)) u_bytes (
    .clk_i, .rst_ni,
    .push_i       (word_came_q || (burst_valid && data_valid_i)),
    .push_bytes_i (word_came_q ? LaneCount'(word_bytes_q) : LaneCount'(beat_bytes)),
    .push_lane_i  (word_came_q ? '0 : LaneLog2'(beat_lane)),
    .push_data_i  (word_came_q ? (Lanes*8)'(read_data_i) : (Lanes*8)'(data_i)),
    .pop_i        (pop),
    .pop_bytes_i  (LaneCount'(near_bytes)),
    .pop_lane_i   ('0),
    .pop_data_o   (bytes),
    .level_o      (level)
  );

  // ---- What leaves: a word for each step of the near side, once its bytes are there. Two cycles from the step to the write ----
  localparam int unsigned Room = 4;
  logic [2:0] under_way_q;
  logic is_padding, sent, came_q, padding_came_q, unused_ready;
  logic [24:0] addr_came_q;
  logic [WordCount-1:0] bytes_came_q, write_bytes;
  logic [Width*8-1:0] came;
  assign is_padding = is_fill || near_padding;
  assign near_step  = near_active && under_way_q != 3'(Room) && (is_padding || level >= LevelWidth'(near_bytes));
  assign pop        = near_step && !is_padding;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      under_way_q <= '0;
      came_q      <= 1'b0;
    end else begin
      under_way_q <= under_way_q + 3'(near_step) - 3'(sent);
      came_q      <= near_step;
    end
  end
  always_ff @(posedge clk_i) begin
    padding_came_q <= is_padding;
    addr_came_q    <= near_addr[24:0];
    bytes_came_q   <= near_bytes;
  end
  assign came = padding_came_q ? {Width{value}} : bytes[Width*8-1:0] ^ {Width{flips, 7'd0}};
  cdl_npu_fifo #(.Width(25 + WordCount + Width*8), .Depth(Room)) u_results (
    .clk_i, .rst_ni,
    .valid_i (came_q),
    .ready_o (unused_ready),
    .data_i  ({addr_came_q, bytes_came_q, came}),
    .valid_o (write_valid_o),
    .ready_i (write_ready_i),
    .data_o  ({write_addr_o, write_bytes, write_data_o})
  );
  for (genvar i = 0; i < Width; i++) begin : gen_bytes
    assign write_bytes_o[i] = WordCount'(i) < write_bytes;
  end
  logic unused_bytes;
  assign unused_bytes = ^bytes;
  assign sent = write_valid_o && write_ready_i;

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
      walked_q <= !start && (walked_q || (near_step && near_last));
      unique case (state_q)
        StIdle:  if (insn_valid_i) state_q <= StSetup;
        StSetup: state_q <= StRun;
        default: begin
          if (walked_q && sent && under_way_q == 3'd1) begin
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
      d_q    <= desc_i;
      base_q <= base_i;
    end
  end
endmodule
