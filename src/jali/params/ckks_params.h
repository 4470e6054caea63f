// CKKS parameters: an unchecked literal becomes an immutable, validated object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/base/checkpoint.h"
#include "jali/params/bootstrap.h"

namespace jali::params {

/// Variance of one coefficient of the error: centred binomial, k = 21 (random::kErrorStd squared).
inline constexpr double kErrorVariance = 10.5;

/// What a user asks for; 0 or empty means "choose". Parameters are a function of it: the search for
/// primes and its order are part of every format that carries a literal (tests/params holds known
/// hashes).
struct CkksLiteral {
  int depth = 1;             // multiplications one after the other, 0 .. 200
  double scale_bits = 40;    // log2 of the scale, and of the modulus one level takes; 15 .. 120
  int log_n = 0;             // 10..17; 0: the smallest that the security table allows
  std::optional<Word> word;  // empty: the fastest on CPUs that can hold the scale
  int security = 128;        // 128, 192, 256; 0 only with a name that begins with "insecure_"
  int dnum = 0;              // digits of key switching at the top level; 0: choose
  double integer_bits = 10;  // room above the scale at level 0, 0 .. 120: |message| <
                             // 2^(integer_bits - 1), to within a quarter of a bit
  std::string name;          // free; must begin with "insecure_" when security is 0
  /// Levels above depth for bootstrapping; empty for none.
  std::optional<BootstrapLiteral> bootstrap{};
};

/// Which of the tables of levels that the search goes through was taken: the plan of a computation's levels
/// and, of 32-bit words, the terminals that bootstrapping adds. With it a literal's table is made again
/// without a search. The numbers are part of the format (docs/math/levels.md).
struct PlanNumbers {
  std::uint8_t levels = 0;
  std::uint8_t bootstrap = 0;
  bool operator==(const PlanNumbers&) const = default;
};

/// The limbs and the canonical scale of one level.
struct Level {
  std::vector<PrimeIndex> primes;   // ascending; not necessarily a prefix (rational rescaling)
  double scale = 0;                 // canonical scale of a ciphertext at this level
  double log_q = 0;                 // log2 of the product of its primes
  double ratio = 0;                 // Q_l / Q_{l-1}; 0 at level 0
  std::vector<std::uint32_t> digit_limbs;  // sizes of the consecutive digits of this level ...
  std::vector<std::uint32_t> digit_ids;    // ... and which digit of the key each one is
};

class CkksParams : public std::enable_shared_from_this<CkksParams> {
 public:
  /// Validates, chooses and freezes. Throws InsecureParams or InvalidArgument with what would fit.
  static std::shared_ptr<const CkksParams> create(const CkksLiteral& literal,
                                                  const Checkpoint& checkpoint = {});

  /// Of a literal with every choice written in and, where one is needed, its plan: what create() made, without a
  /// search, in work that is bounded before it starts. Throws InvalidArgument or InsecureParams, which say no
  /// more than what is wrong. `search`: where a plan is needed and not there it is searched for, as create() does.
  static std::shared_ptr<const CkksParams> create_written(const CkksLiteral& literal,
                                                          std::optional<PlanNumbers> plan,
                                                          bool search = false);

  /// Of the same primes, with fewer levels of a computation: 0 .. depth as they are, above them those of
  /// bootstrapping without the primes that the levels left out had. Keys of these parameters serve both;
  /// the hash differs. Null where there is no bootstrapping, or some of its levels lack a prime that the levels left
  /// out have, or level `depth` has one that the highest lacks (rational rescaling).
  std::shared_ptr<const CkksParams> with_depth(int depth) const;
  /// Those that with_depth was asked of, or these; and the level there that has all primes of one here.
  const CkksParams& whole() const { return whole_ ? *whole_ : *this; }
  int whole_level(int level) const {
    // A level that is not there is none there either.
    return level <= depth() || level > top() ? level : level + whole().depth() - depth();
  }

  /// The literal with every choice written in: log_n, word, dnum. create() of it gives the same
  /// parameters.
  const CkksLiteral& literal() const { return literal_; }
  /// Empty where the levels are the first that are tried, one prime each.
  const std::optional<PlanNumbers>& plan() const { return plan_; }
  int log_n() const { return log_n_; }
  std::size_t n() const { return std::size_t{1} << log_n_; }
  std::size_t slots() const { return n() / 2; }
  Word word() const { return word_; }
  int depth() const { return literal_.depth; }
  /// The highest level there is: depth(), and above it the levels of bootstrapping.
  int top() const { return static_cast<int>(levels_.size()) - 1; }
  const std::optional<BootstrapLiteral>& bootstrap() const { return literal_.bootstrap; }
  int security() const { return security_; }  // what the table grants: 128, 192, 256 or 0
  double scale_bits() const { return literal_.scale_bits; }

