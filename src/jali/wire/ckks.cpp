#include "jali/wire/ckks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "jali/base/error.h"
#include "jali/rlwe/keys.h"
#include "jali/schemes/ckks/lineage.h"
#include "jali/schemes/ckks/packing.h"
#include "jali/schemes/ckks/scale.h"
#include "jali/wire/ckks_body.h"
#include "jali/wire/ckks_view.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/seed.h"
#include "jali/wire/writer.h"

namespace jali::wire {

using ckks::Ciphertext;
using ckks::ParamsPtr;
using ckks::Plaintext;
using Input = std::span<const std::uint8_t>;

namespace {

// --- the fields that plaintexts and ciphertexts share --------------------------------------------

struct Shape {
  int level = 0;
  int log_slots = 0;
  std::size_t batch = 0;
  double scale = 0;
};

constexpr std::size_t kShapeBytes = 2 + 1 + 4 + 8;

/// What is wrong with the shape, or nullptr if nothing is.
const char* problem(const Shape& shape, const ckks::Params& params) {
  if (shape.level < 0 || shape.level > params.depth()) return "its level does not exist";
  if (shape.log_slots < 0 || shape.log_slots >= params.log_n()) return "it has too many slots";
  if (shape.batch == 0 || shape.batch > 0xffffffff) return "its batch is empty or too large";
  if (!ckks::is_plausible_scale(shape.scale, params.level(shape.level))) {
    return "its scale is not plausible";
  }
  return nullptr;
}

void write_shape(Writer& writer, const Shape& shape, const ckks::Params& params) {
  const char* why = problem(shape, params);
  require<InvalidArgument>(why == nullptr,
                           [&] { return std::string("cannot write this object: ") + why; });
  writer.u16(static_cast<std::uint16_t>(shape.level));
  writer.u8(static_cast<std::uint8_t>(shape.log_slots));
  writer.u32(static_cast<std::uint32_t>(shape.batch));
  writer.f64(shape.scale);
}

Shape read_shape(Reader& reader, const ckks::Params& params) {
  Shape shape;
  shape.level = reader.u16();
  shape.log_slots = reader.u8();
  shape.batch = reader.u32();
  shape.scale = reader.f64();
  if (const char* why = problem(shape, params)) reader.fail(why);
  return shape;
}

bool is_magnitude(double x) { return std::isfinite(x) && !std::signbit(x); }

const ckks::Params& params_of(const ParamsPtr& params) {
  require<InvalidArgument>(params != nullptr, "cannot write an object without parameters");
  return *params;
}

}  // namespace

// --- plaintexts ----------------------------------------------------------------------------------

Bytes to_bytes(const Plaintext& plaintext) {
  const ckks::Params& params = params_of(plaintext.params);
  const Shape shape{plaintext.level, plaintext.log_slots, plaintext.poly.batch(), plaintext.scale};
  const char* const why = problem(shape, params);
  require<InvalidArgument>(why == nullptr,
                           [&] { return std::string("cannot write this plaintext: ") + why; });
  require<InvalidArgument>(is_magnitude(plaintext.message) && is_magnitude(plaintext.peak),
                           "cannot write this plaintext: its magnitude is not finite");
  const auto& primes = params.level(shape.level).primes;
  Writer writer(kCkksPlaintext, params.hash(),
                kShapeBytes + 16 + packed_poly_bytes(params, primes, shape.batch));
  write_shape(writer, shape, params);
  writer.f64(plaintext.message);
  writer.f64(plaintext.peak);
  write_poly(writer, params, primes, shape.batch, plaintext.poly);
  return writer.finish();
}

template <>
Plaintext from_bytes(Input bytes, const ParamsPtr& params, const ring::Ring& ring,
                     const Limits& limits) {
  Reader reader = open_object(bytes, kCkksPlaintext, *params, ring, limits);
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

// --- ciphertexts ---------------------------------------------------------------------------------

namespace {

enum PackingFlag : std::uint8_t {
  kBatched = 1,
  kComplex = 2,
  kPadded = 4,
  kReal = 8,
  kView = 16,
  kTiled = 32,
  kPrincipal = 64,
  kLineage = 128
};

// If a ciphertext does not say which numbers it holds: those of its encryption, if it still has the
// seed, or any.
params::Lineage unnamed_lineage(const std::optional<random::Seed>& seed) {
  return seed ? ckks::lineage_of(*seed) : params::Lineage{};
}

bool is_same(const params::Lineage& a, const params::Lineage& b) {
  return a.root == b.root && a.turn == b.turn && a.power == b.power && a.degree == b.degree &&
         a.inputs == b.inputs;
}

void write_lineage(Writer& writer, const params::Lineage& lineage) {
  writer.u64(lineage.root);
  writer.u64(lineage.turn);
  writer.u32(lineage.power);
  writer.u32(lineage.degree);
  writer.u64(lineage.inputs);
}

params::Lineage read_lineage(Reader& reader, std::size_t n) {
  constexpr std::uint32_t kMost = params::kAnyDegree;
  const std::uint64_t root = reader.u64(), turn = reader.u64();
  const std::uint32_t power = reader.u32(), degree = reader.u32();
  const params::Lineage out = params::lineage_received(root, turn, power, degree, reader.u64());
  const bool possible = out.turn % 2 == 1 && out.turn < 2 * n && out.power >= 1 &&
                        out.power <= kMost && out.degree >= 1 && out.degree <= kMost;
  const bool known = out.root != 0 || is_same(out, params::lineage_of_unknown(out.degree));
  reader.check(possible && known, "its lineage is out of range");
  return out;
}

}  // namespace

std::uint64_t ciphertext_bytes(const Ciphertext& x) {
  const ckks::Params& params = params_of(x.params);
  const std::uint64_t sent = x.seed ? 1 : x.parts.size();
  return kShapeBytes + sizeof(x.key_id) + 144 + kViewBytes +
         sent * packed_poly_bytes(params, params.level(x.level).primes, x.batch());
}

void write_ciphertext(Writer& writer, const Ciphertext& x) {
  const ckks::Params& params = params_of(x.params);
  const Shape shape{x.level, x.log_slots, x.batch(), x.scale};
  require<InvalidArgument>(
      problem(shape, params) == nullptr && (x.parts.size() == 2 || x.parts.size() == 3) &&
          (!x.seed || x.parts.size() == 2) && ckks::is_possible(x.packing, x.log_slots) &&
          (!x.packing.view || is_within(*x.packing.view, std::size_t{1} << x.log_slots, x.batch())),
      "cannot write this ciphertext: its level, scale, parts, length or layout are out of range");
  const auto& primes = params.level(shape.level).primes;
  require<InvalidArgument>(is_magnitude(x.estimate.variance) && is_magnitude(x.estimate.message) &&
                               is_magnitude(x.estimate.peak) && is_magnitude(x.estimate.error) &&
                               is_magnitude(x.estimate.noise),
                           "cannot write this ciphertext: its noise estimate is not finite");
  const std::size_t sent = x.seed ? 1 : x.parts.size();
  write_shape(writer, shape, params);
  writer.raw(x.key_id.bytes);
  writer.u8(static_cast<std::uint8_t>(x.parts.size()));
  writer.u8(x.seed ? 1 : 0);
  // Bytes have no spreads: the averages are those that the spreads leave, so that claims stay what
  // they are.
  const params::Estimate& e = x.estimate;
  const params::Claim claim = e.claim();
  const double principal = std::min(e.principal, static_cast<double>(params.slots()));
  const bool correlated = principal > 1;
  // If the root is not known, how it was moved and raised says nothing.
  const params::Lineage lineage =
      e.lineage.root == 0 ? params::lineage_of_unknown(params::degree_of(e.lineage)) : e.lineage;
  const bool related = !is_same(lineage, unnamed_lineage(x.seed));
  writer.f64(std::min(claim.variance, std::max(e.variance, params::kUnbounded)));
  writer.f64(std::min(claim.message, std::max(e.message, e.peak)));
  writer.f64(x.estimate.peak);
  writer.f64(x.estimate.error);
  writer.f64(x.estimate.noise);
  writer.u32(x.packing.length);
  const ckks::Tiling& tiling = x.packing.tiling;
  const bool tiled = tiling != ckks::Tiling{};
  writer.u8((x.packing.batched ? kBatched : 0) | (x.packing.complex_values ? kComplex : 0) |
            (x.packing.rest == 0 ? kPadded : 0) | (x.estimate.real ? kReal : 0) |
            (x.packing.view ? kView : 0) | (tiled ? kTiled : 0) | (correlated ? kPrincipal : 0) |
            (related ? kLineage : 0));
  if (x.packing.view) write_view(writer, *x.packing.view);
  if (tiled) {
    for (const std::uint32_t field : {tiling.first, tiling.window, tiling.stride, tiling.count}) {
      writer.u32(field);
    }
  }
  if (correlated) writer.f64(principal);
  if (related) write_lineage(writer, lineage);
  if (x.seed) {
    check_seed(x, params);
    writer.raw(*x.seed);
  }
  for (std::size_t i = 0; i < sent; ++i) {
    write_poly(writer, params, primes, shape.batch, x.parts[i]);
  }
}

Bytes to_bytes(const Ciphertext& x) {
  const bool possible = x.params != nullptr && x.level >= 0 && x.level <= x.params->depth() &&
                        x.batch() <= 0xffffffff;
  Writer writer(kCkksCiphertext, params_of(x.params).hash(), possible ? ciphertext_bytes(x) : 0);
  write_ciphertext(writer, x);
  return writer.finish();
}

// Ciphertexts that hide nothing are accepted. A circuit may have such results, e.g. 0 = x - x, and
// loading one discloses nothing.
Ciphertext read_ciphertext(Reader& reader, const ParamsPtr& params, const ring::Ring& ring) {
  const Shape shape = read_shape(reader, *params);
  const auto& primes = params->level(shape.level).primes;
  Ciphertext out;
  out.params = params;
  out.level = shape.level;
  out.log_slots = shape.log_slots;
  out.scale = shape.scale;
  reader.copy_to(out.key_id.bytes);
  const std::size_t parts = reader.u8();
  const bool seeded = reader.flag();
  reader.check(parts == 2 || (parts == 3 && !seeded), "its number of parts is wrong");
  params::Received claimed;
  claimed.variance = reader.magnitude("its noise estimate");
  claimed.message = reader.magnitude("its message magnitude");
  claimed.peak = reader.magnitude("the bound on its numbers");
  claimed.error = reader.magnitude("the bound on its error");
  // It may be larger than the error: a claimed precision (ArrayEvaluator::with_precision) leaves it
  // as it was.
  claimed.noise = reader.magnitude("the bound on its noise");
  out.packing.length = reader.u32();
  reader.check(out.packing.length <= std::size_t{1} << out.log_slots,
               "its vectors are longer than its slots");
  const std::uint8_t packing = reader.u8();
  out.packing.batched = (packing & kBatched) != 0;
  out.packing.complex_values = (packing & kComplex) != 0;
  // Of slots that are not said to be zero, nothing is known.
  out.packing.rest = (packing & kPadded) != 0 ? 0 : params::kUnbounded;
  claimed.real = (packing & kReal) != 0;
  if ((packing & kView) != 0) {
    reader.check(out.packing.length == 0 && out.packing.batched, "its array has a length, too");
    out.packing.view = read_view(reader);
    reader.check(is_within(*out.packing.view, std::size_t{1} << out.log_slots, shape.batch),
                 "its array does not lie in its slots");
  }
  if ((packing & kTiled) != 0) {
    ckks::Tiling& tiling = out.packing.tiling;
    for (std::uint32_t* field : {&tiling.first, &tiling.window, &tiling.stride, &tiling.count}) {
      *field = reader.u32();
    }
    reader.check(tiling != ckks::Tiling{} && ckks::is_possible(out.packing, out.log_slots),
                 "its numbers cannot lie as it says");
  }
  if ((packing & kPrincipal) != 0) {
    claimed.principal = reader.magnitude("its principal variance");
    reader.check(claimed.principal > 1 && claimed.principal <= static_cast<double>(params->slots()),
                 "its principal variance is not above the variance, or above that of all slots");
  }
  params::Lineage& lineage = claimed.lineage;
  const bool related = (packing & kLineage) != 0;
  if (related) lineage = read_lineage(reader, params->n());
  if (seeded) reader.copy_to(out.seed.emplace());
  if (!related) lineage = unnamed_lineage(out.seed);
  reader.check(!related || !is_same(lineage, unnamed_lineage(out.seed)),
               "it names the lineage that it would have anyway");
  out.estimate = params::Estimate::received(claimed);
  out.parts.reserve(parts);
  for (std::size_t i = 0; i < (seeded ? 1 : parts); ++i) {
    out.parts.push_back(read_poly(reader, ring, *params, primes, shape.batch));
  }
  if (seeded) charge_poly(reader, ring, primes.size(), shape.batch);
  return out;
}

void expand_ciphertext(Ciphertext& x, const ring::Ring& ring) { expand_seed(x, *x.params, ring); }

template <>
Ciphertext from_bytes(Input bytes, const ParamsPtr& params, const ring::Ring& ring,
                      const Limits& limits) {
  Reader reader = open_object(bytes, kCkksCiphertext, *params, ring, limits);
  Ciphertext out = read_ciphertext(reader, params, ring);
  reader.finish();
  expand_ciphertext(out, ring);
  return out;
}

}  // namespace jali::wire
