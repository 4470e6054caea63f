#include "jali/params/ckks/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "jali/base/error.h"
#include "jali/params/name.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

constexpr double kNoLimit = 1e9;
/// log2 of the largest probability of a coefficient beyond the range K that parameters may have.
constexpr double kMaxLogFailure = -128;

void check_ranges(const ckks::Literal& l) {
  require<InvalidArgument>(
      is_name(l.name), "the name must be UTF-8 without control characters: use letters and digits");
  require<InvalidArgument>(l.depth >= 0 && l.depth <= 200, [&] {
    return "depth must be 0 to 200, not " + std::to_string(l.depth);
  });
  require<InvalidArgument>(l.scale_bits >= 15 && l.scale_bits <= 120, [&] {
    return "scale_bits must be 15 to 120, not " + number(l.scale_bits);
  });
  require<InvalidArgument>(l.integer_bits >= 0 && l.integer_bits <= 120, [&] {
    return "integer_bits must be 0 to 120, not " + number(l.integer_bits);
  });
  require<InvalidArgument>(l.log_n == 0 || (l.log_n >= kMinLogN && l.log_n <= kMaxLogN), [&] {
    return "log_n must be 10 to 17, or left out, not " + std::to_string(l.log_n);
  });
  require<InvalidArgument>(l.dnum >= 0, "dnum must be positive, or left out");
  require<InvalidArgument>(
      !l.word || *l.word == Word::w32 || *l.word == Word::w52 || *l.word == Word::w64,
      "word must be w32, w52 or w64");
  const bool known = l.security == 128 || l.security == 192 || l.security == 256;
  require<InvalidArgument>(known || l.security == 0, "security must be 128, 192 or 256");
  if (!known) {
    require<InsecureParams>(std::string_view(l.name).starts_with("insecure_"),
                            "security 0 is for experiments and needs a name that begins with "
                            "\"insecure_\": use security=128");
    require<InvalidArgument>(l.log_n != 0,
                             "security 0 leaves nothing to choose log_n by: give log_n");
  }
}

bool one_of(int x, std::initializer_list<int> list) { return std::ranges::count(list, x) != 0; }

void check_bootstrap(const ckks::Literal& l) {
  if (!l.bootstrap) return;
  const BootstrapLiteral& b = *l.bootstrap;
  require<InvalidArgument>(
      b.order == BootstrapOrder::raise_first || b.order == BootstrapOrder::slots_first,
      "the order of a bootstrapping is raise_first or slots_first");
  require<InvalidArgument>(b.weight >= 1 && b.weight <= 1024, [&] {
    return "the sparse secret's weight must be 1 to 1024, not " + std::to_string(b.weight);
  });
  require<InvalidArgument>(b.range >= 1 && b.range <= 128, [&] {
    return "the range K of the modular reduction must be 1 to 128, not " + std::to_string(b.range);
  });
  require<InvalidArgument>(b.degree >= 2 && b.degree <= 254 && b.degree % 2 == 0, [&] {
    return "the degree of the cosine must be even, 2 to 254, not " + std::to_string(b.degree);
  });
  require<InvalidArgument>(b.doublings >= 0 && b.doublings <= 8, [&] {
    return "doublings must be 0 to 8, not " + std::to_string(b.doublings);
  });
  require<InvalidArgument>(one_of(b.inverse_sine, {1, 3, 5, 7}), [&] {
    return "inverse_sine must be 1 (none), 3, 5 or 7, not " + std::to_string(b.inverse_sine);
  });
  require<InvalidArgument>(
      b.cts_levels >= 1 && b.cts_levels <= 8 && b.stc_levels >= 1 && b.stc_levels <= 8,
      "coefficients to slots and slots to coefficients take 1 to 8 levels each");
  require<InvalidArgument>(b.ratio_bits >= 2 && b.ratio_bits <= l.integer_bits, [&] {
    return "ratio_bits " + number(b.ratio_bits) + " must be at least 2 and at most integer_bits, " +
           number(l.integer_bits) + ": ask for more integer_bits";
  });
  require<InvalidArgument>(
      b.head_bits >= 0 && b.head_bits <= 16 && b.head_bits % 2 == 0 &&
          b.head_bits <= 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(b.degree))) - 4,
      "head_bits must be even, 0 to 16, and small enough for the cosine's powers");
  for (double bits : {b.cts_bits, b.mod_bits, b.stc_bits}) {
    require<InvalidArgument>(bits >= 20 && bits <= 120, [&] {
      return "levels of bootstrapping take 20 to 120 bits each, not " + number(bits);
    });
  }
  require<InvalidArgument>(l.depth >= 1 && l.depth >= b.input_level() + 1, [&] {
    return "bootstrapping needs a depth of at least " + std::to_string(b.input_level() + 1) +
           ": it would leave nothing to compute with";
  });
  if (l.security == 0) return;
  const double failure =
      log2_bootstrap_failure(b.weight, b.range, std::size_t{1} << (l.log_n ? l.log_n : kMaxLogN));
  require<InvalidArgument>(failure <= kMaxLogFailure, [&] {
    return "a range of " + std::to_string(b.range) + " for a secret of weight " +
           std::to_string(b.weight) + " fails with a probability of up to 2^" + number(failure) +
           ": use a larger range";
  });
}

