// Bounds on a ciphertext's error that need no key. All are in message units.
#pragma once

#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// A bound on the part of a slot's error that depends on the keys or on random draws. This is the
/// part that release has to hide.
double worst_case_noise(const Ciphertext& ciphertext);

/// A bound on the modulus of every slot's error, for inputs that are as declared. It fails with
/// probability at most 2^-128, plus the failure probability of any bootstrapping. It is infinity if
/// no bound is known.
double worst_case_error(const Ciphertext& ciphertext);

/// The error that decryption allows of a slot: worst_case_error, if that is no larger than the
/// numbers may be. A larger one would let any numbers pass; then it is the largest number that may
/// be there, or 1024 claimed standard deviations if these are more.
double allowed_error(const Ciphertext& ciphertext);

}  // namespace jali::ckks
