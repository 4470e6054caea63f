#include "bench/engine/call_loop.h"

#include <chrono>
#include <complex>
#include <vector>

#include "jali/base/error.h"
#include "jali/ckks/engine.h"
#include "jali/ckks/secret/encryptor.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/wire/ckks.h"

namespace jali::bench {

CallLoop::CallLoop(std::span<const std::uint8_t> params_bytes, const std::string& device) {
  wire::Limits limits;
  limits.min_security = 0;  // benchmarks may use insecure parameters
  const auto params = wire::params_from_bytes(params_bytes, limits);
  const std::shared_ptr<const ring::Ring> ring = ckks::make_ring(*params, device, 1);
  rlwe::KeyGenerator generator(params, ring);
  const auto secret = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  auto none = std::make_shared<rlwe::EvaluationKeys>();
  none->params = params;
  evaluator_ = std::make_shared<const ckks::Evaluator>(params, ring, std::move(none));
  const std::vector<std::complex<double>> numbers(params->slots(), 0.5);
  const int top = params->depth();
  operand_ = ckks::SecretEncryptor(secret, ring)
                 .encrypt(evaluator_->encoder().encode(numbers, 1, top, params->scale(top)),
                          {/*magnitude=*/1, /*peak=*/1});
}

double CallLoop::seconds(const std::string& operation, int count) const {
  require<InvalidArgument>(count >= 1, "count must be at least 1");
  require<InvalidArgument>(operation == "add" || operation == "negate",
                           "unknown operation: use add or negate");
  const bool add = operation == "add";
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    if (add) {
      evaluator_->add(operand_, operand_);
    } else {
      evaluator_->negate(operand_);
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / count;
}

}  // namespace jali::bench
