// Compares the noise formulas with simulations on plain integers. They are independent of the
// lattice code: schoolbook products modulo X^N + 1, 128-bit moduli, N = 1024.
#include "jali/params/ckks/noise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "../seeded.h"
#include "jali/params/ckks_params.h"

namespace jali::params {
namespace {

__extension__ using Int = __int128;
constexpr std::size_t kN = 1024;

using Poly = std::vector<Int>;
using Real = std::vector<double>;

ckks::ParamsPtr small_params(int depth, double scale_bits, double integer_bits, int dnum) {
  ckks::Literal l;
  l.name = "insecure_noise_test";
  l.security = 0;
  l.log_n = 10;
  l.depth = depth;
  l.scale_bits = scale_bits;
  l.integer_bits = integer_bits;
  l.dnum = dnum;
  l.word = Word::w32;
  return ckks::Params::create(l);
}

/// [x]_m in [-m/2, m/2).
Int centred(Int x, Int m) {
  x %= m;
  if (x < 0) x += m;
  return x >= m - m / 2 ? x - m : x;
}

Poly product(const Poly& a, const Poly& b, Int m) {
  // a is taken in pieces below 2^20, so that sums stay below 2^20 N m < 2^127.
  Poly out(kN, 0);
  Poly rest = a;
  for (int shift = 0; shift < 60; shift += 20) {
    Poly part(kN);
    bool any = false;
    for (std::size_t i = 0; i < kN; ++i) {
      part[i] = rest[i] % (1 << 20);
      rest[i] /= 1 << 20;
      any = any || part[i] != 0;
    }
    if (!any) continue;
    for (std::size_t i = 0; i < kN; ++i) {
      Int sum = 0;
      for (std::size_t j = 0; j <= i; ++j) sum += part[j] * b[i - j];
      for (std::size_t j = i + 1; j < kN; ++j) sum -= part[j] * b[kN + i - j];
      out[i] = centred(out[i] + (centred(sum, m) << shift) % m, m);
    }
  }
  return out;
}

Real product(const Real& a, const Real& b) {
  Real out(kN, 0);
  for (std::size_t i = 0; i < kN; ++i) {
    for (std::size_t j = 0; j < kN - i; ++j) out[i + j] += a[i] * b[j];
    for (std::size_t j = kN - i; j < kN; ++j) out[i + j - kN] -= a[i] * b[j];
  }
  return out;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : rng_(seed) {}
  Int uniform(Int m) {
    const Int wide = (static_cast<Int>(rng_() >> 1) << 63) | static_cast<Int>(rng_() >> 1);
    return centred(wide, m);
  }
  Int ternary() { return static_cast<Int>(rng_() % 3) - 1; }
  Int error() {  // centred binomial of 21 coins each side
    const std::uint64_t bits = rng_();
    return static_cast<Int>(std::popcount(bits & 0x1fffff)) -
           static_cast<Int>(std::popcount((bits >> 21) & 0x1fffff));
  }
  double gaussian(double std) { return std::normal_distribution<double>(0, std)(rng_); }
  double fraction() { return std::uniform_real_distribution<double>(-0.5, 0.5)(rng_); }

 private:
  std::mt19937_64 rng_;
};

template <class F>
Poly make(F&& f) {
  Poly out(kN);
  for (Int& x : out) x = f();
  return out;
}
template <class F>
Real make_real(F&& f) {
  Real out(kN);
  for (double& x : out) x = static_cast<double>(f());
  return out;
}

/// The mean square of everything that was added. It is compared with the formula from both sides.
struct Measured {
  double sum = 0;
  std::size_t count = 0;
  void add(double x) {
    sum += x * x;
    ++count;
  }
  void add(const Real& x) {
    for (double v : x) add(v);
  }
  double variance() const { return sum / static_cast<double>(count); }
};

class Noise : public testing::Test {
 protected:
  std::uint64_t seed_ = jali::test::test_seed();
  Random random_{seed_};
  void expect_close(double formula, double measured, double tolerance) const {
    EXPECT_GT(measured, formula * (1 - tolerance)) << "seed " << seed_;
    EXPECT_LT(measured, formula * (1 + tolerance)) << "seed " << seed_;
  }
};

// There are 40 trials of 1024 coefficients. The relative standard deviation of a measured variance
// is 0.7% from the number of coefficients, and up to 0.9% from the few polynomials (secrets, key
// errors) that the coefficients of a trial share. 6% is five times both together.
constexpr int kTrials = 40;
constexpr double kTolerance = 0.06;

TEST_F(Noise, FreshEncryption) {
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  Measured secret, shared;
  for (int t = 0; t < kTrials; ++t) {
    const Real e0 = make_real([&] { return random_.error(); });
    const Real e1 = make_real([&] { return random_.error(); });
    const Real key_error = make_real([&] { return random_.error(); });
    const Real s = make_real([&] { return random_.ternary(); });
    const Real v = make_real([&] { return random_.ternary(); });
    const Real rounding = make_real([&] { return random_.fraction(); });
    const Real ve = product(v, key_error);
    const Real es = product(e1, s);
    for (std::size_t i = 0; i < kN; ++i) {
      secret.add(e0[i] + rounding[i]);
      shared.add(ve[i] + e0[i] + es[i] + rounding[i]);
    }
  }
  expect_close(model.fresh_secret(1, 0x1p30, 9).variance, secret.variance(), kTolerance);
  expect_close(model.fresh_public(1, 0x1p30, 9).variance, shared.variance(), kTolerance);
}

TEST_F(Noise, Rescale) {
  // (c - [c]_D) / D of both parts of a ciphertext, D a level's prime.
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  const Int d = static_cast<Int>(params->primes()[params->level(1).primes.back()]);
  Measured measured;
  for (int t = 0; t < kTrials; ++t) {
    const Int q = d * ((static_cast<Int>(1) << 30) + 3);
    const Poly c0 = make([&] { return random_.uniform(q); });
    const Poly c1 = make([&] { return random_.uniform(q); });
    const Poly s = make([&] { return random_.ternary(); });
    const auto divide = [&](const Poly& c) {
      Poly out(kN);
      for (std::size_t i = 0; i < kN; ++i) out[i] = (c[i] - centred(c[i], d)) / d;
      return out;
    };
    const Int big = static_cast<Int>(1) << 100;  // so large that the difference is not reduced
    const Poly before = product(s, c1, big);
    const Poly after = product(s, divide(c1), big);
    const Poly rounded0 = divide(c0);
    for (std::size_t i = 0; i < kN; ++i) {
      // The phase loses (phase - D * new phase) / D.
      measured.add(static_cast<double>(c0[i] + before[i] - d * (rounded0[i] + after[i])) /
                   static_cast<double>(d));
    }
  }
  expect_close(model.rounding().variance, measured.variance(), kTolerance);
  const Estimate in{1e6, 3};
  EXPECT_DOUBLE_EQ(model.rescale(in, 100).variance, 100 + model.rounding().variance);
  EXPECT_DOUBLE_EQ(model.rescale(in, 100).message, 3);
}

/// The error of switching x from s' to s, with keys that are made and used on integers modulo P
/// Q_l.
Real switch_error(const ckks::Params& params, int level, Random& random) {
  const rlwe::Level& l = params.level(level);
  Int q = 1, p = 1;
  for (PrimeIndex i : l.primes) q *= static_cast<Int>(params.primes()[i]);
  for (PrimeIndex i : params.p_primes()) p *= static_cast<Int>(params.primes()[i]);
  const Int m = p * q;
  const Poly s = make([&] { return random.ternary(); });
  const Poly old = make([&] { return random.ternary(); });
  const Poly x = make([&] { return random.uniform(q); });
  Poly acc0(kN, 0), acc1(kN, 0);
  std::size_t first = 0;
  for (std::uint32_t limbs : l.digit_limbs) {
    Int digit = 1;
    for (std::uint32_t k = 0; k < limbs; ++k) {
      digit *= static_cast<Int>(params.primes()[l.primes[first + k]]);
    }
    first += limbs;
    // g = 1 mod digit, 0 mod the rest: a multiple of Q / digit.
    const Int cofactor = q / digit;
    Int inverse = 1;  // of cofactor modulo digit, by Euclid
    {
      Int r0 = digit, r1 = cofactor % digit, t0 = 0, t1 = 1;
      while (r1 != 0) {
        const Int quotient = r0 / r1;
        const Int r2 = r0 - quotient * r1;
        const Int t2 = t0 - quotient * t1;
        r0 = r1, r1 = r2, t0 = t1, t1 = t2;
      }
      inverse = centred(t0, digit);
    }
    const Int g = centred(cofactor * inverse, q);
    const Poly a = make([&] { return random.uniform(m); });
    const Poly as = product(s, a, m);
    Poly b(kN);
    for (std::size_t i = 0; i < kN; ++i) {
      b[i] = centred(random.error() - as[i] + p * centred(g * old[i], q), m);
    }
    Poly lift(kN);
    for (std::size_t i = 0; i < kN; ++i) lift[i] = centred(x[i], digit);
    const Poly lb = product(lift, b, m);
    const Poly la = product(lift, a, m);
    for (std::size_t i = 0; i < kN; ++i) {
      acc0[i] = centred(acc0[i] + lb[i], m);
      acc1[i] = centred(acc1[i] + la[i], m);
    }
  }
  for (Poly* acc : {&acc0, &acc1}) {
    for (Int& v : *acc) v = centred((v - centred(v, p)) / p, q);
  }
  const Poly c1s = product(s, acc1, q);
  const Poly xs = product(old, x, q);
  Real error(kN);
  for (std::size_t i = 0; i < kN; ++i) {
    error[i] = static_cast<double>(centred(acc0[i] + c1s[i] - xs[i], q));
  }
  return error;
}

void expect_key_switch(const ckks::Params& params, int level, Random& random, std::uint64_t seed) {
  const NoiseModel model(params);
  Measured measured;
  for (int t = 0; t < kTrials; ++t) measured.add(switch_error(params, level, random));
  const double formula = model.key_switch(level).variance;
  EXPECT_GT(measured.variance(), formula * (1 - kTolerance)) << "seed " << seed;
  EXPECT_LT(measured.variance(), formula * (1 + kTolerance)) << "seed " << seed;
}

TEST_F(Noise, KeySwitchWhereTheProductDominates) {
  const auto params = small_params(1, 29, 0, 2);  // P is hardly larger than the digits
  const NoiseModel model(*params);
  ASSERT_GT(model.key_product(1).variance, 2 * model.rounding().variance);
  expect_key_switch(*params, 1, random_, seed_);
}

TEST_F(Noise, KeySwitchWhereRoundingDominates) {
  const auto params = small_params(1, 22, 2, 2);
  const NoiseModel model(*params);
  ASSERT_LT(model.key_product(1).variance, model.rounding().variance);
  expect_key_switch(*params, 1, random_, seed_);
  expect_key_switch(*params, 0, random_, seed_);  // fewer digits
}

TEST_F(Noise, KeySwitchWithDigitsOfTwoPrimes) {
  const auto params = small_params(1, 20, 0, 1);  // Q of 40 bits in one digit
  ASSERT_EQ(params->level(1).digit_limbs.at(0), 2u);
  expect_key_switch(*params, 1, random_, seed_);
  expect_key_switch(*params, 0, random_, seed_);  // the digit is half empty
}

TEST_F(Noise, Products) {
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  // Messages of root mean square 0.7 and 1.9 at scales 2^25 and 2^22. Parseval's theorem gives
  // their coefficients.
  const double sa = 0x1p25, sb = 0x1p22;
  // In the last case e1 e2 matters.
  const std::vector<std::pair<Estimate, Estimate>> cases = {
      {{400, 0.7}, {9000, 1.9}}, {{400, 1.9}, {30, 0.1}}, {{1e10, 0.01}, {1e9, 0.01}}};
  for (const auto& [a, b] : cases) {
    Measured both, plain;
    for (int t = 0; t < kTrials; ++t) {
      const double n = static_cast<double>(kN);
      const auto gaussians = [&](double std) {
        return make_real([&] { return random_.gaussian(std); });
      };
      const Real ma = gaussians(a.message * sa / std::sqrt(n));
      const Real mb = gaussians(b.message * sb / std::sqrt(n));
      const Real ea = gaussians(std::sqrt(a.variance));
      const Real eb = gaussians(std::sqrt(b.variance));
      const Real rounding = make_real([&] { return random_.fraction(); });
      const auto error = [&](const Real& e2) {
        const Real x = product(ma, e2), y = product(mb, ea), z = product(ea, e2);
        Real sum(kN);
        for (std::size_t i = 0; i < kN; ++i) sum[i] = x[i] + y[i] + z[i];
        return sum;
      };
      both.add(error(eb));
      plain.add(error(rounding));
    }
    expect_close(model.multiply(a, sa, b, sb).variance, both.variance(), kTolerance);
    const Estimate rounded{model.encoding(b.message, 1, sb, 9).variance, b.message};
    expect_close(model.multiply(a, sa, rounded, sb).variance, plain.variance(), kTolerance);
    EXPECT_DOUBLE_EQ(model.multiply(a, sa, b, sb).message, a.message * b.message);
  }
}

TEST_F(Noise, RulesThatCompose) {
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  const Estimate a{100, 3}, b{50, 4};
  EXPECT_DOUBLE_EQ(model.add(a, b).variance, 150);
  EXPECT_DOUBLE_EQ(model.add(a, b).message, 5);
  EXPECT_DOUBLE_EQ(model.multiply_constant(a, 0.5, 8).variance, 6400);
  EXPECT_DOUBLE_EQ(model.multiply_constant(a, 0.5, 8).message, 1.5);
  EXPECT_DOUBLE_EQ(model.relinearise(a, 1).variance, 100 + model.key_switch(1).variance);
  EXPECT_DOUBLE_EQ(model.rotate(a, 0, 5).variance, 100 + model.key_switch(0).variance);
  EXPECT_DOUBLE_EQ(model.key_switch(1).variance,
                   model.key_product(1).variance + model.rounding().variance);
  EXPECT_DOUBLE_EQ(model.relinearise_rescale(a, 1, 10).variance,
                   (100 + model.key_product(1).variance) / 100 + model.rounding().variance);
}

// A sum of k slots, by what is known of how their errors hang together.
TEST_F(Noise, ClaimsOfSumsDependOnWhatSlotsShare) {
  Estimate x{100, 3};
  EXPECT_DOUBLE_EQ(x.claim().variance, 100);
  EXPECT_DOUBLE_EQ(x.claim().principal, 100);
  EXPECT_DOUBLE_EQ(x.claim().of_sum(8), 800);  // uncorrelated
  x.set_claim({3, 100, 400});  // any four may be equal
  EXPECT_DOUBLE_EQ(x.claim().of_sum(2), 400);
  EXPECT_DOUBLE_EQ(x.claim().of_sum(8), 3200);
  x.set_claim({6, 200, 150});  // a principal below the variance is the variance
  EXPECT_DOUBLE_EQ(x.claim().message, 6);
  EXPECT_DOUBLE_EQ(x.claim().variance, 200);
  EXPECT_DOUBLE_EQ(x.claim().principal, 200);
  EXPECT_DOUBLE_EQ(x.variance, 100) << "what is expected stays";

  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  Estimate a{100, 3}, b{100, 4};
  a.noise = b.noise = 1;  // random
  // Of unknown lineage: they may be the same numbers.
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().variance, 400);
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().message, 7);
  EXPECT_DOUBLE_EQ(model.add(a, b).variance, 200);
  // Two encryptions.
  a.lineage = lineage_of(1), b.lineage = lineage_of(2);
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().variance, 200);
  // Terms of a circuit that accounts for what they share. Equal errors would have (10 + 10)^2, of
  // which two slots share half.
  a.lineage = b.lineage = lineage_of_term();
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().variance, 200);
  a.set_claim({3, 100, 150}), b.set_claim({4, 100, 150});
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().variance, 300);
  a.set_claim({3, 100, 900}), b.set_claim({4, 100, 900});
  EXPECT_DOUBLE_EQ(model.add(a, b).claim().variance, 400);
  // The rounding of a constant is one error in all slots.
  Estimate c{100, 3};
  c += model.constant(1, 1 << 20);
  const double rounded = model.constant(1, 1 << 20).variance;
  EXPECT_NEAR(c.claim().principal, 100 + kN / 2 * rounded, 1e-9);
  EXPECT_NEAR(c.claim().variance, 100 + rounded, 1e-9);
  // The sum of four, and its key switches.
  Estimate sum = a;
  sum.variance = 4 * a.variance + 50;
  sum.claim_sum(a, 4, 4);
  EXPECT_DOUBLE_EQ(sum.claim().variance, 1600 + 50);
  EXPECT_DOUBLE_EQ(sum.claim().principal, 16 * 900 + 4 * 50);
}

