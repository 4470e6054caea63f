// External products and CMuxes: values, bits against a blind rotation, noise from both sides of its
// formula, and what is refused.
#include "jali/lwe/external_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../seeded.h"
#include "../tfhe_literals.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_presets.h"
#include "phases.h"

namespace jali::lwe {
namespace {

using Words = std::vector<std::uint64_t>;
constexpr std::uint8_t kBits[] = {0, 1};

std::vector<std::unique_ptr<backend::TfheOps>> engines(const Params& params) {
  std::vector<std::unique_ptr<backend::TfheOps>> out;
  out.push_back(backend::make_ref_tfhe(params.config()));
  out.push_back(backend::make_cpu_tfhe(params.config(2)));
  out.push_back(backend::make_cpu_tfhe(params.config(1, "portable", "ntt")));
  return out;
}

tfhe::Literal literal_of(Torus torus, std::size_t k, const Gadget& gadget) {
  test::TfheShape shape;
  shape.torus = torus;
  shape.k = k;
  tfhe::Literal out = test::insecure_literal(shape);
  out.rotation_gadget = gadget;
  return out;
}

/// The phases of GLWE ciphertext i.
Words phase_of(const GlweBlock& x, std::size_t i, const SecretKey& secret) {
  return test::glwe_phase(x.data.data(), x.torus, x.k.value, x.N.value, i, secret.large());
}

/// Every message in a row of coefficients, and again until the polynomials are full; `shift`
/// further on.
Words messages(const Params& params, std::size_t polynomials, std::size_t shift) {
  Words out(polynomials * params.N().value);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = (i + shift) % params.value_modulus() * params.step(params.torus());
  }
  return out;
}

/// The message that a phase is nearest to.
std::uint64_t message_of(std::uint64_t phase, const Params& params) {
  const std::uint64_t step = params.step(params.torus());
  return (phase + step / 2) / step % (2 * params.value_modulus());
}

void expect_messages(const GlweBlock& x, const SecretKey& secret, const Params& params,
                     const Words& want) {
  const std::size_t N = params.N().value;
  for (std::size_t i = 0; i < x.count; ++i) {
    const Words phase = phase_of(x, i, secret);
    for (std::size_t t = 0; t < N; ++t) {
      ASSERT_EQ(message_of(phase[t], params), message_of(want[i * N + t], params))
          << "coefficient " << t << " of ciphertext " << i;
    }
  }
}

void expect_equal_bits(const GlweBlock& a, const GlweBlock& b) {
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data.data(), b.data.data(), a.bytes()), 0);
}

// Every message of the parameters, both bits, on every engine, whose words are the same.
void check_values(const ParamsPtr& params, std::size_t polynomials, bool oracle) {
  KeyGenerator generator(params, 2);
  const SecretKey secret = generator.secret_key();
  const SeededGgsw bits = generator.ggsw(secret, kBits);
  ASSERT_EQ(bits.count(), 2U);
  const Words first = messages(*params, polynomials, 0), second = messages(*params, polynomials, 5);
  const SeededGlwe x = generator.glwe(secret, first), y = generator.glwe(secret, second);
  std::vector<GlweBlock> seen;
  for (const auto& engine : engines(*params)) {
    if (!oracle && engine->name() == "ref") continue;
    SCOPED_TRACE(engine->name());
    const GgswBlock selectors = bind(*engine, bits);
    const GlweBlock zero = bind(*engine, x), one = bind(*engine, y);
    std::vector<GlweBlock> results;
    for (const std::uint8_t bit : kBits) {
      results.push_back(external_product(*engine, selectors, bit, zero));
      expect_messages(results.back(), secret, *params, bit != 0 ? first : Words(first.size()));
      results.push_back(cmux(*engine, selectors, bit, zero, one));
      expect_messages(results.back(), secret, *params, bit != 0 ? second : first);
      EXPECT_EQ(results.back().key_id, secret.id());
    }
    for (std::size_t i = 0; i < results.size() && !seen.empty(); ++i) {
      expect_equal_bits(results[i], seen[i]);
    }
    seen = std::move(results);
  }
}

