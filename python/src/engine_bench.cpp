#include "engine_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "jali/arith/primes.h"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"
#include "jali/ckks/engine.h"
#include "jali/device/buffer.h"
#include "jali/random/prng.h"

namespace jali::python {

using backend::ConstView;
using backend::View;

namespace {

constexpr std::size_t kTerms = 8;  // of inner products
constexpr std::uint64_t kGalois = 5;
constexpr std::size_t kWeight = 32;  // of sparse secrets

/// The largest primes of so many bits.
std::vector<std::uint64_t> largest_primes(int bits, std::size_t n, std::size_t count) {
  const std::uint64_t top = std::uint64_t{1} << bits;
  arith::PrimesNear near(top, 2 * n, 1, top);
  std::vector<std::uint64_t> primes;
  while (primes.size() < count) {
    const auto q = near.next();
    require<InvalidArgument>(q.has_value(),
                             "there are not as many primes of this size for this ring degree");
    primes.push_back(*q);
  }
  return primes;
}

}  // namespace

/// One engine, and the operands of one operation in its memory.
struct EngineBench::Side {
  EngineShape shape;
  std::shared_ptr<const backend::Engine> engine;
  std::shared_ptr<device::Pool> pool;
  std::vector<PrimeIndex> all;                // of Q, then of P
  std::span<const PrimeIndex> q;              // of Q
  std::vector<std::uint32_t> digits, ids;     // limbs of each digit; 0, 1, 2 ..
  std::vector<std::uint64_t> scalars;         // one a limb of Q
  std::vector<device::Buffer> blocks;         // that the operation works on
  std::vector<std::pair<void*, std::size_t>> results;
  std::vector<std::int64_t> integers;         // what host-side operands are made of
  std::vector<double> doubles;
  std::vector<std::uint64_t> words;
  std::vector<backend::Complex> slots;
  std::unique_ptr<backend::Embedding> embedding;
  random::Seed seed{};
  std::uint32_t index = 0;

  Side(std::shared_ptr<const backend::Engine> on, const EngineShape& of)
      : shape(of), engine(std::move(on)), pool(device::Pool::create(false, engine->memory())) {
    for (std::size_t i = 0; i < engine->config().primes.size(); ++i) {
      all.push_back(static_cast<PrimeIndex>(i));
    }
    q = std::span<const PrimeIndex>(all).first(static_cast<std::size_t>(shape.limbs));
    for (int left = shape.limbs; left > 0; left -= shape.alpha) {
      ids.push_back(static_cast<std::uint32_t>(ids.size()));
      digits.push_back(static_cast<std::uint32_t>(std::min(left, shape.alpha)));
    }
    for (const PrimeIndex i : q) scalars.push_back(engine->config().primes[i] / 3);
  }

