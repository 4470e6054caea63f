#include "jali/params/discrete/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/params/discrete/noise.h"
#include "jali/params/gadget.h"
#include "jali/params/name.h"
#include "jali/params/prime_pool.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::discrete {

namespace {

using params::Gadget;
using params::PrimePool;

constexpr std::uint64_t kFermat = 65537;  // for rings up to log_n 15
constexpr std::uint64_t kEveryRing = 786433;  // 3 2^18 + 1
constexpr double kNoLimit = 1e9;
/// So many bits more than the least are tried for a level, in steps of a quarter.
constexpr double kMostExtra = 16;

bool is_known(int security) { return security == 128 || security == 192 || security == 256; }

void check_ranges(const Literal& l) {
  require<InvalidArgument>(
      params::is_name(l.name),
      "the name must be UTF-8 without control characters: use letters and digits");
  require<InvalidArgument>(l.depth >= 0 && l.depth <= 200, [&] {
    return "depth must be 0 to 200, not " + std::to_string(l.depth);
  });
  require<InvalidArgument>(
      l.log_n == 0 || (l.log_n >= params::kMinLogN && l.log_n <= params::kMaxLogN),
      [&] { return "log_n must be 10 to 17, or left out, not " + std::to_string(l.log_n); });
  require<InvalidArgument>(l.dnum >= 0, "dnum must be positive, or left out");
  require<InvalidArgument>(
      l.multiplication == Multiplication::bgv || l.multiplication == Multiplication::bfv,
      "multiplication must be \"bgv\" or \"bfv\"");
  require<InvalidArgument>(l.packing == Packing::slots || l.packing == Packing::coefficients,
                           "packing must be \"slots\" or \"coefficients\"");
  require<InvalidArgument>(
      !l.word || *l.word == Word::w32 || *l.word == Word::w52 || *l.word == Word::w64,
      "word must be w32, w52 or w64");
  require<InvalidArgument>(is_known(l.security) || l.security == 0,
                           "security must be 128, 192 or 256");
  if (l.security == 0) {
    require<InsecureParams>(std::string_view(l.name).starts_with("insecure_"),
                            "security 0 is for experiments and needs a name that begins with "
                            "\"insecure_\": use security=128");
    require<InvalidArgument>(l.log_n != 0,
                             "security 0 leaves nothing to choose log_n by: give log_n");
  }
  require<InvalidArgument>(!l.modulus || l.integers == 0,
                           "modulus and integers are two ways to say the same: give one of them");
  require<InvalidArgument>(l.integers == 0 || (l.integers >= 2 && l.integers <= kMostIntegers),
                           [&] {
                             return "integers must be 2 to " + std::to_string(kMostIntegers) +
                                    " bits, not " + std::to_string(l.integers);
                           });
}

/// The largest log_n for which the modulus has slots.
int largest_ring(std::uint64_t modulus) { return std::countr_zero(modulus - 1) - 1; }

void check_modulus(const Literal& l) {
  if (!l.modulus) return;
  const std::uint64_t t = *l.modulus;
  if (l.packing == Packing::coefficients) {
    const bool power_of_two = t != 1 && (t & (t - 1)) == 0;
    require<InvalidArgument>(power_of_two || (t >= 2 && t >> 61 == 0), [&] {
      return "a modulus of coefficients is a number from 2 to 2^61 - 1 or a power of two up to "
             "2^64, not " +
             std::to_string(t);
    });
    return;
  }
  require<InvalidArgument>(
      t > 2 && t >> word_prime_bits(Word::w64) == 0 && arith::is_prime(t) &&
          largest_ring(t) >= params::kMinLogN,
      [&] {
        return "numbers in slots need a modulus that is a prime, 1 modulo 2048 or more, and below "
               "2^61, and " +
               (t == kTwoTo64 ? std::string("2^64") : std::to_string(t)) +
               " is none: use modulus=65537, integers=" +
               std::to_string(std::clamp(t == kTwoTo64 ? 64 : static_cast<int>(std::bit_width(t)),
                                         2, kMostIntegers)) +
               " for a prime of such a size, or packing=\"coefficients\" for sums modulo any "
               "number";
      });
  require<InvalidArgument>(l.log_n <= largest_ring(t), [&] {
    return "modulus " + std::to_string(t) + " has slots in rings up to log_n " +
           std::to_string(largest_ring(t)) +
           ": leave log_n out, or use modulus=786433, which has "
           "them in every ring";
  });
}

double bound(const Literal& l, int log_n) {
  return l.security == 0 ? kNoLimit : params::max_log_qp(log_n, l.security);
}

/// T for one ring and word, and its primes.
struct PlainPrimes {
  std::uint64_t modulus = 0;
  std::vector<std::uint64_t> primes;
};

/// Empty if the word or the ring has no such primes.
std::optional<PlainPrimes> plain_primes(const Literal& l, int log_n, Word word) {
  if (l.packing == Packing::coefficients) {
    if (l.modulus) return PlainPrimes{*l.modulus, {}};
    return PlainPrimes{std::uint64_t{1} << (l.integers == 0 ? 32 : l.integers), {}};
  }
  const std::uint64_t m = std::uint64_t{2} << log_n;
  const int most_bits = word_prime_bits(word);
  if (l.integers == 0) {
    const std::uint64_t t =
        l.modulus.value_or(log_n <= largest_ring(kFermat) ? kFermat : kEveryRing);
    if (log_n > largest_ring(t) || t >> most_bits != 0) return std::nullopt;
    return PlainPrimes{t, {t}};
  }
  // The product of k primes above 2^(integers / k).
  for (int k = 1; k <= 3; ++k) {
    PlainPrimes out{1, {}};
    std::uint64_t from = static_cast<std::uint64_t>(
        std::ceil(params::portable_exp2(static_cast<double>(l.integers) / k) * (1 + 1e-9)));
    for (int i = 0; i < k && out.modulus != 0; ++i) {
      const auto t = arith::prime_from(std::max(from, m), m, std::uint64_t{1} << most_bits);
      std::uint64_t product = 0;
      if (!t || __builtin_mul_overflow(out.modulus, *t, &product) || product >> 61 != 0) {
        out.modulus = 0;
        break;
      }
      out.primes.push_back(*t);
      out.modulus = product;
      from = *t + 1;
    }
    if (out.modulus != 0) return out;
  }
  return std::nullopt;
}

double log2_modulus(std::uint64_t t) {
  return t == kTwoTo64 ? 64 : params::portable_log2(static_cast<double>(t));
}

/// The bits that a level takes at least: a product divides a noise of T M^2 to about M, where M is
/// the bound on the rounding of a division.
double level_bits(double log_t, int log_n) {
  const double n = std::ldexp(1.0, log_n);
  const double tail = rlwe::slot_tail(log_n, rlwe::kSourceBits);
  const double rounding = tail * std::sqrt(n / 12) * (1 + tail * std::sqrt(2 * n / 3));
  return log_t + params::portable_log2(rounding) + 2;
}

/// The bits that the only level takes at least, if there are no products.
double single_level_bits(double log_t, int log_n) {
  const double n = std::ldexp(1.0, log_n);
  const double tail = rlwe::coefficient_tail(log_n, rlwe::kSourceBits);
  const double fresh = 2 * tail * std::sqrt(rlwe::kErrorVariance * n);
  return log_t + params::portable_log2(fresh) + 5;
}

bool has_products(const Params& p) { return p.packing() == Packing::slots && p.depth() > 0; }

/// Whether the parameters can do the circuit to its end.
bool serves(const Params& p) {
  const auto steps = static_cast<std::size_t>(has_products(p) ? p.depth() : 4);
  const std::vector<double> budgets = circuit_budgets(p);
  return budgets.size() == steps + 1 &&
         std::all_of(budgets.begin() + 1, budgets.end(), [](double bits) { return bits > 0.5; });
}

/// The digits and P, as for CKKS: the fewest digits for which P fits without much noise. If there
/// are none, the fewest for which P fits.
std::optional<Gadget> best_gadget(std::span<const std::uint64_t> q, int dnum, double max_bits,
                                  std::size_t n, const PrimePool& pool) {
  if (dnum != 0) {
    if (static_cast<std::size_t>(dnum) > q.size()) return std::nullopt;
    return params::choose_gadget(q, static_cast<std::size_t>(dnum), max_bits, n, pool);
  }
  std::optional<Gadget> best;
  for (std::size_t d = 1; d <= q.size(); ++d) {
    auto gadget = params::choose_gadget(q, d, max_bits, n, pool);
    if (!gadget) continue;
    const bool good = gadget->noise_ratio <= params::kGoodNoiseRatio;
    if (good || !best) best = std::move(gadget);
    if (good) break;
  }
  return best;
}

/// Primes for BFV's product: their product exceeds 4 N T Q.
std::optional<std::vector<std::uint64_t>> product_basis(double bits, PrimePool& pool) {
  std::vector<std::uint64_t> out;
  for (double sum = 0; sum <= bits + 1e-3;) {
    const auto p = pool.take_below(params::portable_exp2(pool.max_bits()));
    if (!p) return std::nullopt;
    out.push_back(*p);
    sum += params::portable_log2(static_cast<double>(*p));
  }
  return out;
}

/// What came of trying one ring and one word.
struct Attempt {
  ParamsPtr params;
  bool too_large = false;  // log PQ is beyond the table
};

Attempt attempt(const Literal& l, int log_n, Word word, const PlainPrimes& plain,
                const Checkpoint& checkpoint) {
  Attempt out;
  if (l.dnum != 0) {
    // If the dnum asked for is the one that would be chosen, the result is the same as without
    // asking. So a literal with every choice written in makes the same parameters.
    Literal open = l;
    open.dnum = 0;
    Attempt same = attempt(open, log_n, word, plain, checkpoint);
    if (same.params && same.params->dnum() == static_cast<std::size_t>(l.dnum)) return same;
  }
  const double log_t = log2_modulus(plain.modulus), max_bits = bound(l, log_n);
  const bool products = l.depth > 0 && l.packing == Packing::slots;
  const double least = products ? level_bits(log_t, log_n) : single_level_bits(log_t, log_n);
  const PrimePool fresh = [&] {
    PrimePool pool(word, log_n);
    for (const std::uint64_t t : plain.primes) pool.take(t);
    return pool;
  }();
  const std::size_t n = std::size_t{1} << log_n;
  double tried = 0;
  for (double extra = 0; extra <= kMostExtra; extra += 0.25) {
    if (checkpoint) checkpoint();
    PrimePool pool = fresh;
    // The largest primes of a word are a little below its bound.
    const int k = static_cast<int>(std::ceil((least + extra) / (pool.max_bits() - 0.25)));
    const double bits = std::max((least + extra) / k, pool.min_bits());
    if (k * bits <= tried) continue;  // the smallest primes of the word are larger
    tried = k * bits;
    Choice choice;
    choice.modulus = plain.modulus;
    choice.modulus_primes = plain.primes;
    choice.spec.log_n = log_n;
    choice.spec.word = word;
    choice.spec.security = l.security;
    for (int i = 0; i < k * (l.depth + 1); ++i) {
      const auto q = pool.take_near(params::portable_exp2(bits));
      if (!q) return out;
      if (plain.modulus > 1 && plain.modulus % *q == 0) {
        --i;  // Q and T have no factor in common
        continue;
      }
      choice.spec.q.push_back(*q);
    }
    for (int level = 0; level <= l.depth; ++level) {
      auto& primes = choice.spec.levels.emplace_back();
      for (int i = 0; i < k * (level + 1); ++i) primes.push_back(static_cast<PrimeIndex>(i));
    }
    auto gadget = best_gadget(choice.spec.q, l.dnum, max_bits, n, pool);
    if (!gadget) {
      out.too_large = true;
      return out;
    }
    choice.spec.p = gadget->p;
    choice.spec.digit_begin = gadget->digit_begin;
    if (l.multiplication == Multiplication::bfv) {
      for (const std::uint64_t p : choice.spec.p) pool.take(p);
      const double log_q = std::accumulate(
          choice.spec.q.begin(), choice.spec.q.end(), 0.0, [](double sum, std::uint64_t q) {
            return sum + params::portable_log2(static_cast<double>(q));
          });
      auto basis = product_basis(log_q + log_t + log_n + 2, pool);
      if (!basis) return out;
      choice.product_primes = std::move(*basis);
    }
    ParamsPtr made = ParamsBuilder::build(l, choice);
    if (serves(*made)) {
      out.params = std::move(made);
      return out;
    }
  }
  return out;
}

/// The words to try, best first: one prime a level is fastest.
std::vector<Word> words(const Literal& l, double bits) {
  if (l.word) return {*l.word};
  const bool single = bits <= word_prime_bits(Word::w64) - 1;
  if (bits > word_prime_bits(Word::w52) - 1 && single) return {Word::w64, Word::w52};
  return {Word::w52, Word::w64};
}

struct Outcome {
  ParamsPtr params;
  bool too_large = false;
  bool has_modulus = false;  // whether a ring that was tried has the modulus
};

Outcome search(const Literal& l, const Checkpoint& checkpoint) {
  Outcome out;
  const int low = l.log_n != 0 ? l.log_n : params::kMinLogN;
  const int high = l.log_n != 0 ? l.log_n : params::kMaxLogN;
  for (int log_n = low; log_n <= high; ++log_n) {
    // The size of T does not depend on the word, but for some bits.
    const double log_t = l.integers != 0 ? l.integers : l.modulus ? log2_modulus(*l.modulus) : 16;
    for (const Word word : words(l, level_bits(log_t, log_n))) {
      const auto plain = plain_primes(l, log_n, word);
      if (!plain) continue;
      out.has_modulus = true;
      // A cheap necessary condition: Q alone fits.
      const double least = single_level_bits(log2_modulus(plain->modulus), log_n) * (l.depth + 1);
      if (least - 5 > bound(l, log_n)) {
        out.too_large = true;
        continue;
      }
      const Attempt tried = attempt(l, log_n, word, *plain, checkpoint);
      out.too_large |= tried.too_large;
      out.params = tried.params;
      if (out.params) return out;
    }
  }
  return out;
}

std::string shown(const Literal& l) {
  std::string out = "depth " + std::to_string(l.depth);
  if (l.integers != 0) return out + " with integers of " + std::to_string(l.integers) + " bits";
  if (!l.modulus) return out;
  return out + " with modulus " + (*l.modulus == kTwoTo64 ? "2^64" : std::to_string(*l.modulus));
}

/// Throws the error that says why nothing serves `l`, and what would.
[[noreturn]] void refuse(const Literal& l, const Outcome& outcome, const Checkpoint& checkpoint) {
  std::vector<std::string> ways;
  const auto serve = [&](const Literal& other) { return search(other, checkpoint).params; };
  const auto consider = [&](Literal other, const std::string& way) {
    if (const auto found = serve(other)) {
      ways.push_back(way + (l.log_n != 0 && other.log_n == 0
                                ? " (gives log_n " + std::to_string(found->log_n()) + ")"
                                : ""));
    }
  };
  if (l.log_n != 0 && l.security != 0) {
    Literal other = l;
    other.log_n = 0;
    consider(other, "leave log_n out");
  }
  if (l.dnum != 0) {
    Literal other = l;
    other.dnum = 0;
    consider(other, "leave dnum out");
  }
  if (l.word) {
    Literal other = l;
    other.word.reset();
    consider(other, "leave word out");
  }
  if (l.modulus && l.packing == Packing::slots && *l.modulus != kEveryRing) {
    Literal other = l;
    other.modulus = kEveryRing;
    consider(other, "use modulus=786433, which has slots in every ring");
  }
  // The largest depth that fits, by bisection.
  int low = -1, high = l.depth;
  while (high - low > 1) {
    Literal other = l;
    other.depth = low + (high - low) / 2;
    (serve(other) ? low : high) = other.depth;
  }
  if (low >= 0) ways.push_back("use depth <= " + std::to_string(low));
  if (ways.empty()) ways.push_back("use a smaller depth, modulus or security");
  std::string message;
  if (outcome.too_large) {
    message = "the circuit needs more than is secure: " + shown(l);
    if (l.modulus && l.packing == Packing::slots && l.log_n == 0 &&
        largest_ring(*l.modulus) < params::kMaxLogN) {
      message +=
          ", which has slots in rings up to log_n " + std::to_string(largest_ring(*l.modulus));
    }
    message += l.log_n != 0 ? ", at log_n " + std::to_string(l.log_n) : std::string();
    message += ", at security " + std::to_string(l.security) + ": ";
  } else {
    message = "there are no primes for " + shown(l) +
              (l.word ? " in word " + std::string(word_name(*l.word)) : std::string()) +
              (l.log_n != 0 ? " at log_n " + std::to_string(l.log_n) : std::string()) + ": ";
  }
  for (std::size_t i = 0; i < ways.size(); ++i) message += (i == 0 ? "" : " or ") + ways[i];
  if (outcome.too_large) throw InsecureParams(message);
  throw InvalidArgument(message);
}

}  // namespace

