// The oracle: every operation spelled out with 128-bit remainders and natural numbers of any size.
// It refuses every call that breaks the contract of its table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jali/backend/embedding_ops.h"
#include "jali/backend/engine.h"
#include "jali/backend/ref/rows.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"

namespace jali::backend::ref {

/// ring.cpp, integers.cpp.
class RefRing final : public RingOps, private RowAccess {
 public:
  RefRing(const Engine& engine, const Config& config, const std::vector<u64>& roots)
      : RingOps(engine), RowAccess(config, roots) {}

  u64 root(PrimeIndex prime) const override;
  void ntt(View x) const override;
  void intt(View x) const override;
  void add(View out, ConstView a, ConstView b) const override;
  void sub(View out, ConstView a, ConstView b) const override;
  void mul(View out, ConstView a, ConstView b) const override;
  void neg(View out, ConstView a) const override;
  void mul_scalar(View out, ConstView a, std::span<const u64> s) const override;
  void mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const override;
  void add_scalar(View out, ConstView a, std::span<const u64> s) const override;
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override;
  void automorphism_ntt(View out, ConstView in, u64 g) const override;
  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override;
  void from_int64(View out, std::span<const std::int64_t> c) const override;
  void from_double(View out, std::span<const double> c) const override;
  /// Both methods are one thing to the oracle: the integer modulo q.
  void crt(View out, std::span<const u64> integers, std::size_t words, CrtMethod) const override;
  void icrt(std::span<u64> integers, std::size_t words, ConstView x, IcrtMethod) const override;
};

/// key_switch.cpp, sums.cpp.
class RefRlwe final : public RlweOps, private RowAccess {
 public:
  RefRlwe(const Engine& engine, const Config& config, const std::vector<u64>& roots)
      : RlweOps(engine), RowAccess(config, roots) {}

  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override;
  void combine(View d0, View d1, View d2, const Combination& sum) const override;
  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override;
  void mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const override;
  void scale_down(View out, ConstView x, const ConstView* addend) const override;
  void key_product(View acc0, View acc1, ConstView ext, KeyView key, std::span<const u32> digit_ids,
                   u64 g, bool accumulate) const override;
  void key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs, KeyView key,
                  std::span<const u32> digit_ids) const override;

 private:
  void lift_digits(View ext, ConstView x, std::span<const u32> digit_limbs) const;
  void multiply_by_key(View acc0, View acc1, ConstView ext, KeyView key,
                       std::span<const u32> digit_ids, u64 g, bool accumulate) const;
  Row key_row(KeyView key, std::size_t digit, std::size_t part, PrimeIndex p) const;

  void check_mod_up(const Contract& c, View ext, ConstView x,
                    std::span<const u32> digit_limbs) const;
  void check_accumulators(const Contract& c, View acc0, View acc1, KeyView key, Block input) const;
};

class RefEngine final : public Engine {
 public:
  explicit RefEngine(Config config);

  std::string name() const override { return "ref"; }
  const Config& config() const override { return config_; }
  const RingOps& ring() const override { return ring_; }
  const RlweOps& rlwe() const override { return rlwe_; }
  const EmbeddingOps& embedding() const override { return embedding_; }

 private:
  const Config config_;
  std::vector<u64> roots_;
  const RefRing ring_{*this, config_, roots_};
  const RefRlwe rlwe_{*this, config_, roots_};
  const EmbeddingOps embedding_{*this};  // the defaults are its definition
};

}  // namespace jali::backend::ref