  /// All primes: q_0 .. q_{q_count-1}, then p_0 .. p_{p_count-1}.
  std::span<const std::uint64_t> primes() const { return primes_; }
  std::size_t q_count() const { return q_count_; }
  std::size_t p_count() const { return primes_.size() - q_count_; }
  std::span<const PrimeIndex> q_primes() const { return {indices_.data(), q_count_}; }
  std::span<const PrimeIndex> p_primes() const { return std::span(indices_).subspan(q_count_); }
  std::span<const PrimeIndex> all_primes() const { return indices_; }
  double log_q() const { return log_q_; }
  double log_p() const { return log_p_; }
  double log_qp() const { return log_q_ + log_p_; }

  /// Level 0 is the last; level depth() the highest of a computation. The canonical scales satisfy
  /// scale(depth) = 2^scale_bits and scale(l-1) = scale(l)^2 prod(level l-1) / prod(level l), rounded to
  /// double; all are within max_scale_drift() of 2^scale_bits. Levels above depth() are those of
  /// bootstrapping: their scales are free and `scale` is the nominal one.
  /// Throws InvalidArgument where there is no such level.
  const Level& level(int l) const {
    if (l < 0 || l > top()) [[unlikely]]
      refuse_level(l);
    return levels_[static_cast<std::size_t>(l)];
  }
  /// max |log2 scale(l) - scale_bits| over the levels.
  double max_scale_drift() const { return drift_; }
  /// Number of digits of a switching key; digit d holds q primes [digit_begin(d), digit_begin(d+1)).
  std::size_t dnum() const { return digit_begin_.size() - 1; }
  std::size_t digit_begin(std::size_t d) const { return digit_begin_[d]; }
  /// The special modulus of the sparse secret's key: primes outside level 0, their product at least Q_0.
  /// Empty without bootstrapping.
  std::span<const PrimeIndex> sparse_p_primes() const { return sparse_p_; }

  /// Standard deviation of the error, and of the uniform ternary secret's coefficients.
  double error_std() const { return error_std_; }

  /// What a switching key for levels 0 to `level` consists of (-1: all there are): the primes that any
  /// of these levels has, then P; and how many digits, from the first.
  std::vector<PrimeIndex> key_primes(int level) const;
  std::size_t key_digits(int level) const;
  /// Bytes of one switching key as kept and sent: its b halves, digits x primes rows of N words, and a
  /// seed of 32 bytes.
  std::size_t switch_key_bytes(int level = -1) const;
  /// Bytes of an evaluation-key set: relinearisation, these rotations (deduplicated modulo slots, 0
  /// needs none), conjugation. Equals EvaluationKeys::bytes() of the keys made.
  std::size_t key_bytes(std::span<const int> rotations, bool conjugate,
                        bool relinearise = true) const;
  /// Bytes that bootstrapping's own keys to and from the sparse secret add, as kept and sent.
  std::size_t encapsulation_key_bytes() const;
  /// Bytes of the same keys expanded in an evaluator's memory.
  std::size_t expanded_key_bytes(std::span<const int> rotations, bool conjugate,
                                 bool relinearise = true) const;

  /// Identifies the parameters on every serialised object: SHA-256 of everything that computation
  /// depends on (not of the name).
  const std::array<std::uint8_t, 32>& hash() const { return hash_; }

 private:
  CkksParams() = default;
  friend struct CkksParamsBuilder;
  [[noreturn]] void refuse_level(int l) const;
  CkksLiteral literal_;
  std::optional<PlanNumbers> plan_;
  int log_n_ = 0;
  Word word_ = Word::w64;
  int security_ = 0;
  std::size_t q_count_ = 0;
  std::vector<std::uint64_t> primes_;
  std::vector<PrimeIndex> indices_;
  std::vector<Level> levels_;
  std::vector<std::size_t> digit_begin_;
  std::vector<PrimeIndex> sparse_p_;
  double log_q_ = 0, log_p_ = 0, drift_ = 0;
  double error_std_ = 0;
  std::shared_ptr<const CkksParams> whole_;
  std::array<std::uint8_t, 32> hash_{};
};

using CkksParamsPtr = std::shared_ptr<const CkksParams>;

/// Largest log2(PQ) for ternary secrets, sigma 3.19, classical (eprint 2024/463, Table 5.2);
/// 0 where the table has no entry. security: 128, 192 or 256.
double max_log_qp(int log_n, int security);

}  // namespace jali::params
