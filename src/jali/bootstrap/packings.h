// Bootstrapping of whatever packing comes: a bootstrapper for each, made when it is first needed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "jali/base/turns.h"
#include "jali/bootstrap/bootstrapper.h"

namespace jali::bootstrap {

/// The bootstrappers of an evaluator, by number of slots, real or complex, and highest level. Each is made with its
/// matrices encoded at its first use, by one thread while others wait, and all are kept: captured functions read
/// their matrices. With the keys that there are: those for speed, else the fewest (KeyMissing names the former).
///
/// May be used from several threads. Errors are Bootstrapper's and those of Turns.
class Packings {
 public:
  explicit Packings(std::shared_ptr<const ckks::Evaluator> evaluator);

  /// real: whether imaginary parts are dropped; empty: if that costs less and the data is real.
  /// The other arguments as in Bootstrapper::apply.
  ckks::Ciphertext apply(const ckks::Ciphertext& a, int target_level = -1, int iterations = 1,
                         std::optional<bool> real = {}) const;
  /// Two vectors of real numbers in one bootstrapping. Throws InvalidArgument for complex ones.
  std::pair<ckks::Ciphertext, ckks::Ciphertext> apply_pair(const ckks::Ciphertext& a,
                                                           const ckks::Ciphertext& b,
                                                           int target_level = -1,
                                                           int iterations = 1) const;
  /// Makes the one for the highest level now.
  void prepare(int log_slots, bool real, const Progress& progress = {}) const;

 private:
  std::shared_ptr<const Bootstrapper> at(BootstrapperOptions options, int target_level,
                                         int iterations, const Progress& progress = {}) const;
  std::shared_ptr<const Bootstrapper> make(BootstrapperOptions options,
                                           const Progress& progress) const;

  const std::shared_ptr<const ckks::Evaluator> evaluator_;
  mutable Turns turns_;
  mutable std::map<std::tuple<int, bool, int>, std::shared_ptr<const Bootstrapper>> made_;
};

}  // namespace jali::bootstrap
