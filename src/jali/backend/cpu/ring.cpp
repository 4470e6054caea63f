// Transforms, element-wise work and automorphisms.
#include "jali/backend/cpu/ring.h"

#include <algorithm>
#include <array>

#include "jali/base/error.h"

namespace jali::backend::cpu {

std::uint64_t CpuRing::root(PrimeIndex p) const {
  require<InvalidArgument>(p < primes_.size(), "there is no prime of this index");
  return prime(p).root;
}

// --- transforms and element-wise operations ------------------------------------------------------

void CpuRing::ntt(View x) const {
  check(x);
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    kernels_.ntt(row(x, i, b), row(x, i, b), p.ntt);
  });
}

void CpuRing::intt(View x) const {
  check(x);
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    kernels_.intt(row(x, i, b), row(x, i, b), p.ntt, p.unscaled);
  });
}

void CpuRing::add(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.add(row(out, i, k), row(a, i, k), row(b, i, k), n_, p.row);
  });
}

void CpuRing::sub(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.sub(row(out, i, k), row(a, i, k), row(b, i, k), n_, p.row);
  });
}

void CpuRing::neg(View out, ConstView a) const {
  check(out), check_same(out, a);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.neg(row(out, i, k), row(a, i, k), n_, p.row);
  });
}

void CpuRing::mul(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    const void* x = row(a, i, k);
    const void* y = row(b, i, k);
    kernels_.dot(row(out, i, k), &x, &y, 1, nullptr, n_, p.row);
  });
}

void CpuRing::mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const {
  check(out), check_same(out, a);
  check_scalars(out, s);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.mul_scalar(row(out, i, k), row(a, i, k), p.constant(s[i]), n_, p.row);
  });
}

void CpuRing::mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const {
  check(acc), check_same(acc, a);
  check_scalars(acc, s);
  for_rows(acc, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.mul_scalar_add(row(acc, i, k), row(a, i, k), p.constant(s[i]), n_, p.row);
  });
}

void CpuRing::add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const {
  check(out), check_same(out, a);
  check_scalars(out, s);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.add_scalar(row(out, i, k), row(a, i, k), s[i], n_, p.row);
  });
}

void CpuRing::inner_product(View out, std::span<const ConstView> a,
                            std::span<const ConstView> b) const {
  check(out);
  require<InvalidArgument>(a.size() == b.size(), "an inner product needs as many a as b");
  for (const ConstView& v : a) check_same(out, v), check_apart(out, v);
  for (const ConstView& v : b) check_same(out, v, true), check_apart(out, v);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    // Sixty rows at a time, so that their addresses need no allocation.
    constexpr std::size_t kChunk = 60;
    std::array<const void*, kChunk> x, y;
    std::size_t done = 0;
    do {
      const std::size_t count = std::min(kChunk, a.size() - done);
      for (std::size_t j = 0; j < count; ++j) {
        x[j] = row(a[done + j], i, k);
        y[j] = row(b[done + j], i, k);
      }
      kernels_.dot(row(out, i, k), x.data(), y.data(), count, done == 0 ? nullptr : row(out, i, k),
                   n_, p.row);
      done += count;
    } while (done < a.size());
  });
}

// --- automorphisms -------------------------------------------------------------------------------

void CpuRing::automorphism_ntt(View out, ConstView in, std::uint64_t g) const {
  check(out), check_same(out, in), check_apart(out, in);
  require<InvalidArgument>(g % 2 == 1, "an automorphism X -> X^g needs an odd g");
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables&) {
    kernels_.automorphism(row(out, i, k), row(in, i, k), g % (2 * n_), rev_.data(), n_);
  });
}

}  // namespace jali::backend::cpu
