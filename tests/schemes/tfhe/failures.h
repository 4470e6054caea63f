// Look-ups that fail because of amplified noise, on any engine, and how many the formulas predict.
//
// A preset fails once in 2^128 look-ups, which no test can count. So results of bootstrapping are
// multiplied by a weight W, and looked up. Their errors grow by W, and nothing else changes: the
// parameters, keys and operations are those of the preset.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "../../params/failures.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/params/tfhe_noise.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::test {

struct Amplified {
  tfhe::ParamsPtr params;
  double bits = 5;  // look-ups fail with a probability of about 2^-bits
  std::size_t count = 2048, keys = 8;  // look-ups with each of so many keys
  /// Makes the keys; null: one CPU thread.
  std::shared_ptr<const backend::TfheClientOps> client = nullptr;
};

/// The share of a rotation's transform in the noise of a result. The formulas have an upper bound
/// for it, which in large polynomials is as much as all else, and which fast transforms stay below.
inline double transform_share(const tfhe::NoiseModel& model, tfhe::Order order) {
  return model.blind_rotation().transform / model.bootstrapped(order);
}

/// The smallest weight with which a look-up fails at least so often, even with an exact transform.
inline std::int64_t weight_of(const tfhe::NoiseModel& model, const tfhe::Literal& literal,
                              double bits) {
  const double norm2 = model.largest_norm2(literal.order, -bits, tfhe::half_box(literal)) /
                       (1 - transform_share(model, literal.order));
  return std::max<std::int64_t>(1, std::llround(std::ceil(std::sqrt(norm2))));
}

/// Whether as many bits are set as on average, within 1/256 of their number. The noise of a
/// rotation follows these weights, and the formulas take their means: in a small set they vary so
/// much that a few keys would say little.
inline bool balanced(std::span<const std::uint8_t> bits, double mean) {
  const double set = static_cast<double>(std::ranges::count(bits, 1));
  const auto all = static_cast<double>(bits.size());
  return std::abs(set - mean * all) <= std::floor(all / 256);
}

inline std::unique_ptr<tfhe::Client> balanced_client(const Amplified& x) {
  for (;;) {
    auto client = x.client ? std::make_unique<tfhe::Client>(x.params, x.client)
                           : std::make_unique<tfhe::Client>(x.params);
    if (balanced(client->secret_key().small(), x.params->config().mean_bit) &&
        balanced(client->secret_key().large(), 0.5)) {
      return client;
    }
  }
}

/// The look-ups of one key.
inline Failures failures_of_key(const std::shared_ptr<const backend::TfheOps>& engine,
                                const Amplified& x, std::mt19937_64& rng) {
  const tfhe::Params& params = *x.params;
  const tfhe::Literal& literal = params.literal();
  const tfhe::NoiseModel model(literal);
  const std::unique_ptr<tfhe::Client> holder = balanced_client(x);
  tfhe::Client& client = *holder;
  const tfhe::Evaluator evaluator(engine, client.evaluation_keys());
  const std::uint64_t p = params.value_modulus();
  // Neighbours have other results, also across the negative boxes beyond 0 and p - 1. 0 stays 0 in
  // the first table, whose other entries are not 0, because a rotation of zeros alone would have no
  // noise.
  const tfhe::LookUpTable same(x.params, [](std::uint64_t v) { return v; });
  const tfhe::LookUpTable next(x.params, [p](std::uint64_t v) { return (v + 1) % p; });
  const tfhe::Ciphertext zeros = evaluator.apply(
      evaluator.bind(client.encrypt(std::vector<std::uint64_t>(x.count), p - 1)), same);

  // W zero + value, past the evaluator, which would refuse so much noise.
  const std::int64_t weight = weight_of(model, literal, x.bits);
  std::vector<std::uint32_t> begin{0}, column;
  std::vector<std::uint64_t> values(x.count), words;
  for (std::size_t i = 0; i < x.count; ++i) {
    values[i] = rng() % p;
    column.push_back(static_cast<std::uint32_t>(i));
    begin.push_back(static_cast<std::uint32_t>(i + 1));
    words.push_back(values[i] * params.step());
  }
  const std::vector<std::int64_t> weights(x.count, weight);
  device::Pool& pool = *engine->device()->pool();
  lwe::LweBlock noisy = lwe::make_lwe(pool, params.ciphertext_torus(), params.dimension(), x.count);
  engine->combine(noisy.view(), zeros.data->view(), {begin, column, weights, words});
  lwe::LweBlock out = lwe::make_lwe(pool, params.ciphertext_torus(), params.dimension(), x.count);
  const tfhe::BoundTable table = evaluator.bind(next);
  const backend::TableView view{table.data->data(), 1};
  const lwe::PreparedKeys& keys = evaluator.prepared_keys();
  const auto in = std::as_const(noisy).view();
  if (params.order() == tfhe::Order::switch_first) {
    engine->switch_bootstrap(out.view(), in, view, keys.switching.data(), keys.rotation.data());
  } else {
    engine->bootstrap_switch(out.view(), in, view, keys.switching.data(), keys.rotation.data());
  }

  const lwe::LweBlock rows =
      lwe::make_lwe(*device::Pool::create(), out.torus, out.dimension, x.count);
  engine->device()->memory()->copy_out(const_cast<void*>(rows.data.data()), out.data.data(),
                                       out.bytes());
  std::vector<std::uint64_t> found(x.count);
  lwe::phases(found, rows.view(), client.secret_key().held());
  Failures result;
  const std::uint64_t step = params.step(out.torus);
  for (std::size_t i = 0; i < x.count; ++i) {
    result.failed += (found[i] + step / 2) / step % (2 * p) != (values[i] + 1) % p;
  }
  result.count = static_cast<double>(x.count);
  // The first step of a rotation adds hardly any noise: the mask of its accumulator is 0, and the
  // table's words are multiples of a large power of two. The formulas count every step, which
  // matters if there are few.
  const double first = model.blind_rotation().total() / model.bootstrapped(literal.order) /
                       static_cast<double>(params.config().steps());
  const auto failures = [&](double share) {
    const double norm2 = static_cast<double>(weight * weight) * share;
    return result.count *
           std::exp2(model.log2_p_fail(literal.order, norm2, tfhe::half_box(literal)));
  };
  result.predicted = failures(1 - first);
  result.least = failures(1 - first - transform_share(model, literal.order));
  return result;
}

inline Failures failures_of(const std::shared_ptr<const backend::TfheOps>& engine,
                            const Amplified& x, std::mt19937_64& rng) {
  Failures all;
  for (std::size_t key = 0; key < x.keys; ++key) all.add(failures_of_key(engine, x, rng));
  return all;
}

/// Small parameters whose key switch, modulus switch and rotation all have a share in the errors.
template <class Shape>
tfhe::ParamsPtr noisy_params(Shape shape) {
  shape.n = 24;
  tfhe::Literal literal = insecure_literal(shape);
  literal.lwe_noise_bits = 16;
  literal.max_norm2 = 1;
  literal.log2_p_fail = 0;
  return tfhe::Params::create(literal);
}

/// The deviation of the predicted number over balanced keys, as a share of it. What is left is the
/// errors of the switching key. If they make the variance of all noise larger by a share s, there
/// are up to (1 + bits) s ln 2 more failures at rates of 2^-bits.
inline double share_of_keys(const Amplified& x) {
  const auto errors = static_cast<double>(x.params->switch_rows() * x.keys);
  return (1 + x.bits) * std::log(2.0) * std::sqrt(2 / errors);
}

}  // namespace jali::test
