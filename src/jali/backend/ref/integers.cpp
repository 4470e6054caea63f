// Between integers and residues.
#include <cmath>

#include "jali/backend/ref/crt.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/ref_engine.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

void RefRing::from_int64(View out, std::span<const std::int64_t> c) const {
  contract("from_int64").view("out", out);
  const std::size_t count = c.size() / out.batch;
  require<InvalidArgument>(count > 0 && n() % count == 0,
                           "from_int64: the integers of a vector are no divisor of N");
  contract("from_int64").length("c", c.size(), out.batch * count);
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    Row row(n(), 0);
    for (std::size_t k = 0; k < count; ++k) {
      const __int128 r = static_cast<__int128>(c[j * count + k]) % static_cast<__int128>(q);
      row[k * (n() / count)] = static_cast<u64>(r < 0 ? r + static_cast<__int128>(q) : r);
    }
    store(out, i, j, row);
  });
}

void RefRing::from_double(View out, std::span<const double> c) const {
  contract("from_double").view("out", out);
  contract("from_double").length("c", c.size(), out.batch * n());
  for (const double v : c) {
    require<InvalidArgument>(std::abs(v) < 0x1p1000 && std::trunc(v) == v,
                             "from_double: a value is not an integer below 2^1000");
  }
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    Row row(n());
    for (std::size_t k = 0; k < n(); ++k) {
      // |c| = m 2^e with m < 2^53 an integer; an integer c below 2^53 has e = 0.
      double m = std::abs(c[j * n() + k]);
      u64 e = 0;
      for (; m >= 0x1p53; m /= 2) ++e;
      const u64 r = ref::mul(static_cast<u64>(m) % q, power(2, e, q), q);
      row[k] = c[j * n() + k] < 0 ? ref::sub(0, r, q) : r;
    }
    store(out, i, j, row);
  });
}

void RefRing::sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                             std::uint32_t index) const {
  contract("sample_uniform").view("out", out);
  RingOps::sample_uniform(out, seed, index);
}

void RefRing::crt(View out, std::span<const u64> integers, std::size_t words, CrtMethod) const {
  contract("crt").view("out", out);
  contract("crt").length("integers", integers.size(), words * out.batch * n());
  for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
    Row row(n());
    std::vector<u64> one(words);
    for (std::size_t k = 0; k < n(); ++k) {
      for (std::size_t w = 0; w < words; ++w) one[w] = integers[(w * out.batch + j) * n() + k];
      row[k] = Natural::from_words(one) % q;
    }
    store(out, i, j, row);
  });
}

void RefRing::icrt(std::span<u64> integers, std::size_t words, ConstView x, IcrtMethod) const {
  const Contract c = contract("icrt");
  c.view("x", x);
  c.length("integers", integers.size(), words * x.batch * n());
  const Basis all(values_of(x.primes));
  if (all.product().words() > words) c.fail("the words cannot hold the product of the primes");
  std::vector<u64> residues(x.primes.size());
  for (std::size_t j = 0; j < x.batch; ++j) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < x.primes.size(); ++i) rows.push_back(load(x, i, j));
    for (std::size_t k = 0; k < n(); ++k) {
      for (std::size_t i = 0; i < residues.size(); ++i) residues[i] = rows[i][k];
      const Natural value = all.compose(residues);
      for (std::size_t w = 0; w < words; ++w) {
        integers[(w * x.batch + j) * n() + k] = value.word(w);
      }
    }
  }
}

}  // namespace jali::backend::ref
