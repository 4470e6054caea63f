// The sum of frames in the time domain (Strix, V-C): C lanes, each an adder with a buffer of T = N/C words of W bits that
// wrap. A frame whose `in_first` is 1 begins a sum; one whose `in_last` is 1 ends it, and the sums come out, a beat for
// each of its beats. Both bits are given with every beat, and are the same in all beats of a frame. T >= 2.
module accumulator #(
    parameter int W = 32,
    parameter int C = 8,
    parameter int T = 8
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic in_first,
    input logic in_last,
    input logic [C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] out_data
);
  localparam int ROW = $clog2(T);
  logic en, valid_1, first_1, last_1;
  logic [ROW-1:0] row, row_1;
  logic [C*W-1:0] data_1, sum;
  assign en = out_ready | ~out_valid;
  assign in_ready = en & ~rst;
  always_ff @(posedge clk) begin
    if (rst) begin
      row <= '0;
      valid_1 <= 1'b0;
      out_valid <= 1'b0;
    end else if (en) begin
      valid_1 <= in_valid;
      out_valid <= valid_1 & last_1;
      if (in_valid) row <= row == ROW'(T - 1) ? '0 : row + 1'b1;
    end
    if (en) begin
      first_1 <= in_first;
      last_1 <= in_last;
      row_1 <= row;
      data_1 <= in_data;
      out_data <= sum;
    end
  end
  genvar lane;
  generate
    for (lane = 0; lane < C; lane++) begin : g_lane
      logic [W-1:0] sums[0:T-1];
      logic [W-1:0] so_far;
      assign sum[lane*W+:W] = data_1[lane*W+:W] + (first_1 ? '0 : so_far);
      always_ff @(posedge clk) begin
        if (en) so_far <= sums[row];
        if (en & valid_1) sums[row_1] <= sum[lane*W+:W];
      end
    end
  endgenerate
endmodule
