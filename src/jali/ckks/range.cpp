#include "jali/ckks/range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "jali/base/error.h"

namespace jali::ckks {

std::string shown(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", x);
  return text;
}

namespace {

/// What makes a level hold `bits` more. Further levels come first: each leaves room for numbers 2^scale_bits times as large, in this operation and in those
/// that follow, of which nothing is known here. integer_bits alone would be asked for again by the next operation.
std::string advice(const Params& params, double bits) {
  const Literal& l = params.literal();
  std::string text =
      "scale the numbers down, declare a smaller peak= when you encrypt, or claim one with "
      "with_magnitude() if the operands are known to be smaller";
  if (!l.bootstrap) {
    const double levels = std::max(1.0, std::ceil(bits / l.scale_bits));
    text += "; or make the parameters with depth=" + shown(l.depth + levels) +
            ", so that numbers 2^" + shown(levels * l.scale_bits) +
            " times as large have room here and in what follows";
  }
  const double more = std::ceil(l.integer_bits + bits);
  constexpr double kMostIntegerBits = 120;
  if (more <= kMostIntegerBits)
    text += "; or make the parameters with integer_bits=" + shown(more) +
            ", if no larger numbers follow";
  return text;
}

}  // namespace

double claimed_peak(double claim, double known) {
  require<InvalidArgument>(claim >= 0, [&] {
    return "a claimed peak is the largest modulus that the result can have, a number from 0, not " +
           shown(claim) + ": leave it out if you know no smaller bound than that of the operands";
  });
  return std::min(claim, known);
}

Ciphertext with_claim(Ciphertext result, double claim) {
  if (claim < params::kUnbounded && result.estimate.peak >= claim) result.estimate.derived = false;
  return result;
}

double largest_held(const Params& params, double scale, int level) {
  return std::exp2(params.level(level).log_q - 1 - std::log2(scale));
}

void require_range(const Params& params, const Estimate& result, double scale, int level) {
  require<RangeExceeded>(params::fits(result, params.n(), scale, params.level(level).log_q), [&] {
    const double held = largest_held(params, scale, level);
    // An operand that does not fit its own level has no bound on its error.
    const double error =
        result.error < params::kUnbounded ? params::range_error(result, params.n()) / scale : 0;
    const double largest = result.peak + error;
    if (!(result.peak < params::kUnbounded) || !(largest > held)) {
      return "no bound is known for this result, and level " + std::to_string(level) +
             " holds numbers below " + shown(held) +
             ": an operand may have left its own level already, as bytes may claim, or bounds of "
             "powers "
             "have outgrown all numbers; declare a smaller peak= when you encrypt, or claim "
             "one with with_magnitude()";
    }
    const double bits = std::log2(largest / held);
    return "the result may be as large as " + shown(largest) + " and level " +
           std::to_string(level) + " holds numbers below " + shown(held) + ", which is " +
           shown(largest / held) + " times (" + shown(std::max(bits, 0.0)) +
           " bits) less: " + advice(params, std::max(bits, 0.01));
  });
}

}  // namespace jali::ckks
