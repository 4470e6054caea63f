#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "binding.h"
#include "bytes.h"
#include "checked.h"
#include "files.h"
#include "interrupts.h"
#include "jali/params/presets.h"
#include "jali/wire/ckks.h"
#include "refusals.h"

namespace jali::python {

using namespace nb::literals;

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

/// Params.create with checks that name the wrong argument; nanobind would print the whole signature instead.
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

std::string fingerprint(const Params& self) {
  std::string hex;
  char digits[3];
  for (const std::uint8_t byte : self.ptr->hash()) {
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    hex += digits;
  }
  return hex;
}

std::string repr(const Params& self) {
  const auto& p = *self.ptr;
  char text[200];
  std::snprintf(text, sizeof(text),
                "Params(log_n=%d, depth=%d, scale_bits=%g, word='%s', log_qp=%.1f, security=%d)",
                p.log_n(), p.depth(), p.scale_bits(), std::string(word_name(p.word())).c_str(),
                p.log_qp(), p.security());
  return text;
}

/// A shape from a whole number or a sequence of whole numbers.
std::vector<std::size_t> shape_from(nb::handle shape) {
  std::vector<std::size_t> out;
  const auto add = [&](nb::handle value) {
    const int count = whole(value, "every count of the shape").value_or(0);
    require<InvalidArgument>(count >= 1, "every count of the shape must be at least 1");
    out.push_back(static_cast<std::size_t>(count));
  };
  if (PyIndex_Check(shape.ptr())) {
    add(shape);
  } else {
    require<InvalidArgument>(PySequence_Check(shape.ptr()) && !PyUnicode_Check(shape.ptr()),
                             "shape must be a whole number or a sequence of them");
    for (nb::handle value : shape) add(value);
  }
  return out;
}

}  // namespace

std::shared_ptr<const ring::Ring> Params::ring() const {
  const auto kept = [&](const std::shared_ptr<const ring::Ring>& made) {
    const std::lock_guard lock(lazy_->mutex);
    if (lazy_->ring == nullptr) lazy_->ring = made;
    return lazy_->ring;
  };
  if (auto ring = kept(nullptr)) return ring;
  // The ring is made without the lock. If two threads make one, the first is kept.
  return kept(ckks::make_ring(*ptr, "cpu", 1, backend::Variants{}, interrupts()));
}

std::vector<int> key_rotations(const ckks::Params& params, const Rotations& rotations,
                               bool minimum) {
  const auto* name = std::get_if<std::string>(&rotations);
  require<InvalidArgument>(name == nullptr || *name == "powers", [&] {
    return "rotations must be whole numbers of slots, or \"powers\", not \"" + *name + "\"";
  });
  const auto kind = name != nullptr ? ckks::RotationKeys::powers
                    : minimum       ? ckks::RotationKeys::minimum
                                    : ckks::RotationKeys::each;
  const std::vector<int> none;
  return ckks::key_rotations(name != nullptr ? none : std::get<std::vector<int>>(rotations), kind,
                             params.slots());
}

void require_same(const ckks::Params& expected, const ckks::Params& given, const char* what) {
  require<ParamsMismatch>(&expected == &given || expected.hash() == given.hash(), [&] {
    return std::string(what) +
           " of other parameters: make both sides from the same Params (its bytes "
           "or the same arguments to Params.create)";
  });
}

int checked_level(const ckks::Params& params, int level) {
  require<InvalidArgument>(level >= -1 && level <= params.depth(), [&] {
    return "level " + std::to_string(level) + " is outside 0 to " + std::to_string(params.depth());
  });
  return level < 0 ? params.depth() : level;
}

int checked_log_slots(const ckks::Params& params, std::int64_t slots) {
  if (slots == 0) return params.log_n() - 1;
  const auto count = static_cast<std::uint64_t>(slots);
  require<InvalidArgument>(slots > 0 && std::has_single_bit(count) && count <= params.slots(), [&] {
    return "slots must be a power of two from 1 to " + std::to_string(params.slots());
  });
  return std::countr_zero(count);
}

