// Lengths, batches and zeros past the end follow NumPy's rules.
#include "jali/schemes/ckks/packing.h"

#include <bit>

#include "../../seeded.h"
#include "fixture.h"

namespace jali::ckks {
namespace {

using jali::testing::Complex;
using jali::testing::Scheme;
using jali::testing::World;

Ciphertext packed(World& w, std::uint32_t length, bool padded, std::size_t batch = 1) {
  Ciphertext out = w.encrypt(w.vector(1, batch * w.params->slots()), -1, -1, batch);
  out.packing = {length, batch > 1, false, padded ? 0 : params::kUnbounded};
  return out;
}

TEST(Packing, OfFreshVectors) {
  const Packing shorter = packing_of_fresh(3, 4, true, false);
  EXPECT_EQ(shorter.length, 3u);
  EXPECT_TRUE(shorter.rest == 0 && shorter.batched && !shorter.complex_values);
  const Packing whole = packing_of_fresh(16, 4, false, true);
  EXPECT_EQ(whole.length, 0u);
  EXPECT_TRUE(whole.rest != 0 && !whole.batched && whole.complex_values);
  EXPECT_THROW(packing_of_fresh(17, 4, false, false), InvalidArgument);
}

TEST(Packing, OfTwoCiphertexts) {
  World w({"w52", Word::w52, 40, 1}, {});
  const Ciphertext a = packed(w, 5, true), b = packed(w, 5, false), whole = packed(w, 0, false);
  const Ciphertext other = packed(w, 6, true), pair = packed(w, 5, true, 2),
                   three = packed(w, 5, true, 3);
  EXPECT_TRUE(packing_of_sum(a, a).rest == 0);
  EXPECT_FALSE(packing_of_sum(a, b).rest == 0) << "what b holds past its end is in the sum";
  EXPECT_TRUE(packing_of_product(a, b).rest == 0)
      << "zeros past the end of a factor are in the product";
  EXPECT_EQ(packing_of_sum(a, b).length, 5u);
  EXPECT_EQ(packing_of_sum(a, whole).length, 0u);
  EXPECT_FALSE(packing_of_product(a, whole).rest == 0) << "all slots count";
  EXPECT_THROW(packing_of_sum(a, other), InvalidArgument);
  EXPECT_THROW(packing_of_product(a, other), InvalidArgument);
  EXPECT_TRUE(packing_of_sum(a, pair).batched);
  EXPECT_THROW(packing_of_sum(three, pair), InvalidArgument);
  EXPECT_EQ(length_of(whole), w.params->slots());
  EXPECT_TRUE(is_batched(pair));
  // packing_of_joined, which the explicit evaluator uses, does not refuse different lengths.
  EXPECT_EQ(packing_of_joined(a, other).length, 0u);
  EXPECT_FALSE(packing_of_joined(a, other).rest == 0);
  EXPECT_TRUE(packing_of_joined(a, a).rest == 0);
}

TEST(Packing, OfNumbers) {
  World w({"w52", Word::w52, 40, 1}, {});
  const Ciphertext a = packed(w, 5, true), pair = packed(w, 5, true, 2);
  const std::vector<Complex> five(5, 1.0), ten(10, 1.0), all(w.params->slots(), 1.0), six(6, 1.0);
  EXPECT_TRUE(packing_of_sum(a, Numbers{five}).rest == 0);
  EXPECT_EQ(packing_of_sum(a, Numbers{all}).length, 0u);
  EXPECT_THROW(packing_of_sum(a, Numbers{six}), InvalidArgument);
  EXPECT_TRUE(packing_of_product(packed(w, 5, false), Numbers{five}).rest == 0);
  EXPECT_TRUE(packing_of_product(pair, Numbers{ten, 2, true}).batched);
  EXPECT_THROW(packing_of_product(a, Numbers{ten, 2, true}), InvalidArgument);
  EXPECT_TRUE(packing_of_sum(a, Numbers{five, 1, false, true}).complex_values);
  EXPECT_FALSE(packing_of_sum(a, Complex(1)).rest == 0);
  EXPECT_TRUE(packing_of_sum(a, Complex(0)).rest == 0);
  EXPECT_TRUE(packing_of_sum(a, Complex(0, 1)).complex_values);
  EXPECT_TRUE(packing_of_product(a, Complex(2)).rest == 0);
  EXPECT_FALSE(packing_of_moved(a.packing).rest == 0);
}

// --- how numbers lie -----------------------------------------------------------------------------

constexpr int kLogSlots = 6;
constexpr std::size_t kSlots = std::size_t{1} << kLogSlots;

struct Random {
  std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 bits{seed};
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(bits);
  }
  std::size_t power(std::size_t most) { return std::size_t{1} << below(std::bit_width(most)); }
  double number() { return std::uniform_real_distribution<double>(-1, 1)(bits); }

