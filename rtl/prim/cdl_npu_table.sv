// The table of an engine, written in words of the scratchpad as it lies there and looked up by Ports values in a cycle: 256 bytes, or with wide_i 513
// entries of 16 bits, of which both come that lie around a value. Those with even and odd numbers are kept apart, so that one read of each does.
module cdl_npu_table #(
  parameter bit          Int16 = 1'b0,
  parameter int unsigned Bytes = 16,             // of a word: a power of two up to 256; with Int16 4 or more
  parameter int unsigned Ports = 1,
  localparam int unsigned ValueWidth = Int16 ? 16 : 8,
  localparam int unsigned Words      = ((Int16 ? 2 * 513 : 256) + Bytes - 1) / Bytes,
  localparam int unsigned IndexWidth = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                        clk_i,

  input  logic                        write_i,
  input  logic [IndexWidth-1:0]       index_i,   // of the word
  input  logic [Bytes*8-1:0]          word_i,

  input  logic                        wide_i,
  input  logic                        signed_i,  // bytes are those of i8: entry 0 is that of the lowest value
  input  logic [Ports*ValueWidth-1:0] values_i,
  output logic [Ports*ValueWidth-1:0] entries_o,
  output logic [Ports*ValueWidth-1:0] nexts_o    // of 16 bits: the entry behind
);

  if (Int16) begin : gen_wide
    localparam int unsigned Pairs = Bytes / 4;   // of an even entry and an odd one, in a word
    logic [Pairs*16-1:0] evens [Words];
    logic [Pairs*16-1:0] odds [Words];
    logic [Pairs*16-1:0] even_word, odd_word;
    for (genvar i = 0; i < Pairs; i++) begin : gen_pair
      assign even_word[i*16 +: 16] = word_i[i*32 +: 16];
      assign odd_word[i*16 +: 16]  = word_i[i*32 + 16 +: 16];
    end
    always_ff @(posedge clk_i) begin
      if (write_i) begin
        evens[index_i] <= even_word;
        odds[index_i]  <= odd_word;
      end
    end

    for (genvar i = 0; i < Ports; i++) begin : gen_port
      // The number of the entry at or before a value, and the pairs that it and the one behind are of. Four bytes lie in a pair.
      logic [15:0] value, even, odd, either;
      logic [8:0]  entry, even_pair, odd_pair;
      logic [7:0]  at_byte;
      logic [Pairs*16-1:0] evens_there, odds_there;
      assign value       = values_i[i*16 +: 16];
      assign entry       = {!value[15], value[14:7]};
      assign at_byte     = {value[7] ^ signed_i, value[6:0]};
      assign odd_pair    = wide_i ? {1'b0, entry[8:1]} : {3'd0, at_byte[7:2]};
      assign even_pair   = odd_pair + 9'(wide_i && entry[0]);
      assign evens_there = evens[IndexWidth'(32'(even_pair) / Pairs)];
      assign odds_there  = odds[IndexWidth'(32'(odd_pair) / Pairs)];
      assign even        = evens_there[(32'(even_pair) % Pairs)*16 +: 16];
      assign odd         = odds_there[(32'(odd_pair) % Pairs)*16 +: 16];
      assign either      = at_byte[1] ? odd : even;
      assign entries_o[i*16 +: 16] = !wide_i ? {8'd0, at_byte[0] ? either[15:8] : either[7:0]} : entry[0] ? odd : even;
      assign nexts_o[i*16 +: 16]   = entry[0] ? even : odd;
    end
  end else begin : gen_narrow
    logic unused;
    assign unused  = wide_i;
    assign nexts_o = '0;
    logic [Bytes*8-1:0] words [Words];
    always_ff @(posedge clk_i) begin
      if (write_i) begin
        words[index_i] <= word_i;
      end
    end
    for (genvar i = 0; i < Ports; i++) begin : gen_port
      logic [7:0] at_byte;
      logic [Bytes*8-1:0] there;
      assign at_byte = {values_i[i*8 + 7] ^ signed_i, values_i[i*8 +: 7]};
      assign there   = words[IndexWidth'(32'(at_byte) / Bytes)];
      assign entries_o[i*8 +: 8] = there[(32'(at_byte) % Bytes)*8 +: 8];
    end
  end
endmodule
