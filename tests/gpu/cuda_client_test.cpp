// The client's side on the GPU: keys, encoding, encryption and decryption with the bits of the CPU.
#include "support.h"

namespace jali::testing {
namespace {

using ckks::Ciphertext;

class GpuClient : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override {
    JALI_NEEDS_GPU();
    w = std::make_unique<World>(GetParam());
    gpu = ckks::make_ring(*w->params, "cuda");
    for (auto& byte : seed) byte = static_cast<std::uint8_t>(w->random());
  }
  void same(const ring::Poly& host, const ring::Poly& device, const char* what) {
    const ring::Poly got = gpu->host_copy(device);
    ASSERT_EQ(host.bytes(), got.bytes()) << what;
    ASSERT_EQ(0, std::memcmp(host.data(), got.data(), host.bytes())) << what << ", " << w->seed;
  }

  std::vector<std::size_t> batches() const {
    return w->params->log_n() > 13 ? std::vector<std::size_t>{1, 3}
                                   : std::vector<std::size_t>{1, 3, 64};
  }

  std::unique_ptr<World> w;
  std::shared_ptr<const ring::Ring> gpu;
  random::Seed seed;
};

TEST_P(GpuClient, KeysOfOneSeedAreTheSame) {
  rlwe::KeyGenerator on_cpu(w->params, w->ring, seed), on_gpu(w->params, gpu, seed);
  const auto s = on_cpu.secret_key(), t = on_gpu.secret_key();
  same(s.poly(), t.poly(), "secret key");
  same(on_cpu.public_key(s).b, on_gpu.public_key(t).b, "public key");
  const int rotations[] = {1, -3};
  const auto a = on_cpu.evaluation_keys(s, rotations, true);
  const auto b = on_gpu.evaluation_keys(t, rotations, true);
  const auto c = rlwe::host_copy(*gpu, b);
  EXPECT_EQ(a.bytes(), c.bytes());
  const auto same_key = [&](const rlwe::SwitchKey& x, const rlwe::SwitchKey& y) {
    ASSERT_EQ(x.seed, y.seed);
    for (std::size_t d = 0; d < x.b.size(); ++d) same(x.b[d], y.b[d], "switching key");
  };
  same_key(*a.relinearisation, *b.relinearisation);
  for (const auto& [element, key] : a.galois) same_key(key, b.galois.at(element));
  // Evaluators of either take the same path.
  const ckks::Evaluator from_host(
      w->params, gpu, std::make_shared<const rlwe::EvaluationKeys>(rlwe::host_copy(*gpu, b)));
  const ckks::Evaluator from_device(
      w->params, gpu,
      std::make_shared<const rlwe::EvaluationKeys>(on_gpu.evaluation_keys(t, rotations)));
  EXPECT_TRUE(from_host.has_rotation(1) && from_device.has_rotation(-3));
}

TEST_P(GpuClient, EncodingAndDecodingGiveTheSameBits) {
  const ckks::Encoder on_cpu(w->params, w->ring), on_gpu(w->params, gpu);
  for (int level = 0; level <= w->params->depth(); ++level) {
    for (const int log_slots : {w->params->log_n() - 1, w->params->log_n() - 3, 1, 0}) {
      for (const std::size_t batch : batches()) {
        const std::size_t slots = std::size_t{1} << log_slots;
        for (const std::size_t count : {slots, (slots + 1) / 2}) {
          auto z = w->vector(1, batch * count);
          const double scale = w->params->scale(level);
          const auto a = on_cpu.encode(z, batch, level, scale, log_slots);
          const auto b = on_gpu.encode(z, batch, level, scale, log_slots);
          same(a.poly, b.poly, "encoding");
          const auto x = on_cpu.decode(a), y = on_gpu.decode(b);
          ASSERT_EQ(x.size(), y.size());
          ASSERT_EQ(0, std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0]))) << w->seed;
        }
      }
    }
  }
  // Values near the level's capacity go through from_double; larger ones are refused.
  const int top = w->params->depth();
  const auto z = w->vector();
  const double large = std::exp2(w->params->level(top).log_q - 4);
  same(on_cpu.encode(z, 1, top, large).poly, on_gpu.encode(z, 1, top, large).poly, "large");
  EXPECT_THROW(on_gpu.encode(z, 1, top, 0x1p30 * large), InvalidArgument);
}

TEST_P(GpuClient, EncryptionAndDecryptionGiveTheSameBits) {
  rlwe::KeyGenerator on_cpu(w->params, w->ring, seed), on_gpu(w->params, gpu, seed);
  const auto s = std::make_shared<const rlwe::SecretKey>(on_cpu.secret_key());
  const auto t = std::make_shared<const rlwe::SecretKey>(on_gpu.secret_key());
  const auto p = std::make_shared<const rlwe::PublicKey>(on_cpu.public_key(*s));
  const auto q = std::make_shared<const rlwe::PublicKey>(on_gpu.public_key(*t));
  const ckks::Encoder encode_cpu(w->params, w->ring), encode_gpu(w->params, gpu);
  const ckks::Decryptor open_cpu(s, w->ring), open_gpu(t, gpu);
  const int top = w->params->depth();
  for (const std::size_t batch : batches()) {
    const auto z = w->vector(1, batch * w->params->slots());
    const auto a = encode_cpu.encode(z, batch, top, w->params->scale(top));
    const auto b = encode_gpu.encode(z, batch, top, w->params->scale(top));
    const auto check = [&](const Ciphertext& x, const Ciphertext& y) {
      for (std::size_t i = 0; i < 2; ++i) same(x.parts[i], y.parts[i], "ciphertext");
      const auto u = encode_cpu.decode(open_cpu.decrypt(x));
      const auto v = encode_gpu.decode(open_gpu.decrypt(y));
      ASSERT_EQ(0, std::memcmp(u.data(), v.data(), u.size() * sizeof(u[0])));
      EXPECT_LT(max_error(v, z), 0.01);
    };
    check(ckks::SecretEncryptor(s, w->ring, seed).encrypt(a),
          ckks::SecretEncryptor(t, gpu, seed).encrypt(b));
    check(ckks::PublicEncryptor(p, w->ring, seed).encrypt(a),
          ckks::PublicEncryptor(q, gpu, seed).encrypt(b));
  }
}

TEST_P(GpuClient, MemoryOfSecretsIsWiped) {
  const auto primes = w->params->q_primes();
  const void* at = nullptr;
  {
    ring::Poly secret = gpu->make_secret(primes, ring::Form::coeff);
    gpu->ops().sample_small(secret.view(), backend::Small::error, seed, 0);
    at = secret.data();
  }
  const ring::Poly next = gpu->make_secret(primes);
  ASSERT_EQ(next.data(), at);  // it is the same block
  const ring::Poly host = gpu->host_copy(next);
  const auto* bytes = static_cast<const std::uint8_t*>(host.data());
  EXPECT_TRUE(std::all_of(bytes, bytes + host.bytes(), [](std::uint8_t b) { return b == 0; }));
  EXPECT_NE(gpu->make(primes).data(), at);
}

INSTANTIATE_TEST_SUITE_P(Setups, GpuClient, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });
// Vectors longer than what a thread block holds at once.
INSTANTIATE_TEST_SUITE_P(Large, GpuClient,
                         ::testing::Values(Scheme{"n13_w32", Word::w32, 28, 2, 13},
                                           Scheme{"n15_w64", Word::w64, 50, 2, 15},
                                           Scheme{"n17_w52", Word::w52, 40, 1, 17}),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
