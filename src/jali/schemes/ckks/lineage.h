// Which numbers a fresh ciphertext holds.
#pragma once

#include <cstdint>
#include <cstring>

#include "jali/params/ckks/noise.h"
#include "jali/random/prng.h"

namespace jali::ckks {

/// The lineage of an encryption whose second part comes from this seed. The seed is public and part
/// of its bytes, so these have the same lineage when they are read.
inline params::Lineage lineage_of(const random::Seed& seed) {
  std::uint64_t root = 0;
  static_assert(sizeof(root) <= sizeof(seed));
  std::memcpy(&root, seed.data(), sizeof(root));
  return params::lineage_of(root);
}

}  // namespace jali::ckks
