// Linear transforms, matrix-vector products, sums of slots, polynomials, functions.
#include "jali/circuits/ckks/arrangement.h"
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
       circuits::LinearTransform made(r.world.o.params, std::move(diagonals), options);
       if (r.in.once_in(2)) {
         made.prepare(r.ev().encoder(), static_cast<ckks::Storage>(r.in.below(3)));
         if (r.in.once_in(2)) made.forget();
       }
       r.keep(made.apply(r.ev(), x));
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
    {"arrangement",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const circuits::Arrangement steps(x.packing, r.any().packing, x.log_slots, r.in.once_in(2));
       if (steps.rotations().size() > 64) return;
       r.keep(steps.apply(r.ev(), x));
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
    {"polynomial on an interval",
     [](Run& r) {
       const Ciphertext& x = r.any();
       circuits::Polynomial p;
       p.basis = r.in.once_in(2) ? circuits::Basis::chebyshev : circuits::Basis::power;
       p.bounded = true;
       for (std::size_t k = r.in.below(6); k > 0; --k) p.coefficients.push_back(r.in.complex());
       if (r.in.once_in(3)) p.a = r.in.number(), p.b = r.in.number();
       const approx::Interval within{r.in.number(), r.in.number()};
       r.keep(circuits::apply(r.ev(), circuits::PolynomialPlan(p), x, within));
     }},
    {"function",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const double bound = r.in.once_in(2) ? 1 : r.in.number();
       const approx::Interval within{r.in.once_in(2) ? 0.5 : r.in.number(), 1};
       const circuits::FunctionPtr f =
           r.in.once_in(2)   ? circuits::smooth(approx::tanh(), {-bound, bound}, {{}, 3, {}})
           : r.in.once_in(2) ? circuits::inverse({0.5, 1}, 0.3, static_cast<int>(r.in.below(2)))
                             : circuits::relu(bound, 0.4);
       r.keep(f->apply(r.ev(), x, within));
     }},
    {"maximum",
     [](Run& r) {
       const Ciphertext &x = r.any(), &y = r.any();
       r.keep(circuits::Maximum(r.in.once_in(2) ? 1 : r.in.number(), 0.5, r.in.once_in(2))
                  .apply(r.ev(), x, y));
     }},
    {"argmax",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(circuits::ArgMax(r.in.below(4), std::size_t{1} << x.log_slots, 1, 0.5, 0.4)
                  .apply(r.ev(), x));
     }},
};

}  // namespace

std::span<const Operation> circuit_operations() { return kOperations; }

}  // namespace jali::fuzz
