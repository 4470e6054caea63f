#include "jali/backend/cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "jali/arith/bit_reverse.h"
#include "jali/arith/primes.h"
#include "jali/backend/cpu/isa.h"
#include "jali/base/error.h"

namespace jali::backend {

std::unique_ptr<Ops> make_cpu_ops(Config config) {
  return std::make_unique<cpu::CpuOps>(std::move(config));
}

std::unique_ptr<Ops> make_cpu_ops(Config config, std::shared_ptr<device::Device> device) {
  require<InvalidArgument>(device != nullptr && device->memory()->host_accessible(),
                           "a CPU engine needs a device whose memory is the host's "
                           "(device::host_device)");
  return std::make_unique<cpu::CpuOps>(std::move(config), std::move(device));
}

namespace cpu {

CpuOps::CpuOps(Config config, std::shared_ptr<device::Device> device)
    : Ops(std::move(device)),
      config_(validated(std::move(config))),
      kernels_(select_kernels(config_.isa, config_.word)),
      n_(config_.n),
      row_bytes_(n_ * word_bytes(config_.word)),
      pool_(config_.threads) {
  name_ = "cpu/" + (config_.isa.empty() ? supported_isas().front() : config_.isa);
  const std::size_t vectors = n_ / kernels_.lanes;
  rev_.resize(vectors);
  for (std::uint32_t u = 0; u < vectors; ++u) {
    rev_[u] = arith::bit_reverse(u, std::countr_zero(vectors));
  }
  primes_.resize(config_.primes.size());
  const std::size_t bytes = PrimeTables::table_bytes(n_, kernels_);
  tables_ = AlignedBlock(device::host_memory(), primes_.size() * bytes);
  pool_.parallel(primes_.size(), [&](std::size_t i) {
    primes_[i] = std::make_unique<const PrimeTables>(config_.primes[i], n_, kernels_,
                                                     tables_.data() + i * bytes);
  });
}

std::uint64_t CpuOps::root(PrimeIndex p) const {
  require<InvalidArgument>(p < primes_.size(), "there is no prime of this index");
  return prime(p).root;
}

// --- checks: shapes only; a residue outside [0, q) is the caller's broken promise ----------------

void CpuOps::check(ConstView v) const {
  require<InvalidArgument>(v.batch >= 1 && (v.data != nullptr || v.primes.empty()),
                           "a block of residues needs memory and a batch of at least 1");
  for (std::size_t i = 0; i < v.primes.size(); ++i) {
    require<InvalidArgument>(
        v.primes[i] < primes_.size() && (i == 0 || v.primes[i - 1] < v.primes[i]),
        "the prime indices of a block must ascend and be below the number of primes");
  }
}

void CpuOps::check_same(ConstView out, ConstView in, bool broadcast) const {
  require<InvalidArgument>(std::ranges::equal(out.primes, in.primes),
                           "the blocks of one operation must have the same primes");
  require<InvalidArgument>(in.batch == out.batch || (broadcast && in.batch == 1),
                           "the blocks of one operation must have the same batch");
  require<InvalidArgument>(in.data != nullptr || in.primes.empty(),
                           "a block of residues needs memory");
}

void CpuOps::check_apart(ConstView out, ConstView in) const {
  require<InvalidArgument>(out.data != in.data || out.primes.empty(),
                           "this operation cannot write its result over an input");
}

void CpuOps::check_scalars(ConstView out, std::span<const std::uint64_t> s) const {
  require<InvalidArgument>(s.size() == out.primes.size(), "one scalar is needed for each limb");
  for (std::size_t i = 0; i < s.size(); ++i) {
    require<InvalidArgument>(s[i] < prime(out.primes[i]).row.q,
                             "a scalar must be reduced modulo the prime of its limb");
  }
}

void CpuOps::check_terms(ConstView sum, const Combination& c) const {
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

// --- transforms and element-wise operations ------------------------------------------------------

void CpuOps::ntt(View x) const {
  check(x);
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    kernels_.ntt(row(x, i, b), row(x, i, b), p.ntt);
  });
}

void CpuOps::intt(View x) const {
  check(x);
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    kernels_.intt(row(x, i, b), row(x, i, b), p.ntt, p.unscaled);
  });
}

void CpuOps::add(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.add(row(out, i, k), row(a, i, k), row(b, i, k), n_, p.row);
  });
}

void CpuOps::sub(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.sub(row(out, i, k), row(a, i, k), row(b, i, k), n_, p.row);
  });
}

void CpuOps::neg(View out, ConstView a) const {
  check(out), check_same(out, a);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.neg(row(out, i, k), row(a, i, k), n_, p.row);
  });
}

void CpuOps::mul(View out, ConstView a, ConstView b) const {
  check(out), check_same(out, a), check_same(out, b, true);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    const void* x = row(a, i, k);
    const void* y = row(b, i, k);
    kernels_.dot(row(out, i, k), &x, &y, 1, nullptr, n_, p.row);
  });
}

