// Derivations: docs/decisions/0072. eps is the noise of discrete::Estimate, w = T eps.
#include "jali/params/discrete/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "jali/base/error.h"

namespace jali::discrete {

namespace {

__extension__ using Wide = __int128;
constexpr Wide kLowest = std::numeric_limits<std::int64_t>::min();
constexpr Wide kHighest = std::numeric_limits<std::int64_t>::max();

/// The centred lift of a digit may be beyond a half by the rounding of a double (RlweOps::mod_up).
constexpr double kHalf = 0.5 + 0x1p-40;
/// By how many bits the double of a budget may be off, with much to spare.
constexpr double kRounding = 1e-6;

double saturated(double x) { return x < kUnbounded ? x : kUnbounded; }
double times(double a, double b) { return a == 0 || b == 0 ? 0 : saturated(a * b); }

std::string decimal(Wide x) {
  const bool negative = x < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(x % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    x /= 10;
  } while (x != 0);
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

std::string one_decimal(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", x);
  return text;
}

}  // namespace

NoiseModel::NoiseModel(const Params& params)
    : sources_(params),
      n_(static_cast<double>(params.n())),
      t_(params.modulus().as_double()),
      params_(&params) {}

// --- ranges -------------------------------------------------------------------------------------

Range NoiseModel::residues() const {
  return {params_->modulus().low(), params_->modulus().high(), true};
}

Range NoiseModel::bounded(Wide low, Wide high, bool wraps, Overflow overflow) const {
  const Wide most = static_cast<Wide>(params_->modulus().largest());
  if (wraps) return residues();
  if (low >= kLowest && high <= kHighest && high - low <= most) {
    return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), false};
  }
  if (overflow == Overflow::wrap) return residues();
  refuse_range(low, high);
}

void NoiseModel::refuse_range(Wide low, Wide high) const {
  std::string text = "the result may lie anywhere from " + decimal(low) + " to " + decimal(high) +
                     ", and the modulus tells ";
  text += decimal(static_cast<Wide>(params_->modulus().largest()) + 1) + " numbers apart: ";
  int bits = 1;
  while (bits <= kMostIntegers && (low < -(Wide{1} << (bits - 1)) || high >= Wide{1} << (bits - 1)))
    ++bits;
  if (bits <= kMostIntegers) {
    text += "make the parameters with integers=" + std::to_string(std::max(bits, 2)) + ", ";
  }
  throw RangeExceeded(text +
                      "declare a smaller range when you encrypt, or, if arithmetic modulo that "
                      "number is meant, say so by x.wrap(), or by wrap=True at encryption");
}

Range NoiseModel::range(std::int64_t low, std::int64_t high, Overflow overflow) const {
  require<InvalidArgument>(low <= high, [&] {
    return "a range goes from its lowest number to its highest, not from " + std::to_string(low) +
           " to " + std::to_string(high);
  });
  return bounded(low, high, false, overflow);
}

Range NoiseModel::sum(const Range& addend, std::size_t count, Overflow overflow) const {
  const auto many = static_cast<Wide>(count);
  return bounded(many * addend.low, many * addend.high, addend.wraps, overflow);
}

Estimate NoiseModel::as_residues(const Estimate& a) const {
  return {a.slot, a.coefficient, residues()};
}

Range NoiseModel::cover(const Range& a, const Range& b) const {
  return bounded(std::min(a.low, b.low), std::max(a.high, b.high), a.wraps || b.wraps,
                 Overflow::refuse);
}

Range NoiseModel::product(const Range& a, const Range& b, bool same, Overflow overflow) const {
  const Wide products[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                           Wide{a.high} * b.high};
  Wide low = *std::ranges::min_element(products), high = *std::ranges::max_element(products);
  if (same) low = a.low <= 0 && a.high >= 0 ? 0 : std::min(products[0], products[3]);
  return bounded(low, high, a.wraps || b.wraps, overflow);
}

