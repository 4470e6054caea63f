#include "jali/schemes/ckks/secret/release.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/random/secret_seed.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/range.h"
#include "jali/schemes/ckks/secret/decryption.h"

namespace jali::ckks {

namespace {

/// A Gaussian number is this many standard deviations or more from its mean with probability at
/// most 2^-184.
constexpr double kReach = 16;

/// The smallest error that a ciphertext can have: that of a fresh one, or the rounding of a
/// division.
params::Noise least_noise(const Ciphertext& c) {
  const params::NoiseModel noise(*c.params);
  const params::Noise rounding = noise.rounding();
  const Estimate fresh = noise.fresh_secret({0, 0}, 1, 0);
  return {std::min(rounding.variance, fresh.variance), std::min(rounding.bound, fresh.noise)};
}

void check_canonical(const Ciphertext& c) {
  require<InvalidArgument>(c.parts.size() == 2, "release takes two parts: relinearise first");
  const double scale = c.params->scale(c.level);
  require<InvalidArgument>(c.level <= c.params->depth() && std::fabs(c.scale / scale - 1) < 0x1p-45,
                           [&] {
                             return "release takes ciphertexts at the scale of their level, 2^" +
                                    std::to_string(std::log2(scale)) + ", and this one has 2^" +
                                    std::to_string(std::log2(c.scale)) +
                                    ": rescale or adjust it where it was computed; one that was "
                                    "altered on its way is not to be released";
                           });
  const Estimate& e = c.estimate;
  const params::Noise least = least_noise(c);
  // Allows for the roundings of the formulas themselves.
  constexpr double kAlmost = 1 - 0x1p-20;
  require<InvalidArgument>(
      e.variance >= kAlmost * least.variance && e.noise >= kAlmost * least.bound &&
          e.error >= kAlmost * least.bound,
      "this ciphertext claims a smaller error than any computation with its "
      "parameters has: its bytes were altered, or a precision was claimed that it cannot have, and "
      "it is not to be released");
  require<InvalidArgument>(
      e.peak < params::kUnbounded && e.error < params::kUnbounded && e.noise < params::kUnbounded &&
          e.message <= e.peak,
      "no bound is known for the numbers or the error of this ciphertext: declare the peak of the "
      "inputs when encrypting, "
      "and keep polynomials within their intervals");
}

/// The policy, with the bounds filled in that a derived one takes from the ciphertext.
ReleasePolicy completed(ReleasePolicy policy, const Ciphertext& c) {
  const double own = worst_case_noise(c);
  if (policy.origin == BoundOrigin::derived) {
    require<InvalidArgument>(c.estimate.derived,
                             "this ciphertext was read from bytes, or a smaller peak or interval "
                             "was claimed than its operations prove (with_magnitude, peak=, "
                             "within=): what it says of its noise is somebody's word. Declare the "
                             "bound of the circuit yourself (origin=\"declared\", error_bound=, "
                             "largest=) if the reply is authenticated and the claims are certain; "
                             "worst_case_noise of the same circuit run here gives it");
    if (policy.error_bound == 0) policy.error_bound = own;
    if (policy.largest == 0) policy.largest = c.estimate.peak;
  }
  check(policy);
  require<InvalidArgument>(own <= policy.error_bound, [&] {
    return "the noise of this ciphertext is bounded by " + shown(own) +
           ", the policy says error_bound=" + shown(policy.error_bound) +
           ": another circuit was computed than the one declared, or the bound is too small";
  });
  require<InvalidArgument>(c.estimate.peak <= policy.largest * (1 + 0x1p-40), [&] {
    return "the numbers of this ciphertext may be as large as " + shown(c.estimate.peak) +
           ", the policy says largest=" + shown(policy.largest) +
           ": declare smaller inputs when encrypting, or larger results";
  });
  return policy;
}

/// Adds the noise to all coefficients. With sparse packing, decoding drops those that hold no
/// slots.
void flood(const ring::Ring& ring, ring::Poly& poly, double std, const random::SecretSeed& seed) {
  random::Prng prng(seed.bytes(), 0);
  const std::size_t count = poly.batch() * poly.n();
  SecretVector<std::int64_t> low(count), high(count);
  const int shift = random::sample_wide_gaussian(prng, std, low, high);
  ring::Poly noise = ring.make_secret(poly.primes(), ring::Form::coeff, poly.batch());
  ring.ops().from_int64(noise.view(), low);
  ring.ops().add(poly.view(), poly.view(), noise.view());
  if (shift > 0) {
    ring.ops().from_int64(noise.view(), high);
    ring.ops().mul_scalar_add(poly.view(), noise.view(),
                              ring::residues(ring, poly.primes(), std::ldexp(1.0, shift)));
  }
}

}  // namespace

void check(const ReleasePolicy& policy) {
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  require<InvalidArgument>(
      positive(policy.error_bound),
      "release needs error_bound > 0: the worst noise of the circuit's slots, in message units");
  require<InvalidArgument>(
      positive(policy.largest),
      "release needs largest > 0: no result of the circuit is larger, in message units");
  require<InvalidArgument>(policy.releases >= 1 && std::isfinite(policy.releases),
                           "releases must be at least 1: how many decryptions will be shared");
  require<InvalidArgument>(policy.statistical_bits >= 20 && policy.statistical_bits <= 100,
                           "statistical_bits must be between 20 and 100");
}

double coefficient_std(const ReleasePolicy& policy, double error, std::size_t batch) {
  return error * std::sqrt(policy.releases * static_cast<double>(batch)) *
         std::exp2(policy.statistical_bits);
}

double flooding_std(const ReleasePolicy& policy, std::size_t slots, std::size_t batch) {
  return coefficient_std(policy, policy.error_bound, batch) * std::sqrt(static_cast<double>(slots));
}

std::vector<std::complex<double>> release(const Decryptor& decryptor, const Encoder& encoder,
                                          const ring::Ring& ring, const Ciphertext& ciphertext,
                                          const ReleasePolicy& policy,
                                          const std::optional<random::Seed>& seed) {
  require<InvalidArgument>(ciphertext.params != nullptr && !ciphertext.parts.empty(),
                           "an empty ciphertext holds nothing to release");
  check_canonical(ciphertext);
  const ReleasePolicy p = completed(policy, ciphertext);
  const double scale = ciphertext.scale;
  const double std = coefficient_std(p, p.error_bound * scale, ciphertext.batch());
  const double log_q = ciphertext.params->level(ciphertext.level).log_q;
  const double needed = std::log2((p.largest + p.error_bound) * scale + kReach * std) + 1;
  require<InvalidArgument>(needed < log_q && std < random::kMaxWideStd, [&] {
    return "the noise that hides the error takes " + std::to_string(needed) + " bits and level " +
           std::to_string(ciphertext.level) + " holds " + std::to_string(log_q) +
           ": release at a higher level, or with more integer_bits, a smaller error_bound (a "
           "larger scale), fewer "
           "releases or statistical_bits";
  });

  Plaintext plaintext = decryptor.decrypt(ciphertext);
  ring.to_coeff(plaintext.poly);
  flood(ring, plaintext.poly, std,
        random::SeedSource(seed, random::SeedSource::Order::streams).next());
  ring.to_ntt(plaintext.poly);
  // The comparison is that of decrypt, of all slots with the noise in them, so that a refusal
  // reveals no more than the result would.
  const std::size_t n = ciphertext.params->n();
  const double off = worst_case_error(ciphertext) + p.error_bound +
                     kReach * std::sqrt(2.0) * flooding_std(p, n / 2, ciphertext.batch());
  const double imaginary = ciphertext.estimate.real ? off : std::numeric_limits<double>::infinity();
  const auto fits = [&](std::span<const std::complex<double>> x) {
    return are_within(x, p.largest * (1 + 0x1p-20) + off, imaginary);
  };
  std::vector<std::complex<double>> all = encoder.decode_all(plaintext);
  const WipedAtEnd wiped(all);
  std::vector<std::complex<double>> slots = encoder.decode(std::move(plaintext));
  declassify(slots.data(), slots.size() * sizeof(slots[0]));  // from here on they may be shared
  declassify(all.data(), all.size() * sizeof(all[0]));
  const bool within = fits(all) && fits(slots);
  if (!within) random::wipe(slots.data(), slots.size() * sizeof(slots[0]));
  require<WrongDecryption>(within, [&] {
    return "a result is larger than the " + shown(p.largest) +
           " that was declared: another circuit was computed, an input was larger than declared, "
           "the bytes were altered, or the key is another one. Do not tell an untrusted peer of "
           "this error";
  });
  return slots;
}

}  // namespace jali::ckks
