// Every operation of the tables at every level with every variant, in batches of 1, 3 and 64: the
// bits of the CPU. tools/check_ops.py checks that every operation of the tables is called here.
#include <cmath>
#include <cstring>
#include <functional>

#include "gpu_ops.h"

namespace jali::testing {
namespace {

/// An operation, asked of one side.
struct Side {
  const backend::Engine& engine;
  bool on_gpu;
};

class GpuLevels : public GpuOps {
 protected:
  static constexpr PrimeIndex kQ = 7, kP = 3;  // P: the last ones
  static View of(Pair& p, const Side& side) { return side.on_gpu ? p.gpu() : p.cpu(); }
  backend::KeyView key_of(Pair& key, const Side& side) const {
    return {of(key, side).data, key.host.size() / bytes(2 * key.primes.size(), 1), key.primes};
  }
  void every_operation(const std::vector<Variant>& engines);
};

TEST_P(GpuLevels, EveryOperationAndVariant) { every_operation(every_variant()); }
TEST_P(GpuLevels, EveryOperationByOtherVariants) { every_operation(other_variants()); }

void GpuLevels::every_operation(const std::vector<Variant>& engines) {
  const backend::Embedding embedding(n / 2);
  const PrimeIndex level = GetParam().level;
  const Primes q = range(0, level);
  Primes qp = q;
  for (PrimeIndex i = kQ; i < kQ + kP; ++i) qp.push_back(i);
  std::vector<std::uint32_t> digits, ids;
  for (PrimeIndex left = level; left > 0; left -= std::min(left, kP)) {
    ids.push_back(static_cast<std::uint32_t>(digits.size()));
    digits.push_back(std::min<PrimeIndex>(left, kP));
  }
  Pair key = fresh(qp, 2 * digits.size());
  for (std::size_t part = 0; part < 2 * digits.size(); ++part) {  // laid out as a key
    const Pair one = fresh(qp, 1);
    std::copy(one.host.begin(), one.host.end(), key.host.begin() + part * one.host.size());
  }
  gpu->memory()->copy_in(key.device.data(), key.host.data(), key.host.size());
  Pair a0 = fresh(q), a1 = fresh(q), b0 = fresh(q), b1 = fresh(q), one = fresh(q, 1);
  Pair wide0 = fresh(qp), wide1 = fresh(qp);
  const auto s = scalars(q);
  const std::uint64_t g = 5;

  // Changes its outputs, which hold the same random residues on both sides.
  const auto check = [&](const char* what, std::vector<Primes> outputs,
                         const std::function<void(const Side&, const std::vector<View>&)>& work,
                         std::size_t blocks = 1) {
    std::vector<Pair> out;
    for (const Primes& primes : outputs) {
      out.push_back(blocks == 1 ? fresh(primes) : poison(primes, 0, blocks));
    }
    std::vector<std::vector<std::byte>> before;
    for (const Pair& p : out) before.push_back(p.host);
    const auto views = [&](const Side& side) {
      std::vector<View> v;
      for (Pair& p : out) v.push_back(of(p, side));
      return v;
    };
    const Side host{*cpu, false};
    work(host, views(host));
    for (const auto& [variant, engine] : engines) {
      SCOPED_TRACE(std::string(what) + ", level " + std::to_string(level) + ", " + variant);
      for (std::size_t i = 0; i < out.size(); ++i) {
        gpu->memory()->copy_in(out[i].device.data(), before[i].data(), before[i].size());
      }
      gpu->memory()->synchronize();  // the other engine has a stream of its own
      const Side device{*engine, true};
      work(device, views(device));
      engine->memory()->synchronize();
      for (Pair& p : out) same(p, what);
      if (HasFatalFailure()) return;
    }
  };
  using Views = std::vector<View>;
  check("ntt", {q}, [&](const Side& o, const Views& v) { o.engine.ring().ntt(v[0]); });
  check("intt", {q}, [&](const Side& o, const Views& v) { o.engine.ring().intt(v[0]); });
  check("element-wise", {q, q, q, q, q, q, q}, [&](const Side& o, const Views& v) {
    o.engine.ring().add(v[0], of(a0, o), of(one, o));
    o.engine.ring().sub(v[1], of(a0, o), of(b0, o));
    o.engine.ring().neg(v[2], of(a0, o));
    o.engine.ring().mul(v[3], of(a0, o), of(one, o));
    o.engine.ring().mul_scalar(v[4], of(a0, o), s);
    o.engine.ring().mul_scalar_add(v[5], of(a0, o), s);
    o.engine.ring().add_scalar(v[6], of(a0, o), s);
  });
  check("sums of products", {q, q, q, q, q, q}, [&](const Side& o, const Views& v) {
    const ConstView x[] = {of(a0, o), of(a1, o)}, y[] = {of(b0, o), of(one, o)};
    const std::uint32_t operands[] = {1, 0};
    const backend::WeightedSum sum{v[1], v[2], operands, y, level % 2 == 0};
    o.engine.ring().inner_product(v[0], x, y);
    o.engine.rlwe().weighted_sums(x, x, std::span(&sum, 1));
    o.engine.rlwe().tensor(v[3], v[4], v[5], of(a0, o), of(a1, o), of(b0, o), of(b1, o));
  });
  check("automorphisms", {q}, [&](const Side& o, const Views& v) {
    o.engine.ring().automorphism_ntt(v[0], of(a0, o), g);
  });
  check(
      "mod_up", {qp},
      [&](const Side& o, const Views& v) { o.engine.rlwe().mod_up(v[0], of(a0, o), digits); },
      digits.size());
  check("key_switch", {qp, qp}, [&](const Side& o, const Views& v) {
    o.engine.rlwe().key_switch(v[0], v[1], of(a0, o), digits, key_of(key, o), ids);
  });
  check("key_switch_add", {qp, qp}, [&](const Side& o, const Views& v) {
    o.engine.rlwe().key_switch_add(v[0], v[1], of(a0, o), digits, key_of(key, o), ids,
                                   {of(b0, o), of(b1, o), s});
  });
  check("one product and its key switch", {qp, qp}, [&](const Side& o, const Views& v) {
    const backend::Combination::Product product{of(a0, o), of(a1, o), of(b0, o), of(b1, o)};
    o.engine.rlwe().combine_key_switch(v[0], v[1], {{&product, 1}}, s, digits, key_of(key, o), ids);
  });
  // Operands of this level and of all primes.
  const auto with_sum = [&](const Side& o, const auto& call) {
    const backend::Combination::Product product{of(a0, o), of(a1, o), of(wide0, o), of(wide1, o),
                                                level % 2 == 0};
    const backend::Combination::Multiple multiple{of(wide1, o), of(wide0, o), s};
    call(backend::Combination{{&product, 1}, {&multiple, 1}, s});
  };
  check("combine", {q, q, q}, [&](const Side& o, const Views& v) {
    with_sum(o, [&](const auto& sum) { o.engine.rlwe().combine(v[0], v[1], v[2], sum); });
  });
  check("combine_key_switch", {qp, qp}, [&](const Side& o, const Views& v) {
    with_sum(o, [&](const auto& sum) {
      o.engine.rlwe().combine_key_switch(v[0], v[1], sum, s, digits, key_of(key, o), ids);
    });
  });
  Pair lifted = poison(qp, 0, digits.size());
  cpu->rlwe().mod_up(lifted.cpu(), a1.cpu(), digits),
      gpu->rlwe().mod_up(lifted.gpu(), a1.gpu(), digits);
  same(lifted, "mod_up");
  check("key_product", {qp, qp, qp, qp}, [&](const Side& o, const Views& v) {
    o.engine.rlwe().key_product(v[0], v[1], of(lifted, o), key_of(key, o), ids, 1, level % 2 == 0);
    o.engine.rlwe().key_product(v[2], v[3], of(lifted, o), key_of(key, o), ids, g, level % 2 == 1);
  });
  Pair weight0 = fresh(qp), weight1 = fresh(qp, 1);
  check("rotated_sums", {qp, qp, qp, qp}, [&](const Side& o, const Views& v) {
    std::vector<backend::Rotated> operands;
    for (const std::uint64_t turn : {g, std::uint64_t{1}, std::uint64_t{2 * n - 1}}) {
      operands.push_back({of(lifted, o), of(a0, o), of(a1, o), turn, key_of(key, o)});
    }
    const std::uint32_t all[] = {2, 0, 1}, some[] = {1, 2};
    const ConstView weights[] = {of(weight0, o), of(weight1, o), of(wide0, o)};
    const backend::WeightedSum sums[] = {
        {v[0], v[1], all, weights, level % 2 == 0},
        {v[2], v[3], some, std::span(weights).first(2), level % 2 == 1}};
    o.engine.rlwe().rotated_sums(operands, ids, s, sums);
  });
  check("outer_sum", {qp, qp}, [&](const Side& o, const Views& v) {
    const backend::Turned terms[] = {{of(wide0, o), of(wide1, o), g, key_of(key, o)},
                                     {of(weight0, o), of(wide0, o), 1, key_of(key, o)},
                                     {of(wide1, o), of(weight0, o), 2 * n - 1, key_of(key, o)}};
    o.engine.rlwe().outer_sum(v[0], v[1], terms, digits, ids, level % 2 == 0);
  });
  Pair acc0 = poison(qp), acc1 = poison(qp);
  check("a rotation, captured", {q, q}, [&](const Side& o, const Views& v) {
    o.engine
        .capture([&] {
          o.engine.rlwe().rotate(v[0], v[1], of(acc0, o), of(acc1, o), of(a0, o), of(a1, o), g,
                                 digits, key_of(key, o), ids);
        })
        ->run();
  });
  check("rotate", {q, q}, [&](const Side& o, const Views& v) {
    o.engine.rlwe().rotate(v[0], v[1], of(acc0, o), of(acc1, o), of(a0, o), of(a1, o), g, digits,
                           key_of(key, o), ids);
  });
  check("ModDown", {q, q}, [&](const Side& o, const Views& v) {
    const ConstView addend = of(b0, o);
    o.engine.rlwe().scale_down_pair(v[0], v[1], of(wide0, o), of(wide1, o), &addend, nullptr);
  });
  if (level > 1) {
    const Primes lower = range(0, static_cast<PrimeIndex>(level - 1));
    check("rescale", {lower}, [&](const Side& o, const Views& v) {
      o.engine.rlwe().scale_down(v[0], of(a0, o), nullptr);
    });
    check("ModDown with rescale", {lower, lower}, [&](const Side& o, const Views& v) {
      o.engine.rlwe().scale_down_pair(v[0], v[1], of(wide0, o), of(wide1, o), nullptr, nullptr);
    });
  }

  std::array<std::uint8_t, 32> key_bytes{};
  for (auto& byte : key_bytes) byte = static_cast<std::uint8_t>(random());
  const std::uint64_t stream = random();
  check("samplers", {q, q, q, q}, [&](const Side& o, const Views& v) {
    o.engine.ring().sample_uniform(v[0], key_bytes, static_cast<std::uint32_t>(stream));
    o.engine.ring().sample_small(v[1], backend::Small::ternary, key_bytes, stream);
    o.engine.ring().sample_small(v[2], backend::Small::error, key_bytes, stream);
    o.engine.ring().sample_sparse(v[3], 192, key_bytes, stream);
  });
  std::vector<std::int64_t> signed_integers(batch * n);
  for (auto& c : signed_integers) c = static_cast<std::int64_t>(random()) >> (random() % 60);
  std::vector<double> doubles;
  for (const auto c : signed_integers) {
    doubles.push_back(std::ldexp(static_cast<double>(c >> 11), static_cast<int>(random() % 900)));
  }
  std::size_t bits = 0;
  for (const auto i : q) bits += static_cast<std::size_t>(std::bit_width(cpu->config().primes[i]));
  const std::size_t words = bits / 64 + 1;
  std::vector<std::uint64_t> naturals(words * batch * n);
  for (auto& w : naturals) w = random();
  check("integers to residues", {q, q, q, q}, [&](const Side& o, const Views& v) {
    o.engine.ring().from_int64(v[0], signed_integers);
    o.engine.ring().from_double(v[1], doubles);
    o.engine.ring().crt(v[2], naturals, words, backend::CrtMethod::mod);
    o.engine.ring().crt(v[3], naturals, words, backend::CrtMethod::mul);
  });
  // Results in the host's memory: the CPU computes first, and the GPU is compared with it.
  for (const auto method : {backend::IcrtMethod::automatic, backend::IcrtMethod::product_sum,
                            backend::IcrtMethod::garner}) {
    std::vector<std::uint64_t> want;
    check("icrt", {}, [&](const Side& o, const Views&) {
      std::vector<std::uint64_t> got(naturals.size(), 0x5a5a);
      o.engine.ring().icrt(got, words, of(a0, o), method);
      if (!o.on_gpu) want = got;
      ASSERT_TRUE(got == want) << "icrt differs, seed " << seed;
    });
  }
  for (const int log_slots : {std::countr_zero(n) - 1, 3}) {
    std::vector<backend::Complex> values(batch << log_slots), want;
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (auto& z : values) z = {uniform(random), uniform(random)};
    check("embed", {q}, [&](const Side& o, const Views& v) {
      o.engine.embedding().embed(v[0], embedding, values, log_slots, 0x1p40);
    });
    check("unembed", {}, [&](const Side& o, const Views&) {
      std::vector<backend::Complex> got(values.size(), {-1, 1e300});
      o.engine.embedding().unembed(got, embedding, of(a0, o), log_slots, 0x1p30);
      if (!o.on_gpu) want = got;
      ASSERT_EQ(0, std::memcmp(got.data(), want.data(), got.size() * sizeof(got[0])))
          << "unembed differs, seed " << seed;
    });
  }
  for (const PrimeIndex i : qp) {
    check("root", {}, [&](const Side& o, const Views&) {
      EXPECT_EQ(o.engine.ring().root(i), cpu->ring().root(i));
    });
  }
}

std::vector<Case> level_cases() {
  std::vector<Case> all;
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (PrimeIndex level = 1; level <= 7; ++level) {
      for (const std::size_t batch : {1, 3, 64}) all.push_back({word, 10, batch, level});
      // From 2^14 on a row may be several blocks or passes.
      for (const int log_n : {13, 14, 16}) {
        if (log_n < 16 || level % 3 == 1) all.push_back({word, log_n, 1, level});
      }
    }
  }
  for (const PrimeIndex level : {1, 4, 7}) all.push_back({Word::w32, 17, 1, level});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, GpuLevels, ::testing::ValuesIn(level_cases()), case_name);

}  // namespace
}  // namespace jali::testing
