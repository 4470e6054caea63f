// The automatic evaluator behind EncryptedArray.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "circuits.h"
#include "here.h"
#include "interrupts.h"
#include "jali/base/turns.h"
#include "packing.h"
#include "progress.h"
#include "server.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;
using ckks::Ciphertext;

namespace {

class Evaluator {
 public:
  Evaluator(const Params& params, std::optional<EvaluationKeys> keys, const std::string& device,
            int threads, bool trace, const std::map<std::string, std::string>& variants)
      : Evaluator(build(params.ptr, std::move(keys), device, threads, trace, variants)) {}

  const Server& server() const { return *server_; }
  Params params() const { return {server_->params}; }
  std::string engine() const { return server_->engine; }
  int threads() const { return server_->ring->engine().threads(); }
  Explicit explicit_evaluator() const { return {server_}; }
  std::optional<Trace> trace() const {
    if (server_->trace == nullptr) return std::nullopt;
    return Trace{server_->trace};
  }

  /// Checked once, when a value is bound, so that operations need not.
  void check(const Ciphertext& a) const {
    require_same(*server_->params, *a.params, "the ciphertext is");
  }

  bool on_host() const { return server_->ring->memory().host_accessible(); }
  /// Whether a is in the memory of the device, where operations want it; bring and send_back copy.
  bool is_here(const Ciphertext& a) const { return server_->evaluator->is_here(a); }
  Ciphertext bring(const Ciphertext& a) const { return server_->evaluator->bring(a); }
  Ciphertext send_back(const Ciphertext& a) const { return server_->evaluator->send_back(a); }

