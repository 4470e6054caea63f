// Parameters of exact integers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bytes.h"
#include "ckks_params.h"
#include "discrete.h"
#include "files.h"
#include "interrupts.h"
#include "jali/params/discrete/choose.h"
#include "jali/params/discrete/presets.h"
#include "jali/rlwe/key_rotations.h"
#include "jali/schemes/discrete/make_ring.h"
#include "jali/wire/discrete.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// T from a whole number of Python of any size. Throws InvalidArgument.
std::uint64_t modulus_from(nb::handle value) {
  constexpr const char* kWanted =
      "a whole number from 2 to 2**61 - 1, or a power of two up to 2**64";
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) refuse("modulus", kWanted, value);
  const auto index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  if (index.equal(nb::int_(1) << nb::int_(64))) return discrete::kTwoTo64;
  std::uint64_t out = 0;
  if (!nb::try_cast(index, out, false) || out < 2) refuse("modulus", kWanted, value);
  return out;
}

std::string multiplication_of(const discrete::Params& p) {
  return p.multiplication() == discrete::Multiplication::bgv ? "bgv" : "bfv";
}
std::string packing_of(const discrete::Params& p) {
  return p.packing() == discrete::Packing::slots ? "slots" : "coefficients";
}
nb::object modulus_of(const discrete::Params& p) {
  const std::uint64_t value = p.modulus().value();
  if (value != discrete::kTwoTo64) return nb::int_(value);
  return nb::int_(1) << nb::int_(64);
}

DiscreteParams create(nb::handle modulus, nb::handle integers, nb::handle depth,
                      nb::handle multiplication, nb::handle packing, nb::handle log_n,
                      nb::handle word, nb::handle security, nb::handle dnum, nb::handle name) {
  discrete::Literal literal;
  if (!modulus.is_none()) literal.modulus = modulus_from(modulus);
  const auto bits = whole(integers, "integers");
  require<InvalidArgument>(!bits || (*bits >= 2 && *bits <= discrete::kMostIntegers), [&] {
    return "integers is how many bits the signed numbers have: from 2 to " +
           std::to_string(discrete::kMostIntegers) + ", not " + std::to_string(*bits) +
           ". The scheme jali.tfhe has integers of up to 64 bits";
  });
  literal.integers = bits.value_or(0);
  const auto levels = whole(depth, "depth");
  require<InvalidArgument>(levels.has_value(),
                           "give a depth: how many multiplications follow one another");
  literal.depth = *levels;
  const std::string by = text(multiplication, "multiplication");
  require<InvalidArgument>(by == "bgv" || by == "bfv", [&] {
    return "multiplication is \"bgv\", the faster one, or \"bfv\", not \"" + by + "\"";
  });
  literal.multiplication =
      by == "bgv" ? discrete::Multiplication::bgv : discrete::Multiplication::bfv;
  const std::string lie = text(packing, "packing");
  require<InvalidArgument>(lie == "slots" || lie == "coefficients", [&] {
    return "packing is \"slots\" or \"coefficients\", not \"" + lie + "\"";
  });
  literal.packing = lie == "slots" ? discrete::Packing::slots : discrete::Packing::coefficients;
  literal.log_n = whole(log_n, "log_n").value_or(0);
  const std::string of = text(word, "word");
  if (of != "auto") literal.word = parsed_word(of);
  literal.security = whole(security, "security").value_or(128);
  const auto digits = whole(dnum, "dnum");
  require<InvalidArgument>(digits.value_or(1) >= 1, "dnum must be positive, or left out");
  literal.dnum = digits.value_or(0);
  literal.name = text(name, "name");
  const Checkpoint checkpoint = interrupts();
  const nb::gil_scoped_release release;
  return {discrete::Params::create(literal, checkpoint)};
}

DiscreteParams preset(const std::string& name, const std::string& word) {
  std::optional<Word> wanted;
  if (word != "auto") wanted = parsed_word(word);
  const Checkpoint checkpoint = interrupts();
  const nb::gil_scoped_release release;
  return {discrete::Params::create(discrete::preset(name, wanted), checkpoint)};
}

/// The arguments of create that make the same parameters.
nb::dict arguments_of(const DiscreteParams& self) {
  const discrete::Params& p = *self.ptr;
  const discrete::Literal& literal = p.literal();
  nb::dict out;
  if (literal.integers != 0) {
    out["integers"] = literal.integers;
  } else if (literal.modulus) {
    out["modulus"] = modulus_of(p);
  }
  out["depth"] = literal.depth;
  out["multiplication"] = multiplication_of(p);
  out["packing"] = packing_of(p);
  out["log_n"] = p.log_n();
  out["word"] = std::string(word_name(p.word()));
  out["security"] = literal.security;
  if (literal.dnum != 0) out["dnum"] = literal.dnum;
  out["name"] = literal.name;
  return out;
}

