#include "jali/circuits/ckks/domain.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <vector>

#include "jali/base/error.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

namespace {

using approx::Interval;

std::string text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
std::string text(double low, double high) { return "[" + text(low) + ", " + text(high) + "]"; }

/// Bounds are products of doubles. This far outside an interval no polynomial has grown.
constexpr double kRoundings = 0x1p-30;

}  // namespace

double filling(const Interval& on) {
  return on.low > 0 || on.high < 0 ? static_cast<double>(on.middle()) : 0;
}

ckks::Ciphertext inside(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                        const Interval& on, const std::optional<Interval>& within,
                        const std::string& what) {
  require<InvalidArgument>(!x.packing.complex_values, [&] {
    return what + " is made for real numbers in " + text(on.low, on.high) +
           ", and these are complex: take their real parts first, (x + x.conj()) / 2, and encrypt "
           "real numbers as such";
  });
  const double peak = x.estimate.peak;
  double low = -peak, high = peak;
  if (within) {
    require<InvalidArgument>(
        std::isfinite(within->low) && std::isfinite(within->high) && within->low <= within->high,
        "within is the least and the largest number that can occur");
    low = std::max(low, within->low);
    high = std::min(high, within->high);
  }
  const double slack = kRoundings * std::max(std::fabs(on.low), std::fabs(on.high));
  require<InvalidArgument>(low >= on.low - slack && high <= on.high + slack, [&] {
    const std::string known = peak < params::kUnbounded || within
                                  ? "the numbers are known to lie in " + text(low, high) + " only"
                                  : "no bound on the numbers is known";
    const bool one_sided = high <= on.high + slack && !within;
    const std::string advice =
        one_sided ? "If you know that they lie in it, say so: within=(" + text(on.low) + ", " +
                        text(on.high) + ")"
                  : "Declare how large they can be (peak= at encryption; with_magnitude(..., "
                    "peak=) or within=(low, high) "
                    "for what was computed), scale them down, or make it for a wider interval";
    return known + ", and " + what + " is made for " + text(on.low, on.high) + ". " + advice;
  });

  const std::size_t slots = std::size_t{1} << x.log_slots, length = ckks::length_of(x);
  ckks::Ciphertext out = evaluator.copy(x);
  const bool excludes_zero = filling(on) != 0;
  const double rest = ckks::rest_of(x);
  const auto masked = "multiply by ones of the vector's length first, which takes one level";
  require<InvalidArgument>(excludes_zero || rest <= std::min(-on.low, on.high) + slack, [&] {
    return what + " is made for " + text(on.low, on.high) +
           ", and the slots that hold none of the vector's " + std::to_string(length) +
           " numbers may hold others, of up to " + text(rest) + ": " + masked;
  });
  std::vector<std::uint32_t> held;
  if (excludes_zero) held = ckks::numbers_in_slots(x.packing, slots);
  if (std::ranges::find(held, ckks::kNoNumber) != held.end()) {
    require<InvalidArgument>(rest == 0, [&] {
      return what + " is made for " + text(on.low, on.high) +
             ", and the slots behind the vector's " + std::to_string(length) +
             " numbers hold anything: " + masked;
    });
    std::vector<std::complex<double>> fill(slots);
    for (std::size_t s = 0; s < slots; ++s) {
      if (held[s] == ckks::kNoNumber) fill[s] = filling(on);
    }
    out = evaluator.add_plain(out,
                              evaluator.encoder().encode(fill, 1, x.level, x.scale, x.log_slots));
    out.estimate.filled(x.estimate, filling(on));
  }
  out.packing = x.packing;
  if (excludes_zero) out.packing = ckks::packing_of_each(x.packing, std::fabs(filling(on)));
  out.estimate.within(x.estimate, low, high, rest, static_cast<double>(on.reach()));
  return out;
}

}  // namespace jali::circuits
