// Exact integers on the GPU: every operation gives the bits of the CPU, alone and in a recorded
// graph. Divisions and lifts between bases that share no prime occur nowhere else.
#include <cstring>

#include "circuit.h"
#include "jali/backend/engines.h"
#include "jali/rlwe/host_ring.h"
#include "jali/schemes/discrete/program.h"

namespace jali::discrete {
namespace {

std::shared_ptr<const ring::Ring> gpu_ring(const Params& params, bool poison) {
  const backend::GpuOptions options{.poison = poison};
  return std::make_shared<const ring::Ring>(
      backend::make_cuda_engine(rlwe::engine_config(params), options));
}

void expect_same(const Ciphertext& a, const Ciphertext& b, const char* what) {
  ASSERT_EQ(a.level, b.level) << what;
  ASSERT_EQ(a.factor, b.factor) << what;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(a.parts[i].bytes(), b.parts[i].bytes()) << what;
    ASSERT_EQ(0, std::memcmp(a.parts[i].data(), b.parts[i].data(), a.parts[i].bytes())) << what;
  }
}

class GpuDiscrete : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (backend::cuda_device_count() == 0) {
      GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
    }
  }
};

TEST_P(GpuDiscrete, EveryOperationHasTheBitsOfTheCpu) {
  JALI_SEEDED(rng);
  World w(GetParam());
  const auto keys = w.keys({1, -3});
  const Evaluator cpu(w.engine, keys);
  const bool bfv = w.params->multiplication() == Multiplication::bfv;
  for (const bool poison : {false, true}) {
    const Evaluator gpu(Engine::make(w.params, gpu_ring(*w.params, poison)), keys);
    for (const std::size_t batch : {1, 3}) {
      for (int level = 0; level <= w.params->top(); ++level) {
        const Numbers x = w.numbers(rng, -9, 9, batch * kN), y = w.numbers(rng, -9, 9, batch * kN);
        const Numbers z = w.numbers(rng, -9, 9);
        const Ciphertext a = w.encrypt(x, -9, 9, level, batch),
                         b = w.encrypt(y, -9, 9, level, batch);
        const Ciphertext ga = gpu.bring(a), gb = gpu.bring(b);
        const Plaintext p = w.encoder().encode_clear(z, 1), gp = gpu.encoder().encode_clear(z, 1);
        const auto same = [&](const char* what, auto f) {
          expect_same(gpu.send_back(f(gpu, ga, gb, gp)), f(cpu, a, b, p), what);
        };
        using E = const Evaluator&;
        using C = const Ciphertext&;
        using P = const Plaintext&;
        same("add", [](E e, C u, C v, P) { return e.add(u, v); });
        same("sub", [](E e, C u, C v, P) { return e.sub(u, v); });
        same("negate", [](E e, C u, C, P) { return e.negate(u); });
        same("add_plain", [](E e, C u, C, P q) { return e.add_plain(u, q); });
        same("add_integer", [](E e, C u, C, P) { return e.add_integer(u, -7); });
        same("multiply_integer", [](E e, C u, C, P) { return e.multiply_integer(u, 11); });
        same("rotate", [](E e, C u, C, P) { return e.rotate(u, -3); });
        same("swap_rows", [](E e, C u, C, P) { return e.swap_rows(u); });
        same("hoisted", [](E e, C u, C, P) {
          const Hoisted hoisted = e.hoist(u);
          Extended sum = e.rotate_extended(hoisted, 1);
          e.add_inplace(sum, e.rotate_extended(hoisted, -3));
          return e.reduce(sum);
        });
        if (level == 0) continue;
        same("multiply", [](E e, C u, C v, P) { return e.multiply(u, v); });
        same("square", [](E e, C u, C, P) { return e.square(u); });
        same("multiply_plain", [](E e, C u, C, P q) { return e.multiply_plain(u, q); });
        same("drop_to", [](E e, C u, C, P) { return e.drop_to(u, 0); });
        if (bfv) continue;
        same("sum_of_products", [](E e, C u, C v, P) {
          const std::pair<const Ciphertext*, const Ciphertext*> factors[] = {{&u, &v}, {&v, &v}};
          return e.sum_of_products(factors);
        });
      }
    }
  }
}

