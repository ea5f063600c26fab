// First in, first out, of bytes: up to Lanes of them enter and up to Lanes leave in a cycle, wherever they stand in their words. What enters can
// leave from the next cycle on, what leaves stands at pop_data_o in the cycle behind, until the next leaves. Who uses it keeps count of its room.
module cdl_npu_byte_fifo #(
  parameter int unsigned Lanes = 16,           // a power of two, 2 or more
  parameter int unsigned Depth = 64,           // bytes, a power of two, 2 * Lanes or more
  localparam int unsigned LaneLog2   = $clog2(Lanes),
  localparam int unsigned CountWidth = $clog2(Lanes + 1),
  localparam int unsigned LevelWidth = $clog2(Depth + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  push_i,
  input  logic [CountWidth-1:0] push_bytes_i,
  input  logic [LaneLog2-1:0]   push_lane_i,   // where the first of them stands
  input  logic [Lanes*8-1:0]    push_data_i,

  input  logic                  pop_i,
  input  logic [CountWidth-1:0] pop_bytes_i,   // there are so many
  input  logic [LaneLog2-1:0]   pop_lane_i,    // where the first of them shall stand
  output logic [Lanes*8-1:0]    pop_data_o,

  output logic [LevelWidth-1:0] level_o
);

  localparam int unsigned AddrWidth = $clog2(Depth);
  localparam int unsigned Rows      = Depth / Lanes;

  logic [AddrWidth-1:0] in_q, out_q;
  logic [LevelWidth-1:0] level_q;
  assign level_o = level_q;

  // Byte n of all that ever entered lies in lane n % Lanes.
  logic [LaneLog2-1:0] turn_in, turn_out_q;
  logic [2*Lanes*8-1:0] twice_in, twice_out;
  logic [Lanes*8-1:0] turned, all;
  assign turn_in    = push_lane_i - in_q[LaneLog2-1:0];
  assign twice_in   = {push_data_i, push_data_i} >> {turn_in, 3'b000};
  assign turned     = twice_in[Lanes*8-1:0];
  assign twice_out  = {all, all} >> {turn_out_q, 3'b000};
  assign pop_data_o = twice_out[Lanes*8-1:0];
  logic unused;
  assign unused = ^{twice_in[2*Lanes*8-1:Lanes*8], twice_out[2*Lanes*8-1:Lanes*8]};

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    // The row of the first byte in this lane that enters or leaves: one further where the lane lies before the first byte.
    logic [AddrWidth-1:0] in_at, out_at;
    logic [LaneLog2-1:0] behind;
    logic unused_at;
    assign in_at     = in_q + AddrWidth'(Lanes - 1 - i);
    assign out_at    = out_q + AddrWidth'(Lanes - 1 - i);
    assign behind    = LaneLog2'(i) - in_q[LaneLog2-1:0];
    assign unused_at = ^{in_at[LaneLog2-1:0], out_at[LaneLog2-1:0]};
    logic [7:0] bytes [Rows];
    logic [7:0] byte_q;
    assign all[i*8 +: 8] = byte_q;
    always_ff @(posedge clk_i) begin
      if (pop_i) begin
        byte_q <= bytes[out_at[AddrWidth-1:LaneLog2]];
      end
      if (push_i && CountWidth'(behind) < push_bytes_i) begin
        bytes[in_at[AddrWidth-1:LaneLog2]] <= turned[i*8 +: 8];
      end
    end
  end

  logic [LevelWidth-1:0] enter, leave;
  assign enter = push_i ? LevelWidth'(push_bytes_i) : '0;
  assign leave = pop_i ? LevelWidth'(pop_bytes_i) : '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q    <= '0;
      out_q   <= '0;
      level_q <= '0;
    end else begin
      in_q    <= in_q + AddrWidth'(enter);
      out_q   <= out_q + AddrWidth'(leave);
      level_q <= level_q + enter - leave;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pop_i) begin
      turn_out_q <= out_q[LaneLog2-1:0] - pop_lane_i;
    end
  end
endmodule
