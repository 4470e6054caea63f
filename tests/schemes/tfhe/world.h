// A client and an evaluator of the oracle, for small parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../../tfhe_literals.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::test {

using Values = std::vector<std::uint64_t>;

struct TfheWorld {
  explicit TfheWorld(const TfheShape& shape = {}) : TfheWorld(insecure_params(shape)) {}
  explicit TfheWorld(tfhe::ParamsPtr of)
      : params(std::move(of)),
        client(params),
        evaluator(std::make_shared<tfhe::Evaluator>(
            std::shared_ptr<const backend::TfheOps>(backend::make_ref_tfhe(params->config())),
            client.evaluation_keys())) {}

  tfhe::Ciphertext encrypt(const Values& values) { return evaluator->bind(client.encrypt(values)); }
  Values decrypt(const tfhe::Ciphertext& a) const {
    return client.decrypt(evaluator->host_copy(a));
  }

  tfhe::ParamsPtr params;
  tfhe::Client client;
  std::shared_ptr<const tfhe::Evaluator> evaluator;
};

/// Every kind of rotation, in both orders and with words of both sizes.
inline std::vector<TfheShape> every_shape(int message_bits = 2, int carry_bits = 2) {
  using tfhe::Order;
  using tfhe::Rotation;
  using tfhe::Torus;
  std::vector<TfheShape> out;
  for (const Order order : {Order::switch_first, Order::bootstrap_first}) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      out.push_back({Rotation::classic, 1, order, torus, 5, torus == Torus::t32 ? 2u : 1u});
      out.push_back({Rotation::multi_bit, 3, order, torus, 6, 1});
      out.push_back({Rotation::block_binary, 2, order, torus, 6, 1});
    }
  }
  for (TfheShape& shape : out) {
    shape.message_bits = message_bits;
    shape.carry_bits = carry_bits;
  }
  return out;
}

/// 0 to count - 1.
inline Values counting(std::uint64_t count) {
  Values out(count);
  for (std::uint64_t i = 0; i < count; ++i) out[i] = i;
  return out;
}

}  // namespace jali::test