std::string repr(const DiscreteParams& self) {
  const discrete::Params& p = *self.ptr;
  const std::string modulus = nb::cast<std::string>(nb::str(modulus_of(p)));
  char out[240];
  std::snprintf(out, sizeof(out),
                "Params(modulus=%s, depth=%d, multiplication='%s', log_n=%d, word='%s', "
                "log_qp=%.1f, security=%d)",
                modulus.c_str(), p.depth(), multiplication_of(p).c_str(), p.log_n(),
                std::string(word_name(p.word())).c_str(), p.log_qp(), p.security());
  return out;
}

}  // namespace

std::shared_ptr<const ring::Ring> DiscreteParams::ring() const {
  const auto kept = [&](const std::shared_ptr<const ring::Ring>& made) {
    const std::lock_guard lock(lazy_->mutex);
    if (lazy_->ring == nullptr) lazy_->ring = made;
    return lazy_->ring;
  };
  if (auto ring = kept(nullptr)) return ring;
  // The ring is made without the lock. If two threads make one, the first is kept.
  return kept(discrete::make_ring(*ptr, "cpu", 1, backend::Variants{}, interrupts()));
}

void require_same(const discrete::Params& expected, const discrete::Params& given,
                  const char* what) {
  require<ParamsMismatch>(&expected == &given || expected.hash() == given.hash(), [&] {
    return std::string(what) +
           " of other parameters: make both sides from the same arguments to Params.create";
  });
}

int checked_level(const discrete::Params& params, int level) {
  require<InvalidArgument>(level >= -1 && level <= params.depth(), [&] {
    return "level " + std::to_string(level) + " is outside 0 to " + std::to_string(params.depth());
  });
  return level < 0 ? params.depth() : level;
}

std::vector<int> discrete_key_rotations(const discrete::Params& params,
                                        const Rotations& rotations) {
  const auto* name = std::get_if<std::string>(&rotations);
  require<InvalidArgument>(name == nullptr || *name == "powers", [&] {
    return "rotations must be whole numbers of slots, or \"powers\", not \"" + *name + "\"";
  });
  const auto kind = name != nullptr ? rlwe::RotationKeys::powers : rlwe::RotationKeys::each;
  const std::vector<int> none;
  return rlwe::key_rotations(name != nullptr ? none : std::get<std::vector<int>>(rotations), kind,
                             params.n() / 2);
}

