// A circuit that several threads share. Many may apply it at a time; one at a time prepares it.
#pragma once

#include <memory>
#include <utility>

#include "jali/base/error.h"
#include "jali/base/turns.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"

namespace jali::circuits {

/// Circuit has prepare(encoder, ...), which encodes its matrix in the memory of the encoder's
/// device, and apply(evaluator, ...). Both methods here throw ParamsMismatch for an evaluator of
/// other parameters, and what Turns throws.
template <class Circuit>
class Shared {
 public:
  /// wait: called ten times a second by a thread that waits for its turn. If it throws, the wait
  /// ends with that exception.
  template <class... Args>
  explicit Shared(rlwe::ParamsPtr params, Checkpoint wait, Args&&... args)
      : params_(std::move(params)),
        circuit_(std::forward<Args>(args)...),
        turns_("this plan", std::move(wait)) {}

  template <class Evaluator, class... Args>
  void prepare(const Evaluator& evaluator, Args&&... args) {
    require_same(evaluator);
    const Turns::Turn turn = turns_.take();
    circuit_.prepare(evaluator.encoder(), std::forward<Args>(args)...);
    prepared_ = evaluator.ring();
  }

  /// See BlockTransform::forget.
  void forget() {
    const Turns::Turn turn = turns_.take();
    circuit_.forget();
  }

  /// Throws InvalidArgument if it was prepared for the memory of another device.
  template <class Evaluator, class... Args>
  auto apply(const Evaluator& evaluator, Args&&... args) const {
    require_same(evaluator);
    const Turns::Turn turn = turns_.share();
    require<InvalidArgument>(
        prepared_ == nullptr || prepared_->shares_memory(*evaluator.ring()),
        "the plan was prepared by an evaluator of another device: prepare() it with this one, or "
        "make a plan for each");
    return circuit_.apply(evaluator, std::forward<Args>(args)...);
  }

  const Circuit& operator*() const { return circuit_; }
  const Circuit* operator->() const { return &circuit_; }

  /// Throws ParamsMismatch for an evaluator of other parameters.
  template <class Evaluator>
  void require_same(const Evaluator& evaluator) const {
    require<ParamsMismatch>(
        params_->hash() == evaluator.params()->hash(),
        "the plan is of other parameters: make both sides from the same Params (its bytes or the "
        "same arguments to Params.create)");
  }

 private:
  const rlwe::ParamsPtr params_;
  Circuit circuit_;
  std::shared_ptr<const ring::Ring> prepared_;  // where its encoded matrix lives
  mutable Turns turns_;
};

}  // namespace jali::circuits
