// Invariant: the scale of every ciphertext here is either S_l, the canonical scale of its level
// ("settled"), or S_l^2, that of a product that still has to be rescaled ("pending"). Plaintext
// factors are encoded so that products with them have the scale S_l^2, too. Hence the scales of
// pending ciphertexts of one level are equal, and they can be added.
#include "jali/schemes/ckks/auto_evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/ckks/composed.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

namespace {

// Scales are products of doubles, so two that are meant to be equal may differ by rounding.
bool close(double a, double b) { return std::fabs(a / b - 1) < 0x1p-45; }

double canonical(const Evaluator& e, int level) { return e.params()->scale(level); }

bool pending(const Evaluator& e, const Ciphertext& a) {
  return a.scale > canonical(e, a.level) * std::sqrt(canonical(e, a.level));
}

[[noreturn]] void throw_exhausted(const Evaluator& e) {
  if (e.params()->bootstrap()) {
    throw DepthExhausted(
        "the levels of these parameters are used up: bootstrap before that, at level " +
        std::to_string(e.params()->bootstrap()->input_level()) +
        " or above, or make the parameters with more levels_after");
  }
  auto literal = e.params()->literal();
  const int depth = e.params()->depth();
  std::string advice = "Params.create(depth=" + std::to_string(depth + 1) + ") or more";
  literal.depth = depth + 1;
  if (literal.security != 0) literal.log_n = 0;  // what is insecure has no ring of its own choice
  literal.dnum = 0;
  try {
    advice += " gives log_n " + std::to_string(Params::create(literal)->log_n());
  } catch (const Error&) {
    advice += ", but no ring holds that at this scale: lower scale_bits";
  }
  throw DepthExhausted("the circuit needs more than the depth " + std::to_string(depth) +
                       " of these parameters: " + advice);
}

void require_level(const Evaluator& e, const Ciphertext& a) {
  if (a.level < 1) throw_exhausted(e);
}

// The operand itself, or a converted copy of it. It copies nothing unless a conversion is needed.
class Operand {
 public:
  explicit Operand(const Ciphertext& a) : current_(&a) {}
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  const Ciphertext& operator*() const { return *current_; }
  const Ciphertext* operator->() const { return current_; }
  void replace(Ciphertext a) {
    owned_ = std::move(a);
    current_ = &owned_;
  }
  bool is_replaced() const { return current_ == &owned_; }
  Ciphertext take() { return std::move(owned_); }

 private:
  Ciphertext owned_;
  const Ciphertext* current_;
};

// Brings the operand to two parts and the canonical scale of its level.
void settle_operand(const Evaluator& e, Operand& a) {
  const bool rescale = pending(e, *a);
  if (rescale) require_level(e, *a);
  if (a->parts.size() == 3) {
    a.replace(rescale ? e.relinearise_rescale(*a) : e.relinearise(*a));
  } else if (rescale) {
    a.replace(e.rescale(*a));
  }
  // A scale that was set by hand becomes the canonical one of the level below, if there is a level
  // below.
  if (!close(a->scale, canonical(e, a->level)) && a->level > 0) {
    a.replace(e.adjust(*a, a->level - 1, canonical(e, a->level - 1)));
  }
}

// Brings a settled ciphertext down to the canonical scale of `level`.
void descend(const Evaluator& e, Operand& a, int level) {
  if (a->level == level) return;
  const double target = canonical(e, level);
  if (close(a->scale, target)) {
    a.replace(e.drop_to(*a, level));
  } else {
    a.replace(e.adjust(*a, level, target));
  }
}

void align(const Evaluator& e, Operand& a, Operand& b) {
  if (a->level == b->level && close(a->scale, b->scale)) return;
  settle_operand(e, a);
  settle_operand(e, b);
  const int level = std::min(a->level, b->level);
  descend(e, a, level);
  descend(e, b, level);
}

// The scale of a plaintext factor whose product with the settled operand `a` has the scale S_l^2.
double factor_scale(const Evaluator& e, const Ciphertext& a) {
  const double s = canonical(e, a.level);
  return s * (s / a.scale);
}

// Throws RangeExceeded if the numbers of the sum may be larger than its level holds, so that the
// caller learns of it where the product is written and not where it is computed. Errors are added
// when it is.
void require_range(const ProductSum& a) {
  double peak = std::abs(a.constant);
  for (const auto& [x, y] : a.products) peak += x->estimate.peak * y->estimate.peak;
  const auto& [x, y] = a.products[0];
  require_range(*x->params, {0, 0, std::min(peak, params::kUnbounded), 0, 0}, x->scale * y->scale,
                a.level());
}

template <class Combine>
Ciphertext combine(const Evaluator& e, const Ciphertext& a, const Ciphertext& b,
                   Combine&& operation) {
  rlwe::common_key(a.key_id, b.key_id);
  Operand x(a), y(b);
  align(e, x, y);
  return operation(*x, *y);
}

}  // namespace

