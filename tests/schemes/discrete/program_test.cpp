// Recorded functions, batches, keys that are found out before there are any, dry runs, and engines
// that agree bit by bit.
#include "jali/schemes/discrete/program.h"

#include <cstring>

#include "circuit.h"
#include "jali/backend/engines.h"
#include "jali/backend/trace/trace.h"
#include "jali/rlwe/host_ring.h"
#include "jali/schemes/discrete/batcher.h"

namespace jali::discrete {
namespace {

const Case kBgv{"bgv", Word::w52, 65537, 0, 3};
const Case kBfv{"bfv", Word::w32, 65537, 0, 2, Multiplication::bfv};

class DiscretePrograms : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
};

TEST_P(DiscretePrograms, ARecordedFunctionGivesTheSame) {
  JALI_SEEDED(rng);
  const auto e = std::make_shared<const Evaluator>(w.engine, w.keys({1}));
  const Numbers weights = w.numbers(rng, -9, 9);
  const Plaintext plain = w.encoder().encode_clear(weights, 1);
  const Ciphertext a = w.encrypt(Numbers(kN, 0), -99, 99), b = w.encrypt(Numbers(kN, 0), -99, 99);
  const Ciphertext* examples[] = {&a, &b};
  Program program(
      e,
      [&](std::span<const Ciphertext> x) {
        std::vector<Ciphertext> out;
        out.push_back(compute(*e, x[0], x[1], plain));
        return out;
      },
      examples);
  for (int i = 0; i < 2; ++i) {
    const Numbers x = w.numbers(rng, -99, 99), y = w.numbers(rng, -9, 99 - i);
    const Ciphertext cx = w.encrypt(x, -99, 99), cy = w.encrypt(y, -9, 99 - i);
    const Ciphertext* inputs[] = {&cx, &cy};
    EXPECT_EQ(w.decrypt(program.run(inputs)[0]), expected(x, y, weights, w.params->modulus()));
  }
  // What does not hold for the examples is refused.
  const Ciphertext wide = w.encrypt(Numbers(kN, 0), -100, 99);
  const Ciphertext residues = w.encrypt_residues(Numbers(kN, 0));
  const Ciphertext low = w.encrypt(Numbers(kN, 0), -99, 99, w.params->top() - 1);
  const Ciphertext noisy = e->add(a, w.encrypt(Numbers(kN, 0), 0, 0));
  Ciphertext factor = e->copy(a);
  factor.factor = 1;
  const Ciphertext* bad_inputs[] = {&wide, &residues, &low, &noisy, &factor};
  for (const Ciphertext* bad : bad_inputs) {
    const Ciphertext* inputs[] = {&a, bad};
    EXPECT_THROW(program.run(inputs), InvalidArgument);
  }
  const Ciphertext* one[] = {&a};
  EXPECT_THROW(program.run(one), InvalidArgument);
}

TEST_P(DiscretePrograms, BatchesGiveTheSame) {
  JALI_SEEDED(rng);
  const auto e = std::make_shared<const Evaluator>(w.engine, w.keys({1}));
  const Numbers weights = w.numbers(rng, -9, 9);
  const Plaintext plain = w.encoder().encode_clear(weights, 1);
  Batcher batcher(e, [&](const Ciphertext& x) { return compute(*e, x, x, plain); }, 4);
  std::vector<Ciphertext> inputs;
  std::vector<Numbers> clear;
  std::vector<const Ciphertext*> views;
  for (int i = 0; i < 5; ++i) {
    clear.push_back(w.numbers(rng, -9 - i, 99));
    inputs.push_back(w.encrypt(clear.back(), -9 - i, 99));
  }
  for (const Ciphertext& x : inputs) views.push_back(&x);
  const auto results = batcher.run(views);
  for (std::size_t i = 0; i < clear.size(); ++i) {
    EXPECT_EQ(w.decrypt(results[i]), expected(clear[i], clear[i], weights, w.params->modulus()));
  }
  const Ciphertext up = w.encrypt(Numbers(kN, 1), 0, 65536), down = w.encrypt({0}, -1, 0);
  const Ciphertext* apart[] = {&up, &down};
  EXPECT_THROW(stack(*e, apart), RangeExceeded);
  const Ciphertext low = w.encrypt({0}, -1, 0, 0);
  const Ciphertext* unlike[] = {&down, &low};
  EXPECT_THROW(stack(*e, unlike), InvalidArgument);
}

// A dry run knows levels, factors, bounds and keys, and these are the real ones.
TEST_P(DiscretePrograms, ADryRunFindsOutTheKeys) {
  JALI_SEEDED(rng);
  const auto dry_ring = make_dry_ring(*w.params);
  const auto dry_engine = Engine::make(w.params, dry_ring);
  const auto recorder = std::make_shared<KeyRecorder>();
  const Evaluator dry(dry_engine, w.secret->id(), recorder);
  const Numbers weights = w.numbers(rng, -9, 9), x = w.numbers(rng, -99, 99);
  const Ciphertext a = w.encrypt(x, -99, 99);
  const Ciphertext there = dry.bring(a);
  const Ciphertext known = compute(dry, there, there, dry.encoder().encode_clear(weights, 1));
  const Evaluator e(w.engine, std::make_shared<const rlwe::EvaluationKeys>(
                                  w.generator.keys_for(*w.secret, recorder->demand())));
  const Ciphertext real = compute(e, a, a, w.encoder().encode_clear(weights, 1));
  EXPECT_EQ(w.decrypt(real), expected(x, x, weights, w.params->modulus()));
  EXPECT_EQ(known.level, real.level);
  EXPECT_EQ(known.factor, real.factor);
  EXPECT_EQ(known.estimate.slot, real.estimate.slot);
  EXPECT_EQ(known.estimate.coefficient, real.estimate.coefficient);
  EXPECT_EQ(known.estimate.range, real.estimate.range);
  EXPECT_THROW(e.rotate(a, 2), KeyMissing);
}

INSTANTIATE_TEST_SUITE_P(All, DiscretePrograms, ::testing::Values(kBgv, kBfv),
                         [](const auto& info) { return info.param.label; });

/// The engines that this machine has. "apart" keeps its memory from the host, as a GPU does.
std::vector<std::shared_ptr<const backend::Engine>> engines(const Params& params) {
  backend::Config config = rlwe::engine_config(params);
  std::vector<std::shared_ptr<const backend::Engine>> out;
  out.push_back(backend::make_ref_engine(config));
  for (const std::string& isa : backend::cpu_isas()) {
    config.isa = isa;
    out.push_back(backend::make_cpu_engine(config));
  }
  config.isa.clear();
  out.push_back(backend::make_apart_engine(config));
  out.push_back(backend::make_trace_engine(out[0], std::make_shared<backend::Trace>()));
  return out;
}

// Every engine makes the same bits of the same operands.
TEST(DiscreteEngines, AgreeBitByBit) {
  JALI_SEEDED(rng);
  const auto packing = Packing::slots;
  for (const Case& c : {Case{"", Word::w32, 65537, 0, 2}, Case{"", Word::w52, {}, 59, 1},
                        Case{"", Word::w64, 786433, 0, 1},
                        Case{"", Word::w32, 12289, 0, 1, Multiplication::bfv, packing, 2},
                        Case{"", Word::w64, 65537, 0, 1, Multiplication::bfv}}) {
    World w(c);
    const auto keys = w.keys({1});
    const Numbers x = w.numbers(rng, -9, 9), weights = w.numbers(rng, -9, 9);
    const Ciphertext a = w.encrypt(x, -9, 9);
    std::optional<Ciphertext> first;
    for (const auto& engine : engines(*w.params)) {
      const auto ring = std::make_shared<const ring::Ring>(engine);
      const Evaluator e(Engine::make(w.params, ring), keys);
      const Ciphertext there = e.bring(a);
      Ciphertext result =
          e.send_back(compute(e, there, there, e.encoder().encode_clear(weights, 1)));
      EXPECT_EQ(w.decrypt(result), expected(x, x, weights, w.params->modulus())) << engine->name();
      if (!first) {
        first = std::move(result);
        continue;
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const ring::Poly &p = first->parts[i], &q = result.parts[i];
        ASSERT_EQ(p.bytes(), q.bytes());
        EXPECT_EQ(std::memcmp(p.data(), q.data(), p.bytes()), 0) << engine->name();
      }
    }
  }
}

}  // namespace
}  // namespace jali::discrete
