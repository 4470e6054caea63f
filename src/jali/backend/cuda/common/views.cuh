// From the views of an operation to the parameters of kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/source.cuh"
#include "jali/backend/view.h"
#include "jali/base/error.h"

namespace jali::backend::cuda {

/// The most blocks that a launch may have along y or z on any GPU. Kernels have the rows (limb,
/// batch) of a polynomial there, so that an operation may write at most so many rows. None of its
/// launches then has more, because KeySwitcher splits parts and terms among several launches if
/// they would; and 32 bits hold every count of blocks.
constexpr std::size_t kMaxRows = 65535;
/// Throws Unsupported for more.
void check_rows(ConstView x);

/// The place of p, or kSkip.
std::uint16_t find(std::span<const PrimeIndex> primes, PrimeIndex p);
/// Sizes beyond what kernels take by value throw Unsupported.
Limbs limbs_of(std::span<const PrimeIndex> primes);

/// Where each of `primes` lies in `in`, or kSkip.
Limbs positions(std::span<const PrimeIndex> primes, std::span<const PrimeIndex> in);
/// One residue a limb, each below its prime.
template <class W>
Scalars<W> scalars_of(std::span<const std::uint64_t> s) {
  require<Unsupported>(s.size() <= kMaxLimbs,
                       "the GPU engine holds polynomials of up to 256 limbs");
  Scalars<W> out{};
  std::copy(s.begin(), s.end(), out.s);
  return out;
}
/// A polynomial as it lies.
Source source(ConstView x);

}  // namespace jali::backend::cuda
