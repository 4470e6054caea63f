#include "jali/lwe/secret/key_generator.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/lwe/secret/transfer.h"

namespace jali::lwe {

namespace {

// So many LWE ciphertexts take about as long as one GLWE ciphertext.
constexpr std::size_t kLwePerGlwe = 16;

/// work(first, count) for one batch of [0, total) after the other, with a checkpoint before each
/// and progress after it.
template <class Work>
void in_batches(std::size_t total, std::size_t batch, const Progress& progress,
                const Checkpoint& checkpoint, const Work& work) {
  for (std::size_t first = 0; first < total; first += batch) {
    if (checkpoint) checkpoint();
    const std::size_t count = std::min(batch, total - first);
    work(first, count);
    if (progress) progress(first + count, total);
  }
}

backend::TfheConfig config_of(const ParamsPtr& params, int threads) {
  require<InvalidArgument>(params != nullptr, "a key generator needs parameters");
  require<InvalidArgument>(threads >= 1, "a key generator needs at least 1 thread");
  return params->config(threads);
}

/// The bits that the units of each step encrypt, in the order of backend::Rotation.
SecretBits unit_bits(const Params& params, std::span<const std::uint8_t> secret) {
  const backend::TfheConfig config = params.config();
  if (config.rotation != backend::Rotation::multi_bit) return {secret.begin(), secret.end()};
  const auto group = static_cast<std::size_t>(config.group);
  SecretBits out;
  out.reserve(config.steps() * config.units());
  for (std::size_t step = 0; step < config.steps(); ++step) {
    const auto bits = secret.subspan(step * group, group);
    for (std::size_t set = 1; set <= config.units(); ++set) {
      // 1 if exactly the bits of the set are set.
      std::uint8_t exactly = 1;
      for (std::size_t j = 0; j < group; ++j) {
        const auto wanted = static_cast<std::uint8_t>(set >> j & 1);
        exactly = static_cast<std::uint8_t>(exactly & (1 ^ bits[j] ^ wanted));
      }
      out.push_back(exactly);
    }
  }
  return out;
}

}  // namespace

KeyGenerator::KeyGenerator(ParamsPtr params, std::shared_ptr<const backend::TfheClientOps> engine,
                           const std::optional<random::Seed>& seed)
    : params_(std::move(params)),
      engine_(std::move(engine)),
      seeds_(seed, random::SeedSource::Order::streams),
      pool_(device::Pool::create()) {
  require<InvalidArgument>(params_ != nullptr && engine_ != nullptr,
                           "a key generator needs parameters and an engine");
  require<ParamsMismatch>(fits(engine_->config(), *params_),
                          "the engine was made for other parameters: make it with the config() of "
                          "the key generator's parameters");
}

KeyGenerator::KeyGenerator(const ParamsPtr& params, int threads,
                           const std::optional<random::Seed>& seed)
    : KeyGenerator(params, backend::make_cpu_tfhe_client(config_of(params, threads)), seed) {}

void KeyGenerator::check(const SecretKey& secret) const {
  require<ParamsMismatch>(
      secret.params()->hash() == params_->hash(),
      "the secret key was made for other parameters: use a key generator of the "
      "same parameters");
}

SecretKey KeyGenerator::secret_key() {
  KeyId id;
  seeds_.fill_public(id.bytes);
  SecretBits small(params_->n().value), large(params_->large().value);
  {
    const random::SecretSeed seed = seeds_.next();
    random::Prng prng(seed.bytes(), 0);
    if (params_->literal().rotation == backend::Rotation::block_binary) {
      random::sample_one_hot(prng, static_cast<std::size_t>(params_->literal().group), small);
    } else {
      random::sample_bits(prng, small);
    }
  }
  const random::SecretSeed seed = seeds_.next();
  random::Prng prng(seed.bytes(), 0);
  random::sample_bits(prng, large);
  return SecretKey(params_, std::move(small), std::move(large), id);
}

SeededGlwe KeyGenerator::gadget_rows(const SecretKey& secret, std::span<const std::uint8_t> bits,
                                     bool ggsw, const Progress& progress,
                                     const Checkpoint& checkpoint) {
  const auto levels = static_cast<std::size_t>(params_->literal().rotation_gadget.levels);
  const std::size_t count = bits.size() * levels * (ggsw ? params_->k().value + 1 : 1);
  SeededGlwe out{
      seeds_.next().bytes(), params_->torus(), params_->k(), params_->N(), count, {}, secret.id()};
  const std::size_t row = params_->N().value * backend::torus_bytes(params_->torus());
  out.bodies = pool_->allocate(count * row);
  const random::SecretSeed errors = seeds_.next();
  const device::Device& device = *engine_->device();
  const device::Buffer s = secret_copy(device, secret.large()), m = secret_copy(device, bits);
  const backend::GadgetBits held{static_cast<const std::uint8_t*>(m.data()), ggsw};
  in_batches(count, engine_->glwe_batch(), progress, checkpoint,
             [&](std::size_t first, std::size_t rows) {
               auto* const to = static_cast<std::byte*>(out.bodies.data()) + first * row;
               make_on_host(device, to, rows * row, false, [&](void* bodies) {
                 engine_->encrypt_gadget(
                     bodies, rows, static_cast<const std::uint8_t*>(s.data()), held,
                     {out.seed, errors.bytes(), params_->literal().glwe_noise_bits, first});
               });
             });
  return out;
}

SeededGgsw KeyGenerator::ggsw(const SecretKey& secret, std::span<const std::uint8_t> bits,
                              const Progress& progress, const Checkpoint& checkpoint) {
  check(secret);
  require<InvalidArgument>(!bits.empty(), "there is no bit to encrypt");
  std::uint8_t any = 0;
  for (const std::uint8_t bit : bits) any |= bit;
  std::uint8_t wrong = any >> 1;
  declassify(wrong);  // whoever gives such a byte learns that it is one
  require<InvalidArgument>(wrong == 0, "a GGSW ciphertext holds a bit: give bytes of 0 or 1");
  return {params_->literal().rotation_gadget,
          gadget_rows(secret, bits, true, progress, checkpoint)};
}

SeededGlwe KeyGenerator::glwe(const SecretKey& secret, std::span<const std::uint64_t> messages) {
  check(secret);
  const std::size_t N = params_->N().value;
  require<InvalidArgument>(!messages.empty() && messages.size() % N == 0, [&] {
    return std::to_string(messages.size()) + " words are not polynomials of " + std::to_string(N) +
           " coefficients: fill the last one up with zeros";
  });
  // Rows of bits that are 0 encrypt 0. There are `levels` of them for a bit, of which the first are
  // kept.
  const auto levels = static_cast<std::size_t>(params_->literal().rotation_gadget.levels);
  const std::size_t count = messages.size() / N;
  const SecretBits zeros((count + levels - 1) / levels);
  SeededGlwe out = gadget_rows(secret, zeros, false, {}, {});
  out.count = count;
  backend::with_word(params_->torus(), [&](auto zero) {
    auto* const bodies = static_cast<decltype(zero)*>(out.bodies.data());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      bodies[i] = static_cast<decltype(zero)>(bodies[i] + messages[i]);
    }
  });
  return out;
}

