// Rows x Columns multipliers, weight-stationary. A vector of Rows activations enters in each cycle with valid_i; its Columns sums
// leave together Rows + Columns - 1 cycles later.
//
// Weights enter the shadow as one row (load_column_i = 0: Columns of them) or one column (Rows of them) in each cycle with load_i.
// Both run through the array as a wave, as activations do: (r, c) is reached r + c cycles after (0, 0). A load may therefore begin in
// the cycle in which the vector with swap_i enters, and the vector with the next swap_i must enter behind the last of the load.
module cdl_npu_systolic_array #(
  parameter int unsigned Rows        = 16,
  parameter int unsigned Columns     = 16,
  parameter int unsigned ActWidth    = 9,
  parameter int unsigned WeightWidth = 9,
  parameter int unsigned SumWidth    = 32,
  localparam int unsigned Longer     = Rows > Columns ? Rows : Columns,
  localparam int unsigned IndexWidth = $clog2(Longer)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic                          valid_i,
  input  logic                          swap_i,
  input  logic [Rows*ActWidth-1:0]      act_i,

  input  logic                          load_i,
  input  logic                          load_column_i,
  input  logic [IndexWidth-1:0]         load_index_i,
  input  logic [Longer*WeightWidth-1:0] load_weights_i,

  output logic                          valid_o,
  output logic [Columns*SumWidth-1:0]   sum_o
);

  cdl_npu_delay #(.Width(1), .Depth(Rows + Columns - 1)) u_valid (
    .clk_i, .rst_ni, .data_i(valid_i), .data_o(valid_o)
  );

  // What stands between multiplier (r, c) and its neighbours: index r * (Columns + 1) + c to the left of it, r * Columns + c above.
  logic [Rows*(Columns+1)*ActWidth-1:0] act;
  logic [Rows*(Columns+1)-1:0]          swap;
  logic [(Rows+1)*Columns*SumWidth-1:0] sum;
  assign sum[Columns*SumWidth-1:0] = '0;

  // The index of a row of weights runs along the columns, the index of a column along the rows.
  logic [Columns-1:0]             row_load;
  logic [Columns*IndexWidth-1:0]  row_index;
  logic [Columns*WeightWidth-1:0] row_weight;
  logic [Rows-1:0]                column_load;
  logic [Rows*IndexWidth-1:0]     column_index;
  logic [Rows*WeightWidth-1:0]    column_weight;

  for (genvar r = 0; r < Rows; r++) begin : gen_left
    cdl_npu_delay #(.Width(ActWidth + 1), .Depth(r)) u_act (
      .clk_i, .rst_ni,
      .data_i({swap_i && valid_i, act_i[r*ActWidth +: ActWidth]}),
      .data_o({swap[r*(Columns+1)], act[r*(Columns+1)*ActWidth +: ActWidth]})
    );
    cdl_npu_delay #(.Width(1 + IndexWidth + WeightWidth), .Depth(r)) u_load (
      .clk_i, .rst_ni,
      .data_i({load_i && load_column_i, load_index_i, load_weights_i[r*WeightWidth +: WeightWidth]}),
      .data_o({column_load[r], column_index[r*IndexWidth +: IndexWidth], column_weight[r*WeightWidth +: WeightWidth]})
    );
    logic unused_act;
    assign unused_act = ^{swap[r*(Columns+1) + Columns], act[(r*(Columns+1) + Columns)*ActWidth +: ActWidth]};
  end

  for (genvar c = 0; c < Columns; c++) begin : gen_top
    cdl_npu_delay #(.Width(1 + IndexWidth + WeightWidth), .Depth(c)) u_load (
      .clk_i, .rst_ni,
      .data_i({load_i && !load_column_i, load_index_i, load_weights_i[c*WeightWidth +: WeightWidth]}),
      .data_o({row_load[c], row_index[c*IndexWidth +: IndexWidth], row_weight[c*WeightWidth +: WeightWidth]})
    );
    cdl_npu_delay #(.Width(SumWidth), .Depth(Columns - 1 - c)) u_sum (
      .clk_i, .rst_ni,
      .data_i(sum[(Rows*Columns + c)*SumWidth +: SumWidth]),
      .data_o(sum_o[c*SumWidth +: SumWidth])
    );
  end

  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar c = 0; c < Columns; c++) begin : gen_column
      logic by_row, by_column;
      assign by_row    = row_load[c] && row_index[c*IndexWidth +: IndexWidth] == IndexWidth'(r);
      assign by_column = column_load[r] && column_index[r*IndexWidth +: IndexWidth] == IndexWidth'(c);
      cdl_npu_pe #(
        .ActWidth   (ActWidth),
        .WeightWidth(WeightWidth),
        .SumWidth   (SumWidth)
      ) u_pe (
        .clk_i,
        .act_i   (act[(r*(Columns+1) + c)*ActWidth +: ActWidth]),
        .swap_i  (swap[r*(Columns+1) + c]),
        .act_o   (act[(r*(Columns+1) + c + 1)*ActWidth +: ActWidth]),
        .swap_o  (swap[r*(Columns+1) + c + 1]),
        .sum_i   (sum[(r*Columns + c)*SumWidth +: SumWidth]),
        .sum_o   (sum[((r+1)*Columns + c)*SumWidth +: SumWidth]),
        .load_i  (by_row || by_column),
        .weight_i(by_row ? row_weight[c*WeightWidth +: WeightWidth] : column_weight[r*WeightWidth +: WeightWidth])
      );
    end
  end
endmodule
