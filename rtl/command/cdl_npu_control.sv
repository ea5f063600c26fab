// The control processor: runs control and system instructions itself, sends the rest to the queues of the engines with index registers added to
// their addresses and the descriptors that stand then. One word in a cycle; a word waits while its queue is full, its semaphore lacks tokens, or
// engines that it must wait for are not idle. The program ends with halt, or with fault_o where a word is none or a loop cannot be.
//
// A word is asked for by its index and comes in the cycle behind the one in which fetch_valid_o and fetch_ready_i are both high.
module cdl_npu_control #(
  parameter logic [11:0]  EngineMask = 12'hfff,      // bit n: engine n is there
  localparam int unsigned WordBits       = cdl_npu_isa_pkg::WordBits,
  localparam int unsigned DescriptorBits = cdl_npu_isa_pkg::DescriptorBits,
  localparam int unsigned Engines        = 12
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic                      start_i,         // while it does not run
  input  logic [31:0]               words_i,         // of the program
  output logic                      running_o,
  output logic                      halted_o,        // since the last start
  output logic                      fault_o,
  output logic [31:0]               pc_o,            // of the word that is being run

  output logic                      fetch_valid_o,
  input  logic                      fetch_ready_i,
  output logic [31:0]               fetch_index_o,
  input  logic [WordBits-1:0]       fetch_word_i,

  output logic [Engines-1:0]        send_valid_o,    // one engine's queue
  input  logic [Engines-1:0]        send_ready_i,
  output logic [WordBits-1:0]       send_word_o,
  output logic [DescriptorBits-1:0] send_desc_o,
  output logic [DescriptorBits-1:0] send_second_o,
  input  logic [Engines-1:0]        idle_i,          // nothing queued and nothing running, from the cycle behind a send on; bit 0: any

  // Tokens of its own instructions: what they wait for is asked for until it is there, what they signal is added at their end.
  output logic                      take_valid_o,
  input  logic                      take_ready_i,
  output logic [4:0]                take_semaphore_o,
  output logic [2:0]                take_count_o,
  output logic                      signal_valid_o,
  output logic [4:0]                signal_semaphore_o,
  output logic [2:0]                signal_count_o,

  output logic                      snapshot_o,
  output logic [1:0]                snapshot_slot_o,
  output logic                      config_o,
  output logic [11:0]               config_offset_o,
  output logic [31:0]               config_value_o,
  output logic                      retire_o,        // an instruction of its own ends in this cycle
  output logic                      mark_o,          // with a profile record
  output logic                      stuck_o          // it waits: for tokens, for engines to be idle, or for room in a queue
);

  localparam int unsigned Depth = 4;                 // of loops

  // ---- The word ----
  typedef enum logic [1:0] {StIdle, StFetch, StRun} state_e;
  state_e state_q;
  logic [31:0] pc_q, pc_d;
  logic [WordBits-1:0] word_q, word;
  logic came_q, taken_q;
  assign word = came_q ? fetch_word_i : word_q;

  cdl_npu_isa_pkg::header_t header;
  cdl_npu_isa_pkg::insn_loop_t loop_insn;
  cdl_npu_isa_pkg::insn_movi_t movi;
  cdl_npu_isa_pkg::insn_setd_t setd;
  cdl_npu_isa_pkg::insn_fence_t fence;
  cdl_npu_isa_pkg::insn_config_t config_insn;
  cdl_npu_isa_pkg::insn_snapshot_t snapshot;
  assign header      = word[31:0];
  assign loop_insn   = word;
  assign movi        = word;
  assign setd        = word;
  assign fence       = word;
  assign config_insn = word;
  assign snapshot    = word;

  logic is_own, is_halt, is_known, fits;
  assign is_own  = header.engine_f == cdl_npu_isa_pkg::ENGINE_CONTROL;
  assign is_halt = header.opcode_f == cdl_npu_isa_pkg::OP_HALT;
  logic is_load, is_store, is_matrix, is_requant, is_vector;
  assign is_load    = header.engine_f >= cdl_npu_isa_pkg::ENGINE_LOAD0 && header.engine_f <= cdl_npu_isa_pkg::ENGINE_LOAD3;
  assign is_store   = header.engine_f >= cdl_npu_isa_pkg::ENGINE_STORE0 && header.engine_f <= cdl_npu_isa_pkg::ENGINE_STORE3;
  assign is_matrix  = header.engine_f == cdl_npu_isa_pkg::ENGINE_MATRIX;
  assign is_requant = header.engine_f == cdl_npu_isa_pkg::ENGINE_REQUANT;
  assign is_vector  = header.engine_f == cdl_npu_isa_pkg::ENGINE_VECTOR;

  // ---- Registers: x0 is 0 ----
  logic [16*32-1:0] x_q;
  logic [16*DescriptorBits-1:0] d_q;
  function automatic logic [31:0] indexOf(input logic [16*32-1:0] registers, input logic [3:0] register);
    indexOf = registers[{27'd0, register}*32 +: 32];
  endfunction

  // The word as its engine takes it: addresses added up, index registers 0.
  cdl_npu_isa_pkg::insn_load_t load;
  cdl_npu_isa_pkg::insn_store_t store;
  cdl_npu_isa_pkg::insn_copy_t copy;
  cdl_npu_isa_pkg::insn_fill_t fill;
  cdl_npu_isa_pkg::insn_ldw_t ldw;
  cdl_npu_isa_pkg::insn_mm_t mm;
  cdl_npu_isa_pkg::insn_conv_t conv;
  cdl_npu_isa_pkg::insn_requant_t requant;
  cdl_npu_isa_pkg::insn_accload_t move;
  cdl_npu_isa_pkg::insn_vbinary_t vector;
  logic [3:0] d_index, second_index;
  always_comb begin
    load    = word;
    store   = word;
    copy    = word;
    fill    = word;
    ldw     = word;
    mm      = word;
    conv    = word;
    requant = word;
    move    = word;
    vector  = word;
    load.far_f      = load.far_f + indexOf(x_q, load.far_x_f);
    load.dst_f      = load.dst_f + 25'(indexOf(x_q, load.dst_x_f));
    store.far_f     = store.far_f + indexOf(x_q, store.far_x_f);
    store.src_f     = store.src_f + 25'(indexOf(x_q, store.src_x_f));
    copy.src_f      = copy.src_f + 25'(indexOf(x_q, copy.src_x_f));
    copy.dst_f      = copy.dst_f + 25'(indexOf(x_q, copy.dst_x_f));
    fill.dst_f      = fill.dst_f + 25'(indexOf(x_q, fill.dst_x_f));
    ldw.wgt_f       = ldw.wgt_f + 25'(indexOf(x_q, ldw.wgt_x_f));
    mm.acc_f        = mm.acc_f + 16'(indexOf(x_q, mm.acc_x_f));
    mm.act_f        = mm.act_f + 25'(indexOf(x_q, mm.act_x_f));
    conv.acc_f      = conv.acc_f + 16'(indexOf(x_q, conv.acc_x_f));
    conv.act_f      = conv.act_f + 25'(indexOf(x_q, conv.act_x_f));
    conv.wgt_f      = conv.wgt_f + 25'(indexOf(x_q, conv.wgt_x_f));
    requant.acc_f   = requant.acc_f + 16'(indexOf(x_q, requant.acc_x_f));
    requant.dst_f   = requant.dst_f + 25'(indexOf(x_q, requant.dst_x_f));
    requant.res_f   = requant.res_f + 25'(indexOf(x_q, requant.res_x_f));
    move.acc_f      = move.acc_f + 16'(indexOf(x_q, move.acc_x_f));
    move.src_f      = move.src_f + 25'(indexOf(x_q, move.src_x_f));
    vector.a_f      = vector.a_f + 25'(indexOf(x_q, vector.a_x_f));
    vector.b_f      = vector.b_f + 25'(indexOf(x_q, vector.b_x_f));
    vector.dst_f    = vector.dst_f + 25'(indexOf(x_q, vector.dst_x_f));
    {load.far_x_f, load.dst_x_f, store.far_x_f, store.src_x_f, copy.src_x_f, copy.dst_x_f, fill.dst_x_f, ldw.wgt_x_f} = '0;
    {mm.acc_x_f, mm.act_x_f, conv.acc_x_f, conv.act_x_f, conv.wgt_x_f, requant.acc_x_f, requant.dst_x_f} = '0;
    {requant.res_x_f, move.acc_x_f, move.src_x_f, vector.a_x_f, vector.b_x_f, vector.dst_x_f} = '0;

    send_word_o  = word;
    d_index      = '0;
    second_index = '0;
    is_known     = 1'b1;
    fits         = is_own;
    unique case (header.opcode_f)
      cdl_npu_isa_pkg::OP_LOAD:   begin fits = is_load; send_word_o = load; d_index = load.d_f; end
      cdl_npu_isa_pkg::OP_STORE:  begin fits = is_store; send_word_o = store; d_index = store.d_f; end
      cdl_npu_isa_pkg::OP_COPY:   begin fits = is_load; send_word_o = copy; d_index = copy.d_f; end
      cdl_npu_isa_pkg::OP_FILL:   begin fits = is_load; send_word_o = fill; d_index = fill.d_f; end
      cdl_npu_isa_pkg::OP_LDW:    begin fits = is_matrix; send_word_o = ldw; d_index = ldw.d_f; end
      cdl_npu_isa_pkg::OP_MM:     begin fits = is_matrix; send_word_o = mm; d_index = mm.d_f; end
      cdl_npu_isa_pkg::OP_CONV, cdl_npu_isa_pkg::OP_DWCONV: begin
        fits        = is_matrix;
        send_word_o = conv;
        d_index     = conv.d_f;
      end
      cdl_npu_isa_pkg::OP_REQUANT: begin
        fits         = is_requant;
        send_word_o  = requant;
        d_index      = requant.d_f;
        second_index = requant.r_f;
      end
      cdl_npu_isa_pkg::OP_ACCLOAD, cdl_npu_isa_pkg::OP_ACCSTORE: begin
        fits        = is_requant;
        send_word_o = move;
        d_index     = move.d_f;
      end
      cdl_npu_isa_pkg::OP_VBINARY, cdl_npu_isa_pkg::OP_VUNARY, cdl_npu_isa_pkg::OP_VREDUCE, cdl_npu_isa_pkg::OP_VSELECT,
      cdl_npu_isa_pkg::OP_VPOOL: begin
        fits         = is_vector;
        send_word_o  = vector;
        d_index      = vector.d_f;
        second_index = vector.d_f + 4'd1;
      end
      cdl_npu_isa_pkg::OP_NOP: fits = 32'(header.engine_f) < Engines;
      cdl_npu_isa_pkg::OP_HALT, cdl_npu_isa_pkg::OP_LOOP, cdl_npu_isa_pkg::OP_MOVI,
      cdl_npu_isa_pkg::OP_ADDI, cdl_npu_isa_pkg::OP_SETD, cdl_npu_isa_pkg::OP_FENCE, cdl_npu_isa_pkg::OP_SNAPSHOT,
      cdl_npu_isa_pkg::OP_CONFIG: fits = is_own;
      default: is_known = 1'b0;
    endcase
  end
  assign send_desc_o   = d_q[{28'd0, d_index}*DescriptorBits +: DescriptorBits];
  assign send_second_o = d_q[{28'd0, second_index}*DescriptorBits +: DescriptorBits];

  // ---- Loops: the innermost one is the last ----
  logic [2:0] nested_q;
  logic [Depth*32-1:0] first_q, last_q, left_q;       // words, and rounds that are still to come
  logic [1:0] innermost;
  logic opens, closes, again;
  assign innermost = 2'(nested_q - 3'd1);
  assign opens     = is_own && header.opcode_f == cdl_npu_isa_pkg::OP_LOOP;
  logic [31:0] innermost_last;
  assign innermost_last = last_q[32'(innermost)*32 +: 32];
  // Loops that end with one word end together: an inner one has used up its rounds, then the next one goes on.
  logic [2:0] nested_d;
  always_comb begin
    nested_d = nested_q;
    closes   = 1'b0;
    again    = 1'b0;
    pc_d     = pc_q + 32'd1;
    if (!opens) begin
      for (int unsigned i = Depth; i > 0; i--) begin
        if (32'(nested_d) == i && !again && last_q[(i-1)*32 +: 32] == pc_q) begin
          closes = 1'b1;
          if (left_q[(i-1)*32 +: 32] != '0) begin
            again = 1'b1;
            pc_d  = first_q[(i-1)*32 +: 32];
          end else begin
            nested_d = 3'(i - 1);
          end
        end
      end
    end
  end
  logic [31:0] loop_last;
  logic bad_loop;
  assign loop_last = pc_q + 32'd1 + 32'(loop_insn.length_f);
  assign bad_loop  = opens && (nested_q == 3'(Depth) || loop_last >= words_i ||
                               (nested_q != '0 && loop_last > innermost_last));

  // ---- One step ----
  logic runs, wants, has_tokens, fence_free, all_idle, may, step, bad, ends;
  assign runs       = state_q == StRun;
  assign all_idle   = &idle_i[Engines-1:1];
  assign fence_free = header.opcode_f != cdl_npu_isa_pkg::OP_FENCE || (~idle_i[Engines-1:1] & fence.mask_f[Engines-1:1]) == '0;
  logic bad_word;
  cdl_npu_word_check #(.Engines(EngineMask)) u_check (.word_i(word), .bad_o(bad_word));
  assign bad        = !is_known || !fits || bad_loop || bad_word;
  assign wants      = is_own && header.wait_count_f != '0 && !taken_q;
  assign has_tokens = !wants || take_ready_i;
  assign may        = is_own ? has_tokens && fence_free && (!is_halt || all_idle) : send_ready_i[header.engine_f];
  assign step       = runs && !bad && may;
  assign ends       = is_own && is_halt;
  assign stuck_o    = runs && !bad && !may;
  assign send_valid_o     = runs && !bad && !is_own ? Engines'(1) << header.engine_f : '0;
  assign take_valid_o     = runs && !bad && wants;
  assign take_semaphore_o = header.wait_semaphore_f;
  assign take_count_o     = header.wait_count_f;
  assign signal_valid_o     = step && is_own && header.signal_count_f != '0;
  assign signal_semaphore_o = header.signal_semaphore_f;
  assign signal_count_o     = header.signal_count_f;
  assign snapshot_o       = step && is_own && header.opcode_f == cdl_npu_isa_pkg::OP_SNAPSHOT;
  assign snapshot_slot_o  = snapshot.slot_f;
  assign config_o         = step && is_own && header.opcode_f == cdl_npu_isa_pkg::OP_CONFIG;
  assign config_offset_o  = config_insn.offset_f;
  assign config_value_o   = config_insn.value_f;
  assign retire_o         = step && is_own;
  assign mark_o           = retire_o && header.mark_f[0];

  // The next word is asked for in the cycle in which this one goes, so that one goes in each cycle.
  logic halted_q, fault_q, past_end;
  assign past_end      = pc_d >= words_i;
  assign fetch_valid_o = state_q == StFetch || (step && !ends && !past_end);
  assign fetch_index_o = state_q == StFetch ? pc_q : pc_d;
  assign running_o     = state_q != StIdle;
  assign halted_o      = halted_q;
  assign fault_o       = fault_q;
  assign pc_o          = pc_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      pc_q     <= '0;
      came_q   <= 1'b0;
      taken_q  <= 1'b0;
      halted_q <= 1'b0;
      fault_q  <= 1'b0;
      nested_q <= '0;
      x_q      <= '0;
    end else begin
      came_q <= fetch_valid_o && fetch_ready_i;
      if (step) begin
        taken_q <= 1'b0;
      end else if (take_valid_o && take_ready_i) begin
        taken_q <= 1'b1;
      end
      unique case (state_q)
        StIdle: begin
          if (start_i) begin
            state_q  <= words_i == '0 ? StIdle : StFetch;
            fault_q  <= words_i == '0;
            halted_q <= 1'b0;
            nested_q <= '0;
            pc_q     <= '0;
            x_q      <= '0;
          end
        end
        StFetch: if (fetch_ready_i) state_q <= StRun;
        default: begin
          if (bad) begin
            state_q <= StIdle;
            fault_q <= 1'b1;
          end else if (step) begin
            if (ends) begin
              state_q  <= StIdle;
              halted_q <= 1'b1;
            end else if (past_end) begin
              state_q <= StIdle;
              pc_q    <= pc_d;
              fault_q <= 1'b1;
            end else begin
              pc_q    <= pc_d;
              state_q <= fetch_ready_i ? StRun : StFetch;
            end
            nested_q <= opens ? nested_q + 3'd1 : nested_d;
            if (is_own && movi.x_f != '0) begin
              if (header.opcode_f == cdl_npu_isa_pkg::OP_MOVI) begin
                x_q[{27'd0, movi.x_f}*32 +: 32] <= movi.value_f;
              end else if (header.opcode_f == cdl_npu_isa_pkg::OP_ADDI) begin
                x_q[{27'd0, movi.x_f}*32 +: 32] <= indexOf(x_q, movi.x_f) + movi.value_f;
              end
            end
          end
        end
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    word_q <= word;
    if (step && opens) begin
      first_q[32'(nested_q[1:0])*32 +: 32] <= pc_q + 32'd1;
      last_q[32'(nested_q[1:0])*32 +: 32]  <= loop_last;
      left_q[32'(nested_q[1:0])*32 +: 32]  <= 32'(loop_insn.count_f);
    end else if (step && again) begin
      left_q[32'(2'(nested_d - 3'd1))*32 +: 32] <= left_q[32'(2'(nested_d - 3'd1))*32 +: 32] - 32'd1;
    end
    if (step && is_own && header.opcode_f == cdl_npu_isa_pkg::OP_SETD) begin
      d_q[32'(setd.d_f)*DescriptorBits + 32'(setd.word_f)*64 +: 64] <= setd.value_f;
    end
  end

  logic unused;
  assign unused = ^{header, loop_insn, movi, setd, fence, config_insn, snapshot, idle_i[0], closes};
endmodule
