// What an evaluator holds: its keys, the checks of operands, and copies between memories.
// Operations are in files of their own.
#include "jali/schemes/ckks/evaluator.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"
#include "jali/schemes/ckks/scale.h"

namespace jali::ckks {

void Evaluator::Impl::check(const Ciphertext& a) const {
  check_origin(a);
  bodies.check(a);
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
  rlwe::Evaluator::check_pair(level_a, level_b, batch_a, batch_b);
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
    : impl_(std::make_unique<Impl>(engine,
                                   rlwe::expand_all(*engine->ring(), *engine->params(), keys.get()),
                                   std::move(composed))) {}

Evaluator::Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
                     std::shared_ptr<const rlwe::EvaluationKeys> keys, Composed composed)
    : Evaluator(Engine::make(std::move(params), std::move(ring)), std::move(keys),
                std::move(composed)) {}

Evaluator::Evaluator(std::shared_ptr<const Engine> engine, const rlwe::KeyId& key_id,
                     std::shared_ptr<KeyRecorder> recorder)
    : impl_(std::make_unique<Impl>(
          engine,
          rlwe::zeros_for_all(*engine->ring(), *engine->params(), key_id, std::move(recorder)),
          Composed())) {}

Evaluator::Evaluator(const ParamsPtr& part, const Evaluator& whole, bool checks_range)
    : impl_(std::make_unique<Impl>(whole.impl_->engine->part(part), whole.impl_->bodies.keys(),
                                   whole.impl_->bodies.composed())) {
  impl_->checks_range = checks_range;
}

Evaluator::~Evaluator() = default;

void Evaluator::check(const Ciphertext& a) const { impl_->check_origin(a); }
rlwe::KeyId Evaluator::key_id() const { return impl_->bodies.keys()->key_id; }
std::size_t Evaluator::key_bytes() const { return impl_->bodies.keys()->bytes(); }

const std::shared_ptr<const Engine>& Evaluator::engine() const { return impl_->engine; }
const ParamsPtr& Evaluator::params() const { return impl_->params; }
const std::shared_ptr<const ring::Ring>& Evaluator::ring() const { return impl_->ring; }
const Encoder& Evaluator::encoder() const { return impl_->encoder; }
const params::NoiseModel& Evaluator::noise() const { return impl_->noise; }

bool Evaluator::has_rotation(int steps, int level) const {
  return impl_->bodies.has_rotation(steps, level);
}
bool Evaluator::has_galois(std::uint64_t element, int level) const {
  return impl_->bodies.has_galois(element, level);
}
bool Evaluator::has_relinearisation(int level) const {
  return impl_->bodies.has_relinearisation(level);
}
bool Evaluator::has_encapsulation() const { return impl_->bodies.has_encapsulation(); }
bool Evaluator::can_rotate(int steps, int level) const {
  return impl_->bodies.can_rotate(steps, level);
}
std::vector<int> Evaluator::composition(int steps, int level) const {
  return impl_->bodies.composition(steps, level);
}
std::shared_ptr<const rlwe::RotationTree> Evaluator::rotation_tree(std::span<const int> steps,
                                                                   int level) const {
  return impl_->bodies.rotation_tree(steps, level);
}

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  out.body() = impl_->bodies.copy(a);
  out.packing = a.packing;
  return out;
}

bool Evaluator::is_here(const Ciphertext& a) const { return impl_->bodies.is_here(a); }

Ciphertext Evaluator::bring(const Ciphertext& a) const {
  impl_->check_origin(a);
  Ciphertext out = impl_->shell(a);
  out.body() = impl_->bodies.bring(a);
  out.packing = a.packing;
  return out;
}

Ciphertext Evaluator::send_back(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  out.body() = impl_->bodies.send_back(a);
  out.packing = a.packing;
  return out;
}

}  // namespace jali::ckks
