// Bootstrapping on the GPU gives the CPU's bits after every stage, and run after run as a program.
#include "../bootstrap/support.h"
#include "../seeded.h"
#include "jali/schemes/ckks/program.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

using ckks::Ciphertext;
using jali::testing::expect_same;

struct GpuCase {
  std::string label;
  ckks::Literal literal;
  BootstrapperOptions options{};
};

void PrintTo(const GpuCase& c, std::ostream* out) { *out << c.label; }

/// Two doublings and arcsin, all levels of one size.
ckks::Literal with_arcsin(BootstrapOrder order, Word word) {
  Case c{"", word, word == Word::w32 ? 50.0 : 45.0, 4, {}};
  c.bootstrap.order = order;
  c.bootstrap.degree = 62;
  c.bootstrap.doublings = 2;
  c.bootstrap.inverse_sine = 7;
  c.bootstrap.cts_levels = 2;
  c.bootstrap.stc_levels = 2;
  c.bootstrap.stc_bits = c.scale_bits;
  return literal_of(c);
}

std::vector<GpuCase> cases() {
  std::vector<GpuCase> out;
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    const std::string o = order == BootstrapOrder::raise_first ? "_raise_" : "_slots_";
    for (const Word word : {Word::w32, Word::w52, Word::w64}) {
      const std::string label = o + std::string(word_name(word));
      for (const auto& p : params::bootstrap_presets()) {
        const bool real = p.name == "n16_real";
        out.push_back({std::string(p.name) + label, shipped(p, order, word), {-1, real}});
        const auto params = ckks::Params::create(shipped(p, order, word));
        const int lowest = params->bootstrap()->input_level();
        out.push_back(
            {std::string(p.name) + "_part" + label, params->literal(), {-1, real, false, lowest}});
        if (p.name != "n16_fast") continue;
        out.push_back({"sparse" + label, shipped(p, order, word), {5}});
        out.push_back({"minimum" + label, shipped(p, order, word), {-1, false, true}});
      }
      out.push_back({"arcsin" + label, with_arcsin(order, word)});
    }
  }
  return out;
}

class GpuBootstrap : public ::testing::TestWithParam<GpuCase> {
 protected:
  void SetUp() override { JALI_NEEDS_GPU(); }
};

struct Stage {
  std::string name;
  Ciphertext result;
};

TEST_P(GpuBootstrap, GivesTheBitsOfTheCpu) {
  const GpuCase& c = GetParam();
  const auto params = ckks::Params::create(c.literal);
  const auto ring = ckks::make_ring(*params, "cpu", 1);
  const BootstrapPlan plan(params, c.options);
  rlwe::KeyGenerator keygen(params, ring);
  const auto sk = std::make_shared<const rlwe::SecretKey>(keygen.secret_key());
  const auto keys =
      std::make_shared<const rlwe::EvaluationKeys>(evaluation_keys(keygen, *sk, {&plan, 1}));
  const auto on_cpu = std::make_shared<const ckks::Evaluator>(params, ring, keys);
  const auto on_gpu = std::make_shared<const ckks::Evaluator>(
      params, jali::testing::gpu_ring(*params, {.poison = true}), keys);
  Bootstrapper cpu(on_cpu, BootstrapPlan(params, c.options));
  Bootstrapper gpu(on_gpu, BootstrapPlan(params, c.options));
  cpu.prepare();

  ckks::SecretEncryptor encryptor(sk, ring);
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const int log_slots = plan.options().log_slots, level = plan.input_level();
  const auto fresh = [&](std::size_t batch) {
    std::vector<Complex> v(batch << log_slots);
    for (auto& z : v) z = {uniform(random), c.options.real ? 0 : uniform(random)};
    return encryptor.encrypt(
        on_cpu->encoder().encode(v, batch, level, params->scale(level), log_slots),
        jali::testing::kMagnitude);
  };

  // Operation by operation: with diagonals that are encoded as they are used (batch 1), then with
  // encoded diagonals.
  for (const std::size_t batch : {std::size_t{1}, std::size_t{3}}) {
    if (batch == 3) gpu.prepare();
    const Ciphertext x = fresh(batch);
    std::vector<Stage> want, got;
    // Stages of a part belong to it and not to the evaluator; its result does.
    const bool whole = plan.depth() == params->depth();
    const Ciphertext y = cpu.apply(x, -1, [&](const char* name, const Ciphertext& result) {
      if (whole) want.push_back({name, on_cpu->copy(result)});
    });
    const Ciphertext z =
        gpu.apply(on_gpu->bring(x), -1, [&](const char* name, const Ciphertext& result) {
          if (whole) got.push_back({name, on_gpu->send_back(result)});
        });
    ASSERT_EQ(got.size(), want.size());
    if (whole) {
      ASSERT_GE(want.size(), 4U);
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].name, want[i].name);
      expect_same(want[i].result, got[i].result, want[i].name.c_str(), static_cast<int>(batch),
                  seed);
      if (HasFatalFailure()) return;
    }
    expect_same(y, on_gpu->send_back(z), "result", static_cast<int>(batch), seed);
    if (HasFatalFailure()) return;
  }

  // As a program, run on inputs that it was not made from, and again on the first of them.
  for (const std::size_t batch : {std::size_t{1}, std::size_t{3}}) {
    const Ciphertext example = fresh(batch);
    const Ciphertext* examples[] = {&example};
    ckks::Program program(
        on_gpu,
        [&](std::span<const Ciphertext> in) {
          std::vector<Ciphertext> out;
          out.push_back(gpu.apply(in[0]));
          return out;
        },
        examples);
    const Ciphertext x[] = {fresh(batch), fresh(batch)};
    const Ciphertext want[] = {cpu.apply(x[0]), cpu.apply(x[1])};
    for (const int run : {0, 1, 0}) {
      const Ciphertext* inputs[] = {&x[run]};
      const auto got = program.run(inputs);
      ASSERT_EQ(got.size(), 1U);
      expect_same(want[run], on_gpu->send_back(got[0]), "program", run, seed);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuBootstrap, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::bootstrap::testing
