// The decomposition of a block into digits, ready to be lifted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/cpu/local_array.h"
#include "jali/backend/cpu/rlwe.h"

namespace jali::backend::cpu {

inline constexpr std::size_t npos = static_cast<std::size_t>(-1);

/// Position of p among ascending primes, or npos.
inline std::size_t find(std::span<const PrimeIndex> primes, PrimeIndex p) {
  const auto it = std::lower_bound(primes.begin(), primes.end(), p);
  return it != primes.end() && *it == p ? static_cast<std::size_t>(it - primes.begin()) : npos;
}

/// Lifts that are begun together, so that what they read comes from memory once.
struct LiftGroup {
  explicit LiftGroup(std::size_t most) : out(most), sources(most), tables(most) {}
  void add(void* row, const LiftSource& source, const NttTable& table) {
    out[count] = row, sources[count] = source, tables[count] = &table, ++count;
  }
  void begin(const RowKernels& kernels) {
    kernels.begin_lifts(out.data(), sources.data(), tables.data(), count);
  }
  std::size_t count = 0;
  LocalArray<void*, 16> out;
  LocalArray<LiftSource, 16> sources;
  LocalArray<const NttTable*, 16> tables;
};

/// In working memory: for each batch entry the packed y rows and the v row (16-bit numbers) of
/// every digit.
struct CpuRlwe::Digits {
  struct Digit {
    std::size_t first = 0;  // limb of x
    std::size_t count = 0;
    std::shared_ptr<const Lift> lift;
  };
  std::vector<Digit> digits;
  std::size_t limbs = 0, batch = 0, n = 0, row_bytes = 0;
  std::byte* memory = nullptr;

  std::size_t y_bytes() const { return batch * limbs * row_bytes; }
  std::size_t bytes() const {
    return y_bytes() + batch * digits.size() * n * sizeof(std::uint16_t);
  }
  /// Of digit j.
  std::byte* y(std::size_t j, std::size_t b) const {
    return memory + (b * limbs + digits[j].first) * row_bytes;
  }
  std::uint16_t* v(std::size_t j, std::size_t b) const {
    return reinterpret_cast<std::uint16_t*>(memory + y_bytes()) + (b * digits.size() + j) * n;
  }
  bool holds(std::size_t j, std::size_t limb) const {
    return limb >= digits[j].first && limb < digits[j].first + digits[j].count;
  }
  /// The lift of digit j to the prime p.
  LiftSource source(std::size_t j, std::size_t b, PrimeIndex p) const {
    return {y(j, b), digits[j].count, v(j, b), digits[j].lift->factors[p].data()};
  }
};

template <class MakeRow>
void CpuRlwe::decompose(const Digits& digits, ConstView x, const MakeRow& make_row) const {
  std::vector<std::size_t> digit_of;
  for (std::size_t j = 0; j < digits.digits.size(); ++j) {
    digit_of.insert(digit_of.end(), digits.digits[j].count, j);
  }
  for_rows(x, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const Digits::Digit& digit = digits.digits[digit_of[i]];
    const std::size_t limb = i - digit.first;
    make_row(i, b, p);
    const auto temporary = scratch_.lend(row_bytes_);
    kernels_.intt_packed(digits.y(digit_of[i], b), limb, digit.count, temporary.data(),
                         row(x, i, b), p.ntt, digit.lift->y_scale[limb]);
  });
  pool_.parallel(digits.digits.size() * x.batch, [&](std::size_t task) {
    const std::size_t j = task / x.batch, b = task % x.batch;
    const Digits::Digit& digit = digits.digits[j];
    kernels_.round_sum(digits.v(j, b), digits.y(j, b), digit.lift->reciprocals.data(), digit.count,
                       n_);
  });
}

}  // namespace jali::backend::cpu