TEST(ExternalProduct, SelectsEveryMessage) {
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const std::size_t k : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(backend::torus_bits(torus)) + " bits, k " + std::to_string(k));
      check_values(
          Params::create(literal_of(torus, k, torus == Torus::t64 ? Gadget{12, 3} : Gadget{8, 3})),
          3, true);
    }
  }
}

TEST(ExternalProduct, SelectsEveryMessageOfThePresets) {
  for (const char* name : {"boolean", "message_1_carry_1", "message_2_carry_2",
                           "message_2_carry_2_block", "insecure_strix_i"}) {
    SCOPED_TRACE(name);
    check_values(Params::create(tfhe::preset(name)), 1, false);
  }
}

// As many ciphertexts as do not fit one piece.
TEST(ExternalProduct, TakesBatchesOfManyPieces) {
  check_values(test::insecure_params(), 600, false);
}

/// X^e times every polynomial of a GLWE ciphertext.
template <class W>
void turn(void* out, const void* in, std::size_t polynomials, std::size_t N, std::size_t e) {
  for (std::size_t p = 0; p < polynomials; ++p) {
    for (std::size_t t = 0; t < N; ++t) {
      const W word = static_cast<const W*>(in)[p * N + t];
      const std::size_t to = (t + e) % (2 * N);
      static_cast<W*>(out)[p * N + to % N] = to < N ? word : static_cast<W>(0 - word);
    }
  }
}

// A blind rotation with classic keys is a chain of CMuxes between the accumulator and its rotation.
TEST(ExternalProduct, ChainedAreABlindRotation) {
  JALI_SEEDED(rng);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const std::size_t k : {1, 2}) {
      SCOPED_TRACE(std::to_string(backend::torus_bits(torus)) + " bits, k " + std::to_string(k));
      const ParamsPtr params =
          Params::create(literal_of(torus, k, torus == Torus::t64 ? Gadget{15, 2} : Gadget{8, 3}));
      KeyGenerator generator(params, 2);
      const SecretKey secret = generator.secret_key();
      const EvaluationKeys keys = generator.evaluation_keys(secret);
      const std::size_t n = params->n().value, N = params->N().value;
      const auto exact = backend::make_cpu_tfhe(params->config(1, {}, "ntt"));
      const auto fourier = backend::make_cpu_tfhe(params->config(1, {}, "fft"));

      std::vector<std::uint32_t> small(n + 1), exponents(n + 1);
      for (auto& word : small) word = static_cast<std::uint32_t>(rng());
      const backend::ConstLweView in{small.data(), Torus::t32, params->n(), 1};
      backend::switched(exponents, small.data(), params->config(), 0);
      const GlweBlock table = bind(*exact, generator.glwe(secret, messages(*params, 1, 0)));
      const backend::TableView tables{table.data.data(), 1, true, {}, 0};
      const auto rotated = [&](const backend::TfheOps& engine) {
        GlweBlock out = make_glwe(*engine.device()->pool(), torus, params->k(), params->N(), 1);
        engine.blind_rotate(out.view(), in, tables, prepare(engine, keys).rotation.data());
        return out;
      };

      const GgswBlock steps = bind(*exact, keys.rotation);
      ASSERT_EQ(steps.count(), n);
      device::Pool& pool = *exact->device()->pool();
      const auto turned = [&](const GlweBlock& x, std::size_t e) {
        GlweBlock out = make_glwe(pool, torus, params->k(), params->N(), 1);
        backend::with_word(torus, [&](auto zero) {
          turn<decltype(zero)>(out.data.data(), x.data.data(), k + 1, N, e);
        });
        out.key_id = x.key_id;
        return out;
      };
      GlweBlock acc = turned(table, 2 * N - exponents[n]);
      for (std::size_t i = 0; i < n; ++i) {
        acc = cmux(*exact, steps, i, acc, turned(acc, exponents[i]));
      }
      expect_equal_bits(acc, rotated(*exact));

      // The transforms in double precision round, so that there the noise is another one of the
      // same size.
      const Words a = phase_of(acc, 0, secret), b = phase_of(rotated(*fourier), 0, secret);
      const double bound =
          10 * std::sqrt(2 * tfhe::NoiseModel(params->literal()).blind_rotation().total());
      for (std::size_t t = 0; t < N; ++t) {
        const auto difference = static_cast<double>(test::centred(a[t] - b[t], torus));
        EXPECT_LT(std::ldexp(std::abs(difference), -backend::torus_bits(torus)), bound);
      }
    }
  }
}

