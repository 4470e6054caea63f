// Transforms, automorphisms, and what works on each residue by itself.
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/ref_engine.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

u64 RefRing::root(PrimeIndex prime) const {
  require<InvalidArgument>(prime < roots_.size(), "root: no such prime");
  return roots_[prime];
}

void RefRing::ntt(View x) const {
  contract("ntt").view("x", x);
  in_place(x, [&](Row row, PrimeIndex p) { return to_values(row, p); });
}

void RefRing::intt(View x) const {
  contract("intt").view("x", x);
  in_place(x, [&](Row row, PrimeIndex p) { return to_coefficients(row, p); });
}

void RefRing::add(View out, ConstView a, ConstView b) const {
  binary("add", out, a, b, [](u64 x, u64 y, u64 q) { return ref::add(x, y, q); });
}

void RefRing::sub(View out, ConstView a, ConstView b) const {
  binary("sub", out, a, b, [](u64 x, u64 y, u64 q) { return ref::sub(x, y, q); });
}

void RefRing::mul(View out, ConstView a, ConstView b) const {
  binary("mul", out, a, b, [](u64 x, u64 y, u64 q) { return ref::mul(x, y, q); });
}

void RefRing::neg(View out, ConstView a) const {
  unary("neg", out, a, [](u64 x, std::size_t, u64 q) { return ref::sub(0, x, q); });
}

void RefRing::mul_scalar(View out, ConstView a, std::span<const u64> s) const {
  contract("mul_scalar").view("a", a);
  contract("mul_scalar").scalars(a, s);
  unary("mul_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::mul(x, s[i], q); });
}

void RefRing::mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const {
  const Contract c = contract("mul_scalar_add");
  check_unary(c, acc, a);
  c.scalars(a, s);
  for_rows(acc, [&](std::size_t i, std::size_t j, u64 q) {
    Row sum = load(acc, i, j);
    const Row x = load(a, i, j);
    for (std::size_t k = 0; k < n(); ++k) sum[k] = ref::add(sum[k], ref::mul(x[k], s[i], q), q);
    store(acc, i, j, sum);
  });
}

void RefRing::add_scalar(View out, ConstView a, std::span<const u64> s) const {
  contract("add_scalar").view("a", a);
  contract("add_scalar").scalars(a, s);
  unary("add_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::add(x, s[i], q); });
}

void RefRing::automorphism_ntt(View out, ConstView in, u64 g) const {
  check_automorphism(contract("automorphism_ntt"), out, in, g);
  for_rows(out, [&](std::size_t i, std::size_t j, u64) {
    store(out, i, j, automorphism_of_values(load(in, i, j), g));
  });
}

void RefRing::inner_product(View out, std::span<const ConstView> a,
                            std::span<const ConstView> b) const {
  const Contract c = contract("inner_product");
  c.view("out", out);
  if (a.empty()) c.fail("there is no term");
  c.length("b", b.size(), a.size());
  for (std::size_t t = 0; t < a.size(); ++t) {
    c.view("a", a[t]);
    c.view("b", b[t]);
    c.same_shape(out, a[t]);
    c.same_primes(out, b[t]);
    c.batch_or_broadcast(out, b[t]);
    c.apart(c.block("out", out), {c.block("a", a[t]), c.block("b", b[t])});
  }
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    Row sum(n());
    for (std::size_t t = 0; t < a.size(); ++t) {
      const Row x = load(a[t], i, j);
      const Row y = load(b[t], i, b[t].batch == 1 ? 0 : j);
      for (std::size_t k = 0; k < n(); ++k) {
        sum[k] = ref::add(sum[k], ref::mul(x[k], y[k], q), q);
      }
    }
    store(out, i, j, sum);
  });
}

}  // namespace jali::backend::ref
