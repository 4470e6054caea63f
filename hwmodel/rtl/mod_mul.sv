// The product of two residues by Barrett's reduction: one full product, and two of which half of the bits are used
// (he-matvec-fpga, IV-B; the algorithm is arith/barrett.h).
//
// q has exactly W bits, 2^(W-1) < q < 2^W, and mu = floor(2^(2W) / q) < 2^(W+1). Both hold still while the pipe is not
// empty. With x = a b < q^2, the quotient floor(floor(x / 2^(W-1)) mu / 2^(W+1)) is that of x by q, or up to 2 less. So
// x - quotient q is in [0, 3q), and its low W + 2 bits are all of it.

module mod_mul #(
    parameter int W = 36,
    parameter int M = 5  // registers of one integer product
) (
    input logic clk,
    input logic en,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    output logic [W-1:0] r  // a b mod q, 3 M + 2 enabled cycles later
);
  logic [2*W-1:0] x;
  mul_pipe #(.A(W), .B(W), .P(2 * W), .STAGES(M)) full (
      .clk(clk), .en(en), .a(a), .b(b), .product(x)
  );

  logic [W:0] top;
  logic [2*W+1:0] scaled;
  assign top = x[2*W-1:W-1];
  mul_pipe #(.A(W + 1), .B(W + 1), .P(2 * W + 2), .STAGES(M)) high (
      .clk(clk), .en(en), .a(top), .b(mu), .product(scaled)
  );

  logic [W-1:0] quotient;
  logic [W+1:0] multiple, x_low;
  assign quotient = scaled[2*W:W+1];  // at most x / q < q
  mul_pipe #(.A(W), .B(W), .P(W + 2), .STAGES(M)) low (
      .clk(clk), .en(en), .a(quotient), .b(q), .product(multiple)
  );
  delay #(.WIDTH(W + 2), .STAGES(2 * M)) beside (
      .clk(clk), .en(en), .in(x[W+1:0]), .out(x_low)
  );

  logic [W+1:0] lazy, twice, half_way;  // in [0, 3q), 2q, in [0, 2q)
  assign lazy = x_low - multiple;
  assign twice = {1'b0, q, 1'b0};
  always_ff @(posedge clk) begin
    if (en) begin
      half_way <= lazy >= twice ? lazy - twice : lazy;
      r <= W'(half_way >= {2'b0, q} ? half_way - {2'b0, q} : half_way);
    end
  end
endmodule

// The same between streams.
module mod_mul_stream #(
    parameter int W = 36,
    parameter int M = 5
) (
    input logic clk,
    input logic rst,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    input logic in_valid,
    output logic in_ready,
    input logic [W-1:0] a,
    input logic [W-1:0] b,
    output logic out_valid,
    input logic out_ready,
    output logic [W-1:0] r
);
  logic en;
  pipe_control #(.STAGES(3 * M + 2)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  mod_mul #(.W(W), .M(M)) path (
      .clk(clk), .en(en), .q(q), .mu(mu), .a(a), .b(b), .r(r)
  );
endmodule
