// The explicit evaluator: binds the operations of ckks/evaluator.h, one by one.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "ckks_here.h"
#include "ckks_server.h"
#include "jali/base/wipe.h"
#include "jali/schemes/ckks/range.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

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

/// For the texts of objects.
std::string size_of(double scale, std::size_t bytes) {
  char text[80];
  std::snprintf(text, sizeof(text), "scale=2^%.2f, %zu bytes", std::log2(scale), bytes);
  return text;
}

Packing rotated(const Ciphertext& a, int steps) {
  return ckks::packing_of_rotated(a.packing, steps, std::size_t{1} << a.log_slots);
}

Ciphertext with(Ciphertext out, const Packing& packing) {
  out.packing = packing;
  return out;
}

constexpr const char* kEncoded = "Plaintext | CompactPlaintext";

/// Calls work with the plaintext that b is, without the interpreter's lock. Throws InvalidArgument
/// for another object.
template <class Work>
Ciphertext with_encoded(const Explicit& e, nb::handle b, const Work& work) {
  const auto* plain = held<Plaintext>(b);
  const auto* compact = held<CompactPlaintext>(b);
  if (plain == nullptr && compact == nullptr) {
    refuse("b", "a Plaintext or a CompactPlaintext (Evaluator.explicit.encode makes one)", b);
  }
  const nb::gil_scoped_release release;
  return plain != nullptr ? work(e.here(*plain)) : work(*compact);
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
  using nogil = nb::gil_scoped_release;

  nb::class_<Digits> digits(m, "Hoisted",
                            R"(The ModUp of a ciphertext's digits, computed once for many rotations.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1, 2])).explicit
>>> digits = by_hand.hoist(client.encrypt([1, 2, 3]))
>>> client.decrypt(by_hand.rotate_hoisted(digits, 1))[:2].round(3)
array([2., 3.]))");
  refuse_constructor(digits, "a Hoisted is made by Evaluator.explicit.hoist(ciphertext)");
  digits.def("__repr__", [](const Digits& d) {
    return "Hoisted(level=" + std::to_string(d.value.source->level) + ", " +
           size_of(d.value.source->scale, d.value.ext.bytes()) + ")";
  });
  nb::class_<Diagonal> diagonal(m, "Diagonal", R"(A plaintext over the primes of a level and P.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys()).explicit
>>> halves = by_hand.encode_diagonal(np.full(client.params.slots, 0.5), level=1, scale=client.params.scale)
>>> half = by_hand.multiply_accumulate([by_hand.extend(client.encrypt([1, -3]))], [halves])
>>> client.decrypt(by_hand.reduce_rescale(half)).round(3)
array([ 0.5, -1.5]))");
  refuse_constructor(diagonal,
                     "a Diagonal is made by Evaluator.explicit.encode_diagonal(values, ...)");
  diagonal.def_ro("scale", &Diagonal::scale, "Its scale.").def("__repr__", [](const Diagonal& d) {
    return "Diagonal(" + size_of(d.scale, d.poly.bytes()) + ")";
  });
  nb::class_<Sum> extended(
      m, "Extended", R"(A ciphertext over the primes of a level and P, before the division by P.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1])).explicit
>>> digits = by_hand.hoist(client.encrypt([1, 2, 4]))
>>> sums = by_hand.rotate_extended(digits, 0)
>>> by_hand.add_extended(sums, by_hand.rotate_extended(digits, 1))
>>> client.decrypt(by_hand.reduce(sums))[:2].round(3)
array([3., 6.]))");
  refuse_constructor(extended, "an Extended is made by Evaluator.explicit.extend(ciphertext)");
  extended.def_prop_ro(
              "level", [](const Sum& s) { return s.value.level; }, "Its level.")
      .def_prop_ro(
          "scale", [](const Sum& s) { return s.value.scale; }, "Its scale.")
      .def("__repr__", [](const Sum& s) {
        return "Extended(level=" + std::to_string(s.value.level) + ", " +
               size_of(s.value.scale, s.value.c0.bytes() + s.value.c1.bytes()) + ")";
      });

  nb::class_<Explicit> type(
      m, "ExplicitEvaluator",
      R"(Every CKKS operation by hand: it relinearises, rescales and changes levels only when asked.

Evaluator.explicit gives it. It takes and returns Ciphertext objects, and may be used from several threads. Two
operands must have equal levels (drop_to) and, in sums, scales that are equal to within 2^-20 of themselves (adjust).
Methods raise InvalidArgument for other levels, ScaleMismatch for other scales, DepthExhausted if no level is left,
KeyMissing without the key that they need, and ParamsMismatch for objects of other parameters.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys()).explicit
>>> square = by_hand.rescale(by_hand.relinearise(by_hand.square(client.encrypt([0.5, -1.5]))))
>>> client.decrypt(square).round(3)
array([0.25, 2.25]))");
  refuse_constructor(type, "an ExplicitEvaluator is Evaluator.explicit");
  type.def("__repr__", [](const Explicit& e) {
    return std::string("ExplicitEvaluator(") +
           nb::repr(nb::cast(Params{e.server->params})).c_str() + ", engine='" + e.server->engine +
           "')";
  });
  type.def_prop_ro(
      "params", [](const Explicit& e) { return Params{e.server->params}; }, "Its parameters.");
  method(
      type, "has_rotation", 1, {{"steps"}},
      [](const Explicit& e, int steps) { return e->has_rotation(steps); },
      "Whether there is a key for this rotation.");
  method(
      type, "is_here", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) { return e->is_here(a); },
      "Whether a is in the memory of the evaluator's device, where operations need it.");
  method<nogil>(
      type, "bring", 1, {{"a"}}, [](const Explicit& e, const Ciphertext& a) { return e->bring(a); },
      "A copy of a in the memory of the device.");
  method<nogil>(
      type, "send_back", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) { return e->send_back(a); },
      "A copy of a in the host's memory, to be decrypted or sent.");
  method(
      type, "encode", 4,
      {{"values"}, {"level", nb::int_(-1)}, {"scale", nb::float_(0.0)}, {"slots", nb::int_(0)}},
      [](const Explicit& e, nb::handle values, int level, double scale, std::int64_t slots) {
        return encode_array(*e.server, values, level, scale, slots);
      },
      R"(Encode (n,) or (batch, n) numbers at a level (-1: the top) and a scale (0: the level's canonical scale).

slots: a power of two for sparse packing; 0 stands for all N/2.

Raises InvalidArgument for more numbers than slots, and for numbers that are not finite or too large for the level.)");
  method(
      type, "encode_compact", 3, {{"values"}, {"scale", nb::float_(0.0)}, {"slots", nb::int_(0)}},
      [](const Explicit& e, nb::handle values, double scale, std::int64_t slots) {
        return encode_compact(*e.server, values, scale, slots);
      },
      R"(Encode (n,) or (batch, n) numbers as integers, 8 bytes for each coefficient; 0 stands for the scale of the top level.

One compact plaintext serves every level. Operations expand it to the residues that encode gives, which takes an NTT
of every limb. Numbers that repeat after p slots take 2 p coefficients. The time of this encoding depends on the numbers.

Raises InvalidArgument as encode does, and for integers of more than 62 bits.)");
  method<nogil>(
      type, "expand", 2, {{"a"}, {"level", nb::int_(-1)}},
      [](const Explicit& e, const CompactPlaintext& a, int level) {
        return e->encoder().expand(a, checked_level(*e.server->params, level));
      },
      "What encode gives for the same numbers at a level (-1: the top) and the same scale.");
  type.def("decode",
           checked_method<const Explicit&>(
               {"ExplicitEvaluator.decode", 1, {{"a"}}},
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
               }),
           nb::sig("def decode(self, a: Plaintext) -> numpy.typing.NDArray[numpy.complex128]"),
           "The complex numbers of an encoded vector: (slots,), or (batch, slots) if batch > 1.");
  method<nogil>(
      type, "add", 3, {{"a"}, {"b"}, {"peak", nb::none()}},
      [](const Explicit& e, const Ciphertext& a, const Ciphertext& b, std::optional<double> peak) {
        const double claim = claimed(peak);
        return with(ckks::with_claim(e->add(e.here(a), e.here(b), claim), claim),
                    ckks::packing_of_joined(a, b));
      },
      "a + b. peak: your claim that no number of the sum is larger, if you know a smaller bound "
      "than that of the operands. Decryption compares the numbers with it.");
  method<nogil>(
      type, "sub", 2, {{"a"}, {"b"}},
      [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
        return with(e->sub(e.here(a), e.here(b)), ckks::packing_of_joined(a, b));
      },
      "a - b.");
  method<nogil>(
      type, "negate", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) { return with(e->negate(e.here(a)), a.packing); },
      "-a.");
  method(
      type, "add_plain", 2, {{"a"}, {"b", std::nullopt, kEncoded}},
      [](const Explicit& e, const Ciphertext& a, nb::handle b) {
        return with(with_encoded(e, b, [&](const auto& in) { return e->add_plain(e.here(a), in); }),
                    ckks::packing_of_moved(a.packing));
      },
      "a + b for an encoded b of the same level and scale, or a compact b of the same scale.");
  method(
      type, "sub_plain", 2, {{"a"}, {"b", std::nullopt, kEncoded}},
      [](const Explicit& e, const Ciphertext& a, nb::handle b) {
        return with(with_encoded(e, b, [&](const auto& in) { return e->sub_plain(e.here(a), in); }),
                    ckks::packing_of_moved(a.packing));
      },
      "a - b for an encoded b of the same level and scale, or a compact b of the same scale.");
  method<nogil>(
      type, "add_scalar", 2, {{"a"}, {"b"}},
      [](const Explicit& e, const Ciphertext& a, std::complex<double> b) {
        return with(e->add_scalar(e.here(a), b), ckks::packing_of_sum(a, b));
      },
      "a plus a number in every slot.");
  method(
      type, "multiply_plain", 2, {{"a"}, {"b", std::nullopt, kEncoded}},
      [](const Explicit& e, const Ciphertext& a, nb::handle b) {
        return with(
            with_encoded(e, b, [&](const auto& in) { return e->multiply_plain(e.here(a), in); }),
            ckks::packing_of_scaled(a.packing));
      },
      "a * b for an encoded b of the same level, or a compact b whose scale fits a's level. The "
      "scale is "
      "the product of both.");
  method<nogil>(
      type, "multiply_scalar", 3, {{"a"}, {"b"}, {"scale"}},
      [](const Explicit& e, const Ciphertext& a, std::complex<double> b, double scale) {
        return with(e->multiply_scalar(e.here(a), b, scale), ckks::packing_of_product(a, b));
      },
      "a times a number that is encoded at `scale`, at least 1. The scale is the product of "
      "both.");
  method(
      type, "multiply_integer", 2, {{"a"}, {"b", std::nullopt, "int"}},
      [](const Explicit& e, const Ciphertext& a, nb::handle b) {
        if (PyBool_Check(b.ptr()) || !PyIndex_Check(b.ptr())) refuse("b", "a whole number", b);
        std::int64_t factor = 0;
        require<InvalidArgument>(nb::try_cast(b, factor),
                                 "the integer is beyond 64 bits: use multiply_scalar");
        nb::gil_scoped_release release;
        return with(e->multiply_integer(e.here(a), factor),
                    ckks::packing_of_product(a, static_cast<double>(factor)));
      },
      "a times an integer of 64 bits. It is exact and keeps the scale.");
  method<nogil>(
      type, "multiply_i", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) {
        return with(e->multiply_i(e.here(a)),
                    ckks::packing_of_product(a, std::complex<double>(0, 1)));
      },
      "a times the imaginary unit. It is exact and keeps the scale.");
  method<nogil>(
      type, "multiply_monomial", 2, {{"a"}, {"exponent"}},
      [](const Explicit& e, const Ciphertext& a, std::size_t exponent) {
        return with(e->multiply_monomial(e.here(a), exponent),
                    ckks::packing_of_product(a, std::complex<double>(0, 1)));
      },
      "a times X^exponent, for 0 <= exponent < 2N: slot j times exp(2 pi i 5^j exponent / "
      "2N). It is exact and keeps the scale.");
  method<nogil>(
      type, "prepare_monomial", 1, {{"exponent"}},
      [](const Explicit& e, std::size_t exponent) { e->prepare_monomial(exponent); },
      "Make what multiply_monomial needs for this exponent now, instead of at its first use.");
  method<nogil>(
      type, "multiply", 2, {{"a"}, {"b"}},
      [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
        return with(e->multiply(e.here(a), e.here(b)), ckks::packing_of_joined(a, b));
      },
      "a * b in three parts. The scale is the product of both.");
  method<nogil>(
      type, "square", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) {
        return with(e->square(e.here(a)), ckks::packing_of_joined(a, a));
      },
      "a * a in three parts.");
  method<nogil>(
      type, "relinearise", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) {
        return with(e->relinearise(e.here(a)), a.packing);
      },
      "a in two parts instead of three, by the relinearisation key.");
  method<nogil>(
      type, "rescale", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) { return with(e->rescale(e.here(a)), a.packing); },
      "a one level lower. The scale is divided by the ratio of the two levels' moduli.");
  method<nogil>(
      type, "relinearise_rescale", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) {
        return with(e->relinearise_rescale(e.here(a)), a.packing);
      },
      "relinearise and rescale, with one division for both.");
  method<nogil>(
      type, "multiply_relinearise_rescale", 2, {{"a"}, {"b"}},
      [](const Explicit& e, const Ciphertext& a, const Ciphertext& b) {
        return with(e->multiply_relinearise_rescale(e.here(a), e.here(b)),
                    ckks::packing_of_joined(a, b));
      },
      "a * b in two parts, one level lower.");
  method<nogil>(
      type, "drop_to", 2, {{"a"}, {"level"}},
      [](const Explicit& e, const Ciphertext& a, int level) {
        return with(e->drop_to(e.here(a), level), a.packing);
      },
      "The same message and scale at a lower level.");
  method<nogil>(
      type, "adjust", 3, {{"a"}, {"level"}, {"scale"}},
      [](const Explicit& e, const Ciphertext& a, int level, double scale) {
        return with(e->adjust(e.here(a), level, scale), a.packing);
      },
      "a at exactly (level, scale), for a level below a's. It costs one rescaling.");
  method<nogil>(
      type, "rotate", 2, {{"a"}, {"steps"}},
      [](const Explicit& e, const Ciphertext& a, int steps) {
        return with(e->rotate(e.here(a), steps), rotated(a, steps));
      },
      "Slot i of the result is slot i + steps of a.");
  method<nogil>(
      type, "conjugate", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) {
        return with(e->conjugate(e.here(a)), a.packing);
      },
      "The complex conjugate of every slot.");
  method<nogil>(
      type, "twice_real", 2, {{"a"}, {"peak", nb::none()}},
      [](const Explicit& e, const Ciphertext& a, std::optional<double> peak) {
        ckks::Packing packing = a.packing;
        packing.complex_values = false;
        packing.rest = ckks::rest_of(a) == 0 ? packing.rest : params::kUnbounded;
        const double claim = claimed(peak);
        return with(ckks::with_claim(e->twice_real(e.here(a), claim), claim), packing);
      },
      "a plus its conjugate: twice the real part of every slot. peak: as for add.");
  method<nogil>(type, "hoist", 1, {{"a"}}, &hoist,
                "Compute the ModUp of a once, for many rotations.", nb::keep_alive<0, 2>(),
                nb::keep_alive<0, 3>());
  method<nogil>(
      type, "rotate_hoisted", 2, {{"a"}, {"steps"}},
      [](const Explicit& e, const Digits& a, int steps) {
        return with(e->rotate_hoisted(a.value, steps), rotated(*a.value.source, steps));
      },
      "The same as rotate of the hoisted ciphertext, but cheaper.");
  method<nogil>(
      type, "rotate_extended", 2, {{"a"}, {"steps"}},
      [](const Explicit& e, const Digits& a, int steps) {
        return Sum{e->rotate_extended(a.value, steps), rotated(*a.value.source, steps)};
      },
      "P times the rotated ciphertext, before the division by P. steps may be 0.");
  method<nogil>(
      type, "extend", 1, {{"a"}},
      [](const Explicit& e, const Ciphertext& a) { return Sum{e->extend(e.here(a)), a.packing}; },
      "P times a, over the primes of its level and P.");
  method<nogil>(
      type, "reduce", 1, {{"a"}},
      [](const Explicit& e, const Sum& a) { return with(e->reduce(e.here(a.value)), a.packing); },
      "Divide by P. This gives a ciphertext over the primes of its level.");
  method<nogil>(
      type, "reduce_rescale", 2, {{"a"}, {"peak", nb::none()}},
      [](const Explicit& e, const Sum& a, std::optional<double> peak) {
        const double claim = claimed(peak);
        return with(ckks::with_claim(e->reduce_rescale(e.here(a.value), claim), claim), a.packing);
      },
      "reduce and rescale, with one division for both. peak: as for add.");
  method(type, "encode_diagonal", 3, {{"values"}, {"level"}, {"scale"}}, &encode_diagonal,
         "Encode (n,) or (batch, n) numbers at a level and a scale of at least 1, for "
         "multiply_accumulate.");
  method(type, "multiply_accumulate", 2, {{"a"}, {"diagonals"}}, &multiply_accumulate,
         "The sum of a[k] * diagonals[k]. All diagonals need the same scale.");
  method<nogil>(
      type, "add_extended", 2, {{"a"}, {"b"}},
      [](const Explicit& e, Sum& a, const Sum& b) {
        e->add_inplace(e.move_here(a.value), e.here(b.value));
        if (a.packing != b.packing) a.packing = ckks::packing_of_moved(a.packing);
      },
      "a += b, in place.");
  method<nogil>(
      type, "rotate_accumulate", 3, {{"sum"}, {"a"}, {"steps"}},
      [](const Explicit& e, Sum& sum, const Sum& a, int steps) {
        e->rotate_accumulate(e.move_here(sum.value), e.here(a.value), steps);
        sum.packing = ckks::packing_of_moved(sum.packing);
      },
      "sum += the rotation of a, in place, before the division by P.");
}

}  // namespace jali::python
