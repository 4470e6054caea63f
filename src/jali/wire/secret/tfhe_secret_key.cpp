#include "jali/wire/secret/tfhe_secret_key.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/wire/file.h"
#include "jali/wire/key_id.h"
#include "jali/wire/reader.h"
#include "jali/wire/tfhe_object.h"
#include "jali/wire/writer.h"

namespace jali::wire {

namespace {

std::size_t packed_bytes(const tfhe::Params& params) {
  return (params.n().value + params.large().value + 7) / 8;
}

/// 1 if the number of bits that are set is further than t from its mean, else 0. `draws` are
/// independent, and each sets a bit with the probability `mean`. By Hoeffding's inequality that
/// happens with probability at most 2 exp(-2 t^2 / draws), which is 2^-128 for this t. A difference
/// below 0 has its highest bit set.
std::uint64_t implausible(std::size_t draws, double mean, std::uint64_t set) {
  const auto count = static_cast<double>(draws);
  const double t = std::sqrt(count * 129 * std::numbers::ln2 / 2);
  const auto least = static_cast<std::uint64_t>(std::max(0.0, std::ceil(count * mean - t)));
  const auto most = static_cast<std::uint64_t>(std::floor(count * mean + t));
  return ((set - least) | (most - set)) >> 63;
}

}  // namespace

// No branch and no address depends on a bit.
SecretVector<std::uint8_t> secret_to_bytes(const lwe::SecretKey& key) {
  const tfhe::Params& params = *key.params();
  BasicWriter<SecretVector<std::uint8_t>> writer(kTfheSecretKey, params.hash(),
                                                 sizeof(KeyId) + packed_bytes(params));
  write_key_id(writer, key.id());
  const auto out = writer.extend(packed_bytes(params));
  std::size_t at = 0;
  for (const auto bits : {key.small(), key.large()}) {
    for (const std::uint8_t bit : bits) {
      out[at / 8] = static_cast<std::uint8_t>(out[at / 8] | bit << (at % 8));
      ++at;
    }
  }
  return writer.finish();
}

lwe::SecretKey tfhe_secret_from_bytes(std::span<const std::uint8_t> bytes,
                                      const tfhe::ParamsPtr& params, const Limits& limits) {
  Reader reader = open_tfhe(bytes, kTfheSecretKey, *params, limits);
  const KeyId id = read_key_id(reader);
  const auto in = reader.raw(packed_bytes(*params));
  reader.finish();
  const std::size_t n = params->n().value, large = params->large().value;
  reader.charge(n + large);
  lwe::SecretBits small_bits(n), large_bits(large);
  std::uint64_t set_small = 0, set_large = 0, refused = 0;
  for (std::size_t i = 0; i < 8 * in.size(); ++i) {
    const auto bit = static_cast<std::uint8_t>(in[i / 8] >> (i % 8) & 1);
    if (i < n) {
      small_bits[i] = bit;
      set_small += bit;
    } else if (i < n + large) {
      large_bits[i - n] = bit;
      set_large += bit;
    } else {
      refused |= bit;
    }
  }
  std::size_t draws = n;
  double mean = 0.5;
  if (params->literal().rotation == tfhe::Rotation::block_binary) {
    const auto group = static_cast<std::size_t>(params->literal().group);
    draws = n / group;
    mean = static_cast<double>(group) / static_cast<double>(group + 1);
    for (std::size_t block = 0; block < draws; ++block) {
      std::uint64_t set = 0;
      for (std::size_t j = 0; j < group; ++j) set += small_bits[block * group + j];
      refused |= (1 - set) >> 63;
    }
  }
  refused |= implausible(draws, mean, set_small) | implausible(large, 0.5, set_large);
  // All checks have one answer, so that it says nothing else about the key.
  declassify(refused);
  reader.check(refused == 0, "it is not a secret of its parameters");
  return lwe::SecretKey(params, std::move(small_bits), std::move(large_bits), id);
}

void save_secret(const std::filesystem::path& path, const lwe::SecretKey& key) {
  replace_file(path, Readers::owner, [&](const Sink& sink) { sink(secret_to_bytes(key)); });
}

lwe::SecretKey load_tfhe_secret(const std::filesystem::path& path, const tfhe::ParamsPtr& params,
                                const Limits& limits) {
  const auto bytes = read_file(path, [&](const Source& source) {
    return read_object<SecretVector<std::uint8_t>>(source, limits);
  });
  return tfhe_secret_from_bytes(bytes, params, limits);
}

}  // namespace jali::wire
