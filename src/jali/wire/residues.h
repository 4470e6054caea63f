// Packs residues. A residue modulo q takes bit_width(q - 1) bits. Residues follow each other
// without gaps, the lowest bit first. The number of residues in a row is a multiple of 64, so every
// row ends at a whole 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/arith/word.h"

namespace jali::wire {

/// The bytes that a packed row of n residues modulo q takes.
std::size_t packed_row_bytes(std::size_t n, std::uint64_t q);

/// row: n words of `word`, each below q. out: packed_row_bytes(n, q) bytes.
void pack_row(const void* row, Word word, std::size_t n, std::uint64_t q,
              std::span<std::uint8_t> out);

/// The inverse of pack_row. Returns false if any residue is not below q. The row is filled in
/// either case.
[[nodiscard]] bool unpack_row(std::span<const std::uint8_t> in, Word word, std::size_t n,
                              std::uint64_t q, void* row);

}  // namespace jali::wire
