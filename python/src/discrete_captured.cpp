// Captured functions and batchers of exact integers: functions of Python that the core records, or
// applies to batches.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batched.h"
#include "callback.h"
#include "discrete.h"
#include "discrete_evaluator.h"
#include "jali/schemes/discrete/batcher.h"
#include "jali/schemes/discrete/program.h"

namespace jali::python {

using namespace nb::literals;
using discrete::Ciphertext;

namespace {

using Function = nb::typed<nb::callable, nb::object(...)>;

/// Where the elements of an array lie.
struct Place {
  std::optional<ViewTuple> view;
  bool padded = false;
};

/// Whether a function that was recorded for an array that lies as `example` is right for this one.
/// It may rely on zeros beside the elements.
bool lies_like(const DiscreteArray& a, const Place& example) {
  return a.view == example.view && (a.padded || !example.padded);
}

class DiscreteCaptured {
 public:
  DiscreteCaptured(const DiscreteEvaluator& e, Function function,
                   const std::vector<const DiscreteArray*>& examples)
      : server_(e.server),
        callback_(std::make_shared<Callback>(std::move(function))),
        results_(std::make_shared<std::vector<Place>>()) {
    const nb::gil_scoped_release release;
    std::vector<const Ciphertext*> blocks;
    for (const DiscreteArray* a : examples) {
      blocks.push_back(&a->block);
      inputs_.push_back({a->view, a->padded});
    }
    captured_ = std::make_unique<discrete::Program>(
        server_->evaluator,
        [callback = callback_, evaluator = server_->evaluator.get(), places = inputs_,
         results = results_](std::span<const Ciphertext> inputs) {
          const nb::gil_scoped_acquire gil;
          nb::list arguments;
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            // Python may keep what it is called with, and a later run overwrites the inputs.
            arguments.append(nb::cast(
                DiscreteArray{evaluator->copy(inputs[i]), places[i].view, places[i].padded}));
          }
          const nb::object out = (*callback)(arguments);
          std::vector<Ciphertext> made;
          std::vector<Place> lie;
          for (nb::handle result : out) {
            const auto& a = nb::cast<const DiscreteArray&>(result);
            made.push_back(evaluator->copy(a.block));
            lie.push_back({a.view, a.padded});
          }
          if (results->empty()) *results = std::move(lie);  // a function does the same every time
          return made;
        },
        blocks);
  }

  std::vector<DiscreteArray> run(const std::vector<const DiscreteArray*>& inputs) const {
    std::vector<const Ciphertext*> blocks;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      require<InvalidArgument>(i >= inputs_.size() || lies_like(*inputs[i], inputs_[i]), [&] {
        return "input " + std::to_string(i) +
               " lies in its slots otherwise than the example did: encrypt both in one shape, and "
               "record slices by themselves";
      });
      blocks.push_back(&inputs[i]->block);
    }
    std::vector<Ciphertext> out = captured_->run(blocks);
    count(server_->counters->programs);
    std::vector<DiscreteArray> arrays;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Place& place = (*results_)[i];
      arrays.push_back({std::move(out[i]), place.view, place.padded});
    }
    return arrays;
  }
  std::size_t bytes() const { return captured_->bytes(); }
  Callback& callback() { return *callback_; }

 private:
  std::shared_ptr<const DiscreteServer> server_;
  std::shared_ptr<Callback> callback_;
  std::vector<Place> inputs_;
  std::shared_ptr<std::vector<Place>> results_;
  std::unique_ptr<discrete::Program> captured_;
};

/// Its function gets the vectors of a batch, and returns a ciphertext of as many. Python knows
/// where elements lie in them.
class DiscreteBatcher {
 public:
  DiscreteBatcher(const DiscreteEvaluator& e, Function function, std::size_t max_batch)
      : evaluator_(e.server->evaluator),
        callback_(std::make_shared<Callback>(std::move(function))) {
    batcher_ = std::make_unique<discrete::Batcher>(
        evaluator_,
        [callback = callback_, evaluator = evaluator_](const Ciphertext& input) {
          const nb::gil_scoped_acquire gil;
          try {
            nb::list arguments;
            arguments.append(nb::cast(DiscreteArray{evaluator->copy(input), std::nullopt, false}));
            const nb::object result = (*callback)(arguments);
            return evaluator->copy(nb::cast<const DiscreteArray&>(result).block);
          } catch (const nb::python_error& error) {
            rethrow_too_large(error);
            throw;
          }
        },
        max_batch, 0, tells_smaller(e.server->counters));
  }

  std::vector<DiscreteArray> run(const std::vector<const DiscreteArray*>& inputs) const {
    std::vector<Ciphertext> alike;
    for (const DiscreteArray* a : inputs) alike.push_back(evaluator_->copy(a->block));
    alike = brought_alike(*evaluator_, std::move(alike));
    std::vector<const Ciphertext*> blocks;
    for (const Ciphertext& x : alike) blocks.push_back(&x);
    std::vector<DiscreteArray> arrays;
    for (Ciphertext& out : batcher_->run(blocks)) {
      arrays.push_back({std::move(out), std::nullopt, false});
    }
    return arrays;
  }
  std::size_t batch() const { return batcher_->batch(); }
  std::vector<std::tuple<std::size_t, double, std::size_t>> curve() const {
    std::vector<std::tuple<std::size_t, double, std::size_t>> out;
    for (const auto& p : batcher_->curve()) out.emplace_back(p.batch, p.seconds, p.bytes);
    return out;
  }
  Callback& callback() { return *callback_; }

 private:
  std::shared_ptr<const discrete::Evaluator> evaluator_;
  std::shared_ptr<Callback> callback_;
  std::unique_ptr<discrete::Batcher> batcher_;
};

}  // namespace

void bind_discrete_captured(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<DiscreteCaptured>(m, "CapturedCore", nb::type_slots(callback_slots<DiscreteCaptured>),
                               "See jali.discrete.Captured.")
      .def(nb::init<const DiscreteEvaluator&, Function, const std::vector<const DiscreteArray*>&>(),
           "evaluator"_a, "function"_a, "examples"_a)
      .def("run", &DiscreteCaptured::run, "inputs"_a, nogil())
      .def_prop_ro("nbytes", &DiscreteCaptured::bytes, "Bytes of device memory that it keeps.");
  nb::class_<DiscreteBatcher>(m, "BatcherCore", nb::type_slots(callback_slots<DiscreteBatcher>),
                              "See jali.discrete.Batcher.")
      .def(nb::init<const DiscreteEvaluator&, Function, std::size_t>(), "evaluator"_a, "function"_a,
           "max_batch"_a)
      .def("run", &DiscreteBatcher::run, "inputs"_a, nogil())
      .def_prop_ro("batch", &DiscreteBatcher::batch, "The batch in use; 0 before the first run.")
      .def("curve", &DiscreteBatcher::curve,
           "What was measured: (batch, seconds for each ciphertext, bytes).");
}

}  // namespace jali::python
