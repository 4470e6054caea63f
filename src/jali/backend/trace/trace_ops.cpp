#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jali/backend/embedding.h"
#include "jali/backend/ops.h"
#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"
#include "jali/device/buffer.h"

namespace jali::backend {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

std::size_t common(Primes a, Primes b) {
  return static_cast<std::size_t>(
      std::ranges::count_if(a, [&](PrimeIndex p) { return std::ranges::find(b, p) != b.end(); }));
}

class TraceOps final : public Ops {
 public:
  TraceOps(std::shared_ptr<const Ops> inner, std::shared_ptr<Trace> sink)
      : Ops(inner->device()), inner_(std::move(inner)), sink_(std::move(sink)) {
    const auto memory = inner_->memory();
    if (!memory->host_accessible()) {
      probe_ = device::Pool::create(false, memory)->allocate(1);
    }
  }

  std::string name() const override { return "trace(" + inner_->name() + ")"; }
  const Config& config() const override { return inner_->config(); }
  int threads() const override { return inner_->threads(); }
  /// Called again instead of played back, so that every run is recorded here.
  std::unique_ptr<Captured> capture(std::function<void()> work) const override {
    return device::host_device()->record(std::move(work));
  }
  u64 root(PrimeIndex prime) const override { return inner_->root(prime); }

  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override {
    Record r = record("sample_uniform", out, {}, {out});
    for (const PrimeIndex i : out.primes) {
      r.stream_bytes += cost::uniform_bytes(out.batch * n(), config().primes[i]);
    }
    run(std::move(r), [&] { inner_->sample_uniform(out, seed, index); });
  }
  void sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                    u64 stream) const override {
    Record r = record("sample_small", out, {}, {out});
    r.stream_bytes = kind == Small::ternary ? cost::ternary_bytes(out.batch * n())
                                            : cost::error_bytes(out.batch * n());
    run(std::move(r), [&] { inner_->sample_small(out, kind, seed, stream); });
  }
  void sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                     std::uint64_t stream) const override {
    Record r = record("sample_sparse", out, {}, {out});
    r.stream_bytes = cost::error_bytes(out.batch * n());
    run(std::move(r), [&] { inner_->sample_sparse(out, weight, seed, stream); });
  }

  void ntt(View x) const override {
    Record r = record("ntt", x, {x}, {x});
    r.mults = limbs(x) * cost::ntt(n());
    run(std::move(r), [&] { inner_->ntt(x); });
  }
  void intt(View x) const override {
    Record r = record("intt", x, {x}, {x});
    r.mults = limbs(x) * cost::intt(n());
    run(std::move(r), [&] { inner_->intt(x); });
  }

  void add(View out, ConstView a, ConstView b) const override {
    run(record("add", out, {a, b}, {out}), [&] { inner_->add(out, a, b); });
  }
  void sub(View out, ConstView a, ConstView b) const override {
    run(record("sub", out, {a, b}, {out}), [&] { inner_->sub(out, a, b); });
  }
  void neg(View out, ConstView a) const override {
    run(record("neg", out, {a}, {out}), [&] { inner_->neg(out, a); });
  }
  void mul(View out, ConstView a, ConstView b) const override {
    Record r = record("mul", out, {a, b}, {out});
    r.mults = residues(out);
    run(std::move(r), [&] { inner_->mul(out, a, b); });
  }
  void mul_add(View acc, ConstView a, ConstView b) const override {
    Record r = record("mul_add", acc, {a, b, acc}, {acc});
    r.mults = residues(acc);
    r.accumulate = true;
    run(std::move(r), [&] { inner_->mul_add(acc, a, b); });
  }
  void mul_scalar(View out, ConstView a, std::span<const u64> s) const override {
    Record r = record("mul_scalar", out, {a}, {out});
    r.mults = residues(out);
    run(std::move(r), [&] { inner_->mul_scalar(out, a, s); });
  }
  void mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const override {
    Record r = record("mul_scalar_add", acc, {a, acc}, {acc});
    r.mults = residues(acc);
    r.accumulate = true;
    run(std::move(r), [&] { inner_->mul_scalar_add(acc, a, s); });
  }
  void add_scalar(View out, ConstView a, std::span<const u64> s) const override {
    run(record("add_scalar", out, {a}, {out}), [&] { inner_->add_scalar(out, a, s); });
  }
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override {
    Record r = record("inner_product", out, {}, {out});
    if (!a.empty()) r.primes_in.assign(a[0].primes.begin(), a[0].primes.end());
    for (const ConstView& v : a) read(r, v);
    for (const ConstView& v : b) read(r, v);
    r.terms = a.size();
    r.mults = a.size() * residues(out);
    run(std::move(r), [&] { inner_->inner_product(out, a, b); });
  }
  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override {
    const ConstView shape = sums.empty() ? ConstView{} : ConstView(sums[0].out0);
    Record r = record("weighted_sums", shape, {}, {});
    r.primes_in = r.primes_out;
    for (const ConstView& v : a0) read(r, v);
    for (const ConstView& v : a1) read(r, v);
    weigh(r, sums);
    run(std::move(r), [&] { inner_->weighted_sums(a0, a1, sums); });
  }
  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override {
    Record r = record("tensor", d0, {a0, a1, b0, b1}, {d0, d1, d2});
    r.mults = 4 * residues(d0);
    run(std::move(r), [&] { inner_->tensor(d0, d1, d2, a0, a1, b0, b1); });
  }

  void combine(View d0, View d1, View d2, const Combination& c) const override {
    Record r = record("combine", d0, {}, {d0, d1});
    if (!c.products.empty()) write(r, d2);
    r.primes_in = r.primes_out;
    read_terms(r, d0, c);
    run(std::move(r), [&] { inner_->combine(d0, d1, d2, c); });
  }

  void automorphism_ntt(View out, ConstView in, u64 g) const override {
    Record r = record("automorphism_ntt", out, {in}, {out});
    r.galois = g;
    run(std::move(r), [&] { inner_->automorphism_ntt(out, in, g); });
  }
  void automorphism_coeff(View out, ConstView in, u64 g) const override {
    Record r = record("automorphism_coeff", out, {in}, {out});
    r.galois = g;
    run(std::move(r), [&] { inner_->automorphism_coeff(out, in, g); });
  }

  void mod_up(View ext, ConstView x, std::span<const u32> digit_limbs) const override {
    Record r = record("mod_up", ext, {x}, {});
    write(r, ext, digit_limbs.size());
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.mults = ext.batch * cost::mod_up(n(), digit_limbs, ext.primes.size());
    run(std::move(r), [&] { inner_->mod_up(ext, x, digit_limbs); });
  }
  void key_product(View acc0, View acc1, ConstView ext, KeyView key, std::span<const u32> digit_ids,
                   u64 g, bool accumulate) const override {
    Record r = record("key_product", acc0, {}, {acc0, acc1});
    r.primes_in.assign(ext.primes.begin(), ext.primes.end());
    read(r, ext, digit_ids.size());
    read_key(r, key, digit_ids, acc0.primes.size());
    if (accumulate) {
      read(r, acc0);
      read(r, acc1);
    }
    r.digits.assign(digit_ids.begin(), digit_ids.end());
    r.galois = g;
    r.accumulate = accumulate;
    r.mults = acc0.batch * cost::key_product(n(), digit_ids.size(), acc0.primes.size());
    run(std::move(r), [&] { inner_->key_product(acc0, acc1, ext, key, digit_ids, g, accumulate); });
  }
  void rotated_sums(std::span<const Rotated> operands, std::span<const u32> digit_ids,
                    std::span<const u64> s, std::span<const WeightedSum> sums) const override {
    const ConstView shape = sums.empty() ? ConstView{} : ConstView(sums[0].out0);
    Record r = record("rotated_sums", shape, {}, {});
    r.primes_in = r.primes_out;
    r.digits.assign(digit_ids.begin(), digit_ids.end());
    const std::size_t limbs = shape.primes.size();
    const void* before = nullptr;  // rotations of one ciphertext follow each other and read it once
    for (const Rotated& x : operands) {
      const bool again = x.c0.data == before;
      before = x.c0.data;
      if (!again) read(r, x.c0);
      if (x.g == 1) {
        read(r, x.c1);
        r.mults += 2 * residues(x.c0);
        continue;
      }
      if (!again) read(r, x.ext, digit_ids.size());
      read_key(r, x.key, digit_ids, limbs);
      r.mults += shape.batch * cost::key_product(n(), digit_ids.size(), limbs) + residues(x.c0);
    }
    weigh(r, sums);
    run(std::move(r), [&] { inner_->rotated_sums(operands, digit_ids, s, sums); });
  }
  void key_switch(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs, KeyView key,
                  std::span<const u32> digit_ids) const override {
    Record r = record("key_switch", acc0, {x}, {acc0, acc1});
    read_key(r, key, digit_ids, acc0.primes.size());
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.mults = switch_mults(acc0, digit_limbs);
    run(std::move(r), [&] { inner_->key_switch(acc0, acc1, x, digit_limbs, key, digit_ids); });
  }
  void key_switch_joined(View acc0, View acc1, ConstView x, std::span<const u32> digit_limbs,
                         KeyView key, std::span<const u32> digit_ids,
                         const Joined& joined) const override {
    Record r = record("key_switch_joined", acc0, {x, joined.c0, joined.c1}, {acc0, acc1});
    read_key(r, key, digit_ids, acc0.primes.size());
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.mults = switch_mults(acc0, digit_limbs) + 2 * residues(x);
    run(std::move(r),
        [&] { inner_->key_switch_joined(acc0, acc1, x, digit_limbs, key, digit_ids, joined); });
  }
  void combine_key_switch(View acc0, View acc1, const Combination& c, std::span<const u64> s,
                          std::span<const u32> digit_limbs, KeyView key,
                          std::span<const u32> digit_ids) const override {
    const ConstView own{acc0.data, own_primes(acc0, digit_limbs), acc0.batch};
    Record r = record("combine_key_switch", acc0, {}, {acc0, acc1});
    r.primes_in.assign(own.primes.begin(), own.primes.end());
    read_terms(r, own, c);
    read_key(r, key, digit_ids, acc0.primes.size());
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.mults += switch_mults(acc0, digit_limbs) + 2 * residues(own);
    run(std::move(r),
        [&] { inner_->combine_key_switch(acc0, acc1, c, s, digit_limbs, key, digit_ids); });
  }
  void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                 std::span<const u32> digit_limbs, std::span<const u32> digit_ids,
                 bool accumulate) const override {
    Record r = record("outer_sum", acc0, {}, {acc0, acc1});
    r.primes_in = r.primes_out;
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.terms = terms.size();
    r.accumulate = accumulate;
    if (accumulate) {
      read(r, acc0);
      read(r, acc1);
    }
    std::size_t limbs = 0;
    for (const u32 count : digit_limbs) limbs += count;
    const ConstView level{nullptr, acc0.primes.first(std::min(limbs, acc0.primes.size())),
                          acc0.batch};
    for (const Turned& x : terms) {
      read(r, x.x0);
      read(r, x.x1);
      read_key(r, x.key, digit_ids, acc0.primes.size());
      r.mults += division_mults(level, x.x1) + switch_mults(acc0, digit_limbs);
    }
    run(std::move(r),
        [&] { inner_->outer_sum(acc0, acc1, terms, digit_limbs, digit_ids, accumulate); });
  }
  void scale_down(View out, ConstView x, const ConstView* addend) const override {
    Record r = record("scale_down", out, {x}, {out});
    if (addend != nullptr) read(r, *addend);
    r.mults = division_mults(out, x);
    run(std::move(r), [&] { inner_->scale_down(out, x, addend); });
  }
  void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1, const ConstView* addend0,
                       const ConstView* addend1) const override {
    Record r = record("scale_down_pair", out0, {x0, x1}, {out0, out1});
    if (addend0 != nullptr) read(r, *addend0);
    if (addend1 != nullptr) read(r, *addend1);
    r.mults = 2 * division_mults(out0, x0);
    run(std::move(r), [&] { inner_->scale_down_pair(out0, out1, x0, x1, addend0, addend1); });
  }

  void rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1, u64 g,
              std::span<const u32> digit_limbs, KeyView key,
              std::span<const u32> digit_ids) const override {
    Record r = record("rotate", out0, {c0, c1}, {out0, out1, acc0, acc1});
    read_key(r, key, digit_ids, acc0.primes.size());
    r.digits.assign(digit_limbs.begin(), digit_limbs.end());
    r.galois = g;
    r.mults = switch_mults(acc0, digit_limbs) + 2 * division_mults(out0, acc0);
    run(std::move(r),
        [&] { inner_->rotate(out0, out1, acc0, acc1, c0, c1, g, digit_limbs, key, digit_ids); });
  }

  void from_int64(View out, std::span<const std::int64_t> c) const override {
    Record r = record("from_int64", out, {}, {out});
    extend(r.reads, r.bytes_read, address(c.data()), c.size_bytes());
    r.mults = residues(out);
    run(std::move(r), [&] { inner_->from_int64(out, c); });
  }
  void from_double(View out, std::span<const double> c) const override {
    Record r = record("from_double", out, {}, {out});
    extend(r.reads, r.bytes_read, address(c.data()), c.size_bytes());
    r.mults = residues(out);
    run(std::move(r), [&] { inner_->from_double(out, c); });
  }
  void crt(View out, std::span<const u64> integers, std::size_t words,
           CrtMethod method) const override {
    Record r = record("crt", out, {}, {out});
    extend(r.reads, r.bytes_read, address(integers.data()), integers.size_bytes());
    r.terms = words;
    r.mults = out.batch * cost::crt(n(), out.primes.size(), words);
    run(std::move(r), [&] { inner_->crt(out, integers, words, method); });
  }
  void icrt(std::span<u64> integers, std::size_t words, ConstView x,
            IcrtMethod method) const override {
    Record r = record("icrt", {nullptr, {}, x.batch}, {x}, {});
    extend(r.writes, r.bytes_written, address(integers.data()), integers.size_bytes());
    r.terms = words;
    r.mults = x.batch * (method == IcrtMethod::garner
                             ? cost::icrt_garner(n(), x.primes.size(), words)
                             : cost::icrt_product_sum(n(), x.primes.size(), words));
    run(std::move(r), [&] { inner_->icrt(integers, words, x, method); });
  }
  void embed(View out, const Embedding& embedding, std::span<const Complex> values, int log_slots,
             double factor) const override {
    Record r = record("embed", out, {}, {out});
    extend(r.reads, r.bytes_read, address(values.data()), values.size_bytes());
    r.mults = residues(out);
    r.complex_butterflies = out.batch * cost::embedding(std::size_t{1} << log_slots);
    run(std::move(r), [&] { inner_->embed(out, embedding, values, log_slots, factor); });
  }
  void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x, int log_slots,
               double divisor) const override {
    Record r = record("unembed", {nullptr, {}, x.batch}, {x}, {});
    extend(r.writes, r.bytes_written, address(slots.data()), slots.size_bytes());
    r.mults = residues(x);  // small integers take no more than one for each residue
    r.complex_butterflies = x.batch * cost::embedding(std::size_t{1} << log_slots);
    run(std::move(r), [&] { inner_->unembed(slots, embedding, x, log_slots, divisor); });
  }

 private:
  std::size_t n() const { return config().n; }
  std::size_t row_bytes() const { return n() * word_bytes(config().word); }
  static std::size_t limbs(ConstView x) { return x.primes.size() * x.batch; }
  std::size_t residues(ConstView x) const { return limbs(x) * n(); }

  u64 switch_mults(ConstView acc, std::span<const u32> digit_limbs) const {
    return acc.batch * (cost::mod_up(n(), digit_limbs, acc.primes.size()) +
                        cost::key_product(n(), digit_limbs.size(), acc.primes.size()));
  }
  u64 division_mults(ConstView out, ConstView x) const {
    const std::size_t kept = common(x.primes, out.primes);
    return out.batch *
           cost::scale_down(n(), x.primes.size() - kept, kept, out.primes.size() - kept);
  }

  static u64 address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
  static void extend(std::vector<Extent>& extents, u64& sum, u64 address, std::size_t bytes) {
    extents.push_back({address, bytes});
    sum += bytes;
  }
  void read(Record& r, ConstView x, std::size_t blocks = 1) const {
    extend(r.reads, r.bytes_read, address(x.data), blocks * limbs(x) * row_bytes());
  }
  void write(Record& r, ConstView x, std::size_t blocks = 1) const {
    extend(r.writes, r.bytes_written, address(x.data), blocks * limbs(x) * row_bytes());
  }
  /// The rows of the sum's primes, of every operand; the extent begins where the operand does.
  void read_terms(Record& r, ConstView sum, const Combination& c) const {
    const auto operand = [&](ConstView x) {
      extend(r.reads, r.bytes_read, address(x.data), limbs(sum) * row_bytes());
    };
    for (const auto& p : c.products) {
      operand(p.a0), operand(p.a1), operand(p.b0), operand(p.b1);
    }
    for (const auto& m : c.multiples) operand(m.x0), operand(m.x1);
    r.terms = c.products.size() + c.multiples.size();
    r.mults += (4 * c.products.size() + 2 * c.multiples.size()) * residues(sum);
  }
  /// The rows used, of both parts of each digit; the extent begins where the digit does.
  void read_key(Record& r, KeyView key, std::span<const u32> digit_ids,
                std::size_t used_limbs) const {
    const std::size_t digit_bytes = 2 * key.primes.size() * row_bytes();
    for (const u32 id : digit_ids) {
      extend(r.reads, r.bytes_read, address(key.data) + id * digit_bytes,
             2 * used_limbs * row_bytes());
    }
  }

  /// What is the same for all weighted sums.
  void weigh(Record& r, std::span<const WeightedSum> sums) const {
    r.terms = 0;
    for (const WeightedSum& sum : sums) {
      for (const ConstView& v : sum.b) read(r, v);
      if (sum.accumulate) {
        read(r, sum.out0);
        read(r, sum.out1);
        r.accumulate = true;
      }
      write(r, sum.out0);
      write(r, sum.out1);
      r.terms += sum.b.size();
      r.mults += 2 * sum.b.size() * residues(sum.out0);
    }
  }

  Record record(const char* op, ConstView out, std::initializer_list<ConstView> reads,
                std::initializer_list<ConstView> writes) const {
    Record r;
    r.op = op;
    r.n = n();
    r.word = config().word;
    r.batch = out.batch;
    r.primes_out.assign(out.primes.begin(), out.primes.end());
    if (reads.size() > 0) {
      const Primes first = reads.begin()->primes;
      r.primes_in.assign(first.begin(), first.end());
    }
    for (const ConstView& x : reads) read(r, x);
    for (const ConstView& x : writes) write(r, x);
    return r;
  }

  template <class Call>
  void run(Record r, Call call) const {
    using Clock = std::chrono::steady_clock;
    finish();
    const Clock::time_point start = Clock::now();
    call();
    finish();
    r.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    sink_->append(std::move(r));
  }

  /// An operation of a device of its own returns before it is done: waits for it, so that its time is its
  /// own.
  void finish() const {
    char byte = 0;
    if (!probe_.host_accessible()) probe_.copy_out(&byte);
  }

  const std::shared_ptr<const Ops> inner_;
  const std::shared_ptr<Trace> sink_;
  device::Buffer probe_;  // in the memory of a device of its own
};

}  // namespace

std::unique_ptr<Ops> make_trace_ops(std::shared_ptr<const Ops> inner, std::shared_ptr<Trace> sink) {
  require<InvalidArgument>(inner != nullptr && sink != nullptr,
                           "make_trace_ops needs an engine to record and a sink to record to");
  return std::make_unique<TraceOps>(std::move(inner), std::move(sink));
}

}  // namespace jali::backend
