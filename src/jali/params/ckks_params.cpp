#include "jali/params/ckks_params.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/params/choose.h"
#include "jali/params/part_levels.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {

struct CkksParamsBuilder {
  static std::shared_ptr<const CkksParams> build(const CkksLiteral& literal, const Choice& choice);
};

namespace {

constexpr std::size_t kSeedBytes = 32;

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

std::shared_ptr<const CkksParams> CkksParamsBuilder::build(const CkksLiteral& literal,
                                                           const Choice& choice) {
  const auto& [chosen_log_n, word, table, gadget, plan] = choice;
  const int log_n = chosen_log_n;  // lambdas of C++20 in older Clang capture no bindings
  std::shared_ptr<CkksParams> params(new CkksParams);
  params->literal_ = literal;
  params->literal_.integer_bits += 0.0;  // -0 is 0
  params->literal_.log_n = log_n;
  params->literal_.word = word;
  params->literal_.dnum = static_cast<int>(gadget.dnum());
  params->plan_ = plan;
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
    if (static_cast<int>(l) > literal.depth) {
      level.ratio = modulus_ratio(table.q, table.levels[l], table.levels[l - 1]);
    } else if (l > 0) {
      // By the recursion of the canonical scales, so that products rescale to them exactly.
      level.ratio = level.scale / table.scale[l - 1] * level.scale;
    }
    fill_digits(level, gadget.digit_begin);
  }
  params->sparse_p_ = table.sparse_p;

  // The decision, on integers: whatever chose the primes, nothing insecure leaves here unnamed.
  params->security_ = granted_security(params->primes_, log_n);
  require<InsecureParams>(params->security_ >= literal.security,
                          "the moduli chosen exceed the security table: please report");

  if (literal.bootstrap && literal.security > 0) {
    // The sparse secret's own key, at its own modulus.
    std::vector<std::uint64_t> small;
    for (PrimeIndex i : table.levels[0]) small.push_back(table.q[i]);
    for (PrimeIndex i : table.sparse_p) small.push_back(table.q[i]);
    const double most = max_log_sparse_modulus(log_n, literal.bootstrap->weight);
    require<InsecureParams>(
        literal.security == 128 && product_bits(small) <= static_cast<int>(most), [&] {
          return "a sparse secret of weight " + std::to_string(literal.bootstrap->weight) +
                 " would be used at a modulus of " + std::to_string(product_bits(small)) +
                 " bits, and at log_n " + std::to_string(log_n) + " and security " +
                 std::to_string(literal.security) + " there is a figure for " +
                 std::to_string(literal.security == 128 ? static_cast<int>(most) : 0) +
                 ": use log_n >= 15, weight >= 32, security 128, and fewer integer_bits";
        });
  }

  Canonical bytes;
  bytes.put(std::uint64_t{1});  // version of this list
  bytes.put(static_cast<std::uint64_t>(log_n));
  bytes.put(static_cast<std::uint64_t>(word));
  bytes.put(literal.scale_bits);
  bytes.put(params->literal_.integer_bits);
  bytes.put(params->error_std_ * params->error_std_);
  bytes.put(static_cast<std::uint64_t>(params->q_count_));
  bytes.put(params->primes_);
  bytes.put(params->digit_begin_);
  bytes.put(static_cast<std::uint64_t>(params->levels_.size()));
  for (const Level& level : params->levels_) {
    bytes.put(level.primes);
    bytes.put(level.scale);
  }
  if (const auto& b = literal.bootstrap) {
    bytes.put(static_cast<std::uint64_t>(literal.depth));
    bytes.put(static_cast<std::uint64_t>(b->order));
    for (int x : {b->weight, b->range, b->degree, b->doublings, b->inverse_sine, b->cts_levels,
                  b->stc_levels}) {
      bytes.put(static_cast<std::uint64_t>(x));
    }
    bytes.put(b->ratio_bits);
    if (b->head_bits != 0) bytes.put(static_cast<std::uint64_t>(b->head_bits));
    bytes.put(params->sparse_p_);
  }
  params->hash_ = bytes.digest();
  return params;
}

std::shared_ptr<const CkksParams> CkksParams::create(const CkksLiteral& literal,
                                                     const Checkpoint& checkpoint) {
  return CkksParamsBuilder::build(literal, choose(literal, checkpoint));
}

std::shared_ptr<const CkksParams> CkksParams::create_written(const CkksLiteral& literal,
                                                             std::optional<PlanNumbers> plan,
                                                             bool search) {
  return CkksParamsBuilder::build(literal, choose_written(literal, plan, search));
}