/// Finds parameters for one ring and one word. If there are none, it tells how large they would be.
class Attempt {
 public:
  Attempt(const ckks::Literal& l, int log_n, Word word, double max_bits,
          const Checkpoint& checkpoint)
      : literal_(l),
        checkpoint_(checkpoint),
        request_{word, log_n, l.depth, l.scale_bits, l.integer_bits},
        max_bits_(max_bits),
        dnum_(static_cast<std::size_t>(l.dnum)),
        fresh_(word, log_n) {}

  /// Tries tables of one prime a level. False if there is no such table, or none that fits.
  bool simple() {
    for (const LevelPlan& plan : plan_whole(request_, fresh_)) {
      if (plan.mains.back() == plan.mains[0] + literal_.depth) consider({plan}, kSimpleDrift);
      if (best_) return true;
    }
    return false;
  }
  /// Tries tables with several primes a level, and with rational rescaling.
  bool any() {
    if (dnum_ != 0) {
      // If the dnum asked for is the one that would be chosen, the result is the same as without
      // asking. So a literal with every choice written in makes the same parameters.
      Attempt open = *this;
      open.dnum_ = 0;
      if (open.any() && open.best_->choice.gadget.dnum() == dnum_) {
        best_ = std::move(open.best_);
        return true;
      }
    }
    for (std::size_t shortfall = 0; shortfall < std::size(kShortfalls); ++shortfall) {
      const double max_drift = shortfall + 1 < std::size(kShortfalls) ? kGoodDrift : kMaxDrift;
      std::vector<LevelPlan> plans = plan_rational(request_, fresh_, shortfall);
      if (shortfall == 0) {
        auto whole = plan_whole(request_, fresh_);
        plans.insert(plans.end(), whole.begin(), whole.end());
        std::stable_sort(plans.begin(), plans.end(),
                         [](const LevelPlan& a, const LevelPlan& b) { return a.cost < b.cost; });
      }
      consider(plans, max_drift);
      if (best_) return true;
    }
    if (strays_.empty()) return false;
    std::stable_sort(strays_.begin(), strays_.end(),
                     [](const Stray& a, const Stray& b) { return a.drift < b.drift; });
    for (const Stray& stray : strays_) {
      consider({stray.plan}, kMaxDrift);
      if (best_) return true;
    }
    return false;
  }

  /// Tries only the plan with these numbers.
  bool numbered(const PlanNumbers& numbers) {
    const auto plan = plan_numbered(request_, fresh_, numbers.levels);
    if (plan) consider({*plan}, kMaxDrift, numbers.bootstrap);
    return best_ && best_->choice.plan == numbers;
  }

  std::optional<Choice> choice() const {
    return best_ ? std::optional(best_->choice) : std::nullopt;
  }
  bool has_levels() const { return has_levels_; }
  /// log2 PQ with the smallest possible P.
  double smallest_log_qp() const { return smallest_log_qp_; }
  std::size_t fewest_limbs() const { return fewest_limbs_; }

 private:
  static constexpr double kSimpleDrift = kGoodDrift / 2;
  static constexpr int kCandidates = 12;
  struct Found {
    Choice choice;
    double cost = 0;
  };
  struct Stray {
    LevelPlan plan;
    double drift = 0;
  };

