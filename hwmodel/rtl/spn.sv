// A streaming permutation network (he-matvec-fpga, Fig. 5): any permutation of frames of N words, C words a beat, by a
// Benes network, C memories, and a second Benes network.
//
// Word i of a frame is lane i mod C of beat i / C. Beat t passes the first network with first[t] and is written to row t
// of the C memories. Output beat t takes row rows[t] of each memory through the second network with second[t]. The
// memories have two pages, one of which is written while the other is read. A row {second, rows, first} of the tables is
// written while config_valid, with no frame inside; tests/benches/routing.py computes them for a permutation.
module spn #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int N = 64,
    parameter int ROW = $clog2(N / C),
    parameter int BITS = (2 * $clog2(C) - 1) * C / 2
) (
    input logic clk,
    input logic rst,
    input logic config_valid,
    input logic [ROW-1:0] config_row,
    input logic [2*BITS+C*ROW-1:0] config_data,
    input logic in_valid,
    output logic in_ready,
    input logic [C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] out_data
);
  localparam int T = N / C;
  localparam logic [ROW-1:0] LAST = ROW'(T - 1);

  logic [BITS-1:0] first[0:T-1];
  logic [C*ROW+BITS-1:0] then[0:T-1];
  always_ff @(posedge clk) begin
    if (config_valid) begin
      first[config_row] <= config_data[BITS-1:0];
      then[config_row] <= config_data[2*BITS+C*ROW-1:BITS];
    end
  end

  // Into the memories: one register behind the first network. So a row is written in the cycle behind the one in which it
  // is taken, and read at the earliest two behind: `waiting` keeps the page whose last read is held up.
  logic write, write_page, written, written_page, pages_ready, waiting;
  logic en, read_valid, read_page, take_valid, take_page, take_last, taken_valid;
  logic [ROW-1:0] write_row, written_row, read_row;
  logic [C*W-1:0] routed, write_data;
  frame_pages #(.T(T)) pages (
      .clk(clk), .rst(rst), .in_valid(in_valid & ~waiting), .in_ready(pages_ready),
      .write(write), .write_page(write_page), .write_row(write_row),
      .read(en), .read_valid(read_valid), .read_page(read_page), .read_row(read_row)
  );
  assign in_ready = pages_ready & ~waiting;
  assign waiting = take_valid & take_last & take_page == write_page & ~en;
  benes #(.W(W), .C(C)) spatial_1 (.control(first[write_row]), .in(in_data), .out(routed));
  always_ff @(posedge clk) begin
    written <= write & ~rst;
    write_data <= routed;
    written_page <= write_page;
    written_row <= write_row;
  end

  // Out of them: registers behind the table, the memories and the second network.
  logic [C*ROW+BITS-1:0] take;
  logic [BITS-1:0] taken_control;
  logic [C*W-1:0] taken, turned;
  assign en = out_ready | ~out_valid;
  benes #(.W(W), .C(C)) spatial_2 (.control(taken_control), .in(taken), .out(turned));
  always_ff @(posedge clk) begin
    if (rst) begin
      take_valid <= 1'b0;
      taken_valid <= 1'b0;
      out_valid <= 1'b0;
    end else if (en) begin
      take_valid <= read_valid;
      taken_valid <= take_valid;
      out_valid <= taken_valid;
    end
    if (en) begin
      take_page <= read_page;
      take_last <= read_row == LAST;
      take <= then[read_row];
      taken_control <= take[C*ROW+:BITS];
      out_data <= turned;
    end
  end

  genvar lane;
  generate
    for (lane = 0; lane < C; lane++) begin : g_memory
      logic [W-1:0] memory[0:2*T-1];
      logic [W-1:0] word;
      always_ff @(posedge clk) begin
        if (written) memory[{written_page, written_row}] <= write_data[lane*W+:W];
        if (en) word <= memory[{take_page, take[lane*ROW+:ROW]}];
      end
      assign taken[lane*W+:W] = word;
    end
  endgenerate
endmodule
