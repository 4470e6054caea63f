// The extension module jali._jali.
#include "binding.h"
#include "checked.h"
#include "commit.h"
#include "discrete.h"
#include "discrete_matrix.h"
#include "files.h"
#include "jali/backend/engines.h"
#include "main_interpreter.h"
#include "tfhe.h"

namespace jali::python {

namespace {

nb::dict build_info() {
  nb::dict info;
  info["version"] = JALI_VERSION;
  info["commit"] = commit();
#if defined(__clang__)
  info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
  info["compiler"] = "gcc " __VERSION__;
#else
  info["compiler"] = "unknown";
#endif
  info["cuda"] = backend::has_cuda();
  info["hardened"] = JALI_HARDENED != 0;
#ifdef NDEBUG
  info["assertions"] = false;
#else
  info["assertions"] = true;
#endif
  return info;
}

}  // namespace

}  // namespace jali::python

NB_MODULE(jali_bindings, m) {
  using namespace jali::python;
  m.doc() = "The compiled core of Jali. Use the package jali, which wraps it.";
  register_errors(m);
  m.def("build_info", checked({"build_info", 0, {}}, &build_info),
        nb::sig("def build_info() -> dict[str, typing.Any]"),
        "Facts about this build: version, commit of the sources (\"unknown\" if they were no "
        "checkout), compiler, assertions, and "
        "whether it has the CUDA engine and guards stacks and buffers (hardened).");
  m.def("replace_file",
        checked({"replace_file", 2, {{"file"}, {"data"}}},
                [](nb::handle file, nb::handle data) {
                  const BytesView view(data);
                  save_to(file, [&](const jali::Sink& sink) { sink(view.span()); });
                }),
        nb::sig("def replace_file(file: str | os.PathLike[str] | typing.BinaryIO, "
                "data: bytes | bytearray | memoryview) -> None"),
        "Write bytes to a path, which is replaced at once or stays as it was, or to a file opened "
        "with \"wb\". Raises FileError. See base/replace_file.h.");
  m.def("check_replaceable",
        checked({"check_replaceable", 1, {{"file"}}},
                [](nb::handle file) { jali::check_replaceable(path_of(file, "a path")); }),
        nb::sig("def check_replaceable(file: str | os.PathLike[str]) -> None"),
        "Raises the FileError that replace_file raises before it writes, for callers that "
        "work long before they write.");
  nb::module_ device = m.def_submodule("device", "The devices of this machine.");
  bind_device(device);
  nb::module_ ckks = m.def_submodule("ckks", "Encrypted vectors of real and complex numbers.");
  bind_params(ckks);
  bind_trace(ckks);
  bind_values(ckks);
  bind_client(ckks);
  bind_explicit(ckks);
  bind_circuits(ckks);
  bind_polynomial(ckks);
  bind_functions(ckks);
  bind_engine(ckks);
  bind_evaluator(ckks);
  bind_captured(ckks);
  nb::module_ discrete =
      m.def_submodule("discrete", "Encrypted arrays of exact integers modulo a number.");
  bind_discrete_params(discrete);
  bind_discrete_values(discrete);
  bind_discrete_client(discrete);
  bind_discrete_evaluator(discrete);
  bind_discrete_captured(discrete);
  bind_discrete_matrix(discrete);
  nb::module_ program = m.def_submodule("program", "The client of a compiled program.");
  bind_program(program);
  bind_documents(program);
  nb::module_ tfhe = m.def_submodule(
      "tfhe", "Encrypted small integers and bits, exact, with any function by look-up.");
  bind_tfhe_params(tfhe);
  bind_tfhe_values(tfhe);
  bind_tfhe_public(tfhe);
  bind_tfhe_client(tfhe);
  bind_tfhe_evaluator(tfhe);
  bind_tfhe_integers(tfhe);
  bind_tfhe_captured(tfhe);
}

extern "C" NB_EXPORT PyObject* PyInit__jali() {
  return jali::python::only_in_the_main_interpreter(&PyInit_jali_bindings);
}
