#include "bench/engine/operations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "jali/base/error.h"

namespace jali::bench {

namespace {

using backend::Combination;
using backend::ConstView;
using backend::Engine;
using backend::RingOps;
using backend::View;

constexpr std::size_t kTerms = 8;  // terms of an inner product
constexpr std::uint32_t kAll[kTerms] = {0, 1, 2, 3, 4, 5, 6, 7};
constexpr std::uint64_t kGalois = 5;
constexpr std::size_t kWeight = 32;  // non-zero coefficients of a sparse secret

template <void (RingOps::*op)(View, ConstView, ConstView) const>
Body binary(Operands& s) {
  const View a = s.operand(s.q), b = s.operand(s.q), out = s.result(s.q);
  return [=](const Engine& o) { (o.ring().*op)(out, a, b); };
}

template <void (RingOps::*op)(View, ConstView, std::span<const std::uint64_t>) const>
Body by_scalars(Operands& s) {
  return [&s, a = s.operand(s.q), out = s.result(s.q)](const Engine& o) {
    (o.ring().*op)(out, a, s.scalars);
  };
}

std::vector<ConstView> views(Operands& s, std::span<const PrimeIndex> primes, std::size_t count) {
  std::vector<ConstView> out;
  for (std::size_t k = 0; k < count; ++k) out.push_back(s.operand(primes));
  return out;
}

std::vector<std::pair<View, View>> pairs(Operands& s, std::size_t count) {
  std::vector<std::pair<View, View>> out;
  for (std::size_t k = 0; k < count; ++k) {
    const View x0 = s.operand(s.q), x1 = s.operand(s.q);
    out.emplace_back(x0, x1);
  }
  return out;
}

/// Makes the operands of a sum of two products, eight multiples and a constant. The result calls
/// its argument with it.
auto combination(Operands& s) {
  return [&s, factors = pairs(s, 4), terms = pairs(s, kTerms)](const auto& body) {
    std::vector<Combination::Product> products;
    for (std::size_t k = 0; k < factors.size(); k += 2) {
      const auto& [a0, a1] = factors[k];
      const auto& [b0, b1] = factors[k + 1];
      products.push_back({a0, a1, b0, b1, k == 0});
    }
    std::vector<Combination::Multiple> multiples;
    for (const auto& [x0, x1] : terms) multiples.push_back({x0, x1, s.scalars});
    body(Combination{products, multiples, s.scalars});
  };
}

/// A ciphertext over `from` divided by the primes that `to` lacks.
Body divided(Operands& s, std::span<const PrimeIndex> from, std::span<const PrimeIndex> to) {
  const View x0 = s.operand(from), x1 = s.operand(from), out0 = s.result(to), out1 = s.result(to);
  return [=](const Engine& o) { o.rlwe().scale_down_pair(out0, out1, x0, x1, nullptr, nullptr); };
}

Body sampled(Operands& s, backend::Small kind) {
  return [&s, kind, out = s.result(s.q)](const Engine& o) {
    o.ring().sample_small(out, kind, s.seed, 0);
  };
}

Body crt(Operands& s, backend::CrtMethod method) {
  s.host_operands();
  return [&s, method, out = s.result(s.q), there = s.words_there(false)](const Engine& o) {
    o.ring().crt(out, there, s.words_of_q(), method);
  };
}

Body icrt(Operands& s, backend::IcrtMethod method) {
  s.host_operands();
  return [&s, method, x = s.operand(s.q), there = s.words_there(true)](const Engine& o) {
    o.ring().icrt(there, s.words_of_q(), x, method);
  };
}

constexpr Operation kOperations[] = {
    {"ntt", "number-theoretic transform: coefficients to values",
     [](Operands& s) -> Body {
       return [x = s.changed(s.q)](const Engine& o) { o.ring().ntt(x); };
     }},
    {"intt", "inverse transform: values to coefficients",
     [](Operands& s) -> Body {
       return [x = s.changed(s.q)](const Engine& o) { o.ring().intt(x); };
     }},
    {"add", "sum of two polynomials", binary<&RingOps::add>},
    {"sub", "difference of two polynomials", binary<&RingOps::sub>},
    {"neg", "negation of a polynomial",
     [](Operands& s) -> Body {
       return [a = s.operand(s.q), out = s.result(s.q)](const Engine& o) { o.ring().neg(out, a); };
     }},
    {"mul", "product of two polynomials, value by value", binary<&RingOps::mul>},
    {"mul_scalar", "product with one constant a limb", by_scalars<&RingOps::mul_scalar>},
    {"mul_scalar_add", "product with one constant a limb, added to another polynomial",
     [](Operands& s) -> Body {
       return [&s, a = s.operand(s.q), out = s.changed(s.q)](const Engine& o) {
         o.ring().mul_scalar_add(out, a, s.scalars);
       };
     }},
    {"add_scalar", "sum with one constant a limb", by_scalars<&RingOps::add_scalar>},
    {"inner_product", "sum of eight products of polynomials",
     [](Operands& s) -> Body {
       const auto a = views(s, s.q, kTerms), b = views(s, s.q, kTerms);
       return [=, out = s.result(s.q)](const Engine& o) { o.ring().inner_product(out, a, b); };
     }},
    {"weighted_sums", "sum of eight products of a ciphertext and a polynomial",
     [](Operands& s) -> Body {
       const auto a0 = views(s, s.q, kTerms), a1 = views(s, s.q, kTerms), b = views(s, s.q, kTerms);
       const View out0 = s.result(s.q), out1 = s.result(s.q);
       return [=](const Engine& o) {
         const backend::WeightedSum sum{out0, out1, kAll, b, false};
         o.rlwe().weighted_sums(a0, a1, std::span(&sum, 1));
       };
     }},
    {"tensor", "tensor product of two ciphertexts",
     [](Operands& s) -> Body {
       const auto x = pairs(s, 2);
       const View d0 = s.result(s.q), d1 = s.result(s.q), d2 = s.result(s.q);
       return [=](const Engine& o) {
         o.rlwe().tensor(d0, d1, d2, x[0].first, x[0].second, x[1].first, x[1].second);
       };
     }},
    {"combine", "sum of two products of ciphertexts, eight multiples and a constant",
     [](Operands& s) -> Body {
       const auto sum = combination(s);
       const View d0 = s.result(s.q), d1 = s.result(s.q), d2 = s.result(s.q);
       return [=](const Engine& o) {
         sum([&](const Combination& c) { o.rlwe().combine(d0, d1, d2, c); });
       };
     }},
    {"automorphism_ntt", "automorphism of a polynomial given by its values",
     [](Operands& s) -> Body {
       return [a = s.operand(s.q), out = s.result(s.q)](const Engine& o) {
         o.ring().automorphism_ntt(out, a, kGalois);
       };
     }},
    {"mod_up", "every digit lifted to all primes (ModUp)",
     [](Operands& s) -> Body {
       return [&s, x = s.operand(s.q), out = s.lifted(true)](const Engine& o) {
         o.rlwe().mod_up(out, x, s.digits);
       };
     }},
    {"key_product", "inner product of lifted digits with a key, automorphism included",
     [](Operands& s) -> Body {
       const View ext = s.lifted(false), c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         o.rlwe().key_product(c0, c1, ext, k, s.ids, kGalois, false);
       };
     }},
    {"rotated_sums", "four weighted sums of eight hoisted rotations",
     [](Operands& s) -> Body {  // a baby step is each term, a giant step each sum
       const View ext = s.lifted(false), c0 = s.operand(s.q), c1 = s.operand(s.q);
       const auto b = views(s, s.all, kTerms);
       std::vector<std::pair<View, View>> out;
       for (int g = 0; g < 4; ++g) {
         const View out0 = s.result(s.all), out1 = s.result(s.all);
         out.emplace_back(out0, out1);
       }
       return [=, &s, k = s.key()](const Engine& o) {
         std::vector<backend::Rotated> rotations(kTerms, {ext, c0, c1, kGalois, k});
         std::vector<backend::WeightedSum> sums;
         for (const auto& [out0, out1] : out) sums.push_back({out0, out1, kAll, b, false});
         o.rlwe().rotated_sums(rotations, s.ids, s.scalars, sums);
       };
     }},
    {"outer_sum", "four giant steps of a linear transform: divisions by P, rotations, their sum",
     [](Operands& s) -> Body {
       const View x0 = s.operand(s.all), x1 = s.operand(s.all);
       const View c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         const std::vector<backend::Turned> terms(4, {x0, x1, kGalois, k});
         o.rlwe().outer_sum(c0, c1, terms, s.digits, s.ids, false);
       };
     }},
    {"key_switch", "ModUp and inner product with a key in one operation",
     [](Operands& s) -> Body {
       const View x = s.operand(s.q), c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         o.rlwe().key_switch(c0, c1, x, s.digits, k, s.ids);
       };
     }},
    {"key_switch_add", "ModUp and inner product with a key, plus a multiple of a ciphertext",
     [](Operands& s) -> Body {
       const View x = s.operand(s.q), j0 = s.operand(s.q), j1 = s.operand(s.q);
       const View c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         o.rlwe().key_switch_add(c0, c1, x, s.digits, k, s.ids, {j0, j1, s.scalars});
       };
     }},
    {"tensor_key_switch", "tensor product of two ciphertexts and its key switch in one operation",
     [](Operands& s) -> Body {
       const auto x = pairs(s, 2);
       const View c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         const Combination::Product product{x[0].first, x[0].second, x[1].first, x[1].second};
         o.rlwe().combine_key_switch(c0, c1, {{&product, 1}}, s.scalars, s.digits, k, s.ids);
       };
     }},
    {"combine_key_switch", "the sum of `combine` and its key switch in one operation",
     [](Operands& s) -> Body {
       const auto sum = combination(s);
       const View c0 = s.result(s.all), c1 = s.result(s.all);
       return [=, &s, k = s.key()](const Engine& o) {
         sum([&](const Combination& c) {
           o.rlwe().combine_key_switch(c0, c1, c, s.scalars, s.digits, k, s.ids);
         });
       };
     }},
    {"key_switch_rotate", "rotation of a ciphertext: automorphism, key switch and division by P",
     [](Operands& s) -> Body {
       const View x0 = s.operand(s.q), x1 = s.operand(s.q), c0 = s.empty(s.all),
                  c1 = s.empty(s.all);
       const View out0 = s.result(s.q), out1 = s.result(s.q);
       return [=, &s, k = s.key()](const Engine& o) {
         o.rlwe().rotate(out0, out1, c0, c1, x0, x1, kGalois, s.digits, k, s.ids);
       };
     }},
    {"mod_down", "division of a ciphertext by P (ModDown)",
     [](Operands& s) -> Body { return divided(s, s.all, s.q); }},
    {"drop_last", "division of a ciphertext by its last prime",
     [](Operands& s) -> Body {
       return divided(s, s.q, s.q.first(std::max<std::size_t>(s.q.size() - 1, 1)));
     }},
    {"sample_uniform", "uniform residues from a seed",
     [](Operands& s) -> Body {
       return
           [&s, out = s.result(s.q)](const Engine& o) { o.ring().sample_uniform(out, s.seed, 0); };
     }},
    {"sample_ternary", "a ternary polynomial from a seed",
     [](Operands& s) -> Body { return sampled(s, backend::Small::ternary); }},
    {"sample_error", "an error polynomial from a seed",
     [](Operands& s) -> Body { return sampled(s, backend::Small::error); }},
    {"sample_sparse", "a ternary polynomial of 32 non-zero coefficients from a seed",
     [](Operands& s) -> Body {
       return [&s, out = s.result(s.q)](const Engine& o) {
         o.ring().sample_sparse(out, kWeight, s.seed, 0);
       };
     }},
    {"embed", "slots in the host's memory to residues (encoding)",
     [](Operands& s) -> Body {
       s.host_operands();
       return [&s, out = s.result(s.q)](const Engine& o) {
         o.embedding().embed(out, *s.embedding, s.slots, s.log_slots(), 0x1p40);
       };
     }},
    {"unembed", "residues to slots in the host's memory (decoding)",
     [](Operands& s) -> Body {
       s.host_operands();
       // The coefficients are as small as decryption gives them. Random residues would be as large
       // as Q, which is beyond the range of doubles.
       const View x = s.empty(s.q);
       s.engine->ring().from_double(x, s.doubles);
       return [=, &s](const Engine& o) {
         o.embedding().unembed(s.slots, *s.embedding, x, s.log_slots(), 0x1p40);
       };
     }},
    {"from_int64", "64-bit integers in the host's memory to residues",
     [](Operands& s) -> Body {
       s.host_operands();
       return [&s, out = s.result(s.q)](const Engine& o) { o.ring().from_int64(out, s.integers); };
     }},
    {"from_double", "integers held in doubles in the host's memory to residues",
     [](Operands& s) -> Body {
       s.host_operands();
       return [&s, out = s.result(s.q)](const Engine& o) { o.ring().from_double(out, s.doubles); };
     }},
    {"crt_mod", "CRT of large integers by Horner's rule",
     [](Operands& s) -> Body { return crt(s, backend::CrtMethod::mod); }},
    {"crt_mul", "CRT by products with powers of two",
     [](Operands& s) -> Body { return crt(s, backend::CrtMethod::mul); }},
    {"icrt_product_sum", "inverse CRT by sums of products",
     [](Operands& s) -> Body { return icrt(s, backend::IcrtMethod::product_sum); }},
    {"icrt_garner", "inverse CRT in mixed radix",
     [](Operands& s) -> Body { return icrt(s, backend::IcrtMethod::garner); }},
    {"crt_from_host", "crt_mul of integers in the host's memory",
     [](Operands& s) -> Body {
       s.host_operands();
       return [&s, out = s.result(s.q)](const Engine& o) {
         o.ring().crt(out, s.words, s.words_of_q(), backend::CrtMethod::mul);
       };
     }},
    {"icrt_to_host", "icrt_product_sum to the host's memory",
     [](Operands& s) -> Body {
       s.host_operands();
       return [&s, x = s.operand(s.q)](const Engine& o) {
         o.ring().icrt(s.words, s.words_of_q(), x, backend::IcrtMethod::product_sum);
       };
     }},
};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

const Operation& operation(const std::string& name) {
  const auto found = std::ranges::find(kOperations, name, &Operation::name);
  require<InvalidArgument>(found != std::end(kOperations), [&] {
    return "the engine has no operation \"" + name + "\" to measure";
  });
  return *found;
}

}  // namespace jali::bench
