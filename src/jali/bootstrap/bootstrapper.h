// CKKS bootstrapping: a ciphertext at its last levels becomes one of the same message at level
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
#include "jali/circuits/dft.h"
#include "jali/circuits/modular_reduction.h"

namespace jali::bootstrap {

using params::CkksParamsPtr;

struct BootstrapperOptions {
  int log_slots = -1;  // of the ciphertexts; -1: all N/2
  /// The imaginary parts of the slots are dropped: with slots_first that halves the reduction, with
  /// raise_first it costs a conjugation at the end.
  bool real = false;
  /// The fewest rotation keys, one a matrix and one more, at about three times the key switches.
  bool minimum = false;
  /// The highest level of a result; -1: depth(). Below it the modulus is raised to less, so that everything
  /// costs less; needs no other keys.
  int target_level = -1;
};

/// What of bootstrapping depends on parameters and packing alone: the matrices and the rotations that
/// they need.
class BootstrapPlan {
 public:
  /// Throws InvalidArgument for parameters without bootstrapping and for packings they do not serve.
  BootstrapPlan(CkksParamsPtr params, const BootstrapperOptions& options = {});

  /// Those of the ciphertexts.
  const CkksParamsPtr& params() const { return whole_; }
  /// The highest level of a result.
  int depth() const { return params_->depth(); }
  const BootstrapperOptions& options() const { return options_; }
  /// Rotations to make keys for, each with the highest level that it is used at; conjugation,
  /// relinearisation (at these levels) and encapsulation keys are needed, too.
  std::map<int, int> rotation_levels() const;
  int conjugation_level() const { return params_->whole_level(to_slots_->output_level()); }
  int relinearisation_level() const { return conjugation_level(); }
  std::vector<int> rotations() const;
  std::size_t plaintext_bytes() const;  // that prepare() takes
  /// The lowest level of an input.
  int input_level() const { return params_->bootstrap()->input_level(); }
  /// Declared magnitude, in message units, up to which ciphertexts are taken: slots of this size lose at most 2^-10 of
  /// themselves to the sine (or what they lose at 1, where that is more).
  double max_magnitude() const;
  /// How far a slot can be off because sin(2 pi x) is not 2 pi x, for any message of slots at most
  /// `bound`; and its root mean square for slots of this root mean square, independent and complex.
  double worst_sine_error(double bound) const;
  double sine_error(double magnitude) const;

 private:
  friend class Bootstrapper;
  int packed_log_slots() const { return options_.log_slots + (side_by_side_ ? 1 : 0); }

  double sine_term(double numbers) const;

  CkksParamsPtr whole_, params_;  // params_: of the levels that are restored
  BootstrapperOptions options_;
  bool side_by_side_ = false;
  int turn_ = 0;  // rotation that puts the result's slots where they belong
  int raised_level_ = 0;  // that of the first matrix, or above it where few slots leave levels over
  double q0_ = 0;
  double entry_scale_ = 0;  // of the message at level 0
  double mod_scale_ = 0;  // of the result of the reduction, in message units
  circuits::ModularReduction reduction_;
  std::optional<circuits::HomomorphicDft> to_slots_, to_coefficients_;
};

/// The highest levels at which keys of an evaluator that also bootstraps are used: those of each plan, the caller's own
/// rotations and products up to depth(). rlwe::kNoKey where none is.
struct KeyLevels {
  std::map<int, int> rotations;
  int conjugate = rlwe::kNoKey, relinearise = rlwe::kNoKey;
};
KeyLevels key_levels(const params::CkksParams& params, std::span<const BootstrapPlan> plans,
                     std::span<const int> rotations = {}, bool conjugate = false);
/// Bytes of these keys, before they are made (bootstrap/secret/evaluation_keys.h).
std::size_t key_bytes(const params::CkksParams& params, std::span<const BootstrapPlan> plans,
                      std::span<const int> rotations = {}, bool conjugate = false);
/// What they take in the memory of an evaluator, on a host or a GPU: uniform halves come from no seed there.
std::size_t expanded_key_bytes(const params::CkksParams& params,
                               std::span<const BootstrapPlan> plans,
                               std::span<const int> rotations = {}, bool conjugate = false);

/// Called after each stage of a bootstrapping with its name, for timing, or with its result too.
class Done {
 public:
  Done() = default;
  template <class F>
    requires std::invocable<const F&, const char*, const ckks::Ciphertext&>
  Done(F call) : call_(std::move(call)) {}  // NOLINT: is what it calls
  template <class F>
    requires std::invocable<const F&, const char*>
  Done(F call)  // NOLINT: as above
      : call_([call = std::move(call)](const char* stage, const ckks::Ciphertext&) {
          call(stage);
        }) {}
  void operator()(const char* stage, const ckks::Ciphertext& result) const {
    if (call_) call_(stage, result);
  }

 private:
  std::function<void(const char*, const ckks::Ciphertext&)> call_;
};

/// Needs no secret. All operations are const and may be used from several threads.
class Bootstrapper {
 public:
  /// Throws KeyMissing, naming what is missing.
  Bootstrapper(std::shared_ptr<const ckks::Evaluator> evaluator, BootstrapPlan plan);

  const BootstrapPlan& plan() const { return plan_; }
  /// Encodes all diagonals now and keeps them; without it each is encoded whenever it is used.
  /// progress: called after each matrix.
  void prepare(const Progress& progress = {});

  using Done = bootstrap::Done;
  static constexpr int kMaxIterations = 4;
  /// x of two parts, of any scale and batch, at any level from plan().input_level() on. The result
  /// has level target_level (-1: the highest) and that level's canonical scale.
  /// Its message is that of x as long as the coefficients of x's polynomial are below 1/2 of q_0 /
  /// scale on entry; with the sine alone the error grows with their cube (see the document). Throws
  /// InvalidArgument when the declared magnitude is above max_magnitude().
  /// iterations: Meta-BTS. p bits of precision become 2p - 3 of two, at most those of x and of the
  /// canonical scale; the highest level is then depth() - 1. All is checked before any work.
  ckks::Ciphertext apply(const ckks::Ciphertext& x, int target_level = -1, const Done& done = {},
                         int iterations = 1) const;
  /// Two ciphertexts of real slots, of one level and scale, in one bootstrapping: as x + i y. Imaginary
  /// parts that they had would mix.
  std::pair<ckks::Ciphertext, ckks::Ciphertext> apply_pair(const ckks::Ciphertext& x,
                                                           const ckks::Ciphertext& y,
                                                           int target_level = -1,
                                                           int iterations = 1) const;

 private:
  void check(const ckks::Ciphertext& x) const;
  int checked_target(int target_level, int iterations) const;
  ckks::Ciphertext once(const ckks::Ciphertext& x, int target, double factor,
                        const Done& done) const;
  ckks::Ciphertext iterated(const ckks::Ciphertext& x, int target, double factor, const Done& done,
                            int iterations) const;
  ckks::Ciphertext enter(const ckks::Ciphertext& x, double& entered) const;
  ckks::Ciphertext trace(ckks::Ciphertext x) const;
  ckks::Ciphertext reduce(const ckks::Ciphertext& slots, double scale, const Done& done) const;

  std::shared_ptr<const ckks::Evaluator> evaluator_, inner_;  // of the whole and of the plan's part
  BootstrapPlan plan_;
};

}  // namespace jali::bootstrap
