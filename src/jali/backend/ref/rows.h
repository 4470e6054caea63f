// How the oracle's tables read, write and check rows. Residues that are not below their prime are
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/config.h"
#include "jali/backend/ref/contract.h"
#include "jali/backend/ref/transform.h"
#include "jali/backend/view.h"

namespace jali::backend::ref {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

/// Rows in memory of our own, (limb, batch).
using Rows = std::vector<std::vector<Row>>;

/// The part of a table that knows rows. The engine must outlive it.
class RowAccess {
 protected:
  explicit RowAccess(const Config& config, const std::vector<u64>& roots)
      : config_(config), roots_(roots) {}

  std::size_t n() const { return config_.n; }
  Contract contract(const char* operation) const { return Contract(config_, operation); }

  // --- rows ----------------------------------------------------------------------------------

  u64 word_at(const void* data, std::size_t index) const {
    if (config_.word == Word::w32) return static_cast<const u32*>(data)[index];
    return static_cast<const u64*>(data)[index];
  }
  Row load_words(const void* data, std::size_t start, u64 q) const;
  Row load(ConstView x, std::size_t limb, std::size_t batch) const;
  void store(View x, std::size_t limb, std::size_t batch, const Row& row) const;
  Rows load_coefficients(ConstView x) const;

  Row to_values(const Row& row, PrimeIndex p) const;
  Row to_coefficients(const Row& row, PrimeIndex p) const;
  std::vector<u64> values_of(Primes primes) const;

  // --- loops ---------------------------------------------------------------------------------

  /// f(limb, batch, q) for every row.
  template <class F>
  void for_rows(ConstView x, F f) const {
    for (std::size_t i = 0; i < x.primes.size(); ++i) {
      for (std::size_t j = 0; j < x.batch; ++j) f(i, j, config_.primes[x.primes[i]]);
    }
  }

  template <class F>
  void in_place(View x, F f) const {
    for_rows(x, [&](std::size_t i, std::size_t j, u64) {
      store(x, i, j, f(load(x, i, j), x.primes[i]));
    });
  }

  /// f(value, limb, q).
  template <class F>
  void unary(const char* operation, View out, ConstView a, F f) const {
    check_unary(contract(operation), out, a);
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      Row row = load(a, i, j);
      for (u64& v : row) v = f(v, i, q);
      store(out, i, j, row);
    });
  }

  /// f(value, value, q).
  template <class F>
  void binary(const char* operation, View out, ConstView a, ConstView b, F f) const {
    check_binary(contract(operation), out, a, b);
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      Row row = load(a, i, j);
      const Row other = load(b, i, b.batch == 1 ? 0 : j);
      for (std::size_t k = 0; k < n(); ++k) row[k] = f(row[k], other[k], q);
      store(out, i, j, row);
    });
  }

  // --- contracts shared by several operations ------------------------------------------------

  void check_unary(const Contract& c, View out, ConstView a) const;
  void check_binary(const Contract& c, View out, ConstView a, ConstView b) const;
  void check_automorphism(const Contract& c, View out, ConstView in, u64 g) const;

  const Config& config_;
  const std::vector<u64>& roots_;  // by prime
};

}  // namespace jali::backend::ref
