// The counting semaphores. An engine that waits asks for its tokens until take_ready_o is high, and has them then; signals are added in the cycle
// in which they come, for whoever asks in the next one. Where several ask for one semaphore, those of lower numbers go first, as far as the
// tokens of the cycle go.
module cdl_npu_semaphores #(
  parameter int unsigned Engines    = 12,
  parameter int unsigned Semaphores = cdl_npu_isa_pkg::Semaphores,
  parameter int unsigned Most       = cdl_npu_isa_pkg::SemaphoreMax,
  localparam int unsigned Index      = $clog2(Semaphores),
  localparam int unsigned CountWidth = $clog2(Most + 1)
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,        // all counts to 0

  input  logic [Engines-1:0]               take_valid_i,
  output logic [Engines-1:0]               take_ready_o,
  input  logic [Engines*Index-1:0]         take_semaphore_i,
  input  logic [Engines*3-1:0]             take_count_i,

  input  logic [Engines-1:0]               signal_valid_i,
  input  logic [Engines*Index-1:0]         signal_semaphore_i,
  input  logic [Engines*3-1:0]             signal_count_i,

  output logic [Semaphores*CountWidth-1:0] counts_o,
  output logic                             overflow_o      // a count would have gone beyond Most in this cycle; it stays there
);

  // Eight tokens of each engine at most: enough bits for all that can come in a cycle.
  localparam int unsigned SumWidth = CountWidth + 8;
  logic [Semaphores*Engines-1:0] granted;
  logic [Semaphores-1:0] overflow;
  assign overflow_o = |overflow;

  for (genvar s = 0; s < Semaphores; s++) begin : gen_semaphore
    logic [CountWidth-1:0] count_q, left;
    logic [SumWidth-1:0] sum;
    assign counts_o[s*CountWidth +: CountWidth] = count_q;
    always_comb begin
      left = count_q;
      granted[s*Engines +: Engines] = '0;
      for (int unsigned e = 0; e < Engines; e++) begin
        if (take_valid_i[e] && 32'(take_semaphore_i[e*Index +: Index]) == s && CountWidth'(take_count_i[e*3 +: 3]) <= left) begin
          granted[s*Engines + e] = 1'b1;
          left = left - CountWidth'(take_count_i[e*3 +: 3]);
        end
      end
      sum = SumWidth'(left);
      for (int unsigned e = 0; e < Engines; e++) begin
        if (signal_valid_i[e] && 32'(signal_semaphore_i[e*Index +: Index]) == s) begin
          sum = sum + SumWidth'(signal_count_i[e*3 +: 3]);
        end
      end
    end
    assign overflow[s] = sum > SumWidth'(Most);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        count_q <= '0;
      end else if (clear_i) begin
        count_q <= '0;
      end else begin
        count_q <= overflow[s] ? CountWidth'(Most) : CountWidth'(sum);
      end
    end
  end

  for (genvar e = 0; e < Engines; e++) begin : gen_engine
    logic [Semaphores-1:0] by;
    for (genvar s = 0; s < Semaphores; s++) begin : gen_by
      assign by[s] = granted[s*Engines + e];
    end
    assign take_ready_o[e] = |by;
  end
endmodule
