// Sums of products, by their definition.
#include <algorithm>

#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/ref_engine.h"

namespace jali::backend::ref {

void RefRlwe::weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                            std::span<const WeightedSum> sums) const {
  const Contract c = contract("weighted_sums");
  c.length("a1", a1.size(), a0.size());
  for (const WeightedSum& sum : sums) {
    c.view("out0", sum.out0);
    c.view("out1", sum.out1);
    c.same_shape(sum.out0, sum.out1);
    if (sum.operands.empty()) c.fail("there is no term");
    c.length("b", sum.b.size(), sum.operands.size());
    c.apart(c.block("out0", sum.out0), {c.block("out1", sum.out1)});
    for (std::size_t t = 0; t < sum.b.size(); ++t) {
      if (sum.operands[t] >= a0.size()) c.fail("there is no such operand");
      c.view("b", sum.b[t]);
      c.same_primes(sum.out0, sum.b[t]);
      c.batch_or_broadcast(sum.out0, sum.b[t]);
      for (const auto* a : {&a0, &a1}) {
        const ConstView x = (*a)[sum.operands[t]];
        c.view("a", x);
        c.same_shape(sum.out0, x);
        c.apart(c.block("out0", sum.out0), {c.block("a", x), c.block("b", sum.b[t])});
        c.apart(c.block("out1", sum.out1), {c.block("a", x), c.block("b", sum.b[t])});
      }
    }
  }
  for (const WeightedSum& sum : sums) {
    for (std::size_t part = 0; part < 2; ++part) {
      const View out = part == 0 ? sum.out0 : sum.out1;
      const auto& a = part == 0 ? a0 : a1;
      for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
        Row total = sum.accumulate ? load(out, i, j) : Row(n());
        for (std::size_t t = 0; t < sum.b.size(); ++t) {
          const Row x = load(a[sum.operands[t]], i, j);
          const Row y = load(sum.b[t], i, sum.b[t].batch == 1 ? 0 : j);
          for (std::size_t k = 0; k < n(); ++k) {
            total[k] = ref::add(total[k], ref::mul(x[k], y[k], q), q);
          }
        }
        store(out, i, j, total);
      });
    }
  }
}

void RefRlwe::tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
                     ConstView b1) const {
  const Contract c = contract("tensor");
  c.view("d0", d0);
  for (const ConstView& v : {ConstView(d1), ConstView(d2), a0, a1, b0, b1}) {
    c.view("an operand", v);
    c.same_shape(d0, v);
  }
  const auto inputs = {c.block("a0", a0), c.block("a1", a1), c.block("b0", b0), c.block("b1", b1)};
  c.apart(c.block("d0", d0), inputs);
  c.apart(c.block("d1", d1), inputs);
  c.apart(c.block("d2", d2), inputs);
  c.apart(c.block("d0", d0), {c.block("d1", d1), c.block("d2", d2)});
  c.apart(c.block("d1", d1), {c.block("d2", d2)});
  for_rows(d0, [&](std::size_t i, std::size_t j, u64 q) {
    const Row x0 = load(a0, i, j), x1 = load(a1, i, j), y0 = load(b0, i, j), y1 = load(b1, i, j);
    Row r0(n()), r1(n()), r2(n());
    for (std::size_t k = 0; k < n(); ++k) {
      r0[k] = ref::mul(x0[k], y0[k], q);
      r1[k] = ref::add(ref::mul(x0[k], y1[k], q), ref::mul(x1[k], y0[k], q), q);
      r2[k] = ref::mul(x1[k], y1[k], q);
    }
    store(d0, i, j, r0);
    store(d1, i, j, r1);
    store(d2, i, j, r2);
  });
}

void RefRlwe::combine(View d0, View d1, View d2, const Combination& sum) const {
  const Contract c = contract("combine");
  const bool three = !sum.products.empty();
  if (!three && sum.multiples.empty()) c.fail("there is no term");
  c.view("d0", d0);
  c.view("d1", d1);
  c.same_shape(d0, d1);
  c.apart(c.block("d0", d0), {c.block("d1", d1)});
  if (three) {
    c.view("d2", d2);
    c.same_shape(d0, d2);
    c.apart(c.block("d2", d2), {c.block("d0", d0), c.block("d1", d1)});
  }
  const auto operand = [&](ConstView x) {
    c.view("an operand", x);
    c.same_batch(d0, x);
    if (!is_subset(d0.primes, x.primes)) c.fail("an operand lacks primes of the sum");
    c.apart(c.block("d0", d0), {c.block("an operand", x)});
    c.apart(c.block("d1", d1), {c.block("an operand", x)});
    if (three) c.apart(c.block("d2", d2), {c.block("an operand", x)});
  };
  for (const auto& p : sum.products) {
    operand(p.a0), operand(p.a1), operand(p.b0), operand(p.b1);
    c.same_primes(p.a0, p.a1), c.same_primes(p.b0, p.b1);
  }
  for (const auto& m : sum.multiples) {
    operand(m.x0), operand(m.x1);
    c.same_primes(m.x0, m.x1);
    c.scalars(d0, m.s);
  }
  if (!sum.constant.empty()) c.scalars(d0, sum.constant);
  for_rows(d0, [&](std::size_t i, std::size_t j, u64 q) {
    const auto load_limb = [&](ConstView x) {
      const auto at = std::find(x.primes.begin(), x.primes.end(), d0.primes[i]);
      return load(x, static_cast<std::size_t>(at - x.primes.begin()), j);
    };
    Row r0(n(), sum.constant.empty() ? 0 : sum.constant[i]), r1(n()), r2(n());
    const auto add_to = [&](Row& r, const Row& x, const Row& y) {
      for (std::size_t k = 0; k < n(); ++k) r[k] = ref::add(r[k], ref::mul(x[k], y[k], q), q);
    };
    for (const auto& p : sum.products) {
      const Row x0 = load_limb(p.a0), x1 = load_limb(p.a1);
      const Row y0 = load_limb(p.b0), y1 = load_limb(p.b1);
      for (int times = 0; times < (p.twice ? 2 : 1); ++times) {
        add_to(r0, x0, y0);
        add_to(r1, x0, y1), add_to(r1, x1, y0);
        add_to(r2, x1, y1);
      }
    }
    for (const auto& m : sum.multiples) {
      const Row s(n(), m.s[i]);
      add_to(r0, load_limb(m.x0), s);
      add_to(r1, load_limb(m.x1), s);
    }
    store(d0, i, j, r0);
    store(d1, i, j, r1);
    if (three) store(d2, i, j, r2);
  });
}

}  // namespace jali::backend::ref
