// CKKS bootstrapping: from a ciphertext at its last levels to one of the same message at level
// depth(). See docs/math/bootstrapping.md.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "jali/base/progress.h"
#include "jali/circuits/ckks/dft.h"
#include "jali/circuits/ckks/modular_reduction.h"

namespace jali::bootstrap {

using ckks::ParamsPtr;

/// How bootstrapping does with less than all keys: a Sequence for each matrix of coefficients to
/// slots and of slots to coefficients, and keys for every `trace`-th rotation of the trace, of
/// which the others are composed. Without any Sequence, the matrices are applied as with all keys.
/// log_slots: with how many slots, if with more than the values have; -1: with as many.
struct FewKeys {
  std::vector<circuits::Sequence> to_slots, to_coefficients;
  int trace = 4;
  int log_slots = -1;
  bool operator==(const FewKeys&) const = default;
};

struct BootstrapperOptions {
  /// With how many slots ciphertexts are bootstrapped; -1: all N/2. Those that have more slots are
  /// taken for ciphertexts whose numbers repeat after 2^log_slots slots (Bootstrapper::apply). The
  /// plan's options() have more if its keys are few (FewKeys).
  int log_slots = -1;
  /// Whether the imaginary parts of the slots are dropped. With slots_first that halves the work of
  /// the modular reduction. With raise_first it costs a conjugation at the end.
  bool real = false;
  /// Whether to need the rotation keys of the fewest bytes: the first of key_sets().
  bool minimum = false;
  /// The highest level of a result; -1: depth(). With a lower one the modulus is raised less, so
  /// that every step costs less. It needs no further keys.
  int target_level = -1;
  std::optional<FewKeys> few{};  // replaces `minimum`
  bool operator==(const BootstrapperOptions&) const = default;
};

circuits::ReductionOptions reduction_options(const params::BootstrapLiteral& literal);

/// The part of bootstrapping that depends on the parameters and the packing alone: the matrices,
/// and the rotations that they need.
class BootstrapPlan {
 public:
  /// Throws InvalidArgument for parameters without bootstrapping, and for options that they do not
  /// serve.
  BootstrapPlan(ckks::ParamsPtr params, const BootstrapperOptions& options = {});

  /// The parameters of the ciphertexts.
  const ckks::ParamsPtr& params() const { return whole_; }
  /// The highest level of a result.
  int depth() const { return params_->depth(); }
  const BootstrapperOptions& options() const { return options_; }
  /// The rotations to make keys for, each with the highest level at which it is used. The keys for
  /// conjugation and relinearisation, at the levels below, and the encapsulation keys are needed,
  /// too.
  std::map<int, int> rotation_levels() const;
  int conjugation_level() const { return params_->whole_level(to_slots_->output_level()); }
  int relinearisation_level() const { return conjugation_level(); }
  std::vector<int> rotations() const;
  std::size_t plaintext_bytes() const;  // that prepare() takes
  /// Encodes the diagonals of all matrices in the memory of an engine of params(), and keeps them.
  /// Without this call, each is encoded whenever it is used. It must not be called while another
  /// thread bootstraps by this plan. progress: called after each matrix.
  void prepare(const ckks::Engine& engine, const Progress& progress = {});
  /// The lowest level of an input.
  int input_level() const { return params_->bootstrap()->input_level(); }
  /// The largest declared magnitude of a ciphertext, in message units, at least 1. Slots of this
  /// size lose at most 2^-10 of themselves because the sine is not linear, or, if slots of size 1
  /// lose more, as much as these.
  double max_magnitude() const;
  /// The largest error of a slot, in message units, that arises because sin(2 pi x) is not 2 pi x,
  /// for any message whose slots have a modulus of at most `bound`.
  double worst_sine_error(double bound) const;
  /// The root mean square of that error, for slots of root mean square `magnitude`, of which none
  /// has a larger modulus than `peak`. With slots_first the slots are taken for normal numbers to
  /// the power `degree`, either real or complex. With raise_first they may be any: equal numbers
  /// have the most, and independent ones in many slots far less.
  double sine_error(double magnitude, double peak, bool real, double degree = 1) const;

 private:
  friend class Bootstrapper;
  int packed_log_slots() const { return options_.log_slots + (side_by_side_ ? 1 : 0); }

  double sine_term(double numbers) const;

