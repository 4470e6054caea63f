#include "jali/circuits/ckks/modular_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

using Real = long double;

/// arcsin(s) / (2 pi) up to the degree, with arcsin(s) = s + s^3/6 + 3 s^5/40 + 15 s^7/336 + ...
Polynomial arcsine(int degree) {
  Polynomial p;
  p.coefficients.assign(static_cast<std::size_t>(degree) + 1, 0.0);
  double c = 1;
  for (int k = 1; k <= degree; k += 2) {
    p.coefficients[static_cast<std::size_t>(k)] = c / k / kTurn;
    c *= static_cast<double>(k) / (k + 1);
  }
  return p;
}

}  // namespace

namespace {

void check(const ReductionOptions& options) {
  require<InvalidArgument>(options.range >= 1 && options.degree >= 2 && options.degree % 2 == 0 &&
                               options.doublings >= 0 && options.doublings <= 16,
                           "a modular reduction needs a range of at least 1, an even degree and 0 "
                           "to 16 doublings");
  const int s = options.inverse_sine;
  require<InvalidArgument>(options.weight >= 0, "a weight is not negative");
  require<InvalidArgument>(s == 1 || s == 3 || s == 5 || s == 7,
                           "inverse_sine must be 1 (none), 3, 5 or 7");
}

/// A Gaussian of the variance of x, (weight + 1) / 12, that is 1 at 0.
double density(double x, int weight) { return std::exp(-6 * x * x / (weight + 1)); }

Polynomial cosine(const ReductionOptions& options) {
  check(options);
  const double reach = kTurn * (options.range + 0.25) * std::exp2(-options.doublings);
  const auto f = [&](double u) { return std::cos(reach * u); };
  const auto degree = static_cast<std::size_t>(options.degree);
  Polynomial p = options.weight == 0 ? chebyshev_interpolate(f, -1, 1, degree)
                                     : chebyshev_fit(
                                           f,
                                           [&](double u) {
                                             const double x = u * (options.range + 0.25);
                                             return std::pow(density(x, options.weight), 0.25);
                                           },
                                           -1, 1, degree);
  for (std::size_t i = 1; i < p.coefficients.size(); i += 2) p.coefficients[i] = 0;
  return p;
}

/// The scales that evaluate() gives to the powers of x and to the nodes of the plan, in their
/// order, for a result at `scale`.
struct PlanScales {
  std::vector<double> powers, nodes;
};
PlanScales plan_scales(const PolynomialPlan& plan, const ckks::Params& params,
                       const ckks::Ciphertext& x, double scale) {
  struct At {
    int level = 0;
    double scale = 0;
  };
  std::map<std::size_t, At> at{{1, {x.level, x.scale}}};
  PlanScales out;
  for (const auto& p : plan.powers()) {
    const At &high = at.at(p.high), &low = at.at(p.low);
    const int level = std::min(high.level, low.level);
    out.powers.push_back(high.scale / params.ratio(level) * low.scale);
    at[p.index] = {level - 1, out.powers.back()};
  }
  // The larger the scale of the power, the smaller that of the child it is multiplied with.
  // Children come before parents.
  out.nodes.assign(plan.nodes().size(), scale);
  for (std::size_t k = plan.nodes().size(); k-- > 0;) {
    const auto& node = plan.nodes()[k];
    const double sum = out.nodes[k] * params.ratio(x.level - node.depth + 1);
    for (const auto& p : node.products) out.nodes[p.child] = sum / at.at(p.giant).scale;
  }
  return out;
}

/// Calls visit(integer, offset) for offsets from -distance to distance in steps of distance / 8,
/// around every integer.
template <class Visit>
void sample(int range, double distance, Visit visit) {
  for (int integer = -range; integer <= range; ++integer) {
    for (int j = -8; j <= 8; ++j) {
      const Real offset = static_cast<Real>(distance) * j / 8;
      if (std::fabs(integer + offset) <= range) visit(integer, offset);
    }
  }
}

/// Calls visit(integer, probability) for every value of round(x).
template <class Visit>
void for_integers(int range, int weight, Visit visit) {
  double total = 0;
  for (int i = -range; i <= range; ++i) total += density(i, weight);
  for (int i = -range; i <= range; ++i) visit(i, density(i, weight) / total);
}

}  // namespace

ModularReduction::ModularReduction(const ReductionOptions& options)
    : options_(options),
      cosine_(cosine(options)),
      arcsine_(arcsine(options.inverse_sine)),
      plan_(cosine_) {
  sample(options_.range, 0.01, [&](int integer, Real offset) {
    wrong_ = std::max(wrong_, cosine_error(integer, static_cast<double>(offset)));
  });
}

int ModularReduction::levels() const {
  const int tail = options_.inverse_sine == 1
                       ? 0
                       : depth(static_cast<std::size_t>(options_.inverse_sine), Basis::power);
  return depth(static_cast<std::size_t>(options_.degree), Basis::chebyshev) + options_.doublings +
         tail;
}

std::vector<std::size_t> ModularReduction::key_switches() const {
  std::vector<std::size_t> out(static_cast<std::size_t>(levels()), 0);
  std::size_t start = 0;
  const auto add = [&](const PolynomialPlan& plan) {
    // The product of powers that makes the k-th lies ceil(log2 k) levels down, after its own
    // rescaling.
    for (const auto& power : plan.powers()) {
      out.at(start + static_cast<std::size_t>(std::bit_width(power.index - 1)) - 1) += 1;
    }
    for (const auto& node : plan.nodes()) {
      if (!node.products.empty()) out.at(start + static_cast<std::size_t>(node.depth) - 1) += 1;
    }
    start += static_cast<std::size_t>(plan.depth_needed());
  };
  add(plan_);
  for (int i = 0; i < options_.doublings; ++i) out.at(start++) += 1;
  if (options_.inverse_sine > 1) add(PolynomialPlan(arcsine_));
  return out;
}

