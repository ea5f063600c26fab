// The counters of the PMU: 64 bits each, by cdl_npu_regs_pkg::counter_e, with a set of copies for each snapshot. In a cycle a counter may go up by as
// much as 2^AddWidth - 1. A clear wins over what comes in the same cycle; a snapshot has what stood before the cycle.
module cdl_npu_pmu #(
  parameter int unsigned Counters = 32,
  parameter int unsigned Slots    = 4,             // a power of two
  parameter int unsigned AddWidth = 16,
  localparam int unsigned Id   = $clog2(Counters),
  localparam int unsigned Slot = $clog2(Slots)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         enable_i,     // bit 0 of PMU_CONTROL
  input  logic                         clear_i,      // a 1 written to bit 1 of it
  input  logic [Counters*AddWidth-1:0] add_i,        // by counter
  input  logic                         snapshot_i,
  input  logic [Slot-1:0]              snapshot_slot_i,

  // A word of 32 bits, of a counter or of a copy.
  input  logic [Id-1:0]                read_id_i,
  input  logic                         read_high_i,
  input  logic                         read_copy_i,
  input  logic [Slot-1:0]              read_slot_i,
  output logic [31:0]                  read_data_o
);

  logic [Counters*64-1:0] counts_q;
  logic [Slots*Counters*64-1:0] copies_q;
  logic [63:0] chosen;
  assign chosen = read_copy_i ? copies_q[(32'(read_slot_i)*Counters + 32'(read_id_i))*64 +: 64]
                              : counts_q[32'(read_id_i)*64 +: 64];
  assign read_data_o = read_high_i ? chosen[63:32] : chosen[31:0];

  for (genvar i = 0; i < Counters; i++) begin : gen_counter
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        counts_q[i*64 +: 64] <= '0;
      end else if (clear_i) begin
        counts_q[i*64 +: 64] <= '0;
      end else if (enable_i) begin
        counts_q[i*64 +: 64] <= counts_q[i*64 +: 64] + 64'(add_i[i*AddWidth +: AddWidth]);
      end
    end
  end
  for (genvar s = 0; s < Slots; s++) begin : gen_slot
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        copies_q[s*Counters*64 +: Counters*64] <= '0;
      end else if (snapshot_i && 32'(snapshot_slot_i) == s) begin
        copies_q[s*Counters*64 +: Counters*64] <= counts_q;
      end
    end
  end
endmodule
