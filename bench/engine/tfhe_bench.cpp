#include "bench/engine/tfhe_bench.h"

#include <random>

#include "jali/backend/tfhe_resolve.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/schemes/tfhe/table.h"
#include "jali/wire/tfhe.h"

namespace jali::bench {

namespace {

using backend::TfheOps;
using u64 = std::uint64_t;

/// The function that is looked up, of values below p.
u64 function(u64 value, u64 p) { return (value * value + 1) % p; }

tfhe::ParamsPtr params_of(std::span<const std::uint8_t> bytes) {
  wire::Limits limits;
  limits.min_security = 0;
  return wire::tfhe_params_from_bytes(bytes, limits);
}

}  // namespace

struct TfheBench::Operands {
  std::vector<u64> values;
  lwe::LweBlock small_in, large_in, small_out, large_out;
};

TfheBench::TfheBench(std::span<const std::uint8_t> params, const std::string& device, int threads,
                     const std::string& transform)
    : params_(params_of(params)),
      engine_(backend::make_tfhe_engine(params_->config(threads, {}, transform), device)) {
  lwe::KeyGenerator generator(params_, threads);
  secret_ = std::make_unique<const lwe::SecretKey>(generator.secret_key());
  keys_ = lwe::prepare(*engine_, generator.evaluation_keys(*secret_));
  const u64 p = params_->value_modulus();
  const auto table = tfhe::LookUpTable(params_, [p](u64 v) { return function(v, p); }).polynomial();
  table_ = engine_->device()->pool()->allocate(table.size());
  engine_->device()->memory()->copy_in(table_.data(), table.data(), table.size());
}

std::vector<std::pair<std::string, std::string>> TfheBench::operations() {
  return {{"key_switch", "large ciphertexts to small ones"},
          {"bootstrap", "a look-up in small ciphertexts, whose results are large"},
          {"switch_bootstrap", "key_switch, then bootstrap: a look-up in large ciphertexts"},
          {"bootstrap_switch", "bootstrap, then key_switch: a look-up in small ciphertexts"}};
}

lwe::LweBlock TfheBench::encrypted(std::span<const u64> values, bool large) const {
  const auto torus = large ? params_->torus() : lwe::Torus::t32;
  const auto& literal = params_->literal();
  std::vector<u64> messages;
  for (const u64 value : values) messages.push_back(value * params_->step(torus));
  const auto host = device::Pool::create();
  lwe::SeededLwe seeded{random::os_seed(), torus, large ? params_->large() : params_->n(),
                        values.size(), host->allocate(values.size() * backend::torus_bytes(torus))};
  lwe::encrypt(seeded, large ? secret_->large() : secret_->small(), messages,
               large ? literal.glwe_noise_bits : literal.lwe_noise_bits,
               random::SecretSeed(random::os_seed()), 0, values.size());
  const lwe::LweBlock rows = lwe::expand(*host, seeded);
  lwe::LweBlock out = lwe::make_lwe(*engine_->device()->pool(), torus, rows.dimension, rows.count);
  engine_->device()->memory()->copy_in(out.data.data(), rows.data.data(), rows.bytes());
  return out;
}

std::vector<u64> TfheBench::decrypted(const lwe::LweBlock& block, bool large) const {
  lwe::LweBlock rows =
      lwe::make_lwe(*device::Pool::create(), block.torus, block.dimension, block.count);
  engine_->device()->memory()->copy_out(rows.data.data(), block.data.data(), block.bytes());
  std::vector<u64> out(block.count);
  lwe::phases(out, std::as_const(rows).view(), large ? secret_->large() : secret_->small());
  const u64 step = params_->step(block.torus);
  for (u64& x : out) x = (x + step / 2) / step % (2 * params_->value_modulus());
  return out;
}

TfheBench::Operands TfheBench::operands(std::size_t batch) const {
  require<InvalidArgument>(batch >= 1, "a batch has at least one ciphertext");
  std::mt19937_64 random(std::random_device{}());
  std::vector<u64> values(batch);
  for (u64& value : values) value = random() % params_->value_modulus();
  auto& pool = *engine_->device()->pool();
  lwe::LweBlock small = encrypted(values, false), large = encrypted(values, true);
  return {std::move(values), std::move(small), std::move(large),
          lwe::make_lwe(pool, lwe::Torus::t32, params_->n(), batch),
          lwe::make_lwe(pool, params_->torus(), params_->large(), batch)};
}

void TfheBench::call(const std::string& name, const TfheOps& engine, Operands& x) const {
  const backend::TableView table{table_.data(), 1};
  const auto small = std::as_const(x.small_in).view(), large = std::as_const(x.large_in).view();
  const void* const switching = keys_.switching.data();
  const void* const rotation = keys_.rotation.data();
  if (name == "key_switch") {
    engine.key_switch(x.small_out.view(), large, switching);
  } else if (name == "bootstrap") {
    engine.bootstrap(x.large_out.view(), small, table, rotation);
  } else if (name == "switch_bootstrap") {
    engine.switch_bootstrap(x.large_out.view(), large, table, switching, rotation);
  } else if (name == "bootstrap_switch") {
    engine.bootstrap_switch(x.small_out.view(), small, table, switching, rotation);
  } else {
    throw InvalidArgument("there is no operation " + name);
  }
}

bool TfheBench::check(const std::string& name, std::size_t batch) const {
  Operands x = operands(batch);
  call(name, *engine_, x);
  const bool large = name == "bootstrap" || name == "switch_bootstrap";
  std::vector<u64> want = x.values;
  if (name != "key_switch") {
    for (u64& value : want) value = function(value, params_->value_modulus());
  }
  return decrypted(large ? x.large_out : x.small_out, large) == want;
}

Cost TfheBench::cost(const std::string& name, std::size_t batch) const {
  const auto trace = std::make_shared<backend::Trace>();
  Operands x = operands(batch);
  call(name, *backend::make_trace_tfhe(engine_, trace), x);
  return cost_of(*trace);
}

std::vector<double> TfheBench::run(const std::string& name, std::size_t batch,
                                   double seconds) const {
  Operands x = operands(batch);
  const device::Device& device = *engine_->device();
  std::function<void()> wait;
  if (!device.memory()->host_accessible()) wait = [&] { device.stream().synchronize(); };
  return timed([&] { call(name, *engine_, x); }, wait, seconds);
}

}  // namespace jali::bench
