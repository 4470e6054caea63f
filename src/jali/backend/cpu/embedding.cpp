// Between slots and residues.
#include "jali/backend/cpu/embedding.h"

#include <bit>
#include <cstring>

#include "jali/backend/cpu/mixed_radix.h"
#include "jali/backend/engine.h"
#include "jali/backend/ring_ops.h"

namespace jali::backend::cpu {
namespace {

/// out[k gap] = round(x[k] factor), ties to even, |x[k] factor| below 2^62, by one sequence of
/// instructions for all, as x may be a message. The number is high + low, high its next multiple of
/// 2^20, so that both high / 2^20 and low are below 2^51, where a sum with 1.5 2^52 rounds and its
/// low bits are the integer.
void round(std::int64_t* out, std::size_t gap, const double* x, std::size_t count, double factor) {
  constexpr double kShift = 0x1.8p52, kHighShift = 0x1.8p72;
  constexpr auto kOrigin = std::bit_cast<std::uint64_t>(kShift);
  const auto integer = [](double d) { return std::bit_cast<std::uint64_t>(d + kShift) - kOrigin; };
  for (std::size_t k = 0; k < count; ++k) {
    const double scaled = x[k] * factor;
    const double high = (scaled + kHighShift) - kHighShift;
    out[k * gap] =
        static_cast<std::int64_t>((integer(high * 0x1p-20) << 20) + integer(scaled - high));
  }
}

const double* flat(const std::vector<Complex>& twiddle) {
  return reinterpret_cast<const double*>(twiddle.data());
}

}  // namespace

void CpuEmbedding::embed(View out, const Embedding& embedding, std::span<const Complex> values,
                         int log_slots, double factor) const {
  check(out);
  const std::size_t slots = std::size_t{1} << log_slots, gap = n_ / 2 / slots;
  const std::size_t count = values.size() / out.batch;
  const auto& leaf = embedding.leaf[static_cast<std::size_t>(log_slots)];
  const auto integers = scratch_.lend_secret(out.batch * n_ * sizeof(std::int64_t));
  auto* const c = reinterpret_cast<std::int64_t*>(integers.data());
  pool_.parallel(out.batch, [&](std::size_t b) {
    const auto lease = scratch_.lend_secret(n_ * sizeof(double));
    auto* const re = reinterpret_cast<double*>(lease.data());
    double* const im = re + slots;
    if (count < slots) std::memset(re, 0, 2 * slots * sizeof(double));
    for (std::size_t j = 0; j < count; ++j) {
      re[leaf[j]] = values[b * count + j].real();
      im[leaf[j]] = values[b * count + j].imag();
    }
    kernels_.embedding_backward(re, im, flat(embedding.twiddle), slots);
    std::int64_t* const to = c + b * n_;
    if (gap > 1) std::memset(to, 0, n_ * sizeof(std::int64_t));
    round(to, gap, re, slots, factor);
    round(to + n_ / 2, gap, im, slots, factor);
  });
  engine().ring().from_int64(out, {c, out.batch * n_});
}

void CpuEmbedding::unembed(std::span<Complex> slots_out, const Embedding& embedding, ConstView x,
                           int log_slots, double divisor) const {
  check(x);
  const CentredDoubles doubles_of(tables_of(x.primes), kernels_);
  const std::size_t word = word_bytes(config_.word), count = x.batch * n_;
  const auto doubles = scratch_.lend_secret(count * sizeof(double));
  auto* const centred = reinterpret_cast<double*>(doubles.data());
  pool_.parallel(count / kBlock, [&](std::size_t block) {
    const std::size_t k = block * kBlock;
    std::vector<const std::byte*> rows;
    for (std::size_t i = 0; i < x.primes.size(); ++i) {
      rows.push_back(row(x, i, k / n_) + k % n_ * word);
    }
    const auto lease = scratch_.lend_secret(doubles_of.scratch_bytes());
    doubles_of(centred + k, rows, divisor, lease.data());
  });

  const std::size_t slots = std::size_t{1} << log_slots, gap = n_ / 2 / slots;
  const auto& leaf = embedding.leaf[static_cast<std::size_t>(log_slots)];
  pool_.parallel(x.batch, [&](std::size_t b) {
    double* const re = centred + b * n_;
    double* const im = re + n_ / 2;
    for (std::size_t k = 1; gap > 1 && k < slots; ++k) re[k] = re[k * gap], im[k] = im[k * gap];
    kernels_.embedding_forward(re, im, flat(embedding.twiddle), slots);
    for (std::size_t j = 0; j < slots; ++j) slots_out[b * slots + j] = {re[leaf[j]], im[leaf[j]]};
  });
}

}  // namespace jali::backend::cpu
