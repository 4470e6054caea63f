// A Benes network of C lanes, without registers: 2 log2 C - 1 columns of C/2 switches, which any permutation passes.
//
// The switches of a column join lanes i and i + stride, where bit `stride` of i is 0; the strides are C/2, C/4 .. 1 .. C/4,
// C/2. A control bit of 1 exchanges the two. Column k takes the control bits [k C/2, (k + 1) C/2), in the order of i.
module benes #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int BITS = (2 * $clog2(C) - 1) * C / 2
) (
    input logic [BITS-1:0] control,
    input logic [C*W-1:0] in,
    output logic [C*W-1:0] out
);
  localparam int L = $clog2(C);
  localparam int COLUMNS = 2 * L - 1;
  // A vector for each column, so that a simulator does not take the columns for a loop.
  genvar k, i;
  generate
    for (k = 0; k < COLUMNS; k++) begin : g_column
      localparam int STRIDE = k < L ? C >> (k + 1) : C >> (COLUMNS - k);
      logic [C*W-1:0] from, to;
      if (k == 0) begin : g_first
        assign from = in;
      end else begin : g_next
        assign from = g_column[k-1].to;
      end
      for (i = 0; i < C / 2; i++) begin : g_switch
        localparam int UP = i / STRIDE * 2 * STRIDE + i % STRIDE;
        localparam int DOWN = UP + STRIDE;
        logic exchange;
        assign exchange = control[k*C/2+i];
        assign to[UP*W+:W] = exchange ? from[DOWN*W+:W] : from[UP*W+:W];
        assign to[DOWN*W+:W] = exchange ? from[UP*W+:W] : from[DOWN*W+:W];
      end
    end
  endgenerate
  assign out = g_column[COLUMNS-1].to;
endmodule
