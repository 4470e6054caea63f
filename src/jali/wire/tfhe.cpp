#include "jali/wire/tfhe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/params/tfhe_noise.h"
#include "jali/wire/key_id.h"
#include "jali/wire/reader.h"
#include "jali/wire/tfhe_object.h"
#include "jali/wire/writer.h"

namespace jali::wire {

namespace {

const tfhe::Params& params_of(const tfhe::ParamsPtr& params) {
  require<InvalidArgument>(params != nullptr, "cannot write an object without parameters");
  return *params;
}

/// Before a block of so many bytes is allocated. The pool rounds up by at most a sixteenth; the
/// constant is the object around the memory.
void charge_block(Reader& reader, std::uint64_t bytes) {
  reader.charge(checked_add<LimitExceeded, std::uint64_t>(bytes, bytes / 16 + 256));
}

// --- ciphertexts ---------------------------------------------------------------------------------

enum Flag : std::uint8_t {
  kSeeded = 1,
  kDegrees = 2,  // every element has a degree of its own, else one stands for all
  kLaid = 4,  // it has a layout
  kOrigins = 8  // it says from which errors its own are made
};
constexpr std::size_t kMostAxes = 32;  // NumPy had no more before its version 2
constexpr std::size_t kLayoutBytes = 3 + 4 * kMostAxes;

constexpr std::size_t kCiphertextBytes = sizeof(KeyId) + 1 + 4 + 8 + 2;

bool degrees_differ(const tfhe::Ciphertext& x) {
  return std::ranges::any_of(x.degree, [&](std::uint32_t d) { return d != x.degree[0]; });
}

/// Whether the layout is one of so many ciphertexts.
bool fits(const tfhe::Layout& layout, const tfhe::Params& params, std::size_t count) {
  if (layout.shape.size() > kMostAxes || layout.bits > 64) return false;
  if (layout.is_signed && layout.bits == 0) return false;
  std::size_t elements = layout.digits(params);
  for (const std::uint32_t axis : layout.shape) {
    if (axis == 0 || elements > count / axis) return false;
    elements *= axis;
  }
  return elements == count;
}

void write_layout(Writer& writer, const tfhe::Layout& layout) {
  writer.u8(layout.bits);
  writer.u8(layout.is_signed ? 1 : 0);
  writer.u8(static_cast<std::uint8_t>(layout.shape.size()));
  for (const std::uint32_t axis : layout.shape) writer.u32(axis);
}

tfhe::Layout read_layout(Reader& reader, const tfhe::Params& params, std::size_t count) {
  tfhe::Layout layout;
  layout.bits = reader.u8();
  const std::uint8_t is_signed = reader.u8(), axes = reader.u8();
  reader.check(is_signed <= 1 && axes <= kMostAxes, "its layout is unknown");
  layout.is_signed = is_signed == 1;
  for (std::uint8_t i = 0; i < axes; ++i) layout.shape.push_back(reader.u32());
  reader.check(fits(layout, params, count), "its layout is one of another number of elements");
  return layout;
}

std::uint16_t read_degree(Reader& reader, const tfhe::Params& params) {
  const std::uint16_t x = reader.u16();
  reader.check(x < params.value_modulus(), "a value may be larger than there is room for");
  return x;
}

constexpr const char* kOtherLayout =
    "cannot write this ciphertext: its layout is one of another number of elements";

/// If a ciphertext that is no longer fresh still had its seed, readers would get other masks.
void check_seed(const tfhe::Ciphertext& x) {
  constexpr const char* kOther = "a ciphertext carries a seed that is not its own: please report";
  if (const lwe::SeededLwe* const rows = x.data.seeded()) {
    require<InternalError>(rows->seed == *x.seed, kOther);
    return;
  }
  if (x.size() == 0) return;
  std::vector<std::uint8_t> mask(x.data->row_bytes() - backend::torus_bytes(x.data->torus));
  const std::size_t last = x.size() - 1;
  lwe::expand_mask(mask.data(), mask.size(), *x.seed, last);
  require<InternalError>(
      std::memcmp(mask.data(),
                  static_cast<const std::byte*>(x.data->data.data()) + last * x.data->row_bytes(),
                  mask.size()) == 0,
      kOther);
}

/// Whether the bytes say from which errors those of a ciphertext are made. The seed says so of a
/// fresh one.
bool has_origins(const tfhe::Ciphertext& x, double norm2) {
  return !x.seed && norm2 > 0 && x.history.known();
}

void write_origins(Writer& writer, const tfhe::History& history) {
  for (std::size_t i = 0; i < history.rows(); ++i) {
    std::uint32_t terms = 0;
    history.for_each(i, [&](const tfhe::Origin&, std::int64_t, double) { ++terms; });
    writer.u64(static_cast<std::uint64_t>(history.combination(i).half_steps));
    writer.u32(terms);
    history.for_each(i, [&](const tfhe::Origin& origin, std::int64_t weight, double) {
      writer.u64(origin.id);
      writer.u64(static_cast<std::uint64_t>(origin.negated ? -weight : weight));
    });
  }
}

constexpr std::int64_t kMostWeight = std::int64_t{1} << 31;

tfhe::History read_origins(Reader& reader, std::size_t rows) {
  std::vector<tfhe::Origin> origins;
  std::vector<std::uint32_t> begin{0}, column;
  std::vector<std::int64_t> weight, half_steps;
  for (std::size_t i = 0; i < rows; ++i) {
    half_steps.push_back(static_cast<std::int64_t>(reader.u64()));
    const std::uint32_t terms = reader.u32();
    reader.check(terms <= reader.remaining() / 16, "it ends before its origins do");
    charge_block(reader, std::uint64_t{terms} * 128);
    for (std::uint32_t k = 0; k < terms; ++k) {
      origins.push_back({reader.u64()});
      weight.push_back(static_cast<std::int64_t>(reader.u64()));
      column.push_back(static_cast<std::uint32_t>(column.size()));
      reader.check(origins.back().id > tfhe::kUnknown && weight.back() != 0 &&
                       weight.back() > -kMostWeight && weight.back() < kMostWeight,
                   "an origin or its weight is none");
    }
    begin.push_back(static_cast<std::uint32_t>(column.size()));
  }
  return tfhe::History::made(std::move(origins)).combined({begin, column, weight, half_steps});
}

/// The constant of a row whose mask is 0, in half steps: none if the mask is another, or if the
/// body is no multiple of them.
std::optional<std::int64_t> constant_of(const lwe::LweBlock& rows, std::size_t row,
                                        const tfhe::Params& params) {
  const std::size_t word = backend::torus_bytes(rows.torus), mask = rows.row_bytes() - word;
  const auto* at = static_cast<const std::uint8_t*>(rows.data.data()) + row * rows.row_bytes();
  if (!std::all_of(at, at + mask, [](std::uint8_t byte) { return byte == 0; })) return {};
  std::uint64_t body = 0;
  std::memcpy(&body, at + mask, word);
  const std::uint64_t half = params.step() / 2;
  return body % half == 0 ? std::optional(static_cast<std::int64_t>(body / half)) : std::nullopt;
}

/// Throws CorruptData if a row without noise is no constant. If none has noise, their bytes state
/// no constants, and the history becomes one of those that the rows have.
void read_constants(const Reader& reader, tfhe::History& history, const lwe::LweBlock& rows,
                    const tfhe::Params& params) {
  std::vector<std::int64_t> half_steps;
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    if (history.norm2(i) > 0) continue;
    const auto constant = constant_of(rows, i, params);
    reader.check(constant.has_value(), "it is encrypted and states that it has no noise");
    half_steps.push_back(*constant);
  }
  if (half_steps.size() == rows.count) history = tfhe::History::clear(half_steps);
}

}  // namespace

