// Translates C++ errors to those of jali.errors, by their code.
#include <exception>
#include <new>
#include <stdexcept>

#include "binding.h"

namespace jali::python {

namespace {

void raise(const char* code, const char* message) {
  nb::object error = nb::module_::import_("jali.errors").attr("from_code")(code, message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    raise(error_code_name(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    raise("out_of_memory",
          "the system has too little memory for this operation: free some, or use smaller "
          "parameters or batches");
  } catch (const std::logic_error& error) {
    // out_of_range, length_error and the like mean that the library lacks a check.
    raise("internal", error.what());
  }
}

}  // namespace

void register_errors(nb::module_& /*m*/) { nb::register_exception_translator(&translate); }

}  // namespace jali::python
