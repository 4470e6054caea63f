// The secret key.
#pragma once

#include <span>
#include <utility>

#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"

namespace jali::rlwe {

/// Uniform ternary secret over all primes, NTT form, in memory that is wiped. Cannot be printed.
class SecretKey {
 public:
  SecretKey(params::CkksParamsPtr params, ring::Poly s)
      : params_(std::move(params)), s_(std::move(s)) {}
  const params::CkksParamsPtr& params() const { return params_; }
  const ring::Poly& poly() const { return s_; }  // NTT form over params().all_primes()
  /// The limbs of s at `primes`, again in memory that is wiped.
  ring::Poly at(const ring::Ring& ring, std::span<const PrimeIndex> primes) const;

 private:
  params::CkksParamsPtr params_;
  ring::Poly s_;
};

}  // namespace jali::rlwe