  std::size_t n() const { return engine->config().n; }
  std::size_t bytes(std::span<const PrimeIndex> primes) const {
    return primes.size() * shape.batch * n() * word_bytes(engine->config().word);
  }
  View empty(std::span<const PrimeIndex> primes) {
    return {blocks.emplace_back(pool->allocate(bytes(primes))).data(), primes, shape.batch};
  }
  /// Random residues, the same on every engine.
  View operand(std::span<const PrimeIndex> primes) {
    const View out = empty(primes);
    engine->ring().sample_uniform(out, seed, index);
    index += static_cast<std::uint32_t>(shape.batch);
    return out;
  }
  /// Poisoned, and compared afterwards.
  View result(std::span<const PrimeIndex> primes) {
    const View out = empty(primes);
    const std::vector<std::byte> poison(bytes(primes), std::byte{0xff});
    engine->memory()->copy_in(out.data, poison.data(), poison.size());
    results.emplace_back(out.data, poison.size());
    return out;
  }
  View changed(std::span<const PrimeIndex> primes) {  // in place
    const View out = operand(primes);
    results.emplace_back(out.data, bytes(primes));
    return out;
  }
  /// One block of digits, as mod_up writes them.
  View lifted(bool written) {
    const std::size_t one = bytes(all);
    const View out{blocks.emplace_back(pool->allocate(digits.size() * one)).data(), all,
                   shape.batch};
    for (std::size_t d = 0; d < digits.size(); ++d) {
      engine->ring().sample_uniform({static_cast<std::byte*>(out.data) + d * one, all, shape.batch},
                                    seed, index += static_cast<std::uint32_t>(shape.batch));
    }
    if (written) results.emplace_back(out.data, digits.size() * one);
    return out;
  }
  backend::KeyView key() {
    const std::size_t half = all.size() * n() * word_bytes(engine->config().word);
    auto* data = static_cast<std::byte*>(
        blocks.emplace_back(pool->allocate(2 * digits.size() * half)).data());
    for (std::size_t i = 0; i < 2 * digits.size(); ++i) {
      engine->ring().sample_uniform({data + i * half, all, 1}, seed, index++);
    }
    return {data, digits.size(), all};
  }
  std::size_t words_of_q() const {
    double bits = 0;
    for (const PrimeIndex i : q) bits += std::log2(static_cast<double>(engine->config().primes[i]));
    return static_cast<std::size_t>(bits / 64) + 1;
  }
  /// random (the same on every engine) integers for the operands that come from the host.
  void host_operands() {
    std::mt19937_64 numbers(seed[0] + 256u * seed[1]);
    const std::size_t count = shape.batch * n();
    integers.resize(count);
    doubles.resize(count);
    words.resize(count * words_of_q());
    for (auto& x : integers) x = static_cast<std::int64_t>(numbers());
    for (auto& x : doubles) x = std::nearbyint(static_cast<double>(numbers()) * 0x1p40);
    for (auto& x : words) x = numbers() >> 1;
    slots.resize(count / 2);
    const auto unit = [&] { return static_cast<double>(numbers()) * 0x1p-63 - 1; };
    for (auto& x : slots) x = {unit(), unit()};
    if (!embedding) embedding = std::make_unique<backend::Embedding>(n() / 2);
  }
  int log_slots() const { return shape.log_n - 1; }
  /// The words in the engine's memory.
  std::span<std::uint64_t> words_there(bool result) {
    auto& block = blocks.emplace_back(pool->allocate(words.size() * 8));
    engine->memory()->copy_in(block.data(), words.data(), block.bytes());
    if (result) results.emplace_back(block.data(), block.bytes());
    return {static_cast<std::uint64_t*>(block.data()), words.size()};
  }

