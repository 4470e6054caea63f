#include "jali/schemes/ckks/engine.h"

#include <cstdint>
#include <utility>

#include "jali/base/error.h"

namespace jali::ckks {

/// X^exponent for an exponent below 2N, over all q primes, in NTT form.
static ring::Poly power_of_x(const Params& params, const ring::Ring& ring, std::size_t exponent) {
  ring::Poly out = ring.zero(params.q_primes(), 1, ring::Form::coeff);
  std::vector<std::int64_t> monomial(params.n(), 0);
  monomial[exponent % params.n()] = exponent < params.n() ? 1 : -1;
  ring.ops().from_int64(out.view(), monomial);
  ring.to_ntt(out);
  return out;
}

Engine::Engine(ParamsPtr params, std::shared_ptr<const ring::Ring> ring)
    : params_(std::move(params)),
      ring_(std::move(ring)),
      encoder_(params_, ring_),
      noise_(*params_),
      switcher_(std::make_shared<const rlwe::KeySwitcher>(params_, ring_)),
      // X^(N/2) is i in every slot, because zeta^(5^j N/2) = i.
      imaginary_unit_(power_of_x(*params_, *ring_, params_->n() / 2)) {}

std::shared_ptr<const Engine> Engine::make(ParamsPtr params,
                                           std::shared_ptr<const ring::Ring> ring) {
  return std::shared_ptr<const Engine>(new Engine(std::move(params), std::move(ring)));
}

const ring::Poly& Engine::monomial(std::size_t exponent) const {
  require<InvalidArgument>(exponent < 2 * params_->n(), "an exponent of X must be less than 2N");
  {
    const std::lock_guard lock(monomials_mutex_);
    if (const auto known = monomials_.find(exponent); known != monomials_.end()) {
      return known->second;
    }
  }
  ring::Poly made = power_of_x(*params_, *ring_, exponent);
  const std::lock_guard lock(monomials_mutex_);
  return monomials_.emplace(exponent, std::move(made)).first->second;  // or another thread's
}

std::shared_ptr<const Engine> Engine::part(const ParamsPtr& part) const {
  require<ParamsMismatch>(part != nullptr && part->whole().hash() == params_->hash(),
                          "these are no part of the evaluator's parameters");
  if (part->hash() == params_->hash()) return shared_from_this();
  const auto known = [&]() -> std::shared_ptr<const Engine> {
    for (const auto& other : parts_) {
      if (other->params()->hash() == part->hash()) return other;
    }
    return nullptr;
  };
  {
    const std::lock_guard lock(parts_mutex_);
    if (auto found = known()) return found;
  }
  auto made = make(part, ring_);
  const std::lock_guard lock(parts_mutex_);
  if (auto found = known()) return found;  // another thread was faster
  return parts_.emplace_back(std::move(made));
}

}  // namespace jali::ckks
