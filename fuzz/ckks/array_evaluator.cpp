// ckks::ArrayEvaluator, in the order of its header, and then programs of its operations on known
// numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "honest.h"

namespace jali::fuzz {

namespace {

using ckks::Numbers;
using ckks::ProductSum;

ProductSum::Factor factor(Run& r) {
  return std::make_shared<const Ciphertext>(r.ev().copy(r.any()));
}

/// Rows as long as x is said to be, unless the input says otherwise.
std::vector<Complex> row(Run& r, const Ciphertext& x) {
  std::vector<Complex> v(r.in.once_in(3) ? r.in.below(9) : ckks::length_of(x));
  for (std::size_t i = 0; i < std::min<std::size_t>(v.size(), 4); ++i) v[i] = r.in.complex();
  return v;
}
Numbers numbers(Run& r, const std::vector<Complex>& v) {
  const std::size_t batch = r.in.once_in(4) ? 1 + r.in.below(4) : 1;
  return {v, v.size() % batch == 0 ? batch : 1, r.in.once_in(3), r.in.once_in(2)};
}

/// A program of a few operations on two encrypted vectors. Each gives what it gives in the clear,
/// within the claimed bound, or is refused.
class KnownProgram {
 public:
  explicit KnownProgram(Run& run)
      : r(run),
        e(run.world.evaluator),
        log_slots(run.in.once_in(2) ? 3 : run.world.o.params->log_n() - 1) {
    for (int k = 0; k < 2; ++k) values.push_back(fresh());
  }

  void step() {
    const Honest &a = any(), &b = any();
    Honest out;
    switch (r.in.below(16)) {
      case 0: out = {e.add(a.ciphertext, b.ciphertext), map(a, b, std::plus<>())}; break;
      case 1: out = {e.sub(a.ciphertext, b.ciphertext), map(a, b, std::minus<>())}; break;
      case 2: out = {e.negate(a.ciphertext), scaled(a, -1)}; break;
      case 3: out = {e.multiply(a.ciphertext, b.ciphertext), map(a, b, std::multiplies<>())}; break;
      case 4:
      case 5: out = products(a, b); break;
      case 6: {
        const Honest c = clear();
        out = {e.add_numbers(a.ciphertext, view(c)), map(a, c, std::plus<>())};
        break;
      }
      case 7: {
        const Honest c = clear();
        out = {e.sub_numbers(a.ciphertext, view(c)), map(a, c, std::minus<>())};
        break;
      }
      case 8: {
        const Honest c = clear();
        out = {e.multiply_numbers(a.ciphertext, view(c)), map(a, c, std::multiplies<>())};
        break;
      }
      case 9: {
        const Complex c = r.in.complex();
        out = {e.add_scalar(a.ciphertext, c), plus(a, c)};
        break;
      }
      case 10: {
        const Complex c = r.in.complex();
        out = {e.multiply_scalar(a.ciphertext, c), scaled(a, c)};
        break;
      }
      case 11: {
        const int steps = r.steps();
        out = {e.rotate(a.ciphertext, steps), summed(a, 1, steps)};
        break;
      }
      case 12: {
        const std::size_t count = r.in.once_in(2) ? 0 : std::size_t{1} << r.in.below(5);
        out = {e.sum(a.ciphertext, count), summed(a, count == 0 ? a.slots.size() : count, 0)};
        break;
      }
      case 13:
        out = {e.conjugate(a.ciphertext), a.slots};
        conjugate(out.slots);
        break;
      case 14: out = {e.with_length(a.ciphertext, r.count()), a.slots}; break;
      default: {
        double largest = 0;
        for (const Complex z : a.slots) largest = std::max(largest, std::abs(z));
        out = {e.with_magnitude(e.normalise(a.ciphertext), {largest, largest}), a.slots};
      }
    }
    if (!fits(r, out.slots)) return;
    compare(r, out);
    values.push_back(std::move(out));
  }

 private:
  Run& r;
  const ckks::ArrayEvaluator e;
  const int log_slots;
  const std::size_t length = 5;
  std::vector<Honest> values;

  const Honest& any() const { return values[r.in.below(values.size())]; }
  Honest fresh() {
    const int level = r.world.o.params->depth() - static_cast<int>(r.in.below(2));
    return encrypted(r, r.in.once_in(8) ? length + 1 : length, log_slots, level, r.in.once_in(2));
  }
  /// Numbers that stay in the clear.
  Honest clear() {
    Honest out{{}, std::vector<Complex>(std::size_t{1} << log_slots)};
    for (std::size_t j = 0; j < length; ++j) out.slots[j] = r.in.complex();
    return out;
  }
  Numbers view(const Honest& c) const { return {std::span(c.slots).first(length), 1, false, true}; }

  Honest products(const Honest& a, const Honest& b) const {
    const auto x = std::make_shared<const Ciphertext>(r.ev().copy(a.ciphertext));
    const auto y = std::make_shared<const Ciphertext>(r.ev().copy(b.ciphertext));
    ProductSum sum = e.product(x, y);
    Honest out{{}, map(a, b, std::multiplies<>())};
    if (r.in.once_in(2)) {
      if (auto joined = e.join(sum, e.product(x, x))) {
        sum = std::move(*joined);
        out.slots = map(out, Honest{{}, map(a, a, std::multiplies<>())}, std::plus<>());
      }
    }
    if (r.in.once_in(2)) {
      const Complex c = r.in.complex();
      if (auto joined = e.join_scalar(sum, c)) {
        sum = std::move(*joined);
        out.slots = plus(out, c);
      }
    }
    if (!fits(r, out.slots)) throw InvalidArgument("numbers that level 0 does not hold");
    out.ciphertext = r.in.once_in(2) ? e.expand(sum) : e.settle(sum);
    return out;
  }

