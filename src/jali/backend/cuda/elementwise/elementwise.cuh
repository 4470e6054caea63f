// Operations on residues one by one.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"

namespace jali::backend::cuda {

constexpr int kMaxTerms = 64;
/// Operands of an inner product by value.
struct Terms {
  const void* a[kMaxTerms];
  const void* b[kMaxTerms];
  std::uint8_t b_broadcast[kMaxTerms];
  int count;
};
enum class Binary { add, sub, mul };
enum class ByScalar { mul, mul_add, add };

template <class W>
void negate(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out, const void* a);
template <class W>
void binary(const Stream&, const Tables<W>&, const Shape&, const Limbs&, Binary, void* out,
            const void* a, const void* b, bool b_broadcast);
template <class W>
void by_scalar(const Stream&, const Tables<W>&, const Shape&, const Limbs&, ByScalar, void* out,
               const void* a, const Scalars<W>&);
template <class W>
void inner_product(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* out,
                   const Terms&, bool accumulate);
template <class W>
void tensor(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void* d0, void* d1,
            void* d2, const void* a0, const void* a1, const void* b0, const void* b1);
/// out = sigma_g(in), NTT form.
template <class W>
void automorphism(const Stream&, const Shape&, void* out, const void* in, std::uint64_t g);

}  // namespace jali::backend::cuda
