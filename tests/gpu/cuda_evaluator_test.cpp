// The same program on the CPU and on the GPU gives the same bits.
#include "support.h"

namespace jali::testing {
namespace {

class GpuEvaluator : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override { JALI_NEEDS_GPU(); }
};

TEST_P(GpuEvaluator, RandomProgramsGiveTheSameBits) {
  World w(GetParam());
  const auto ring = ckks::make_ring(*w.params, "cuda");
  const auto on_gpu = std::make_shared<const ckks::Evaluator>(w.params, ring, w.keys);
  const ckks::AutoEvaluator gpu(on_gpu);
  const ckks::AutoEvaluator& cpu = *w.automatic;

  struct Value {
    ckks::Ciphertext host, device;
  };
  std::vector<Value> pool;
  const auto renew = [&] {
    auto c = w.encrypt(w.vector(0.7));
    auto d = on_gpu->bring(c);
    return Value{std::move(c), std::move(d)};
  };
  for (int i = 0; i < 32; ++i) pool.push_back(renew());
  // 8,000 operations: operands without a level left are encrypted anew, which does not count.
  for (int step = 0; step < 8000;) {
    const Value& a = pool[w.random() % pool.size()];
    const Value& b = pool[w.random() % pool.size()];
    Value& target = pool[w.random() % pool.size()];
    const auto operation = w.random() % 13;
    if (operation < 4 && (cpu.effective_level(a.host) == 0 || cpu.effective_level(b.host) == 0)) {
      target = renew();
      continue;
    }
    const auto p = w.vector(0.7);
    Value out;
    const char* what = "";
    try {
      switch (operation) {
        case 0:
          what = "multiply", out = {cpu.multiply(a.host, b.host), gpu.multiply(a.device, b.device)};
          break;
        case 1:
          what = "multiply_vector";
          out = {cpu.multiply_vector(a.host, p), gpu.multiply_vector(a.device, p)};
          break;
        case 2:
          what = "multiply_scalar";
          out = {cpu.multiply_scalar(a.host, p[0]), gpu.multiply_scalar(a.device, p[0])};
          break;
        case 3: what = "square", out = {cpu.square(a.host), gpu.square(a.device)}; break;
        case 4: what = "add", out = {cpu.add(a.host, b.host), gpu.add(a.device, b.device)}; break;
        case 5: what = "sub", out = {cpu.sub(a.host, b.host), gpu.sub(a.device, b.device)}; break;
        case 6: what = "negate", out = {cpu.negate(a.host), gpu.negate(a.device)}; break;
        case 7:
          what = "add_vector", out = {cpu.add_vector(a.host, p), gpu.add_vector(a.device, p)};
          break;
        case 8:
          what = "add_scalar", out = {cpu.add_scalar(a.host, p[0]), gpu.add_scalar(a.device, p[0])};
          break;
        case 9: what = "rotate", out = {cpu.rotate(a.host, 17), gpu.rotate(a.device, 17)}; break;
        case 10: what = "conjugate", out = {cpu.conjugate(a.host), gpu.conjugate(a.device)}; break;
        case 11: what = "sum", out = {cpu.sum(a.host, 8), gpu.sum(a.device, 8)}; break;
        default: what = "normalise", out = {cpu.normalise(a.host), gpu.normalise(a.device)}; break;
      }
    } catch (const RangeExceeded&) {  // it would leave its level: on both engines, as estimates are
                                      // equal
      target = renew();
      continue;
    }
    if (step % 8 == 0) {
      expect_same(out.host, on_gpu->send_back(out.device), what, step, w.seed);
      if (HasFatalFailure()) return;
    }
    target = std::move(out);
    ++step;
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    expect_same(pool[i].host, on_gpu->send_back(pool[i].device), "end", static_cast<int>(i),
                w.seed);
  }
}

TEST_P(GpuEvaluator, HoistedRotationsGiveTheSameBits) {
  World w(GetParam());
  const ckks::Evaluator gpu(w.params, ckks::make_ring(*w.params, "cuda"), w.keys);
  const auto a = w.encrypt(w.vector());
  const auto b = gpu.bring(a);
  const auto on_cpu = w.evaluator->hoist(a), on_gpu = gpu.hoist(b);
  for (const int steps : {0, 1, -3}) {
    expect_same(w.evaluator->rotate_hoisted(on_cpu, steps),
                gpu.send_back(gpu.rotate_hoisted(on_gpu, steps)), "rotate_hoisted", steps, w.seed);
    expect_same(w.evaluator->reduce(w.evaluator->rotate_extended(on_cpu, steps)),
                gpu.send_back(gpu.reduce(gpu.rotate_extended(on_gpu, steps))), "rotate_extended",
                steps, w.seed);
  }
}

TEST_P(GpuEvaluator, DecryptsWhatIsStillOnTheDevice) {
  World w(GetParam());
  const ckks::Evaluator gpu(w.params, ckks::make_ring(*w.params, "cuda"), w.keys);
  const auto z = w.vector();
  const auto a = gpu.bring(w.encrypt(z));
  w.expect(
      gpu.multiply(a, a),
      [&] {
        auto square = z;
        for (auto& v : square) v *= v;
        return square;
      }(),
      0.6, 1.6);
  EXPECT_THROW(gpu.add(w.encrypt(z), w.encrypt(z)), InvalidArgument);  // not brought
  EXPECT_THROW(w.evaluator->add(a, a), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Setups, GpuEvaluator, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
