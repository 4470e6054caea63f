#include "jali/schemes/ckks/array_evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/schemes/ckks/batcher.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

namespace {

Ciphertext with(Ciphertext out, const Packing& packing) {
  out.packing = packing;
  return out;
}

/// The sum or product of a and of numbers that may be real, although they come as complex ones.
Ciphertext known_real(Ciphertext out, const Ciphertext& a, const Numbers& b) {
  out.estimate.set_real(a.estimate, !b.complex_values);
  return out;
}

/// The numbers of b where those of a lie. The encoder puts zeros behind short rows, which is right
/// for vectors that lie once.
std::span<const std::complex<double>> beside(const Ciphertext& a, const Numbers& b,
                                             std::vector<std::complex<double>>& store) {
  if (a.packing.tiling.window == 0 || b.count() != length_of(a)) return b.values;
  store = to_slots(b.values, b.batch, a.packing, std::size_t{1} << a.log_slots);
  return store;
}

/// How many slots there are for each slot that numbers other than zero are put in; 1 if all numbers
/// are zero.
double slots_for_each(const Ciphertext& a, const Numbers& b) {
  const auto zeros = static_cast<std::size_t>(std::ranges::count(b.values, 0.0));
  if (zeros == b.values.size()) return 1;
  const double slots = static_cast<double>(b.batch) * std::exp2(a.log_slots);
  const double often =  // how often the numbers of a vector that repeats lie in its slots
      a.packing.tiling.window == 0 || b.count() != length_of(a)
          ? 1
          : std::exp2(a.log_slots) / a.packing.tiling.count / a.packing.tiling.window;
  return slots / often / static_cast<double>(b.values.size() - zeros);
}

/// The sum of a and of numbers that are known: its message is that of the slots in which a number
/// was added.
Ciphertext known_where_added(Ciphertext out, const Ciphertext& a, const Numbers& b) {
  double squares = 0;
  for (const auto& x : b.values) squares += std::norm(x);
  const double slots = static_cast<double>(b.batch) * std::exp2(a.log_slots);
  const double of_all = squares / slots;
  const double more = of_all * (slots_for_each(a, b) - 1);
  if (more > 0) out.estimate.added_where(more);
  return known_real(std::move(out), a, b);
}

/// A ciphertext without parts that has what the packing rules read.
Ciphertext shape_of(const ProductSum& a) {
  Ciphertext out;
  out.log_slots = a.log_slots();
  out.packing = a.packing;
  return out;
}

}  // namespace

ArrayEvaluator::ArrayEvaluator(std::shared_ptr<const Evaluator> evaluator)
    : automatic_(std::move(evaluator)) {}

Ciphertext ArrayEvaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  const Packing packing = packing_of_sum(a, b);
  return with(automatic_.add(a, b), packing);
}

Ciphertext ArrayEvaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  const Packing packing = packing_of_sum(a, b);
  return with(automatic_.sub(a, b), packing);
}

Ciphertext ArrayEvaluator::negate(const Ciphertext& a) const {
  return with(automatic_.negate(a), a.packing);
}

Ciphertext ArrayEvaluator::multiply(const Ciphertext& a, const Ciphertext& b) const {
  if (&a == &b) return with(automatic_.square(a), packing_of_product(a, a));
  const Packing packing = packing_of_product(a, b);
  return with(automatic_.multiply(a, b), packing);
}

ProductSum ArrayEvaluator::product(const ProductSum::Factor& a, const ProductSum::Factor& b) const {
  const Packing packing = packing_of_product(*a, *b);
  ProductSum out = automatic_.product(a, b);
  out.packing = packing;
  return out;
}

std::optional<ProductSum> ArrayEvaluator::join(const ProductSum& a, const ProductSum& b) const {
  const Packing packing = packing_of_sum(shape_of(a), shape_of(b));
  if (!AutoEvaluator::can_join(a, b)) return std::nullopt;
  ProductSum out = AutoEvaluator::join(a, b);
  require_room(out);
  out.packing = packing;
  return out;
}

std::optional<ProductSum> ArrayEvaluator::join_scalar(const ProductSum& a,
                                                      std::complex<double> b) const {
  if (!(std::abs(a.constant + b) <= kMostConstant)) return std::nullopt;
  ProductSum out = a;
  out.constant += b;
  require_room(out);
  out.packing = packing_of_sum(shape_of(a), b);
  return out;
}

Ciphertext ArrayEvaluator::settle(const ProductSum& a) const {
  return with(automatic_.settle(a), a.packing);
}

Ciphertext ArrayEvaluator::expand(const ProductSum& a) const {
  return with(automatic_.expand(a), a.packing);
}

Ciphertext ArrayEvaluator::add_numbers(const Ciphertext& a, const Numbers& b) const {
  const Packing packing = packing_of_sum(a, b);
  std::vector<std::complex<double>> store;
  return with(known_where_added(automatic_.add_vector(a, beside(a, b, store), b.batch), a, b),
              packing);
}

