// Digits, products of polynomials and external products of the oracle, against arithmetic of 128
// bits and against phases.
#include "jali/backend/ref/tfhe.h"
#include "jali/backend/ref/torus.h"
#include "tfhe_compare.h"

namespace jali::backend::test {
namespace {

__extension__ using i128 = __int128;

/// The residue of x modulo 2^bits in [-2^(bits-1), 2^(bits-1)).
i128 residue(i128 x, int bits) {
  const i128 modulus = i128{1} << bits;
  x %= modulus;
  if (x < -modulus / 2) x += modulus;
  if (x >= modulus / 2) x -= modulus;
  return x;
}

/// The digits sum up to the closest multiple, the upper one of two. They are in range. Where the
/// choice is between half the base and minus that, the digit above is even, which leaves one choice
/// of all digits.
template <class W>
testing::AssertionResult digits_hold(W x, const Gadget& gadget) {
  const int w = sizeof(W) * 8, g = gadget.base_log;
  std::vector<std::int32_t> d(static_cast<std::size_t>(gadget.levels));
  ref::decompose<W>(d, x, gadget);
  const std::int64_t half = std::int64_t{1} << (g - 1);
  i128 sum = 0;
  std::int64_t above = 0;  // digit 1 has an even one above, and is never minus half
  for (int j = 1; j <= gadget.levels; ++j) {
    const std::int64_t digit = d[static_cast<std::size_t>(j - 1)];
    if (digit < -half || digit > half) {
      return testing::AssertionFailure() << "digit " << j << " of " << x << " is " << digit;
    }
    if ((digit == half || digit == -half) && (above % 2 != 0 || (j == 1 && digit < 0))) {
      return testing::AssertionFailure() << "digit " << j << " of " << x << " ties wrongly";
    }
    sum += i128{digit} << (w - j * g);
    above = digit;
  }
  const int unit = w - gadget.levels * g;
  const i128 error = residue(i128{x} - sum, w);  // x is above or below its multiple
  const bool closest =
      unit == 0 ? error == 0 : 2 * error >= -(i128{1} << unit) && 2 * error < i128{1} << unit;
  if (closest) return testing::AssertionSuccess();
  return testing::AssertionFailure() << x << " is too far from the sum of its digits";
}

template <class W>
void check_digits(std::mt19937_64& rng) {
  const int w = sizeof(W) * 8;
  for (int g = 1; g <= 31; ++g) {
    for (int levels = 1; levels * g <= w; ++levels) {
      const Gadget gadget{g, levels};
      SCOPED_TRACE(std::to_string(levels) + " digits of " + std::to_string(g) + " bits");
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(digits_hold(static_cast<W>(rng()), gadget));
        ASSERT_TRUE(digits_hold(static_cast<W>(detail::edge_word(rng, w)), gadget));
        // All digits near half the base, where a carry runs on.
        W ties = 0;
        for (int j = 1; j <= levels; ++j) {
          ties += (W{1} << (w - j * g + g - 1)) - (static_cast<W>(rng() % 2) << (w - j * g));
        }
        ASSERT_TRUE(digits_hold(ties, gadget));
        if (w > levels * g) {
          ASSERT_TRUE(digits_hold<W>(ties + (W{1} << (w - levels * g - 1)), gadget));
          ASSERT_TRUE(digits_hold<W>(ties + (W{1} << (w - levels * g - 1)) - 1, gadget));
        }
      }
    }
  }
  // Every multiple of a gadget of 12 bits, with every kind of rest.
  for (const Gadget gadget : {Gadget{4, 3}, Gadget{6, 2}, Gadget{12, 1}, Gadget{1, 12}}) {
    const W unit = W{1} << (w - 12);
    for (W multiple = 0; multiple < 4096; ++multiple) {
      for (const W rest :
           {W{0}, W{1}, W(unit / 2 - 1), W(unit / 2), W(unit / 2 + 1), W(unit - 1)}) {
        ASSERT_TRUE(digits_hold<W>(multiple * unit + rest, gadget));
      }
    }
  }
}

TEST(TfheTorus, DigitsSumUpToTheClosestMultiple) {
  JALI_SEEDED(rng);
  check_digits<u32>(rng);
  check_digits<u64>(rng);
}

TEST(TfheTorus, DigitsByHand) {
  const auto digits = [](u32 x, Gadget gadget) {
    std::vector<std::int32_t> d(static_cast<std::size_t>(gadget.levels));
    ref::decompose<u32>(d, x, gadget);
    return d;
  };
  using Digits = std::vector<std::int32_t>;
  const Gadget gadget{2, 3};  // multiples of 2^26, digits -2 .. 2
  const auto of = [&](u32 multiple) { return digits(multiple << 26, gadget); };
  EXPECT_EQ(of(0b00'00'01), (Digits{0, 0, 1}));
  EXPECT_EQ(of(0b00'00'10), (Digits{0, 0, 2}));  // a tie, and the next bit is 0
  EXPECT_EQ(of(0b00'01'10), (Digits{0, 2, -2}));  // a tie, and the next bit is 1: 6 = 8 - 2
  EXPECT_EQ(of(0b01'01'10), (Digits{2, -2, -2}));  // 22 = 32 - 8 - 2
  EXPECT_EQ(of(0b00'00'11), (Digits{0, 1, -1}));
  EXPECT_EQ(of(0b10'00'00), (Digits{2, 0, 0}));  // there is no bit above digit 1
  EXPECT_EQ(of(0b11'11'11), (Digits{0, 0, -1}));
  EXPECT_EQ(digits((1u << 25) - 1, gadget), (Digits{0, 0, 0}));
  EXPECT_EQ(digits(1u << 25, gadget), (Digits{0, 0, 1}));  // half a unit goes up
  EXPECT_EQ(digits(0xFE000000u, gadget), (Digits{0, 0, 0}));  // 2^32 - 2^25 goes up to 2^32
  EXPECT_EQ(digits(0x80000000u, {31, 1}), (Digits{1 << 30}));
}

template <class W>
void check_products(std::mt19937_64& rng) {
  const std::size_t N = 64;
  std::vector<std::int32_t> a(N);
  std::vector<W> b(N), acc(N);
  for (auto& x : a)
    x = static_cast<std::int32_t>(rng() >> (33 + rng() % 30)) * (rng() % 2 ? 1 : -1);
  for (auto& x : b) x = static_cast<W>(rng());
  for (auto& x : acc) x = static_cast<W>(rng());
  std::vector<W> want(N);
  for (std::size_t i = 0; i < N; ++i) {  // coefficient i, from all pairs with j + m = i or i + N
    i128 sum = acc[i];
    for (std::size_t j = 0; j < N; ++j) {
      const std::size_t m = (i + N - j) % N;
      const i128 product = residue(i128{a[j]} * i128{b[m]}, sizeof(W) * 8);
      sum += j + m == i ? product : -product;
    }
    want[i] = static_cast<W>(sum);
  }
  ref::add_product<W>(acc.data(), a, b.data());
  EXPECT_EQ(acc, want);

  for (const std::size_t e : {std::size_t{0}, std::size_t{1}, N - 1, N, N + 1, 2 * N - 1,
                              static_cast<std::size_t>(rng() % (2 * N))}) {
    std::vector<std::int32_t> power(N, 0);
    power[e % N] = e < N ? 1 : -1;
    std::vector<W> out(N), product(N, 0);
    ref::times_power(out.data(), b.data(), e, N);
    ref::add_product<W>(product.data(), power, b.data());
    EXPECT_EQ(out, product) << "X^" << e;
  }
}

TEST(TfheTorus, ProductsAreNegacyclic) {
  JALI_SEEDED(rng);
  for (int i = 0; i < 5; ++i) {
    check_products<u32>(rng);
    check_products<u64>(rng);
  }
}

/// The closest multiple of 2^unit, the upper one of two.
u64 rounded(u64 x, int unit) {
  return unit == 0 ? x : (x + (u64{1} << (unit - 1))) >> unit << unit;
}

/// With keys without noise, the phase of GGSW(m) x c is m times the phase of c with its words
/// rounded to the gadget, exactly.
template <class W>
void check_external_product(const TfheConfig& config, std::mt19937_64& rng) {
  SCOPED_TRACE(describe(config));
  const int w = torus_bits(config.torus);
  const int unit = w - config.rotation_gadget.levels * config.rotation_gadget.base_log;
  const std::size_t words = (config.k.value + 1) * config.N.value;
  const TfheSecret secret = random_secret(config, rng);
  for (const std::int64_t m : {0, 1, -3}) {
    const TorusBlock ggsw = encrypt_ggsw(rng, config, secret, std::span(&m, 1), 0);
    ref::Glwe<W> in(words);
    TorusBlock closest(config.torus, 1, words), out(config.torus, 1, words);
    for (std::size_t i = 0; i < words; ++i) {
      in[i] = static_cast<W>(i % 2 ? rng() : detail::edge_word(rng, w));
      closest.set(i, rounded(in[i], unit));
    }
    const ref::Glwe<W> product =
        ref::external_product<W>(config, static_cast<const W*>(ggsw.data()), in);
    for (std::size_t i = 0; i < words; ++i) out.set(i, product[i]);
    const std::vector<u64> have = glwe_phases(out, config, secret);
    const std::vector<u64> phases = glwe_phases(closest, config, secret);
    for (std::size_t i = 0; i < have.size(); ++i) {
      ASSERT_EQ(have[i], static_cast<W>(static_cast<u64>(m) * phases[i])) << "m " << m;
    }
  }
}

TEST(TfheTorus, ExternalProductsMultiplyPhases) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    if (config.torus == Torus::t32) {
      check_external_product<u32>(config, rng);
    } else {
      check_external_product<u64>(config, rng);
    }
  }
}