Bytes to_bytes(const tfhe::Ciphertext& x) {
  const tfhe::Params& params = params_of(x.params);
  // What has only been read is written without its masks.
  const lwe::SeededLwe* const seeded = x.seed ? x.data.seeded() : nullptr;
  const auto fit = [&](const auto& rows) {
    return rows.torus == params.ciphertext_torus() && rows.dimension == params.dimension() &&
           rows.count == x.size();
  };
  require<InvalidArgument>(
      x.data != nullptr && (seeded != nullptr ? fit(*seeded) : fit(*x.data)) &&
          x.history.rows() == x.size() && x.max_degree() < params.value_modulus() &&
          x.size() <= 0xffffffff,
      "cannot write this ciphertext: its shape or its degrees are not those of its parameters");
  const double norm2 = x.history.norm2();
  require<InvalidArgument>(std::isfinite(norm2) && norm2 <= params.max_norm2(),
                           "cannot write this ciphertext: its noise is above what its parameters "
                           "allow");
  require<InvalidArgument>(x.size() == 0 || seeded != nullptr || x.data->data.host_accessible(),
                           "the ciphertext is in a device's memory: take its host_copy first");
  require<InvalidArgument>(!x.layout || fits(*x.layout, params, x.size()), kOtherLayout);
  const bool several = degrees_differ(x);
  const std::size_t word = backend::torus_bytes(params.ciphertext_torus());
  const std::size_t row = x.seed ? word : params.ciphertext_bytes(1);
  const bool origins = has_origins(x, norm2);
  Writer writer(kTfheCiphertext, params.hash(),
                kCiphertextBytes + kLayoutBytes + sizeof(random::Seed) + x.size() * (30 + row));
  writer.raw(x.key_id.bytes);
  writer.u8((x.seed ? kSeeded : 0) | (several ? kDegrees : 0) | (x.layout ? kLaid : 0) |
            (origins ? kOrigins : 0));
  writer.u32(static_cast<std::uint32_t>(x.size()));
  writer.f64(norm2);
  if (several) {
    for (const std::uint32_t degree : x.degree) writer.u16(static_cast<std::uint16_t>(degree));
  } else {
    writer.u16(static_cast<std::uint16_t>(x.max_degree()));
  }
  if (x.layout) write_layout(writer, *x.layout);
  if (origins) write_origins(writer, x.history);
  const device::Buffer& rows = seeded != nullptr ? seeded->bodies : x.data->data;
  const auto* at = static_cast<const std::uint8_t*>(rows.data());
  if (!x.seed) {
    writer.raw({at, x.data->bytes()});
    return writer.finish();
  }
  check_seed(x);
  writer.raw(*x.seed);
  const std::size_t stride = seeded != nullptr ? word : x.data->row_bytes();
  for (std::size_t i = 0; i < x.size(); ++i) {
    at += stride;
    writer.raw({at - word, word});
  }
  return writer.finish();
}

