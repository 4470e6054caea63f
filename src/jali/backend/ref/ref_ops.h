// The oracle: every operation of ops.h spelled out with 128-bit remainders and natural numbers of
// any size. It refuses every call that breaks the contract, residues that are not below their prime
// included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jali/backend/ops.h"
#include "jali/backend/ref/contract.h"
#include "jali/backend/ref/transform.h"

namespace jali::backend::ref {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

/// Rows in memory of our own, (limb, batch).
using Rows = std::vector<std::vector<Row>>;

class RefOps final : public Ops {
 public:
  explicit RefOps(Config config);

  std::string name() const override { return "ref"; }
  const Config& config() const override { return config_; }
  u64 root(PrimeIndex prime) const override;

  void ntt(View x) const override;
  void intt(View x) const override;
  void add(View out, ConstView a, ConstView b) const override;
  void sub(View out, ConstView a, ConstView b) const override;
  void mul(View out, ConstView a, ConstView b) const override;
  void neg(View out, ConstView a) const override;
  void mul_add(View acc, ConstView a, ConstView b) const override;
  void mul_scalar(View out, ConstView a, std::span<const u64> s) const override;
  void mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const override;
  void add_scalar(View out, ConstView a, std::span<const u64> s) const override;
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override;
  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override;
  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override;
  void combine(View d0, View d1, View d2, const Combination& sum) const override;
  void automorphism_ntt(View out, ConstView in, u64 g) const override;
  void automorphism_coeff(View out, ConstView in, u64 g) const override;
  void mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const override;
  void key_product(View acc0, View acc1, ConstView ext, KeyView key, std::span<const u32> digit_ids,
                   u64 g, bool accumulate) const override;
  void key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs, KeyView key,
                  std::span<const u32> digit_ids) const override;
  void scale_down(View out, ConstView x, const ConstView* addend) const override;
  void from_int64(View out, std::span<const std::int64_t> c) const override;
  void from_double(View out, std::span<const double> c) const override;
  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override;
  /// Both methods are one thing to the oracle: the integer modulo q.
  void crt(View out, std::span<const u64> integers, std::size_t words, CrtMethod) const override;
  void icrt(std::span<u64> integers, std::size_t words, ConstView x, IcrtMethod) const override;

 private:
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

  // --- the larger steps ----------------------------------------------------------------------

  void lift_digits(View ext, ConstView x, std::span<const u32> digit_limbs) const;
  void multiply_by_key(View acc0, View acc1, ConstView ext, KeyView key,
                       std::span<const u32> digit_ids, u64 g, bool accumulate) const;
  Row key_row(KeyView key, std::size_t digit, std::size_t part, PrimeIndex p) const;

  // --- contracts shared by several operations ------------------------------------------------

  void check_unary(const Contract& c, View out, ConstView a) const;
  void check_binary(const Contract& c, View out, ConstView a, ConstView b) const;
  void check_automorphism(const Contract& c, View out, ConstView in, u64 g) const;
  void check_mod_up(const Contract& c, View ext, ConstView x,
                    std::span<const u32> digit_limbs) const;
  void check_accumulators(const Contract& c, View acc0, View acc1, KeyView key, Block input) const;

  const Config config_;
  std::vector<u64> roots_;
};

}  // namespace jali::backend::ref