std::optional<Range> NoiseModel::received(std::int64_t low, std::int64_t high, bool wraps) const {
  const Range out{low, high, wraps};
  if (wraps) return out == residues() ? std::optional(out) : std::nullopt;
  const bool fits =
      low <= high && Wide{high} - low <= static_cast<Wide>(params_->modulus().largest());
  return fits ? std::optional(out) : std::nullopt;
}

std::optional<Estimate> NoiseModel::received(double slot, double coefficient,
                                             const Range& range) const {
  const auto possible = [](double x) { return x >= 0 && x <= kUnbounded && !std::signbit(x); };
  if (!possible(slot) || !possible(coefficient)) return std::nullopt;
  return Estimate{slot, coefficient, range};
}

// --- encryptions --------------------------------------------------------------------------------

// eps = e + mu / T, where mu is the centred f m, whose coefficients anybody may choose.
Estimate NoiseModel::fresh_secret(const Range& range) const {
  return plus({n_ * kHalf, kHalf, range}, sources_.error());
}

Estimate NoiseModel::fresh_public(const Range& range) const {
  return plus(fresh_secret(range), sources_.public_key());
}

Estimate NoiseModel::plus(const Estimate& a, const rlwe::NoiseSource& source) const {
  return {saturated(a.slot + source.slot), saturated(a.coefficient + source.coefficient), a.range};
}

// --- sums ---------------------------------------------------------------------------------------

Estimate NoiseModel::add(const Estimate& a, const Estimate& b, Overflow overflow) const {
  return {saturated(a.slot + b.slot), saturated(a.coefficient + b.coefficient),
          bounded(Wide{a.range.low} + b.range.low, Wide{a.range.high} + b.range.high,
                  a.range.wraps || b.range.wraps, overflow)};
}

Estimate NoiseModel::sub(const Estimate& a, const Estimate& b, Overflow overflow) const {
  return {saturated(a.slot + b.slot), saturated(a.coefficient + b.coefficient),
          bounded(Wide{a.range.low} - b.range.high, Wide{a.range.high} - b.range.low,
                  a.range.wraps || b.range.wraps, overflow)};
}

Estimate NoiseModel::negate(const Estimate& a, Overflow overflow) const {
  return {a.slot, a.coefficient,
          bounded(-Wide{a.range.high}, -Wide{a.range.low}, a.range.wraps, overflow)};
}

// A plaintext is added as an encryption without an error.
Estimate NoiseModel::add_plain(const Estimate& a, const Range& b, Overflow overflow) const {
  return add(a, {n_ * kHalf, kHalf, b}, overflow);
}

Estimate NoiseModel::sub_plain(const Estimate& a, const Range& b, Overflow overflow) const {
  return sub(a, {n_ * kHalf, kHalf, b}, overflow);
}

// Its polynomial is a constant.
Estimate NoiseModel::add_constant(const Estimate& a, std::int64_t b, Overflow overflow) const {
  return add(a, {kHalf, kHalf, {b, b, false}}, overflow);
}

Estimate NoiseModel::cover(const Estimate& a, const Estimate& b) const {
  return {std::max(a.slot, b.slot), std::max(a.coefficient, b.coefficient),
          cover(a.range, b.range)};
}

// --- products -----------------------------------------------------------------------------------

// w is multiplied by the plaintext's polynomial, whose coefficients are centred residues modulo T:
// its slots, and the sum of the moduli of its coefficients, are at most N T / 2.
Estimate NoiseModel::multiply_plain(const Estimate& a, const Range& b, Overflow overflow) const {
  const double norm = n_ * t_ * kHalf;
  return {times(a.slot, norm), times(a.coefficient, norm), product(a.range, b, false, overflow)};
}

Estimate NoiseModel::multiply_integer(const Estimate& a, std::int64_t b, Overflow overflow) const {
  const PlainModulus& t = params_->modulus();
  Estimate out = change_factor(a, t.centred(t.reduce_signed(b)));
  out.range = product(a.range, {b, b, false}, false, overflow);
  return out;
}

