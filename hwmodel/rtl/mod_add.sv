// Sums and differences of residues in [0, q), without registers.

module mod_add #(
    parameter int W = 36
) (
    input logic [W-1:0] q,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    output logic [W-1:0] r
);
  logic [W:0] sum, less;
  assign sum = {1'b0, a} + {1'b0, b};
  assign less = sum - {1'b0, q};
  assign r = less[W] ? sum[W-1:0] : less[W-1:0];  // less is negative where sum < q <= 2^W
endmodule

module mod_sub #(
    parameter int W = 36
) (
    input logic [W-1:0] q,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    output logic [W-1:0] r
);
  logic [W:0] difference;
  assign difference = {1'b0, a} - {1'b0, b};
  assign r = difference[W] ? difference[W-1:0] + q : difference[W-1:0];
endmodule
