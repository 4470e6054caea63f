// Makes keys, and the GLWE and GGSW ciphertexts that external products take. A secret key is drawn
// on the host; all else is made by an engine, and ends in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/base/checkpoint.h"
#include "jali/base/progress.h"
#include "jali/lwe/keys.h"
#include "jali/lwe/secret/secret_key.h"
#include "jali/params/tfhe_params.h"
#include "jali/random/secret_seed.h"

namespace jali::lwe {

class KeyGenerator {
 public:
  /// engine: of params.config(), on the device that makes the keys. seed: if it is empty, every key
  /// draws its own seeds from the operating system, and none of them is kept. A seed that is given
  /// makes the keys reproducible, for tests, on any engine; random::SeedSource says what that
  /// costs. Throws ParamsMismatch if the engine was made for other parameters.
  KeyGenerator(ParamsPtr params, std::shared_ptr<const backend::TfheClientOps> engine,
               const std::optional<random::Seed>& seed = std::nullopt);
  /// On the CPU.
  explicit KeyGenerator(const ParamsPtr& params, int threads = 1,
                        const std::optional<random::Seed>& seed = std::nullopt);

  /// The bits are uniform. If the rotation is block_binary, each block of `group` bits of the small
  /// secret is uniform among the group + 1 vectors with at most one bit set.
  SecretKey secret_key();
  const std::shared_ptr<const backend::TfheClientOps>& engine() const { return engine_; }
  // progress: called with ciphertexts done and in all. All throw ParamsMismatch if the secret has
  // other parameters.
  SeededGgsw rotation_key(const SecretKey& secret, const Progress& progress = {},
                          const Checkpoint& checkpoint = {});
  /// GGSW ciphertexts of these bits under the large key. Throws InvalidArgument if there are none,
  /// or if a byte is neither 0 nor 1.
  SeededGgsw ggsw(const SecretKey& secret, std::span<const std::uint8_t> bits,
                  const Progress& progress = {}, const Checkpoint& checkpoint = {});
  /// GLWE ciphertexts of polynomials of N words of the torus, one after the other, under the large
  /// key. A torus of 32 bits takes the low halves. Throws InvalidArgument unless there are whole
  /// polynomials, at least one.
  SeededGlwe glwe(const SecretKey& secret, std::span<const std::uint64_t> messages);
  SeededLwe switch_key(const SecretKey& secret, const Progress& progress = {},
                       const Checkpoint& checkpoint = {});
  SeededGlwe packing_key(const SecretKey& secret, const Progress& progress = {},
                         const Checkpoint& checkpoint = {});
  PublicKey public_key(const SecretKey& secret);
  /// packing: whether to make that key, too.
  EvaluationKeys evaluation_keys(const SecretKey& secret, bool packing = false,
                                 const Progress& progress = {}, const Checkpoint& checkpoint = {});

 private:
  void check(const SecretKey& secret) const;
  /// bits: what the rows hold (backend::GadgetBits). Each bit has as many rows, levels of them or
  /// the rows of a GGSW ciphertext.
  SeededGlwe gadget_rows(const SecretKey& secret, std::span<const std::uint8_t> bits, bool ggsw,
                         const Progress& progress, const Checkpoint& checkpoint);

  ParamsPtr params_;
  std::shared_ptr<const backend::TfheClientOps> engine_;
  random::SeedSource seeds_;
  std::shared_ptr<device::Pool> pool_;
};

}  // namespace jali::lwe
