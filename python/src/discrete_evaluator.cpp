// The evaluator behind EncryptedArray of exact integers.
#include "discrete_evaluator.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commit.h"
#include "discrete.h"
#include "interrupts.h"
#include "jali/rlwe/composed.h"
#include "jali/schemes/discrete/batcher.h"
#include "jali/schemes/discrete/make_ring.h"
#include "log.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;
using discrete::Ciphertext;
using discrete::Overflow;
using discrete::Range;

namespace {

/// (vectors, N) numbers.
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Overflow overflow_of(bool wrap) { return wrap ? Overflow::wrap : Overflow::refuse; }

bool alike(std::span<const Ciphertext> parts) {
  return std::ranges::all_of(parts, [&](const Ciphertext& x) {
    return x.level == parts[0].level && x.factor == parts[0].factor;
  });
}

/// The result of an operation, which says nothing of elements.
DiscreteArray array_of(Ciphertext block) { return {std::move(block), std::nullopt, false}; }

}  // namespace

// Parts that are alike are copied once, and others as often as they are halved.
Ciphertext joined(const discrete::Evaluator& evaluator, std::span<const Ciphertext> parts) {
  require<InvalidArgument>(!parts.empty(), "give at least one vector");
  if (!alike(parts)) {
    const std::size_t half = parts.size() / 2;
    return evaluator.stack(joined(evaluator, parts.first(half)),
                           joined(evaluator, parts.subspan(half)));
  }
  std::vector<const Ciphertext*> pointers;
  for (const Ciphertext& x : parts) pointers.push_back(&x);
  return discrete::stack(evaluator, pointers);
}

std::vector<Ciphertext> brought_alike(const discrete::Evaluator& evaluator,
                                      std::vector<Ciphertext> parts) {
  if (alike(parts)) return parts;
  std::vector<std::size_t> batches;
  for (const Ciphertext& x : parts) batches.push_back(x.batch());
  return discrete::split(evaluator, joined(evaluator, parts), batches);
}

DiscreteEngine make_discrete_engine(const discrete::ParamsPtr& params, const std::string& device,
                                    int threads, bool trace, const backend::Variants& variants,
                                    bool dry) {
  DiscreteEngine made;
  made.params = params;
  made.checkpoints = std::make_shared<Checkpoints>();
  const Checkpoint checkpoint = [signals = interrupts(), checkpoints = made.checkpoints] {
    signals();
    (*checkpoints)();
  };
  if (dry && device == "dry") {
    made.ring = discrete::make_dry_ring(*params, checkpoint);
  } else {
    made.ring = discrete::make_ring(*params, device, threads == 0 ? default_threads() : threads,
                                    variants, checkpoint);
  }
  made.engine = made.ring->engine().name();
  if (trace) {
    made.trace = std::make_shared<backend::Trace>(commit());
    made.ring = traced(made.ring, *params, made.trace);
  }
  made.shared = discrete::Engine::make(params, made.ring);
  made.probe = std::make_shared<const device::Buffer>(made.ring->scratch(64));
  return made;
}

namespace {

class DiscreteCore : public DiscreteEvaluator {
 public:
  DiscreteCore(const DiscreteParams& params, std::optional<DiscreteKeys> keys,
               const std::string& device, int threads, bool trace,
               const backend::Variants& variants)
      : DiscreteCore(make_discrete_engine(params.ptr, device, threads, trace, variants),
                     std::move(keys)) {}

  /// An evaluator that finds out which keys a computation uses. keys: an empty set of the client's.
  static DiscreteCore recording(const DiscreteKeys& keys, const std::string& device, int threads) {
    const nb::gil_scoped_release release;
    auto server = std::make_shared<DiscreteServer>(
        make_discrete_engine(keys.params, device, threads, /*trace=*/false, {}, /*dry=*/true));
    server->recorder = std::make_shared<rlwe::KeyRecorder>();
    server->evaluator = std::make_shared<const discrete::Evaluator>(
        server->shared, keys.ptr->key_id, server->recorder);
    return DiscreteCore(std::move(server));
  }
  DiscreteCore with_keys(std::optional<DiscreteKeys> keys) const {
    return {static_cast<const DiscreteEngine&>(*server), std::move(keys)};
  }

