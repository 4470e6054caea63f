// Plaintexts and ciphertexts.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>

#include "jali/params/ckks/noise.h"
#include "jali/params/ckks_params.h"
#include "jali/rlwe/ciphertext.h"
#include "jali/schemes/ckks/view.h"

namespace jali::ckks {

using params::Estimate;

/// An encoded vector: the inverse embedding of the message, times `scale`, rounded to integers.
struct Plaintext : rlwe::Plaintext {
  ParamsPtr params;
  double scale = 1;
  int log_slots = 0;  // if there are fewer slots than N/2, they repeat (sparse packing)
  double message = 1;  // root mean square of the slots; as secret as they are
  double peak = 0;  // the largest modulus of a slot; likewise
  bool real = false;  // whether the slots were given as real numbers; this is public
};

/// How often the numbers of a vector lie in the slots. With window = 0 they lie once: slot s holds
/// number s. Otherwise slot s holds number
///     ((s / stride mod count) window + (s mod stride)) mod (count window),
/// which begins anew after stride count slots, so that rotations by that many change nothing. Slots
/// for which this is not below the vector's length hold no number. window, stride and count are
/// powers of two, and stride count is at most the number of slots. There is one form for each
/// arrangement: if count is 1, stride is window, which is less than the number of slots; otherwise
/// stride is more than window (circuits/ckks/matvec.h says what such windows are for).
struct Tiling {
  std::uint32_t first =
      0;  // of a vector that takes several ciphertexts: the index of this one's first number
  std::uint32_t window = 0;
  std::uint32_t stride = 0;
  std::uint32_t count = 0;

  bool operator==(const Tiling&) const = default;
};

/// How the numbers lie in a ciphertext's slots: what decryption shows of it, and what circuits may
/// rely on. Evaluator and AutoEvaluator work on all slots, ignore it and drop it; ArrayEvaluator
/// and Python keep it up to date by the rules of packing.h. It is part of the serialized bytes.
struct Packing {
  std::uint32_t length = 0;  // numbers in each vector; 0: one in every slot
  bool batched = false;  // the batch is an axis of its own, even if it is 1
  bool complex_values = false;  // slots are complex; else the real parts are the message
  /// No slot that holds no number has a larger modulus, and none is above Estimate::peak. 0: these
  /// slots are zero, up to noise. kUnbounded: nothing else is known of them.
  double rest = params::kUnbounded;
  Tiling tiling{};  // of a vector
  /// Where the elements of an array of another shape than (length,) or (batch, length) lie.
  /// `length` is then 0.
  std::optional<View> view{};

  bool operator==(const Packing&) const = default;
};

/// parts[0] + parts[1] s (+ parts[2] s^2) = scale * message + error, modulo the primes of `level`.
struct Ciphertext : rlwe::Ciphertext {
  ParamsPtr params;
  double scale = 1;
  int log_slots = 0;
  Estimate estimate;
  Packing packing;
};

}  // namespace jali::ckks
