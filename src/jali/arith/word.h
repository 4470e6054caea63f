// The three words in which residues are stored; everything above arith/ and backend/ is written
// once and carries the word as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace jali {

/// w32: 32-bit storage, primes below 2^30.   w52: 64-bit storage, primes below 2^50.
/// w64: 64-bit storage, primes below 2^61.
/// Each bound leaves the headroom for residues kept lazily in [0, 4q).
enum class Word : std::uint8_t { w32 = 0, w52 = 1, w64 = 2 };

constexpr std::size_t word_bytes(Word word) { return word == Word::w32 ? 4 : 8; }

/// Primes of a word are below 2^word_prime_bits(word).
constexpr int word_prime_bits(Word word) {
  return word == Word::w32 ? 30 : word == Word::w52 ? 50 : 61;
}

constexpr std::string_view word_name(Word word) {
  return word == Word::w32 ? "w32" : word == Word::w52 ? "w52" : "w64";
}

/// The word of a name; nothing for other names.
constexpr std::optional<Word> word_named(std::string_view name) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    if (name == word_name(word)) return word;
  }
  return std::nullopt;
}

/// Position of a prime in the prime list of a parameter set.
using PrimeIndex = std::uint16_t;

}  // namespace jali