TEST_F(Noise, ClaimsCountNumbersThatMayLieInOneSlotAsTheLargest) {
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  const double largest = std::sqrt(kN / 2.0);  // all of a root mean square of 1
  Estimate y{100, 1, 1000};
  y.noise = 1;  // random
  y.lineage = lineage_of_unknown(kAnyDegree);
  EXPECT_DOUBLE_EQ(model.multiply(y, 1, y, 1).claim().message, largest);
  EXPECT_GE(model.multiply(y, 1, y, 1).claim().variance, 4 * largest * largest * 100);
  y.peak = 5;
  EXPECT_DOUBLE_EQ(model.multiply(y, 1, y, 1).claim().message, 5);
  const Estimate square = model.multiply(y, 1, y, 1);
  EXPECT_EQ(degree_of(square.lineage), kAnyDegree);
  EXPECT_DOUBLE_EQ(model.multiply(square, 1, square, 1).claim().message, 25 * 5);
  EXPECT_DOUBLE_EQ(square.message, 1) << "what is expected stays";
  // Also beside numbers of one encryption, and beside clear ones, which have no noise.
  Estimate x{100, 1, 1000}, clear{1.0 / 12, 1, 1};
  x.noise = 1;
  x.lineage = lineage_of(7), clear.lineage = lineage_of(1, 1);
  EXPECT_DOUBLE_EQ(model.multiply(x, 1, y, 1).claim().message, 5);
  EXPECT_GE(model.multiply(y, 1, clear, 1).claim().variance, 100 + 25.0 / 12);
}

