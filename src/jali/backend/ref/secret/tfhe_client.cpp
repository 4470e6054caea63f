// The oracle of the operations under a secret key: each by its formula.
#include <cstring>
#include <utility>

#include "jali/backend/secret/tfhe_client_checks.h"
#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/base/secret_vector.h"
#include "jali/random/secret_seed.h"

namespace jali::backend {

namespace ref {

namespace {

using u64 = std::uint64_t;
using Words = SecretVector<u64>;

/// Word i of a block of a torus.
u64 word_at(const void* data, Torus torus, std::size_t i) {
  if (torus == Torus::t32) return static_cast<const std::uint32_t*>(data)[i];
  return static_cast<const u64*>(data)[i];
}
void set_word(void* data, Torus torus, std::size_t i, u64 word) {
  if (torus == Torus::t32) {
    static_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(word);
  } else {
    static_cast<u64*>(data)[i] = word;
  }
}

/// The first `count` words of a stream.
Words mask_words(std::span<const std::uint8_t, 32> seed, u64 stream, Torus torus,
                 std::size_t count) {
  const random::SecretSeed key(seed);
  random::Prng prng(key.bytes(), stream);
  Words out(count);
  for (u64& word : out) {
    std::uint8_t bytes[8]{};
    prng.fill({bytes, torus_bytes(torus)});
    for (int b = 7; b >= 0; --b) word = word << 8 | bytes[b];
  }
  return out;
}

/// The first `count` errors of a stream, as words.
Words errors(const Draws& draws, std::size_t i, std::size_t count) {
  const random::SecretSeed key(draws.errors);
  random::Prng prng(key.bytes(), draws.first + i);
  SecretVector<std::int64_t> drawn(count);
  random::sample_tuniform(prng, draws.noise_bits, drawn);
  return {drawn.begin(), drawn.end()};
}

class RefTfheClient final : public TfheClientOps {
 public:
  explicit RefTfheClient(TfheConfig config)
      : TfheClientOps(device::host_device()), config_(validated(std::move(config))) {}

  std::string name() const override { return "ref"; }
  const TfheConfig& config() const override { return config_; }
  std::size_t glwe_batch() const override { return 1; }

  void encrypt_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                      const std::uint8_t* secret, const u64* messages,
                      const Draws& draws) const override {
    check_encrypt_bodies(out, count, torus, dimension, secret, messages, draws);
    for (std::size_t i = 0; i < count; ++i) {
      const Words mask = mask_words(draws.masks, draws.first + i, torus, dimension.value);
      u64 body = messages[i] + errors(draws, i, 1)[0];
      for (std::size_t j = 0; j < dimension.value; ++j) body += mask[j] * secret[j];
      set_word(out, torus, i, body);
    }
  }

  void encrypt_gadget(void* out, std::size_t count, const std::uint8_t* secret,
                      const GadgetBits& bits, const Draws& draws) const override {
    check_encrypt_gadget(out, count, secret, bits, draws);
    const std::size_t N = config_.N.value, k = config_.k.value;
    for (std::size_t i = 0; i < count; ++i) {
      const Words mask = mask_words(draws.masks, draws.first + i, config_.torus, k * N);
      Words body = errors(draws, i, N);
      for (std::size_t c = 0; c < k; ++c) {
        for (std::size_t a = 0; a < N; ++a) {
          for (std::size_t s = 0; s < N; ++s) {
            const u64 product = mask[c * N + a] * secret[c * N + s];
            body[(a + s) % N] += a + s < N ? product : 0 - product;  // X^N = -1
          }
        }
      }
      add_message(body, draws.first + i, secret, bits);
      for (std::size_t t = 0; t < N; ++t) set_word(out, config_.torus, i * N + t, body[t]);
    }
  }

  void expand(LweView out, const void* bodies, std::span<const std::uint8_t, 32> masks,
              u64 first) const override {
    check_expand(out, bodies);
    const std::size_t n = out.dimension.value;
    for (std::size_t i = 0; i < out.count; ++i) {
      const Words mask = mask_words(masks, first + i, out.torus, n);
      for (std::size_t j = 0; j < n; ++j) set_word(out.data, out.torus, i * (n + 1) + j, mask[j]);
      set_word(out.data, out.torus, i * (n + 1) + n, word_at(bodies, out.torus, i));
    }
  }

  void phases(u64* out, ConstLweView in, const std::uint8_t* secret) const override {
    check_phases(out, in, secret);
    const std::size_t n = in.dimension.value;
    for (std::size_t i = 0; i < in.count; ++i) {
      u64 phase = word_at(in.data, in.torus, i * (n + 1) + n);
      for (std::size_t j = 0; j < n; ++j) {
        phase -= word_at(in.data, in.torus, i * (n + 1) + j) * secret[j];
      }
      set_word(&phase, in.torus, 0, phase);
      out[i] = word_at(&phase, in.torus, 0);
    }
  }

 private:
  /// Row (c, j) of the GGSW ciphertext of m: -m S_c 2^(w - j g) if c < k, and m 2^(w - j g) if c =
  /// k.
  void add_message(Words& body, u64 row, const std::uint8_t* secret, const GadgetBits& bits) const {
    const Gadget& gadget = config_.rotation_gadget;
    const auto levels = static_cast<u64>(gadget.levels);
    const u64 k = config_.k.value, rows = (bits.ggsw ? k + 1 : 1) * levels;
    const u64 m = bits.bits[row / rows];
    const u64 c = bits.ggsw ? row % rows / levels : k;
    const int j = static_cast<int>(row % levels) + 1;
    const int shift = torus_bits(config_.torus) - j * gadget.base_log;
    if (c == k) {
      body[0] += m << shift;
    } else {
      for (std::size_t t = 0; t < body.size(); ++t) {
        body[t] -= m * secret[c * body.size() + t] << shift;
      }
    }
  }

  const TfheConfig config_;
};

}  // namespace

}  // namespace ref

std::unique_ptr<TfheClientOps> make_ref_tfhe_client(TfheConfig config) {
  return std::make_unique<ref::RefTfheClient>(std::move(config));
}

}  // namespace jali::backend
