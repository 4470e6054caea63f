#include "jali/rlwe/expanded_keys.h"

#include "jali/base/error.h"
#include "jali/rlwe/composed.h"

namespace jali::rlwe {

namespace {

Encapsulation expand(const ring::Ring& ring, const Params& params, const EncapsulationKeys& keys) {
  Encapsulation out;
  out.sparse_b = ring.import(keys.to_sparse);
  out.sparse_a = expand_uniform(ring, keys.to_sparse_seed, 0, sparse_key_primes(params));
  out.dense_b = ring.import(keys.to_dense);
  out.dense_a = expand_uniform(ring, keys.to_dense_seed, 0, params.all_primes());
  return out;
}

}  // namespace

std::size_t ExpandedKeys::bytes() const {
  std::size_t bytes = zeros.data.bytes();
  if (relinearisation) bytes += relinearisation->data.bytes();
  for (const auto& [element, key] : galois) bytes += key.data.bytes();
  if (const auto& e = encapsulation) {
    for (const auto* part : {&e->sparse_b, &e->sparse_a, &e->dense_b, &e->dense_a}) {
      bytes += part->bytes();
    }
  }
  return bytes;
}

std::shared_ptr<const ExpandedKeys> expand_all(const ring::Ring& ring, const Params& params,
                                               const EvaluationKeys* keys) {
  auto out = std::make_shared<ExpandedKeys>();
  if (keys == nullptr) return out;
  require<ParamsMismatch>(keys->params->hash() == params.hash(),
                          "the evaluation keys belong to other parameters");
  out->key_id = keys->key_id;
  if (keys->relinearisation) {
    out->relinearisation = rlwe::expand(ring, params, *keys->relinearisation);
  }
  if (keys->encapsulation) out->encapsulation = expand(ring, params, *keys->encapsulation);
  for (const auto& [element, key] : keys->galois) {
    out->galois.emplace(element, rlwe::expand(ring, params, key));
  }
  for (const auto& [element, key] : out->galois) {
    if (const auto steps = rotation_steps(params.n(), element)) {
      out->rotations.emplace_back(*steps, &key);
    }
  }
  return out;
}

std::shared_ptr<const ExpandedKeys> zeros_for_all(const ring::Ring& ring, const Params& params,
                                                  const KeyId& key_id,
                                                  std::shared_ptr<KeyRecorder> recorder) {
  require<InvalidArgument>(recorder != nullptr,
                           "an evaluator that writes down its keys needs a recorder");
  auto out = std::make_shared<ExpandedKeys>();
  out->key_id = key_id;
  out->recorder = std::move(recorder);
  SwitchKey zeros;
  for (std::size_t d = 0; d < params.key_digits(-1); ++d) {
    zeros.b.push_back(ring.zero(params.key_primes(-1)));
  }
  out->zeros = rlwe::expand(ring, params, zeros);
  if (params.sparse_weight() > 0) {
    EncapsulationKeys none;
    none.to_sparse = ring.zero(sparse_key_primes(params));
    none.to_dense = ring.zero(params.all_primes());
    out->encapsulation = expand(ring, params, none);
  }
  return out;
}

}  // namespace jali::rlwe