ParamsPtr choose(const Literal& literal, const Checkpoint& checkpoint) {
  check_ranges(literal);
  check_modulus(literal);
  const Outcome outcome = search(literal, checkpoint);
  if (!outcome.params) refuse(literal, outcome, checkpoint);
  return outcome.params;
}

ParamsPtr choose_written(const Literal& literal) {
  check_ranges(literal);
  check_modulus(literal);
  require<InvalidArgument>(literal.log_n != 0 && literal.word && literal.dnum != 0 &&
                               (literal.modulus || literal.integers != 0),
                           "log_n, word, dnum or the modulus is not written");
  const Outcome outcome = search(literal, {});
  require<InsecureParams>(outcome.params || !outcome.too_large, [&] {
    return "the moduli are larger than security " + std::to_string(literal.security) +
           " allows at log_n " + std::to_string(literal.log_n);
  });
  require<InvalidArgument>(outcome.params != nullptr, "there are no primes for these levels");
  return outcome.params;
}

std::vector<double> circuit_budgets(const Params& params) {
  const NoiseModel model(params);
  const bool products = has_products(params);
  Known x{params.top(), params.factor(params.top()), model.fresh_public({0, 0, false})};
  std::vector<double> out{model.budget(x.estimate, x.level)};
  for (int i = 0; i < (products ? params.depth() : 4); ++i) {
    x.estimate = model.add(x.estimate, x.estimate, Overflow::wrap);
    if (products) {
      if (x.level == 0 && params.multiplication() == Multiplication::bgv) break;
      const int level = model.product_level(x, x, true, Overflow::wrap);
      x = model.product(x, x, true, level, Overflow::wrap);
    }
    out.push_back(model.budget(x.estimate, x.level));
  }
  return out;
}

}  // namespace jali::discrete
