// The automatic evaluator behind EncryptedArray.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
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
#include "ckks_circuits.h"
#include "ckks_here.h"
#include "ckks_server.h"
#include "jali/schemes/ckks/range.h"
#include "log.h"
#include "progress.h"
#include "refusals.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;
using ckks::Ciphertext;

namespace {

class Evaluator {
 public:
  Evaluator(const Engine& engine, std::optional<EvaluationKeys> keys)
      : Evaluator(build(engine, std::move(keys))) {}

  /// An evaluator that finds out which keys a computation uses. keys: an empty set of the client's.
  /// device: also "dry", which computes nothing.
  static Evaluator recording(const EvaluationKeys& keys, const std::string& device, int threads) {
    const nb::gil_scoped_release release;
    return Evaluator(
        build(make_engine(keys.params, device, threads, /*trace=*/false, {}, /*dry=*/true), keys,
              std::make_shared<ckks::KeyRecorder>()));
  }
  /// The same engine with the keys of another client.
  Evaluator with_keys(std::optional<EvaluationKeys> keys) const {
    return {static_cast<const Engine&>(*server_), std::move(keys)};
  }
  /// The bytes that its keys take in the memory of the device.
  std::size_t key_bytes() const { return server_->evaluator->key_bytes(); }
  nb::object exchange_checkpoint(nb::object function) const {
    return server_->checkpoints->exchange(std::move(function));
  }
  KeyDemand demand() const {
    require<InternalError>(server_->recorder != nullptr,
                           "this evaluator does not write down the keys that it uses");
    return {server_->recorder->demand(), server_->params};
  }

  const Server& server() const { return *server_; }
  Params params() const { return {server_->params}; }
  std::string engine() const { return server_->engine; }
  int threads() const { return server_->ring->engine().threads(); }
  Explicit explicit_evaluator() const { return {server_}; }
  std::optional<Trace> trace() const {
    if (server_->trace == nullptr) return std::nullopt;
    return Trace{server_->trace};
  }

  /// Throws ParamsMismatch for other parameters, and KeyMismatch for another secret key. It is
  /// called when a value is bound.
  void check(const Ciphertext& a) const {
    require_same(*server_->params, *a.params, "the ciphertext is");
    server_->evaluator->check(a);
  }

  bool on_host() const { return server_->ring->memory().host_accessible(); }
  /// Whether a is in the memory of the device, where operations need it. bring copies there,
  /// send_back to the host.
  bool is_here(const Ciphertext& a) const { return server_->evaluator->is_here(a); }
  Ciphertext bring(const Ciphertext& a) const { return server_->evaluator->bring(a); }
  Ciphertext send_back(const Ciphertext& a) const { return server_->evaluator->send_back(a); }

  void synchronize() const { server_->synchronize(); }
  Counters& counters() const { return *server_->counters; }
  nb::dict counts() const {
    const Counters& n = *server_->counters;
    const device::Pool& pool = *server_->ring->engine().pool();
    nb::dict out;
    for (const auto& [name, number] : {
             std::pair{"additions", n.additions.load()},
             {"products", n.products.load()},
             {"plain_products", n.plain_products.load()},
             {"rotations", n.rotations.load()},
             {"conjugations", n.conjugations.load()},
             {"sums", n.sums.load()},
             {"matrix_products", n.matrix_products.load()},
             {"polynomials", n.polynomials.load()},
             {"bootstraps", n.bootstraps.load()},
             {"programs", n.programs.load()},
             {"copies_to_device", n.copies_to_device.load()},
             {"copies_to_host", n.copies_to_host.load()},
             {"fallbacks", n.fallbacks.load()},
             {"bytes_in_use", std::uint64_t{pool.bytes_in_use()}},
             {"bytes_cached", std::uint64_t{pool.bytes_cached()}},
             {"bytes_peak", std::max<std::uint64_t>(n.bytes_peak, pool.peak_bytes())},
         }) {
      out[name] = number;
    }
    return out;
  }

