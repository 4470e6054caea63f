// Products with switching keys: of digits that mod_up has lifted, of digits that are lifted here,
// and of rotations in sums.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "jali/backend/cpu/digits.h"
#include "jali/backend/cpu/local_array.h"
#include "jali/backend/cpu/rlwe.h"
#include "jali/backend/engine.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {

void CpuRlwe::check_key(ConstView ext, KeyView key, std::span<const std::uint32_t> ids) const {
  require<InvalidArgument>(key.data != nullptr && !ids.empty(), "a switching key is needed");
  for (const std::uint32_t id : ids) {
    require<InvalidArgument>(id < key.digits, "the key has fewer digits than the product needs");
  }
  require<InvalidArgument>(!ext.primes.empty(), "a key product needs at least one prime");
  require<InvalidArgument>(std::ranges::includes(key.primes, ext.primes),
                           "the key lacks a prime that the product needs");
}

void CpuRlwe::key_product(View acc0, View acc1, ConstView ext, KeyView key,
                          std::span<const std::uint32_t> digit_ids, std::uint64_t g,
                          bool accumulate) const {
  check(acc0), check_same(acc0, acc1), check_same(acc0, ext), check_key(ext, key, digit_ids);
  check_apart(acc0, ext), check_apart(acc1, ext), check_apart(acc0, acc1);
  require<InvalidArgument>(g % 2 == 1, "an automorphism X -> X^g needs an odd g");
  const std::size_t block = ext.primes.size() * ext.batch * row_bytes_;
  for_rows(acc0, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const std::size_t count = digit_ids.size(), position = find(key.primes, acc0.primes[i]);
    LocalArray<const void*, 48> rows(3 * count);
    for (std::size_t j = 0; j < count; ++j) {
      rows[j] = row(ext, i, b) + j * block;
      rows[count + j] = key_row(key, digit_ids[j], 0, position);
      rows[2 * count + j] = key_row(key, digit_ids[j], 1, position);
    }
    kernels_.key_dot(row(acc0, i, b), row(acc1, i, b), rows.data(), rows.data() + count,
                     rows.data() + 2 * count, count, accumulate, g % (2 * n_), rev_.data(), n_,
                     p.row);
  });
}

void CpuRlwe::rotated_sums(std::span<const Rotated> operands,
                           std::span<const std::uint32_t> digit_ids,
                           std::span<const std::uint64_t> s,
                           std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const View shape = sums[0].out0;
  const std::size_t count = operands.size(), digits = digit_ids.size(), limbs = s.size();
  check(shape), check_sums(shape, sums, count);
  require<InvalidArgument>(limbs <= shape.primes.size(),
                           "a rotated operand must have the first primes of the sums");
  const ConstView own{shape.data, shape.primes.first(limbs), shape.batch};
  check_scalars(own, s);
  const auto turns = scratch_.lend(count * kernels_.turn_bytes);
  for (std::size_t k = 0; k < count; ++k) {
    const Rotated& x = operands[k];
    check_same(own, x.c0);
    require<InvalidArgument>(x.g % 2 == 1, "an automorphism X -> X^g needs an odd g");
    if (x.g == 1) {
      check_same(own, x.c1);
    } else {
      check_same(shape, x.ext), check_key(shape, x.key, digit_ids);
      kernels_.make_turn(turns.data() + k * kernels_.turn_bytes, x.g % (2 * n_), rev_.data(), n_);
    }
  }
  // Pieces of all rotations stay in the second-level cache until the last sum has read them.
  constexpr std::size_t kCacheBytes = std::size_t{1} << 17;
  const std::size_t word = row_bytes_ / n_;
  std::size_t piece = n_, terms = 0;
  while (piece > 128 && 2 * count * piece * word > kCacheBytes) piece /= 2;
  for (const WeightedSum& sum : sums) terms += sum.b.size();
  for_rows(shape, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const auto temporary = scratch_.lend(2 * count * piece * word);
    std::vector<RowRotation> rotations(count);
    std::vector<const void*> rows(3 * count * digits + terms);
    const void** at = rows.data();
    for (std::size_t k = 0; k < count; ++k) {
      const Rotated& x = operands[k];
      RowRotation& r = rotations[k];
      if (i < limbs) r.c0 = row(x.c0, i, b);
      if (x.g == 1) {
        if (i < limbs) r.c1 = row(x.c1, i, b);
        continue;
      }
      r.turn = turns.data() + k * kernels_.turn_bytes;
      r.ext = at, r.key0 = at + digits, r.key1 = at + 2 * digits;
      const std::size_t position = find(x.key.primes, shape.primes[i]);
      for (std::size_t j = 0; j < digits; ++j, ++at) {
        at[0] = row(x.ext, j * shape.primes.size() + i, b);
        at[digits] = key_row(x.key, digit_ids[j], 0, position);
        at[2 * digits] = key_row(x.key, digit_ids[j], 1, position);
      }
      at += 2 * digits;
    }
    std::vector<RowSum> weighed;
    for (const WeightedSum& sum : sums) {
      weighed.push_back({row(sum.out0, i, b), row(sum.out1, i, b), at, sum.operands.data(),
                         sum.b.size(), sum.accumulate});
      for (const ConstView& v : sum.b) *at++ = row(v, i, b);
    }
    kernels_.rotated_sums(rotations.data(), count, digits, i < limbs ? s[i] : 0, weighed.data(),
                          weighed.size(), temporary.data(), piece, n_, p.row);
  });
}

