#include "jali/schemes/tfhe/origin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace jali::tfhe {

namespace {

/// A bijection of words, of which every output bit depends on all input bits (S. Vigna's
/// splitmix64).
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t out = scrambled(scrambled(a) + b);
  return out <= kCancelled ? kCancelled + 1 : out;
}

namespace {

/// The entry of a constant: coefficient c N/2P of the polynomial, for c half steps. It lies in box
/// (c + 1) / 2, and behind all P boxes those with the other sign follow.
std::int64_t entry_at(std::span<const std::int64_t> halves, std::size_t boxes, std::uint64_t turn,
                      std::size_t function) {
  const std::size_t each = halves.size() / boxes, box = (turn + 1) / 2 % (2 * boxes);
  return box < boxes ? halves[box * each + function] : -halves[(box - boxes) * each + function];
}

}  // namespace

TableOrigin table_origin(std::span<const std::int64_t> halves, int value_bits,
                         std::int64_t half_steps, std::size_t function) {
  const std::size_t size = halves.size(), boxes = std::size_t{1} << value_bits;
  const std::uint64_t torus = std::uint64_t{4} << value_bits;  // in half steps
  const std::uint64_t turn = static_cast<std::uint64_t>(half_steps) % torus;
  const std::size_t first = static_cast<std::size_t>(turn / 2) * (size / boxes);
  const std::uint64_t mask = torus - 1;
  const std::int64_t entry = entry_at(halves, boxes, turn, function);
  const bool nothing = std::ranges::all_of(
      halves, [&](std::int64_t of) { return (static_cast<std::uint64_t>(of) & mask) == 0; });
  if (nothing) return {};
  // Of the polynomial, minus it, and both with half the torus, the one with the smallest hash
  // stands for all. The four hashes are computed side by side, because each step of one waits for
  // the step before.
  constexpr std::size_t kForms = 4;
  std::array<std::uint64_t, kForms> hashes;
  hashes.fill(mixed(size, turn % 2));
  std::size_t at = first % (2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    const bool beyond = at >= size;
    const auto one = static_cast<std::uint64_t>(halves[beyond ? at - size : at]);
    const std::uint64_t plus = beyond ? 0 - one : one, minus = 0 - plus;
    const std::array<std::uint64_t, kForms> forms{plus, plus + torus / 2, minus, minus + torus / 2};
    for (std::size_t k = 0; k < kForms; ++k) {
      hashes[k] = (hashes[k] ^ (forms[k] & mask)) * 0xff51afd7ed558ccd;
      hashes[k] ^= hashes[k] >> 32;
    }
    if (++at == 2 * size) at = 0;
  }
  const auto k = static_cast<std::size_t>(std::ranges::min_element(hashes) - hashes.begin());
  std::uint64_t id = mixed(hashes[k], size);
  if (function > 0) id = mixed(id, function);
  const std::int64_t half_a_torus = k % 2 == 1 ? static_cast<std::int64_t>(torus / 2) : 0;
  return {{id, half_a_torus, k >= 2}, entry};
}

Origin origin_after(const TableOrigin& table, std::uint64_t id, bool constant) {
  if (constant || table.polynomial.id == kNoError) return {kNoError, table.entry};
  if (id == 0) return {kCancelled, table.entry};
  Origin out = table.polynomial;
  out.id = mixed(id, out.id);
  return out;
}

double squared_norm(std::vector<Part>& parts) {
  std::ranges::sort(parts, [](const Part& a, const Part& b) {
    return a.of->id != b.of->id ? a.of->id < b.of->id : std::less<>{}(a.of, b.of);
  });
  std::size_t kept = 0;
  double sum = 0, size = 0;  // of all ids, and of one
  for (std::size_t i = 0; i < parts.size();) {
    Part one = parts[i];
    for (++i; i < parts.size() && parts[i].of == one.of; ++i) one.weight += parts[i].weight;
    if (one.weight != 0) {
      size += std::abs(static_cast<double>(one.weight)) * std::sqrt(one.norm2);
      parts[kept++] = one;
    }
    if (i == parts.size() || parts[i].of->id != one.of->id) {
      if (one.of->id != kNoError) sum += size * size;
      size = 0;
    }
  }
  parts.resize(kept);
  return sum;
}

}  // namespace jali::tfhe