namespace {

/// The levels above those of a computation without the primes that its levels above `depth` added: what leads from one
/// to the next stays. Empty where one of them lacks such a prime, or level `depth` has one that the highest lacks.
std::vector<std::vector<PrimeIndex>> without_lost(const CkksParams& whole, int depth) {
  const auto& computed = whole.level(whole.depth()).primes;
  const auto& kept = whole.level(depth).primes;
  if (!std::ranges::includes(computed, kept)) return {};
  std::vector<PrimeIndex> lost;
  std::ranges::set_difference(computed, kept, std::back_inserter(lost));
  std::vector<std::vector<PrimeIndex>> out;
  for (int l = whole.depth() + 1; l <= whole.top(); ++l) {
    const auto& primes = whole.level(l).primes;
    if (!std::ranges::includes(primes, lost)) return {};
    std::ranges::set_difference(primes, lost, std::back_inserter(out.emplace_back()));
  }
  return out;
}

/// Scales of the powers T_1, T_2, T_4 .. of the reduction, from the last one upwards: T_{2i} has the square of T_i's over the
/// ratio, so that an error of a ratio is halved from level to level here, where it would be doubled downwards.
void fit_power_scales(const BootstrapLiteral& b, std::vector<Level>& levels) {
  const auto first = levels.size() - 1 - static_cast<std::size_t>(b.cts_levels);
  const auto squares =
      static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(b.degree))) - 1;
  for (std::size_t l = first - squares + 1; l <= first; ++l) {
    levels[l].scale = std::sqrt(levels[l - 1].scale * levels[l].ratio);
  }
}

}  // namespace

std::shared_ptr<const CkksParams> CkksParams::with_depth(int depth) const {
  require<InvalidArgument>(depth >= 0 && depth <= this->depth(), [&] {
    return "depth must be 0 to " + std::to_string(this->depth()) + ", not " + std::to_string(depth);
  });
  if (!bootstrap()) return nullptr;
  if (whole_) return whole_->with_depth(depth);
  auto above = without_lost(*this, depth);
  const bool same_steps = !above.empty();
  if (!same_steps) above = part_levels(*this, depth);
  if (above.empty()) return nullptr;

  std::shared_ptr<CkksParams> out(new CkksParams(*this));
  out->whole_ = shared_from_this();
  out->literal_.depth = depth;
  out->levels_.resize(static_cast<std::size_t>(depth) + 1);
  Canonical bytes;
  for (std::uint8_t byte : hash_) bytes.put(static_cast<std::uint64_t>(byte));
  bytes.put(static_cast<std::uint64_t>(depth));
  for (std::size_t j = 0; j < above.size(); ++j) {
    const Level& same = levels_[static_cast<std::size_t>(this->depth()) + 1 + j];
    Level level;
    level.scale = same.scale;
    level.ratio =
        same_steps ? same.ratio : modulus_ratio(primes_, above[j], out->levels_.back().primes);
    level.primes = std::move(above[j]);
    for (PrimeIndex i : level.primes) {
      level.log_q += portable_log2(static_cast<double>(primes_[i]));
    }
    fill_digits(level, digit_begin_);
    if (!same_steps) bytes.put(level.primes);
    out->levels_.push_back(std::move(level));
  }
  if (!same_steps) fit_power_scales(*literal_.bootstrap, out->levels_);
  out->hash_ = bytes.digest();
  return out;
}

void CkksParams::refuse_level(int l) const {
  throw InvalidArgument("level " + std::to_string(l) +
                        " does not exist: these parameters have 0 to " + std::to_string(top()));
}

std::vector<PrimeIndex> CkksParams::key_primes(int level) const {
  if (level < 0 || level >= top()) return indices_;
  std::set<PrimeIndex> all;
  for (int l = 0; l <= level; ++l)
    all.insert(levels_[static_cast<std::size_t>(l)].primes.begin(),
               levels_[static_cast<std::size_t>(l)].primes.end());
  std::vector<PrimeIndex> out(all.begin(), all.end());
  out.insert(out.end(), p_primes().begin(), p_primes().end());
  return out;
}

std::size_t CkksParams::key_digits(int level) const {
  if (level < 0 || level >= top()) return dnum();
  std::uint32_t most = 0;
  for (int l = 0; l <= level; ++l) {
    most = std::max(most, levels_[static_cast<std::size_t>(l)].digit_ids.back());
  }
  return most + 1;
}

std::size_t CkksParams::switch_key_bytes(int level) const {
  return key_digits(level) * key_primes(level).size() * n() * word_bytes(word_) + kSeedBytes;
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

std::size_t CkksParams::encapsulation_key_bytes() const {
  const std::size_t rows = levels_[0].primes.size() + sparse_p_.size() + primes_.size();
  return rows * n() * word_bytes(word_) + 2 * kSeedBytes;
}

std::size_t CkksParams::expanded_key_bytes(std::span<const int> rotations, bool conjugate,
                                           bool relinearise) const {
  return key_count(slots(), rotations, conjugate, relinearise) * 2 *
         (switch_key_bytes() - kSeedBytes);
}

}  // namespace jali::params
