// What an evaluator holds: its keys, the checks of operands, and copies between memories.
// Operations are in files of their own.
#include "jali/ckks/evaluator.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "jali/base/error.h"
#include "jali/ckks/composed.h"
#include "jali/ckks/evaluator_impl.h"
#include "jali/ckks/scale.h"

namespace jali::ckks {

static std::shared_ptr<const ExpandedKeys> expanded(const Params& params, const ring::Ring& ring,
                                                    const rlwe::EvaluationKeys* keys) {
  auto out = std::make_shared<ExpandedKeys>();
  if (keys == nullptr) return out;
  require<ParamsMismatch>(keys->params->hash() == params.hash(),
                          "the evaluation keys belong to other parameters");
  out->key_id = keys->key_id;
  if (keys->relinearisation) {
    out->relinearisation = rlwe::expand(ring, params, *keys->relinearisation);
  }
  if (keys->encapsulation) {
    out->encapsulation = expand_encapsulation(ring, params, *keys->encapsulation);
  }
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

static std::shared_ptr<const ExpandedKeys> zero_keys(const Params& params, const ring::Ring& ring,
                                                     const rlwe::KeyId& key_id,
                                                     std::shared_ptr<KeyRecorder> recorder) {
  require<InvalidArgument>(recorder != nullptr,
                           "an evaluator that writes down its keys needs a recorder");
  auto out = std::make_shared<ExpandedKeys>();
  out->key_id = key_id;
  out->recorder = std::move(recorder);
  rlwe::SwitchKey zeros;
  for (std::size_t d = 0; d < params.key_digits(-1); ++d) {
    zeros.b.push_back(ring.zero(params.key_primes(-1)));
  }
  out->zeros = rlwe::expand(ring, params, zeros);
  if (params.sparse_weight() > 0) {
    rlwe::EncapsulationKeys none;
    none.to_sparse = ring.zero(rlwe::sparse_key_primes(params));
    none.to_dense = ring.zero(params.all_primes());
    out->encapsulation = expand_encapsulation(ring, params, none);
  }
  return out;
}

const rlwe::ExpandedKey& Evaluator::Impl::galois_key(std::uint64_t element, int level) const {
  if (keys->recorder) {
    keys->recorder->use_galois(element, params->whole_level(level));
    return keys->zeros;
  }
  const auto it = keys->galois.find(element);
  require<KeyMissing>(it != keys->galois.end(), [&] {
    const std::size_t n = params->n();
    if (element == ring::conjugation_element(n)) {
      return std::string("no key for conjugation: make the keys with conjugate=True");
    }
    if (const auto steps = rotation_steps(n, element)) {
      const auto order = static_cast<int>(n / 2), left = (*steps + order) % order;
      return "no key for rotation by " + std::to_string(left) +
             " (= " + std::to_string(left - order) +
             "): add it to rotations when the keys are made, or make them with "
             "rotations=\"powers\", of which every rotation can be composed";
    }
    return "no key for the automorphism X -> X^" + std::to_string(element);
  });
  require_serves(it->second, level);
  return it->second;
}

std::vector<int> Evaluator::Impl::composition(int steps, int level) const {
  const auto at = std::pair(steps, level);
  {
    const std::lock_guard lock(compositions_mutex);
    if (const auto known = compositions.find(at); known != compositions.end()) {
      return known->second;
    }
  }
  std::vector<int> available;
  for (const auto& [r, key] : keys->rotations) {
    if (serves(*key, level)) available.push_back(r);
  }
  const std::vector<int> parts = fewest_rotations(steps, available, params->n() / 2);
  bool fresh = false;
  {
    const std::lock_guard lock(compositions_mutex);
    fresh = compositions.emplace(at, parts).second;
  }
  if (fresh && parts.size() > 1 && composed) composed(steps, parts.size());
  return parts;
}

void Evaluator::Impl::check(const Ciphertext& a) const {
  check_origin(a);
  require<InvalidArgument>(a.parts.empty() || ring->holds(a.parts[0]),
                           "the ciphertext is in another device's memory: bring it here first");
}

void Evaluator::Impl::check(const Plaintext& a) const {
  require<ParamsMismatch>(a.params != nullptr && a.params->hash() == params->hash(),
                          "the plaintext and the evaluator belong to different parameters");
  require<InvalidArgument>(ring->holds(a.poly),
                           "the plaintext is in another device's memory: encode it with the "
                           "evaluator's own encoder");
}

Ciphertext Evaluator::Impl::shell(const Ciphertext& a) const {
  Ciphertext out;
  out.params = params;
  out.key_id = a.key_id;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = known(a);
  return out;
}

Ciphertext Evaluator::Impl::shell(const Ciphertext& a, const Ciphertext& b) const {
  Ciphertext out = shell(a);
  out.key_id = rlwe::common_key(a.key_id, b.key_id);
  out.log_slots = std::max(a.log_slots, b.log_slots);
  return out;
}

ring::Poly Evaluator::Impl::like(const Ciphertext& a) const {
  return ring->make(a.parts[0].primes(), a.batch());
}

Estimate Evaluator::Impl::known(const Estimate& a, double scale, int level) const {
  Estimate out = a;
  if (checks_range && !params::fits(a, params->n(), scale, params->level(level).log_q)) {
    out.lose_bounds();
  }
  return out;
}

Estimate Evaluator::Impl::product(const Ciphertext& a, const Ciphertext& b) const {
  if (&a == &b) return noise.square(known(a), a.scale);
  return noise.multiply(known(a), a.scale, known(b), b.scale);
}

void Evaluator::Impl::check_pair(int level_a, double scale_a, int level_b, double scale_b,
                                 std::size_t batch_a, std::size_t batch_b,
                                 bool scales_matter) const {
  require<InvalidArgument>(level_a == level_b, [&] {
    return "operands are at levels " + std::to_string(level_a) + " and " + std::to_string(level_b) +
           ": bring one down with drop_to or adjust";
  });
  require<InvalidArgument>(batch_a == batch_b || batch_b == 1, [&] {
    return "operands have batches of " + std::to_string(batch_a) + " and " +
           std::to_string(batch_b) + ": they must be equal, or the second 1";
  });
  require<ScaleMismatch>(!scales_matter || std::fabs(scale_a / scale_b - 1) < 0x1p-20, [&] {
    return "operands have scales 2^" + std::to_string(std::log2(scale_a)) + " and 2^" +
           std::to_string(std::log2(scale_b)) + ": rescale or adjust one to the other";
  });
}

void Evaluator::Impl::require_scale(double scale, int level) const {
  require<ScaleMismatch>(is_plausible_scale(scale, params->level(level)), [&] {
    return "a result of scale 2^" + std::to_string(std::log2(scale)) + " at level " +
           std::to_string(level) + ", whose modulus has " +
           std::to_string(params->level(level).log_q) +
           " bits, holds no message: rescale between products, and no more often";
  });
}

Evaluator::Evaluator(std::shared_ptr<const Engine> engine,
                     std::shared_ptr<const rlwe::EvaluationKeys> keys, Composed composed)
    : impl_(std::make_unique<Impl>(engine, expanded(*engine->params(), *engine->ring(), keys.get()),
                                   std::move(composed))) {}

Evaluator::Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
                     std::shared_ptr<const rlwe::EvaluationKeys> keys, Composed composed)
    : Evaluator(Engine::make(std::move(params), std::move(ring)), std::move(keys),
                std::move(composed)) {}

Evaluator::Evaluator(std::shared_ptr<const Engine> engine, const rlwe::KeyId& key_id,
                     std::shared_ptr<KeyRecorder> recorder)
    : impl_(std::make_unique<Impl>(
          engine, zero_keys(*engine->params(), *engine->ring(), key_id, std::move(recorder)),
          Composed())) {}

Evaluator::Evaluator(const ParamsPtr& part, const Evaluator& whole, bool checks_range)
    : impl_(std::make_unique<Impl>(whole.impl_->engine->part(part), whole.impl_->keys,
                                   whole.impl_->composed)) {
  impl_->checks_range = checks_range;
}

Evaluator::~Evaluator() = default;

void Evaluator::check(const Ciphertext& a) const { impl_->check_origin(a); }
rlwe::KeyId Evaluator::key_id() const { return impl_->keys->key_id; }

std::size_t Evaluator::key_bytes() const {
  const ExpandedKeys& keys = *impl_->keys;
  std::size_t bytes = keys.zeros.data.bytes();
  if (keys.relinearisation) bytes += keys.relinearisation->data.bytes();
  for (const auto& [element, key] : keys.galois) bytes += key.data.bytes();
  if (const auto& e = keys.encapsulation) {
    for (const auto* part : {&e->sparse_b, &e->sparse_a, &e->dense_b, &e->dense_a}) {
      bytes += part->bytes();
    }
  }
  return bytes;
}

const std::shared_ptr<const Engine>& Evaluator::engine() const { return impl_->engine; }
const ParamsPtr& Evaluator::params() const { return impl_->params; }
const std::shared_ptr<const ring::Ring>& Evaluator::ring() const { return impl_->ring; }
const Encoder& Evaluator::encoder() const { return impl_->encoder; }
const params::NoiseModel& Evaluator::noise() const { return impl_->noise; }

bool Evaluator::has_rotation(int steps, int level) const {
  return has_galois(ring::galois_element(impl_->params->n(), steps), level);
}

bool Evaluator::has_galois(std::uint64_t element, int level) const {
  if (element == 1) return true;
  if (impl_->keys->recorder) {
    impl_->galois_key(element, level);
    return true;
  }
  const auto key = impl_->keys->galois.find(element);
  return key != impl_->keys->galois.end() && impl_->serves(key->second, level);
}

bool Evaluator::can_rotate(int steps, int level) const {
  return has_rotation(steps, level) || !impl_->composition(steps, level).empty();
}

std::vector<int> Evaluator::composition(int steps, int level) const {
  std::vector<int> parts = impl_->composition(steps, level);
  if (parts.empty()) impl_->galois_key(ring::galois_element(impl_->params->n(), steps), level);
  return parts;
}

bool Evaluator::has_relinearisation(int level) const {
  if (impl_->keys->recorder) {
    impl_->relinearisation_key(level);
    return true;
  }
  const auto& key = impl_->keys->relinearisation;
  return key.has_value() && impl_->serves(*key, level);
}

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->copy(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

bool Evaluator::is_here(const Ciphertext& a) const {
  return a.parts.empty() || impl_->ring->holds(a.parts[0]);
}

Ciphertext Evaluator::bring(const Ciphertext& a) const {
  impl_->check_origin(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->import(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

Ciphertext Evaluator::send_back(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->host_copy(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

}  // namespace jali::ckks
