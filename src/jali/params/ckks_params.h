// CKKS parameters: an unchecked literal becomes an immutable, validated object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/base/checkpoint.h"
#include "jali/params/bootstrap.h"
#include "jali/params/rlwe_params.h"

namespace jali::params {

/// Which of the tables of levels that the search goes through was taken: the plan of a computation's levels
/// and, of 32-bit words, the terminals that bootstrapping adds. With it a literal's table is made again
/// without a search. The numbers are part of the format (docs/math/levels.md).
struct PlanNumbers {
  std::uint8_t levels = 0;
  std::uint8_t bootstrap = 0;
  bool operator==(const PlanNumbers&) const = default;
};

}  // namespace jali::params

namespace jali::ckks {

using params::BootstrapLiteral;
using params::PlanNumbers;

/// What a user asks for; 0 or empty means "choose". Parameters are a function of it: the search for
/// primes and its order are part of every format that carries a literal (tests/params holds known
/// hashes).
struct Literal {
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

/// Adds to the parameters of RLWE what CKKS needs: the scales of the levels, and the levels of bootstrapping.
///
/// Level 0 is the last; level depth() the highest of a computation. The canonical scales satisfy
/// scale(depth) = 2^scale_bits and scale(l-1) = scale(l)^2 prod(level l-1) / prod(level l), rounded to
/// double; all are within max_scale_drift() of 2^scale_bits. Levels above depth() are those of
/// bootstrapping: their scales are free and scale(l) is the nominal one.
class Params : public rlwe::Params, public std::enable_shared_from_this<Params> {
 public:
  /// Validates, chooses and freezes. Throws InsecureParams or InvalidArgument with what would fit.
  static std::shared_ptr<const Params> create(const Literal& literal,
                                              const Checkpoint& checkpoint = {});

  /// Of a literal with every choice written in and, where one is needed, its plan: what create() made, without a
  /// search, in work that is bounded before it starts. Throws InvalidArgument or InsecureParams, which say no
  /// more than what is wrong. `search`: where a plan is needed and not there it is searched for, as create() does.
  static std::shared_ptr<const Params> create_written(const Literal& literal,
                                                      std::optional<PlanNumbers> plan,
                                                      bool search = false);

  /// Of the same primes, with fewer levels of a computation: 0 .. depth as they are, above them those of
  /// bootstrapping without the primes that the levels left out had. Keys of these parameters serve both;
  /// the hash differs. Null where there is no bootstrapping, or some of its levels lack a prime that the levels left
  /// out have, or level `depth` has one that the highest lacks (rational rescaling).
  std::shared_ptr<const Params> with_depth(int depth) const;
  /// Those that with_depth was asked of, or these; and the level there that has all primes of one here.
  const Params& whole() const { return whole_ ? *whole_ : *this; }
  int whole_level(int level) const {
    // A level that is not there is none there either.
    return level <= depth() || level > top() ? level : level + whole().depth() - depth();
  }

  /// The literal with every choice written in: log_n, word, dnum. create() of it gives the same
  /// parameters.
  const Literal& literal() const { return literal_; }
  /// Empty where the levels are the first that are tried, one prime each.
  const std::optional<PlanNumbers>& plan() const { return plan_; }
  std::size_t slots() const { return n() / 2; }
  int depth() const { return literal_.depth; }
  const std::optional<BootstrapLiteral>& bootstrap() const { return literal_.bootstrap; }
  double scale_bits() const { return literal_.scale_bits; }

  /// Canonical scale of a ciphertext at level l, and Q_l / Q_{l-1} (0 at level 0). Throw InvalidArgument if there is no
  /// such level.
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
    level(l);  // refuses one that does not exist
    return scales_[static_cast<std::size_t>(l)];
  }
  Literal literal_;
  std::optional<PlanNumbers> plan_;
  std::vector<LevelScale> scales_;
  double drift_ = 0;
  std::shared_ptr<const Params> whole_;
};

using ParamsPtr = std::shared_ptr<const Params>;

}  // namespace jali::ckks
