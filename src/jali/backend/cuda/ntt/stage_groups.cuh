// How the stages of a transform fall into groups.
#pragma once

namespace jali::backend::cuda {

// Groups of m stages: sizes as equal as can be, none above h, larger ones first.
__host__ __device__ constexpr int group_count(int m, int h) { return (m + h - 1) / h; }
__host__ __device__ constexpr int group_size(int m, int h, int k) {
  return m / group_count(m, h) + (k < m % group_count(m, h) ? 1 : 0);
}
__host__ __device__ constexpr int group_start(int m, int h, int k) {
  int u = 0;
  for (int i = 0; i < k; ++i) u += group_size(m, h, i);
  return u;
}
/// Size of the last group, whose twiddles a thread does not share with its neighbours.
__host__ __device__ constexpr int last_group_size(int m, int h) {
  return group_size(m, h, group_count(m, h) - 1);
}

}  // namespace jali::backend::cuda