TEST_F(Noise, NumbersOfUnknownRootKeepTheirDegree) {
  EXPECT_EQ(degree_of(lineage_of_unknown(3)), 3u);
  EXPECT_EQ(degree_of(lineage_of_unknown(std::uint64_t{1} << 40)), kAnyDegree);
  EXPECT_EQ(degree_of(lineage_of_itself(lineage_of_unknown(3))), 3u);
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  Estimate x{100, 1, 8}, y{100, 1, 8};
  x.lineage = lineage_of(7), y.lineage = lineage_of_unknown(3);
  EXPECT_EQ(degree_of(model.add(x, y).lineage), 3u);
  EXPECT_EQ(degree_of(model.multiply(x, 1, y, 1).lineage), 4u);
  EXPECT_EQ(model.multiply(x, 1, y, 1).lineage.root, 0u);
  Estimate batch = x;
  batch.cover(y);
  EXPECT_EQ(batch.lineage.root, 0u);
  EXPECT_EQ(degree_of(batch.lineage), 3u);
  // Of a recorded function, whose inputs are of no higher degree than its examples.
  const Lineage* input = &y.lineage;
  Lineage square = lineage_of(5);
  square.power = 2;
  EXPECT_EQ(degree_of(lineage_of_result(square, {&input, 1})), 2u);
  EXPECT_EQ(degree_of(lineage_of_result(lineage_of_unknown(6), {&input, 1})), 6u);
}

