#include "jali/circuits/ckks/dft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

using Complex = std::complex<double>;

// The product of complex numbers without the standard's checks for infinities: entries are finite.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::vector<Complex>& diagonal(Diagonals& m, std::size_t index, std::size_t n) {
  auto& entries = m[static_cast<int>(index % n)];
  entries.resize(n);
  return entries;
}

/// B_len: (u, v) -> (u + zeta v, u - zeta v) on the two halves of every block of `len` slots, or
/// twice its inverse, (a, b) -> (a + b, (a - b) / zeta). At place j of a half, zeta = exp(2 pi i
/// 5^j / (4 len)).
Diagonals butterflies(std::size_t n, std::size_t len, bool inverse) {
  Diagonals m;
  const std::size_t half = len / 2;
  auto& mid = diagonal(m, 0, n);
  auto& up = diagonal(m, half, n);
  auto& down = diagonal(m, n - half, n);
  std::size_t power = 1;
  for (std::size_t j = 0; j < half; ++j, power = power * 5 % (4 * len)) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(power) / static_cast<double>(4 * len);
    const Complex zeta(std::cos(angle), inverse ? -std::sin(angle) : std::sin(angle));
    for (std::size_t i = j; i < n; i += len) {
      mid[i] += 1.0;
      mid[i + half] -= zeta;
      up[i] += inverse ? 1.0 : zeta;
      down[i + half] += inverse ? zeta : 1.0;
    }
  }
  return m;
}

/// The product a b: b is applied first.
Diagonals product(const Diagonals& a, const Diagonals& b, std::size_t n) {
  Diagonals m;
  for (const auto& [i, x] : a) {
    for (const auto& [j, y] : b) {
      auto& sum = diagonal(m, static_cast<std::size_t>(i + j), n);
      for (std::size_t s = 0; s < n; ++s) {
        sum[s] += times(x[s], y[(s + static_cast<std::size_t>(i)) % n]);
      }
    }
  }
  return m;
}

/// From a matrix M on n slots, the matrix on 2 n slots that maps (x, x) to (first M x, second M x).
Diagonals weigh_output(const Diagonals& m, std::size_t n, Complex first, Complex second) {
  Diagonals out;
  for (const auto& [d, x] : m) {
    // Rotations by d and by d + n do the same to (x, x); the shorter one is taken.
    const auto index = static_cast<std::size_t>(d);
    auto& y = diagonal(out, index > n / 2 ? index + n : index, 2 * n);
    for (std::size_t s = 0; s < n; ++s) {
      y[s] = times(x[s], first);
      y[s + n] = times(x[s], second);
    }
  }
  return out;
}

/// From a matrix M on n slots, the matrix on 2 n slots that maps (x, y) to (M z, M z) with z =
/// first x + second y.
Diagonals weigh_input(const Diagonals& m, std::size_t n, Complex first, Complex second) {
  Diagonals out;
  for (const auto& [d, x] : m) {
    for (std::size_t half : {std::size_t{0}, n}) {
      auto& y = diagonal(out, static_cast<std::size_t>(d) + half, 2 * n);
      for (std::size_t s = 0; s < 2 * n; ++s) {
        const std::size_t column = (s + static_cast<std::size_t>(d) + half) % (2 * n);
        y[s] += times(x[s % n], column < n ? first : second);
      }
    }
  }
  return out;
}

/// Every diagonal is rounded by 1/12 in each of N coefficients, and so by N/12 in every slot. All
/// rows have the same moduli.
HomomorphicDft::Rounded rounded_by(const Diagonals& m, std::size_t n, double scale) {
  double squares = 0;
  std::size_t count = 0;
  for (const auto& [d, x] : m) {
    for (const Complex& z : x) {
      squares += std::norm(z);
      count += z != 0.0;
    }
  }
  const auto slots = static_cast<double>(m.begin()->second.size());
  const double roundings = static_cast<double>(m.size() * n) / 12 / (scale * scale);
  return {std::sqrt(roundings / (squares / slots)), static_cast<double>(count) / slots};
}

/// rot_out M rot_-in on n slots: entry s of its diagonal d + out - in is entry s + out of diagonal
/// d of M.
Diagonals turn(const Diagonals& m, std::size_t n, std::size_t in, std::size_t out) {
  Diagonals turned;
  for (const auto& [d, x] : m) {
    auto& y = diagonal(turned, static_cast<std::size_t>(d) + out + n - in, n);
    std::ranges::rotate_copy(x, x.begin() + static_cast<std::ptrdiff_t>(out), y.begin());
  }
  return turned;
}

}  // namespace

std::vector<Diagonals> dft_matrices(Dft direction, int log_slots, int levels, double factor) {
  const auto stages = dft_stages(direction, log_slots, levels);
  require<InvalidArgument>(std::isfinite(factor) && factor > 0, "the factor must be positive");
  const std::size_t n = std::size_t{1} << log_slots;
  const bool inverse = direction == Dft::coefficients_to_slots;
  // Each inverse stage is twice the inverse, together n times too large.
  const double each = std::pow(inverse ? factor / static_cast<double>(n) : factor, 1.0 / levels);
  std::vector<Diagonals> out;
  for (const auto& lengths : stages) {
    Diagonals m;
    diagonal(m, 0, n).assign(n, each);
    for (const std::size_t len : lengths) m = product(butterflies(n, len, inverse), m, n);
    out.push_back(std::move(m));
  }
  return out;
}

