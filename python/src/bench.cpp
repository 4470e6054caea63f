// What jali.bench measures below the level of ciphertexts.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "binding.h"
#include "jali/arith/bit_reverse.h"
#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/backend/ops.h"
#include "jali/ring/poly.h"

namespace jali::python {

using namespace nb::literals;

namespace {

Word word_of(const std::string& name) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    if (name == word_name(word)) return word;
  }
  throw InvalidArgument("unknown word \"" + name + "\": use w32, w52 or w64");
}

/// Transforms of one limb of random residues, modulo the largest prime of the word.
class TransformBench {
 public:
  TransformBench(int log_n, const std::string& word, int threads) {
    require<InvalidArgument>(log_n >= 10 && log_n <= 17, "log_n must be 10 to 17");
    require<InvalidArgument>(threads >= 1, "threads must be at least 1");
    config_.word = word_of(word);
    config_.n = std::size_t{1} << log_n;
    config_.threads = threads;
    const std::uint64_t top = std::uint64_t{1} << word_prime_bits(config_.word);
    config_.primes = {arith::PrimesNear(top, 2 * config_.n, 1, top).next().value()};
    ring_ = std::make_shared<ring::Ring>(
        std::shared_ptr<const backend::Ops>(backend::make_cpu_ops(config_)));
    std::random_device entropy;
    std::mt19937_64 random(entropy());
    for (std::size_t i = 0; i < config_.n; ++i) {
      values_.push_back(static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40)));
    }
    poly_ = fresh();
  }

  std::string engine() const { return ring_->ops().name(); }
  double prime_bits() const { return std::log2(static_cast<double>(config_.primes[0])); }

  /// Values at random points against Horner's rule, and the way back.
  bool check() const {
    const arith::Modulus mod(config_.primes[0]);
    const int log_n = std::countr_zero(config_.n);
    ring::Poly poly = fresh();
    ring_->ops().ntt(poly.view());
    std::mt19937_64 random(1);
    for (int point = 0; point < 8; ++point) {
      const std::size_t k = random() % config_.n;
      const std::uint64_t x =
          mod.pow(ring_->ops().root(PrimeIndex{0}),
                  2 * std::uint64_t{arith::bit_reverse(static_cast<std::uint32_t>(k), log_n)} + 1);
      std::uint64_t value = 0;
      for (std::size_t i = config_.n; i-- > 0;) {
        value = mod.add(mod.mul(value, x), mod.reduce_signed(values_[i]));
      }
      if (poly.at(0, 0, k) != value) return false;
    }
    ring_->ops().intt(poly.view());
    for (std::size_t i = 0; i < config_.n; ++i) {
      if (poly.at(0, 0, i) != mod.reduce_signed(values_[i])) return false;
    }
    return true;
  }

  /// Seconds of repeated transforms in place, for about `seconds`.
  std::vector<double> run(bool inverse, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto& ops = ring_->ops();
    const auto once = [&] { inverse ? ops.intt(poly_.view()) : ops.ntt(poly_.view()); };
    const auto since = [](Clock::time_point t) {
      return std::chrono::duration<double>(Clock::now() - t).count();
    };
    nb::gil_scoped_release release;
    std::vector<double> times;
    once();
    for (const auto start = Clock::now(); times.empty() || since(start) < seconds;) {
      const auto begin = Clock::now();
      once();
      times.push_back(since(begin));
    }
    return times;
  }

 private:
  ring::Poly fresh() const {
    const std::vector<PrimeIndex> primes{PrimeIndex{0}};
    ring::Poly poly = ring_->make(primes, 1, ring::Form::coeff);
    ring_->ops().from_int64(poly.view(), values_);
    return poly;
  }

  backend::Config config_;
  std::shared_ptr<ring::Ring> ring_;
  std::vector<std::int64_t> values_;
  ring::Poly poly_;
};

}  // namespace

void bind_bench(nb::module_& m) {
  m.def(
      "butterfly_rate",
      [](const std::string& word, const std::string& isa) {
        nb::gil_scoped_release release;
        return backend::cpu_butterfly_rate(word_of(word), isa);
      },
      "word"_a, "isa"_a = "",
      "Butterflies a second that one thread does on registers, measured now; isa: \"\" for the "
      "best.");
  nb::class_<TransformBench>(m, "TransformBench", "See jali.bench.transforms.")
      .def(nb::init<int, const std::string&, int>(), "log_n"_a, "word"_a, "threads"_a = 1)
      .def_prop_ro("engine", &TransformBench::engine, "Backend and instruction set.")
      .def_prop_ro("prime_bits", &TransformBench::prime_bits, "log2 of the prime.")
      .def("check", &TransformBench::check, nb::call_guard<nb::gil_scoped_release>(),
           "Whether transforms agree with the definition at random points and undo each other.")
      .def("run", &TransformBench::run, "inverse"_a, "seconds"_a,
           "Seconds of repeated transforms in place, for about this long.");
}

}  // namespace jali::python
