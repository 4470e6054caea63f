// Compact plaintexts: their expansion has the residues that encode gives, bit by bit, and
// operations take both alike.
#include "jali/schemes/ckks/compact.h"

#include <cstring>

#include "fixture.h"

namespace jali::testing {
namespace {

using ckks::CompactPlaintext;
using ckks::Plaintext;

void expect_same_bits(const ring::Poly& got, const ring::Poly& wanted, const std::string& what) {
  ASSERT_EQ(got.bytes(), wanted.bytes()) << what;
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.bytes()), 0) << what;
}

void expect_same(const Plaintext& got, const Plaintext& wanted, const std::string& what) {
  expect_same_bits(got.poly, wanted.poly, what);
  EXPECT_EQ(got.level, wanted.level) << what;
  EXPECT_EQ(got.scale, wanted.scale) << what;
  EXPECT_EQ(got.log_slots, wanted.log_slots) << what;
  EXPECT_EQ(got.message, wanted.message) << what;
  EXPECT_EQ(got.peak, wanted.peak) << what;
  EXPECT_EQ(got.real, wanted.real) << what;
}

class CompactTest : public ::testing::TestWithParam<Scheme> {
 protected:
  std::string seed() const { return ", seed " + std::to_string(w.seed); }
  World w{GetParam(), {}};
};

TEST_P(CompactTest, ServesEveryLevelWithTheBitsOfEncode) {
  const double scale = w.params->scale(1);
  for (const int log_slots : {0, 1, 3, w.params->log_n() - 1}) {
    const std::size_t slots = std::size_t{1} << log_slots;
    for (const std::size_t batch : {1, 3}) {
      for (const std::size_t length : {slots, slots / 2 + 1}) {
        const auto z = w.vector(1, batch * length);
        const CompactPlaintext compact = w.encoder().compact(z, batch, scale, log_slots);
        EXPECT_EQ(compact.bytes(), batch * 2 * slots * 8);
        for (int level = 0; level <= w.params->depth(); ++level) {
          expect_same(w.encoder().expand(compact, level),
                      w.encoder().encode(z, batch, level, scale, log_slots),
                      std::to_string(slots) + " slots, level " + std::to_string(level) + seed());
        }
      }
    }
  }
}

TEST_P(CompactTest, RealNumbersStayReal) {
  std::vector<double> z(w.params->slots());
  for (auto& x : z) x = std::uniform_real_distribution(-1.0, 1.0)(w.random);
  const double scale = w.params->scale(0);
  const std::span<const double> numbers(z);
  expect_same(w.encoder().expand(w.encoder().compact(numbers, 1, scale), 0),
              w.encoder().encode(numbers, 1, 0, scale), "real" + seed());
}

// Of numbers that repeat after p slots, 2p coefficients are kept. encode sees all slots.
TEST_P(CompactTest, KeepsOnePeriodOfNumbersThatRepeat) {
  const std::size_t slots = w.params->slots();
  const double scale = w.params->scale(1);
  for (std::size_t period = 1; period <= slots; period *= 2) {
    auto z = w.vector(1, 2 * slots);
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t s = period; s < slots; ++s) z[b * slots + s] = z[b * slots + s - period];
    }
    const CompactPlaintext compact = w.encoder().compact(z, 2, scale);
    EXPECT_EQ(compact.bytes(), 2 * 2 * period * 8);
    const std::span<const Complex> one(z.data(), slots);
    EXPECT_EQ(ckks::compact_bytes(one), w.encoder().compact(one, 1, scale).bytes());
    expect_same(w.encoder().expand(compact, 1), w.encoder().encode(z, 2, 1, scale),
                "period " + std::to_string(period) + seed());
    if (period == slots) continue;
    z[2 * slots - 1] += 1;  // of one vector of the batch, in one slot
    EXPECT_EQ(w.encoder().compact(z, 2, scale).bytes(), 2 * 2 * slots * 8);
    expect_same(w.encoder().expand(w.encoder().compact(z, 2, scale), 1),
                w.encoder().encode(z, 2, 1, scale), "almost a period" + seed());
  }
}

