// vma against the oracle's external product. Complex integers are the polynomials modulo X^2 + 1,
// so that the products and sums of a lane are an external product with N = 2, k = 1 and PLP / 2
// levels: digits go in as x, words of the key as k. A sum modulo 2^64 has all bits of a result of
// DW bits if DW + SHIFT <= 64.
#include <algorithm>

#include "jali/backend/ref/tfhe.h"
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  constexpr int XW = PARAM_XW, KW = 64, DW = PARAM_DW, SHIFT = PARAM_SHIFT, C = PARAM_C,
                PLP = PARAM_PLP;
  static_assert(PARAM_KW == KW && DW + SHIFT <= 64 && PLP % 2 == 0 && XW <= 32);
  constexpr std::size_t N = 2, kLevels = PLP / 2;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int i = 0; i < 2 * PLP * C; ++i) {
          set_lane(unit.in_x, i, XW, beat[i]);
          set_lane(unit.in_k, i, KW, beat[2 * PLP * C + i]);
        }
      },
      [](Unit& unit) {
        Words beat(2 * C);
        for (int i = 0; i < 2 * C; ++i) beat[i] = lane_of(unit.out_data, i, DW);
        return beat;
      },
      seed_of(argc, argv));
  backend::TfheConfig config;
  config.k = backend::GlweDimension(1);
  config.N = backend::PolynomialSize(N);
  config.rotation_gadget.base_log = std::min<int>(XW - 1, 64 / kLevels);  // digits up to +2^(XW-2)
  config.rotation_gadget.levels = kLevels;

  std::vector<Words> beats, expected;
  for (int i = 0; i < 3'000; ++i) {
    Words beat(4 * PLP * C), out(2 * C);
    for (int lane = 0; lane < C; ++lane) {
      ref::Glwe<u64> in(2 * N);
      std::vector<u64> ggsw(config.ggsw_words());
      const auto word = [&] {
        const u64 edges[] = {0, 1, ~u64{0}, u64{1} << 63, ~(u64{1} << 63)};
        return stream.chance(0.2) ? edges[stream.random()() % 5] : stream.random()();
      };
      for (u64& x : in) x = word();
      for (u64& x : ggsw) x = word();
      const ref::Glwe<u64> sum = ref::external_product<u64>(config, ggsw.data(), in);
      // Product p = (polynomial c, level j) of lane l is at p C + l; which part of the result the
      // lane gives is its key's.
      const std::size_t to = stream.random()() % 2;
      for (std::size_t p = 0; p < PLP; ++p) {
        for (std::size_t part = 0; part < N; ++part) {
          std::int32_t digits[kLevels];
          ref::decompose<u64>(digits, in[p / kLevels * N + part], config.rotation_gadget);
          const std::size_t at = 2 * (p * C + lane) + part;
          beat[at] = static_cast<std::uint32_t>(digits[p % kLevels]);
          beat[2 * PLP * C + at] = ggsw[(p * 2 + to) * N + part];
        }
      }
      for (std::size_t part = 0; part < N; ++part) {
        const u64 half = (u64{1} << SHIFT) / 2;
        out[2 * lane + part] = (sum[to * N + part] + half) >> SHIFT & (~u64{0} >> (64 - DW));
      }
    }
    beats.push_back(beat);
    expected.push_back(out);
  }
  stream.check(beats, expected);
  stream.measure(beats);
}
