// The secret key.
#pragma once

#include <span>
#include <utility>

#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/key_id.h"

namespace jali::rlwe {

/// A uniform ternary secret, in NTT form over all primes, in memory that is wiped. It has no way to
/// be printed.
class SecretKey {
 public:
  SecretKey(ParamsPtr params, ring::Poly s, const KeyId& id)
      : params_(std::move(params)), s_(std::move(s)), id_(id) {}
  const ParamsPtr& params() const { return params_; }
  const KeyId& id() const { return id_; }  // public
  const ring::Poly& poly() const { return s_; }  // in NTT form over params()->all_primes()
  /// A copy of the limbs of s at `primes`, also in memory that is wiped.
  ring::Poly at(const ring::Ring& ring, std::span<const PrimeIndex> primes) const;

 private:
  ParamsPtr params_;
  ring::Poly s_;
  KeyId id_;
};

}  // namespace jali::rlwe
