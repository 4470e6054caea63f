// The keys of a demand, of bootstrapping too, are known and counted before any is made.
#include "jali/client/key_cost.h"

#include <gtest/gtest.h>

#include <ctime>

#include "jali/base/error.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/bootstrap/secret/evaluation_keys.h"
#include "jali/client/secret/client.h"
#include "jali/rlwe/host_ring.h"
#include "support.h"

namespace jali::client {
namespace {

using namespace testing;

ckks::ParamsPtr bootstrapping() {
  ckks::Literal literal;
  literal.name = "insecure_client";
  literal.security = 0;
  literal.log_n = 10;
  literal.depth = 3;
  literal.scale_bits = 45;
  literal.word = Word::w52;
  literal.bootstrap.emplace();
  return ckks::Params::create(literal);
}

TEST(KeyCost, OfADemandWithoutBootstrapping) {
  const auto params = ckks::Params::create(small_literal(Word::w32, 40, 3));
  Demand demand;
  demand.noise_bits = {20};
  demand.rotations = {{0, 3}, {1, 0}, {1 - static_cast<int>(params->slots()), 2}, {5, 3}};
  const auto keys = key_demand(params, demand);
  EXPECT_EQ(keys.galois.size(), 2u) << "a rotation by 0 needs no key, and equal ones share one";
  EXPECT_EQ(keys.galois.at(ring::galois_element(params->n(), 1)), 2);
  EXPECT_EQ(keys.relinearise, rlwe::kNoKey);
  demand.product = 2, demand.conjugation = 0;
  const auto more = key_demand(params, demand);
  EXPECT_EQ(more.relinearise, 2);
  EXPECT_EQ(more.galois.at(ring::conjugation_element(params->n())), 0);
  EXPECT_EQ(key_cost(*params, more).count, 4u);
}

TEST(KeyCost, OfBootstrappingIsThatOfThePlans) {
  const auto params = bootstrapping();
  const auto ring = rlwe::make_host_ring(*params);
  Demand demand;
  demand.noise_bits = {12};
  demand.rotations = {{3, 1}, {-70, 3}};
  demand.product = 1;
  demand.packings = {0, 16};
  for (const BootstrapKeys kind :
       {BootstrapKeys::all, BootstrapKeys::fewest, BootstrapKeys::within}) {
    demand.bootstrap = kind;
    demand.bootstrap_bytes = kind == BootstrapKeys::within ? std::uint64_t{1} << 40 : 0;
    const auto keys = key_demand(params, demand);
    const KeyCost cost = key_cost(*params, keys);
    EXPECT_TRUE(keys.encapsulation);
    bootstrap::BootstrapperOptions all, sparse;
    sparse.log_slots = 4;
    std::map<int, int> rotations{{3, 1}, {-70, 3}};
    if (kind == BootstrapKeys::fewest) {  // 3 is 1 + 2, and -70 is -64 - 4 - 2
      const int packings[] = {9, 4}, powers[] = {1, 2, -64, -4, -2};
      rotations = {{1, 1}, {2, 1}, {-64, 3}, {-4, 3}, {-2, 3}};
      const auto set = bootstrap::key_sets(params, packings, powers).front();
      all.few = set.few[0], sparse.few = set.few[1];
    }
    const bootstrap::BootstrapPlan plans[] = {{params, all}, {params, sparse}};
    std::size_t expected = bootstrap::key_bytes(*params, plans);
    const auto of_plans = bootstrap::key_levels(*params, plans).rotations;
    for (const auto& [step, level] : rotations) {  // a key that both use serves the higher level
      const auto at = of_plans.find(step);
      const int other = at == of_plans.end() ? -1 : at->second;
      if (other < level) expected += params->switch_key_bytes(level);
      if (other >= 0 && other < level) expected -= params->switch_key_bytes(other);
    }
    EXPECT_EQ(cost.made, expected) << static_cast<int>(kind);
  }
}

TEST(KeyCost, RotationsBesideBootstrappingHaveKeysForTheirLevels) {
  const auto params = bootstrapping();
  Demand demand;
  demand.noise_bits = {12};
  demand.bootstrap = BootstrapKeys::all;
  demand.rotations = {{-70, 1}};
  const auto element = ring::galois_element(params->n(), -70);
  EXPECT_EQ(key_demand(params, demand).galois.at(element), 1);
  demand.rotations = {{-70, 2}, {-70 + static_cast<int>(params->slots()), 0}};
  EXPECT_EQ(key_demand(params, demand).galois.at(element), 2) << "equal rotations share a key";
  const auto alone = [&] {
    demand.rotations = {};
    return key_demand(params, demand).galois;
  }();
  for (const auto& [other, level] : alone) {  // those of bootstrapping keep their levels
    for (int step = 1; step < static_cast<int>(params->slots()); ++step) {
      if (ring::galois_element(params->n(), step) != other) continue;
      demand.rotations = {{step, 0}};
      EXPECT_EQ(key_demand(params, demand).galois, alone) << step;
    }
  }
}

TEST(KeyCost, KeysOfBootstrappingAreThoseOfThePlans) {
  const auto params = bootstrapping();
  const Holder holder = make_holder(params);
  Manifest manifest = small_manifest(params);
  manifest.demand.rotations = {{3, params->depth()}};
  manifest.demand.bootstrap = BootstrapKeys::all;
  const Client client(manifest_from_bytes(to_bytes(manifest), kAnySecurity), holder);
  wire::Bytes bytes;
  client.make_keys(
      [&](std::span<const std::uint8_t> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      },
      kMostKeyBytes, {}, test_seed(3));
  rlwe::KeyGenerator generator(params, holder.ring, test_seed(3));
  const bootstrap::BootstrapPlan plans[] = {{params}};
  const int rotations[] = {3};
  EXPECT_EQ(bytes,
            wire::to_bytes(bootstrap::evaluation_keys(generator, *holder.key, plans, rotations)));
}

TEST(KeyCost, RotationsBesideBootstrappingAreCountedBeforeItsKeys) {
  const auto params = bootstrapping();
  Demand demand;
  demand.noise_bits = {12};
  demand.bootstrap = BootstrapKeys::fewest;
  for (int step = 1; step < static_cast<int>(params->slots()); ++step) demand.rotations[step] = 3;
  const auto start = std::clock();
  try {
    checked_demand(params, demand, std::uint64_t{1} << 20);
    ADD_FAILURE();
  } catch (const LimitExceeded& error) {
    EXPECT_NE(std::string(error.what()).find("and those of bootstrapping"), std::string::npos)
        << error.what();
  }
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.1);
  demand.rotations = {{1, 3}};
  const KeyCost cost = key_cost(*params, key_demand(params, demand));
  EXPECT_NO_THROW(checked_demand(params, demand, cost.made));
  EXPECT_THROW(checked_demand(params, demand, cost.made - 1), LimitExceeded);
  demand.bootstrap = BootstrapKeys::within, demand.bootstrap_bytes = 1;
  EXPECT_THROW(checked_demand(params, demand), InvalidArgument) << "less than the fewest keys take";
}

// A few numbers may lie in many ciphertexts, so that a small manifest asks for gigabytes.
TEST(ClientCost, OfAManifestIsSaidBeforeAnyWork) {
  const auto params = ckks::Params::create(small_literal(Word::w52, 40, 2));
  Manifest honest = small_manifest(params);
  EXPECT_NO_THROW(check_cost(honest));
  const ClientCost cost = client_cost(honest);
  const std::uint64_t poly = params->n() * 8;
  const std::uint64_t primes = params->level(params->depth()).primes.size();
  EXPECT_EQ(cost.request, 3 * (2 * primes * poly + params->slots() * 8));
  EXPECT_GT(cost.own, params->primes().size() * poly);
  Manifest hostile = honest;
  Port& port = hostile.inputs[0];
  port.shape = port.layout.shape = {2, 2};
  port.layout.period = port.layout.slots;
  port.layout.grid = {1 << 23};
  const Manifest read = manifest_from_bytes(to_bytes(hostile), kAnySecurity);
  EXPECT_LT(to_bytes(hostile).size(), 6000u);
  const ClientCost asked = client_cost(read);
  EXPECT_GT(asked.request, std::uint64_t{1} << 31);
  std::string text;
  try {
    check_cost(read, kMostClientBytes, [](std::uint64_t x) { return std::to_string(x); });
    ADD_FAILURE();
  } catch (const LimitExceeded& error) {
    text = error.what();
  }
  EXPECT_NE(
      text.find(" at most 2.0 GiB: if the program is worth it, " + std::to_string(asked.request)),
      std::string::npos)
      << text;
  EXPECT_NO_THROW(check_cost(read, asked.request));
  EXPECT_THROW(check_cost(read, asked.request - 1), LimitExceeded);
}

}  // namespace
}  // namespace jali::client
