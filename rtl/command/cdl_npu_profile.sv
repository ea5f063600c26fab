// Writes the profile records of marked instructions into the memory, as a channel of the burst arbiter: 32 bytes each, cdl_npu_trace_pkg::profile_t, one
// behind the other from base_i on, in the order in which they come to be written. An engine has room for one record that waits: another one that
// ends before it has gone is lost, as is what the buffer has no room for. With a buffer of no record it does nothing.
//
// base_i is a multiple of 32 and of a burst's bytes where those are more.
module cdl_npu_profile #(
  parameter int unsigned Engines    = 12,
  parameter int unsigned BurstBytes = 64,
  parameter int unsigned BeatBytes  = 16,
  parameter int unsigned AddrWidth  = 40,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,          // a program starts
  input  logic                   drop_i,           // it was stopped: what waits is lost
  input  logic                   running_i,
  input  logic [AddrWidth-1:0]   base_i,
  input  logic [31:0]            bytes_i,          // of the buffer
  input  logic [31:0]            tag_i,

  input  logic [Engines-1:0]     begin_i,
  input  logic [Engines-1:0]     retire_i,
  input  logic [Engines-1:0]     mark_i,           // of what retires
  input  logic [Engines*32-1:0]  pc_i,
  output logic                   idle_o,           // nothing waits, nothing is under way
  output logic [31:0]            records_o,        // that are in the memory
  output logic [31:0]            lost_o,

  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic [AddrWidth-1:0]   req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  output logic                   put_valid_o,
  input  logic                   put_ready_i,
  output logic                   put_last_o,
  output logic [BeatBytes-1:0]   put_bytes_o,
  output logic [BeatBytes*8-1:0] put_data_o,
  input  logic                   answer_valid_i,
  output logic                   answer_ready_o
);

  localparam int unsigned RecordBytes = 32;
  localparam int unsigned ChunkBytes  = BurstBytes < RecordBytes ? BurstBytes : RecordBytes;   // of a burst
  localparam int unsigned PutBytes    = BeatBytes < ChunkBytes ? BeatBytes : ChunkBytes;       // of a beat
  localparam int unsigned IndexWidth  = $clog2(Engines);

  // ---- What instructions leave ----
  logic [63:0] cycle_q;
  logic [Engines*64-1:0] start_q;
  logic [Engines-1:0] ends, waits_q, kept, taken;
  logic [Engines*64-1:0] kept_start_q, kept_done_q;
  logic [Engines*32-1:0] kept_pc_q, kept_tag_q;
  logic is_on;
  assign is_on = bytes_i >= 32'(RecordBytes);
  assign ends  = is_on ? retire_i & mark_i : '0;
  assign kept  = ends & ~(waits_q & ~taken);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cycle_q <= '0;
      waits_q <= '0;
    end else begin
      cycle_q <= clear_i ? '0 : cycle_q + 64'(running_i);
      waits_q <= drop_i || clear_i ? '0 : (waits_q & ~taken) | ends;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned e = 0; e < Engines; e++) begin
      if (begin_i[e]) begin
        start_q[e*64 +: 64] <= cycle_q;
      end
      if (kept[e]) begin
        kept_start_q[e*64 +: 64] <= start_q[e*64 +: 64];
        kept_done_q[e*64 +: 64]  <= cycle_q;
        kept_pc_q[e*32 +: 32]    <= pc_i[e*32 +: 32];
        kept_tag_q[e*32 +: 32]   <= tag_i;
      end
    end
  end

  // ---- One after the other into the memory ----
  typedef enum logic [1:0] {StIdle, StAsk, StPut, StAnswer} state_e;
  state_e state_q;
  logic [IndexWidth-1:0] chosen;
  logic has_room, chunk_ends, record_ends, begins;
  logic [5:0] at_q;                                // bytes of the record that have gone
  logic [31:0] records_q, lost_q;
  cdl_npu_trace_pkg::profile_t record_d, record_q;
  always_comb begin
    chosen = '0;
    for (int unsigned e = Engines; e > 0; e--) begin
      if (waits_q[e-1]) begin
        chosen = IndexWidth'(e - 1);
      end
    end
  end
  assign has_room = {records_q[26:0], 5'd0} <= bytes_i - 32'(RecordBytes);
  assign begins   = state_q == StIdle && waits_q != '0;
  assign taken    = begins ? Engines'(1) << chosen : '0;
  always_comb begin
    record_d               = '0;
    record_d.instruction_f = kept_pc_q[32'(chosen)*32 +: 32];
    record_d.tag_f         = kept_tag_q[32'(chosen)*32 +: 32];
    record_d.engine_f      = 8'(chosen);
    record_d.start_f       = kept_start_q[32'(chosen)*64 +: 64];
    record_d.done_f        = kept_done_q[32'(chosen)*64 +: 64];
  end

  assign chunk_ends     = (at_q + 6'(PutBytes)) % 6'(ChunkBytes) == '0;
  assign record_ends    = at_q == 6'(RecordBytes);
  assign req_valid_o    = state_q == StAsk;
  assign req_addr_o     = base_i + (AddrWidth'(records_q) << $clog2(RecordBytes)) + AddrWidth'(at_q);
  assign req_bytes_o    = BurstWidth'(ChunkBytes);
  assign put_valid_o    = state_q == StPut;
  assign put_last_o     = chunk_ends;
  assign answer_ready_o = 1'b1;
  logic [RecordBytes*8-1:0] rest;
  assign rest = record_q >> (9'(at_q) << 3);
  logic [31:0] lane;                               // of the first byte of a beat that is wider than the record
  assign lane = 32'(records_q[26:0]) * RecordBytes + 32'(at_q);
  for (genvar i = 0; i < BeatBytes; i++) begin : gen_lane
    assign put_data_o[i*8 +: 8] = rest[(i % PutBytes)*8 +: 8];
    assign put_bytes_o[i]       = i / PutBytes == (lane % BeatBytes) / PutBytes;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      at_q      <= '0;
      records_q <= '0;
      lost_q    <= '0;
    end else begin
      lost_q <= clear_i ? '0 : lost_q + onesOf(ends & ~kept) + 32'(begins && !has_room);
      if (clear_i) begin
        records_q <= '0;
      end
      unique case (state_q)
        StIdle: begin
          at_q <= '0;
          if (begins && has_room) begin
            state_q <= StAsk;
          end
        end
        StAsk: if (req_ready_i) state_q <= StPut;
        StPut: begin
          if (put_ready_i) begin
            at_q    <= at_q + 6'(PutBytes);
            state_q <= chunk_ends ? StAnswer : StPut;
          end
        end
        default: begin
          if (answer_valid_i) begin
            state_q   <= record_ends ? StIdle : StAsk;
            records_q <= records_q + 32'(record_ends);
          end
        end
      endcase
      if (drop_i || clear_i) begin
        state_q <= StIdle;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      record_q <= record_d;
    end
  end
  assign idle_o    = state_q == StIdle && (waits_q | ends) == '0;
  assign records_o = records_q;
  assign lost_o    = lost_q;

  function automatic logic [31:0] onesOf(input logic [Engines-1:0] bits);
    onesOf = '0;
    for (int unsigned i = 0; i < Engines; i++) begin
      onesOf = onesOf + 32'(bits[i]);
    end
  endfunction
endmodule
