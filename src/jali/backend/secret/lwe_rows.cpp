#include "jali/backend/secret/lwe_rows.h"

#include <vector>

#include "jali/base/secret_vector.h"
#include "jali/random/secret_seed.h"

namespace jali::backend {

namespace {

template <class Word>
Word inner_product(const Word* mask, const std::uint8_t* secret, std::size_t dimension) {
  Word sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) {
    sum = static_cast<Word>(sum + (mask[i] & (Word{0} - static_cast<Word>(secret[i]))));
  }
  return sum;
}

template <class Word>
void encrypt_words(Word* out, std::size_t count, std::size_t dimension, const std::uint8_t* secret,
                   const std::uint64_t* messages, const Draws& draws) {
  const random::SecretSeed masks(draws.masks), errors(draws.errors);
  std::vector<Word> mask(dimension);
  SecretVector<std::int64_t> error(1);
  for (std::size_t i = 0; i < count; ++i) {
    random::Prng of_mask(masks.bytes(), draws.first + i), of_error(errors.bytes(), draws.first + i);
    of_mask.fill({reinterpret_cast<std::uint8_t*>(mask.data()), dimension * sizeof(Word)});
    random::sample_tuniform(of_error, draws.noise_bits, error);
    out[i] = static_cast<Word>(inner_product(mask.data(), secret, dimension) +
                               static_cast<Word>(messages[i]) + static_cast<Word>(error[0]));
  }
}

template <class Word>
void phases_of_words(std::uint64_t* out, const Word* row, std::size_t count, std::size_t dimension,
                     const std::uint8_t* secret) {
  for (std::size_t i = 0; i < count; ++i, row += dimension + 1) {
    out[i] = static_cast<Word>(row[dimension] - inner_product(row, secret, dimension));
  }
}

}  // namespace

void encrypt_lwe_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                        const std::uint8_t* secret, const std::uint64_t* messages,
                        const Draws& draws) {
  if (torus == Torus::t32) {
    encrypt_words(static_cast<std::uint32_t*>(out), count, dimension.value, secret, messages,
                  draws);
  } else {
    encrypt_words(static_cast<std::uint64_t*>(out), count, dimension.value, secret, messages,
                  draws);
  }
}

void lwe_phases(std::uint64_t* out, ConstLweView in, const std::uint8_t* secret) {
  if (in.torus == Torus::t32) {
    phases_of_words(out, static_cast<const std::uint32_t*>(in.data), in.count, in.dimension.value,
                    secret);
  } else {
    phases_of_words(out, static_cast<const std::uint64_t*>(in.data), in.count, in.dimension.value,
                    secret);
  }
}

}  // namespace jali::backend
