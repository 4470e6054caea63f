// Fused operations in terms of simpler ones: what they mean, for engines that do not fuse them.
#include "jali/backend/rlwe_ops.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/error.h"
#include "jali/device/buffer.h"

namespace jali::backend {

namespace {

/// Working memory of one operation: blocks of one batch size from the engine's pool.
class Scratch {
 public:
  Scratch(const Engine& engine, std::size_t batch)
      : pool_(engine.pool()),
        batch_(batch),
        limb_bytes_(batch * engine.config().n * word_bytes(engine.config().word)) {}

  View block(std::span<const PrimeIndex> primes) {
    const std::size_t limbs = std::max<std::size_t>(1, primes.size());
    blocks_.push_back(pool_->allocate(limbs * limb_bytes_));
    return {blocks_.back().data(), primes, batch_};
  }
  std::size_t limb_bytes() const { return limb_bytes_; }

 private:
  const std::shared_ptr<device::Pool> pool_;
  const std::size_t batch_, limb_bytes_;
  std::vector<device::Buffer> blocks_;
};

}  // namespace

std::span<const PrimeIndex> own_primes(ConstView acc, std::span<const std::uint32_t> digit_limbs) {
  const auto limbs = std::accumulate(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  require<InvalidArgument>(limbs <= acc.primes.size(),
                           "the digits of a key switch have more limbs than its result");
  return acc.primes.first(limbs);
}

void RlweOps::scale_down_pair(View out0, View out1, ConstView x0, ConstView x1,
                              const ConstView* addend0, const ConstView* addend1) const {
  scale_down(out0, x0, addend0);
  scale_down(out1, x1, addend1);
}

void RlweOps::key_switch_add(View acc0, View acc1, ConstView x,
                             std::span<const std::uint32_t> digit_limbs, KeyView key,
                             std::span<const std::uint32_t> digit_ids,
                             const ScaledAddend& addend) const {
  const std::size_t limbs = x.primes.size();
  require<InvalidArgument>(
      limbs <= acc0.primes.size() && std::ranges::equal(x.primes, acc0.primes.first(limbs)),
      "the addend of a key switch must have the first primes of the accumulators");
  const RingOps& ring = engine().ring();
  key_switch(acc0, acc1, x, digit_limbs, key, digit_ids);
  const auto own = acc0.primes.first(limbs);
  ring.mul_scalar_add({acc0.data, own, acc0.batch}, addend.c0, addend.s);
  ring.mul_scalar_add({acc1.data, own, acc1.batch}, addend.c1, addend.s);
}

void RlweOps::combine_key_switch(View acc0, View acc1, const Combination& c,
                                 std::span<const std::uint64_t> s,
                                 std::span<const std::uint32_t> digit_limbs, KeyView key,
                                 std::span<const std::uint32_t> digit_ids) const {
  const auto primes = own_primes(acc0, digit_limbs);
  Scratch scratch(engine(), acc0.batch);
  const View d0 = scratch.block(primes), d1 = scratch.block(primes), d2 = scratch.block(primes);
  combine(d0, d1, d2, c);
  key_switch_add(acc0, acc1, d2, digit_limbs, key, digit_ids, {d0, d1, s});
}

void RlweOps::rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1,
                     std::uint64_t g, std::span<const std::uint32_t> digit_limbs, KeyView key,
                     std::span<const std::uint32_t> digit_ids) const {
  const RingOps& ring = engine().ring();
  ring.automorphism_ntt(out1, c1, g);
  key_switch(acc0, acc1, out1, digit_limbs, key, digit_ids);
  ring.automorphism_ntt(out0, c0, g);
  const ConstView turned = out0;
  scale_down_pair(out0, out1, acc0, acc1, &turned, nullptr);
}

void RlweOps::rotated_sums(std::span<const Rotated> operands,
                           std::span<const std::uint32_t> digit_ids,
                           std::span<const std::uint64_t> s,
                           std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const RingOps& ring = engine().ring();
  const auto memory = engine().memory();
  const auto primes = sums[0].out0.primes;
  const std::size_t batch = sums[0].out0.batch;
  Scratch scratch(engine(), batch);
  std::vector<ConstView> a0, a1;
  for (const Rotated& x : operands) {
    const auto own = x.c0.primes;
    require<InvalidArgument>(
        own.size() <= primes.size() && std::ranges::equal(own, primes.first(own.size())),
        "a rotated operand must have the first primes of the sums");
    const View r0 = scratch.block(primes), r1 = scratch.block(primes);
    if (x.g == 1) {
      for (const auto& [r, c] : {std::pair(r0, x.c0), std::pair(r1, x.c1)}) {
        ring.mul_scalar({r.data, own, batch}, c, s);
        memory->fill(static_cast<std::byte*>(r.data) + own.size() * scratch.limb_bytes(), 0,
                     (primes.size() - own.size()) * scratch.limb_bytes());
      }
    } else {
      const View turned = scratch.block(own);
      key_product(r0, r1, x.ext, x.key, digit_ids, x.g, false);
      ring.automorphism_ntt(turned, x.c0, x.g);
      ring.mul_scalar_add({r0.data, own, batch}, turned, s);
    }
    a0.push_back(r0);
    a1.push_back(r1);
  }
  weighted_sums(a0, a1, sums);
}

void RlweOps::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                        std::span<const std::uint32_t> digit_limbs,
                        std::span<const std::uint32_t> digit_ids, bool accumulate) const {
  const std::size_t limbs = std::reduce(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  require<InvalidArgument>(!terms.empty() && limbs >= 1 && limbs <= acc0.primes.size(),
                           "an outer sum needs terms, and the first primes of its results");
  const RingOps& ring = engine().ring();
  const auto level = acc0.primes.first(limbs);
  Scratch scratch(engine(), acc0.batch);
  const View y = scratch.block(level), turned = scratch.block(level);
  const View t0 = scratch.block(acc0.primes), t1 = scratch.block(acc0.primes);
  for (const Turned& x : terms) {
    scale_down(y, x.x1, nullptr);
    ring.automorphism_ntt(turned, y, x.g);
    key_switch(accumulate ? t0 : acc0, accumulate ? t1 : acc1, turned, digit_limbs, x.key,
               digit_ids);
    if (accumulate) ring.add(acc0, acc0, t0), ring.add(acc1, acc1, t1);
    ring.automorphism_ntt(t0, x.x0, x.g);
    ring.add(acc0, acc0, t0);
    accumulate = true;
  }
}

}  // namespace jali::backend