TEST_P(CompactTest, LiesInTheHostsMemoryIfAsked) {
  const auto z = w.vector();
  const double scale = w.params->scale(0);
  const auto compact = w.encoder().compact(z, 1, scale, -1, /*on_host=*/true);
  EXPECT_TRUE(compact.integers.host_accessible());
  EXPECT_TRUE(compact.integers.secret());
  expect_same(w.encoder().expand(compact, 0), w.encoder().encode(z, 1, 0, scale), "host" + seed());
}

TEST_P(CompactTest, OperationsTakeIt) {
  const auto x = w.vector(), z = w.vector();
  const ckks::Ciphertext c = w.encrypt(x);
  const auto plain = w.encoder().encode(z, 1, c.level, c.scale);
  const auto compact = w.encoder().compact(z, 1, c.scale);
  const auto same = [&](const ckks::Ciphertext& got, const ckks::Ciphertext& wanted) {
    EXPECT_EQ(got.scale, wanted.scale);
    EXPECT_EQ(got.estimate.variance, wanted.estimate.variance);
    EXPECT_EQ(got.estimate.peak, wanted.estimate.peak);
    for (std::size_t k = 0; k < 2; ++k) expect_same_bits(got.parts[k], wanted.parts[k], seed());
  };
  const auto& e = *w.evaluator;
  same(e.multiply_plain(c, compact), e.multiply_plain(c, plain));
  same(e.add_plain(c, compact), e.add_plain(c, plain));
  same(e.sub_plain(c, compact), e.sub_plain(c, plain));
  const auto lower = e.drop_to(c, 1);
  same(e.add_plain(lower, compact), e.add_plain(lower, w.encoder().encode(z, 1, 1, c.scale)));
}

TEST_P(CompactTest, RefusesWhatItCannotHold) {
  const double scale = w.params->scale(0);
  const auto& encoder = w.encoder();
  const auto compact = [&](const std::vector<Complex>& z, double s, int log_slots) {
    return encoder.compact(z, 1, s, log_slots);
  };
  EXPECT_THROW(compact(std::vector<Complex>(w.params->slots() + 1), scale, -1), InvalidArgument);
  EXPECT_THROW(compact({1, 2, 3}, scale, 1), InvalidArgument);
  EXPECT_THROW(compact({1}, scale, w.params->log_n()), InvalidArgument);
  EXPECT_THROW(compact({NAN}, scale, 2), InvalidArgument);
  EXPECT_THROW(compact({Complex(0, INFINITY)}, scale, 2), InvalidArgument);
  for (const double bad : {0.0, -1.0, double(INFINITY), double(NAN)}) {
    EXPECT_THROW(compact({1}, bad, 2), InvalidArgument) << bad;
  }
  const std::vector<Complex> none;
  EXPECT_THROW(encoder.compact(none, 2, scale), InvalidArgument);
  const CompactPlaintext zero = encoder.compact(none, 1, scale);
  expect_same(encoder.expand(zero, 0), encoder.encode(none, 1, 0, scale), "nothing");
  // The most that 62 bits hold: all slots are 1, so that the first coefficient is the scale.
  const std::vector<Complex> ones(w.params->slots(), 1);
  EXPECT_NO_THROW(compact(ones, 0x1p61, -1));
  EXPECT_THROW(compact(ones, 0x1p62, -1), InvalidArgument);
  // A level that does not hold the coefficients, though it holds the scale.
  const double held = std::exp2(std::min(61.0, w.params->level(0).log_q - 1));
  for (const double share : {0.99, 1.01}) {
    const std::vector<Complex> large(w.params->slots(), share * held / scale);
    if (share > 1 && held < 0x1p61) {
      EXPECT_THROW(encoder.expand(compact(large, scale, -1), 0), InvalidArgument);
    } else if (share < 1) {
      expect_same(encoder.expand(compact(large, scale, -1), 0), encoder.encode(large, 1, 0, scale),
                  "the most that fits");
    }
  }
  EXPECT_THROW(encoder.expand(zero, -1), InvalidArgument);
  EXPECT_THROW(encoder.expand(zero, w.params->top() + 1), InvalidArgument);
  EXPECT_THROW(encoder.expand(CompactPlaintext{}, 0), ParamsMismatch);
  World other({"other", Word::w64, 45, 2, 11}, {});
  EXPECT_THROW(other.encoder().expand(zero, 0), ParamsMismatch);
}

INSTANTIATE_TEST_SUITE_P(Setups, CompactTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
