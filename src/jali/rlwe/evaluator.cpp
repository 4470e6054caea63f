// What an evaluator holds: its keys, the checks of operands, and copies between memories.
// Operations are in files of their own.
#include "jali/rlwe/evaluator.h"

#include <string>

#include "jali/base/error.h"
#include "jali/rlwe/composed.h"

namespace jali::rlwe {

Evaluator::Evaluator(std::shared_ptr<const KeySwitcher> switcher,
                     std::shared_ptr<const ExpandedKeys> keys, Composed composed)
    : switcher_(std::move(switcher)), keys_(std::move(keys)), composed_(std::move(composed)) {}

Evaluator::Evaluator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
                     const EvaluationKeys* keys, Composed composed)
    : Evaluator(std::make_shared<const KeySwitcher>(params, ring), expand_all(*ring, *params, keys),
                std::move(composed)) {}

// --- keys ---------------------------------------------------------------------------------------

bool Evaluator::serves(const ExpandedKey& key, int level) const {
  return key.level < 0 || params()->whole_level(level) <= key.level;
}

void Evaluator::require_serves(const ExpandedKey& key, int level) const {
  require<KeyMissing>(serves(key, level), [&] {
    return "a key was made for levels up to " + std::to_string(key.level) +
           " and is needed at level " + std::to_string(level) + ": make it for that level";
  });
}

const ExpandedKey& Evaluator::relinearisation_key(int level) const {
  if (keys_->recorder) {
    keys_->recorder->use_relinearisation(params()->whole_level(level));
    return keys_->zeros;
  }
  require<KeyMissing>(keys_->relinearisation.has_value(),
                      "no relinearisation key: make the keys with relinearise=True");
  require_serves(*keys_->relinearisation, level);
  return *keys_->relinearisation;
}

