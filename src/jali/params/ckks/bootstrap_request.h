// Chooses the sizes of bootstrapping's levels from the precision and the levels that are wanted.
#pragma once

#include <string>

#include "jali/base/checkpoint.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

struct BootstrapRequest {
  double precision_bits = 20;  // of a bootstrapped slot, as create_with_bootstrap defines it
  /// The multiplications that a result allows. With slots_first: before the next bootstrapping is
  /// due.
  int levels_after = 10;
  BootstrapOrder order = BootstrapOrder::slots_first;  // as in all presets
  double scale_bits = 0;  // 0: as many as the precision needs
  int log_n = 0;  // 0: the smallest that the security table allows
  std::optional<Word> word{};
  int security = 128;
  int cts_levels = 0, stc_levels = 0;  // see BootstrapLiteral; 0: choose
  std::string name{};
  /// How many times bootstrapping is applied to make one result (Meta-BTS), 1 to 4. precision_bits,
  /// at most 50, is the precision of the result. With two applications each needs a little more
  /// than half of it.
  int iterations = 1;
};

/// Parameters with a bootstrapping of at least this precision: if the slots have a modulus of at
/// most 1, the standard deviation of the error's real part is at most 2^-precision_bits on random
/// vectors, and the error of the sine is below that for every vector. Declare the peak: the
/// estimate of real slots that may be as large as eight times their root mean square is one to two
/// bits lower (docs/math/bootstrapping.md). Throws InsecureParams or InvalidArgument and says what
/// would fit, also if scale_bits cannot hold the precision. checkpoint is called during the search
/// for primes.
ckks::ParamsPtr create_with_bootstrap(const BootstrapRequest& request,
                                      const Checkpoint& checkpoint = {});

/// The literal for a ring, before any prime is chosen.
ckks::Literal bootstrap_literal(const BootstrapRequest& request, int log_n);

}  // namespace jali::params
