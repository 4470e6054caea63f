// What the tables of the CPU engine share: constants of every prime, threads, working memory; and
// how they find and check rows. Work is parallel over (limb, batch) rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jali/backend/config.h"
#include "jali/backend/cpu/prime_tables.h"
#include "jali/backend/cpu/row_kernels.h"
#include "jali/backend/cpu/scratch.h"
#include "jali/backend/view.h"
#include "jali/base/thread_pool.h"

namespace jali::backend::cpu {

struct Core {
  explicit Core(Config of);

  const Config config;
  const RowKernels kernels;
  const std::size_t row_bytes;
  AlignedBlock tables;  // of all primes
  std::vector<std::unique_ptr<const PrimeTables>> primes;
  std::vector<std::uint32_t> rev;  // bit reversal of n / lanes indices
  mutable ThreadPool pool;
  mutable ScratchPool scratch{device::host_memory()};
};

/// The part of a table that knows rows. The core must outlive it.
class RowAccess {
 protected:
  explicit RowAccess(const Core& core)
      : config_(core.config),
        kernels_(core.kernels),
        n_(core.config.n),
        row_bytes_(core.row_bytes),
        primes_(core.primes),
        rev_(core.rev),
        pool_(core.pool),
        scratch_(core.scratch) {}

  const std::byte* row(ConstView v, std::size_t limb, std::size_t b) const {
    // A block of batch 1 serves every batch entry.
    return static_cast<const std::byte*>(v.data) +
           (limb * v.batch + (v.batch == 1 ? 0 : b)) * row_bytes_;
  }
  /// The row of a prime that v has.
  const std::byte* row_of(ConstView v, PrimeIndex p, std::size_t b) const {
    const auto at = std::ranges::lower_bound(v.primes, p) - v.primes.begin();
    return row(v, static_cast<std::size_t>(at), b);
  }
  std::byte* row(View v, std::size_t limb, std::size_t b) const {
    return static_cast<std::byte*>(v.data) + (limb * v.batch + b) * row_bytes_;
  }
  const PrimeTables& prime(PrimeIndex p) const { return *primes_[p]; }
  std::vector<const PrimeTables*> tables_of(std::span<const PrimeIndex> primes) const {
    std::vector<const PrimeTables*> out;
    for (const PrimeIndex p : primes) out.push_back(&prime(p));
    return out;
  }

  /// body(limb, batch entry, tables of the limb's prime) for every row of a shape.
  template <class Body>
  void for_rows(ConstView shape, const Body& body) const {
    pool_.parallel(shape.primes.size() * shape.batch, [&](std::size_t i) {
      const std::size_t limb = i / shape.batch;
      body(limb, i % shape.batch, prime(shape.primes[limb]));
    });
  }

  // --- checks of shapes: a residue outside [0, q) is the caller's broken promise -----------------

  void check(ConstView v) const;
  void check_same(ConstView out, ConstView in, bool broadcast = false) const;
  /// An output that is written while `in` is still read must not be `in`.
  void check_apart(ConstView out, ConstView in) const;
  void check_scalars(ConstView out, std::span<const std::uint64_t> s) const;

  const Config& config_;
  const RowKernels& kernels_;
  const std::size_t n_, row_bytes_;
  const std::vector<std::unique_ptr<const PrimeTables>>& primes_;
  const std::vector<std::uint32_t>& rev_;
  ThreadPool& pool_;
  ScratchPool& scratch_;
};

}  // namespace jali::backend::cpu
