// What is known of the numbers of a message before it is encoded. None of these has a branch that
// depends on the numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <span>

namespace jali::ckks {

/// The root mean square of all slots of a batch of vectors. Padding is part of the message.
inline double root_mean_square(std::span<const std::complex<double>> values, std::size_t batch,
                               std::size_t slots) {
  double sum = 0;
  for (const std::complex<double>& z : values) sum += std::norm(z);
  const double own = values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
  return own * std::sqrt(static_cast<double>(values.size()) / static_cast<double>(slots * batch));
}

/// It compares squares, which takes no branch; the maximum is one instruction.
inline double largest_modulus(std::span<const std::complex<double>> values) {
  double largest = 0;
  for (const std::complex<double>& z : values) {
    const double square = z.real() * z.real() + z.imag() * z.imag();
    largest = square > largest ? square : largest;
  }
  return std::sqrt(largest);
}

}  // namespace jali::ckks