  /// Keeps the cheapest of the first kCandidates plans that have primes, a small drift and a P that
  /// fits. Plans with a larger drift are put aside in strays_.
  void consider(const std::vector<LevelPlan>& plans, double max_drift,
                std::optional<std::uint8_t> terminals = std::nullopt) {
    int candidates = 0;
    for (const LevelPlan& plan : plans) {
      if (checkpoint_) checkpoint_();
      const double least =
          plan.log_u + plan.largest + (literal_.bootstrap ? literal_.bootstrap->bits() : 0);
      if (least > max_bits_ + 1 && has_levels_ && smallest_log_qp_ <= least) continue;
      PrimePool pool = fresh_;
      auto table = name_primes(request_, plan, pool);
      if (!table) continue;
      if (literal_.bootstrap &&
          !add_bootstrap_levels(*literal_.bootstrap, request_.integer_bits + request_.scale_bits,
                                *table, pool, terminals)) {
        continue;
      }
      if (literal_.bootstrap && literal_.security > 0 && !sparse_fits(*table)) continue;
      if (table->drift > max_drift) {
        strays_.push_back({plan, table->drift});
        continue;
      }
      if (!has_levels_ || least < smallest_log_qp_) smallest_log_qp_ = least;
      if (!has_levels_ || table->q.size() < fewest_limbs_) fewest_limbs_ = table->q.size();
      has_levels_ = true;
      auto gadget = best_gadget(*table, pool);
      if (!gadget) continue;
      // The transforms of a key switch: those of dnum digits and of two results, over all primes.
      const double cost =
          static_cast<double>((gadget->dnum() + 2) * (table->q.size() + gadget->p.size())) *
          (1 + table->drift);
      if (!best_ || cost < best_->cost) {
        const PlanNumbers numbers{plan.number, table->added};
        best_ = Found{
            {request_.log_n, request_.word, std::move(*table), std::move(*gadget), numbers}, cost};
      }
      if (++candidates == kCandidates) return;
    }
  }

  /// Whether there is a security figure for the modulus q_0 P' of the sparse secret. If there is
  /// none for any modulus, the refusal that says so comes later.
  bool sparse_fits(const LevelTable& table) const {
    const double most = max_log_sparse_modulus(request_.log_n, literal_.bootstrap->weight);
    double bits = 0;
    for (const auto* set : {&table.levels[0], &table.sparse_p}) {
      for (PrimeIndex i : *set) bits += portable_log2(static_cast<double>(table.q[i]));
    }
    return most == 0 || bits <= most;
  }

  /// The fewest digits for which P fits without much noise. If there are none, the fewest for which
  /// P fits.
  std::optional<Gadget> best_gadget(const LevelTable& table, const PrimePool& pool) const {
    const std::size_t limbs = table.q.size();
    const std::size_t n = std::size_t{1} << request_.log_n;
    if (dnum_ != 0) {
      if (dnum_ > limbs) return std::nullopt;
      return choose_gadget(table.q, dnum_, max_bits_, n, pool);
    }
    std::optional<Gadget> best;
    const double log_q = log2_product(table.q);
    for (std::size_t dnum = 1; dnum <= limbs; ++dnum) {
      // P is at least as large as the average digit.
      if (log_q * (1 + 1 / static_cast<double>(dnum)) > max_bits_) continue;
      auto gadget = choose_gadget(table.q, dnum, max_bits_, n, pool);
      if (!gadget) continue;
      const bool good = gadget->noise_ratio <= kGoodNoiseRatio;
      if (good || !best) best = std::move(gadget);
      if (good) break;
    }
    return best;
  }

  ckks::Literal literal_;
  Checkpoint checkpoint_;
  LevelRequest request_;
  double max_bits_;
  std::size_t dnum_;  // 0: choose
  PrimePool fresh_;
  std::optional<Found> best_;
  std::vector<Stray> strays_;
  bool has_levels_ = false;
  double smallest_log_qp_ = 0;
  std::size_t fewest_limbs_ = 0;
};

double bound(const ckks::Literal& l, int log_n) {
  return l.security == 0 ? kNoLimit : max_log_qp(log_n, l.security);
}

