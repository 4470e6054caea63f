// Makes keys.
#pragma once

#include <memory>
#include <optional>

#include "jali/base/checkpoint.h"
#include "jali/base/progress.h"
#include "jali/lwe/keys.h"
#include "jali/lwe/secret/secret_key.h"
#include "jali/params/tfhe_params.h"
#include "jali/random/secret_seed.h"

namespace jali::lwe {

class KeyGenerator {
 public:
  /// seed: if it is empty, every key draws its own seeds from the operating system, and none of them is kept. A seed that
  /// is given makes the keys reproducible, for tests, on any number of threads; random::SeedSource says what that costs.
  explicit KeyGenerator(ParamsPtr params, int threads = 1,
                        const std::optional<random::Seed>& seed = std::nullopt);

  /// The bits are uniform. If the rotation is block_binary, each block of `group` bits of the small secret is uniform among
  /// the group + 1 vectors with at most one bit set.
  SecretKey secret_key();
  // progress: called with ciphertexts done and in all. All throw ParamsMismatch if the secret has other parameters.
  SeededGlwe rotation_key(const SecretKey& secret, const Progress& progress = {},
                          const Checkpoint& checkpoint = {});
  SeededLwe switch_key(const SecretKey& secret, const Progress& progress = {},
                       const Checkpoint& checkpoint = {});
  SeededGlwe packing_key(const SecretKey& secret, const Progress& progress = {},
                         const Checkpoint& checkpoint = {});
  /// packing: whether to make that key, too.
  EvaluationKeys evaluation_keys(const SecretKey& secret, bool packing = false,
                                 const Progress& progress = {}, const Checkpoint& checkpoint = {});

 private:
  void check(const SecretKey& secret) const;
  SeededGlwe empty_glwe(std::size_t count);

  ParamsPtr params_;
  int threads_;
  random::SeedSource seeds_;
  std::shared_ptr<device::Pool> pool_;
};

}  // namespace jali::lwe
