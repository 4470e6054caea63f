// Sums of products and multiples of ciphertexts. Every operand is read once, from where it lies,
// and one division serves relinearisation and rescaling.
#include <algorithm>
#include <cmath>
#include <deque>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

using Primes = std::vector<PrimeIndex>;

bool holds(std::span<const PrimeIndex> primes, std::span<const PrimeIndex> all) {
  return std::ranges::includes(primes, all);
}

/// The product of `primes` over the product of `by`. Primes that both have are left out, so that no
/// factor overflows.
double quotient(const ring::Ring& ring, std::span<const PrimeIndex> primes,
                std::span<const PrimeIndex> by) {
  double q = 1;
  for (const PrimeIndex p : primes) {
    if (!std::ranges::binary_search(by, p)) q *= static_cast<double>(ring.prime(p));
  }
  for (const PrimeIndex p : by) {
    if (!std::ranges::binary_search(primes, p)) q /= static_cast<double>(ring.prime(p));
  }
  return q;
}

/// A subset of `has` from which a division leads to `want` without loss: all primes that both have,
/// and others until the modulus is no smaller than that of `want`. It is empty if `has` is too
/// small for that.
Primes base_of(const ring::Ring& ring, std::span<const PrimeIndex> has,
               std::span<const PrimeIndex> want) {
  Primes base;
  std::ranges::set_intersection(has, want, std::back_inserter(base));
  for (const PrimeIndex p : has) {
    if (quotient(ring, base, want) >= 1) break;
    if (!std::ranges::binary_search(want, p)) {
      base.insert(std::ranges::upper_bound(base, p), p);
    }
  }
  return quotient(ring, base, want) >= 1 ? base : Primes{};
}

/// Multiples that are divided to the level of the sum together. common: the primes that all of them
/// have. base: those of `common` from which the division starts.
struct Group {
  Primes common, base;
  std::vector<Combination::Multiple> members;
};

// The integer factor that brings m.x to m.factor m.x at the scale `scale` times `enlarged`. Adds
// the estimate of that term to `sum`.
double integer_multiple(const Evaluator::Impl& impl, const Combination::Multiple& m, double scale,
                        double enlarged, std::optional<Estimate>& sum) {
  const double wanted = m.factor * (scale / m.x->scale) * enlarged, factor = std::nearbyint(wanted);
  Estimate term =
      impl.noise.multiply_constant(impl.known(*m.x), std::fabs(m.factor), std::fabs(factor));
  term += impl.scale_mismatch(m.x->estimate, m.x->scale * std::fabs(factor - wanted), 0);
  sum = sum ? impl.noise.add(*sum, term) : term;
  return factor;
}

/// `like` with the bound on the combination's numbers, and without its error: what is known before
/// anything is computed.
Ciphertext bounds_of(const Combination& c, const Ciphertext& like) {
  Ciphertext out;
  out.level = like.level;
  out.scale = like.scale;
  double peak = std::abs(c.constant);
  for (const auto& [a, b, factor] : c.products)
    peak += factor * a->estimate.peak * b->estimate.peak;
  for (const auto& [x, factor] : c.multiples) peak += std::fabs(factor) * x->estimate.peak;
  out.estimate = Estimate::of_peak(claimed_peak(c.peak, std::min(peak, params::kUnbounded)));
  return out;
}

}  // namespace

