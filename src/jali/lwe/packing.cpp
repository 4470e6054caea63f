#include "jali/lwe/packing.h"

#include <cstring>
#include <vector>

#include "jali/base/error.h"

namespace jali::lwe {

namespace {

/// The digits of x, a word in the lowest w bits, for j = 1 .. levels (backend::Gadget).
void decompose(std::span<std::int64_t> digits, std::uint64_t x, const backend::Gadget& gadget,
               int w) {
  const int g = gadget.base_log, dropped = w - g * gadget.levels;
  if (dropped > 0) x = (x >> dropped) + (x >> (dropped - 1) & 1);  // half a unit up
  const std::uint64_t base = std::uint64_t{1} << g, half = base / 2;
  std::uint64_t carry = 0;
  for (int j = gadget.levels; j >= 1; --j) {
    const std::uint64_t digit = (x & (base - 1)) + carry;
    x >>= g;
    // The bit above digit 1 counts as 0.
    const std::uint64_t above = j == 1 ? 0 : x & 1;
    carry = digit > half || (digit == half && above != 0) ? 1 : 0;
    digits[static_cast<std::size_t>(j) - 1] =
        static_cast<std::int64_t>(digit) - static_cast<std::int64_t>(carry * base);
  }
}

/// acc -= digit X^h row, of polynomials of n words.
template <class Word>
void subtract(Word* acc, const Word* row, std::size_t n, std::size_t h, Word digit) {
  for (std::size_t t = 0; t < n - h; ++t) acc[h + t] -= digit * row[t];
  for (std::size_t t = n - h; t < n; ++t) acc[t - (n - h)] += digit * row[t];
}

template <class Word>
void pack_words(GlweBlock& out, const EvaluationKeys& keys, const backend::ConstLweView& in,
                std::span<const std::uint32_t> coefficients, const Checkpoint& checkpoint) {
  const Params& params = *keys.params;
  const std::size_t n = params.N().value, k = params.k().value, d = in.dimension.value;
  const int w = backend::torus_bits(params.torus()), widened = w - backend::torus_bits(in.torus);
  const auto word = [&](std::size_t t, std::size_t i) -> std::uint64_t {
    const std::size_t at = t * (d + 1) + i;
    return in.torus == Torus::t32
               ? std::uint64_t{static_cast<const std::uint32_t*>(in.data)[at]} << widened
               : static_cast<const std::uint64_t*>(in.data)[at];
  };
  auto* const acc = static_cast<Word*>(out.data.data());
  std::memset(acc, 0, out.bytes());
  for (std::size_t t = 0; t < in.count; ++t) {
    acc[k * n + coefficients[t]] = static_cast<Word>(word(t, d));
  }
  const backend::Gadget gadget = params.literal().rotation_gadget;
  const auto levels = static_cast<std::size_t>(gadget.levels);
  std::vector<Word> rows(levels * (k + 1) * n);
  std::vector<std::int64_t> digits(levels);
  for (std::size_t i = 0; i < d; ++i) {
    if (checkpoint) checkpoint();
    expand(rows.data(), *keys.packing, i * levels, levels);
    for (std::size_t t = 0; t < in.count; ++t) {
      decompose(digits, word(t, i), gadget, w);
      for (std::size_t j = 0; j < levels; ++j) {
        const auto digit = static_cast<Word>(digits[j]);
        for (std::size_t c = 0; c <= k; ++c) {
          subtract(acc + c * n, rows.data() + (j * (k + 1) + c) * n, n, coefficients[t], digit);
        }
      }
    }
  }
}

}  // namespace

GlweBlock pack(device::Pool& pool, const EvaluationKeys& keys, const backend::ConstLweView& in,
               std::span<const std::uint32_t> coefficients, const Checkpoint& checkpoint) {
  check_sizes(keys);
  const Params& params = *keys.params;
  require<KeyMissing>(keys.packing.has_value(),
                      "packing needs a key that was not made: make the evaluation keys with "
                      "packing");
  require<ParamsMismatch>(
      in.torus == params.ciphertext_torus() && in.dimension == params.dimension(),
      "the ciphertexts to pack have another dimension or torus than those of their parameters");
  require<InvalidArgument>(coefficients.size() == in.count,
                           "packing needs one coefficient for each ciphertext");
  std::vector<bool> taken(params.N().value);
  for (const std::uint32_t h : coefficients) {
    require<InvalidArgument>(h < taken.size() && !taken[h],
                             "packing needs different coefficients below N");
    taken[h] = true;
  }
  GlweBlock out = make_glwe(pool, params.torus(), params.k(), params.N(), 1);
  if (params.torus() == Torus::t32) {
    pack_words<std::uint32_t>(out, keys, in, coefficients, checkpoint);
  } else {
    pack_words<std::uint64_t>(out, keys, in, coefficients, checkpoint);
  }
  return out;
}

}  // namespace jali::lwe