// Ciphertexts that hide nothing are accepted. A circuit may have such results, and loading one
// discloses nothing.
tfhe::Ciphertext tfhe_ciphertext_from_bytes(std::span<const std::uint8_t> bytes,
                                            const tfhe::ParamsPtr& params, const Limits& limits) {
  Reader reader = open_tfhe(bytes, kTfheCiphertext, *params, limits);
  tfhe::Ciphertext out;
  out.params = params;
  reader.copy_to(out.key_id.bytes);
  const std::uint8_t flags = reader.u8();
  reader.check(flags <= (kSeeded | kDegrees | kLaid | kOrigins), "its flags are unknown");
  const bool seeded = (flags & kSeeded) != 0, several = (flags & kDegrees) != 0;
  const std::uint32_t count = reader.u32();
  const double norm2 = reader.magnitude("its noise");
  reader.check(norm2 <= params->max_norm2(), "its noise is above what its parameters allow");
  const std::size_t word = backend::torus_bytes(params->ciphertext_torus());
  const std::size_t row = params->ciphertext_bytes(1);
  // The rows alone, whatever else there is.
  reader.check(count <= reader.remaining() / (seeded ? word : row), "it ends before its rows do");
  // A row, its degree and its part of the history.
  charge_block(reader, checked_mul<LimitExceeded, std::uint64_t>(count, row + 32));
  if (several) {
    for (std::uint32_t i = 0; i < count; ++i) out.degree.push_back(read_degree(reader, *params));
    reader.check(count > 0 && degrees_differ(out),
                 "it states a degree for each element although all are equal");
  } else {
    const std::uint16_t one = read_degree(reader, *params);
    reader.check(count > 0 || one == 0, "it states a degree although it has no element");
    out.degree.assign(count, one);
  }
  if ((flags & kLaid) != 0) out.layout = read_layout(reader, *params, count);
  if ((flags & kOrigins) != 0) {
    reader.check(!seeded && norm2 > 0,
                 "it states origins although its seed or its noise says them");
    out.history = read_origins(reader, count);
    reader.check(out.history.norm2() == norm2, "its noise is not that of its origins");
  } else if (norm2 > 0 && !seeded) {
    reader.check(count > 0, "it states noise although it has no element");
    out.history = tfhe::History::unknown(count, norm2);
  } else if (norm2 > 0) {
    reader.check(count > 0, "it states noise although it has no element");
  } else {
    reader.check(out.key_id.is_none() || count == 0 || !seeded,
                 "it is fresh and states that it has no noise");
    out.history = tfhe::History::clear(std::vector<std::int64_t>(count));
  }
  const auto pool = device::Pool::create();
  if (seeded) {
    lwe::SeededLwe rows{{}, params->ciphertext_torus(), params->dimension(), count, {}};
    reader.copy_to(rows.seed);
    reader.check(reader.remaining() == count * word,
                 "it has another number of bodies than it says");
    charge_block(reader, count * word);
    rows.bodies = pool->allocate(count * word);
    reader.copy_to({static_cast<std::uint8_t*>(rows.bodies.data()), count * word});
    reader.finish();
    out.seed = rows.seed;
    if (norm2 > 0) out.history = tfhe::History::encrypted(rows.seed, count, norm2);
    out.data = lwe::SharedLwe(std::move(rows));
    return out;
  }
  reader.check(reader.remaining() == count * row, "it has another number of rows than it says");
  auto block = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*pool, params->ciphertext_torus(), params->dimension(), count));
  reader.copy_to({static_cast<std::uint8_t*>(block->data.data()), block->bytes()});
  reader.finish();
  read_constants(reader, out.history, *block, *params);
  out.data = std::move(block);
  return out;
}

