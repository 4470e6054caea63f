// The operations under a secret key on the CPU: rows over threads.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "jali/backend/secret/lwe_rows.h"
#include "jali/backend/secret/small_product.h"
#include "jali/backend/secret/tfhe_client_checks.h"
#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/backend/seeded.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/base/thread_pool.h"
#include "jali/random/secret_seed.h"

namespace jali::backend {

namespace cpu {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void fill_mask(void* mask, std::size_t bytes, const random::Seed& seed, u64 stream) {
  random::Prng prng(seed, stream);
  prng.fill({static_cast<std::uint8_t*>(mask), bytes});
}

class CpuTfheClient final : public TfheClientOps {
 public:
  CpuTfheClient(TfheConfig config, std::shared_ptr<device::Device> device)
      : TfheClientOps(std::move(device)),
        config_(validated(std::move(config))),
        pool_(config_.threads),
        ring_(config_.N) {}

  std::string name() const override { return "cpu"; }
  const TfheConfig& config() const override { return config_; }
  std::size_t glwe_batch() const override {
    return kGlweRows * 8 * static_cast<std::size_t>(config_.threads);
  }

  void encrypt_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                      const std::uint8_t* secret, const u64* messages,
                      const Draws& draws) const override {
    check_encrypt_bodies(out, count, torus, dimension, secret, messages, draws);
    const std::size_t word = torus_bytes(torus);
    in_pieces(count, kLweRows, [&](std::size_t first, std::size_t end) {
      Draws mine = draws;
      mine.first += first;
      encrypt_lwe_bodies(static_cast<std::byte*>(out) + first * word, end - first, torus, dimension,
                         secret, messages + first, mine);
    });
  }

  void encrypt_gadget(void* out, std::size_t count, const std::uint8_t* secret,
                      const GadgetBits& bits, const Draws& draws) const override {
    check_encrypt_gadget(out, count, secret, bits, draws);
    const std::size_t N = config_.N.value, words = config_.large().value;
    const random::SecretSeed masks(draws.masks), seed(draws.errors);
    const SmallFactors factor(ring_, {secret, words});
    in_pieces(count, kGlweRows, [&](std::size_t first, std::size_t end) {
      with_word(config_.torus, [&](auto zero) {
        using W = decltype(zero);
        std::vector<W> mask(words);
        std::vector<u64> wide(words);
        SecretVector<u64> polynomial(N);
        SecretVector<std::int64_t> error(N);
        for (std::size_t i = first; i < end; ++i) {
          fill_mask(mask.data(), mask.size() * sizeof(W), masks.bytes(), draws.first + i);
          std::copy(mask.begin(), mask.end(), wide.begin());
          random::Prng prng(seed.bytes(), draws.first + i);
          random::sample_tuniform(prng, draws.noise_bits, error);
          for (std::size_t t = 0; t < N; ++t) polynomial[t] = static_cast<u64>(error[t]);
          add_message(polynomial, draws.first + i, secret, bits);
          factor.add_products(polynomial, wide);
          W* const body = static_cast<W*>(out) + i * N;
          for (std::size_t t = 0; t < N; ++t) body[t] = static_cast<W>(polynomial[t]);
        }
      });
    });
  }

  void expand(LweView out, const void* bodies, std::span<const std::uint8_t, 32> masks,
              u64 first) const override {
    check_expand(out, bodies);
    const std::size_t word = torus_bytes(out.torus), mask = out.dimension.value * word;
    in_pieces(out.count, kLweRows, [&](std::size_t begin, std::size_t end) {
      expand_rows(static_cast<std::byte*>(out.data) + begin * (mask + word), masks, first + begin,
                  static_cast<const std::byte*>(bodies) + begin * word, mask, word, end - begin);
    });
  }

  void phases(u64* out, ConstLweView in, const std::uint8_t* secret) const override {
    check_phases(out, in, secret);
    const std::size_t row = (in.dimension.value + 1) * torus_bytes(in.torus);
    in_pieces(in.count, kLweRows, [&](std::size_t first, std::size_t end) {
      const auto* const rows = static_cast<const std::byte*>(in.data) + first * row;
      lwe_phases(out + first, {rows, in.torus, in.dimension, end - first}, secret);
    });
  }

 private:
  // Rows that one thread takes at once.
  static constexpr std::size_t kLweRows = 64, kGlweRows = 4;

  /// work(first, end) for ranges that cover [0, count).
  template <class Work>
  void in_pieces(std::size_t count, std::size_t piece, const Work& work) const {
    pool_.parallel((count + piece - 1) / piece,
                   [&](std::size_t p) { work(p * piece, std::min(count, (p + 1) * piece)); });
  }

  // Row (c, j) has the phase -m S_c 2^(w - j g) if c < k, and m 2^(w - j g) if c = k.
  void add_message(std::span<u64> polynomial, u64 row, const std::uint8_t* secret,
                   const GadgetBits& bits) const {
    const Gadget& gadget = config_.rotation_gadget;
    const auto levels = static_cast<u64>(gadget.levels);
    const std::size_t k = config_.k.value, N = polynomial.size();
    const u64 rows = (bits.ggsw ? k + 1 : 1) * levels;
    const u64 bit = bits.bits[row / rows], c = bits.ggsw ? row % rows / levels : k;
    const int j = static_cast<int>(row % levels) + 1;
    const int shift = torus_bits(config_.torus) - j * gadget.base_log;
    if (c == k) {
      polynomial[0] += bit << shift;
      return;
    }
    const u64 mask = 0 - bit;
    for (std::size_t t = 0; t < N; ++t) polynomial[t] -= (secret[c * N + t] & mask) << shift;
  }

  const TfheConfig config_;
  mutable ThreadPool pool_;
  const SmallRing ring_;
};

}  // namespace

}  // namespace cpu

std::unique_ptr<TfheClientOps> make_cpu_tfhe_client(TfheConfig config,
                                                    std::shared_ptr<device::Device> device) {
  require<InvalidArgument>(device != nullptr && device->memory()->host_accessible(),
                           "a CPU engine needs a device whose memory is the host's "
                           "(device::host_device)");
  return std::make_unique<cpu::CpuTfheClient>(std::move(config), std::move(device));
}

}  // namespace jali::backend
