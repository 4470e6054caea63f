// One object of TFHE of every kind, and every loader behind one function. The tests of wire/ and
// the fuzz targets share them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jali/base/error.h"
#include "jali/schemes/tfhe/secret/client.h"
#include "jali/schemes/tfhe/secret/encryptor.h"
#include "jali/wire/secret/tfhe_secret_key.h"
#include "jali/wire/tfhe.h"
#include "memory_source.h"

namespace jali::testing {

inline tfhe::Literal tfhe_literal(tfhe::Torus torus, tfhe::Order order, tfhe::Rotation rotation) {
  tfhe::Literal out;
  out.name = "insecure_wire";
  out.torus = torus;
  out.n = tfhe::LweDimension(8);
  out.k = tfhe::GlweDimension(1);
  out.N = tfhe::PolynomialSize(256);
  out.rotation = rotation;
  out.group = rotation == tfhe::Rotation::classic ? 1 : 2;
  out.rotation_gadget = torus == tfhe::Torus::t64 ? tfhe::Gadget{20, 1} : tfhe::Gadget{8, 2};
  out.switch_gadget = {8, 2};
  out.lwe_noise_bits = 4;
  out.glwe_noise_bits = torus == tfhe::Torus::t64 ? 15 : 2;
  out.message_bits = 2;
  out.carry_bits = 1;
  out.order = order;
  out.max_norm2 = 9;
  out.log2_p_fail = -64;
  out.security = 0;
  return out;
}

/// Keys and objects of one parameter set, from a fixed seed.
struct TfheObjects {
  explicit TfheObjects(const tfhe::Literal& literal)
      : params(tfhe::Params::create(literal)), client(params, 1, fixed_seed()) {
    keys = client.evaluation_keys(true);
    keys_alone = client.evaluation_keys();
    fresh = client.encrypt(values(), 3);
    public_key = std::make_shared<const lwe::PublicKey>(client.public_key());
    compact = tfhe::PublicEncryptor(public_key, 1, fixed_seed()).encrypt(values(), 3);
    compact.layout = tfhe::Layout{{5}};
    // As after an operation: without the seed, with degrees and noise of its own.
    computed = fresh;
    computed.seed.reset();
    for (std::size_t i = 0; i < computed.size(); ++i) {
      computed.degree[i] = static_cast<std::uint32_t>(3 + i);
    }
    computed.history = tfhe::History::fresh(computed.size(), 5);
    // Of errors whose origins are known: element i has those of 2 x_i + y_i, and a constant.
    summed = computed;
    std::vector<tfhe::Origin> origins(computed.size());
    for (std::size_t i = 0; i < origins.size(); ++i) origins[i].id = tfhe::mixed(7, i);
    const tfhe::History looked_up = tfhe::History::made(origins);
    const tfhe::History* const parts[] = {&fresh.history, &looked_up};
    std::vector<std::uint32_t> begin{0}, column;
    std::vector<std::int64_t> weight, half_steps;
    for (std::uint32_t i = 0; i < origins.size(); ++i) {
      column.insert(column.end(), {i, static_cast<std::uint32_t>(origins.size()) + i});
      weight.insert(weight.end(), {2, -1});
      begin.push_back(static_cast<std::uint32_t>(column.size()));
      half_steps.push_back(2 * std::int64_t{i} - 4);
    }
    summed.history = tfhe::History::joined(parts).combined({begin, column, weight, half_steps});
  }

  static random::Seed fixed_seed() {
    random::Seed seed{};
    seed[0] = 3;
    return seed;
  }
  static std::vector<std::uint64_t> values() { return {0, 1, 2, 3, 2}; }

  tfhe::ParamsPtr params;
  tfhe::Client client;
  lwe::EvaluationKeys keys, keys_alone;
  std::shared_ptr<const lwe::PublicKey> public_key;
  tfhe::CompactCiphertext compact;
  tfhe::Ciphertext fresh, computed, summed;
};

/// A kind of object with valid bytes. load reads bytes as that kind and writes the object again, as
/// the same bytes.
struct TfheLoader {
  std::string name;
  wire::Bytes valid;
  std::function<wire::Bytes(std::span<const std::uint8_t>, const wire::Limits&)> load;
};

inline std::vector<TfheLoader> all_loaders(const TfheObjects& o) {
  using wire::Bytes;
  using wire::Limits;
  using Input = std::span<const std::uint8_t>;
  const tfhe::ParamsPtr params = o.params;
  const auto ciphertext = [params](Input in, const Limits& limits) {
    return wire::to_bytes(wire::tfhe_ciphertext_from_bytes(in, params, limits));
  };
  const auto keys = [params](Input in, const Limits& limits) {
    return wire::to_bytes(wire::tfhe_keys_from_bytes(in, params, limits));
  };
  const auto secret = wire::secret_to_bytes(o.client.secret_key());
  return {
      {"tfhe_params", wire::to_bytes(*params),
       [](Input in, const Limits& limits) {
         return wire::to_bytes(*wire::tfhe_params_from_bytes(in, limits));
       }},
      {"tfhe_ciphertext_fresh", wire::to_bytes(o.fresh), ciphertext},
      {"tfhe_ciphertext_computed", wire::to_bytes(o.computed), ciphertext},
      {"tfhe_ciphertext_summed", wire::to_bytes(o.summed), ciphertext},
      {"tfhe_compact", wire::to_bytes(o.compact),
       [params](Input in, const Limits& limits) {
         return wire::to_bytes(wire::tfhe_compact_from_bytes(in, params, limits));
       }},
      {"tfhe_public_key", wire::to_bytes(*o.public_key),
       [params](Input in, const Limits& limits) {
         return wire::to_bytes(wire::tfhe_public_key_from_bytes(in, params, limits));
       }},
      {"tfhe_evaluation_keys", wire::to_bytes(o.keys_alone), keys},
      {"tfhe_evaluation_keys_packing", wire::to_bytes(o.keys), keys},
      {"tfhe_evaluation_keys_stream", wire::to_bytes(o.keys),
       [params](Input in, const Limits& limits) {
         wire::Source source = memory_source(in);
         const auto read = wire::read_tfhe_keys(source, params, limits);
         wire::require_end(source);
         return wire::to_bytes(read);
       }},
      {"tfhe_secret_key", Bytes(secret.begin(), secret.end()),
       [params](Input in, const Limits& limits) {
         const auto out = wire::secret_to_bytes(wire::tfhe_secret_from_bytes(in, params, limits));
         return Bytes(out.begin(), out.end());
       }},
  };
}

}  // namespace jali::testing
