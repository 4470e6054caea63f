// The packing key switch of the CPU engine: products of digits with stretches of the key's
// polynomials.
#include <algorithm>

#include "jali/backend/cpu/tfhe.h"
#include "jali/backend/tfhe_checks.h"

namespace jali::backend::cpu {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Words of a polynomial that a thread computes, which stay in its L1 cache beside a row of the
/// key.
constexpr std::size_t kTile = 512;

/// Words [x0, x0 + count) of acc -= digit X^h row, where x0 is word 0 of acc.
template <class W, class AddMultiple>
void subtract(W* acc, const W* row, std::size_t N, std::size_t h, W digit, std::size_t x0,
              std::size_t count, AddMultiple add_multiple) {
  const std::size_t turned = std::clamp(h, x0, x0 + count) - x0;  // words below h are negated
  if (turned > 0) add_multiple(acc, row + N + x0 - h, digit, turned);
  if (turned < count) {
    add_multiple(acc + turned, row + x0 + turned - h, static_cast<W>(0 - digit), count - turned);
  }
}

}  // namespace

void CpuTfhe::pack(GlweView out, ConstLweView in, std::span<const u32> coefficients,
                   std::size_t per, const void* packing_key) const {
  check_pack(config_, out, in, coefficients, per, packing_key);
  const std::size_t N = config_.N.value, rows = config_.k.value + 1, d = in.dimension.value;
  const std::size_t levels = static_cast<std::size_t>(config_.rotation_gadget.levels);
  const std::size_t tile = std::min(kTile, N), tiles = N / tile;
  // Ciphertext t of an output has its digits, level after level of one word, at t d levels, and its
  // words of 64 bits, of which one of 32 bits is the upper half, at t (d + 1).
  const std::size_t most = std::min(per, in.count);
  const std::size_t word_bytes = most * (d + 1) * sizeof(u64);
  const ScratchPool::Lease lease =
      scratch_.lend(word_bytes + most * d * levels * sizeof(std::int32_t));
  auto* const words = reinterpret_cast<u64*>(lease.data());
  auto* const digits = reinterpret_cast<std::int32_t*>(lease.data() + word_bytes);
  for (std::size_t first = 0, o = 0; first < in.count; first += per, ++o) {
    const std::size_t count = std::min(per, in.count - first);
    pool_.parallel(count, [&](std::size_t t) {
      with_word(in.torus, [&](auto zero) {
        using In = decltype(zero);
        const In* const from = static_cast<const In*>(in.data) + (first + t) * (d + 1);
        for (std::size_t i = 0; i <= d; ++i) {
          words[t * (d + 1) + i] = static_cast<u64>(from[i]) << (64 - 8 * sizeof(In));
        }
      });
      kernels_.digits(digits + t * d * levels, words + t * (d + 1), d, packing_rule_);
    });
    pool_.parallel(rows * tiles, [&](std::size_t part) {
      const std::size_t c = part / tiles, x0 = part % tiles * tile;
      with_word(config_.torus, [&](auto zero) {
        using W = decltype(zero);
        W* const acc = static_cast<W*>(out.data) + (o * rows + c) * N + x0;
        const auto add_multiple = [&] {
          if constexpr (sizeof(W) == 8)
            return kernels_.add_multiple64;
          else
            return kernels_.add_multiple32;
        }();
        std::fill(acc, acc + tile, W{0});
        for (std::size_t t = 0; c + 1 == rows && t < count; ++t) {
          const std::size_t h = coefficients[first + t];
          if (h < x0 || h >= x0 + tile) continue;
          acc[h - x0] = static_cast<W>(words[t * (d + 1) + d] >> (64 - 8 * sizeof(W)));
        }
        for (std::size_t r = 0; r < d * levels; ++r) {
          const W* const row = static_cast<const W*>(packing_key) + (r * rows + c) * N;
          for (std::size_t t = 0; t < count; ++t) {
            subtract(acc, row, N, coefficients[first + t],
                     static_cast<W>(digits[t * d * levels + r]), x0, tile, add_multiple);
          }
        }
      });
    });
  }
}

}  // namespace jali::backend::cpu
