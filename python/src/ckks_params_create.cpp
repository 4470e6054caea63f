#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "arguments.h"
#include "binding.h"
#include "checked.h"
#include "ckks_params.h"
#include "interrupts.h"
#include "jali/params/ckks/presets.h"

namespace jali::python {

namespace {

std::optional<Word> parse_word(const std::string& text) {
  if (text == "auto") return std::nullopt;
  return parsed_word(text);
}

params::BootstrapOrder parse_order(const std::string& order) {
  if (order == "raise_first") return params::BootstrapOrder::raise_first;
  if (order == "slots_first") return params::BootstrapOrder::slots_first;
  throw InvalidArgument("unknown order \"" + order + "\": use \"raise_first\" or \"slots_first\"");
}

Params preset(const std::string& name, const std::string& word, const std::string& device) {
  const auto kind = params::device_kind(device);
  const auto wanted = parse_word(word);
  const Checkpoint checkpoint = interrupts();
  nb::gil_scoped_release release;
  return {params::preset_for(kind, name, wanted, checkpoint)};
}

/// The arguments of Params.create as Python gives them.
struct Asked {
  std::optional<int> depth, log_n, dnum, levels_after, iterations;
  std::optional<double> scale_bits, precision_bits;
  std::optional<std::string> order;
  std::string word, name, device;
  int security;
  double integer_bits;
  bool bootstrap;
};

Params create(const Asked& a) {
  const auto kind = params::device_kind(a.device);
  const Checkpoint checkpoint = interrupts();
  if (a.bootstrap) {
    require<InvalidArgument>(
        !a.depth && !a.dnum && a.integer_bits == 10.0,
        "with bootstrap=True give levels_after instead of depth, and leave out dnum "
        "and integer_bits");
    params::BootstrapRequest request;
    request.precision_bits = a.precision_bits.value_or(request.precision_bits);
    request.levels_after = a.levels_after.value_or(request.levels_after);
    if (a.order) request.order = parse_order(*a.order);
    request.iterations = a.iterations.value_or(1);
    request.scale_bits = a.scale_bits.value_or(0);
    request.log_n = a.log_n.value_or(0);
    request.word = parse_word(a.word);
    request.security = a.security;
    request.name = a.name;
    nb::gil_scoped_release release;
    return {params::create_for(kind, request, checkpoint)};
  }
  require<InvalidArgument>(
      !a.precision_bits && !a.levels_after && !a.iterations && !a.order,
      "precision_bits, levels_after, iterations and order are for bootstrap=True");
  require<InvalidArgument>(a.depth.has_value(),
                           "give a depth: how many multiplications follow one another");
  require<InvalidArgument>(a.dnum.value_or(1) >= 1, "dnum must be positive, or left out");
  ckks::Literal literal;
  literal.depth = *a.depth;
  literal.scale_bits = a.scale_bits.value_or(40.0);
  literal.log_n = a.log_n.value_or(0);
  literal.word = parse_word(a.word);
  literal.security = a.security;
  literal.dnum = a.dnum.value_or(0);
  literal.integer_bits = a.integer_bits;
  literal.name = a.name;
  nb::gil_scoped_release release;
  return {params::create_for(kind, literal, checkpoint)};
}

/// Params.create with checks that name the wrong argument; nanobind would print the whole signature
/// instead.
Params create_checked(nb::handle depth, nb::handle scale_bits, nb::handle log_n, nb::handle word,
                      nb::handle security, nb::handle dnum, nb::handle integer_bits,
                      nb::handle name, nb::handle bootstrap, nb::handle precision_bits,
                      nb::handle levels_after, nb::handle order, nb::handle iterations,
                      nb::handle device) {
  Asked a;
  a.depth = whole(depth, "depth");
  a.scale_bits = real(scale_bits, "scale_bits");
  a.log_n = whole(log_n, "log_n");
  a.word = text(word, "word");
  a.security = whole(security, "security").value_or(128);
  a.dnum = whole(dnum, "dnum");
  a.integer_bits = real(integer_bits, "integer_bits").value_or(10.0);
  a.name = text(name, "name");
  a.bootstrap = flag(bootstrap, "bootstrap");
  a.precision_bits = real(precision_bits, "precision_bits");
  a.levels_after = whole(levels_after, "levels_after");
  if (!order.is_none()) a.order = text(order, "order");
  a.iterations = whole(iterations, "iterations");
  a.device = text(device, "device");
  return create(a);
}

}  // namespace

void bind_params_create(nb::class_<Params>& type) {
  type.def_static("create",
                  checked({"Params.create",
                           2,
                           {{"depth", nb::none()},
                            {"scale_bits", nb::none()},
                            {"log_n", nb::none()},
                            {"word", nb::str("auto")},
                            {"security", nb::int_(128)},
                            {"dnum", nb::none()},
                            {"integer_bits", nb::float_(10.0)},
                            {"name", nb::str("")},
                            {"bootstrap", nb::bool_(false)},
                            {"precision_bits", nb::none()},
                            {"levels_after", nb::none()},
                            {"order", nb::none()},
                            {"iterations", nb::none()},
                            {"device", nb::str("cpu")}}},
                          &create_checked),
                  nb::sig("def create(depth: int, scale_bits: float | None = None, *, "
                          "log_n: int | None = None, word: str = 'auto', security: int = 128, "
                          "dnum: int | None = None, integer_bits: float = 10.0, name: str = '', "
                          "device: str = 'cpu') -> Params"),
                  R"(Choose moduli and the smallest ring that the security table allows.

depth: how many multiplications follow one another, >= 0.
scale_bits: log2 of the scale. About scale_bits - log_n / 2 - 6 bits of precision remain. None stands for 40.
log_n: log2 of the ring degree N, 10 to 17; None stands for the smallest that is secure.
word: "w32", "w52", "w64", or "auto" for the fastest on the device that can hold the scale.
security: 128, 192 or 256 bits, classical, by the table of eprint 2024/463. 0 is allowed only with a name that
    begins with "insecure_".
dnum: the number of key-switching digits at the top level; None lets Jali choose.
integer_bits: the room above the scale at level 0. Decrypted values stay below 2^(integer_bits - 1).
device: "cpu" or "cuda", the kind of device that will compute, wherever the call is made. It only decides what word="auto"
    means: every device computes with every word.

Raises InsecureParams or InvalidArgument, which say what would fit.)")
      // What this overload says is done by the one above, which takes the arguments of both and
      // refuses a mixture.
      .def_static(
          "create", [](const nb::args&, const nb::kwargs&) -> Params { throw nb::next_overload(); },
          nb::sig("def create(*, bootstrap: typing.Literal[True], "
                  "precision_bits: float | None = None, levels_after: int | None = None, "
                  "order: str | None = None, iterations: int | None = None, "
                  "scale_bits: float | None = None, log_n: int | None = None, "
                  "word: str = 'auto', security: int = 128, name: str = '', "
                  "device: str = 'cpu') -> Params"),
          R"(Choose moduli with the levels that EncryptedArray.bootstrap needs.

precision_bits: the precision of a bootstrapped value, -log2 of the standard deviation of its error, for numbers up to
    1; None stands for 20.
levels_after: how many multiplications follow between bootstrappings; None stands for 10.
order: None stands for "slots_first", which all presets use: it is more precise and cheaper, most of all for real numbers,
    but values must be bootstrapped three levels before the last. "raise_first" bootstraps values of every level.
iterations: how many iterations EncryptedArray.bootstrap will take; None stands for 1. precision_bits, at most 50, is then
    the precision of the result. A scale that holds it is chosen, and one more level.
scale_bits: log2 of the scale; None stands for what precision_bits needs.
The other arguments are those without bootstrap.

Raises InsecureParams or InvalidArgument, which say what would fit.)")
      .def_static("preset",
                  checked({"Params.preset",
                           1,
                           {{"name"}, {"word", nb::str("auto")}, {"device", nb::str("cpu")}}},
                          &preset),
                  nb::sig("def preset(name: str, *, word: str = 'auto', device: str = 'cpu') -> "
                          "Params"),
                  R"(The parameters of a name that presets() lists.

word, device: see create. "auto" is the word that the preset has for the device. Another word gives other parameters.

Raises InvalidArgument for names that presets() does not list, and for words that the preset cannot have.)")
      .def_static("presets",
                  checked({"Params.presets", 0, {}},
                          [] {
                            nb::dict names;
                            add_purposes(names, params::presets());
                            add_purposes(names, params::bootstrap_presets());
                            return names;
                          }),
                  nb::sig("def presets() -> dict[str, str]"),
                  "Names of ready parameter sets, and what each is for.");
}

}  // namespace jali::python
