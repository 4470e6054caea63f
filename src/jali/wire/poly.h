// Polynomials inside a payload: rows of packed residues in the order (limb, batch), in NTT form.
// The fields before them determine the primes and the batch.
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

/// Bytes of one packed polynomial block. Throws LimitExceeded if the number overflows.
std::size_t packed_poly_bytes(const rlwe::Params& params, std::span<const PrimeIndex> primes,
                              std::size_t batch);

/// Appends x. Throws InvalidArgument unless x is in host memory and in NTT form, over exactly these
/// primes and with this batch.
void write_poly(Writer& writer, const rlwe::Params& params, std::span<const PrimeIndex> primes,
                std::size_t batch, const ring::Poly& x);

/// Reads a polynomial. Before allocation, its size is compared with the bytes left and its memory
/// with the limit.
ring::Poly read_poly(Reader& reader, const ring::Ring& ring, const rlwe::Params& params,
                     std::span<const PrimeIndex> primes, std::size_t batch);

/// Calls reader.charge with the memory that a polynomial takes.
void charge_poly(Reader& reader, const ring::Ring& ring, std::size_t limbs, std::size_t batch);

/// Opens the frame of an object of these parameters. Throws ParamsMismatch if the object or the
/// ring belongs to other parameters.
Reader open_object(std::span<const std::uint8_t> bytes, Kind kind, const rlwe::Params& params,
                   const ring::Ring& ring, const Limits& limits);
/// The same for an object that comes piece by piece.
Reader open_object(FrameStream& stream, const rlwe::Params& params, const ring::Ring& ring,
                   const Limits& limits);

}  // namespace jali::wire
