// Captured functions of exact integers: functions of Python that the core records and repeats.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callback.h"
#include "discrete.h"
#include "discrete_evaluator.h"
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
      require<InvalidArgument>(i >= inputs_.size() || inputs[i]->view == inputs_[i].view, [&] {
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

}  // namespace

void bind_discrete_captured(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<DiscreteCaptured>(m, "CapturedCore", nb::type_slots(callback_slots<DiscreteCaptured>),
                               "See jali.discrete.Captured.")
      .def(nb::init<const DiscreteEvaluator&, Function, const std::vector<const DiscreteArray*>&>(),
           "evaluator"_a, "function"_a, "examples"_a)
      .def("run", &DiscreteCaptured::run, "inputs"_a, nogil())
      .def_prop_ro("nbytes", &DiscreteCaptured::bytes, "Bytes of device memory that it keeps.");
}

}  // namespace jali::python
