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

namespace {

constexpr std::size_t kTogether = 60;  // operands that are gathered at once

/// The terms of a sum with the operands of a group: positions in its b.
struct Part {
  const WeightedSum* sum;
  std::vector<std::size_t> terms;
  bool accumulate;
};

/// For every group of kTogether operands, the sums that have terms with them.
std::vector<std::vector<Part>> by_operands(std::span<const WeightedSum> sums,
                                           std::size_t operands) {
  std::vector<std::vector<Part>> groups((operands + kTogether - 1) / kTogether);
  for (const WeightedSum& sum : sums) {
    std::vector<std::vector<std::size_t>> terms(groups.size());
    for (std::size_t j = 0; j < sum.operands.size(); ++j) {
      terms[sum.operands[j] / kTogether].push_back(j);
    }
    bool accumulate = sum.accumulate;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (terms[g].empty()) continue;
      groups[g].push_back({&sum, std::move(terms[g]), accumulate});
      accumulate = true;
    }
  }
  return groups;
}

}  // namespace

void CpuRlwe::weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                            std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const View shape = sums[0].out0;
  check(shape);
  require<InvalidArgument>(a0.size() == a1.size(), "weighted sums need as many a1 as a0");
  for (const ConstView& v : a0) check_same(shape, v);
  for (const ConstView& v : a1) check_same(shape, v);
  check_sums(shape, sums, a0.size());
  // Every weight is read from memory once, and so are the operands: a piece of a group of them is
  // gathered where the second-level cache holds it (rows lie at multiples of large powers of two,
  // and would push each other out), and used by all sums. A piece is a page of memory, because the
  // row of each weight lies in pages of its own, and their addresses are looked up for each piece.
  const bool gather = sums.size() > 1;
  const std::size_t word = row_bytes_ / n_;
  const std::size_t together = std::min(kTogether, a0.size());
  const std::size_t piece = gather ? std::min(n_, kWeightedBytes / word) : n_;
  const std::size_t piece_bytes = piece * word;
  const auto groups = by_operands(sums, a0.size());
  for_rows(shape, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    const auto lease = scratch_.lend(gather ? 2 * together * piece_bytes : 1);
    std::array<const void*, kTogether> x, y0, y1;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const std::size_t first = group * kTogether;
      const std::size_t count = std::min(kTogether, a0.size() - first);
      for (std::size_t at = 0; at < row_bytes_; at += piece_bytes) {
        const auto operand = [&](std::size_t c, std::size_t j) -> const std::byte* {
          return gather ? lease.data() + (2 * (j - first) + c) * piece_bytes
                        : row(c == 0 ? a0[j] : a1[j], i, k) + at;
        };
        for (std::size_t j = 0; gather && j < count; ++j) {
          std::memcpy(lease.data() + 2 * j * piece_bytes, row(a0[first + j], i, k) + at,
                      piece_bytes);
          std::memcpy(lease.data() + (2 * j + 1) * piece_bytes, row(a1[first + j], i, k) + at,
                      piece_bytes);
        }
        for (const auto& [sum, terms, accumulate] : groups[group]) {
          for (std::size_t done = 0; done < terms.size(); done += kTogether) {
            const std::size_t now = std::min(kTogether, terms.size() - done);
            for (std::size_t j = 0; j < now; ++j) {
              const std::size_t term = terms[done + j];
              x[j] = row(sum->b[term], i, k) + at;
              y0[j] = operand(0, sum->operands[term]);
              y1[j] = operand(1, sum->operands[term]);
            }
            auto* const out0 = row(sum->out0, i, k) + at;
            auto* const out1 = row(sum->out1, i, k) + at;
            const bool add = accumulate || done > 0;
            if (gather) {
              kernels_.weighted_dot(out0, out1, x.data(), y0.data(), y1.data(), now, add, piece,
                                    p.row);
            } else {
              kernels_.key_dot(out0, out1, x.data(), y0.data(), y1.data(), now, add, 1, rev_.data(),
                               piece, p.row);
            }
          }
        }
      }
    }
  });
}

}  // namespace jali::backend::cpu
