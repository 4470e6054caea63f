// The noise of a circuit's digits, from the errors of its operands: checked before anything is
// computed.
//
// A builder plans a circuit as if the noises of all digits of its operands were independent. Here
// they are followed through the circuit, for every integer of a vector, by the origins of their
// errors (tfhe/history.h).
#pragma once

#include <optional>
#include <vector>

#include "jali/integers/circuit.h"
#include "jali/integers/digits.h"
#include "jali/schemes/tfhe/history.h"

namespace jali::integers {

/// What a circuit is run on, as Run has it.
struct NoiseRun {
  std::vector<bool> broadcast;  // of each operand
  std::vector<std::uint8_t> clear;
  std::size_t lanes = 0;
};

/// Whether look-ups may take sums whose errors cancel if everything was computed in the same way
/// (tfhe::kCancelled). Nobody knows whether their results have errors, so that what is computed of
/// them soon counts as too noisy.
enum class Cancelling { refused, counted };

/// The history of the outputs, one lane after the other. None if an input of a look-up or an output
/// would have a larger squared norm than the space's noise budget, or if errors cancel and that is
/// refused.
std::optional<tfhe::History> noise_after(const Circuit& circuit, const NoiseRun& run,
                                         const std::vector<tfhe::History>& operands,
                                         const Space& space, Cancelling cancelling);

/// How digits whose errors are equal get errors that are independent. All digits of all operands,
/// those of one operand together, are looked up in tables that give the message and differ in the
/// entries above, so that no two equal digits of a lane take the same one. A digit without an error
/// takes one from another digit of its lane, which is looked up in a table of zeros.
struct Apart {
  std::vector<std::uint32_t> of;  // the digit that is looked up in the place of each digit
  std::vector<std::uint32_t> table;  // in which table
  std::vector<bool> added;  // whether the digit itself is added to the result
  std::uint32_t each = 0;  // so many tables of the identity, then as many of zeros
};
Apart apart(const Circuit& circuit, const NoiseRun& run,
            const std::vector<tfhe::History>& operands);
/// Its tables, 2^p entries each in halves. There are at most most_apart(space) of each kind.
std::vector<std::int16_t> tables_of(const Apart& apart, const Space& space);
std::size_t most_apart(const Space& space);
/// The histories of the operands afterwards.
std::vector<tfhe::History> set_apart(const Apart& apart, const std::vector<tfhe::History>& operands,
                                     const Space& space);

}  // namespace jali::integers
