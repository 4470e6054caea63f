// fft against the library: its folded transform in double precision (backend/embedding.h), within
// the bound below, and through it, if twiddles have 28 bits or more, the oracle's negacyclic
// product (ref::add_product), exactly. The twiddles are the library's, rounded.
//
// Bound of the error of a word, as a complex number. A twiddle errs by d = sqrt(1/2) 2^-FRAC at
// most, and each rounding by r = sqrt(1/2). With words up to m and errors up to e, u = a + w b and
// v = a - w b err by e + (1 + d) e + d m + r at most, and are up to (2 + d) m; of the inverse, u =
// (a + b) / 2 and v = w (a - b) / 2 err by (1 + d) e + d m + r, and are up to (1 + d) m. The
// library's own error is below 2^-40 of the largest word.
#include <algorithm>
#include <cmath>

#include "jali/backend/embedding.h"
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;
using backend::Complex;

constexpr int DW = PARAM_DW, TW = PARAM_TW, FRAC = TW - 2;
constexpr std::size_t P = PARAM_P, T = P / 4, N = 2 * P;
constexpr bool kInverse = PARAM_INVERSE != 0;
static_assert(DW == 64);

int log2(std::size_t n) { return n == 1 ? 0 : 1 + log2(n / 2); }

u64 fixed(double x) { return static_cast<u64>(std::llround(x)); }

/// Which word lane l of beat t holds: of coefficients, or of values.
std::size_t word_at(std::size_t t, std::size_t l, bool values) {
  return values ? l / 2 * P / 2 + 2 * t + l % 2 : t + l * T;
}

void load(Stream& s, const backend::Embedding& embedding) {
  for (std::size_t m = 1, stage = 0; m < P; m *= 2, ++stage) {
    for (std::size_t factor = 0; factor < m; ++factor) {
      const Complex w = embedding.twiddle[m + factor];
      set_lane(s.unit.twiddle_data, 0, TW, fixed(std::ldexp(w.real(), FRAC)));
      set_lane(s.unit.twiddle_data, 1, TW,
               fixed(std::ldexp(kInverse ? -w.imag() : w.imag(), FRAC)));
      s.unit.twiddle_stage = stage;
      s.unit.twiddle_factor = factor;
      s.unit.twiddle_valid = 1;
      s.idle();
    }
  }
  s.unit.twiddle_valid = 0;
}

double bound(double m) {
  const double d = std::sqrt(0.5) * std::ldexp(1, -FRAC), r = std::sqrt(0.5);
  double e = kInverse ? r : 0;  // values come rounded
  for (std::size_t half = 1; half < P; half *= 2) {
    e = (kInverse ? 1 + d : 2 + d) * e + d * m + r;
    m *= kInverse ? 1 + d : 2 + d;
  }
  return e + std::ldexp(m, -40);
}

std::vector<Complex> folded(const std::vector<std::int64_t>& a) {
  std::vector<Complex> x(P);
  for (std::size_t j = 0; j < P; ++j) {
    x[j] = {static_cast<double>(a[j]), static_cast<double>(a[j + P])};
  }
  return x;
}

int main(int argc, char** argv) {
  Stream s(
      [](Unit& unit, const Words& beat) {
        for (int k = 0; k < 8; ++k) set_lane(unit.in_data, k, DW, beat[k]);
      },
      [](Unit& unit) {
        Words beat(8);
        for (int k = 0; k < 8; ++k) beat[k] = lane_of(unit.out_data, k, DW);
        return beat;
      },
      seed_of(argc, argv));
  const backend::Embedding embedding(P);
  s.unit.twiddle_valid = 0;
  s.reset();
  load(s, embedding);

  // Digits a of 9 bits and words b of 12; the words of the transform are scaled by 2^kUp, so that
  // what is behind their point holds the errors.
  constexpr int kUp = 16, kFrames = 12;
  struct Product {
    std::vector<std::int64_t> exact;  // of a and b
    std::vector<Complex> a, b, product;  // transforms, by the library
    double most = 0;  // of the words that go in
  };
  std::vector<Product> products;
  std::vector<Words> beats;
  for (int frame = 0; frame < kFrames; ++frame) {
    Product p;
    std::vector<std::int32_t> digits(N);
    std::vector<std::int64_t> a(N), b(N);
    std::vector<u64> words(N), sum(N, 0);
    for (std::size_t j = 0; j < N; ++j) {
      a[j] = digits[j] = static_cast<std::int32_t>(s.random()() % 513) - 256;
      if (frame == 0) a[j] = digits[j] = 256;  // the largest words that the transform meets
      b[j] = static_cast<std::int64_t>(s.random()() % 4097) - 2048;
      words[j] = static_cast<u64>(b[j]);
    }
    ref::add_product<u64>(sum.data(), digits, words.data());
    p.exact.assign(sum.begin(), sum.end());
    p.a = folded(a);
    p.b = folded(b);
    std::vector<Complex> in = p.a;
    embedding.forward(p.a.data(), P);
    embedding.forward(p.b.data(), P);
    for (std::size_t k = 0; k < P; ++k) p.product.push_back(p.a[k] * p.b[k]);
    if (kInverse) in = p.product;
    for (Complex& z : in) {
      z *= std::ldexp(1, kUp);
      p.most = std::max(p.most, std::abs(z));
    }
    for (std::size_t t = 0; t < T; ++t) {
      Words beat;
      for (std::size_t l = 0; l < 4; ++l) {
        const Complex z = in[word_at(t, l, kInverse)];
        beat.push_back(fixed(z.real()));
        beat.push_back(fixed(z.imag()));
      }
      beats.push_back(beat);
    }
    products.push_back(p);
  }
  const Log log = s.run(beats, beats.size());
  double worst = 0;
  for (int frame = 0; frame < kFrames; ++frame) {
    const Product& p = products[frame];
    std::vector<Complex> out(P), library = p.product;
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t l = 0; l < 4; ++l) {
        const Words& beat = log.beats[frame * T + t];
        out[word_at(t, l, !kInverse)] = {
            std::ldexp(static_cast<double>(static_cast<std::int64_t>(beat[2 * l])), -kUp),
            std::ldexp(static_cast<double>(static_cast<std::int64_t>(beat[2 * l + 1])), -kUp)};
      }
    }
    // The transform beside the library's; then both factors' product in coefficients, which is the
    // oracle's.
    std::vector<Complex> result = out;
    if (kInverse) {
      embedding.backward(library.data(), P);
      for (Complex& z : library) z /= P;
    } else {
      library = p.a;
      for (std::size_t k = 0; k < P; ++k) result[k] *= p.b[k];
      embedding.backward(result.data(), P);
      for (Complex& z : result) z /= P;
    }
    const double most = std::ldexp(bound(p.most), -kUp);
    for (std::size_t k = 0; k < P; ++k) {
      worst = std::max(worst, std::abs(out[k] - library[k]) / most);
    }
    for (std::size_t j = 0; TW >= 28 && j < P; ++j) {  // narrower twiddles err by more than 1/2
      require(std::llround(result[j].real()) == p.exact[j] &&
                  std::llround(result[j].imag()) == p.exact[j + P],
              "a product is not the oracle's");
    }
  }
  require(worst <= 1, "a word is further from the library's than the bound");

  s.check(beats, log.beats);
  char more[40];
  std::snprintf(more, sizeof more, ", \"of_bound\": %.4f", worst);
  print_speed(log.given[0] - log.taken[0] - (T - 1), log.given, more);
}