  ckks::ParamsPtr whole_, params_;  // params_: the part of whole_ with the levels that are restored
  BootstrapperOptions options_;
  bool side_by_side_ = false;
  int turn_ = 0;  // the rotation that puts the result's slots where they belong
  int raised_level_ = 0;  // the first matrix's level, or above it if few slots leave levels unused
  double q0_ = 0;
  double entry_scale_ = 0;  // of the message at level 0
  double mod_scale_ = 0;  // of the result of the reduction, in message units
  circuits::ModularReduction reduction_;
  std::optional<circuits::HomomorphicDft> to_slots_, to_coefficients_;
};

/// The highest level at which each key is used by an evaluator that also bootstraps: in the plans,
/// and in the caller's own rotations and products, which lie at most at depth(). It is rlwe::kNoKey
/// if a key is not used.
struct KeyLevels {
  std::map<int, int> rotations;
  int conjugate = rlwe::kNoKey, relinearise = rlwe::kNoKey;
};
KeyLevels key_levels(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                     std::span<const int> rotations = {}, bool conjugate = false);
/// The bytes that these keys take in memory, known before they are made
/// (bootstrap/secret/evaluation_keys.h). Serialised keys are packed and take fewer.
std::size_t key_bytes(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                      std::span<const int> rotations = {}, bool conjugate = false);
/// The bytes that these keys take in the memory of an evaluator, on a host or a GPU, where the
/// uniform halves are expanded from their seeds.
std::size_t expanded_key_bytes(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                               std::span<const int> rotations = {}, bool conjugate = false);

/// A function that is called after each stage of a bootstrapping, with the stage's name or with its
/// name and result. It is for timing and tests. Stages: "enter" (raise_first only), "raise",
/// "coefficients_to_slots", "conjugation", "reduction", "slots_to_coefficients".
class Done {
 public:
  Done() = default;
  template <class F>
    requires std::invocable<const F&, const char*, const ckks::Ciphertext&>
  Done(F call) : call_(std::move(call)) {}  // NOLINT: a function converts to it implicitly
  template <class F>
    requires std::invocable<const F&, const char*>
  Done(F call)  // NOLINT: a function converts to it implicitly
      : call_([call = std::move(call)](const char* stage, const ckks::Ciphertext&) {
          call(stage);
        }) {}
  void operator()(const char* stage, const ckks::Ciphertext& result) const {
    if (call_) call_(stage, result);
  }

 private:
  std::function<void(const char*, const ckks::Ciphertext&)> call_;
};

/// Bootstraps ciphertexts of any number of slots with that of its plan. It needs no secret key.
/// apply and apply_pair may be used from several threads.
class Bootstrapper {
 public:
  /// Throws KeyMissing, which names what is missing, and ParamsMismatch for an evaluator of other
  /// parameters.
  Bootstrapper(std::shared_ptr<const ckks::Evaluator> evaluator, BootstrapPlan plan);
  /// The same by a plan that bootstrappers of other clients share, whose evaluators have the same
  /// engine.
  Bootstrapper(std::shared_ptr<const ckks::Evaluator> evaluator,
               std::shared_ptr<BootstrapPlan> plan);

  const BootstrapPlan& plan() const { return *plan_; }
  /// BootstrapPlan::prepare for the evaluator's engine.
  void prepare(const Progress& progress = {});

  using Done = bootstrap::Done;
  static constexpr int kMaxIterations = 4;
  /// x has two parts, any scale and batch, and any level from plan().input_level() on. The result
  /// has the level target_level
  /// (-1: the highest) and that level's canonical scale.
  /// The result has the message of x, provided that the coefficients of x's polynomial are below
  /// q_0 / (2 scale) on entry. With the sine alone (inverse_sine 1) the error grows with their
  /// cube; see docs/math/bootstrapping.md. x may have more slots than the plan's n. The trace then
  /// gives every slot the mean of those that lie a multiple of n apart: for numbers that repeat
  /// after n slots that is the message of x, and noise that does not repeat is removed. It may have
  /// fewer, because its numbers then repeat in n slots. The result has as many slots as x. On a
  /// host a large batch is bootstrapped in parts, which take 256 MiB or so, or four ciphertexts at
  /// once if these take more. Then `done` is called for each part. iterations: from 1 to
  /// kMaxIterations (Meta-BTS, eprint 2022/1167). If one bootstrapping has p bits of precision, two
  /// iterations have 2p - 3, but no more than x and the canonical scale have. With more than one,
  /// the highest level is depth() - 1. Everything is checked before any work. Throws
  /// InvalidArgument if the declared magnitude or peak is too large (max_magnitude());
  /// DepthExhausted for a level below the input level; ScaleMismatch for a scale that leaves no
  /// room.
  ckks::Ciphertext apply(const ckks::Ciphertext& x, int target_level = -1, const Done& done = {},
                         int iterations = 1) const;
  /// Bootstraps two ciphertexts of real slots, of equal levels and scales, at once, as x + i y. If
  /// they had imaginary parts, these would mix. Throws what apply throws, and InvalidArgument if
  /// the plan drops imaginary parts.
  std::pair<ckks::Ciphertext, ckks::Ciphertext> apply_pair(const ckks::Ciphertext& x,
                                                           const ckks::Ciphertext& y,
                                                           int target_level = -1,
                                                           int iterations = 1) const;

 private:
  void check(const ckks::Ciphertext& x) const;
  int checked_target(int target_level, int iterations) const;
  /// Times factor, in parts of most_at_once.
  ckks::Ciphertext restored(const ckks::Ciphertext& x, int target, double factor, const Done& done,
                            int iterations) const;
  ckks::Ciphertext once(const ckks::Ciphertext& x, int target, double factor,
                        const Done& done) const;
  ckks::Ciphertext iterated(const ckks::Ciphertext& x, int target, double factor, const Done& done,
                            int iterations) const;
  double reduction_error(double largest, double drift) const;
  double error_bound(const ckks::Ciphertext& x, double drift) const;
  /// How many ciphertexts of x's batch are bootstrapped together. On a host this limits the memory.
  std::size_t most_at_once(const ckks::Ciphertext& x) const;
  ckks::Ciphertext enter(const ckks::Ciphertext& x, double& entered) const;
  ckks::Ciphertext trace(ckks::Ciphertext x) const;
  ckks::Ciphertext reduce(const ckks::Ciphertext& slots, double scale, const Done& done) const;

  // evaluator_ is for the whole parameters, inner_ for the part of them that the plan uses.
  std::shared_ptr<const ckks::Evaluator> evaluator_, inner_;
  std::shared_ptr<BootstrapPlan> plan_;
};

}  // namespace jali::bootstrap
