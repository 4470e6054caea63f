// Captured functions and batchers: functions of Python that the core records and repeats.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "here.h"

namespace jali::python {

using namespace nb::literals;
using ckks::Ciphertext;

namespace {

using Function = nb::typed<nb::callable, nb::object(...)>;

/// A callable of Python that any thread may drop.
class Callback {
 public:
  explicit Callback(nb::callable function) : function_(std::move(function)) {}
  ~Callback() {
    nb::gil_scoped_acquire gil;
    function_.reset();
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  /// Calls the function with a list of ciphertexts; it returns a list of ciphertexts. Both are copies, because Python may
  /// keep them.
  std::vector<Ciphertext> operator()(const ckks::Evaluator& evaluator,
                                     std::span<const Ciphertext> inputs) const {
    nb::gil_scoped_acquire gil;
    nb::list arguments;
    for (const Ciphertext& a : inputs) arguments.append(nb::cast(evaluator.copy(a)));
    const nb::object results = function_(arguments);
    std::vector<Ciphertext> out;
    for (nb::handle result : results) {
      out.push_back(evaluator.copy(nb::cast<const Ciphertext&>(result)));
    }
    return out;
  }

  /// For Python's garbage collector: a function may refer, through its globals, to the object that holds it.
  PyObject* function() const { return function_.ptr(); }
  void drop() { function_.reset(); }

 private:
  nb::callable function_;
};

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<T>(self)->callback().function());
  return 0;
}
template <class T>
int clear(PyObject* self) {
  nb::inst_ptr<T>(self)->callback().drop();
  return 0;
}
template <class T>
PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear<T>)},
                       {0, nullptr}};

class Captured {
 public:
  Captured(const Explicit& e, Function function, const std::vector<const Ciphertext*>& examples)
      : evaluator_(e.server->evaluator),
        callback_(std::make_shared<Callback>(std::move(function))) {
    nb::gil_scoped_release release;
    captured_ = std::make_unique<ckks::Program>(
        evaluator_,
        [callback = callback_, evaluator = evaluator_.get()](std::span<const Ciphertext> inputs) {
          return (*callback)(*evaluator, inputs);
        },
        examples);
  }
  std::vector<Ciphertext> run(const std::vector<const Ciphertext*>& inputs) const {
    return captured_->run(inputs);
  }
  std::size_t bytes() const { return captured_->bytes(); }
  Callback& callback() { return *callback_; }

 private:
  std::shared_ptr<const ckks::Evaluator> evaluator_;
  std::shared_ptr<Callback> callback_;
  std::unique_ptr<ckks::Program> captured_;
};

/// If a smaller batch may help against the error, throws it as an error of the core, so that its Batcher tries one.
/// Otherwise it does nothing.
void rethrow_too_large(const nb::python_error& error) {
  const nb::object unsupported = nb::module_::import_("jali.errors").attr("Unsupported");
  const auto message = [&] { return std::string(nb::str(error.value()).c_str()); };
  if (error.matches(PyExc_MemoryError)) throw OutOfMemory(message());
  if (error.matches(unsupported)) throw Unsupported(message());
}

class Batcher {
 public:
  Batcher(const Explicit& e, Function function, std::size_t max_batch)
      : callback_(std::make_shared<Callback>(std::move(function))) {
    const auto evaluator = e.server->evaluator;
    batcher_ = std::make_unique<ckks::Batcher>(
        evaluator,
        [callback = callback_, evaluator](const Ciphertext& input) {
          auto results = [&] {
            try {
              return (*callback)(*evaluator, std::span(&input, 1));
            } catch (const nb::python_error& error) {
              nb::gil_scoped_acquire gil;
              rethrow_too_large(error);
              throw;
            }
          }();
          require<InvalidArgument>(results.size() == 1,
                                   "a batched function must return one ciphertext");
          return std::move(results[0]);
        },
        max_batch);
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
  nb::class_<Captured>(m, "CapturedCore", nb::type_slots(slots<Captured>),
                       "See jali.ckks.Captured.")
      .def(nb::init<const Explicit&, Function, const std::vector<const Ciphertext*>&>(),
           "evaluator"_a, "function"_a, "examples"_a)
      .def("run", &Captured::run, "inputs"_a, nogil())
      .def_prop_ro("nbytes", &Captured::bytes, "Bytes of device memory that it keeps.");
  nb::class_<Batcher>(m, "BatcherCore", nb::type_slots(slots<Batcher>), "See jali.ckks.Batcher.")
      .def(nb::init<const Explicit&, Function, std::size_t>(), "evaluator"_a, "function"_a,
           "max_batch"_a)
      .def("run", &Batcher::run, "inputs"_a, nogil())
      .def_prop_ro("batch", &Batcher::batch, "The batch in use; 0 before the first run.")
      .def("curve", &Batcher::curve,
           "What was measured: (batch, seconds for each ciphertext, bytes).");
}

}  // namespace jali::python
