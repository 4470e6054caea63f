// X^a p - p modulo X^N + 1 over words of W bits that wrap (Strix, V-C): the difference that a step of a blind rotation
// decomposes. C lanes; with folding C = 2 CLP.
//
// A frame is T = N/C beats; lane l of beat t is coefficient t + l T, as rtl/fft.sv takes them. Coefficient j of X^a p is
// that of j - a, negative if j - a is in [N, 2N) modulo 2N. As t + l T - a = r + T (l + h) with r < T, all lanes of a beat
// come from row r, turned by h lanes. The exponent a, in [0, 2N), is that of a frame's first beat.
module rotator #(
    parameter int W = 32,
    parameter int C = 8,
    parameter int N = 64,
    parameter int EXPONENT = $clog2(2 * N)
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    input logic [EXPONENT-1:0] in_exponent,
    input logic [C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] out_data
);
  localparam int T = N / C;
  localparam int ROW = $clog2(T);
  localparam int LANE = $clog2(C);

  logic write, write_page, read_valid, read_page, en;
  logic [ROW-1:0] write_row, read_row;
  frame_pages #(.T(T)) pages (
      .clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready),
      .write(write), .write_page(write_page), .write_row(write_row),
      .read(en), .read_valid(read_valid), .read_page(read_page), .read_row(read_row)
  );
  logic [EXPONENT-1:0] exponents[0:1];
  always_ff @(posedge clk) if (write & write_row == '0) exponents[write_page] <= in_exponent;

  logic [EXPONENT-1:0] from;  // t - a modulo 2N: {h, r}
  logic [LANE:0] h;
  logic taken_valid;
  logic [C*W-1:0] turned_words, own_words, difference;
  assign from = EXPONENT'(read_row) - exponents[read_page];
  assign en = out_ready | ~out_valid;
  always_ff @(posedge clk) begin
    if (rst) begin
      taken_valid <= 1'b0;
      out_valid <= 1'b0;
    end else if (en) begin
      taken_valid <= read_valid;
      out_valid <= taken_valid;
    end
    if (en) begin
      h <= from[EXPONENT-1:ROW];
      out_data <= difference;
    end
  end

  genvar lane;
  generate
    for (lane = 0; lane < C; lane++) begin : g_lane
      logic [W-1:0] memory[0:2*T-1];
      logic [W-1:0] turned, own, source;
      always_ff @(posedge clk) begin
        if (write) memory[{write_page, write_row}] <= in_data[lane*W+:W];
        if (en) begin
          turned <= memory[{read_page, from[ROW-1:0]}];
          own <= memory[{read_page, read_row}];
        end
      end
      assign turned_words[lane*W+:W] = turned;
      // Lane l + h modulo 2C; from C on it is lane l + h - C, negative.
      logic [LANE:0] at;
      assign at = (LANE + 1)'(lane) + h;
      assign source = turned_words[at[LANE-1:0]*W+:W];
      assign difference[lane*W+:W] = (at[LANE] ? -source : source) - own;
    end
  endgenerate
endmodule