// Once the errors of the key are most of it, and once what the digits leave out.
TEST(ExternalProduct, HasTheNoiseOfTheFormula) {
  struct Case {
    Torus torus;
    std::size_t k;
    Gadget gadget;
  };
  for (const Case& c : {Case{Torus::t64, 1, {15, 2}}, Case{Torus::t64, 2, {8, 2}},
                        Case{Torus::t32, 1, {8, 3}}, Case{Torus::t32, 1, {4, 2}}}) {
    for (const std::uint8_t bit : kBits) {
      SCOPED_TRACE(std::to_string(backend::torus_bits(c.torus)) + " bits, k " +
                   std::to_string(c.k) + ", " + std::to_string(c.gadget.levels) + " levels of " +
                   std::to_string(c.gadget.base_log) + ", bit " + std::to_string(bit));
      const tfhe::Literal literal = literal_of(c.torus, c.k, c.gadget);
      const ParamsPtr params = Params::create(literal);
      const auto engine = backend::make_cpu_tfhe(params->config());
      const std::size_t N = params->N().value;
      double squares = 0, samples = 0;
      // The noise is an average over keys.
      for (int key = 0; key < 16; ++key) {
        KeyGenerator generator(params);
        const SecretKey secret = generator.secret_key();
        const GgswBlock selector = bind(*engine, generator.ggsw(secret, {&bit, 1}));
        const GlweBlock in = bind(*engine, generator.glwe(secret, messages(*params, 32, 0)));
        const GlweBlock out = external_product(*engine, selector, 0, in);
        for (std::size_t i = 0; i < in.count; ++i) {
          const Words before = phase_of(in, i, secret), after = phase_of(out, i, secret);
          for (std::size_t t = 0; t < N; ++t) {
            const std::uint64_t error = after[t] - (bit != 0 ? before[t] : 0);
            const double x = std::ldexp(static_cast<double>(test::centred(error, c.torus)),
                                        -backend::torus_bits(c.torus));
            squares += x * x;
            ++samples;
          }
        }
      }
      const tfhe::RotationNoise noise = tfhe::NoiseModel(literal).external_product(bit);
      const double expected = noise.key + noise.rounding;  // there are no transforms
      // If roundings prevail, the coefficients of one polynomial are not independent. Roundings are
      // multiplied by the secret, whose bits have a mean of 1/2. Half of the secret's energy is in
      // that mean, and of this half a part of 8/pi^2 lies in one complex frequency. So the mean
      // square of one polynomial has a relative deviation of about 4/pi^2 = 0.41, and the mean of
      // 512 polynomials one of 1.8%. The 16 keys leave about as much: 2.5% together.
      EXPECT_GT(squares / samples, 0.8 * expected);
      EXPECT_LT(squares / samples, 1.2 * expected);
    }
  }
}

