// Blocks of ciphertexts: encrypted vectors of small integers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "jali/base/key_id.h"
#include "jali/lwe/blocks.h"
#include "jali/params/tfhe_params.h"
#include "jali/random/prng.h"
#include "jali/tfhe/history.h"

namespace jali::tfhe {

/// An encrypted vector. Its LWE ciphertexts have the dimension that the parameters' order says, and the phase of element i
/// is value step() + error, with value at most degree[i]. Copies share the words, which nothing changes.
struct Ciphertext {
  ParamsPtr params;
  KeyId key_id;
  std::shared_ptr<const lwe::LweBlock> data;
  /// The largest value that each element can have. It follows from the computation and says nothing of what is encrypted.
  std::vector<std::uint32_t> degree;
  History history;
  /// A fresh encryption keeps the seed of its masks, so that its bytes are few. Every operation drops the seed.
  std::optional<random::Seed> seed;

  std::size_t size() const { return degree.size(); }
  std::uint32_t max_degree() const {
    return degree.empty() ? 0 : *std::max_element(degree.begin(), degree.end());
  }
};

}  // namespace jali::tfhe
