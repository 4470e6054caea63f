// The smallest program of another project that uses the installed library: it squares 0.5 under
// encryption.
#include <cmath>
#include <memory>

#include "jali/api/jali.h"

int main() {
  jali::ckks::Literal literal;
  literal.depth = 1;
  const auto params = jali::ckks::Params::create(literal);
  const auto ring = jali::ckks::make_ring(*params, "cpu", jali::default_threads());
  jali::rlwe::KeyGenerator generator(params, ring);
  const auto secret = std::make_shared<const jali::rlwe::SecretKey>(generator.secret_key());
  const auto keys =
      std::make_shared<const jali::rlwe::EvaluationKeys>(generator.evaluation_keys(*secret, {}));
  const jali::ckks::Encoder encoder(params, ring);
  const jali::ckks::AutoEvaluator server(
      std::make_shared<const jali::ckks::Evaluator>(params, ring, keys));
  const double half[] = {0.5};
  const auto plaintext = encoder.encode(std::span<const double>(half), 1, 1, params->scale(1));
  const auto x = jali::ckks::SecretEncryptor(secret, ring).encrypt(plaintext);
  const auto y = encoder.decode(
      jali::ckks::Decryptor(secret, ring).decrypt(server.normalise(server.multiply(x, x))));
  return std::abs(y[0].real() - 0.25) < 1e-5 ? 0 : 1;
}