  Tiling tiling() {
    const std::size_t stride = power(kSlots), window = power(stride),
                      count = power(kSlots / stride);
    return tiling_of(0, window, stride, count, kSlots);
  }
  /// `length` of 0 stands for any.
  Packing packing(std::size_t length = 0) {
    for (;;) {
      Packing out;
      out.tiling = tiling();
      const std::size_t room =
          out.tiling.window == 0 ? kSlots : std::size_t{out.tiling.window} * out.tiling.count;
      if (length > room) continue;
      const std::size_t n = length == 0 ? 1 + below(room) : length;
      out.length = n == kSlots ? 0 : static_cast<std::uint32_t>(n);
      constexpr double kRest[] = {0, 0.25, params::kUnbounded};
      if (n < room) out.rest = kRest[below(std::size(kRest))];
      return out;
    }
  }
};

/// A vector in the clear, in slots.
struct Clear {
  Packing packing;
  std::vector<Complex> slots;
};

/// A ciphertext without parts, which has what the rules read.
Ciphertext shape(const Clear& a) {
  Ciphertext out;
  out.log_slots = kLogSlots;
  out.packing = a.packing;
  out.estimate.peak = 0;
  for (const auto& x : a.slots) out.estimate.peak = std::max(out.estimate.peak, std::abs(x));
  return out;
}

Clear clear(Random& random, const Packing& packing) {
  Clear out{packing, {}};
  std::vector<Complex> numbers(length_of(shape(out)));
  for (auto& x : numbers) x = random.number();
  out.slots = to_slots(numbers, 1, packing, kSlots);
  const auto held = numbers_in_slots(packing, kSlots);
  for (std::size_t s = 0; s < kSlots; ++s) {
    if (held[s] == kNoNumber) out.slots[s] = std::min(packing.rest, 1.0) * random.number();
  }
  return out;
}

std::vector<Complex> numbers_of(const Clear& a) { return from_slots(a.slots, 1, a.packing); }

/// Every slot that is said to hold a number holds that of the first such slot, and no other is
/// above what is said of the rest.
void expect_true(const Clear& a, const char* what, unsigned seed) {
  ASSERT_TRUE(is_possible(a.packing, kLogSlots)) << what << ", seed " << seed;
  const auto again = to_slots(numbers_of(a), 1, a.packing, kSlots);
  const auto held = numbers_in_slots(a.packing, kSlots);
  for (std::size_t s = 0; s < kSlots; ++s) {
    if (held[s] == kNoNumber) {
      ASSERT_LE(std::abs(a.slots[s]), a.packing.rest + 1e-12)
          << what << ", slot " << s << ", seed " << seed;
    } else {
      ASSERT_LT(std::abs(a.slots[s] - again[s]), 1e-12)
          << what << ", slot " << s << " of " << described(a.packing, kLogSlots) << ", seed "
          << seed;
    }
  }
}

TEST(Tilings, HaveOneFormAndFollowTheirFormula) {
  Random random;
  for (int k = 0; k < 300; ++k) {
    const std::size_t stride = random.power(kSlots), window = random.power(stride),
                      count = random.power(kSlots / stride), room = window * count;
    Packing a;
    a.tiling = tiling_of(0, window, stride, count, kSlots);
    const std::size_t n = 1 + random.below(room);
    a.length = n == kSlots ? 0 : static_cast<std::uint32_t>(n);
    ASSERT_TRUE(is_possible(a, kLogSlots)) << random.seed;
    const auto held = numbers_in_slots(a, kSlots);
    for (std::size_t s = 0; s < kSlots; ++s) {
      const std::size_t number = (s / stride % count * window + s % stride) % room;
      ASSERT_EQ(held[s], number < n ? number : kNoNumber) << random.seed;
    }
    const Tiling b = random.tiling();
    Packing other = a;
    other.tiling = b;
    const bool full = other.tiling.window * other.tiling.count == a.tiling.window * a.tiling.count;
    if (full && n == room && is_possible(other, kLogSlots)) {
      EXPECT_EQ(a.tiling == b, held == numbers_in_slots(other, kSlots)) << random.seed;
    }
  }
  EXPECT_THROW(tiling_of(0, 3, 4, 1, kSlots), InvalidArgument);
  EXPECT_THROW(tiling_of(0, 8, 4, 1, kSlots), InvalidArgument);
  EXPECT_THROW(tiling_of(0, 4, 8, 16, kSlots), InvalidArgument);
}

TEST(Tilings, ThatAreNotPossible) {
  const auto possible = [](std::uint32_t length, Tiling tiling) {
    Packing a;
    a.length = length;
    a.tiling = tiling;
    return is_possible(a, kLogSlots);
  };
  EXPECT_TRUE(possible(5, {0, 8, 8, 1}));
  EXPECT_TRUE(possible(5, {3, 4, 8, 2}));
  EXPECT_FALSE(possible(65, {}));
  EXPECT_FALSE(possible(9, {0, 8, 8, 1})) << "longer than the period";
  EXPECT_FALSE(possible(0, {0, 8, 8, 1}));
  EXPECT_FALSE(possible(5, {0, 8, 16, 1})) << "not its one form";
  EXPECT_FALSE(possible(5, {0, 4, 4, 2})) << "not its one form";
  EXPECT_FALSE(possible(5, {0, 64, 64, 1})) << "not its one form";
  EXPECT_FALSE(possible(5, {0, 6, 6, 1}));
  EXPECT_FALSE(possible(5, {0, 8, 4, 1}));
  EXPECT_FALSE(possible(5, {0, 4, 32, 4})) << "more than the slots";
  EXPECT_FALSE(possible(5, {0, 4, 0x80000000, 0x80000000}));
  EXPECT_FALSE(possible(5, {0, 0, 8, 1}));
  EXPECT_FALSE(possible(5, {0, 8, 8, 0}));
}

// What the rules say of results is true of slots in the clear.
TEST(Packing, RulesHoldInTheClear) {
  Random random;
  int sums = 0, refused = 0;
  for (int k = 0; k < 2000; ++k) {
    const Clear a = clear(random, random.packing());
    const std::size_t n = length_of(shape(a));
    const Clear b = clear(random, random.packing(random.below(4) == 0 ? kSlots : n));
    Clear out = a;
    const auto each = [&](const auto& f) {
      for (std::size_t s = 0; s < kSlots; ++s) out.slots[s] = f(s);
    };
    for (const bool product : {false, true}) {
      try {
        out.packing =
            product ? packing_of_product(shape(a), shape(b)) : packing_of_sum(shape(a), shape(b));
      } catch (const InvalidArgument&) {
        const bool one_number = n == 1 && length_of(shape(b)) != 1;
        ASSERT_FALSE(is_in_order(a.packing) && is_in_order(b.packing) && !one_number)
            << random.seed;
        ++refused;
        continue;
      }
      ++sums;
      each([&](std::size_t s) {
        return product ? a.slots[s] * b.slots[s] : a.slots[s] + b.slots[s];
      });
      expect_true(out, product ? "product" : "sum", random.seed);
      if (length_of(shape(b)) == n) {
        const auto x = numbers_of(a), y = numbers_of(b), z = numbers_of(out);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_LT(std::abs(z[i] - (product ? x[i] * y[i] : x[i] + y[i])), 1e-12) << random.seed;
        }
      }
      out.packing = packing_of_joined(shape(a), shape(b));
      expect_true(out, "joined", random.seed);
    }
    std::vector<Complex> numbers(random.below(3) == 0 ? kSlots : n);
    for (auto& x : numbers) x = random.number();
    const auto beside = numbers.size() == n ? to_slots(numbers, 1, a.packing, kSlots) : numbers;
    out.packing = packing_of_sum(shape(a), Numbers{numbers});
    each([&](std::size_t s) { return a.slots[s] + beside[s]; });
    expect_true(out, "plus an array", random.seed);
    out.packing = packing_of_product(shape(a), Numbers{numbers});
    each([&](std::size_t s) { return a.slots[s] * beside[s]; });
    expect_true(out, "times an array", random.seed);
    const double c = random.below(2) == 0 ? 0 : random.number();
    out.packing = packing_of_sum(shape(a), c);
    each([&](std::size_t s) { return a.slots[s] + c; });
    expect_true(out, "plus a number", random.seed);
    out.packing = packing_of_product(shape(a), c);
    each([&](std::size_t s) { return a.slots[s] * c; });
    expect_true(out, "times a number", random.seed);

    const auto steps = static_cast<std::int64_t>(random.below(2 * kSlots)) - std::int64_t{kSlots};
    out.packing = packing_of_rotated(a.packing, steps, kSlots);
    each([&](std::size_t s) {
      return a
          .slots[(s + kSlots + static_cast<std::size_t>(steps + std::int64_t{kSlots})) % kSlots];
    });
    expect_true(out, "rotation", random.seed);
    out.packing = packing_of_neighbours(a.packing);
    each([&](std::size_t s) { return a.slots[s] + a.slots[(s + 1) % kSlots]; });
    expect_true(out, "neighbours", random.seed);
    out.packing = packing_of_scaled(a.packing);
    const Clear other = clear(random, {});
    each([&](std::size_t s) { return a.slots[s] * other.slots[s]; });
    expect_true(out, "scaled", random.seed);
    out = a;
    const std::size_t length = 1 + random.below(kSlots);
    try {
      out.packing = packing_of_length(a.packing, length, kSlots);
    } catch (const InvalidArgument&) {
      ASSERT_TRUE(!is_in_order(a.packing) && length > n) << random.seed;
      continue;
    }
    expect_true(out, "length", random.seed);
    const auto x = numbers_of(a), y = numbers_of(out);
    for (std::size_t i = 0; i < std::min(n, length) && length < kSlots; ++i) {
      ASSERT_EQ(x[i], y[i]) << random.seed;
    }
  }
  EXPECT_GT(sums, 500);
  EXPECT_GT(refused, 20);
}

TEST(Packing, NamesBothLayoutsThatDiffer) {
  Ciphertext a, b;
  a.log_slots = b.log_slots = kLogSlots;
  a.packing = packing_of_tiling(5, tiling_of(0, 4, 16, 2, kSlots), kSlots);
  b.packing = packing_of_fresh(5, kLogSlots, false, false);
  try {
    packing_of_sum(a, b);
    FAIL() << "it was accepted";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("5 numbers in 2 windows of 4 that begin every 16 slots"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("5 numbers in the first of 64 slots, behind them zeros"),
              std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace jali::ckks
