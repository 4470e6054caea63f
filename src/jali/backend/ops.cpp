// What engines share.
#include "jali/backend/ops.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/device/buffer.h"
#include "jali/random/secret_seed.h"

namespace jali::backend {

namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

Config validated(Config config) {
  require<InvalidArgument>(
      std::has_single_bit(config.n) && config.n >= 1024 && config.n <= (std::size_t{1} << 17), [&] {
        return "the ring degree must be a power of two from 2^10 to 2^17, not " +
               std::to_string(config.n);
      });
  require<InvalidArgument>(config.threads >= 1 && config.threads <= kMaxThreads, [&] {
    return "threads must be from 1 to " + std::to_string(kMaxThreads) + ", not " +
           std::to_string(config.threads);
  });
  require<InvalidArgument>(config.primes.size() < 65536, "there can be at most 65535 primes");
  const int bits = word_prime_bits(config.word);
  std::set<std::uint64_t> seen;
  for (const std::uint64_t q : config.primes) {
    require<InvalidArgument>(q >> bits == 0, [&] {
      return "the prime " + std::to_string(q) + " is too large: word " +
             std::string(word_name(config.word)) + " takes primes below 2^" + std::to_string(bits);
    });
    require<InvalidArgument>(q % (2 * config.n) == 1 && q > 1, [&] {
      return "the prime " + std::to_string(q) +
             " is not 1 modulo 2N = " + std::to_string(2 * config.n) +
             ": choose primes for this ring degree";
    });
    require<InvalidArgument>(arith::is_prime(q),
                             [&] { return std::to_string(q) + " is not a prime"; });
    require<InvalidArgument>(seen.insert(q).second,
                             [&] { return "the prime " + std::to_string(q) + " is given twice"; });
  }
  return config;
}

void Ops::key_switch_joined(View acc0, View acc1, ConstView x,
                            std::span<const std::uint32_t> digit_limbs, KeyView key,
                            std::span<const std::uint32_t> digit_ids, const Joined& joined) const {
  const std::size_t limbs = x.primes.size();
  require<InvalidArgument>(
      limbs <= acc0.primes.size() && std::ranges::equal(x.primes, acc0.primes.first(limbs)),
      "what joins a key switch needs the first primes of the accumulators");
  key_switch(acc0, acc1, x, digit_limbs, key, digit_ids);
  const auto own = acc0.primes.first(limbs);
  mul_scalar_add({acc0.data, own, acc0.batch}, joined.c0, joined.s);
  mul_scalar_add({acc1.data, own, acc1.batch}, joined.c1, joined.s);
}

void Ops::combine_key_switch(View acc0, View acc1, const Combination& c,
                             std::span<const std::uint64_t> s,
                             std::span<const std::uint32_t> digit_limbs, KeyView key,
                             std::span<const std::uint32_t> digit_ids) const {
  const auto primes = own_primes(acc0, digit_limbs);
  const std::size_t bytes = primes.size() * acc0.batch * config().n * word_bytes(config().word);
  const auto pool = this->pool();
  auto m0 = pool->allocate(bytes), m1 = pool->allocate(bytes), m2 = pool->allocate(bytes);
  const View d0{m0.data(), primes, acc0.batch}, d1{m1.data(), primes, acc0.batch},
      d2{m2.data(), primes, acc0.batch};
  combine(d0, d1, d2, c);
  key_switch_joined(acc0, acc1, d2, digit_limbs, key, digit_ids, {d0, d1, s});
}

void Ops::tensor_key_switch(View acc0, View acc1, ConstView a0, ConstView a1, ConstView b0,
                            ConstView b1, std::span<const std::uint64_t> s,
                            std::span<const std::uint32_t> digit_limbs, KeyView key,
                            std::span<const std::uint32_t> digit_ids) const {
  const Combination::Product product{a0, a1, b0, b1};
  combine_key_switch(acc0, acc1, {{&product, 1}}, s, digit_limbs, key, digit_ids);
}

std::span<const PrimeIndex> own_primes(ConstView acc, std::span<const std::uint32_t> digit_limbs) {
  const auto limbs = std::accumulate(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  require<InvalidArgument>(limbs <= acc.primes.size(),
                           "the digits of a key switch have more limbs than its result");
  return acc.primes.first(limbs);
}

void Ops::rotated_sums(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
                       std::span<const std::uint64_t> s, std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const auto primes = sums[0].out0.primes;
  const std::size_t batch = sums[0].out0.batch;
  const std::size_t limb_bytes = batch * config().n * word_bytes(config().word);
  const auto pool = this->pool();
  std::vector<device::Buffer> blocks;
  const auto block = [&](std::span<const PrimeIndex> of) {
    blocks.push_back(pool->allocate(std::max<std::size_t>(1, of.size()) * limb_bytes));
    return View{blocks.back().data(), of, batch};
  };
  std::vector<ConstView> a0, a1;
  for (const Rotated& x : operands) {
    const auto own = x.c0.primes;
    require<InvalidArgument>(
        own.size() <= primes.size() && std::ranges::equal(own, primes.first(own.size())),
        "what is rotated needs the first primes of the sums");
    const View r0 = block(primes), r1 = block(primes);
    if (x.g == 1) {
      for (const auto& [r, c] : {std::pair(r0, x.c0), std::pair(r1, x.c1)}) {
        mul_scalar({r.data, own, batch}, c, s);
        const std::size_t done = own.size() * limb_bytes;
        memory()->fill(static_cast<std::byte*>(r.data) + done, 0,
                       primes.size() * limb_bytes - done);
      }
    } else {
      const View turned = block(own);
      key_product(r0, r1, x.ext, x.key, digit_ids, x.g, false);
      automorphism_ntt(turned, x.c0, x.g);
      mul_scalar_add({r0.data, own, batch}, turned, s);
    }
    a0.push_back(r0);
    a1.push_back(r1);
  }
  weighted_sums(a0, a1, sums);
}

void Ops::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                    std::span<const std::uint32_t> digit_limbs,
                    std::span<const std::uint32_t> digit_ids, bool accumulate) const {
  const std::size_t limbs = std::reduce(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  require<InvalidArgument>(!terms.empty() && limbs >= 1 && limbs <= acc0.primes.size(),
                           "an outer sum needs terms, and the first primes of its results");
  const auto level = acc0.primes.first(limbs);
  const std::size_t limb_bytes = acc0.batch * config().n * word_bytes(config().word);
  const auto pool = this->pool();
  std::vector<device::Buffer> blocks;
  const auto block = [&](std::span<const PrimeIndex> of) {
    blocks.push_back(pool->allocate(of.size() * limb_bytes));
    return View{blocks.back().data(), of, acc0.batch};
  };
  const View y = block(level), turned = block(level);
  const View t0 = block(acc0.primes), t1 = block(acc0.primes);
  for (const Turned& x : terms) {
    scale_down(y, x.x1, nullptr);
    automorphism_ntt(turned, y, x.g);
    key_switch(accumulate ? t0 : acc0, accumulate ? t1 : acc1, turned, digit_limbs, x.key,
               digit_ids);
    if (accumulate) add(acc0, acc0, t0), add(acc1, acc1, t1);
    automorphism_ntt(t0, x.x0, x.g);
    add(acc0, acc0, t0);
    accumulate = true;
  }
}

void Ops::embed(View out, const Embedding& embedding, std::span<const Complex> values,
                int log_slots, double factor) const {
  const auto c = backend::embed(embedding, values, out.batch, config().n, log_slots, factor);
  from_int64(out, SecretVector<std::int64_t>(c.begin(), c.end()));
}

void Ops::unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x, int log_slots,
                  double divisor) const {
  const std::size_t count = x.batch * config().n;
  std::vector<std::uint64_t> primes;
  for (const PrimeIndex i : x.primes) primes.push_back(config().primes[i]);
  const auto q_words = product_words(primes);
  SecretVector<std::uint64_t> integers(q_words.size() * count);
  icrt(integers, q_words.size(), x, IcrtMethod::garner);
  backend::unembed(embedding, centred_doubles(integers, count, q_words, divisor), x.batch,
                   config().n, log_slots, slots);
}

void Ops::sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                       std::uint64_t stream) const {
  const random::SecretSeed key(seed);
  random::Prng prng(key.bytes(), stream);
  SecretVector<std::int64_t> values(out.batch * config().n);
  if (kind == Small::ternary) {
    random::sample_ternary(prng, values);
  } else {
    random::sample_error(prng, values);
  }
  from_int64(out, values);
}