  void synchronize() const { server_->synchronize(); }

  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const {
    const ckks::Packing packing = of_sum(a, b);
    return with(auto_.add(a, b), packing);
  }
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const {
    const ckks::Packing packing = of_sum(a, b);
    return with(auto_.sub(a, b), packing);
  }
  Ciphertext negate(const Ciphertext& a) const { return with(auto_.negate(a), a.packing); }
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const {
    if (&a == &b) return with(auto_.square(a), a.packing);
    const ckks::Packing packing = of_product(a, b);
    return with(auto_.multiply(a, b), packing);
  }
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> b) const {
    return with(auto_.add_scalar(a, b), of_scalar_sum(a, b == 0.0, b.imag() != 0));
  }
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> b) const {
    require_fits(a, std::abs(b));
    return with(auto_.multiply_scalar(a, b), of_scalar_product(a, b.imag() != 0));
  }
  Ciphertext rotate(const Ciphertext& a, int steps) const {
    return with(auto_.rotate(a, steps), steps == 0 ? a.packing : of_moved(a));
  }
  Ciphertext conjugate(const Ciphertext& a) const { return with(auto_.conjugate(a), a.packing); }
  Ciphertext normalise(const Ciphertext& a) const { return with(auto_.normalise(a), a.packing); }

  Ciphertext sum(const Ciphertext& a, std::size_t count) const {
    const std::size_t slots = std::size_t{1} << a.log_slots;
    require<InvalidArgument>(count <= slots, [&] {
      return "sum over " + std::to_string(count) + " slots of a ciphertext that has " +
             std::to_string(slots);
    });
    require<InvalidArgument>(count != 0 || a.packing.length == 0 || a.packing.padded, [&] {
      return "slots past the vector's length of " + std::to_string(a.packing.length) +
             " are no longer zero (a number was added, or slots were rotated): name the number "
             "of slots in sum(), or multiply by ones of the vector's length first";
    });
    return with(auto_.sum(a, count), of_moved(a));
  }

  Ciphertext add_array(const Ciphertext& a, nb::handle values, bool negate_array) const {
    const Vectors v(values, "the array's numbers");
    const ckks::Packing packing = of_sum(a, plain(v));
    nb::gil_scoped_release release;
    std::vector<std::complex<double>> store;
    auto numbers = v.as_complex(store);
    if (negate_array) {
      if (store.empty()) store.assign(numbers.begin(), numbers.end());
      for (auto& x : store) x = -x;
      numbers = store;
    }
    return with(auto_.add_vector(a, numbers, v.batch()), packing);
  }
  Ciphertext multiply_array(const Ciphertext& a, nb::handle values) const {
    const Vectors v(values, "the array's numbers");
    const ckks::Packing packing = of_product(a, plain(v));
    nb::gil_scoped_release release;
    std::vector<std::complex<double>> store;
    const auto numbers = v.as_complex(store);
    double largest = 0;
    for (const auto& x : numbers) largest = std::max(largest, std::abs(x));
    require_fits(a, largest);
    return with(auto_.multiply_vector(a, numbers, v.batch()), packing);
  }

  /// Whether it is what normalise gives: two parts, no rescale owed.
  bool is_settled(const Ciphertext& a) const {
    return a.parts.size() == 2 && auto_.effective_level(a) == a.level &&
           (a.level == 0 || std::fabs(a.scale / a.params->level(a.level).scale - 1) < 0x1p-45);
  }
  std::vector<Ciphertext> matvec(const MatVec& plan,
                                 const std::vector<const Ciphertext*>& x) const {
    return apply(*server_, plan, x);
  }
  Ciphertext linear_transform(const LinearTransform& plan, const Ciphertext& x) const {
    return apply(*server_, plan, x);
  }
  Ciphertext polynomial(const Polynomial& plan, const Ciphertext& x) const {
    return apply(*server_, plan, x);
  }
  void prepare(const MatVec& plan) const { plan.plan->prepare(*server_); }
  void prepare(const LinearTransform& plan) const { plan.plan->prepare(*server_); }

  int effective_level(const Ciphertext& a) const { return auto_.effective_level(a); }

  /// real: whether imaginary parts are dropped; empty: where that costs less and the data is real.
  Ciphertext bootstrap(const Ciphertext& a, int target_level, int iterations,
                       std::optional<bool> real) const {
    const bool cheaper = server_->params->bootstrap() &&
                         server_->params->bootstrap()->order == params::BootstrapOrder::slots_first;
    const bool drop = real.value_or(cheaper && !a.packing.complex_values);
    return bootstrapper({a.log_slots, drop}, target_level, iterations)
        ->apply(a, target_level, {}, iterations);
  }
  std::pair<Ciphertext, Ciphertext> bootstrap_pair(const Ciphertext& a, const Ciphertext& b,
                                                   int target_level, int iterations) const {
    require<InvalidArgument>(!a.packing.complex_values && !b.packing.complex_values,
                             "a pair is of real values: bootstrap complex ones one by one");
    return bootstrapper({a.log_slots, false}, target_level, iterations)
        ->apply_pair(a, b, target_level, iterations);
  }
  /// Encodes the matrices of bootstrapping now.
  void prepare_bootstrap(std::int64_t slots, bool real,
                         const std::optional<Progress>& progress) const {
    bootstrapper({checked_log_slots(*server_->params, slots), real}, -1, 1, with_gil(progress));
  }

 private:
  explicit Evaluator(std::shared_ptr<const Server> server)
      : server_(std::move(server)), auto_(server_->evaluator) {}

  static std::shared_ptr<const Server> build(const params::CkksParamsPtr& params,
                                             std::optional<EvaluationKeys> keys,
                                             const std::string& device, int threads, bool trace,
                                             const std::map<std::string, std::string>& variants) {
    auto server = std::make_shared<Server>();
    server->params = params;
    server->ring = ckks::make_ring(*params, device, threads == 0 ? default_threads() : threads,
                                   variants, interrupts());
    server->engine = server->ring->engine().name();
    if (trace) {
      server->trace = std::make_shared<backend::Trace>();
      server->ring = traced(server->ring, server->trace);
    }
    server->probe = server->ring->scratch(64);
    std::shared_ptr<const rlwe::EvaluationKeys> held;
    if (keys) {
      require_same(*params, *keys->ptr->params, "the evaluation keys are");
      held = keys->ptr;
    } else {
      auto none = std::make_shared<rlwe::EvaluationKeys>();
      none->params = params;
      held = std::move(none);
    }
    server->evaluator = std::make_shared<const ckks::Evaluator>(params, server->ring, held);
    return server;
  }

  /// A product with a factor that is itself too large for the level of the result would wrap around
  /// its modulus unnoticed.
  void require_fits(const Ciphertext& a, double factor) const {
    const int level = std::max(auto_.effective_level(a) - 1, 0);
    const params::Level& l = a.params->level(level);
    const double bits = std::log2(factor) + std::log2(l.scale);
    require<InvalidArgument>(!(bits >= l.log_q - 1), [&] {
      return "the factor " + std::to_string(factor) + " is too large: scaled it needs " +
             std::to_string(bits) + " bits, and level " + std::to_string(level) + " holds " +
             std::to_string(l.log_q - 1) +
             ": scale down what is multiplied, or multiply at a higher "
             "level";
    });
  }
  static Ciphertext with(Ciphertext out, const ckks::Packing& packing) {
    out.packing = packing;
    return out;
  }
  static Plain plain(const Vectors& v) {
    return {v.batch(), v.count(), v.batched(), v.is_complex()};
  }

  /// Made at the first use of a packing and a number of levels, matrices encoded; shared by threads. All are kept:
  /// captured functions read their matrices.
  std::shared_ptr<const bootstrap::Bootstrapper> bootstrapper(
      bootstrap::BootstrapperOptions options, int target_level, int iterations,
      const jali::Progress& progress = {}) const {
    const int depth = server_->params->depth();
    // The sum of several results takes a level.
    const int restored = target_level < 0 ? depth : target_level + (iterations > 1 ? 1 : 0);
    const int least = server_->params->bootstrap()
                          ? server_->params->bootstrap()->input_level() + (iterations > 1 ? 2 : 0)
                          : depth;
    if (least <= restored && restored < depth) options.target_level = restored;
    const Turns::Turn turn = bootstrap_->turns.take();
    auto& made = bootstrap_->made[{options.log_slots, options.real, options.target_level}];
    if (made == nullptr) made = make_bootstrapper(options, progress);
    return made;
  }
  /// With the keys that there are: those for speed, else the fewest.
  std::shared_ptr<const bootstrap::Bootstrapper> make_bootstrapper(
      bootstrap::BootstrapperOptions options, const jali::Progress& progress) const {
    const auto make = [&] {
      return std::make_shared<bootstrap::Bootstrapper>(
          server_->evaluator, bootstrap::BootstrapPlan(server_->params, options));
    };
    std::shared_ptr<bootstrap::Bootstrapper> made;
    try {
      made = make();
    } catch (const KeyMissing&) {
      options.minimum = true;
      try {
        made = make();
      } catch (const KeyMissing&) {
      }
      if (made == nullptr) throw;  // for the keys that are usual
    }
    made->prepare(progress);
    return made;
  }

  struct Bootstrappers {
    Turns turns{"the set-up of bootstrapping", interrupts()};
    std::map<std::tuple<int, bool, int>, std::shared_ptr<const bootstrap::Bootstrapper>> made;
  };

  std::shared_ptr<const Server> server_;
  ckks::AutoEvaluator auto_;
  std::unique_ptr<Bootstrappers> bootstrap_ = std::make_unique<Bootstrappers>();
};

