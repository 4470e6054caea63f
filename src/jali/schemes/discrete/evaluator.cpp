// What an evaluator holds, the checks of operands, copies between memories, and how operands are
// brought to one level and factor. Operations are in files of their own.
#include "jali/schemes/discrete/evaluator.h"

#include <algorithm>
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/discrete/operands.h"

namespace jali::discrete {

Evaluator::Evaluator(std::shared_ptr<const Engine> engine,
                     std::shared_ptr<const rlwe::EvaluationKeys> keys, Composed composed)
    : engine_(std::move(engine)),
      bodies_(engine_->switcher(),
              rlwe::expand_all(*engine_->ring(), *engine_->params(), keys.get()),
              std::move(composed)) {}

Evaluator::Evaluator(std::shared_ptr<const Engine> engine, const rlwe::KeyId& key_id,
                     std::shared_ptr<KeyRecorder> recorder)
    : engine_(std::move(engine)),
      bodies_(engine_->switcher(), rlwe::zeros_for_all(*engine_->ring(), *engine_->params(), key_id,
                                                       std::move(recorder))) {}

// --- checks -------------------------------------------------------------------------------------

void Evaluator::check(const Ciphertext& a) const {
  require<InvalidArgument>(a.params != nullptr && !a.parts.empty(),
                           "an empty ciphertext holds nothing to compute with");
  require<ParamsMismatch>(a.params->hash() == params()->hash(),
                          "the ciphertext and the evaluator belong to different parameters");
  require<InvalidArgument>(params()->modulus().inverse(a.factor) != 0,
                           "the factor of a ciphertext is a unit modulo T: it was altered");
  bodies_.check_key(a.key_id);
}

void Evaluator::check_here(const Ciphertext& a) const {
  check(a);
  bodies_.check(a);
}

void Evaluator::check(const Plaintext& a) const {
  require<ParamsMismatch>(a.params != nullptr && a.params->hash() == params()->hash(),
                          "the plaintext and the evaluator belong to different parameters");
  require<InvalidArgument>(a.poly.empty() || ring()->holds(a.poly),
                           "the plaintext is in another device's memory: encode it with the "
                           "evaluator's own encoder");
}

void Evaluator::check_slots(const char* what) const {
  require<InvalidArgument>(params()->packing() == Packing::slots, [&] {
    return std::string(what) +
           " is for numbers in slots: make the parameters with packing=\"slots\". In coefficients "
           "numbers are added up, and multiplied by integers";
  });
}

double Evaluator::noise_budget(const Ciphertext& a) const {
  check(a);
  return noise().budget(a.estimate, a.level);
}

Ciphertext Evaluator::shell(const rlwe::KeyId& key_id, const Known& known) const {
  noise().require_budget(known.estimate, known.level);
  Ciphertext out;
  out.key_id = key_id;
  out.level = known.level;
  out.params = params();
  out.factor = known.factor;
  out.estimate = known.estimate;
  return out;
}

// --- copies -------------------------------------------------------------------------------------

namespace {

/// What is known of a, with this body.
Ciphertext with_body(rlwe::Ciphertext body, const Ciphertext& a) {
  Ciphertext out;
  out.body() = std::move(body);
  out.params = a.params;
  out.factor = a.factor;
  out.estimate = a.estimate;
  return out;
}

}  // namespace

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  check_here(a);
  return with_body(bodies_.copy(a), a);
}

Ciphertext Evaluator::bring(const Ciphertext& a) const {
  check(a);
  return with_body(bodies_.bring(a), a);
}

Ciphertext Evaluator::send_back(const Ciphertext& a) const {
  check_here(a);
  return with_body(bodies_.send_back(a), a);
}

Ciphertext Evaluator::stack(const Ciphertext& a, const Ciphertext& b) const {
  check_here(a);
  check_here(b);
  const Pair pair = aligned(a, b);
  Ciphertext out =
      shell(rlwe::common_key(a.key_id, b.key_id),
            {pair.a->level, pair.a->factor, noise().cover(pair.a->estimate, pair.b->estimate)});
  out.body() = bodies_.stack(*pair.a, *pair.b);
  return out;
}

