// The walk of vbinary, vunary, vselect and vreduce: runs in two dimensions, each in chunks of up to 2^chunk_log2_i elements; a chunk in each
// cycle in which step_i is high. All inputs but step_i stand still from start_i to last_o. Extents are not less one.
module cdl_npu_lanes_walker #(
  parameter int unsigned Lanes = 16,
  localparam int unsigned CountWidth = $clog2(Lanes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  start_i,       // a cycle before the first step
  input  logic [24:0]           a_i,
  input  logic [24:0]           b_i,
  input  logic [24:0]           out_i,
  input  logic [16:0]           run_i,
  input  logic [16:0]           len1_i,
  input  logic [16:0]           len2_i,
  input  logic [23:0]           a_stride1_i,
  input  logic [23:0]           a_stride2_i,
  input  logic [23:0]           b_stride1_i,
  input  logic [23:0]           b_stride2_i,
  input  logic [23:0]           out_stride1_i,
  input  logic [23:0]           out_stride2_i,
  input  logic [3:0]            chunk_log2_i,
  input  logic [1:0]            a_log2_i,      // bytes of an element
  input  logic [1:0]            b_log2_i,
  input  logic [1:0]            out_log2_i,
  input  logic                  b_scalar_i,
  input  logic                  reduce_i,      // one result for a run

  output logic                  active_o,
  input  logic                  step_i,
  // Of the step:
  output logic [24:0]           a_addr_o,
  output logic [24:0]           b_addr_o,
  output logic [24:0]           out_addr_o,
  output logic [CountWidth-1:0] count_o,       // elements
  output logic                  first_o,       // of the run
  output logic                  last_of_run_o,
  output logic                  last_o
);

  logic active_q;
  logic [16:0] left_q, run1_q, run2_q, chunk;
  logic [24:0] a_q, b_q, out_q, a_run_q, b_run_q, out_run_q, a_row_q, b_row_q, out_row_q;
  logic row_ends;

  assign chunk         = 17'd1 << chunk_log2_i;
  assign active_o      = active_q;
  assign a_addr_o      = a_q;
  assign b_addr_o      = b_q;
  assign out_addr_o    = out_q;
  assign count_o       = CountWidth'(left_q < chunk ? left_q : chunk);
  assign first_o       = left_q == run_i;
  assign last_of_run_o = left_q <= chunk;
  assign row_ends      = last_of_run_o && run1_q == 17'd1;
  assign last_o        = row_ends && run2_q == 17'd1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= 1'b1;
    end else if (step_i && last_o) begin
      active_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      left_q <= run_i;
      run1_q <= len1_i;
      run2_q <= len2_i;
      {a_q, a_run_q, a_row_q}       <= {3{a_i}};
      {b_q, b_run_q, b_row_q}       <= {3{b_i}};
      {out_q, out_run_q, out_row_q} <= {3{out_i}};
    end else if (step_i && !last_of_run_o) begin
      left_q <= left_q - chunk;
      a_q    <= a_q + (25'(chunk) << a_log2_i);
      b_q    <= b_scalar_i ? b_q : b_q + (25'(chunk) << b_log2_i);
      out_q  <= reduce_i ? out_q : out_q + (25'(chunk) << out_log2_i);
    end else if (step_i && !row_ends) begin
      left_q <= run_i;
      run1_q <= run1_q - 17'd1;
      {a_q, a_run_q}     <= {2{a_run_q + 25'(a_stride1_i)}};
      {b_q, b_run_q}     <= {2{b_run_q + 25'(b_stride1_i)}};
      {out_q, out_run_q} <= {2{out_run_q + 25'(out_stride1_i)}};
    end else if (step_i) begin
      left_q <= run_i;
      run1_q <= len1_i;
      run2_q <= run2_q - 17'd1;
      {a_q, a_run_q, a_row_q}       <= {3{a_row_q + 25'(a_stride2_i)}};
      {b_q, b_run_q, b_row_q}       <= {3{b_row_q + 25'(b_stride2_i)}};
      {out_q, out_run_q, out_row_q} <= {3{out_row_q + 25'(out_stride2_i)}};
    end
  end
endmodule