/// Steps of the engine that a function of Python asks for: (name, seconds), on a GPU its kernels.
std::vector<std::pair<std::string, double>> steps(const Evaluator& e, nb::callable function) {
  const auto captured = e.server().ring->engine().capture([&] {
    const nb::gil_scoped_acquire lock;
    function();
  });
  std::vector<std::pair<std::string, double>> out;
  nb::gil_scoped_release release;
  for (const auto& step : captured->steps()) out.emplace_back(step.name, step.seconds);
  return out;
}

/// The same ciphertext showing the first `length` slots.
Ciphertext with_length(const Evaluator& e, const Ciphertext& a, std::size_t length) {
  const std::size_t slots = std::size_t{1} << a.log_slots;
  require<InvalidArgument>(length >= 1 && length <= slots, [&] {
    return "length " + std::to_string(length) + " is outside 1 to " + std::to_string(slots);
  });
  Ciphertext out = e.explicit_evaluator()->copy(a);
  const bool still_padded = a.packing.padded && length >= length_of(a);
  out.packing = a.packing;
  out.packing.length = length == slots ? 0 : static_cast<std::uint32_t>(length);
  out.packing.padded = still_padded && length < slots;
  return out;
}

Ciphertext with_magnitude(const Evaluator& e, const Ciphertext& a, double magnitude, double peak) {
  const params::Declared declared = checked_declared(magnitude, peak);
  Ciphertext out = e.explicit_evaluator()->copy(a);
  out.packing = a.packing;
  out.estimate.message = declared.magnitude;
  out.estimate.peak = declared.peak;
  return out;
}

}  // namespace

