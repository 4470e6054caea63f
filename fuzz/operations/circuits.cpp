// Linear transforms, matrix-vector products, sums of slots, polynomials.
#include "run.h"

namespace jali::fuzz {

namespace {

constexpr Operation kOperations[] = {
    {"linear transform",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep((r.in.once_in(2) ? r.world.transform : r.world.prepared).apply(r.ev(), x));
     }},
    {"new linear transform",
     [](Run& r) {
       const Ciphertext& x = r.any();
       circuits::Diagonals diagonals;
       for (std::size_t k = r.in.below(3); k > 0; --k) {
         auto v = r.vector(x);
         diagonals.insert_or_assign(r.steps(), std::move(v));
       }
       circuits::TransformOptions options;
       options.level = r.in.once_in(4) ? r.level() : x.level;
       options.log_slots = x.log_slots;
       options.input_scale = r.in.once_in(2) ? x.scale : r.in.number();
       if (r.in.once_in(4)) options.output_scale = r.in.number();
       r.keep(circuits::LinearTransform(r.world.o.params, std::move(diagonals), options)
                  .apply(r.ev(), x));
     }},
    {"matrix product",
     [](Run& r) {
       const Ciphertext* x = &r.any();
       r.keep(r.world.product.apply(r.ev(), {x, 1}));
     }},
    {"new matrix product",
     [](Run& r) {
       const Ciphertext* x = &r.any();
       const std::size_t m = r.in.below(4), n = r.in.below(4);
       std::vector<double> matrix(m * n, 0.5);
       if (!matrix.empty()) matrix[0] = r.in.number();
       circuits::MatVecOptions options;
       options.level = r.in.once_in(4) ? r.level() : x->level;
       options.log_slots = x->log_slots;
       options.input_scale = x->scale;
       if (r.in.once_in(3)) options.bias = {r.in.number()};
       r.keep(circuits::MatVec(matrix, m, n, r.world.o.params, options).apply(r.ev(), {x, 1}));
     }},
    {"slot sum",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const std::size_t stride = r.in.once_in(2) ? 1 : r.count();
       const circuits::SlotSum sum(r.world.o.params, stride, r.count(), x.level, x.log_slots,
                                   static_cast<int>(r.in.below(5)) * 2);
       r.keep(r.in.once_in(2) ? sum.apply(r.ev(), x) : sum.apply_rescale(r.ev(), x));
     }},
    {"polynomial",
     [](Run& r) {
       const Ciphertext& x = r.any();
       circuits::Polynomial p;
       p.basis = r.in.once_in(2) ? circuits::Basis::chebyshev : circuits::Basis::power;
       for (std::size_t k = r.in.below(6); k > 0; --k) p.coefficients.push_back(r.in.complex());
       if (r.in.once_in(3)) p.a = r.in.number(), p.b = r.in.number();
       r.keep(circuits::evaluate(r.ev(), x, p, r.in.once_in(3) ? r.in.number() : 0));
     }},
};

}  // namespace

std::span<const Operation> circuit_operations() { return kOperations; }

}  // namespace jali::fuzz
