// What the counters of the PMU count, from the wires of the NPU: cycles, instructions, marks, what engines say of products, passes, tiles and values,
// bytes that channels move, by the class of their region, and bytes that ports of the scratchpad do.
module cdl_npu_counts #(
  parameter int unsigned Engines    = 12,
  parameter int unsigned BurstWidth = 7,
  parameter int unsigned Ports      = 10,          // of the scratchpad
  parameter int unsigned PortBytes  = 16
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  enable_i,
  input  logic                  clear_i,
  input  logic                  running_i,
  input  logic [Engines-1:0]    retire_i,
  input  logic [Engines-1:0]    mark_i,
  input  logic                  pass_i,
  input  logic [16:0]           products_i,         // of the pass
  input  logic                  tile_i,
  input  logic [15:0]           requant_i,
  input  logic [15:0]           vector_i,
  input  logic [Ports-1:0]      port_moves_i,
  input  logic [Ports-1:0]      port_writes_i,
  input  logic [Ports*PortBytes-1:0] port_bytes_i,
  input  logic                  moves_i,            // a channel's burst is asked for
  input  logic                  write_i,
  input  logic [BurstWidth-1:0] bytes_i,
  input  logic [2:0]            class_i,
  input  logic                  snapshot_i,
  input  logic [1:0]            snapshot_slot_i,
  input  logic [4:0]            read_id_i,
  input  logic                  read_high_i,
  input  logic                  read_copy_i,
  input  logic [1:0]            read_slot_i,
  output logic [31:0]           read_data_o
);

  localparam int unsigned AddWidth = 17;
  localparam int unsigned Counters = 32;
  localparam int unsigned Load0    = 32'(cdl_npu_isa_pkg::ENGINE_LOAD0);
  localparam int unsigned Store0   = 32'(cdl_npu_isa_pkg::ENGINE_STORE0);
  localparam int unsigned Matrix   = 32'(cdl_npu_isa_pkg::ENGINE_MATRIX);
  localparam int unsigned Requant  = 32'(cdl_npu_isa_pkg::ENGINE_REQUANT);
  localparam int unsigned Vector   = 32'(cdl_npu_isa_pkg::ENGINE_VECTOR);

  function automatic logic [AddWidth-1:0] onesOf(input logic [Engines-1:0] bits);
    onesOf = '0;
    for (int unsigned i = 0; i < Engines; i++) begin
      onesOf = onesOf + AddWidth'(bits[i]);
    end
  endfunction
  localparam logic [Engines-1:0] Loads  = Engines'((1 << Store0) - (1 << Load0));
  localparam logic [Engines-1:0] Stores = Engines'((1 << Matrix) - (1 << Store0));
  // Bytes of the scratchpad that ports read and write in this cycle.
  logic [AddWidth-1:0] read_bytes, written_bytes;
  always_comb begin
    read_bytes    = '0;
    written_bytes = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (port_moves_i[p] && port_writes_i[p]) begin
        written_bytes = written_bytes + AddWidth'($countones(port_bytes_i[p*PortBytes +: PortBytes]));
      end else if (port_moves_i[p]) begin
        read_bytes = read_bytes + AddWidth'($countones(port_bytes_i[p*PortBytes +: PortBytes]));
      end
    end
  end
  logic [Counters*AddWidth-1:0] add;
  always_comb begin
    add = '0;
    add[32'(cdl_npu_regs_pkg::COUNTER_CYCLES)*AddWidth +: AddWidth]               = AddWidth'(running_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS)*AddWidth +: AddWidth]         = onesOf(retire_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_CONTROL)*AddWidth +: AddWidth] = AddWidth'(retire_i[0]);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_LOAD)*AddWidth +: AddWidth]    = onesOf(retire_i & Loads);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_STORE)*AddWidth +: AddWidth]   = onesOf(retire_i & Stores);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_MATRIX)*AddWidth +: AddWidth]  = AddWidth'(retire_i[Matrix]);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_REQUANT)*AddWidth +: AddWidth] = AddWidth'(retire_i[Requant]);
    add[32'(cdl_npu_regs_pkg::COUNTER_INSTRUCTIONS_VECTOR)*AddWidth +: AddWidth]  = AddWidth'(retire_i[Vector]);
    add[32'(cdl_npu_regs_pkg::COUNTER_MACS)*AddWidth +: AddWidth]                 = pass_i ? products_i : '0;
    add[32'(cdl_npu_regs_pkg::COUNTER_ARRAY_PASSES)*AddWidth +: AddWidth]         = AddWidth'(pass_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_WEIGHT_TILES)*AddWidth +: AddWidth]         = AddWidth'(tile_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_REQUANT_VALUES)*AddWidth +: AddWidth]       = AddWidth'(requant_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_VECTOR_VALUES)*AddWidth +: AddWidth]        = AddWidth'(vector_i);
    add[32'(cdl_npu_regs_pkg::COUNTER_SCRATCHPAD_READ)*AddWidth +: AddWidth]      = read_bytes;
    add[32'(cdl_npu_regs_pkg::COUNTER_SCRATCHPAD_WRITTEN)*AddWidth +: AddWidth]   = written_bytes;
    add[32'(cdl_npu_regs_pkg::COUNTER_DRAM_READ_PROGRAM)*AddWidth +: AddWidth]    = onesOf(retire_i) << 4;   // bytes of a word
    add[32'(cdl_npu_regs_pkg::COUNTER_MARKS)*AddWidth +: AddWidth]                = onesOf(retire_i & mark_i);
    for (int unsigned c = 0; c < 5; c++) begin
      if (moves_i && 32'(class_i) == c) begin
        if (!write_i) begin
          add[(32'(cdl_npu_regs_pkg::COUNTER_DRAM_READ_CONSTANTS) + c)*AddWidth +: AddWidth] = AddWidth'(bytes_i);
        end else if (c > 0) begin
          add[(32'(cdl_npu_regs_pkg::COUNTER_DRAM_WRITTEN_INPUT) + c - 1)*AddWidth +: AddWidth] = AddWidth'(bytes_i);
        end
      end
    end
  end
  cdl_npu_pmu #(.Counters(Counters), .AddWidth(AddWidth)) u_pmu (
    .clk_i, .rst_ni,
    .enable_i, .clear_i,
    .add_i (add),
    .snapshot_i, .snapshot_slot_i, .read_id_i, .read_high_i, .read_copy_i, .read_slot_i, .read_data_o
  );
endmodule
