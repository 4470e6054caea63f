// The secret key.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "jali/base/key_id.h"
#include "jali/base/secret_vector.h"
#include "jali/params/tfhe_params.h"

namespace jali::lwe {

/// One byte a bit, 0 or 1, in memory that is wiped.
using SecretBits = SecretVector<std::uint8_t>;

/// The small and the large secret. It has no way to be printed, nor to be copied.
class SecretKey {
 public:
  /// Throws InvalidArgument unless there are n and k N bits.
  SecretKey(tfhe::ParamsPtr params, SecretBits small, SecretBits large, const KeyId& id);
  SecretKey(SecretKey&&) = default;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;

  const tfhe::ParamsPtr& params() const { return params_; }
  const KeyId& id() const { return id_; }  // public
  /// The n bits of small LWE ciphertexts. If the rotation is block_binary, at most one bit of each
  /// block is set.
  std::span<const std::uint8_t> small() const { return small_; }
  /// The k N bits of large LWE ciphertexts. Bit c N + j is coefficient j of the polynomial S_c of
  /// GLWE ciphertexts.
  std::span<const std::uint8_t> large() const { return large_; }
  /// The bits of the ciphertexts that users hold.
  std::span<const std::uint8_t> held() const {
    return params_->order() == tfhe::Order::switch_first ? large() : small();
  }

 private:
  tfhe::ParamsPtr params_;
  SecretBits small_, large_;
  KeyId id_;
};

}  // namespace jali::lwe
