// Gates on encrypted bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jali/schemes/tfhe/evaluator.h"

namespace jali::tfhe {

/// The ten gates of two inputs but NOT, by the names of the field.
enum class Gate : std::uint8_t {
  and_gate,
  nand_gate,
  or_gate,
  nor_gate,
  xor_gate,
  xnor_gate,
  andny_gate,  // (not a) and b
  andyn_gate,  // a and (not b)
  orny_gate,  // (not a) or b
  oryn_gate  // a or (not b)
};

/// Gates for parameters whose ciphertexts hold one bit: message_bits 1 and carry_bits 0, a step of
/// a quarter of the torus.
///
/// With s half a step, the phase 2 s a of a bit a is 0 or 2s. Each gate is one combination w_a a +
/// w_b b + c, of which the false results have phases within s of 0, and the true ones phases within
/// s of 4s, half the torus. One rotation of a table that is -s near 0, and by X^N = -1 +s near 4s,
/// tells them apart; s is then added. The margin against errors is s, or 2s for XOR and XNOR, whose
/// weights are 2.
class Gates {
 public:
  /// Throws InvalidArgument if the evaluator's parameters are of another kind.
  explicit Gates(std::shared_ptr<const Evaluator> evaluator);
  const Evaluator& evaluator() const { return *evaluator_; }

  /// One bootstrapping an element, and a second one of b where the operands are made of the same
  /// ciphertexts, so that their errors add up to more than the parameters allow for.
  Ciphertext apply(Gate gate, const Ciphertext& a, const Ciphertext& b) const;
  /// 1 - a, without bootstrapping.
  Ciphertext not_gate(const Ciphertext& a) const;
  /// b where a is 1, else c: two bootstrappings an element if max_norm2() is at least 6, else
  /// three.
  Ciphertext mux(const Ciphertext& a, const Ciphertext& b, const Ciphertext& c) const;

 private:
  /// The sign of the combination of the inputs, half_steps half steps added, as a fresh bit.
  Ciphertext rotated(std::span<const Ciphertext* const> inputs, const Linear& matrix,
                     int half_steps) const;

  std::shared_ptr<const Evaluator> evaluator_;
  std::shared_ptr<const device::Buffer> sign_;
};

}  // namespace jali::tfhe
