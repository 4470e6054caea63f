// What the evaluators of all clients share: everything that depends on the parameters and the
// device, and on no key.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/params/ckks/noise.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/key_switch.h"
#include "jali/schemes/ckks/encoder.h"

namespace jali::ckks {

/// A ring with the tables of encoding, key switching and noise for parameters. An evaluator is an
/// engine and the keys of one client; what one of an engine's evaluators encodes serves all others.
/// May be used from several threads.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<const Engine> make(ParamsPtr params,
                                            std::shared_ptr<const ring::Ring> ring);

  const ParamsPtr& params() const { return params_; }
  const std::shared_ptr<const ring::Ring>& ring() const { return ring_; }
  const Encoder& encoder() const { return encoder_; }
  const params::NoiseModel& noise() const { return noise_; }
  const std::shared_ptr<const rlwe::KeySwitcher>& switcher() const { return switcher_; }
  /// X^(N/2), which is the imaginary unit in every slot, over all q primes in NTT form.
  const ring::Poly& imaginary_unit() const { return imaginary_unit_; }
  /// X^exponent, likewise, for an exponent below 2N; X^N is -1. It is made at its first use.
  const ring::Poly& monomial(std::size_t exponent) const;

  /// The engine of parameters that with_depth made from these, over the same ring. It is made at
  /// its first use. Throws ParamsMismatch for others.
  std::shared_ptr<const Engine> part(const ParamsPtr& part) const;

 private:
  Engine(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  const ParamsPtr params_;
  const std::shared_ptr<const ring::Ring> ring_;
  const Encoder encoder_;
  const params::NoiseModel noise_;
  const std::shared_ptr<const rlwe::KeySwitcher> switcher_;
  const ring::Poly imaginary_unit_;
  mutable ForkSafe<std::mutex> monomials_mutex_;
  mutable std::map<std::size_t, ring::Poly> monomials_;  // by their exponents
  mutable ForkSafe<std::mutex> parts_mutex_;
  mutable std::vector<std::shared_ptr<const Engine>> parts_;
};

}  // namespace jali::ckks
