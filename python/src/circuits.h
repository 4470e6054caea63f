// Plans of circuits as Python holds them: shared, and prepared at most once at a time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "binding.h"
#include "interrupts.h"
#include "jali/base/turns.h"
#include "jali/circuits/linear_transform.h"
#include "jali/circuits/matvec.h"
#include "jali/circuits/polynomial.h"
#include "server.h"

namespace jali::python {

/// A plan that may be applied by many threads, or prepared by one.
template <class Circuit>
class Plan {
 public:
  template <class... Args>
  explicit Plan(ckks::ParamsPtr params, Args&&... args)
      : params(std::move(params)), circuit_(std::forward<Args>(args)...) {}

  void prepare(const Server& server) {
    require_same(*params, *server.params, "the plan is");
    const Turns::Turn turn = turns_.take();
    circuit_.prepare(server.evaluator->encoder());
    prepared_ = server.ring;
  }
  template <class... Args>
  auto apply(const Server& server, Args&&... args) const {
    require_same(*params, *server.params, "the plan is");
    const Turns::Turn turn = turns_.share();
    require<InvalidArgument>(
        prepared_ == nullptr || prepared_->shares_memory(*server.ring),
        "the plan was prepared by an evaluator of another device: prepare() it "
        "with this one, or make a plan for each");
    return circuit_.apply(*server.evaluator, std::forward<Args>(args)...);
  }
  const Circuit& operator*() const { return circuit_; }
  const Circuit* operator->() const { return &circuit_; }

  const ckks::ParamsPtr params;

 private:
  Circuit circuit_;
  std::shared_ptr<const ring::Ring> prepared_;  // where its encoded matrix lives
  mutable Turns turns_{"this plan", interrupts()};
};

struct MatVec {
  std::shared_ptr<Plan<circuits::MatVec>> plan;
};
struct LinearTransform {
  std::shared_ptr<Plan<circuits::LinearTransform>> plan;
  bool complex_values = false;  // whether a diagonal is complex
};
struct Polynomial {
  std::shared_ptr<const circuits::PolynomialPlan> plan;
  bool complex_values = false;
};

/// rows [first, first + count) of several ciphertexts by matrix: one output ciphertext a block.
std::vector<ckks::Ciphertext> apply(const Server& server, const MatVec& plan,
                                    const std::vector<const ckks::Ciphertext*>& x);
ckks::Ciphertext apply(const Server& server, const LinearTransform& plan,
                       const ckks::Ciphertext& x);
ckks::Ciphertext apply(const Server& server, const Polynomial& plan, const ckks::Ciphertext& x);

}  // namespace jali::python
