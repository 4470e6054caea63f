#include "jali/wire/keys.h"

#include <algorithm>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/wire/degenerate.h"
#include "jali/wire/key_id.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

using rlwe::EvaluationKeys;
using rlwe::KeyId;
using rlwe::PublicKey;
using rlwe::SwitchKey;
using Input = std::span<const std::uint8_t>;

namespace {

const rlwe::Params& params_of(const rlwe::ParamsPtr& params) {
  require<InvalidArgument>(params != nullptr, "cannot write a key without parameters");
  return *params;
}

}  // namespace

Bytes to_bytes(const PublicKey& key) {
  const rlwe::Params& params = params_of(key.params);
  const auto primes = params.q_primes();
  Writer writer(kPublicKey, params.hash(),
                key.key_id.bytes.size() + key.seed.size() + packed_poly_bytes(params, primes, 1));
  write_key_id(writer, key.key_id);
  writer.raw(key.seed);
  write_poly(writer, params, primes, 1, key.b);
  return writer.finish();
}

template <>
PublicKey from_bytes(Input bytes, const rlwe::ParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, kPublicKey, *params, ring, limits);
  PublicKey out;
  out.params = params;
  out.key_id = read_key_id(reader);
  reader.copy_to(out.seed);
  out.b = read_poly(reader, ring, *params, params->q_primes(), 1);
  reader.finish();
  check_public_key(reader, ring, out);
  return out;
}

namespace {

std::size_t switch_key_bytes(const rlwe::Params& params, int level = -1) {
  return sizeof(random::Seed) +
         packed_poly_bytes(params, params.key_primes(level), params.key_digits(level));
}

void write_switch_key(Writer& writer, const SwitchKey& key, const rlwe::Params& params) {
  require<InvalidArgument>(key.level < params.top() && key.b.size() == params.key_digits(key.level),
                           "cannot write a switching key that has another level or another number "
                           "of digits than its parameters allow");
  writer.raw(key.seed);
  const auto primes = params.key_primes(key.level);
  for (const ring::Poly& b : key.b) write_poly(writer, params, primes, 1, b);
}

SwitchKey read_switch_key(Reader& reader, const rlwe::Params& params, const ring::Ring& ring,
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

Bytes to_bytes(const SwitchKey& key, const rlwe::Params& params) {
  require<InvalidArgument>(key.level < 0,
                           "a switching key for some levels cannot be written alone: write the set "
                           "of evaluation keys that it belongs to");
  Writer writer(kSwitchKey, params.hash(), switch_key_bytes(params));
  write_switch_key(writer, key, params);
  return writer.finish();
}

template <>
SwitchKey from_bytes(Input bytes, const rlwe::ParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, kSwitchKey, *params, ring, limits);
  SwitchKey out = read_switch_key(reader, *params, ring);
  reader.finish();
  return out;
}

namespace {

// kLevels: before every key stands the highest level that it serves, as 16 bits. All bits are set if it serves every level.
enum KeysFlag : std::uint8_t { kRelinearisation = 1, kEncapsulation = 2, kLevels = 4 };
constexpr std::uint16_t kEveryLevel = 0xffff;

bool has_levels(const EvaluationKeys& keys) {
  if (keys.relinearisation && keys.relinearisation->level >= 0) return true;
  return std::ranges::any_of(keys.galois, [](const auto& k) { return k.second.level >= 0; });
}

/// The level of the next key in a set that has levels.
int read_key_level(Reader& reader, const rlwe::Params& params) {
  const std::uint16_t level = reader.u16();
  reader.check(level == kEveryLevel || level < params.top(),
               "a key is for a level that is not there");
  return level == kEveryLevel ? -1 : level;
}

std::size_t encapsulation_bytes(const rlwe::Params& params) {
  return 2 * sizeof(random::Seed) + packed_poly_bytes(params, rlwe::sparse_key_primes(params), 1) +
         packed_poly_bytes(params, params.all_primes(), 1);
}

void write_encapsulation(Writer& writer, const rlwe::EncapsulationKeys& keys,
                         const rlwe::Params& params) {
  writer.raw(keys.to_sparse_seed);
  write_poly(writer, params, rlwe::sparse_key_primes(params), 1, keys.to_sparse);
  writer.raw(keys.to_dense_seed);
  write_poly(writer, params, params.all_primes(), 1, keys.to_dense);
}

rlwe::EncapsulationKeys read_encapsulation(Reader& reader, const rlwe::Params& params,
                                           const ring::Ring& ring) {
  reader.check(params.sparse_weight() > 0, "its parameters have no bootstrapping");
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
  const rlwe::Params& params = params_of(keys.params);
  const bool levels = has_levels(keys);
  std::size_t bytes = sizeof(KeyId) + 5 + (keys.encapsulation ? encapsulation_bytes(params) : 0);
  if (keys.relinearisation) bytes += 2 + switch_key_bytes(params, keys.relinearisation->level);
  for (const auto& [element, key] : keys.galois) {
    bytes = checked_add(bytes, 10 + switch_key_bytes(params, key.level));
  }
  Writer writer(kEvaluationKeys, params.hash(), bytes);
  write_key_id(writer, keys.key_id);
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
EvaluationKeys from_bytes(Input bytes, const rlwe::ParamsPtr& params, const ring::Ring& ring,
                          const Limits& limits) {
  Reader reader = open_object(bytes, kEvaluationKeys, *params, ring, limits);
  EvaluationKeys out;
  out.params = params;
  out.key_id = read_key_id(reader);
  const std::uint8_t flags = reader.u8();
  reader.check(flags <= (kRelinearisation | kEncapsulation | kLevels),
               "its kinds of keys are unknown");
  const bool levels = (flags & kLevels) != 0;
  const std::uint32_t count = reader.u32();
  const std::size_t key_bytes = switch_key_bytes(*params, levels ? 0 : -1);  // of the smallest key
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
  reader.check(levels == has_levels(out),
               "it states a level for each key although all keys serve every level");
  if ((flags & kEncapsulation) != 0) {
    out.encapsulation = read_encapsulation(reader, *params, ring);
  }
  reader.finish();
  return out;
}

}  // namespace jali::wire
