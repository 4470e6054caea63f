#include "bench/engine/engine_bench.h"

#include <cmath>
#include <functional>
#include <utility>

#include "jali/backend/resolve.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"

namespace jali::bench {

EngineBench::EngineBench(const std::string& device, Word word, const Shape& shape, int threads,
                         std::map<std::string, std::string> variants) {
  require<InvalidArgument>(shape.log_n >= 10 && shape.log_n <= 17, "log_n must be 10 to 17");
  require<InvalidArgument>(
      shape.limbs >= 1 && shape.special >= 0 && shape.alpha >= 1 &&
          shape.limbs + shape.special <= 250 && shape.batch >= 1,
      "limbs, alpha and batch must be at least 1, limbs and special at most 250");
  require<InvalidArgument>(shape.prime_bits >= 0 && shape.prime_bits <= word_prime_bits(word),
                           "the word has no primes of so many bits");
  backend::Config config;
  config.word = word;
  config.n = std::size_t{1} << shape.log_n;
  config.threads = threads;
  config.primes = largest_primes(shape.prime_bits == 0 ? word_prime_bits(word) : shape.prime_bits,
                                 config.n, static_cast<std::size_t>(shape.limbs + shape.special));
  config.variants = std::move(variants);
  const auto side = [&](const std::string& name) {
    return std::make_unique<Operands>(
        std::shared_ptr<const backend::Engine>(backend::make_engine(config, name)), shape);
  };
  measured_ = side(device);
  config.variants.clear();
  reference_ = side(measured_->engine->memory()->host_accessible() ? "cpu/portable" : "cpu");
}

double EngineBench::prime_bits() const {
  return std::log2(static_cast<double>(measured_->engine->config().primes[0]));
}

Body EngineBench::prepare(Operands& side, const std::string& name, const random::Seed& seed) {
  const Operation& found = operation(name);
  side.start(seed);
  return found.prepare(side);
}

bool EngineBench::check(const std::string& name) {
  const random::Seed seed = random::os_seed();
  std::vector<std::vector<std::byte>> wanted;
  for (Operands* side : {reference_.get(), measured_.get()}) {
    prepare(*side, name, seed)(*side->engine);
    std::vector<std::vector<std::byte>> got;
    for (const auto& [data, bytes] : side->results()) {
      got.emplace_back(bytes);
      side->engine->memory()->copy_out(got.back().data(), data, bytes);
    }
    if (side == reference_.get()) {
      wanted = std::move(got);
    } else if (got != wanted || side->words != reference_->words ||  // icrt writes words
               side->slots != reference_->slots) {                   // unembed writes slots
      return false;
    }
  }
  reference_->release();
  return true;
}

Cost EngineBench::cost(const std::string& name) {
  const auto trace = std::make_shared<backend::Trace>();
  const auto body = prepare(*measured_, name, {});
  body(*backend::make_trace_engine(measured_->engine, trace));
  return cost_of(*trace);
}

std::vector<double> EngineBench::run(const std::string& name, double seconds) {
  const auto body = prepare(*measured_, name, {});
  std::function<void()> wait;
  if (!measured_->engine->memory()->host_accessible()) wait = [&] { measured_->finish(); };
  return timed([&] { body(*measured_->engine); }, wait, seconds);
}

std::vector<backend::StepTime> EngineBench::steps(const std::string& name) {
  const auto body = prepare(*measured_, name, {});
  return measured_->engine->capture([&] { body(*measured_->engine); })->steps();
}

}  // namespace jali::bench