void CpuRlwe::key_switch(View acc0, View acc1, ConstView x,
                         std::span<const std::uint32_t> digit_limbs, KeyView key,
                         std::span<const std::uint32_t> digit_ids) const {
  check(x), check_apart(acc0, x), check_apart(acc1, x);
  switch_key(acc0, acc1, {const_cast<void*>(x.data), x.primes, x.batch}, digit_limbs, key,
             digit_ids, {});
}

void CpuRlwe::key_switch_add(View acc0, View acc1, ConstView x,
                             std::span<const std::uint32_t> digit_limbs, KeyView key,
                             std::span<const std::uint32_t> digit_ids,
                             const ScaledAddend& addend) const {
  check(x), check_apart(acc0, x), check_apart(acc1, x);
  const View switched{const_cast<void*>(x.data), x.primes, x.batch};
  for (const ConstView& c : {addend.c0, addend.c1}) {
    check_same(switched, c), check_apart(acc0, c), check_apart(acc1, c);
  }
  check_scalars(switched, addend.s);
  switch_key(acc0, acc1, switched, digit_limbs, key, digit_ids,
             {addend.c0, addend.c1, nullptr, addend.s});
}

void CpuRlwe::combine_key_switch(View acc0, View acc1, const Combination& c,
                                 std::span<const std::uint64_t> s,
                                 std::span<const std::uint32_t> digit_limbs, KeyView key,
                                 std::span<const std::uint32_t> digit_ids) const {
  if (c.products.size() != 1 || c.multiples.size() > 1) {  // operands are better read once
    return RlweOps::combine_key_switch(acc0, acc1, c, s, digit_limbs, key, digit_ids);
  }
  const auto primes = own_primes(acc0, digit_limbs);
  const auto lease = scratch_.lend(primes.size() * acc0.batch * row_bytes_);
  const View d2{lease.data(), primes, acc0.batch};
  check_terms(d2, c), check_scalars(d2, s);
  const auto& p = c.products[0];
  for (const ConstView& in : {p.a0, p.a1, p.b0, p.b1}) check_apart(acc0, in), check_apart(acc1, in);
  for (const auto& m : c.multiples) {
    for (const ConstView& in : {m.x0, m.x1}) check_apart(acc0, in), check_apart(acc1, in);
  }
  switch_key(acc0, acc1, d2, digit_limbs, key, digit_ids, {{}, {}, &c, s});
}

RowAddend CpuRlwe::row_addend(const Addend& addend, PrimeIndex p, std::size_t own,
                              std::size_t b) const {
  RowAddend out;
  out.s = addend.s[own];
  if (addend.c == nullptr) {
    out.a0 = row(addend.c0, own, b), out.a1 = row(addend.c1, own, b);
    return out;
  }
  const auto& product = addend.c->products[0];
  const arith::Modulus& mod = prime(p).mod;
  out.a0 = row_of(product.a0, p, b), out.a1 = row_of(product.a1, p, b);
  out.b0 = row_of(product.b0, p, b), out.b1 = row_of(product.b1, p, b);
  if (product.twice) out.s = mod.add(out.s, out.s);
  for (const auto& m : addend.c->multiples) {
    out.x0 = row_of(m.x0, p, b), out.x1 = row_of(m.x1, p, b);
    out.x_scalar = mod.mul(m.s[own], addend.s[own]);
  }
  if (!addend.c->constant.empty()) out.constant = mod.mul(addend.c->constant[own], addend.s[own]);
  return out;
}

