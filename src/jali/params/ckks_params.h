// CKKS parameters. A literal, which is unchecked, becomes an immutable object that is valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/base/checkpoint.h"
#include "jali/params/ckks/bootstrap.h"
#include "jali/params/rlwe_params.h"

namespace jali::params {

/// Which of the tables of levels the search took: the number of the plan of a computation's levels
/// and, for 32-bit words, that of the terminals that bootstrapping adds. With these numbers a
/// literal's table is made again without a search. They are part of the format
/// (docs/math/levels.md).
struct PlanNumbers {
  std::uint8_t levels = 0;
  std::uint8_t bootstrap = 0;
  bool operator==(const PlanNumbers&) const = default;
};

}  // namespace jali::params

namespace jali::ckks {

using params::BootstrapLiteral;
using params::PlanNumbers;

/// What a user asks for; 0 or empty means "choose". A literal determines the parameters. The search
/// for primes and its order are therefore part of every format that carries a literal. tests/params
/// has known hashes.
struct Literal {
  int depth = 1;             // multiplications one after the other, 0 to 200
  double scale_bits = 40;  // log2 of the scale, and of the modulus that a level takes; 15 to 120
  int log_n = 0;  // 10 to 17; 0: the smallest that the security table allows
  std::optional<Word> word;  // empty: the fastest on CPUs that can hold the scale
  int security = 128;  // 128, 192, 256; 0 only with a name that begins with "insecure_"
  int dnum = 0;  // digits of key switching at the top level; 0: choose
  /// Room above the scale at level 0, in bits, 0 to 120. The moduli of messages are below
  /// 2^(integer_bits - 1), up to a quarter of a bit.
  double integer_bits = 10;
  /// Any UTF-8 without control characters. If security is 0, it must begin with "insecure_".
  std::string name;
  /// The levels of bootstrapping above depth; empty if there are none.
  std::optional<BootstrapLiteral> bootstrap{};
};

/// Adds to the parameters of RLWE what CKKS needs: the scales of the levels, and the levels of
/// bootstrapping.
///
/// Level 0 is the last level, and level depth() the highest of a computation. The canonical scales
/// satisfy
///   scale(depth) = 2^scale_bits,   scale(l-1) = scale(l)^2 Q_{l-1} / Q_l,
/// rounded to double. All of them are within max_scale_drift() bits of 2^scale_bits. Levels above
/// depth() are those of bootstrapping. Ciphertexts there may have any scale, and scale(l) is the
/// nominal one.
class Params : public rlwe::Params, public std::enable_shared_from_this<Params> {
 public:
  /// Checks the literal and makes every choice that it leaves open. Throws InsecureParams or
  /// InvalidArgument, which say what would fit. A search may take seconds, during which
  /// `checkpoint` is called.
  static std::shared_ptr<const Params> create(const Literal& literal,
                                              const Checkpoint& checkpoint = {});

  /// Makes again what create() made, from a literal with every choice written in and its plan(). It
  /// does not search, and its work is bounded before it starts. Throws InvalidArgument or
  /// InsecureParams, which say what is wrong but not what would fit. If a plan is needed and
  /// missing, it is searched for as create() does if `search` is true; otherwise throws
  /// LimitExceeded.
  static std::shared_ptr<const Params> create_written(const Literal& literal,
                                                      std::optional<PlanNumbers> plan,
                                                      bool search = false);

  /// Parameters of the same primes with fewer levels of a computation. Levels 0 to depth stay as
  /// they are. Above them come the levels of bootstrapping at smaller moduli: without the primes
  /// that only the missing levels had or, if rational rescaling makes that impossible, with other
  /// sets of primes (part_levels). The keys of these parameters serve both; the hash differs. Null
  /// if these have no bootstrapping, or if no such levels are found. Throws InvalidArgument unless
  /// depth is 0 to depth().
  std::shared_ptr<const Params> with_depth(int depth) const;
  /// rlwe::Params::whole with its type here. NOLINTNEXTLINE(*-derived-method-shadowing-base-method)
  const Params& whole() const { return static_cast<const Params&>(rlwe::Params::whole()); }

  /// The literal with every choice written in: log_n, word and dnum. create() makes the same
  /// parameters from it.
  const Literal& literal() const { return literal_; }
  /// Empty if the levels have one prime each, which is what is tried first.
  const std::optional<PlanNumbers>& plan() const { return plan_; }
  std::size_t slots() const { return n() / 2; }
  int depth() const { return literal_.depth; }
  const std::optional<BootstrapLiteral>& bootstrap() const { return literal_.bootstrap; }
  double scale_bits() const { return literal_.scale_bits; }

  /// The canonical scale of a ciphertext at level l, and Q_l / Q_{l-1}, which is 0 at level 0. Both
  /// throw InvalidArgument if there is no such level.
  double scale(int l) const { return at(l).scale; }
  double ratio(int l) const { return at(l).ratio; }
  /// max |log2 scale(l) - scale_bits| over the levels.
  double max_scale_drift() const { return drift_; }

 private:
  struct LevelScale {
    double scale = 0, ratio = 0;
  };
  explicit Params(const rlwe::ParamsSpec& spec) : rlwe::Params(spec) {}
  friend struct ParamsBuilder;
  const LevelScale& at(int l) const {
    level(l);  // throws if it does not exist
    return scales_[static_cast<std::size_t>(l)];
  }
  Literal literal_;
  std::optional<PlanNumbers> plan_;
  std::vector<LevelScale> scales_;
  double drift_ = 0;
};

using ParamsPtr = std::shared_ptr<const Params>;

}  // namespace jali::ckks
