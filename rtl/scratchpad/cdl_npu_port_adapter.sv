// From a port of an engine, with addresses of 25 bits and so many bytes, to one of the scratchpad; what is read comes back beside it. An access to a byte that is not there does not
// reach the scratchpad: it is granted at once and shows as a fault. An access that needs no byte is granted at once too. Addresses may begin before the
// first byte that is needed, and so below 0.
module cdl_npu_port_adapter #(
  parameter int unsigned EngineBytes = 16,
  parameter int unsigned PortBytes   = 16,          // EngineBytes or more
  parameter int unsigned Bytes       = 262144,      // that are there
  localparam int unsigned AddrWidth = $clog2(Bytes)
) (
  input  logic                     valid_i,
  output logic                     ready_o,
  input  logic [24:0]              addr_i,
  input  logic [EngineBytes-1:0]   claim_i,         // that banks are taken for
  input  logic [EngineBytes-1:0]   bytes_i,         // of these those that are read or written
  input  logic [EngineBytes*8-1:0] data_i,
  output logic                     fault_o,

  output logic                     valid_o,
  input  logic                     ready_i,
  output logic [AddrWidth-1:0]     addr_o,
  output logic [PortBytes-1:0]     claim_o,
  output logic [PortBytes-1:0]     bytes_o,
  output logic [PortBytes*8-1:0]   data_to_o
);

  // Bytes from `room` on lie behind the end; of an address below 0 those before -addr_i lie before the begin.
  logic [25:0] room, missing;
  logic [EngineBytes-1:0] outside, below, there;
  logic is_below, is_bad;
  assign is_below = addr_i[24] && missing < 26'(EngineBytes);
  assign missing  = {1'b0, ~addr_i} + 26'd1;
  assign room     = 26'(addr_i) < 26'(Bytes) ? 26'(Bytes) - 26'(addr_i) : '0;
  assign below    = ~('1 << missing[$clog2(EngineBytes+1)-1:0]);
  assign there    = room < 26'(EngineBytes) ? ~('1 << room[$clog2(EngineBytes+1)-1:0]) : '1;
  assign outside  = is_below ? claim_i & below : claim_i & ~there;
  assign is_bad   = outside != '0;
  assign fault_o  = valid_i && is_bad;

  logic is_none;
  assign is_none   = is_bad || claim_i == '0;
  assign valid_o   = valid_i && !is_none;
  assign ready_o   = is_none || ready_i;
  assign addr_o    = addr_i[AddrWidth-1:0];
  assign claim_o   = PortBytes'(claim_i);
  assign bytes_o   = PortBytes'(bytes_i);
  assign data_to_o = (PortBytes*8)'(data_i);
endmodule