Ciphertext Evaluator::vectors(const Ciphertext& a, std::size_t first, std::size_t count) const {
  check_here(a);
  return with_body(bodies_.vectors(a, first, count), a);
}

// --- levels and factors -------------------------------------------------------------------------

Ciphertext Evaluator::adjusted(const Ciphertext& a, int level, std::uint64_t factor) const {
  const std::int64_t c = noise().correction(a.level, a.factor, level, factor);
  const Estimate estimate = noise().divide(noise().change_factor(a.estimate, c), a.level, level);
  Ciphertext out = shell(a.key_id, {level, factor, estimate});
  out.body() =
      c == 1 ? bodies_.divide(a, level) : bodies_.divide(bodies_.multiply_integer(a, c), level);
  return out;
}

Ciphertext Evaluator::with_factor(const Ciphertext& a, std::uint64_t factor) const {
  const std::int64_t c = noise().correction(a.level, a.factor, a.level, factor);
  Ciphertext out = shell(a.key_id, {a.level, factor, noise().change_factor(a.estimate, c)});
  out.body() = bodies_.multiply_integer(a, c);
  return out;
}

Ciphertext Evaluator::drop_to(const Ciphertext& a, int level) const {
  check_here(a);
  require<InvalidArgument>(level >= 0 && level <= a.level, [&] {
    return "drop_to leads to a level from 0 to the ciphertext's own, " + std::to_string(a.level) +
           ", not to " + std::to_string(level);
  });
  return level == a.level ? copy(a) : adjusted(a, level, params()->factor(level));
}

Ciphertext Evaluator::rescale(const Ciphertext& a) const {
  check_here(a);
  require<DepthExhausted>(a.level >= 1, [&] {
    return "no level is left to divide by: make the parameters with depth=" +
           std::to_string(params()->depth() + 1);
  });
  const PlainModulus& t = params()->modulus();
  const std::uint64_t quotient = params()->quotient(a.level, a.level - 1);
  Ciphertext out = shell(a.key_id, {a.level - 1, t.mul(a.factor, t.inverse(quotient)),
                                    noise().divide(a.estimate, a.level, a.level - 1)});
  out.body() = bodies_.divide(a, a.level - 1);
  return out;
}

Evaluator::Pair Evaluator::aligned(const Ciphertext& a, const Ciphertext& b) const {
  if (a.level > b.level) return {adjusted(a, b.level, b.factor), b};
  if (b.level > a.level) return {a, adjusted(b, a.level, a.factor)};
  if (a.factor == b.factor) return {a, b};
  // Of equal levels: one is multiplied by a number modulo T, or both are brought one level down,
  // where their noise is divided by more than such a number. The best for the sum is taken.
  const NoiseModel& model = noise();
  const int level = a.level;
  const auto sum = [&](const Estimate& x, const Estimate& y) {
    return model.add(x, y, Overflow::wrap);
  };
  const auto changed = [&](const Ciphertext& x, std::uint64_t factor) {
    return model.change_factor(x.estimate, model.correction(level, x.factor, level, factor));
  };
  const double first = model.budget(sum(changed(a, b.factor), b.estimate), level);
  const double second = model.budget(sum(a.estimate, changed(b, a.factor)), level);
  if (level > 0) {
    const Known x = model.brought(known(a), level - 1), y = model.brought(known(b), level - 1);
    if (model.budget(sum(x.estimate, y.estimate), level - 1) > std::max(first, second)) {
      const std::uint64_t factor = params()->factor(level - 1);
      return {adjusted(a, level - 1, factor), adjusted(b, level - 1, factor)};
    }
  }
  if (first > second) return {with_factor(a, b.factor), b};
  return {a, with_factor(b, a.factor)};
}

}  // namespace jali::discrete
