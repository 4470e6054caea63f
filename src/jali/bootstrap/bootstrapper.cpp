#include "jali/bootstrap/bootstrapper.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/bootstrap/error_bound.h"
#include "jali/schemes/ckks/composed.h"
#include "jali/schemes/ckks/range.h"

namespace jali::bootstrap {
namespace {

using ckks::Ciphertext;
using params::BootstrapLiteral;
using params::BootstrapOrder;

/// The largest relative error of an integer that brings a scale down within the circuit. The
/// numbers there include multiples of q_0, so the error of the message is larger by as much.
constexpr double kNear = 0x1p-46;

}  // namespace

Bootstrapper::Bootstrapper(std::shared_ptr<const ckks::Evaluator> evaluator, BootstrapPlan plan)
    : Bootstrapper(std::move(evaluator), std::make_shared<BootstrapPlan>(std::move(plan))) {}

Bootstrapper::Bootstrapper(std::shared_ptr<const ckks::Evaluator> evaluator,
                           std::shared_ptr<BootstrapPlan> plan)
    : evaluator_(std::move(evaluator)), plan_(std::move(plan)) {
  require<InvalidArgument>(evaluator_ != nullptr && plan_ != nullptr,
                           "bootstrapping needs an evaluator and a plan");
  require<ParamsMismatch>(evaluator_->params()->hash() == plan_->whole_->hash(),
                          "the plan was made for other parameters than the evaluator's");
  require<KeyMissing>(evaluator_->has_encapsulation(),
                      "no keys for bootstrapping: make the keys with bootstrap=True");
  // check() guards the numbers. Inside, coefficients lie in slots and slots in coefficients, and
  // bounds on slots are N times too large for what wraps around.
  const auto unchecked = [&](const ckks::ParamsPtr& params) {
    return std::make_shared<const ckks::Evaluator>(params, *evaluator_, /*checks_range=*/false);
  };
  evaluator_ = unchecked(plan_->whole_);
  inner_ = plan_->params_ == plan_->whole_ ? evaluator_ : unchecked(plan_->params_);
  for (const auto& [steps, level] : plan_->rotation_levels()) {
    circuits::require_rotation_keys(*evaluator_, {&steps, 1}, "bootstrapping", level);
  }
  require<KeyMissing>(
      evaluator_->has_galois(ring::conjugation_element(plan_->params_->n()),
                             plan_->conjugation_level()),
      "bootstrapping needs the key for conjugation at its own levels: make the keys with "
      "bootstrap=True");
  require<KeyMissing>(
      evaluator_->has_relinearisation(plan_->relinearisation_level()),
      "bootstrapping needs the relinearisation key at its own levels: make the keys "
      "with bootstrap=True");
}

void Bootstrapper::prepare(const Progress& progress) {
  plan_->prepare(*evaluator_->engine(), progress);
}

namespace {

/// A bound on the error that the circuit made of its own roundings and key switches in every slot,
/// in units of the scaled integers.
double circuit_error(const params::Estimate& e, std::size_t n) {
  return circuits::kCircuitDeviations * std::sqrt(static_cast<double>(n) * e.claim().variance);
}

}  // namespace

// Brings x to level 0, at a scale close to entry_scale. `entered` gets the exact scale.
Ciphertext Bootstrapper::enter(const Ciphertext& x, double& entered) const {
  const double target = plan_->entry_scale_;
  if (x.level > 0) {
    entered = target;
    return evaluator_->adjust(x, 0, target);
  }
  double factor = std::max(std::floor(target / x.scale * (1 + 0x1p-40)), 1.0);
  // If q_0 is far larger than needed, the factor is the product of two integers of up to 61 bits.
  const int more = std::max(std::ilogb(factor) - 61, 0);
  require<ScaleMismatch>(more < 62, [&] {
    return "a scale of 2^" + std::to_string(std::log2(x.scale)) +
           " at level 0 holds no message: bootstrapping needs a scale near 2^" +
           std::to_string(std::log2(target)) + " there: rescale less often";
  });
  factor = std::floor(std::ldexp(factor, -more));
  Ciphertext out = evaluator_->multiply_integer(x, static_cast<std::int64_t>(factor));
  if (more > 0) out = evaluator_->multiply_integer(out, std::int64_t{1} << more);
  out.scale = entered = x.scale * std::ldexp(factor, more);
  out.estimate.set_size(x.estimate.message, x.estimate.peak);
  return out;
}

// The trace to the subring of the packing: the sum over the automorphisms that fix it. On the
// subring it multiplies by (N/2) / slots.
Ciphertext Bootstrapper::trace(Ciphertext x) const {
  const std::size_t slots = std::size_t{1} << plan_->options_.log_slots;
  for (std::size_t r = slots; r < plan_->params_->slots(); r *= 2) {
    inner_->add_inplace(x, composed_rotate(*inner_, x, static_cast<int>(r)));
  }
  x.log_slots = plan_->packed_log_slots();
  return x;
}

// The modular reduction of the coefficients that lie in the slots, multiplied by input_factor. The
// result is at `scale`, and has complex slots unless real and imaginary parts lie side by side.
// error_bound() counts the cosine's error.
Ciphertext Bootstrapper::reduce(const Ciphertext& t, double scale, const Done& done) const {
  const auto& ev = *inner_;
  const int weight = plan_->params_->bootstrap()->weight;
  const Ciphertext turned = ev.conjugate(t);
  const Ciphertext real = ev.add(t, turned);
  done("conjugation", real);
  if (plan_->side_by_side_ || (plan_->options_.real && plan_->input_level() > 0)) {
    return plan_->reduction_.apply(ev, real, scale, weight, 0);
  }
  // i (conj(t) - t) is twice the imaginary part.
  const Ciphertext both = ev.stack(real, ev.multiply_i(ev.sub(turned, t)));
  const Ciphertext f = plan_->reduction_.apply(ev, both, scale, weight, 0);
  return ev.add(ev.vectors(f, 0, t.batch()), ev.multiply_i(ev.vectors(f, t.batch(), t.batch())));
}

void Bootstrapper::check(const Ciphertext& x) const {
  ckks::require_range(*plan_->whole_, x.estimate, x.scale, x.level);
  require<InvalidArgument>(x.parts.size() == 2, "bootstrapping takes two parts: relinearise first");
  require<DepthExhausted>(x.level >= plan_->input_level(), [&] {
    return "these parameters bootstrap from level " + std::to_string(plan_->input_level()) +
           " or above, and the ciphertext has level " + std::to_string(x.level) +
           ": bootstrap before the last levels are used";
  });
  require<InvalidArgument>(x.estimate.message <= plan_->max_magnitude(), [&] {
    return "the declared magnitude " + std::to_string(x.estimate.message) + " is more than the " +
           std::to_string(plan_->max_magnitude()) +
           " that these parameters bootstrap: multiply the values by a constant below 1 before, "
           "and "
           "by its inverse afterwards";
  });
  require<InvalidArgument>(x.estimate.peak <= params::kPeak * plan_->max_magnitude(), [&] {
    return "numbers of up to " + std::to_string(x.estimate.peak) +
           ", which follow from what was declared, are more than the " +
           std::to_string(params::kPeak * plan_->max_magnitude()) +
           " that these parameters bootstrap: declare a smaller peak when encrypting, or, if the "
           "computed numbers are known to be smaller, say so with with_magnitude";
  });
  // At the lowest level nothing is divided, so a scale above the canonical one makes the numbers as
  // much larger.
  if (x.level > plan_->input_level()) return;
  const double usual =
      plan_->input_level() == 0 ? plan_->entry_scale_ : plan_->params_->scale(x.level);
  require<ScaleMismatch>(x.scale / usual * x.estimate.message <= plan_->max_magnitude(), [&] {
    return "a scale of 2^" + std::to_string(std::log2(x.scale)) + " at level " +
           std::to_string(x.level) +
           " leaves too little room for bootstrapping: it takes up to 2^" +
           std::to_string(std::log2(usual * plan_->max_magnitude() / x.estimate.message)) +
           " for the declared magnitude";
  });
}

int Bootstrapper::checked_target(int target_level, int iterations) const {
  require<InvalidArgument>(iterations >= 1 && iterations <= kMaxIterations, [&] {
    return "iterations must be 1 to " + std::to_string(kMaxIterations) + ", not " +
           std::to_string(iterations);
  });
  const int depth = plan_->params_->depth();
  // The sum of several results takes a level.
  const int most = iterations == 1 ? depth : depth - 1;
  require<DepthExhausted>(iterations == 1 || plan_->input_level() < depth - 1, [&] {
    return "iterated bootstrapping leaves one level less than the " + std::to_string(depth) +
           " of these parameters, and their next bootstrapping is due at level " +
           std::to_string(plan_->input_level()) + ": take parameters with more levels";
  });
  require<InvalidArgument>(target_level <= most, [&] {
    return "target_level " + std::to_string(target_level) + " is above the " +
           std::to_string(most) + " levels that this bootstrapping restores: lower it";
  });
  if (target_level >= 0) return target_level;
  return plan_->options_.target_level < 0 ? most : std::min(most, plan_->options_.target_level);
}

Ciphertext Bootstrapper::apply(const Ciphertext& x, int target_level, const Done& done,
                               int iterations) const {
  check(x);
  const int target = checked_target(target_level, iterations);
  // If the reduction did not drop the imaginary parts, or not in all terms of the sum, they are
  // dropped at the end: x/2 + conj(x/2).
  const bool halve = plan_->options_.real && (plan_->input_level() == 0 || iterations > 1);
  Ciphertext y = restored(x, target, halve ? 0.5 : 1, done, iterations);
  if (halve) y = evaluator_->add(y, evaluator_->conjugate(y));
  y.estimate.set_numbers_of(x.estimate);
  y.packing = x.packing;
  return y;
}

Ciphertext Bootstrapper::restored(const Ciphertext& x, int target, double factor, const Done& done,
                                  int iterations) const {
  const auto together = [&](const Ciphertext& in) {
    return iterations == 1 ? once(in, target, factor, done)
                           : iterated(in, target, factor, done, iterations);
  };
  const std::size_t most = most_at_once(x);
  if (x.batch() <= most) return together(x);
  Ciphertext y;
  for (std::size_t first = 0; first < x.batch(); first += most) {
    Ciphertext part = together(evaluator_->vectors(x, first, std::min(most, x.batch() - first)));
    y = first == 0 ? std::move(part) : evaluator_->stack(y, part);
  }
  return y;
}

// Each ciphertext of a batch takes some 60 times the memory that it has at the top: in the matrices
// rotations of it, and in the reduction powers. A key is read once for a batch, so a few are taken
// together in any case.
std::size_t Bootstrapper::most_at_once(const Ciphertext& x) const {
  if (!evaluator_->ring()->memory().host_accessible()) return x.batch();
  constexpr std::size_t kTimes = 60, kLeast = 4, kBytes = std::size_t{256} << 20;
  const std::size_t top = 2 * plan_->params_->q_count() * x.parts[0].row_bytes();
  return std::max(kLeast, kBytes / (kTimes * top));
}

// (x + i y)/2 and its conjugate have the sum x and the difference i y.
std::pair<Ciphertext, Ciphertext> Bootstrapper::apply_pair(const Ciphertext& x, const Ciphertext& y,
                                                           int target_level, int iterations) const {
  const auto& ev = *evaluator_;
  require<InvalidArgument>(!plan_->options_.real,
                           "a bootstrapping that drops imaginary parts serves no pairs: make one "
                           "with real = false");
  check(x);
  check(y);
  require<InvalidArgument>(x.log_slots == y.log_slots, "a pair needs equal numbers of slots");
  const int target = checked_target(target_level, iterations);
  // Its magnitude is sqrt(2) times theirs. The reduction still sees the numbers of each one by
  // themselves, so the checks of x and y are enough.
  Ciphertext both = ev.add(x, ev.multiply_i(y));
  both.estimate.pair_of(x.estimate, y.estimate);
  const Ciphertext half = restored(both, target, 0.5, {}, iterations);
  const Ciphertext turned = ev.conjugate(half);
  std::pair<Ciphertext, Ciphertext> out{ev.add(half, turned), ev.multiply_i(ev.sub(turned, half))};
  out.first.estimate.set_numbers_of(x.estimate);
  out.first.packing = x.packing;
  out.second.estimate.set_numbers_of(y.estimate);
  out.second.packing = y.packing;
  return out;
}

// Y. Bae, J. H. Cheon, W. Cho, J. Kim, T. Kim, eprint 2022/1167: with y_0 = boot(x) and
//   y_{i+1} = boot(2^{k_i} (x - y_0 / F_0 - .. - y_i / F_i)),  F_{i+1} = 2^{k_i} F_i,  F_0 = 1,
// the error of the sum of the y_i / F_i is that of the last y_i over the last factor. k is the
// precision p of a result less three bits, so that the slots of the difference that is bootstrapped
// next have a modulus of about 1/8; the largest are about twelve times that. The sine's error of a
// number m is about m^3 2^-p. Enlarged by 2^k it is m^3 / 8, which is less than m up to m = 2.8.
Ciphertext Bootstrapper::iterated(const Ciphertext& x, int target, double factor, const Done& done,
                                  int iterations) const {
  const auto& ev = *evaluator_;
  const auto& params = *plan_->params_;
  const int low = plan_->input_level();
  Ciphertext base;
  if (low == 0) {
    double entered = 0;
    base = enter(x, entered);
  } else {
    base = x.level > low ? ev.adjust(x, low, params.scale(low)) : ev.copy(x);
  }
  base.estimate.set_numbers_of(x.estimate);

  // adjust() matches scales by an integer that must be off by less than 2^-20 of itself. One of
  // 2^21 is off by at most 2^-22.
  const double top_scale = params.scale(params.depth());
  const double most = std::min(base.scale, top_scale) * 0x1p-21;
  const double base_scale = base.scale;
  // If the scale is not the usual one, the numbers that are reduced are larger by this factor.
  const double drift = base_scale / (low == 0 ? plan_->entry_scale_ : params.scale(low));
  const bool drop = plan_->options_.real && low > 0;
  std::vector<Ciphertext> terms;
  double enlarged = 1;
  Ciphertext rest = ev.copy(base);
  while (true) {
    const double message = rest.estimate.message;
    Ciphertext y = once(rest, params.depth(), 1, done);
    // What is off by more than the error of x, which both sides of the difference have.
    const double off =
        std::max(y.estimate.error / y.scale - rest.estimate.error / rest.scale, 0.0) / enlarged;
    // What a claim adds to it would leave less to enlarge.
    const double bits = ev.noise().unshared_bits(y.estimate, y.scale);
    const double claimed = ev.noise().precision_bits(y.estimate, y.scale);
    y.scale *= enlarged;
    y.estimate.set_size(y.estimate.message / enlarged, y.estimate.peak / enlarged);
    terms.push_back(std::move(y));
    if (static_cast<int>(terms.size()) == iterations) break;

    const double error =
        std::max(std::exp2(-bits), plan_->worst_sine_error(drift * message) / drift);
    const double k = std::floor(std::min(-std::log2(error) - 3, std::log2(most / enlarged)));
    if (k < 1) break;  // the scale holds no more precision
    // The next result measures the errors of this one and removes them, so they do not count as
    // noise of the sum.
    Ciphertext& last = terms.back();
    last.estimate.measured();
    if (drop && terms.size() == 1) {
      // The next bootstrapping drops imaginary parts; they are removed now, so that they are not
      // enlarged before.
      base = ev.add(base, ev.conjugate(base));
      base.scale *= 2;
    }
    base = ev.sub(base, ev.adjust(last, base.level, base.scale));
    const double rms = std::sqrt(2.0) * error;
    enlarged *= std::exp2(k);
    const double times = enlarged * base_scale / base.scale;
    rest = ev.multiply_integer(base, static_cast<std::int64_t>(times));
    rest.scale = base_scale;
    rest.estimate.left_to_measure(rms * std::exp2(k), off * enlarged, std::exp2(bits - claimed));
  }
  const double scale = params.scale(target);
  std::optional<Ciphertext> sum;
  for (const Ciphertext& y : terms) {
    Ciphertext at = ev.adjust(y, target, scale * factor);
    at.estimate.set_term();  // the terms have errors of their own
    if (sum) {
      ev.add_inplace(*sum, at);
    } else {
      sum = std::move(at);
    }
  }
  sum->scale = scale;
  sum->estimate.set_unknown();
  if (terms.size() > 1) sum->estimate.lose_noise();
  return std::move(*sum);
}

// The error of the reduction itself in a slot, in message units, for numbers and errors up to
// `largest`: what the sine makes of them, and the cosine's polynomial at rare integers. The series
// of arcsin is below 1.3 everywhere, and so no result is above 1.3 / (2 pi) turns. Numbers of more
// than half a turn lie at other integers than their own.
double Bootstrapper::reduction_error(double largest, double drift) const {
  const bool raise_first = plan_->params_->bootstrap()->order == BootstrapOrder::raise_first;
  const double turn = plan_->q0_ / plan_->entry_scale_, distance = drift * largest / turn;
  const std::size_t coefficients = std::size_t{2} << plan_->options_.log_slots;
  // With slots_first a slot has the errors of its two parts, with raise_first those of all
  // coefficients.
  const double parts = raise_first ? static_cast<double>(coefficients) : std::sqrt(2.0);
  const auto& reduction = plan_->reduction_;
  double cosine = 0;
  if (distance <= 0.5) {
    cosine = largest_cosine_error(reduction, coefficients, distance, raise_first);
    if (!raise_first) cosine *= parts;
  } else {
    for (int i = 0; i <= reduction.options().range; ++i) {
      cosine = std::max(cosine, parts * reduction.interpolation_error_at(i, 0.5));
    }
  }
  const double sine = std::min(plan_->worst_sine_error(drift * largest),
                               drift * largest + parts * 1.3 / (2 * std::numbers::pi) * turn);
  return std::min((sine + turn * cosine) / drift, params::kUnbounded);
}

// The parts of the error that are not the circuit's noise, in message units: that of x, which comes
// through as it is, that of the reduction, and the roundings of the matrices of slots to
// coefficients.
double Bootstrapper::error_bound(const Ciphertext& x, double drift) const {
  const auto& params = *plan_->params_;
  const bool raise_first = params.bootstrap()->order == BootstrapOrder::raise_first;
  const double carried = x.estimate.error / x.scale, largest = x.estimate.peak + carried;
  return std::min(carried + reduction_error(largest, drift) +
                      largest_matrix_error(*plan_->to_coefficients_, params, raise_first) * largest,
                  params::kUnbounded);
}

// The message times `factor`, at level target.
Ciphertext Bootstrapper::once(const Ciphertext& x, int target, double factor,
                              const Done& done) const {
  const auto& ev = *inner_;
  const auto& params = *plan_->params_;
  const BootstrapLiteral& b = *params.bootstrap();
  double entered = 0;  // scale of the message at level 0
  Ciphertext low;
  if (b.order == BootstrapOrder::raise_first) {
    low = enter(x, entered);
    low.params = plan_->params_;
    low.log_slots = plan_->options_.log_slots;
    done("enter", low);
  } else {
    const auto& dft = *plan_->to_coefficients_;
    const double canonical = params.scale(dft.level());
    Ciphertext in =
        x.level > dft.level() ? evaluator_->adjust(x, dft.level(), canonical) : evaluator_->copy(x);
    in.params = plan_->params_;
    in.log_slots = plan_->options_.log_slots;
    // The matrices expect the canonical scale. A different scale is treated as a factor of the
    // message.
    entered = plan_->entry_scale_ * (in.scale / canonical);
    in.scale = canonical;
    // The numbers become coefficients. They may add up in the slots, but it is coefficients that
    // wrap around the modulus.
    low = dft.apply(ev, std::move(in), x.estimate.peak * (entered / plan_->entry_scale_));
    done("slots_to_coefficients", low);
  }

  const auto& to_slots = *plan_->to_slots_;
  Ciphertext raised = ev.raise(low, plan_->raised_level_);
  // The reduction works on phase / q_0, so the scale becomes q_0, and the estimate describes these
  // numbers.
  raised.scale = plan_->q0_;
  const double coefficient = std::sqrt((b.weight + 1) / 12.0);
  raised.estimate.raised(coefficient * std::sqrt(static_cast<double>(params.n())),
                         (b.range + 1) * static_cast<double>(params.n()));
  if (raised.level > to_slots.level()) {
    raised = ev.adjust(raised, to_slots.level(), to_slots.stages().front().input_scale(), kNear);
  }
  raised = trace(std::move(raised));
  done("raise", raised);
  Ciphertext slots = to_slots.apply(ev, std::move(raised));
  // The worst case of the matrices is sqrt(N) times what random errors leave.
  slots.estimate.expect_error(circuit_error(slots.estimate, params.n()));
  done("coefficients_to_slots", slots);
  Ciphertext f = reduce(slots, plan_->mod_scale_ * factor * (plan_->q0_ / entered), done);
  f.scale = plan_->mod_scale_;
  // By how much the bound for the integers with the largest errors is above that of their average.
  const double uneven = std::max(f.estimate.error / circuit_error(f.estimate, params.n()), 1.0);
  // A coefficient is no larger than the largest slot, and a complex slot holds two of them.
  f.estimate.set_size(f.estimate.message, 2 * factor * x.estimate.peak);
  done("reduction", f);
  if (b.order == BootstrapOrder::raise_first) {
    const auto& dft = *plan_->to_coefficients_;
    // The slots of f are the coefficients of the message.
    const double numbers = std::ldexp(2.0, plan_->options_.log_slots);
    f.estimate.set_size(
        factor * x.estimate.message * std::sqrt((plan_->side_by_side_ ? 1 : 2) / numbers),
        f.estimate.peak);
    if (f.level > dft.level()) {
      f = ev.adjust(f, dft.level(), dft.stages().front().input_scale(), kNear);
    }
    f = dft.apply(ev, std::move(f), factor * x.estimate.peak);
    done("slots_to_coefficients", f);
  }
  f.log_slots = x.log_slots;
  f.estimate.set_unknown();
  f.estimate.set_size(factor * x.estimate.message, factor * x.estimate.peak);
  const double drift = entered / plan_->entry_scale_;
  const auto variance_of_sine = [&](double message, bool real, double peak, double degree = 1) {
    const double error = plan_->sine_error(drift * message, drift * peak, real, degree);
    const double scaled = factor * error / drift * f.scale;
    return scaled * scaled / static_cast<double>(params.n());
  };
  const double off = std::max(x.estimate.error, x.estimate.noise) / x.scale;
  const double message = x.estimate.message, peak = x.estimate.peak;
  const double slots_n = static_cast<double>(params.slots());
  params::BootstrapNoise added;
  added.sine = variance_of_sine(message, x.estimate.real, peak);
  added.sine_of_real = variance_of_sine(message, true, peak);
  added.sine_claimed =
      variance_of_sine(std::min(x.estimate.claim().message, peak), true,
                       x.estimate.claimed_largest(slots_n), params::degree_of(x.estimate.lineage));
  added.reduction = factor * f.scale * reduction_error(peak + off, drift);
  added.whole =
      error_bound(x, drift) * factor * f.scale + uneven * circuit_error(f.estimate, params.n());
  added.passed = factor * f.scale / x.scale;
  added.drops_imaginary = plan_->options_.real;
  added.slots = slots_n;
  f.estimate.bootstrapped(x.estimate, added);
  if (target < params.depth()) f = ev.adjust(f, target, params.scale(target));
  if (plan_->turn_ != 0) f = ev.rotate(f, plan_->turn_);
  f.params = evaluator_->params();
  return f;
}

}  // namespace jali::bootstrap
