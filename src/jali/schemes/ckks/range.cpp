#include "jali/schemes/ckks/range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "jali/base/error.h"
#include "jali/params/ckks/level_table.h"

namespace jali::ckks {

std::string shown(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", x);
  return text;
}

std::string with_integer_bits(const Params& params, double bits) {
  const Literal& l = params.literal();
  if (l.bootstrap) return "";
  // Level 0 may have a little more or less room than was asked for, here and in the parameters to
  // be made.
  const double surplus = params.level(0).log_q - std::log2(params.scale(0)) - l.integer_bits;
  const double needed =
      std::ceil(l.integer_bits + surplus + std::max(bits, 0.01) + params::kLevel0Slack);
  constexpr double kMostIntegerBits = 120;
  if (needed > kMostIntegerBits) return "";
  return "; or make the parameters with integer_bits=" + shown(needed);
}

std::string with_more_room(const Params& params, double bits) {
  const Literal& l = params.literal();
  if (l.bootstrap) return "";
  const double levels = std::max(1.0, std::ceil(bits / l.scale_bits));
  std::string text = "; or make the parameters with depth=" + shown(l.depth + levels) +
                     ", so that numbers 2^" + shown(levels * l.scale_bits) +
                     " times as large have room here and in what follows";
  if (const std::string wider = with_integer_bits(params, bits); !wider.empty()) {
    text += wider + ", if no larger numbers follow";
  }
  return text;
}

double claimed_peak(double claim, double known) {
  require<InvalidArgument>(claim >= 0, [&] {
    return "a claimed peak is the largest modulus that the result can have, a number from 0, not " +
           shown(claim) + ": leave it out if you know no smaller bound than that of the operands";
  });
  return std::min(claim, known);
}

void bound_by_claim(Estimate& result, double claim) {
  result.bound_peak(claimed_peak(claim, result.peak));
}

Ciphertext with_claim(Ciphertext result, double claim) {
  if (claim < params::kUnbounded && result.estimate.peak >= claim) result.estimate.mark_claimed();
  return result;
}

double largest_held(const Params& params, double scale, int level) {
  return std::exp2(params.level(level).log_q - 1 - std::log2(scale));
}

void require_peak(const Params& params, double peak, double scale, int level) {
  const double held = largest_held(params, scale, level);
  require<RangeExceeded>(peak < held, [&] {
    std::string text = "numbers of up to " + shown(peak) + " are declared and level " +
                       std::to_string(level) + " holds numbers below " + shown(held) +
                       ": declare a smaller peak=";
    int higher = level + 1;
    while (higher <= params.top() && !(peak < largest_held(params, params.scale(higher), higher))) {
      ++higher;
    }
    if (higher <= params.top()) text += ", encrypt with level=" + std::to_string(higher);
    return text + with_integer_bits(params, std::log2(peak / held));
  });
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
           " bits) less: scale the numbers down, declare a smaller peak= when you encrypt, or "
           "claim "
           "one with with_magnitude() if the operands are known to be smaller" +
           with_more_room(params, std::max(bits, 0.01));
  });
}

}  // namespace jali::ckks
