// The oracle: every operation of ops.h spelled out with 128-bit remainders and natural numbers of
// any size. It refuses every call that breaks the contract, residues that are not below their prime
// included.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jali/backend/ops.h"
#include "jali/backend/ref/contract.h"
#include "jali/backend/ref/crt.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/transform.h"
#include "jali/base/error.h"

namespace jali::backend {
namespace ref {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

/// Rows in memory of our own, (limb, batch).
using Rows = std::vector<std::vector<Row>>;

class RefOps final : public Ops {
 public:
  explicit RefOps(Config config) : config_(std::move(config)) {
    check_config(config_);
    for (const u64 q : config_.primes) roots_.push_back(smallest_root(q, config_.n));
  }

  std::string name() const override { return "ref"; }
  const Config& config() const override { return config_; }
  u64 root(PrimeIndex prime) const override {
    require<InvalidArgument>(prime < roots_.size(), "root: no such prime");
    return roots_[prime];
  }

  void ntt(View x) const override {
    contract("ntt").view("x", x);
    in_place(x, [&](Row row, PrimeIndex p) { return to_values(row, p); });
  }

  void intt(View x) const override {
    contract("intt").view("x", x);
    in_place(x, [&](Row row, PrimeIndex p) { return to_coefficients(row, p); });
  }

  void add(View out, ConstView a, ConstView b) const override {
    binary("add", out, a, b, [](u64 x, u64 y, u64 q) { return ref::add(x, y, q); });
  }
  void sub(View out, ConstView a, ConstView b) const override {
    binary("sub", out, a, b, [](u64 x, u64 y, u64 q) { return ref::sub(x, y, q); });
  }
  void mul(View out, ConstView a, ConstView b) const override {
    binary("mul", out, a, b, [](u64 x, u64 y, u64 q) { return ref::mul(x, y, q); });
  }

  void neg(View out, ConstView a) const override {
    unary("neg", out, a, [](u64 x, std::size_t, u64 q) { return ref::sub(0, x, q); });
  }