  std::size_t key_bytes() const { return core().key_bytes(); }
  nb::object exchange_checkpoint(nb::object function) const {
    return server->checkpoints->exchange(std::move(function));
  }
  DiscreteDemand demand() const {
    require<InternalError>(server->recorder != nullptr,
                           "this evaluator does not write down the keys that it uses");
    return {server->recorder->demand(), server->params};
  }
  std::string engine() const { return server->engine; }
  int threads() const { return server->ring->engine().threads(); }
  std::optional<Trace> trace() const {
    if (server->trace == nullptr) return std::nullopt;
    return Trace{server->trace};
  }
  void synchronize() const { server->synchronize(); }
  nb::dict counters() const {
    const Counters& n = *server->counters;
    const device::Pool& pool = *server->ring->engine().pool();
    nb::dict out;
    for (const auto& [name, number] : {
             std::pair{"additions", n.additions.load()},
             {"products", n.products.load()},
             {"plain_products", n.plain_products.load()},
             {"rotations", n.rotations.load()},
             {"programs", n.programs.load()},
             {"copies_to_device", n.copies_to_device.load()},
             {"copies_to_host", n.copies_to_host.load()},
             {"fallbacks", n.fallbacks.load()},
             {"bytes_in_use", std::uint64_t{pool.bytes_in_use()}},
             {"bytes_cached", std::uint64_t{pool.bytes_cached()}},
             {"bytes_peak", std::uint64_t{pool.peak_bytes()}},
         }) {
      out[name] = number;
    }
    return out;
  }

  void check(const DiscreteArray& a) const {
    require_same(*server->params, *a.block.params, "the ciphertext is");
    core().check(a.block);
  }
  bool on_host() const { return server->on_host(); }
  bool is_here(const DiscreteArray& a) const { return core().is_here(a.block); }
  DiscreteArray bring(const DiscreteArray& a) const {
    count(server->counters->copies_to_device);
    return {core().bring(a.block), a.view, a.padded};
  }
  DiscreteArray send_back(const DiscreteArray& a) const {
    count(server->counters->copies_to_host);
    return {core().send_back(a.block), a.view, a.padded};
  }

  DiscreteArray add(const DiscreteArray& a, const DiscreteArray& b, bool wrap) const {
    return counted(&Counters::additions, core().add(a.block, b.block, overflow_of(wrap)));
  }
  DiscreteArray sub(const DiscreteArray& a, const DiscreteArray& b, bool wrap) const {
    return counted(&Counters::additions, core().sub(a.block, b.block, overflow_of(wrap)));
  }
  DiscreteArray negate(const DiscreteArray& a, bool wrap) const {
    return array_of(core().negate(a.block, overflow_of(wrap)));
  }
  DiscreteArray add_number(const DiscreteArray& a, std::int64_t b, bool wrap) const {
    return counted(&Counters::additions, core().add_integer(a.block, b, overflow_of(wrap)));
  }
  DiscreteArray multiply_number(const DiscreteArray& a, std::int64_t b, bool wrap) const {
    return counted(&Counters::plain_products,
                   core().multiply_integer(a.block, b, overflow_of(wrap)));
  }
  /// The sum with numbers in the clear or, with subtract, the difference.
  DiscreteArray add_array(const DiscreteArray& a, const Numbers& values, bool subtract,
                          bool wrap) const {
    const std::span<const std::int64_t> numbers(values.data(), values.size());
    const nb::gil_scoped_release release;
    const discrete::Plaintext b = encoded(numbers, values.shape(0), a, wrap);
    return counted(&Counters::additions, subtract
                                             ? core().sub_plain(a.block, b, overflow_of(wrap))
                                             : core().add_plain(a.block, b, overflow_of(wrap)));
  }
  DiscreteArray multiply_array(const DiscreteArray& a, const Numbers& values, bool wrap) const {
    const std::span<const std::int64_t> numbers(values.data(), values.size());
    const nb::gil_scoped_release release;
    const discrete::Plaintext b = encoded(numbers, values.shape(0), a, wrap);
    return counted(&Counters::plain_products, core().multiply_plain(a.block, b, overflow_of(wrap)));
  }
  DiscreteArray multiply(const DiscreteArray& a, const DiscreteArray& b, bool wrap) const {
    return counted(&Counters::products, core().multiply(a.block, b.block, overflow_of(wrap)));
  }

