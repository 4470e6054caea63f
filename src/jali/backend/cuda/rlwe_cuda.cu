// The CUDA engine of RLWE: the tables of ring, rlwe and embedding, which is that of CKKS, each
// operation as launches on one stream. That of TFHE is in tfhe_cuda.cu.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/common/variants.h"
#include "jali/backend/cuda/crt/crt.cuh"
#include "jali/backend/cuda/crt/integers.cuh"
#include "jali/backend/cuda/elementwise/elementwise.cuh"
#include "jali/backend/cuda/embedding/embedding.cuh"
#include "jali/backend/cuda/key_switch/hoisted.cuh"
#include "jali/backend/cuda/key_switch/key_switcher.cuh"
#include "jali/backend/cuda/linear_transform/sums.cuh"
#include "jali/backend/cuda/ntt/ntt.cuh"
#include "jali/backend/cuda/sampling/sampling.cuh"
#include "jali/backend/cuda/sampling/sparse_secret.cuh"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/engine.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/device/buffer.h"
#include "jali/device/cuda/device.cuh"

namespace jali::backend::cuda {

namespace {

using PrimeList = std::vector<PrimeIndex>;

PrimeList list(std::span<const PrimeIndex> primes) { return {primes.begin(), primes.end()}; }

/// Constants of CRT and inverse CRT, made when a basis is first met.
template <class W>
class CrtPlans {
 public:
  CrtPlans(const Stream& stream, const Config& config) : stream_(stream), config_(config) {}

  const CrtPlan& to_residues(std::span<const PrimeIndex> primes, std::size_t words) const {
    std::lock_guard lock(mutex_);
    auto& plan = crts_[{list(primes), words}];
    if (!plan) plan = std::make_unique<CrtPlan>(stream_, config_, primes, words);
    return *plan;
  }
  const IcrtPlan<W>& to_integers(std::span<const PrimeIndex> primes, std::size_t words,
                                 IcrtMethod method) const {
    std::lock_guard lock(mutex_);
    auto& plan = icrts_[{list(primes), words, method == IcrtMethod::garner}];
    if (!plan) plan = std::make_unique<IcrtPlan<W>>(stream_, config_, primes, words, method);
    return *plan;
  }

 private:
  const Stream& stream_;
  const Config& config_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<PrimeList, std::size_t>, std::unique_ptr<CrtPlan>> crts_;
  mutable std::map<std::tuple<PrimeList, std::size_t, bool>, std::unique_ptr<IcrtPlan<W>>> icrts_;
};

/// What the tables of one engine share.
template <class W>
struct Shared {
  Shared(Config of, const std::shared_ptr<device::Device>& device)
      : config(validated(std::move(of))),
        stream(device::cuda::as_gpu(device)->cuda_stream()),
        memory(device->memory()),
        scratch(device->pool()),
        tables(*stream, config),
        log_n(std::countr_zero(config.n)),
        key_switcher(config, *stream, tables, *scratch),
        sums(*stream, tables, log_n),
        crt_plans(*stream, config) {}

  const Config config;
  const std::shared_ptr<const Stream> stream;
  const std::shared_ptr<device::Memory> memory;
  const std::shared_ptr<device::Pool> scratch;
  const Tables<W> tables;
  const int log_n;
  const KeySwitcher<W> key_switcher;
  const Sums<W> sums;
  const CrtPlans<W> crt_plans;
};

/// The part of a table that knows how views become launches.
class Launching {
 protected:
  template <class W>
  explicit Launching(const Shared<W>& shared)
      : config_(shared.config),
        stream_(*shared.stream),
        memory_(*shared.memory),
        scratch_(*shared.scratch),
        log_n_(shared.log_n) {}

