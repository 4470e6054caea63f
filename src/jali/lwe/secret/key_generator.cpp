#include "jali/lwe/secret/key_generator.h"

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/lwe/secret/parallel.h"

namespace jali::lwe {

namespace {

// Rows of a range that one thread encrypts between two checkpoints.
constexpr std::size_t kLweRows = 256;
constexpr std::size_t kGlweRows = 4;

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

KeyGenerator::KeyGenerator(ParamsPtr params, int threads, const std::optional<random::Seed>& seed)
    : params_(std::move(params)),
      threads_(threads),
      seeds_(seed, random::SeedSource::Order::streams),
      pool_(device::Pool::create()) {
  require<InvalidArgument>(params_ != nullptr, "a key generator needs parameters");
  require<InvalidArgument>(threads >= 1, "a key generator needs at least 1 thread");
}

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

SeededGlwe KeyGenerator::empty_glwe(std::size_t count) {
  SeededGlwe out{seeds_.next().bytes(), params_->torus(), params_->k(), params_->N(), count, {}};
  out.bodies = pool_->allocate(count * params_->N().value * backend::torus_bytes(params_->torus()));
  return out;
}

SeededGlwe KeyGenerator::rotation_key(const SecretKey& secret, const Progress& progress,
                                      const Checkpoint& checkpoint) {
  check(secret);
  SeededGlwe out = empty_glwe(params_->glwe_rows());
  const random::SecretSeed errors = seeds_.next();
  const SecretBits bits = unit_bits(*params_, secret.small());
  const GlweSecret glwe(params_->torus(), params_->k(), params_->N(), secret.large());
  const backend::Gadget gadget = params_->literal().rotation_gadget;
  const std::size_t rows = (params_->k().value + 1) * static_cast<std::size_t>(gadget.levels);
  const AddMessage message = [&](std::size_t row, std::span<std::uint64_t> polynomial) {
    add_ggsw_message(polynomial, row % rows, bits[row / rows], glwe, gadget);
  };
  in_parallel(
      out.count, kGlweRows, threads_,
      [&](std::size_t first, std::size_t count) {
        encrypt(out, glwe, message, params_->literal().glwe_noise_bits, errors, first, count);
      },
      progress, checkpoint);
  return out;
}

SeededLwe KeyGenerator::switch_key(const SecretKey& secret, const Progress& progress,
                                   const Checkpoint& checkpoint) {
  check(secret);
  SeededLwe out{seeds_.next().bytes(), Torus::t32, params_->n(), params_->switch_rows(), {}};
  out.bodies = pool_->allocate(out.count * backend::torus_bytes(Torus::t32));
  const random::SecretSeed errors = seeds_.next();
  const backend::Gadget gadget = params_->literal().switch_gadget;
  const auto levels = static_cast<std::size_t>(gadget.levels);
  in_parallel(
      out.count, kLweRows, threads_,
      [&](std::size_t first, std::size_t count) {
        SecretVector<std::uint64_t> messages(count);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t row = first + i;
          const int shift = 32 - (static_cast<int>(row % levels) + 1) * gadget.base_log;
          messages[i] = std::uint64_t{secret.large()[row / levels]} << shift;
        }
        encrypt(out, secret.small(), messages, params_->literal().lwe_noise_bits, errors, first,
                count);
      },
      progress, checkpoint);
  return out;
}

SeededGlwe KeyGenerator::packing_key(const SecretKey& secret, const Progress& progress,
                                     const Checkpoint& checkpoint) {
  check(secret);
  SeededGlwe out = empty_glwe(params_->packing_rows());
  const random::SecretSeed errors = seeds_.next();
  const GlweSecret glwe(params_->torus(), params_->k(), params_->N(), secret.large());
  const backend::Gadget gadget = params_->literal().rotation_gadget;
  const auto levels = static_cast<std::size_t>(gadget.levels);
  const int bits = backend::torus_bits(params_->torus());
  const AddMessage message = [&](std::size_t row, std::span<std::uint64_t> polynomial) {
    const int shift = bits - (static_cast<int>(row % levels) + 1) * gadget.base_log;
    polynomial[0] += std::uint64_t{secret.held()[row / levels]} << shift;
  };
  in_parallel(
      out.count, kGlweRows, threads_,
      [&](std::size_t first, std::size_t count) {
        encrypt(out, glwe, message, params_->literal().glwe_noise_bits, errors, first, count);
      },
      progress, checkpoint);
  return out;
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