  /// The same numbers, of which each is a sum of `count` numbers of `like`. At most `terms` of the
  /// addends of an element are not zero, so that the sum has the range of so many. Slots that hold
  /// no element, above all the row behind an odd number of rows, may hold other numbers.
  DiscreteArray bounded(const DiscreteArray& a, const DiscreteArray& like, std::size_t count,
                        std::size_t terms) const {
    Range of = like.block.estimate.range;
    if (of.wraps) return array_of(core().copy(a.block));
    if (terms < count) of = core().noise().cover(of, core().noise().range(0, 0));
    const Range range = core().noise().sum(of, std::min(count, terms), Overflow::refuse);
    return array_of(within(a.block, range));
  }
  void check_range(std::int64_t low, std::int64_t high) const { core().noise().range(low, high); }
  void check_sum(const DiscreteArray& a, std::size_t count) const {
    core().noise().sum(a.block.estimate.range, count, Overflow::refuse);
  }
  /// The same numbers with a range that the caller knows.
  DiscreteArray with_range(const DiscreteArray& a, std::int64_t low, std::int64_t high) const {
    const Range range = core().noise().range(low, high);
    return {within(a.block, range), a.view, a.padded};
  }
  /// The same numbers, taken for residues.
  DiscreteArray as_residues(const DiscreteArray& a) const {
    Ciphertext out = core().copy(a.block);
    out.estimate = core().noise().as_residues(a.block.estimate);
    return {std::move(out), a.view, a.padded};
  }

  DiscreteArray rotate_rows(const DiscreteArray& a, int steps) const {
    return counted(&Counters::rotations, rlwe::composed_rotate(core(), a.block, steps));
  }
  DiscreteArray swap_rows(const DiscreteArray& a) const {
    return counted(&Counters::rotations, core().swap_rows(a.block));
  }
  DiscreteArray drop_to(const DiscreteArray& a, int level) const {
    const int at = checked_level(*server->params, level);
    return {core().drop_to(a.block, at), a.view, a.padded};
  }
  /// The vectors with these numbers, of any of which there may be several.
  DiscreteArray vectors(const DiscreteArray& a, const std::vector<std::uint32_t>& which) const {
    std::vector<Ciphertext> parts;
    for (std::size_t i = 0; i < which.size();) {
      std::size_t n = 1;  // of neighbours
      while (i + n < which.size() && which[i + n] == which[i] + n) ++n;
      parts.push_back(core().vectors(a.block, which[i], n));
      i += n;
    }
    return array_of(joined(core(), parts));
  }
  /// The vectors of all, one after the other. They are brought to the lowest level.
  DiscreteArray stack(const std::vector<const DiscreteArray*>& inputs) const {
    std::vector<Ciphertext> parts;
    for (const DiscreteArray* a : inputs) parts.push_back(core().copy(a->block));
    return array_of(joined(core(), parts));
  }
  DiscreteArray with_view(const DiscreteArray& a, const std::optional<ViewTuple>& view,
                          bool padded) const {
    return {core().copy(a.block), view, padded};
  }
  double noise_budget(const DiscreteArray& a) const { return core().noise_budget(a.block); }

 private:
  DiscreteCore(const DiscreteEngine& engine, std::optional<DiscreteKeys> keys)
      : DiscreteCore(build(engine, std::move(keys))) {}
  explicit DiscreteCore(std::shared_ptr<const DiscreteServer> of) { server = std::move(of); }

  static std::shared_ptr<const DiscreteServer> build(const DiscreteEngine& engine,
                                                     std::optional<DiscreteKeys> keys) {
    auto made = std::make_shared<DiscreteServer>(engine);
    std::shared_ptr<const rlwe::EvaluationKeys> held;
    if (keys) {
      require_same(*engine.params, *keys->params, "the evaluation keys are");
      held = keys->ptr;
    } else {
      auto none = std::make_shared<rlwe::EvaluationKeys>();
      none->params = engine.params;
      held = std::move(none);
    }
    made->evaluator = std::make_shared<const discrete::Evaluator>(
        engine.shared, held, [counters = made->counters](int steps, std::size_t parts) {
          jali::python::count(counters->fallbacks);
          const nb::gil_scoped_acquire gil;
          log_info("rotation of rows by %d has no key of its own: composed of %d rotations", steps,
                   parts);
        });
    return made;
  }

  const discrete::Evaluator& core() const { return *server->evaluator; }
  static void count(Counters::Count& of) { jali::python::count(of); }
  DiscreteArray counted(Counters::Count Counters::* of, Ciphertext block) const {
    count((*server->counters).*of);
    return array_of(std::move(block));
  }
  discrete::Plaintext encoded(std::span<const std::int64_t> numbers, std::size_t batch,
                              const DiscreteArray& beside, bool wrap) const {
    const bool modulo = wrap || beside.block.estimate.range.wraps;
    return core().encoder().encode_clear(numbers, batch, overflow_of(modulo));
  }
  Ciphertext within(const Ciphertext& a, const Range& range) const {
    Ciphertext out = core().copy(a);
    out.estimate = core().noise().within(a.estimate, range);
    return out;
  }
};

}  // namespace