  /// The most bytes of the pool that were in use at once since the last call.
  std::size_t take_peak() const {
    device::Pool& pool = *server_->ring->engine().pool();
    const std::size_t peak = pool.peak_bytes();
    pool.reset_peak();
    Counters& n = *server_->counters;
    n.bytes_peak = std::max<std::uint64_t>(n.bytes_peak, peak);
    return peak;
  }

  const ckks::ArrayEvaluator& arrays() const { return arrays_; }

  Ciphertext add_array(const Ciphertext& a, nb::handle values, bool negate) const {
    return with_numbers(values, &Counters::additions, [&](const ckks::Numbers& b) {
      return negate ? arrays_.sub_numbers(a, b) : arrays_.add_numbers(a, b);
    });
  }
  Ciphertext multiply_array(const Ciphertext& a, nb::handle values) const {
    return with_numbers(values, &Counters::plain_products,
                        [&](const ckks::Numbers& b) { return arrays_.multiply_numbers(a, b); });
  }

  Ciphertext with_layout(const Ciphertext& a, const circuits::Layout& layout,
                         std::size_t part) const {
    return arrays_.with_layout(a, packing_in(layout, part));
  }

  Ciphertext arrange(const MatVec& plan, const Ciphertext& a) const {
    plan.plan->require_same(*server_->evaluator);
    return circuits::arrange(*server_->evaluator, **plan.plan, a);
  }
  Ciphertext into_order(const Ciphertext& a) const {
    return circuits::into_order(*server_->evaluator, a);
  }

  std::vector<Ciphertext> matvec(const MatVec& plan,
                                 const std::vector<const Ciphertext*>& x) const {
    return circuits::apply(*server_->evaluator, *plan.plan, x);
  }
  Ciphertext linear_transform(const LinearTransform& plan, const Ciphertext& x,
                              std::optional<double> peak) const {
    const double claim = claimed(peak);
    return ckks::with_claim(
        circuits::apply(*server_->evaluator, *plan.plan, plan.complex_values, x, claim), claim);
  }
  Ciphertext polynomial(const Polynomial& plan, const Ciphertext& x, const Within& within) const {
    return circuits::apply(*server_->evaluator, *plan.plan, x, interval_of(within));
  }
  Ciphertext function(const Function& plan, const Ciphertext& x, const Within& within) const {
    return plan.plan->apply(*server_->evaluator, x, interval_of(within));
  }
  Ciphertext maximum(const Maximum& plan, const Ciphertext& a, const Ciphertext& b) const {
    return plan.plan->apply(*server_->evaluator, a, b);
  }
  Ciphertext argmax(const ArgMax& plan, const Ciphertext& x) const {
    return plan.plan->apply(*server_->evaluator, x);
  }
  void prepare(const MatVec& plan, const std::string& storage) const {
    plan.plan->prepare(*server_->evaluator, storage_of(storage));
  }
  void prepare(const LinearTransform& plan, const std::string& storage) const {
    plan.plan->prepare(*server_->evaluator, storage_of(storage));
  }

  Ciphertext bootstrap(const Ciphertext& a, int target_level, int iterations,
                       std::optional<bool> real, std::int64_t slots) const {
    return bootstrap_->apply(a, target_level, iterations, real, packed(slots));
  }
  std::pair<Ciphertext, Ciphertext> bootstrap_pair(const Ciphertext& a, const Ciphertext& b,
                                                   int target_level, int iterations,
                                                   std::int64_t slots) const {
    return bootstrap_->apply_pair(a, b, target_level, iterations, packed(slots));
  }
  void prepare_bootstrap(std::int64_t slots, bool real,
                         const std::optional<Progress>& progress) const {
    bootstrap_->prepare(checked_log_slots(*server_->params, slots), real, with_gil(progress));
  }

 private:
  /// The logarithm of a number of slots; -1 for 0, which stands for a value's own.
  int packed(std::int64_t slots) const {
    return slots == 0 ? -1 : checked_log_slots(*server_->params, slots);
  }