/// acc after one step, in the form that torus.h gives.
template <class W>
ref::Glwe<W> stepped(const TfheConfig& config, const ref::Glwe<W>& acc, std::span<const u32> bits,
                     const W* ggsws) {
  const std::size_t N = config.N.value;
  const auto minus_1 = [&](const ref::Glwe<W>& x, std::size_t e) {
    ref::Glwe<W> out(x.size());
    for (std::size_t at = 0; at < x.size(); at += N) {
      ref::times_power(&out[at], &x[at], e % (2 * N), N);
    }
    for (std::size_t i = 0; i < x.size(); ++i) out[i] -= x[i];
    return out;
  };
  ref::Glwe<W> out = acc;
  const auto add = [&](const ref::Glwe<W>& x) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += x[i];
  };
  const auto product = [&](std::size_t u, const ref::Glwe<W>& x) {
    return ref::external_product(config, ggsws + u * config.ggsw_words(), x);
  };
  switch (config.rotation) {
    case Rotation::classic: add(product(0, minus_1(acc, bits[0]))); break;
    case Rotation::block_binary:
      for (std::size_t u = 0; u < bits.size(); ++u) add(minus_1(product(u, acc), bits[u]));
      break;
    case Rotation::multi_bit:
      for (std::size_t set = 1; set < std::size_t{1} << bits.size(); ++set) {
        std::size_t e = 0;
        for (std::size_t j = 0; j < bits.size(); ++j) e += (set >> j & 1) * bits[j];
        add(minus_1(product(set - 1, acc), e));
      }
  }
  return out;
}