SeededGgsw KeyGenerator::rotation_key(const SecretKey& secret, const Progress& progress,
                                      const Checkpoint& checkpoint) {
  check(secret);
  return ggsw(secret, unit_bits(*params_, secret.small()), progress, checkpoint);
}

SeededGlwe KeyGenerator::packing_key(const SecretKey& secret, const Progress& progress,
                                     const Checkpoint& checkpoint) {
  check(secret);
  return gadget_rows(secret, secret.held(), false, progress, checkpoint);
}

SeededLwe KeyGenerator::switch_key(const SecretKey& secret, const Progress& progress,
                                   const Checkpoint& checkpoint) {
  check(secret);
  SeededLwe out{seeds_.next().bytes(), Torus::t32, params_->n(), params_->switch_rows(), {}};
  constexpr std::size_t kWord = backend::torus_bytes(Torus::t32);
  out.bodies = pool_->allocate(out.count * kWord);
  const random::SecretSeed errors = seeds_.next();
  const backend::Gadget gadget = params_->literal().switch_gadget;
  const auto levels = static_cast<std::size_t>(gadget.levels);
  const device::Device& device = *engine_->device();
  const device::Buffer s = secret_copy(device, secret.small());
  in_batches(
      out.count, kLwePerGlwe * engine_->glwe_batch(), progress, checkpoint,
      [&](std::size_t first, std::size_t rows) {
        SecretVector<std::uint64_t> messages(rows);
        for (std::size_t i = 0; i < rows; ++i) {
          const std::size_t row = first + i;
          const int shift = 32 - (static_cast<int>(row % levels) + 1) * gadget.base_log;
          messages[i] = std::uint64_t{secret.large()[row / levels]} << shift;
        }
        const device::Buffer m = secret_copy(device, std::span<const std::uint64_t>(messages));
        auto* const to = static_cast<std::byte*>(out.bodies.data()) + first * kWord;
        make_on_host(device, to, rows * kWord, false, [&](void* bodies) {
          engine_->encrypt_bodies(
              bodies, rows, out.torus, out.dimension, static_cast<const std::uint8_t*>(s.data()),
              static_cast<const std::uint64_t*>(m.data()),
              {out.seed, errors.bytes(), params_->literal().lwe_noise_bits, first});
        });
      });
  return out;
}

PublicKey KeyGenerator::public_key(const SecretKey& secret) {
  check(secret);
  const SecretVector<std::uint64_t> zeros(params_->large().value);
  return {params_, glwe(secret, zeros)};
}

EvaluationKeys KeyGenerator::evaluation_keys(const SecretKey& secret, bool packing,
                                             const Progress& progress,
                                             const Checkpoint& checkpoint) {
  check(secret);
  const std::size_t total =
      params_->glwe_rows() + params_->switch_rows() + (packing ? params_->packing_rows() : 0);
  // The progress of one key, after the ciphertexts of those before it.
  const auto after = [&](std::size_t before) -> Progress {
    if (!progress) return {};
    return [&progress, before, total](std::size_t done, std::size_t) {
      progress(before + done, total);
    };
  };
  EvaluationKeys out;
  out.params = params_;
  out.key_id = secret.id();
  out.switching = switch_key(secret, after(0), checkpoint);
  out.rotation = rotation_key(secret, after(params_->switch_rows()), checkpoint);
  if (packing) {
    out.packing =
        packing_key(secret, after(params_->switch_rows() + params_->glwe_rows()), checkpoint);
  }
  return out;
}

}  // namespace jali::lwe
