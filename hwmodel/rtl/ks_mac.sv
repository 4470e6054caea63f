// The multiply-accumulate of the key switch (Strix, V-C): words of W bits that wrap, CLP digits and CoLP columns a beat. For
// each column, minus the sum of digit x key word over the beats up to one with `in_last`. Key word of digit i and column m
// is at i COLP + m. Digits are signed, of D bits. CLP is a power of two.
module ks_mac #(
    parameter int W = 32,
    parameter int D = 11,
    parameter int CLP = 8,
    parameter int COLP = 8,
    parameter int M = 3
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic in_last,
    input logic [CLP*D-1:0] in_digits,
    input logic [CLP*COLP*W-1:0] in_key,
    output logic out_valid,
    input logic out_ready,
    output logic [COLP*W-1:0] out_data
);
  localparam int LEVELS = $clog2(CLP);
  localparam int STAGES = M + LEVELS;
  logic en, sum_last;
  logic [STAGES-1:0] valid;
  assign en = out_ready | ~out_valid;
  assign in_ready = en & ~rst;
  delay #(.WIDTH(1), .STAGES(STAGES)) lasts (.clk(clk), .en(en), .in(in_last), .out(sum_last));

  logic [CLP*COLP*W-1:0] now, products;
  logic [COLP*W-1:0] sums, total, next;
  genvar i, m, level;
  generate
    for (i = 0; i < CLP; i++) begin : g_digit
      logic signed [D-1:0] digit;
      assign digit = in_digits[i*D+:D];
      for (m = 0; m < COLP; m++) begin : g_column
        logic signed [W-1:0] word;
        assign word = in_key[(i*COLP+m)*W+:W];
        assign now[(i*COLP+m)*W+:W] = W'(digit * word);
      end
    end
    for (level = 0; level < LEVELS; level++) begin : g_level
      localparam int SUMS = (CLP >> (level + 1)) * COLP;
      logic [2*SUMS*W-1:0] from;
      logic [SUMS*W-1:0] to;
      if (level == 0) begin : g_first
        assign from = products;
      end else begin : g_next
        assign from = g_level[level-1].to;
      end
      for (i = 0; i < SUMS; i++) begin : g_sum
        always_ff @(posedge clk) if (en) to[i*W+:W] <= from[i*W+:W] + from[(i+SUMS)*W+:W];
      end
    end
    if (LEVELS == 0) begin : g_no_tree
      assign sums = products;
    end else begin : g_tree
      assign sums = g_level[LEVELS-1].to;
    end
    for (m = 0; m < COLP; m++) begin : g_total
      assign next[m*W+:W] = total[m*W+:W] - sums[m*W+:W];
    end
  endgenerate
  delay #(.WIDTH(CLP * COLP * W), .STAGES(M)) multiply (
      .clk(clk), .en(en), .in(now), .out(products)
  );
  always_ff @(posedge clk) begin
    if (rst) begin
      valid <= '0;
      out_valid <= 1'b0;
      total <= '0;
    end else if (en) begin
      valid <= STAGES'({valid, in_valid});
      out_valid <= valid[STAGES-1] & sum_last;
      if (valid[STAGES-1]) total <= sum_last ? '0 : next;
    end
    if (en) out_data <= next;
  end
endmodule
