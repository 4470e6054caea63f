// Operations of the ring on the CPU: ring.cpp, integers.cpp, icrt.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/cpu/core.h"
#include "jali/backend/ring_ops.h"

namespace jali::backend::cpu {

class CpuRing final : public RingOps, private RowAccess {
 public:
  CpuRing(const Engine& engine, const Core& core) : RingOps(engine), RowAccess(core) {}

  std::uint64_t root(PrimeIndex prime) const override;
  void ntt(View x) const override;
  void intt(View x) const override;
  void add(View out, ConstView a, ConstView b) const override;
  void sub(View out, ConstView a, ConstView b) const override;
  void neg(View out, ConstView a) const override;
  void mul(View out, ConstView a, ConstView b) const override;
  void mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const override;
  void mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const override;
  void add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const override;
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override;
  void automorphism_ntt(View out, ConstView in, std::uint64_t g) const override;
  void from_int64(View out, std::span<const std::int64_t> c) const override;
  void from_double(View out, std::span<const double> c) const override;
  void crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
           CrtMethod method) const override;
  void icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
            IcrtMethod method) const override;
};

}  // namespace jali::backend::cpu
