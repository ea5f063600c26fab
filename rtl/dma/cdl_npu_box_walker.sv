// The walk over one side of a transfer: a box of runs in three strided dimensions, a piece in each cycle in which step_i is high. A piece is a
// burst, which ends at a multiple of BurstBytes, or with words_i up to Width bytes from wherever they begin. First the runs that follow one another
// without a gap are joined, dimension by dimension. With padding only those of a row are, and those of its padding: a piece is one or the other.
//
// All inputs but step_i stand still from start_i to last_o. Extents are not less one, and those of a row and a plane are without their padding.
module cdl_npu_box_walker #(
  parameter int unsigned AddrWidth  = 40,
  parameter int unsigned BurstBytes = 64,       // a power of two
  parameter int unsigned Width      = 16,
  localparam int unsigned Longest    = BurstBytes > Width ? BurstBytes : Width,
  localparam int unsigned CountWidth = $clog2(Longest + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  start_i,        // four cycles before the first step
  input  logic                  words_i,
  input  logic [AddrWidth-1:0]  addr_i,
  input  logic [16:0]           run_i,
  input  logic [16:0]           len1_i,
  input  logic [16:0]           len2_i,
  input  logic [16:0]           len3_i,
  input  logic [AddrWidth-1:0]  stride1_i,
  input  logic [AddrWidth-1:0]  stride2_i,
  input  logic [AddrWidth-1:0]  stride3_i,
  input  logic [3:0]            pad_left_i,
  input  logic [3:0]            pad_right_i,
  input  logic [3:0]            pad_top_i,
  input  logic [3:0]            pad_bottom_i,

  output logic                  active_o,
  input  logic                  step_i,
  // Of the step:
  output logic [AddrWidth-1:0]  addr_o,
  output logic [CountWidth-1:0] bytes_o,
  output logic                  padding_o,
  output logic                  last_o
);

  localparam int unsigned BurstLog2 = $clog2(BurstBytes);

  typedef enum logic [2:0] {StIdle, StJoin2, StJoin3, StBegin, StWalk} state_e;
  state_e state_q;
  assign active_o = state_q == StWalk;

  // ---- Joining: one dimension in a cycle, the first in that of start_i ----
  logic [AddrWidth-1:0] run_q, run, stride;
  logic [16:0] len, len1_q, len2_q, len3_q;
  logic may_join_q, joins, is_packed_q, is_padded;
  assign is_padded = {pad_left_i, pad_right_i, pad_top_i, pad_bottom_i} != '0;
  always_comb begin
    unique case (state_q)
      StJoin2: begin len = len2_i; stride = stride2_i; end
      StJoin3: begin len = len3_i; stride = stride3_i; end
      default: begin len = len1_i; stride = stride1_i; end
    endcase
  end
  assign run   = start_i ? AddrWidth'(run_i) : run_q;
  assign joins = (start_i || may_join_q) && stride == run;

  // What stands before and behind the runs of a row, and a row that is all padding: runs of so many bytes. Packed, each is one run.
  logic [AddrWidth-1:0] left_bytes_q, right_bytes_q, all_bytes;
  logic [17:0] left_runs, right_runs, all_runs;
  assign all_bytes  = is_packed_q ? left_bytes_q + run_q + right_bytes_q : run_q;
  assign left_runs  = is_packed_q ? 18'(pad_left_i != '0) : 18'(pad_left_i);
  assign right_runs = is_packed_q ? 18'(pad_right_i != '0) : 18'(pad_right_i);
  assign all_runs   = is_packed_q ? 18'd1 : 18'(len1_q) + 18'(pad_left_i) + 18'(pad_right_i);

  // ---- Walking: pieces of a run, runs of a part of a row, parts, rows, planes ----
  typedef enum logic [1:0] {PartLeft, PartData, PartRight, PartAll} part_e;
  part_e part_q, part_d;
  logic [AddrWidth-1:0] addr_q, run_addr_q, row_addr_q, plane_addr_q, addr_d, left_q, limit, run_bytes;
  logic [17:0] runs_q, runs_d, row_q, row_d, last_row;
  logic [16:0] planes_q;
  logic begins, run_ends, part_ends, row_ends, plane_ends, is_inside;
  assign limit      = words_i ? AddrWidth'(Width) : AddrWidth'(BurstBytes) - AddrWidth'(addr_q[BurstLog2-1:0]);
  assign last_row   = 18'(len2_q) + 18'(pad_top_i) + 18'(pad_bottom_i) - 18'd1;
  assign begins     = state_q == StBegin;
  assign run_ends   = left_q <= limit;
  assign part_ends  = run_ends && runs_q == 18'd1;
  assign row_ends   = part_ends && (part_q == PartAll || part_q == PartRight || (part_q == PartData && right_runs == '0));
  assign plane_ends = row_ends && row_q == last_row;
  assign last_o     = plane_ends && planes_q == 17'd1;
  assign addr_o     = addr_q;
  assign bytes_o    = CountWidth'(run_ends ? left_q : limit);
  assign padding_o  = part_q != PartData;

  assign row_d     = begins || plane_ends ? '0 : row_q + 18'd1;
  assign is_inside = row_d >= 18'(pad_top_i) && row_d < 18'(pad_top_i) + 18'(len2_q);
  always_comb begin
    part_d = part_q;
    if (begins || row_ends) begin
      part_d = !is_inside ? PartAll : left_runs != '0 ? PartLeft : PartData;
    end else if (part_ends) begin
      part_d = part_q == PartLeft ? PartData : PartRight;
    end
    unique case (part_d)
      PartLeft:  begin runs_d = left_runs; run_bytes = left_bytes_q; end
      PartRight: begin runs_d = right_runs; run_bytes = right_bytes_q; end
      PartAll:   begin runs_d = all_runs; run_bytes = all_bytes; end
      default:   begin runs_d = 18'(len1_q); run_bytes = run_q; end
    endcase
    if (begins) begin
      addr_d = addr_i;
    end else if (!run_ends || (is_packed_q && !row_ends)) begin
      addr_d = addr_q + AddrWidth'(bytes_o);
    end else if (!row_ends) begin
      addr_d = run_addr_q + stride1_i;
    end else if (!plane_ends) begin
      addr_d = row_addr_q + stride2_i;
    end else begin
      addr_d = plane_addr_q + stride3_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StJoin2;
        StJoin2: state_q <= StJoin3;
        StJoin3: state_q <= StBegin;
        StBegin: state_q <= StWalk;
        default: if (step_i && last_o) state_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i || state_q == StJoin2 || state_q == StJoin3) begin
      run_q      <= joins ? AddrWidth'(run * AddrWidth'(len)) : run;
      may_join_q <= (joins || (len == 17'd1 && (start_i || may_join_q))) && !is_padded;
    end
    if (start_i) begin
      len1_q        <= joins ? 17'd1 : len1_i;
      len2_q        <= len2_i;
      len3_q        <= len3_i;
      is_packed_q   <= joins;
      left_bytes_q  <= joins ? AddrWidth'(run_i) * AddrWidth'(pad_left_i) : AddrWidth'(run_i);
      right_bytes_q <= joins ? AddrWidth'(run_i) * AddrWidth'(pad_right_i) : AddrWidth'(run_i);
    end else if (state_q == StJoin2 && joins) begin
      len2_q <= 17'd1;
    end else if (state_q == StJoin3 && joins) begin
      len3_q <= 17'd1;
    end
    if (begins || step_i) begin
      addr_q <= addr_d;
      part_q <= part_d;
      if (!begins && !run_ends) begin
        left_q <= left_q - AddrWidth'(bytes_o);
      end else begin
        left_q     <= run_bytes;
        run_addr_q <= addr_d;
        runs_q     <= begins || part_ends ? runs_d : runs_q - 18'd1;
      end
      if (begins || row_ends) begin
        row_q      <= row_d;
        row_addr_q <= addr_d;
      end
      if (begins || plane_ends) begin
        plane_addr_q <= addr_d;
        planes_q     <= begins ? len3_q : planes_q - 17'd1;
      end
    end
  end
endmodule
