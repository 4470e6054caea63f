// mod_mul against the library: the oracle's product, and arith::Barrett, whose algorithm it is.
#include "jali/arith/barrett.h"
#include "jali/arith/primes.h"
#include "jali/backend/ref/modular.h"
#include "stream.h"

using namespace rtl;

int main(int argc, char** argv) {
  Stream stream(
      [](Unit& unit, const Words& beat) {
        unit.a = beat[0];
        unit.b = beat[1];
      },
      [](Unit& unit) { return Words{unit.r}; }, seed_of(argc, argv));
  const u64 top = u64{1} << PARAM_W;
  for (const u64 q : {*jali::arith::prime_below(top, 1 << 12),
                      *jali::arith::prime_from(top / 2 + 1, 1 << 12, top)}) {
    stream.unit.q = q;
    stream.unit.mu = static_cast<u64>((static_cast<unsigned __int128>(1) << (2 * PARAM_W)) / q);
    std::vector<Words> beats, expected;
    for (const u64 a : {u64{0}, u64{1}, q / 2, q - 2, q - 1}) {
      for (const u64 b : {u64{0}, u64{1}, q / 2, q - 2, q - 1}) beats.push_back({a, b});
    }
    for (int i = 0; i < 20'000; ++i)
      beats.push_back({stream.random()() % q, stream.random()() % q});
    for (const Words& beat : beats) {
      const u64 r = jali::backend::ref::mul(beat[0], beat[1], q);
      const auto x = static_cast<unsigned __int128>(beat[0]) * beat[1];
      require(jali::arith::Barrett(q).reduce(x) == r, "the library contradicts itself");
      expected.push_back({r});
    }
    stream.check(beats, expected);
    if (q > top - top / 4) stream.measure(beats);
  }
}