Ciphertext Evaluator::combine_rescale(const Combination& c, int level, double scale) const {
  const Impl& impl = *impl_;
  const ring::Ring& ring = *impl.ring;
  require<InvalidArgument>(!c.products.empty() || !c.multiples.empty(),
                           "a combination needs at least one term");
  impl.require_level(level, 1);
  const Ciphertext& first = c.products.empty() ? *c.multiples[0].x : *c.products[0].a;
  const std::size_t batch = first.batch();
  rlwe::KeyId key_id;
  const auto check = [&](const Ciphertext& x) {
    impl.check(x);
    key_id = rlwe::common_key(key_id, x.key_id);
    require<InvalidArgument>(x.parts.size() == 2 && x.batch() == batch && x.level >= level,
                             "terms of a combination have two parts, equal batches and no level "
                             "below that of the sum");
  };
  check(first);
  impl.require_scale(scale, level);
  const auto& primes = impl.params->level(level).primes;
  Ciphertext out = impl.shell(first);
  out.level = level;
  out.scale = scale;
  rlwe::Terms terms;
  std::optional<Estimate> estimate;

  for (const auto& [a, b, factor] : c.products) {
    check(*a), check(*b);
    require<InvalidArgument>(holds(impl.params->level(a->level).primes, primes) &&
                                 holds(impl.params->level(b->level).primes, primes),
                             "a factor of a product lacks limbs of the combination's level: "
                             "adjust it to that level");
    const double own = a->scale * b->scale, exact = factor * scale / own;
    const double integer = std::nearbyint(exact);
    require<ScaleMismatch>(
        (integer == 1 || integer == 2) && std::fabs(exact / integer - 1) < 0x1p-20,
        "a product's factor times the scale given must be a.scale * b.scale, or twice that: "
        "choose the scale so, or adjust a factor of the product");
    terms.add_product(*a, *b, integer == 2);
    const Estimate term = impl.noise.multiply_constant(impl.product(*a, *b), factor, integer);
    estimate = estimate ? impl.noise.add(*estimate, term) : term;
    out.log_slots = std::max({out.log_slots, a->log_slots, b->log_slots});
  }

  std::vector<Group> groups;
  for (const auto& m : c.multiples) {
    check(*m.x);
    require<InvalidArgument>(std::isfinite(m.factor), "a constant operand must be finite");
    out.log_slots = std::max(out.log_slots, m.x->log_slots);
    const auto& has = impl.params->level(m.x->level).primes;
    if (holds(has, primes)) {
      const double factor = integer_multiple(impl, m, scale, 1, estimate);
      terms.add_multiple(m.x->parts, ring::residues(ring, primes, factor));
      continue;
    }
    const auto joins = [&](Group& group) {
      Primes common;
      std::ranges::set_intersection(group.common, has, std::back_inserter(common));
      Primes base = base_of(ring, common, primes);
      if (base.empty()) return false;
      group.common = std::move(common), group.base = std::move(base);
      group.members.push_back(m);
      return true;
    };
    if (!std::ranges::any_of(groups, joins)) {
      groups.push_back({has, base_of(ring, has, primes), {m}});
      require<InternalError>(!groups.back().base.empty(), "a level above has a smaller modulus");
    }
  }
  impl.require_range(bounds_of(c, out));
  std::deque<std::vector<ring::Poly>> divided;  // the sums of the groups, after their division
  for (const Group& group : groups) {
    const double enlarged = quotient(ring, group.base, primes);
    rlwe::Terms members;
    std::optional<Estimate> sum;
    for (const auto& m : group.members) {
      const double factor = integer_multiple(impl, m, scale, enlarged, sum);
      members.add_multiple(m.x->parts, ring::residues(ring, group.base, factor));
    }
    const auto d = impl.bodies.combine(members, group.base, batch);
    divided.push_back(impl.switcher.reduce_pair(d[0], d[1], level));
    terms.add_multiple(divided.back(), ring::residues(ring, primes, std::int64_t{1}));
    const Estimate term = impl.noise.rescale(*sum, enlarged);
    estimate = estimate ? impl.noise.add(*estimate, term) : term;
  }

  if (const double re = std::nearbyint(c.constant.real() * scale); re != 0) {
    impl.require_room(re, level);
    terms.set_constant(ring::residues(ring, primes, re));
    estimate = impl.noise.add_constant(*estimate, c.constant.real(), scale);
  }
  out.key_id = key_id;
  out.estimate = *estimate;
  bound_by_claim(out.estimate, c.peak);
  impl.require_range(out);

  if (!c.products.empty() && c.constant.imag() == 0) {
    out = impl.divided(std::move(out));
    out.parts = impl.bodies.combine_relinearise_rescale(terms, batch, level);
    return out;
  }
  out.parts = impl.bodies.combine(terms, primes, batch);
  if (c.constant.imag() != 0) out = add_scalar(out, {0, c.constant.imag()});
  out = relinearise_rescale(out);
  bound_by_claim(out.estimate, c.peak);
  return out;
}

}  // namespace jali::ckks
