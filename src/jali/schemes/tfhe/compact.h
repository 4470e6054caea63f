// What is encrypted under the public key: many messages under one mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "jali/base/key_id.h"
#include "jali/device/buffer.h"
#include "jali/lwe/blocks.h"
#include "jali/params/tfhe_params.h"
#include "jali/schemes/tfhe/ciphertext.h"

namespace jali::tfhe {

/// Bytes of `count` messages, of which each polynomial takes `each`.
std::size_t compact_bytes(const Params& params, std::size_t count, std::size_t each);

/// An encrypted vector under the large key, in host memory. It is a list of GLWE ciphertexts, of
/// which each holds `each` messages in its coefficients 0, 1, .., and the last one the rest. Of the
/// bodies, only the coefficients that hold a message are kept: a ciphertext of m messages is k N +
/// m words. Evaluator::bind makes a Ciphertext of it. Copies share the words.
struct CompactCiphertext {
  ParamsPtr params;
  KeyId key_id;
  std::size_t count = 0;  // of messages
  std::size_t each = 0;  // 1 to N
  std::uint32_t degree = 0;  // the largest value that each message can have
  std::shared_ptr<const device::Buffer> words;  // null if there is no message
  std::optional<Layout> layout = std::nullopt;

  std::size_t size() const { return count; }
  /// The number of GLWE ciphertexts, and the first word of one.
  std::size_t polynomials() const { return (count + each - 1) / each; }
  std::size_t first_word(std::size_t polynomial) const {
    return polynomial * (params->large().value + each);
  }
  std::size_t bytes() const { return compact_bytes(*params, count, each); }
};

/// Throws InvalidArgument unless sizes fit each other.
void check_sizes(const CompactCiphertext& a);
/// The messages as LWE ciphertexts under the large key. Nobody needs a key for that.
///
/// Coefficient j of B - sum_c A_c S_c is b - sum a_i s_i with b = B_j and a_{c N + t} = A_{c, j -
/// t} for t <= j, and -A_{c, N + j - t} for t > j.
lwe::LweBlock extracted(device::Pool& pool, const CompactCiphertext& a);
/// The history of a Ciphertext that is made of it. Ids follow from the LWE ciphertexts, so that
/// messages that were sent twice, also negated, in another order or with a constant added, are the
/// same ciphertexts. Each message counts as a bootstrapped ciphertext (params/tfhe_noise.h,
/// public_batch).
History history_of(const CompactCiphertext& a);

}  // namespace jali::tfhe
