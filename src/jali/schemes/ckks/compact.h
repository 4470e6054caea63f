// Plaintexts as the integers that they are, instead of their residues modulo every prime.
#pragma once

#include <cstddef>

#include "jali/device/buffer.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// How the plaintexts of a plan are kept: over all primes in NTT form, ready for products; as
/// integers in the memory of the device; or as integers in the host's memory, from which they are
/// copied at each use. If the device is the host, the last two are the same.
enum class Storage { residues, integers, streamed };

/// An encoded vector as the coefficients of its polynomial: 8 bytes each, however many primes there
/// are. It serves every level. Encoder::expand makes residues of them, and an NTT of every limb,
/// bit for bit those that Encoder::encode makes.
///
/// Numbers that repeat after p slots make a polynomial in X^(N/2p), of which only the 2p
/// coefficients are kept.
struct CompactPlaintext {
  ParamsPtr params;
  device::Buffer integers;  // std::int64_t[batch][count], in memory that is wiped
  std::size_t batch = 1;
  std::size_t count = 0;  // of a vector: those of X^(k N/count), a power of two
  double scale = 1;
  int log_slots = 0;  // this and the following are those of Plaintext
  double message = 1;
  double peak = 0;
  bool real = false;
  double largest = 0;  // the largest modulus of a coefficient; as secret as they are

  std::size_t bytes() const { return integers.bytes(); }
};

}  // namespace jali::ckks
