#include "jali/bootstrap/secret/evaluation_keys.h"

#include "jali/base/error.h"

namespace jali::bootstrap {

rlwe::EvaluationKeys evaluation_keys(rlwe::KeyGenerator& generator, const rlwe::SecretKey& sk,
                                     std::span<const BootstrapPlan> plans,
                                     std::span<const int> rotations, bool conjugate,
                                     const Progress& progress) {
  require<InvalidArgument>(!plans.empty(),
                           "keys for bootstrapping need at least one plan; without any, use "
                           "rlwe::KeyGenerator::evaluation_keys");
  const KeyLevels levels = key_levels(*plans.front().params(), plans, rotations, conjugate);
  auto keys = generator.evaluation_keys(sk, levels.rotations, levels.conjugate, levels.relinearise,
                                        progress);
  keys.encapsulation = generator.encapsulation_keys(sk);
  return keys;
}

}  // namespace jali::bootstrap
