// ckks::Evaluator, in the order of its header.
#include "run.h"

namespace jali::fuzz {

namespace {

constexpr Operation kOperations[] = {
    {"has",
     [](Run& r) {
       const int steps = r.steps(), level = r.level();
       (void)r.ev().has_rotation(steps, level);
       (void)r.ev().has_galois(static_cast<std::uint64_t>(steps), level);
       (void)r.ev().has_relinearisation(level);
       (void)r.ev().has_encapsulation();
       (void)r.ev().key_id();
       if (r.ev().can_rotate(steps, level)) {
         (void)r.ev().composition(steps, level);
         (void)r.ev().rotation_tree({&steps, 1}, level);
       }
       r.ev().check(r.any());
     }},
    {"copy",
     [](Run& r) {
       const Ciphertext& x = r.any();
       if (!r.ev().is_here(x)) stop("a loaded ciphertext is elsewhere");
       r.keep(r.ev().copy(x));
       r.keep(r.ev().bring(x));
       r.keep(r.ev().send_back(x));
     }},
    {"add", [](Run& r) { r.keep(r.ev().add(r.any(), r.any())); }},
    {"sub", [](Run& r) { r.keep(r.ev().sub(r.any(), r.any())); }},
    {"negate", [](Run& r) { r.keep(r.ev().negate(r.any())); }},
    {"add_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().add_plain(x, r.plaintext(x)));
     }},
    {"sub_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().sub_plain(x, r.plaintext(x)));
     }},
    {"add_scalar", [](Run& r) { r.keep(r.ev().add_scalar(r.any(), r.in.complex())); }},
    {"add_inplace",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any());
       r.ev().add_inplace(x, r.in.once_in(4) ? x : r.any());
       r.keep(std::move(x));
     }},
    {"multiply_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().multiply_plain(x, r.plaintext(x)));
     }},
    {"compact plaintexts",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const double scale = r.in.once_in(4) ? r.scale() : x.scale;
       const ckks::Encoder& encoder = r.ev().encoder();
       const ckks::CompactPlaintext p = encoder.compact(
           r.vector(x), r.in.once_in(4) ? r.count() : 1, scale, x.log_slots, r.in.once_in(2));
       (void)encoder.expand(p, r.level());
       switch (r.in.below(3)) {
         case 0: return r.keep(r.ev().add_plain(x, p));
         case 1: return r.keep(r.ev().sub_plain(x, p));
         default: return r.keep(r.ev().multiply_plain(x, p));
       }
     }},
    {"multiply_scalar",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const Complex b = r.in.complex();
       r.keep(r.ev().multiply_scalar(x, b, r.scale()));
     }},
    {"multiply_integer",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().multiply_integer(
           x, r.in.once_in(4) ? r.in.read<std::int64_t>() : r.in.integer()));
     }},
    {"multiply_i", [](Run& r) { r.keep(r.ev().multiply_i(r.any())); }},
    {"stack", [](Run& r) { r.keep(r.ev().stack(r.any(), r.any())); }},
    {"vectors",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const std::size_t first = r.count();
       r.keep(r.ev().vectors(x, first, r.count()));
     }},
    {"multiply", [](Run& r) { r.keep(r.ev().multiply(r.any(), r.any())); }},
    {"square", [](Run& r) { r.keep(r.ev().square(r.any())); }},
    {"relinearise", [](Run& r) { r.keep(r.ev().relinearise(r.any())); }},
    {"rescale", [](Run& r) { r.keep(r.ev().rescale(r.any())); }},
    {"relinearise_rescale", [](Run& r) { r.keep(r.ev().relinearise_rescale(r.any())); }},
    {"multiply_relinearise_rescale",
     [](Run& r) { r.keep(r.ev().multiply_relinearise_rescale(r.any(), r.any())); }},
    {"combine_rescale",
     [](Run& r) {
       ckks::Combination c;
       for (std::size_t k = r.in.below(3); k > 0; --k) {
         c.products.push_back({&r.any(), &r.any(), r.in.once_in(2) ? 2.0 : 1.0});
       }
       for (std::size_t k = r.in.below(3); k > 0; --k)
         c.multiples.push_back({&r.any(), r.in.number()});
       if (r.in.once_in(2)) c.constant = r.in.complex();
       const int level = r.level();
       const Ciphertext& like = r.any();
       r.keep(
           r.ev().combine_rescale(c, level, r.in.once_in(2) ? like.scale * like.scale : r.scale()));
     }},
    {"drop_to",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().drop_to(x, r.level()));
     }},
    {"adjust",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const int level = r.level();
       const double scale = r.scale();
       r.keep(r.ev().adjust(x, level, scale, r.in.once_in(3) ? r.in.number() : 1));
     }},
    {"raise",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const int level = r.level(), depth = r.world.o.params->depth();
       r.keep(r.ev().raise(x, level < depth ? depth + level : level));
     }},
    {"rotate",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().rotate(x, r.steps()));
     }},
    {"conjugate", [](Run& r) { r.keep(r.ev().conjugate(r.any())); }},
    {"twice_real", [](Run& r) { r.keep(r.ev().twice_real(r.any())); }},
    {"multiply_monomial",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const std::size_t exponent = r.in.read<std::uint16_t>();
       if (r.in.once_in(2)) r.ev().prepare_monomial(exponent);
       r.keep(r.ev().multiply_monomial(x, exponent));
     }},
    {"automorphism",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().automorphism(x, r.in.read<std::uint16_t>()));
     }},
    {"hoisting",
     [](Run& r) {
       const Ciphertext &x = r.any(), &y = r.any();
       const ckks::Hoisted a = r.ev().hoist(x), b = r.ev().hoist(y);
       r.keep(r.ev().rotate_hoisted(a, r.steps()));
       const int first = r.steps();
       ckks::Extended sum = r.in.once_in(2) ? ckks::composed_rotate_extended(r.ev(), a, first)
                                            : r.ev().rotate_extended(a, first);
       const ckks::Extended term =
           r.in.once_in(2) ? r.ev().extend(y) : r.ev().rotate_extended(b, r.steps());
       r.ev().add_inplace(sum, term);
       const ckks::Extended* both[] = {&sum, &term};
       const int steps[] = {r.steps(), r.steps()};
       r.ev().rotate_accumulate(sum, both, steps);
       r.ev().rotate_accumulate(sum, r.in.once_in(4) ? sum : term, r.steps());
       const double scale = r.scale();
       const auto v = r.vector(x);
       const auto primes = sum.c0.primes();
       const ring::Poly diagonal = r.ev().encoder().encode_over(v, r.in.once_in(4) ? r.count() : 1,
                                                                primes, scale, x.log_slots);
       const ring::Poly* diagonals[] = {&diagonal, &diagonal};
       const ckks::Extended product =
           r.ev().multiply_accumulate(both, diagonals, scale, r.in.number(), r.in.number());
       r.keep(r.ev().reduce(r.in.once_in(2) ? sum : product));
       r.keep(r.ev().reduce_rescale(r.in.once_in(2) ? sum : product));
     }},
};

}  // namespace

std::span<const Operation> evaluator_operations() { return kOperations; }

}  // namespace jali::fuzz
