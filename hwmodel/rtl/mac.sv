// Modular multiply-accumulate lanes, and the adder tree over the groups (he-matvec-fpga, IV-B).

// r = c + a b mod q in every lane, 3 M + 3 cycles later. The three operands are the 3c coefficients that the array loads.
module mac_array #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int M = 5
) (
    input logic clk,
    input logic rst,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    input logic in_valid,
    output logic in_ready,
    input logic [C*W-1:0] a,
    input logic [C*W-1:0] b,
    input logic [C*W-1:0] c,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] r
);
  logic en;
  pipe_control #(.STAGES(3 * M + 3)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  logic [C*W-1:0] addend, product, sum;
  delay #(.WIDTH(C * W), .STAGES(3 * M + 2)) beside (.clk(clk), .en(en), .in(c), .out(addend));
  genvar k;
  generate
    for (k = 0; k < C; k++) begin : g_lane
      mod_mul #(.W(W), .M(M)) multiply (
          .clk(clk), .en(en), .q(q), .mu(mu),
          .a(a[k*W+:W]), .b(b[k*W+:W]), .r(product[k*W+:W])
      );
      mod_add #(.W(W)) add (
          .q(q), .a(addend[k*W+:W]), .b(product[k*W+:W]), .r(sum[k*W+:W])
      );
    end
  endgenerate
  always_ff @(posedge clk) if (en) r <= sum;
endmodule

// The sum modulo q of G groups' beats of C lanes, G a power of two: log2 G levels of adders, a register behind each. Group i
// is the i-th part of `in`.
module adder_tree #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int G = 4
) (
    input logic clk,
    input logic rst,
    input logic [W-1:0] q,
    input logic in_valid,
    output logic in_ready,
    input logic [G*C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] out_data
);
  localparam int LEVELS = $clog2(G);
  logic en;
  pipe_control #(.STAGES(LEVELS)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  genvar level, i;
  generate
    for (level = 0; level < LEVELS; level++) begin : g_level
      localparam int SUMS = (G >> (level + 1)) * C;  // of words i and i + SUMS
      logic [2*SUMS*W-1:0] from;
      logic [SUMS*W-1:0] now, to;
      if (level == 0) begin : g_first
        assign from = in_data;
      end else begin : g_next
        assign from = g_level[level-1].to;
      end
      for (i = 0; i < SUMS; i++) begin : g_sum
        mod_add #(.W(W)) add (
            .q(q), .a(from[i*W+:W]), .b(from[(i+SUMS)*W+:W]), .r(now[i*W+:W])
        );
      end
      always_ff @(posedge clk) if (en) to <= now;
    end
  endgenerate
  assign out_data = g_level[LEVELS-1].to;
endmodule
