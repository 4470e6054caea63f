// Rows, transforms and what works on each residue by itself.
#include "jali/backend/ref/ref_ops.h"

#include <memory>
#include <utility>

#include "jali/backend/ref/modular.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

namespace {

/// The definition itself where it can be afforded.
constexpr std::size_t kLargestByDefinition = 256;

}  // namespace

RefOps::RefOps(Config config) : config_(std::move(config)) {
  check_config(config_);
  for (const u64 q : config_.primes) roots_.push_back(smallest_root(q, config_.n));
}

u64 RefOps::root(PrimeIndex prime) const {
  require<InvalidArgument>(prime < roots_.size(), "root: no such prime");
  return roots_[prime];
}

void RefOps::ntt(View x) const {
  contract("ntt").view("x", x);
  in_place(x, [&](Row row, PrimeIndex p) { return to_values(row, p); });
}

void RefOps::intt(View x) const {
  contract("intt").view("x", x);
  in_place(x, [&](Row row, PrimeIndex p) { return to_coefficients(row, p); });
}

void RefOps::add(View out, ConstView a, ConstView b) const {
  binary("add", out, a, b, [](u64 x, u64 y, u64 q) { return ref::add(x, y, q); });
}

void RefOps::sub(View out, ConstView a, ConstView b) const {
  binary("sub", out, a, b, [](u64 x, u64 y, u64 q) { return ref::sub(x, y, q); });
}

void RefOps::mul(View out, ConstView a, ConstView b) const {
  binary("mul", out, a, b, [](u64 x, u64 y, u64 q) { return ref::mul(x, y, q); });
}

void RefOps::neg(View out, ConstView a) const {
  unary("neg", out, a, [](u64 x, std::size_t, u64 q) { return ref::sub(0, x, q); });
}

void RefOps::mul_add(View acc, ConstView a, ConstView b) const {
  const Contract c = contract("mul_add");
  check_binary(c, acc, a, b);
  for_rows(acc, [&](std::size_t i, std::size_t j, u64 q) {
    Row sum = load(acc, i, j);
    const Row x = load(a, i, j);
    const Row y = load(b, i, b.batch == 1 ? 0 : j);
    for (std::size_t k = 0; k < n(); ++k) sum[k] = ref::add(sum[k], ref::mul(x[k], y[k], q), q);
    store(acc, i, j, sum);
  });
}

void RefOps::mul_scalar(View out, ConstView a, std::span<const u64> s) const {
  contract("mul_scalar").view("a", a);
  contract("mul_scalar").scalars(a, s);
  unary("mul_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::mul(x, s[i], q); });
}

void RefOps::mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const {
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

void RefOps::add_scalar(View out, ConstView a, std::span<const u64> s) const {
  contract("add_scalar").view("a", a);
  contract("add_scalar").scalars(a, s);
  unary("add_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::add(x, s[i], q); });
}

void RefOps::automorphism_ntt(View out, ConstView in, u64 g) const {
  check_automorphism(contract("automorphism_ntt"), out, in, g);
  for_rows(out, [&](std::size_t i, std::size_t j, u64) {
    store(out, i, j, automorphism_of_values(load(in, i, j), g));
  });
}

void RefOps::automorphism_coeff(View out, ConstView in, u64 g) const {
  check_automorphism(contract("automorphism_coeff"), out, in, g);
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    store(out, i, j, automorphism(load(in, i, j), g, q));
  });
}

Row RefOps::load_words(const void* data, std::size_t start, u64 q) const {
  Row row(n());
  for (std::size_t k = 0; k < n(); ++k) {
    row[k] = word_at(data, start + k);
    require<InternalError>(row[k] < q, "ref: an input residue is not below its prime");
  }
  return row;
}

Row RefOps::load(ConstView x, std::size_t limb, std::size_t batch) const {
  return load_words(x.data, (limb * x.batch + batch) * n(), config_.primes[x.primes[limb]]);
}

void RefOps::store(View x, std::size_t limb, std::size_t batch, const Row& row) const {
  const std::size_t start = (limb * x.batch + batch) * n();
  for (std::size_t k = 0; k < n(); ++k) {
    if (config_.word == Word::w32) {
      static_cast<u32*>(x.data)[start + k] = static_cast<u32>(row[k]);
    } else {
      static_cast<u64*>(x.data)[start + k] = row[k];
    }
  }
}

Rows RefOps::load_coefficients(ConstView x) const {
  Rows rows(x.primes.size(), std::vector<Row>(x.batch));
  for_rows(x, [&](std::size_t i, std::size_t j, u64) {
    rows[i][j] = to_coefficients(load(x, i, j), x.primes[i]);
  });
  return rows;
}

Row RefOps::to_values(const Row& row, PrimeIndex p) const {
  return n() <= kLargestByDefinition ? ntt_by_definition(row, roots_[p], config_.primes[p])
                                     : ntt_by_recursion(row, roots_[p], config_.primes[p]);
}

Row RefOps::to_coefficients(const Row& row, PrimeIndex p) const {
  return n() <= kLargestByDefinition ? intt_by_definition(row, roots_[p], config_.primes[p])
                                     : intt_by_recursion(row, roots_[p], config_.primes[p]);
}

std::vector<u64> RefOps::values_of(Primes primes) const {
  std::vector<u64> q;
  for (const PrimeIndex p : primes) q.push_back(config_.primes[p]);
  return q;
}

void RefOps::check_unary(const Contract& c, View out, ConstView a) const {
  c.view("out", out);
  c.view("a", a);
  c.same_shape(out, a);
  c.same_or_apart(c.block("out", out), {c.block("a", a)});
}

void RefOps::check_binary(const Contract& c, View out, ConstView a, ConstView b) const {
  check_unary(c, out, a);
  c.view("b", b);
  c.same_primes(out, b);
  c.batch_or_broadcast(out, b);
  c.same_or_apart(c.block("out", out), {c.block("b", b)});
}

void RefOps::check_automorphism(const Contract& c, View out, ConstView in, u64 g) const {
  c.view("out", out);
  c.view("in", in);
  c.same_shape(out, in);
  c.galois(g);
  c.apart(c.block("out", out), {c.block("in", in)});
}

}  // namespace jali::backend::ref

namespace jali::backend {

std::unique_ptr<Ops> make_ref_ops(Config config) {
  return std::make_unique<ref::RefOps>(std::move(config));
}

}  // namespace jali::backend
