// What an engine is made for: a ring, a word, and how many threads or which implementations to use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "jali/arith/word.h"

namespace jali::backend {

/// Choices among implementations with equal results, by family, e.g. {"ntt": "cluster"}. For a
/// family that is not named the engine takes its default. See variant_families.
using Variants = std::map<std::string, std::string>;

struct Config {
  Word word = Word::w64;
  std::size_t n = 0;  // ring degree, a power of two in [2^10, 2^17] (ref: from 2^2)
  std::vector<std::uint64_t> primes;  // distinct, = 1 mod 2n, below 2^word_prime_bits(word)
  int threads = 1;  // >= 1
  std::string isa;  // cpu only: "", "portable", "avx2", "avx512", "ifma"; "" = best
  Variants variants = {};  // cuda only; make_engine takes the CPU's instruction set from here
};

/// Implementations of one family of operations, all with equal results.
struct VariantFamily {
  std::string family;  // "ntt"
  std::vector<std::string> names;  // the first is the default: "auto", the engine's own choice
};

/// The config itself, if an engine can be made for it; else throws InvalidArgument and says what is
/// wrong.
Config validated(Config config);

/// Threads of an engine. Throws InvalidArgument unless there are 1 to 1024.
void check_threads(int threads);

}  // namespace jali::backend
