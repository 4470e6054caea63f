#include "jali/wire/secret/secret_key.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/wire/file.h"
#include "jali/wire/key_id.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

// Coefficient k takes the two bits of byte k / 4 that begin at bit 2 (k mod 4): 0, 1, or 2 for -1.
// The value 3 does not occur. No branch and no address depends on a coefficient.

SecretBytes secret_to_bytes(const rlwe::SecretKey& key, const ring::Ring& ring) {
  const rlwe::Params& params = *key.params();
  const PrimeIndex first = params.all_primes()[0];
  const std::uint64_t q = params.primes()[first];
  ring::Poly s = key.at(ring, {&first, 1});
  ring.to_coeff(s);
  BasicWriter<SecretBytes> writer(kSecretKey, params.hash(), sizeof(rlwe::KeyId) + params.n() / 4);
  write_key_id(writer, key.id());
  const auto out = writer.extend(params.n() / 4);
  std::uint64_t other = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint64_t x = s.at(0, 0, 4 * i + k);
      const unsigned one = x == 1, minus = x == q - 1, zero = x == 0;
      other |= 1 ^ (one | minus | zero);
      byte |= (one | minus << 1) << (2 * k);
    }
    out[i] = static_cast<std::uint8_t>(byte);
  }
  declassify(other);  // it is 0, unless there is no key to protect
  require<InvalidArgument>(other == 0, "cannot write a secret key that is not ternary");
  return writer.finish();
}

namespace {

/// 1 if one of the three counts of coefficients is further than t from N/3, else 0. By Hoeffding's
/// inequality that happens to a uniform ternary secret with probability at most 6 exp(-2 t^2 / N),
/// which is 2^-128 for this t. A difference below 0 has its highest bit set.
std::uint64_t implausible(std::uint64_t n, std::uint64_t plus, std::uint64_t minus) {
  const auto count = static_cast<double>(n);
  const double t = std::sqrt(count * (128 + std::log2(6.0)) * std::numbers::ln2 / 2);
  const auto least = static_cast<std::uint64_t>(std::max(0.0, std::ceil(count / 3 - t)));
  const auto most = static_cast<std::uint64_t>(std::floor(count / 3 + t));
  const auto off = [&](std::uint64_t x) { return ((x - least) | (most - x)) >> 63; };
  return off(plus) | off(minus) | off(n - plus - minus);
}

}  // namespace

rlwe::SecretKey secret_from_bytes(std::span<const std::uint8_t> bytes,
                                  const rlwe::ParamsPtr& params, const ring::Ring& ring,
                                  const Limits& limits) {
  Reader reader = open_object(bytes, kSecretKey, *params, ring, limits);
  const rlwe::KeyId id = read_key_id(reader);
  const auto in = reader.raw(params->n() / 4);
  reader.finish();
  reader.charge(params->n() * sizeof(std::int64_t));
  SecretVector<std::int64_t> s(params->n());
  unsigned invalid = 0;
  std::size_t plus = 0, minus = 0;
  for (std::size_t k = 0; k < s.size(); ++k) {
    const unsigned code = in[k / 4] >> (2 * (k % 4)) & 3;
    invalid |= code & code >> 1;
    plus += code & 1;
    minus += code >> 1;
    s[k] = static_cast<std::int64_t>(code & 1) - static_cast<std::int64_t>(code >> 1);
  }
  // Both checks have one answer, so that it says nothing else about the key.
  const std::uint64_t refused = invalid | implausible(s.size(), plus, minus);
  declassify(refused);
  reader.check(refused == 0, "it is not a uniform ternary secret");
  charge_poly(reader, ring, params->all_primes().size(), 1);
  ring::Poly poly = ring.make_secret(params->all_primes(), ring::Form::coeff);
  ring.ops().from_int64(poly.view(), s);
  ring.to_ntt(poly);
  return rlwe::SecretKey(params, std::move(poly), id);
}

void save_secret(const std::filesystem::path& path, const rlwe::SecretKey& key,
                 const ring::Ring& ring) {
  replace_file(path, Readers::owner, [&](const Sink& sink) { sink(secret_to_bytes(key, ring)); });
}

rlwe::SecretKey load_secret(const std::filesystem::path& path, const rlwe::ParamsPtr& params,
                            const ring::Ring& ring, const Limits& limits) {
  const auto bytes = read_file(
      path, [&](const Source& source) { return read_object<SecretBytes>(source, limits); });
  return secret_from_bytes(bytes, params, ring, limits);
}

}  // namespace jali::wire
