// An attacker's view of decryption's check: replies computed from bootstrapped numbers that were
// damaged, made with another key, or are not what they claim to be. Each is refused, and honest
// ones never are.
#include <bit>
#include <functional>

#include "jali/params/ckks/bootstrap_request.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

using ckks::Ciphertext;

struct Attack {
  std::string label;
  BootstrapOrder order;
  Word word;
  double precision;
  int log_slots;
};

void PrintTo(const Attack& a, std::ostream* out) { *out << a.label; }

class Altered : public ::testing::TestWithParam<Attack> {};

std::vector<Complex> checked(World& w, const Ciphertext& c) {
  return ckks::decrypt(*w.decryptor, w.evaluator->encoder(), c);
}

void set(ring::Poly& p, std::size_t limb, std::size_t k, std::uint64_t x) {
  if (p.word() == Word::w32) {
    static_cast<std::uint32_t*>(p.row(limb))[k] = static_cast<std::uint32_t>(x);
  } else {
    static_cast<std::uint64_t*>(p.row(limb))[k] = x;
  }
}

/// The ways to damage the residues of a ciphertext. Each leaves residues below their primes, as a
/// loader demands.
using Damage = std::function<void(World&, Ciphertext&)>;

std::vector<std::pair<std::string, Damage>> damages() {
  const auto one_of = [](World& w, std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(w.random);
  };
  const auto flip = [one_of](World& w, Ciphertext& c, std::size_t part) {
    ring::Poly& p = c.parts[part];
    const std::size_t limb = one_of(w, p.limbs()), k = one_of(w, p.n());
    const std::uint64_t q = w.ring->prime(p.primes()[limb]);
    const std::uint64_t bit = std::uint64_t{1} << one_of(w, std::bit_width(q) - 1);
    set(p, limb, k, (p.at(limb, 0, k) ^ bit) % q);
  };
  const auto zero_limb = [one_of](World& w, Ciphertext& c, std::size_t part) {
    ring::Poly& p = c.parts[part];
    const std::size_t limb = one_of(w, p.limbs());
    for (std::size_t k = 0; k < p.n(); ++k) set(p, limb, k, 0);
  };
  return {
      {"a bit of the first part", [=](World& w, Ciphertext& c) { flip(w, c, 0); }},
      {"a bit of the second part", [=](World& w, Ciphertext& c) { flip(w, c, 1); }},
      {"a limb of zeros in the first part", [=](World& w, Ciphertext& c) { zero_limb(w, c, 0); }},
      {"a limb of zeros in the second part", [=](World& w, Ciphertext& c) { zero_limb(w, c, 1); }},
      {"parts exchanged", [](World&, Ciphertext& c) { std::swap(c.parts[0], c.parts[1]); }},
      {"residues rotated",
       [=](World& w, Ciphertext& c) {
         ring::Poly& p = c.parts[one_of(w, 2)];
         const std::size_t limb = one_of(w, p.limbs());
         const std::uint64_t first = p.at(limb, 0, 0);
         for (std::size_t k = 0; k + 1 < p.n(); ++k) set(p, limb, k, p.at(limb, 0, k + 1));
         set(p, limb, p.n() - 1, first);
       }},
  };
}

