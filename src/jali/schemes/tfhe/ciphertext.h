// Blocks of ciphertexts: encrypted vectors of small integers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "jali/base/key_id.h"
#include "jali/lwe/shared_lwe.h"
#include "jali/params/tfhe_params.h"
#include "jali/random/prng.h"
#include "jali/schemes/tfhe/history.h"

namespace jali::tfhe {

/// What an encrypted vector is to its users: an array, of integers if their digits are more than
/// one ciphertext each.
struct Layout {
  std::vector<std::uint32_t> shape;  // of the array, in C order; no axis stands for one element
  /// Of integers, whose digits of message_bits lie together, the lowest first; 0: messages.
  std::uint8_t bits = 0;
  bool is_signed = false;

  /// Ciphertexts of one element.
  std::size_t digits(const Params& params) const {
    const auto m = static_cast<std::size_t>(params.message_bits());
    return bits == 0 ? 1 : (bits + m - 1) / m;
  }
  bool operator==(const Layout&) const = default;
};

/// An encrypted vector. Its LWE ciphertexts have the dimension that the parameters' order says, and
/// the phase of element i is value step() + error, with value at most degree[i]. Copies share the
/// words, which nothing changes. One that was read with a seed has the words of its masks once
/// somebody asks for them; Evaluator::bind makes them in the engine's memory.
struct Ciphertext {
  ParamsPtr params;
  KeyId key_id;
  lwe::SharedLwe data;
  /// The largest value that each element can have. It follows from the computation and says nothing
  /// of what is encrypted.
  std::vector<std::uint32_t> degree;
  History history;
  /// A fresh encryption keeps the seed of its masks, so that its bytes are few. Every operation
  /// drops the seed.
  std::optional<random::Seed> seed;
  /// Goes into its bytes. Nothing else reads it, and the evaluator's results have none.
  std::optional<Layout> layout = std::nullopt;

  std::size_t size() const { return degree.size(); }
  std::uint32_t max_degree() const {
    return degree.empty() ? 0 : *std::max_element(degree.begin(), degree.end());
  }
};

}  // namespace jali::tfhe
