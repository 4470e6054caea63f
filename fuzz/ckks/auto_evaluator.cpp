// ckks::AutoEvaluator, in the order of its header.
#include "run.h"

namespace jali::fuzz {

namespace {

constexpr Operation kOperations[] = {
    {"automatic add", [](Run& r) { r.keep(r.automatic->add(r.any(), r.any())); }},
    {"automatic sub", [](Run& r) { r.keep(r.automatic->sub(r.any(), r.any())); }},
    {"automatic negate", [](Run& r) { r.keep(r.automatic->negate(r.any())); }},
    {"automatic multiply", [](Run& r) { r.keep(r.automatic->multiply(r.any(), r.any())); }},
    {"automatic square", [](Run& r) { r.keep(r.automatic->square(r.any())); }},
    {"automatic product",
     [](Run& r) {
       const auto factor = [&] { return std::make_shared<const Ciphertext>(r.ev().copy(r.any())); };
       const auto a = factor(), b = r.in.once_in(2) ? a : factor();
       ckks::ProductSum sum = r.automatic->product(a, b);
       while (r.in.once_in(2)) {
         const ckks::ProductSum other = r.automatic->product(factor(), factor());
         if (r.in.once_in(4) || r.automatic->can_join(sum, other)) {
           sum = r.automatic->join(std::move(sum), other);
         }
       }
       if (r.in.once_in(2)) sum.constant = r.in.complex();
       r.keep(r.automatic->expand(sum));
       r.keep(r.automatic->settle(sum));
     }},
    {"automatic add_vector",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       r.keep(r.automatic->add_vector(x, v, r.in.once_in(4) ? r.count() : x.batch()));
     }},
    {"automatic multiply_vector",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       r.keep(r.automatic->multiply_vector(x, v, r.in.once_in(4) ? r.count() : x.batch()));
     }},
    {"automatic add_scalar",
     [](Run& r) { r.keep(r.automatic->add_scalar(r.any(), r.in.complex())); }},
    {"automatic multiply_scalar",
     [](Run& r) { r.keep(r.automatic->multiply_scalar(r.any(), r.in.complex())); }},
    {"automatic rotate",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.automatic->rotate(x, r.steps()));
     }},
    {"automatic conjugate", [](Run& r) { r.keep(r.automatic->conjugate(r.any())); }},
    {"automatic sum",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.automatic->sum(x, r.in.once_in(2) ? r.count() : 0));
     }},
    {"automatic normalise",
     [](Run& r) {
       const Ciphertext& x = r.any();
       (void)r.automatic->effective_level(x);
       r.keep(r.automatic->normalise(x));
     }},
};

}  // namespace

std::span<const Operation> auto_evaluator_operations() { return kOperations; }

}  // namespace jali::fuzz