  /// Every operation begins with this. rows: the block whose rows its launches have.
  void enter(ConstView rows) const {
    check_rows(rows);
    stream_.enter();
  }
  template <class V>
  static unsigned count(const V& x) {
    return static_cast<unsigned>(x.primes.size());
  }
  template <class V>
  static unsigned batch(const V& x) {
    return static_cast<unsigned>(x.batch);
  }
  Shape shape(View out) const { return {count(out), batch(out), log_n_}; }
  static Limbs limbs(std::span<const PrimeIndex> primes) { return limbs_of(primes); }
  device::Buffer upload(const void* host, std::size_t bytes) const {
    auto staged = scratch_.allocate(bytes, /*secret=*/true);  // messages are
    memory_.copy_in(staged.data(), host, bytes);
    return staged;
  }

  const Config& config_;
  const Stream& stream_;
  device::Memory& memory_;
  device::Pool& scratch_;
  const int log_n_;
};

template <class W>
class CudaRing final : public RingOps, private Launching {
 public:
  CudaRing(const backend::Engine& engine, const Shared<W>& shared)
      : RingOps(engine),
        Launching(shared),
        tables_(shared.tables),
        sums_(shared.sums),
        plans_(shared.crt_plans) {}

  std::uint64_t root(PrimeIndex prime) const override { return tables_.roots.at(prime); }

  void ntt(View x) const override {
    enter(x);
    cuda::ntt<W>(stream_, tables_, data(x), limbs(x.primes), count(x), batch(x), log_n_);
  }
  void intt(View x) const override {
    enter(x);
    cuda::intt<W>(stream_, tables_, data(x), limbs(x.primes), count(x), batch(x), log_n_);
  }

  void add(View out, ConstView a, ConstView b) const override { run(Binary::add, out, a, b); }
  void sub(View out, ConstView a, ConstView b) const override { run(Binary::sub, out, a, b); }
  void mul(View out, ConstView a, ConstView b) const override { run(Binary::mul, out, a, b); }
  void neg(View out, ConstView a) const override {
    enter(out);
    negate<W>(stream_, tables_, shape(out), limbs(out.primes), out.data, a.data);
  }
  void mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const override {
    run(ByScalar::mul, out, a, s);
  }
  void mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const override {
    run(ByScalar::mul_add, acc, a, s);
  }
  void add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const override {
    run(ByScalar::add, out, a, s);
  }
  void inner_product(View out, std::span<const ConstView> a,
                     std::span<const ConstView> b) const override {
    enter(out);
    sums_.products(out, a, b);
  }
  void automorphism_ntt(View out, ConstView in, std::uint64_t g) const override {
    enter(out);
    automorphism<W>(stream_, shape(out), out.data, in.data, g);
  }

