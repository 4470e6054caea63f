// What every unit is made of: registers that move together, and the valid/ready bits beside them.
//
// A datapath has `clk` and `en`: while `en` is 0 all of its registers hold. A stream unit adds `pipe_control`, whose
// `en` stops the datapath when its output is valid and nobody takes it.

// out is in, STAGES enabled cycles later.
module delay #(
    parameter int WIDTH = 1,
    parameter int STAGES = 1
) (
    input logic clk,
    input logic en,
    input logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  generate
    if (STAGES == 0) begin : g_wire
      assign out = in;
    end else begin : g_registers
      logic [STAGES*WIDTH-1:0] line;
      always_ff @(posedge clk) if (en) line <= (STAGES * WIDTH)'({line, in});
      assign out = line[STAGES*WIDTH-1-:WIDTH];
    end
  endgenerate
endmodule

// The valid bits of a datapath of STAGES registers, STAGES >= 1. Reset empties the pipe.
module pipe_control #(
    parameter int STAGES = 1
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    output logic out_valid,
    input logic out_ready,
    output logic en
);
  logic [STAGES-1:0] valid;
  assign out_valid = valid[STAGES-1];
  assign en = out_ready | ~out_valid;
  assign in_ready = en & ~rst;
  always_ff @(posedge clk) begin
    if (rst) valid <= '0;
    else if (en) valid <= STAGES'({valid, in_valid});
  end
endmodule

// The control of a datapath that takes frames of T beats without a gap, T a power of two: `en` stops it when its output is
// valid and nobody takes it, and when a beat in the middle of a frame does not come. That holds the output too. last_valid:
// the datapath has a beat at its output.
module frame_control #(
    parameter int T = 4
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    output logic in_first,  // the next beat begins a frame
    input logic last_valid,
    output logic out_valid,
    input logic out_ready,
    output logic en
);
  logic [$clog2(T)-1:0] fed_beats;
  logic fed;
  assign in_first = fed_beats == '0;
  assign fed = in_valid | in_first;
  assign in_ready = (out_ready | ~last_valid) & ~rst;
  assign en = fed & (out_ready | ~last_valid);
  assign out_valid = last_valid & fed;
  always_ff @(posedge clk) begin
    if (rst) fed_beats <= '0;
    else if (in_valid & in_ready) fed_beats <= fed_beats + 1'b1;
  end
endmodule

// The low P bits of a * b, unsigned, after STAGES >= 1 registers. The registers stand behind the product, and synthesis
// for an FPGA may move them into it.
module mul_pipe #(
    parameter int A = 1,
    parameter int B = 1,
    parameter int P = A + B,
    parameter int STAGES = 1
) (
    input logic clk,
    input logic en,
    input logic [A-1:0] a,
    input logic [B-1:0] b,
    output logic [P-1:0] product
);
  logic [P-1:0] now;
  assign now = P'(a * b);
  delay #(
      .WIDTH(P),
      .STAGES(STAGES)
  ) registers (
      .clk(clk),
      .en(en),
      .in(now),
      .out(product)
  );
endmodule
