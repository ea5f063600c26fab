// A store channel: one store at a time, from the cycle in which it takes the instruction to the one in which all its bursts are known to be written.
// Index registers are added to the addresses already, base_i is where the region lies in the memory, and whoever sends the instruction has checked it.
//
// To the memory it sends bursts of up to BurstBytes that end at multiples of it: a request, and behind it its data, in the order of requests, in beats
// of BeatBytes, byte a of the memory in lane a % BeatBytes. Each burst is answered once, in any order, which is taken at once. What was read of the
// scratchpad stands there in the cycle behind the one in which valid and ready are both high.
module cdl_npu_dma_store #(
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
  output logic                   done_o,          // in the cycle behind the last answer

  output logic                   read_valid_o,
  input  logic                   read_ready_i,
  output logic [24:0]            read_addr_o,
  output logic [Width-1:0]       read_bytes_o,    // those that are needed
  input  logic [Width*8-1:0]     read_data_i,

  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic [AddrWidth-1:0]   req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  output logic                   data_valid_o,
  input  logic                   data_ready_i,
  output logic                   data_last_o,     // of the burst
  output logic [BeatBytes-1:0]   data_bytes_o,
  output logic [BeatBytes*8-1:0] data_o,
  input  logic                   answer_valid_i,
  output logic                   answer_ready_o
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
  cdl_npu_isa_pkg::insn_store_t store;
  assign store = word_q;
  // The header is for who sends the instruction.
  logic unused;
  assign unused = ^{store, d_q};

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
    .start_i      (start),
    .words_i      (1'b0),
    .addr_i       (base_q + AddrWidth'(store.far_f)),
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
    .addr_i       (26'(store.src_f)),
    .run_i        (17'(d_q.run_f) + 17'd1),
    .len1_i       (17'(d_q.len1_f) + 17'd1),
    .len2_i       (17'(d_q.len2_f) + 17'd1),
    .len3_i       (17'(d_q.len3_f) + 17'd1),
    .stride1_i    (26'(d_q.near_stride1_f)),
    .stride2_i    (26'(d_q.near_stride2_f)),
    .stride3_i    (26'(d_q.near_stride3_f)),
    .pad_left_i   ('0),
    .pad_right_i  ('0),
    .pad_top_i    ('0),
    .pad_bottom_i ('0),
    .active_o     (near_active),
    .step_i       (near_step),
    .addr_o       (near_addr),
    .bytes_o      (near_bytes),
    .padding_o    (near_padding),
    .last_o       (near_last)
  );
  logic unused_walks;
  assign unused_walks = ^{far_padding, near_padding, near_last, near_addr[25]};

  // ---- Reading ahead, as far as there is room ----
  logic [LevelWidth-1:0] reserved_q;             // bytes that were read, or will be, and have not left
  logic word_came_q, pop;
  logic [WordCount-1:0] word_bytes_q;
  logic [LaneCount-1:0] pop_bytes;
  assign read_valid_o = near_active && reserved_q <= LevelWidth'(Depth - Width);
  assign read_addr_o  = near_addr[24:0];
  for (genvar i = 0; i < Width; i++) begin : gen_read_bytes
    assign read_bytes_o[i] = WordCount'(i) < near_bytes;
  end
  assign near_step    = read_valid_o && read_ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reserved_q  <= '0;
      word_came_q <= 1'b0;
    end else begin
      reserved_q  <= reserved_q + (near_step ? LevelWidth'(near_bytes) : '0) - (pop ? LevelWidth'(pop_bytes) : '0);
      word_came_q <= near_step;
    end
  end
  always_ff @(posedge clk_i) begin
    word_bytes_q <= near_bytes;
  end

  // ---- Requests: for bytes that are there ----
  logic [LevelWidth-1:0] unclaimed_q;            // bytes that are there and that no request is for
  logic [FlyWidth-1:0] in_flight_q;
  logic bursts_ready, answered;
  assign req_valid_o    = far_active && bursts_ready && in_flight_q != FlyWidth'(Outstanding) && unclaimed_q >= LevelWidth'(far_bytes);
  assign req_addr_o     = far_addr;
  assign req_bytes_o    = BurstWidth'(far_bytes);
  assign far_step       = req_valid_o && req_ready_i;
  assign answer_ready_o = 1'b1;
  assign answered       = answer_valid_i && in_flight_q != '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      unclaimed_q <= '0;
      in_flight_q <= '0;
    end else begin
      unclaimed_q <= unclaimed_q + (word_came_q ? LevelWidth'(word_bytes_q) : '0) - (far_step ? LevelWidth'(far_bytes) : '0);
      in_flight_q <= in_flight_q + FlyWidth'(far_step) - FlyWidth'(answered);
    end
  end

  // ---- Data, beat by beat; a beat leaves the bytes in the cycle before it stands at the port ----
  logic burst_valid, burst_ends, beat_ends, beat_valid_q, last_q;
  logic [BeatLog2-1:0] burst_lane, beat_lane, beat_lane_q;
  logic [BurstWidth-1:0] burst_bytes, taken_q, burst_left, beat_room, beat_bytes, beat_bytes_q;
  cdl_npu_fifo #(.Width(BeatLog2 + BurstWidth), .Depth(4)) u_bursts (
    .clk_i, .rst_ni,
    .valid_i (far_step),
    .ready_o (bursts_ready),
    .data_i  ({far_addr[BeatLog2-1:0], req_bytes_o}),
    .valid_o (burst_valid),
    .ready_i (burst_ends),
    .data_o  ({burst_lane, burst_bytes})
  );
  assign beat_lane    = taken_q == '0 ? burst_lane : '0;
  assign burst_left   = burst_bytes - taken_q;
  assign beat_room    = BurstWidth'(BeatBytes) - BurstWidth'(beat_lane);
  assign beat_ends    = burst_left <= beat_room;
  assign beat_bytes   = beat_ends ? burst_left : beat_room;
  assign pop          = burst_valid && (!beat_valid_q || data_ready_i);
  assign pop_bytes    = LaneCount'(beat_bytes);
  assign burst_ends   = pop && beat_ends;
  assign data_valid_o = beat_valid_q;
  assign data_last_o  = last_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q      <= '0;
      beat_valid_q <= 1'b0;
    end else begin
      beat_valid_q <= pop || (beat_valid_q && !data_ready_i);
      if (pop) begin
        taken_q <= beat_ends ? '0 : taken_q + beat_bytes;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (pop) begin
      {beat_lane_q, beat_bytes_q, last_q} <= {beat_lane, beat_bytes, beat_ends};
    end
  end

  logic [LevelWidth-1:0] unused_level;
  logic [Lanes*8-1:0] bytes;
  cdl_npu_byte_fifo #(.Lanes(Lanes), .Depth(Depth)) u_bytes (
    .clk_i, .rst_ni,
    .push_i       (word_came_q),
    .push_bytes_i (LaneCount'(word_bytes_q)),
    .push_lane_i  ('0),
    .push_data_i  ((Lanes*8)'(read_data_i)),
    .pop_i        (pop),
    .pop_bytes_i  (pop_bytes),
    .pop_lane_i   (LaneLog2'(beat_lane)),
    .pop_data_o   (bytes),
    .level_o      (unused_level)
  );
  logic unused_bytes;
  assign unused_bytes = ^bytes;
  assign data_o = bytes[BeatBytes*8-1:0] ^ {BeatBytes{store.flip_f, 7'd0}};
  for (genvar i = 0; i < BeatBytes; i++) begin : gen_bytes
    logic [BeatLog2-1:0] behind;                 // the first byte
    assign behind = BeatLog2'(i) - beat_lane_q;
    assign data_bytes_o[i] = BurstWidth'(behind) < beat_bytes_q;
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
      walked_q <= !start && (walked_q || (far_step && far_last));
      unique case (state_q)
        StIdle:  if (insn_valid_i) state_q <= StSetup;
        StSetup: state_q <= StRun;
        default: begin
          if (walked_q && answered && in_flight_q == FlyWidth'(1)) begin
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