  void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                      std::uint32_t index) const override {
    enter(out);
    stream_.refuse_recording("drawing random residues");
    const Moduli moduli = residues_of(out);
    auto counts = zeros(uniform_scratch<W>(shape(out), moduli));
    cuda::sample_uniform<W>(stream_, shape(out), moduli, seed, index, counts.data(), out.data);
  }
  void sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                    std::uint64_t stream) const override {
    enter(out);
    stream_.refuse_recording("drawing random residues");
    require<Unsupported>(out.batch <= (UINT32_MAX >> log_n_), [&] {  // as its kernels count
      return "the GPU engine draws less than 2^32 small numbers at once, and a batch of " +
             std::to_string(out.batch) + " has " + std::to_string(out.batch * config_.n) +
             ": split the batch, into parts of up to " + std::to_string(UINT32_MAX >> log_n_);
    });
    auto values = scratch_.allocate(out.batch * config_.n, /*secret=*/true);
    auto counts = zeros(small_scratch(out.batch * config_.n));
    cuda::sample_small<W>(stream_, shape(out), residues_of(out), kind, seed, stream, counts.data(),
                          values.data(), out.data);
  }
  void sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                     std::uint64_t stream) const override {
    enter(out);
    stream_.refuse_recording("drawing random residues");
    require<InvalidArgument>(weight <= config_.n,
                             "a sparse ternary vector has weight at most its length");
    auto scratch = scratch_.allocate(sparse_scratch(log_n_), /*secret=*/true);
    auto values = scratch_.allocate(out.batch * config_.n, /*secret=*/true);
    auto* integers = static_cast<std::int8_t*>(values.data());
    for (std::size_t b = 0; b < out.batch; ++b) {
      std::uint32_t same = 1;
      for (unsigned draw = 0; same != 0; ++draw) {
        cuda::sample_sparse(stream_, log_n_, static_cast<unsigned>(weight), seed, stream + b, draw,
                            scratch.data(), integers + b * config_.n);
        memory_.copy_out(&same, scratch.data(), sizeof(same));
      }
    }
    spread<W>(stream_, shape(out), residues_of(out), integers, out.data);
  }

  void from_int64(View out, std::span<const std::int64_t> c) const override {
    enter(out);
    const std::size_t count = c.size() / out.batch;
    require<InvalidArgument>(count > 0 && c.size() == out.batch * count && config_.n % count == 0,
                             "from_int64 needs one integer for each coefficient, or for each of "
                             "those of a polynomial in a power of X");
    device::Buffer staged;
    const std::int64_t* from = c.data();
    if (!stream_.owns(from)) {
      staged = upload(from, c.size_bytes());
      from = static_cast<const std::int64_t*>(staged.data());
    }
    cuda::from_int64<W>(stream_, tables_, shape(out), limbs(out.primes), out.data, from,
                        log_n_ - std::countr_zero(count));
  }
  void from_double(View out, std::span<const double> c) const override {
    enter(out);
    auto staged = upload(c.data(), c.size_bytes());
    cuda::from_double<W>(stream_, tables_, shape(out), limbs(out.primes), out.data,
                         static_cast<const double*>(staged.data()));
  }
  void crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
           CrtMethod method) const override {
    enter(out);
    device::Buffer staged;
    const std::uint64_t* from = integers.data();
    if (!stream_.owns(from)) {
      staged = upload(from, integers.size_bytes());
      from = static_cast<const std::uint64_t*>(staged.data());
    }
    cuda::crt<W>(stream_, tables_, plans_.to_residues(out.primes, words), shape(out),
                 limbs(out.primes), out.data, from, static_cast<unsigned>(words), method);
  }
  void icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
            IcrtMethod method) const override {
    enter(x);
    const bool here = stream_.owns(integers.data());
    device::Buffer staged;
    if (!here) staged = scratch_.allocate(integers.size_bytes(), /*secret=*/true);
    auto* to = here ? integers.data() : static_cast<std::uint64_t*>(staged.data());
    cuda::icrt<W>(stream_, tables_, plans_.to_integers(x.primes, words, method),
                  {count(x), batch(x), log_n_}, limbs(x.primes), to, static_cast<unsigned>(words),
                  x.data, method);
    if (!here) memory_.copy_out(integers.data(), to, integers.size_bytes());
  }

 private:
  static typename W::Stored* data(View x) { return static_cast<typename W::Stored*>(x.data); }
  Moduli residues_of(View out) const {
    Moduli moduli;
    for (const PrimeIndex i : out.primes) moduli.push_back({config_.primes[i], i});
    return moduli;
  }
  device::Buffer zeros(std::size_t bytes) const {
    auto block = scratch_.allocate(bytes);
    memory_.fill(block.data(), 0, bytes);
    return block;
  }
  void run(Binary op, View out, ConstView a, ConstView b) const {
    enter(out);
    binary<W>(stream_, tables_, shape(out), limbs(out.primes), op, out.data, a.data, b.data,
              b.batch == 1 && out.batch > 1);
  }
  void run(ByScalar op, View out, ConstView a, std::span<const std::uint64_t> s) const {
    enter(out);
    by_scalar<W>(stream_, tables_, shape(out), limbs(out.primes), op, out.data, a.data,
                 scalars_of<W>(s));
  }
  const Tables<W>& tables_;
  const Sums<W>& sums_;
  const CrtPlans<W>& plans_;
};