void Ops::sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                        std::uint64_t stream) const {
  const random::SecretSeed key(seed);
  const std::size_t n = config().n;
  SecretVector<std::int64_t> values(out.batch * n);
  for (std::size_t b = 0; b < out.batch; ++b) {
    random::Prng prng(key.bytes(), stream + b);
    random::sample_sparse_ternary(prng, weight, std::span(values).subspan(b * n, n));
  }
  from_int64(out, values);
}

void Ops::rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1,
                 std::uint64_t g, std::span<const std::uint32_t> digit_limbs, KeyView key,
                 std::span<const std::uint32_t> digit_ids) const {
  automorphism_ntt(out1, c1, g);
  key_switch(acc0, acc1, out1, digit_limbs, key, digit_ids);
  automorphism_ntt(out0, c0, g);
  const ConstView turned = out0;
  scale_down_pair(out0, out1, acc0, acc1, &turned, nullptr);
}

void Ops::sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                         std::uint32_t index) const {
  random::Seed key;
  std::copy(seed.begin(), seed.end(), key.begin());
  const std::size_t n = config().n;
  const std::size_t row_bytes = n * word_bytes(config().word);
  auto* row = static_cast<std::byte*>(out.data);
  for (const PrimeIndex prime : out.primes) {
    for (std::size_t b = 0; b < out.batch; ++b, row += row_bytes) {
      random::Prng prng(key, (std::uint64_t{index} + b) << 16 | prime);
      const std::uint64_t q = config().primes[prime];
      if (config().word == Word::w32) {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint32_t*>(row), n));
      } else {
        random::sample_uniform(prng, q, std::span(reinterpret_cast<std::uint64_t*>(row), n));
      }
    }
  }
}

}  // namespace jali::backend
