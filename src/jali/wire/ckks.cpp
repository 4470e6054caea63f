#include "jali/wire/ckks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/ckks/scale.h"
#include "jali/random/prng.h"
#include "jali/wire/degenerate.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

using ckks::Ciphertext;
using ckks::Plaintext;
using params::CkksParams;
using params::CkksParamsPtr;
using rlwe::EvaluationKeys;
using rlwe::PublicKey;
using rlwe::SwitchKey;
using Input = std::span<const std::uint8_t>;

namespace {

// --- what plaintexts and ciphertexts share ----------------------------------------------------------

struct Shape {
  int level = 0;
  int log_slots = 0;
  std::size_t batch = 0;
  double scale = 0;
};

constexpr std::size_t kShapeBytes = 2 + 1 + 4 + 8;

/// What is wrong with it, or nullptr.
const char* problem(const Shape& shape, const CkksParams& params) {
  if (shape.level < 0 || shape.level > params.depth()) return "its level does not exist";
  if (shape.log_slots < 0 || shape.log_slots >= params.log_n()) return "its slots are too many";
  if (shape.batch == 0 || shape.batch > 0xffffffff) return "its batch is empty or too large";
  if (!ckks::is_plausible_scale(shape.scale, params.level(shape.level))) {
    return "its scale is not plausible";
  }
  return nullptr;
}

void write_shape(Writer& writer, const Shape& shape, const CkksParams& params) {
  const char* why = problem(shape, params);
  require<InvalidArgument>(why == nullptr,
                           [&] { return std::string("cannot write this object: ") + why; });
  writer.u16(static_cast<std::uint16_t>(shape.level));
  writer.u8(static_cast<std::uint8_t>(shape.log_slots));
  writer.u32(static_cast<std::uint32_t>(shape.batch));
  writer.f64(shape.scale);
}

Shape read_shape(Reader& reader, const CkksParams& params) {
  Shape shape;
  shape.level = reader.u16();
  shape.log_slots = reader.u8();
  shape.batch = reader.u32();
  shape.scale = reader.f64();
  if (const char* why = problem(shape, params)) reader.fail(why);
  return shape;
}

bool is_magnitude(double x) { return std::isfinite(x) && !std::signbit(x); }

const CkksParams& params_of(const CkksParamsPtr& params) {
  require<InvalidArgument>(params != nullptr, "cannot write an object without parameters");
  return *params;
}

}  // namespace

// --- plaintexts -----------------------------------------------------------------------------------------

Bytes to_bytes(const Plaintext& plaintext) {
  const CkksParams& params = params_of(plaintext.params);
  const Shape shape{plaintext.level, plaintext.log_slots, plaintext.poly.batch(), plaintext.scale};
  require<InvalidArgument>(problem(shape, params) == nullptr, "cannot write this plaintext");
  require<InvalidArgument>(is_magnitude(plaintext.message) && is_magnitude(plaintext.peak),
                           "cannot write this plaintext: its magnitude is not finite");
  const auto& primes = params.level(shape.level).primes;
  Writer writer(Kind::plaintext, params.hash(),
                kShapeBytes + 16 + packed_poly_bytes(params, primes, shape.batch));
  write_shape(writer, shape, params);
  writer.f64(plaintext.message);
  writer.f64(plaintext.peak);
  write_poly(writer, params, primes, shape.batch, plaintext.poly);
  return writer.finish();
}

template <>
Plaintext from_bytes(Input bytes, const CkksParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, Kind::plaintext, *params, ring, limits);
  const Shape shape = read_shape(reader, *params);
  Plaintext out;
  out.params = params;
  out.level = shape.level;
  out.log_slots = shape.log_slots;
  out.scale = shape.scale;
  out.message = reader.magnitude("its message magnitude");
  out.peak = reader.magnitude("its largest number");
  out.poly = read_poly(reader, ring, *params, params->level(shape.level).primes, shape.batch);
  reader.finish();
  return out;
}

// --- ciphertexts ----------------------------------------------------------------------------------------

