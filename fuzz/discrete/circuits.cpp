// Sums of slots, and many vectors at once: stacks, batchers, recorded functions.
#include <utility>
#include <vector>

#include "run.h"

namespace jali::fuzz {

using discrete::Ciphertext;

namespace {

std::vector<const DiscreteKnown*> several(DiscreteRun& r) {
  std::vector<const DiscreteKnown*> out;
  for (std::size_t k = r.in.below(4); k > 0; --k) out.push_back(&r.any());
  return out;
}
std::vector<const Ciphertext*> ciphertexts(const std::vector<const DiscreteKnown*>& all) {
  std::vector<const Ciphertext*> out;
  for (const DiscreteKnown* x : all) out.push_back(&x->x);
  return out;
}

constexpr DiscreteOperation kOperations[] = {
    {"slot sum",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       const std::size_t stride = std::size_t{1} << r.in.below(3), count = 1 + r.in.below(6);
       const circuits::IntegerSlotSum sum(r.world.params, stride, count,
                                          r.in.once_in(4) ? r.level() : -1,
                                          static_cast<int>(r.in.below(4)));
       (void)sum.cost();
       rlwe::KeyGenerator generator(r.world.params, r.world.ring, r.in.seed());
       const discrete::Evaluator with_keys(
           r.ev().engine(), std::make_shared<const rlwe::EvaluationKeys>(
                                generator.evaluation_keys(*r.world.secret, sum.rotations())));
       const std::size_t row = r.n() / 2;
       r.keep(sum.apply(with_keys, x.x, r.overflow()), x.numbers.has_value(), [&](std::size_t i) {
         Wide total = 0;
         for (std::size_t t = 0; t < count; ++t) {
           total += (*x.numbers)[i / row * row + (i % row + t * stride) % row];
         }
         return total;
       });
     }},
    {"batches",
     [](DiscreteRun& r) {
       const auto all = several(r);
       Ciphertext stacked = discrete::stack(r.ev(), ciphertexts(all));
       Numbers numbers;
       bool known = true;
       std::vector<std::size_t> batches;
       for (const DiscreteKnown* x : all) {
         known = known && x->numbers;
         if (known) numbers.insert(numbers.end(), x->numbers->begin(), x->numbers->end());
         batches.push_back(r.in.once_in(5) ? r.in.below(3) : x->x.batch());
       }
       auto split = discrete::split(r.ev(), stacked, batches);
       std::size_t first = 0;
       for (Ciphertext& part : split) {
         const std::size_t at = first;
         first += part.batch() * r.n();
         r.keep(std::move(part), known, [&](std::size_t i) { return Wide{numbers[at + i]}; });
       }
       r.keep(std::move(stacked), known, [&](std::size_t i) { return Wide{numbers[i]}; });
     }},
    {"batcher",
     [](DiscreteRun& r) {
       const auto all = several(r);
       const std::int64_t b = r.integer();
       const auto overflow = r.overflow();
       discrete::Batcher batcher(
           r.world.evaluator,
           [&](const Ciphertext& x) { return r.ev().add_integer(x, b, overflow); }, r.in.below(4));
       auto out = batcher.run(ciphertexts(all));
       for (std::size_t k = 0; k < out.size(); ++k) {
         const auto& numbers = all[k]->numbers;
         r.keep(std::move(out[k]), numbers.has_value(),
                [&](std::size_t i) { return Wide{(*numbers)[i]} + b; });
       }
     }},
    {"program",
     [](DiscreteRun& r) {
       const Ciphertext* example = &r.any().x;
       const std::int64_t b = r.integer();
       const auto overflow = r.overflow();
       discrete::Program program(
           r.world.evaluator,
           [&](std::span<const Ciphertext> x) {
             std::vector<Ciphertext> out;
             out.push_back(r.ev().add_integer(r.ev().add(x[0], x[0], overflow), b, overflow));
             return out;
           },
           {&example, 1});
       const DiscreteKnown& other = r.any();
       const Ciphertext* input = &other.x;
       auto out = program.run({&input, 1});
       if (out.size() != 1) stop("the program has another number of results");
       r.keep(std::move(out[0]), other.numbers.has_value(),
              [&](std::size_t i) { return 2 * Wide{(*other.numbers)[i]} + b; });
     }},
};

}  // namespace

std::span<const DiscreteOperation> discrete_circuit_operations() { return kOperations; }

}  // namespace jali::fuzz
