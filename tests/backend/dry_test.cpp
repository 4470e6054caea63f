// The dry engine: memory that nobody touches, operations that compute nothing, and no numbers.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <vector>

#include "jali/backend/embedding_ops.h"
#include "jali/backend/engines.h"
#include "jali/backend/resolve.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/base/error.h"

namespace jali::backend {
namespace {

constexpr std::size_t kN = 64;

Config config() {
  Config c;
  c.word = Word::w64;
  c.n = kN;
  c.primes = {257, 641, 769};  // 1 modulo 2N
  return c;
}

TEST(Dry, LeavesItsMemoryAlone) {
  const auto engine = make_dry_engine(config());
  EXPECT_EQ(engine->name(), "dry");
  EXPECT_FALSE(engine->memory()->host_accessible());
  const std::vector<PrimeIndex> primes{0, 1, 2};
  std::vector<std::uint64_t> a(3 * kN, 5), b(3 * kN, 7);
  const View x{a.data(), primes, 1}, y{b.data(), primes, 1};
  const std::vector<std::uint32_t> digits{2, 1}, ids{0, 1};
  const std::vector<std::uint64_t> scalars{1, 2, 3};
  const KeyView key{b.data(), 2, primes};
  engine->ring().ntt(x);
  engine->ring().add(x, x, y);
  engine->ring().mul_scalar_add(x, y, scalars);
  engine->ring().from_int64(x, std::vector<std::int64_t>(kN, 1));
  engine->rlwe().key_switch_add(x, x, y, digits, key, ids, {y, y, scalars});
  engine->rlwe().rotate(x, x, x, x, y, y, 5, digits, key, ids);
  engine->embedding().embed(x, Embedding(kN / 2), std::vector<std::complex<double>>(kN / 2, 1.0), 5,
                            1.0);
  engine->memory()->fill(a.data(), 1, 8);
  engine->memory()->copy(a.data(), b.data(), 8);
  engine->memory()->copy_in(a.data(), b.data(), 8);
  EXPECT_EQ(a, std::vector<std::uint64_t>(3 * kN, 5));
}

TEST(Dry, HasNoNumbers) {
  const auto engine = make_dry_engine(config());
  const std::vector<PrimeIndex> primes{0};
  std::vector<std::uint64_t> a(kN);
  std::vector<std::complex<double>> slots(kN / 2);
  const ConstView x{a.data(), primes, 1};
  EXPECT_THROW(engine->ring().icrt(a, 1, x, IcrtMethod::automatic), Unsupported);
  EXPECT_THROW(engine->embedding().unembed(slots, Embedding(kN / 2), x, 5, 1.0), Unsupported);
  EXPECT_THROW(engine->memory()->copy_out(a.data(), a.data(), 8), Unsupported);
}

TEST(Dry, GivesOutMemoryWithoutPages) {
  // Far more than a machine of tests has, if it were touched.
  const auto engine = make_dry_engine(config());
  std::vector<device::Buffer> blocks;
  for (int k = 0; k < 64; ++k) blocks.push_back(engine->pool()->allocate(std::size_t{1} << 30));
  EXPECT_EQ(blocks.size(), 64u);
}

TEST(Dry, NoNameLeadsToIt) { EXPECT_THROW(make_engine(config(), "dry"), NoDevice); }

}  // namespace
}  // namespace jali::backend
