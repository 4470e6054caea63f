// discrete::Evaluator, in the order of its header.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "jali/rlwe/composed.h"
#include "run.h"

namespace jali::fuzz {

using discrete::Ciphertext;
using discrete::Extended;
using discrete::Overflow;

namespace {

/// Number i of a vector after both rows were rotated to the left.
std::size_t turned(std::size_t i, std::int64_t steps, std::size_t n) {
  const auto row = static_cast<std::int64_t>(n / 2);
  const auto at = static_cast<std::int64_t>(i % (n / 2));
  const std::int64_t from = (((at + steps) % row) + row) % row;
  return i / (n / 2) * (n / 2) + static_cast<std::size_t>(from);
}
std::size_t swapped(std::size_t i, std::size_t n) { return i ^ (n / 2); }

void keep_turned(DiscreteRun& r, Ciphertext out, const DiscreteKnown& x, std::int64_t steps) {
  r.keep(std::move(out), x.numbers.has_value(),
         [&](std::size_t i) { return Wide{(*x.numbers)[turned(i, steps, r.n())]}; });
}

/// f of the numbers of both, of which the second may have one vector for all.
template <class F>
void keep_both(DiscreteRun& r, Ciphertext out, const DiscreteKnown& x, const DiscreteKnown& y,
               const F& f) {
  r.keep(std::move(out), x.numbers && y.numbers, [&](std::size_t i) {
    return f(Wide{(*x.numbers)[i]}, Wide{(*y.numbers)[i % y.numbers->size()]});
  });
}

template <class F>
void keep_each(DiscreteRun& r, Ciphertext out, const DiscreteKnown& x, const F& f) {
  r.keep(std::move(out), x.numbers.has_value(),
         [&](std::size_t i) { return f(Wide{(*x.numbers)[i]}, i); });
}

constexpr DiscreteOperation kOperations[] = {
    {"has",
     [](DiscreteRun& r) {
       const int steps = r.steps(), level = r.level();
       (void)r.ev().has_rotation(steps, level);
       (void)r.ev().has_galois(static_cast<std::uint64_t>(steps), level);
       (void)r.ev().has_relinearisation(level);
       (void)r.ev().key_id();
       if (r.ev().can_rotate(steps, level)) {
         (void)r.ev().composition(steps, level);
         (void)r.ev().rotation_tree({&steps, 1}, level);
       }
       r.ev().check(r.any().x);
     }},
    {"copy",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       if (!r.ev().is_here(x.x)) stop("a loaded ciphertext is elsewhere");
       r.keep(r.ev().copy(x.x), x);
       r.keep(r.ev().send_back(r.ev().bring(x.x)), x);
     }},
    {"stack and vectors",
     [](DiscreteRun& r) {
       const DiscreteKnown &x = r.any(), &y = r.any();
       Ciphertext both = r.ev().stack(x.x, y.x);
       const std::size_t first = r.in.below(5), count = r.in.below(4);
       Ciphertext some = r.ev().vectors(both, first, count);
       const bool known = x.numbers && y.numbers;
       const auto number = [&](std::size_t i) {
         const std::size_t split = x.numbers->size();
         return Wide{i < split ? (*x.numbers)[i] : (*y.numbers)[i - split]};
       };
       r.keep(std::move(some), known, [&](std::size_t i) { return number(first * r.n() + i); });
       r.keep(std::move(both), known, number);
     }},
    {"add",
     [](DiscreteRun& r) {
       const DiscreteKnown &x = r.any(), &y = r.beside(x);
       keep_both(r, r.ev().add(x.x, y.x, r.overflow()), x, y, std::plus<>());
     }},
    {"sub",
     [](DiscreteRun& r) {
       const DiscreteKnown &x = r.any(), &y = r.beside(x);
       keep_both(r, r.ev().sub(x.x, y.x, r.overflow()), x, y, std::minus<>());
     }},
    {"negate",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       keep_each(r, r.ev().negate(x.x, r.overflow()), x, [](Wide v, std::size_t) { return -v; });
     }},
    {"add_plain",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const Overflow overflow = r.overflow();
       const auto [numbers, plaintext] = r.clear(x.x, overflow);
       const Numbers& b = numbers;
       keep_each(r, r.ev().add_plain(x.x, plaintext, overflow), x,
                 [&](Wide v, std::size_t i) { return v + b[i]; });
     }},
    {"sub_plain",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const Overflow overflow = r.overflow();
       const auto [numbers, plaintext] = r.clear(x.x, overflow);
       const Numbers& b = numbers;
       keep_each(r, r.ev().sub_plain(x.x, plaintext, overflow), x,
                 [&](Wide v, std::size_t i) { return v - b[i]; });
     }},
    {"add_integer",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const std::int64_t b = r.integer();
       keep_each(r, r.ev().add_integer(x.x, b, r.overflow()), x,
                 [&](Wide v, std::size_t) { return v + b; });
     }},
    {"multiply_integer",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const std::int64_t b = r.integer();
       keep_each(r, r.ev().multiply_integer(x.x, b, r.overflow()), x,
                 [&](Wide v, std::size_t) { return v * b; });
     }},
    {"multiply_plain",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const Overflow overflow = r.overflow();
       const auto [numbers, plaintext] = r.clear(x.x, overflow);
       const Numbers& b = numbers;
       keep_each(r, r.ev().multiply_plain(x.x, plaintext, overflow), x,
                 [&](Wide v, std::size_t i) { return v * b[i]; });
     }},
    {"multiply",
     [](DiscreteRun& r) {
       const DiscreteKnown &x = r.any(), &y = r.beside(x);
       keep_both(r, r.ev().multiply(x.x, y.x, r.overflow()), x, y, std::multiplies<>());
     }},
    {"square",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       keep_each(r, r.ev().square(x.x, r.overflow()), x, [](Wide v, std::size_t) { return v * v; });
     }},
    {"sum_of_products",
     [](DiscreteRun& r) {
       std::vector<std::pair<const Ciphertext*, const Ciphertext*>> factors;
       std::vector<std::pair<const DiscreteKnown*, const DiscreteKnown*>> all;
       bool known = true;
       for (std::size_t k = r.in.below(4); k > 0; --k) {
         const DiscreteKnown &x = r.any(), &y = r.beside(x);
         factors.emplace_back(&x.x, &y.x);
         all.emplace_back(&x, &y);
         known = known && x.numbers && y.numbers;
       }
       r.keep(r.ev().sum_of_products(factors, r.overflow()), known, [&](std::size_t i) {
         Wide sum = 0;  // of numbers of 61 bits, whose products are residues if there are many
         for (const auto& [x, y] : all) sum += Wide{(*x->numbers)[i]} * (*y->numbers)[i];
         return sum;
       });
     }},
    {"drop_to",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       r.keep(r.ev().drop_to(x.x, r.level()), x);
     }},
    {"rescale",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       r.keep(r.ev().rescale(x.x), x);
     }},
    {"rotate",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const int steps = r.steps();
       Ciphertext out =
           r.in.once_in(4) ? rlwe::composed_rotate(r.ev(), x.x, steps) : r.ev().rotate(x.x, steps);
       keep_turned(r, std::move(out), x, steps);
     }},
    {"swap_rows",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       r.keep(r.ev().swap_rows(x.x), x.numbers.has_value(),
              [&](std::size_t i) { return Wide{(*x.numbers)[swapped(i, r.n())]}; });
     }},
    {"automorphism",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const auto element = r.in.once_in(2) ? ring::galois_element(r.n(), r.steps())
                                            : static_cast<std::uint64_t>(r.in.integer());
       r.keep(r.ev().automorphism(x.x, element), false, [](std::size_t) { return Wide{0}; });
     }},
    {"hoisting",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const auto hoisted = r.ev().hoist(x.x);
       const int steps = r.steps();
       keep_turned(r, r.ev().rotate_hoisted(hoisted, steps), x, steps);
       const Extended extended =
           r.in.once_in(2) ? r.ev().rotate_extended(hoisted, steps) : r.ev().extend(x.x);
       const int by = r.in.once_in(2) ? steps : r.steps();
       (void)r.ev().rotation(hoisted, by);
     }},
    {"sums before the division by P",
     [](DiscreteRun& r) {
       const DiscreteKnown &x = r.any(), &y = r.beside(x);
       const int first = r.steps(), second = r.steps(), third = r.steps();
       Extended sum = r.ev().rotate_extended(r.ev().hoist(x.x), first);
       const Extended other = r.ev().extend(y.x);
       // What an operation refuses leaves the sum as it was.
       const auto attempt = [](const auto& f) {
         try {
           f();
           return true;
         } catch (const Error& error) {
           if (error.code() == ErrorCode::internal) stop(error.what());
           return false;
         }
       };
       const bool added =
           r.in.once_in(2) && attempt([&] { r.ev().add_inplace(sum, other, r.overflow()); });
       const Extended* operands[] = {&other, &sum};
       const int steps[] = {second, third};
       const std::size_t count = r.in.once_in(4) ? 2 : 1;
       const bool turned_in =
           attempt([&] { r.ev().rotate_accumulate(sum, {operands, count}, {steps, count}); });
       const bool divides = r.in.once_in(3);
       Ciphertext out = divides ? r.ev().reduce_rescale(sum) : r.ev().reduce(sum);
       r.keep(std::move(out), x.numbers && y.numbers, [&](std::size_t i) {
         const auto of = [&](const DiscreteKnown& k, std::size_t at) {
           return Wide{(*k.numbers)[at % k.numbers->size()]};
         };
         const auto begun = [&](std::size_t at) {
           return of(x, turned(at, first, r.n())) + (added ? of(y, at) : Wide{0});
         };
         Wide v = begun(i);
         if (turned_in) v += of(y, turned(i, second, r.n()));
         if (turned_in && count == 2) v += begun(turned(i, third, r.n()));
         return v;
       });
     }},
};

}  // namespace

std::span<const DiscreteOperation> discrete_evaluator_operations() { return kOperations; }

}  // namespace jali::fuzz
