// The numbers of a ciphertext, compared with what it says of them.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/secret/decryptor.h"

namespace jali::ckks {

enum class Check : std::uint8_t { no, yes };

/// The slots (batch, 2^log_slots), for the key holder alone; they are the caller's to wipe
/// (base/wipe.h).
///
/// Throws as Decryptor::decrypt, whatever `check` is. Check::yes compares the slots with the
/// ciphertext's estimate and throws
/// - RangeExceeded before anything is decrypted, if the estimate gives no bound on the numbers and
///   their errors;
/// - WrongDecryption if a slot is larger than both allow, if real numbers have imaginary parts
///   larger than the error, or, with fewer slots than N/2, if the other coefficients of the phase
///   are larger than the error allows. Honest results within their bounds are refused with
///   probability at most 2^-128. A wrong key whose name is right, or whose ciphertext names none,
///   passes with a probability below (2 largest / Q)^N, if the numbers and errors are at most
///   `largest`, scaled.
/// What the comparison tells, and to whom: docs/security.md.
std::vector<std::complex<double>> decrypt(const Decryptor& decryptor, const Encoder& encoder,
                                          const Ciphertext& ciphertext, Check check = Check::yes);

/// Whether no slot has a modulus above `largest`, and no imaginary part is above `imaginary`.
/// Numbers that are not finite are above both. Branches and addresses do not depend on the slots.
bool are_within(std::span<const std::complex<double>> slots, double largest, double imaginary);

}  // namespace jali::ckks
