// The shuffle unit between stages of the pipelined transform (Strix, Fig. 5): two delays of L, and two multiplexers that
// change over every L beats.

// out is in, L enabled cycles later: a shift register if L < 32, else a memory (Strix, V-A).
module delay_line #(
    parameter int WIDTH = 1,
    parameter int L = 1
) (
    input logic clk,
    input logic rst,
    input logic en,
    input logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  generate
    if (L < 32) begin : g_registers
      delay #(.WIDTH(WIDTH), .STAGES(L)) shift (.clk(clk), .en(en), .in(in), .out(out));
    end else begin : g_memory
      // A word is read in the cycle in which its place is written again: after L - 1 places, and the output register.
      logic [WIDTH-1:0] memory[0:L-2];
      logic [$clog2(L)-1:0] place;
      always_ff @(posedge clk) begin
        if (en) begin
          out <= memory[place];
          memory[place] <= in;
        end
        if (rst) place <= '0;
        else if (en) place <= place == ($clog2(L))'(L - 2) ? '0 : place + 1'b1;
      end
    end
  endgenerate
endmodule

// Segments of L beats, numbered: (u0 u1 u2 u3, v0 v1 v2 v3) becomes (u0 v0 u2 v2, u1 v1 u3 v3), L enabled cycles later.
// `valid` is 1 for the beats of a frame, which come without a gap, and `first` for the first of them. Between frames any
// number of cycles may pass. A frame has a multiple of 2 L beats.
module shuffle #(
    parameter int WIDTH = 1,
    parameter int L = 1
) (
    input logic clk,
    input logic rst,
    input logic en,
    input logic in_valid,
    input logic in_first,
    input logic [WIDTH-1:0] in_u,
    input logic [WIDTH-1:0] in_v,
    output logic out_valid,
    output logic out_first,
    output logic [WIDTH-1:0] out_u,
    output logic [WIDTH-1:0] out_v
);
  localparam int BITS = $clog2(2 * L);
  logic [BITS-1:0] count, beat;  // modulo 2 L
  logic change;
  assign beat = in_first ? '0 : count;
  assign change = in_valid & beat[BITS-1];
  logic [WIDTH-1:0] late_v;
  delay_line #(.WIDTH(WIDTH), .L(L)) early (
      .clk(clk), .rst(rst), .en(en), .in(in_v), .out(late_v)
  );
  delay_line #(.WIDTH(WIDTH), .L(L)) late (
      .clk(clk), .rst(rst), .en(en), .in(change ? late_v : in_u), .out(out_u)
  );
  assign out_v = change ? in_u : late_v;

  logic [2*L-1:0] tags;
  assign {out_valid, out_first} = tags[2*L-1-:2];
  always_ff @(posedge clk) begin
    if (rst) begin
      tags <= '0;
      count <= '0;
    end else if (en) begin
      tags <= (2 * L)'({tags, in_valid, in_first});
      if (in_valid) count <= beat + 1'b1;
    end
  end
endmodule

// The same between streams, for frames of T beats, a power of two.
module shuffle_stream #(
    parameter int WIDTH = 1,
    parameter int L = 1,
    parameter int T = 2 * L
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [WIDTH-1:0] in_u,
    input logic [WIDTH-1:0] in_v,
    output logic out_valid,
    input logic out_ready,
    output logic [WIDTH-1:0] out_u,
    output logic [WIDTH-1:0] out_v
);
  logic en, first, last_valid;
  frame_control #(.T(T)) control (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready), .in_first(first),
      .last_valid(last_valid), .out_valid(out_valid), .out_ready(out_ready), .en(en)
  );
  shuffle #(.WIDTH(WIDTH), .L(L)) path (
      .clk(clk), .rst(rst), .en(en), .in_valid(in_valid), .in_first(first),
      .in_u(in_u), .in_v(in_v), .out_valid(last_valid), .out_first(), .out_u(out_u), .out_v(out_v)
  );
endmodule
