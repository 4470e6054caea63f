// The butterfly of the pipelined transform in fixed point (Strix, V-A). Real and imaginary parts are signed words of DW
// bits, and wrap; those of twiddles are signed words of TW bits, of which FRAC stand behind the point.
//
// INVERSE = 0: u = a + w b, v = a - w b, where w b is rounded to a word, half up.
// INVERSE = 1: u = (a + b) / 2, v = w (a - b) / 2, each rounded once, half up. Callers give the conjugate as w.
// A complex number is {imaginary, real}. Latency: M + 2 enabled cycles.
module fft_butterfly #(
    parameter int DW = 64,
    parameter int TW = 16,
    parameter int FRAC = TW - 2,
    parameter int INVERSE = 0,
    parameter int M = 3  // registers of a real product
) (
    input logic clk,
    input logic en,
    input logic [2*DW-1:0] a,
    input logic [2*DW-1:0] b,
    input logic [2*TW-1:0] w,
    output logic [2*DW-1:0] u,
    output logic [2*DW-1:0] v
);
  localparam int X = DW + INVERSE;  // bits of what is multiplied
  localparam int S = FRAC + INVERSE;  // bits that rounding takes away
  localparam int PW = X + TW + 1;

  logic signed [DW-1:0] a_re, a_im, b_re, b_im;
  logic signed [TW-1:0] w_re, w_im;
  logic signed [X-1:0] x_re, x_im;
  assign {a_im, a_re} = a;
  assign {b_im, b_re} = b;

  logic [2*DW-1:0] keep;  // goes round the product
  generate
    if (INVERSE != 0) begin : g_before
      logic signed [DW:0] sum_re, sum_im;
      assign sum_re = (DW + 1)'(a_re) + (DW + 1)'(b_re) + (DW + 1)'(1);
      assign sum_im = (DW + 1)'(a_im) + (DW + 1)'(b_im) + (DW + 1)'(1);
      always_ff @(posedge clk) begin
        if (en) begin
          x_re <= X'(a_re) - X'(b_re);
          x_im <= X'(a_im) - X'(b_im);
          {w_im, w_re} <= w;
          keep <= {sum_im[DW:1], sum_re[DW:1]};
        end
      end
    end else begin : g_straight
      assign x_re = b_re;
      assign x_im = b_im;
      assign {w_im, w_re} = w;
      assign keep = a;
    end
  endgenerate

  logic signed [X+TW-1:0] rr, ii, ri, ir;
  logic [4*(X+TW)-1:0] products;
  logic signed [X+TW-1:0] p_rr, p_ii, p_ri, p_ir;
  assign rr = x_re * w_re;
  assign ii = x_im * w_im;
  assign ri = x_re * w_im;
  assign ir = x_im * w_re;
  delay #(.WIDTH(4 * (X + TW)), .STAGES(M)) multiply (
      .clk(clk), .en(en), .in({rr, ii, ri, ir}), .out(products)
  );
  assign {p_rr, p_ii, p_ri, p_ir} = products;

  localparam logic signed [PW-1:0] HALF = PW'(1) << (S - 1);
  logic signed [PW-1:0] total_re, total_im;
  assign total_re = PW'(p_rr) - PW'(p_ii) + HALF;
  assign total_im = PW'(p_ri) + PW'(p_ir) + HALF;
  logic [DW-1:0] t_re, t_im;
  always_ff @(posedge clk) begin
    if (en) begin
      t_re <= total_re[S+:DW];
      t_im <= total_im[S+:DW];
    end
  end

  logic [2*DW-1:0] kept;
  delay #(.WIDTH(2 * DW), .STAGES(M + 1)) beside (.clk(clk), .en(en), .in(keep), .out(kept));
  generate
    if (INVERSE != 0) begin : g_after
      assign u = kept;
      assign v = {t_im, t_re};
    end else begin : g_sums
      always_ff @(posedge clk) begin
        if (en) begin
          u <= {kept[DW+:DW] + t_im, kept[0+:DW] + t_re};
          v <= {kept[DW+:DW] - t_im, kept[0+:DW] - t_re};
        end
      end
    end
  endgenerate
endmodule

// The same between streams.
module fft_butterfly_stream #(
    parameter int DW = 64,
    parameter int TW = 16,
    parameter int FRAC = TW - 2,
    parameter int INVERSE = 0,
    parameter int M = 3
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [2*DW-1:0] a,
    input logic [2*DW-1:0] b,
    input logic [2*TW-1:0] w,
    output logic out_valid,
    input logic out_ready,
    output logic [2*DW-1:0] u,
    output logic [2*DW-1:0] v
);
  logic en;
  pipe_control #(.STAGES(M + 2)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  fft_butterfly #(.DW(DW), .TW(TW), .FRAC(FRAC), .INVERSE(INVERSE), .M(M)) path (
      .clk(clk), .en(en), .a(a), .b(b), .w(w), .u(u), .v(v)
  );
endmodule