AutoEvaluator::AutoEvaluator(std::shared_ptr<const Evaluator> evaluator)
    : evaluator_(std::move(evaluator)) {}

Ciphertext AutoEvaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  return combine(*evaluator_, a, b, [&](const auto& x, const auto& y) {
    return x.batch() >= y.batch() ? evaluator_->add(x, y) : evaluator_->add(y, x);
  });
}

Ciphertext AutoEvaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  return combine(*evaluator_, a, b, [&](const auto& x, const auto& y) {
    return x.batch() >= y.batch() ? evaluator_->sub(x, y)
                                  : evaluator_->negate(evaluator_->sub(y, x));
  });
}

Ciphertext AutoEvaluator::negate(const Ciphertext& a) const { return evaluator_->negate(a); }

Ciphertext AutoEvaluator::multiply(const Ciphertext& a, const Ciphertext& b, double peak) const {
  rlwe::common_key(a.key_id, b.key_id);
  Operand x(a);
  settle_operand(*evaluator_, x);
  if (&a == &b) {
    require_level(*evaluator_, *x);
    return evaluator_->multiply(*x, *x, peak);
  }
  Operand y(b);
  settle_operand(*evaluator_, y);
  const int level = std::min(x->level, y->level);
  descend(*evaluator_, x, level);
  descend(*evaluator_, y, level);
  require_level(*evaluator_, *x);
  return evaluator_->multiply(*x, *y, peak);
}

Ciphertext AutoEvaluator::square(const Ciphertext& a) const { return multiply(a, a); }

ProductSum AutoEvaluator::product(const ProductSum::Factor& a, const ProductSum::Factor& b) const {
  const Evaluator& e = *evaluator_;
  rlwe::common_key(a->key_id, b->key_id);
  Operand x(*a), y(*b);
  const bool square = a == b;
  settle_operand(e, x);
  if (!square) settle_operand(e, y);
  const int level = square ? x->level : std::min(x->level, y->level);
  descend(e, x, level);
  if (!square) descend(e, y, level);
  require_level(e, *x);
  require<InvalidArgument>(a->batch() == b->batch(),
                           "the operands of a product need equal batches");
  const auto factor = [](Operand& operand, const ProductSum::Factor& given) {
    return operand.is_replaced() ? std::make_shared<const Ciphertext>(operand.take()) : given;
  };
  ProductSum out;
  const auto first = factor(x, a);
  out.products.emplace_back(first, square ? first : factor(y, b));
  require_range(out);
  return out;
}

bool AutoEvaluator::can_join(const ProductSum& a, const ProductSum& b) {
  return a.level() == b.level() && a.batch() == b.batch() &&
         a.products.size() + b.products.size() <= kMostProducts;
}

ProductSum AutoEvaluator::join(ProductSum a, const ProductSum& b) {
  require<InvalidArgument>(can_join(a, b),
                           "sums of products need equal levels and batches to be one sum");
  rlwe::common_key(a.products[0].first->key_id, b.products[0].first->key_id);
  a.products.insert(a.products.end(), b.products.begin(), b.products.end());
  a.constant += b.constant;
  require_range(a);
  return a;
}

Ciphertext AutoEvaluator::settle(const ProductSum& a) const {
  require<InvalidArgument>(std::isfinite(a.constant.real()) && std::isfinite(a.constant.imag()),
                           "a constant operand must be finite");
  // The merged operation of the engines adds real constants only.
  if (a.constant.imag() != 0) return normalise(expand(a));
  Combination sum;
  for (const auto& [x, y] : a.products) sum.products.push_back({x.get(), y.get()});
  sum.constant = a.constant;
  const auto& [x, y] = a.products[0];
  return evaluator_->combine_rescale(sum, a.level(), x->scale * y->scale);
}

Ciphertext AutoEvaluator::expand(const ProductSum& a) const {
  std::optional<Ciphertext> out;
  for (const auto& [x, y] : a.products) {
    Ciphertext term = evaluator_->multiply(*x, *y);
    if (out) {
      evaluator_->add_inplace(*out, term);
    } else {
      out = std::move(term);
    }
  }
  return a.constant == 0.0 ? std::move(*out) : evaluator_->add_scalar(*out, a.constant);
}

