// Functions of Python that objects of the core hold.
#pragma once

#include <utility>

#include "binding.h"

namespace jali::python {

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

  /// Needs the GIL.
  nb::object operator()(const nb::list& arguments) const { return function_(arguments); }

  /// For Python's garbage collector: a function may refer, through its globals, to the object that
  /// holds it.
  PyObject* function() const { return function_.ptr(); }
  void drop() { function_.reset(); }

 private:
  nb::callable function_;
};

/// Slots by which the collector sees the callback() of a T.
template <class T>
int traverse_callback(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<T>(self)->callback().function());
  return 0;
}
template <class T>
int clear_callback(PyObject* self) {
  nb::inst_ptr<T>(self)->callback().drop();
  return 0;
}
template <class T>
inline PyType_Slot callback_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_callback<T>)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_callback<T>)},
    {0, nullptr}};

}  // namespace jali::python