// --- ciphertexts of a public key -----------------------------------------------------------------

Bytes to_bytes(const tfhe::CompactCiphertext& x) {
  const tfhe::Params& params = params_of(x.params);
  tfhe::check_sizes(x);
  require<InvalidArgument>(!x.layout || fits(*x.layout, params, x.size()), kOtherLayout);
  require<InvalidArgument>(x.size() <= 0xffffffff && (x.size() > 0 || x.degree == 0),
                           "cannot write this ciphertext: it has too many elements, or none and a "
                           "degree");
  Writer writer(kTfheCompactCiphertext, params.hash(),
                sizeof(KeyId) + 11 + kLayoutBytes + x.bytes());
  write_key_id(writer, x.key_id);
  writer.u8(x.layout ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(x.count));
  writer.u32(static_cast<std::uint32_t>(x.each));
  writer.u16(static_cast<std::uint16_t>(x.degree));
  if (x.layout) write_layout(writer, *x.layout);
  if (x.size() > 0) writer.raw({static_cast<const std::uint8_t*>(x.words->data()), x.bytes()});
  return writer.finish();
}

tfhe::CompactCiphertext tfhe_compact_from_bytes(std::span<const std::uint8_t> bytes,
                                                const tfhe::ParamsPtr& params,
                                                const Limits& limits) {
  Reader reader = open_tfhe(bytes, kTfheCompactCiphertext, *params, limits);
  tfhe::CompactCiphertext out;
  out.params = params;
  out.key_id = read_key_id(reader);
  const bool laid = reader.flag();
  out.count = reader.u32();
  out.each = reader.u32();
  reader.check(out.each >= 1 && out.each <= tfhe::public_batch(params->literal()),
               "a polynomial of it has more messages than there is room for");
  out.degree = read_degree(reader, *params);
  reader.check(out.count > 0 || out.degree == 0, "it states a degree although it has no element");
  if (laid) out.layout = read_layout(reader, *params, out.count);
  // At most 2^32 polynomials of at most 2^20 words of 8 bytes.
  reader.check(reader.remaining() == out.bytes(), "it has another number of words than it says");
  if (out.count > 0) {
    charge_block(reader, out.bytes());
    auto words = std::make_shared<device::Buffer>(device::Pool::create()->allocate(out.bytes()));
    reader.copy_to({static_cast<std::uint8_t*>(words->data()), out.bytes()});
    out.words = std::move(words);
  }
  reader.finish();
  return out;
}