namespace {

/// Clenshaw's recurrence in long double.
Real clenshaw(const Polynomial& p, Real u) {
  Real y1 = 0, y2 = 0;
  for (std::size_t i = p.coefficients.size(); i-- > 1;) {
    y2 = std::exchange(y1, 2 * u * y1 - y2 + static_cast<Real>(p.coefficients[i].real()));
  }
  return u * y1 - y2 + static_cast<Real>(p.coefficients[0].real());
}

Real horner(const Polynomial& p, Real x) {
  Real y = 0;
  for (std::size_t i = p.coefficients.size(); i-- > 0;) {
    y = y * x + static_cast<Real>(p.coefficients[i].real());
  }
  return y;
}

Real reduce(const ReductionOptions& o, const Polynomial& cosine, const Polynomial& arcsine,
            Real x) {
  Real y = clenshaw(cosine, (x - Real{0.25}) / (o.range + Real{0.25}));
  for (int i = 0; i < o.doublings; ++i) y = 2 * y * y - 1;
  return horner(arcsine, y);
}

}  // namespace

ModularReduction::Variance ModularReduction::variance(const ckks::Params& params,
                                                      const ckks::Ciphertext& x,
                                                      const std::vector<double>& scales,
                                                      double rounding, int weight) const {
  // Scales are doubles, so a constant like the 1 of 2 y^2 - 1 is off by 2^-53, by the same amount
  // in every slot.
  constexpr double kScaleError = 0x1p-53;
  const double constants = kScaleError * kScaleError / static_cast<double>(params.n());
  const auto rounded = [&](double scale) { return rounding / (scale * scale) + constants; };
  PlanScales variances = plan_scales(plan_, params, x, scales[0]);
  for (auto* list : {&variances.powers, &variances.nodes}) {
    for (double& scale : *list) scale = rounded(scale);
  }
  Variance out;
  for_integers(options_.range, weight, [&](int integer, double probability) {
    const double u = (integer - 0.25) * input_factor();
    // y_i = cos(2 pi (x - 1/4) 2^(i - r)); the error of y_i grows by 4 y_i at the next doubling.
    double slope = 1, sum = 0;
    for (int i = options_.doublings; i >= 0; --i) {
      sum += slope * slope *
             (i == 0 ? plan_.rounding_gain(u, variances.powers, variances.nodes)
                     : rounded(scales[static_cast<std::size_t>(i)]));
      if (i > 0) {
        slope *= 4 * std::cos(kTurn * (integer - 0.25) * std::exp2(i - 1 - options_.doublings));
      }
    }
    out.mean += probability * sum;
    out.largest = std::max(out.largest, sum);
  });
  return out;
}

double ModularReduction::bound(const ckks::Params& params, const ckks::Ciphertext& x,
                               const std::vector<double>& scales, double rounding) const {
  constexpr double kScaleError = 0x1p-53;
  const auto rounded = [&](double scale) { return rounding / scale + kScaleError; };
  PlanScales bounds = plan_scales(plan_, params, x, scales[0]);
  for (auto* list : {&bounds.powers, &bounds.nodes}) {
    for (double& scale : *list) scale = rounded(scale);
  }
  double worst = 0;
  for (int integer = -options_.range; integer <= options_.range; ++integer) {
    const double u = (integer - 0.25) * input_factor();
    double slope = 1, sum = 0;
    for (int i = options_.doublings; i >= 0; --i) {
      sum += std::fabs(slope) * (i == 0 ? plan_.rounding_gain(u, bounds.powers, bounds.nodes, 1)
                                        : rounded(scales[static_cast<std::size_t>(i)]));
      if (i > 0) {
        slope *= 4 * std::cos(kTurn * (integer - 0.25) * std::exp2(i - 1 - options_.doublings));
      }
    }
    worst = std::max(worst, sum);
  }
  return worst;
}

double ModularReduction::operator()(double x) const {
  return static_cast<double>(reduce(options_, cosine_, arcsine_, x));
}

double ModularReduction::error(double distance) const {
  Real worst = 0;
  sample(options_.range, distance, [&](int integer, Real offset) {
    const Real y = reduce(options_, cosine_, arcsine_, integer + offset);
    worst = std::max(worst, std::fabs(y - offset));
  });
  return static_cast<double>(worst);
}

double ModularReduction::interpolation_error_rms(int weight) const {
  double total = 0;
  for_integers(options_.range, weight, [&](int integer, double probability) {
    const Real y = reduce(options_, cosine_, arcsine_, static_cast<Real>(integer));
    total += probability * static_cast<double>(y * y);
  });
  return std::sqrt(total);
}

// The difference to what the exact sine would give.
double ModularReduction::cosine_error(int integer, double offset) const {
  const Real sine = std::sin(2 * std::numbers::pi_v<Real> * static_cast<Real>(offset));
  const Real y = reduce(options_, cosine_, arcsine_, integer + static_cast<Real>(offset));
  return static_cast<double>(std::fabs(y - horner(arcsine_, sine)));
}

double ModularReduction::interpolation_error_at(int integer, double distance) const {
  double worst = 0;
  for (int j = -8; j <= 8; ++j) {
    const double offset = distance * j / 8;
    worst = std::max({worst, cosine_error(integer, offset), cosine_error(-integer, offset)});
  }
  return worst;
}

}  // namespace jali::circuits