  explicit Evaluator(std::shared_ptr<const Server> server)
      : server_(std::move(server)),
        arrays_(server_->evaluator),
        bootstrap_(std::make_unique<bootstrap::Packings>(
            server_->evaluator,
            [counters = server_->counters](std::size_t slots, std::size_t with, double time) {
              count(counters->fallbacks);
              const nb::gil_scoped_acquire gil;
              log_info(
                  "bootstrapping of %d slots has less than all of its keys: done with %d slots and "
                  "%.2f times the time",
                  slots, with, time);
            },
            server_->plans)) {}

  static std::shared_ptr<const Server> build(const Engine& engine,
                                             std::optional<EvaluationKeys> keys,
                                             std::shared_ptr<ckks::KeyRecorder> recorder = {}) {
    auto server = std::make_shared<Server>(engine);
    std::shared_ptr<const rlwe::EvaluationKeys> held;
    if (keys) {
      require_same(*engine.params, *keys->params, "the evaluation keys are");
      held = keys->ptr;
    } else {
      auto none = std::make_shared<rlwe::EvaluationKeys>();
      none->params = engine.params;
      held = std::move(none);
    }
    if (recorder != nullptr) {
      server->recorder = recorder;
      server->evaluator =
          std::make_shared<const ckks::Evaluator>(engine.shared, held->key_id, recorder);
      return server;
    }
    server->evaluator = std::make_shared<const ckks::Evaluator>(
        engine.shared, held, [counters = server->counters](int steps, std::size_t parts) {
          count(counters->fallbacks);
          const nb::gil_scoped_acquire gil;
          log_info("rotation by %d slots has no key of its own: composed of %d rotations", steps,
                   parts);
        });
    return server;
  }

  /// Runs `work` on the numbers of a Python array, without the interpreter's lock.
  template <class Work>
  Ciphertext with_numbers(nb::handle values, Counters::Count Counters::* counted,
                          const Work& work) const {
    const Vectors v(values, "the array's numbers");
    const nb::gil_scoped_release release;
    std::vector<std::complex<double>> store;
    Ciphertext out =
        work(ckks::Numbers{v.as_complex(store), v.batch(), v.batched(), v.is_complex()});
    count(counters().*counted);
    return out;
  }

  std::shared_ptr<const Server> server_;
  ckks::ArrayEvaluator arrays_;
  std::unique_ptr<bootstrap::Packings> bootstrap_;
};

/// The steps of the engine that a function of Python causes, as (name, seconds). On a GPU, a step
/// is a kernel.
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

const ckks::ArrayEvaluator& part(const Evaluator& e, const ckks::ArrayEvaluator*) {
  return e.arrays();
}
const Evaluator& part(const Evaluator& e, const Evaluator*) { return e; }

/// An operation of ArrayEvaluator or of Evaluator as a method of Evaluator; counter: of its
/// successful calls.
template <auto operation, auto counter, class Object, class R, class... Args>
auto forwarding(R (Object::*)(Args...) const) {
  return [](const Evaluator& e, Args... args) -> R {
    R out = (part(e, static_cast<const Object*>(nullptr)).*operation)(args...);
    if constexpr (counter != nullptr) count(e.counters().*counter);
    return out;
  };
}
template <auto operation, auto counter = nullptr>
auto calls() {
  return forwarding<operation, counter>(operation);
}

}  // namespace

