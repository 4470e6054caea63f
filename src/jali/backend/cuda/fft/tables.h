// Tables of the folded transform (folded_fft.cuh), made on the host.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace jali::backend::cuda::fft {

struct Root {
  double re, im;
};

/// exp(i pi angle)
inline Root unit(long double angle) {
  const long double pi = 3.14159265358979323846264338327950288L;
  return {static_cast<double>(std::cos(pi * angle)), static_cast<double>(std::sin(pi * angle))};
}
/// The angle of node q of depth d, in units of pi: 1/2 at the root; a/2 and a/2 + 1 for the
/// children of a node of angle a.
inline long double node_angle(int depth, std::size_t q) {
  long double angle = 0.5L;
  for (int t = depth - 1; t >= 0; --t) angle = angle / 2 + static_cast<long double>(q >> t & 1);
  return angle;
}
/// Twiddles of the levels from depth `depth` on, of `threads` threads that hold `blocks` blocks of
/// 32 / blocks points each: [entry][thread], see forward_levels.
inline std::vector<Root> low_table(int depth, int threads, int blocks) {
  std::vector<Root> table;
  for (; blocks < 32; blocks *= 2, ++depth) {
    const int entries = blocks < 2 ? 1 : blocks / 2;
    for (int e = 0; e < entries; ++e) {
      for (int g = 0; g < threads; ++g) {
        const std::size_t node = static_cast<std::size_t>(g) * static_cast<std::size_t>(blocks) +
                                 2 * static_cast<std::size_t>(e);
        table.push_back(unit(node_angle(depth, node) / 2));
      }
    }
  }
  return table;
}
/// exp(-i pi angle g / G) for the angle of node i of depth 5, at [i][g], g < G.
inline std::vector<Root> twist_table(int G) {
  std::vector<Root> table;
  for (std::size_t i = 0; i < 32; ++i) {
    for (int g = 0; g < G; ++g) table.push_back(unit(-node_angle(5, i) * g / G));
  }
  return table;
}
/// The twiddle of node q of depth d at [2^d + q], for all nodes above M points.
inline std::vector<Root> tree(std::size_t M) {
  std::vector<Root> table(1);
  for (int depth = 0; std::size_t{1} << depth < M; ++depth) {
    for (std::size_t q = 0; q < std::size_t{1} << depth; ++q) {
      table.push_back(unit(node_angle(depth, q) / 2));
    }
  }
  return table;
}
/// exp(i pi j / N), j < 2 N
inline std::vector<Root> roots(std::size_t N) {
  std::vector<Root> table;
  for (std::size_t j = 0; j < 2 * N; ++j) {
    table.push_back(unit(static_cast<long double>(j) / static_cast<long double>(N)));
  }
  return table;
}

}  // namespace jali::backend::cuda::fft
