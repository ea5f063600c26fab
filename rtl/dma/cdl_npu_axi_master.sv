// From the burst port of the arbiter to AXI4: a burst is an INCR transaction of whole beats, whose ID is the number of its channel. It ends at a multiple
// of BurstBytes, 4,096 at most, and so crosses no boundary of 4 KB. An answer that is no OKAY shows as a fault of its channel.
//
// hold_i keeps new transactions back; what was offered stays. drained_o: nothing is offered or under way.
module cdl_npu_axi_master #(
  parameter int unsigned BurstBytes = 64,           // a power of two, up to 4096
  parameter int unsigned BeatBytes  = 64,           // a power of two, up to 128 for AXI4
  parameter int unsigned AddrWidth  = 40,
  parameter int unsigned IdWidth    = 2,
  localparam int unsigned BurstWidth = $clog2(BurstBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   hold_i,
  output logic                   drained_o,
  output logic                   fault_o,
  output logic [IdWidth-1:0]     fault_id_o,

  input  logic                   req_valid_i,
  output logic                   req_ready_o,
  input  logic                   req_write_i,
  input  logic [IdWidth-1:0]     req_tag_i,
  input  logic [AddrWidth-1:0]   req_addr_i,
  input  logic [BurstWidth-1:0]  req_bytes_i,
  input  logic                   put_valid_i,
  output logic                   put_ready_o,
  input  logic                   put_last_i,
  input  logic [BeatBytes-1:0]   put_bytes_i,
  input  logic [BeatBytes*8-1:0] put_data_i,
  output logic                   data_valid_o,
  input  logic                   data_ready_i,
  output logic [IdWidth-1:0]     data_tag_o,
  output logic [BeatBytes*8-1:0] data_o,
  output logic                   answer_valid_o,
  input  logic                   answer_ready_i,
  output logic [IdWidth-1:0]     answer_tag_o,

  output logic                   m_axi_awvalid_o,
  input  logic                   m_axi_awready_i,
  output logic [IdWidth-1:0]     m_axi_awid_o,
  output logic [AddrWidth-1:0]   m_axi_awaddr_o,
  output logic [7:0]             m_axi_awlen_o,
  output logic [2:0]             m_axi_awsize_o,
  output logic [1:0]             m_axi_awburst_o,
  output logic [BurstWidth-1:0]  m_axi_awuser_o,    // bytes that are written of those beats
  output logic                   m_axi_wvalid_o,
  input  logic                   m_axi_wready_i,
  output logic [BeatBytes*8-1:0] m_axi_wdata_o,
  output logic [BeatBytes-1:0]   m_axi_wstrb_o,
  output logic                   m_axi_wlast_o,
  input  logic                   m_axi_bvalid_i,
  output logic                   m_axi_bready_o,
  input  logic [IdWidth-1:0]     m_axi_bid_i,
  input  logic [1:0]             m_axi_bresp_i,
  output logic                   m_axi_arvalid_o,
  input  logic                   m_axi_arready_i,
  output logic [IdWidth-1:0]     m_axi_arid_o,
  output logic [AddrWidth-1:0]   m_axi_araddr_o,
  output logic [7:0]             m_axi_arlen_o,
  output logic [2:0]             m_axi_arsize_o,
  output logic [1:0]             m_axi_arburst_o,
  output logic [BurstWidth-1:0]  m_axi_aruser_o,    // bytes that are wanted of those beats
  input  logic                   m_axi_rvalid_i,
  output logic                   m_axi_rready_o,
  input  logic [IdWidth-1:0]     m_axi_rid_i,
  input  logic [BeatBytes*8-1:0] m_axi_rdata_i,
  input  logic [1:0]             m_axi_rresp_i,
  input  logic                   m_axi_rlast_i
);

  localparam int unsigned BeatLog2   = $clog2(BeatBytes);
  localparam int unsigned FlightBits = 16;

  // ---- Requests ----
  logic offered_q, may;
  logic [BurstWidth+BeatLog2:0] span;
  logic [7:0] beats_less_one;
  assign may             = req_valid_i && (!hold_i || offered_q);
  assign span            = (BurstWidth+BeatLog2+1)'(req_addr_i[BeatLog2-1:0]) + (BurstWidth+BeatLog2+1)'(req_bytes_i) - 1'b1;
  assign beats_less_one  = 8'(span >> BeatLog2);
  assign m_axi_awvalid_o = may && req_write_i;
  assign m_axi_awid_o    = req_tag_i;
  assign m_axi_awaddr_o  = req_addr_i;
  assign m_axi_awlen_o   = beats_less_one;
  assign m_axi_awsize_o  = 3'(BeatLog2);
  assign m_axi_awburst_o = 2'b01;
  assign m_axi_arvalid_o = may && !req_write_i;
  assign m_axi_arid_o    = req_tag_i;
  assign m_axi_araddr_o  = req_addr_i;
  assign m_axi_arlen_o   = beats_less_one;
  assign m_axi_arsize_o  = 3'(BeatLog2);
  assign m_axi_arburst_o = 2'b01;
  assign m_axi_awuser_o  = req_bytes_i;
  assign m_axi_aruser_o  = req_bytes_i;
  assign req_ready_o     = may && (req_write_i ? m_axi_awready_i : m_axi_arready_i);

  // ---- Data and answers ----
  assign m_axi_wvalid_o = put_valid_i;
  assign m_axi_wdata_o  = put_data_i;
  assign m_axi_wstrb_o  = put_bytes_i;
  assign m_axi_wlast_o  = put_last_i;
  assign put_ready_o    = m_axi_wready_i;
  assign data_valid_o   = m_axi_rvalid_i;
  assign data_tag_o     = m_axi_rid_i;
  assign data_o         = m_axi_rdata_i;
  assign m_axi_rready_o = data_ready_i;
  assign answer_valid_o = m_axi_bvalid_i;
  assign answer_tag_o   = m_axi_bid_i;
  assign m_axi_bready_o = answer_ready_i;

  logic read_fails, write_fails;
  assign read_fails  = m_axi_rvalid_i && m_axi_rready_o && m_axi_rresp_i != 2'b00;
  assign write_fails = m_axi_bvalid_i && m_axi_bready_o && m_axi_bresp_i != 2'b00;
  assign fault_o     = read_fails || write_fails;
  assign fault_id_o  = read_fails ? m_axi_rid_i : m_axi_bid_i;

  // ---- What is under way ----
  logic [FlightBits-1:0] in_flight_q;
  logic begins, read_ends, write_ends;
  assign begins     = req_valid_i && req_ready_o;
  assign read_ends  = m_axi_rvalid_i && m_axi_rready_o && m_axi_rlast_i;
  assign write_ends = m_axi_bvalid_i && m_axi_bready_o;
  assign drained_o  = in_flight_q == '0 && !offered_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      offered_q   <= 1'b0;
      in_flight_q <= '0;
    end else begin
      offered_q   <= may && !begins;
      in_flight_q <= in_flight_q + FlightBits'(begins) - FlightBits'(read_ends) - FlightBits'(write_ends);
    end
  end

`ifdef VERILATOR
  logic [AddrWidth+FlightBits:0] offer_q;
  always_ff @(posedge clk_i) begin
    offer_q <= {req_write_i, req_addr_i, FlightBits'(req_bytes_i)};
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (rst_ni) begin
      assert (!offered_q || (req_valid_i && offer_q == {req_write_i, req_addr_i, FlightBits'(req_bytes_i)}))
        else $error("a request changed before it was taken");
      assert (!may || 32'(req_addr_i[11:0]) + 32'(req_bytes_i) <= 4096) else $error("a burst crosses 4 KB");
      assert (!(read_ends && write_ends) || in_flight_q >= FlightBits'(2)) else $error("more answers than requests");
      assert (!(read_ends || write_ends) || in_flight_q != '0) else $error("an answer without a request");
    end
  end
`endif
endmodule
