// The scratchpad: Banks memories of Width bytes a word, interleaved word by word, each with one access in a cycle. A port reads or writes up to
// PortBytes bytes from any address on, all or nothing: it is granted when all banks that its bytes lie in are free. What was read stands there
// in the cycle behind, byte i from address + i, until the port is granted again.
//
// Ports choose in turn, and the first one that had to wait begins in the next cycle: nobody waits for ever.
module cdl_npu_scratchpad #(
  parameter int unsigned Ports     = 3,
  parameter int unsigned Banks     = 4,           // a power of two, 2 or more
  parameter int unsigned Width     = 16,          // a power of two
  parameter int unsigned PortBytes = 16,          // up to (Banks - 1) * Width + 1: its words lie in different banks
  parameter int unsigned Bytes     = 262144,      // a power of two
  localparam int unsigned AddrWidth = $clog2(Bytes)
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  logic [Ports-1:0]               valid_i,
  output logic [Ports-1:0]               ready_o,
  input  logic [Ports-1:0]               write_i,
  input  logic [Ports*AddrWidth-1:0]     addr_i,
  input  logic [Ports*PortBytes-1:0]     claim_i,  // those that banks are taken for
  input  logic [Ports*PortBytes-1:0]     bytes_i,  // of these those that are read or written
  input  logic [Ports*PortBytes*8-1:0]   data_i,
  output logic [Ports*PortBytes*8-1:0]   data_o
);

  localparam int unsigned WidthLog2 = $clog2(Width);
  localparam int unsigned BankLog2  = $clog2(Banks);
  localparam int unsigned Rows      = Bytes / Width / Banks;
  localparam int unsigned RowWidth  = $clog2(Rows);
  localparam int unsigned AllBytes  = Banks * Width;
  localparam int unsigned AllLog2   = WidthLog2 + BankLog2;
  localparam int unsigned PortLog2  = Ports > 1 ? $clog2(Ports) : 1;

  // Of each port: its bytes and data turned to where they lie in the row of all banks, and which of these bytes lie one row further.
  logic [Ports*AllBytes-1:0]   lanes, behind;
  logic [Ports*AllBytes*8-1:0] turned;
  logic [Ports*Banks-1:0]      needs, rows_behind;
  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic [AllLog2-1:0] at;
    logic [2*AllBytes-1:0] span, claim;
    logic [AllBytes-1:0] claimed;
    logic [2*AllBytes*8-1:0] span_data;
    assign at        = addr_i[p*AddrWidth +: AllLog2];
    assign span      = (2*AllBytes)'(bytes_i[p*PortBytes +: PortBytes]) << at;
    assign claim     = (2*AllBytes)'(claim_i[p*PortBytes +: PortBytes]) << at;
    assign claimed   = claim[AllBytes-1:0] | claim[2*AllBytes-1:AllBytes];
    assign span_data = (2*AllBytes*8)'(data_i[p*PortBytes*8 +: PortBytes*8]) << {at, 3'b000};
    assign lanes[p*AllBytes +: AllBytes]    = span[AllBytes-1:0] | span[2*AllBytes-1:AllBytes];
    assign behind[p*AllBytes +: AllBytes]   = claim[2*AllBytes-1:AllBytes];
    assign turned[p*AllBytes*8 +: AllBytes*8] = span_data[AllBytes*8-1:0] | span_data[2*AllBytes*8-1:AllBytes*8];
    for (genvar b = 0; b < Banks; b++) begin : gen_need
      assign needs[p*Banks + b]       = |claimed[b*Width +: Width];
      assign rows_behind[p*Banks + b] = |behind[p*AllBytes + b*Width +: Width];
    end

    // What was read turns back.
    logic [Banks-1:0] read_q;
    logic [AllLog2-1:0] at_q;
    logic [AllBytes*8-1:0] kept_q, all;
    for (genvar b = 0; b < Banks; b++) begin : gen_read
      assign all[b*Width*8 +: Width*8] = read_q[b] ? words[b*Width*8 +: Width*8] : kept_q[b*Width*8 +: Width*8];
    end
    logic [2*AllBytes*8-1:0] twice;
    assign twice = {all, all} >> {at_q, 3'b000};
    assign data_o[p*PortBytes*8 +: PortBytes*8] = twice[PortBytes*8-1:0];
    logic unused;
    assign unused = ^twice[2*AllBytes*8-1:PortBytes*8];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        read_q <= '0;
      end else begin
        read_q <= valid_i[p] && ready_o[p] && !write_i[p] ? needs[p*Banks +: Banks] : '0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (valid_i[p] && ready_o[p] && !write_i[p]) begin
        at_q <= at;
      end
      kept_q <= all;
    end
  end

  // Who goes: in turn from first_q on, each that finds its banks free.
  logic [PortLog2-1:0] first_q, first_d;
  logic [Banks-1:0] taken;
  logic denied;
  logic [Banks*PortLog2-1:0] owner;
  logic [Banks-1:0] used;
  always_comb begin
    ready_o = '0;
    taken   = '0;
    denied  = 1'b0;
    first_d = first_q;
    owner   = '0;
    for (int unsigned i = 0; i < Ports; i++) begin
      for (int unsigned p = 0; p < Ports; p++) begin
        if (32'(first_q) + i == p || 32'(first_q) + i == p + Ports) begin
          if (valid_i[p] && (needs[p*Banks +: Banks] & taken) == '0) begin
            ready_o[p] = 1'b1;
            taken      = taken | needs[p*Banks +: Banks];
            for (int unsigned b = 0; b < Banks; b++) begin
              if (needs[p*Banks + b]) begin
                owner[b*PortLog2 +: PortLog2] = PortLog2'(p);
              end
            end
          end else if (valid_i[p] && !denied) begin
            denied  = 1'b1;
            first_d = PortLog2'(p);
          end
        end
      end
    end
    used = taken;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else begin
      first_q <= first_d;
    end
  end

  logic [AllBytes*8-1:0] words;
  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic [31:0] port;
    logic [RowWidth-1:0] row;
    assign port = 32'(owner[b*PortLog2 +: PortLog2]);
    assign row  = addr_i[port*AddrWidth + AllLog2 +: RowWidth] + RowWidth'(rows_behind[port*Banks + b]);
    cdl_npu_ram #(
      .Width (8),
      .Lanes (Width),
      .Depth (Rows)
    ) u_ram (
      .clk_i,
      .read_i  (used[b] && !write_i[port[PortLog2-1:0]]),
      .raddr_i (row),
      .rdata_o (words[b*Width*8 +: Width*8]),
      .write_i (used[b] && write_i[port[PortLog2-1:0]] ? lanes[port*AllBytes + b*Width +: Width] : '0),
      .waddr_i (row),
      .wdata_i (turned[port*AllBytes*8 + b*Width*8 +: Width*8])
    );
  end
endmodule