std::vector<bootstrap::BootstrapPlan> bootstrap_plans(const ckks::ParamsPtr& params,
                                                      const std::vector<std::int64_t>& slots,
                                                      bool minimum) {
  std::vector<bootstrap::BootstrapPlan> plans;
  for (const std::int64_t count : slots) {
    plans.emplace_back(params, bootstrap::BootstrapperOptions{checked_log_slots(*params, count),
                                                              /*real=*/false, minimum});
  }
  return plans;
}

namespace {

wire::Limits params_limits(int security, bool search) {
  wire::Limits limits;
  limits.min_security = security;
  limits.search = search;
  return limits;
}

/// A level for Python.
struct Level {
  double scale = 0, log_q = 0;
  std::vector<int> primes;
};

}  // namespace

void bind_params(nb::module_& m) {
  nb::class_<Level> level(m, "Level", "The moduli of one level of CKKS parameters.");
  refuse_constructor(level, "a Level is not made by hand: Params.level(number) gives it");
  level.def_ro("scale", &Level::scale, "The canonical scale of a ciphertext at this level.")
      .def_ro("log_q", &Level::log_q, "log2 of the product of its primes.")
      .def_ro("primes", &Level::primes, "Indices into Params.primes.");

  nb::class_<Params> type(m, "Params",
                          R"(CKKS parameters: immutable, validated, and safe to share.

Make them with Params.create. The same arguments give the same parameters everywhere.)");
  refuse_constructor(type,
                     "parameters are made by Params.create(depth=...), with how many "
                     "multiplications follow one another, or by Params.preset(name)");
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
      // What this overload says is done by the one above, which takes the arguments of both and refuses a mixture.
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
      .def_prop_ro(
          "log_n", [](const Params& p) { return p.ptr->log_n(); }, "log2 of the ring degree N.")
      .def_prop_ro(
          "slots", [](const Params& p) { return p.ptr->slots(); },
          "Numbers in one ciphertext, N/2.")
      .def_prop_ro(
          "depth", [](const Params& p) { return p.ptr->depth(); },
          "How many multiplications may follow one another; also the level of a fresh ciphertext.")
      .def_prop_ro(
          "log_q", [](const Params& p) { return p.ptr->log_q(); },
          "log2 of the ciphertext modulus at the top level.")
      .def_prop_ro(
          "log_p", [](const Params& p) { return p.ptr->log_p(); },
          "log2 of the special modulus of key switching.")
      .def_prop_ro(
          "log_qp", [](const Params& p) { return p.ptr->log_qp(); },
          "log2 of the largest modulus PQ, on which the security depends.")
      .def_prop_ro(
          "security", [](const Params& p) { return p.ptr->security(); },
          "Bits of security by the table of eprint 2024/463: 128, 192, 256, or 0.")
      .def_prop_ro(
          "word", [](const Params& p) { return std::string(word_name(p.ptr->word())); },
          "How residues are stored: 'w32', 'w52' or 'w64'.")
      .def_prop_ro(
          "scale", [](const Params& p) { return p.ptr->scale(p.ptr->depth()); },
          "Scale of a fresh ciphertext.")
      .def_prop_ro(
          "scale_bits", [](const Params& p) { return p.ptr->scale_bits(); },
          "log2 of the scale that was asked for.")
      .def_prop_ro(
          "integer_bits", [](const Params& p) { return p.ptr->literal().integer_bits; },
          "Room above the scale at level 0, in bits.")
      .def_prop_ro(
          "name", [](const Params& p) { return p.ptr->literal().name; },
          "The name given at creation.")
      .def_prop_ro(
          "dnum", [](const Params& p) { return p.ptr->dnum(); },
          "Digits of a key-switching key at the top level.")
      .def_prop_ro(
          "primes",
          [](const Params& p) {
            return std::vector<std::uint64_t>(p.ptr->primes().begin(), p.ptr->primes().end());
          },
          "Every prime: those of Q, then the special ones.")
      .def_prop_ro(
          "q_count", [](const Params& p) { return p.ptr->q_count(); },
          "How many of the primes belong to Q.")
      .def_prop_ro(
          "p_count", [](const Params& p) { return p.ptr->p_count(); },
          "How many of the primes are special.")
      .def("level",
           checked_method<const Params&>(
               {"Params.level", 1, {{"level"}}},
               [](const Params& p, int level) {
                 require<InvalidArgument>(level >= 0, "levels begin at 0");
                 const rlwe::Level& l = p.ptr->level(checked_level(*p.ptr, level));
                 return Level{p.ptr->scale(level), l.log_q, {l.primes.begin(), l.primes.end()}};
               }),
           nb::sig("def level(self, level: int) -> Level"),
           "The moduli and the canonical scale of a level, 0 to depth.")
      .def("key_bytes",
           checked_method<const Params&>(
               {"Params.key_bytes",
                3,
                {{"rotations", nb::list()},
                 {"conjugate", nb::bool_(false)},
                 {"relinearise", nb::bool_(true)}}},
               [](const Params& p, nb::handle given, bool conjugate, bool relinearise) {
                 Rotations rotations;
                 if (!nb::try_cast(given, rotations)) {
                   refuse("rotations of Params.key_bytes",
                          "a sequence of whole numbers, or \"powers\"", given);
                 }
                 return p.ptr->key_bytes(key_rotations(*p.ptr, rotations), conjugate, relinearise);
               }),
           nb::sig("def key_bytes(self, rotations: str | collections.abc.Sequence[int] = [], "
                   "conjugate: bool = False, relinearise: bool = True) -> int"),
           "Bytes in memory of the evaluation keys for these rotations (in slots, or \"powers\"), "
           "known before they are made: their nbytes.")
      .def(
          "ciphertext_bytes",
          [](const Params& p, nb::handle shape, nb::handle level, std::int64_t slots, bool batch) {
            const std::vector<std::size_t> counts = shape_from(shape);
            const auto at = checked_level(*p.ptr, whole(level, "level").value_or(-1));
            const std::size_t in = std::size_t{1} << checked_log_slots(*p.ptr, slots);
            const std::size_t vectors =
                batch && counts.size() == 2 ? counts[0] : ckks::vectors_of_dense(counts, in);
            return 2 * vectors * p.ptr->level(at).primes.size() * p.ptr->n() *
                   word_bytes(p.ptr->word());
          },
          "shape"_a, nb::kw_only(), "level"_a = nb::none(), "slots"_a = 0, "batch"_a = false,
          nb::sig("def ciphertext_bytes(self, shape: int | collections.abc.Sequence[int], *, "
                  "level: int | None = "
                  "None, slots: int = 0, batch: bool = False) -> int"),
          R"(Bytes of memory of the encryption of an array of this shape, known before it is made.

level, slots, batch: as in Client.encrypt. As bytes to send it takes about half as much, or less if primes are short.)")
      .def_prop_ro(
          "bootstraps", [](const Params& p) { return p.ptr->bootstrap().has_value(); },
          "Whether it has levels for bootstrapping.")
      .def_prop_ro(
          "bootstrap_level",
          [](const Params& p) {
            return p.ptr->bootstrap() ? p.ptr->bootstrap()->input_level() : 0;
          },
          "The lowest level from which a value can be bootstrapped.")
      .def_prop_ro(
          "bootstrap_order",
          [](const Params& p) -> std::optional<std::string> {
            if (!p.ptr->bootstrap()) return std::nullopt;
            return p.ptr->bootstrap()->order == params::BootstrapOrder::raise_first ? "raise_first"
                                                                                    : "slots_first";
          },
          "The order of bootstrapping that they were made with, or None without bootstrapping.")
      .def_prop_ro(
          "bootstrap_max_magnitude",
          [](const Params& p) {
            if (!p.ptr->bootstrap()) return 0.0;
            return bootstrap::BootstrapPlan(p.ptr, {/*log_slots=*/1}).max_magnitude();
          },
          R"(The largest declared magnitude that EncryptedArray.bootstrap takes, at least 1; 0 without bootstrapping.

Numbers of this size lose at most 2^-10 of themselves or, if numbers of size 1 lose more, as much as these.)")
      .def_prop_ro(
          "log2_bootstrap_failure",
          [](const Params& p) {
            const auto& b = p.ptr->bootstrap();
            return b ? params::log2_bootstrap_failure(b->weight, b->range, p.ptr->n()) : -1e6;
          },
          "log2 of a bound on the probability that one bootstrapping loses a coefficient because "
          "its phase leaves the range of the modular reduction. log2_bootstrap_beyond gives that "
          "of smaller errors.")
      .def(
          "log2_bootstrap_beyond",
          [](const Params& p, double error, std::int64_t slots) {
            return bootstrap::log2_beyond(*p.ptr, error, checked_log_slots(*p.ptr, slots));
          },
          "error"_a, "slots"_a = 0,
          "log2 of a bound on the probability that one bootstrapping of values with this many "
          "slots (0: all) has an error above `error`, in message units, in the real or imaginary "
          "part of some slot because the modular reduction is less exact for rare integers. Noise "
          "is not counted. -1e6 means never. With raise_first the error is that of one "
          "coefficient, which contributes to all slots.")
      .def(
          "bootstrap_rotations",
          [](const Params& p, std::int64_t slots, bool minimum) {
            const bootstrap::BootstrapperOptions options{checked_log_slots(*p.ptr, slots),
                                                         /*real=*/false, minimum};
            nb::gil_scoped_release release;
            return bootstrap::BootstrapPlan(p.ptr, options).rotations();
          },
          "slots"_a = 0, nb::kw_only(), "minimum"_a = false,
          "The rotations for which bootstrapping of values with this many slots (0: all) needs "
          "keys. minimum: with the fewest keys.")
      .def(
          "bootstrap_key_bytes",
          [](const Params& p, const Rotations& rotations, bool conjugate,
             const std::vector<std::int64_t>& slots, bool minimum) {
            nb::gil_scoped_release release;
            const auto wanted = key_rotations(*p.ptr, rotations, minimum);
            return bootstrap::key_bytes(*p.ptr, bootstrap_plans(p.ptr, slots, minimum), wanted,
                                        conjugate);
          },
          "rotations"_a = Rotations(std::vector<int>{}), "conjugate"_a = false,
          "slots"_a = std::vector<std::int64_t>{0}, nb::kw_only(), "minimum"_a = false,
          "Bytes in memory of evaluation_keys(rotations, conjugate=..., bootstrap=slots, "
          "minimum=...), known before they are made: their nbytes. In slots, 0 stands for all "
          "slots.")
      .def(
          "expanded_bootstrap_key_bytes",
          [](const Params& p, const Rotations& rotations, bool conjugate,
             const std::vector<std::int64_t>& slots, bool minimum) {
            nb::gil_scoped_release release;
            const auto wanted = key_rotations(*p.ptr, rotations, minimum);
            return bootstrap::expanded_key_bytes(*p.ptr, bootstrap_plans(p.ptr, slots, minimum),
                                                 wanted, conjugate);
          },
          "rotations"_a = Rotations(std::vector<int>{}), "conjugate"_a = false,
          "slots"_a = std::vector<std::int64_t>{0}, nb::kw_only(), "minimum"_a = false,
          "Bytes that the keys of bootstrap_key_bytes take in the memory of an evaluator, on the "
          "CPU or a GPU.")
      .def(
          "expanded_key_bytes",
          [](const Params& p, const Rotations& rotations, bool conjugate, bool relinearise) {
            return p.ptr->expanded_key_bytes(key_rotations(*p.ptr, rotations), conjugate,
                                             relinearise);
          },
          "rotations"_a = Rotations(std::vector<int>{}), "conjugate"_a = false,
          "relinearise"_a = true,
          "Bytes that the keys of key_bytes take in the memory of an evaluator.")
      .def_prop_ro("fingerprint", &fingerprint,
                   "Hexadecimal hash that every serialised object of these parameters carries.")
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
      .def_static(
          "presets",
          [] {
            nb::dict names;
            for (const auto& preset : params::presets()) {
              names[nb::str(preset.name.data(), preset.name.size())] =
                  nb::str(preset.purpose.data(), preset.purpose.size());
            }
            for (const auto& preset : params::bootstrap_presets()) {
              names[nb::str(preset.name.data(), preset.name.size())] =
                  nb::str(preset.purpose.data(), preset.purpose.size());
            }
            return names;
          },
          nb::sig("def presets() -> dict[str, str]"),
          "Names of ready parameter sets, and what each is for.")
      .def(
          "to_bytes",
          [](const Params& p) { return to_python_bytes([&] { return wire::to_bytes(*p.ptr); }); },
          "Bytes from which from_bytes makes the same parameters on any machine.")
      .def_static(
          "from_bytes",
          checked({"Params.from_bytes",
                   1,
                   {{"data"}, {"security", nb::int_(128)}, {"search", nb::bool_(false)}}},
                  [](nb::handle data, int security, bool search) {
                    const BytesView view(data);
                    nb::gil_scoped_release release;
                    return Params(
                        wire::params_from_bytes(view.span(), params_limits(security, search)));
                  }),
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, security: int = 128, "
                  "search: bool = False) -> Params"),
          R"(The parameters that to_bytes wrote, on any machine, in milliseconds.

security: the least security that is accepted, 128, 192 or 256 bits. 0 also accepts insecure parameters for experiments.
search: older bytes may lack the levels that a search found. True runs the search again, which may take minutes, so it is
    for bytes of your own.

Raises InsecureParams for less security, and CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
that to_bytes did not make.)")
      .def(
          "save",
          [](const Params& p, nb::handle file) {
            save_to(file, [&](const wire::Sink& sink) { sink(wire::to_bytes(*p.ptr)); });
          },
          "file"_a.none(), nb::sig(kSaveSignature), kSave)
      .def_static(
          "load",
          checked({"Params.load",
                   1,
                   {{"file"}, {"security", nb::int_(128)}, {"search", nb::bool_(false)}}},
                  [](nb::handle file, int security, bool search) {
                    const wire::Limits limits = params_limits(security, search);
                    return Params(load_from(
                        file, [&](auto bytes) { return wire::params_from_bytes(bytes, limits); },
                        [&](const wire::Source& source) {
                          return wire::params_from_bytes(wire::read_object(source, limits), limits);
                        }));
                  }),
          nb::sig("def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, *, "
                  "security: int = 128, search: bool = False) -> Params"),
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
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__eq__",
           [](const Params& a, nb::handle b) {
             return nb::isinstance<Params>(b) && a.ptr->hash() == nb::cast<Params>(b).ptr->hash();
           })
      .def("__hash__",
           [](const Params& p) {
             std::int64_t head = 0;
             std::memcpy(&head, p.ptr->hash().data(), sizeof(head));
             return head;
           })
      .def("__repr__", &repr);
  m.def(
      "dense_view",
      [](const std::vector<std::size_t>& shape, std::size_t slots) {
        return std::make_pair(tuple_of(ckks::dense_view(shape, slots)),
                              ckks::vectors_of_dense(shape, slots));
      },
      "shape"_a, "slots"_a,
      "The view of a fresh array of this shape, see Ciphertext.view, and the vectors that it "
      "takes.");
  m.def(
      "max_log_qp",
      checked({"max_log_qp", 2, {{"log_n"}, {"security", nb::int_(128)}}}, &params::max_log_qp),
      nb::sig("def max_log_qp(log_n: int, security: int = 128) -> float"),
      R"(The largest log2(PQ) that the security table allows for a ring degree, or 0 if it has no entry.

The table is for ternary secrets, errors of standard deviation 3.19 and classical attacks (eprint 2024/463, Table 5.2).)");
}

}  // namespace jali::python
