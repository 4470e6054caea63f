// The extension serves the main interpreter of a process, and refuses the others before anything is
// registered in them.
#pragma once

#include <nanobind/nanobind.h>

namespace jali::python {

/// An exec slot. The binding's types and the caches of nanobind are of one interpreter: initialised
/// in a second one, they would be lost to the first. Sets ImportError and returns -1 unless the
/// calling interpreter is the main one.
inline int require_main_interpreter(PyObject* /*module*/) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
  PyErr_SetString(
      PyExc_ImportError,
      "jali works in the main interpreter of a process, not in a subinterpreter: import it in "
      "the main interpreter and use its threads, or use processes (multiprocessing, "
      "concurrent.futures.ProcessPoolExecutor; with mod_wsgi WSGIApplicationGroup %{GLOBAL})");
  return -1;
}

/// The definition that a PyInit function returns, from that of NB_MODULE(inner). Python 3.11
/// and 3.12 call PyInit in the interpreter that imports, 3.13 and later in the main one, and then
/// the exec slots in the other: both are guarded.
template <class Init>
PyObject* only_in_the_main_interpreter(Init inner) {
  if (require_main_interpreter(nullptr) != 0) return nullptr;
  PyObject* made = inner();
  if (made == nullptr) return nullptr;
  constexpr int kMost = 16;  // slots of a definition; nanobind has four
  static PyModuleDef_Slot slots[kMost] = {};
  if (slots[0].slot == 0) {
    auto* definition = reinterpret_cast<PyModuleDef*>(made);
    slots[0] = {Py_mod_exec, reinterpret_cast<void*>(&require_main_interpreter)};
    for (int i = 0; definition->m_slots[i].slot != 0; ++i) {
      if (i + 2 >= kMost) {
        slots[0] = {0, nullptr};
        PyErr_SetString(PyExc_SystemError, "nanobind's definition of jali has too many slots");
        return nullptr;
      }
      slots[i + 1] = definition->m_slots[i];
    }
    definition->m_slots = slots;
  }
  return made;
}

}  // namespace jali::python
