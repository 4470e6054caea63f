// mac_array against the oracle's multiplication and addition.
#include "jali/arith/primes.h"
#include "jali/backend/ref/modular.h"
#include "stream.h"

using namespace rtl;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  constexpr int W = PARAM_W, C = PARAM_C;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int k = 0; k < C; ++k) {
          set_bits(unit.a, k * W, W, beat[3 * k]);
          set_bits(unit.b, k * W, W, beat[3 * k + 1]);
          set_bits(unit.c, k * W, W, beat[3 * k + 2]);
        }
      },
      [](Unit& unit) {
        Words beat(C);
        for (int k = 0; k < C; ++k) beat[k] = bits(unit.r, k * W, W);
        return beat;
      },
      seed_of(argc, argv));
  const u64 q = *jali::arith::prime_below(u64{1} << W, 1 << 12);
  stream.unit.q = q;
  stream.unit.mu = static_cast<u64>((static_cast<unsigned __int128>(1) << (2 * W)) / q);
  std::vector<Words> beats, expected;
  for (int i = 0; i < 5'000; ++i) {
    Words beat(3 * C), sums(C);
    for (u64& x : beat) x = i % 4 == 0 ? q - 1 - stream.random()() % 2 : stream.random()() % q;
    for (int k = 0; k < C; ++k) {
      sums[k] = ref::add(beat[3 * k + 2], ref::mul(beat[3 * k], beat[3 * k + 1], q), q);
    }
    beats.push_back(beat);
    expected.push_back(sums);
  }
  stream.check(beats, expected);
  stream.measure(beats);
}
