// Captured functions and batchers: functions of Python that the core records and repeats.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "batched.h"
#include "callback.h"
#include "ckks_here.h"
#include "log.h"

namespace jali::python {

using namespace nb::literals;
using ckks::Ciphertext;

namespace {

using Function = nb::typed<nb::callable, nb::object(...)>;

/// Calls the function with a list of ciphertexts; it returns a list of ciphertexts, of which the
/// results are copies.
std::vector<Ciphertext> call(const Callback& function, const ckks::Evaluator& evaluator,
                             const nb::list& arguments) {
  const nb::object results = function(arguments);
  std::vector<Ciphertext> out;
  for (nb::handle result : results) {
    out.push_back(evaluator.copy(nb::cast<const Ciphertext&>(result)));
  }
  return out;
}

class Captured {
 public:
  Captured(const Explicit& e, Function function, const std::vector<const Ciphertext*>& examples)
      : server_(e.server), callback_(std::make_shared<Callback>(std::move(function))) {
    nb::gil_scoped_release release;
    const auto inputs = std::make_shared<std::vector<Ciphertext>>();
    for (const Ciphertext* a : examples) inputs->push_back(server_->evaluator->bring(*a));
    // Python may keep what it is called with. On a CPU it gets copies, because a later run
    // overwrites the inputs. On a GPU a copy would belong to the recorded graph, and be
    // overwritten, too: so Python shares the inputs, and their memory is not taken twice.
    const bool share = !server_->ring->memory().host_accessible();
    captured_ = std::make_unique<ckks::Program>(
        server_->evaluator,
        [callback = callback_, evaluator = server_->evaluator.get(), inputs,
         share](std::span<const Ciphertext>) {
          const nb::gil_scoped_acquire gil;
          nb::list arguments;
          for (Ciphertext& a : *inputs) {
            arguments.append(share ? nb::cast(std::shared_ptr<Ciphertext>(inputs, &a))
                                   : nb::cast(evaluator->copy(a)));
          }
          return call(*callback, *evaluator, arguments);
        },
        inputs);
  }
  std::vector<Ciphertext> run(const std::vector<const Ciphertext*>& inputs) const {
    std::vector<Ciphertext> out = captured_->run(inputs);
    count(server_->counters->programs);
    return out;
  }
  std::size_t bytes() const { return captured_->bytes(); }
  Callback& callback() { return *callback_; }

 private:
  std::shared_ptr<const Server> server_;
  std::shared_ptr<Callback> callback_;
  std::unique_ptr<ckks::Program> captured_;
};

class Batcher {
 public:
  Batcher(const Explicit& e, Function function, std::size_t max_batch)
      : callback_(std::make_shared<Callback>(std::move(function))) {
    const auto evaluator = e.server->evaluator;
    batcher_ = std::make_unique<ckks::Batcher>(
        evaluator,
        [callback = callback_, evaluator](const Ciphertext& input) {
          auto results = [&] {
            const nb::gil_scoped_acquire gil;
            try {
              nb::list arguments;
              arguments.append(nb::cast(evaluator->copy(input)));
              return call(*callback, *evaluator, arguments);
            } catch (const nb::python_error& error) {
              rethrow_too_large(error);
              throw;
            }
          }();
          require<InvalidArgument>(results.size() == 1,
                                   "a batched function must return one ciphertext");
          return std::move(results[0]);
        },
        max_batch, 0, tells_smaller(e.server->counters));
  }
  std::vector<Ciphertext> run(const std::vector<const Ciphertext*>& inputs) const {
    return batcher_->run(inputs);
  }
  std::size_t batch() const { return batcher_->batch(); }
  std::vector<std::tuple<std::size_t, double, std::size_t>> curve() const {
    std::vector<std::tuple<std::size_t, double, std::size_t>> out;
    for (const auto& p : batcher_->curve()) out.emplace_back(p.batch, p.seconds, p.bytes);
    return out;
  }
  Callback& callback() { return *callback_; }

 private:
  std::shared_ptr<Callback> callback_;
  std::unique_ptr<ckks::Batcher> batcher_;
};

}  // namespace

void bind_captured(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Captured>(m, "CapturedCore", nb::type_slots(callback_slots<Captured>),
                       "See jali.ckks.Captured.")
      .def(nb::init<const Explicit&, Function, const std::vector<const Ciphertext*>&>(),
           "evaluator"_a, "function"_a, "examples"_a)
      .def("run", &Captured::run, "inputs"_a, nogil())
      .def_prop_ro("nbytes", &Captured::bytes, "Bytes of device memory that it keeps.");
  nb::class_<Batcher>(m, "BatcherCore", nb::type_slots(callback_slots<Batcher>),
                      "See jali.ckks.Batcher.")
      .def(nb::init<const Explicit&, Function, std::size_t>(), "evaluator"_a, "function"_a,
           "max_batch"_a)
      .def("run", &Batcher::run, "inputs"_a, nogil())
      .def_prop_ro("batch", &Batcher::batch, "The batch in use; 0 before the first run.")
      .def("curve", &Batcher::curve,
           "What was measured: (batch, seconds for each ciphertext, bytes).");
}

}  // namespace jali::python
