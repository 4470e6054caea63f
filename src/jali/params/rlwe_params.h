// Parameters of an RLWE scheme over RNS moduli: what keys and key switching need to know, whatever
// is encrypted. The parameters of each scheme extend them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/arith/word.h"

namespace jali::rlwe {

/// The variance of one coefficient of the error, which is centred binomial with k = 21:
/// random::kErrorStd squared.
inline constexpr double kErrorVariance = 10.5;

/// The limbs of one level.
struct Level {
  std::vector<PrimeIndex> primes;  // ascending; not necessarily a prefix of the q primes
  double log_q = 0;  // log2 of the product of its primes
  std::vector<std::uint32_t> digit_limbs;  // limbs of each of the consecutive digits of this level
  std::vector<std::uint32_t> digit_ids;  // for each of these, which digit of the key it belongs to
};

using ParamsHash = std::array<std::uint8_t, 32>;

/// The input from which parameters are made. Indices of primes count those of q first, then those
/// of p.
struct ParamsSpec {
  int log_n = 0;
  Word word = Word::w64;
  std::vector<std::uint64_t> q, p;  // distinct primes, 1 modulo 2N
  std::vector<std::vector<PrimeIndex>> levels;  // ascending indices into q, level 0 first
  std::vector<std::size_t> digit_begin;  // 0, ..., q.size(): where digits of keys begin
  int sparse_weight = 0;  // see Params::sparse_weight
  std::vector<PrimeIndex> sparse_p;  // see Params::sparse_p_primes
  std::vector<std::uint64_t> aux;  // see Params::aux_primes; distinct from q and p
  int security = 0;  // bits that the table must grant; 0: any
  ParamsHash hash{};  // see Params::hash
};

/// The parameters, which are immutable: N, the word, the primes of Q and P, the levels as sets of
/// primes, and the digits of key switching. Secrets are always uniform ternary and errors centred
/// binomial.
class Params {
 public:
  /// Throws InsecureParams if the security table grants the moduli less than spec.security, and
  /// InvalidArgument if log_n is not 10 to 17 or a list of indices is empty, out of range or not in
  /// ascending order.
  explicit Params(const ParamsSpec& spec);

  int log_n() const { return log_n_; }
  std::size_t n() const { return std::size_t{1} << log_n_; }
  Word word() const { return word_; }
  int security() const { return security_; }  // what the table grants: 128, 192, 256 or 0

  /// All primes: q_0 to q_{q_count-1}, then p_0 to p_{p_count-1}.
  std::span<const std::uint64_t> primes() const { return primes_; }
  std::size_t q_count() const { return q_count_; }
  std::size_t p_count() const { return primes_.size() - q_count_; }
  std::span<const PrimeIndex> q_primes() const { return {indices_.data(), q_count_}; }
  std::span<const PrimeIndex> p_primes() const {
    return std::span(indices_).subspan(q_count_, p_count());
  }
  std::span<const PrimeIndex> all_primes() const { return {indices_.data(), primes_.size()}; }
  /// Further primes of the ring, after those of q and p, which are in no key and in no ciphertext.
  /// A scheme may compute modulo them. The security table does not count them.
  std::span<const PrimeIndex> aux_primes() const {
    return std::span(indices_).subspan(primes_.size());
  }
  /// primes(), then those of aux_primes(): the primes of a ring for these parameters.
  std::span<const std::uint64_t> ring_primes() const { return ring_primes_; }
  double log_q() const { return log_q_; }
  double log_p() const { return log_p_; }
  double log_qp() const { return log_q_ + log_p_; }

  /// The highest level.
  int top() const { return static_cast<int>(levels_.size()) - 1; }
  /// Throws InvalidArgument if there is no such level.
  const Level& level(int l) const {
    if (l < 0 || l > top()) [[unlikely]]
      refuse_level(l);
    return levels_[static_cast<std::size_t>(l)];
  }
  /// The number of digits of a switching key. Digit d has the q primes [digit_begin(d),
  /// digit_begin(d+1)).
  std::size_t dnum() const { return digit_begin_.size() - 1; }
  std::size_t digit_begin(std::size_t d) const { return digit_begin_[d]; }

  /// Standard deviation of the error.
  double error_std() const;
  /// The number of non-zero coefficients of the sparse secret under which a modulus is raised; 0 if
  /// there is none.
  int sparse_weight() const { return sparse_weight_; }
  /// The primes of P', the special modulus of the sparse secret's key. They are q primes that level
  /// 0 does not have. Their product is at least a quarter of Q_0. Empty if there is no sparse
  /// secret.
  std::span<const PrimeIndex> sparse_p_primes() const { return sparse_p_; }

  /// A switching key for levels 0 to `level` (-1: every level) has the primes that any of these
  /// levels has, then those of P, and its first key_digits(level) digits.
  std::vector<PrimeIndex> key_primes(int level) const;
  std::size_t key_digits(int level) const;
  /// The bytes that one switching key takes in memory: its b halves, which are digits x primes rows
  /// of N words, and a seed of 32 bytes. Serialised keys are packed and take fewer bytes.
  std::size_t switch_key_bytes(int level = -1) const;
  /// The bytes of a set of evaluation keys: relinearisation, rotations and conjugation. Rotations
  /// that are equal modulo N/2 share a key, and a rotation by 0 needs none. Equals
  /// EvaluationKeys::bytes() of the keys made.
  std::size_t key_bytes(std::span<const int> rotations, bool conjugate,
                        bool relinearise = true) const;
  /// The bytes that the keys to and from the sparse secret add to that.
  std::size_t encapsulation_key_bytes() const;
  /// The bytes that the keys of key_bytes() take in an evaluator's memory, where their uniform
  /// halves are expanded.
  std::size_t expanded_key_bytes(std::span<const int> rotations, bool conjugate,
                                 bool relinearise = true) const;

  /// Parameters of the same primes with other levels from some level on are made from these. Their
  /// keys are those of the parameters from which they were made: these, or themselves.
  const Params& whole() const { return whole_ ? *whole_ : *this; }
  /// The level of whole() that has all primes of a level of these. Keys count levels so.
  int whole_level(int level) const {
    // A level above top() stays one that does not exist.
    return level < replaced_ || level > top() ? level : level + whole().top() - top();
  }

  /// Identifies the parameters on every serialised object. The scheme computes it from everything
  /// that computation depends on.
  const ParamsHash& hash() const { return hash_; }

 protected:
  /// Makes these, a copy of `whole`, a part of it: replaces the levels from `first` on and the
  /// hash. Counted from the top, each level of `whole` has all primes of the new one.
  void replace_levels(std::shared_ptr<const Params> whole, std::size_t first,
                      std::span<const std::vector<PrimeIndex>> levels, const ParamsHash& hash);

 private:
  void append_level(const std::vector<PrimeIndex>& primes);
  [[noreturn]] void refuse_level(int l) const;

  int log_n_ = 0;
  Word word_ = Word::w64;
  int security_ = 0;
  std::size_t q_count_ = 0;
  std::vector<std::uint64_t> primes_, ring_primes_;
  std::vector<PrimeIndex> indices_;  // of ring_primes_
  std::vector<Level> levels_;
  std::vector<std::size_t> digit_begin_;
  int sparse_weight_ = 0;
  std::vector<PrimeIndex> sparse_p_;
  double log_q_ = 0, log_p_ = 0;
  ParamsHash hash_{};
  std::shared_ptr<const Params> whole_;  // null for parameters that are no part of others
  int replaced_ = 0;  // the first level that whole() does not have
};

using ParamsPtr = std::shared_ptr<const Params>;

}  // namespace jali::rlwe