Estimate NoiseModel::change_factor(const Estimate& a, std::int64_t c) const {
  const double size = std::fabs(static_cast<double>(c));
  return {times(a.slot, size), times(a.coefficient, size), a.range};
}

// w = w1 w2, so eps = T eps1 eps2. Slots multiply; a coefficient is a sum of N products.
Estimate NoiseModel::multiply_bgv(const Estimate& a, const Estimate& b, bool same,
                                  Overflow overflow) const {
  const double slot = times(t_, times(a.slot, b.slot));
  return {slot, std::min(slot, times(t_ * n_, times(a.coefficient, b.coefficient))),
          product(a.range, b.range, same, overflow)};
}

// The phases, of parts that are lifted to integers of at most Q / 2, are X1 and X2, and T X = w + Q
// kappa for an integer polynomial kappa. T times T X1 X2 / Q is therefore
//   w1 kappa2 + w2 kappa1 + w1 w2 / Q   modulo Q,
// with kappa = T X / Q - T eps / Q, and X / Q is what the rounding of a division is: parts that
// are uniform in [-1/2, 1/2), with 1 and s. The division by Q rounds three parts.
Estimate NoiseModel::multiply_bfv(const Estimate& a, const Estimate& b, bool same, int level,
                                  Overflow overflow) const {
  const rlwe::NoiseSource x = sources_.rounding(), square = sources_.square_rounding();
  const double q = std::exp2(std::min(params_->level(level).log_q, 1000.0));
  const auto bound = [&](double x_bound, double e1, double e2, double terms) {
    return saturated(times(t_ * terms, times(x_bound, e1 + e2)) +
                     times(3 * t_ * terms / q, times(e1, e2)));
  };
  const double slot = bound(x.slot, a.slot, b.slot, 1) + x.slot + square.slot;
  const double coefficient =
      bound(x.coefficient, a.coefficient, b.coefficient, n_) + x.coefficient + square.coefficient;
  return {saturated(slot), saturated(std::min(slot, coefficient)),
          product(a.range, b.range, same, overflow)};
}

// --- key switches and divisions -----------------------------------------------------------------

Estimate NoiseModel::key_product(const Estimate& a, int level) const {
  return plus(a, sources_.key_product(level));
}

// A bound that is not known stays so.
Estimate NoiseModel::divide(const Estimate& a, int from, int to) const {
  const double ratio = std::exp2(params_->level(from).log_q - params_->level(to).log_q);
  const auto divided = [&](double bound) { return bound < kUnbounded ? bound / ratio : bound; };
  return plus({divided(a.slot), divided(a.coefficient), a.range}, sources_.rounding());
}

Estimate NoiseModel::key_switch(const Estimate& a, int level) const {
  return divide(key_product(a, level), level, level);
}

// --- levels and factors -------------------------------------------------------------------------

// f c / D = factor, where D = Q_from / Q_to.
std::int64_t NoiseModel::correction(int from, std::uint64_t from_factor, int to,
                                    std::uint64_t factor) const {
  const PlainModulus& t = params_->modulus();
  return t.centred(t.mul(t.mul(factor, params_->quotient(from, to)), t.inverse(from_factor)));
}

Known NoiseModel::brought(const Known& a, int level) const {
  if (a.level == level) return a;
  const std::uint64_t factor = params_->factor(level);
  const std::int64_t c = correction(a.level, a.factor, level, factor);
  return {level, factor, divide(change_factor(a.estimate, c), a.level, level)};
}

