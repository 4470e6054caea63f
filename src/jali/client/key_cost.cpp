#include "jali/client/key_cost.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "jali/base/error.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/client/text.h"
#include "jali/rlwe/key_demand.h"
#include "jali/wire/keys.h"

namespace jali::client {

namespace {

// Bytes, by one thread of a server's CPU: measured were 190 to 260 MB.
constexpr double kMadeASecond = 200e6;

/// The bytes in memory of one switching key, with 64 bits everywhere.
std::uint64_t switch_key_bytes(const rlwe::Params& params, int level) {
  return std::uint64_t{params.key_digits(level)} * params.key_primes(level).size() * params.n() *
             word_bytes(params.word()) +
         sizeof(random::Seed);
}

/// For the bootstrapping of these packings, and for rotations up to the levels at which a program
/// uses them.
rlwe::KeyDemand bootstrap_demand(const ckks::ParamsPtr& params, const Demand& demand) {
  std::vector<int> packings;
  for (const std::uint32_t slots : demand.packings) {
    packings.push_back(slots == 0 ? params->log_n() - 1 : std::countr_zero(slots));
  }
  bootstrap::KeyChoice choice;
  choice.fewest = demand.bootstrap == BootstrapKeys::fewest;
  if (demand.bootstrap == BootstrapKeys::within) choice.memory = demand.bootstrap_bytes;
  const bootstrap::KeyLevels levels =
      bootstrap::key_levels(params, packings, demand.rotations, choice);
  rlwe::KeyDemand keys =
      rlwe::demand_of(params->n(), levels.rotations, levels.conjugate, levels.relinearise);
  keys.encapsulation = true;
  return keys;
}

[[noreturn]] void refuse(const std::string& asked, const char* does, std::uint64_t most,
                         std::uint64_t needed, const Allow& allow) {
  std::string text = "the program " + asked + ". This client " + does + " at most " +
                     bytes_text(static_cast<double>(most));
  if (allow) text += ": if the program is worth it, " + allow(needed);
  throw LimitExceeded(text);
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
                               std::uint64_t most, const Allow& allow) {
  // Keys of bootstrapping are counted in time that grows with the rotations, so those are counted
  // alone first.
  if (demand.bootstrap != BootstrapKeys::none) {
    const std::uint64_t alone = demand.rotations.size() * switch_key_bytes(*params, -1);
    if (alone > most) {
      refuse("asks for " + std::to_string(demand.rotations.size()) + " keys of " +
                 bytes_text(static_cast<double>(alone)) + ", and those of bootstrapping",
             "makes", most, 2 * alone, allow);
    }
  }
  rlwe::KeyDemand keys = key_demand(params, demand);
  const KeyCost cost = key_cost(*params, keys);
  if (cost.made > most) refuse("asks for " + cost.text(), "makes", most, cost.made, allow);
  return keys;
}

ClientCost client_cost(const Manifest& manifest) {
  const ckks::Params& params = *manifest.params;
  const std::uint64_t poly = params.n() * word_bytes(params.word());
  const auto of = [&](const std::vector<Port>& ports) {
    std::uint64_t bytes = 0;
    for (const Port& port : ports) {
      const std::uint64_t primes = params.level(port.level).primes.size();
      bytes += port.layout.ciphertexts() * (2 * primes * poly + params.slots() * sizeof(double));
    }
    return bytes;
  };
  // Tables of transforms and the secret key, measured on all sizes of rings, take 2.0 to 2.4
  // polynomials of all primes, and what does not grow with these takes some megabytes.
  const std::uint64_t own = params.primes().size() * poly * 5 / 2 + (std::uint64_t{1} << 23);
  return {own, of(manifest.inputs), of(manifest.outputs)};
}

void check_cost(const Manifest& manifest, std::uint64_t most, const Allow& allow) {
  const ClientCost cost = client_cost(manifest);
  const std::uint64_t largest = std::max({cost.own, cost.request, cost.reply});
  if (largest <= most) return;
  const auto text = [](std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  refuse("takes " + text(cost.own) + " of its client's memory, and for " +
             counted(manifest.lanes, "example") + " " + text(cost.request) + " in a request and " +
             text(cost.reply) + " in a reply",
         "takes", most, largest, allow);
}

}  // namespace jali::client
