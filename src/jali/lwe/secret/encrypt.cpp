#include "jali/lwe/secret/encrypt.h"

#include <algorithm>
#include <vector>

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"

namespace jali::lwe {

namespace {

template <class Word>
Word inner_product(const Word* mask, std::span<const std::uint8_t> secret) {
  Word sum = 0;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    sum =
        static_cast<Word>(sum + (mask[i] & (static_cast<Word>(0) - static_cast<Word>(secret[i]))));
  }
  return sum;
}

template <class Word>
void encrypt_rows(SeededLwe& out, std::span<const std::uint8_t> secret,
                  std::span<const std::uint64_t> messages, int noise_bits,
                  const random::SecretSeed& errors, std::size_t first, std::size_t count) {
  std::vector<Word> mask(secret.size());
  SecretVector<std::int64_t> error(1);
  auto* bodies = static_cast<Word*>(out.bodies.data());
  for (std::size_t i = first; i < first + count; ++i) {
    expand_mask(mask.data(), mask.size() * sizeof(Word), out.seed, i);
    random::Prng prng(errors.bytes(), i);
    random::sample_tuniform(prng, noise_bits, error);
    bodies[i] =
        static_cast<Word>(inner_product(mask.data(), secret) +
                          static_cast<Word>(messages[i - first]) + static_cast<Word>(error[0]));
  }
}

template <class Word>
void encrypt_polynomials(SeededGlwe& out, const GlweSecret& secret, const AddMessage& message,
                         int noise_bits, const random::SecretSeed& errors, std::size_t first,
                         std::size_t count) {
  const std::size_t n = out.N.value, k = out.k.value;
  std::vector<Word> mask(k * n);
  std::vector<std::uint64_t> wide(k * n);
  SecretVector<std::uint64_t> polynomial(n);
  SecretVector<std::int64_t> error(n);
  for (std::size_t i = first; i < first + count; ++i) {
    expand_mask(mask.data(), mask.size() * sizeof(Word), out.seed, i);
    std::copy(mask.begin(), mask.end(), wide.begin());
    random::Prng prng(errors.bytes(), i);
    random::sample_tuniform(prng, noise_bits, error);
    for (std::size_t t = 0; t < n; ++t) polynomial[t] = static_cast<std::uint64_t>(error[t]);
    message(i, polynomial);
    secret.add_products(polynomial, wide);
    auto* const body = static_cast<Word*>(out.bodies.data()) + i * n;
    for (std::size_t t = 0; t < n; ++t) body[t] = static_cast<Word>(polynomial[t]);
  }
}

}  // namespace

void encrypt(SeededLwe& out, std::span<const std::uint8_t> secret,
             std::span<const std::uint64_t> messages, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count) {
  require<InternalError>(secret.size() == out.dimension.value && messages.size() == count &&
                             first + count <= out.count &&
                             out.bodies.bytes() >= out.count * backend::torus_bytes(out.torus),
                         "encrypt: another dimension or number of messages");
  if (out.torus == Torus::t32) {
    encrypt_rows<std::uint32_t>(out, secret, messages, noise_bits, errors, first, count);
  } else {
    encrypt_rows<std::uint64_t>(out, secret, messages, noise_bits, errors, first, count);
  }
}

GlweSecret::GlweSecret(Torus torus, GlweDimension k, PolynomialSize N,
                       std::span<const std::uint8_t> bits)
    : torus_(torus), N_(N), bits_(bits) {
  require<InternalError>(bits.size() == k.value * N.value, "GlweSecret: another number of bits");
  if (N.value >= NttProduct::kLeastSize) {
    transforms_.emplace(N.value, bits);
  } else {
    for (std::size_t c = 0; c < k.value; ++c) rotations_.emplace_back(this->bits(c));
  }
}

void GlweSecret::add_products(std::span<std::uint64_t> acc,
                              std::span<const std::uint64_t> a) const {
  if (transforms_) {
    transforms_->add(acc, a);
    return;
  }
  const std::size_t n = N_.value;
  for (std::size_t c = 0; c < rotations_.size(); ++c) {
    rotations_[c].add(acc, a.subspan(c * n, n));
  }
}