TEST_P(GpuDiscrete, AGraphGivesTheBitsOfTheCpu) {
  JALI_SEEDED(rng);
  World w(GetParam());
  const auto keys = w.keys({1});
  const Evaluator cpu(w.engine, keys);
  const auto gpu =
      std::make_shared<const Evaluator>(Engine::make(w.params, gpu_ring(*w.params, true)), keys);
  const Numbers z = w.numbers(rng, -9, 9);
  const Plaintext p = w.encoder().encode_clear(z, 1), gp = gpu->encoder().encode_clear(z, 1);
  const Ciphertext example = w.encrypt(Numbers(kN, 0), -9, 9);
  const Ciphertext* examples[] = {&example, &example};
  Program program(
      gpu,
      [&](std::span<const Ciphertext> x) {
        std::vector<Ciphertext> out;
        out.push_back(compute(*gpu, x[0], x[1], gp));
        return out;
      },
      examples);
  for (int run = 0; run < 4; ++run) {
    const Ciphertext a = w.encrypt(w.numbers(rng, -9, 9), -9, 9);
    const Ciphertext b = w.encrypt(w.numbers(rng, -9, 9), -9, 9);
    const Ciphertext* inputs[] = {&a, &b};
    expect_same(gpu->send_back(program.run(inputs)[0]), compute(cpu, a, b, p), "graph");
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (Case& c : slot_setups()) {
    if (c.device == "cpu") out.push_back(c);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, GpuDiscrete, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

// The rings that people use, whose kernels are others than those of small ones.
TEST(GpuDiscreteRings, SecureParametersHaveTheBitsOfTheCpu) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  JALI_SEEDED(rng);
  for (const Multiplication m : {Multiplication::bgv, Multiplication::bfv}) {
    for (const auto& [depth, word] : {std::pair(2, Word::w32), std::pair(6, Word::w52),
                                      std::pair(8, Word::w32), std::pair(2, Word::w64)}) {
      Literal l;
      l.depth = depth;
      l.word = word;
      l.multiplication = m;
      const ParamsPtr params = Params::create(l);
      const auto ring = make_ring(*params, "cpu", 4);
      rlwe::KeyGenerator generator(params, ring);
      const auto secret = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
      const auto keys = std::make_shared<const rlwe::EvaluationKeys>(
          generator.evaluation_keys(*secret, std::vector<int>{1}, true, true));
      const Evaluator cpu(Engine::make(params, ring), keys);
      const Evaluator gpu(Engine::make(params, gpu_ring(*params, true)), keys);
      Numbers x(params->n());
      for (auto& v : x) v = static_cast<std::int64_t>(rng() % 19) - 9;
      const Ciphertext a = SecretEncryptor(secret, ring, params)
                               .encrypt(cpu.encoder().encode(x, 1, cpu.noise().range(-9, 9)));
      const Ciphertext there = gpu.bring(a);
      const Ciphertext want = compute(cpu, a, a, cpu.encoder().encode_clear(x, 1));
      expect_same(gpu.send_back(compute(gpu, there, there, gpu.encoder().encode_clear(x, 1))), want,
                  "secure parameters");
      const auto got = Decryptor(secret, ring, params).decrypt(want);
      for (std::size_t i = 0; i + 1 < params->n() / 2; ++i) {
        const Wide value = 3 * (Wide{x[i + 1]} * x[i] + Wide{x[i + params->n() / 2]} * x[i]);
        ASSERT_EQ(got[i], residue(value - x[i] + 7, params->modulus()));
      }
    }
  }
}

}  // namespace
}  // namespace jali::discrete
