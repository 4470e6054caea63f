// fft_butterfly against the oracle's product of polynomials modulo X^2 + 1, which are the complex
// integers, modulo 2^64. The unit rounds that product; it has less than 64 bits here, so that
// nothing of it is lost.
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace ref = jali::backend::ref;

constexpr int DW = PARAM_DW, TW = PARAM_TW, FRAC = TW - 2;
constexpr bool kInverse = PARAM_INVERSE != 0;
static_assert(DW + TW + 3 <= 64);
using Signed = std::int64_t;

struct Integer {  // complex
  Signed re, im;
};

/// round(x w / 2^shift), half up.
Integer scaled(const Integer& x, const Integer& w, int shift) {
  const std::int32_t twiddle[] = {static_cast<std::int32_t>(w.re), static_cast<std::int32_t>(w.im)};
  const u64 other[] = {static_cast<u64>(x.re), static_cast<u64>(x.im)};
  u64 product[] = {u64{1} << (shift - 1), u64{1} << (shift - 1)};
  ref::add_product<u64>(product, twiddle, other);
  return {static_cast<Signed>(product[0]) >> shift, static_cast<Signed>(product[1]) >> shift};
}

int main(int argc, char** argv) {
  constexpr u64 kMask = ~u64{0} >> (64 - DW);
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int part = 0; part < 2; ++part) {
          set_lane(unit.a, part, DW, beat[part]);
          set_lane(unit.b, part, DW, beat[2 + part]);
          set_lane(unit.w, part, TW, beat[4 + part]);
        }
      },
      [](Unit& unit) {
        return Words{lane_of(unit.u, 0, DW), lane_of(unit.u, 1, DW), lane_of(unit.v, 0, DW),
                     lane_of(unit.v, 1, DW)};
      },
      seed_of(argc, argv));
  const auto word = [&](int bits) {  // signed, of so many bits; often at an edge
    const Signed most = Signed{1} << (bits - 1);
    const Signed edges[] = {-most, most - 1, -1, 0, 1};
    return stream.chance(0.2) ? edges[stream.random()() % 5]
                              : static_cast<Signed>(stream.random()() % (2 * most)) - most;
  };
  std::vector<Words> beats, expected;
  for (int i = 0; i < 20'000; ++i) {
    const Integer a{word(DW), word(DW)}, b{word(DW), word(DW)}, w{word(TW), word(TW)};
    Integer u{}, v{};
    if (kInverse) {
      u = {(a.re + b.re + 1) >> 1, (a.im + b.im + 1) >> 1};
      v = scaled({a.re - b.re, a.im - b.im}, w, FRAC + 1);
    } else {
      const Integer wb = scaled(b, w, FRAC);
      u = {a.re + wb.re, a.im + wb.im};
      v = {a.re - wb.re, a.im - wb.im};
    }
    beats.emplace_back();
    expected.emplace_back();
    for (const Signed x : {a.re, a.im, b.re, b.im, w.re, w.im}) {
      beats.back().push_back(static_cast<u64>(x));
    }
    for (const Signed x : {u.re, u.im, v.re, v.im}) {
      expected.back().push_back(static_cast<u64>(x) & kMask);
    }
  }
  stream.check(beats, expected);
  stream.measure(beats);
}
