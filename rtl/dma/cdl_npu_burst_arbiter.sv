// One burst port of the memory for several channels, loads and stores alike: a request in each cycle, of the channels in turn, with the channel's
// number as its tag. The data of stores passes in the order of their requests; what the memory returns goes to the channel of its tag.
//
// The memory keeps the order of reads of one tag, no other. A channel that is not for stores offers no data, one that is not for loads gets none.
module cdl_npu_burst_arbiter #(
  parameter int unsigned Ports      = 3,
  parameter int unsigned BurstBytes = 32,
  parameter int unsigned BeatBytes  = 32,
  parameter int unsigned AddrWidth  = 40,
  parameter int unsigned Writes     = 4,         // bursts of stores whose data has not passed, a power of two, 2 or more
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1),
  localparam int unsigned TagWidth   = Ports > 1 ? $clog2(Ports) : 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic [Ports-1:0]             req_valid_i,
  output logic [Ports-1:0]             req_ready_o,
  input  logic [Ports-1:0]             req_write_i,   // stands still: a port is for loads or for stores
  input  logic [Ports*AddrWidth-1:0]   req_addr_i,
  input  logic [Ports*BurstWidth-1:0]  req_bytes_i,
  input  logic [Ports-1:0]             put_valid_i,
  output logic [Ports-1:0]             put_ready_o,
  input  logic [Ports-1:0]             put_last_i,    // of its burst
  input  logic [Ports*BeatBytes-1:0]   put_bytes_i,
  input  logic [Ports*BeatBytes*8-1:0] put_data_i,
  output logic [Ports-1:0]             data_valid_o,  // the data is that of the memory, for all
  input  logic [Ports-1:0]             data_ready_i,
  output logic [Ports-1:0]             answer_valid_o,
  input  logic [Ports-1:0]             answer_ready_i,

  output logic                         req_valid_o,
  input  logic                         req_ready_i,
  output logic                         req_write_o,
  output logic [TagWidth-1:0]          req_tag_o,
  output logic [AddrWidth-1:0]         req_addr_o,
  output logic [BurstWidth-1:0]        req_bytes_o,
  output logic                         put_valid_o,
  input  logic                         put_ready_i,
  output logic                         put_last_o,
  output logic [BeatBytes-1:0]         put_bytes_o,
  output logic [BeatBytes*8-1:0]       put_data_o,
  input  logic                         data_valid_i,
  output logic                         data_ready_o,
  input  logic [TagWidth-1:0]          data_tag_i,
  input  logic                         answer_valid_i,
  output logic                         answer_ready_o,
  input  logic [TagWidth-1:0]          answer_tag_i
);

  // ---- Requests: the first one from first_q on. It stays that one until it is taken ----
  logic [TagWidth-1:0] first_q, chosen;
  logic [Ports-1:0] may;
  logic writes_ready;
  assign may = req_valid_i & (writes_ready ? '1 : ~req_write_i);
  always_comb begin
    chosen = first_q;
    for (int unsigned i = 2*Ports; i > 0; i--) begin
      if (i - 1 >= 32'(first_q) && may[(i - 1) % Ports]) begin
        chosen = TagWidth'((i - 1) % Ports);
      end
    end
  end
  assign req_valid_o = may != '0;
  assign req_tag_o   = chosen;
  assign req_write_o = req_write_i[chosen];
  assign req_addr_o  = req_addr_i[32'(chosen)*AddrWidth +: AddrWidth];
  assign req_bytes_o = req_bytes_i[32'(chosen)*BurstWidth +: BurstWidth];
  logic taken;
  assign taken = req_valid_o && req_ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else if (taken) begin
      first_q <= 32'(chosen) == Ports - 1 ? '0 : chosen + TagWidth'(1);
    end else if (req_valid_o) begin
      first_q <= chosen;
    end
  end

  // ---- Data of stores ----
  logic writer_valid;
  logic [TagWidth-1:0] writer;
  cdl_npu_fifo #(.Width(TagWidth), .Depth(Writes)) u_writers (
    .clk_i, .rst_ni,
    .valid_i (taken && req_write_o),
    .ready_o (writes_ready),
    .data_i  (chosen),
    .valid_o (writer_valid),
    .ready_i (put_valid_o && put_ready_i && put_last_o),
    .data_o  (writer)
  );
  assign put_valid_o = writer_valid && put_valid_i[writer];
  assign put_last_o  = put_last_i[writer];
  assign put_bytes_o = put_bytes_i[32'(writer)*BeatBytes +: BeatBytes];
  assign put_data_o  = put_data_i[32'(writer)*BeatBytes*8 +: BeatBytes*8];

  // ---- Who is meant ----
  assign data_ready_o   = data_ready_i[data_tag_i];
  assign answer_ready_o = answer_ready_i[answer_tag_i];
  for (genvar i = 0; i < Ports; i++) begin : gen_port
    assign req_ready_o[i]    = taken && 32'(chosen) == i;
    assign put_ready_o[i]    = writer_valid && put_ready_i && 32'(writer) == i;
    assign data_valid_o[i]   = data_valid_i && 32'(data_tag_i) == i;
    assign answer_valid_o[i] = answer_valid_i && 32'(answer_tag_i) == i;
  end
endmodule
