// Release of decryptions. The raw decryption of an approximate scheme carries the error, and with it
// the key (Li and Micciancio 2021): it is for the key holder alone. What is shared goes through
// release, which drowns the error of the declared circuit's worst case in fresh noise.
#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "jali/ckks/encoder.h"
#include "jali/ckks/secret/decryptor.h"
#include "jali/random/secret_seed.h"

namespace jali::ckks {

/// Where the bound on the error comes from.
enum class BoundOrigin {
  /// From the ciphertext itself: it was encrypted and computed on here, every step by the evaluator's rules, and never
  /// left this process as bytes.
  derived,
  /// From the holder, who knows the circuit and has checked that the reply is its server's (jali.authenticated, a
  /// signature, TLS): whoever can change a reply chooses its error.
  declared,
};

/// What the owner declares before releasing.
struct ReleasePolicy {
  BoundOrigin origin = BoundOrigin::declared;
  /// Bound on the noise of a slot that holds for every input of the circuit, in message units: its worst case, not its
  /// average (Guo et al. 2024). 0 for a derived one: the ciphertext's own worst_case_noise.
  double error_bound = 0;
  /// No slot of the result is larger, in message units. 0 for a derived bound: the ciphertext's own peak.
  double largest = 0;
  /// How many decryptions under this key will be released in all.
  double releases = 1;
  /// Nobody who chooses the inputs and sees all releases tells by them, better than by guessing, which of two
  /// computations with equal exact results was done, but with an advantage of 2^-statistical_bits. Exact is what the
  /// encoded numbers come to: the roundings of encodings depend on no key.
  int statistical_bits = 40;
};

/// Throws InvalidArgument, with what to change, for a policy that protects nothing.
void check(const ReleasePolicy& policy);

/// Standard deviation of the flooding noise of each coefficient for an error whose slots are at most `error` in
/// modulus: error sqrt(releases batch) 2^statistical_bits.
///
/// Let d be the 2 slots coefficients of a vector's error. The embedding is sqrt(2 slots) times a unitary map onto
/// the slots and their conjugates, so that |d|^2 <= error^2. Two Gaussians of deviation s whose centres differ by d
/// have the divergence |d|^2 / (2 s^2) (Kullback and Leibler); those of all vectors and releases add up, also where
/// later inputs depend on earlier releases, to D = releases batch error^2 / (2 s^2) = 2^(-2 bits - 1). By Pinsker's
/// inequality the statistical distance from noise around the exact result is at most sqrt(D / 2) = 2^(-bits - 1).
/// Of two computations each is that close to the same distribution: together 2^-bits.
double coefficient_std(const ReleasePolicy& policy, double error, std::size_t batch);

/// The same in message units, of the real and of the imaginary part of each slot: sqrt(slots) times that. The error
/// bound is the policy's.
double flooding_std(const ReleasePolicy& policy, std::size_t slots, std::size_t batch = 1);

/// The slots of a ciphertext in the form that may be shared. The noise is added to the decrypted polynomial's
/// coefficients as integers: what decoding rounds comes after it and tells nothing.
///
/// Throws InvalidArgument, before anything is decrypted, for a ciphertext that is not in canonical form (two parts, the
/// scale of its level, a declared magnitude, an error that its parameters make possible), for one whose own bounds are
/// larger than the policy's, for one read from bytes where the policy's bound is to be derived, and where the level has
/// no room for the noise; after it for results that are larger than was declared.
/// seed: of the noise, for tests; from the operating system when empty.
std::vector<std::complex<double>> release(const Decryptor& decryptor, const Encoder& encoder,
                                          const ring::Ring& ring, const Ciphertext& ciphertext,
                                          const ReleasePolicy& policy,
                                          const std::optional<random::Seed>& seed = std::nullopt);

}  // namespace jali::ckks
