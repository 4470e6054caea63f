// Operations that bring a ciphertext to a lower level.
#include <algorithm>
#include <cmath>
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {
namespace {

/// The largest factor that ring::residues takes.
constexpr double kMaxFactor = 0x1p1000;

}  // namespace

Ciphertext Evaluator::rescale(const Ciphertext& a) const {
  impl_->check(a);
  impl_->require_level(a.level, 1);
  const double ratio = impl_->ratio(a.level, a.level - 1);
  impl_->require_scale(a.scale / ratio, a.level - 1);
  Ciphertext out = impl_->shell(a);
  out.level = a.level - 1;
  out.scale = a.scale / ratio;
  out.estimate = impl_->noise.rescale(out.estimate, ratio);
  if (a.parts.size() == 3) out.estimate += impl_->noise.square_rounding();
  impl_->require_range(out);
  out.body() = impl_->bodies.rescale(a);
  return out;
}

Ciphertext Evaluator::drop_to(const Ciphertext& a, int level) const {
  impl_->check(a);
  require<InvalidArgument>(level >= 0 && level <= a.level, [&] {
    return "cannot drop from level " + std::to_string(a.level) + " to " + std::to_string(level) +
           ": the level must be 0 to " + std::to_string(a.level);
  });
  if (level == a.level) return copy(a);
  const auto& from = impl_->params->level(a.level).primes;
  const auto& to = impl_->params->level(level).primes;
  if (!std::includes(from.begin(), from.end(), to.begin(), to.end())) {
    // With small words, the lower level may have primes that the upper one lacks.
    return adjust(a, level, a.scale);
  }
  impl_->require_scale(a.scale, level);
  Ciphertext out = impl_->shell(a);
  out.level = level;
  impl_->require_range(out);
  out.body() = impl_->bodies.select(a, level);
  return out;
}

Ciphertext Evaluator::adjust(const Ciphertext& a, int level, double scale, double near) const {
  impl_->check(a);
  require<InvalidArgument>(level >= 0 && level < a.level, [&] {
    return "adjust needs a lower level than " + std::to_string(a.level) + ", not " +
           std::to_string(level);
  });
  require<InvalidArgument>(std::isfinite(scale) && scale > 0, "the scale must be positive");
  impl_->require_scale(scale, level);
  // One multiplication by an integer and one division. They start at the level just above the
  // target if a has all its limbs and the integer has enough bits there, else at a's level.
  const auto& from = impl_->params->level(a.level).primes;
  const auto exact_factor = [&](int start) { return scale / a.scale * impl_->ratio(start, level); };
  // The integer may be off by 2^-20 of the message, or by 8 units of the result, because the
  // division rounds every slot by more than that.
  const double most_off = std::max(0x1p-20, 8 / scale);
  const auto precise = [&](double exact, double off) {
    const double integer = std::nearbyint(exact);
    return integer >= 1 && std::fabs(integer / exact - 1) < off;
  };
  const auto& above = impl_->params->level(level + 1).primes;
  const bool nested = level + 1 < a.level &&
                      std::includes(from.begin(), from.end(), above.begin(), above.end()) &&
                      precise(exact_factor(level + 1), std::min(near, most_off));
  const int start = nested ? level + 1 : a.level;
  if (!(exact_factor(start) < kMaxFactor)) {
    // The factor is too large for a double, so the way down is split in two.
    int middle = level + 1;
    while (!(impl_->ratio(a.level, middle) < kMaxFactor)) ++middle;
    require<ScaleMismatch>(middle < a.level, [&] {
      return "a scale of 2^" + std::to_string(std::log2(scale)) + " is too large: rescale first";
    });
    return adjust(adjust(a, middle, a.scale), level, scale, near);
  }
  require<ScaleMismatch>(precise(exact_factor(start), most_off), [&] {
    return "a scale of 2^" + std::to_string(std::log2(a.scale)) + " cannot be brought to 2^" +
           std::to_string(std::log2(scale)) + " by level " + std::to_string(level) +
           ": rescale first";
  });
  const double ratio = impl_->ratio(start, level);
  const double factor = std::nearbyint(exact_factor(start));
  Ciphertext out = impl_->shell(a);
  out.level = level;
  out.scale = scale;
  // factor / ratio is computed first, because the square of either alone may overflow a double.
  const double times = factor / ratio, exact = a.scale * times;
  out.estimate = impl_->noise.multiply_constant(out.estimate, 1, times);
  out.estimate = impl_->noise.rescale(out.estimate, 1);
  if (a.parts.size() == 3) out.estimate += impl_->noise.square_rounding();
  out.estimate += impl_->scale_mismatch(a.estimate, exact, scale);
  impl_->require_range(out);
  out.body() = impl_->bodies.multiply_divide(a, factor, start, level);
  return out;
}

}  // namespace jali::ckks
