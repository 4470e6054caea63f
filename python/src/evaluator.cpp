// The automatic evaluator behind EncryptedArray.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "circuits.h"
#include "here.h"
#include "interrupts.h"
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
            int threads, bool trace, const backend::Variants& variants)
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

  /// Throws ParamsMismatch for other parameters. It is called when a value is bound, so that operations need not check.
  void check(const Ciphertext& a) const {
    require_same(*server_->params, *a.params, "the ciphertext is");
  }

  bool on_host() const { return server_->ring->memory().host_accessible(); }
  /// Whether a is in the memory of the device, where operations need it. bring copies there, send_back to the host.
  bool is_here(const Ciphertext& a) const { return server_->evaluator->is_here(a); }
  Ciphertext bring(const Ciphertext& a) const { return server_->evaluator->bring(a); }
  Ciphertext send_back(const Ciphertext& a) const { return server_->evaluator->send_back(a); }

  void synchronize() const { server_->synchronize(); }

  const ckks::ArrayEvaluator& arrays() const { return arrays_; }

  Ciphertext add_array(const Ciphertext& a, nb::handle values, bool negate) const {
    return with_numbers(values, [&](const ckks::Numbers& b) {
      return negate ? arrays_.sub_numbers(a, b) : arrays_.add_numbers(a, b);
    });
  }
  Ciphertext multiply_array(const Ciphertext& a, nb::handle values) const {
    return with_numbers(values,
                        [&](const ckks::Numbers& b) { return arrays_.multiply_numbers(a, b); });
  }

  std::vector<Ciphertext> matvec(const MatVec& plan,
                                 const std::vector<const Ciphertext*>& x) const {
    return circuits::apply(*server_->evaluator, *plan.plan, x);
  }
  Ciphertext linear_transform(const LinearTransform& plan, const Ciphertext& x) const {
    return circuits::apply(*server_->evaluator, *plan.plan, plan.complex_values, x);
  }
  Ciphertext polynomial(const Polynomial& plan, const Ciphertext& x) const {
    return circuits::apply(*server_->evaluator, *plan.plan, x);
  }
  void prepare(const MatVec& plan) const { plan.plan->prepare(*server_->evaluator); }
  void prepare(const LinearTransform& plan) const { plan.plan->prepare(*server_->evaluator); }

  Ciphertext bootstrap(const Ciphertext& a, int target_level, int iterations,
                       std::optional<bool> real) const {
    return bootstrap_->apply(a, target_level, iterations, real);
  }
  std::pair<Ciphertext, Ciphertext> bootstrap_pair(const Ciphertext& a, const Ciphertext& b,
                                                   int target_level, int iterations) const {
    return bootstrap_->apply_pair(a, b, target_level, iterations);
  }
  void prepare_bootstrap(std::int64_t slots, bool real,
                         const std::optional<Progress>& progress) const {
    bootstrap_->prepare(checked_log_slots(*server_->params, slots), real, with_gil(progress));
  }

 private:
  explicit Evaluator(std::shared_ptr<const Server> server)
      : server_(std::move(server)),
        arrays_(server_->evaluator),
        bootstrap_(std::make_unique<bootstrap::Packings>(server_->evaluator)) {}

  static std::shared_ptr<const Server> build(const ckks::ParamsPtr& params,
                                             std::optional<EvaluationKeys> keys,
                                             const std::string& device, int threads, bool trace,
                                             const backend::Variants& variants) {
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
      require_same(*params, *keys->params, "the evaluation keys are");
      held = keys->ptr;
    } else {
      auto none = std::make_shared<rlwe::EvaluationKeys>();
      none->params = params;
      held = std::move(none);
    }
    server->evaluator = std::make_shared<const ckks::Evaluator>(params, server->ring, held);
    return server;
  }

  /// Runs `work` on the numbers of a Python array, without the interpreter's lock.
  template <class Work>
  static Ciphertext with_numbers(nb::handle values, const Work& work) {
    const Vectors v(values, "the array's numbers");
    const nb::gil_scoped_release release;
    std::vector<std::complex<double>> store;
    return work(ckks::Numbers{v.as_complex(store), v.batch(), v.batched(), v.is_complex()});
  }

  std::shared_ptr<const Server> server_;
  ckks::ArrayEvaluator arrays_;
  std::unique_ptr<bootstrap::Packings> bootstrap_;
};

/// The steps of the engine that a function of Python causes, as (name, seconds). On a GPU, a step is a kernel.
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

/// An operation of ArrayEvaluator as a method of Evaluator.
template <auto operation, class R, class... Args>
auto forwarding(R (ckks::ArrayEvaluator::*)(Args...) const) {
  return [](const Evaluator& e, Args... args) -> R { return (e.arrays().*operation)(args...); };
}
template <auto operation>
auto on_arrays() {
  return forwarding<operation>(operation);
}

}  // namespace

