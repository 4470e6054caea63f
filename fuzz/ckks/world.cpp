#include "world.h"

#include <optional>
#include <set>
#include <utility>

namespace jali::fuzz {

namespace {

ckks::Literal literal_of(Word word) {
  auto literal = testing::small_literal(word, word == Word::w64 ? 50 : 40, 3);
  if (kBootstrap) {
    literal.scale_bits = word == Word::w32 ? 50 : 40;
    literal.bootstrap.emplace();
    literal.bootstrap->cts_levels = 2;
    literal.bootstrap->stc_levels = 1;
    literal.bootstrap->stc_bits = literal.scale_bits;
    literal.bootstrap->head_bits = word == Word::w32 ? 6 : 0;
    if (word == Word::w52) literal.bootstrap->order = params::BootstrapOrder::slots_first;
  }
  return literal;
}

}  // namespace

World::World(Word word)
    : o(literal_of(word), {}, false),
      forger(o),
      transform(o.params, diagonals()),
      prepared(o.params, diagonals()),
      product(std::vector<double>(12, 0.25), 3, 4, o.params, {.bias = {1, 2, 3}}),
      decryptor(o.sk, o.ring) {
  std::set<int> rotations;
  for (int r = 1; r < static_cast<int>(o.params->slots()); r *= 2) rotations.insert(r);
  for (const auto& plan : {transform.rotations(), product.rotations()}) {
    rotations.insert(plan.begin(), plan.end());
  }
  const std::vector<int> list(rotations.begin(), rotations.end());
  rlwe::KeyGenerator generator(o.params, o.ring, testing::test_seed(9));
  std::optional<bootstrap::BootstrapPlan> plan;
  if (kBootstrap) {
    bootstrap::BootstrapperOptions options;
    options.log_slots = 3;
    plan.emplace(o.params, options);
  }
  auto keys = plan ? bootstrap::evaluation_keys(generator, *o.sk, {&*plan, 1}, list, true)
                   : generator.evaluation_keys(*o.sk, list, true);
  evaluator = std::make_shared<const ckks::Evaluator>(
      o.params, o.ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
  prepared.prepare(evaluator->encoder());
  if (plan) {
    bootstrapper = std::make_unique<bootstrap::Bootstrapper>(evaluator, std::move(*plan));
    bootstrapper->prepare();
    packings = std::make_unique<bootstrap::Packings>(evaluator);
  }
}

circuits::Diagonals World::diagonals() const {
  const std::vector<std::complex<double>> halves(o.params->slots(), 0.5);
  return {{0, halves}, {1, halves}, {-3, halves}};
}

const World& world(std::size_t k) {
  static std::unique_ptr<World> all[3];
  constexpr Word kWords[] = {Word::w32, Word::w52, Word::w64};
  if (all[k] == nullptr) all[k] = std::make_unique<World>(kWords[k]);
  return *all[k];
}

}  // namespace jali::fuzz
