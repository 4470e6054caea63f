#include "jali/schemes/discrete/batcher.h"

#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::discrete {

namespace {

/// What is known of a, with this body.
Ciphertext with_body(rlwe::Ciphertext body, const Ciphertext& a, const Estimate& estimate) {
  Ciphertext out;
  out.body() = std::move(body);
  out.params = a.params;
  out.factor = a.factor;
  out.estimate = estimate;
  return out;
}

}  // namespace

void require_alike(const Ciphertext& a, const Ciphertext& b, std::size_t index) {
  require<InvalidArgument>(a.params->hash() == b.params->hash() && a.level == b.level &&
                               a.factor == b.factor && a.parts.size() == b.parts.size(),
                           [&] {
                             return "ciphertext " + std::to_string(index) +
                                    " has another level or factor than the first: drop_to one "
                                    "level before batching";
                           });
}

Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(!inputs.empty(), "stack needs at least one ciphertext");
  const Ciphertext& first = *inputs[0];
  std::vector<const rlwe::Ciphertext*> bodies;
  Estimate estimate = first.estimate;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    evaluator.check(*inputs[i]);
    require_alike(first, *inputs[i], i);
    bodies.push_back(inputs[i]);
    estimate = evaluator.noise().cover(estimate, inputs[i]->estimate);
  }
  return with_body(rlwe::stack(*evaluator.ring(), bodies), first, estimate);
}

std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches) {
  evaluator.check(a);
  require<InvalidArgument>(evaluator.is_here(a), "split takes a ciphertext of its own device");
  std::vector<Ciphertext> out;
  for (rlwe::Ciphertext& body : rlwe::split(*evaluator.ring(), a, batches)) {
    out.push_back(with_body(std::move(body), a, a.estimate));
  }
  return out;
}

Batcher::Batcher(std::shared_ptr<const Evaluator> evaluator, Function function,
                 std::size_t max_batch, std::size_t memory, Smaller smaller)
    : batches_(std::move(evaluator), std::move(function), max_batch, memory, std::move(smaller)) {}

std::vector<Ciphertext> Batcher::run(std::span<const Ciphertext* const> inputs) {
  return batches_.run(inputs);
}

}  // namespace jali::discrete
