// Fetch of the program: Lines lines of LineBytes, a line in the place of its number modulo Lines. The line of the word that is run is asked for, and
// those of the Ahead lines behind it, a burst in a cycle, the lowest that is not there first. A word is there from the cycle in which its beat comes.
//
// The program begins at a multiple of LineBytes. What the memory gives comes in the order of requests, and is always taken.
module cdl_npu_fetch #(
  parameter int unsigned LineBytes  = 64,           // a power of two, BurstBytes or more
  parameter int unsigned BurstBytes = 64,           // a power of two from 16
  parameter int unsigned BeatBytes  = 64,           // a power of two from 2, up to BurstBytes
  parameter int unsigned Lines      = 16,           // a power of two
  parameter int unsigned Ahead      = 4,
  parameter int unsigned AddrWidth  = 40,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1),
  localparam int unsigned WordBits   = cdl_npu_isa_pkg::WordBits
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,           // forgets all lines
  input  logic                   run_i,
  input  logic [AddrWidth-1:0]   program_i,
  input  logic [31:0]            words_i,
  input  logic [31:0]            pc_i,              // of the word that is run, or waited for

  input  logic                   fetch_valid_i,
  output logic                   fetch_ready_o,
  input  logic [31:0]            fetch_index_i,
  output logic [WordBits-1:0]    fetch_word_o,      // in the cycle behind

  output logic                   req_valid_o,
  input  logic                   req_ready_i,
  output logic [AddrWidth-1:0]   req_addr_o,
  output logic [BurstWidth-1:0]  req_bytes_o,
  input  logic                   data_valid_i,
  output logic                   data_ready_o,
  input  logic [BeatBytes*8-1:0] data_i,
  output logic [31:0]            data_index_o       // the first word of the line that comes
);

  localparam int unsigned LineLog2  = $clog2(LineBytes);
  localparam int unsigned SlotWidth = $clog2(Lines);
  localparam int unsigned LineWidth = 32 - LineLog2 + 4;
  localparam int unsigned RowBytes  = BeatBytes > 16 ? BeatBytes : 16;   // words lie in a row of whole beats
  localparam int unsigned RowLog2   = $clog2(RowBytes);
  localparam int unsigned Lanes     = RowBytes / BeatBytes;
  localparam int unsigned LineRows  = LineBytes / RowBytes;
  localparam int unsigned LineBeats = LineBytes / BeatBytes;
  localparam int unsigned BeatWidth = LineBeats > 1 ? $clog2(LineBeats) : 1;
  localparam int unsigned RowWidth  = $clog2(Lines * LineRows);
  localparam int unsigned Bursts    = LineBytes / BurstBytes;
  localparam int unsigned PartWidth = Bursts > 1 ? $clog2(Bursts) : 1;

  // ---- Which lines are there, or on their way ----
  logic [Lines-1:0] known_q, coming_q;              // asked for; not yet all of it there
  logic [Lines*LineWidth-1:0] lines_q;
  logic [LineWidth-1:0] pc_line, last_line;
  assign pc_line   = LineWidth'(pc_i >> (LineLog2 - 4));
  assign last_line = LineWidth'((words_i - 32'd1) >> (LineLog2 - 4));

  // ---- Asking: what was offered stays until it is taken ----
  logic held_q, missing, part_last;
  logic [LineWidth-1:0] held_line_q, missing_line, line;
  logic [SlotWidth-1:0] line_slot;
  logic [PartWidth-1:0] part_q;
  always_comb begin
    missing      = 1'b0;
    missing_line = pc_line;
    for (int unsigned i = Ahead + 1; i > 0; i--) begin
      if (pc_line + LineWidth'(i - 1) <= last_line) begin
        if (!known_q[SlotWidth'(pc_line + LineWidth'(i - 1))] ||
            lines_q[32'(SlotWidth'(pc_line + LineWidth'(i - 1)))*LineWidth +: LineWidth] != pc_line + LineWidth'(i - 1)) begin
          missing      = !coming_q[SlotWidth'(pc_line + LineWidth'(i - 1))];
          missing_line = pc_line + LineWidth'(i - 1);
        end
      end
    end
  end
  assign line        = held_q ? held_line_q : missing_line;
  assign line_slot   = SlotWidth'(line);
  assign req_valid_o = held_q || (run_i && missing);
  assign req_addr_o  = program_i + (AddrWidth'(line) << LineLog2) + AddrWidth'(32'(part_q) * BurstBytes);
  assign req_bytes_o = BurstWidth'(BurstBytes);
  assign part_last   = 32'(part_q) == Bursts - 1;
  logic asked;
  assign asked = req_valid_o && req_ready_i;

  // ---- What comes ----
  logic slot_valid, unused_slots_ready, line_ends;
  logic [SlotWidth-1:0] slot;
  logic [BeatWidth-1:0] beat_q;
  cdl_npu_fifo #(.Width(SlotWidth), .Depth(Lines)) u_slots (
    .clk_i, .rst_ni,
    .valid_i (asked && part_q == '0),
    .ready_o (unused_slots_ready),
    .data_i  (line_slot),
    .valid_o (slot_valid),
    .ready_i (line_ends),
    .data_o  (slot)
  );
  assign data_ready_o = 1'b1;
  assign line_ends    = data_valid_i && slot_valid && 32'(beat_q) == LineBeats - 1;
  assign data_index_o = 32'(lines_q[32'(slot)*LineWidth +: LineWidth]) << (LineLog2 - 4);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      known_q  <= '0;
      coming_q <= '0;
      held_q   <= 1'b0;
      part_q   <= '0;
      beat_q   <= '0;
    end else begin
      held_q <= req_valid_o && !(asked && part_last);
      if (asked) begin
        part_q <= part_last ? '0 : part_q + PartWidth'(1);
      end
      if (data_valid_i && slot_valid) begin
        beat_q <= line_ends ? '0 : beat_q + BeatWidth'(1);
      end
      if (line_ends) begin
        coming_q[slot] <= 1'b0;
      end
      if (asked) begin
        known_q[line_slot]  <= 1'b1;
        coming_q[line_slot] <= 1'b1;
      end
      if (clear_i) begin
        known_q <= '0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    held_line_q <= line;
    if (asked) begin
      lines_q[32'(line_slot)*LineWidth +: LineWidth] <= line;
    end
  end

  // ---- Words: a row whose last beat comes in this cycle is as good as there ----
  logic [31:0] coming_row, wanted_row_in_line;
  logic [LineWidth-1:0] wanted_line;
  logic [SlotWidth-1:0] wanted_slot;
  logic is_known, arrives, is_there;
  assign coming_row         = 32'(beat_q) / Lanes;
  assign wanted_line        = LineWidth'(fetch_index_i >> (LineLog2 - 4));
  assign wanted_slot        = SlotWidth'(wanted_line);
  assign wanted_row_in_line = (fetch_index_i % (LineBytes / 16)) >> (RowLog2 - 4);
  assign is_known           = known_q[wanted_slot] && lines_q[32'(wanted_slot)*LineWidth +: LineWidth] == wanted_line;
  assign arrives            = data_valid_i && slot_valid && slot == wanted_slot && coming_row == wanted_row_in_line &&
                              32'(beat_q) % Lanes == Lanes - 1;
  assign is_there           = !coming_q[wanted_slot] || (slot_valid && slot == wanted_slot && wanted_row_in_line < coming_row);
  assign fetch_ready_o      = is_known && (is_there || arrives);

  logic [RowBytes*8-1:0] row, kept;
  logic [Lanes-1:0] write;
  logic arrived_q;
  logic [BeatBytes*8-1:0] beat_data_q;
  logic [RowLog2-1:0] word_at_q;
  for (genvar i = 0; i < Lanes; i++) begin : gen_write
    assign write[i] = data_valid_i && slot_valid && 32'(beat_q) % Lanes == i;
  end
  cdl_npu_ram #(.Width(BeatBytes*8), .Lanes(Lanes), .Depth(Lines * LineRows)) u_rows (
    .clk_i,
    .read_i  (fetch_valid_i),
    .raddr_i (RowWidth'(32'(wanted_slot) * LineRows + wanted_row_in_line)),
    .rdata_o (kept),
    .write_i (write),
    .waddr_i (RowWidth'(32'(slot) * LineRows + coming_row)),
    .wdata_i ({Lanes{data_i}})
  );
  always_ff @(posedge clk_i) begin
    arrived_q   <= arrives;
    beat_data_q <= data_i;
    word_at_q   <= RowLog2'((fetch_index_i << 4) % RowBytes);
  end
  if (Lanes > 1) begin : gen_narrow
    assign row = arrived_q ? {beat_data_q, kept[(RowBytes-BeatBytes)*8-1:0]} : kept;
  end else begin : gen_whole
    assign row = arrived_q ? beat_data_q : kept;
  end
  logic [RowBytes*8-1:0] from_word;
  assign from_word    = row >> {word_at_q, 3'b000};
  assign fetch_word_o = from_word[WordBits-1:0];
  logic unused;
  assign unused = ^from_word;
endmodule
