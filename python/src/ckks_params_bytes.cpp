#include "binding.h"
#include "bytes.h"
#include "checked.h"
#include "ckks_params.h"
#include "files.h"
#include "jali/wire/ckks.h"

namespace jali::python {

namespace {

wire::Limits params_limits(int security, double log2_p_fail, bool search) {
  wire::Limits limits;
  limits.min_security = security;
  limits.max_log2_p_fail = log2_p_fail;
  limits.search = search;
  return limits;
}

}  // namespace

void bind_params_bytes(nb::class_<Params>& type) {
  const auto bytes = [](const Params& p) { return wire::to_bytes(*p.ptr); };
  add_to_bytes(type, bytes,
               "Bytes from which from_bytes makes the same parameters on any machine.");
  add_save(type, bytes);
  type.def_static(
          "from_bytes",
          checked({"Params.from_bytes",
                   1,
                   {{"data"},
                    {"security", nb::int_(128)},
                    {"log2_p_fail", nb::float_(0.0)},
                    {"search", nb::bool_(false)}}},
                  [](nb::handle data, int security, double log2_p_fail, bool search) {
                    const BytesView view(data);
                    nb::gil_scoped_release release;
                    return Params(wire::params_from_bytes(
                        view.span(), params_limits(security, log2_p_fail, search)));
                  }),
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, security: int = 128, "
                  "log2_p_fail: float = 0.0, search: bool = False) -> Params"),
          R"(The parameters that to_bytes wrote, on any machine, in milliseconds.

security: the least security that is accepted, 128, 192 or 256 bits. 0 also accepts insecure parameters for experiments.
log2_p_fail: the largest log2_bootstrap_failure that is accepted, e.g. -128. 0 accepts any.
search: older bytes may lack the levels that a search found. True runs the search again, which may take minutes, so it is
    for bytes of your own.

Raises InsecureParams for less than is demanded, and CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
that to_bytes did not make.)")
      .def_static(
          "load",
          checked({"Params.load",
                   1,
                   {{"file"},
                    {"security", nb::int_(128)},
                    {"log2_p_fail", nb::float_(0.0)},
                    {"search", nb::bool_(false)}}},
                  [](nb::handle file, int security, double log2_p_fail, bool search) {
                    const wire::Limits limits = params_limits(security, log2_p_fail, search);
                    return Params(load_from(
                        file, [&](auto bytes) { return wire::params_from_bytes(bytes, limits); },
                        [&](const wire::Source& source) {
                          return wire::params_from_bytes(wire::read_object(source, limits), limits);
                        }));
                  }),
          nb::sig("def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, *, "
                  "security: int = 128, log2_p_fail: float = 0.0, search: bool = False) -> "
                  "Params"),
          "Read what save wrote, from a path, a file opened with \"rb\", or bytes. The other "
          "arguments and the errors are those of from_bytes, and FileError.")
      .def(
          "__copy__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __copy__(self) -> Params"))
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); },
          nb::sig("def __deepcopy__(self, memo: object, /) -> Params"))
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(nb::module_::import_("jali.ckks.pickled").attr("params"),
                                  nb::make_tuple(self.attr("to_bytes")()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace jali::python