void CpuOps::mul_add(View acc, ConstView a, ConstView b) const {
  check(acc), check_same(acc, a), check_same(acc, b, true);
  for_rows(acc, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    const void* x = row(a, i, k);
    const void* y = row(b, i, k);
    kernels_.dot(row(acc, i, k), &x, &y, 1, row(acc, i, k), n_, p.row);
  });
}

void CpuOps::mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const {
  check(out), check_same(out, a);
  check_scalars(out, s);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.mul_scalar(row(out, i, k), row(a, i, k), p.constant(s[i]), n_, p.row);
  });
}

void CpuOps::mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const {
  check(acc), check_same(acc, a);
  check_scalars(acc, s);
  for_rows(acc, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.mul_scalar_add(row(acc, i, k), row(a, i, k), p.constant(s[i]), n_, p.row);
  });
}

void CpuOps::add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const {
  check(out), check_same(out, a);
  check_scalars(out, s);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    kernels_.add_scalar(row(out, i, k), row(a, i, k), s[i], n_, p.row);
  });
}

void CpuOps::inner_product(View out, std::span<const ConstView> a,
                           std::span<const ConstView> b) const {
  check(out);
  require<InvalidArgument>(a.size() == b.size(), "an inner product needs as many a as b");
  for (const ConstView& v : a) check_same(out, v), check_apart(out, v);
  for (const ConstView& v : b) check_same(out, v, true), check_apart(out, v);
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    // Sixty rows at a time, so that their addresses need no allocation.
    constexpr std::size_t kChunk = 60;
    std::array<const void*, kChunk> x, y;
    std::size_t done = 0;
    do {
      const std::size_t count = std::min(kChunk, a.size() - done);
      for (std::size_t j = 0; j < count; ++j) {
        x[j] = row(a[done + j], i, k);
        y[j] = row(b[done + j], i, k);
      }
      kernels_.dot(row(out, i, k), x.data(), y.data(), count, done == 0 ? nullptr : row(out, i, k),
                   n_, p.row);
      done += count;
    } while (done < a.size());
  });
}

void CpuOps::check_sums(ConstView shape, std::span<const WeightedSum> sums,
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

void CpuOps::weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                           std::span<const WeightedSum> sums) const {
  if (sums.empty()) return;
  const View shape = sums[0].out0;
  check(shape);
  require<InvalidArgument>(a0.size() == a1.size(), "weighted sums need as many a1 as a0");
  for (const ConstView& v : a0) check_same(shape, v);
  for (const ConstView& v : a1) check_same(shape, v);
  check_sums(shape, sums, a0.size());
  // Every weight is read from memory once. The operands are read once too: a piece of all of them is
  // gathered where the second-level cache holds it (rows lie at multiples of large powers of two, and
  // would push each other out), and used by all sums.
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

void CpuOps::tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
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

void CpuOps::combine(View d0, View d1, View d2, const Combination& c) const {
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

// --- automorphisms -------------------------------------------------------------------------------

void CpuOps::automorphism_ntt(View out, ConstView in, std::uint64_t g) const {
  check(out), check_same(out, in), check_apart(out, in);
  require<InvalidArgument>(g % 2 == 1, "an automorphism X -> X^g needs an odd g");
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables&) {
    kernels_.automorphism(row(out, i, k), row(in, i, k), g % (2 * n_), rev_.data(), n_);
  });
}

namespace {

template <class T>
void permute_coefficients(T* out, const T* in, std::uint64_t g, std::size_t n, std::uint64_t q) {
  const std::uint64_t mask = 2 * n - 1;
  std::uint64_t e = 0;
  for (std::size_t i = 0; i < n; ++i, e = (e + g) & mask) {
    const T x = in[i];
    out[e & (n - 1)] = e < n || x == 0 ? x : static_cast<T>(q - x);  // X^N = -1
  }
}

}  // namespace

void CpuOps::automorphism_coeff(View out, ConstView in, std::uint64_t g) const {
  check(out), check_same(out, in), check_apart(out, in);
  require<InvalidArgument>(g % 2 == 1, "an automorphism X -> X^g needs an odd g");
  for_rows(out, [&](std::size_t i, std::size_t k, const PrimeTables& p) {
    void* to = row(out, i, k);
    const void* from = row(in, i, k);
    if (config_.word == Word::w32) {
      permute_coefficients(static_cast<std::uint32_t*>(to), static_cast<const std::uint32_t*>(from),
                           g % (2 * n_), n_, p.row.q);
    } else {
      permute_coefficients(static_cast<std::uint64_t*>(to), static_cast<const std::uint64_t*>(from),
                           g % (2 * n_), n_, p.row.q);
    }
  });
}

}  // namespace cpu
}  // namespace jali::backend