/// Encodes numbers that may all be real. The rounding of real numbers is real, and a claim counts
/// it twice.
static Plaintext encoded(const Evaluator& evaluator, std::span<const std::complex<double>> v,
                         std::size_t batch, int level, double scale, int log_slots) {
  Plaintext out = evaluator.encoder().encode(v, batch, level, scale, log_slots);
  out.real = std::ranges::all_of(v, [](const auto& x) { return x.imag() == 0; });
  return out;
}

Ciphertext AutoEvaluator::add_vector(const Ciphertext& a, std::span<const std::complex<double>> v,
                                     std::size_t batch) const {
  return evaluator_->add_plain(a, encoded(*evaluator_, v, batch, a.level, a.scale, a.log_slots));
}

Ciphertext AutoEvaluator::multiply_vector(const Ciphertext& a,
                                          std::span<const std::complex<double>> v,
                                          std::size_t batch) const {
  Operand x(a);
  settle_operand(*evaluator_, x);
  require_level(*evaluator_, *x);
  return evaluator_->multiply_plain(
      *x, encoded(*evaluator_, v, batch, x->level, factor_scale(*evaluator_, *x), x->log_slots));
}

Ciphertext AutoEvaluator::add_scalar(const Ciphertext& a, std::complex<double> v) const {
  return evaluator_->add_scalar(a, v);
}

Ciphertext AutoEvaluator::multiply_scalar(const Ciphertext& a, std::complex<double> v) const {
  // Multiplying by a small integer, or by i times one, needs no level.
  constexpr double kSmall = 16;
  const double re = v.real(), im = v.imag();
  if (std::nearbyint(re) == re && std::nearbyint(im) == im && std::abs(v) <= kSmall &&
      (re == 0 || im == 0)) {
    if (im == 0) return evaluator_->multiply_integer(a, static_cast<std::int64_t>(re));
    return evaluator_->multiply_integer(evaluator_->multiply_i(a), static_cast<std::int64_t>(im));
  }
  Operand x(a);
  settle_operand(*evaluator_, x);
  require_level(*evaluator_, *x);
  return evaluator_->multiply_scalar(*x, v, factor_scale(*evaluator_, *x));
}

Ciphertext AutoEvaluator::rotate(const Ciphertext& a, int steps) const {
  Operand x(a);
  settle_operand(*evaluator_, x);
  return composed_rotate(*evaluator_, *x, steps);
}

Ciphertext AutoEvaluator::conjugate(const Ciphertext& a) const {
  Operand x(a);
  settle_operand(*evaluator_, x);
  return evaluator_->conjugate(*x);
}

Ciphertext AutoEvaluator::sum(const Ciphertext& a, std::size_t count) const {
  const std::size_t slots = std::size_t{1} << a.log_slots;
  if (count == 0) count = slots;
  require<InvalidArgument>(count <= slots && (count & (count - 1)) == 0, [&] {
    return "sum needs a power of two of at most " + std::to_string(slots) + " slots, not " +
           std::to_string(count);
  });
  Ciphertext x = normalise(a);
  // Neighbours within a period are different numbers.
  const std::size_t period = a.packing.tiling.window == 0 ? slots : a.packing.tiling.window;
  const bool zeros =
      a.packing.rest == 0 && a.packing.length > 0 && a.packing.tiling.count <= 1 && count <= period;
  const std::size_t terms = zeros ? std::min<std::size_t>(count, a.packing.length) : count;
  const double largest = a.estimate.peak * static_cast<double>(terms);
  const params::Estimate one = x.estimate;
  for (std::size_t step = 1; step < count; step *= 2) {
    evaluator_->add_inplace(x, composed_rotate(*evaluator_, x, static_cast<int>(step)), largest);
  }
  x.estimate.sum_of_slots(one, a.estimate, static_cast<double>(count), static_cast<double>(terms));
  return x;
}

Ciphertext AutoEvaluator::normalise(const Ciphertext& a) const {
  Operand x(a);
  settle_operand(*evaluator_, x);
  return evaluator_->copy(*x);
}

int AutoEvaluator::effective_level(const Ciphertext& a) const {
  return pending(*evaluator_, a) ? std::max(a.level - 1, 0) : a.level;
}

}  // namespace jali::ckks
