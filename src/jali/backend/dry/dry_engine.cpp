// An engine for dry runs. It gives out memory and computes nothing: residues are undefined, before
// and after every operation. What layers above keep beside residues, such as levels, scales,
// estimates and the keys that were used, is what it is on every other engine, because no operation
// returns anything but residues. Operations that would show residues throw.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "jali/arith/primes.h"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace {

using Scalars = std::span<const std::uint64_t>;
using Views = std::span<const ConstView>;
using Digits = std::span<const std::uint32_t>;
using Seed = std::span<const std::uint8_t, 32>;

[[noreturn]] void no_numbers() {
  throw Unsupported("a dry run has no numbers: run on \"cpu\" or \"cuda\" for results");
}

/// Blocks have addresses of the host, so that no two overlap, and are never touched, so that the
/// system gives no pages for them.
class DryMemory final : public device::Memory {
 public:
  void* allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  void free(void* data, std::size_t bytes) noexcept override { host_->free(data, bytes); }
  void fill(void*, std::uint8_t, std::size_t) noexcept override {}
  void copy(void*, const void*, std::size_t) override {}
  void copy_in(void*, const void*, std::size_t) override {}
  void copy_out(void*, const void*, std::size_t) override { no_numbers(); }
  bool host_accessible() const override { return false; }

 private:
  const std::shared_ptr<device::Memory> host_ = device::host_memory();
};

class DryRing final : public RingOps {
 public:
  DryRing(const Engine& engine, const Config& config) : RingOps(engine), config_(config) {}
  std::uint64_t root(PrimeIndex prime) const override {
    return arith::primitive_root(config_.primes.at(prime), 2 * config_.n);
  }
  void ntt(View) const override {}
  void intt(View) const override {}
  void add(View, ConstView, ConstView) const override {}
  void sub(View, ConstView, ConstView) const override {}
  void neg(View, ConstView) const override {}
  void mul(View, ConstView, ConstView) const override {}
  void mul_scalar(View, ConstView, Scalars) const override {}
  void mul_scalar_add(View, ConstView, Scalars) const override {}
  void add_scalar(View, ConstView, Scalars) const override {}
  void inner_product(View, Views, Views) const override {}
  void automorphism_ntt(View, ConstView, std::uint64_t) const override {}
  void sample_uniform(View, Seed, std::uint32_t) const override {}
  void sample_small(View, Small, Seed, std::uint64_t) const override {}
  void sample_sparse(View, std::size_t, Seed, std::uint64_t) const override {}
  void from_int64(View, std::span<const std::int64_t>) const override {}
  void from_double(View, std::span<const double>) const override {}
  void crt(View, Scalars, std::size_t, CrtMethod) const override {}
  void icrt(std::span<std::uint64_t>, std::size_t, ConstView, IcrtMethod) const override {
    no_numbers();
  }

 private:
  const Config& config_;
};

class DryRlwe final : public RlweOps {
 public:
  using RlweOps::RlweOps;
  void tensor(View, View, View, ConstView, ConstView, ConstView, ConstView) const override {}
  void combine(View, View, View, const Combination&) const override {}
  void weighted_sums(Views, Views, std::span<const WeightedSum>) const override {}
  void mod_up(View, ConstView, Digits) const override {}
  void scale_down(View, ConstView, const ConstView*) const override {}
  void key_product(View, View, ConstView, KeyView, Digits, std::uint64_t, bool) const override {}
  void key_switch(View, View, ConstView, Digits, KeyView, Digits) const override {}
  void rotated_sums(std::span<const Rotated>, Digits, Scalars,
                    std::span<const WeightedSum>) const override {}
  void outer_sum(View, View, std::span<const Turned>, Digits, Digits, bool) const override {}
};

class DryEmbedding final : public EmbeddingOps {
 public:
  using EmbeddingOps::EmbeddingOps;
  void embed(View, const Embedding&, std::span<const Complex>, int, double) const override {}
  void unembed(std::span<Complex>, const Embedding&, ConstView, int, double) const override {
    no_numbers();
  }
};

class DryEngine final : public Engine {
 public:
  explicit DryEngine(Config config)
      : Engine(device::host_device(std::make_shared<DryMemory>())), config_(std::move(config)) {}

  std::string name() const override { return "dry"; }
  const Config& config() const override { return config_; }
  const RingOps& ring() const override { return ring_; }
  const RlweOps& rlwe() const override { return rlwe_; }
  const EmbeddingOps& embedding() const override { return embedding_; }

 private:
  const Config config_;
  const DryRing ring_{*this, config_};
  const DryRlwe rlwe_{*this};
  const DryEmbedding embedding_{*this};
};

}  // namespace

std::unique_ptr<Engine> make_dry_engine(Config config) {
  return std::make_unique<DryEngine>(std::move(config));
}

}  // namespace jali::backend
