// A group of processing elements that switches a key (he-matvec-fpga, IV-B and Algorithm 2): one element for each of L
// primes and one for the special prime P, each with an engine of passes, C multiply-accumulate lanes and banks of a
// scratchpad, and a bus on which one element sends a polynomial to all.
//
// In: x of L residues, values as rtl/ntt_engine.sv has them. Out: for part 0 and then for part 1 of the key,
// (acc - [acc]_P) / P modulo each of the L primes, where acc = sum_i lift_i(x) key_i over L + 1 primes. One digit a prime:
// lift_i(x) is x modulo q_i, taken centred, modulo every prime.
//
// For each digit i (the loop of Algorithm 2, line 1): INTT of x; element i sends its coefficients; every element lifts them
// into bank B; NTT; the values go through the lanes with key part 0, and into bank A; from A with part 1. Then for each
// part: INTT of acc, element L sends, NTT, and (acc - values) P^-1 leaves through the lanes. All elements run every transform
// at once; the bus says whose matters. The element of q_i transforms its own residue again, which the paper reuses.
// Keys come as a stream of beats for all elements: for each digit part 0, then part 1.
// Every prime has exactly W bits, so that a centred residue of one is below the other (rtl/mod_mul.sv).
module key_switch #(
    parameter int W = 36,
    parameter int C = 4,
    parameter int N = 64,
    parameter int L = 3,
    parameter int M = 5,
    parameter int E = L + 1,  // elements; the last is that of P
    parameter int T = N / C,
    parameter int ROW = $clog2(T),
    parameter int TROW = $clog2($clog2(C) - 1 + 2 * T - 1)
) (
    input logic clk,
    input logic rst,
    input logic [E*W-1:0] q,
    input logic [E*(W+1)-1:0] mu,
    input logic [L*W-1:0] p_inverse,  // P^-1 modulo each prime
    input logic [E-1:0] twiddle_valid,  // see ntt_engine
    input logic twiddle_inverse,
    input logic [TROW-1:0] twiddle_row,
    input logic [C/2*W-1:0] twiddle_data,
    input logic in_valid,
    output logic in_ready,
    input logic [L*C*W-1:0] in_data,
    input logic key_valid,
    output logic key_ready,
    input logic [E*C*W-1:0] key_data,
    output logic out_valid,
    input logic out_ready,
    output logic [L*C*W-1:0] out_data
);
  localparam logic [2:0] LOAD = 0, UP = 1, SEND = 2, DOWN = 3, FIRST = 4, SECOND = 5, DRAIN = 6;
  localparam int BITS = (2 * $clog2(C) - 1) * C / 2;
  localparam int TURN = $clog2(L + 2);  // a digit, or L + part
  localparam logic [ROW-1:0] LAST = ROW'(T - 1);

  logic [2:0] state;
  logic [TURN-1:0] turn;
  logic [ROW-1:0] row, mac_row;  // of what is under way, and of what the lanes give
  logic divide, part;  // the division by P, and the part of the key
  logic engine_in_valid, engine_in_ready, engine_out_valid, engine_out_ready;
  logic mac_in_valid, mac_in_ready, mac_out_valid, mac_out_ready;
  logic step, second_out;
  assign divide = turn >= TURN'(L);
  assign part = turn == TURN'(L + 1);

  // A beat of the present state crosses.
  assign in_ready = state == LOAD & ~rst;
  assign engine_in_valid = state == UP | state == DOWN;
  assign engine_out_ready = state == SEND
      | (state == FIRST & mac_in_ready & (divide | key_valid));
  assign mac_in_valid = (state == FIRST & engine_out_valid & (divide | key_valid))
      | (state == SECOND & key_valid);
  assign key_ready = ~divide & mac_in_ready
      & ((state == FIRST & engine_out_valid) | state == SECOND) & ~rst;
  assign mac_out_ready = divide ? out_ready : 1'b1;
  assign out_valid = divide & mac_out_valid;
  assign step = state == LOAD ? in_valid : engine_in_valid ? engine_in_ready
      : state == SEND ? engine_out_valid : mac_in_valid & mac_in_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= LOAD;
      turn <= '0;
      row <= '0;
      mac_row <= '0;
      second_out <= 1'b0;
    end else begin
      if (step & state != DRAIN) begin
        row <= row == LAST ? '0 : row + 1'b1;
        if (row == LAST) state <= state == FIRST & divide ? DRAIN : state + 1'b1;
      end
      if (mac_out_valid & mac_out_ready) begin
        mac_row <= mac_row == LAST ? '0 : mac_row + 1'b1;
        if (mac_row == LAST) begin
          second_out <= ~divide & ~second_out;
          if (divide | second_out) begin  // the lanes are empty: the next turn
            turn <= part ? '0 : turn + 1'b1;
            state <= part ? LOAD : UP;
          end
        end
      end
    end
  end

  logic [C*W-1:0] bus;
  logic [W-1:0] bus_q;
  logic [TURN-1:0] sender;
  logic [E*C*W-1:0] sent;
  assign sender = divide ? TURN'(L) : turn;
  assign bus = sent[sender*C*W+:C*W];
  assign bus_q = q[sender*W+:W];

  genvar e, k;
  generate
    for (e = 0; e < E; e++) begin : g_element
      logic [W-1:0] modulus, scale;
      logic [C*W-1:0] x_bank[0:T-1], b_bank[0:T-1], a_bank[0:T-1], sum_0[0:T-1], sum_1[0:T-1];
      logic [C*W-1:0] up, values, lifted, sum_read, factor, by, addend, result, less;
      logic in_ready_e, out_valid_e, mac_ready_e, mac_valid_e;
      assign modulus = q[e*W+:W];
      if (e < L) begin : g_prime
        assign scale = p_inverse[e*W+:W];
        assign out_data[e*C*W+:C*W] = result;
        always_ff @(posedge clk) if (in_ready & in_valid) x_bank[row] <= in_data[e*C*W+:C*W];
        assign up = divide ? (part ? sum_1[row] : sum_0[row]) : x_bank[row];
      end else begin : g_special
        assign scale = '0;
        assign up = part ? sum_1[row] : sum_0[row];
      end

      ntt_engine #(.W(W), .C(C), .N(N), .M(M)) engine (
          .clk(clk), .rst(rst), .q(modulus), .mu(mu[e*(W+1)+:W+1]),
          .twiddle_valid(twiddle_valid[e]), .twiddle_inverse(twiddle_inverse),
          .twiddle_row(twiddle_row), .twiddle_data(twiddle_data),
          .turn_valid(1'b0), .turn_beat({ROW{1'b0}}), .turn_data({(ROW + BITS) {1'b0}}),
          .in_valid(engine_in_valid), .in_ready(in_ready_e), .in_op({1'b0, state == UP}),
          .in_data(state == UP ? up : b_bank[row]),
          .out_valid(out_valid_e), .out_ready(engine_out_ready), .out_data(values),
          .passing()
      );
      assign sent[e*C*W+:C*W] = values;

      for (k = 0; k < C; k++) begin : g_lane
        logic [W-1:0] word;
        assign word = bus[k*W+:W];
        assign lifted[k*W+:W] = word > (bus_q >> 1) ? word - bus_q + modulus : word;
        mod_sub #(.W(W)) subtract (
            .q(modulus), .a(sum_read[k*W+:W]), .b(values[k*W+:W]), .r(less[k*W+:W])
        );
      end

      assign sum_read = (state == SECOND | part) ? sum_1[row] : sum_0[row];
      assign factor = divide ? less : state == SECOND ? a_bank[row] : values;
      assign by = divide ? {C{scale}} : key_data[e*C*W+:C*W];
      assign addend = divide | turn == '0 ? '0 : sum_read;
      mac_array #(.W(W), .C(C), .M(M)) lanes (
          .clk(clk), .rst(rst), .q(modulus), .mu(mu[e*(W+1)+:W+1]),
          .in_valid(mac_in_valid), .in_ready(mac_ready_e), .a(factor), .b(by), .c(addend),
          .out_valid(mac_valid_e), .out_ready(mac_out_ready), .r(result)
      );
      always_ff @(posedge clk) begin
        if (state == SEND & engine_out_valid) b_bank[row] <= lifted;
        if (state == FIRST & mac_in_valid & mac_in_ready) a_bank[row] <= values;
        if (mac_valid_e & mac_out_ready & ~divide) begin
          if (second_out) sum_1[mac_row] <= result;
          else sum_0[mac_row] <= result;
        end
      end
      if (e == 0) begin : g_pace  // all elements keep the same pace
        assign engine_in_ready = in_ready_e;
        assign engine_out_valid = out_valid_e;
        assign mac_in_ready = mac_ready_e;
        assign mac_out_valid = mac_valid_e;
      end
    end
  endgenerate
endmodule
