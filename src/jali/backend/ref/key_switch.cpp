// Lifts, products with keys and divisions, by composing the integers themselves.
#include <algorithm>

#include "jali/backend/ref/crt.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/ref_engine.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

void RefRlwe::mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const {
  const Contract c = contract("mod_up");
  check_mod_up(c, ext, x, digit_limbs);
  c.same_or_apart(c.block("ext", ext, digit_limbs.size()), {c.block("x", x)});
  lift_digits(ext, x, digit_limbs);
}

void RefRlwe::key_product(View acc0, View acc1, ConstView ext, KeyView key,
                          std::span<const u32> digit_ids, u64 g, bool accumulate) const {
  const Contract c = contract("key_product");
  c.key(key, digit_ids, acc0.primes);
  c.view("ext", ext, digit_ids.size());
  c.same_shape(acc0, ext);
  c.galois(g);
  check_accumulators(c, acc0, acc1, key, c.block("ext", ext, digit_ids.size()));
  multiply_by_key(acc0, acc1, ext, key, digit_ids, g, accumulate);
}

void RefRlwe::key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs,
                         KeyView key, std::span<const u32> digit_ids) const {
  const Contract c = contract("key_switch");
  check_mod_up(c, acc0, x, digit_limbs);
  c.length("digit_ids", digit_ids.size(), digit_limbs.size());
  c.key(key, digit_ids, acc0.primes);
  check_accumulators(c, acc0, acc1, key, c.block("x", x));
  std::vector<std::byte> memory(digit_limbs.size() * c.block("ext", acc0).bytes);
  const View ext{memory.data(), acc0.primes, acc0.batch};
  lift_digits(ext, x, digit_limbs);
  multiply_by_key(acc0, acc1, ext, key, digit_ids, 1, false);
}

void RefRlwe::scale_down(View out, ConstView x, const ConstView* addend) const {
  const Contract c = contract("scale_down");
  c.view("out", out);
  c.view("x", x);
  c.same_batch(out, x);
  c.apart(c.block("out", out), {c.block("x", x)});
  if (addend != nullptr) {
    c.view("addend", *addend);
    c.same_shape(out, *addend);
    c.same_or_apart(c.block("out", out), {c.block("addend", *addend)});
  }
  const Basis all(values_of(x.primes));
  std::vector<u64> dropped, added;
  for (const PrimeIndex p : x.primes) {
    if (!contains(out.primes, p)) dropped.push_back(config_.primes[p]);
  }
  for (const PrimeIndex p : out.primes) {
    if (!contains(x.primes, p)) added.push_back(config_.primes[p]);
  }
  const Basis d(dropped);

  Rows coefficients = load_coefficients(x);
  Rows result(out.primes.size(), std::vector<Row>(x.batch, Row(n())));
  std::vector<u64> residues(x.primes.size()), of_d(dropped.size());
  for (std::size_t j = 0; j < x.batch; ++j) {
    for (std::size_t k = 0; k < n(); ++k) {
      for (std::size_t i = 0; i < residues.size(); ++i) residues[i] = coefficients[i][j][k];
      Natural quotient = all.compose(residues);  // x A
      for (const u64 q : added) quotient *= q;
      for (std::size_t i = 0; i < dropped.size(); ++i) of_d[i] = quotient % dropped[i];
      const Lift rest = d.centred(of_d);
      // x A - [x A]_D, the multiple of D next to x A. It is not negative: rest.value <= x A.
      quotient -= rest.value;
      if (rest.negative) quotient += d.product();
      for (const u64 q : dropped) {
        require<InternalError>(quotient.divide(q) == 0, "ref: scale_down does not divide");
      }
      for (std::size_t i = 0; i < out.primes.size(); ++i) {
        result[i][j][k] = quotient % config_.primes[out.primes[i]];
      }
    }
  }
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    Row row = to_values(result[i][j], out.primes[i]);
    if (addend != nullptr) {
      const Row more = load(*addend, i, j);
      for (std::size_t k = 0; k < n(); ++k) row[k] = ref::add(row[k], more[k], q);
    }
    store(out, i, j, row);
  });
}