Ciphertext ArrayEvaluator::sub_numbers(const Ciphertext& a, const Numbers& b) const {
  const Packing packing = packing_of_sum(a, b);
  std::vector<std::complex<double>> store;
  const auto values = beside(a, b, store);
  std::vector<std::complex<double>> negated(values.size());
  std::ranges::transform(values, negated.begin(), [](const auto& x) { return -x; });
  return with(known_where_added(automatic_.add_vector(a, negated, b.batch), a, b), packing);
}

Ciphertext ArrayEvaluator::multiply_numbers(const Ciphertext& a, const Numbers& b) const {
  const Packing packing = packing_of_product(a, b);
  double largest = 0;
  for (const auto& x : b.values) largest = std::max(largest, std::abs(x));
  require_fits(a, largest);
  std::vector<std::complex<double>> store;
  Ciphertext out = known_real(automatic_.multiply_vector(a, beside(a, b, store), b.batch), a, b);
  out.estimate.left_where(slots_for_each(a, b));
  return with(std::move(out), packing);
}

Ciphertext ArrayEvaluator::add_scalar(const Ciphertext& a, std::complex<double> b) const {
  return with(automatic_.add_scalar(a, b), packing_of_sum(a, b));
}

Ciphertext ArrayEvaluator::multiply_scalar(const Ciphertext& a, std::complex<double> b) const {
  require_fits(a, std::abs(b));
  return with(automatic_.multiply_scalar(a, b), packing_of_product(a, b));
}

Ciphertext ArrayEvaluator::rotate(const Ciphertext& a, int steps) const {
  const std::size_t slots = std::size_t{1} << a.log_slots;
  return with(automatic_.rotate(a, steps), packing_of_rotated(a.packing, steps, slots));
}

Ciphertext ArrayEvaluator::conjugate(const Ciphertext& a) const {
  return with(automatic_.conjugate(a), a.packing);
}

Ciphertext ArrayEvaluator::sum(const Ciphertext& a, std::size_t count) const {
  const std::size_t slots = std::size_t{1} << a.log_slots;
  require<InvalidArgument>(count <= slots, [&] {
    return "sum over " + std::to_string(count) + " slots of a ciphertext that has " +
           std::to_string(slots) + ": sum over at most that many";
  });
  if (count == 0) {
    require<InvalidArgument>(rest_is_zero(a.packing), [&] {
      return "slots past the vector's length of " + std::to_string(a.packing.length) +
             " are no longer zero (a number was added, or slots were rotated): name the number "
             "of slots in sum(), or multiply by ones of the vector's length first";
    });
    require<InvalidArgument>(is_in_order(a.packing), [&] {
      return "the vector lies in windows (" + described(a.packing, a.log_slots) +
             "), where the sum of all slots is not its sum: bring it into order first, natural()";
    });
    // One period has every number once, wherever it begins.
    if (a.packing.tiling.window != 0) count = a.packing.tiling.window;
  }
  return with(automatic_.sum(a, count), packing_of_neighbours(a.packing));
}

Ciphertext ArrayEvaluator::normalise(const Ciphertext& a) const {
  return with(automatic_.normalise(a), a.packing);
}

bool ArrayEvaluator::is_settled(const Ciphertext& a) const {
  return a.parts.size() == 2 && automatic_.effective_level(a) == a.level &&
         (a.level == 0 || std::fabs(a.scale / a.params->scale(a.level) - 1) < 0x1p-45);
}

Ciphertext ArrayEvaluator::with_length(const Ciphertext& a, std::size_t length) const {
  const Packing packing = packing_of_length(a.packing, length, std::size_t{1} << a.log_slots);
  return with(explicit_evaluator().copy(a), packing);
}

Ciphertext ArrayEvaluator::with_layout(const Ciphertext& a, const Packing& lies) const {
  Packing packing = a.packing;
  packing.view.reset();
  packing.length = lies.length;
  packing.tiling = lies.tiling;
  packing.rest = params::kUnbounded;
  require<InvalidArgument>(is_possible(packing, a.log_slots), [&] {
    return "a ciphertext of " + std::to_string(std::size_t{1} << a.log_slots) +
           " slots cannot have this layout: take one of as many slots";
  });
  return with(explicit_evaluator().copy(a), packing);
}

Ciphertext ArrayEvaluator::with_view(const Ciphertext& a, const std::optional<View>& view,
                                     bool padded) const {
  require<InvalidArgument>(!view || is_within(*view, std::size_t{1} << a.log_slots, a.batch()),
                           "the elements of this view do not lie in the slots of the ciphertext");
  Packing packing = a.packing;
  packing.length = 0;
  packing.tiling = {};
  packing.batched = true;
  packing.rest = view && padded ? 0 : params::kUnbounded;
  packing.view = view;
  return with(explicit_evaluator().copy(a), packing);
}

