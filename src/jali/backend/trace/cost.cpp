#include "jali/backend/trace/cost.h"

#include <bit>

namespace jali::backend::cost {

using u64 = std::uint64_t;

u64 ntt(std::size_t n) { return n / 2 * static_cast<u64>(std::countr_zero(n)); }

u64 intt(std::size_t n) { return n / 2 * static_cast<u64>(std::countr_zero(n) + 1); }

u64 lift(std::size_t n, std::size_t from, std::size_t to) {
  return n * (from + from * to + to) + to * ntt(n);
}

u64 mod_up(std::size_t n, std::span<const std::uint32_t> digit_limbs, std::size_t ext_limbs) {
  u64 sum = 0;
  for (const std::uint32_t limbs : digit_limbs) {
    sum += limbs * intt(n);
    if (ext_limbs > limbs) sum += lift(n, limbs, ext_limbs - limbs);
  }
  return sum;
}

u64 key_product(std::size_t n, std::size_t digits, std::size_t limbs) {
  return 2 * digits * limbs * n;
}

u64 scale_down(std::size_t n, std::size_t dropped, std::size_t kept, std::size_t added) {
  if (dropped == 0) return added == 0 ? 0 : kept * n;
  return dropped * intt(n) + lift(n, dropped, kept + added) + kept * n;
}

u64 crt(std::size_t n, std::size_t limbs, std::size_t words) { return limbs * words * n; }

u64 icrt_product_sum(std::size_t n, std::size_t limbs, std::size_t words) {
  return limbs * (1 + words) * n;
}

u64 icrt_garner(std::size_t n, std::size_t limbs, std::size_t words) {
  return (limbs * (limbs - 1) / 2 + limbs * words) * n;
}

u64 embedding(std::size_t slots) { return slots / 2 * static_cast<u64>(std::countr_zero(slots)); }

namespace {
u64 levels(const Gadget& gadget) { return static_cast<u64>(gadget.levels); }
}  // namespace

u64 rotation_butterflies(const TfheConfig& config) {
  const u64 transforms = (config.k.value + 1) * (levels(config.rotation_gadget) + 1);
  return config.steps() * transforms * embedding(config.N.value / 2);
}

u64 rotation_products(const TfheConfig& config) {
  const u64 row = (config.k.value + 1) * config.N.value / 2, units = config.units();
  const u64 product = levels(config.rotation_gadget) * (config.k.value + 1) * row;
  switch (config.rotation) {
    case Rotation::classic: return config.steps() * product;
    case Rotation::multi_bit: return config.steps() * (units + 1) * product;
    case Rotation::block_binary: return config.steps() * units * (product + row);
  }
  return 0;
}

u64 lwe_key_switch(const TfheConfig& config) {
  return config.large().value * levels(config.switch_gadget) * (config.n.value + 1);
}

u64 packing(const TfheConfig& config, LweDimension d) {
  return d.value * levels(config.rotation_gadget) * (config.k.value + 1) * config.N.value;
}

u64 uniform_bytes(std::size_t count, u64 q) { return count * (q >> 32 == 0 ? 4 : 8); }
u64 ternary_bytes(std::size_t count) { return count; }
u64 error_bytes(std::size_t count) { return 8 * count; }

}  // namespace jali::backend::cost
