// Basis changes: lifts of digits, key switching, division between bases.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "jali/backend/cpu/cpu_ops.h"
#include "jali/backend/cpu/local_array.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

constexpr std::size_t npos = static_cast<std::size_t>(-1);

/// Position of p among ascending primes, or npos.
std::size_t find(std::span<const PrimeIndex> primes, PrimeIndex p) {
  const auto it = std::lower_bound(primes.begin(), primes.end(), p);
  return it != primes.end() && *it == p ? static_cast<std::size_t>(it - primes.begin()) : npos;
}

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
typename Map::mapped_type cached(std::shared_mutex& mutex, Map& map, const Key& key,
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

/// The decomposition of a block into digits, in working memory: for each batch entry the y rows of
/// all limbs and the v row (16-bit numbers) of every digit.
struct CpuOps::Digits {
  struct Digit {
    std::size_t first = 0;  // limb of x
    std::size_t count = 0;
    std::shared_ptr<const Lift> lift;
  };
  std::vector<Digit> digits;
  std::size_t limbs = 0, batch = 0, n = 0, row_bytes = 0;
  std::byte* memory = nullptr;
  std::vector<const void*> y_rows;  // (batch, limb)

  std::size_t y_bytes() const { return batch * limbs * row_bytes; }
  std::size_t bytes() const {
    return y_bytes() + batch * digits.size() * n * sizeof(std::uint16_t);
  }
  void place(std::byte* at) {
    memory = at;
    for (std::size_t i = 0; i < batch * limbs; ++i) y_rows.push_back(at + i * row_bytes);
  }
  std::byte* y(std::size_t limb, std::size_t b) const {
    return memory + (b * limbs + limb) * row_bytes;
  }
  std::uint16_t* v(std::size_t j, std::size_t b) const {
    return reinterpret_cast<std::uint16_t*>(memory + y_bytes()) + (b * digits.size() + j) * n;
  }
  const void* const* rows(std::size_t j, std::size_t b) const {
    return y_rows.data() + b * limbs + digits[j].first;
  }
  /// The lift of digit j to the prime p.
  LiftSource source(std::size_t j, std::size_t b, PrimeIndex p) const {
    return {rows(j, b), digits[j].count, v(j, b), digits[j].lift->factors[p].data()};
  }
};

std::shared_ptr<const Lift> CpuOps::lift(std::span<const PrimeIndex> digit) const {
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

std::shared_ptr<const Division> CpuOps::division(const PrimeSet& dropped,
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

void CpuOps::check_digits(ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  std::size_t sum = 0;
  for (const std::uint32_t count : digit_limbs) {
    require<InvalidArgument>(count >= 1, "a digit needs at least one limb");
    sum += count;
  }
  require<InvalidArgument>(sum == x.primes.size(), "the digits must add up to the limbs of x");
}

void CpuOps::check_key(ConstView ext, KeyView key, std::span<const std::uint32_t> ids) const {
  require<InvalidArgument>(key.data != nullptr && !ids.empty(), "a switching key is needed");
  for (const std::uint32_t id : ids) {
    require<InvalidArgument>(id < key.digits, "the key has fewer digits than the product needs");
  }
  require<InvalidArgument>(!ext.primes.empty(), "a key product needs at least one prime");
  require<InvalidArgument>(std::ranges::includes(key.primes, ext.primes),
                           "the key lacks a prime that the product needs");
}

CpuOps::Digits CpuOps::cut(ConstView x, std::span<const std::uint32_t> digit_limbs) const {
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

template <class MakeRow>
void CpuOps::decompose(const Digits& digits, ConstView x, const MakeRow& make_row) const {
  std::vector<std::size_t> digit_of;
  for (std::size_t j = 0; j < digits.digits.size(); ++j) {
    digit_of.insert(digit_of.end(), digits.digits[j].count, j);
  }
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const Digits::Digit& digit = digits.digits[digit_of[i]];
    make_row(i, b, p);
    kernels_.intt(digits.y(i, b), row(x, i, b), p.ntt, digit.lift->y_scale[i - digit.first]);
  });
  pool_.parallel(digits.digits.size() * x.batch, [&](std::size_t task) {
    const std::size_t j = task / x.batch, b = task % x.batch;
    const Digits::Digit& digit = digits.digits[j];
    kernels_.round_sum(digits.v(j, b), digits.rows(j, b), digit.lift->reciprocals.data(),
                       digit.count, n_);
  });
}

void CpuOps::mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const {
  check(ext), check(x), check_digits(x, digit_limbs);
  require<InvalidArgument>(ext.batch == x.batch && std::ranges::includes(ext.primes, x.primes),
                           "the lifted digits must have the batch of x and at least its primes");
  Digits digits = cut(x, digit_limbs);
  const auto lease = scratch_.lend(digits.bytes());
  digits.place(lease.data());
  decompose(digits, x, [](std::size_t, std::size_t, const PrimeTables&) {});

  const std::size_t block = ext.primes.size() * ext.batch;
  pool_.parallel(digits.digits.size() * block, [&](std::size_t task) {
    const std::size_t j = task / block, t = task % block / ext.batch, b = task % ext.batch;
    std::byte* out = static_cast<std::byte*>(ext.data) + task * row_bytes_;
    const PrimeIndex p = ext.primes[t];
    const std::size_t own = find(x.primes, p);
    const Digits::Digit& digit = digits.digits[j];
    if (own != npos && own >= digit.first && own < digit.first + digit.count) {
      const std::byte* from = row(x, own, b);
      std::copy_n(from, row_bytes_, out);
    } else {
      kernels_.lift(out, digits.source(j, b, p), prime(p).ntt);
    }
  });
}

void CpuOps::key_product(View acc0, View acc1, ConstView ext, KeyView key,
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

void CpuOps::rotated_sums(std::span<const Rotated> operands,
                          std::span<const std::uint32_t> digit_ids,
                          std::span<const std::uint64_t> s,
                          std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const View shape = sums[0].out0;
  const std::size_t count = operands.size(), digits = digit_ids.size(), limbs = s.size();
  check(shape), check_sums(shape, sums, count);
  require<InvalidArgument>(limbs <= shape.primes.size(),
                           "what is rotated needs the first primes of the sums");
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

void CpuOps::key_switch(View acc0, View acc1, ConstView x,
                        std::span<const std::uint32_t> digit_limbs, KeyView key,
                        std::span<const std::uint32_t> digit_ids) const {
  check(x), check_apart(acc0, x), check_apart(acc1, x);
  switch_key(acc0, acc1, {const_cast<void*>(x.data), x.primes, x.batch}, digit_limbs, key,
             digit_ids, {});
}

void CpuOps::key_switch_joined(View acc0, View acc1, ConstView x,
                               std::span<const std::uint32_t> digit_limbs, KeyView key,
                               std::span<const std::uint32_t> digit_ids,
                               const Joined& joined) const {
  check(x), check_apart(acc0, x), check_apart(acc1, x);
  const View switched{const_cast<void*>(x.data), x.primes, x.batch};
  for (const ConstView& c : {joined.c0, joined.c1}) {
    check_same(switched, c), check_apart(acc0, c), check_apart(acc1, c);
  }
  check_scalars(switched, joined.s);
  switch_key(acc0, acc1, switched, digit_limbs, key, digit_ids,
             {joined.c0, joined.c1, nullptr, joined.s});
}

void CpuOps::combine_key_switch(View acc0, View acc1, const Combination& c,
                                std::span<const std::uint64_t> s,
                                std::span<const std::uint32_t> digit_limbs, KeyView key,
                                std::span<const std::uint32_t> digit_ids) const {
  if (c.products.size() != 1 || c.multiples.size() > 1) {  // read once, written, read again
    return Ops::combine_key_switch(acc0, acc1, c, s, digit_limbs, key, digit_ids);
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

RowJoin CpuOps::joining(const Join& join, PrimeIndex p, std::size_t own, std::size_t b) const {
  RowJoin out;
  out.factor = join.s[own];
  if (join.c == nullptr) {
    out.a0 = row(join.c0, own, b), out.a1 = row(join.c1, own, b);
    return out;
  }
  const auto& product = join.c->products[0];
  const arith::Modulus& mod = prime(p).mod;
  out.a0 = row_of(product.a0, p, b), out.a1 = row_of(product.a1, p, b);
  out.b0 = row_of(product.b0, p, b), out.b1 = row_of(product.b1, p, b);
  if (product.twice) out.factor = mod.add(out.factor, out.factor);
  for (const auto& m : join.c->multiples) {
    out.x0 = row_of(m.x0, p, b), out.x1 = row_of(m.x1, p, b);
    out.x_factor = mod.mul(m.s[own], join.s[own]);
  }
  if (!join.c->constant.empty()) out.constant = mod.mul(join.c->constant[own], join.s[own]);
  return out;
}

void CpuOps::switch_key(View acc0, View acc1, View x, std::span<const std::uint32_t> digit_limbs,
                        KeyView key, std::span<const std::uint32_t> digit_ids,
                        const Join& join) const {
  check(acc0), check_same(acc0, acc1), check_digits(x, digit_limbs);
  check_key(acc0, key, digit_ids), check_apart(acc0, acc1);
  require<InvalidArgument>(digit_ids.size() == digit_limbs.size(),
                           "each digit of x needs one digit of the key");
  require<InvalidArgument>(acc0.batch == x.batch && std::ranges::includes(acc0.primes, x.primes),
                           "the results must have the batch of x and at least its primes");
  const std::size_t limbs = x.primes.size();
  require<InvalidArgument>(join.s.empty() || std::ranges::equal(x.primes, acc0.primes.first(limbs)),
                           "what joins a key switch needs the first primes of the accumulators");
  Digits digits = cut(x, digit_limbs);
  const auto lease = scratch_.lend(digits.bytes());
  digits.place(lease.data());
  decompose(digits, x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    if (join.c == nullptr) return;
    const auto& product = join.c->products[0];
    const void* const a1 = row_of(product.a1, x.primes[i], b);
    const void* const b1 = row_of(product.b1, x.primes[i], b);
    const void *const left[] = {a1, a1}, *const right[] = {b1, b1};
    kernels_.dot(row(x, i, b), left, right, product.twice ? 2 : 1, nullptr, n_, p.row);
  });

  // The digits [first, last) of row (t, b) into out0 and out1.
  const auto sum = [&](std::size_t t, std::size_t b, std::size_t first, std::size_t last,
                       void* out0, void* out1) {
    const PrimeIndex p = acc0.primes[t];
    const std::size_t own = find(x.primes, p), count = last - first;
    const std::size_t position = find(key.primes, p);
    const auto temporary = scratch_.lend(count * row_bytes_);
    LocalArray<LiftSource, 16> sources(count);
    LocalArray<const void*, 48> rows(3 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t j = first + i;
      const Digits::Digit& digit = digits.digits[j];
      if (own != npos && own >= digit.first && own < digit.first + digit.count) {
        rows[i] = row(x, own, b);
      } else {
        sources[i] = digits.source(j, b, p);
      }
      rows[count + i] = key_row(key, digit_ids[j], 0, position);
      rows[2 * count + i] = key_row(key, digit_ids[j], 1, position);
    }
    RowJoin joined;
    if (first == 0 && own != npos && !join.s.empty()) joined = joining(join, p, own, b);
    if (first == 0 && join.accumulate) {
      joined = {};
      joined.a0 = row(acc0, t, b), joined.a1 = row(acc1, t, b), joined.factor = 1;
    }
    kernels_.lift_key_dot(out0, out1, temporary.data(), sources.data(), rows.data(),
                          rows.data() + count, rows.data() + 2 * count, count, joined,
                          prime(p).ntt);
  };

  // The rows that the threads cannot share evenly are cut into pieces by digits; pieces but the first
  // go to memory of their own and are added at the end.
  const std::size_t count = digit_ids.size(), batch = acc0.batch;
  const std::size_t rows = acc0.primes.size() * batch;
  const auto threads = static_cast<std::size_t>(config_.threads);
  const std::size_t uneven = rows % threads, whole = rows - uneven;
  const std::size_t pieces = uneven == 0 ? 1 : std::min(count, threads / uneven);
  const auto partial = scratch_.lend(2 * uneven * (pieces - 1) * row_bytes_);
  const auto part = [&](std::size_t i, std::size_t piece, std::size_t c) {
    return partial.data() + ((i * (pieces - 1) + piece - 1) * 2 + c) * row_bytes_;
  };
  pool_.parallel(whole + uneven * pieces, [&](std::size_t task) {
    const std::size_t i = task < whole ? 0 : (task - whole) / pieces;
    const std::size_t r = task < whole ? task : whole + i;
    const std::size_t t = r / batch, b = r % batch;
    if (task < whole) {
      sum(t, b, 0, count, row(acc0, t, b), row(acc1, t, b));
      return;
    }
    const std::size_t piece = (task - whole) % pieces;
    sum(t, b, piece * count / pieces, (piece + 1) * count / pieces,
        piece == 0 ? row(acc0, t, b) : part(i, piece, 0),
        piece == 0 ? row(acc1, t, b) : part(i, piece, 1));
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

void CpuOps::outer_sum(View acc0, View acc1, std::span<const Turned> terms,
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
    automorphism_ntt(turned, y, x.g);
    Join join;
    join.accumulate = true;
    switch_key(acc0, acc1, turned, digit_limbs, x.key, digit_ids, join);
    accumulate = true;
  }
}

void CpuOps::scale_down(View out, ConstView x, const ConstView* addend) const {
  const Half one[] = {{out, x, addend}};
  divide(one);
}

void CpuOps::scale_down_pair(View out0, View out1, ConstView x0, ConstView x1,
                             const ConstView* addend0, const ConstView* addend1) const {
  check_same(out0, out1), check_same(x0, x1);
  check_apart(out0, out1), check_apart(out0, x1), check_apart(out1, x0);
  if (addend1 != nullptr) check_apart(out0, *addend1);
  const Half both[] = {{out0, x0, addend0}, {out1, x1, addend1}};
  divide(both);
}

void CpuOps::divide(std::span<const Half> halves) const {
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
  const auto lease = scratch_.lend(y_bytes + blocks * n_ * sizeof(std::uint16_t));
  std::vector<const void*> rows(blocks * count);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = lease.data() + i * row_bytes_;
  auto* v = reinterpret_cast<std::uint16_t*>(lease.data() + y_bytes);
  pool_.parallel(count * blocks, [&](std::size_t task) {
    const std::size_t i = task / blocks, block = task % blocks;
    const PrimeTables& p = prime(dropped[i]);
    kernels_.intt(lease.data() + (block * count + i) * row_bytes_,
                  row(halves[block / batch].x, find(from, dropped[i]), block % batch), p.ntt,
                  constants->y_scale[i]);
  });
  pool_.parallel(blocks, [&](std::size_t block) {
    kernels_.round_sum(v + block * n_, rows.data() + block * count, constants->reciprocals.data(),
                       count, n_);
  });
  pool_.parallel(to.size() * blocks, [&](std::size_t task) {
    const std::size_t t = task / blocks, block = task % blocks, b = block % batch;
    const Half& half = halves[block / batch];
    const PrimeIndex p = to[t];
    const std::size_t in = find(from, p);
    const LiftSource source{rows.data() + block * count, count, v + block * n_,
                            constants->factors[p].data()};
    const auto temporary = scratch_.lend(row_bytes_);
    kernels_.lift_combine(row(half.out, t, b), temporary.data(), source,
                          in == npos ? nullptr : row(half.x, in, b), constants->ratio[p],
                          half.addend == nullptr ? nullptr : row(*half.addend, t, b), prime(p).ntt);
  });
}

}  // namespace jali::backend::cpu