namespace {

// A seed left on a ciphertext that is no longer fresh would silently replace its second part: compares
// the first row of that part with the row that readers will expand.
void check_seed(const Ciphertext& x, const CkksParams& params) {
  const ring::Poly& a = x.parts[1];
  const PrimeIndex prime = a.primes()[0];
  random::Prng prng(*x.seed, prime);  // row (0, 0) of rlwe::expand_uniform
  std::vector<std::uint64_t> row(params.n());
  random::sample_uniform(prng, params.primes()[prime], row);
  std::uint64_t differ = 0;
  for (std::size_t k = 0; k < row.size(); ++k) differ |= row[k] ^ a.at(0, 0, k);
  require<InternalError>(differ == 0,
                         "a ciphertext carries a seed that is not its own: please report");
}

enum PackingFlag : std::uint8_t { kBatched = 1, kComplex = 2, kPadded = 4 };

}  // namespace

Bytes to_bytes(const Ciphertext& x) {
  const CkksParams& params = params_of(x.params);
  const Shape shape{x.level, x.log_slots, x.batch(), x.scale};
  require<InvalidArgument>(
      problem(shape, params) == nullptr && (x.parts.size() == 2 || x.parts.size() == 3) &&
          (!x.seed || x.parts.size() == 2) && x.packing.length <= std::size_t{1} << x.log_slots,
      "cannot write this ciphertext: its level, scale, parts or length are out of range");
  const auto& primes = params.level(shape.level).primes;
  require<InvalidArgument>(is_magnitude(x.estimate.variance) && is_magnitude(x.estimate.message) &&
                               is_magnitude(x.estimate.peak) && is_magnitude(x.estimate.error) &&
                               is_magnitude(x.estimate.noise),
                           "cannot write this ciphertext: its noise estimate is not finite");
  const std::size_t sent = x.seed ? 1 : x.parts.size();
  Writer writer(Kind::ciphertext, params.hash(),
                kShapeBytes + 88 + sent * packed_poly_bytes(params, primes, shape.batch));
  write_shape(writer, shape, params);
  writer.u8(static_cast<std::uint8_t>(x.parts.size()));
  writer.u8(x.seed ? 1 : 0);
  writer.f64(x.estimate.variance);
  writer.f64(x.estimate.message);
  writer.f64(x.estimate.peak);
  writer.f64(x.estimate.error);
  writer.f64(x.estimate.noise);
  writer.u32(x.packing.length);
  writer.u8((x.packing.batched ? kBatched : 0) | (x.packing.complex_values ? kComplex : 0) |
            (x.packing.padded ? kPadded : 0));
  if (x.seed) {
    check_seed(x, params);
    writer.raw(*x.seed);
  }
  for (std::size_t i = 0; i < sent; ++i) {
    write_poly(writer, params, primes, shape.batch, x.parts[i]);
  }
  return writer.finish();
}

// No ciphertext is degenerate: one that hides nothing, such as 0 = x - x, is what a circuit may give, and loading it
// discloses nothing.
template <>
Ciphertext from_bytes(Input bytes, const CkksParamsPtr& params, const ring::Ring& ring,
                      const Limits& limits) {
  Reader reader = open_object(bytes, Kind::ciphertext, *params, ring, limits);
  const Shape shape = read_shape(reader, *params);
  const auto& primes = params->level(shape.level).primes;
  Ciphertext out;
  out.params = params;
  out.level = shape.level;
  out.log_slots = shape.log_slots;
  out.scale = shape.scale;
  const std::size_t parts = reader.u8();
  const bool seeded = reader.flag();
  reader.check(parts == 2 || (parts == 3 && !seeded), "its number of parts is wrong");
  out.estimate.variance = reader.magnitude("its noise estimate");
  out.estimate.message = reader.magnitude("its message magnitude");
  out.estimate.peak = reader.magnitude("the bound on its numbers");
  out.estimate.error = reader.magnitude("the bound on its error");
  out.estimate.noise = reader.magnitude("the bound on its noise");
  reader.check(out.estimate.noise <= out.estimate.error, "its noise is larger than its error");
  out.estimate.derived = false;
  // The checksum at the end says which bytes these are.
  std::uint64_t root = 0;
  std::memcpy(&root, bytes.last(sizeof(root)).data(), sizeof(root));
  out.estimate.lineage = params::lineage_of(root);
  out.packing.length = reader.u32();
  reader.check(out.packing.length <= std::size_t{1} << out.log_slots,
               "its vectors are longer than its slots");
  const std::uint8_t packing = reader.u8();
  reader.check(packing <= (kBatched | kComplex | kPadded), "its packing is unknown");
  out.packing.batched = (packing & kBatched) != 0;
  out.packing.complex_values = (packing & kComplex) != 0;
  out.packing.padded = (packing & kPadded) != 0;
  if (seeded) reader.copy_to(out.seed.emplace());
  out.parts.reserve(parts);
  for (std::size_t i = 0; i < (seeded ? 1 : parts); ++i) {
    out.parts.push_back(read_poly(reader, ring, *params, primes, shape.batch));
  }
  reader.finish();
  if (seeded) {
    charge_poly(reader, ring, primes.size(), shape.batch);
    out.parts.push_back(rlwe::expand_uniform(ring, *out.seed, 0, primes, shape.batch));
  }
  return out;
}

