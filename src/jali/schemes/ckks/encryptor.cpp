#include "jali/schemes/ckks/encryptor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/schemes/ckks/encryptor_impl.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

Ciphertext with_metadata(rlwe::Ciphertext body, const Plaintext& plaintext) {
  Ciphertext out;
  out.body() = std::move(body);
  out.params = plaintext.params;
  out.scale = plaintext.scale;
  out.log_slots = plaintext.log_slots;
  return out;
}

params::Lineage fresh_lineage() {
  std::array<std::uint8_t, sizeof(params::Lineage::root)> bytes;
  random::os_fill(bytes);
  std::uint64_t root = 0;
  std::memcpy(&root, bytes.data(), bytes.size());
  return params::lineage_of(root);
}

void check_same(const rlwe::Params& a, const rlwe::Params& b) {
  require<ParamsMismatch>(&a == &b || a.hash() == b.hash(),
                          "the plaintext and the key belong to different parameters");
}

void check_declared(const Plaintext& plaintext, const params::Declared& declared) {
  const double magnitude = declared.magnitude, peak = declared.peak;
  require<InvalidArgument>(
      std::isfinite(magnitude) && magnitude >= 0 && std::isfinite(peak) && peak >= 0,
      "magnitude and peak must be finite and not negative");
  // The modulus of a number is rounded, hence the tolerance. The error reveals that a number is too
  // large, and nothing else.
  const bool within = plaintext.peak <= peak * (1 + 0x1p-50);
  declassify(within);
  require<InvalidArgument>(within, [&] {
    return "a number is above the declared peak of " + shown(peak) +
           ": pass magnitude=, the root mean square of this kind of numbers, and peak=, the largest"
           " of them (8 times the magnitude unless it is given)";
  });
  // Slots are a sample of their kind. The root mean square of n normal numbers exceeds that of the
  // kind by 4 / sqrt(n) of it, which is 5.7 standard deviations, in less than one of a million
  // samples (decision 0034).
  const auto slots = static_cast<double>(plaintext.poly.batch() << plaintext.log_slots);
  const bool typical =
      declared.calibrated || plaintext.message <= magnitude * (1 + 4 / std::sqrt(slots));
  declassify(typical);
  require<InvalidArgument>(typical, [&] {
    return "the root mean square of the numbers is above the declared magnitude of " +
           shown(magnitude) +
           ": declare the root mean square of this kind of numbers as their magnitude, and the "
           "largest of them as their peak. Precision is estimated from the magnitude";
  });
  require_peak(*plaintext.params, peak, plaintext.scale, plaintext.level);
}

PublicEncryptor::PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : bodies_(std::move(pk), std::move(ring), seed) {}

Ciphertext PublicEncryptor::encrypt(const Plaintext& plaintext, const params::Declared& declared) {
  check_declared(plaintext, declared);
  check_same(*plaintext.params, *bodies_.key().params);
  Ciphertext out = with_metadata(bodies_.encrypt(plaintext), plaintext);
  out.estimate =
      params::NoiseModel(*out.params)
          .fresh_public(declared, out.scale, out.log_slots, fresh_lineage(), plaintext.real);
  return out;
}

}  // namespace jali::ckks