TEST_P(Altered, RepliesAreRefusedAndHonestOnesAreNot) {
  const Attack& a = GetParam();
  World w(params::create_with_bootstrap(small_request(a.order, a.word, a.precision)),
          {a.log_slots});
  World other(w.params, {a.log_slots});
  SCOPED_TRACE("seed " + std::to_string(w.seed));
  const auto& ev = *w.evaluator;
  const int low = w.bootstrapper->plan().input_level();
  const auto v = w.vector(std::size_t{1} << a.log_slots, true);
  const auto x = w.encrypt(v, low, 0, 1, {0.6, 1.0});
  const auto square = [&](const Ciphertext& y) { return ev.relinearise_rescale(ev.square(y)); };
  const auto y = w.bootstrapper->apply(x);
  std::vector<Ciphertext> replies;
  for (int level = y.level; level >= 0; --level) {
    const auto at = level < y.level ? ev.adjust(y, level, w.params->scale(level)) : ev.copy(y);
    replies.push_back(ev.copy(at));
    replies.push_back(ev.sub(ev.add(at, at), at));
    if (level < 1) continue;
    replies.push_back(square(at));
    replies.push_back(ev.relinearise_rescale(ev.multiply(at, at)));
    if (level < 2) continue;
    replies.push_back(square(square(at)));  // at level 0 it was returned whatever was done to it
    replies.push_back(ev.add(square(square(at)), square(square(at))));
  }
  const auto ways = damages();
  for (const Ciphertext& reply : replies) {
    SCOPED_TRACE("level " + std::to_string(reply.level) + ", peak " +
                 std::to_string(reply.estimate.peak));
    EXPECT_NO_THROW(checked(w, reply));
    for (const auto& [what, damage] : ways) {
      Ciphertext bad = ev.copy(reply);
      damage(w, bad);
      EXPECT_THROW(checked(w, bad), WrongDecryption) << what;
    }
    Ciphertext theirs = ev.copy(reply);
    theirs.key_id = {};
    EXPECT_THROW(checked(other, theirs), WrongDecryption) << "another key";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Attacks, Altered,
    ::testing::Values(Attack{"slots_w52_22", BootstrapOrder::slots_first, Word::w52, 22, 9},
                      Attack{"slots_w32_14_few", BootstrapOrder::slots_first, Word::w32, 14, 2},
                      Attack{"slots_w64_8", BootstrapOrder::slots_first, Word::w64, 8, 9},
                      Attack{"raise_w52_20", BootstrapOrder::raise_first, Word::w52, 20, 9},
                      Attack{"raise_w32_14_few", BootstrapOrder::raise_first, Word::w32, 14, 1}),
    [](const auto& test_info) { return test_info.param.label; });

// A magnitude and peak of 1 are claimed of numbers of 18. The result was 17.8, and its powers were
// returned, too.
TEST(FalseClaims, AreRefusedAfterBootstrapping) {
  for (const auto order : {BootstrapOrder::slots_first, BootstrapOrder::raise_first}) {
    for (const int log_slots : {9, 1}) {
      World w(params::create_with_bootstrap(small_request(order, Word::w52, 14)), {log_slots});
      const auto& ev = *w.evaluator;
      const int low = w.bootstrapper->plan().input_level();
      std::vector<Complex> v(std::size_t{1} << log_slots, 0.5);
      for (const double large : {1.5, 3.0, 18.0}) {
        v[1] = large;
        auto x = w.encrypt(v, low, 0, 1, {large, large});
        x.estimate.message = x.estimate.peak = 1;
        EXPECT_THROW(checked(w, x), WrongDecryption);
        const auto y = w.bootstrapper->apply(x);
        EXPECT_THROW(checked(w, y), WrongDecryption) << large;
        const auto z = ev.relinearise_rescale(ev.square(y));
        EXPECT_THROW(checked(w, z), WrongDecryption) << large;
        EXPECT_THROW(checked(w, ev.relinearise_rescale(ev.square(z))), WrongDecryption) << large;
        EXPECT_THROW(checked(w, w.bootstrapper->apply(x, -1, {}, 2)), WrongDecryption) << large;
      }
    }
  }
}

// Where the bound on the error is above the numbers, the check is with the range that was declared.
// Imaginary parts count, too.
TEST(FalseClaims, AreComparedWithTheRangeIfTheBoundSaysNothing) {
  World w({"range", Word::w52, 40, 3, precise(BootstrapOrder::slots_first, 2, 2, 40)}, {});
  const std::vector<Complex> v(w.params->slots(), 0.5);
  auto x = w.encrypt(v, 3, 0, 1, {0.5, 0.5});
  x.estimate.error = 1e6 * x.scale;
  EXPECT_NO_THROW(checked(w, x));
  x.estimate.real = true;
  EXPECT_NO_THROW(checked(w, x));
  x.estimate.message = x.estimate.peak = 0.2;
  EXPECT_THROW(checked(w, x), WrongDecryption);
  auto z = w.encrypt(std::vector<Complex>(v.size(), {0, 0.9}), 3, 0, 1, {0.9, 0.9});
  z.estimate.error = 1e6 * z.scale;
  EXPECT_NO_THROW(checked(w, z));
  z.estimate.real = true;
  z.estimate.peak = 0.8;
  EXPECT_THROW(checked(w, z), WrongDecryption);
  // As large a margin as the claimed precision needs: errors of many deviations are honest.
  auto noisy = w.encrypt(v, 3, 0, 1, {0.5, 0.5});
  noisy.estimate.peak = noisy.estimate.message = 0.01;
  noisy.estimate.error = 1e6 * noisy.scale;
  noisy.estimate.variance = noisy.scale * noisy.scale * 1e-6 / static_cast<double>(w.params->n());
  EXPECT_NO_THROW(checked(w, noisy));
}

// Fresh numbers, in as many shapes as there are. The bound fails for none.
TEST(HonestReplies, AreNeverRefused) {
  for (const auto& [order, bits] :
       {std::pair{BootstrapOrder::slots_first, 14.0}, std::pair{BootstrapOrder::raise_first, 14.0},
        std::pair{BootstrapOrder::slots_first, 6.0}}) {
    World w(params::create_with_bootstrap(small_request(order, Word::w52, bits)), {});
    const auto& ev = *w.evaluator;
    const int low = w.bootstrapper->plan().input_level();
    const std::size_t slots = w.params->slots(), batch = 4;
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE("kind " + std::to_string(kind) + ", seed " + std::to_string(w.seed));
      std::vector<Complex> v(batch * slots);
      std::uniform_real_distribution<double> uniform(-1, 1);
      for (std::size_t j = 0; j < v.size(); ++j) {
        const bool sign = (w.random() & 1) != 0;
        v[j] = kind == 0   ? uniform(w.random)
               : kind == 1 ? (sign ? 1.0 : -1.0)
               : kind == 2 ? 1.0
                           : (j % 97 == 0 ? 1.0 : 0.0);
      }
      auto y = w.bootstrapper->apply(w.encrypt(v, low, 0, batch, {1.0, 1.0}));
      EXPECT_NO_THROW(checked(w, y));
      for (int power = 2; y.level > 0; power *= 2) {
        y = ev.relinearise_rescale(ev.square(y));
        EXPECT_NO_THROW(checked(w, y)) << power;
      }
    }
  }
}

}  // namespace
}  // namespace jali::bootstrap::testing
