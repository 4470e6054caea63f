// Control words of a Benes network (rtl/benes.sv) for a permutation of its lanes: out lane o takes
// in lane p[o].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rtl {

using Lanes = std::vector<std::size_t>;

/// Sets the switches of the subnetwork of p.size() lanes that begins at `lane`, in the columns from
/// `column` to its mirror.
inline void route(std::uint64_t& control, const Lanes& p, std::size_t all, std::size_t column,
                  std::size_t lane) {
  const std::size_t n = p.size(), half = n / 2;
  const auto set = [&](std::size_t at, std::size_t k) {
    control |= std::uint64_t{1} << (at * all / 2 + lane / 2 + k);
  };
  if (n == 2) {
    if (p[0] == 1) set(column, 0);
    return;
  }
  std::size_t columns = 1;
  for (std::size_t i = n; i > 2; i /= 2) columns += 2;
  Lanes at(n);
  for (std::size_t o = 0; o < n; ++o) at[p[o]] = o;
  std::vector<int> lower(n, -1);  // by out lane
  for (std::size_t start = 0; start < half; ++start) {
    for (std::size_t o = start; lower[o] < 0; o = at[p[o ^ half] ^ half]) {
      lower[o] = 0;
      lower[o ^ half] = 1;
    }
  }
  Lanes inner[2] = {Lanes(half), Lanes(half)};
  for (std::size_t o = 0; o < n; ++o) inner[lower[o]][o % half] = p[o] % half;
  for (std::size_t i = 0; i < half; ++i) {
    if (lower[at[i]] == 1) set(column, i);
    if (lower[i] == 1) set(column + columns - 1, i);
  }
  route(control, inner[0], all, column + 1, lane);
  route(control, inner[1], all, column + 1, lane + half);
}

inline std::uint64_t benes_control(const Lanes& p) {
  std::uint64_t control = 0;
  route(control, p, p.size(), 0, 0);
  return control;
}

}  // namespace rtl
