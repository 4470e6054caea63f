// From what is wanted of a bootstrapping to the sizes of its levels.
#pragma once

#include <string>

#include "jali/base/checkpoint.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

struct BootstrapRequest {
  double precision_bits = 20;  // of a bootstrapped slot: see below
  /// Multiplications that the result allows (with slots_first: before the next bootstrapping is due).
  int levels_after = 10;
  BootstrapOrder order = BootstrapOrder::raise_first;
  double scale_bits = 0;  // 0: what the precision needs
  int log_n = 0;  // 0: the smallest that the security table allows
  std::optional<Word> word{};
  int security = 128;
  int cts_levels = 0, stc_levels = 0;  // of the DFTs; 0: choose
  std::string name{};
  /// Applications of which one result is made (Meta-BTS): precision_bits is that of all of them, each has
  /// a little more than half of it. At most 50 bits: numbers and scales are doubles.
  int iterations = 1;
};

/// Parameters with a bootstrapping of at least this precision: for slots of modulus up to 1, the
/// standard deviation of the error's real part is at most 2^-precision_bits on random vectors, and what
/// the sine is off stays below that for every vector. Throws InsecureParams or InvalidArgument, saying
/// what would fit; also where scale_bits cannot hold the precision.
ckks::ParamsPtr create_with_bootstrap(const BootstrapRequest& request,
                                      const Checkpoint& checkpoint = {});

/// The literal for a ring, before any prime is chosen.
ckks::Literal bootstrap_literal(const BootstrapRequest& request, int log_n);

}  // namespace jali::params
