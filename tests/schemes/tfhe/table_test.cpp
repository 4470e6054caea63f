// The polynomials of look-up tables: every coefficient against the value that the phase it stands
// for rounds to.
#include "jali/schemes/tfhe/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "../../seeded.h"
#include "../../tfhe_literals.h"
#include "jali/base/error.h"

namespace jali::tfhe {
namespace {

using test::TfheShape;

std::uint64_t coefficient(const std::vector<std::uint8_t>& words, Torus torus, std::size_t i) {
  std::uint64_t out = 0;
  const std::size_t bytes = backend::torus_bytes(torus);
  std::memcpy(&out, words.data() + i * bytes, bytes);
  return out;
}

TEST(LookUpTable, EveryPhaseNearAValueFindsIt) {
  JALI_SEEDED(rng);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const int bits : {1, 2, 4}) {
      for (const int log_many : {0, 1, 2}) {
        TfheShape shape;
        shape.torus = torus;
        shape.message_bits = bits;
        shape.carry_bits = 0;
        const ParamsPtr params = test::insecure_params(shape);
        const std::size_t n = 256, p = params->value_modulus(), many = std::size_t{1} << log_many;
        std::vector<LookUpTable> tables;
        for (std::size_t j = 0; j < many; ++j) {
          tables.emplace_back(params, [&](std::uint64_t) { return rng() % p; });
        }
        const LookUpTable table = LookUpTable::together(tables);
        EXPECT_EQ(table.log_many(), log_many);
        const auto words = table.polynomial();
        ASSERT_EQ(words.size(), n * backend::torus_bytes(torus));
        // The rotation by X^-e, e a multiple of `many`, has coefficient e + j of the table as its
        // coefficient j.
        for (std::size_t e = 0; e < 2 * n; e += many) {
          // The phase e / 2N is that of the value round(e P / N), half up.
          const std::size_t v = (e * p + n / 2) / n % (2 * p);
          for (std::size_t j = 0; j < many; ++j) {
            std::uint64_t found = coefficient(words, torus, (e + j) % n);
            if (e + j >= n) found = 0 - found;
            std::uint64_t expected = table.values(j)[v % p] * params->step(torus);
            if (v >= p) expected = 0 - expected;
            if (torus == Torus::t32) {
              found = static_cast<std::uint32_t>(found);
              expected = static_cast<std::uint32_t>(expected);
            }
            ASSERT_EQ(found, expected) << "phase " << e << "/" << 2 * n << ", table " << j;
          }
        }
      }
    }
  }
}

TEST(LookUpTable, ShortFunctionsLieSideBySide) {
  JALI_SEEDED(rng);
  const ParamsPtr params = test::insecure_params();
  const std::size_t n = 256, p = params->value_modulus();
  for (const std::size_t many : {2u, 4u, 16u}) {
    std::vector<LookUpTable> tables;
    for (std::size_t j = 0; j < many; ++j) {
      std::vector<std::uint64_t> values(p / many);
      for (auto& value : values) value = rng() % p;
      tables.emplace_back(params, values);
    }
    const LookUpTable table = LookUpTable::together(tables);
    EXPECT_TRUE(table.side_by_side());
    EXPECT_EQ(table.log_many(), 0);
    EXPECT_EQ(table.shortest(), p / many);
    const auto words = table.polynomial();
    for (std::size_t j = 0; j < many; ++j) {
      // Phases from half a box below 0 to half a box above the largest value.
      for (std::size_t v = 0; v < p / many; ++v) {
        for (std::size_t t = 0; t < n / p; ++t) {
          const std::size_t e = (2 * n + v * (n / p) + t - n / (2 * p)) % (2 * n);
          const std::size_t at = (e + j * n / many) % (2 * n);
          std::uint64_t found = coefficient(words, params->torus(), at % n);
          if (at >= n) found = 0 - found;
          ASSERT_EQ(found, tables[j].values()[v] * params->step()) << many << " " << j << " " << v;
        }
      }
    }
  }
}

TEST(LookUpTable, RefusesWhatIsNoTable) {
  const ParamsPtr params = test::insecure_params();
  EXPECT_THROW(LookUpTable(params, [](std::uint64_t v) { return v + 1; }), InvalidArgument);
  EXPECT_THROW(LookUpTable(params, std::vector<std::uint64_t>(17)), InvalidArgument);
  EXPECT_THROW(LookUpTable(params, std::vector<std::uint64_t>()), InvalidArgument);
  EXPECT_THROW(LookUpTable(nullptr, std::vector<std::uint64_t>(1)), InvalidArgument);
  const LookUpTable same(params, [](std::uint64_t v) { return v; });
  EXPECT_THROW(LookUpTable::together(std::vector<LookUpTable>(3, same)), InvalidArgument);
  EXPECT_THROW(LookUpTable::together(std::vector<LookUpTable>(16, same)), InvalidArgument);
  EXPECT_THROW(LookUpTable::together({}), InvalidArgument);
  TfheShape plain;
  plain.carry_bits = 0;
  EXPECT_THROW(LookUpTable::of_two(test::insecure_params(plain),
                                   [](std::uint64_t, std::uint64_t) { return std::uint64_t{0}; }),
               InvalidArgument);
  const LookUpTable two =
      LookUpTable::of_two(params, [](std::uint64_t x, std::uint64_t y) { return x * y; });
  EXPECT_EQ(two.values()[3 * 4 + 2], 6u);
  EXPECT_EQ(two.largest(0, 5), 1u);
}

}  // namespace
}  // namespace jali::tfhe