void encrypt(SeededGlwe& out, const GlweSecret& secret, const AddMessage& message, int noise_bits,
             const random::SecretSeed& errors, std::size_t first, std::size_t count) {
  require<InternalError>(
      out.torus == secret.torus() && out.k == secret.k() && out.N == secret.N() &&
          first + count <= out.count &&
          out.bodies.bytes() >= out.count * out.N.value * backend::torus_bytes(out.torus),
      "encrypt: another shape than the secret's");
  if (out.torus == Torus::t32) {
    encrypt_polynomials<std::uint32_t>(out, secret, message, noise_bits, errors, first, count);
  } else {
    encrypt_polynomials<std::uint64_t>(out, secret, message, noise_bits, errors, first, count);
  }
}

// Row (c, j) has the phase -m S_c 2^(w - j g) if c < k, and m 2^(w - j g) if c = k.
void add_ggsw_message(std::span<std::uint64_t> polynomial, std::size_t row, std::uint64_t bit,
                      const GlweSecret& secret, const backend::Gadget& gadget) {
  const auto levels = static_cast<std::size_t>(gadget.levels);
  const std::size_t c = row / levels;
  const int j = static_cast<int>(row % levels) + 1;
  const int shift = backend::torus_bits(secret.torus()) - j * gadget.base_log;
  if (c == secret.k().value) {
    polynomial[0] += bit << shift;
    return;
  }
  const auto bits = secret.bits(c);
  const std::uint64_t mask = 0 - bit;
  for (std::size_t t = 0; t < bits.size(); ++t) {
    polynomial[t] -= (std::uint64_t{bits[t]} & mask) << shift;
  }
}

namespace {

template <class Word>
void lwe_phases(std::span<std::uint64_t> out, const backend::ConstLweView& in,
                std::span<const std::uint8_t> secret) {
  const auto* row = static_cast<const Word*>(in.data);
  for (std::uint64_t& phase : out) {
    phase = static_cast<Word>(row[secret.size()] - inner_product(row, secret));
    row += secret.size() + 1;
  }
}

// B - P as -(P - B), because products are added.
template <class Word>
void glwe_phases(std::span<std::uint64_t> out, const backend::ConstGlweView& in,
                 const GlweSecret& secret) {
  const std::size_t n = secret.N().value, k = secret.k().value;
  std::vector<std::uint64_t> mask(k * n);
  for (std::size_t i = 0; i < in.count; ++i) {
    const auto* ciphertext = static_cast<const Word*>(in.data) + i * (k + 1) * n;
    std::copy_n(ciphertext, k * n, mask.begin());
    const auto phase = out.subspan(i * n, n);
    for (std::size_t t = 0; t < n; ++t) phase[t] = 0 - std::uint64_t{ciphertext[k * n + t]};
    secret.add_products(phase, mask);
    for (std::uint64_t& x : phase) x = static_cast<Word>(0 - x);
  }
}

}  // namespace

void phases(std::span<std::uint64_t> out, const backend::ConstLweView& in,
            std::span<const std::uint8_t> secret) {
  require<InternalError>(out.size() == in.count && secret.size() == in.dimension.value,
                         "phases: another dimension or number of ciphertexts");
  if (in.torus == Torus::t32) {
    lwe_phases<std::uint32_t>(out, in, secret);
  } else {
    lwe_phases<std::uint64_t>(out, in, secret);
  }
}

void phases(std::span<std::uint64_t> out, const backend::ConstGlweView& in,
            const GlweSecret& secret) {
  require<InternalError>(out.size() == in.count * secret.N().value,
                         "phases: another number of ciphertexts");
  if (secret.torus() == Torus::t32) {
    glwe_phases<std::uint32_t>(out, in, secret);
  } else {
    glwe_phases<std::uint64_t>(out, in, secret);
  }
}

}  // namespace jali::lwe
