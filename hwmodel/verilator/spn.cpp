// spn against the engine `ref`: automorphisms of values (ring().automorphism_ntt), those of
// coefficients but for their signs (ref::automorphism), the order of ring().ntt beside the natural
// one, and permutations drawn at random.
#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/transform.h"
#include "jali/backend/ring_ops.h"
#include "lanes.h"
#include "routing.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

constexpr int W = PARAM_W;
constexpr std::size_t C = PARAM_C, N = PARAM_N, T = N / C;

int log2(std::size_t n) { return n == 1 ? 0 : 1 + log2(n / 2); }

void load(Stream& s, const std::vector<std::size_t>& permutation) {
  constexpr int kRow = std::max<int>(1, std::bit_width(T) - 1);
  const int bits = (2 * log2(C) - 1) * static_cast<int>(C / 2);
  s.reset();
  const std::vector<SpnRow> tables = spn_tables(permutation, C);
  for (std::size_t t = 0; t < T; ++t) {
    set_range(s.unit.config_data, 0, bits, tables[t].first);
    for (std::size_t lane = 0; lane < C; ++lane) {
      set_range(s.unit.config_data, bits + static_cast<int>(lane) * kRow, kRow,
                tables[t].rows[lane]);
    }
    set_range(s.unit.config_data, bits + static_cast<int>(C) * kRow, bits, tables[t].second);
    s.unit.config_row = t;
    s.unit.config_valid = 1;
    s.idle();
  }
  s.unit.config_valid = 0;
}

int main(int argc, char** argv) {
  Stream s(
      [](Unit& unit, const Words& beat) {
        for (std::size_t k = 0; k < C; ++k) set_lane(unit.in_data, static_cast<int>(k), W, beat[k]);
      },
      [](Unit& unit) {
        Words beat(C);
        for (std::size_t k = 0; k < C; ++k)
          beat[k] = lane_of(unit.out_data, static_cast<int>(k), W);
        return beat;
      },
      seed_of(argc, argv));
  const u64 q = *jali::arith::prime_below(u64{1} << W, 2 * N);
  const auto engine = backend::make_ref_engine({.word = jali::Word::w64, .n = N, .primes = {q}});
  const jali::PrimeIndex prime[] = {jali::PrimeIndex{0}};
  const u64 psi = engine->ring().root(prime[0]), g = 2 * (s.random()() % N) + 1;
  s.unit.config_valid = 0;

  // out word o is word p[o]
  std::vector<std::size_t> values(N), coefficients(N), order(N), shuffled(N);
  for (std::size_t k = 0; k < N; ++k) {
    const std::size_t e = (2 * ref::bit_reverse(k, N) + 1) * g % (2 * N);
    values[k] = ref::bit_reverse((e - 1) / 2, N);  // the value at psi^e
    coefficients[k * g % N] = k;
    order[k] = ref::bit_reverse(k, N);
  }
  std::iota(shuffled.begin(), shuffled.end(), 0);
  std::shuffle(shuffled.begin(), shuffled.end(), s.random());

  std::vector<Words> beats, expected;
  const auto check = [&](const std::vector<std::size_t>& permutation, const auto& result) {
    load(s, permutation);
    beats.clear();
    expected.clear();
    for (int frame = 0; frame < 8; ++frame) {
      ref::Row x(N);
      for (u64& word : x) word = s.random()() % q;
      const ref::Row y = result(x);
      for (std::size_t at = 0; at < N; at += C) {
        beats.emplace_back(x.begin() + at, x.begin() + at + C);
        expected.emplace_back(y.begin() + at, y.begin() + at + C);
      }
    }
    // The tables stay through a reset.
    s.check(beats, expected);
  };
  check(values, [&](const ref::Row& x) {
    ref::Row y(N);
    engine->ring().automorphism_ntt({y.data(), prime}, {x.data(), prime}, g);
    return y;
  });
  check(coefficients, [&](const ref::Row& x) {
    ref::Row y = ref::automorphism(x, g, q);
    for (std::size_t j = 0; j < N; ++j) {  // X^(j g) = -X^(j g - N) beyond N; another unit negates
      u64& word = y[j * g % N];
      if (j * g % (2 * N) >= N) word = ref::sub(0, word, q);
    }
    return y;
  });
  check(order, [&](const ref::Row& x) {
    // x as values in the order of ring().ntt; its polynomial has them at psi^(2k + 1), k = 0, 1 ..
    // N - 1.
    ref::Row polynomial = x, y(N, 0);
    engine->ring().intt({polynomial.data(), prime});
    for (std::size_t k = 0; k < N; ++k) {
      const u64 at = ref::power(psi, 2 * k + 1, q);
      for (std::size_t j = N; j-- > 0;) y[k] = ref::add(ref::mul(y[k], at, q), polynomial[j], q);
    }
    return y;
  });
  check(shuffled, [&](const ref::Row& x) {
    ref::Row y;
    for (const std::size_t place : shuffled) y.push_back(x[place]);
    return y;
  });

  s.measure_frames(beats, expected.size(), T);
}
