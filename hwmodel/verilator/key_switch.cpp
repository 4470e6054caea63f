// key_switch against the engine `ref`: rlwe().key_switch with one digit a prime, then
// rlwe().scale_down of both parts.
#include <memory>

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/transform.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

constexpr int W = PARAM_W, C = PARAM_C, N = PARAM_N, L = PARAM_L, E = L + 1, T = N / C, H = C / 2;

void load_twiddles(Stream& s, int element, u64 psi, u64 q, int inverse) {
  u64 row = 0;
  for (std::size_t blocks = 1; blocks < N; blocks *= 2) {
    for (std::size_t t = 0; t < std::max<std::size_t>(1, blocks / H); ++t) {
      for (int k = 0; k < H; ++k) {
        const std::size_t index = blocks + (t * H + k) % blocks;
        set_lane(s.unit.twiddle_data, k, W, ref::power(psi, ref::bit_reverse(index, N), q));
      }
      s.unit.twiddle_valid = 1 << element;
      s.unit.twiddle_inverse = inverse;
      s.unit.twiddle_row = row++;
      s.idle();
    }
  }
  s.unit.twiddle_valid = 0;
}

int main(int argc, char** argv) {
  std::vector<Words> keys;  // what the key stream still has
  std::size_t next_key = 0;
  bool key_taken = false;
  Stream s(
      [](Unit& unit, const Words& beat) {
        for (int k = 0; k < L * C; ++k) set_lane(unit.in_data, k, W, beat[k]);
      },
      [](Unit& unit) {
        Words beat(L * C);
        for (int k = 0; k < L * C; ++k) beat[k] = lane_of(unit.out_data, k, W);
        return beat;
      },
      seed_of(argc, argv));
  // The key stream has gaps of its own; a beat that is offered stays until it is taken.
  bool offered = false;
  s.before_edge = [&](Unit& unit, double full) {
    if (key_taken) {
      ++next_key;
      offered = false;
    }
    offered = offered || (next_key < keys.size() && s.chance(full));
    unit.key_valid = offered;
    if (offered) {
      for (int k = 0; k < E * C; ++k) set_lane(unit.key_data, k, W, keys[next_key][k]);
    }
  };
  s.at_edge = [&](Unit& unit) { key_taken = unit.key_valid && unit.key_ready; };

  std::vector<u64> primes;
  u64 bound = u64{1} << W;
  for (int e = 0; e < E; ++e) primes.push_back(bound = *jali::arith::prime_below(bound, 2 * N));
  const auto engine = backend::make_ref_engine({.word = jali::Word::w64, .n = N, .primes = primes});
  std::vector<jali::PrimeIndex> all;
  for (int e = 0; e < E; ++e) all.push_back(static_cast<jali::PrimeIndex>(e));
  const std::span<const jali::PrimeIndex> own(all.data(), L), whole(all);
  for (int e = 0; e < E; ++e) {
    const u64 q = primes[e];
    set_lane(s.unit.q, e, W, q);
    set_lane(s.unit.mu, e, W + 1,
             static_cast<u64>((static_cast<unsigned __int128>(1) << (2 * W)) / q));
    if (e < L) set_lane(s.unit.p_inverse, e, W, ref::inverse(primes[L] % q, q));
  }
  s.reset();
  for (int e = 0; e < E; ++e) {
    const u64 psi = engine->ring().root(all[e]);
    load_twiddles(s, e, psi, primes[e], 0);
    load_twiddles(s, e, ref::inverse(psi, primes[e]), primes[e], 1);
  }

  const auto random_rows = [&](int rows) {
    std::vector<u64> words(static_cast<std::size_t>(rows) * N);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = s.random()() % primes[i / N % E];
    return words;
  };
  const auto cut = [](std::vector<Words>& into, const u64* rows, int count) {
    for (int t = 0; t < T; ++t) {
      Words beat;
      for (int row = 0; row < count; ++row) {
        beat.insert(beat.end(), rows + row * N + t * C, rows + row * N + (t + 1) * C);
      }
      into.push_back(beat);
    }
  };
  const std::vector<std::uint32_t> limbs(L, 1);
  std::vector<std::uint32_t> ids(L);
  for (int i = 0; i < L; ++i) ids[i] = i;
  std::vector<Words> beats, expected, every_key;
  for (int i = 0; i < 3; ++i) {
    const std::vector<u64> x = random_rows(L), key = random_rows(2 * L * E);
    std::vector<u64> acc[2] = {std::vector<u64>(E * N), std::vector<u64>(E * N)};
    engine->rlwe().key_switch({acc[0].data(), whole}, {acc[1].data(), whole}, {x.data(), own},
                              limbs, {key.data(), static_cast<std::size_t>(L), whole}, ids);
    cut(beats, x.data(), L);
    for (int row = 0; row < 2 * L; ++row) cut(every_key, key.data() + row * E * N, E);
    for (const auto& sum : acc) {
      std::vector<u64> out(L * N);
      engine->rlwe().scale_down({out.data(), own}, {sum.data(), whole}, nullptr);
      cut(expected, out.data(), L);
    }
  }
  const auto run = [&](double in, double out, u64 stop = ~u64{0}) {
    keys = every_key;
    next_key = 0;
    key_taken = offered = false;
    return s.run(beats, expected.size(), in, out, stop);
  };
  s.reset();
  require(run(1, 1).beats == expected, "a result is wrong");
  require(run(0.5, 0.4).beats == expected, "a result under pressure is wrong");
  const Log cut_short = run(1, 1, 1 + s.random()() % 2000);
  require(!cut_short.taken.empty() && cut_short.beats.size() < expected.size(),
          "the reset came too late");
  keys.clear();
  s.unit.key_valid = 0;
  s.reset(1);
  const Log log = run(1, 1);
  require(log.beats == expected, "a result after a reset is wrong");
  std::printf("{\"cycles\": %d}\n", static_cast<int>(log.given[2 * T - 1] - log.taken[0] + 1));
}