template <class W>
class CudaRlwe final : public RlweOps, private Launching {
 public:
  using Stored = typename W::Stored;

  CudaRlwe(const backend::Engine& engine, const Shared<W>& shared)
      : RlweOps(engine),
        Launching(shared),
        tables_(shared.tables),
        key_switcher_(shared.key_switcher),
        sums_(shared.sums) {}

  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override {
    enter(sums);
    sums_.weighted(a0, a1, sums);
  }
  void rotated_sums(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
                    std::span<const std::uint64_t> s,
                    std::span<const WeightedSum> sums) const override {
    enter(sums);
    sums_.rotated(operands, digit_ids, s, sums);
  }
  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override {
    enter(d0);
    cuda::tensor<W>(stream_, tables_, shape(d0), limbs(d0.primes), d0.data, d1.data, d2.data,
                    a0.data, a1.data, b0.data, b1.data);
  }

  void combine(View d0, View d1, View d2, const Combination& c) const override {
    enter(d0);
    sums_.combine(d0, d1, d2, c);
  }

  void mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const override {
    enter(ext);
    key_switcher_.mod_up(ext, x, digit_limbs);
  }

  void key_product(View acc0, View acc1, ConstView ext, KeyView key,
                   std::span<const std::uint32_t> digit_ids, std::uint64_t g,
                   bool accumulate) const override {
    enter(acc0);
    Digits digits{};
    require<Unsupported>(digit_ids.size() <= kMaxLimbs, "more digits than the GPU engine holds");
    for (const auto id : digit_ids) digits.id[digits.count++] = id;
    digits.limbs = static_cast<unsigned>(key.primes.size());
    digits.limb = key_limbs(key, acc0.primes);
    cuda::hoisted_key_product<W>(stream_, tables_, shape(acc0), limbs(acc0.primes), acc0.data,
                                 acc1.data, ext.data, key.data, digits, g, accumulate);
  }

  void key_switch(View acc0, View acc1, ConstView x, std::span<const std::uint32_t> digit_limbs,
                  KeyView key, std::span<const std::uint32_t> digit_ids) const override {
    enter(acc0);
    key_switcher_.key_switch(acc0, acc1, source(x), x.primes, digit_limbs, key, digit_ids, {});
  }
  void key_switch_add(View acc0, View acc1, ConstView x, std::span<const std::uint32_t> digit_limbs,
                      KeyView key, std::span<const std::uint32_t> digit_ids,
                      const ScaledAddend& addend) const override {
    enter(acc0);
    check_first(acc0, x);
    ScaledAddendView<W> view{addend.c0.data, addend.c1.data};
    view.s = scalars_of<W>(addend.s);
    key_switcher_.key_switch(acc0, acc1, source(x), x.primes, digit_limbs, key, digit_ids, view);
  }
  void combine_key_switch(View acc0, View acc1, const Combination& c,
                          std::span<const std::uint64_t> s,
                          std::span<const std::uint32_t> digit_limbs, KeyView key,
                          std::span<const std::uint32_t> digit_ids) const override {
    enter(acc0);
    if (c.products.size() != 1 || c.multiples.size() > 1) {  // operands are better read once
      return RlweOps::combine_key_switch(acc0, acc1, c, s, digit_limbs, key, digit_ids);
    }
    const auto primes = own_primes(acc0, digit_limbs);
    const Combination::Product& p = c.products[0];
    Source d2;
    d2.a[0] = p.a1.data, d2.b = p.b1.data, d2.twice = p.twice, d2.batch = batch(acc0);
    d2.at = positions(primes, p.a1.primes), d2.at_b = positions(primes, p.b1.primes);
    ScaledAddendView<W> addend{p.a0.data, p.a1.data, p.b0.data, p.b1.data};
    for (std::size_t i = 0; i < primes.size(); ++i) {
      const arith::Modulus mod(config_.primes[primes[i]]);
      addend.s.s[i] = static_cast<Stored>(p.twice ? mod.add(s[i], s[i]) : s[i]);
      if (!c.multiples.empty()) {
        addend.x_scalar.s[i] = static_cast<Stored>(mod.mul(c.multiples[0].s[i], s[i]));
      }
      if (!c.constant.empty()) {
        addend.constant.s[i] = static_cast<Stored>(mod.mul(c.constant[i], s[i]));
      }
    }
    if (!c.multiples.empty()) {
      const Combination::Multiple& m = c.multiples[0];
      addend.x0 = m.x0.data, addend.x1 = m.x1.data;
      addend.at_x = positions(primes, m.x0.primes);
    }
    key_switcher_.key_switch(acc0, acc1, d2, primes, digit_limbs, key, digit_ids, addend);
  }

