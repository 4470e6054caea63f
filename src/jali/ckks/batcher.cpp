#include "jali/ckks/batcher.h"

#include <numeric>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/ring/blocks.h"

namespace jali::ckks {

namespace {

Ciphertext shell(const Ciphertext& a) {
  Ciphertext out;
  out.params = a.params;
  out.key_id = a.key_id;
  out.level = a.level;
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

void check_alike(const Ciphertext& a, const Ciphertext& b, std::size_t index) {
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

}  // namespace

Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(!inputs.empty(), "stack needs at least one ciphertext");
  const ring::Ring& ring = *evaluator.ring();
  const Ciphertext& first = *inputs[0];
  require<InvalidArgument>(!first.parts.empty(), "an empty ciphertext cannot be batched");
  for (std::size_t i = 0; i < inputs.size(); ++i) check_alike(first, *inputs[i], i);
  Ciphertext out = shell(first);
  out.packing.batched = true;
  out.packing.view.reset();
  if (first.packing.view) out.packing.rest = params::kUnbounded;
  for (const Ciphertext* input : inputs) {
    evaluator.check(*input);
    out.key_id = rlwe::common_key(out.key_id, input->key_id);
    out.estimate.cover(input->estimate);
    out.packing.rest = std::max(out.packing.rest, input->packing.rest);
  }
  for (std::size_t part = 0; part < first.parts.size(); ++part) {
    std::vector<const ring::Poly*> blocks;
    for (const Ciphertext* input : inputs) blocks.push_back(&input->parts[part]);
    out.parts.push_back(ring::stack(ring, blocks));
  }
  return out;
}

std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches) {
  const ring::Ring& ring = *evaluator.ring();
  require<InvalidArgument>(evaluator.is_here(a), "split takes a ciphertext of its own device");
  require<InvalidArgument>(
      std::accumulate(batches.begin(), batches.end(), std::size_t{0}) == a.batch(),
      "the batches to split into must add up to the ciphertext's");
  std::vector<Ciphertext> out(batches.size());
  for (Ciphertext& one : out) one = shell(a);
  for (const ring::Poly& from : a.parts) {
    std::vector<ring::Poly> parts = ring::split(ring, from, batches);
    for (std::size_t i = 0; i < parts.size(); ++i) out[i].parts.push_back(std::move(parts[i]));
  }
  return out;
}

Batcher::Batcher(std::shared_ptr<const Evaluator> evaluator, Function function,
                 std::size_t max_batch, std::size_t memory, Smaller smaller)
    : evaluator_(std::move(evaluator)),
      function_(std::move(function)),
      batching_(evaluator_->ring(), "this batcher", max_batch, memory, std::move(smaller)) {}

std::vector<Ciphertext> Batcher::run(std::span<const Ciphertext* const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require<InvalidArgument>(inputs[i]->batch() == 1,
                             "the ciphertexts to batch must have a batch of 1 each");
    check_alike(*inputs[0], *inputs[i], i);
    rlwe::common_key(inputs[0]->key_id, inputs[i]->key_id);
  }
  std::vector<Ciphertext> out;
  batching_.run(inputs.size(), [&](std::size_t first, std::size_t count) {
    const Ciphertext result = function_(stack(*evaluator_, inputs.subspan(first, count)));
    require<InvalidArgument>(result.batch() == count,
                             "a batched function must keep the batch of its operand");
    const std::vector<std::size_t> ones(count, 1);
    std::vector<Ciphertext> parts = split(*evaluator_, result, ones);
    for (std::size_t i = 0; i < count; ++i) {
      parts[i].packing.batched = inputs[first + i]->packing.batched;  // a vector, or a batch of one
      out.push_back(std::move(parts[i]));
    }
  });
  return out;
}

}  // namespace jali::ckks
