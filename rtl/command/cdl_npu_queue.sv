// The queue of one engine: words with the descriptors that stood when they were sent, in order. The head takes its tokens and begins in the same
// cycle, the first one after what was before it has ended; its place is free in the cycle of its end, in which it signals. A nop ends in the
// cycle behind its begin.
module cdl_npu_queue #(
  parameter int unsigned Depth = 8,                 // the instruction that runs is one of them
  localparam int unsigned WordBits       = cdl_npu_isa_pkg::WordBits,
  localparam int unsigned DescriptorBits = cdl_npu_isa_pkg::DescriptorBits
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      hold_i,         // nothing begins any more

  input  logic                      send_valid_i,
  output logic                      send_ready_o,
  input  logic [WordBits-1:0]       send_word_i,
  input  logic [DescriptorBits-1:0] send_desc_i,
  input  logic [DescriptorBits-1:0] send_second_i,
  input  logic [31:0]               send_pc_i,

  output logic                      take_valid_o,
  input  logic                      take_ready_i,
  output logic [4:0]                take_semaphore_o,
  output logic [2:0]                take_count_o,

  // To the engine, which takes it at once: it is idle.
  output logic                      insn_valid_o,
  input  logic                      insn_ready_i,
  output logic [WordBits-1:0]       insn_word_o,
  output logic [DescriptorBits-1:0] insn_desc_o,
  output logic [DescriptorBits-1:0] insn_second_o,
  input  logic                      done_i,

  output logic                      begin_o,        // of a nop too
  output logic [31:0]               begin_pc_o,
  output logic                      retire_o,       // with its tokens
  output logic                      retire_mark_o,
  output logic                      signal_valid_o,
  output logic [4:0]                signal_semaphore_o,
  output logic [2:0]                signal_count_o,
  output logic [31:0]               pc_o,           // of what runs
  output logic                      idle_o,         // nothing queued and nothing running
  output logic                      stuck_o         // empty, or its head waits for tokens that are not there
);

  localparam int unsigned IndexWidth = Depth > 1 ? $clog2(Depth) : 1;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned EntryBits  = WordBits + 2*DescriptorBits + 32;

  logic [EntryBits-1:0] entries [Depth];
  logic [IndexWidth-1:0] in_q, out_q, head;
  logic [CountWidth-1:0] count_q, left;
  function automatic logic [IndexWidth-1:0] nextOf(input logic [IndexWidth-1:0] index);
    nextOf = 32'(index) == Depth - 1 ? '0 : index + IndexWidth'(1);
  endfunction

  logic running_q, is_nop_q, ends;
  logic [31:0] pc_q;
  cdl_npu_isa_pkg::header_t header, header_q;
  assign ends         = running_q && (is_nop_q || done_i);
  assign left         = count_q - CountWidth'(ends);
  assign head         = ends ? nextOf(out_q) : out_q;
  assign send_ready_o = 32'(left) != Depth;
  assign idle_o       = left == '0;

  logic [WordBits-1:0] word;
  logic is_nop, may, wants, begins, sent;
  assign {word, insn_desc_o, insn_second_o, begin_pc_o} = entries[head];
  assign header           = word[31:0];
  assign is_nop           = header.opcode_f == cdl_npu_isa_pkg::OP_NOP;
  assign may              = left != '0 && (!running_q || ends) && !hold_i;
  assign wants            = header.wait_count_f != '0;
  assign begins           = may && (!wants || take_ready_i);
  assign take_valid_o     = may && wants;
  assign take_semaphore_o = header.wait_semaphore_f;
  assign take_count_o     = header.wait_count_f;
  assign insn_valid_o     = begins && !is_nop;
  assign insn_word_o      = word;
  assign begin_o          = begins;
  assign stuck_o          = idle_o || (may && wants && !take_ready_i);
  assign sent             = send_valid_i && send_ready_o;

  assign retire_o           = ends;
  assign retire_mark_o      = header_q.mark_f[0];
  assign signal_valid_o     = ends && header_q.signal_count_f != '0;
  assign signal_semaphore_o = header_q.signal_semaphore_f;
  assign signal_count_o     = header_q.signal_count_f;
  assign pc_o               = pc_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q      <= '0;
      out_q     <= '0;
      count_q   <= '0;
      running_q <= 1'b0;
      is_nop_q  <= 1'b0;
    end else begin
      in_q      <= sent ? nextOf(in_q) : in_q;
      out_q     <= head;
      count_q   <= left + CountWidth'(sent);
      running_q <= begins || (running_q && !ends);
      is_nop_q  <= begins ? is_nop : is_nop_q && !ends;
    end
  end
  always_ff @(posedge clk_i) begin
    if (sent) begin
      entries[in_q] <= {send_word_i, send_desc_i, send_second_i, send_pc_i};
    end
    if (begins) begin
      header_q <= header;
      pc_q     <= begin_pc_o;
    end
  end
  logic unused;
  assign unused = ^{header, header_q};

`ifdef VERILATOR
  // No instruction is lost: the engine is idle when its next one begins, and ends none that it was not given.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (rst_ni) begin
      assert (!insn_valid_o || insn_ready_i) else $error("an engine is given an instruction while it is busy");
      assert (!done_i || (running_q && !is_nop_q)) else $error("an engine ends what it was not given");
      assert (32'(count_q) <= Depth) else $error("a queue holds more than it has room for");
    end
  end
`else
  logic unused_ready;
  assign unused_ready = insn_ready_i;
`endif
endmodule