  void scale_down(View out, ConstView x, const ConstView* addend) const override {
    enter(out);
    key_switcher_.mod_down({&out, 1}, {&x, 1}, {&addend, 1});
  }
  void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1, const ConstView* addend0,
                       const ConstView* addend1) const override {
    enter(out0);
    const View out[] = {out0, out1};
    const ConstView x[] = {x0, x1};
    const ConstView* const addend[] = {addend0, addend1};
    key_switcher_.mod_down(out, x, addend);
  }

  void rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1,
              std::uint64_t g, std::span<const std::uint32_t> digit_limbs, KeyView key,
              std::span<const std::uint32_t> digit_ids) const override {
    enter(acc0);
    Source turned = source(c1);
    turned.g[0] = turn(g);
    key_switcher_.key_switch(acc0, acc1, turned, c1.primes, digit_limbs, key, digit_ids, {});
    const View out[] = {out0, out1};
    const ConstView acc[] = {acc0, acc1};
    const ConstView* const addend[] = {&c0, nullptr};
    key_switcher_.mod_down(out, acc, addend, g);
  }

  void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                 std::span<const std::uint32_t> digit_limbs,
                 std::span<const std::uint32_t> digit_ids, bool accumulate) const override {
    enter(acc0);
    const std::size_t most = key_switcher_.outer_terms(acc0, digit_limbs);
    if (most == 0) {
      return RlweOps::outer_sum(acc0, acc1, terms, digit_limbs, digit_ids, accumulate);
    }
    for (std::size_t first = 0; first < terms.size(); first += most) {
      key_switcher_.outer_sum(acc0, acc1,
                              terms.subspan(first, std::min(most, terms.size() - first)),
                              digit_limbs, digit_ids, accumulate || first > 0);
    }
  }

 private:
  using Launching::enter;
  void enter(std::span<const WeightedSum> sums) const {
    for (const WeightedSum& sum : sums) check_rows(sum.out0);
    stream_.enter();
  }
  std::uint32_t turn(std::uint64_t g) const {
    return static_cast<std::uint32_t>(g % (2 * config_.n));
  }

  const Tables<W>& tables_;
  const KeySwitcher<W>& key_switcher_;
  const Sums<W>& sums_;
};

template <class W>
class CudaEmbedding final : public EmbeddingOps, private Launching {
 public:
  CudaEmbedding(const backend::Engine& engine, const Shared<W>& shared)
      : EmbeddingOps(engine), Launching(shared), tables_(shared.tables), plans_(shared.crt_plans) {}

