#include "jali/schemes/tfhe/secret/messages.h"

#include <string>

#include "jali/base/declassify.h"
#include "jali/base/error.h"

namespace jali::tfhe {

std::uint32_t checked_largest(const Params& params, std::optional<std::uint64_t> largest) {
  const std::uint64_t bound = largest.value_or(params.message_modulus() - 1);
  require<InvalidArgument>(bound < params.value_modulus(), [&] {
    return "values of up to " + std::to_string(bound) + " do not fit, there is room up to " +
           std::to_string(params.value_modulus() - 1) + ": use a preset with more bits";
  });
  return static_cast<std::uint32_t>(bound);
}

SecretVector<std::uint64_t> messages_of(const Params& params, std::span<const std::uint64_t> values,
                                        std::uint32_t bound, bool given, Torus torus) {
  const std::uint64_t most = bound;
  std::uint64_t too_large = 0;
  for (const std::uint64_t value : values) too_large |= most - value > most ? 1 : 0;
  declassify(too_large);  // whoever gives such a value learns that it is one
  require<InvalidArgument>(too_large == 0, [&] {
    return "a value to encrypt is negative or above " + std::to_string(most) +
           ": use values of 0 to " + std::to_string(most) +
           (given ? "" : ", or integers of several digits for larger ones");
  });
  SecretVector<std::uint64_t> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i] * params.step(torus);
  return out;
}

}  // namespace jali::tfhe
