// External products and the steps of a blind rotation.
#include <algorithm>

#include "jali/backend/ref/tfhe.h"
#include "jali/backend/ref/torus.h"

namespace jali::backend::ref {

namespace {

template <class W>
void add_to(Glwe<W>& acc, const Glwe<W>& x) {
  for (std::size_t i = 0; i < acc.size(); ++i) acc[i] += x[i];
}

/// out += (X^e - 1) x, for every polynomial of x.
template <class W>
void add_times_power_minus_1(std::vector<W>& out, const W* x, std::size_t e, std::size_t N) {
  std::vector<W> rotated(N);
  for (std::size_t at = 0; at < out.size(); at += N) {
    times_power(rotated.data(), x + at, e, N);
    for (std::size_t i = 0; i < N; ++i) out[at + i] += rotated[i] - x[at + i];
  }
}

/// e_u of unit u, from the exponents of the step's bits.
std::size_t unit_exponent(const TfheConfig& config, std::span<const std::uint32_t> bits,
                          std::size_t u) {
  if (config.rotation != Rotation::multi_bit) return bits[u];
  std::size_t sum = 0;  // over the set whose number is u + 1
  for (std::size_t j = 0; j < bits.size(); ++j) {
    if (((u + 1) >> j) & 1) sum += bits[j];
  }
  return sum % (2 * config.N.value);
}

}  // namespace

template <class W>
Glwe<W> external_product(const TfheConfig& config, const W* ggsw, const Glwe<W>& in) {
  const std::size_t N = config.N.value, polynomials = config.k.value + 1;
  const auto levels = static_cast<std::size_t>(config.rotation_gadget.levels);
  Glwe<W> out(in.size(), 0);
  std::vector<std::int32_t> digits(levels * N), word(levels);
  for (std::size_t c = 0; c < polynomials; ++c) {
    for (std::size_t i = 0; i < N; ++i) {
      decompose<W>(word, in[c * N + i], config.rotation_gadget);
      for (std::size_t j = 0; j < levels; ++j) digits[j * N + i] = word[j];
    }
    for (std::size_t j = 0; j < levels; ++j) {
      const W* row = ggsw + (c * levels + j) * polynomials * N;
      for (std::size_t to = 0; to < polynomials; ++to) {
        add_product<W>(&out[to * N], {&digits[j * N], N}, row + to * N);
      }
    }
  }
  return out;
}

template <class W>
void rotate(const TfheConfig& config, Glwe<W>& acc, std::span<const std::uint32_t> exponents,
            const W* key) {
  const std::size_t N = config.N.value, units = config.units();
  const auto group = static_cast<std::size_t>(config.group);
  for (std::size_t step = 0; step < config.steps(); ++step) {
    const std::span<const std::uint32_t> bits = exponents.subspan(step * group, group);
    if (std::ranges::all_of(bits, [](std::uint32_t e) { return e == 0; })) continue;  // X^0 - 1 = 0
    const W* ggsws = key + step * units * config.ggsw_words();
    if (config.rotation == Rotation::classic) {
      Glwe<W> difference(acc.size(), 0);
      add_times_power_minus_1(difference, acc.data(), bits[0], N);
      add_to(acc, external_product(config, ggsws, difference));
    } else {
      // sum_u (X^(e_u) - 1) (GGSW_u x acc), with the sum taken into the ciphertexts.
      std::vector<W> bundle(config.ggsw_words(), 0);
      for (std::size_t u = 0; u < units; ++u) {
        add_times_power_minus_1(bundle, ggsws + u * config.ggsw_words(),
                                unit_exponent(config, bits, u), N);
      }
      add_to(acc, external_product(config, bundle.data(), acc));
    }
  }
}

template Glwe<std::uint32_t> external_product(const TfheConfig&, const std::uint32_t*,
                                              const Glwe<std::uint32_t>&);
template Glwe<std::uint64_t> external_product(const TfheConfig&, const std::uint64_t*,
                                              const Glwe<std::uint64_t>&);
template void rotate(const TfheConfig&, Glwe<std::uint32_t>&, std::span<const std::uint32_t>,
                     const std::uint32_t*);
template void rotate(const TfheConfig&, Glwe<std::uint64_t>&, std::span<const std::uint32_t>,
                     const std::uint64_t*);

}  // namespace jali::backend::ref
