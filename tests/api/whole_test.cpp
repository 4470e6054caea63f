// Uses the library as a C++ program does: through one header, from parameters to a decrypted
// result.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <memory>
#include <random>
#include <vector>

#include "../seeded.h"
#include "jali/api/jali.h"

namespace jali {
namespace {

TEST(Whole, EncryptComputeSendDecrypt) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 numbers(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    ckks::Literal literal;
    literal.depth = 2;
    literal.word = word;
    const auto params = ckks::Params::create(literal);
    const auto ring = ckks::make_ring(*params, "cpu", default_threads());

    // The owner of the data makes the keys and encrypts.
    rlwe::KeyGenerator generator(params, ring);
    const auto secret = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
    const ckks::Encoder encoder(params, ring);
    ckks::SecretEncryptor encryptor(secret, ring);
    std::vector<double> values(params->slots());
    for (double& v : values) v = uniform(numbers);
    const int rotations[] = {1};
    const auto sent_keys = wire::to_bytes(generator.evaluation_keys(*secret, rotations));
    const auto sent = wire::to_bytes(encryptor.encrypt(encoder.encode(
        std::span<const double>(values), 1, params->depth(), params->scale(params->depth()))));

    // The one who computes has the evaluation keys and the ciphertexts.
    const auto keys = std::make_shared<const rlwe::EvaluationKeys>(
        wire::from_bytes<rlwe::EvaluationKeys>(sent_keys, params, *ring));
    const ckks::AutoEvaluator server(std::make_shared<const ckks::Evaluator>(params, ring, keys));
    const auto x = wire::from_bytes<ckks::Ciphertext>(sent, params, *ring);
    const auto y = server.rotate(server.add_scalar(server.square(x), 0.25), 1);
    const auto answer = wire::to_bytes(server.normalise(y));

    const auto result =
        encoder.decode(ckks::Decryptor(secret, ring)
                           .decrypt(wire::from_bytes<ckks::Ciphertext>(answer, params, *ring)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[(i + 1) % values.size()];
      ASSERT_NEAR(result[i].real(), v * v + 0.25, 0x1p-18)
          << "slot " << i << ", word " << word_name(word) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace jali