// --- evaluation keys -----------------------------------------------------------------------------

namespace {

constexpr std::size_t kKeysHead = sizeof(KeyId) + 1;

std::size_t keys_bytes(const lwe::EvaluationKeys& keys) { return kKeysHead + keys.bytes(); }

void write_bodies(Writer& writer, const random::Seed& seed, const device::Buffer& bodies,
                  std::size_t bytes, const Checkpoint& checkpoint) {
  writer.raw(seed);
  const auto* at = static_cast<const std::uint8_t*>(bodies.data());
  while (bytes > 0) {
    if (checkpoint) checkpoint();
    const std::size_t piece = std::min(bytes, kPieceBytes);
    std::copy_n(at, piece, writer.extend(piece).begin());
    at += piece;
    bytes -= piece;
  }
}

device::Buffer read_bodies(Reader& reader, device::Pool& pool, random::Seed& seed,
                           std::uint64_t bytes) {
  reader.copy_to(seed);
  reader.check(reader.remaining() >= bytes, "it ends inside a key");
  charge_block(reader, bytes);
  device::Buffer out = pool.allocate(static_cast<std::size_t>(bytes));
  auto* at = static_cast<std::uint8_t*>(out.data());
  for (std::uint64_t left = bytes; left > 0;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes));
    reader.copy_to({at, piece});
    at += piece;
    left -= piece;
  }
  return out;
}

/// Refuses keys that were never filled in, or that somebody emptied: with polynomials, or switching
/// rows, that are all one word. An honest key is refused with a probability below 2^-128.
void check_not_constant(const Reader& reader, const device::Buffer& words, std::size_t word,
                        std::size_t row) {
  const auto* at = static_cast<const std::uint8_t*>(words.data());
  for (std::size_t i = 0; i + row <= words.bytes(); i += row) {
    // All words are equal if the row is itself, shifted by one word.
    reader.check(std::memcmp(at + i, at + i + word, row - word) != 0, "a key hides nothing");
  }
}

lwe::SeededGlwe read_glwe(Reader& reader, device::Pool& pool, const tfhe::Params& params,
                          std::size_t count) {
  lwe::SeededGlwe out{{}, params.torus(), params.k(), params.N(), count, {}, {}};
  const std::size_t word = backend::torus_bytes(params.torus()), row = params.N().value * word;
  out.bodies = read_bodies(reader, pool, out.seed, std::uint64_t{count} * row);
  check_not_constant(reader, out.bodies, word, row);
  return out;
}

/// Refuses bodies that are small: anybody can read what is encrypted under a key whose secret is 0.
/// An honest polynomial of at least 256 words is refused with a probability below 2^-1700.
void check_not_small(const Reader& reader, const lwe::SeededGlwe& rows) {
  backend::with_word(rows.torus, [&](auto zero) {
    using W = decltype(zero);
    constexpr W kSmall = W{1} << (8 * sizeof(W) - 8);
    const auto* const words = static_cast<const W*>(rows.bodies.data());
    for (std::size_t i = 0; i < rows.count; ++i) {
      const std::span row(words + i * rows.N.value, rows.N.value);
      reader.check(
          std::ranges::any_of(row, [](W x) { return static_cast<W>(x + kSmall) > 2 * kSmall; }),
          "a key hides nothing");
    }
  });
}

/// All bytes, or none of them if a sink gets them.
Bytes written(const lwe::EvaluationKeys& keys, const Sink& sink, const Checkpoint& checkpoint) {
  const tfhe::Params& params = params_of(keys.params);
  lwe::check_sizes(keys);
  require<InvalidArgument>(
      keys.rotation.rows.bodies.host_accessible() && keys.switching.bodies.host_accessible() &&
          (!keys.packing || keys.packing->bodies.host_accessible()),
      "the evaluation keys are in a device's memory: write those that the client made");
  Writer writer(kTfheEvaluationKeys, params.hash(), keys_bytes(keys), sink);
  write_key_id(writer, keys.key_id);
  writer.u8(keys.packing ? 1 : 0);
  const auto glwe = [&](const lwe::SeededGlwe& key) {
    write_bodies(writer, key.seed, key.bodies, key.bytes() - sizeof(key.seed), checkpoint);
  };
  glwe(keys.rotation.rows);
  write_bodies(writer, keys.switching.seed, keys.switching.bodies,
               keys.switching.bytes() - sizeof(random::Seed), checkpoint);
  if (keys.packing) glwe(*keys.packing);
  return writer.finish(checkpoint);
}

