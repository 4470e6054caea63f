// Ciphertexts of known numbers: what decryption shows is compared with the same computation in the
// clear.
#pragma once

#include <vector>

#include "run.h"

namespace jali::fuzz {

/// An honest encryption and what all its slots hold.
struct Honest {
  Ciphertext ciphertext;
  std::vector<Complex> slots;
};

/// The moduli of an input's numbers are at most this.
inline constexpr double kLargest = 1.5;

/// `count` numbers of the input in 2^log_slots slots, zeros behind them. The declaration is true.
Honest encrypted(Run& r, std::size_t count, int log_slots, int level, bool complex);

/// Whether level 0 holds these numbers. Those that it does not hold wrap around its modulus, unless
/// they are refused.
bool fits(const Run& r, const std::vector<Complex>& slots);

/// Stops if a slot is off by more than worst_case_error says, or if slots that are said to be zeros
/// are not.
void compare(const Run& r, const Honest& x);

}  // namespace jali::fuzz
