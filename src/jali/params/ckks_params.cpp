#include "jali/params/ckks_params.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <set>
#include <string_view>

#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/params/gadget.h"
#include "jali/params/level_table.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {

struct CkksParamsBuilder {
  static std::shared_ptr<const CkksParams> build(const CkksLiteral& literal, int log_n, Word word,
                                                 const LevelTable& table, const Gadget& gadget);
};

namespace {

constexpr std::size_t kSeedBytes = 32;
constexpr double kUnbounded = 1e9;

/// 3 -> "3", 37.5 -> "37.5".
std::string number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", x);
  return buffer;
}

void check_ranges(const CkksLiteral& l) {
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

/// Finds parameters of one ring and word, or what they would take.
class Attempt {
 public:
  Attempt(const CkksLiteral& l, int log_n, Word word, double max_bits)
      : literal_(l),
        request_{word, log_n, l.depth, l.scale_bits, l.integer_bits},
        max_bits_(max_bits),
        dnum_(static_cast<std::size_t>(l.dnum)),
        fresh_(word, log_n) {}

  /// One prime a level. False when there is no such table, or nothing that fits.
  bool simple() {
    for (const LevelPlan& plan : plan_whole(request_, fresh_)) {
      if (plan.mains.back() == plan.mains[0] + literal_.depth) consider({plan}, kSimpleDrift);
      if (best_) return true;
    }
    return false;
  }
  /// Several primes a level, or rational rescaling.
  bool any() {
    if (dnum_ != 0) {
      // Asking for the dnum that would be chosen gives what would be chosen: a literal with every
      // choice written in makes the same parameters.
      Attempt open = *this;
      open.dnum_ = 0;
      if (open.any() && open.best_->gadget.digit_begin.size() == dnum_ + 1) {
        best_ = std::move(open.best_);
        return true;
      }
    }
    for (double shortfall : {0.0, 0.09, 0.3}) {
      std::vector<LevelPlan> plans = plan_rational(request_, fresh_, shortfall);
      if (shortfall == 0) {
        auto whole = plan_whole(request_, fresh_);
        plans.insert(plans.end(), whole.begin(), whole.end());
        std::stable_sort(plans.begin(), plans.end(),
                         [](const LevelPlan& a, const LevelPlan& b) { return a.cost < b.cost; });
      }
      consider(plans, shortfall == 0.3 ? kMaxDrift : kGoodDrift);
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

  std::shared_ptr<const CkksParams> params() const {
    return best_ ? CkksParamsBuilder::build(literal_, request_.log_n, request_.word, best_->table,
                                            best_->gadget)
                 : nullptr;
  }
  bool has_levels() const { return has_levels_; }
  /// With the smallest P there can be.
  double smallest_log_qp() const { return smallest_log_qp_; }
  std::size_t fewest_limbs() const { return fewest_limbs_; }

 private:
  static constexpr double kSimpleDrift = kGoodDrift / 2;
  static constexpr int kCandidates = 12;
  struct Found {
    LevelTable table;
    Gadget gadget;
    double cost = 0;
  };
  struct Stray {
    LevelPlan plan;
    double drift = 0;
  };

  /// Keeps the cheapest of the first plans that have primes, a small drift and a P that fits.
  void consider(const std::vector<LevelPlan>& plans, double max_drift) {
    int candidates = 0;
    for (const LevelPlan& plan : plans) {
      const double least = plan.log_u + plan.largest;
      if (least > max_bits_ + 1 && has_levels_ && smallest_log_qp_ <= least) continue;
      PrimePool pool = fresh_;
      auto table = name_primes(request_, plan, pool);
      if (!table) continue;
      if (table->drift > max_drift) {
        strays_.push_back({plan, table->drift});
        continue;
      }
      if (!has_levels_ || least < smallest_log_qp_) smallest_log_qp_ = least;
      if (!has_levels_ || table->q.size() < fewest_limbs_) fewest_limbs_ = table->q.size();
      has_levels_ = true;
      auto gadget = best_gadget(*table, pool);
      if (!gadget) continue;
      // Transforms of a key switch: the digits over all primes, and two results.
      const double cost = static_cast<double>((gadget->digit_begin.size() + 1) *
                                              (table->q.size() + gadget->p.size())) *
                          (1 + table->drift);
      if (!best_ || cost < best_->cost) best_ = Found{std::move(*table), std::move(*gadget), cost};
      if (++candidates == kCandidates) return;
    }
  }

  /// The fewest digits for which P fits without much noise; failing that, for which it fits.
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

  CkksLiteral literal_;
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

double bound(const CkksLiteral& l, int log_n) {
  return l.security == 0 ? kUnbounded : max_log_qp(log_n, l.security);
}

/// Cheap necessary condition: Q, and a P not smaller than the largest prime.
bool hopeless(const CkksLiteral& l, int log_n) {
  return l.integer_bits + (l.depth + 1) * l.scale_bits - kLevel0Slack - kMaxDrift > bound(l, log_n);
}

/// The words to try, best first. One prime a level is fastest, so w52 serves scales up to 50 bits
/// and w64 those above.
std::vector<Word> words(const CkksLiteral& l) {
  if (l.word) return {*l.word};
  if (l.scale_bits <= word_prime_bits(Word::w52)) return {Word::w52, Word::w64};
  return {Word::w64};
}

struct Outcome {
  std::shared_ptr<const CkksParams> params;  // of the first log_n and word that serve
  bool tried = false;                        // of the last log_n: whether worth trying,
  bool has_levels = false;                   // whether there are primes for the levels,
  double smallest_log_qp = 0;                // what they take with the smallest P
  std::size_t limbs = 0;
};

Outcome search(const CkksLiteral& l) {
  Outcome outcome;
  const int low = l.log_n != 0 ? l.log_n : kMinLogN;
  const int high = l.log_n != 0 ? l.log_n : kMaxLogN;
  for (int log_n = low; log_n <= high && !outcome.params; ++log_n) {
    if (hopeless(l, log_n)) continue;
    outcome = Outcome{};
    outcome.tried = true;
    std::vector<Attempt> attempts;
    for (Word word : words(l)) attempts.emplace_back(l, log_n, word, bound(l, log_n));
    const auto take = [&](const Attempt& attempt) {
      outcome.params = attempt.params();
      if (attempt.has_levels() && !outcome.has_levels) {
        outcome.has_levels = true;
        outcome.smallest_log_qp = attempt.smallest_log_qp();
        outcome.limbs = attempt.fewest_limbs();
      }
    };
    for (Attempt& attempt : attempts) {
      if (outcome.params) break;
      attempt.simple();
      take(attempt);
    }
    // A table that does not fit the bound is not made to fit by more primes.
    if (outcome.has_levels) continue;
    for (Attempt& attempt : attempts) {
      if (outcome.params) break;
      attempt.any();
      take(attempt);
    }
  }
  return outcome;
}

/// Why nothing serves `l`, and what would.
[[noreturn]] void refuse(const CkksLiteral& l, const Outcome& outcome) {
  const int log_n = l.log_n != 0 ? l.log_n : kMaxLogN;
  const double max_bits = bound(l, log_n);
  const std::string scale = number(l.scale_bits);
  std::string tried;
  for (Word word : words(l)) tried += (tried.empty() ? "" : " or ") + std::string(word_name(word));
  // Where it was not worth trying, Q alone is too large.
  const double smallest =
      outcome.tried
          ? outcome.smallest_log_qp
          : l.integer_bits + (l.depth + 1) * l.scale_bits +
                std::min(l.scale_bits, static_cast<double>(word_prime_bits(words(l).front())));
  if (outcome.tried && !outcome.has_levels) {
    std::string ways;
    for (Word word : {Word::w52, Word::w64}) {
      CkksLiteral other = l;
      other.word = word;
      if (search(other).params) ways += "word=\"" + std::string(word_name(word)) + "\" or ";
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
    CkksLiteral free_digits = l;
    free_digits.dnum = 0;
    if (auto fits = search(free_digits).params) {
      throw InsecureParams("with dnum " + std::to_string(l.dnum) +
                           " the key-switching modulus takes log PQ past the " + number(max_bits) +
                           " bits that security " + std::to_string(l.security) +
                           " allows at log_n " + std::to_string(log_n) +
                           ": leave dnum out (gives " + std::to_string(fits->dnum()) +
                           "), or log_n out");
    }
  }
  message += " needs about " + number(std::ceil(smallest)) +
             " bits of log PQ with the smallest key-switching modulus; log_n " +
             std::to_string(log_n) + " allows " + number(max_bits) + " at security " +
             std::to_string(l.security) + ": ";
  std::vector<std::string> ways;
  if (l.log_n != 0) {
    CkksLiteral free = l;
    free.log_n = 0;
    if (auto fits = search(free).params) {
      ways.push_back("leave log_n out (gives " + std::to_string(fits->log_n()) + ")");
    }
  }
  // Not worth a search: Q and one prime of the scale's size exceed the bound.
  const auto plausible = [&](const CkksLiteral& c) {
    return c.integer_bits + (c.depth + 2) * c.scale_bits - 1 <= max_bits;
  };
  for (double s = std::ceil(l.scale_bits) - 1; s >= 20; --s) {
    CkksLiteral smaller = l;
    smaller.scale_bits = s;
    if (plausible(smaller) && search(smaller).params) {
      ways.push_back("use scale_bits <= " + number(s));
      break;
    }
  }
  for (int depth = l.depth - 1; depth >= 0; --depth) {
    CkksLiteral smaller = l;
    smaller.depth = depth;
    if (plausible(smaller) && search(smaller).params) {
      ways.push_back("use depth <= " + std::to_string(depth));
      break;
    }
  }
  if (ways.empty()) ways.push_back("use a smaller depth, scale or security");
  for (std::size_t i = 0; i < ways.size(); ++i) message += (i == 0 ? "" : " or ") + ways[i];
  throw InsecureParams(message);
}

/// Digits of one level: the digits of the key that hold any of its primes.
void fill_digits(Level& level, const std::vector<std::size_t>& digit_begin) {
  std::size_t d = 0;
  std::size_t previous = digit_begin.size();
  for (PrimeIndex i : level.primes) {
    while (i >= digit_begin[d + 1]) ++d;
    if (d != previous) {
      level.digit_ids.push_back(static_cast<std::uint32_t>(d));
      level.digit_limbs.push_back(0);
      previous = d;
    }
    ++level.digit_limbs.back();
  }
}

/// Canonical bytes: every number as 8 bytes, little end first; vectors after their length.
class Canonical {
 public:
  void put(std::uint64_t x) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::uint8_t>(x >> (8 * i)));
  }
  void put(double x) { put(std::bit_cast<std::uint64_t>(x)); }
  template <class T>
  void put(const std::vector<T>& v) {
    put(static_cast<std::uint64_t>(v.size()));
    for (const T& x : v) put(static_cast<std::uint64_t>(x));
  }
  Digest digest() const { return hash256(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::shared_ptr<const CkksParams> CkksParamsBuilder::build(const CkksLiteral& literal, int log_n,
                                                           Word word, const LevelTable& table,
                                                           const Gadget& gadget) {
  std::shared_ptr<CkksParams> params(new CkksParams);
  params->literal_ = literal;
  params->literal_.log_n = log_n;
  params->literal_.word = word;
  params->literal_.dnum = static_cast<int>(gadget.digit_begin.size() - 1);
  params->log_n_ = log_n;
  params->word_ = word;
  params->q_count_ = table.q.size();
  params->primes_ = table.q;
  params->primes_.insert(params->primes_.end(), gadget.p.begin(), gadget.p.end());
  for (std::size_t i = 0; i < params->primes_.size(); ++i) {
    params->indices_.push_back(static_cast<PrimeIndex>(i));
  }
  params->digit_begin_ = gadget.digit_begin;
  params->drift_ = table.drift;
  params->log_q_ = log2_product(table.q);
  params->log_p_ = log2_product(gadget.p);
  params->error_std_ = std::sqrt(kErrorVariance);
  for (std::size_t l = 0; l < table.levels.size(); ++l) {
    Level& level = params->levels_.emplace_back();
    level.primes = table.levels[l];
    level.scale = table.scale[l];
    for (PrimeIndex i : level.primes) {
      level.log_q += portable_log2(static_cast<double>(table.q[i]));
    }
    fill_digits(level, gadget.digit_begin);
  }

  // The decision, on integers: whatever chose the primes, nothing insecure leaves here unnamed.
  params->security_ = granted_security(params->primes_, log_n);
  require<InsecureParams>(params->security_ >= literal.security,
                          "the moduli chosen exceed the security table: please report");

  Canonical bytes;
  bytes.put(std::uint64_t{1});  // version of this list
  bytes.put(static_cast<std::uint64_t>(log_n));
  bytes.put(static_cast<std::uint64_t>(word));
  bytes.put(literal.scale_bits);
  bytes.put(literal.integer_bits);
  bytes.put(params->error_std_ * params->error_std_);
  bytes.put(static_cast<std::uint64_t>(params->q_count_));
  bytes.put(params->primes_);
  bytes.put(params->digit_begin_);
  bytes.put(static_cast<std::uint64_t>(params->levels_.size()));
  for (const Level& level : params->levels_) {
    bytes.put(level.primes);
    bytes.put(level.scale);
  }
  params->hash_ = bytes.digest();
  return params;
}

std::shared_ptr<const CkksParams> CkksParams::create(const CkksLiteral& literal) {
  check_ranges(literal);
  const Outcome outcome = search(literal);
  if (!outcome.params) refuse(literal, outcome);
  return outcome.params;
}

std::size_t CkksParams::switch_key_bytes() const {
  return dnum() * primes_.size() * n() * word_bytes(word_) + kSeedBytes;
}

namespace {

std::size_t key_count(std::size_t slots, std::span<const int> rotations, bool conjugate,
                      bool relinearise) {
  std::set<std::int64_t> distinct;
  const auto period = static_cast<std::int64_t>(slots);
  for (int r : rotations) {
    const std::int64_t reduced = ((r % period) + period) % period;
    if (reduced != 0) distinct.insert(reduced);
  }
  return distinct.size() + (conjugate ? 1 : 0) + (relinearise ? 1 : 0);
}

}  // namespace

std::size_t CkksParams::key_bytes(std::span<const int> rotations, bool conjugate,
                                  bool relinearise) const {
  return key_count(slots(), rotations, conjugate, relinearise) * switch_key_bytes();
}

std::size_t CkksParams::expanded_key_bytes(std::span<const int> rotations, bool conjugate,
                                           bool relinearise) const {
  return key_count(slots(), rotations, conjugate, relinearise) * 2 *
         (switch_key_bytes() - kSeedBytes);
}

}  // namespace jali::params
