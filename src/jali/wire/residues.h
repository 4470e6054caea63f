// Residues as bits: a row modulo q takes bit_width(q - 1) bits a residue, without gaps, the lowest bit
// first. Rows have a multiple of 64 residues, so that each ends at a whole 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/arith/word.h"

namespace jali::wire {

/// Bytes of a row of n residues modulo q.
std::size_t packed_row_bytes(std::size_t n, std::uint64_t q);

/// row: n words of `word`, each below q. out: packed_row_bytes(n, q) bytes.
void pack_row(const void* row, Word word, std::size_t n, std::uint64_t q,
              std::span<std::uint8_t> out);

/// The inverse. Returns false if any residue is not below q (the row is then filled all the same).
[[nodiscard]] bool unpack_row(std::span<const std::uint8_t> in, Word word, std::size_t n,
                              std::uint64_t q, void* row);

}  // namespace jali::wire
