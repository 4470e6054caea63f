// adder_tree against ring().inner_product of the engine `ref`: each group brings the inner product
// of its own rows, and the tree gives that of all of them.
#include <memory>

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/transform.h"
#include "jali/backend/ring_ops.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  constexpr int W = PARAM_W, C = PARAM_C, G = PARAM_G, kRows = 3, kFrames = 40;
  constexpr std::size_t N = 64;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int k = 0; k < G * C; ++k) set_lane(unit.in_data, k, W, beat[k]);
      },
      [](Unit& unit) {
        Words beat(C);
        for (int k = 0; k < C; ++k) beat[k] = lane_of(unit.out_data, k, W);
        return beat;
      },
      seed_of(argc, argv));
  const u64 q = *jali::arith::prime_below(u64{1} << W, 2 * N);
  const auto engine = backend::make_ref_engine({.word = jali::Word::w64, .n = N, .primes = {q}});
  const jali::PrimeIndex prime[] = {jali::PrimeIndex{0}};
  stream.unit.q = q;

  std::vector<Words> beats, expected;
  for (int frame = 0; frame < kFrames; ++frame) {
    std::vector<ref::Row> a(G * kRows, ref::Row(N)), b = a, part(G + 1, ref::Row(N));
    std::vector<backend::ConstView> left, right;
    for (int i = 0; i < G * kRows; ++i) {
      for (std::size_t k = 0; k < N; ++k) {
        a[i][k] = stream.random()() % q;
        b[i][k] = frame % 2 == 0 ? q - 1 - stream.random()() % 3 : stream.random()() % q;
        if (frame % 4 == 1 && i >= G / 2 * kRows) {  // adders meet sums of exactly q
          a[i][k] = ref::sub(0, a[i - G / 2 * kRows][k], q);
          b[i][k] = b[i - G / 2 * kRows][k];
        }
      }
      left.push_back({a[i].data(), prime});
      right.push_back({b[i].data(), prime});
    }
    const std::span<const backend::ConstView> x(left), y(right);
    for (int i = 0; i < G; ++i) {
      engine->ring().inner_product({part[i].data(), prime}, x.subspan(i * kRows, kRows),
                                   y.subspan(i * kRows, kRows));
    }
    engine->ring().inner_product({part[G].data(), prime}, x, y);
    for (std::size_t at = 0; at < N; at += C) {
      beats.emplace_back();
      for (int i = 0; i < G; ++i) {
        beats.back().insert(beats.back().end(), part[i].begin() + at, part[i].begin() + at + C);
      }
      expected.emplace_back(part[G].begin() + at, part[G].begin() + at + C);
    }
  }
  stream.check(beats, expected);
  stream.measure(beats);
}
