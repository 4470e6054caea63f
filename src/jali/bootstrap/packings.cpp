#include "jali/bootstrap/packings.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "jali/base/error.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::bootstrap {

using ckks::Ciphertext;

namespace {

/// Whether the numbers may repeat after `period` slots: a packing without a length tells nothing of
/// the numbers in its slots.
bool may_repeat(const ckks::Packing& packing, std::size_t slots, std::size_t period) {
  if (packing.view) return packing.view->period != 0 && packing.view->period <= period;
  if (packing.length == 0) return true;
  const auto held = ckks::numbers_in_slots(packing, slots);
  return std::equal(held.begin() + static_cast<std::ptrdiff_t>(period), held.end(), held.begin());
}

/// The slots with which to bootstrap a: log_slots, or its own if that is -1.
int checked_slots(const Ciphertext& a, int log_slots) {
  if (log_slots < 0 || log_slots == a.log_slots) return a.log_slots;
  require<InvalidArgument>(log_slots < a.log_slots, [&] {
    return "a value of 2^" + std::to_string(a.log_slots) + " slots cannot be bootstrapped with 2^" +
           std::to_string(log_slots) + ": give at most its own";
  });
  const std::size_t slots = std::size_t{1} << a.log_slots;
  require<InvalidArgument>(may_repeat(a.packing, slots, std::size_t{1} << log_slots), [&] {
    return "numbers do not repeat after 2^" + std::to_string(log_slots) + " slots: the value has " +
           ckks::described(a.packing, a.log_slots) + "; bootstrap it with all its slots";
  });
  return log_slots;
}

}  // namespace

Packings::Packings(std::shared_ptr<const ckks::Evaluator> evaluator, Fewer fewer,
                   std::shared_ptr<const Plans> plans)
    : evaluator_(std::move(evaluator)),
      fewer_(std::move(fewer)),
      plans_(plans != nullptr ? std::move(plans)
                              : std::make_shared<const Plans>(evaluator_->engine())),
      turns_("the set-up of bootstrapping", evaluator_->ring()->checkpoint()) {}

Ciphertext Packings::apply(const Ciphertext& a, int target_level, int iterations,
                           std::optional<bool> real, int log_slots) const {
  const auto& bootstrap = evaluator_->params()->bootstrap();
  const bool cheaper = bootstrap && bootstrap->order == params::BootstrapOrder::slots_first;
  const bool drop = real.value_or(cheaper && !a.packing.complex_values);
  return at({checked_slots(a, log_slots), drop}, target_level, iterations)
      ->apply(a, target_level, {}, iterations);
}

std::pair<Ciphertext, Ciphertext> Packings::apply_pair(const Ciphertext& a, const Ciphertext& b,
                                                       int target_level, int iterations,
                                                       int log_slots) const {
  require<InvalidArgument>(!a.packing.complex_values && !b.packing.complex_values,
                           "a pair needs real values: bootstrap complex ones one by one");
  checked_slots(b, log_slots);
  return at({checked_slots(a, log_slots), false}, target_level, iterations)
      ->apply_pair(a, b, target_level, iterations);
}

void Packings::prepare(int log_slots, bool real, const Progress& progress) const {
  at({log_slots, real}, -1, 1, progress);
}

std::shared_ptr<const Bootstrapper> Packings::at(BootstrapperOptions options, int target_level,
                                                 int iterations, const Progress& progress) const {
  const auto& params = *evaluator_->params();
  const int depth = params.depth();
  // The sum of several results takes a level.
  const int restored = target_level < 0 ? depth : target_level + (iterations > 1 ? 1 : 0);
  const int least =
      params.bootstrap() ? params.bootstrap()->input_level() + (iterations > 1 ? 2 : 0) : depth;
  if (least <= restored && restored < depth) options.target_level = restored;
  const Turns::Turn turn = turns_.take();
  return made(options, progress);
}

std::shared_ptr<const Bootstrapper> Packings::made(const BootstrapperOptions& options,
                                                   const Progress& progress) const {
  auto& kept = made_[{options.log_slots, options.real, options.target_level}];
  if (kept == nullptr) kept = make(options, progress);
  return kept;
}

std::shared_ptr<const Bootstrapper> Packings::make(BootstrapperOptions options,
                                                   const Progress& progress) const {
  std::shared_ptr<BootstrapPlan> plan;
  std::shared_ptr<Bootstrapper> fresh;
  const auto construct = [&] {
    plan = plans_->at(options);
    fresh = std::make_shared<Bootstrapper>(evaluator_, plan);
  };
  try {
    construct();
  } catch (const KeyMissing&) {
    const int every = evaluator_->params()->log_n() - 1;
    const int own = options.log_slots < 0 ? every : options.log_slots;
    const auto found = served(*evaluator_, own);
    if (!found) {
      if (!evaluator_->has_encapsulation()) throw;  // there are no keys for bootstrapping at all
      const std::string slots = std::to_string(std::size_t{1} << own);
      throw KeyMissing("the keys do not serve bootstrapping with " + slots +
                       " slots: make them with bootstrap=" + (own == every ? "True" : slots) +
                       (own == every ? "" : ", or with bootstrap=True for any number of slots"));
    }
    if (fewer_) {
      fewer_(std::size_t{1} << own, std::size_t{1} << found->few.log_slots, found->time);
    }
    if (found->few.log_slots > own) {
      options.log_slots = found->few.log_slots;
      return made(options, progress);
    }
    options.few = found->few;
    construct();
  }
  plans_->prepare(plan, progress);
  return fresh;
}

}  // namespace jali::bootstrap