void CpuRlwe::switch_key(View acc0, View acc1, View x, std::span<const std::uint32_t> digit_limbs,
                         KeyView key, std::span<const std::uint32_t> digit_ids,
                         const Addend& addend) const {
  check(acc0), check_same(acc0, acc1), check_digits(x, digit_limbs);
  check_key(acc0, key, digit_ids), check_apart(acc0, acc1);
  require<InvalidArgument>(digit_ids.size() == digit_limbs.size(),
                           "each digit of x needs one digit of the key");
  require<InvalidArgument>(acc0.batch == x.batch && std::ranges::includes(acc0.primes, x.primes),
                           "the results must have the batch of x and at least its primes");
  const std::size_t limbs = x.primes.size();
  require<InvalidArgument>(
      addend.s.empty() || std::ranges::equal(x.primes, acc0.primes.first(limbs)),
      "the addend of a key switch must have the first primes of the accumulators");
  Digits digits = cut(x, digit_limbs);
  const auto lease = scratch_.lend(digits.bytes());
  digits.memory = lease.data();
  decompose(digits, x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    if (addend.c == nullptr) return;
    const auto& product = addend.c->products[0];
    const void* const a1 = row_of(product.a1, x.primes[i], b);
    const void* const b1 = row_of(product.b1, x.primes[i], b);
    const void *const left[] = {a1, a1}, *const right[] = {b1, b1};
    kernels_.dot(row(x, i, b), left, right, product.twice ? 2 : 1, nullptr, n_, p.row);
  });

  // Adds the digits [first, last) of a few rows into their out0 and out1, some digits of all rows
  // at a time. The second- level cache holds the rows that are lifted from them, so that the digits
  // are read from memory once.
  struct Target {
    std::size_t t, b;
    void *out0, *out1;
  };
  const std::size_t at_once = std::max<std::size_t>(2, (std::size_t{256} << 10) / row_bytes_);
  const auto sum = [&](std::span<const Target> targets, std::size_t first, std::size_t last) {
    const std::size_t most = std::min(at_once, last - first);
    const auto temporary = scratch_.lend(targets.size() * most * row_bytes_);
    const auto begun = [&](std::size_t r, std::size_t i) {
      return temporary.data() + (r * most + i) * row_bytes_;
    };
    const auto is_own = [&](std::size_t own, std::size_t j) {
      return own != npos && digits.holds(j, own);
    };
    for (std::size_t at = first; at < last; at += most) {
      const std::size_t count = std::min(most, last - at);
      for (std::size_t i = 0; i < count; ++i) {
        LiftGroup group(targets.size());
        for (std::size_t r = 0; r < targets.size(); ++r) {
          const PrimeIndex p = acc0.primes[targets[r].t];
          if (is_own(find(x.primes, p), at + i)) continue;
          group.add(begun(r, i), digits.source(at + i, targets[r].b, p), prime(p).ntt);
        }
        group.begin(kernels_);
      }
      for (std::size_t r = 0; r < targets.size(); ++r) {
        const auto [t, b, out0, out1] = targets[r];
        const PrimeIndex p = acc0.primes[t];
        const std::size_t own = find(x.primes, p), position = find(key.primes, p);
        LocalArray<void*, 16> lifted(count);
        LocalArray<const void*, 48> rows(3 * count);
        for (std::size_t i = 0; i < count; ++i) {
          lifted[i] = begun(r, i);
          if (is_own(own, at + i)) rows[i] = row(x, own, b);
          rows[count + i] = key_row(key, digit_ids[at + i], 0, position);
          rows[2 * count + i] = key_row(key, digit_ids[at + i], 1, position);
        }
        RowAddend own_addend;
        if (at == 0 && own != npos && !addend.s.empty()) own_addend = row_addend(addend, p, own, b);
        kernels_.lift_key_dot(out0, out1, lifted.data(), rows.data(), rows.data() + count,
                              rows.data() + 2 * count, count, own_addend,
                              at != first || (at == 0 && addend.accumulate), prime(p).ntt);
      }
    }
  };

  // The rows that the threads cannot share evenly are cut into pieces by digits; pieces but the
  // first go to memory of their own and are added at the end. The others go in equal groups.
  const std::size_t count = digit_ids.size(), batch = acc0.batch;
  const std::size_t rows = acc0.primes.size() * batch;
  const auto threads = static_cast<std::size_t>(config_.threads);
  const std::size_t uneven = rows % threads, whole = rows - uneven, share = whole / threads;
  const std::size_t pieces = uneven == 0 ? 1 : std::min(count, threads / uneven);
  const std::size_t groups = threads * ((share + lift_rows() - 1) / lift_rows());
  const auto partial = scratch_.lend(2 * uneven * (pieces - 1) * row_bytes_);
  const auto part = [&](std::size_t i, std::size_t piece, std::size_t c) {
    return partial.data() + ((i * (pieces - 1) + piece - 1) * 2 + c) * row_bytes_;
  };
  const auto target = [&](std::size_t r) -> Target {
    const std::size_t t = r / batch, b = r % batch;
    return {t, b, row(acc0, t, b), row(acc1, t, b)};
  };
  pool_.parallel(groups + uneven * pieces, [&](std::size_t task) {
    if (task < groups) {
      const std::size_t first = task * whole / groups, last = (task + 1) * whole / groups;
      LocalArray<Target, 16> targets(last - first);
      for (std::size_t r = first; r < last; ++r) targets[r - first] = target(r);
      return sum({targets.data(), last - first}, 0, count);
    }
    const std::size_t i = (task - groups) / pieces, piece = (task - groups) % pieces;
    Target one = target(whole + i);
    if (piece > 0) one.out0 = part(i, piece, 0), one.out1 = part(i, piece, 1);
    sum({&one, 1}, piece * count / pieces, (piece + 1) * count / pieces);
  });
  if (pieces == 1) return;
  pool_.parallel(2 * uneven, [&](std::size_t task) {
    const std::size_t i = task / 2, t = (whole + i) / batch, b = (whole + i) % batch;
    std::byte* out = row(task % 2 == 0 ? acc0 : acc1, t, b);
    for (std::size_t piece = 1; piece < pieces; ++piece) {
      kernels_.add(out, out, part(i, piece, task % 2), n_, prime(acc0.primes[t]).row);
    }
  });
}