template <class W>
void check_steps(TfheConfig config, std::mt19937_64& rng) {
  SCOPED_TRACE(describe(config));
  const std::size_t N = config.N.value;
  const auto group = static_cast<std::size_t>(config.group);
  config.n = LweDimension(2 * group);
  std::vector<W> key(config.steps() * config.units() * config.ggsw_words());
  for (W& word : key) word = static_cast<W>(rng());
  ref::Glwe<W> acc((config.k.value + 1) * N);
  for (W& word : acc) word = static_cast<W>(rng());
  std::vector<u32> exponents(config.n.value);
  for (u32& e : exponents) e = static_cast<u32>(rng() % (2 * N));
  if (rng() % 2) exponents[0] = 0;
  const std::span all(exponents);
  const ref::Glwe<W> first = stepped<W>(config, acc, all.first(group), key.data());
  const ref::Glwe<W> want =
      stepped<W>(config, first, all.last(group), key.data() + config.units() * config.ggsw_words());
  ref::rotate<W>(config, acc, exponents, key.data());
  EXPECT_EQ(acc, want);
}

TEST(TfheTorus, StepsHaveTheFormOfTheirKind) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    if (config.N.value > 512) continue;
    if (config.torus == Torus::t32) {
      check_steps<u32>(config, rng);
    } else {
      check_steps<u64>(config, rng);
    }
  }
}

}  // namespace
}  // namespace jali::backend::test