  template <class F>
  static std::vector<Complex> map(const Honest& a, const Honest& b, F f) {
    std::vector<Complex> out(a.slots.size());
    std::ranges::transform(a.slots, b.slots, out.begin(), f);
    return out;
  }
  static std::vector<Complex> scaled(const Honest& a, Complex c) {
    auto out = a.slots;
    for (Complex& z : out) z *= c;
    return out;
  }
  static std::vector<Complex> plus(const Honest& a, Complex c) {
    auto out = a.slots;
    for (Complex& z : out) z += c;
    return out;
  }
  /// Of `count` slots from each, `steps` further on.
  static std::vector<Complex> summed(const Honest& a, std::size_t count, int steps) {
    const auto slots = static_cast<std::int64_t>(a.slots.size());
    std::vector<Complex> out(a.slots.size());
    for (std::int64_t j = 0; j < slots; ++j) {
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
        const std::int64_t from = (((j + i + steps) % slots) + slots) % slots;
        out[static_cast<std::size_t>(j)] += a.slots[static_cast<std::size_t>(from)];
      }
    }
    return out;
  }
  static void conjugate(std::vector<Complex>& v) {
    for (Complex& z : v) z = std::conj(z);
  }
};

constexpr Operation kOperations[] = {
    {"arrays add", [](Run& r) { r.keep(r.arrays->add(r.any(), r.any())); }},
    {"arrays sub", [](Run& r) { r.keep(r.arrays->sub(r.any(), r.any())); }},
    {"arrays negate", [](Run& r) { r.keep(r.arrays->negate(r.any())); }},
    {"arrays multiply", [](Run& r) { r.keep(r.arrays->multiply(r.any(), r.any())); }},
    {"arrays product",
     [](Run& r) {
       const auto a = factor(r), b = r.in.once_in(2) ? a : factor(r);
       ProductSum sum = r.arrays->product(a, b);
       if (r.in.once_in(2)) {
         if (auto joined = r.arrays->join(sum, r.arrays->product(factor(r), b))) sum = *joined;
       }
       if (r.in.once_in(2)) {
         if (auto joined = r.arrays->join_scalar(sum, r.in.complex())) sum = *joined;
       }
       r.keep(r.arrays->expand(sum));
       r.keep(r.arrays->settle(sum));
     }},
    {"arrays add_numbers",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = row(r, x);
       r.keep(r.arrays->add_numbers(x, numbers(r, v)));
     }},
    {"arrays sub_numbers",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = row(r, x);
       r.keep(r.arrays->sub_numbers(x, numbers(r, v)));
     }},
    {"arrays multiply_numbers",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = row(r, x);
       r.keep(r.arrays->multiply_numbers(x, numbers(r, v)));
     }},
    {"arrays add_scalar", [](Run& r) { r.keep(r.arrays->add_scalar(r.any(), r.in.complex())); }},
    {"arrays multiply_scalar",
     [](Run& r) { r.keep(r.arrays->multiply_scalar(r.any(), r.in.complex())); }},
    {"arrays rotate",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.arrays->rotate(x, r.steps()));
     }},
    {"arrays conjugate", [](Run& r) { r.keep(r.arrays->conjugate(r.any())); }},
    {"arrays sum",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.arrays->sum(x, r.in.once_in(2) ? r.count() : 0));
     }},
    {"arrays normalise",
     [](Run& r) {
       const Ciphertext& x = r.any();
       (void)r.arrays->effective_level(x);
       (void)r.arrays->is_settled(x);
       r.keep(r.arrays->normalise(x));
     }},
    {"arrays with_length",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.arrays->with_length(x, r.count()));
     }},
    {"arrays with_layout",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.arrays->with_layout(x, r.any().packing));
     }},
    {"arrays with_view",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto view = r.in.once_in(4) ? std::nullopt : std::optional(r.world.forger.view(r.in));
       r.keep(r.arrays->with_view(x, view, r.in.once_in(2)));
     }},
    {"arrays with_bounds",
     [](Run& r) { r.keep(r.arrays->with_bounds(r.any(), r.any(), 1 + r.in.below(8))); }},
    {"arrays take",
     [](Run& r) {
       const Ciphertext& x = r.any();
       std::vector<std::uint32_t> vectors(r.in.below(4));
       for (auto& v : vectors) v = static_cast<std::uint32_t>(r.in.below(x.batch() + 1));
       r.keep(r.arrays->take(x, vectors));
     }},
    {"arrays with_precision",
     [](Run& r) { r.keep(r.arrays->with_precision(r.any(), r.in.number())); }},
    {"arrays with_magnitude",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const double magnitude = r.in.number();
       Ciphertext y = r.arrays->with_magnitude(x, {magnitude, r.in.number()});
       // If the claims of x overflowed, its error did, too, and still has no bytes.
       if (std::isfinite(x.estimate.message)) r.keep(std::move(y));
     }},
    {"arrays of known numbers",
     [](Run& r) {
       KnownProgram program(r);
       for (std::size_t k = 1 + r.in.below(8); k > 0; --k) {
         try {
           program.step();
         } catch (const Error& error) {  // refused
           if (error.code() == ErrorCode::internal) stop(error.what());
         }
       }
     }},
};

}  // namespace

std::span<const Operation> array_evaluator_operations() { return kOperations; }

}  // namespace jali::fuzz
