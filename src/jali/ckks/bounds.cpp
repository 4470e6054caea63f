#include "jali/ckks/bounds.h"

#include <algorithm>

#include "jali/base/error.h"

namespace jali::ckks {

double worst_case_noise(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no noise");
  return params::NoiseModel(*ciphertext.params)
      .worst_case_noise(ciphertext.estimate, ciphertext.scale, ciphertext.level);
}

double allowed_error(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no error");
  Estimate allowed = ciphertext.estimate;
  const double peak = std::min(allowed.peak * ciphertext.scale, params::kUnbounded);
  allowed.error =
      std::min(allowed.error, std::max(params::range_error(allowed, ciphertext.params->n()), peak));
  return params::NoiseModel(*ciphertext.params)
      .worst_case_error(allowed, ciphertext.scale, ciphertext.level);
}

double worst_case_error(const Ciphertext& ciphertext) {
  require<InvalidArgument>(ciphertext.params != nullptr, "an empty ciphertext has no error");
  return params::NoiseModel(*ciphertext.params)
      .worst_case_error(ciphertext.estimate, ciphertext.scale, ciphertext.level);
}

}  // namespace jali::ckks
