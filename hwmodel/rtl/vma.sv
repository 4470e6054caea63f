// Complex multipliers and an adder tree (Strix, V-C): in each of C lanes the sum of PLP products x k in the transform
// domain, rounded once. Parts are signed words of XW and KW bits; the sum is divided by 2^SHIFT, half up, and wraps to DW
// bits. A complex number is {imaginary, real}; product p of lane l is at p C + l. PLP is a power of two.
module vma #(
    parameter int XW = 64,
    parameter int KW = 64,
    parameter int DW = 64,
    parameter int SHIFT = 16,
    parameter int C = 4,
    parameter int PLP = 2,
    parameter int M = 3
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [2*PLP*C*XW-1:0] in_x,
    input logic [2*PLP*C*KW-1:0] in_k,
    output logic out_valid,
    input logic out_ready,
    output logic [2*C*DW-1:0] out_data
);
  localparam int LEVELS = $clog2(PLP);
  localparam int PW = XW + KW;
  localparam int SW = PW + 1 + LEVELS;
  logic en;
  // Products, their sums and differences, the tree, and the rounding.
  pipe_control #(.STAGES(M + 2 + LEVELS)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  logic [2*PLP*C*SW-1:0] products;
  logic [2*C*SW-1:0] sums;
  genvar i, level;
  generate
    for (i = 0; i < PLP * C; i++) begin : g_product
      logic signed [XW-1:0] x_re, x_im;
      logic signed [KW-1:0] k_re, k_im;
      logic signed [PW-1:0] rr, ii, ri, ir, p_rr, p_ii, p_ri, p_ir;
      assign {x_im, x_re} = in_x[2*i*XW+:2*XW];
      assign {k_im, k_re} = in_k[2*i*KW+:2*KW];
      assign rr = x_re * k_re;
      assign ii = x_im * k_im;
      assign ri = x_re * k_im;
      assign ir = x_im * k_re;
      delay #(.WIDTH(4 * PW), .STAGES(M)) multiply (
          .clk(clk), .en(en), .in({rr, ii, ri, ir}), .out({p_rr, p_ii, p_ri, p_ir})
      );
      logic signed [SW-1:0] re, im;
      always_ff @(posedge clk) begin
        if (en) begin
          re <= SW'(p_rr) - SW'(p_ii);
          im <= SW'(p_ri) + SW'(p_ir);
        end
      end
      assign products[2*i*SW+:2*SW] = {im, re};
    end
    for (level = 0; level < LEVELS; level++) begin : g_level
      localparam int SUMS = (PLP >> (level + 1)) * C * 2;  // words i and i + SUMS
      logic [2*SUMS*SW-1:0] from;
      logic [SUMS*SW-1:0] to;
      if (level == 0) begin : g_first
        assign from = products;
      end else begin : g_next
        assign from = g_level[level-1].to;
      end
      for (i = 0; i < SUMS; i++) begin : g_sum
        always_ff @(posedge clk) begin
          if (en) to[i*SW+:SW] <= from[i*SW+:SW] + from[(i+SUMS)*SW+:SW];
        end
      end
    end
    if (LEVELS == 0) begin : g_no_tree
      assign sums = products;
    end else begin : g_tree
      assign sums = g_level[LEVELS-1].to;
    end
    for (i = 0; i < 2 * C; i++) begin : g_round
      logic signed [SW-1:0] total;
      assign total = sums[i*SW+:SW] + (SHIFT == 0 ? SW'(0) : SW'(1) << (SHIFT - 1));
      always_ff @(posedge clk) if (en) out_data[i*DW+:DW] <= DW'(total >>> SHIFT);
    end
  endgenerate
endmodule
