// Release of decryptions. The raw decryption of an approximate scheme contains the error, which
// reveals the key (Li and Micciancio 2021). Therefore it is for the key holder alone. Results that
// are shared go through release, which adds noise that is large enough to hide the worst error of
// the declared circuit.
#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "jali/random/secret_seed.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/secret/decryptor.h"

namespace jali::ckks {

/// Where the bound on the error comes from.
enum class BoundOrigin {
  /// From the ciphertext itself. It was encrypted in this process, every step of the computation
  /// was done here by the
  /// evaluator's rules, and it was never read from bytes.
  derived,
  /// From the key holder, who knows the circuit and has checked that the reply comes from the
  /// server (jali.authenticated,
  /// a signature, TLS). Without that check, whoever can change a reply chooses its error.
  declared,
};

/// What the key holder declares before releasing.
struct ReleasePolicy {
  BoundOrigin origin = BoundOrigin::declared;
  /// A bound on the noise of every slot, in message units, that holds for every input of the
  /// circuit: the worst case, not the average (Guo et al. 2024). If the origin is `derived`, 0
  /// stands for the ciphertext's own worst_case_noise.
  double error_bound = 0;
  /// The largest modulus that a slot of the result can have, in message units. If the origin is
  /// `derived`, 0 stands for the ciphertext's own peak.
  double largest = 0;
  /// How many decryptions under this key will be released in all, at least 1.
  double releases = 1;
  /// From 20 to 100. Suppose that an attacker chooses all inputs, sees all releases, and has to
  /// tell which of two computations with equal exact results was done. The advantage over guessing
  /// is at most 2^-statistical_bits. "Exact" means computed on the encoded numbers, because the
  /// roundings of encodings depend on no key.
  int statistical_bits = 40;
};

/// Throws InvalidArgument, which says what to change, if a field of the policy is missing or out of
/// range.
void check(const ReleasePolicy& policy);

/// The standard deviation of the flooding noise of each coefficient, for an error whose slots have
/// a modulus of at most `error`: error sqrt(releases batch) 2^statistical_bits.
///
/// Let d be the 2 slots coefficients of a vector's error. The embedding is sqrt(2 slots) times a
/// unitary map onto the slots and their conjugates, so that |d|^2 <= error^2. Two Gaussians of
/// deviation s whose centres differ by d have the Kullback-Leibler divergence |d|^2 / (2 s^2). The
/// divergences of all vectors and releases add up, even if later inputs depend on earlier releases,
/// to D = releases batch error^2 / (2 s^2) = 2^(-2 bits - 1). By Pinsker's inequality the
/// statistical distance from noise around the exact result is at most sqrt(D / 2) = 2^(-bits - 1).
/// Each of the two computations is that close to the same distribution, so they are within 2^-bits
/// of each other.
double coefficient_std(const ReleasePolicy& policy, double error, std::size_t batch);

/// The standard deviation of the flooding noise in the real part, and in the imaginary part, of
/// each slot, in message units: sqrt(slots) coefficient_std(policy, policy.error_bound, batch).
double flooding_std(const ReleasePolicy& policy, std::size_t slots, std::size_t batch = 1);

/// The slots of a ciphertext, (batch, slots), in the form that may be shared. The noise is added as
/// integers to the coefficients of the decrypted polynomial. The roundings of decoding come after
/// it, so they reveal nothing more.
///
/// Throws InvalidArgument before anything is decrypted
/// - if the ciphertext is not in canonical form: two parts, the scale of its level, a declared
///   magnitude, and an error that its parameters make possible;
/// - if the ciphertext's own bounds are larger than the policy's;
/// - if the ciphertext was read from bytes and the policy's origin is `derived`;
/// - if the level has no room for the noise.
/// After decryption it throws WrongDecryption if a result is larger than was declared, or, of real
/// numbers, has imaginary parts beyond the noise. seed: the seed of the noise, for tests. If it is
/// empty, the noise is seeded by the operating system.
std::vector<std::complex<double>> release(const Decryptor& decryptor, const Encoder& encoder,
                                          const ring::Ring& ring, const Ciphertext& ciphertext,
                                          const ReleasePolicy& policy,
                                          const std::optional<random::Seed>& seed = std::nullopt);

}  // namespace jali::ckks