/// The approximate number of bits of Q.
double q_bits(const ckks::Literal& l) {
  return l.integer_bits + (l.depth + 1) * l.scale_bits + (l.bootstrap ? l.bootstrap->bits() : 0);
}

/// Whether Q alone is too large. This is a cheap necessary condition.
bool hopeless(const ckks::Literal& l, int log_n) {
  return q_bits(l) - kLevel0Slack - kMaxDrift > bound(l, log_n);
}

/// The words to try, best first. One prime a level is fastest, so w52 serves scales up to 50 bits
/// and w64 those above.
std::vector<Word> words(const ckks::Literal& l) {
  if (l.word) return {*l.word};
  if (l.scale_bits <= word_prime_bits(Word::w52)) return {Word::w52, Word::w64};
  return {Word::w64};
}

struct Outcome {
  std::optional<Choice> choice;  // for the first log_n and word that serve
  // The other members are about the last log_n that was worth trying.
  bool tried = false;          // whether any was
  bool has_levels = false;     // whether there are primes for the levels
  double smallest_log_qp = 0;  // log2 PQ of these with the smallest P
  std::size_t limbs = 0;
};

Outcome search(const ckks::Literal& l, const Checkpoint& checkpoint) {
  Outcome outcome;
  const int low = l.log_n != 0 ? l.log_n : kMinLogN;
  const int high = l.log_n != 0 ? l.log_n : kMaxLogN;
  for (int log_n = low; log_n <= high && !outcome.choice; ++log_n) {
    if (hopeless(l, log_n)) continue;
    outcome = Outcome{};
    outcome.tried = true;
    std::vector<Attempt> attempts;
    for (Word word : words(l)) {
      attempts.emplace_back(l, log_n, word, bound(l, log_n), checkpoint);
    }
    const auto take = [&](const Attempt& attempt) {
      outcome.choice = attempt.choice();
      if (attempt.has_levels() && !outcome.has_levels) {
        outcome.has_levels = true;
        outcome.smallest_log_qp = attempt.smallest_log_qp();
        outcome.limbs = attempt.fewest_limbs();
      }
    };
    for (Attempt& attempt : attempts) {
      if (outcome.choice) break;
      attempt.simple();
      take(attempt);
      if (outcome.choice) outcome.choice->plan.reset();
    }
    // If a table of one prime a level does not fit the bound, one with more primes does not fit
    // either.
    if (outcome.has_levels) continue;
    for (Attempt& attempt : attempts) {
      if (outcome.choice) break;
      attempt.any();
      take(attempt);
    }
  }
  return outcome;
}

