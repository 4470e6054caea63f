#include "jali/schemes/ckks/batcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

/// What is known of a, with this body.
Ciphertext with_body(rlwe::Ciphertext body, const Ciphertext& a) {
  Ciphertext out;
  out.body() = std::move(body);
  out.params = a.params;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = a.estimate;
  out.packing = a.packing;
  return out;
}

/// The packing without what operands may differ in: whether the batch is an axis, and what the
/// other slots hold.
Packing alike(Packing a) {
  a.batched = true;
  a.rest = 0;
  return a;
}

}  // namespace

void require_alike(const Ciphertext& a, const Ciphertext& b, std::size_t index) {
  require<InvalidArgument>(
      a.params->hash() == b.params->hash() && a.level == b.level && a.scale == b.scale &&
          a.parts.size() == b.parts.size() && a.log_slots == b.log_slots &&
          alike(a.packing) == alike(b.packing),
      [&] {
        return "ciphertext " + std::to_string(index) +
               " has another level, scale, number of parts or packing than the first: bring them "
               "to the same ones before batching";
      });
}

void restore(Ciphertext& result, const Ciphertext& input) {
  result.packing.batched = input.packing.batched;  // a vector, or a batch of one
}

Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(!inputs.empty(), "stack needs at least one ciphertext");
  const Ciphertext& first = *inputs[0];
  require<InvalidArgument>(!first.parts.empty(), "an empty ciphertext cannot be batched");
  std::vector<const rlwe::Ciphertext*> bodies;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_alike(first, *inputs[i], i);
    evaluator.check(*inputs[i]);
    bodies.push_back(inputs[i]);
  }
  Ciphertext out = with_body(rlwe::stack(*evaluator.ring(), bodies), first);
  out.packing.batched = true;
  out.packing.view.reset();
  if (first.packing.view) out.packing.rest = params::kUnbounded;
  for (const Ciphertext* input : inputs) {
    out.estimate.cover(input->estimate);
    out.packing.rest = std::max(out.packing.rest, input->packing.rest);
  }
  return out;
}

std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches) {
  require<InvalidArgument>(evaluator.is_here(a), "split takes a ciphertext of its own device");
  std::vector<Ciphertext> out;
  for (rlwe::Ciphertext& body : rlwe::split(*evaluator.ring(), a, batches)) {
    out.push_back(with_body(std::move(body), a));
  }
  return out;
}

Batcher::Batcher(std::shared_ptr<const Evaluator> evaluator, Function function,
                 std::size_t max_batch, std::size_t memory, Smaller smaller)
    : batches_(std::move(evaluator), std::move(function), max_batch, memory, std::move(smaller)) {}

std::vector<Ciphertext> Batcher::run(std::span<const Ciphertext* const> inputs) {
  return batches_.run(inputs);
}

}  // namespace jali::ckks
