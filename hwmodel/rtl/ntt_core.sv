// Two coefficients in, two out, each cycle (he-matvec-fpga, Fig. 6): one modular multiplier serves both directions.
//
// inverse = 0 (Cooley and Tukey): u = a + w b, v = a - w b.
// inverse = 1 (Gentleman and Sande): u = (a + b) / 2, v = w (a - b) / 2. The halves of log2 N passes are the N^-1 of the
// inverse transform, so that no pass is needed for it. x / 2 is x / 2 or (x + q) / 2, whichever is an integer.
// All residues are in [0, q); `inverse` goes with its coefficients.
module ntt_core #(
    parameter int W = 36,
    parameter int M = 5
) (
    input logic clk,
    input logic en,
    input logic inverse,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    input logic [W-1:0] w,
    output logic [W-1:0] u,  // 3 M + 4 enabled cycles later
    output logic [W-1:0] v
);
  localparam int PRODUCT = 3 * M + 2;

  logic [W-1:0] sum_in, difference_in, keep, factor, twiddle;
  mod_add #(.W(W)) add_in (.q(q), .a(a), .b(b), .r(sum_in));
  mod_sub #(.W(W)) sub_in (.q(q), .a(a), .b(b), .r(difference_in));
  logic [W:0] half_sum, half_difference;
  assign half_sum = {1'b0, sum_in} + (sum_in[0] ? {1'b0, q} : '0);
  assign half_difference = {1'b0, difference_in} + (difference_in[0] ? {1'b0, q} : '0);
  logic inverse_1;
  always_ff @(posedge clk) begin
    if (en) begin
      keep <= inverse ? half_sum[W:1] : a;
      factor <= inverse ? half_difference[W:1] : b;
      twiddle <= w;
      inverse_1 <= inverse;
    end
  end

  logic [W-1:0] product, kept, sum_out, difference_out;
  logic inverse_2;
  mod_mul #(.W(W), .M(M)) multiply (
      .clk(clk), .en(en), .q(q), .mu(mu), .a(factor), .b(twiddle), .r(product)
  );
  delay #(.WIDTH(W + 1), .STAGES(PRODUCT)) beside (
      .clk(clk), .en(en), .in({inverse_1, keep}), .out({inverse_2, kept})
  );
  mod_add #(.W(W)) add_out (.q(q), .a(kept), .b(product), .r(sum_out));
  mod_sub #(.W(W)) sub_out (.q(q), .a(kept), .b(product), .r(difference_out));
  always_ff @(posedge clk) begin
    if (en) begin
      u <= inverse_2 ? kept : sum_out;
      v <= inverse_2 ? product : difference_out;
    end
  end
endmodule

// The same between streams.
module ntt_core_stream #(
    parameter int W = 36,
    parameter int M = 5
) (
    input logic clk,
    input logic rst,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    input logic in_valid,
    output logic in_ready,
    input logic inverse,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    input logic [W-1:0] w,
    output logic out_valid,
    input logic out_ready,
    output logic [W-1:0] u,
    output logic [W-1:0] v
);
  logic en;
  pipe_control #(.STAGES(3 * M + 4)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  ntt_core #(.W(W), .M(M)) path (
      .clk(clk), .en(en), .inverse(inverse), .q(q), .mu(mu), .a(a), .b(b), .w(w), .u(u), .v(v)
  );
endmodule
