#include "jali/client/key_cost.h"

#include <bit>
#include <vector>

#include "jali/base/error.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/client/text.h"
#include "jali/rlwe/key_demand.h"
#include "jali/wire/keys.h"

namespace jali::client {

namespace {

constexpr double kMadeASecond =
    200e6;  // bytes, by one thread of a server's CPU: measured were 190 to 260 MB

/// The bytes in memory of one switching key, with 64 bits everywhere.
std::uint64_t switch_key_bytes(const rlwe::Params& params, int level) {
  return std::uint64_t{params.key_digits(level)} * params.key_primes(level).size() * params.n() *
             word_bytes(params.word()) +
         sizeof(random::Seed);
}

/// For the bootstrapping of these packings and these rotations, which a program uses at any level
/// up to the depth.
rlwe::KeyDemand bootstrap_demand(const ckks::ParamsPtr& params, const Demand& demand) {
  std::vector<int> packings, rotations;
  for (const std::uint32_t slots : demand.packings) {
    packings.push_back(slots == 0 ? params->log_n() - 1 : std::countr_zero(slots));
  }
  for (const auto& [step, level] : demand.rotations) rotations.push_back(step);
  bootstrap::KeyChoice choice;
  choice.fewest = demand.bootstrap == BootstrapKeys::fewest;
  if (demand.bootstrap == BootstrapKeys::within) {
    // Each of the program's rotations has a key for the top level of a computation beside those of
    // bootstrapping.
    const std::uint64_t each =
        2 * (switch_key_bytes(*params, params->depth()) - sizeof(random::Seed));
    choice.memory = demand.bootstrap_bytes + each * rotations.size();
  }
  const bootstrap::KeyLevels levels = bootstrap::key_levels(params, packings, rotations, choice);
  rlwe::KeyDemand keys =
      rlwe::demand_of(params->n(), levels.rotations, levels.conjugate, levels.relinearise);
  keys.encapsulation = true;
  return keys;
}

}  // namespace

std::string KeyCost::text() const {
  return counted(count, "key") + " of " + bytes_text(static_cast<double>(made)) + " in memory, " +
         bytes_text(static_cast<double>(sent)) + " to send, about " + seconds_text(seconds) +
         " of one thread";
}

rlwe::KeyDemand key_demand(const ckks::ParamsPtr& params, const Demand& demand) {
  if (demand.bootstrap != BootstrapKeys::none) return bootstrap_demand(params, demand);
  return rlwe::demand_of(params->n(), demand.rotations,
                         demand.conjugation >= 0 ? demand.conjugation : rlwe::kNoKey,
                         demand.product > 0 ? demand.product : rlwe::kNoKey);
}

KeyCost key_cost(const ckks::Params& params, const rlwe::KeyDemand& demand) {
  KeyCost cost;
  const auto add = [&](int level) {
    ++cost.count;
    cost.made += switch_key_bytes(params, level);
  };
  if (demand.relinearise != rlwe::kNoKey) add(demand.relinearise);
  for (const auto& [element, level] : demand.galois) add(level);
  if (demand.encapsulation) cost.made += params.encapsulation_key_bytes();
  cost.sent = wire::sent_bytes(params, demand);
  cost.seconds = static_cast<double>(cost.made) / kMadeASecond;
  return cost;
}

rlwe::KeyDemand checked_demand(const ckks::ParamsPtr& params, const Demand& demand,
                               std::uint64_t most) {
  const auto refuse = [&](const std::string& asked, std::uint64_t advice) {
    throw LimitExceeded("the program asks for " + asked + ". This client makes at most " +
                        bytes_text(static_cast<double>(most)) +
                        ": if the program is worth it, call evaluation_keys(max_bytes=" +
                        std::to_string(advice) + ")");
  };
  // Keys of bootstrapping are counted in time that grows with the rotations, so those are counted
  // alone first.
  if (demand.bootstrap != BootstrapKeys::none) {
    const std::uint64_t alone = demand.rotations.size() * switch_key_bytes(*params, -1);
    if (alone > most) {
      refuse(std::to_string(demand.rotations.size()) + " keys of " +
                 bytes_text(static_cast<double>(alone)) + ", and those of bootstrapping",
             2 * alone);
    }
  }
  rlwe::KeyDemand keys = key_demand(params, demand);
  const KeyCost cost = key_cost(*params, keys);
  if (cost.made > most) refuse(cost.text(), cost.made);
  return keys;
}

}  // namespace jali::client
