#include <algorithm>
#include <map>
#include <vector>

#include "jali/backend/cuda/elementwise/combination.cuh"
#include "jali/backend/cuda/elementwise/elementwise.cuh"
#include "jali/backend/cuda/key_switch/key_view.cuh"
#include "jali/backend/cuda/linear_transform/rotated_sums.cuh"
#include "jali/backend/cuda/linear_transform/sums.cuh"
#include "jali/backend/cuda/linear_transform/weighted_sums.cuh"

namespace jali::backend::cuda {

namespace {

Shape shape(View out, int log_n) {
  return {static_cast<unsigned>(out.primes.size()), static_cast<unsigned>(out.batch), log_n};
}
// The position in an operand of each limb of the sum.
void place(std::uint8_t (&to)[kMaxLimbs], View sum, ConstView operand) {
  const Limbs at = positions(sum.primes, operand.primes);
  for (std::size_t i = 0; i < sum.primes.size(); ++i)
    to[i] = static_cast<std::uint8_t>(at.prime[i]);
}

// Assigns the terms of up to 64 sums, from next[g] on, to the columns of a launch. A column is one
// operand. Calls open(column, operand) for each new column and put(column, g, weight) for each
// term. Returns the number of columns, at most `capacity`.
template <class Open, class Put>
int place_terms(std::span<const WeightedSum> sums, std::vector<std::size_t>& next, int capacity,
                Open&& open, Put&& put) {
  struct Column {
    int at = -1;
    std::uint64_t taken = 0;  // bit g: has a term of sum g
  };
  std::map<std::uint32_t, Column> latest;  // of an operand
  int columns = 0;
  for (std::size_t g = 0; g < sums.size(); ++g) {
    for (; next[g] < sums[g].b.size(); ++next[g]) {
      const std::uint32_t operand = sums[g].operands[next[g]];
      Column& c = latest[operand];
      // A second term with the same operand takes another column.
      if (c.at < 0 || c.taken >> g & 1) {
        if (columns == capacity) break;
        c = {columns++, 0};
        open(c.at, operand);
      }
      c.taken |= std::uint64_t{1} << g;
      put(c.at, g, sums[g].b[next[g]]);
    }
  }
  return columns;
}

bool have_equal_operands(std::span<const WeightedSum> sums) {
  return std::ranges::all_of(sums, [&](const WeightedSum& sum) {
    return std::ranges::equal(sum.operands, sums[0].operands);
  });
}

}  // namespace

template <class W>
void Sums<W>::products(View out, std::span<const ConstView> a, std::span<const ConstView> b) const {
  for (std::size_t begin = 0; begin < a.size(); begin += kMaxTerms) {
    Terms terms{};
    for (std::size_t k = begin; k < std::min(a.size(), begin + kMaxTerms); ++k) {
      terms.a[terms.count] = a[k].data;
      terms.b[terms.count] = b[k].data;
      terms.b_broadcast[terms.count] = b[k].batch == 1 && out.batch > 1;
      ++terms.count;
    }
    inner_product<W>(stream_, tables_, shape(out, log_n_), limbs_of(out.primes), out.data, terms,
                     begin != 0);
  }
}

template <class W>
void Sums<W>::weighted(std::span<const ConstView> a0, std::span<const ConstView> a1,
                       std::span<const WeightedSum> sums) const {
  if (sums.size() > kMaxSums && have_equal_operands(sums)) return weighted_many(a0, a1, sums);
  for (std::size_t first = 0; first < sums.size(); first += kMaxSums) {
    weighted_together(a0, a1,
                      sums.subspan(first, std::min<std::size_t>(kMaxSums, sums.size() - first)));
  }
}

// Operand k is column k of every sum.
template <class W>
void Sums<W>::weighted_many(std::span<const ConstView> a0, std::span<const ConstView> a1,
                            std::span<const WeightedSum> sums) const {
  const View& like = sums[0].out0;
  const auto operands = sums[0].operands;
  for (std::size_t first = 0; first < sums.size(); first += kManySums) {
    const auto now = sums.subspan(first, std::min<std::size_t>(kManySums, sums.size() - first));
    for (std::size_t begin = 0; begin < operands.size(); begin += kMaxColumns) {
      ManyColumns c{};
      c.sums = static_cast<int>(now.size());
      c.columns = static_cast<int>(std::min<std::size_t>(kMaxColumns, operands.size() - begin));
      for (int i = 0; i < c.columns; ++i) {
        const std::uint32_t operand = operands[begin + i];
        c.a0[i] = a0[operand].data, c.a1[i] = a1[operand].data;
      }
      for (std::size_t g = 0; g < now.size(); ++g) {
        const std::uint64_t bit = std::uint64_t{1} << g;
        c.out0[g] = now[g].out0.data, c.out1[g] = now[g].out1.data;
        if (now[g].accumulate || begin > 0) c.accumulate |= bit;
        for (int i = 0; i < c.columns; ++i) {
          const ConstView& b = now[g].b[begin + i];
          c.b[i][g] = b.data;
          if (b.batch == 1) c.broadcast[i] |= bit;
        }
      }
      cuda::weighted_sums<W>(stream_, tables_, shape(like, log_n_), limbs_of(like.primes), c);
    }
  }
}

// Up to kMaxSums sums, as many columns a launch as its parameters hold.
template <class W>
void Sums<W>::weighted_together(std::span<const ConstView> a0, std::span<const ConstView> a1,
                                std::span<const WeightedSum> sums) const {
  const View& like = sums[0].out0;
  std::vector<std::size_t> next(sums.size(), 0);  // terms done
  for (bool begun = false;; begun = true) {
    Columns c{};
    c.sums = static_cast<int>(sums.size());
    for (std::size_t g = 0; g < sums.size(); ++g) {
      c.out0[g] = sums[g].out0.data;
      c.out1[g] = sums[g].out1.data;
      if (sums[g].accumulate || begun) c.accumulate |= 1u << g;
    }
    c.columns = place_terms(
        sums, next, kMaxColumns,
        [&](int i, std::uint32_t k) { c.a0[i] = a0[k].data, c.a1[i] = a1[k].data; },
        [&](int i, std::size_t g, const ConstView& b) {
          c.b[i][g] = b.data;
          if (b.batch == 1) c.broadcast[i] |= 1u << g;
        });
    if (c.columns == 0) return;
    cuda::weighted_sums<W>(stream_, tables_, shape(like, log_n_), limbs_of(like.primes), c);
  }
}

template <class W>
void Sums<W>::rotated(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
                      std::span<const std::uint64_t> s, std::span<const WeightedSum> sums) const {
  for (std::size_t first = 0; first < sums.size(); first += kMaxRotatedSums) {
    const std::size_t count = std::min<std::size_t>(kMaxRotatedSums, sums.size() - first);
    rotated_together(operands, digit_ids, s, sums.subspan(first, count));
  }
}

// The same for up to kMaxRotatedSums sums of rotations.
template <class W>
void Sums<W>::rotated_together(std::span<const Rotated> operands,
                               std::span<const std::uint32_t> digit_ids,
                               std::span<const std::uint64_t> s,
                               std::span<const WeightedSum> sums) const {
  const View& like = sums[0].out0;
  require<Unsupported>(digit_ids.size() <= kMaxDigits, "the GPU engine holds up to 128 digits");
  KeyDigits ids;
  std::copy(digit_ids.begin(), digit_ids.end(), ids.id);
  const Scalars<W> scalars = scalars_of<W>(s);
  std::vector<std::size_t> next(sums.size(), 0);
  for (bool begun = false;; begun = true) {
    Rotations r{};
    r.sums = static_cast<int>(sums.size());
    r.digits = static_cast<int>(digit_ids.size());
    r.own_limbs = static_cast<unsigned>(s.size());
    for (std::size_t g = 0; g < sums.size(); ++g) {
      r.out0[g] = sums[g].out0.data;
      r.out1[g] = sums[g].out1.data;
      if (sums[g].accumulate || begun) r.accumulate |= 1u << g;
    }
    r.rotations = place_terms(
        sums, next, kMaxRotations,
        [&](int i, std::uint32_t k) {
          const Rotated& x = operands[k];
          check_first(like, x.c0);
          r.ext[i] = x.ext.data, r.c0[i] = x.c0.data, r.c1[i] = x.c1.data;
          r.key[i] = x.key.data,
          r.g[i] = static_cast<std::uint32_t>(x.g % (std::uint64_t{2} << log_n_));
          if (r.g[i] == 1) return;
          r.key_limbs[i] = static_cast<unsigned>(x.key.primes.size());
          place_key(x.key, like.primes, r.limb[i]);
        },
        [&](int i, std::size_t g, const ConstView& b) {
          r.b[i][g] = b.data;
          if (b.batch == 1) r.broadcast[i] |= 1u << g;
        });
    if (r.rotations == 0) return;
    cuda::rotated_sums<W>(stream_, tables_, shape(like, log_n_), limbs_of(like.primes), r, ids,
                          scalars);
  }
}

template <class W>
void Sums<W>::combine(View d0, View d1, View d2, const Combination& c) const {
  using Stored = typename W::Stored;
  const auto words = [](ConstView x) { return static_cast<const Stored*>(x.data); };
  const auto p_count = c.products.size(), m_count = c.multiples.size();
  for (std::size_t p = 0, m = 0; p < p_count || m < m_count;) {
    CombinationTerms<W> terms{};
    terms.three = p_count > 0;
    terms.accumulate = p + m > 0;
    for (; p < p_count && terms.products < kMaxProducts; ++p) {
      const Combination::Product& from = c.products[p];
      const int j = terms.products++;
      terms.a0[j] = words(from.a0), terms.a1[j] = words(from.a1);
      terms.b0[j] = words(from.b0), terms.b1[j] = words(from.b1);
      place(terms.at_a[j], d0, from.a0), place(terms.at_b[j], d0, from.b0);
      if (from.twice) terms.twice |= static_cast<std::uint8_t>(1u << j);
    }
    for (; m < m_count && terms.multiples < kMaxMultiples; ++m) {
      const Combination::Multiple& from = c.multiples[m];
      const int j = terms.multiples++;
      terms.x0[j] = words(from.x0), terms.x1[j] = words(from.x1);
      place(terms.at_x[j], d0, from.x0);
      std::copy(from.s.begin(), from.s.end(), terms.s[j]);
    }
    std::copy(c.constant.begin(), c.constant.end(), terms.constant);
    cuda::combine<W>(stream_, tables_, shape(d0, log_n_), limbs_of(d0.primes), d0.data, d1.data,
                     d2.data, terms);
  }
}

template class Sums<W32>;
template class Sums<W52>;
template class Sums<W64>;

}  // namespace jali::backend::cuda
