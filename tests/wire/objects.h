// One object of every kind, and every loader behind one function. The tests of wire/ and the fuzz
// targets share them.
#pragma once

#include <algorithm>
#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jali/rlwe/keys.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/evaluator.h"
#include "jali/schemes/ckks/make_ring.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/wire/ckks.h"
#include "jali/wire/secret/secret_key.h"
#include "memory_source.h"

namespace jali::testing {

/// Limits that accept the parameters of tests, which are insecure.
inline constexpr wire::Limits kAnySecurity{.min_security = 0};

inline ckks::Literal small_literal(Word word, double scale_bits, int depth, int dnum = 0) {
  ckks::Literal literal;
  literal.name = "insecure_wire";
  literal.security = 0;
  literal.depth = depth;
  literal.scale_bits = scale_bits;
  literal.log_n = 10;
  literal.word = word;
  literal.dnum = dnum;
  return literal;
}

inline random::Seed test_seed(std::uint8_t x) {
  random::Seed seed{};
  seed[0] = x;
  return seed;
}

/// Keys and objects of one parameter set, from fixed seeds.
struct Objects {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> sk;
  rlwe::PublicKey pk;
  rlwe::SwitchKey switch_key;
  std::shared_ptr<const rlwe::EvaluationKeys> keys;
  std::shared_ptr<const ckks::Evaluator> evaluator;

  explicit Objects(const ckks::Literal& literal, const std::vector<int>& rotations = {1, -1},
                   bool conjugate = true)
      : params(ckks::Params::create(literal)), ring(ckks::make_ring(*params)) {
    rlwe::KeyGenerator keygen(params, ring, test_seed(1));
    sk = std::make_shared<const rlwe::SecretKey>(keygen.secret_key());
    pk = keygen.public_key(*sk);
    switch_key = keygen.galois_key(5, *sk);
    keys = std::make_shared<const rlwe::EvaluationKeys>(
        keygen.evaluation_keys(*sk, rotations, conjugate));
    evaluator = std::make_shared<const ckks::Evaluator>(params, ring, keys);
  }

  static std::vector<std::complex<double>> values(std::size_t count) {
    std::vector<std::complex<double>> v(count);
    for (std::size_t i = 0; i < count; ++i) {
      v[i] = {0.01 * static_cast<double>(i % 97) - 0.4, 0.02 * static_cast<double>(i % 31) - 0.3};
    }
    return v;
  }
  ckks::Plaintext plaintext(int level, std::size_t batch = 1, int log_slots = -1) const {
    const std::size_t slots = log_slots < 0 ? params->slots() : std::size_t{1} << log_slots;
    return evaluator->encoder().encode(values(batch * slots), batch, level, params->scale(level),
                                       log_slots);
  }
  ckks::Ciphertext ciphertext(int level, std::size_t batch = 1, int log_slots = -1) const {
    ckks::SecretEncryptor encryptor(sk, ring, test_seed(2));
    return encryptor.encrypt(plaintext(level, batch, log_slots));
  }
};

/// A kind of object with valid bytes. load reads bytes as that kind and writes the object again.
/// The format is canonical, so these bytes are equal to those that were read.
struct Loader {
  std::string name;
  wire::Bytes valid;
  std::function<wire::Bytes(std::span<const std::uint8_t>, const ring::Ring&, const wire::Limits&)>
      load;
};

inline std::vector<Loader> all_loaders(const Objects& o) {
  using wire::Bytes;
  using wire::Limits;
  using Input = std::span<const std::uint8_t>;
  const ckks::ParamsPtr params = o.params;
  const auto object = [params]<class T>(std::type_identity<T>) {
    return [params](Input in, const ring::Ring& ring, const Limits& limits) -> Bytes {
      const T x = wire::from_bytes<T>(in, params, ring, limits);
      if constexpr (std::is_same_v<T, rlwe::SwitchKey>) {
        return wire::to_bytes(x, *params);
      } else {
        return wire::to_bytes(x);
      }
    };
  };
  const auto load_ciphertext = object(std::type_identity<ckks::Ciphertext>{});
  const int top = params->depth();
  ckks::Ciphertext fresh = o.ciphertext(top);
  fresh.packing = {100, true, false, 0.0};
  ckks::Ciphertext tiled = o.ciphertext(top);
  tiled.packing = {100, false, false, 0.0, {512, 64, 128, 2}};
  ckks::Ciphertext correlated = o.ciphertext(top);
  correlated.packing = fresh.packing;
  ckks::Ciphertext cube = o.ciphertext(top);
  cube.estimate.lineage.power = 3;
  correlated.estimate.principal = 3.5;
  const ckks::Evaluator unchecked(params, *o.evaluator, /*checks_range=*/false);  // for depth 0
  const wire::SecretBytes secret = wire::secret_to_bytes(*o.sk, *o.ring);
  return {
      {"params", wire::to_bytes(*params),
       [](Input in, const ring::Ring&, const Limits& limits) {
         return wire::to_bytes(*wire::params_from_bytes(in, limits));
       }},
      {"plaintext", wire::to_bytes(o.plaintext(top, 2)),
       object(std::type_identity<ckks::Plaintext>{})},
      {"ciphertext_fresh", wire::to_bytes(fresh), load_ciphertext},
      {"ciphertext_tiled", wire::to_bytes(tiled), load_ciphertext},
      {"ciphertext_correlated", wire::to_bytes(correlated), load_ciphertext},
      {"ciphertext_cube", wire::to_bytes(cube), load_ciphertext},
      {"ciphertext_product", wire::to_bytes(unchecked.square(o.ciphertext(top, 2))),
       load_ciphertext},
      {"public_key", wire::to_bytes(o.pk), object(std::type_identity<rlwe::PublicKey>{})},
      {"switch_key", wire::to_bytes(o.switch_key, *params),
       object(std::type_identity<rlwe::SwitchKey>{})},
      {"evaluation_keys", wire::to_bytes(*o.keys),
       object(std::type_identity<rlwe::EvaluationKeys>{})},
      {"evaluation_keys_stream", wire::to_bytes(*o.keys),
       [params](Input in, const ring::Ring& ring, const Limits& limits) {
         wire::Source source = memory_source(in);
         const auto keys = wire::read_keys(source, params, ring, limits);
         wire::require_end(source);
         return wire::to_bytes(keys);
       }},
      {"secret_key", Bytes(secret.begin(), secret.end()),
       [params](Input in, const ring::Ring& ring, const Limits& limits) {
         const auto out =
             wire::secret_to_bytes(wire::secret_from_bytes(in, params, ring, limits), ring);
         return Bytes(out.begin(), out.end());
       }},
  };
}

}  // namespace jali::testing
