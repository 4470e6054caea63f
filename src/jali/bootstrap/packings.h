// Bootstrapping of any packing: there is a bootstrapper for each packing, made when it is first
// needed.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "jali/base/turns.h"
#include "jali/bootstrap/plans.h"

namespace jali::bootstrap {

/// The bootstrappers of an evaluator, by number of slots, real or complex, and highest level. Each
/// is made at its first use, with its matrices encoded, by one thread while others wait. All are
/// kept, because captured functions read their matrices, which the evaluators of other clients may
/// share (Plans). It uses the keys for the fastest bootstrapping if they are there, else the
/// fastest way that its keys serve (key_sets.h), which may be bootstrapping with more slots. If
/// there is none, KeyMissing says for how many slots keys are missing.
///
/// May be used from several threads. Errors are Bootstrapper's and those of Turns.
class Packings {
 public:
  /// Called before a bootstrapper is made with less than all of its keys, by the thread that makes
  /// it: its number of slots, with how many slots the keys serve it, and the time that this takes,
  /// over that with all keys (Served). If it throws, none is made.
  using Fewer = std::function<void(std::size_t slots, std::size_t with, double time)>;

  /// plans: those of the evaluator's engine; null for its own.
  explicit Packings(std::shared_ptr<const ckks::Evaluator> evaluator, Fewer fewer = {},
                    std::shared_ptr<const Plans> plans = {});

  /// real: whether imaginary parts are dropped; if it is empty, they are dropped if that costs less
  /// and the data is real. log_slots: with how many slots; -1: as many as `a` has. Fewer are for
  /// numbers that repeat after so many, which is what the caller claims (see Bootstrapper::apply
  /// for what becomes of others, which depends on the number of slots that the keys are for).
  /// Throws InvalidArgument for more slots than `a` has, and for a packing by which different
  /// numbers, or a number and a slot that holds none, lie so far apart. The other arguments are
  /// those of Bootstrapper::apply.
  ckks::Ciphertext apply(const ckks::Ciphertext& a, int target_level = -1, int iterations = 1,
                         std::optional<bool> real = {}, int log_slots = -1) const;
  /// Bootstraps two ciphertexts of real numbers at once. Throws InvalidArgument for complex ones,
  /// and what apply throws.
  std::pair<ckks::Ciphertext, ckks::Ciphertext> apply_pair(const ckks::Ciphertext& a,
                                                           const ckks::Ciphertext& b,
                                                           int target_level = -1,
                                                           int iterations = 1,
                                                           int log_slots = -1) const;
  /// Makes the bootstrapper for the highest level now. progress: called after each of its matrices.
  void prepare(int log_slots, bool real, const Progress& progress = {}) const;

 private:
  std::shared_ptr<const Bootstrapper> at(BootstrapperOptions options, int target_level,
                                         int iterations, const Progress& progress = {}) const;
  // Both are for the thread whose turn it is. made() keeps what make() makes.
  std::shared_ptr<const Bootstrapper> made(const BootstrapperOptions& options,
                                           const Progress& progress) const;
  std::shared_ptr<const Bootstrapper> make(BootstrapperOptions options,
                                           const Progress& progress) const;

  const std::shared_ptr<const ckks::Evaluator> evaluator_;
  const Fewer fewer_;
  const std::shared_ptr<const Plans> plans_;
  mutable Turns turns_;
  mutable std::map<std::tuple<int, bool, int>, std::shared_ptr<const Bootstrapper>> made_;
};

}  // namespace jali::bootstrap
