// Blind rotations of accumulators, by one transform or another. Accumulators have words of 64 bits
// on every torus, padded as tfhe_kernels.h says: a word of 32 bits is the upper half of one, so
// that a gadget and a table mean the same on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "jali/backend/cpu/tfhe_kernels.h"
#include "jali/backend/tfhe_config.h"

namespace jali::backend::cpu {

class Rotator {
 public:
  virtual ~Rotator() = default;
  /// Bytes of the key of one step, a multiple of 64.
  virtual std::size_t step_bytes() const = 0;
  virtual std::size_t prepare_scratch_bytes() const = 0;
  /// Writes one polynomial of a step's key: unit u, row c of its GGSW ciphertext, component o of
  /// the row.
  virtual void prepare(std::byte* step_key, std::size_t u, std::size_t c, std::size_t o,
                       const std::uint64_t* words, std::byte* scratch) const = 0;
  virtual std::size_t scratch_bytes() const = 0;
  /// Takes all steps. accs: `count` accumulators; exponents: of ciphertext i at i (n + 1). scratch:
  /// 64-byte aligned.
  virtual void rotate(std::uint64_t* accs, const std::uint32_t* exponents, std::size_t count,
                      const std::byte* key, std::byte* scratch) const = 0;

 protected:
  explicit Rotator(const TfheConfig& config);
  /// The exponents of a step's units, from those of its bits.
  void unit_exponents(std::uint32_t* units, const std::uint32_t* bits) const;

  const Rotation kind_;
  const std::size_t N_, rows_, digits_, steps_, units_, group_, n_;
};

/// In double precision (tfhe_plan.h).
std::unique_ptr<Rotator> make_fourier_rotator(const TfheConfig& config, const TfheKernels& kernels);
/// Modulo two primes, exact.
std::unique_ptr<Rotator> make_exact_rotator(const TfheConfig& config, const TfheKernels& kernels);

}  // namespace jali::backend::cpu
