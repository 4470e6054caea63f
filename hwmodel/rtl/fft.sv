// The pipelined transform of four lanes, log2 P stages of two butterflies (Strix, V-A, Fig. 5), with folding: a real
// polynomial of N = 2 P coefficients modulo X^N + 1 goes in as P complex words a[j] + i a[j + P], which is the polynomial
// modulo X^P - i.
//
// A frame is T = P/4 beats; lane l of beat t is word t + l T. Stage s splits each of 2^s factors X^(2m) - r^2 of X^P - i,
// m = P / 2^(s+1), into (X^m - r) (X^m + r), by u = a + r b and v = a - r b; so the twist by roots of i is in the twiddles
// r, and costs no multiplier. After log2 P stages the words are the values at the roots of X^P = i, in an order that the
// inverse undoes: pointwise products need no other. INVERSE = 1 goes the same way back, with a half in each stage.
// Butterfly e = 0, 1 of stage s >= 1 treats at beat t the factor 2^(s-1) e + floor(t 2^(s-1) / T); the factors u and v of
// a factor have twice its number, and one more.
// Latency: T - 1 beats of the shuffle units, and log2 P (M + 2) registers. Frames may come back to back. The pipe stands
// still while a frame is not fed.
module fft #(
    parameter int DW = 64,
    parameter int TW = 16,
    parameter int FRAC = TW - 2,
    parameter int P = 16,
    parameter int INVERSE = 0,
    parameter int M = 3,
    parameter int STAGES = $clog2(P),
    parameter int ROOT = $clog2(P / 2)  // bits of a factor's number at a stage
) (
    input logic clk,
    input logic rst,
    // Twiddles, written with no frame inside: {imaginary, real} of r of a factor of a stage, conjugate if INVERSE.
    input logic twiddle_valid,
    input logic [$clog2(STAGES)-1:0] twiddle_stage,
    input logic [ROOT-1:0] twiddle_factor,
    input logic [2*TW-1:0] twiddle_data,
    input logic in_valid,
    output logic in_ready,
    input logic [8*DW-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [8*DW-1:0] out_data
);
  localparam int D = 2 * DW;
  localparam int T = P / 4;
  localparam int TB = $clog2(T);
  localparam int BUTTERFLY = M + 2;

  logic en, last_valid, starts;
  frame_control #(.T(T)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready), .in_first(starts),
      .last_valid(last_valid), .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );

  genvar p, e;
  generate
    for (p = 0; p < STAGES; p++) begin : g_stage
      localparam int S = INVERSE != 0 ? STAGES - 1 - p : p;
      localparam int FB = S > 1 ? S - 1 : 0;  // bits of the factor's number that the beat gives
      localparam int LATER = INVERSE != 0 ? S + 1 : S;  // the later stage of the two that the shuffle joins
      logic in_valid_s, in_first_s, valid_s, first_s;
      logic [4*D-1:0] from, to;  // {v1, u1, v0, u0}: the inputs and results of both butterflies

      if (p == 0) begin : g_first
        // The first stage joins words T t + l and its partner P/2 on; the last comes in the order of the results.
        assign from = INVERSE != 0 ? in_data
            : {in_data[3*D+:D], in_data[D+:D], in_data[2*D+:D], in_data[0+:D]};
        assign in_valid_s = in_valid & in_ready;
        assign in_first_s = starts;
      end else if (LATER < 2) begin : g_lanes
        assign from = {g_stage[p-1].to[3*D+:D], g_stage[p-1].to[D+:D],
                       g_stage[p-1].to[2*D+:D], g_stage[p-1].to[0+:D]};
        assign in_valid_s = g_stage[p-1].valid_s;
        assign in_first_s = g_stage[p-1].first_s;
      end else begin : g_shuffle
        logic [1:0] valid_e, first_e;
        for (e = 0; e < 2; e++) begin : g_pair
          shuffle #(.WIDTH(D), .L(T >> (LATER - 1))) unit (
              .clk(clk), .rst(rst), .en(en),
              .in_valid(g_stage[p-1].valid_s), .in_first(g_stage[p-1].first_s),
              .in_u(g_stage[p-1].to[2*e*D+:D]), .in_v(g_stage[p-1].to[(2*e+1)*D+:D]),
              .out_valid(valid_e[e]), .out_first(first_e[e]),
              .out_u(from[2*e*D+:D]), .out_v(from[(2*e+1)*D+:D])
          );
        end
        assign in_valid_s = valid_e[0];
        assign in_first_s = first_e[0];
      end

      logic [TB-1:0] count, beat;
      assign beat = in_first_s ? '0 : count;
      logic [2*BUTTERFLY-1:0] tags;
      assign {valid_s, first_s} = tags[2*BUTTERFLY-1-:2];
      always_ff @(posedge clk) begin
        if (rst) begin
          tags <= '0;
          count <= '0;
        end else if (en) begin
          tags <= (2 * BUTTERFLY)'({tags, in_valid_s, in_first_s});
          if (in_valid_s) count <= beat + 1'b1;
        end
      end

      for (e = 0; e < 2; e++) begin : g_butterfly
        logic [2*TW-1:0] twiddles[0:(1<<FB)-1];
        logic [2*TW-1:0] twiddle;
        // Stage 0 has one factor, which both butterflies serve; from stage 1 on butterfly e has the half e of them.
        always_ff @(posedge clk) begin
          if (twiddle_valid & twiddle_stage == ($clog2(STAGES))'(S)
              & (S == 0 | (twiddle_factor >> FB) == ROOT'(e)))
            twiddles[FB == 0 ? 0 : twiddle_factor&((1<<FB)-1)] <= twiddle_data;
        end
        assign twiddle = twiddles[FB == 0 ? 0 : beat>>(TB-FB)];
        fft_butterfly #(.DW(DW), .TW(TW), .FRAC(FRAC), .INVERSE(INVERSE), .M(M)) butterfly (
            .clk(clk), .en(en), .a(from[2*e*D+:D]), .b(from[(2*e+1)*D+:D]), .w(twiddle),
            .u(to[2*e*D+:D]), .v(to[(2*e+1)*D+:D])
        );
      end
    end
  endgenerate
  assign last_valid = g_stage[STAGES-1].valid_s;
  // Of the inverse, the last stage gives words t and t + P/2 side by side.
  generate
    if (INVERSE != 0) begin : g_natural
      assign out_data = {g_stage[STAGES-1].to[3*D+:D], g_stage[STAGES-1].to[D+:D],
                         g_stage[STAGES-1].to[2*D+:D], g_stage[STAGES-1].to[0+:D]};
    end else begin : g_as_is
      assign out_data = g_stage[STAGES-1].to;
    end
  endgenerate
endmodule
