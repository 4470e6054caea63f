#include "jali/schemes/ckks/secret/decryption.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/wipe.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

namespace {

using Slots = std::vector<std::complex<double>>;

/// The bounds themselves are sums and products of doubles.
constexpr double kRounding = 1 + 0x1p-20;

/// What the estimate of a ciphertext allows of its slots.
struct Allowed {
  double largest, imaginary;
};

Allowed allowed(const Ciphertext& c) {
  const double error = allowed_error(c);
  require<RangeExceeded>(std::isfinite(error), [&] {
    return "no bound is known for the numbers and the errors of this ciphertext: it says itself "
           "that "
           "they may be larger than the " +
           shown(largest_held(*c.params, c.scale, c.level)) + " that level " +
           std::to_string(c.level) + " holds. Decrypt it with check=False if you mean it";
  });
  const double infinite = std::numeric_limits<double>::infinity();
  return {(c.estimate.peak + error) * kRounding, c.estimate.real ? error * kRounding : infinite};
}

/// Every slot of the phase, also those that a sparse packing leaves out: they hold the same
/// numbers, and errors.
bool all_within(const Encoder& encoder, const Plaintext& plaintext, const Allowed& allowed) {
  Slots all = encoder.decode_all(plaintext);
  const bool within = are_within(all, allowed.largest, allowed.imaginary);
  random::wipe(all.data(), all.size() * sizeof(all[0]));
  return within;
}

}  // namespace

bool are_within(std::span<const std::complex<double>> slots, double largest, double imaginary) {
  const double square = std::min(largest * largest, std::numeric_limits<double>::max());
  int within = 1;
  for (const auto z : slots) {
    within &= static_cast<int>(z.real() * z.real() + z.imag() * z.imag() <= square) &
              static_cast<int>(std::fabs(z.imag()) <= imaginary);
  }
  return within != 0;
}

std::vector<std::complex<double>> decrypt(const Decryptor& decryptor, const Encoder& encoder,
                                          const Ciphertext& ciphertext, Check check) {
  require<InvalidArgument>(ciphertext.params != nullptr && !ciphertext.parts.empty(),
                           "an empty ciphertext holds nothing to decrypt");
  if (check == Check::no) return encoder.decode(decryptor.decrypt(ciphertext));
  const Allowed most = allowed(ciphertext);
  Plaintext plaintext = decryptor.decrypt(ciphertext);
  const bool sparse = ciphertext.log_slots + 1 < ciphertext.params->log_n();
  bool within = !sparse || all_within(encoder, plaintext, most);
  Slots slots = encoder.decode(std::move(plaintext));
  within = within & are_within(slots, most.largest, most.imaginary);
  // One bit is told: whether the decryption is what the ciphertext says it is.
  declassify(within);
  if (!within) random::wipe(slots.data(), slots.size() * sizeof(slots[0]));
  require<WrongDecryption>(within, [&] {
    return "this is not what the ciphertext says it holds, numbers of up to " +
           shown(ciphertext.estimate.peak) + " with errors of up to " +
           shown(allowed_error(ciphertext)) +
           ": it was decrypted with another key, altered on its way, or has numbers beyond the "
           "range that was declared or claimed with with_magnitude(). check=False gives the "
           "numbers all the same. Do "
           "not tell an untrusted peer of this error";
  });
  return slots;
}

}  // namespace jali::ckks
