#include "jali/schemes/ckks/bounds.h"

#include "jali/base/error.h"

namespace jali::ckks {

double worst_case_noise(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no noise");
  return params::NoiseModel(*ciphertext.params)
      .worst_case_noise(ciphertext.estimate, ciphertext.scale, ciphertext.level);
}

double allowed_error(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no error");
  return params::NoiseModel(*ciphertext.params)
      .allowed_error(ciphertext.estimate, ciphertext.scale, ciphertext.level);
}

double worst_case_error(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no error");
  return params::NoiseModel(*ciphertext.params)
      .worst_case_error(ciphertext.estimate, ciphertext.scale, ciphertext.level);
}

}  // namespace jali::ckks