lwe::EvaluationKeys read_keys(Reader reader, const tfhe::ParamsPtr& params) {
  lwe::EvaluationKeys out;
  out.params = params;
  out.key_id = read_key_id(reader);
  const bool packing = reader.flag();
  reader.check(
      reader.remaining() == params->key_bytes() + (packing ? params->packing_key_bytes() : 0),
      "it has other sizes than its parameters ask for");
  const auto pool = device::Pool::create();
  out.rotation = {params->literal().rotation_gadget,
                  read_glwe(reader, *pool, *params, params->glwe_rows())};
  const std::size_t word = backend::torus_bytes(lwe::Torus::t32);
  out.switching = {{}, lwe::Torus::t32, params->n(), params->switch_rows(), {}};
  out.switching.bodies =
      read_bodies(reader, *pool, out.switching.seed, std::uint64_t{out.switching.count} * word);
  check_not_constant(reader, out.switching.bodies, word, out.switching.count * word);
  if (packing) out.packing = read_glwe(reader, *pool, *params, params->packing_rows());
  reader.finish();
  return out;
}

}  // namespace

Bytes to_bytes(const lwe::PublicKey& key) {
  const tfhe::Params& params = params_of(key.params);
  lwe::check_sizes(key);
  Writer writer(kTfhePublicKey, params.hash(), sizeof(KeyId) + key.bytes());
  write_key_id(writer, key.key_id());
  write_bodies(writer, key.zeros.seed, key.zeros.bodies, key.bytes() - sizeof(key.zeros.seed), {});
  return writer.finish();
}

lwe::PublicKey tfhe_public_key_from_bytes(std::span<const std::uint8_t> bytes,
                                          const tfhe::ParamsPtr& params, const Limits& limits) {
  Reader reader = open_tfhe(bytes, kTfhePublicKey, *params, limits);
  const KeyId key_id = read_key_id(reader);
  reader.check(reader.remaining() == params->public_key_bytes(),
               "it has another size than its parameters ask for");
  lwe::PublicKey out{params,
                     read_glwe(reader, *device::Pool::create(), *params, params->k().value)};
  check_not_small(reader, out.zeros);
  out.zeros.key_id = key_id;
  reader.finish();
  return out;
}

Bytes to_bytes(const lwe::EvaluationKeys& keys, const Checkpoint& checkpoint) {
  return written(keys, {}, checkpoint);
}

std::size_t sent_bytes(const lwe::EvaluationKeys& keys) { return kFrameBytes + keys_bytes(keys); }

void write(const lwe::EvaluationKeys& keys, const Sink& sink, const Progress& progress,
           const Checkpoint& checkpoint) {
  written(keys, with_progress(sink, progress, sent_bytes(keys)), checkpoint);
}

lwe::EvaluationKeys tfhe_keys_from_bytes(std::span<const std::uint8_t> bytes,
                                         const tfhe::ParamsPtr& params, const Limits& limits) {
  return read_keys(open_tfhe(bytes, kTfheEvaluationKeys, *params, limits), params);
}

lwe::EvaluationKeys read_tfhe_keys(const Source& source, const tfhe::ParamsPtr& params,
                                   const Limits& limits, const Progress& progress) {
  FrameStream stream(source, kTfheEvaluationKeys, limits, progress);
  check_hash(stream.kind(), stream.params_hash(), *params);
  return read_keys(Reader(stream, limits), params);
}

void save(const std::filesystem::path& path, const lwe::EvaluationKeys& keys,
          const Progress& progress) {
  replace_file(path, Readers::umask, [&](const Sink& sink) { write(keys, sink, progress); });
}

}  // namespace jali::wire
