// Random programs against integers of 128 bits: every result is right, or it is refused for a
// reason that holds.
#include <cstdlib>

#include "world.h"

namespace jali::discrete {
namespace {

constexpr int kBrief = 12;  // programs of each set of parameters
/// Of each set. JALI_PROGRAMS sets their number over all sets; `make check` runs 40,000.
int programs(std::size_t sets) {
  const char* text = std::getenv("JALI_PROGRAMS");
  return text == nullptr ? kBrief : std::max(kBrief, std::atoi(text) / static_cast<int>(sets) + 1);
}

std::vector<Case> cases();

class DiscreteRandom : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
};

/// A ciphertext, and what it holds.
struct Tracked {
  Ciphertext cipher;
  Numbers clear;
};

TEST_P(DiscreteRandom, ProgramsAreRightOrRefused) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator({1, -2});
  const PlainModulus& t = w.params->modulus();
  const bool slots = w.params->packing() == Packing::slots;
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  int computed = 0, ranges = 0, depths = 0, wrapped = 0;
  const int count = programs(cases().size());
  for (int program = 0; program < count; ++program) {
    std::vector<Tracked> pool;
    // Numbers that tests may hold exactly: sums and products are taken modulo T where they wrap.
    const int bits = static_cast<int>(pick(1, 12));
    const std::int64_t b = std::min((std::int64_t{1} << bits), t.high() / 2);
    for (int i = 0; i < 2; ++i) {
      const int level = static_cast<int>(pick(0, w.params->top()));
      const Numbers x = w.numbers(rng, -b / (i + 1), b);
      pool.push_back({w.encrypt(x, -b, b, level), x});
    }
    if (program % 3 == 0) {
      const Numbers x = w.numbers(rng, t.low(), t.high());
      pool.push_back({w.encrypt_residues(x), x});
    }
    for (int step = 0; step < 10; ++step) {
      const Tracked& x = pool[rng() % pool.size()];
      const Tracked& y = pool[rng() % pool.size()];
      const Overflow overflow = rng() % 3 == 0 ? Overflow::wrap : Overflow::refuse;
      const std::int64_t c = pick(-9, 9);
      const Numbers weights = w.numbers(rng, -3, 3);
      const int steps = rng() % 2 == 0 ? 1 : -2;
      const auto op = rng() % (slots ? 11 : 7);
      const auto compute = [&]() -> Ciphertext {
        const auto plain = [&] { return w.encoder().encode_clear(weights, 1); };
        switch (op) {
          case 0: return e.add(x.cipher, y.cipher, overflow);
          case 1: return e.sub(x.cipher, y.cipher, overflow);
          case 2: return e.negate(x.cipher, overflow);
          case 3: return e.add_integer(x.cipher, c, overflow);
          case 4: return e.multiply_integer(x.cipher, c, overflow);
          case 5: return e.sub_plain(x.cipher, plain(), overflow);
          case 6: return e.drop_to(x.cipher, static_cast<int>(pick(0, x.cipher.level)));
          case 7: return e.rotate(x.cipher, steps);
          case 8: return e.swap_rows(x.cipher);
          case 9: return e.multiply_plain(x.cipher, plain(), overflow);
          default: return e.multiply(x.cipher, y.cipher, overflow);
        }
      };
      const auto exact = [&](std::size_t i) -> Wide {
        const Wide u = x.clear[i], v = y.clear[i];
        switch (op) {
          case 0: return u + v;
          case 1: return u - v;
          case 2: return -u;
          case 3: return u + c;
          case 4: return u * c;
          case 5: return u - weights[i];
          case 9: return u * weights[i];
          case 10: return u * v;
          default: return u;
        }
      };
      const Numbers turned = op == 7   ? rotated(x.clear, steps)
                             : op == 8 ? swapped(x.clear)
                                       : x.clear;
      try {
        Ciphertext result = compute();
        const Numbers got = w.decrypt(result);
        Numbers expected(kN);
        for (std::size_t i = 0; i < kN; ++i) {
          const Wide v = op == 7 || op == 8 ? Wide{turned[i]} : exact(i);
          expected[i] = result.estimate.range.wraps ? residue(v, t) : static_cast<std::int64_t>(v);
          if (!result.estimate.range.wraps) {
            ASSERT_TRUE(Wide{expected[i]} == v);
          }
        }
        ASSERT_EQ(got, expected) << "operation " << op << " of program " << program;
        const auto measured = w.decryptor.measure(result);
        ASSERT_LE(measured.slot, result.estimate.slot) << op;
        ASSERT_LE(measured.coefficient, result.estimate.largest()) << op;
        wrapped += result.estimate.range.wraps;
        ++computed;
        pool.push_back({std::move(result), std::move(expected)});
      } catch (const RangeExceeded&) {
        ASSERT_EQ(overflow, Overflow::refuse);
        ++ranges;
      } catch (const DepthExhausted&) {
        ++depths;
      }
    }
  }
  EXPECT_GT(computed, 50);
  EXPECT_GT(wrapped, 0);
  RecordProperty("refusals",
                 std::to_string(ranges) + " of range, " + std::to_string(depths) + " of depth");
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (Case& c : slot_setups()) {
    if (c.device == "cpu") out.push_back(c);
  }
  out.push_back({"coefficients_2_32", Word::w32, std::uint64_t{1} << 32, 0, 1, Multiplication::bgv,
                 Packing::coefficients});
  out.push_back(
      {"coefficients_2_64", Word::w52, kTwoTo64, 0, 2, Multiplication::bgv, Packing::coefficients});
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteRandom, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::discrete
