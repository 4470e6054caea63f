// One object of exact integers of every kind, and every loader behind one function. The tests of
// wire/ and the fuzz targets share them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/discrete/evaluator.h"
#include "jali/schemes/discrete/make_ring.h"
#include "jali/schemes/discrete/secret/encryptor.h"
#include "jali/wire/discrete.h"
#include "jali/wire/secret/secret_key.h"

namespace jali::testing {

inline discrete::Literal discrete_literal(Word word, discrete::Packing packing) {
  discrete::Literal l;
  l.name = "insecure_wire";
  l.security = 0;
  l.log_n = 10;
  l.word = word;
  l.packing = packing;
  l.modulus = packing == discrete::Packing::slots ? 65537 : discrete::kTwoTo64;
  l.depth = packing == discrete::Packing::slots ? 1 : 0;
  return l;
}

/// Keys and objects of one parameter set, from fixed seeds.
struct DiscreteObjects {
  explicit DiscreteObjects(const discrete::Literal& literal)
      : params(discrete::Params::create(literal)), ring(discrete::make_ring(*params)) {
    rlwe::KeyGenerator generator(params, ring, seed(1));
    sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
    public_key = generator.public_key(*sk);
    const std::vector<int> rotations = in_slots() ? std::vector<int>{1} : std::vector<int>{};
    keys = std::make_shared<const rlwe::EvaluationKeys>(
        generator.evaluation_keys(*sk, rotations, /*conjugate=*/false, in_slots()));
    evaluator =
        std::make_shared<const discrete::Evaluator>(discrete::Engine::make(params, ring), keys);
  }

  bool in_slots() const { return params->packing() == discrete::Packing::slots; }
  static random::Seed seed(std::uint8_t k) {
    random::Seed out{};
    out[0] = k;
    return out;
  }
  /// Numbers from -16 to 16.
  std::vector<std::int64_t> values() const {
    std::vector<std::int64_t> out(params->n());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::int64_t>(i * i % 33) - 16;
    return out;
  }
  discrete::Ciphertext fresh() const {
    discrete::SecretEncryptor encryptor(sk, ring, params, seed(2));
    return encryptor.encrypt(
        evaluator->encoder().encode(values(), 1, evaluator->noise().range(-16, 16)));
  }
  /// 2 x - 3 or, in slots, (2 x - 3)^2: without a seed.
  discrete::Ciphertext computed() const {
    const discrete::Ciphertext x = fresh();
    discrete::Ciphertext y = evaluator->add_integer(evaluator->add(x, x), -3);
    return in_slots() ? evaluator->square(y) : std::move(y);
  }
  /// Every fourth number of both rows, backwards, with others beside them.
  wire::DiscreteArray array() const {
    const auto quarter = static_cast<std::uint32_t>(params->n() / 8);
    const auto row = static_cast<std::int32_t>(params->n() / 2);
    return {fresh(), ckks::View{{{2, row}, {quarter, -4}}, 4 * quarter - 1, 0}, false};
  }

  discrete::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> sk;
  rlwe::PublicKey public_key;
  std::shared_ptr<const rlwe::EvaluationKeys> keys;
  std::shared_ptr<const discrete::Evaluator> evaluator;
};

/// A kind of object with valid bytes. load reads bytes as that kind and writes the object again, as
/// the same bytes.
struct DiscreteLoader {
  std::string name;
  wire::Bytes valid;
  std::function<wire::Bytes(std::span<const std::uint8_t>, const wire::Limits&)> load;
};

inline std::vector<DiscreteLoader> all_loaders(const DiscreteObjects& o) {
  using wire::Limits;
  using Input = std::span<const std::uint8_t>;
  const auto array = [params = o.params, ring = o.ring](Input in, const Limits& limits) {
    return wire::to_bytes(wire::discrete_array_from_bytes(in, params, *ring, limits));
  };
  wire::DiscreteArray padded = o.array();
  padded.padded = true;
  return {
      {"discrete_params", wire::to_bytes(*o.params),
       [](Input in, const Limits& limits) {
         return wire::to_bytes(*wire::discrete_params_from_bytes(in, limits));
       }},
      {"discrete_ciphertext_fresh", wire::to_bytes(o.fresh()), array},
      {"discrete_ciphertext_computed", wire::to_bytes(o.computed()), array},
      {"discrete_ciphertext_array", wire::to_bytes(o.array()), array},
      {"discrete_ciphertext_padded", wire::to_bytes(padded), array},
  };
}

}  // namespace jali::testing