HomomorphicDft::HomomorphicDft(ckks::ParamsPtr params, Dft direction, const DftOptions& options) {
  const int full = params->log_n() - 1;
  const int log_slots = options.log_slots < 0 ? full : options.log_slots;
  require<InvalidArgument>(log_slots <= full - (options.side_by_side ? 1 : 0), [&] {
    return "a DFT on 2^" + std::to_string(log_slots) + " slots does not fit 2^" +
           std::to_string(full) + (options.side_by_side ? " side by side" : "");
  });
  require<InvalidArgument>(options.levels >= 1, "a DFT takes at least one level");
  const int levels = std::min(options.levels, std::max(log_slots, 1));
  const int level = options.level < 0 ? params->top() : options.level;
  require<DepthExhausted>(level >= levels, [&] {
    return "the DFT takes " + std::to_string(levels) + " levels, and its input has " +
           std::to_string(level) + ": give it fewer levels, or more depth";
  });
  const double first = options.input_scale > 0 ? options.input_scale : params->scale(level);
  const double last =
      options.output_scale > 0 ? options.output_scale : params->scale(level - levels);

  const bool to_slots = direction == Dft::coefficients_to_slots;
  auto matrices = dft_matrices(direction, log_slots, levels, options.factor);
  const std::size_t n = std::size_t{1} << log_slots;
  if (options.side_by_side) {
    const Complex i(0, 1);
    for (std::size_t k = 0; k < matrices.size(); ++k) {
      const bool weigh = to_slots ? k + 1 == matrices.size() : k == 0;
      if (!weigh) {
        matrices[k] = weigh_output(matrices[k], n, 1, 1);
      } else if (to_slots) {
        matrices[k] = weigh_output(matrices[k], n, 0.5, -0.5 * i);
      } else {
        matrices[k] = weigh_input(matrices[k], n, 1, i);
      }
    }
  }
  if (!options.sequences.empty()) {
    require<InvalidArgument>(options.sequences.size() == matrices.size(), [&] {
      return "a DFT of " + std::to_string(matrices.size()) +
             " matrices takes as many sequences, not " + std::to_string(options.sequences.size());
    });
    // The diagonals are shifted to begin at 0, so that no rotation is needed at the end of a stage.
    const std::size_t slots = options.side_by_side ? 2 * n : n;
    const auto wrap = [&](long x) {
      const auto s = static_cast<long>(slots);
      return static_cast<std::size_t>(((x % s) + s) % s);
    };
    std::size_t at = wrap(options.input_shift);
    for (auto& m : matrices) {
      std::set<int> indices;
      for (const auto& [d, x] : m) indices.insert(d);
      const std::size_t next = wrap(static_cast<long>(at) - first_diagonal(indices, slots));
      m = turn(m, slots, at, next);
      at = next;
    }
    shift_ = static_cast<int>(at);
  }
  double scale = first;
  for (int k = 0; k < levels; ++k) {
    TransformOptions stage;
    stage.level = level - k;
    stage.log_slots = log_slots + (options.side_by_side ? 1 : 0);
    stage.input_scale = scale;
    scale = k + 1 == levels ? last
                            : first * std::pow(last / first, static_cast<double>(k + 1) / levels);
    stage.output_scale = scale;
    stage.bsgs = options.bsgs;
    if (!options.sequences.empty()) {
      stage.bsgs.sequence = options.sequences[static_cast<std::size_t>(k)];
    }
    const double diagonal_scale = scale * (params->ratio(stage.level) / stage.input_scale);
    rounded_.push_back(
        rounded_by(matrices[static_cast<std::size_t>(k)], params->n(), diagonal_scale));
    stages_.emplace_back(params, std::move(matrices[static_cast<std::size_t>(k)]), stage);
  }
}

std::vector<int> HomomorphicDft::rotations() const {
  std::set<int> all;
  for (const auto& stage : stages_) {
    for (int r : stage.rotations()) all.insert(r);
  }
  return {all.begin(), all.end()};
}

std::size_t HomomorphicDft::plaintext_bytes() const {
  std::size_t total = 0;
  for (const auto& stage : stages_) total += stage.plaintext_bytes();
  return total;
}

void HomomorphicDft::prepare(const ckks::Encoder& encoder, const std::function<void()>& done) {
  for (auto& stage : stages_) {
    stage.prepare(encoder);
    if (done) done();
  }
}

ckks::Ciphertext HomomorphicDft::apply(const ckks::Evaluator& evaluator, ckks::Ciphertext x,
                                       double peak) const {
  const std::size_t last = stages_.size() - 1;
  for (std::size_t k = 0; k <= last; ++k) {
    // A stage may gather its input in few numbers, whose errors the stages behind it spread again.
    // So its claim is that of an average.
    x.estimate.set_term();
    x = stages_[k].apply(evaluator, x, k == last ? peak : params::kUnbounded);
  }
  x.estimate.set_unknown();
  return x;
}

}  // namespace jali::circuits
