#include <algorithm>

#include "jali/backend/rlwe_ops.h"
#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/rns_tracer.h"
#include "jali/backend/trace/tables.h"

namespace jali::backend::trace {
namespace {

std::size_t common(Primes a, Primes b) {
  return static_cast<std::size_t>(
      std::ranges::count_if(a, [&](PrimeIndex p) { return std::ranges::find(b, p) != b.end(); }));
}

class TraceRlwe final : public RlweOps, private RnsTracer {
 public:
  TraceRlwe(const Engine& engine, const Engine& inner, const Recorder& recorder)
      : RlweOps(engine), RnsTracer(inner.config(), recorder), inner_(inner.rlwe()) {}

  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override {
    Record r = record("tensor", d0, {a0, a1, b0, b1}, {d0, d1, d2});
    r.mults = 4 * residues(d0);
    run(std::move(r), [&] { inner_.tensor(d0, d1, d2, a0, a1, b0, b1); });
  }

  void combine(View d0, View d1, View d2, const Combination& c) const override {
    Record r = record("combine", d0, {}, {d0, d1});
    if (!c.products.empty()) write(r, d2);
    r.shape.set("primes_in", Shape::list_of(d0.primes));
    read_terms(r, d0, c);
    run(std::move(r), [&] { inner_.combine(d0, d1, d2, c); });
  }

  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override {
    const ConstView shape = sums.empty() ? ConstView{} : ConstView(sums[0].out0);
    Record r = record("weighted_sums", shape, {}, {});
    r.shape.set("primes_in", Shape::list_of(shape.primes));
    for (const ConstView& v : a0) read(r, v);
    for (const ConstView& v : a1) read(r, v);
    weigh(r, sums, Kind::unknown);
    run(std::move(r), [&] { inner_.weighted_sums(a0, a1, sums); });
  }
  void mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const override {
    Record r = record("mod_up", ext, {x}, {});
    write(r, ext, Kind::scratch, digit_limbs.size());
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.mults = ext.batch * cost::mod_up(n(), digit_limbs, ext.primes.size());
    run(std::move(r), [&] { inner_.mod_up(ext, x, digit_limbs); });
  }
  void scale_down(View out, ConstView x, const ConstView* addend) const override {
    Record r = record("scale_down", out, {x}, {out});
    if (addend != nullptr) read(r, *addend);
    r.mults = division_mults(out, x);
    run(std::move(r), [&] { inner_.scale_down(out, x, addend); });
  }
  void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1, const ConstView* addend0,
                       const ConstView* addend1) const override {
    Record r = record("scale_down_pair", out0, {x0, x1}, {out0, out1});
    if (addend0 != nullptr) read(r, *addend0);
    if (addend1 != nullptr) read(r, *addend1);
    r.mults = 2 * division_mults(out0, x0);
    run(std::move(r), [&] { inner_.scale_down_pair(out0, out1, x0, x1, addend0, addend1); });
  }