  void embed(View out, const Embedding& embedding, std::span<const Complex> values, int log_slots,
             double factor) const override {
    enter(out);
    auto staged = upload(values.data(), values.size_bytes());
    auto w = scratch_.allocate((out.batch << log_slots) * sizeof(Complex), /*secret=*/true);
    auto integers = scratch_.allocate(out.batch * config_.n * 8, /*secret=*/true);
    if ((config_.n >> (log_slots + 1)) > 1) memory_.wipe(integers.data(), integers.bytes());
    auto* c = static_cast<std::int64_t*>(integers.data());
    cuda::embed(stream_, embedding_tables(embedding), batch(out), log_n_, log_slots, factor,
                staged.data(), static_cast<unsigned>(values.size() / out.batch), w.data(), c);
    cuda::from_int64<W>(stream_, tables_, shape(out), limbs(out.primes), out.data, c, 0);
  }
  void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x, int log_slots,
               double divisor) const override {
    enter(x);
    std::vector<std::uint64_t> primes;
    for (const PrimeIndex i : x.primes) primes.push_back(config_.primes[i]);
    const std::size_t words = product_words(primes).size();
    auto integers = scratch_.allocate(words * x.batch * config_.n * 8, /*secret=*/true);
    auto w = scratch_.allocate(slots.size_bytes(), /*secret=*/true);
    auto out = scratch_.allocate(slots.size_bytes(), /*secret=*/true);
    auto* z = static_cast<std::uint64_t*>(integers.data());
    constexpr auto kMethod = IcrtMethod::automatic;
    const IcrtPlan<W>& plan = plans_.to_integers(x.primes, words, kMethod);
    const Shape s{count(x), batch(x), log_n_};
    cuda::icrt<W>(stream_, tables_, plan, s, limbs(x.primes), z, static_cast<unsigned>(words),
                  x.data, kMethod);
    cuda::unembed(stream_, embedding_tables(embedding), batch(x), log_n_, log_slots, divisor, z,
                  plan.modulus.template as<std::uint64_t>(), static_cast<unsigned>(words), w.data(),
                  out.data());
    memory_.copy_out(slots.data(), out.data(), slots.size_bytes());
  }

 private:
  const EmbeddingTables& embedding_tables(const Embedding& embedding) const {
    std::lock_guard lock(mutex_);
    auto& tables = embeddings_[embedding.twiddle.size()];
    if (!tables) tables = std::make_unique<EmbeddingTables>(stream_, embedding);
    return *tables;
  }

  const Tables<W>& tables_;
  const CrtPlans<W>& plans_;
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::unique_ptr<EmbeddingTables>> embeddings_;  // by slots
};

template <class W>
class CudaEngine final : public backend::Engine {
 public:
  CudaEngine(Config config, const std::shared_ptr<device::Device>& device)
      : backend::Engine(device), shared_(std::move(config), device) {}

  std::string name() const override { return device()->name(); }
  const Config& config() const override { return shared_.config; }
  const RingOps& ring() const override { return ring_; }
  const RlweOps& rlwe() const override { return rlwe_; }
  const EmbeddingOps& embedding() const override { return embedding_; }

 private:
  const Shared<W> shared_;
  const CudaRing<W> ring_{*this, shared_};
  const CudaRlwe<W> rlwe_{*this, shared_};
  const CudaEmbedding<W> embedding_{*this, shared_};
};

}  // namespace

}  // namespace jali::backend::cuda

namespace jali::backend {

std::unique_ptr<Engine> make_cuda_engine(Config config, int device) {
  return make_cuda_engine(std::move(config), GpuOptions{.device = device});
}

std::unique_ptr<Engine> make_cuda_engine(Config config, const GpuOptions& options) {
  cuda::check_variants(config);
  return make_cuda_engine(std::move(config), device::gpu_device(options));
}

std::unique_ptr<Engine> make_cuda_engine(Config config, std::shared_ptr<device::Device> device) {
  cuda::check_variants(config);
  switch (config.word) {
    case Word::w32: return std::make_unique<cuda::CudaEngine<cuda::W32>>(std::move(config), device);
    case Word::w52: return std::make_unique<cuda::CudaEngine<cuda::W52>>(std::move(config), device);
    case Word::w64: return std::make_unique<cuda::CudaEngine<cuda::W64>>(std::move(config), device);
  }
  throw InvalidArgument("unknown word");
}

}  // namespace jali::backend
