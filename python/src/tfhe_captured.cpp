// Captured functions of TFHE: functions of Python that the core records and repeats.
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "callback.h"
#include "jali/base/error.h"
#include "jali/schemes/tfhe/program.h"
#include "tfhe_evaluator.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using Function = nb::typed<nb::callable, nb::object(...)>;

/// What an array is beside its ciphertexts.
TfheArray layout_of(const TfheArray& a) { return {{}, a.shape, a.bits, a.is_signed}; }
TfheArray with_layout(const TfheArray& layout, tfhe::Ciphertext block) {
  return {std::move(block), layout.shape, layout.bits, layout.is_signed};
}

class TfheCaptured {
 public:
  TfheCaptured(const TfheEvaluator& e, Function function, const std::vector<TfheArray>& examples)
      : callback_(std::make_shared<Callback>(std::move(function))) {
    std::vector<const tfhe::Ciphertext*> blocks;
    for (const TfheArray& example : examples) {
      blocks.push_back(&example.block);
      inputs_.push_back(layout_of(example));
    }
    nb::gil_scoped_release release;
    program_ = std::make_unique<tfhe::Program>(
        e.shared(),
        [this, evaluator = e.shared().get()](std::span<const tfhe::Ciphertext> inputs) {
          return call(*evaluator, inputs);
        },
        blocks);
  }

  std::vector<TfheArray> run(const std::vector<TfheArray>& inputs) const {
    std::vector<const tfhe::Ciphertext*> blocks;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      require<InvalidArgument>(
          i >= inputs_.size() ||
              (inputs[i].shape == inputs_[i].shape && inputs[i].bits == inputs_[i].bits &&
               inputs[i].is_signed == inputs_[i].is_signed),
          [&] {
            return "input " + std::to_string(i) +
                   " of the captured function has another shape or type than its example: capture "
                   "the function for such inputs";
          });
      blocks.push_back(&inputs[i].block);
    }
    std::vector<TfheArray> out;
    for (tfhe::Ciphertext& block : program_->run(blocks)) {
      out.push_back(with_layout(results_[out.size()], std::move(block)));
    }
    return out;
  }
  std::size_t bytes() const { return program_->bytes(); }
  Callback& callback() { return *callback_; }

 private:
  /// Calls the function with copies and keeps copies, because Python may keep what it sees.
  std::vector<tfhe::Ciphertext> call(const tfhe::Evaluator& evaluator,
                                     std::span<const tfhe::Ciphertext> inputs) {
    nb::gil_scoped_acquire gil;
    nb::list arguments;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arguments.append(nb::cast(with_layout(inputs_[i], evaluator.copy(inputs[i]))));
    }
    const nb::object results = (*callback_)(arguments);
    std::vector<tfhe::Ciphertext> out;
    std::vector<TfheArray> layouts;
    for (nb::handle result : results) {
      const auto& array = nb::cast<const TfheArray&>(result);
      out.push_back(evaluator.copy(array.block));
      layouts.push_back(layout_of(array));
    }
    if (!recorded_) {
      results_ = std::move(layouts);
      recorded_ = true;
    }
    require<InvalidArgument>(
        out.size() == results_.size(),
        "a captured function must give as many results at every call: let nothing outside decide");
    return out;
  }

  std::shared_ptr<Callback> callback_;
  std::vector<TfheArray> inputs_, results_;  // without ciphertexts
  bool recorded_ = false;  // results_ are known
  std::unique_ptr<tfhe::Program> program_;
};

}  // namespace

void bind_tfhe_captured(nb::module_& m) {
  nb::class_<TfheCaptured>(m, "CapturedCore", nb::type_slots(callback_slots<TfheCaptured>),
                           "See jali.tfhe.Captured.")
      .def(nb::init<const TfheEvaluator&, Function, const std::vector<TfheArray>&>(), "evaluator"_a,
           "function"_a, "examples"_a)
      .def("run", &TfheCaptured::run, "inputs"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("nbytes", &TfheCaptured::bytes, "Bytes of device memory that it keeps.");
}

}  // namespace jali::python
