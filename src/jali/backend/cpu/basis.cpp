// Basis changes: lifts of digits, division between bases.
#include <algorithm>

#include "jali/backend/cpu/digits.h"
#include "jali/backend/cpu/local_array.h"
#include "jali/backend/cpu/rlwe.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

/// Product of the primes of a set but one, mod the modulus.
template <class Values>
std::uint64_t product_mod(const Values& primes, std::size_t skip, const arith::Modulus& mod) {
  std::uint64_t product = 1;
  for (std::size_t k = 0; k < primes.size(); ++k) {
    if (k != skip) product = mod.mul(product, mod.reduce(primes[k]));
  }
  return product;
}

/// The value in a cache under a key, made if it is missing.
template <class Map, class Key, class Make>
typename Map::mapped_type cached(ForkSafe<std::shared_mutex>& mutex, Map& map, const Key& key,
                                 const Make& make) {
  {
    const std::shared_lock lock(mutex);
    if (const auto it = map.find(key); it != map.end()) return it->second;
  }
  auto value = make();
  const std::unique_lock lock(mutex);
  return map.emplace(key, std::move(value)).first->second;
}

}  // namespace

std::shared_ptr<const Lift> CpuRlwe::lift(std::span<const PrimeIndex> digit) const {
  const PrimeSet key(digit.begin(), digit.end());
  return cached(cache_mutex_, lifts_, key, [&] {
    auto lift = std::make_shared<Lift>();
    std::vector<std::uint64_t> q;
    for (const PrimeIndex i : digit) q.push_back(prime(i).row.q);
    for (std::size_t i = 0; i < q.size(); ++i) {
      const PrimeTables& own = prime(digit[i]);
      const std::uint64_t hat = product_mod(q, i, own.mod);
      lift->y_scale.push_back(own.intt_scale(own.mod.inverse(hat)));
      lift->reciprocals.push_back(own.reciprocal);
    }
    lift->factors.resize(primes_.size());
    for (std::size_t p = 0; p < primes_.size(); ++p) {
      const arith::Modulus& mod = primes_[p]->mod;
      for (std::size_t i = 0; i < q.size(); ++i) {
        lift->factors[p].push_back(product_mod(q, i, mod));
      }
      lift->factors[p].push_back(mod.neg(product_mod(q, npos, mod)));
    }
    return lift;
  });
}

std::shared_ptr<const Division> CpuRlwe::division(const PrimeSet& dropped,
                                                  const PrimeSet& added) const {
  return cached(cache_mutex_, divisions_, std::make_pair(dropped, added), [&] {
    auto division = std::make_shared<Division>();
    std::vector<std::uint64_t> d, a;
    for (const PrimeIndex i : dropped) d.push_back(prime(i).row.q);
    for (const PrimeIndex i : added) a.push_back(prime(i).row.q);
    for (std::size_t i = 0; i < d.size(); ++i) {
      const PrimeTables& own = prime(dropped[i]);
      const std::uint64_t hat = product_mod(d, i, own.mod);
      const std::uint64_t all_added = product_mod(a, npos, own.mod);
      division->y_scale.push_back(own.intt_scale(own.mod.mul(all_added, own.mod.inverse(hat))));
      division->reciprocals.push_back(own.reciprocal);
    }
    division->factors.resize(primes_.size());
    division->ratio.resize(primes_.size());
    for (std::size_t p = 0; p < primes_.size(); ++p) {
      if (find(dropped, static_cast<PrimeIndex>(p)) != npos) continue;
      const PrimeTables& own = *primes_[p];
      for (const std::uint64_t q : d) {
        division->factors[p].push_back(own.mod.neg(own.mod.inverse(own.mod.reduce(q))));
      }
      division->factors[p].push_back(1);
      const std::uint64_t inverse_d = own.mod.inverse(product_mod(d, npos, own.mod));
      division->ratio[p] = own.constant(own.mod.mul(product_mod(a, npos, own.mod), inverse_d));
    }
    return division;
  });
}

void CpuRlwe::check_digits(ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  std::size_t sum = 0;
  for (const std::uint32_t count : digit_limbs) {
    require<InvalidArgument>(count >= 1, "a digit needs at least one limb");
    sum += count;
  }
  require<InvalidArgument>(sum == x.primes.size(), "the digits must add up to the limbs of x");
}

CpuRlwe::Digits CpuRlwe::cut(ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  Digits digits;
  digits.limbs = x.primes.size();
  digits.batch = x.batch;
  digits.n = n_;
  digits.row_bytes = row_bytes_;
  for (std::size_t first = 0; const std::uint32_t count : digit_limbs) {
    digits.digits.push_back({first, count, lift(x.primes.subspan(first, count))});
    first += count;
  }
  return digits;
}