// --- keys -------------------------------------------------------------------------------------------------

Bytes to_bytes(const PublicKey& key) {
  const CkksParams& params = params_of(key.params);
  const auto primes = params.q_primes();
  Writer writer(Kind::public_key, params.hash(),
                key.seed.size() + packed_poly_bytes(params, primes, 1));
  writer.raw(key.seed);
  write_poly(writer, params, primes, 1, key.b);
  return writer.finish();
}

template <>
PublicKey from_bytes(Input bytes, const CkksParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, Kind::public_key, *params, ring, limits);
  PublicKey out;
  out.params = params;
  reader.copy_to(out.seed);
  out.b = read_poly(reader, ring, *params, params->q_primes(), 1);
  reader.finish();
  check_public_key(reader, ring, out);
  return out;
}

namespace {

std::size_t switch_key_bytes(const CkksParams& params, int level = -1) {
  return sizeof(random::Seed) +
         packed_poly_bytes(params, params.key_primes(level), params.key_digits(level));
}

void write_switch_key(Writer& writer, const SwitchKey& key, const CkksParams& params) {
  require<InvalidArgument>(key.level < params.top() && key.b.size() == params.key_digits(key.level),
                           "cannot write a switching key whose digits are not its parameters'");
  writer.raw(key.seed);
  const auto primes = params.key_primes(key.level);
  for (const ring::Poly& b : key.b) write_poly(writer, params, primes, 1, b);
}

SwitchKey read_switch_key(Reader& reader, const CkksParams& params, const ring::Ring& ring,
                          int level = -1) {
  reader.check(reader.remaining() >= switch_key_bytes(params, level),
               "it ends inside a switching key");
  SwitchKey key;
  key.level = level;
  reader.copy_to(key.seed);
  const auto primes = params.key_primes(level);
  key.b.reserve(params.key_digits(level));
  for (std::size_t d = 0; d < params.key_digits(level); ++d) {
    key.b.push_back(read_poly(reader, ring, params, primes, 1));
    check_not_constant(reader, key.b.back());
  }
  return key;
}

}  // namespace

Bytes to_bytes(const SwitchKey& key, const CkksParams& params) {
  require<InvalidArgument>(key.level < 0, "a key for some levels is written with its set of keys");
  Writer writer(Kind::switch_key, params.hash(), switch_key_bytes(params));
  write_switch_key(writer, key, params);
  return writer.finish();
}

template <>
SwitchKey from_bytes(Input bytes, const CkksParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, Kind::switch_key, *params, ring, limits);
  SwitchKey out = read_switch_key(reader, *params, ring);
  reader.finish();
  return out;
}

namespace {

// kLevels: every key comes after the level it serves, as 16 bits, all of them set for every level.
enum KeysFlag : std::uint8_t { kRelinearisation = 1, kEncapsulation = 2, kLevels = 4 };
constexpr std::uint16_t kEveryLevel = 0xffff;

bool has_levels(const EvaluationKeys& keys) {
  if (keys.relinearisation && keys.relinearisation->level >= 0) return true;
  return std::ranges::any_of(keys.galois, [](const auto& k) { return k.second.level >= 0; });
}

/// The level of the next key in a set that has levels.
int read_key_level(Reader& reader, const CkksParams& params) {
  const std::uint16_t level = reader.u16();
  reader.check(level == kEveryLevel || level < params.top(),
               "a key is for a level that is not there");
  return level == kEveryLevel ? -1 : level;
}

std::size_t encapsulation_bytes(const CkksParams& params) {
  return 2 * sizeof(random::Seed) + packed_poly_bytes(params, rlwe::sparse_key_primes(params), 1) +
         packed_poly_bytes(params, params.all_primes(), 1);
}

void write_encapsulation(Writer& writer, const rlwe::EncapsulationKeys& keys,
                         const CkksParams& params) {
  writer.raw(keys.to_sparse_seed);
  write_poly(writer, params, rlwe::sparse_key_primes(params), 1, keys.to_sparse);
  writer.raw(keys.to_dense_seed);
  write_poly(writer, params, params.all_primes(), 1, keys.to_dense);
}

rlwe::EncapsulationKeys read_encapsulation(Reader& reader, const CkksParams& params,
                                           const ring::Ring& ring) {
  reader.check(params.bootstrap().has_value(), "its parameters have no bootstrapping");
  reader.check(reader.remaining() >= encapsulation_bytes(params),
               "it ends inside the keys of bootstrapping");
  rlwe::EncapsulationKeys keys;
  reader.copy_to(keys.to_sparse_seed);
  keys.to_sparse = read_poly(reader, ring, params, rlwe::sparse_key_primes(params), 1);
  reader.copy_to(keys.to_dense_seed);
  keys.to_dense = read_poly(reader, ring, params, params.all_primes(), 1);
  check_not_constant(reader, keys.to_sparse);
  check_not_constant(reader, keys.to_dense);
  return keys;
}

}  // namespace

