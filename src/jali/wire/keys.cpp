#include "jali/wire/keys.h"

#include <algorithm>
#include <utility>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/wire/degenerate.h"
#include "jali/wire/key_id.h"
#include "jali/wire/key_writer.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

using rlwe::EvaluationKeys;
using rlwe::KeyDemand;
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

std::uint64_t switch_key_bytes(const rlwe::Params& params, int level = -1) {
  return std::uint64_t{sizeof(random::Seed)} +
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

// kLevels: before every key stands the highest level that it serves, as 16 bits. All bits are set
// if it serves every level.
enum KeysFlag : std::uint8_t { kRelinearisation = 1, kEncapsulation = 2, kLevels = 4 };
constexpr std::uint16_t kEveryLevel = 0xffff;

/// The level of a key as it is made and written: one for every level has -1.
int made_level(const rlwe::Params& params, int level) { return level >= params.top() ? -1 : level; }

bool has_levels(const KeyDemand& demand, const rlwe::Params& params) {
  if (demand.relinearise != rlwe::kNoKey && made_level(params, demand.relinearise) >= 0)
    return true;
  return std::ranges::any_of(demand.galois,
                             [&](const auto& k) { return made_level(params, k.second) >= 0; });
}

/// The demand that these keys serve.
KeyDemand demand_of(const EvaluationKeys& keys) {
  KeyDemand demand;
  if (keys.relinearisation) demand.relinearise = keys.relinearisation->level;
  for (const auto& [element, key] : keys.galois) {
    demand.galois.emplace_hint(demand.galois.end(), element, key.level);
  }
  demand.encapsulation = keys.encapsulation.has_value();
  return demand;
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

namespace {

std::uint64_t payload_of(const KeyDemand& demand, const rlwe::Params& params) {
  const std::uint64_t level = has_levels(demand, params) ? 2 : 0;
  std::uint64_t bytes =
      sizeof(KeyId) + 5 + (demand.encapsulation ? encapsulation_bytes(params) : 0);
  if (demand.relinearise != rlwe::kNoKey) {
    bytes += level + switch_key_bytes(params, made_level(params, demand.relinearise));
  }
  for (const auto& [element, highest] : demand.galois) {
    bytes = checked_add(bytes, 8 + level + switch_key_bytes(params, made_level(params, highest)));
  }
  return bytes;
}

}  // namespace

KeyWriter::KeyWriter(const rlwe::Params& params, const KeyId& id, const KeyDemand& demand,
                     const Sink& sink)
    : params_(params),
      levels_(has_levels(demand, params)),
      writer_(kEvaluationKeys, params.hash(), payload_of(demand, params), sink) {
  write_key_id(writer_, id);
  writer_.u8((demand.relinearise != rlwe::kNoKey ? kRelinearisation : 0) |
             (demand.encapsulation ? kEncapsulation : 0) | (levels_ ? kLevels : 0));
  writer_.u32(checked_cast<std::uint32_t>(demand.galois.size()));
}

void KeyWriter::key(const SwitchKey& key) {
  if (levels_) writer_.u16(key.level < 0 ? kEveryLevel : static_cast<std::uint16_t>(key.level));
  write_switch_key(writer_, key, params_);
}

void KeyWriter::relinearisation(const SwitchKey& key) { this->key(key); }

void KeyWriter::galois(std::uint64_t element, const SwitchKey& key) {
  writer_.u64(element);
  this->key(key);
}

void KeyWriter::encapsulation(const rlwe::EncapsulationKeys& keys) {
  write_encapsulation(writer_, keys, params_);
}

Bytes KeyWriter::finish(const Checkpoint& checkpoint) { return writer_.finish(checkpoint); }

namespace {

/// All bytes, or none of them if a sink gets them.
Bytes written(const EvaluationKeys& keys, const Sink& sink, const Checkpoint& checkpoint) {
  KeyWriter writer(params_of(keys.params), keys.key_id, demand_of(keys), sink);
  if (keys.relinearisation) writer.relinearisation(*keys.relinearisation);
  for (const auto& [element, key] : keys.galois) {
    if (checkpoint) checkpoint();
    writer.galois(element, key);
  }
  if (keys.encapsulation) writer.encapsulation(*keys.encapsulation);
  return writer.finish(checkpoint);
}

/// Reads a set of keys. each: what is done with each of them.
template <class Each>
void read_each(Reader& reader, const rlwe::Params& params, const ring::Ring& ring, Each& each) {
  each.id(read_key_id(reader));
  const std::uint8_t flags = reader.u8();
  reader.check(flags <= (kRelinearisation | kEncapsulation | kLevels),
               "its kinds of keys are unknown");
  const bool levels = (flags & kLevels) != 0;
  const std::uint32_t count = reader.u32();
  const std::uint64_t least = switch_key_bytes(params, levels ? 0 : -1);  // of the smallest key
  reader.check(count <= reader.remaining() / (8 + least), "it has fewer keys than it says");
  bool some_level = false;
  const auto read_one = [&] {
    const int level = levels ? read_key_level(reader, params) : -1;
    some_level = some_level || level >= 0;
    return read_switch_key(reader, params, ring, level);
  };
  if ((flags & kRelinearisation) != 0) each.relinearisation(read_one());
  std::uint64_t last = 1;  // the identity needs no key
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t element = reader.u64();
    reader.check(element % 2 == 1 && element < 2 * params.n(),
                 "a Galois element is even or not below 2N");
    reader.check(element > last, "its Galois elements are not in order");
    last = element;
    each.galois(element, read_one());
  }
  reader.check(levels == some_level,
               "it states a level for each key although all keys serve every level");
  if ((flags & kEncapsulation) != 0) each.encapsulation(read_encapsulation(reader, params, ring));
  reader.finish();
}

/// Keeps the keys.
struct Kept {
  EvaluationKeys keys;

  void id(const KeyId& id) { keys.key_id = id; }
  void relinearisation(SwitchKey key) { keys.relinearisation = std::move(key); }
  void galois(std::uint64_t element, SwitchKey key) {
    keys.galois.emplace_hint(keys.galois.end(), element, std::move(key));
  }
  void encapsulation(rlwe::EncapsulationKeys made) { keys.encapsulation = std::move(made); }
};

/// Forgets each key, whose memory the reader may spend again, and keeps what they are for.
struct Forgotten {
  Reader& reader;
  CheckedKeys found;
  std::uint64_t left = reader.memory_left();

  void id(const KeyId& id) { found.key_id = id; }
  void relinearisation(const SwitchKey& key) {
    found.demand.relinearise = key.level;
    reader.set_memory_left(left);
  }
  void galois(std::uint64_t element, const SwitchKey& key) {
    found.demand.galois.emplace_hint(found.demand.galois.end(), element, key.level);
    reader.set_memory_left(left);
  }
  void encapsulation(const rlwe::EncapsulationKeys&) { found.demand.encapsulation = true; }
};

EvaluationKeys read_keys(Reader reader, const rlwe::ParamsPtr& params, const ring::Ring& ring) {
  Kept kept;
  kept.keys.params = params;
  read_each(reader, *params, ring, kept);
  return std::move(kept.keys);
}

/// A stream of keys, which ends at checkpoints of the ring.
FrameStream stream_of(const Source& source, const ring::Ring& ring, const Limits& limits,
                      const Progress& progress) {
  return FrameStream(
      source, kEvaluationKeys, limits,
      [checkpoint = ring.checkpoint(), progress](std::uint64_t done, std::uint64_t total) {
        if (checkpoint) checkpoint();
        if (progress) progress(done, total);
      });
}

}  // namespace

Bytes to_bytes(const EvaluationKeys& keys, const Checkpoint& checkpoint) {
  return written(keys, {}, checkpoint);
}

std::uint64_t sent_bytes(const rlwe::Params& params, const KeyDemand& demand) {
  return kFrameBytes + payload_of(demand, params);
}

std::uint64_t sent_bytes(const EvaluationKeys& keys) {
  return sent_bytes(params_of(keys.params), demand_of(keys));
}

void write(const EvaluationKeys& keys, const Sink& sink, const Progress& progress,
           const Checkpoint& checkpoint) {
  written(keys, with_progress(sink, progress, sent_bytes(keys)), checkpoint);
}

template <>
EvaluationKeys from_bytes(Input bytes, const rlwe::ParamsPtr& params, const ring::Ring& ring,
                          const Limits& limits) {
  return read_keys(open_object(bytes, kEvaluationKeys, *params, ring, limits), params, ring);
}

EvaluationKeys read_keys(const Source& source, const rlwe::ParamsPtr& params,
                         const ring::Ring& ring, const Limits& limits, const Progress& progress) {
  FrameStream stream = stream_of(source, ring, limits, progress);
  return read_keys(open_object(stream, *params, ring, limits), params, ring);
}

CheckedKeys check_keys(const Source& source, const rlwe::Params& params, const ring::Ring& ring,
                       const Limits& limits, const Progress& progress) {
  FrameStream stream = stream_of(source, ring, limits, progress);
  Reader reader = open_object(stream, params, ring, limits);
  Forgotten forgotten{reader, {}};
  read_each(reader, params, ring, forgotten);
  return std::move(forgotten.found);
}

}  // namespace jali::wire
