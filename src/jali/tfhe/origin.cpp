#include "jali/tfhe/origin.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace jali::tfhe {

namespace {

/// A bijection of words, of which every output bit depends on all input bits (S. Vigna's splitmix64).
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t out = scrambled(scrambled(a) + b);
  return out <= 1 ? 2 : out;
}

Origin table_origin(std::span<const std::int64_t> halves, int value_bits, std::int64_t half_steps) {
  const std::size_t size = halves.size(), boxes = std::size_t{1} << value_bits;
  const std::uint64_t torus = std::uint64_t{4} << value_bits;  // in half steps
  const std::uint64_t turn = static_cast<std::uint64_t>(half_steps) % torus;
  const std::size_t first = static_cast<std::size_t>(turn / 2) * (size / boxes);
  const std::uint64_t mask = torus - 1;
  // 0 is minus itself, so that 0 at both ends of the circle is the same; so is half the torus.
  const auto same = [&](std::int64_t entry, std::uint64_t as) {
    return (static_cast<std::uint64_t>(entry) & mask) == as;
  };
  for (const std::uint64_t nothing : {std::uint64_t{0}, torus / 2}) {
    if (std::ranges::all_of(halves, [&](std::int64_t entry) { return same(entry, nothing); })) {
      return {};
    }
  }
  // Of the polynomial, minus it, and both with half the torus, the one with the smallest hash stands for all. The four hashes are computed side by
  // side, because each step of one waits for the step before.
  constexpr std::size_t kForms = 4;
  std::array<std::uint64_t, kForms> hashes;
  hashes.fill(mixed(size, turn % 2));
  std::size_t at = first % (2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    const bool beyond = at >= size;
    const auto entry = static_cast<std::uint64_t>(halves[beyond ? at - size : at]);
    const std::uint64_t plus = beyond ? 0 - entry : entry, minus = 0 - plus;
    const std::array<std::uint64_t, kForms> forms{plus, plus + torus / 2, minus, minus + torus / 2};
    for (std::size_t k = 0; k < kForms; ++k) {
      hashes[k] = (hashes[k] ^ (forms[k] & mask)) * 0xff51afd7ed558ccd;
      hashes[k] ^= hashes[k] >> 32;
    }
    if (++at == 2 * size) at = 0;
  }
  const auto k = static_cast<std::size_t>(std::ranges::min_element(hashes) - hashes.begin());
  const Origin out{mixed(hashes[k], size), static_cast<std::int64_t>(k % 2 == 1 ? torus / 2 : 0),
                   k >= 2};
  return out;
}

double squared_norm(std::span<std::pair<std::uint64_t, double>> parts) {
  std::ranges::sort(parts);
  double sum = 0;
  for (std::size_t i = 0; i < parts.size();) {
    const std::uint64_t id = parts[i].first;
    double size = 0;
    for (; i < parts.size() && parts[i].first == id; ++i) size += parts[i].second;
    if (id != 0) sum += size * size;
  }
  return sum;
}

}  // namespace jali::tfhe