/// x(zeta^(2j+1)) for j < N / 2, zeta the primitive 2N-th root.
std::vector<std::complex<double>> slots_of(const Real& x) {
  std::vector<std::complex<double>> values(kN);
  const double pi = std::acos(-1.0);
  for (std::size_t k = 0; k < kN; ++k) {
    values[k] = std::polar(x[k], pi * static_cast<double>(k) / static_cast<double>(kN));
  }
  // Radix-2 transform with the positive sign, decimation in time.
  for (std::size_t i = 1, j = 0; i < kN; ++i) {
    std::size_t bit = kN >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (std::size_t len = 2; len <= kN; len *= 2) {
    for (std::size_t start = 0; start < kN; start += len) {
      for (std::size_t k = 0; k < len / 2; ++k) {
        const auto w = std::polar(1.0, 2 * pi * static_cast<double>(k) / static_cast<double>(len));
        const auto u = values[start + k];
        const auto v = values[start + k + len / 2] * w;
        values[start + k] = u + v;
        values[start + k + len / 2] = u - v;
      }
    }
  }
  values.resize(kN / 2);  // the others are conjugates
  return values;
}

TEST_F(Noise, SlotsPrecisionAndTails) {
  const auto params = small_params(1, 25, 5, 1);
  const NoiseModel model(*params);
  const Estimate estimate{3000, 1};
  const double scale = 0x1p25;
  // A vector leaves the bound with probability at most 2^-3. So at most 75 of 600 vectors are
  // expected to, and the standard deviation of that number is 8.
  const double slot = std::sqrt(static_cast<double>(kN) * estimate.variance) / scale;
  const double bound = slot_tail(params->log_n(), 3) * slot;
  constexpr int kVectors = 600;
  int beyond = 0;
  double most = 0;
  Measured parts;
  for (int t = 0; t < kVectors; ++t) {
    const Real e = make_real([&] { return random_.gaussian(std::sqrt(estimate.variance)); });
    double largest = 0;
    for (const auto& z : slots_of(e)) {
      parts.add(z.real() / scale);
      parts.add(z.imag() / scale);
      largest = std::max(largest, std::abs(z) / scale);
    }
    beyond += largest > bound ? 1 : 0;
    most = std::max(most, largest);
  }
  EXPECT_NEAR(model.precision_bits(estimate, scale), -std::log2(parts.variance()) / 2, 0.02)
      << "seed " << seed_;
  EXPECT_LT(beyond, 115) << "seed " << seed_;
  EXPECT_LT(bound, 1.5 * most) << "no bound to speak of; seed " << seed_;
  EXPECT_GT(slot_tail(params->log_n(), kSourceBits) * slot, most);
}

// Whether a phase stays below half of the modulus is the comparison of logarithms, also next to
// powers of two, and no bound that is unknown fits.
TEST_F(Noise, WhatFitsALevelIsBelowHalfItsModulus) {
  const auto phase_fits = [](double phase, double log_q) {
    Estimate estimate;
    estimate.peak = phase;
    estimate.error = 0;
    return fits(estimate, kN, 1, log_q);
  };
  for (const double log_q : {20.0, 30.25, 59.999, 900.5}) {
    for (const double bits : {-3.0, -1.5, -1.25, -1.001, -0.999, -0.75, -0.5, 0.0, 2.0}) {
      const double phase = std::exp2(log_q + bits);
      EXPECT_EQ(phase_fits(phase, log_q), bits < -1) << log_q << " bits, " << bits;
    }
  }
  for (const double power : {0x1p19, 0x1p40}) {
    const double log_q = std::log2(power) + 1;
    EXPECT_FALSE(phase_fits(power, log_q));
    EXPECT_TRUE(phase_fits(std::nextafter(power, 0), log_q + 1e-9));
    EXPECT_TRUE(phase_fits(power / 2, log_q));
  }
  EXPECT_TRUE(phase_fits(0, 2));
  EXPECT_FALSE(phase_fits(kUnbounded, 1e6));
  EXPECT_FALSE(phase_fits(std::nan(""), 1e6));
  // An error counts with its bound, or with 1024 standard deviations if that is less; one without a
  // bound fits nowhere.
  const auto error_fits = [](double error, double variance, double log_q) {
    Estimate estimate{variance, 1, 0x1p20, error};
    return fits(estimate, kN, 1, log_q);
  };
  EXPECT_TRUE(error_fits(0x1p20, 0, 22.1));
  EXPECT_FALSE(error_fits(0x1p22, 1e12, 22.1));
  EXPECT_TRUE(error_fits(0x1p40, 1, 22.1));
  for (const double error : {kUnbounded, 2 * kUnbounded, std::nan("")}) {
    EXPECT_FALSE(error_fits(error, 0, 1e6)) << error;
  }
}

// Bytes of ciphertexts hold no -0.
TEST_F(Noise, DeclaredZerosArePositive) {
  const Declared declared(-0.0, -0.0);
  EXPECT_FALSE(std::signbit(declared.magnitude));
  EXPECT_FALSE(std::signbit(declared.peak));
  EXPECT_FALSE(std::signbit(Declared(-0.0).peak));
}

}  // namespace
}  // namespace jali::params
