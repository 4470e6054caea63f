// Sums of products: of ciphertexts, and of ciphertexts with plaintexts.
#include <algorithm>
#include <array>
#include <cstring>

#include "jali/backend/cpu/rlwe.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {

void CpuRlwe::check_terms(ConstView sum, const Combination& c) const {
  const auto operand = [&](ConstView x) {
    check(x);
    require<InvalidArgument>(x.batch == sum.batch && std::ranges::includes(x.primes, sum.primes),
                             "an operand of a combination has the sum's batch and its primes");
  };
  require<InvalidArgument>(!c.products.empty() || !c.multiples.empty(),
                           "a combination needs at least one term");
  for (const auto& p : c.products) operand(p.a0), operand(p.a1), operand(p.b0), operand(p.b1);
  for (const auto& m : c.multiples) {
    operand(m.x0), operand(m.x1);
    check_scalars(sum, m.s);
  }
  if (!c.constant.empty()) check_scalars(sum, c.constant);
}

void CpuRlwe::tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
                     ConstView b1) const {
  check(d0), check_same(d0, d1), check_same(d0, d2);
  check_same(d0, a0), check_same(d0, a1), check_same(d0, b0, true), check_same(d0, b1, true);
  for (const View& out : {d0, d1, d2}) {
    for (const ConstView& in : {a0, a1, b0, b1}) check_apart(out, in);
  }
  check_apart(d0, d1), check_apart(d0, d2), check_apart(d1, d2);
  for_rows(d0, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.tensor(row(d0, i, k), row(d1, i, k), row(d2, i, k), row(a0, i, k), row(a1, i, k),
                    row(b0, i, k), row(b1, i, k), n_, p.row);
  });
}

void CpuRlwe::combine(View d0, View d1, View d2, const Combination& c) const {
  check(d0), check_same(d0, d1), check_terms(d0, c);
  const bool three = !c.products.empty();
  if (three) check_same(d0, d2);
  std::vector<ConstView> outputs = {d0, d1};
  if (three) outputs.push_back(d2);
  for (const ConstView& out : outputs) {
    for (const auto& p : c.products) {
      for (const ConstView& in : {p.a0, p.a1, p.b0, p.b1}) check_apart(out, in);
    }
    for (const auto& m : c.multiples) check_apart(out, m.x0), check_apart(out, m.x1);
  }
  for_rows(d0, [&](std::size_t i, std::size_t b, const PrimeTables& tables) {
    const PrimeIndex prime = d0.primes[i];
    std::vector<RowTerms::Product> products;
    std::vector<RowTerms::Multiple> multiples;
    for (const auto& p : c.products) {
      for (int times = 0; times < (p.twice ? 2 : 1); ++times) {
        products.push_back({row_of(p.a0, prime, b), row_of(p.a1, prime, b), row_of(p.b0, prime, b),
                            row_of(p.b1, prime, b)});
      }
    }
    for (const auto& m : c.multiples) {
      multiples.push_back({row_of(m.x0, prime, b), row_of(m.x1, prime, b), m.s[i]});
    }
    kernels_.combine(row(d0, i, b), row(d1, i, b), three ? row(d2, i, b) : nullptr,
                     {products.data(), products.size(), multiples.data(), multiples.size(),
                      c.constant.empty() ? 0 : c.constant[i]},
                     n_, tables.row);
  });
}

void CpuRlwe::check_sums(ConstView shape, std::span<const WeightedSum> sums,
                         std::size_t operands) const {
  for (const WeightedSum& sum : sums) {
    check_same(shape, sum.out0), check_same(shape, sum.out1);
    require<InvalidArgument>(!sum.b.empty() && sum.b.size() == sum.operands.size(),
                             "a weighted sum needs as many weights as operands, at least one");
    for (const ConstView& v : sum.b) check_same(shape, v, true);
    for (const std::uint32_t k : sum.operands) {
      require<InvalidArgument>(k < operands, "a weighted sum names an operand that is not there");
    }
  }
}

void CpuRlwe::weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                            std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const View shape = sums[0].out0;
  check(shape);
  require<InvalidArgument>(a0.size() == a1.size(), "weighted sums need as many a1 as a0");
  for (const ConstView& v : a0) check_same(shape, v);
  for (const ConstView& v : a1) check_same(shape, v);
  check_sums(shape, sums, a0.size());
  // Every weight is read from memory once. The operands are read once too: a piece of all of them
  // is gathered where the second-level cache holds it (rows lie at multiples of large powers of
  // two, and would push each other out), and used by all sums.
  constexpr std::size_t kCacheBytes = std::size_t{1} << 17;
  const std::size_t word = row_bytes_ / n_;
  const bool gather = sums.size() > 1;
  std::size_t piece = n_;
  while (gather && piece > 128 && 2 * a0.size() * piece * word > kCacheBytes) piece /= 2;
  const std::size_t piece_bytes = piece * word;
  for_rows(shape, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    const auto lease = scratch_.lend(gather ? 2 * a0.size() * piece_bytes : 1);
    constexpr std::size_t kChunk = 60;
    std::array<const void*, kChunk> x, y0, y1;
    for (std::size_t at = 0; at < row_bytes_; at += piece_bytes) {
      const auto operand = [&](std::size_t c, std::size_t j) -> const std::byte* {
        return gather ? lease.data() + (2 * j + c) * piece_bytes
                      : row(c == 0 ? a0[j] : a1[j], i, k) + at;
      };
      for (std::size_t j = 0; gather && j < a0.size(); ++j) {
        std::memcpy(lease.data() + 2 * j * piece_bytes, row(a0[j], i, k) + at, piece_bytes);
        std::memcpy(lease.data() + (2 * j + 1) * piece_bytes, row(a1[j], i, k) + at, piece_bytes);
      }
      for (const WeightedSum& sum : sums) {
        for (std::size_t done = 0; done < sum.b.size(); done += kChunk) {
          const std::size_t count = std::min(kChunk, sum.b.size() - done);
          for (std::size_t j = 0; j < count; ++j) {
            x[j] = row(sum.b[done + j], i, k) + at;
            y0[j] = operand(0, sum.operands[done + j]);
            y1[j] = operand(1, sum.operands[done + j]);
          }
          kernels_.key_dot(row(sum.out0, i, k) + at, row(sum.out1, i, k) + at, x.data(), y0.data(),
                           y1.data(), count, sum.accumulate || done > 0, 1, rev_.data(), piece,
                           p.row);
        }
      }
    }
  });
}

}  // namespace jali::backend::cpu
