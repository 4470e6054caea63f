#include "jali/wire/discrete.h"

#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/wire/ckks_view.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/seed.h"
#include "jali/wire/writer.h"

namespace jali::wire {

using discrete::Ciphertext;
using discrete::NoiseModel;

namespace {

/// What is wrong with what is said of a ciphertext, or nullptr if nothing is.
const char* problem(const discrete::Params& params, int level, std::size_t batch,
                    std::uint64_t factor) {
  const discrete::PlainModulus& t = params.modulus();
  if (level < 0 || level > params.top()) return "its level does not exist";
  if (batch == 0 || batch > 0xffffffff) return "its batch is empty or too large";
  if (factor != t.reduce(factor) || t.inverse(factor) == 0) return "its factor is no unit";
  return nullptr;
}

/// Whether the elements of a view lie in the rows of `batch` vectors of N numbers.
bool lies_in_rows(const ckks::View& view, std::size_t n, std::size_t batch) {
  return view.period == 0 ? is_within(view, n / 2, 2 * batch)
                          : batch == 1 && is_within(view, n / 2, 1);
}

enum PackingFlag : std::uint8_t { kView = 1, kPadded = 2 };

}  // namespace

Bytes to_bytes(const Ciphertext& x, const std::optional<ckks::View>& view, bool padded) {
  require<InvalidArgument>(x.params != nullptr, "cannot write an object without parameters");
  const discrete::Params& params = *x.params;
  const char* const why = problem(params, x.level, x.batch(), x.factor);
  require<InvalidArgument>(why == nullptr && x.parts.size() == 2, [&] {
    return std::string("cannot write this ciphertext: ") +
           (why != nullptr ? why : "it has not two parts");
  });
  const NoiseModel model(params);
  const discrete::Estimate& e = x.estimate;
  require<InvalidArgument>(model.received(e.range.low, e.range.high, e.range.wraps).has_value() &&
                               model.received(e.slot, e.coefficient, e.range).has_value(),
                           "cannot write this ciphertext: its range or its noise is out of bounds");
  require<InvalidArgument>(!view || lies_in_rows(*view, params.n(), x.batch()),
                           "cannot write this array: its elements do not lie in its rows");
  const auto& primes = params.level(x.level).primes;
  const std::size_t sent = x.seed ? 1 : 2;
  Writer writer(
      kDiscreteCiphertext, params.hash(),
      96 + kViewBytes + sizeof(random::Seed) + sent * packed_poly_bytes(params, primes, x.batch()));
  writer.u16(static_cast<std::uint16_t>(x.level));
  writer.u32(static_cast<std::uint32_t>(x.batch()));
  writer.raw(x.key_id.bytes);
  writer.u64(x.factor);
  writer.f64(e.slot);
  writer.f64(e.coefficient);
  writer.u64(static_cast<std::uint64_t>(e.range.low));
  writer.u64(static_cast<std::uint64_t>(e.range.high));
  writer.u8(e.range.wraps ? 1 : 0);
  writer.u8((view ? kView : 0) | (view && padded ? kPadded : 0));
  if (view) write_view(writer, *view);
  writer.u8(x.seed ? 1 : 0);
  if (x.seed) {
    check_seed(x, params);
    writer.raw(*x.seed);
  }
  for (std::size_t i = 0; i < sent; ++i) {
    write_poly(writer, params, primes, x.batch(), x.parts[i]);
  }
  return writer.finish();
}

Bytes to_bytes(const Ciphertext& x) { return to_bytes(x, std::nullopt, false); }

DiscreteArray discrete_array_from_bytes(std::span<const std::uint8_t> bytes,
                                        const discrete::ParamsPtr& params, const ring::Ring& ring,
                                        const Limits& limits) {
  Reader reader = open_object(bytes, kDiscreteCiphertext, *params, ring, limits);
  DiscreteArray array;
  Ciphertext& out = array.block;
  out.params = params;
  out.level = reader.u16();
  const std::size_t batch = reader.u32();
  reader.copy_to(out.key_id.bytes);
  out.factor = reader.u64();
  if (const char* why = problem(*params, out.level, batch, out.factor)) reader.fail(why);
  const double slot = reader.magnitude("the bound on its noise");
  const double coefficient = reader.magnitude("the bound on its noise");
  const auto low = static_cast<std::int64_t>(reader.u64());
  const auto high = static_cast<std::int64_t>(reader.u64());
  const NoiseModel model(*params);
  const auto range = model.received(low, high, reader.flag());
  reader.check(range.has_value(), "its range has more numbers than the modulus");
  const auto estimate = model.received(slot, coefficient, *range);
  reader.check(estimate.has_value(), "the bound on its noise is out of range");
  out.estimate = *estimate;
  const std::uint8_t packing = reader.u8();
  reader.check(packing <= (kView | kPadded) && packing != kPadded, "its packing is unknown");
  if ((packing & kView) != 0) {
    array.view = read_view(reader);
    array.padded = (packing & kPadded) != 0;
    reader.check(lies_in_rows(*array.view, params->n(), batch),
                 "its array does not lie in its rows");
  }
  const bool seeded = reader.flag();
  if (seeded) reader.copy_to(out.seed.emplace());
  const auto& primes = params->level(out.level).primes;
  for (int i = 0; i < (seeded ? 1 : 2); ++i) {
    out.parts.push_back(read_poly(reader, ring, *params, primes, batch));
  }
  if (seeded) charge_poly(reader, ring, primes.size(), batch);
  reader.finish();
  expand_seed(out, *params, ring);
  return array;
}

Ciphertext discrete_ciphertext_from_bytes(std::span<const std::uint8_t> bytes,
                                          const discrete::ParamsPtr& params, const ring::Ring& ring,
                                          const Limits& limits) {
  DiscreteArray array = discrete_array_from_bytes(bytes, params, ring, limits);
  require<CorruptData>(!array.view,
                       "cannot read a ciphertext: it holds an array, whose numbers lie in some of "
                       "its slots; discrete_array_from_bytes reads it");
  return std::move(array.block);
}

}  // namespace jali::wire
