// Numbers that were encrypted or decrypted are gone from memory once they are handed over. The
// tests read all memory of this process, as an attacker with a core dump or an out-of-bounds read
// would.
#include <limits>

#include "jali/base/wipe.h"
#include "jali/rlwe/secret/decryptor.h"
#include "memory_scan.h"
#include "process_memory.h"
#include "sanitized.h"
#include "world.h"

namespace jali::discrete {
namespace {

using jali::testing::MemoryScan;

std::vector<Case> cases() {
  const auto bgv = Multiplication::bgv;
  const auto slots = Packing::slots, coefficients = Packing::coefficients;
  return {{"w32_integers59", Word::w32, {}, 59, 1, bgv, slots},
          {"w52_integers40", Word::w52, {}, 40, 1, bgv, slots},
          {"bfv_w64_integers59", Word::w64, {}, 59, 1, Multiplication::bfv, slots},
          {"coefficients_2_64", Word::w52, kTwoTo64, 0, 1, bgv, coefficients},
          {"coefficients_prime", Word::w64, 2305843009213693951u, 0, 1, bgv, coefficients}};
}

class DiscreteWiping : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (backend::test::kSanitized) GTEST_SKIP() << jali::testing::kNotSearched;
  }
  /// Numbers of as many bits as T tells apart, so that they occur nowhere by chance.
  Numbers large(std::mt19937_64& rng) const {
    return w.numbers(rng, w.params->modulus().low() / 4, w.params->modulus().high() / 4);
  }
  Range range() const {
    return w.noise().range(w.params->modulus().low() / 4, w.params->modulus().high() / 4);
  }
  /// The numbers, as they are and as residues.
  void learn(MemoryScan& scan, std::span<const std::int64_t> numbers) const {
    scan.learn(numbers.data(), numbers.size_bytes());
    std::vector<std::uint64_t> residues;
    residues.reserve(numbers.size());  // nothing is moved
    for (const std::int64_t v : numbers) residues.push_back(w.params->modulus().reduce_signed(v));
    scan.learn(residues.data(), residues.size() * sizeof(residues[0]));
    wipe(residues.data(), residues.size() * sizeof(residues[0]));
  }
  static void learn(MemoryScan& scan, const ring::Poly& x) { scan.learn(x.data(), x.bytes()); }
  /// What decryption computes on its way: the phase, and T times it, in both forms; and the noise.
  void learn_phase(MemoryScan& scan, const Ciphertext& c) const {
    const rlwe::Plaintext phase = rlwe::Decryptor(w.secret, w.host).decrypt(c);
    std::vector<std::uint64_t> t;
    for (const PrimeIndex i : phase.poly.primes()) {
      const arith::Modulus q(w.host->prime(i));
      t.push_back(q.add(q.reduce(w.params->modulus().largest()), 1));
    }
    for (const bool scaled : {false, true}) {
      ring::Poly x = w.host->copy(phase.poly);
      if (scaled) w.host->ops().mul_scalar(x.view(), x.view(), t);
      learn(scan, x);
      w.host->to_coeff(x);
      learn(scan, x);
      if (scaled) {  // the noise, with which a ciphertext gives the key
        auto noise = ring::to_doubles(*w.host, x, w.params->modulus().as_double());
        scan.learn(noise.data(), noise.size() * sizeof(noise[0]));
        wipe(noise.data(), noise.size() * sizeof(noise[0]));
      }
    }
  }
  World w{GetParam()};
};

TEST_P(DiscreteWiping, DecryptionLeavesNothing) {
  JALI_SEEDED(rng);
  Ciphertext c;
  {
    Numbers numbers = large(rng);
    c = w.secret_encryptor.encrypt(w.encoder().encode(numbers, 1, range()));
    wipe(numbers.data(), numbers.size() * sizeof(numbers[0]));
  }
  for (const bool altered : {false, true}) {
    if (altered) c.estimate.range = {0, 1, false};
    MemoryScan scan;
    learn_phase(scan, c);
    {
      const auto numbers = w.decryptor.decrypt(c, Check::no);
      learn(scan, numbers);
    }
    ASSERT_GT(scan.size(), kN / 2);
    if (altered) {  // what is refused leaves nothing either
      EXPECT_THROW(w.decryptor.decrypt(c), WrongDecryption);
    } else {
      w.decryptor.decrypt(c);
    }
    (void)w.decryptor.measure(c);
    EXPECT_EQ(scan.found(), 0u) << altered;
  }
}

TEST_P(DiscreteWiping, EncryptionLeavesNothing) {
  JALI_SEEDED(rng);
  MemoryScan scan;
  Numbers numbers = large(rng);
  learn(scan, numbers);
  std::vector<Ciphertext> kept;
  {
    const Plaintext plaintext = w.encoder().encode(numbers, 1, range());
    if (!plaintext.poly.empty()) learn(scan, plaintext.poly);
    const int top = w.params->top();
    learn(scan, w.encoder().scaled(plaintext, top, w.params->factor(top)));
    kept.push_back(w.secret_encryptor.encrypt(plaintext));
    kept.push_back(w.encryptor.encrypt(plaintext));
    // Of numbers that are refused, too.
    EXPECT_THROW(w.encoder().encode(numbers, 1, w.noise().range(0, 1)), InvalidArgument);
  }
  ASSERT_GT(scan.found(), kN / 2) << "the numbers are still here";
  wipe(numbers.data(), numbers.size() * sizeof(numbers[0]));
  EXPECT_EQ(scan.found(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteWiping, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::discrete