void RefRlwe::lift_digits(View ext, ConstView x, std::span<const u32> digit_limbs) const {
  const Rows coefficients = load_coefficients(x);
  const std::size_t block_words = ext.primes.size() * ext.batch * n();
  std::size_t first = 0;
  for (std::size_t digit = 0; digit < digit_limbs.size(); ++digit) {
    const std::size_t limbs = digit_limbs[digit];
    const Basis basis(values_of(x.primes.subspan(first, limbs)));
    Rows lifted(ext.primes.size(), std::vector<Row>(ext.batch, Row(n())));
    std::vector<u64> residues(limbs);
    for (std::size_t j = 0; j < ext.batch; ++j) {
      for (std::size_t k = 0; k < n(); ++k) {
        for (std::size_t i = 0; i < limbs; ++i) residues[i] = coefficients[first + i][j][k];
        const Lift lift = basis.centred(residues);
        for (std::size_t i = 0; i < ext.primes.size(); ++i) {
          lifted[i][j][k] = residue(lift, basis.product(), config_.primes[ext.primes[i]]);
        }
      }
    }
    std::byte* block =
        static_cast<std::byte*>(ext.data) + digit * block_words * word_bytes(config_.word);
    const View out{block, ext.primes, ext.batch};
    for_rows(out, [&](std::size_t i, std::size_t j, u64) {
      store(out, i, j, to_values(lifted[i][j], out.primes[i]));
    });
    first += limbs;
  }
}

void RefRlwe::multiply_by_key(View acc0, View acc1, ConstView ext, KeyView key,
                              std::span<const u32> digit_ids, u64 g, bool accumulate) const {
  const std::size_t block_words = ext.primes.size() * ext.batch * n();
  for_rows(acc0, [&](std::size_t i, std::size_t j, u64 q) {
    Row sum0 = accumulate ? load(acc0, i, j) : Row(n());
    Row sum1 = accumulate ? load(acc1, i, j) : Row(n());
    for (std::size_t digit = 0; digit < digit_ids.size(); ++digit) {
      const std::size_t at = digit * block_words + (i * ext.batch + j) * n();
      const Row x = automorphism_of_values(load_words(ext.data, at, q), g);
      const Row b = key_row(key, digit_ids[digit], 0, acc0.primes[i]);
      const Row a = key_row(key, digit_ids[digit], 1, acc0.primes[i]);
      for (std::size_t k = 0; k < n(); ++k) {
        sum0[k] = ref::add(sum0[k], ref::mul(x[k], b[k], q), q);
        sum1[k] = ref::add(sum1[k], ref::mul(x[k], a[k], q), q);
      }
    }
    store(acc0, i, j, sum0);
    store(acc1, i, j, sum1);
  });
}

Row RefRlwe::key_row(KeyView key, std::size_t digit, std::size_t part, PrimeIndex p) const {
  const auto position =
      static_cast<std::size_t>(std::ranges::find(key.primes, p) - key.primes.begin());
  const std::size_t row = (digit * 2 + part) * key.primes.size() + position;
  return load_words(key.data, row * n(), config_.primes[p]);
}

void RefRlwe::check_mod_up(const Contract& c, View ext, ConstView x,
                           std::span<const u32> digit_limbs) const {
  c.view("x", x);
  c.digits(digit_limbs, x.primes.size());
  c.view("ext", ext, digit_limbs.size());
  c.same_batch(ext, x);
  if (!is_subset(x.primes, ext.primes)) c.fail("the primes of x are not among those of ext");
}

void RefRlwe::check_accumulators(const Contract& c, View acc0, View acc1, KeyView key,
                                 Block input) const {
  c.view("acc0", acc0);
  c.view("acc1", acc1);
  c.same_shape(acc0, acc1);
  const Block key_block = c.block("the key", {key.data, key.primes, 1}, 2 * key.digits);
  c.apart(c.block("acc0", acc0), {c.block("acc1", acc1), key_block, input});
  c.apart(c.block("acc1", acc1), {key_block, input});
}

}  // namespace jali::backend::ref