  void key_product(View acc0, View acc1, ConstView ext, KeyView key, std::span<const u32> digit_ids,
                   u64 g, bool accumulate) const override {
    Record r = record("key_product", acc0, {}, {acc0, acc1}, Kind::scratch);
    r.shape.set("primes_in", Shape::list_of(ext.primes));
    read(r, ext, Kind::scratch, digit_ids.size());
    read_key(r, key, digit_ids, acc0.primes.size());
    if (accumulate) {
      read(r, acc0, Kind::scratch);
      read(r, acc1, Kind::scratch);
    }
    r.shape.set("digits", Shape::list_of(digit_ids));
    r.shape.set("galois", Shape::List{g});
    r.shape.set("accumulate", accumulate);
    r.mults = acc0.batch * cost::key_product(n(), digit_ids.size(), acc0.primes.size());
    run(std::move(r), [&] { inner_.key_product(acc0, acc1, ext, key, digit_ids, g, accumulate); });
  }
  void key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs, KeyView key,
                  std::span<const u32> digit_ids) const override {
    Record r = record("key_switch", acc0, {x}, {acc0, acc1}, Kind::scratch);
    read_key(r, key, digit_ids, acc0.primes.size());
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.mults = switch_mults(acc0, digit_limbs);
    run(std::move(r), [&] { inner_.key_switch(acc0, acc1, x, digit_limbs, key, digit_ids); });
  }
  void key_switch_add(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs,
                      KeyView key, std::span<const u32> digit_ids,
                      const ScaledAddend& addend) const override {
    Record r =
        record("key_switch_add", acc0, {x, addend.c0, addend.c1}, {acc0, acc1}, Kind::scratch);
    read_key(r, key, digit_ids, acc0.primes.size());
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.mults = switch_mults(acc0, digit_limbs) + 2 * residues(x);
    run(std::move(r),
        [&] { inner_.key_switch_add(acc0, acc1, x, digit_limbs, key, digit_ids, addend); });
  }
  void combine_key_switch(View acc0, View acc1, const Combination& c, std::span<const u64> s,
                          std::span<const u32> digit_limbs, KeyView key,
                          std::span<const u32> digit_ids) const override {
    const ConstView own{acc0.data, own_primes(acc0, digit_limbs), acc0.batch};
    Record r = record("combine_key_switch", acc0, {}, {acc0, acc1}, Kind::scratch);
    r.shape.set("primes_in", Shape::list_of(own.primes));
    read_terms(r, own, c);
    read_key(r, key, digit_ids, acc0.primes.size());
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.mults += switch_mults(acc0, digit_limbs) + 2 * residues(own);
    run(std::move(r),
        [&] { inner_.combine_key_switch(acc0, acc1, c, s, digit_limbs, key, digit_ids); });
  }
  void rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1, u64 g,
              std::span<const u32> digit_limbs, KeyView key,
              std::span<const u32> digit_ids) const override {
    Record r = record("rotate", out0, {c0, c1}, {out0, out1});
    write(r, acc0, Kind::scratch);
    write(r, acc1, Kind::scratch);
    read_key(r, key, digit_ids, acc0.primes.size());
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.shape.set("galois", Shape::List{g});
    r.mults = switch_mults(acc0, digit_limbs) + 2 * division_mults(out0, acc0);
    run(std::move(r),
        [&] { inner_.rotate(out0, out1, acc0, acc1, c0, c1, g, digit_limbs, key, digit_ids); });
  }

  void rotated_sums(std::span<const Rotated> operands, std::span<const u32> digit_ids,
                    std::span<const u64> s, std::span<const WeightedSum> sums) const override {
    const ConstView shape = sums.empty() ? ConstView{} : ConstView(sums[0].out0);
    Record r = record("rotated_sums", shape, {}, {});
    r.shape.set("primes_in", Shape::list_of(shape.primes));
    r.shape.set("digits", Shape::list_of(digit_ids));
    const std::size_t limbs = shape.primes.size();
    Shape::List galois, sources;
    // Rotations of one ciphertext follow each other and read it and its digits once.
    const void *c0 = nullptr, *ext = nullptr;
    for (const Rotated& x : operands) {
      galois.push_back(x.g);
      const bool is_new =
          sources.empty() || x.c0.data != c0 || (x.g != 1 && ext != nullptr && x.ext.data != ext);
      sources.push_back(sources.empty() ? 0 : sources.back() + (is_new ? 1 : 0));
      if (is_new) {
        read(r, x.c0, Kind::ciphertext);
        c0 = x.c0.data;
        ext = nullptr;
      }
      if (x.g == 1) {
        read(r, x.c1, Kind::ciphertext);
        r.mults += 2 * residues(x.c0);
        continue;
      }
      if (ext == nullptr) read(r, x.ext, Kind::scratch, digit_ids.size());
      ext = x.ext.data;
      read_key(r, x.key, digit_ids, limbs);
      r.mults += shape.batch * cost::key_product(n(), digit_ids.size(), limbs) + residues(x.c0);
    }
    r.shape.set("galois", std::move(galois));
    r.shape.set("sources", std::move(sources));
    weigh(r, sums, Kind::scratch);
    run(std::move(r), [&] { inner_.rotated_sums(operands, digit_ids, s, sums); });
  }
  void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                 std::span<const u32> digit_limbs, std::span<const u32> digit_ids,
                 bool accumulate) const override {
    Record r = record("outer_sum", acc0, {}, {acc0, acc1}, Kind::scratch);
    r.shape.set("primes_in", Shape::list_of(acc0.primes));
    r.shape.set("digits", Shape::list_of(digit_limbs));
    r.shape.set("terms", terms.size());
    r.shape.set("accumulate", accumulate);
    if (accumulate) {
      read(r, acc0, Kind::scratch);
      read(r, acc1, Kind::scratch);
    }
    std::size_t limbs = 0;
    for (const u32 count : digit_limbs) limbs += count;
    const ConstView level{nullptr, acc0.primes.first(std::min(limbs, acc0.primes.size())),
                          acc0.batch};
    Shape::List galois;
    for (const Turned& x : terms) {
      galois.push_back(x.g);
      read(r, x.x0, Kind::scratch);
      read(r, x.x1, Kind::scratch);
      read_key(r, x.key, digit_ids, acc0.primes.size());
      r.mults += division_mults(level, x.x1) + switch_mults(acc0, digit_limbs);
    }
    r.shape.set("galois", std::move(galois));
    run(std::move(r),
        [&] { inner_.outer_sum(acc0, acc1, terms, digit_limbs, digit_ids, accumulate); });
  }

 private:
  u64 switch_mults(ConstView acc, std::span<const u32> digit_limbs) const {
    return acc.batch * (cost::mod_up(n(), digit_limbs, acc.primes.size()) +
                        cost::key_product(n(), digit_limbs.size(), acc.primes.size()));
  }
  u64 division_mults(ConstView out, ConstView x) const {
    const std::size_t kept = common(x.primes, out.primes);
    return out.batch *
           cost::scale_down(n(), x.primes.size() - kept, kept, out.primes.size() - kept);
  }

  /// The rows of the sum's primes, of every operand; the extent begins where the operand does.
  void read_terms(Record& r, ConstView sum, const Combination& c) const {
    const auto operand = [&](ConstView x) {
      recorder_.read(r, Kind::ciphertext, x.data, limbs(sum) * row_bytes());
    };
    for (const auto& p : c.products) {
      operand(p.a0), operand(p.a1), operand(p.b0), operand(p.b1);
    }
    for (const auto& m : c.multiples) operand(m.x0), operand(m.x1);
    r.shape.set("terms", u64{c.products.size() + c.multiples.size()});
    r.shape.set("products", u64{c.products.size()});
    r.mults += (4 * c.products.size() + 2 * c.multiples.size()) * residues(sum);
  }
  /// The rows used, of both parts of each digit; the extent begins where the digit does.
  void read_key(Record& r, KeyView key, std::span<const u32> digit_ids,
                std::size_t used_limbs) const {
    const std::size_t digit_bytes = 2 * key.primes.size() * row_bytes();
    for (const u32 id : digit_ids) {
      recorder_.read(r, Kind::key, static_cast<const std::byte*>(key.data) + id * digit_bytes,
                     2 * used_limbs * row_bytes());
    }
  }

  /// What is the same for all weighted sums. made: what the sums are.
  void weigh(Record& r, std::span<const WeightedSum> sums, Kind made) const {
    u64 terms = 0;
    Shape::List counts, operands;
    for (const WeightedSum& sum : sums) {
      for (const ConstView& v : sum.b) read(r, v, Kind::plaintext);
    }
    for (const WeightedSum& sum : sums) {
      if (sum.accumulate) {
        read(r, sum.out0, made);
        read(r, sum.out1, made);
        r.shape.set("accumulate", true);
      }
      write(r, sum.out0, made);
      write(r, sum.out1, made);
      terms += sum.b.size();
      counts.push_back(sum.operands.size());
      operands.insert(operands.end(), sum.operands.begin(), sum.operands.end());
      r.mults += 2 * sum.b.size() * residues(sum.out0);
    }
    r.shape.set("terms", terms);
    r.shape.set("sums", std::move(counts));
    r.shape.set("operands", std::move(operands));
  }

  const RlweOps& inner_;
};

}  // namespace

std::unique_ptr<RlweOps> trace_rlwe(const Engine& engine, const Engine& inner,
                                    const Recorder& recorder) {
  return std::make_unique<TraceRlwe>(engine, inner, recorder);
}

}  // namespace jali::backend::trace
