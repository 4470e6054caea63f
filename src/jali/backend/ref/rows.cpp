#include "jali/backend/ref/rows.h"

#include "jali/base/error.h"

namespace jali::backend::ref {

namespace {

/// Up to this size the definition itself is fast enough.
constexpr std::size_t kLargestByDefinition = 256;

}  // namespace

Row RowAccess::load_words(const void* data, std::size_t start, u64 q) const {
  Row row(n());
  for (std::size_t k = 0; k < n(); ++k) {
    row[k] = word_at(data, start + k);
    require<InternalError>(row[k] < q, "ref: an input residue is not below its prime");
  }
  return row;
}

Row RowAccess::load(ConstView x, std::size_t limb, std::size_t batch) const {
  return load_words(x.data, (limb * x.batch + batch) * n(), config_.primes[x.primes[limb]]);
}

void RowAccess::store(View x, std::size_t limb, std::size_t batch, const Row& row) const {
  const std::size_t start = (limb * x.batch + batch) * n();
  for (std::size_t k = 0; k < n(); ++k) {
    if (config_.word == Word::w32) {
      static_cast<u32*>(x.data)[start + k] = static_cast<u32>(row[k]);
    } else {
      static_cast<u64*>(x.data)[start + k] = row[k];
    }
  }
}

Rows RowAccess::load_coefficients(ConstView x) const {
  Rows rows(x.primes.size(), std::vector<Row>(x.batch));
  for_rows(x, [&](std::size_t i, std::size_t j, u64) {
    rows[i][j] = to_coefficients(load(x, i, j), x.primes[i]);
  });
  return rows;
}

Row RowAccess::to_values(const Row& row, PrimeIndex p) const {
  return n() <= kLargestByDefinition ? ntt_by_definition(row, roots_[p], config_.primes[p])
                                     : ntt_by_recursion(row, roots_[p], config_.primes[p]);
}

Row RowAccess::to_coefficients(const Row& row, PrimeIndex p) const {
  return n() <= kLargestByDefinition ? intt_by_definition(row, roots_[p], config_.primes[p])
                                     : intt_by_recursion(row, roots_[p], config_.primes[p]);
}

std::vector<u64> RowAccess::values_of(Primes primes) const {
  std::vector<u64> q;
  for (const PrimeIndex p : primes) q.push_back(config_.primes[p]);
  return q;
}

void RowAccess::check_unary(const Contract& c, View out, ConstView a) const {
  c.view("out", out);
  c.view("a", a);
  c.same_shape(out, a);
  c.same_or_apart(c.block("out", out), {c.block("a", a)});
}

void RowAccess::check_binary(const Contract& c, View out, ConstView a, ConstView b) const {
  check_unary(c, out, a);
  c.view("b", b);
  c.same_primes(out, b);
  c.batch_or_broadcast(out, b);
  c.same_or_apart(c.block("out", out), {c.block("b", b)});
}

void RowAccess::check_automorphism(const Contract& c, View out, ConstView in, u64 g) const {
  c.view("out", out);
  c.view("in", in);
  c.same_shape(out, in);
  c.galois(g);
  c.apart(c.block("out", out), {c.block("in", in)});
}

}  // namespace jali::backend::ref