TEST(ExternalProduct, RefusesWhatDoesNotFit) {
  const ParamsPtr params = test::insecure_params();
  const auto engine = backend::make_cpu_tfhe(params->config());
  KeyGenerator generator(params);
  const SecretKey secret = generator.secret_key(), other = generator.secret_key();
  const Words two(2 * params->N().value);
  const GgswBlock selector = bind(*engine, generator.ggsw(secret, kBits));
  const GlweBlock x = bind(*engine, generator.glwe(secret, two));
  EXPECT_NO_THROW(external_product(*engine, selector, 1, x));
  EXPECT_NO_THROW(cmux(*engine, selector, 1, x, x));

  // Another key, on either side. A ciphertext that anybody can read fits every key.
  const GlweBlock foreign = bind(*engine, generator.glwe(other, two));
  EXPECT_THROW(external_product(*engine, selector, 1, foreign), KeyMismatch);
  EXPECT_THROW(cmux(*engine, selector, 1, x, foreign), KeyMismatch);
  EXPECT_THROW(cmux(*engine, selector, 1, foreign, x), KeyMismatch);
  EXPECT_THROW(cmux(*engine, bind(*engine, generator.ggsw(other, kBits)), 1, x, x), KeyMismatch);
  GlweBlock clear =
      make_glwe(*engine->device()->pool(), params->torus(), params->k(), params->N(), 2);
  std::memset(clear.data.data(), 0, clear.bytes());
  EXPECT_EQ(cmux(*engine, selector, 1, x, clear).key_id, secret.id());

  // Another number of ciphertexts, none, or more than there are.
  const GlweBlock single =
      bind(*engine, generator.glwe(secret, std::span(two).first(params->N().value)));
  EXPECT_THROW(cmux(*engine, selector, 1, x, single), InvalidArgument);
  EXPECT_THROW(external_product(*engine, selector, 2, x), InvalidArgument);
  GlweBlock none{params->torus(), params->k(), params->N(), 0, {}, {}};
  EXPECT_THROW(external_product(*engine, selector, 0, none), InvalidArgument);
  none.count = 1;  // says more than it holds
  EXPECT_THROW(external_product(*engine, selector, 0, none), InvalidArgument);
  const GgswBlock hollow{selector.gadget,
                         {params->torus(), params->k(), params->N(), selector.rows.count, {}, {}}};
  EXPECT_THROW(external_product(*engine, hollow, 0, x), InvalidArgument);

  SeededGgsw seeded = generator.ggsw(secret, kBits);
  seeded.rows.count += 1;
  EXPECT_THROW(bind(*engine, seeded), InvalidArgument);
  seeded.rows.count = 0;
  EXPECT_THROW(bind(*engine, seeded), InvalidArgument);
  SeededGlwe longer = generator.glwe(secret, two);
  longer.count += 1 + static_cast<std::size_t>(params->literal().rotation_gadget.levels);
  EXPECT_THROW(bind(*engine, longer), InvalidArgument);
  longer.count = 0;
  EXPECT_THROW(bind(*engine, longer), InvalidArgument);

  // Another ring, torus, dimension or gadget: of the engine, of the bit or of what it multiplies.
  const auto differs = [&](const tfhe::Literal& literal) {
    const ParamsPtr wrong = Params::create(literal);
    const auto theirs = backend::make_cpu_tfhe(wrong->config());
    KeyGenerator maker(wrong);
    const SecretKey key = maker.secret_key();
    EXPECT_THROW(external_product(*theirs, selector, 1, x), ParamsMismatch);
    EXPECT_THROW(bind(*theirs, generator.ggsw(secret, kBits)), ParamsMismatch);
    EXPECT_THROW(external_product(*engine, bind(*theirs, maker.ggsw(key, kBits)), 1, x),
                 ParamsMismatch);
    EXPECT_THROW(maker.ggsw(secret, kBits), ParamsMismatch);
    EXPECT_THROW(maker.glwe(secret, two), ParamsMismatch);
    if (literal.rotation_gadget == params->literal().rotation_gadget) {
      const GlweBlock made = bind(*theirs, maker.glwe(key, Words(wrong->N().value)));
      EXPECT_THROW(bind(*theirs, generator.glwe(secret, two)), ParamsMismatch);
      EXPECT_THROW(external_product(*engine, selector, 1, made), ParamsMismatch);
      EXPECT_THROW(cmux(*engine, selector, 1, made, made), ParamsMismatch);
    }
  };
  tfhe::Literal literal = params->literal();
  literal.N = PolynomialSize(512);
  differs(literal);
  literal = params->literal();
  literal.k = GlweDimension(2);
  differs(literal);
  literal = params->literal();
  literal.rotation_gadget.levels = 1;
  differs(literal);
  literal = params->literal();
  literal.rotation_gadget.base_log = 14;
  differs(literal);
  literal = test::insecure_literal({.torus = Torus::t32});
  literal.rotation_gadget = params->literal().rotation_gadget;
  differs(literal);

  // What a client cannot encrypt.
  const std::vector<std::uint8_t> no_bit{0, 2};
  EXPECT_THROW(generator.ggsw(secret, no_bit), InvalidArgument);
  EXPECT_THROW(generator.ggsw(secret, {}), InvalidArgument);
  EXPECT_THROW(generator.glwe(secret, {}), InvalidArgument);
  EXPECT_THROW(generator.glwe(secret, std::span(two).first(300)), InvalidArgument);
}

}  // namespace
}  // namespace jali::lwe
