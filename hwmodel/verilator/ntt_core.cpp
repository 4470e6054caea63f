// ntt_core against the oracle's modular arithmetic, both directions mixed.
#include "jali/arith/primes.h"
#include "jali/backend/ref/modular.h"
#include "stream.h"

using namespace rtl;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  Stream stream(
      [](Unit& unit, const Words& beat) {
        unit.inverse = beat[0];
        unit.a = beat[1];
        unit.b = beat[2];
        unit.w = beat[3];
      },
      [](Unit& unit) { return Words{unit.u, unit.v}; }, seed_of(argc, argv));
  const u64 top = u64{1} << PARAM_W;
  const u64 q = *jali::arith::prime_below(top, 1 << 12);
  stream.unit.q = q;
  stream.unit.mu = static_cast<u64>((static_cast<unsigned __int128>(1) << (2 * PARAM_W)) / q);
  std::vector<Words> beats, expected;
  const u64 half = ref::inverse(2, q);
  for (int i = 0; i < 20'000; ++i) {
    const auto pick = [&] {
      return i % 3 == 0 ? q - 1 - stream.random()() % 3 : stream.random()() % q;
    };
    const u64 inverse = stream.random()() & 1, a = pick(), b = pick(), w = pick();
    beats.push_back({inverse, a, b, w});
    if (inverse) {
      const u64 difference = ref::mul(ref::sub(a, b, q), half, q);
      expected.push_back({ref::mul(ref::add(a, b, q), half, q), ref::mul(difference, w, q)});
    } else {
      const u64 product = ref::mul(b, w, q);
      expected.push_back({ref::add(a, product, q), ref::sub(a, product, q)});
    }
  }
  stream.check(beats, expected);
  stream.measure(beats);
}