void CpuRlwe::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                        std::span<const std::uint32_t> digit_limbs,
                        std::span<const std::uint32_t> digit_ids, bool accumulate) const {
  const std::size_t limbs = std::reduce(digit_limbs.begin(), digit_limbs.end(), std::size_t{0});
  check(acc0), check_same(acc0, acc1), check_apart(acc0, acc1);
  require<InvalidArgument>(!terms.empty() && limbs >= 1 && limbs <= acc0.primes.size(),
                           "an outer sum needs terms, and the first primes of its results");
  const auto level = acc0.primes.first(limbs);
  const auto memory = scratch_.lend(2 * limbs * acc0.batch * row_bytes_);
  const View y{memory.data(), level, acc0.batch},
      turned{memory.data() + limbs * acc0.batch * row_bytes_, level, acc0.batch};
  for (const Turned& x : terms) {
    for (const ConstView& v : {x.x0, x.x1}) {
      check_same(acc0, v), check_apart(acc0, v), check_apart(acc1, v);
    }
    require<InvalidArgument>(x.g % 2 == 1, "an automorphism X -> X^g needs an odd g");
    scale_down(y, x.x1, nullptr);
    for_rows(acc0, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
      const auto lease = scratch_.lend(row_bytes_);
      void* to = accumulate ? lease.data() : row(acc0, i, b);
      kernels_.automorphism(to, row(x.x0, i, b), x.g % (2 * n_), rev_.data(), n_);
      if (accumulate) {
        kernels_.add(row(acc0, i, b), row(acc0, i, b), to, n_, p.row);
      } else {
        std::memset(row(acc1, i, b), 0, row_bytes_);
      }
    });
    engine().ring().automorphism_ntt(turned, y, x.g);
    Addend addend;
    addend.accumulate = true;
    switch_key(acc0, acc1, turned, digit_limbs, x.key, digit_ids, addend);
    accumulate = true;
  }
}

}  // namespace jali::backend::cpu
