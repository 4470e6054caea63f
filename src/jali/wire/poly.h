// Polynomials inside a payload: rows (limb, batch) of packed residues, NTT form. Which primes and what
// batch is told by what comes before.
#pragma once

#include <cstdint>
#include <span>

#include "jali/arith/word.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/residues.h"
#include "jali/wire/writer.h"

namespace jali::wire {

/// Bytes of one polynomial.
std::size_t packed_poly_bytes(const rlwe::Params& params, std::span<const PrimeIndex> primes,
                              std::size_t batch);

/// Throws InvalidArgument unless x is in NTT form over exactly these primes with this batch.
void write_poly(Writer& writer, const rlwe::Params& params, std::span<const PrimeIndex> primes,
                std::size_t batch, const ring::Poly& x);

/// The size is compared with what is left, and the memory with the limit, before allocation.
ring::Poly read_poly(Reader& reader, const ring::Ring& ring, const rlwe::Params& params,
                     std::span<const PrimeIndex> primes, std::size_t batch);

/// Charges the memory that a polynomial takes.
void charge_poly(Reader& reader, const ring::Ring& ring, std::size_t limbs, std::size_t batch);

/// Opens the frame of an object of these parameters. Throws ParamsMismatch if it belongs to others, or
/// if the ring does.
Reader open_object(std::span<const std::uint8_t> bytes, Kind kind, const rlwe::Params& params,
                   const ring::Ring& ring, const Limits& limits);

}  // namespace jali::wire