Bytes to_bytes(const EvaluationKeys& keys, const Checkpoint& checkpoint) {
  const CkksParams& params = params_of(keys.params);
  const bool levels = has_levels(keys);
  std::size_t bytes = 5 + (keys.encapsulation ? encapsulation_bytes(params) : 0);
  if (keys.relinearisation) bytes += 2 + switch_key_bytes(params, keys.relinearisation->level);
  for (const auto& [element, key] : keys.galois) {
    bytes = checked_add(bytes, 10 + switch_key_bytes(params, key.level));
  }
  Writer writer(Kind::evaluation_keys, params.hash(), bytes);
  writer.u8((keys.relinearisation ? kRelinearisation : 0) |
            (keys.encapsulation ? kEncapsulation : 0) | (levels ? kLevels : 0));
  const auto write_level = [&](const SwitchKey& key) {
    if (levels) writer.u16(key.level < 0 ? kEveryLevel : static_cast<std::uint16_t>(key.level));
  };
  writer.u32(checked_cast<std::uint32_t>(keys.galois.size()));
  if (keys.relinearisation) {
    write_level(*keys.relinearisation);
    write_switch_key(writer, *keys.relinearisation, params);
  }
  for (const auto& [element, key] : keys.galois) {
    if (checkpoint) checkpoint();
    writer.u64(element);
    write_level(key);
    write_switch_key(writer, key, params);
  }
  if (keys.encapsulation) write_encapsulation(writer, *keys.encapsulation, params);
  return writer.finish(checkpoint);
}

template <>
EvaluationKeys from_bytes(Input bytes, const CkksParamsPtr& params, const ring::Ring& ring,
                          const Limits& limits) {
  Reader reader = open_object(bytes, Kind::evaluation_keys, *params, ring, limits);
  EvaluationKeys out;
  out.params = params;
  const std::uint8_t flags = reader.u8();
  reader.check(flags <= (kRelinearisation | kEncapsulation | kLevels),
               "its kinds of keys are unknown");
  const bool levels = (flags & kLevels) != 0;
  const std::uint32_t count = reader.u32();
  const std::size_t key_bytes = switch_key_bytes(*params, levels ? 0 : -1);  // at least
  reader.check(count <= reader.remaining() / (8 + key_bytes), "it has fewer keys than it says");
  if ((flags & kRelinearisation) != 0) {
    const int level = levels ? read_key_level(reader, *params) : -1;
    out.relinearisation = read_switch_key(reader, *params, ring, level);
  }
  std::uint64_t last = 1;  // the identity needs no key
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t element = reader.u64();
    reader.check(element % 2 == 1 && element < 2 * params->n(),
                 "a Galois element is even or not below 2N");
    reader.check(element > last, "its Galois elements are not in order");
    last = element;
    const int level = levels ? read_key_level(reader, *params) : -1;
    out.galois.emplace_hint(out.galois.end(), element,
                            read_switch_key(reader, *params, ring, level));
  }
  reader.check(levels == has_levels(out), "its keys serve every level, which it need not say");
  if ((flags & kEncapsulation) != 0) {
    out.encapsulation = read_encapsulation(reader, *params, ring);
  }
  reader.finish();
  return out;
}

}  // namespace jali::wire