  using Body = std::function<void(const backend::Engine&)>;
  Body prepare(const std::string& name, const random::Seed& from);
  void finish() const {
    char byte = 0;
    engine->memory()->copy_out(&byte, blocks.front().data(), 1);
  }
};

EngineBench::Side::Body EngineBench::Side::prepare(const std::string& name,
                                                   const random::Seed& from) {
  using backend::Engine, backend::RingOps;
  blocks.clear();
  results.clear();
  seed = from;
  index = 0;
  const auto q_but_last = q.first(std::max<std::size_t>(q.size() - 1, 1));
  if (name == "ntt") return [x = changed(q)](const Engine& o) { o.ring().ntt(x); };
  if (name == "intt") return [x = changed(q)](const Engine& o) { o.ring().intt(x); };
  const auto binary = [&](void (RingOps::*op)(View, ConstView, ConstView) const) -> Body {
    const View a = operand(q), b = operand(q), out = result(q);
    return [=](const Engine& o) { (o.ring().*op)(out, a, b); };
  };
  if (name == "add") return binary(&RingOps::add);
  if (name == "sub") return binary(&RingOps::sub);
  if (name == "mul") return binary(&RingOps::mul);
  if (name == "neg") {
    return [a = operand(q), out = result(q)](const Engine& o) { o.ring().neg(out, a); };
  }
  if (name == "mul_scalar") {
    return [this, a = operand(q), out = result(q)](const Engine& o) {
      o.ring().mul_scalar(out, a, scalars);
    };
  }
  if (name == "mul_scalar_add") {
    return [this, a = operand(q), out = changed(q)](const Engine& o) {
      o.ring().mul_scalar_add(out, a, scalars);
    };
  }
  if (name == "add_scalar") {
    return [this, a = operand(q), out = result(q)](const Engine& o) {
      o.ring().add_scalar(out, a, scalars);
    };
  }
  if (name == "inner_product" || name == "weighted_sums") {
    std::vector<ConstView> a0, a1, b;
    for (std::size_t k = 0; k < kTerms; ++k) {
      a0.push_back(operand(q));
      b.push_back(operand(q));
    }
    const View out0 = result(q);
    if (name == "inner_product")
      return [=](const Engine& o) { o.ring().inner_product(out0, a0, b); };
    for (std::size_t k = 0; k < kTerms; ++k) a1.push_back(operand(q));
    const View out1 = result(q);
    return [=](const Engine& o) {
      static constexpr std::uint32_t kAll[kTerms] = {0, 1, 2, 3, 4, 5, 6, 7};
      const backend::WeightedSum sum{out0, out1, kAll, b, false};
      o.rlwe().weighted_sums(a0, a1, std::span(&sum, 1));
    };
  }
  if (name == "tensor") {
    const View a0 = operand(q), a1 = operand(q), b0 = operand(q), b1 = operand(q);
    const View d0 = result(q), d1 = result(q), d2 = result(q);
    return [=](const Engine& o) { o.rlwe().tensor(d0, d1, d2, a0, a1, b0, b1); };
  }
  if (name == "automorphism_ntt") {
    return [a = operand(q), out = result(q)](const Engine& o) {
      o.ring().automorphism_ntt(out, a, kGalois);
    };
  }
  if (name == "mod_up") {
    return [this, x = operand(q), out = lifted(true)](const Engine& o) {
      o.rlwe().mod_up(out, x, digits);
    };
  }
  if (name == "key_product") {
    const View ext = lifted(false), c0 = result(all), c1 = result(all);
    return [=, this, k = key()](const Engine& o) {
      o.rlwe().key_product(c0, c1, ext, k, ids, kGalois, false);
    };
  }
  if (name == "rotated_sums") {  // a baby step is each term, a giant step each sum
    const View ext = lifted(false), c0 = operand(q), c1 = operand(q);
    std::vector<ConstView> b;
    std::vector<std::pair<View, View>> out;
    for (std::size_t k = 0; k < kTerms; ++k) b.push_back(operand(all));
    for (int g = 0; g < 4; ++g) out.emplace_back(result(all), result(all));
    return [=, this, k = key()](const Engine& o) {
      static constexpr std::uint32_t kAll[kTerms] = {0, 1, 2, 3, 4, 5, 6, 7};
      std::vector<backend::Rotated> rotations(kTerms, {ext, c0, c1, kGalois, k});
      std::vector<backend::WeightedSum> sums;
      for (const auto& [out0, out1] : out) sums.push_back({out0, out1, kAll, b, false});
      o.rlwe().rotated_sums(rotations, ids, scalars, sums);
    };
  }
  if (name == "outer_sum") {
    const View x0 = operand(all), x1 = operand(all), c0 = result(all), c1 = result(all);
    return [=, this, k = key()](const Engine& o) {
      const std::vector<backend::Turned> terms(4, {x0, x1, kGalois, k});
      o.rlwe().outer_sum(c0, c1, terms, digits, ids, false);
    };
  }
  if (name == "key_switch") {
    const View x = operand(q), c0 = result(all), c1 = result(all);
    return
        [=, this, k = key()](const Engine& o) { o.rlwe().key_switch(c0, c1, x, digits, k, ids); };
  }
  if (name == "key_switch_joined") {
    const View x = operand(q), j0 = operand(q), j1 = operand(q);
    const View c0 = result(all), c1 = result(all);
    return [=, this, k = key()](const Engine& o) {
      o.rlwe().key_switch_joined(c0, c1, x, digits, k, ids, {j0, j1, scalars});
    };
  }
  if (name == "key_switch_rotate") {
    const View x0 = operand(q), x1 = operand(q), c0 = empty(all), c1 = empty(all);
    const View out0 = result(q), out1 = result(q);
    return [=, this, k = key()](const Engine& o) {
      o.rlwe().rotate(out0, out1, c0, c1, x0, x1, kGalois, digits, k, ids);
    };
  }
  if (name == "tensor_key_switch") {
    const View a0 = operand(q), a1 = operand(q), b0 = operand(q), b1 = operand(q);
    const View c0 = result(all), c1 = result(all);
    return [=, this, k = key()](const Engine& o) {
      const backend::Combination::Product product{a0, a1, b0, b1};
      o.rlwe().combine_key_switch(c0, c1, {{&product, 1}}, scalars, digits, k, ids);
    };
  }
  if (name == "combine" ||
      name == "combine_key_switch") {  // two products, eight multiples, a constant
    const auto pairs = [&](std::size_t count) {
      std::vector<std::pair<View, View>> out;
      for (std::size_t k = 0; k < count; ++k) {
        const View x0 = operand(q), x1 = operand(q);
        out.emplace_back(x0, x1);
      }
      return out;
    };
    const auto factors = pairs(4), terms = pairs(kTerms);
    const auto sum_of = [=, this](const auto& body) {
      std::vector<backend::Combination::Product> products;
      for (std::size_t k = 0; k < factors.size(); k += 2) {
        const auto& [a0, a1] = factors[k];
        const auto& [b0, b1] = factors[k + 1];
        products.push_back({a0, a1, b0, b1, k == 0});
      }
      std::vector<backend::Combination::Multiple> multiples;
      for (const auto& [x0, x1] : terms) multiples.push_back({x0, x1, scalars});
      body(backend::Combination{products, multiples, scalars});
    };
    if (name == "combine") {
      const View d0 = result(q), d1 = result(q), d2 = result(q);
      return [=](const Engine& o) {
        sum_of([&](const backend::Combination& c) { o.rlwe().combine(d0, d1, d2, c); });
      };
    }
    const View c0 = result(all), c1 = result(all);
    return [=, this, k = key()](const Engine& o) {
      sum_of([&](const backend::Combination& c) {
        o.rlwe().combine_key_switch(c0, c1, c, scalars, digits, k, ids);
      });
    };
  }
  if (name == "mod_down" || name == "drop_last") {
    const bool down = name == "mod_down";
    const View x0 = operand(down ? std::span<const PrimeIndex>(all) : q);
    const View x1 = operand(x0.primes);
    const View out0 = result(down ? q : q_but_last), out1 = result(out0.primes);
    return [=](const Engine& o) { o.rlwe().scale_down_pair(out0, out1, x0, x1, nullptr, nullptr); };
  }
  if (name == "sample_uniform") {
    return [this, out = result(q)](const Engine& o) { o.ring().sample_uniform(out, seed, 0); };
  }
  if (name == "sample_ternary" || name == "sample_error") {
    const auto kind = name == "sample_error" ? backend::Small::error : backend::Small::ternary;
    return
        [=, this, out = result(q)](const Engine& o) { o.ring().sample_small(out, kind, seed, 0); };
  }
  if (name == "sample_sparse") {
    return
        [this, out = result(q)](const Engine& o) { o.ring().sample_sparse(out, kWeight, seed, 0); };
  }
  host_operands();
  if (name == "embed") {
    return [this, out = result(q)](const Engine& o) {
      o.embedding().embed(out, *embedding, slots, log_slots(), 0x1p40);
    };
  }
  if (name == "unembed") {
    // Of coefficients as decryption gives them: what fills Q is beyond the range of doubles.
    const View x = empty(q);
    engine->ring().from_double(x, doubles);
    return [=, this](const Engine& o) {
      o.embedding().unembed(slots, *embedding, x, log_slots(), 0x1p40);
    };
  }
  if (name == "from_int64") {
    return [this, out = result(q)](const Engine& o) { o.ring().from_int64(out, integers); };
  }
  if (name == "from_double") {
    return [this, out = result(q)](const Engine& o) { o.ring().from_double(out, doubles); };
  }
  if (name == "crt_mod" || name == "crt_mul") {
    const auto method = name == "crt_mod" ? backend::CrtMethod::mod : backend::CrtMethod::mul;
    return [=, this, out = result(q), there = words_there(false)](const Engine& o) {
      o.ring().crt(out, there, words_of_q(), method);
    };
  }
  if (name == "icrt_product_sum" || name == "icrt_garner") {
    const auto method =
        name == "icrt_garner" ? backend::IcrtMethod::garner : backend::IcrtMethod::product_sum;
    return [=, this, x = operand(q), there = words_there(true)](const Engine& o) {
      o.ring().icrt(there, words_of_q(), x, method);
    };
  }
  if (name == "crt_from_host") {
    return [this, out = result(q)](const Engine& o) {
      o.ring().crt(out, words, words_of_q(), backend::CrtMethod::mul);
    };
  }
  if (name == "icrt_to_host") {
    return [this, x = operand(q)](const Engine& o) {
      o.ring().icrt(words, words_of_q(), x, backend::IcrtMethod::product_sum);
    };
  }
  throw InvalidArgument("the engine has no operation \"" + name + "\" to measure");
}

std::vector<std::string> EngineBench::operations() {
  return {"ntt",
          "intt",
          "add",
          "sub",
          "neg",
          "mul",
          "mul_scalar",
          "mul_scalar_add",
          "add_scalar",
          "inner_product",
          "weighted_sums",
          "tensor",
          "combine",
          "automorphism_ntt",
          "mod_up",
          "key_product",
          "rotated_sums",
          "outer_sum",
          "key_switch",
          "key_switch_joined",
          "tensor_key_switch",
          "combine_key_switch",
          "key_switch_rotate",
          "mod_down",
          "drop_last",
          "sample_uniform",
          "sample_ternary",
          "sample_error",
          "sample_sparse",
          "embed",
          "unembed",
          "from_int64",
          "from_double",
          "crt_mod",
          "crt_mul",
          "icrt_product_sum",
          "icrt_garner",
          "crt_from_host",
          "icrt_to_host"};
}

EngineBench::EngineBench(const std::string& device, Word word, const EngineShape& shape,
                         int threads, std::map<std::string, std::string> variants)
    : shape_(shape) {
  require<InvalidArgument>(shape.log_n >= 10 && shape.log_n <= 17, "log_n must be 10 to 17");
  require<InvalidArgument>(
      shape.limbs >= 1 && shape.special >= 0 && shape.alpha >= 1 &&
          shape.limbs + shape.special <= 250 && shape.batch >= 1,
      "limbs, alpha and batch must be at least 1, limbs and special at most 250");
  backend::Config config;
  config.word = word;
  config.n = std::size_t{1} << shape.log_n;
  config.threads = threads;
  require<InvalidArgument>(shape.prime_bits >= 0 && shape.prime_bits <= word_prime_bits(word),
                           "the word has no primes of so many bits");
  config.primes = largest_primes(shape.prime_bits == 0 ? word_prime_bits(word) : shape.prime_bits,
                                 config.n, static_cast<std::size_t>(shape.limbs + shape.special));
  config.variants = std::move(variants);
  const auto side = [&](const std::string& name) {
    return std::make_unique<Side>(
        std::shared_ptr<const backend::Engine>(ckks::make_engine(config, name)), shape);
  };
  side_ = side(device);
  config.variants.clear();
  reference_ = side(side_->engine->memory()->host_accessible() ? "cpu/portable" : "cpu");
}

EngineBench::~EngineBench() = default;

std::string EngineBench::engine() const { return side_->engine->name(); }

double EngineBench::prime_bits() const {
  return std::log2(static_cast<double>(side_->engine->config().primes[0]));
}

bool EngineBench::check(const std::string& operation) {
  const random::Seed seed = random::os_seed();
  std::vector<std::vector<std::byte>> wanted;
  std::vector<std::uint64_t> integers;
  std::vector<backend::Complex> slots;
  for (Side* side : {reference_.get(), side_.get()}) {
    side->prepare(operation, seed)(*side->engine);
    std::vector<std::vector<std::byte>> got;
    for (const auto& [data, bytes] : side->results) {
      got.emplace_back(bytes);
      side->engine->memory()->copy_out(got.back().data(), data, bytes);
    }
    if (side == reference_.get()) {
      wanted = std::move(got);
      integers = side->words;  // what icrt writes
      slots = side->slots;     // and unembed
    } else if (got != wanted || side->words != integers || side->slots != slots) {
      return false;
    }
  }
  reference_->blocks.clear();
  reference_->pool->trim();
  return true;
}

EngineBench::Cost EngineBench::cost(const std::string& operation) {
  const auto trace = std::make_shared<backend::Trace>();
  const auto body = side_->prepare(operation, {});
  body(*backend::make_trace_engine(side_->engine, trace));
  Cost cost;
  for (const auto& r : trace->records()) {
    cost.mults += static_cast<double>(r.mults);
    cost.bytes += static_cast<double>(r.bytes_read + r.bytes_written);
    for (const auto& written : r.writes) {
      const auto read = std::ranges::find(r.reads, written.address, &backend::Extent::address);
      if (read != r.reads.end()) {
        cost.in_place += static_cast<double>(std::min(read->bytes, written.bytes));
      }
    }
    cost.stream_bytes += static_cast<double>(r.stream_bytes);
    cost.complex_butterflies += static_cast<double>(r.complex_butterflies);
  }
  return cost;
}

std::vector<double> EngineBench::run(const std::string& operation, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const auto body = side_->prepare(operation, {});
  const bool away = !side_->engine->memory()->host_accessible();
  const auto some = [&](int count) {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) body(*side_->engine);
    if (away) side_->finish();
    return since(begin) / count;
  };
  some(3);  // tables, pools
  const int count = away ? std::clamp(static_cast<int>(5e-3 / some(1)), 4, 500) : 1;
  std::vector<double> times;
  for (const auto start = Clock::now(); times.empty() || since(start) < seconds;) {
    times.push_back(some(count));
  }
  return times;
}

std::vector<backend::StepTime> EngineBench::steps(const std::string& operation) {
  const auto body = side_->prepare(operation, {});
  return side_->engine->capture([&] { body(*side_->engine); })->steps();
}

}  // namespace jali::python