void bind_discrete_params(nb::module_& m) {
  nb::class_<DiscreteParams> type(
      m, "Params",
      R"(Parameters of exact integers: immutable, validated, and safe to share.

Make them with Params.create. The same arguments give the same parameters everywhere.

>>> params = discrete.Params.create(modulus=65537, depth=2)
>>> params.modulus, params.depth, params.security
(65537, 2, 128))");
  refuse_constructor(type,
                     "parameters are made by Params.create(integers=..., depth=...), with the bits "
                     "of the numbers and how many multiplications follow one another");
  type.def_static(
      "create",
      checked({"Params.create",
               0,
               {{"modulus", nb::none()},
                {"integers", nb::none()},
                {"depth", nb::none()},
                {"multiplication", nb::str("bgv")},
                {"packing", nb::str("slots")},
                {"log_n", nb::none()},
                {"word", nb::str("auto")},
                {"security", nb::int_(128)},
                {"dnum", nb::none()},
                {"name", nb::str("")}}},
              &create),
      nb::sig("def create(*, modulus: int | None = None, integers: int | None = None, depth: int, "
              "multiplication: str = 'bgv', packing: str = 'slots', log_n: int | None = None, "
              "word: str = 'auto', security: int = 128, dnum: int | None = None, name: str = '') "
              "-> Params"),
      R"(Parameters for a modulus, or for the size of the numbers, and a depth.

modulus: the number modulo which everything is computed. In slots it is a prime that is 1 modulo 2N: 65537, which is the
    default up to log_n 15, or 786433. In coefficients it is any number from 2 to 2**61 - 1, or a power of two up to 2**64.
integers: instead of a modulus, from 2 to 59: one is chosen that tells all signed integers of so many bits apart.
depth: how many multiplications follow one another, 0 to 200. A product with an array in the clear counts as one; a product
    with a number and a sum do not.
multiplication: "bgv", by which a product of two encrypted arrays takes one level, or "bfv", by which it takes none and
    about four times as long. Results are the same.
packing: "slots", in which numbers are added and multiplied one by one and are moved, or "coefficients", in which they are
    only added and multiplied by single numbers, for any modulus.
log_n: log2 of the ring degree, 10 to 17; None stands for the smallest one that is secure.
word: how residues are stored: "w32", "w52", "w64", or "auto", the fastest.
security: 128, 192 or 256 bits, or 0 with a name that begins with "insecure_", for experiments.
dnum: digits of the keys at the top level; None stands for a choice.
name: any text without control characters.

Raises InvalidArgument or InsecureParams, which say what would fit.

>>> discrete.Params.create(integers=32, depth=1).modulus > 2**32
True)");
  type.def_static("preset",
                  checked({"Params.preset", 1, {{"name"}, {"word", nb::str("auto")}}}, &preset),
                  nb::sig("def preset(name: str, *, word: str = 'auto') -> Params"),
                  R"(The parameters of a name that presets() lists.

word: see create. Another word gives other parameters.

Raises InvalidArgument for names that presets() does not list, and InsecureParams for words that the preset cannot have.

>>> params = discrete.Params.preset("int16_d4")
>>> params.depth, params.high - params.low >= 2**16 - 1
(4, True))")
      .def_static("presets",
                  checked({"Params.presets", 0, {}},
                          [] {
                            nb::dict names;
                            add_purposes(names, discrete::presets());
                            return names;
                          }),
                  nb::sig("def presets() -> dict[str, str]"),
                  "Names of ready parameter sets, and what each is for.");
  type.def_prop_ro(
          "modulus", [](const DiscreteParams& p) { return modulus_of(*p.ptr); },
          nb::sig("def modulus(self) -> int"), "The number modulo which everything is computed.")
      .def_prop_ro(
          "low", [](const DiscreteParams& p) { return p.ptr->modulus().low(); },
          "The lowest of the numbers nearest to 0 that residues stand for.")
      .def_prop_ro(
          "high", [](const DiscreteParams& p) { return p.ptr->modulus().high(); },
          "The highest of them.")
      .def_prop_ro(
          "multiplication", [](const DiscreteParams& p) { return multiplication_of(*p.ptr); },
          "How ciphertexts are multiplied: 'bgv' or 'bfv'.")
      .def_prop_ro(
          "packing", [](const DiscreteParams& p) { return packing_of(*p.ptr); },
          "Where the numbers lie: in 'slots' or 'coefficients'.")
      .def_prop_ro(
          "log_n", [](const DiscreteParams& p) { return p.ptr->log_n(); },
          "log2 of the ring degree N.")
      .def_prop_ro(
          "slots", [](const DiscreteParams& p) { return p.ptr->slots(); },
          "Numbers in one ciphertext, N. They lie in two rows of N/2.")
      .def_prop_ro(
          "depth", [](const DiscreteParams& p) { return p.ptr->depth(); },
          "How many multiplications may follow one another; also the level of a fresh ciphertext.")
      .def_prop_ro(
          "log_q", [](const DiscreteParams& p) { return p.ptr->log_q(); },
          "log2 of the ciphertext modulus at the top level.")
      .def_prop_ro(
          "log_p", [](const DiscreteParams& p) { return p.ptr->log_p(); },
          "log2 of the special modulus of key switching.")
      .def_prop_ro(
          "log_qp", [](const DiscreteParams& p) { return p.ptr->log_qp(); },
          "log2 of the largest modulus PQ of a key, on which the security depends.")
      .def_prop_ro(
          "q_count", [](const DiscreteParams& p) { return p.ptr->q_count(); },
          "The number of primes of the ciphertext modulus at the top level.")
      .def_prop_ro(
          "p_count", [](const DiscreteParams& p) { return p.ptr->p_count(); },
          "The number of special primes of key switching.")
      .def_prop_ro(
          "security", [](const DiscreteParams& p) { return p.ptr->security(); },
          "Bits of security by the table of eprint 2024/463: 128, 192, 256, or 0.")
      .def_prop_ro(
          "word", [](const DiscreteParams& p) { return std::string(word_name(p.ptr->word())); },
          "How residues are stored: 'w32', 'w52' or 'w64'.")
      .def_prop_ro(
          "dnum", [](const DiscreteParams& p) { return p.ptr->dnum(); },
          "Digits of a key-switching key at the top level.")
      .def_prop_ro(
          "name", [](const DiscreteParams& p) { return p.ptr->literal().name; },
          "The name given at creation.");
  method(
      type, "key_bytes", 2, {{"rotations", nb::list()}, {"relinearise", nb::bool_(true)}},
      [](const DiscreteParams& p, const Rotations& rotations, bool relinearise) {
        const auto steps = discrete_key_rotations(*p.ptr, rotations);
        const auto* few = std::get_if<std::vector<int>>(&rotations);
        const bool swap = few == nullptr || !few->empty();
        return p.ptr->key_bytes(steps, swap, relinearise);
      },
      "Bytes in memory of the evaluation keys for these rotations, known before they are made: "
      "their nbytes. Arguments are those of Client.evaluation_keys.");
  method(
      type, "ciphertext_bytes", 1, {{"vectors", nb::int_(1)}, {"level", nb::none()}},
      [](const DiscreteParams& p, std::size_t vectors, std::optional<int> level) {
        const auto at = checked_level(*p.ptr, level.value_or(-1));
        return 2 * vectors * p.ptr->level(at).primes.size() * p.ptr->n() *
               word_bytes(p.ptr->word());
      },
      "Bytes of memory of a ciphertext of so many vectors of `slots` numbers.");
  method(
      type, "log_q_at", 1, {{"level"}},
      [](const DiscreteParams& p, int level) {
        return p.ptr->level(checked_level(*p.ptr, level)).log_q;
      },
      "log2 of the ciphertext modulus at a level, of which -1 is the top one.");
  method(
      type, "noise_budgets", 0, {},
      [](const DiscreteParams& p) { return discrete::circuit_budgets(*p.ptr); },
      R"(Bits by which noise may still grow in the circuit for which parameters are chosen.

The first is that of an encryption under the public key. Those that follow are after each of `depth` products, one after the
other, of a sum of two with itself; without products, after sums of 2, 4, 8 and 16 arrays. They hold for any numbers.

>>> params = discrete.Params.create(modulus=65537, depth=3)
>>> len(params.noise_budgets()), min(params.noise_budgets()) > 0
(4, True))");
  const auto bytes = [](const DiscreteParams& p) { return wire::to_bytes(*p.ptr); };
  add_to_bytes(type, bytes,
               "Bytes from which from_bytes makes the same parameters on any machine.");
  add_save(type, bytes);
  const auto limited = [](int security) {
    wire::Limits limits;
    limits.min_security = security;
    return limits;
  };
  type.def_static(
          "from_bytes",
          checked({"Params.from_bytes", 1, {{"data"}, {"security", nb::int_(128)}}},
                  [limited](nb::handle data, int security) {
                    const BytesView view(data);
                    const nb::gil_scoped_release release;
                    return DiscreteParams(
                        wire::discrete_params_from_bytes(view.span(), limited(security)));
                  }),
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, security: int = 128) -> "
                  "Params"),
          R"(The parameters that to_bytes wrote, on any machine, in milliseconds.

