#include "jali/params/rlwe_params.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::rlwe {

namespace {

constexpr std::size_t kSeedBytes = 32;

double log2_product(std::span<const std::uint64_t> primes) {
  double sum = 0;
  for (std::uint64_t p : primes) sum += params::portable_log2(static_cast<double>(p));
  return sum;
}

/// The number of keys. Rotations by the same number of slots modulo N/2 share one.
std::size_t key_count(std::size_t n, std::span<const int> rotations, bool conjugate,
                      bool relinearise) {
  std::set<std::int64_t> distinct;
  const auto period = static_cast<std::int64_t>(n / 2);
  for (int r : rotations) {
    const std::int64_t reduced = ((r % period) + period) % period;
    if (reduced != 0) distinct.insert(reduced);
  }
  return distinct.size() + (conjugate ? 1 : 0) + (relinearise ? 1 : 0);
}

/// Bits of the key of the sparse secret, at its modulus q_0 P'; the table's most without a sparse
/// secret.
int sparse_security(const Params& p) {
  if (p.sparse_weight() == 0) return 256;
  std::vector<std::uint64_t> modulus;
  for (const PrimeIndex i : p.level(0).primes) modulus.push_back(p.primes()[i]);
  for (const PrimeIndex i : p.sparse_p_primes()) modulus.push_back(p.primes()[i]);
  const double most = params::max_log_sparse_modulus(p.log_n(), p.sparse_weight());
  return params::product_bits(modulus) <= static_cast<int>(most) ? 128 : 0;
}

}  // namespace

Params::Params(const ParamsSpec& spec)
    : log_n_(spec.log_n),
      word_(spec.word),
      q_count_(spec.q.size()),
      primes_(spec.q),
      digit_begin_(spec.digit_begin),
      sparse_weight_(spec.sparse_weight),
      sparse_p_(spec.sparse_p),
      log_q_(log2_product(spec.q)),
      log_p_(log2_product(spec.p)),
      hash_(spec.hash) {
  require<InvalidArgument>(log_n_ >= params::kMinLogN && log_n_ <= params::kMaxLogN &&
                               !spec.q.empty() && !spec.levels.empty(),
                           "parameters need log_n from 10 to 17, primes and at least one level");
  require<InvalidArgument>(
      digit_begin_.size() >= 2 && digit_begin_.front() == 0 && digit_begin_.back() == q_count_ &&
          std::ranges::adjacent_find(digit_begin_, std::ranges::greater_equal{}) ==
              digit_begin_.end(),
      "the digits of key switching must be runs of the q primes, none of them empty");
  primes_.insert(primes_.end(), spec.p.begin(), spec.p.end());
  ring_primes_ = primes_;
  ring_primes_.insert(ring_primes_.end(), spec.aux.begin(), spec.aux.end());
  for (std::size_t i = 0; i < ring_primes_.size(); ++i) {
    indices_.push_back(static_cast<PrimeIndex>(i));
  }
  for (const auto& primes : spec.levels) append_level(primes);

  // Security is decided here, on exact integers. Whatever chose the primes, no insecure parameters
  // are made except those that ask for security 0, and these have none, whatever the table grants.
  const int granted = params::granted_security(primes_, log_n_);
  require<InsecureParams>(granted >= spec.security,
                          "the moduli chosen exceed the security table: please report");
  security_ = spec.security == 0 ? 0 : std::min(granted, sparse_security(*this));
}

void Params::append_level(const std::vector<PrimeIndex>& primes) {
  require<InvalidArgument>(
      !primes.empty() && primes.back() < q_count_ &&
          std::ranges::adjacent_find(primes, std::ranges::greater_equal{}) == primes.end(),
      "the primes of a level must be indices of q primes in ascending order");
  Level& level = levels_.emplace_back();
  level.primes = primes;
  std::size_t d = 0;
  for (const PrimeIndex i : primes) {
    level.log_q += params::portable_log2(static_cast<double>(primes_[i]));
    while (i >= digit_begin_[d + 1]) ++d;
    if (level.digit_ids.empty() || level.digit_ids.back() != d) {
      level.digit_ids.push_back(static_cast<std::uint32_t>(d));
      level.digit_limbs.push_back(0);
    }
    ++level.digit_limbs.back();
  }
}

void Params::replace_levels(std::shared_ptr<const Params> whole, std::size_t first,
                            std::span<const std::vector<PrimeIndex>> levels,
                            const ParamsHash& hash) {
  whole_ = std::move(whole);
  replaced_ = static_cast<int>(first);
  levels_.resize(first);
  for (const auto& primes : levels) append_level(primes);
  hash_ = hash;
}

void Params::refuse_level(int l) const {
  throw InvalidArgument("level " + std::to_string(l) +
                        " does not exist: these parameters have 0 to " + std::to_string(top()));
}

double Params::error_std() const { return std::sqrt(kErrorVariance); }

std::vector<PrimeIndex> Params::key_primes(int level) const {
  if (level < 0 || level >= top()) return {all_primes().begin(), all_primes().end()};
  std::set<PrimeIndex> all;
  for (int l = 0; l <= level; ++l)
    all.insert(levels_[static_cast<std::size_t>(l)].primes.begin(),
               levels_[static_cast<std::size_t>(l)].primes.end());
  std::vector<PrimeIndex> out(all.begin(), all.end());
  out.insert(out.end(), p_primes().begin(), p_primes().end());
  return out;
}

std::size_t Params::key_digits(int level) const {
  if (level < 0 || level >= top()) return dnum();
  std::uint32_t most = 0;
  for (int l = 0; l <= level; ++l) {
    most = std::max(most, levels_[static_cast<std::size_t>(l)].digit_ids.back());
  }
  return most + 1;
}

std::size_t Params::switch_key_bytes(int level) const {
  return key_digits(level) * key_primes(level).size() * n() * word_bytes(word_) + kSeedBytes;
}

std::size_t Params::key_bytes(std::span<const int> rotations, bool conjugate,
                              bool relinearise) const {
  return key_count(n(), rotations, conjugate, relinearise) * switch_key_bytes();
}

std::size_t Params::encapsulation_key_bytes() const {
  const std::size_t rows = levels_[0].primes.size() + sparse_p_.size() + primes_.size();
  return rows * n() * word_bytes(word_) + 2 * kSeedBytes;
}

std::size_t Params::expanded_key_bytes(std::span<const int> rotations, bool conjugate,
                                       bool relinearise) const {
  return key_count(n(), rotations, conjugate, relinearise) * 2 * (switch_key_bytes() - kSeedBytes);
}

}  // namespace jali::rlwe