Known NoiseModel::product(const Known& a, const Known& b, bool same, int level,
                          Overflow overflow) const {
  const PlainModulus& t = params_->modulus();
  const Known x = brought(a, level), y = brought(b, level);
  const std::uint64_t factor = t.mul(x.factor, y.factor);
  if (params_->multiplication() == Multiplication::bfv) {
    const Estimate e = multiply_bfv(x.estimate, y.estimate, same, level, overflow);
    return {level, t.neg(t.mul(factor, t.inverse(params_->q_mod_t(level)))), key_switch(e, level)};
  }
  const Estimate e = multiply_bgv(x.estimate, y.estimate, same, overflow);
  return {level - 1, t.mul(factor, t.inverse(params_->quotient(level, level - 1))),
          divide(key_product(e, level), level, level - 1)};
}

namespace {

/// The lowest of the levels from `high` down to `low` whose value is at most half a bit below the
/// best. Values rise to the best and fall from there on, where a level is worth more than a bit.
template <class Budget>
int lowest_good(int high, int low, Budget budget) {
  double best = budget(high);
  int chosen = high;
  for (int l = high - 1; l >= low; --l) {
    const double value = budget(l);
    if (value < best - 1) break;
    best = std::max(best, value);
    if (value >= best - 0.5) chosen = l;
  }
  return chosen;
}

}  // namespace

int NoiseModel::product_level(const Known& a, const Known& b, bool same, Overflow overflow) const {
  const int high = std::min(a.level, b.level);
  const int low = params_->multiplication() == Multiplication::bfv ? 0 : 1;
  if (high <= low) return high;
  return lowest_good(high, low, [&](int l) {
    const Known x = product(a, b, same, l, overflow);
    return budget(x.estimate, x.level);
  });
}

std::uint64_t NoiseModel::plain_factor(const Known& a) const {
  if (a.level == 0) return 1;
  const PlainModulus& t = params_->modulus();
  return t.mul(t.mul(params_->factor(a.level - 1), params_->quotient(a.level, a.level - 1)),
               t.inverse(a.factor));
}

Known NoiseModel::plain_product(const Known& a, const Range& b, int level,
                                Overflow overflow) const {
  const Known x = brought(a, level);
  return {level, params_->modulus().mul(x.factor, plain_factor(x)),
          multiply_plain(x.estimate, b, overflow)};
}

int NoiseModel::plain_level(const Known& a, const Range& b, Overflow overflow) const {
  return lowest_good(a.level, 0,
                     [&](int l) { return budget(plain_product(a, b, l, overflow).estimate, l); });
}

// --- what is left -------------------------------------------------------------------------------

double NoiseModel::budget(const Estimate& a, int level) const {
  const double noise = a.largest();
  if (!(noise < kUnbounded)) return -kUnbounded;
  const double least = std::max(noise, 0x1p-60);  // a sum of nothing has no noise
  return params_->level(level).log_q - 1 - std::log2(t_) - std::log2(least) - kRounding;
}

bool NoiseModel::fits(const Estimate& a, int level) const { return budget(a, level) > 0; }

void NoiseModel::require_budget(const Estimate& a, int level) const {
  require<DepthExhausted>(fits(a, level), [&] {
    const double per_level = params_->level(params_->top()).log_q / (params_->depth() + 1);
    const double lacking = std::min(-budget(a, level), 200 * per_level);
    const int more = std::max(1, static_cast<int>(std::ceil(lacking / per_level)));
    return "the noise of the result would be " + one_decimal(lacking) + " bits above what level " +
           std::to_string(level) +
           " holds, and the numbers would be wrong: make the parameters with depth=" +
           std::to_string(params_->depth() + more) +
           ", encrypt the operands at a higher level if that was not the highest, or add up and "
           "multiply less";
  });
}

void NoiseModel::require_level(int level) const {
  require<DepthExhausted>(level >= 1 || params_->multiplication() == Multiplication::bfv, [&] {
    return "no level is left for a product: these parameters have depth " +
           std::to_string(params_->depth()) +
           ". Encrypt the operands at a higher level; or, if that was the highest, make the "
           "parameters with depth=" +
           std::to_string(params_->depth() + 1);
  });
}

}  // namespace jali::discrete
