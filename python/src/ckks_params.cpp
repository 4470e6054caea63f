#include "ckks_params.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments.h"
#include "binding.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

using namespace nb::literals;

namespace {

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

/// A level for Python.
struct Level {
  double scale = 0, log_q = 0;
  std::vector<int> primes;
};

}  // namespace

void bind_params(nb::module_& m) {
  nb::class_<Level> level(m, "Level", R"(The moduli of one level of CKKS parameters.

>>> params = ckks.Params.create(depth=2)
>>> [len(params.level(number).primes) for number in (0, 1, 2)]
[1, 2, 3])");
  refuse_constructor(level, "a Level is not made by hand: Params.level(number) gives it");
  level.def_ro("scale", &Level::scale, "The canonical scale of a ciphertext at this level.")
      .def_ro("log_q", &Level::log_q, "log2 of the product of its primes.")
      .def_ro("primes", &Level::primes, "Indices into Params.primes.")
      .def("__repr__", [](const Level& l) {
        char text[120];
        std::snprintf(text, sizeof(text), "Level(log_q=%.1f, scale=2^%.2f, %zu primes)", l.log_q,
                      std::log2(l.scale), l.primes.size());
        return std::string(text);
      });

  nb::class_<Params> type(m, "Params",
                          R"(CKKS parameters: immutable, validated, and safe to share.

Make them with Params.create. The same arguments give the same parameters everywhere.

>>> params = ckks.Params.create(depth=3)
>>> params.depth, params.security
(3, 128))");
  refuse_constructor(type,
                     "parameters are made by Params.create(depth=...), with how many "
                     "multiplications follow one another, or by Params.preset(name)");
  bind_params_create(type);
  type.def_prop_ro(
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
          "How many of the primes are special.");
  method(
      type, "level", 1, {{"level"}},
      [](const Params& p, int level) {
        require<InvalidArgument>(level >= 0, "levels begin at 0");
        const rlwe::Level& l = p.ptr->level(checked_level(*p.ptr, level));
        return Level{p.ptr->scale(level), l.log_q, {l.primes.begin(), l.primes.end()}};
      },
      "The moduli and the canonical scale of a level, 0 to depth.");
  method(
      type, "key_digits", 1, {{"level"}},
      [](const Params& p, int level) {
        require<InvalidArgument>(level >= 0, "levels begin at 0");
        return p.ptr->key_digits(checked_level(*p.ptr, level));
      },
      "Digits of a key-switching key that serves this level and those below. Raises "
      "InvalidArgument for a level that there is not.\n\n"
      ">>> params = ckks.Params.create(depth=2)\n"
      ">>> params.key_digits(2) == params.dnum\n"
      "True");
  method(
      type, "key_bytes", 3,
      {{"rotations", nb::list()},
       {"conjugate", nb::bool_(false)},
       {"relinearise", nb::bool_(true)}},
      [](const Params& p, const Rotations& rotations, bool conjugate, bool relinearise) {
        return p.ptr->key_bytes(key_rotations(*p.ptr, rotations), conjugate, relinearise);
      },
      "Bytes in memory of the evaluation keys for these rotations (in slots, or \"powers\"), "
      "known before they are made: their nbytes.");
  method(
      type, "ciphertext_bytes", 1,
      {{"shape", std::nullopt, "int | collections.abc.Sequence[int]"},
       {"level", nb::none()},
       {"slots", nb::int_(0)},
       {"batch", nb::bool_(false)}},
      [](const Params& p, nb::handle shape, std::optional<int> level, std::int64_t slots,
         bool batch) {
        const std::vector<std::size_t> counts = shape_from(shape);
        const auto at = checked_level(*p.ptr, level.value_or(-1));
        const std::size_t in = std::size_t{1} << checked_log_slots(*p.ptr, slots);
        const std::size_t vectors =
            batch && counts.size() == 2 ? counts[0] : ckks::vectors_of_dense(counts, in);
        return 2 * vectors * p.ptr->level(at).primes.size() * p.ptr->n() *
               word_bytes(p.ptr->word());
      },
      R"(Bytes of memory of the encryption of an array of this shape, known before it is made.

level, slots, batch: as in Client.encrypt. As bytes to send it takes about half as much, or less if primes are short.)");
  method(
      type, "expanded_key_bytes", 3,
      {{"rotations", nb::list()},
       {"conjugate", nb::bool_(false)},
       {"relinearise", nb::bool_(true)}},
      [](const Params& p, const Rotations& rotations, bool conjugate, bool relinearise) {
        return p.ptr->expanded_key_bytes(key_rotations(*p.ptr, rotations), conjugate, relinearise);
      },
      "Bytes that the keys of key_bytes take in the memory of an evaluator.");
  bind_params_bootstrap(type);
  bind_params_bytes(type);
  share_identity(type);
  type.def("__repr__", &repr);
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

The table is for ternary secrets, errors of standard deviation 3.19 and classical attacks (eprint 2024/463, Table 5.2).

>>> ckks.max_log_qp(14)
430.0)");
}

}  // namespace jali::python
