// The bootstrapping plan, which depends on the parameters and the packing alone, and the keys that
// it needs.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/bootstrap/key_sets.h"
#include "jali/bootstrap/shape.h"

namespace jali::bootstrap {
namespace {

using params::BootstrapLiteral;
using params::BootstrapOrder;

constexpr double kTurn = 2 * std::numbers::pi;

const BootstrapLiteral& literal(const ckks::ParamsPtr& params) {
  require<InvalidArgument>(params != nullptr && params->bootstrap().has_value(),
                           "these parameters have no levels for bootstrapping: create them with "
                           "bootstrap=True");
  return *params->bootstrap();
}

/// The part of the parameters that restores `target` levels, or the next higher number for which
/// there is a part.
ckks::ParamsPtr restored(const ckks::ParamsPtr& params, int target) {
  const auto& b = literal(params);
  if (target < 0 || target == params->depth()) return params;
  require<InvalidArgument>(target <= params->depth() && target >= b.input_level(), [&] {
    return "target_level must be " + std::to_string(b.input_level()) + " to " +
           std::to_string(params->depth()) + ", not " + std::to_string(target);
  });
  for (int depth = target; depth < params->depth(); ++depth) {
    if (auto part = params->with_depth(depth)) return part;
  }
  return params;
}

/// With few slots, the DFT needs fewer matrices, and levels up to `top` are left over above the
/// first matrix at `level`. They can bring down the scale, from `scale` towards `wanted`: adjust()
/// multiplies by an integer at level `from` and divides down to `level`. An integer of f bits is
/// off by 2^-f of itself. It needs the bits of `precision`, and at least the 19 that adjust()
/// requires; 46 are always enough.
struct Descent {
  int from = 0;
  double scale = 0;
};
Descent descent(const ckks::Params& params, int top, int level, double scale, double wanted,
                double precision) {
  const double least = std::clamp(precision, 0x1p19, 0x1p46);
  double ratio = 1;
  for (int l = level + 1; l <= top; ++l) {
    ratio *= params.ratio(l);
    if (wanted / scale * ratio >= least) return {l, wanted};
  }
  // There are too few levels to get as far as wanted; the matrices do the rest.
  return {top, scale / ratio * least};
}

}  // namespace

BootstrapPlan::BootstrapPlan(ckks::ParamsPtr params, const BootstrapperOptions& options)
    : whole_(std::move(params)),
      params_(restored(whole_, options.target_level)),
      options_(options),
      reduction_(reduction_options(literal(params_))) {
  const BootstrapLiteral& b = literal(params_);
  const int full = params_->log_n() - 1;
  if (options_.log_slots < 0) options_.log_slots = full;
  require<InvalidArgument>(options_.log_slots >= 1 && options_.log_slots <= full, [&] {
    return "bootstrapping serves 2 to 2^" + std::to_string(full) + " slots, not 2^" +
           std::to_string(options_.log_slots);
  });
  const bool raise_first = b.order == BootstrapOrder::raise_first;
  if (options_.minimum && !options_.few) {
    options_.few = key_sets(whole_, {&options_.log_slots, 1}).front().few.front();
  }
  if (options_.few && options_.few->log_slots >= 0) {
    require<InvalidArgument>(
        options_.few->log_slots >= options_.log_slots && options_.few->log_slots <= full, [&] {
          return "keys for 2^" + std::to_string(options_.few->log_slots) +
                 " slots do not serve values of 2^" + std::to_string(options_.log_slots) +
                 ": they must be for as many or more, and at most for 2^" + std::to_string(full);
        });
    options_.log_slots = options_.few->log_slots;
  }
  const Shape shape = shape_of(*params_, options_.log_slots);
  side_by_side_ = shape.side_by_side;
  q0_ = 1;
  for (PrimeIndex i : params_->level(0).primes) {
    q0_ *= static_cast<double>(params_->primes()[i]);
  }
  // Primes are not available at every size, so q_0 may be half a bit smaller than ratio_bits asks
  // for.
  entry_scale_ = std::max(q0_ * std::exp2(-b.ratio_bits), params_->scale(0));
  const int depth = params_->depth();
  const int mod_top = params_->top() - b.cts_levels;
  const double mod_nominal = params_->scale(mod_top);
  // The reduction's result f = (scale / q_0) message; sin(2 pi x) = 2 pi f keeps the nominal scale.
  mod_scale_ = raise_first ? mod_nominal * std::exp2(-b.head_scale_bits(0) - b.ratio_bits) * kTurn
                           : params_->scale(depth);

  // The factor undoes the trace, which multiplies by (N/2) / slots, and t + conj(t), which is twice
  // the real part.
  const double gap = std::ldexp(1, full - options_.log_slots);
  circuits::DftOptions to_slots = shape.to_slots;
  to_slots.factor = reduction_.input_factor() / gap * (side_by_side_ ? 1 : 0.5);
  // If few slots leave levels over, these bring the scale down from a large q_0, so that the
  // matrices need not. More precision than `worth` gains nothing, because of the reduction's
  // roundings, which it enlarges by at least 2^4.9.
  const double worth = mod_nominal /
                       std::sqrt(static_cast<double>(params_->n()) / 2 *
                                 params::NoiseModel(*params_).rounding().variance) /
                       4;
  raised_level_ = to_slots.level;
  to_slots.input_scale = q0_;
  if (to_slots.levels < b.cts_levels && mod_nominal < q0_) {
    const Descent down = descent(*params_, params_->top(), to_slots.level, q0_, mod_nominal, worth);
    if (down.scale < q0_) raised_level_ = down.from, to_slots.input_scale = down.scale;
  }
  to_slots.output_scale = mod_nominal;
  circuits::DftOptions to_coefficients = shape.to_coefficients;
  if (options_.few) {
    to_slots.sequences = options_.few->to_slots;
    to_coefficients.sequences = options_.few->to_coefficients;
  }
  // If few slots leave levels over, these bring the scale down, so that the matrices' own scales
  // are larger.
  const bool spare = to_coefficients.levels < b.stc_levels;
  to_coefficients.input_scale = !raise_first ? params_->scale(to_coefficients.level)
                                : spare
                                    ? descent(*params_, depth + b.stc_levels, to_coefficients.level,
                                              mod_scale_, 16 * params_->scale(depth), 1)
                                          .scale
                                    : mod_scale_;
  to_coefficients.output_scale = raise_first ? params_->scale(depth) : entry_scale_;

  // A rotation of the slots is an automorphism of the polynomial, so raising and reduction commute
  // with it.
  if (!raise_first) {
    to_coefficients_.emplace(params_, circuits::Dft::slots_to_coefficients, to_coefficients);
    to_slots.input_shift = to_coefficients_->shift();
  }
  to_slots_.emplace(params_, circuits::Dft::coefficients_to_slots, to_slots);
  if (raise_first) {
    to_coefficients.input_shift = to_slots_->shift();
    to_coefficients_.emplace(params_, circuits::Dft::slots_to_coefficients, to_coefficients);
  }
  turn_ = circuits::signed_rotation(-(raise_first ? *to_coefficients_ : *to_slots_).shift(),
                                    std::size_t{1} << options_.log_slots);
}

std::map<int, int> BootstrapPlan::rotation_levels() const {
  std::map<int, int> levels;
  const auto add = [&](int steps, int level) {
    const int r = circuits::signed_rotation(steps, params_->slots());
    levels[r] = std::max(levels[r], params_->whole_level(level));
  };
  for (const auto* dft : {&*to_slots_, &*to_coefficients_}) {
    for (const auto& stage : dft->stages()) {
      for (int r : stage.rotations()) add(r, stage.level());
    }
  }
  if (turn_ != 0) add(turn_, params_->depth());
  // Those of the trace. With few keys, not every one has a key, and the others are composed of the
  // one before it that has.
  const int stride = options_.few ? options_.few->trace : 1;
  int k = 0;
  for (std::size_t r = std::size_t{1} << options_.log_slots; r < params_->slots(); r *= 2, ++k) {
    if (k % stride == 0) add(static_cast<int>(r), to_slots_->level());
  }
  return levels;
}

std::vector<int> BootstrapPlan::rotations() const {
  std::vector<int> out;
  for (const auto& [steps, level] : rotation_levels()) out.push_back(steps);
  return out;
}

KeyLevels key_levels(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                     std::span<const int> rotations, bool conjugate) {
  KeyLevels out;
  out.relinearise = params.depth();
  if (conjugate) out.conjugate = params.depth();
  const auto add = [&](int steps, int level) {
    const int r = circuits::signed_rotation(steps, params.slots());
    if (r != 0) out.rotations[r] = std::max(out.rotations[r], level);
  };
  for (int r : rotations) add(r, params.depth());
  for (const BootstrapPlan& plan : plans) {
    for (const auto& [steps, level] : plan.rotation_levels()) add(steps, level);
    out.conjugate = std::max(out.conjugate, plan.conjugation_level());
    out.relinearise = std::max(out.relinearise, plan.relinearisation_level());
  }
  return out;
}

std::size_t key_bytes(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                      std::span<const int> rotations, bool conjugate) {
  const KeyLevels levels = key_levels(params, plans, rotations, conjugate);
  std::size_t total = params.switch_key_bytes(levels.relinearise);
  for (const auto& [steps, level] : levels.rotations) total += params.switch_key_bytes(level);
  if (levels.conjugate != rlwe::kNoKey) {
    total += params.switch_key_bytes(levels.conjugate);
  }
  return total + (plans.empty() ? 0 : params.encapsulation_key_bytes());
}

std::size_t expanded_key_bytes(const ckks::Params& params, std::span<const BootstrapPlan> plans,
                               std::span<const int> rotations, bool conjugate) {
  const KeyLevels levels = key_levels(params, plans, rotations, conjugate);
  std::size_t seeds = 1 + levels.rotations.size() + (plans.empty() ? 0 : 2);
  if (levels.conjugate != rlwe::kNoKey) ++seeds;
  return 2 * (key_bytes(params, plans, rotations, conjugate) - seeds * sizeof(random::Seed));
}

void BootstrapPlan::prepare(const ckks::Engine& engine, const Progress& progress) {
  const std::size_t total = to_slots_->stages().size() + to_coefficients_->stages().size();
  std::size_t done = 0;
  const auto tell = [&] {
    ++done;
    if (progress) progress(done, total);
  };
  const auto part = engine.part(params_);
  to_slots_->prepare(part->encoder(), tell);
  to_coefficients_->prepare(part->encoder(), tell);
}

std::size_t BootstrapPlan::plaintext_bytes() const {
  return to_slots_->plaintext_bytes() + to_coefficients_->plaintext_bytes();
}

// theta = 2 pi (scale / q_0) m is the angle of a number m, and sine_term(m) / m = c theta^(d+1) is
// the part of it that is lost. It is at most 2^-10 up to theta = (2^-10 / c)^(1/(d+1)). With
// raise_first, the numbers that are reduced are coefficients, and none exceeds the slots' root mean
// square. With slots_first they are the slots; one that is kPeak times the root mean square must
// keep an angle of at most pi/4. The result is at least 1, even if 1 loses more than 2^-10, because
// the parameters were made for that.
double BootstrapPlan::max_magnitude() const {
  const auto& b = *params_->bootstrap();
  const double turn = q0_ / entry_scale_;  // the m of theta = 2 pi
  const double lost = sine_term(turn) / turn;
  double most = turn * std::pow(0x1p-10 / lost, 1.0 / (b.inverse_sine + 1));
  if (b.order == BootstrapOrder::slots_first) most = std::min(most, turn / 8 / params::kPeak);
  return std::max(most, 1.0);
}

// The first term that the series of arcsin leaves out: with x = (scale / q_0) m and d its degree,
//   c_{d+2} (2 pi scale / q_0)^(d+1) m^(d+2),   c_3 = 1/6, c_5 = 3/40, c_7 = 15/336, c_9 =
//   105/3456.
// It bounds the whole error. Up to theta = pi/4 the sum of the later terms is less than the
// difference between theta^(d+2) and (sin theta)^(d+2). For larger angles the first d terms of the
// series are between -1.3 and 1.3, so that the error is at most theta + 1.3; the tests compare the
// two at angles between.
double BootstrapPlan::sine_term(double m) const {
  const int d = params_->bootstrap()->inverse_sine;
  const double c = d == 1 ? 1.0 / 6 : d == 3 ? 3.0 / 40 : d == 5 ? 15.0 / 336 : 105.0 / 3456;
  return c * std::pow(kTurn * entry_scale_ / q0_, d + 1) * std::pow(m, d + 2);
}

// The sum of the squares of the coefficients is at most bound^2, hence the sum of their p-th powers
// is at most bound^p. With raise_first a slot is a sum of them, each times a root of unity. With
// slots_first a slot is made of its own two coefficients.
double BootstrapPlan::worst_sine_error(double bound) const {
  return std::min(sine_term(bound), params::kUnbounded);
}

// With raise_first, how the message divides into coefficients decides. If all slots are equal, one
// coefficient holds everything, and no message has a larger error: the sum of the 2p-th powers of
// the coefficients, p = d + 2, is at most that of their squares to the p. All of it is in the real
// parts, of which precision_bits takes half of the variance to be; hence the root of 2. With
// slots_first the numbers that are reduced are the parts of a slot. They are taken to be normal, E
// m^(2p) = (2p - 1)!! E[m^2]^p, but no larger than the peak, by which E m^(2p) <= peak^(2p-2)
// E[m^2]. The two parts of a complex slot have half of E|z|^2 each. A real slot has all of it in
// one part, and, as above, counts twice. If m is a power of degree d of normal numbers, E m^(2p) =
// (2pd - 1)!! / (2d - 1)!!^p E[m^2]^p.
double BootstrapPlan::sine_error(double magnitude, double peak, bool real, double degree) const {
  const auto& b = *params_->bootstrap();
  if (b.order == BootstrapOrder::raise_first) return std::sqrt(2.0) * sine_term(magnitude);
  const double part = real ? magnitude : magnitude / std::sqrt(2.0);
  if (part == 0) return 0;
  const int p = b.inverse_sine + 2;
  constexpr double kAbove = 0.06;  // of the approximation of a moment
  const double normal =
      params::log2_normal_moment(p * degree) - p * (params::log2_normal_moment(degree) - kAbove);
  const double largest = (2 * p - 2) * std::log2(std::max(peak / part, 1.0));
  return std::exp2((1 + std::min(normal, largest)) / 2) * sine_term(part);
}

}  // namespace jali::bootstrap
