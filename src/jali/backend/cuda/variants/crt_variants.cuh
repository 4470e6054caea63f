// CRT and its inverse by the methods that nothing in the library asks for on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "jali/backend/cuda/crt/icrt_tile.cuh"

namespace jali::backend::cuda {

/// CRT-MOD: crt (crt.cuh) by Horner's rule, a limb a thread.
template <class W>
void crt_by_horner(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                   const std::uint64_t* integers, unsigned words);

/// ICRT-G: icrt (crt.cuh) by Garner's mixed radix, with a plan of these constants: q_j^-1 mod q_i
/// at (j, i), and q_0 .. q_{i-1} in so many 64-bit words.
template <class W>
icrt_tile::Constants<W> garner_constants(const std::vector<std::uint64_t>& q, std::size_t words);
template <class W>
void icrt_by_garner(const Stream&, const Tables<W>&, const IcrtPlan<W>&, const Shape&, const Limbs&,
                    std::uint64_t* integers, unsigned words, const void* x);

}  // namespace jali::backend::cuda