void bind_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ckks::ProductSum> products(m, "ProductSum",
                                        "Products of ciphertexts that are still to be computed.");
  refuse_constructor(products, "a ProductSum is what x * y of encrypted arrays gives");
  products
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
      .def(nb::init<const Engine&, std::optional<EvaluationKeys>>(), "engine"_a, "keys"_a.none(),
           nogil())
      .def("with_keys", &Evaluator::with_keys, "keys"_a.none(), nogil())
      .def_prop_ro("key_bytes", &Evaluator::key_bytes,
                   "The bytes of its keys in the memory of the device.")
      .def("exchange_checkpoint", &Evaluator::exchange_checkpoint, "function"_a.none())
      .def_static("recording", &Evaluator::recording, "keys"_a, "device"_a, "threads"_a)
      .def_prop_ro("demand", &Evaluator::demand, "The keys that were used so far.")
      .def_prop_ro("params", &Evaluator::params, "Its parameters.")
      .def_prop_ro("engine", &Evaluator::engine, "Backend and instruction set.")
      .def_prop_ro("threads", &Evaluator::threads, "The number of threads that it computes with.")
      .def_prop_ro("trace", &Evaluator::trace, "The record of operations, or None.")
      .def_prop_ro("explicit", &Evaluator::explicit_evaluator,
                   "The explicit evaluator with the same keys.")
      .def("check", &Evaluator::check, "a"_a)
      .def_prop_ro("on_host", &Evaluator::on_host, "Whether the device shares the host's memory.")
      .def("is_here", &Evaluator::is_here, "a"_a)
      .def("bring", calls<&Evaluator::bring, &Counters::copies_to_device>(), "a"_a, nogil())
      .def("send_back", calls<&Evaluator::send_back, &Counters::copies_to_host>(), "a"_a, nogil())
      .def("synchronize", &Evaluator::synchronize, nogil())
      .def("counters", &Evaluator::counts, nb::sig("def counters(self) -> dict[str, int]"),
           "See jali.ckks.Evaluator.counters.")
      .def("take_peak", &Evaluator::take_peak)
      .def("steps", &steps, "function"_a,
           nb::sig("def steps(self, function: collections.abc.Callable[[], object]) -> "
                   "list[tuple[str, float]]"))
      .def("add", calls<&ckks::ArrayEvaluator::add, &Counters::additions>(), "a"_a, "b"_a, nogil())
      .def("sub", calls<&ckks::ArrayEvaluator::sub, &Counters::additions>(), "a"_a, "b"_a, nogil())
      .def("negate", calls<&ckks::ArrayEvaluator::negate>(), "a"_a, nogil())
      .def("multiply", calls<&ckks::ArrayEvaluator::multiply, &Counters::products>(), "a"_a, "b"_a,
           nogil())
      .def("product", calls<&ckks::ArrayEvaluator::product, &Counters::products>(), "a"_a, "b"_a,
           nogil())
      .def("join", calls<&ckks::ArrayEvaluator::join>(), "a"_a, "b"_a)
      .def("join_scalar", calls<&ckks::ArrayEvaluator::join_scalar>(), "a"_a, "b"_a)
      .def("settle", calls<&ckks::ArrayEvaluator::settle>(), "a"_a, nogil())
      .def("expand", calls<&ckks::ArrayEvaluator::expand>(), "a"_a, nogil())
      .def("add_scalar", calls<&ckks::ArrayEvaluator::add_scalar, &Counters::additions>(), "a"_a,
           "b"_a, nogil())
      .def("multiply_scalar",
           calls<&ckks::ArrayEvaluator::multiply_scalar, &Counters::plain_products>(), "a"_a, "b"_a,
           nogil())
      .def("add_array", &Evaluator::add_array, "a"_a, "values"_a.none(), "negate_array"_a = false)
      .def("multiply_array", &Evaluator::multiply_array, "a"_a, "values"_a.none())
      .def("rotate", calls<&ckks::ArrayEvaluator::rotate, &Counters::rotations>(), "a"_a, "steps"_a,
           nogil())
      .def("conjugate", calls<&ckks::ArrayEvaluator::conjugate, &Counters::conjugations>(), "a"_a,
           nogil())
      .def("sum", calls<&ckks::ArrayEvaluator::sum, &Counters::sums>(), "a"_a, "count"_a, nogil())
      .def("normalise", calls<&ckks::ArrayEvaluator::normalise>(), "a"_a, nogil())
      .def("matvec", calls<&Evaluator::matvec, &Counters::matrix_products>(), "plan"_a, "x"_a,
           nogil())
      .def("linear_transform", calls<&Evaluator::linear_transform, &Counters::matrix_products>(),
           "plan"_a, "x"_a, "peak"_a = nb::none(), nogil())
      .def("polynomial", calls<&Evaluator::polynomial, &Counters::polynomials>(), "plan"_a, "x"_a,
           "within"_a = nb::none(), nogil())
      .def("function", calls<&Evaluator::function, &Counters::polynomials>(), "plan"_a, "x"_a,
           "within"_a = nb::none(), nogil())
      .def("maximum", calls<&Evaluator::maximum, &Counters::polynomials>(), "plan"_a, "a"_a, "b"_a,
           nogil())
      .def("argmax", calls<&Evaluator::argmax, &Counters::polynomials>(), "plan"_a, "x"_a, nogil())
      .def("prepare",
           nb::overload_cast<const MatVec&, const std::string&>(&Evaluator::prepare, nb::const_),
           "plan"_a, "storage"_a, nogil())
      .def("prepare",
           nb::overload_cast<const LinearTransform&, const std::string&>(&Evaluator::prepare,
                                                                         nb::const_),
           "plan"_a, "storage"_a, nogil())
      .def("bootstrap", calls<&Evaluator::bootstrap, &Counters::bootstraps>(), "a"_a,
           "target_level"_a, "iterations"_a, "real"_a.none(), "slots"_a = 0, nogil())
      .def("bootstrap_pair", calls<&Evaluator::bootstrap_pair, &Counters::bootstraps>(), "a"_a,
           "b"_a, "target_level"_a, "iterations"_a, "slots"_a = 0, nogil())
      .def("prepare_bootstrap", &Evaluator::prepare_bootstrap, "slots"_a, "real"_a,
           "progress"_a = nb::none(), nogil())
      .def("is_settled", calls<&ckks::ArrayEvaluator::is_settled>(), "a"_a)
      .def("effective_level", calls<&ckks::ArrayEvaluator::effective_level>(), "a"_a)
      .def("with_layout", calls<&Evaluator::with_layout>(), "a"_a, "layout"_a, "part"_a, nogil())
      .def("arrange", calls<&Evaluator::arrange>(), "plan"_a, "a"_a, nogil())
      .def("into_order", calls<&Evaluator::into_order>(), "a"_a, nogil())
      .def(
          "with_view",
          [](const Evaluator& e, const Ciphertext& a, const std::optional<ViewTuple>& view,
             bool padded) {
            return e.arrays().with_view(a, view ? std::optional(view_of(*view)) : std::nullopt,
                                        padded);
          },
          "a"_a, "view"_a.none(), "padded"_a, nogil())
      .def("with_bounds", calls<&ckks::ArrayEvaluator::with_bounds>(), "a"_a, "like"_a, "terms"_a,
           nogil())
      .def(
          "take",
          [](const Evaluator& e, const Ciphertext& a, const std::vector<std::uint32_t>& vectors) {
            return e.arrays().take(a, vectors);
          },
          "a"_a, "vectors"_a, nogil())
      .def(
          "stack",
          [](const Evaluator& e, const std::vector<const Ciphertext*>& inputs) {
            return ckks::stack(*e.server().evaluator, inputs);
          },
          "inputs"_a, nogil())
      .def("with_length", calls<&ckks::ArrayEvaluator::with_length>(), "a"_a, "length"_a, nogil())
      .def(
          "with_magnitude",
          [](const Evaluator& e, const Ciphertext& a, double magnitude, double peak) {
            return e.arrays().with_magnitude(a, checked_declared(magnitude, peak));
          },
          "a"_a, "magnitude"_a, "peak"_a = 0.0, nogil())
      .def(
          "with_precision",
          [](const Evaluator& e, const Ciphertext& a, double precision_bits) {
            return e.arrays().with_precision(a, precision_bits);
          },
          "a"_a, "precision_bits"_a, nogil());
}

}  // namespace jali::python
