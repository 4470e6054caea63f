// C lanes that decompose words of W bits into LEVELS digits of base 2^BASE_LOG (Strix, V-B and Fig. 6), one digit a cycle,
// without a multiplier: the closest representative, whose error is at most 2^(W - LEVELS BASE_LOG) / 2.
//
// Rounding: the word is rounded to a multiple of 2^(W - LEVELS BASE_LOG), half a unit up. Extraction, from the last digit to
// the first: the low bits r of what is left; if r > B/2, or r = B/2 and the next bit is 1, the digit is r - B and a carry
// goes into what is left (backend/torus.h). Digits are signed, of BASE_LOG + 1 bits; the last level comes first.
module decomposer #(
    parameter int W = 32,
    parameter int C = 8,
    parameter int BASE_LOG = 10,
    parameter int LEVELS = 2,
    parameter int D = BASE_LOG + 1
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*D-1:0] out_data
);
  localparam int KEPT = LEVELS * BASE_LOG;
  localparam int DROPPED = W - KEPT;
  localparam int LEVEL = LEVELS > 1 ? $clog2(LEVELS) : 1;
  localparam logic [BASE_LOG-1:0] HALF = BASE_LOG'(1) << (BASE_LOG - 1);

  logic [LEVEL-1:0] level;
  logic last;
  assign last = level == LEVEL'(LEVELS - 1);
  assign in_ready = (~out_valid | (out_ready & last)) & ~rst;
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      level <= '0;
    end else if (in_ready) begin
      out_valid <= in_valid;
      level <= '0;
    end else if (out_ready) begin
      level <= level + 1'b1;
    end
  end

  genvar lane;
  generate
    for (lane = 0; lane < C; lane++) begin : g_lane
      logic [KEPT-1:0] rest, rounded, shifted;  // the buffer, in units of 2^DROPPED
      logic [BASE_LOG-1:0] low;
      logic negative;
      if (DROPPED == 0) begin : g_exact
        assign rounded = in_data[lane*W+:W];
      end else begin : g_round
        assign rounded = in_data[lane*W+DROPPED+:KEPT] + KEPT'(in_data[lane*W+DROPPED-1]);
      end
      assign low = rest[BASE_LOG-1:0];
      assign shifted = rest >> BASE_LOG;
      assign negative = low > HALF | (low == HALF & shifted[0]);
      always_ff @(posedge clk) begin
        if (in_ready) rest <= rounded;
        else if (out_ready) rest <= shifted + KEPT'(negative);
      end
      assign out_data[lane*D+:D] = {negative, low};  // low - 2^BASE_LOG if negative
    end
  endgenerate
endmodule
