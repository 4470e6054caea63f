#include "jali/wire/residues.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jali/base/error.h"

namespace jali::wire {

namespace {

constexpr std::size_t kGroup = 64;  // residues that fill whole 64-bit words at any width

unsigned width(std::uint64_t q) { return std::max(1, static_cast<int>(std::bit_width(q - 1))); }

void check_sizes(std::size_t n, std::uint64_t q, std::size_t bytes) {
  require<InternalError>(n % kGroup == 0 && q > 1 && bytes == packed_row_bytes(n, q),
                         "pack_row: the row and its bytes differ in size");
}

// Residue i of a group lies at bits [i width, (i + 1) width): the low part in word p / 64, the rest, if
// any, in the next; (x >> 1) >> (63 - s) is x >> (64 - s) without a shift by 64.
template <class T>
void pack(const T* row, std::size_t n, std::uint64_t q, std::uint8_t* out) {
  const unsigned bits = width(q);
  for (std::size_t i = 0; i < n; i += kGroup, out += 8 * bits) {
    std::uint64_t words[kGroup + 1] = {};
    for (std::size_t k = 0; k < kGroup; ++k) {
      const std::size_t p = k * bits, at = p / 64, s = p % 64;
      const std::uint64_t x = row[i + k];
      words[at] |= x << s;
      words[at + 1] |= (x >> 1) >> (63 - s);
    }
    std::memcpy(out, words, 8 * bits);
  }
}

template <class T>
bool unpack(const std::uint8_t* in, std::size_t n, std::uint64_t q, T* row) {
  const unsigned bits = width(q);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  std::uint64_t too_large = 0;
  for (std::size_t i = 0; i < n; i += kGroup, in += 8 * bits) {
    std::uint64_t words[kGroup + 1];
    std::memcpy(words, in, 8 * bits);
    words[bits] = 0;
    for (std::size_t k = 0; k < kGroup; ++k) {
      const std::size_t p = k * bits, at = p / 64, s = p % 64;
      const std::uint64_t x = (words[at] >> s | (words[at + 1] << 1) << (63 - s)) & mask;
      too_large |= x >= q;
      row[i + k] = static_cast<T>(x);
    }
  }
  return too_large == 0;
}

}  // namespace

std::size_t packed_row_bytes(std::size_t n, std::uint64_t q) { return n / 8 * width(q); }

void pack_row(const void* row, Word word, std::size_t n, std::uint64_t q,
              std::span<std::uint8_t> out) {
  check_sizes(n, q, out.size());
  if (word == Word::w32) {
    pack(static_cast<const std::uint32_t*>(row), n, q, out.data());
  } else {
    pack(static_cast<const std::uint64_t*>(row), n, q, out.data());
  }
}

bool unpack_row(std::span<const std::uint8_t> in, Word word, std::size_t n, std::uint64_t q,
                void* row) {
  check_sizes(n, q, in.size());
  return word == Word::w32 ? unpack(in.data(), n, q, static_cast<std::uint32_t*>(row))
                           : unpack(in.data(), n, q, static_cast<std::uint64_t*>(row));
}

}  // namespace jali::wire
