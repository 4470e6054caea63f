#include "jali/wire/poly.h"

#include <algorithm>
#include <string>

#include "jali/base/checked.h"
#include "jali/base/error.h"

namespace jali::wire {

std::size_t packed_poly_bytes(const rlwe::Params& params, std::span<const PrimeIndex> primes,
                              std::size_t batch) {
  std::size_t row = 0;
  for (const PrimeIndex i : primes) row += packed_row_bytes(params.n(), params.primes()[i]);
  return checked_mul<LimitExceeded>(row, batch);
}

void write_poly(Writer& writer, const rlwe::Params& params, std::span<const PrimeIndex> primes,
                std::size_t batch, const ring::Poly& x) {
  require<InvalidArgument>(x.buffer().host_accessible(),
                           "the object is in a device's memory: send it back to the host first");
  require<InvalidArgument>(
      !x.empty() && x.form() == ring::Form::ntt && x.batch() == batch && x.n() == params.n() &&
          x.word() == params.word() && std::ranges::equal(x.primes(), primes),
      "cannot write a polynomial that is not in NTT form over the primes of its "
      "object's level and parameters");
  for (std::size_t i = 0; i < primes.size(); ++i) {
    const std::uint64_t q = params.primes()[primes[i]];
    for (std::size_t b = 0; b < batch; ++b) {
      pack_row(x.row(i, b), params.word(), params.n(), q,
               writer.extend(packed_row_bytes(params.n(), q)));
    }
  }
}

void charge_poly(Reader& reader, const ring::Ring& ring, std::size_t limbs, std::size_t batch) {
  const std::uint64_t bytes = checked_mul<LimitExceeded, std::uint64_t>(
      std::uint64_t{limbs} * ring.n() * word_bytes(ring.word()), batch);
  // The pool rounds up by at most a sixteenth; the constant is the object around the memory.
  reader.charge(bytes + bytes / 16 + 256);
}

ring::Poly read_poly(Reader& reader, const ring::Ring& ring, const rlwe::Params& params,
                     std::span<const PrimeIndex> primes, std::size_t batch) {
  const std::size_t one = packed_poly_bytes(params, primes, 1);
  reader.check(batch <= reader.remaining() / one, "it ends before its residues do");
  charge_poly(reader, ring, primes.size(), batch);
  ring::Poly x = ring.make(primes, batch);
  for (std::size_t i = 0; i < primes.size(); ++i) {
    const std::uint64_t q = params.primes()[primes[i]];
    for (std::size_t b = 0; b < batch; ++b) {
      reader.check(unpack_row(reader.raw(packed_row_bytes(params.n(), q)), params.word(),
                              params.n(), q, x.row(i, b)),
                   "a residue is not below its prime");
    }
  }
  return x;
}

namespace {

void check_ring(const rlwe::Params& params, const ring::Ring& ring) {
  require<ParamsMismatch>(ring.word() == params.word() && ring.n() == params.n() &&
                              std::ranges::equal(ring.primes(), params.ring_primes()),
                          "the ring was made from other parameters than those that the object is "
                          "read with: make a ring from these parameters");
}

void check_hash(Kind kind, const ParamsHash& hash, const rlwe::Params& params) {
  require<ParamsMismatch>(hash == params.hash(), [&] {
    return std::string("cannot read a ") + object_name(kind.object) +
           ": it was made for other parameters; read it with those it was made for";
  });
}

}  // namespace

Reader open_object(std::span<const std::uint8_t> bytes, Kind kind, const rlwe::Params& params,
                   const ring::Ring& ring, const Limits& limits) {
  check_ring(params, ring);
  const Frame frame = open_frame(bytes, kind, limits, ring.checkpoint());
  check_hash(kind, frame.params_hash, params);
  return Reader(frame, limits);
}

Reader open_object(FrameStream& stream, const rlwe::Params& params, const ring::Ring& ring,
                   const Limits& limits) {
  check_ring(params, ring);
  check_hash(stream.kind(), stream.params_hash(), params);
  return Reader(stream, limits);
}

}  // namespace jali::wire