/// Throws the error that says why nothing serves `l`, and what would.
[[noreturn]] void refuse(const ckks::Literal& l, const Outcome& outcome,
                         const Checkpoint& checkpoint) {
  const int log_n = l.log_n != 0 ? l.log_n : kMaxLogN;
  const double max_bits = bound(l, log_n);
  const std::string scale = number(l.scale_bits);
  std::string tried;
  for (Word word : words(l)) tried += (tried.empty() ? "" : " or ") + std::string(word_name(word));
  // If it was not worth trying, Q alone is too large.
  const double smallest =
      outcome.tried ? outcome.smallest_log_qp
                    : q_bits(l) + std::min(l.scale_bits,
                                           static_cast<double>(word_prime_bits(words(l).front())));
  if (outcome.tried && !outcome.has_levels) {
    std::string ways;
    for (Word word : {Word::w52, Word::w64}) {
      ckks::Literal other = l;
      other.word = word;
      if (search(other, checkpoint).choice)
        ways += "word=\"" + std::string(word_name(word)) + "\" or ";
    }
    throw InvalidArgument("the primes of " + tried + " are too few at log_n " +
                          std::to_string(log_n) + " for " + std::to_string(l.depth) +
                          " levels of " + scale + " bits: use " + ways +
                          "a smaller log_n or a larger scale_bits");
  }
  const std::size_t limbs = outcome.limbs;
  if (outcome.tried && l.dnum != 0 && static_cast<std::size_t>(l.dnum) > limbs) {
    throw InvalidArgument(
        "dnum " + std::to_string(l.dnum) + " is more than the " + std::to_string(limbs) +
        " primes there are: use dnum <= " + std::to_string(limbs) + ", or leave it out");
  }
  std::string message = "the circuit needs more than is secure: depth " + std::to_string(l.depth) +
                        " at scale_bits " + scale;
  if (l.dnum != 0) {
    ckks::Literal free_digits = l;
    free_digits.dnum = 0;
    if (auto fits = search(free_digits, checkpoint).choice) {
      throw InsecureParams("with dnum " + std::to_string(l.dnum) +
                           " the key-switching modulus takes log PQ past the " + number(max_bits) +
                           " bits that security " + std::to_string(l.security) +
                           " allows at log_n " + std::to_string(log_n) +
                           ": leave dnum out (gives " + std::to_string(fits->gadget.dnum()) +
                           "), or log_n out");
    }
  }
  if (l.bootstrap) message += " with bootstrapping";
  message += " needs about " + number(std::ceil(smallest)) +
             " bits of log PQ with the smallest key-switching modulus; log_n " +
             std::to_string(log_n) + " allows " + number(max_bits) + " at security " +
             std::to_string(l.security) + ": ";
  std::vector<std::string> ways;
  if (l.log_n != 0) {
    ckks::Literal free = l;
    free.log_n = 0;
    if (auto fits = search(free, checkpoint).choice) {
      ways.push_back("leave log_n out (gives " + std::to_string(fits->log_n) + ")");
    }
  }
  // If Q and one prime of the scale's size exceed the bound, a search is not worth it.
  const auto plausible = [&](const ckks::Literal& c) {
    return q_bits(c) + c.scale_bits - 1 <= max_bits;
  };
  for (int s = static_cast<int>(std::ceil(l.scale_bits)) - 1; s >= 20; --s) {
    ckks::Literal smaller = l;
    smaller.scale_bits = s;
    if (plausible(smaller) && search(smaller, checkpoint).choice) {
      ways.push_back("use scale_bits <= " + number(s));
      break;
    }
  }
  for (int depth = l.depth - 1; depth >= 0; --depth) {
    ckks::Literal smaller = l;
    smaller.depth = depth;
    if (plausible(smaller) && search(smaller, checkpoint).choice) {
      ways.push_back("use depth <= " + std::to_string(depth));
      break;
    }
  }
  if (ways.empty()) ways.push_back("use a smaller depth, scale or security");
  for (std::size_t i = 0; i < ways.size(); ++i) message += (i == 0 ? "" : " or ") + ways[i];
  throw InsecureParams(message);
}

}  // namespace

Choice choose(const ckks::Literal& literal, const Checkpoint& checkpoint) {
  check_ranges(literal);
  check_bootstrap(literal);
  Outcome outcome = search(literal, checkpoint);
  if (!outcome.choice) refuse(literal, outcome, checkpoint);
  return std::move(*outcome.choice);
}

Choice choose_written(const ckks::Literal& literal, std::optional<PlanNumbers> plan, bool search) {
  check_ranges(literal);
  check_bootstrap(literal);
  require<InvalidArgument>(literal.log_n != 0 && literal.word && literal.dnum != 0,
                           "log_n, word or dnum is not written");
  const double max_bits = bound(literal, literal.log_n);
  const auto too_large = [&] {
    return "the moduli are larger than security " + std::to_string(literal.security) +
           " allows at log_n " + std::to_string(literal.log_n);
  };
  // This looks at the sizes alone, before there is any prime. P is at least as large as the average
  // digit.
  const double least_q = q_bits(literal) - kLevel0Slack - kMaxDrift;
  require<InsecureParams>(least_q * (1 + 1.0 / literal.dnum) <= max_bits, too_large);
  Attempt attempt(literal, literal.log_n, *literal.word, max_bits, {});
  if (attempt.simple()) {
    require<InvalidArgument>(!plan, "a plan is written where none is needed");
    Choice choice = std::move(*attempt.choice());
    choice.plan.reset();
    return choice;
  }
  require<InsecureParams>(!attempt.has_levels(), too_large);
  require<LimitExceeded>(plan || search, "the plan of the levels is not written");
  require<InvalidArgument>(plan ? attempt.numbered(*plan) : attempt.any(),
                           "there are no primes for these levels");
  return std::move(*attempt.choice());
}

}  // namespace jali::params