const ExpandedKey& Evaluator::galois_key(std::uint64_t element, int level) const {
  if (keys_->recorder) {
    keys_->recorder->use_galois(element, params()->whole_level(level));
    return keys_->zeros;
  }
  const auto it = keys_->galois.find(element);
  require<KeyMissing>(it != keys_->galois.end(), [&] {
    const std::size_t n = params()->n();
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

bool Evaluator::has_rotation(int steps, int level) const {
  return has_galois(ring::galois_element(params()->n(), steps), level);
}

bool Evaluator::has_galois(std::uint64_t element, int level) const {
  if (element == 1) return true;
  if (keys_->recorder) {
    galois_key(element, level);
    return true;
  }
  const auto key = keys_->galois.find(element);
  return key != keys_->galois.end() && serves(key->second, level);
}

bool Evaluator::has_relinearisation(int level) const {
  if (keys_->recorder) {
    relinearisation_key(level);
    return true;
  }
  return keys_->relinearisation.has_value() && serves(*keys_->relinearisation, level);
}

bool Evaluator::has_encapsulation() const {
  if (keys_->recorder) keys_->recorder->use_encapsulation();
  return keys_->encapsulation.has_value();
}

bool Evaluator::can_rotate(int steps, int level) const {
  return has_rotation(steps, level) || !found_composition(steps, level).empty();
}

std::vector<int> Evaluator::composition(int steps, int level) const {
  std::vector<int> parts = found_composition(steps, level);
  if (parts.empty()) galois_key(ring::galois_element(params()->n(), steps), level);
  return parts;
}

std::vector<int> Evaluator::found_composition(int steps, int level) const {
  const auto at = std::pair(steps, level);
  {
    const std::lock_guard lock(compositions_mutex_);
    if (const auto known = compositions_.find(at); known != compositions_.end()) {
      return known->second;
    }
  }
  const std::vector<int> parts = fewest_rotations(steps, rotations_at(level), params()->n() / 2);
  bool fresh = false;
  {
    const std::lock_guard lock(compositions_mutex_);
    fresh = compositions_.emplace(at, parts).second;
  }
  if (fresh && parts.size() > 1 && composed_) composed_(steps, parts.size());
  return parts;
}

std::vector<int> Evaluator::rotations_at(int level) const {
  std::vector<int> out;
  for (const auto& [r, key] : keys_->rotations) {
    if (serves(*key, level)) out.push_back(r);
  }
  return out;
}

std::shared_ptr<const RotationTree> Evaluator::rotation_tree(std::span<const int> steps,
                                                             int level) const {
  const auto at = std::pair(std::vector<int>(steps.begin(), steps.end()), level);
  {
    const std::lock_guard lock(compositions_mutex_);
    if (const auto known = trees_.find(at); known != trees_.end()) return known->second;
  }
  std::vector<std::vector<int>> compositions;
  for (const int r : steps) {
    compositions.push_back(has_rotation(r, level) ? std::vector<int>{} : composition(r, level));
  }
  auto tree = std::make_shared<const RotationTree>(
      jali::rlwe::rotation_tree(steps, compositions, rotations_at(level), params()->n() / 2));
  if (keys_->recorder) return tree;  // every use of a key is to be written down
  const std::lock_guard lock(compositions_mutex_);
  return trees_.emplace(at, std::move(tree)).first->second;
}

// --- checks -------------------------------------------------------------------------------------

void Evaluator::check_key(const KeyId& key_id) const {
  require<KeyMismatch>(agree(key_id, keys_->key_id),
                       "the ciphertext and the evaluator's keys belong to different secret keys: "
                       "make an evaluator for each client, with the evaluation keys of that "
                       "client");
}

void Evaluator::check(const Ciphertext& a) const {
  check_key(a.key_id);
  require<InvalidArgument>(is_here(a),
                           "the ciphertext is in another device's memory: bring it here first");
}

void Evaluator::check(const Extended& a) const {
  check_key(a.key_id);
  require<InvalidArgument>(!a.c0.empty() && !a.c1.empty(),
                           "an empty Extended: use Evaluator::extend");
}

void Evaluator::check_source(const Ciphertext* source) const {
  require<InvalidArgument>(source != nullptr, "an empty Hoisted: use Evaluator::hoist");
  check(*source);
}

void Evaluator::check_pair(int level_a, int level_b, std::size_t batch_a, std::size_t batch_b) {
  require<InvalidArgument>(level_a == level_b, [&] {
    return "operands are at levels " + std::to_string(level_a) + " and " + std::to_string(level_b) +
           ": bring one down with drop_to or adjust";
  });
  require<InvalidArgument>(batch_a == batch_b || batch_b == 1, [&] {
    return "operands have batches of " + std::to_string(batch_a) + " and " +
           std::to_string(batch_b) + ": they must be equal, or the second 1";
  });
}

// --- copies -------------------------------------------------------------------------------------

ring::Poly Evaluator::like(const Ciphertext& a) const {
  return ring()->make(a.parts[0].primes(), a.batch());
}

bool Evaluator::is_here(const Ciphertext& a) const {
  return a.parts.empty() || ring()->holds(a.parts[0]);
}

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  check(a);
  Ciphertext out{a.key_id, {}, a.level, a.seed};
  for (const auto& part : a.parts) out.parts.push_back(ring()->copy(part));
  return out;
}

Ciphertext Evaluator::bring(const Ciphertext& a) const {
  check_key(a.key_id);
  Ciphertext out{a.key_id, {}, a.level, a.seed};
  for (const auto& part : a.parts) out.parts.push_back(ring()->import(part));
  return out;
}

Ciphertext Evaluator::send_back(const Ciphertext& a) const {
  check(a);
  Ciphertext out{a.key_id, {}, a.level, a.seed};
  for (const auto& part : a.parts) out.parts.push_back(ring()->host_copy(part));
  return out;
}

// Copies the rows [from, from + count) of every limb of x to the rows [to, to + count) of out.
static void copy_rows(const ring::Ring& ring, ring::Poly& out, std::size_t to, const ring::Poly& x,
                      std::size_t from, std::size_t count) {
  ring.copies().copy_rows(out.row(0, to), out.batch() * out.row_bytes(), x.row(0, from),
                          x.batch() * x.row_bytes(), count * x.row_bytes(), x.limbs());
}

Ciphertext Evaluator::stack(const Ciphertext& a, const Ciphertext& b) const {
  check(a);
  check(b);
  check_pair(a.level, b.level, a.batch(), a.batch());
  require<InvalidArgument>(a.parts.size() == b.parts.size(),
                           "ciphertexts of one batch need equal parts");
  Ciphertext out{common_key(a.key_id, b.key_id), {}, a.level, {}};
  for (std::size_t c = 0; c < a.parts.size(); ++c) {
    out.parts.push_back(ring()->make(a.parts[c].primes(), a.batch() + b.batch()));
    copy_rows(*ring(), out.parts[c], 0, a.parts[c], 0, a.batch());
    copy_rows(*ring(), out.parts[c], a.batch(), b.parts[c], 0, b.batch());
  }
  return out;
}

Ciphertext Evaluator::vectors(const Ciphertext& a, std::size_t first, std::size_t count) const {
  check(a);
  require<InvalidArgument>(count >= 1 && first < a.batch() && count <= a.batch() - first,
                           "the range of vectors lies outside the batch: take at least one, and "
                           "none past its end");
  Ciphertext out{a.key_id, {}, a.level, {}};
  for (const auto& part : a.parts) {
    out.parts.push_back(ring()->make(part.primes(), count));
    copy_rows(*ring(), out.parts.back(), 0, part, first, count);
  }
  return out;
}

}  // namespace jali::rlwe
