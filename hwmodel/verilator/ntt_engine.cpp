// ntt_engine against the engine `ref`: ring().ntt, ring().intt and ring().automorphism_ntt, frames
// in a random order.
#include <algorithm>
#include <memory>

#include "benes.h"
#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/transform.h"
#include "jali/backend/ring_ops.h"
#include "stream.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

constexpr int W = PARAM_W;
constexpr std::size_t C = PARAM_C, N = PARAM_N, T = N / C, H = C / 2;

int log2(std::size_t n) { return n == 1 ? 0 : 1 + log2(n / 2); }

/// psi^brv(2^s + i) of every pass, in the rows that the engine reads.
void load_twiddles(Stream& s, u64 psi, u64 q, int inverse) {
  u64 row = 0;
  for (std::size_t blocks = 1; blocks < N; blocks *= 2) {
    for (std::size_t t = 0; t < std::max<std::size_t>(1, blocks / H); ++t) {
      for (std::size_t k = 0; k < H; ++k) {
        const std::size_t index = blocks + (t * H + k) % blocks;
        set_bits(s.unit.twiddle_data, static_cast<int>(k) * W, W,
                 ref::power(psi, ref::bit_reverse(index, N), q));
      }
      s.unit.twiddle_inverse = inverse;
      s.unit.twiddle_row = row++;
      s.unit.twiddle_valid = 1;
      s.idle();
    }
  }
  s.unit.twiddle_valid = 0;
}

/// Where value k of x(X^g) comes from: the oracle says it of the row 0, 1 .. N - 1.
void load_turns(Stream& s, u64 g) {
  ref::Row places(N);
  for (std::size_t k = 0; k < N; ++k) places[k] = k;
  places = ref::automorphism_of_values(places, g);
  for (std::size_t t = 0; t < T; ++t) {
    const std::size_t row = places[t * C] / C;
    Lanes lanes(C);
    for (std::size_t lane = 0; lane < C; ++lane) {
      require(places[t * C + lane] / C == row, "an automorphism takes a beat apart");
      lanes[lane] = places[t * C + lane] % C ^ (row >= T / 2 ? H : 0);
    }
    const int bits = (2 * log2(C) - 1) * static_cast<int>(H);
    s.unit.turn_beat = t;
    s.unit.turn_data = static_cast<u64>(row) << bits | benes_control(lanes);
    s.unit.turn_valid = 1;
    s.idle();
  }
  s.unit.turn_valid = 0;
}

int main(int argc, char** argv) {
  Stream s(
      [](Unit& unit, const Words& beat) {
        unit.in_op = beat[C];
        for (std::size_t k = 0; k < C; ++k) {
          set_bits(unit.in_data, static_cast<int>(k) * W, W, beat[k]);
        }
      },
      [](Unit& unit) {
        Words beat(C);
        for (std::size_t k = 0; k < C; ++k)
          beat[k] = bits(unit.out_data, static_cast<int>(k) * W, W);
        return beat;
      },
      seed_of(argc, argv));
  const u64 q = *jali::arith::prime_below(u64{1} << W, 2 * N);
  const auto engine = backend::make_ref_engine({.word = jali::Word::w64, .n = N, .primes = {q}});
  const jali::PrimeIndex first[] = {jali::PrimeIndex{0}};
  const u64 psi = engine->ring().root(first[0]), g = 2 * (s.random()() % N) + 1;
  s.unit.q = q;
  s.unit.mu = static_cast<u64>((static_cast<unsigned __int128>(1) << (2 * W)) / q);
  s.reset();
  load_twiddles(s, psi, q, 0);
  load_twiddles(s, ref::inverse(psi, q), q, 1);
  load_turns(s, g);

  std::vector<Words> beats, expected;
  const auto cut = [](std::vector<Words>& into, const ref::Row& row, u64 op) {
    for (std::size_t t = 0; t < T; ++t) {
      into.emplace_back(row.begin() + t * C, row.begin() + (t + 1) * C);
      if (op < 3) into.back().push_back(op);
    }
  };
  for (const u64 op : {0, 1, 2, 1, 1, 0, 0, 2, 2}) {
    ref::Row x(N);
    for (u64& value : x)
      value = s.random()() % 4 == 0 ? q - 1 - s.random()() % 2 : s.random()() % q;
    cut(beats, x, op);
    ref::Row y = x;
    if (op == 0) engine->ring().ntt({y.data(), first});
    if (op == 1) engine->ring().intt({y.data(), first});
    if (op == 2) engine->ring().automorphism_ntt({y.data(), first}, {x.data(), first}, g);
    cut(expected, y, 3);
  }
  s.check(beats, expected);

  // Cycles from the last beat in to the first beat out, of an NTT, an INTT and an automorphism;
  // from the NTT to the next frame.
  s.reset();
  const std::vector<Words> timed(beats.begin(), beats.begin() + 3 * T);
  const Log log = s.run(timed, 3 * T);
  const auto cycles = [&](std::size_t frame) {
    return static_cast<int>(log.given[frame * T] - log.taken[(frame + 1) * T - 1]);
  };
  std::printf(
      "{\"cycles\": %d, \"inverse\": %d, \"permute\": %d, \"store\": %d, \"interval\": %d}\n",
      cycles(0), cycles(1), cycles(2), static_cast<int>(log.given[T - 1] - log.given[0] + 1),
      static_cast<int>(log.taken[T] - log.taken[0]));
}