void bind_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ckks::ProductSum>(m, "ProductSum",
                               "Products of ciphertexts that are still to be computed.")
      .def_prop_ro(
          "level", [](const ckks::ProductSum& a) { return a.level() - 1; },
          "How many multiplications may follow it.")
      .def_prop_ro(
          "slots", [](const ckks::ProductSum& a) { return std::size_t{1} << a.log_slots(); },
          "Numbers in each vector.")
      .def_prop_ro(
          "shape", [](const ckks::ProductSum& a) { return shape_of(a); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "(length,), or (batch, length).");
  nb::class_<Evaluator>(m, "EvaluatorCore", "See jali.ckks.Evaluator.")
      .def(nb::init<const Params&, std::optional<EvaluationKeys>, const std::string&, int, bool,
                    const backend::Variants&>(),
           "params"_a, "keys"_a.none(), "device"_a, "threads"_a, "trace"_a, "variants"_a, nogil())
      .def_prop_ro("params", &Evaluator::params, "Its parameters.")
      .def_prop_ro("engine", &Evaluator::engine, "Backend and instruction set.")
      .def_prop_ro("threads", &Evaluator::threads, "The number of threads that it computes with.")
      .def_prop_ro("trace", &Evaluator::trace, "The record of operations, or None.")
      .def_prop_ro("explicit", &Evaluator::explicit_evaluator,
                   "The explicit evaluator with the same keys.")
      .def("check", &Evaluator::check, "a"_a)
      .def_prop_ro("on_host", &Evaluator::on_host, "Whether the device shares the host's memory.")
      .def("is_here", &Evaluator::is_here, "a"_a)
      .def("bring", &Evaluator::bring, "a"_a, nogil())
      .def("send_back", &Evaluator::send_back, "a"_a, nogil())
      .def("synchronize", &Evaluator::synchronize, nogil())
      .def("steps", &steps, "function"_a,
           nb::sig("def steps(self, function: collections.abc.Callable[[], object]) -> "
                   "list[tuple[str, float]]"))
      .def("add", on_arrays<&ckks::ArrayEvaluator::add>(), "a"_a, "b"_a, nogil())
      .def("sub", on_arrays<&ckks::ArrayEvaluator::sub>(), "a"_a, "b"_a, nogil())
      .def("negate", on_arrays<&ckks::ArrayEvaluator::negate>(), "a"_a, nogil())
      .def("multiply", on_arrays<&ckks::ArrayEvaluator::multiply>(), "a"_a, "b"_a, nogil())
      .def("product", on_arrays<&ckks::ArrayEvaluator::product>(), "a"_a, "b"_a, nogil())
      .def("join", on_arrays<&ckks::ArrayEvaluator::join>(), "a"_a, "b"_a)
      .def("join_scalar", on_arrays<&ckks::ArrayEvaluator::join_scalar>(), "a"_a, "b"_a)
      .def("settle", on_arrays<&ckks::ArrayEvaluator::settle>(), "a"_a, nogil())
      .def("expand", on_arrays<&ckks::ArrayEvaluator::expand>(), "a"_a, nogil())
      .def("add_scalar", on_arrays<&ckks::ArrayEvaluator::add_scalar>(), "a"_a, "b"_a, nogil())
      .def("multiply_scalar", on_arrays<&ckks::ArrayEvaluator::multiply_scalar>(), "a"_a, "b"_a,
           nogil())
      .def("add_array", &Evaluator::add_array, "a"_a, "values"_a.none(), "negate_array"_a = false)
      .def("multiply_array", &Evaluator::multiply_array, "a"_a, "values"_a.none())
      .def("rotate", on_arrays<&ckks::ArrayEvaluator::rotate>(), "a"_a, "steps"_a, nogil())
      .def("conjugate", on_arrays<&ckks::ArrayEvaluator::conjugate>(), "a"_a, nogil())
      .def("sum", on_arrays<&ckks::ArrayEvaluator::sum>(), "a"_a, "count"_a, nogil())
      .def("normalise", on_arrays<&ckks::ArrayEvaluator::normalise>(), "a"_a, nogil())
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
      .def("is_settled", on_arrays<&ckks::ArrayEvaluator::is_settled>(), "a"_a)
      .def("effective_level", on_arrays<&ckks::ArrayEvaluator::effective_level>(), "a"_a)
      .def("with_length", on_arrays<&ckks::ArrayEvaluator::with_length>(), "a"_a, "length"_a,
           nogil())
      .def(
          "with_magnitude",
          [](const Evaluator& e, const Ciphertext& a, double magnitude, double peak) {
            return e.arrays().with_magnitude(a, checked_declared(magnitude, peak));
          },
          "a"_a, "magnitude"_a, "peak"_a = 0.0, nogil());
}

}  // namespace jali::python