void CpuRlwe::mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  check(ext), check(x), check_digits(x, digit_limbs);
  require<InvalidArgument>(ext.batch == x.batch && std::ranges::includes(ext.primes, x.primes),
                           "the lifted digits must have the batch of x and at least its primes");
  Digits digits = cut(x, digit_limbs);
  const auto lease = scratch_.lend(digits.bytes());
  digits.memory = lease.data();
  decompose(digits, x, [](std::size_t, std::size_t, const PrimeTables&) {});

  // Groups of limbs of a lifted digit.
  const std::size_t limbs = ext.primes.size(), rows = lift_rows(),
                    groups = (limbs + rows - 1) / rows;
  pool_.parallel(digits.digits.size() * ext.batch * groups, [&](std::size_t task) {
    const std::size_t j = task / groups / ext.batch, b = task / groups % ext.batch;
    LiftGroup group(rows);
    for (std::size_t t = task % groups * rows; t < std::min(limbs, (task % groups + 1) * rows);
         ++t) {
      const PrimeIndex p = ext.primes[t];
      std::byte* out = row(ext, j * limbs + t, b);
      const std::size_t own = find(x.primes, p);
      if (own != npos && digits.holds(j, own)) {
        std::copy_n(row(x, own, b), row_bytes_, out);
      } else {
        group.add(out, digits.source(j, b, p), prime(p).ntt);
      }
    }
    group.begin(kernels_);
    for (std::size_t i = 0; i < group.count; ++i) {
      kernels_.finish_lift(group.out[i], *group.tables[i]);
    }
  });
}

void CpuRlwe::scale_down(View out, ConstView x, const ConstView* addend) const {
  const Half one[] = {{out, x, addend}};
  divide(one);
}

void CpuRlwe::scale_down_pair(View out0, View out1, ConstView x0, ConstView x1,
                              const ConstView* addend0, const ConstView* addend1) const {
  check_same(out0, out1), check_same(x0, x1);
  check_apart(out0, out1), check_apart(out0, x1), check_apart(out1, x0);
  if (addend1 != nullptr) check_apart(out0, *addend1);
  const Half both[] = {{out0, x0, addend0}, {out1, x1, addend1}};
  divide(both);
}

void CpuRlwe::divide(std::span<const Half> halves) const {
  for (const Half& half : halves) {
    check(half.out), check(half.x);
    check_apart(half.out, half.x);
    if (half.addend != nullptr) check_same(half.out, *half.addend);
    require<InvalidArgument>(half.out.batch == half.x.batch, "scale_down keeps the batch");
  }
  const auto from = halves[0].x.primes, to = halves[0].out.primes;
  PrimeSet dropped, added;
  std::ranges::set_difference(from, to, std::back_inserter(dropped));
  std::ranges::set_difference(to, from, std::back_inserter(added));
  const auto constants = division(dropped, added);

  // Blocks: the batch entries of every half. For each the y rows of the dropped limbs, then all the
  // v rows.
  const std::size_t batch = halves[0].out.batch, blocks = halves.size() * batch;
  const std::size_t count = dropped.size(), y_bytes = blocks * count * row_bytes_;
  // Bases that have no prime in common are those of a message and of a ciphertext, between which
  // encoding and decryption divide: what is kept of the message on the way is wiped.
  const bool secret = count == from.size();
  const auto lend = [&](std::size_t bytes) {
    return secret ? scratch_.lend_secret(bytes) : scratch_.lend(bytes);
  };
  const auto lease = lend(y_bytes + blocks * n_ * sizeof(std::uint16_t));
  const auto y = [&](std::size_t block) { return lease.data() + block * count * row_bytes_; };
  auto* v = reinterpret_cast<std::uint16_t*>(lease.data() + y_bytes);
  pool_.parallel(count * blocks, [&](std::size_t task) {
    const std::size_t i = task / blocks, block = task % blocks;
    const PrimeTables& p = prime(dropped[i]);
    const auto temporary = lend(row_bytes_);
    kernels_.intt_packed(y(block), i, count, temporary.data(),
                         row(halves[block / batch].x, find(from, dropped[i]), block % batch), p.ntt,
                         constants->y_scale[i]);
  });
  pool_.parallel(blocks, [&](std::size_t block) {
    kernels_.round_sum(v + block * n_, y(block), constants->reciprocals.data(), count, n_);
  });
  const std::size_t rows = lift_rows(), groups = (to.size() + rows - 1) / rows;
  pool_.parallel(groups * blocks, [&](std::size_t task) {
    const std::size_t first = task / blocks * rows, last = std::min(first + rows, to.size());
    const std::size_t block = task % blocks, b = block % batch;
    const Half& half = halves[block / batch];
    const auto temporary = lend((last - first) * row_bytes_);
    LiftGroup group(last - first);
    for (std::size_t t = first; t < last; ++t) {
      const LiftSource source{y(block), count, v + block * n_, constants->factors[to[t]].data()};
      group.add(temporary.data() + (t - first) * row_bytes_, source, prime(to[t]).ntt);
    }
    group.begin(kernels_);
    for (std::size_t t = first; t < last; ++t) {
      const std::size_t in = find(from, to[t]);
      kernels_.lift_combine(row(half.out, t, b), group.out[t - first],
                            in == npos ? nullptr : row(half.x, in, b), constants->ratio[to[t]],
                            half.addend == nullptr ? nullptr : row(*half.addend, t, b),
                            prime(to[t]).ntt);
    }
  });
}

}  // namespace jali::backend::cpu
