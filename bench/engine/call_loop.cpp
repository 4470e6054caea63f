#include "bench/engine/call_loop.h"

#include <chrono>
#include <complex>
#include <vector>

#include "jali/base/error.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/schemes/ckks/make_ring.h"
#include "jali/schemes/ckks/range.h"
#include "jali/schemes/ckks/secret/encryptor.h"
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
  ckks::SecretEncryptor encryptor(secret, ring);
  const auto encoded = evaluator_->encoder().encode(numbers, 1, top, params->scale(top));
  operand_ = encryptor.encrypt(encoded, {/*magnitude=*/1, /*peak=*/1});
  other_ = encryptor.encrypt(encoded, {/*magnitude=*/1, /*peak=*/1});
}

// As ckks/sums.cpp: each operand is held against its level once more than it has to be, the result
// once.
void CallLoop::track() const {
  const ckks::Ciphertext &a = operand_, &b = other_;
  const ckks::Params& params = *a.params;
  const double log_q = params.level(a.level).log_q;
  const params::NoiseModel& noise = evaluator_->noise();
  for (const ckks::Ciphertext* x : {&a, &a, &b}) {
    require<RangeExceeded>(params::fits(x->estimate, params.n(), x->scale, log_q),
                           "the operand does not fit its level");
  }
  params::Estimate sum = noise.add(a.estimate, b.estimate);
  sum += noise.scale_mismatch(b.estimate, a.scale - b.scale);
  ckks::bound_by_claim(sum, params::kUnbounded);
  ckks::require_range(params, sum, a.scale, a.level);
}

double CallLoop::seconds(const std::string& operation, int count) const {
  require<InvalidArgument>(count >= 1, "count must be at least 1");
  const bool add = operation == "add", negate = operation == "negate";
  require<InvalidArgument>(add || negate || operation == "track",
                           "unknown operation: use add, negate or track");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    if (add) {
      evaluator_->add(operand_, other_);
    } else if (negate) {
      evaluator_->negate(operand_);
    } else {
      track();
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / count;
}

}  // namespace jali::bench
