#include "jali/backend/cpu/tfhe_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "jali/arith/bit_reverse.h"

namespace jali::backend::cpu {
namespace {

/// The radices of the passes above the leaf, as logarithms. The first is 2 or 3, because digits are
/// made on its way.
std::vector<int> radices(int levels, int most) {
  int first = std::min(most, 3);
  if (levels - first == 1) first = 2;
  std::vector<int> out = {first};
  int left = levels - first;
  for (int parts = (left + most - 1) / most; parts > 0; --parts) {
    out.push_back((left + parts - 1) / parts);
    left -= out.back();
  }
  return out;
}

/// exp(2 pi i turn / of)
struct Root {
  double re, im;
  Root(std::uint64_t turn, std::uint64_t of) {
    // The argument is brought to [0, pi/4], where sine and cosine have their full precision.
    turn %= of;
    const std::uint64_t eighth = turn * 8 / of;
    const std::uint64_t quarter = (eighth + 1) / 2;  // the nearest multiple of a quarter turn
    const double rest = static_cast<double>(static_cast<std::int64_t>(4 * turn) -
                                            static_cast<std::int64_t>(quarter * of)) /
                        static_cast<double>(of);  // quarter turns
    const double angle = rest * (std::numbers::pi / 2);
    const double c = std::cos(angle), s = std::sin(angle);
    switch (quarter % 4) {
      case 0: re = c, im = s; break;
      case 1: re = -s, im = c; break;
      case 2: re = -c, im = -s; break;
      default: re = s, im = -c; break;
    }
  }
};

}  // namespace

FourierTables::FourierTables(std::size_t N, int vector_lanes, int log_radix) {
  const std::size_t n = N / 2, lanes = static_cast<std::size_t>(vector_lanes);
  const std::size_t groups = n / (lanes * lanes);
  plan_.n = n, plan_.lanes = lanes, plan_.groups = groups;
  exponents_.resize(groups * lanes);
  const int log_lanes = std::countr_zero(lanes);
  const std::vector<int> logs = radices(std::countr_zero(n) - log_lanes, log_radix);
  std::size_t doubles = groups * (lanes - 1) * 2 * lanes + 4 * N, blocks = 1;
  for (const int log : logs) {
    doubles += blocks * ((std::size_t{1} << log) - 1) * 2;
    blocks <<= log;
  }
  doubles += 8 * (logs.size() + 2);  // each table begins at a multiple of 64 bytes
  tables_ = AlignedBlock(device::host_memory(), doubles * sizeof(double));
  auto* at = reinterpret_cast<double*>(tables_.data());
  const auto align = [&] { at += (8 - (at - reinterpret_cast<double*>(tables_.data())) % 8) % 8; };

  // Block b of size n / blocks is modulo X^size - exp(2 pi i turn[b] / of), of = 4 blocks.
  std::vector<std::uint64_t> turn = {1};
  const auto children = [&](int log) {
    const std::size_t radix = std::size_t{1} << log;
    std::vector<std::uint64_t> next(turn.size() * radix);
    for (std::size_t b = 0; b < turn.size(); ++b) {
      for (std::uint32_t p = 0; p < radix; ++p) {
        next[b * radix + p] = turn[b] + 4 * turn.size() * arith::bit_reverse(p, log);
      }
    }
    return next;
  };
  for (const int log : logs) {
    const std::size_t radix = std::size_t{1} << log;
    align();
    passes_.push_back({log, turn.size(), at});
    for (const std::uint64_t t : turn) {
      for (std::size_t j = 1; j < radix; ++j) {
        const Root w(t * j, 4 * turn.size() * radix);
        *at++ = w.re, *at++ = w.im;
      }
    }
    turn = children(log);
  }
  align();
  plan_.leaves = at;
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t j = 1; j < lanes; ++j) {
      for (std::size_t t = 0; t < lanes; ++t) {
        const Root w(turn[g * lanes + t] * j, 4 * n);
        at[t] = w.re, at[lanes + t] = w.im;
      }
      at += 2 * lanes;
    }
  }
  const std::vector<std::uint64_t> points = children(log_lanes);  // point (b, p): at zeta^points
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t p = 0; p < lanes; ++p) {
      exponents_[g * lanes + p] = static_cast<std::uint32_t>(points[(g * lanes) * lanes + p]);
    }
  }
  for (std::size_t t = 0; t < lanes; ++t) {
    plan_.lane_exponents[t] = static_cast<std::uint32_t>(points[t * lanes] - points[0]);
  }
  align();
  plan_.roots = at;
  for (std::size_t e = 0; e < 2 * N; ++e) {
    const Root w(e, 2 * N);
    *at++ = w.re, *at++ = w.im;
  }
  plan_.passes = passes_.data(), plan_.pass_count = passes_.size();
  plan_.exponents = exponents_.data();
}

}  // namespace jali::backend::cpu
