// Elements of a read as signed numbers less their zero point; those outside of from_i <= i < to_i are 0.
module cdl_npu_unpack #(
  parameter int unsigned Elements    = 16,
  parameter int unsigned ElementBytes = 1,         // of the widest type: 2 where there are elements of 16 bits
  localparam int unsigned Width      = 8 * ElementBytes + 1,
  localparam int unsigned CountWidth = $clog2(Elements + 1)
) (
  input  logic [Elements*ElementBytes*8-1:0] data_i,
  input  logic                               unsigned_i,
  input  logic                               wide_i,   // two bytes an element
  input  logic signed [Width-1:0]            zp_i,
  input  logic [CountWidth-1:0]              from_i,
  input  logic [CountWidth-1:0]              to_i,
  output logic [Elements*Width-1:0]          values_o
);

  for (genvar i = 0; i < Elements; i++) begin : gen_element
    logic signed [Width-1:0] value;
    if (ElementBytes == 2) begin : gen_wide
      assign value = wide_i     ? Width'($signed(data_i[i*16 +: 16]))
                   : unsigned_i ? Width'($signed({1'b0, data_i[i*8 +: 8]}))
                                : Width'($signed(data_i[i*8 +: 8]));
    end else begin : gen_narrow
      logic unused_wide;
      assign unused_wide = wide_i;
      assign value = unsigned_i ? Width'($signed({1'b0, data_i[i*8 +: 8]})) : Width'($signed(data_i[i*8 +: 8]));
    end
    assign values_o[i*Width +: Width] =
        CountWidth'(i) >= from_i && CountWidth'(i) < to_i ? value - zp_i : '0;
  end
endmodule
