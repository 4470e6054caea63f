#include "jali/wire/residues.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "jali/base/error.h"

namespace jali::wire {

namespace {

constexpr std::size_t kRow = 64;   // the length of a row is a multiple of this many residues
constexpr std::size_t kGroup = 8;  // residues that fill whole bytes at any width
constexpr unsigned kMaxBits = 62;

unsigned width(std::uint64_t q) { return std::max(1, static_cast<int>(std::bit_width(q - 1))); }

void check_sizes(std::size_t n, std::uint64_t q, std::size_t bytes) {
  require<InternalError>(n % kRow == 0 && q > 1 && bytes == packed_row_bytes(n, q),
                         "pack_row: the row and its bytes differ in size");
}

/// Residues of `bits` bits are packed in groups of eight, each of which takes `bits` bytes. Residue
/// k of a group lies at its bits [k bits, (k + 1) bits), so all shifts are constants. Groups are
/// read and written in words that lie inside the group. The last word of a group may therefore
/// overlap the one before it.
template <unsigned bits, class T>
struct Packing {
  static constexpr std::size_t kBytes = std::min(bits, 8u);  // that are read or written as one word
  static constexpr std::size_t kWords = (bits + 7) / 8;
  static constexpr std::size_t word_at(std::size_t byte) { return std::min(byte, bits - kBytes); }

  /// The bits of residue k that lie in the word that begins at bit `from`.
  template <std::size_t from, std::size_t k>
  static std::uint64_t part(const T* row) {
    constexpr std::size_t at = k * bits;
    if constexpr (at >= from + 64 || at + bits <= from) {
      return 0;
    } else if constexpr (at >= from) {
      return std::uint64_t{row[k]} << (at - from);
    } else {
      return std::uint64_t{row[k]} >> (from - at);
    }
  }
  template <std::size_t w>
  static void store_word(const T* row, std::uint8_t* out) {
    constexpr std::size_t byte = word_at(8 * w);
    const auto word = [&]<std::size_t... k>(std::index_sequence<k...>) {
      return (part<8 * byte, k>(row) | ...);
    }(std::make_index_sequence<kGroup>());
    std::memcpy(out + byte, &word, kBytes);
  }
  static void pack(const T* row, std::size_t n, std::uint8_t* out) {
    for (std::size_t i = 0; i < n; i += kGroup, out += bits) {
      [&]<std::size_t... w>(std::index_sequence<w...>) {
        (store_word<w>(row + i, out), ...);
      }(std::make_index_sequence<kWords>());
    }
  }

  template <std::size_t k>
  static std::uint64_t load(const std::uint8_t* in) {
    constexpr std::size_t byte = word_at(k * bits / 8), shift = k * bits - 8 * byte;
    std::uint64_t x = 0;
    std::memcpy(&x, in + byte, kBytes);
    x >>= shift;
    if constexpr (shift + bits > 64) x |= std::uint64_t{in[byte + 8]} << (64 - shift);
    return x & (~std::uint64_t{0} >> (64 - bits));
  }
  /// last: the largest residue allowed. Bit 63 of last - x is set if x is larger, because both are
  /// below 2^63.
  static bool unpack(const std::uint8_t* in, std::size_t n, std::uint64_t last, T* row) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < n; i += kGroup, in += bits) {
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        const std::uint64_t x[kGroup] = {load<k>(in)...};
        ((row[i + k] = static_cast<T>(x[k]), below |= last - x[k]), ...);
      }(std::make_index_sequence<kGroup>());
    }
    return below >> 63 == 0;
  }
};

template <class T>
struct Functions {
  void (*pack)(const T* row, std::size_t n, std::uint8_t* out);
  bool (*unpack)(const std::uint8_t* in, std::size_t n, std::uint64_t last, T* row);
};

/// The functions for residues of so many bits.
template <class T>
const Functions<T>& functions(unsigned bits) {
  static constexpr auto kTable = []<unsigned... below>(std::integer_sequence<unsigned, below...>) {
    return std::array{Functions<T>{Packing<below + 1, T>::pack, Packing<below + 1, T>::unpack}...};
  }(std::make_integer_sequence<unsigned, std::min<unsigned>(8 * sizeof(T), kMaxBits)>());
  require<InternalError>(bits <= kTable.size(), "pack_row: the modulus is too large for its word");
  return kTable[bits - 1];
}

template <class T>
void pack(const void* row, std::size_t n, std::uint64_t q, std::uint8_t* out) {
  functions<T>(width(q)).pack(static_cast<const T*>(row), n, out);
}

template <class T>
bool unpack(const std::uint8_t* in, std::size_t n, std::uint64_t q, void* row) {
  return functions<T>(width(q)).unpack(in, n, q - 1, static_cast<T*>(row));
}

}  // namespace

std::size_t packed_row_bytes(std::size_t n, std::uint64_t q) { return n / 8 * width(q); }

void pack_row(const void* row, Word word, std::size_t n, std::uint64_t q,
              std::span<std::uint8_t> out) {
  check_sizes(n, q, out.size());
  if (word == Word::w32) {
    pack<std::uint32_t>(row, n, q, out.data());
  } else {
    pack<std::uint64_t>(row, n, q, out.data());
  }
}

bool unpack_row(std::span<const std::uint8_t> in, Word word, std::size_t n, std::uint64_t q,
                void* row) {
  check_sizes(n, q, in.size());
  return word == Word::w32 ? unpack<std::uint32_t>(in.data(), n, q, row)
                           : unpack<std::uint64_t>(in.data(), n, q, row);
}

}  // namespace jali::wire
