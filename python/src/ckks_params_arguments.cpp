#include <bit>
#include <string>
#include <vector>

#include "arguments.h"
#include "binding.h"
#include "interrupts.h"

namespace jali::python {

std::shared_ptr<const ring::Ring> Params::ring() const {
  const auto kept = [&](const std::shared_ptr<const ring::Ring>& made) {
    const std::lock_guard lock(lazy_->mutex);
    if (lazy_->ring == nullptr) lazy_->ring = made;
    return lazy_->ring;
  };
  if (auto ring = kept(nullptr)) return ring;
  // The ring is made without the lock. If two threads make one, the first is kept.
  return kept(ckks::make_ring(*ptr, "cpu", 1, backend::Variants{}, interrupts()));
}

std::vector<int> key_rotations(const ckks::Params& params, const Rotations& rotations,
                               bool minimum) {
  const auto* name = std::get_if<std::string>(&rotations);
  require<InvalidArgument>(name == nullptr || *name == "powers", [&] {
    return "rotations must be whole numbers of slots, or \"powers\", not \"" + *name + "\"";
  });
  const auto kind = name != nullptr ? rlwe::RotationKeys::powers
                    : minimum       ? rlwe::RotationKeys::minimum
                                    : rlwe::RotationKeys::each;
  const std::vector<int> none;
  return rlwe::key_rotations(name != nullptr ? none : std::get<std::vector<int>>(rotations), kind,
                             params.slots());
}

void require_same(const ckks::Params& expected, const ckks::Params& given, const char* what) {
  require<ParamsMismatch>(&expected == &given || expected.hash() == given.hash(), [&] {
    return std::string(what) +
           " of other parameters: make both sides from the same Params (its bytes "
           "or the same arguments to Params.create)";
  });
}

int checked_level(const ckks::Params& params, int level) {
  require<InvalidArgument>(level >= -1 && level <= params.depth(), [&] {
    return "level " + std::to_string(level) + " is outside 0 to " + std::to_string(params.depth());
  });
  return level < 0 ? params.depth() : level;
}

int checked_log_slots(const ckks::Params& params, std::int64_t slots) {
  if (slots == 0) return params.log_n() - 1;
  const auto count = static_cast<std::uint64_t>(slots);
  require<InvalidArgument>(slots > 0 && std::has_single_bit(count) && count <= params.slots(), [&] {
    return "slots must be a power of two from 1 to " + std::to_string(params.slots());
  });
  return std::countr_zero(count);
}

std::vector<bootstrap::KeySet> bootstrap_key_sets(const ckks::ParamsPtr& params,
                                                  const std::vector<std::int64_t>& slots,
                                                  const std::vector<int>& rotations,
                                                  bool conjugate) {
  require<InvalidArgument>(params->bootstrap().has_value(),
                           "these parameters have no levels for bootstrapping: create them with "
                           "bootstrap=True");
  std::vector<int> log_slots;
  for (const std::int64_t count : slots) log_slots.push_back(checked_log_slots(*params, count));
  return bootstrap::key_sets(params, log_slots, rotations, conjugate);
}

std::vector<bootstrap::BootstrapPlan> bootstrap_plans(const ckks::ParamsPtr& params,
                                                      const std::vector<std::int64_t>& slots,
                                                      const BootstrapKeys& kind,
                                                      const std::vector<int>& rotations,
                                                      bool conjugate) {
  require<InvalidArgument>(!kind.memory || (!kind.minimum && !slots.empty()),
                           "memory chooses keys for bootstrapping: give bootstrap, and leave out "
                           "minimum");
  bootstrap::KeySet set;
  if (kind.memory) {
    set = bootstrap::keys_within(bootstrap_key_sets(params, slots, rotations, conjugate),
                                 *kind.memory);
  } else if (kind.minimum && !slots.empty()) {
    set = bootstrap_key_sets(params, slots, rotations, conjugate).front();
  }
  std::vector<bootstrap::BootstrapPlan> plans;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    bootstrap::BootstrapperOptions options{checked_log_slots(*params, slots[k])};
    if (!set.few.empty()) options.few = set.few[k];
    plans.emplace_back(params, options);
  }
  return plans;
}

}  // namespace jali::python
