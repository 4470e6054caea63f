// Numbers that were encrypted or decrypted are gone from memory once they are handed over. The
// tests read all memory of this process, as an attacker with a core dump or an out-of-bounds read
// would.
#include <cstring>

#include "../../seeded.h"
#include "fixture.h"
#include "jali/base/wipe.h"
#include "memory_scan.h"
#include "process_memory.h"
#include "sanitized.h"

namespace jali::testing {
namespace {

class WipingTest : public ::testing::TestWithParam<Scheme> {};

INSTANTIATE_TEST_SUITE_P(Setups, WipingTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

void learn(MemoryScan& scan, const ring::Poly& x) { scan.learn(x.data(), x.bytes()); }
template <class T>
void learn(MemoryScan& scan, const std::vector<T>& x) {
  scan.learn(x.data(), x.size() * sizeof(T));
}

TEST(MemoryScan, FindsWhatIsKeptOrFreedAsItIs) {
  std::mt19937_64 random(jali::test::test_seed());
  MemoryScan scan;
  auto kept = std::make_unique<std::vector<std::uint64_t>>(10000);
  for (auto& word : *kept) word = random();
  learn(scan, *kept);
  EXPECT_GE(scan.found(), kept->size() * 9 / 10);  // pairs across the edges of a chunk are missed
  wipe(kept->data(), kept->size() * 8);
  EXPECT_EQ(scan.found(), 0U);
}

// Messages and garbage are decrypted at every level, with two threads, with full and with sparse
// packing.
TEST_P(WipingTest, DecryptionLeavesNothing) {
  if (backend::test::kSanitized) GTEST_SKIP() << kNotSearched;
  World w(GetParam(), {}, "cpu", 2);
  for (const int log_slots : {w.params->log_n() - 1, 4}) {
    for (int level = w.params->depth(); level >= 0; level -= w.params->depth()) {
      const std::size_t slots = std::size_t{1} << log_slots;
      ckks::Ciphertext c = w.encrypt(w.vector(1, slots), level, log_slots);
      for (const bool garbage : {false, true}) {
        if (garbage) w.ring->sample_uniform(c.parts[0], random::os_seed(), 0);
        MemoryScan scan;
        {
          ckks::Plaintext plain = w.decryptor->decrypt(c);
          learn(scan, plain.poly);  // m + e in NTT form
          auto values = w.encoder().decode(plain);
          learn(scan, values);
          ring::Poly coefficients = w.ring->copy(plain.poly);
          w.ring->to_coeff(coefficients);
          learn(scan, coefficients);
          auto doubles = ring::to_doubles(*w.ring, coefficients, plain.scale);
          if (log_slots > 4) learn(scan, doubles);
          // These two belong to the caller, who wipes them.
          wipe(values.data(), values.size() * sizeof(values[0]));
          wipe(doubles.data(), doubles.size() * sizeof(doubles[0]));
        }
        ASSERT_GT(scan.size(), slots);
        EXPECT_EQ(scan.found(), 0U)
            << "level " << level << ", log_slots " << log_slots << ", garbage " << garbage;
      }
    }
  }
}

TEST_P(WipingTest, EncryptionLeavesNothingOfTheMessage) {
  if (backend::test::kSanitized) GTEST_SKIP() << kNotSearched;
  World w(GetParam(), {}, "cpu", 2);
  MemoryScan scan;
  auto values = w.vector();
  std::vector<double> real(w.params->slots());
  for (double& x : real) x = std::ldexp(static_cast<double>(w.random()), -64);
  learn(scan, values);
  learn(scan, real);
  const int top = w.params->depth();
  const double scale = w.params->scale(top);
  // The second magnitude is near the largest that the level holds, for which the encoder takes
  // another path.
  for (const double magnitude :
       {1.0, std::exp2(w.params->level(top).log_q - std::log2(scale) - 5)}) {
    for (auto& z : values) z *= magnitude;
    for (auto& x : real) x *= magnitude;
    ckks::Plaintext plain = w.encoder().encode(values, 1, top, scale);
    learn(scan, plain.poly);
    const auto c = w.encryptor->encrypt(plain, {magnitude, 2 * magnitude});
    plain = w.encoder().encode(std::span<const double>(real), 1, top, scale);
    learn(scan, plain.poly);
    learn(scan, values);
    learn(scan, real);
  }
  wipe(values.data(), values.size() * sizeof(values[0]));
  wipe(real.data(), real.size() * sizeof(real[0]));
  EXPECT_EQ(scan.found(), 0U);
}

// Copies of a plaintext are wiped, also in memory that a device shares with the host.
TEST(Wiping, CopiesOfAPlaintextAreWipedToo) {
  if (backend::test::kSanitized) GTEST_SKIP() << kNotSearched;
  for (const std::string device : {"cpu", "cpu/apart"}) {
    World w(all_setups()[0], {}, device);
    const auto c = w.encrypt(w.vector());
    MemoryScan scan;
    {
      const ckks::Plaintext plain = w.decryptor->decrypt(c);
      const ring::Poly host = w.ring->host_copy(plain.poly), copy = w.ring->copy(plain.poly),
                       again = w.ring->import(host),
                       part = w.ring->select(plain.poly, plain.poly.primes().first(1));
      learn(scan, host);
      auto values = w.encoder().decode(plain);
      learn(scan, values);
      wipe(values.data(), values.size() * sizeof(values[0]));
    }
    EXPECT_EQ(scan.found(), 0U) << device;
  }
}

}  // namespace
}  // namespace jali::testing
