#include "jali/schemes/tfhe/secret/encryptor.h"

#include <algorithm>
#include <utility>

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/params/tfhe_noise.h"
#include "jali/schemes/tfhe/secret/messages.h"

namespace jali::tfhe {

namespace {

const lwe::PublicKey& checked(const std::shared_ptr<const lwe::PublicKey>& key) {
  require<InvalidArgument>(key != nullptr, "an encryptor needs a public key");
  lwe::check_sizes(*key);
  require<InvalidArgument>(!key->key_id().is_none(),
                           "a public key does not say to which secret key it belongs: use the "
                           "public_key() of a client");
  return *key;
}

}  // namespace

PublicEncryptor::PublicEncryptor(std::shared_ptr<const lwe::PublicKey> key, int threads,
                                 const std::optional<random::Seed>& seed)
    : key_(std::move(key)),
      ring_(checked(key_).params->N()),
      seeds_(seed, random::SeedSource::Order::streams),
      threads_(std::max(threads, 1)) {
  const Params& params = *key_->params;
  each_ = public_batch(params.literal());
  const std::size_t k = params.k().value, N = params.N().value;
  rows_.resize((k + 1) * k * N);
  backend::with_word(params.torus(), [&](auto zero) {
    using W = decltype(zero);
    std::vector<W> whole((k + 1) * N);
    for (std::size_t i = 0; i < k; ++i) {
      lwe::expand(whole.data(), key_->zeros, i, 1);
      for (std::size_t j = 0; j <= k; ++j) {
        std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(j * N), N,
                    rows_.begin() + static_cast<std::ptrdiff_t>((j * k + i) * N));
      }
    }
  });
}

template <class Word>
void PublicEncryptor::encrypt_polynomial(Word* out, std::span<const std::uint64_t> messages,
                                         const random::SecretSeed& seed,
                                         std::uint64_t which) const {
  const Params& params = *key_->params;
  const std::size_t k = params.k().value, N = params.N().value;
  // Every polynomial takes two streams of the seed.
  SecretVector<std::uint8_t> plus(k * N), minus(k * N);
  {
    random::Prng bits(seed.bytes(), 2 * which);
    random::sample_bits(bits, plus);
    random::sample_bits(bits, minus);
  }
  SecretVector<std::int64_t> errors((k + 1) * N);
  {
    random::Prng noise(seed.bytes(), 2 * which + 1);
    random::sample_tuniform(noise, params.literal().glwe_noise_bits, errors);
  }
  const backend::SmallFactors r(ring_, plus, minus);
  SecretVector<std::uint64_t> sum(N);
  for (std::size_t j = 0; j <= k; ++j) {
    for (std::size_t t = 0; t < N; ++t) sum[t] = static_cast<std::uint64_t>(errors[j * N + t]);
    const bool body = j == k;
    if (body) {
      for (std::size_t t = 0; t < messages.size(); ++t) sum[t] += messages[t];
    }
    r.add_products(sum, std::span(rows_).subspan(j * k * N, k * N));
    const std::size_t kept = body ? messages.size() : N;
    for (std::size_t t = 0; t < kept; ++t) *out++ = static_cast<Word>(sum[t]);
  }
}

CompactCiphertext PublicEncryptor::encrypt(std::span<const std::uint64_t> values,
                                           std::optional<std::uint64_t> largest) {
  const Params& params = *key_->params;
  const std::uint32_t bound = checked_largest(params, largest);
  const SecretVector<std::uint64_t> messages =
      messages_of(params, values, bound, largest.has_value(), params.torus());
  CompactCiphertext out{
      key_->params, key_->key_id(), values.size(), each_, values.empty() ? 0 : bound, nullptr};
  if (values.empty()) return out;
  auto words = std::make_shared<device::Buffer>(device::Pool::create()->allocate(out.bytes()));
  const random::SecretSeed seed = seeds_.next();
  backend::with_word(params.torus(), [&](auto zero) {
    auto* const first = static_cast<decltype(zero)*>(words->data());
    threads_.parallel(out.polynomials(), [&](std::size_t p) {
      const std::size_t at = p * each_, count = std::min(each_, values.size() - at);
      encrypt_polynomial(first + out.first_word(p),
                         std::span<const std::uint64_t>(messages).subspan(at, count), seed, p);
    });
  });
  out.words = std::move(words);
  return out;
}

}  // namespace jali::tfhe