security: the least security that is accepted, 128, 192 or 256 bits. 0 also accepts insecure parameters for experiments.

Raises InsecureParams for less than is demanded, and CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
that to_bytes did not make.)")
      .def_static(
          "load",
          checked({"Params.load", 1, {{"file"}, {"security", nb::int_(128)}}},
                  [limited](nb::handle file, int security) {
                    const wire::Limits limits = limited(security);
                    return DiscreteParams(load_from(
                        file,
                        [&](auto span) { return wire::discrete_params_from_bytes(span, limits); },
                        [&](const wire::Source& source) {
                          return wire::discrete_params_from_bytes(wire::read_object(source, limits),
                                                                  limits);
                        }));
                  }),
          nb::sig("def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, *, "
                  "security: int = 128) -> Params"),
          "Read what save wrote, from a path, a file opened with \"rb\", or bytes. The other "
          "arguments and the errors are those of from_bytes, and FileError.");
  share_identity(type);
  type.def(
          "__copy__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __copy__(self) -> Params"))
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); },
          nb::sig("def __deepcopy__(self, memo: object, /) -> Params"))
      .def(
          "__reduce__",
          [](const DiscreteParams& self) {
            return nb::make_tuple(nb::module_::import_("jali.discrete.pickled").attr("params"),
                                  nb::make_tuple(arguments_of(self)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__repr__", &repr);
}

}  // namespace jali::python
