// The explicit evaluator: binds the operations of ckks/evaluator.h, one by one.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "here.h"
#include "jali/base/wipe.h"
#include "server.h"

namespace jali::python {

using namespace nb::literals;
using ckks::Ciphertext;
using ckks::CompactPlaintext;
using ckks::Diagonal;
using ckks::Extended;
using ckks::Hoisted;
using ckks::Packing;
using ckks::Plaintext;

namespace {

/// The hoisted digits of a ciphertext and, if it was in other memory, its copy on the device.
struct Digits {
  std::unique_ptr<const Ciphertext> brought;
  Hoisted value;
};

Digits hoist(const Explicit& e, const Ciphertext& a) {
  if (is_here(*e.server, a)) return {nullptr, e->hoist(a)};
  auto brought = std::make_unique<const Ciphertext>(bring(*e.server, a));
  Hoisted value = e->hoist(*brought);
  return {std::move(brought), std::move(value)};
}

Packing rotated(const Ciphertext& a, int steps) {
  return ckks::packing_of_rotated(a.packing, steps, std::size_t{1} << a.log_slots);
}

Ciphertext with(Ciphertext out, const Packing& packing) {
  out.packing = packing;
  return out;
}

Diagonal encode_diagonal(const Explicit& e, nb::handle values, int level, double scale) {
  const Server& server = *e.server;
  const Vectors v(values);
  level = checked_level(*server.params, level);
  nb::gil_scoped_release release;
  std::vector<std::complex<double>> store;
  return ckks::encode_diagonal(*server.evaluator, v.as_complex(store), v.batch(), level, scale);
}

Sum multiply_accumulate(const Explicit& e, const std::vector<const Sum*>& a,
                        const std::vector<const Diagonal*>& diagonals) {
  std::vector<Here<Extended>> values;
  std::vector<Here<Diagonal>> weights;
  values.reserve(a.size());
  weights.reserve(diagonals.size());
  nb::gil_scoped_release release;
  std::vector<const Extended*> operands;
  std::vector<const Diagonal*> factors;
  for (const Sum* value : a) {
    require<InvalidArgument>(value != nullptr, "an operand is None");
    operands.push_back(&*values.emplace_back(*e.server, value->value));
  }
  for (const Diagonal* weight : diagonals) {
    require<InvalidArgument>(weight != nullptr, "an operand is None");
    factors.push_back(&*weights.emplace_back(*e.server, *weight));
  }
  Extended sum = ckks::multiply_accumulate(*e.server->evaluator, operands, factors);
  return {std::move(sum), ckks::packing_of_moved(a[0]->packing)};
}

}  // namespace

Plaintext encode_array(const Server& server, nb::handle values, int level, double scale,
                       std::int64_t slots) {
  const Vectors v(values);
  level = checked_level(*server.params, level);
  const int log_slots = checked_log_slots(*server.params, slots);
  if (scale == 0) scale = server.params->scale(level);
  require<InvalidArgument>(std::isfinite(scale) && scale >= 1,
                           "scale must be a number of at least 1");
  nb::gil_scoped_release release;
  const auto& encoder = server.evaluator->encoder();
  return v.is_complex() ? encoder.encode(v.complex(), v.batch(), level, scale, log_slots)
                        : encoder.encode(v.real(), v.batch(), level, scale, log_slots);
}

CompactPlaintext encode_compact(const Server& server, nb::handle values, double scale,
                                std::int64_t slots) {
  const Vectors v(values);
  const int log_slots = checked_log_slots(*server.params, slots);
  if (scale == 0) scale = server.params->scale(server.params->depth());
  require<InvalidArgument>(std::isfinite(scale) && scale >= 1,
                           "scale must be a number of at least 1");
  nb::gil_scoped_release release;
  const auto& encoder = server.evaluator->encoder();
  return v.is_complex() ? encoder.compact(v.complex(), v.batch(), scale, log_slots)
                        : encoder.compact(v.real(), v.batch(), scale, log_slots);
}

void bind_explicit(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;

  nb::class_<Digits>(m, "Hoisted",
                     "The ModUp of a ciphertext's digits, computed once for many rotations.");
  nb::class_<Diagonal>(m, "Diagonal", "A plaintext over the primes of a level and P.")
      .def_ro("scale", &Diagonal::scale, "Its scale.");
  nb::class_<Sum>(m, "Extended",
                  "A ciphertext over the primes of a level and P, before the division by P.")
      .def_prop_ro(
          "level", [](const Sum& s) { return s.value.level; }, "Its level.")
      .def_prop_ro("scale", [](const Sum& s) { return s.value.scale; }, "Its scale.");

  nb::class_<Explicit>(
      m, "ExplicitEvaluator",
      R"(Every CKKS operation by hand: it relinearises, rescales and changes levels only when asked.

Evaluator.explicit gives it. It takes and returns Ciphertext objects, and may be used from several threads. Two
operands must have equal levels (drop_to) and, in sums, scales that are equal to within 2^-20 of themselves (adjust).
Methods raise InvalidArgument for other levels, ScaleMismatch for other scales, DepthExhausted if no level is left,
KeyMissing without the key that they need, and ParamsMismatch for objects of other parameters.)")
      .def_prop_ro(
          "params", [](const Explicit& e) { return Params{e.server->params}; }, "Its parameters.")
      .def(
          "has_rotation", [](const Explicit& e, int steps) { return e->has_rotation(steps); },
          "steps"_a, "Whether there is a key for this rotation.")
      .def(
          "is_here", [](const Explicit& e, const Ciphertext& a) { return e->is_here(a); }, "a"_a,
          "Whether a is in the memory of the evaluator's device, where operations need it.")
      .def(
          "bring", [](const Explicit& e, const Ciphertext& a) { return e->bring(a); }, "a"_a,
          nogil(), "A copy of a in the memory of the device.")
      .def(
          "send_back", [](const Explicit& e, const Ciphertext& a) { return e->send_back(a); },
          "a"_a, nogil(), "A copy of a in the host's memory, to be decrypted or sent.")
      .def(
          "encode",
          [](const Explicit& e, nb::handle values, int level, double scale, std::int64_t slots) {
            return encode_array(*e.server, values, level, scale, slots);
          },
          "values"_a, "level"_a = -1, "scale"_a = 0.0, "slots"_a = 0,
          nb::sig("def encode(self, values: object, level: int = -1, scale: float = 0.0, slots: "
                  "int = 0) -> Plaintext"),
          R"(Encode (n,) or (batch, n) numbers at a level (-1: the top) and a scale (0: the level's canonical scale).

slots: a power of two for sparse packing; 0 stands for all N/2.

Raises InvalidArgument for more numbers than slots, and for numbers that are not finite or too large for the level.)")
      .def(
          "encode_compact",
          [](const Explicit& e, nb::handle values, double scale, std::int64_t slots) {
            return encode_compact(*e.server, values, scale, slots);
          },
          "values"_a, "scale"_a = 0.0, "slots"_a = 0,
          nb::sig("def encode_compact(self, values: object, scale: float = 0.0, slots: int = 0) -> "
                  "CompactPlaintext"),
          R"(Encode (n,) or (batch, n) numbers as integers, 8 bytes for each coefficient; 0 stands for the scale of the top level.

One compact plaintext serves every level. Operations expand it to the residues that encode gives, which takes an NTT
of every limb. Numbers that repeat after p slots take 2 p coefficients. The time of this encoding depends on the numbers.

Raises InvalidArgument as encode does, and for integers of more than 62 bits.)")
      .def(
          "expand",
          [](const Explicit& e, const CompactPlaintext& a, int level) {
            return e->encoder().expand(a, checked_level(*e.server->params, level));
          },
          "a"_a, "level"_a = -1, nogil(),
          nb::sig("def expand(self, a: CompactPlaintext, level: int = -1) -> Plaintext"),
          "What encode gives for the same numbers at a level (-1: the top) and the same scale.")
      .def(
          "decode",
          [](const Explicit& e, const Plaintext& a) {
            require_same(*e.server->params, *a.params, "the plaintext is");
            std::vector<std::complex<double>> values;
            const WipedAtEnd wiped(values);
            {
              nb::gil_scoped_release release;
              values = e->encoder().decode(e.here(a));
            }
            const std::size_t batch = a.poly.batch();
            return to_numpy(values, batch, values.size() / batch, batch > 1, true);
          },
          "a"_a,
          nb::sig("def decode(self, a: Plaintext) -> numpy.typing.NDArray[numpy.complex128]"),
          "The complex numbers of an encoded vector: (slots,), or (batch, slots) if batch > 1.")
      .def(
          "add",
          [](const Explicit& e, const Ciphertext& a, const Ciphertext& b,
             std::optional<double> peak) {
            return with(e->add(e.here(a), e.here(b), claimed(peak)), ckks::packing_of_joined(a, b));
          },
          "a"_a, "b"_a, "peak"_a = nb::none(), nogil(),
          "a + b. peak: your claim that no number of the sum is larger, if you know a smaller "
          "bound "
          "than that of the operands. Decryption compares the numbers with it.")
      .def(
          "sub",
          [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
            return with(e->sub(e.here(a), e.here(b)), ckks::packing_of_joined(a, b));
          },
          "a"_a, "b"_a, nogil(), "a - b.")
      .def(
          "negate",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->negate(e.here(a)), a.packing);
          },
          "a"_a, nogil(), "-a.")
      .def(
          "add_plain",
          [](const Explicit& e, const Ciphertext& a, const Plaintext& b) {
            return with(e->add_plain(e.here(a), e.here(b)), ckks::packing_of_moved(a.packing));
          },
          "a"_a, "b"_a, nogil(), "a + b for an encoded b of the same level and scale.")
      .def(
          "add_plain",
          [](const Explicit& e, const Ciphertext& a, const CompactPlaintext& b) {
            return with(e->add_plain(e.here(a), b), ckks::packing_of_moved(a.packing));
          },
          "a"_a, "b"_a, nogil(), "a + b for a compact b of the same scale.")
      .def(
          "sub_plain",
          [](const Explicit& e, const Ciphertext& a, const Plaintext& b) {
            return with(e->sub_plain(e.here(a), e.here(b)), ckks::packing_of_moved(a.packing));
          },
          "a"_a, "b"_a, nogil(), "a - b for an encoded b of the same level and scale.")
      .def(
          "sub_plain",
          [](const Explicit& e, const Ciphertext& a, const CompactPlaintext& b) {
            return with(e->sub_plain(e.here(a), b), ckks::packing_of_moved(a.packing));
          },
          "a"_a, "b"_a, nogil(), "a - b for a compact b of the same scale.")
      .def(
          "add_scalar",
          [](const Explicit& e, const Ciphertext& a, std::complex<double> b) {
            return with(e->add_scalar(e.here(a), b), ckks::packing_of_sum(a, b));
          },
          "a"_a, "b"_a, nogil(), "a plus a number in every slot.")
      .def(
          "multiply_plain",
          [](const Explicit& e, const Ciphertext& a, const Plaintext& b) {
            return with(e->multiply_plain(e.here(a), e.here(b)),
                        ckks::packing_of_scaled(a.packing));
          },
          "a"_a, "b"_a, nogil(),
          "a * b for an encoded b of the same level. The scale is the product of both.")
      .def(
          "multiply_plain",
          [](const Explicit& e, const Ciphertext& a, const CompactPlaintext& b) {
            return with(e->multiply_plain(e.here(a), b), ckks::packing_of_scaled(a.packing));
          },
          "a"_a, "b"_a, nogil(),
          "a * b for a compact b, whose scale must fit a's level. The scale is the product of "
          "both.")
      .def(
          "multiply_scalar",
          [](const Explicit& e, const Ciphertext& a, std::complex<double> b, double scale) {
            return with(e->multiply_scalar(e.here(a), b, scale), ckks::packing_of_product(a, b));
          },
          "a"_a, "b"_a, "scale"_a, nogil(),
          "a times a number that is encoded at `scale`, at least 1. The scale is the product of "
          "both.")
      .def(
          "multiply_integer",
          [](const Explicit& e, const Ciphertext& a, nb::int_ b) {
            std::int64_t factor = 0;
            require<InvalidArgument>(nb::try_cast(b, factor),
                                     "the integer is beyond 64 bits: use multiply_scalar");
            nb::gil_scoped_release release;
            return with(e->multiply_integer(e.here(a), factor), a.packing);
          },
          "a"_a, "b"_a, "a times an integer of 64 bits. It is exact and keeps the scale.")
      .def(
          "multiply_i",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->multiply_i(e.here(a)),
                        ckks::packing_of_product(a, std::complex<double>(0, 1)));
          },
          "a"_a, nogil(), "a times the imaginary unit. It is exact and keeps the scale.")
      .def(
          "multiply_monomial",
          [](const Explicit& e, const Ciphertext& a, std::size_t exponent) {
            return with(e->multiply_monomial(e.here(a), exponent),
                        ckks::packing_of_product(a, std::complex<double>(0, 1)));
          },
          "a"_a, "exponent"_a, nogil(),
          "a times X^exponent, for 0 <= exponent < 2N: slot j times exp(2 pi i 5^j exponent / "
          "2N). It is exact and keeps the scale.")
      .def(
          "prepare_monomial",
          [](const Explicit& e, std::size_t exponent) { e->prepare_monomial(exponent); },
          "exponent"_a, nogil(),
          "Make what multiply_monomial needs for this exponent now, instead of at its first use.")
      .def(
          "multiply",
          [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
            return with(e->multiply(e.here(a), e.here(b)), ckks::packing_of_joined(a, b));
          },
          "a"_a, "b"_a, nogil(), "a * b in three parts. The scale is the product of both.")
      .def(
          "square",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->square(e.here(a)), a.packing);
          },
          "a"_a, nogil(), "a * a in three parts.")
      .def(
          "relinearise",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->relinearise(e.here(a)), a.packing);
          },
          "a"_a, nogil(), "a in two parts instead of three, by the relinearisation key.")
      .def(
          "rescale",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->rescale(e.here(a)), a.packing);
          },
          "a"_a, nogil(),
          "a one level lower. The scale is divided by the ratio of the two levels' moduli.")
      .def(
          "relinearise_rescale",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->relinearise_rescale(e.here(a)), a.packing);
          },
          "a"_a, nogil(), "relinearise and rescale, with one division for both.")
      .def(
          "multiply_relinearise_rescale",
          [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
            return with(e->multiply_relinearise_rescale(e.here(a), e.here(b)),
                        ckks::packing_of_joined(a, b));
          },
          "a"_a, "b"_a, nogil(), "a * b in two parts, one level lower.")
      .def(
          "drop_to",
          [](const Explicit& e, const Ciphertext& a, int level) {
            return with(e->drop_to(e.here(a), level), a.packing);
          },
          "a"_a, "level"_a, nogil(), "The same message and scale at a lower level.")
      .def(
          "adjust",
          [](const Explicit& e, const Ciphertext& a, int level, double scale) {
            return with(e->adjust(e.here(a), level, scale), a.packing);
          },
          "a"_a, "level"_a, "scale"_a, nogil(),
          "a at exactly (level, scale), for a level below a's. It costs one rescaling.")
      .def(
          "rotate",
          [](const Explicit& e, const Ciphertext& a, int steps) {
            return with(e->rotate(e.here(a), steps), rotated(a, steps));
          },
          "a"_a, "steps"_a, nogil(), "Slot i of the result is slot i + steps of a.")
      .def(
          "conjugate",
          [](const Explicit& e, const Ciphertext& a) {
            return with(e->conjugate(e.here(a)), a.packing);
          },
          "a"_a, nogil(), "The complex conjugate of every slot.")
      .def(
          "twice_real",
          [](const Explicit& e, const Ciphertext& a, std::optional<double> peak) {
            ckks::Packing packing = a.packing;
            packing.complex_values = false;
            return with(e->twice_real(e.here(a), claimed(peak)), packing);
          },
          "a"_a, "peak"_a = nb::none(), nogil(),
          "a plus its conjugate: twice the real part of every slot. peak: as for add.")
      .def("hoist", &hoist, "a"_a, nogil(), nb::keep_alive<0, 2>(),
           "Compute the ModUp of a once, for many rotations.")
      .def(
          "rotate_hoisted",
          [](const Explicit& e, const Digits& a, int steps) {
            return with(e->rotate_hoisted(a.value, steps), rotated(*a.value.source, steps));
          },
          "a"_a, "steps"_a, nogil(), "The same as rotate of the hoisted ciphertext, but cheaper.")
      .def(
          "rotate_extended",
          [](const Explicit& e, const Digits& a, int steps) {
            return Sum{e->rotate_extended(a.value, steps), rotated(*a.value.source, steps)};
          },
          "a"_a, "steps"_a, nogil(),
          "P times the rotated ciphertext, before the division by P. steps may be 0.")
      .def(
          "extend",
          [](const Explicit& e, const Ciphertext& a) {
            return Sum{e->extend(e.here(a)), a.packing};
          },
          "a"_a, nogil(), "P times a, over the primes of its level and P.")
      .def(
          "reduce",
          [](const Explicit& e, const Sum& a) {
            return with(e->reduce(e.here(a.value)), a.packing);
          },
          "a"_a, nogil(), "Divide by P. This gives a ciphertext over the primes of its level.")
      .def(
          "reduce_rescale",
          [](const Explicit& e, const Sum& a, std::optional<double> peak) {
            return with(e->reduce_rescale(e.here(a.value), claimed(peak)), a.packing);
          },
          "a"_a, "peak"_a = nb::none(), nogil(),
          "reduce and rescale, with one division for both. peak: as for add.")
      .def("encode_diagonal", &encode_diagonal, "values"_a, "level"_a, "scale"_a,
           nb::sig(
               "def encode_diagonal(self, values: object, level: int, scale: float) -> Diagonal"),
           "Encode (n,) or (batch, n) numbers at a level and a scale of at least 1, for "
           "multiply_accumulate.")
      .def("multiply_accumulate", &multiply_accumulate, "a"_a, "diagonals"_a,
           "The sum of a[k] * diagonals[k]. All diagonals need the same scale.")
      .def(
          "add_extended",
          [](const Explicit& e, Sum& a, const Sum& b) {
            e->add_inplace(e.move_here(a.value), e.here(b.value));
            if (a.packing != b.packing) a.packing = ckks::packing_of_moved(a.packing);
          },
          "a"_a, "b"_a, nogil(), "a += b, in place.")
      .def(
          "rotate_accumulate",
          [](const Explicit& e, Sum& sum, const Sum& a, int steps) {
            e->rotate_accumulate(e.move_here(sum.value), e.here(a.value), steps);
            sum.packing = ckks::packing_of_moved(sum.packing);
          },
          "sum"_a, "a"_a, "steps"_a, nogil(),
          "sum += the rotation of a, in place, before the division by P.");
}

}  // namespace jali::python