  void mul_add(View acc, ConstView a, ConstView b) const override {
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

  void mul_scalar(View out, ConstView a, std::span<const u64> s) const override {
    contract("mul_scalar").view("a", a);
    contract("mul_scalar").scalars(a, s);
    unary("mul_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::mul(x, s[i], q); });
  }

  void mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const override {
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

  void add_scalar(View out, ConstView a, std::span<const u64> s) const override {
    contract("add_scalar").view("a", a);
    contract("add_scalar").scalars(a, s);
    unary("add_scalar", out, a, [&](u64 x, std::size_t i, u64 q) { return ref::add(x, s[i], q); });
  }

  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override {
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

  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override {
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

  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override {
    const Contract c = contract("tensor");
    c.view("d0", d0);
    for (const ConstView& v : {ConstView(d1), ConstView(d2), a0, a1, b0, b1}) {
      c.view("an operand", v);
      c.same_shape(d0, v);
    }
    const auto inputs = {c.block("a0", a0), c.block("a1", a1), c.block("b0", b0),
                         c.block("b1", b1)};
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

  void combine(View d0, View d1, View d2, const Combination& sum) const override {
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

  void automorphism_ntt(View out, ConstView in, u64 g) const override {
    check_automorphism(contract("automorphism_ntt"), out, in, g);
    for_rows(out, [&](std::size_t i, std::size_t j, u64) {
      store(out, i, j, automorphism_of_values(load(in, i, j), g));
    });
  }

  void automorphism_coeff(View out, ConstView in, u64 g) const override {
    check_automorphism(contract("automorphism_coeff"), out, in, g);
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      store(out, i, j, automorphism(load(in, i, j), g, q));
    });
  }

  void mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const override {
    const Contract c = contract("mod_up");
    check_mod_up(c, ext, x, digit_limbs);
    c.same_or_apart(c.block("ext", ext, digit_limbs.size()), {c.block("x", x)});
    lift_digits(ext, x, digit_limbs);
  }

  void key_product(View acc0, View acc1, ConstView ext, KeyView key, std::span<const u32> digit_ids,
                   u64 g, bool accumulate) const override {
    const Contract c = contract("key_product");
    c.key(key, digit_ids, acc0.primes);
    c.view("ext", ext, digit_ids.size());
    c.same_shape(acc0, ext);
    c.galois(g);
    check_accumulators(c, acc0, acc1, key, c.block("ext", ext, digit_ids.size()));
    multiply_by_key(acc0, acc1, ext, key, digit_ids, g, accumulate);
  }

  void key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs, KeyView key,
                  std::span<const u32> digit_ids) const override {
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

  void scale_down(View out, ConstView x, const ConstView* addend) const override {
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

  void from_int64(View out, std::span<const std::int64_t> c) const override {
    contract("from_int64").view("out", out);
    contract("from_int64").length("c", c.size(), out.batch * n());
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      Row row(n());
      for (std::size_t k = 0; k < n(); ++k) {
        const __int128 r = static_cast<__int128>(c[j * n() + k]) % static_cast<__int128>(q);
        row[k] = static_cast<u64>(r < 0 ? r + static_cast<__int128>(q) : r);
      }
      store(out, i, j, row);
    });
  }

  void from_double(View out, std::span<const double> c) const override {
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

  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override {
    contract("sample_uniform").view("out", out);
    Ops::sample_uniform(out, seed, index);
  }

  // Both methods are one thing to the oracle: the integer modulo q.
  void crt(View out, std::span<const u64> integers, std::size_t words, CrtMethod) const override {
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

  void icrt(std::span<u64> integers, std::size_t words, ConstView x, IcrtMethod) const override {
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

 private:
  std::size_t n() const { return config_.n; }
  Contract contract(const char* operation) const { return Contract(config_, operation); }

  // --- rows ----------------------------------------------------------------------------------

  u64 word_at(const void* data, std::size_t index) const {
    if (config_.word == Word::w32) return static_cast<const u32*>(data)[index];
    return static_cast<const u64*>(data)[index];
  }

  Row load_words(const void* data, std::size_t start, u64 q) const {
    Row row(n());
    for (std::size_t k = 0; k < n(); ++k) {
      row[k] = word_at(data, start + k);
      require<InternalError>(row[k] < q, "ref: an input residue is not below its prime");
    }
    return row;
  }

  Row load(ConstView x, std::size_t limb, std::size_t batch) const {
    return load_words(x.data, (limb * x.batch + batch) * n(), config_.primes[x.primes[limb]]);
  }

  void store(View x, std::size_t limb, std::size_t batch, const Row& row) const {
    const std::size_t start = (limb * x.batch + batch) * n();
    for (std::size_t k = 0; k < n(); ++k) {
      if (config_.word == Word::w32) {
        static_cast<u32*>(x.data)[start + k] = static_cast<u32>(row[k]);
      } else {
        static_cast<u64*>(x.data)[start + k] = row[k];
      }
    }
  }

  Rows load_coefficients(ConstView x) const {
    Rows rows(x.primes.size(), std::vector<Row>(x.batch));
    for_rows(x, [&](std::size_t i, std::size_t j, u64) {
      rows[i][j] = to_coefficients(load(x, i, j), x.primes[i]);
    });
    return rows;
  }

  /// The definition itself where it can be afforded.
  static constexpr std::size_t kLargestByDefinition = 256;

  Row to_values(const Row& row, PrimeIndex p) const {
    return n() <= kLargestByDefinition ? ntt_by_definition(row, roots_[p], config_.primes[p])
                                       : ntt_by_recursion(row, roots_[p], config_.primes[p]);
  }
  Row to_coefficients(const Row& row, PrimeIndex p) const {
    return n() <= kLargestByDefinition ? intt_by_definition(row, roots_[p], config_.primes[p])
                                       : intt_by_recursion(row, roots_[p], config_.primes[p]);
  }

  std::vector<u64> values_of(Primes primes) const {
    std::vector<u64> q;
    for (const PrimeIndex p : primes) q.push_back(config_.primes[p]);
    return q;
  }

  // --- loops ---------------------------------------------------------------------------------

  /// f(limb, batch, q) for every row.
  template <class F>
  void for_rows(ConstView x, F f) const {
    for (std::size_t i = 0; i < x.primes.size(); ++i) {
      for (std::size_t j = 0; j < x.batch; ++j) f(i, j, config_.primes[x.primes[i]]);
    }
  }

  template <class F>
  void in_place(View x, F f) const {
    for_rows(x, [&](std::size_t i, std::size_t j, u64) {
      store(x, i, j, f(load(x, i, j), x.primes[i]));
    });
  }

  /// f(value, limb, q).
  template <class F>
  void unary(const char* operation, View out, ConstView a, F f) const {
    check_unary(contract(operation), out, a);
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      Row row = load(a, i, j);
      for (u64& v : row) v = f(v, i, q);
      store(out, i, j, row);
    });
  }

  /// f(value, value, q).
  template <class F>
  void binary(const char* operation, View out, ConstView a, ConstView b, F f) const {
    check_binary(contract(operation), out, a, b);
    for_rows(out, [&](std::size_t i, std::size_t j, u64 q) {
      Row row = load(a, i, j);
      const Row other = load(b, i, b.batch == 1 ? 0 : j);
      for (std::size_t k = 0; k < n(); ++k) row[k] = f(row[k], other[k], q);
      store(out, i, j, row);
    });
  }

  // --- the larger steps ----------------------------------------------------------------------

  void lift_digits(View ext, ConstView x, std::span<const u32> digit_limbs) const {
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

  void multiply_by_key(View acc0, View acc1, ConstView ext, KeyView key,
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

  Row key_row(KeyView key, std::size_t digit, std::size_t part, PrimeIndex p) const {
    const auto position =
        static_cast<std::size_t>(std::ranges::find(key.primes, p) - key.primes.begin());
    const std::size_t row = (digit * 2 + part) * key.primes.size() + position;
    return load_words(key.data, row * n(), config_.primes[p]);
  }

  // --- contracts shared by several operations ------------------------------------------------

  void check_unary(const Contract& c, View out, ConstView a) const {
    c.view("out", out);
    c.view("a", a);
    c.same_shape(out, a);
    c.same_or_apart(c.block("out", out), {c.block("a", a)});
  }

  void check_binary(const Contract& c, View out, ConstView a, ConstView b) const {
    check_unary(c, out, a);
    c.view("b", b);
    c.same_primes(out, b);
    c.batch_or_broadcast(out, b);
    c.same_or_apart(c.block("out", out), {c.block("b", b)});
  }

  void check_automorphism(const Contract& c, View out, ConstView in, u64 g) const {
    c.view("out", out);
    c.view("in", in);
    c.same_shape(out, in);
    c.galois(g);
    c.apart(c.block("out", out), {c.block("in", in)});
  }

  void check_mod_up(const Contract& c, View ext, ConstView x,
                    std::span<const u32> digit_limbs) const {
    c.view("x", x);
    c.digits(digit_limbs, x.primes.size());
    c.view("ext", ext, digit_limbs.size());
    c.same_batch(ext, x);
    if (!is_subset(x.primes, ext.primes)) c.fail("the primes of x are not among those of ext");
  }

  void check_accumulators(const Contract& c, View acc0, View acc1, KeyView key, Block input) const {
    c.view("acc0", acc0);
    c.view("acc1", acc1);
    c.same_shape(acc0, acc1);
    const Block key_block = c.block("the key", {key.data, key.primes, 1}, 2 * key.digits);
    c.apart(c.block("acc0", acc0), {c.block("acc1", acc1), key_block, input});
    c.apart(c.block("acc1", acc1), {key_block, input});
  }

  const Config config_;
  std::vector<u64> roots_;
};

}  // namespace
}  // namespace ref

std::unique_ptr<Ops> make_ref_ops(Config config) {
  return std::make_unique<ref::RefOps>(std::move(config));
}

}  // namespace jali::backend
