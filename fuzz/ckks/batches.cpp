// Many vectors at once: stacks, batchers, captured programs.
#include "run.h"

namespace jali::fuzz {

namespace {

constexpr Operation kOperations[] = {
    {"batches",
     [](Run& r) {
       std::vector<const Ciphertext*> all;
       for (std::size_t k = r.in.below(4); k > 0; --k) all.push_back(&r.any());
       Ciphertext stacked = ckks::stack(r.ev(), all);
       std::vector<std::size_t> batches;
       for (const Ciphertext* x : all)
         batches.push_back(r.in.once_in(5) ? r.in.below(3) : x->batch());
       auto split = ckks::split(r.ev(), stacked, batches);
       r.keep(std::move(stacked));
       r.keep(std::move(split));
     }},
    {"batcher",
     [](Run& r) {
       std::vector<const Ciphertext*> all;
       for (std::size_t k = r.in.below(4); k > 0; --k) all.push_back(&r.any());
       const int steps = r.steps();
       ckks::Batcher batcher(
           r.evaluator, [&](const Ciphertext& x) { return r.automatic->rotate(x, steps); },
           r.in.below(4));
       auto out = batcher.run(all);
       r.keep(std::move(out));
     }},
    {"program",
     [](Run& r) {
       const Ciphertext* example = &r.any();
       const Complex factor = r.in.complex();
       ckks::Program program(
           r.evaluator,
           [&](std::span<const Ciphertext> x) {
             std::vector<Ciphertext> out;
             out.push_back(r.automatic->multiply_scalar(r.automatic->multiply(x[0], x[0]), factor));
             return out;
           },
           {&example, 1});
       const Ciphertext* other = &r.any();
       auto out = program.run({&other, 1});
       r.keep(std::move(out));
     }},
};

}  // namespace

std::span<const Operation> batch_operations() { return kOperations; }

}  // namespace jali::fuzz
