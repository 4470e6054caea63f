// The negacyclic transform of N coefficients in log2 N passes of N/C + 3 M + 8 cycles: C lane memories, a Benes network,
// C/2 cores, and a column of switches back to the memories (he-matvec-fpga, IV-B). It takes frames of N/C beats with an
// operation, and gives frames of the same size.
//
//   op 0  NTT: coefficients in order -> values at psi^(2 brv(k) + 1), as backend/view.h has them
//   op 1  INTT: the inverse, with the factor N^-1
//   op 2  a permutation of values whose beats are permutations of beats, as automorphisms are: by the table `turns`
//
// Passes (Pease's constant geometry). Pass s of the NTT reads x[i] and x[i + N/2], and writes x[2i] and x[2i + 1]; the
// twiddle is psi^brv(2^s + i mod 2^s), with log2 N bits reversed. The INTT goes back: it reads x[2i] and x[2i + 1], and
// writes x[i] and x[i + N/2].
// Rows. Word p lies in row p / C, lane p mod C, the halves of the lanes exchanged in the upper half of the rows. So both
// C words in order, and C/2 words x[i] with their x[i + N/2], lie in C different memories. A memory has two pages, and a
// pass goes from one to the other.
// Registers of a pass: 2 of a memory that is read, 1 behind the Benes network, 3 M + 4 of the core, 1 behind the switches;
// a read follows the write of its row by a cycle.
module ntt_engine #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int N = 64,
    parameter int M = 5,
    parameter int T = N / C,
    parameter int ROW = $clog2(T),
    parameter int BITS = (2 * $clog2(C) - 1) * C / 2,
    parameter int TWIDDLES = $clog2(C) - 1 + 2 * T - 1,  // rows of a table
    parameter int TROW = $clog2(TWIDDLES)
) (
    input logic clk,
    input logic rst,
    input logic [W-1:0] q,
    input logic [W:0] mu,
    // Tables, written with no frame inside. Twiddles: the row of pass s and beat t is s if 2^s < C/2, else
    // log2(C/2) - 1 + 2^s / (C/2) + t mod (2^s / (C/2)); lane k has that of i = t C/2 + k.
    input logic twiddle_valid,
    input logic twiddle_inverse,
    input logic [TROW-1:0] twiddle_row,
    input logic [C/2*W-1:0] twiddle_data,
    input logic turn_valid,
    input logic [ROW-1:0] turn_beat,
    input logic [ROW+BITS-1:0] turn_data,  // {row, control}
    input logic in_valid,
    output logic in_ready,
    input logic [1:0] in_op,  // of the first beat of a frame
    input logic [C*W-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [C*W-1:0] out_data,
    output logic passing  // a pass is under way
);
  localparam int H = C / 2;
  localparam int L = $clog2(N);
  localparam int HL = $clog2(H);
  localparam int CORE = 3 * M + 4;
  localparam int FILL = CORE + 4;
  localparam int STEP = $clog2(T + FILL);
  localparam int PASS = $clog2(L);
  localparam logic [ROW-1:0] LAST = ROW'(T - 1);
  localparam logic [1:0] LOAD = 2'd0, RUN = 2'd1, STORE = 2'd2;

  // --- the sequence: load, log2 N passes, store -----------------------------------------------------
  logic [1:0] state, op;
  logic page;  // that is read
  logic [ROW-1:0] beat;  // of load or store
  logic [STEP-1:0] step;  // of a pass
  logic [PASS-1:0] pass;
  logic loading, storing, inverse, en;
  assign loading = in_valid & in_ready;
  assign in_ready = state == LOAD & ~rst;
  assign storing = state == STORE;
  assign passing = state == RUN;
  assign inverse = op[0];
  assign en = out_ready | ~out_valid;  // a pass never meets a valid output: see drained

  logic [2:0] outgoing;  // valid bits of store
  logic stored, drained;
  assign out_valid = outgoing[2];
  assign drained = storing & stored & ~|outgoing[1:0] & en;
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= LOAD;
      page <= 1'b0;
      beat <= '0;
      step <= '0;
      pass <= '0;
      stored <= 1'b0;
      outgoing <= '0;
    end else begin
      if (en) outgoing <= {outgoing[1:0], storing & ~stored};
      case (state)
        LOAD:
        if (loading) begin
          beat <= beat == LAST ? '0 : beat + 1'b1;
          if (beat == '0) op <= in_op;
          if (beat == LAST) state <= op[1] ? STORE : RUN;
        end
        RUN: begin
          step <= step + 1'b1;
          if (step == STEP'(T + FILL - 1)) begin
            step <= '0;
            page <= ~page;
            pass <= pass + 1'b1;
            if (pass == PASS'(L - 1)) begin
              pass <= '0;
              state <= STORE;
            end
          end
        end
        default:
        if (en) begin
          beat <= stored ? '0 : beat + 1'b1;
          if (beat == LAST) stored <= 1'b1;
          if (drained) begin
            stored <= 1'b0;
            beat <= '0;
            state <= LOAD;
          end
        end
      endcase
    end
  end

  // --- reads: a beat in order, or one of pairs -------------------------------------------------------
  logic [ROW+BITS-1:0] turns[0:T-1];
  logic [ROW+BITS-1:0] turn;
  always_ff @(posedge clk) if (turn_valid) turns[turn_beat] <= turn_data;
  assign turn = turns[beat];

  logic [ROW-1:0] at, low_row, high_row;  // the rows of the lower and of the upper half of the lanes
  logic pairs, swap;
  logic [BITS-1:0] route, route_2;
  assign at = passing ? step[ROW-1:0] : beat;
  assign pairs = passing & ~inverse;
  assign swap = pairs ? at[0] : at[ROW-1];
  always_comb begin
    route = {{(BITS - H) {1'b0}}, {H{swap}}};  // the first column exchanges the halves
    low_row = at;
    high_row = at;
    if (pairs) begin
      low_row = (at >> 1) | (at[0] ? ROW'(T / 2) : '0);
      high_row = (at >> 1) | (at[0] ? '0 : ROW'(T / 2));
    end else if (storing & op[1]) begin
      route = turn[BITS-1:0];
      low_row = turn[BITS+:ROW];
      high_row = low_row;
    end
  end
  delay #(.WIDTH(BITS), .STAGES(2)) to_benes (.clk(clk), .en(en), .in(route), .out(route_2));
  logic [C*W-1:0] read, turned, straight;
  benes #(.W(W), .C(C)) spatial (.control(route_2), .in(read), .out(turned));
  always_ff @(posedge clk) if (en) straight <= turned;
  assign out_data = straight;

  // --- twiddles ----------------------------------------------------------------------------------------
  logic [H*W-1:0] twiddles[0:(1<<(TROW+1))-1];
  logic [H*W-1:0] twiddle_1, twiddle_2, twiddle_3;
  logic [TROW-1:0] twiddle_at;
  logic [PASS-1:0] stage;  // s
  logic [L-1:0] blocks;  // 2^s / (C/2)
  assign stage = inverse ? PASS'(L - 1) - pass : pass;
  assign blocks = (L'(1) << stage) >> HL;
  assign twiddle_at = blocks == '0 ? TROW'(stage)
      : TROW'(HL - 1) + TROW'(blocks) + (TROW'(at) & (TROW'(blocks) - 1'b1));
  always_ff @(posedge clk) begin
    if (twiddle_valid) twiddles[{twiddle_inverse, twiddle_row}] <= twiddle_data;
    twiddle_1 <= twiddles[{inverse, twiddle_at}];
    twiddle_2 <= twiddle_1;
    twiddle_3 <= twiddle_2;
  end

  // --- cores, and the way back -------------------------------------------------------------------------
  logic issue, write_valid, writing_valid, swap_back;
  logic [ROW-1:0] write_at, writing_at;
  logic [C*W-1:0] results, exchanged, write_data;
  assign issue = passing & (step < STEP'(T));
  delay #(.WIDTH(ROW), .STAGES(CORE + 3)) with_core (
      .clk(clk), .en(1'b1), .in(at), .out(write_at)
  );
  logic [CORE+2:0] issued;
  assign write_valid = issued[CORE+2];
  assign swap_back = inverse ? write_at[0] : write_at[ROW-1];
  assign exchanged = swap_back ? {results[H*W-1:0], results[C*W-1:H*W]} : results;
  always_ff @(posedge clk) begin
    issued <= rst ? '0 : {issued[CORE+1:0], issue};
    writing_valid <= write_valid & ~rst;
    writing_at <= write_at;
    write_data <= exchanged;
  end

  logic [H*W-1:0] even, odd;
  genvar k;
  generate
    for (k = 0; k < H; k++) begin : g_core
      logic [W-1:0] u, v;
      ntt_core #(.W(W), .M(M)) core (
          .clk(clk), .en(1'b1), .inverse(inverse), .q(q), .mu(mu),
          .a(inverse ? straight[2*k*W+:W] : straight[k*W+:W]),
          .b(inverse ? straight[(2*k+1)*W+:W] : straight[(k+H)*W+:W]),
          .w(twiddle_3[k*W+:W]), .u(u), .v(v)
      );
      // The NTT puts u and v side by side, the INTT half the lanes apart: two wires a lane, written from each side.
      assign even[k*W+:W] = u;
      assign odd[k*W+:W] = v;
    end
    for (k = 0; k < C; k++) begin : g_result
      assign results[k*W+:W] = inverse ? (k < H ? even[(k%H)*W+:W] : odd[(k%H)*W+:W])
                                       : (k % 2 == 0 ? even[(k/2)*W+:W] : odd[(k/2)*W+:W]);
    end
  endgenerate

  // --- memories ----------------------------------------------------------------------------------------
  logic [C*W-1:0] load_data;
  assign load_data = beat[ROW-1] ? {in_data[H*W-1:0], in_data[C*W-1:H*W]} : in_data;
  generate
    for (k = 0; k < C; k++) begin : g_memory
      logic [W-1:0] memory[0:2*T-1];
      logic [W-1:0] word_1, word_2;
      logic [ROW-1:0] pair_row, to_row;
      // The row of this lane when a pass writes pairs: as low_row and high_row above.
      assign pair_row = (writing_at >> 1) | ((writing_at[0] ^ (k >= H)) ? ROW'(T / 2) : '0);
      assign to_row = inverse ? pair_row : writing_at;
      always_ff @(posedge clk) begin
        if (loading) memory[{page, beat}] <= load_data[k*W+:W];
        else if (writing_valid) memory[{~page, to_row}] <= write_data[k*W+:W];
        if (en) begin
          word_1 <= memory[{page, k < H ? low_row : high_row}];
          word_2 <= word_1;
        end
      end
      assign read[k*W+:W] = word_2;
    end
  endgenerate
endmodule