void bind_discrete_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<DiscreteEvaluator>(m, "EvaluatorBase", "What captured functions need of it.");
  nb::class_<DiscreteCore, DiscreteEvaluator>(m, "EvaluatorCore", "See jali.discrete.Evaluator.")
      .def(nb::init<const DiscreteParams&, std::optional<DiscreteKeys>, const std::string&, int,
                    bool, const backend::Variants&>(),
           "params"_a, "keys"_a.none(), "device"_a, "threads"_a, "trace"_a, "variants"_a, nogil())
      .def("with_keys", &DiscreteCore::with_keys, "keys"_a.none(), nogil())
      .def_static("recording", &DiscreteCore::recording, "keys"_a, "device"_a, "threads"_a)
      .def_prop_ro("demand", &DiscreteCore::demand, "The keys that were used so far.")
      .def_prop_ro("key_bytes", &DiscreteCore::key_bytes,
                   "The bytes of its keys in the memory of the device.")
      .def("exchange_checkpoint", &DiscreteCore::exchange_checkpoint, "function"_a.none())
      .def_prop_ro("engine", &DiscreteCore::engine, "Backend and instruction set.")
      .def_prop_ro("threads", &DiscreteCore::threads,
                   "The number of threads that it computes with.")
      .def_prop_ro("trace", &DiscreteCore::trace, "The record of operations, or None.")
      .def("synchronize", &DiscreteCore::synchronize, nogil())
      .def("counters", &DiscreteCore::counters, nb::sig("def counters(self) -> dict[str, int]"),
           "See jali.discrete.Evaluator.counters.")
      .def("check", &DiscreteCore::check, "a"_a)
      .def_prop_ro("on_host", &DiscreteCore::on_host,
                   "Whether the device shares the host's memory.")
      .def("is_here", &DiscreteCore::is_here, "a"_a)
      .def("bring", &DiscreteCore::bring, "a"_a, nogil())
      .def("send_back", &DiscreteCore::send_back, "a"_a, nogil())
      .def("add", &DiscreteCore::add, "a"_a, "b"_a, "wrap"_a = false, nogil())
      .def("sub", &DiscreteCore::sub, "a"_a, "b"_a, "wrap"_a = false, nogil())
      .def("negate", &DiscreteCore::negate, "a"_a, "wrap"_a = false, nogil())
      .def("add_number", &DiscreteCore::add_number, "a"_a, "b"_a, "wrap"_a = false, nogil())
      .def("multiply_number", &DiscreteCore::multiply_number, "a"_a, "b"_a, "wrap"_a = false,
           nogil())
      .def("add_array", &DiscreteCore::add_array, "a"_a, "values"_a, "subtract"_a = false,
           "wrap"_a = false,
           nb::sig("def add_array(self, a: Ciphertext, values: numpy.typing.NDArray[numpy.int64], "
                   "subtract: bool = False, wrap: bool = False) -> Ciphertext"))
      .def("multiply_array", &DiscreteCore::multiply_array, "a"_a, "values"_a, "wrap"_a = false,
           nb::sig("def multiply_array(self, a: Ciphertext, values: "
                   "numpy.typing.NDArray[numpy.int64], wrap: bool = False) -> Ciphertext"))
      .def("multiply", &DiscreteCore::multiply, "a"_a, "b"_a, "wrap"_a = false, nogil())
      .def("bounded", &DiscreteCore::bounded, "a"_a, "like"_a, "count"_a, "terms"_a, nogil())
      .def("check_range", &DiscreteCore::check_range, "low"_a, "high"_a,
           "Raises RangeExceeded unless the modulus tells so many numbers apart.")
      .def("check_sum", &DiscreteCore::check_sum, "a"_a, "count"_a,
           "Raises RangeExceeded unless a sum of so many of its numbers fits.")
      .def("with_range", &DiscreteCore::with_range, "a"_a, "low"_a, "high"_a, nogil())
      .def("as_residues", &DiscreteCore::as_residues, "a"_a, nogil())
      .def("rotate_rows", &DiscreteCore::rotate_rows, "a"_a, "steps"_a, nogil())
      .def("swap_rows", &DiscreteCore::swap_rows, "a"_a, nogil())
      .def("drop_to", &DiscreteCore::drop_to, "a"_a, "level"_a, nogil())
      .def("vectors", &DiscreteCore::vectors, "a"_a, "which"_a, nogil())
      .def("stack", &DiscreteCore::stack, "inputs"_a, nogil())
      .def("with_view", &DiscreteCore::with_view, "a"_a, "view"_a.none(), "padded"_a, nogil())
      .def("noise_budget", &DiscreteCore::noise_budget, "a"_a);
}

}  // namespace jali::python
