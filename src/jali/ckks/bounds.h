// What is known of a ciphertext's error without any key.
#pragma once

#include "jali/ckks/types.h"

namespace jali::ckks {

/// A bound on that part of a slot's error that depends on keys or on what was drawn: what release has to hide.
double worst_case_noise(const Ciphertext& ciphertext);

/// A bound on the modulus of every slot's error, for inputs within what was declared of them, that fails with
/// probability at most 2^-128 (and where bootstrapping fails). Infinity where no bound is known.
double worst_case_error(const Ciphertext& ciphertext);

}  // namespace jali::ckks