Ciphertext ArrayEvaluator::with_bounds(const Ciphertext& a, const Ciphertext& like,
                                       double terms) const {
  Ciphertext out = with(explicit_evaluator().copy(a), a.packing);
  out.estimate.bound_terms(like.estimate, terms);
  return out;
}

Ciphertext ArrayEvaluator::take(const Ciphertext& a, std::span<const std::uint32_t> vectors) const {
  require<InvalidArgument>(!vectors.empty(), "take needs at least one vector");
  std::vector<Ciphertext> runs;  // of vectors that follow each other
  for (std::size_t i = 0; i < vectors.size();) {
    std::size_t end = i + 1;
    while (end < vectors.size() && vectors[end] == vectors[end - 1] + 1) ++end;
    Ciphertext run = explicit_evaluator().vectors(a, vectors[i], end - i);
    run.packing = packing_of_moved(a.packing);
    run.packing.batched = true;
    runs.push_back(std::move(run));
    i = end;
  }
  if (runs.size() == 1) return std::move(runs[0]);
  std::vector<const Ciphertext*> inputs;
  for (const Ciphertext& run : runs) inputs.push_back(&run);
  return stack(explicit_evaluator(), inputs);
}

Ciphertext ArrayEvaluator::with_magnitude(const Ciphertext& a,
                                          const params::Declared& declared) const {
  const auto is_size = [](double x) { return std::isfinite(x) && x >= 0; };
  require<InvalidArgument>(is_size(declared.magnitude) && is_size(declared.peak),
                           "magnitude and peak must be finite numbers from 0");
  const double rest = rest_of(a);
  require<InvalidArgument>(rest <= declared.peak || a.estimate.peak <= declared.peak, [&] {
    return "a peak of " + shown(declared.peak) +
           " is claimed of the numbers, and the slots beside them may hold others, of up to " +
           shown(rest) +
           ": multiply by ones of the vector's length first, x * np.ones(x.shape), which takes one "
           "level and makes the other "
           "slots zero";
  });
  Ciphertext out = with(explicit_evaluator().copy(a), a.packing);
  out.estimate.declare(declared);
  require_range(*out.params, out.estimate, out.scale, out.level);
  return out;
}

Ciphertext ArrayEvaluator::with_precision(const Ciphertext& a, double precision_bits) const {
  require<InvalidArgument>(std::isfinite(precision_bits) && std::fabs(precision_bits) < 256,
                           "precision_bits must be a number above -256 and below 256");
  Ciphertext out = with(explicit_evaluator().copy(a), a.packing);
  const double deviation = std::exp2(0.5 - precision_bits) * out.scale;  // of a complex slot
  out.estimate.declare_deviation(deviation, out.params->n());
  require_range(*out.params, out.estimate, out.scale, out.level);
  return out;
}

/// How much larger a result may be than its factor or constant, for advice; 0 where no bound is
/// known.
static double bits_above_1(double bound) {
  return bound < params::kUnbounded ? std::log2(std::max(bound, 1.0)) : 0;
}

void ArrayEvaluator::require_fits(const Ciphertext& a, double factor) const {
  const int level = std::max(automatic_.effective_level(a) - 1, 0);
  const rlwe::Level& l = a.params->level(level);
  const double bits = std::log2(factor) + std::log2(a.params->scale(level));
  require<InvalidArgument>(!(bits >= l.log_q - 1), [&] {
    char short_form[32];
    std::snprintf(short_form, sizeof short_form, "%.6g", factor);
    return std::string("the factor ") + short_form + " is too large: once scaled it needs " +
           std::to_string(bits) + " bits, and level " + std::to_string(level) + " holds " +
           std::to_string(l.log_q - 1) + ": use a smaller factor, or multiply at a higher level" +
           with_more_room(*a.params, bits + bits_above_1(a.estimate.peak) - (l.log_q - 1));
  });
}

// The constant is added to the products before they are rescaled, at the product of their scales.
// What a level holds is less than half its modulus q in absolute value.
void ArrayEvaluator::require_room(const ProductSum& a) {
  const ProductSum::Factor& x = a.products[0].first;
  const ProductSum::Factor& y = a.products[0].second;
  const double scale_bits = std::log2(x->scale) + std::log2(y->scale);
  const double largest = std::max(std::abs(a.constant.real()), std::abs(a.constant.imag()));
  const double room = x->params->level(a.level()).log_q - 1 - scale_bits;
  require<InvalidArgument>(!(std::log2(largest) >= room), [&] {
    double products = 0;
    for (const auto& [u, v] : a.products) products += u->estimate.peak * v->estimate.peak;
    return "the constant " + std::to_string(largest) + " is too large to join a product: level " +
           std::to_string(a.level() - 1) + ", on which the result is, holds numbers below " +
           std::to_string(std::exp2(room)) + ": scale down what is added" +
           with_more_room(*x->params,
                          std::log2(largest) + bits_above_1(products / largest + 1) - room);
  });
}

}  // namespace jali::ckks
