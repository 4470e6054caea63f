#include "jali/backend/ring_ops.h"
#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/rns_tracer.h"
#include "jali/backend/trace/tables.h"

namespace jali::backend::trace {
namespace {

class TraceRing final : public RingOps, private RnsTracer {
 public:
  TraceRing(const Engine& engine, const Engine& inner, const Recorder& recorder)
      : RingOps(engine), RnsTracer(inner.config(), recorder), inner_(inner.ring()) {}

  u64 root(PrimeIndex prime) const override { return inner_.root(prime); }

  void ntt(View x) const override {
    Record r = record("ntt", x, {x}, {x});
    r.mults = limbs(x) * cost::ntt(n());
    run(std::move(r), [&] { inner_.ntt(x); });
  }
  void intt(View x) const override {
    Record r = record("intt", x, {x}, {x});
    r.mults = limbs(x) * cost::intt(n());
    run(std::move(r), [&] { inner_.intt(x); });
  }

  void add(View out, ConstView a, ConstView b) const override {
    run(record("add", out, {a, b}, {out}), [&] { inner_.add(out, a, b); });
  }
  void sub(View out, ConstView a, ConstView b) const override {
    run(record("sub", out, {a, b}, {out}), [&] { inner_.sub(out, a, b); });
  }
  void neg(View out, ConstView a) const override {
    run(record("neg", out, {a}, {out}), [&] { inner_.neg(out, a); });
  }
  void mul(View out, ConstView a, ConstView b) const override {
    Record r = record("mul", out, {a, b}, {out});
    r.mults = residues(out);
    run(std::move(r), [&] { inner_.mul(out, a, b); });
  }
  void mul_scalar(View out, ConstView a, std::span<const u64> s) const override {
    Record r = record("mul_scalar", out, {a}, {out});
    r.mults = residues(out);
    run(std::move(r), [&] { inner_.mul_scalar(out, a, s); });
  }
  void mul_scalar_add(View acc, ConstView a, std::span<const u64> s) const override {
    Record r = record("mul_scalar_add", acc, {a, acc}, {acc});
    r.mults = residues(acc);
    r.shape.set("accumulate", true);
    run(std::move(r), [&] { inner_.mul_scalar_add(acc, a, s); });
  }
  void add_scalar(View out, ConstView a, std::span<const u64> s) const override {
    run(record("add_scalar", out, {a}, {out}), [&] { inner_.add_scalar(out, a, s); });
  }
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override {
    Record r = record("inner_product", out, {}, {out});
    if (!a.empty()) r.shape.set("primes_in", Shape::list_of(a[0].primes));
    for (const ConstView& v : a) read(r, v);
    for (const ConstView& v : b) read(r, v);
    r.shape.set("terms", a.size());
    r.mults = a.size() * residues(out);
    run(std::move(r), [&] { inner_.inner_product(out, a, b); });
  }
  void automorphism_ntt(View out, ConstView in, u64 g) const override {
    Record r = record("automorphism_ntt", out, {in}, {out});
    r.shape.set("galois", Shape::List{g});
    run(std::move(r), [&] { inner_.automorphism_ntt(out, in, g); });
  }
  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override {
    Record r = record("sample_uniform", out, {}, {out});
    for (const PrimeIndex i : out.primes) {
      r.stream_bytes += cost::uniform_bytes(out.batch * n(), config_.primes[i]);
    }
    run(std::move(r), [&] { inner_.sample_uniform(out, seed, index); });
  }
  void sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                    u64 stream) const override {
    Record r = record("sample_small", out, {}, {out});
    r.stream_bytes = kind == Small::ternary ? cost::ternary_bytes(out.batch * n())
                                            : cost::error_bytes(out.batch * n());
    run(std::move(r), [&] { inner_.sample_small(out, kind, seed, stream); });
  }
  void sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                     std::uint64_t stream) const override {
    Record r = record("sample_sparse", out, {}, {out});
    r.stream_bytes = cost::error_bytes(out.batch * n());
    run(std::move(r), [&] { inner_.sample_sparse(out, weight, seed, stream); });
  }

  void from_int64(View out, std::span<const std::int64_t> c) const override {
    Record r = record("from_int64", out, {}, {out}, Kind::plaintext);
    read_host(r, c);
    r.mults = residues(out);
    run(std::move(r), [&] { inner_.from_int64(out, c); });
  }
  void from_double(View out, std::span<const double> c) const override {
    Record r = record("from_double", out, {}, {out}, Kind::plaintext);
    read_host(r, c);
    r.mults = residues(out);
    run(std::move(r), [&] { inner_.from_double(out, c); });
  }
  void crt(View out, std::span<const u64> integers, std::size_t words,
           CrtMethod method) const override {
    Record r = record("crt", out, {}, {out}, Kind::plaintext);
    read_host(r, integers);
    r.shape.set("terms", words);
    r.mults = out.batch * cost::crt(n(), out.primes.size(), words);
    run(std::move(r), [&] { inner_.crt(out, integers, words, method); });
  }
  void icrt(std::span<u64> integers, std::size_t words, ConstView x,
            IcrtMethod method) const override {
    Record r = record("icrt", {nullptr, {}, x.batch}, {x}, {});
    write_host(r, integers);
    r.shape.set("terms", words);
    r.mults = x.batch * (method == IcrtMethod::product_sum
                             ? cost::icrt_product_sum(n(), x.primes.size(), words)
                             : cost::icrt_garner(n(), x.primes.size(), words));
    run(std::move(r), [&] { inner_.icrt(integers, words, x, method); });
  }

 private:
  const RingOps& inner_;
};

}  // namespace

std::unique_ptr<RingOps> trace_ring(const Engine& engine, const Engine& inner,
                                    const Recorder& recorder) {
  return std::make_unique<TraceRing>(engine, inner, recorder);
}

}  // namespace jali::backend::trace