void bind_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Evaluator>(m, "EvaluatorCore", "See jali.ckks.Evaluator.")
      .def(nb::init<const Params&, std::optional<EvaluationKeys>, const std::string&, int, bool,
                    const std::map<std::string, std::string>&>(),
           "params"_a, "keys"_a.none(), "device"_a, "threads"_a, "trace"_a, "variants"_a, nogil())
      .def_prop_ro("params", &Evaluator::params, "Its parameters.")
      .def_prop_ro("engine", &Evaluator::engine, "Backend and instruction set.")
      .def_prop_ro("threads", &Evaluator::threads, "Threads it computes with.")
      .def_prop_ro("trace", &Evaluator::trace, "The recording, or None without one.")
      .def_prop_ro("explicit", &Evaluator::explicit_evaluator, "The same keys, by hand.")
      .def("check", &Evaluator::check, "a"_a)
      .def_prop_ro("on_host", &Evaluator::on_host, "Whether the device shares the host's memory.")
      .def("is_here", &Evaluator::is_here, "a"_a)
      .def("bring", &Evaluator::bring, "a"_a, nogil())
      .def("send_back", &Evaluator::send_back, "a"_a, nogil())
      .def("synchronize", &Evaluator::synchronize, nogil())
      .def("steps", &steps, "function"_a,
           nb::sig("def steps(self, function: collections.abc.Callable[[], object]) -> "
                   "list[tuple[str, float]]"))
      .def("add", &Evaluator::add, "a"_a, "b"_a, nogil())
      .def("sub", &Evaluator::sub, "a"_a, "b"_a, nogil())
      .def("negate", &Evaluator::negate, "a"_a, nogil())
      .def("multiply", &Evaluator::multiply, "a"_a, "b"_a, nogil())
      .def("add_scalar", &Evaluator::add_scalar, "a"_a, "b"_a, nogil())
      .def("multiply_scalar", &Evaluator::multiply_scalar, "a"_a, "b"_a, nogil())
      .def("add_array", &Evaluator::add_array, "a"_a, "values"_a.none(), "negate_array"_a = false)
      .def("multiply_array", &Evaluator::multiply_array, "a"_a, "values"_a.none())
      .def("rotate", &Evaluator::rotate, "a"_a, "steps"_a, nogil())
      .def("conjugate", &Evaluator::conjugate, "a"_a, nogil())
      .def("sum", &Evaluator::sum, "a"_a, "count"_a, nogil())
      .def("normalise", &Evaluator::normalise, "a"_a, nogil())
      .def("matvec", &Evaluator::matvec, "plan"_a, "x"_a, nogil())
      .def("linear_transform", &Evaluator::linear_transform, "plan"_a, "x"_a, nogil())
      .def("polynomial", &Evaluator::polynomial, "plan"_a, "x"_a, nogil())
      .def("prepare", nb::overload_cast<const MatVec&>(&Evaluator::prepare, nb::const_), "plan"_a,
           nogil())
      .def("prepare", nb::overload_cast<const LinearTransform&>(&Evaluator::prepare, nb::const_),
           "plan"_a, nogil())
      .def("bootstrap", &Evaluator::bootstrap, "a"_a, "target_level"_a, "iterations"_a,
           "real"_a.none(), nogil())
      .def("bootstrap_pair", &Evaluator::bootstrap_pair, "a"_a, "b"_a, "target_level"_a,
           "iterations"_a, nogil())
      .def("prepare_bootstrap", &Evaluator::prepare_bootstrap, "slots"_a, "real"_a,
           "progress"_a = nb::none(), nogil())
      .def("is_settled", &Evaluator::is_settled, "a"_a)
      .def("effective_level", &Evaluator::effective_level, "a"_a)
      .def("with_length", &with_length, "a"_a, "length"_a, nogil())
      .def("with_magnitude", &with_magnitude, "a"_a, "magnitude"_a, "peak"_a = 0.0, nogil());
}

}  // namespace jali::python
