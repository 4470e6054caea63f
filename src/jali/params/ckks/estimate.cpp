// Averages and claims, what a caller says, and what circuits know of numbers.
#include "jali/params/ckks/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "jali/params/ckks/noise_formulas.h"

namespace jali::params {

using formulas::ratio;
using formulas::saturated;
using formulas::times;

Estimate Estimate::received(const Received& from) {
  Estimate out;
  out.variance = from.variance;
  out.message = from.message;
  out.peak = from.peak;
  out.error = from.error;
  out.noise = from.noise;
  out.derived = false;
  out.lineage = from.lineage;
  out.real = from.real;
  out.principal = from.principal;
  return out;
}

Estimate Estimate::of_peak(double peak) { return {0, 0, peak, 0, 0}; }

bool Estimate::is_plain() const {
  return message_shared == 1 && variance_shared == 1 && principal == 1;
}

Claim Estimate::claim() const {
  const double all = times(times(variance, variance_spread), variance_shared);
  return {times(times(message, message_spread), message_shared), all, times(all, principal)};
}

double Estimate::claimed_largest(double slots) const {
  return std::min(peak, times(std::sqrt(slots), claim().message));
}

double Claim::of_sum(double k) const {
  return std::min(times(k * k, variance), times(k, principal));
}

void Estimate::set_claim(const Claim& claim) {
  const double spread = times(variance, variance_spread);
  message_shared = ratio(claim.message, times(message, message_spread));
  variance_shared = ratio(claim.variance, spread);
  principal = ratio(claim.principal, times(spread, variance_shared));
}

Estimate& Estimate::operator+=(const Noise& added) {
  const bool plain = is_plain() && added.equal == 1 && added.claimed <= added.variance;
  Claim most = claim();
  const double spread = variance * variance_spread + added.variance;
  variance += added.variance;
  variance_spread = ratio(spread, variance);
  error = saturated(error + added.bound);
  if (added.random) noise = saturated(noise + added.bound);
  if (plain) return *this;
  // The same constant, or the same ratio of scales, may have been rounded before.
  const double claimed = std::max(added.claimed, added.variance);
  const double both =
      added.equal > 1
          ? 2 * std::sqrt(times((most.principal - most.variance) / added.equal, claimed))
          : 0;
  most.variance += claimed + both;
  most.principal += added.equal * (claimed + both);
  set_claim(most);
  return *this;
}

void Estimate::cover(const Estimate& other) {
  variance = std::max(variance, other.variance);
  message = std::max(message, other.message);
  peak = std::max(peak, other.peak);
  error = std::max(error, other.error);
  noise = std::max(noise, other.noise);
  derived = derived && other.derived;
  real = real && other.real;
  if (!are_same(lineage, other.lineage)) {
    lineage = lineage_of_unknown(std::max(degree_of(lineage), degree_of(other.lineage)));
  }
  message_spread = std::max(message_spread, other.message_spread);
  variance_spread = std::max(variance_spread, other.variance_spread);
  message_shared = std::max(message_shared, other.message_shared);
  variance_shared = std::max(variance_shared, other.variance_shared);
  principal = std::max(principal, other.principal);
}

void Estimate::lose_bounds() { error = noise = kUnbounded; }

// The spreads of the message stay those of the numbers that were declared before.
void Estimate::declare(const Declared& declared) {
  derived = derived && declared.peak >= peak;
  message = declared.magnitude;
  peak = declared.peak;
  message_shared = 1;
}

// All slots may have the same error. Beyond 32 deviations a bound says less than the declaration.
// Products multiply noise by numbers with all of their error, which is no longer known then: the
// noise takes the bound over.
void Estimate::declare_deviation(double deviation, std::size_t n) {
  constexpr double kDeviations = 32;
  variance = deviation * deviation / static_cast<double>(n);
  if (kDeviations * deviation < error) {
    noise = std::max(noise, error);
    error = kDeviations * deviation;
  }
  message_spread = variance_spread = 1;
  message_shared = variance_shared = 1;
  principal = static_cast<double>(n) / 2;
  lineage = lineage_of_unknown(degree_of(lineage));
}

void Estimate::bound_peak(double most) { peak = std::min(peak, most); }

void Estimate::bound_numbers(double most) {
  peak = std::min(peak, most);
  message = std::min(message, most);
}

void Estimate::bound_message() { message = std::min(message, peak); }

void Estimate::bound_terms(const Estimate& x, double terms) {
  message = std::min(message, terms * x.message);
  peak = std::min(peak, terms * x.peak);
}

void Estimate::set_real(const Estimate& a, bool other_is_real) { real = a.real && other_is_real; }

void Estimate::set_numbers_of(const Estimate& x) {
  message = x.message;
  message_spread = x.message_spread;
  message_shared = x.message_shared;
  peak = x.peak;
  lineage = x.lineage;
  real = x.real;
}

void Estimate::set_size(double root_mean_square, double largest) {
  message = root_mean_square;
  peak = largest;
}

void Estimate::set_term() { lineage = lineage_of_term(); }

void Estimate::end_term() {
  if (lineage.term) lineage = {};
}

void Estimate::set_unknown(std::uint64_t degree) { lineage = lineage_of_unknown(degree); }

void Estimate::set_itself() { lineage = lineage_of_itself(lineage); }

void Estimate::set_result_of(std::span<const Estimate* const> inputs) {
  std::vector<const Lineage*> lineages;
  for (const Estimate* x : inputs) {
    lineages.push_back(&x->lineage);
    derived = derived && x->derived;
    real = real && x->real;
  }
  lineage = lineage_of_result(lineage, lineages);
}

}  // namespace jali::params
